//! Text to values: numbers, decimals, dates and times as Java's parsers take them, without allocating. Every parser
//! returns `None` for text that is not wholly a value.

/// How timestamps are written: `timestamp-format.standard`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TimestampStyle {
    /// `2026-01-02 10:11:12.5`
    Sql,
    /// `2026-01-02T10:11:12.5`
    Iso,
}

/// The result of reading a decimal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Decimal {
    /// The unscaled value.
    Value(i128),
    /// A number with more digits before the point than the type holds: NULL, as in Flink's casts.
    TooLarge,
}

/// `text` without white space at both ends.
#[inline]
pub(crate) fn trim(text: &[u8]) -> &[u8] {
    text.trim_ascii()
}

/// A whole number, optionally signed.
#[inline]
pub(crate) fn integer(text: &[u8]) -> Option<i64> {
    let (negative, digits) = sign(text);
    if digits.is_empty() {
        return None;
    }
    let mut value: i64 = 0;
    if digits.len() <= 18 {
        for byte in digits {
            let digit = byte.wrapping_sub(b'0');
            if digit > 9 {
                return None;
            }
            value = value * 10 + i64::from(digit);
        }
        return Some(if negative { -value } else { value });
    }
    // Accumulated below zero, where one more value fits: the smallest BIGINT has no positive twin.
    for byte in digits {
        let digit = byte.wrapping_sub(b'0');
        if digit > 9 {
            return None;
        }
        value = value.checked_mul(10)?.checked_sub(i64::from(digit))?;
    }
    if negative { Some(value) } else { value.checked_neg() }
}

/// The whole part of a number written with fraction or exponent, cut toward zero.
pub(crate) fn truncated_integer(text: &[u8]) -> Option<i64> {
    let Decimal::Value(tenths) = decimal_with(text, 38, 0, false)? else { return None };
    i64::try_from(tenths).ok()
}

/// A floating-point number, `NaN` or `Infinity`.
#[inline]
pub(crate) fn double(text: &[u8]) -> Option<f64> {
    // Rust also takes "inf" and "nan" in any case; Java takes exactly these two words.
    let (negative, unsigned) = sign(text);
    match unsigned {
        b"NaN" => return Some(f64::NAN),
        b"Infinity" => return Some(if negative { f64::NEG_INFINITY } else { f64::INFINITY }),
        _ => {}
    }
    if !matches!(unsigned.first(), Some(b'0'..=b'9' | b'.')) {
        return None;
    }
    std::str::from_utf8(text).ok()?.parse().ok()
}

/// As [`double`], rounded to the narrower type once.
#[inline]
pub(crate) fn float(text: &[u8]) -> Option<f32> {
    let (negative, unsigned) = sign(text);
    match unsigned {
        b"NaN" => return Some(f32::NAN),
        b"Infinity" => return Some(if negative { f32::NEG_INFINITY } else { f32::INFINITY }),
        _ => {}
    }
    if !matches!(unsigned.first(), Some(b'0'..=b'9' | b'.')) {
        return None;
    }
    std::str::from_utf8(text).ok()?.parse().ok()
}

/// A decimal of `precision` digits, `scale` of them after the point; more are rounded half up (away from zero).
#[inline]
pub(crate) fn decimal(text: &[u8], precision: u8, scale: i8) -> Option<Decimal> {
    decimal_with(text, precision, scale, true)
}

fn decimal_with(text: &[u8], precision: u8, scale: i8, round: bool) -> Option<Decimal> {
    let (negative, unsigned) = sign(text);
    let mantissa_end = unsigned.iter().position(|byte| matches!(byte, b'e' | b'E')).unwrap_or(unsigned.len());
    let (mantissa, exponent) = unsigned.split_at(mantissa_end);
    let exponent = if exponent.is_empty() { 0 } else { integer(&exponent[1..])?.clamp(-1_000_000_000, 1_000_000_000) };
    let point = mantissa.iter().position(|byte| *byte == b'.').unwrap_or(mantissa.len());
    let digit_count = mantissa.len() - usize::from(point < mantissa.len());
    if digit_count == 0 {
        return None;
    }
    // How many of the mantissa's digits stand before the cut.
    let keep = point as i64 + exponent + i64::from(scale);
    let mut value: i128 = 0;
    let mut too_large = false;
    let mut round_up = false;
    let mut position: i64 = 0;
    for (index, byte) in mantissa.iter().enumerate() {
        if index == point {
            continue;
        }
        let digit = byte.wrapping_sub(b'0');
        if digit > 9 {
            return None;
        }
        if position < keep {
            match value.checked_mul(10).and_then(|v| v.checked_add(i128::from(digit))) {
                Some(next) => value = next,
                None => too_large = true,
            }
        } else if position == keep {
            round_up = round && digit >= 5;
        }
        position += 1;
    }
    if value != 0 && position < keep {
        match u32::try_from(keep - position)
            .ok()
            .filter(|zeros| *zeros <= 38)
            .and_then(|zeros| 10i128.checked_pow(zeros))
        {
            Some(factor) => match value.checked_mul(factor) {
                Some(next) => value = next,
                None => too_large = true,
            },
            None => too_large = true,
        }
    }
    if too_large {
        return Some(Decimal::TooLarge);
    }
    value += i128::from(round_up);
    if value >= 10i128.pow(u32::from(precision.min(38))) {
        return Some(Decimal::TooLarge);
    }
    Some(Decimal::Value(if negative { -value } else { value }))
}

