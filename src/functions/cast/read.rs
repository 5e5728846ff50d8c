//! Casts out of CHAR and VARCHAR.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, ArrowPrimitiveType, AsArray, BooleanBuilder, PrimitiveBuilder, StringArray};
use arrow::datatypes::{Decimal128Type, Float32Type, Float64Type, Int8Type, Int16Type, Int32Type, Int64Type};

use super::{Conversion, Failures, number};
use crate::error::{Error, Result};
use crate::functions::decimal;
use crate::functions::temporal::moment::{Moment, Zone, moments_to_array};
use crate::functions::temporal::parse::{parse_date, parse_time, parse_timestamp};
use crate::limits::QUOTED_CHARACTERS;
use crate::types::SqlType;

/// Casts texts into another type.
pub(super) fn out_of_text(
    array: &ArrayRef,
    to: &SqlType,
    conversion: Conversion,
    failures: &mut Failures,
) -> Result<ArrayRef> {
    let texts =
        array.as_string_opt::<i32>().ok_or_else(|| Error::bug(format!("a text came as {}", array.data_type())))?;
    let mut reader = Reader { texts, to, conversion, failures };
    match to {
        SqlType::Boolean => reader.booleans(),
        SqlType::TinyInt => reader.values::<Int8Type>(|t| integer(t).and_then(|v| i8::try_from(v).ok())),
        SqlType::SmallInt => reader.values::<Int16Type>(|t| integer(t).and_then(|v| i16::try_from(v).ok())),
        SqlType::Int => reader.values::<Int32Type>(|t| integer(t).and_then(|v| i32::try_from(v).ok())),
        SqlType::BigInt => reader.values::<Int64Type>(integer),
        SqlType::Float => reader.values::<Float32Type>(|t| floating(t).and_then(|t| t.parse().ok())),
        SqlType::Double => reader.values::<Float64Type>(|t| floating(t).and_then(|t| t.parse().ok())),
        SqlType::Decimal(precision, scale) => {
            reader.values::<Decimal128Type>(|text| read_decimal(text, *precision, *scale))
        }
        SqlType::Date => reader.moments(|text| parse_date(text).map(Moment::of_days)),
        SqlType::Time(precision) => reader.moments(|text| parse_time(text).map(|m| m.truncated(*precision))),
        SqlType::Timestamp(precision) => reader.moments(|text| parse_timestamp(text).map(|m| m.truncated(*precision))),
        SqlType::TimestampLtz(precision) => {
            let mut zone = Zone::new(conversion.zone);
            reader.moments(|text| parse_timestamp(text).map(|m| zone.instant(m.truncated(*precision))))
        }
        SqlType::Binary(_) | SqlType::Varbinary(_) => {
            let bytes = arrow::compute::cast(array, &arrow::datatypes::DataType::Binary)?;
            Ok(number::fit_bytes(&bytes, to))
        }
        other => Err(Error::bug(format!("a cast of text to {other} went through planning"))),
    }
}

struct Reader<'a> {
    texts: &'a StringArray,
    to: &'a SqlType,
    conversion: Conversion,
    failures: &'a mut Failures,
}

impl Reader<'_> {
    fn fail(&mut self, row: usize) -> Result<()> {
        let (text, to) = (self.texts.value(row), self.to);
        self.conversion.fail(row, self.failures, || unreadable(text, to))
    }

    fn values<T: ArrowPrimitiveType>(&mut self, read: impl Fn(&str) -> Option<T::Native>) -> Result<ArrayRef> {
        let mut builder = PrimitiveBuilder::<T>::with_capacity(self.texts.len());
        for row in 0..self.texts.len() {
            if self.texts.is_null(row) {
                builder.append_null();
                continue;
            }
            let value = read(self.texts.value(row));
            builder.append_option(value);
            if value.is_none() {
                self.fail(row)?;
            }
        }
        Ok(Arc::new(builder.finish().with_data_type(self.to.to_arrow())))
    }

    fn booleans(&mut self) -> Result<ArrayRef> {
        let mut builder = BooleanBuilder::with_capacity(self.texts.len());
        for row in 0..self.texts.len() {
            if self.texts.is_null(row) {
                builder.append_null();
                continue;
            }
            let value = boolean(self.texts.value(row));
            builder.append_option(value);
            if value.is_none() {
                self.fail(row)?;
            }
        }
        Ok(Arc::new(builder.finish()))
    }

    fn moments(&mut self, mut read: impl FnMut(&str) -> Option<Moment>) -> Result<ArrayRef> {
        moments_to_array(&self.to.to_arrow(), self.texts.len(), |row| {
            if self.texts.is_null(row) {
                return Ok(None);
            }
            let moment = read(self.texts.value(row));
            if moment.is_none() {
                self.fail(row)?;
            }
            Ok(moment)
        })
    }
}