#[inline]
fn sign(text: &[u8]) -> (bool, &[u8]) {
    match text.first() {
        Some(b'-') => (true, &text[1..]),
        Some(b'+') => (false, &text[1..]),
        _ => (false, text),
    }
}

/// `2026-01-02` as days since 1970-01-01.
#[inline]
pub(crate) fn date(text: &[u8]) -> Option<i32> {
    if text.len() != 10 || text[4] != b'-' || text[7] != b'-' {
        return None;
    }
    let year = two(text, 0)? * 100 + two(text, 2)?;
    let (month, day) = (two(text, 5)?, two(text, 8)?);
    if !(1..=12).contains(&month) || day < 1 || day > days_in_month(year, month) {
        return None;
    }
    Some(days_from_civil(year, month, day))
}

/// `10:11`, `10:11:12` or `10:11:12.345` as nanoseconds since midnight; with `seconds_needed`, not the first.
#[inline]
pub(crate) fn time(text: &[u8], seconds_needed: bool) -> Option<i64> {
    if text.len() < 5 || text[2] != b':' {
        return None;
    }
    let (hour, minute) = (two(text, 0)?, two(text, 3)?);
    if hour > 23 || minute > 59 {
        return None;
    }
    let mut nanoseconds = i64::from(hour * 3600 + minute * 60) * 1_000_000_000;
    if text.len() == 5 {
        return (!seconds_needed).then_some(nanoseconds);
    }
    if text.len() < 8 || text[5] != b':' {
        return None;
    }
    let second = two(text, 6)?;
    if second > 59 {
        return None;
    }
    nanoseconds += i64::from(second) * 1_000_000_000;
    if text.len() > 8 {
        let fraction = &text[9..];
        if text[8] != b'.' || fraction.len() > 9 || (fraction.is_empty() && !seconds_needed) {
            return None;
        }
        let mut value: i64 = 0;
        for byte in fraction {
            let digit = byte.wrapping_sub(b'0');
            if digit > 9 {
                return None;
            }
            value = value * 10 + i64::from(digit);
        }
        nanoseconds += value * 10i64.pow(9 - fraction.len() as u32);
    }
    Some(nanoseconds)
}

/// A timestamp as days since 1970-01-01 and nanoseconds of the day. `either` takes both styles' separators.
#[inline]
pub(crate) fn timestamp(text: &[u8], style: TimestampStyle) -> Option<(i32, i64)> {
    let separator = match style {
        TimestampStyle::Sql => b' ',
        TimestampStyle::Iso => b'T',
    };
    if text.len() < 16 || text[10] != separator {
        return None;
    }
    Some((date(&text[..10])?, time(&text[11..], true)?))
}

/// An instant: a timestamp in UTC with `Z` at its end.
#[inline]
pub(crate) fn instant(text: &[u8], style: TimestampStyle) -> Option<(i32, i64)> {
    timestamp(text.strip_suffix(b"Z")?, style)
}

/// `days` and `nanoseconds` of the day in units of `10^-digits` seconds, cut to `precision` digits of a second.
/// `None` if the type cannot hold it.
#[inline]
pub(crate) fn in_units(days: i32, nanoseconds: i64, digits: u8, precision: u8) -> Option<i64> {
    let per_second = 10i64.pow(u32::from(digits));
    let step = 10i64.pow(9 - u32::from(precision.min(9)));
    let cut = nanoseconds - nanoseconds % step;
    i64::from(days).checked_mul(86_400 * per_second)?.checked_add(cut / 10i64.pow(9 - u32::from(digits)))
}

#[inline]
fn two(text: &[u8], at: usize) -> Option<i32> {
    let (tens, ones) = (text[at].wrapping_sub(b'0'), text[at + 1].wrapping_sub(b'0'));
    (tens <= 9 && ones <= 9).then(|| i32::from(tens) * 10 + i32::from(ones))
}

fn days_in_month(year: i32, month: i32) -> i32 {
    match month {
        4 | 6 | 9 | 11 => 30,
        2 if year % 4 == 0 && (year % 100 != 0 || year % 400 == 0) => 29,
        2 => 28,
        _ => 31,
    }
}

/// Days since 1970-01-01 in the proleptic Gregorian calendar (Howard Hinnant, "chrono-compatible low-level date
/// algorithms").
fn days_from_civil(year: i32, month: i32, day: i32) -> i32 {
    let year = if month <= 2 { year - 1 } else { year };
    let era = year.div_euclid(400);
    let year_of_era = year.rem_euclid(400);
    let day_of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    era * 146_097 + year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year - 719_468
}

/// Year, month and day of `days` since 1970-01-01: the way back.
pub(crate) fn civil_from_days(days: i32) -> (i32, u32, u32) {
    let days = i64::from(days) + 719_468;
    let era = days.div_euclid(146_097);
    let day_of_era = days.rem_euclid(146_097);
    let year_of_era = (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted_month = (5 * day_of_year + 2) / 153;
    let day = (day_of_year - (153 * shifted_month + 2) / 5 + 1) as u32;
    let month = if shifted_month < 10 { shifted_month + 3 } else { shifted_month - 9 } as u32;
    let year = year_of_era + era * 400 + i64::from(month <= 2);
    (year as i32, month, day)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whole_numbers_reach_their_limits_and_no_further() {
        assert_eq!(integer(b"-9223372036854775808"), Some(i64::MIN));
        assert_eq!(integer(b"9223372036854775807"), Some(i64::MAX));
        assert_eq!(integer(b"9223372036854775808"), None);
        assert_eq!(integer(b"+7"), Some(7));
        for bad in [&b""[..], b"-", b"1.5", b"1x", b"--1", b"99999999999999999999999"] {
            assert_eq!(integer(bad), None, "{}", String::from_utf8_lossy(bad));
        }
        assert_eq!(truncated_integer(b"-1.9"), Some(-1));
        assert_eq!(truncated_integer(b"1e3"), Some(1000));
        assert_eq!(truncated_integer(b"1e400"), None);
    }

    #[test]
    fn decimals_round_half_up_and_overflow_is_told_apart() {
        assert_eq!(decimal(b"1.005", 5, 2), Some(Decimal::Value(101)));
        assert_eq!(decimal(b"-1.005", 5, 2), Some(Decimal::Value(-101)));
        assert_eq!(decimal(b"1e1", 5, 2), Some(Decimal::Value(1000)));
        assert_eq!(decimal(b".5", 3, 0), Some(Decimal::Value(1)));
        assert_eq!(decimal(b"0.0004", 3, 0), Some(Decimal::Value(0)));
        assert_eq!(decimal(b"12345", 3, 0), Some(Decimal::TooLarge));
        assert_eq!(decimal(b"9.99", 2, 1), Some(Decimal::TooLarge));
        assert_eq!(decimal(b"1e999999999999", 5, 2), Some(Decimal::TooLarge));
        assert_eq!(decimal(b"0e999999999999", 5, 2), Some(Decimal::Value(0)));
        assert_eq!(decimal(b"1e-99999", 5, 2), Some(Decimal::Value(0)));
        for bad in [&b""[..], b".", b"1.2.3", b"x", b"1e", b"e5"] {
            assert_eq!(decimal(bad, 5, 2), None, "{}", String::from_utf8_lossy(bad));
        }
    }

    #[test]
    fn dates_go_there_and_back() {
        assert_eq!(date(b"1970-01-01"), Some(0));
        assert_eq!(date(b"2024-02-29"), Some(19_782));
        for bad in [&b"2023-02-29"[..], b"2026-13-01", b"2026-1-1", b"2026-00-10"] {
            assert_eq!(date(bad), None);
        }
        for days in (-800_000..800_000).step_by(997) {
            let (year, month, day) = civil_from_days(days);
            assert_eq!(days_from_civil(year, month as i32, day as i32), days);
        }
    }

    #[test]
    fn timestamps_need_their_seconds_and_are_cut_to_their_precision() {
        let (days, nanoseconds) = timestamp(b"1970-01-02 00:00:01.987654", TimestampStyle::Sql).unwrap();
        assert_eq!(in_units(days, nanoseconds, 3, 3), Some(86_401_987));
        assert_eq!(in_units(days, nanoseconds, 3, 1), Some(86_401_900));
        assert_eq!(timestamp(b"1970-01-02 00:00", TimestampStyle::Sql), None);
        assert_eq!(timestamp(b"1970-01-02T00:00:00", TimestampStyle::Sql), None);
        assert_eq!(instant(b"1970-01-01T00:00:00Z", TimestampStyle::Iso), Some((0, 0)));
        assert_eq!(instant(b"1970-01-01 00:00:00", TimestampStyle::Sql), None);
        assert_eq!(in_units(2_900_000, 0, 9, 9), None);
    }
}