fn unreadable(text: &str, to: &SqlType) -> Error {
    let quoted: String = text.chars().take(QUOTED_CHARACTERS).collect();
    let form = match to {
        SqlType::Boolean => Some("TRUE or FALSE".to_string()),
        SqlType::Date => Some("a date like 2024-12-31".to_string()),
        SqlType::Time(_) => Some("a time like 23:59:59".to_string()),
        SqlType::Timestamp(_) | SqlType::TimestampLtz(_) => Some("a time like 2024-12-31 23:59:59".to_string()),
        _ => None,
    };
    let expected = form.map_or_else(String::new, |form| format!("it takes {form}; "));
    Error::data(format!("cannot cast '{quoted}' to {to}")).hint(format!("{expected}TRY_CAST gives NULL instead"))
}

/// A whole number with an optional sign; a fraction is cut off.
fn integer(text: &str) -> Option<i64> {
    let text = text.trim();
    let (negative, digits) = match text.as_bytes().first()? {
        b'-' => (true, &text[1..]),
        b'+' => (false, &text[1..]),
        _ => (false, text),
    };
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    if digits.is_empty() || digits == "." || !fraction.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    let mut value = 0_i64;
    for byte in whole.bytes() {
        if !byte.is_ascii_digit() {
            return None;
        }
        // Counting down reaches the least value too.
        value = value.checked_mul(10)?.checked_sub(i64::from(byte - b'0'))?;
    }
    if negative { Some(value) } else { value.checked_neg() }
}

/// The part of a text that Rust reads as Java's `parseDouble` would; nothing if Java would not read it.
fn floating(text: &str) -> Option<&str> {
    let text = text.trim();
    let bare = text.strip_prefix(['+', '-']).unwrap_or(text);
    if matches!(bare, "NaN" | "Infinity") {
        return Some(text);
    }
    let body = text.strip_suffix(['d', 'D', 'f', 'F']).unwrap_or(text);
    let plain = body.bytes().all(|b| b.is_ascii_digit() || matches!(b, b'.' | b'-' | b'+' | b'e' | b'E'));
    plain.then_some(body)
}

fn boolean(text: &str) -> Option<bool> {
    let is = |words: &[&str]| words.iter().any(|word| text.eq_ignore_ascii_case(word));
    if is(&["t", "true", "y", "yes", "1"]) {
        Some(true)
    } else if is(&["f", "false", "n", "no", "0"]) {
        Some(false)
    } else {
        None
    }
}

/// The digits that a short decimal is read by in Flink; such texts have laxer rules.
const SHORT: usize = 18;

fn read_decimal(text: &str, precision: u8, scale: i8) -> Option<i128> {
    let trimmed = text.trim();
    let short = usize::from(precision) <= SHORT && trimmed.len() <= SHORT;
    let parsed = decimal::parse(trimmed).or_else(|| {
        // As in Flink, one foreign character at the end of a short text does not matter.
        let (last, _) = trimmed.char_indices().next_back().filter(|(_, c)| short && !matches!(c, '-' | '+' | '.'))?;
        let head = &trimmed[..last];
        if head.is_empty() { Some((0, 0)) } else { decimal::parse(head).filter(|_| !head.contains(['e', 'E'])) }
    });
    let (unscaled, from) = parsed?;
    let rounded = decimal::rescale(unscaled, from, i32::from(scale))?;
    if decimal::fits(rounded, precision) {
        return Some(rounded);
    }
    // As in Flink, the digits are counted before a short text is rounded.
    let whole =
        decimal::rescale(unscaled - unscaled % decimal::power_of_ten(from.max(0) as u32), from, i32::from(scale))?;
    (short && decimal::fits(whole, precision)).then_some(rounded)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whole_numbers_are_read_as_flink_reads_them() {
        for (text, value) in [(" 12 ", 12), ("+7", 7), ("007", 7), ("-12.9", -12), ("12.", 12), (".9", 0)] {
            assert_eq!(integer(text), Some(value), "{text}");
        }
        assert_eq!(integer("-9223372036854775808"), Some(i64::MIN));
        for text in ["12x", "", "1e3", "9223372036854775808", "-", ".", "0x10", "1,000"] {
            assert_eq!(integer(text), None, "{text}");
        }
    }

    #[test]
    fn decimals_are_read_as_flink_reads_them() {
        let read = |text: &str| read_decimal(text, 5, 2);
        assert_eq!(read("1.005"), Some(101));
        assert_eq!(read("999.995"), Some(100_000));
        assert_eq!(read("12345"), None);
        assert_eq!(read("x"), Some(0));
        assert_eq!(read("1x"), Some(100));
        assert_eq!(read("7.5%"), Some(750));
        assert_eq!(read("1e2"), Some(10_000));
        for text in ["-", "xyz", "", "7xy", "1,000"] {
            assert_eq!(read(text), None, "{text}");
        }
    }
}
