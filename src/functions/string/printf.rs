//! PRINTF: Java's `String.format`. A format that does not fit its arguments has no result.

use std::fmt::Write;

use arrow::array::{Array, ArrayRef, AsArray};
use arrow::datatypes::DataType;

use crate::error::Result;
use crate::functions::cast::{cast_column, printer};
use crate::functions::column::texts;
use crate::functions::function::{Call, Entry, Typing};
use crate::functions::parameter::Parameter::{Any, Many, Text};
use crate::types::SqlType;

/// The entries of this file.
pub(super) fn entries() -> Vec<Entry> {
    vec![Entry::new(&["printf"], &[&[Text, Many(&Any)]], Typing::Nullable(SqlType::STRING), printf)]
}

/// Appends the text of a row.
type WriteText<'a> = Box<dyn FnMut(usize, &mut String) + 'a>;

/// An argument in the forms that conversions want.
struct Argument<'a> {
    text: WriteText<'a>,
    array: &'a ArrayRef,
    whole: Option<ArrayRef>,
    double: Option<ArrayRef>,
    constant: bool,
}

fn printf(call: &Call<'_>) -> Result<ArrayRef> {
    let format = call.text(0)?;
    let mut arguments = Vec::with_capacity(call.arguments.len());
    for (index, array) in call.arguments.iter().enumerate().skip(1) {
        let sql_type = SqlType::of_field(&call.fields[index]);
        let sql_type =
            if *array.data_type() == sql_type.to_arrow() { sql_type } else { SqlType::from_arrow(array.data_type()) };
        let as_type = |to: SqlType| cast_column(array, &sql_type, &to, call.context.zone);
        let whole = if sql_type.is_integer() { Some(as_type(SqlType::BigInt)?) } else { None };
        let fractional = sql_type.is_numeric() && !sql_type.is_integer();
        let double = if fractional { Some(as_type(SqlType::Double)?) } else { None };
        let text = printer(array, &sql_type, call.context.zone)?;
        arguments.push(Argument { text, array, whole, double, constant: call.constant[index] });
    }
    texts(call, |row, to| write_format(format.get(row)?, &mut arguments, row, to))
}

/// One `%…` of a format.
#[derive(Default)]
struct Conversion {
    left: bool,
    zero: bool,
    plus: bool,
    space: bool,
    grouped: bool,
    width: usize,
    precision: Option<usize>,
    position: Option<usize>,
}

fn write_format(format: &str, arguments: &mut [Argument<'_>], row: usize, to: &mut String) -> Option<()> {
    let mut next = 0;
    let mut rest = format;
    while let Some(at) = rest.find('%') {
        to.push_str(&rest[..at]);
        let (conversion, letter, behind) = read_conversion(&rest[at + 1..])?;
        rest = behind;
        match letter {
            '%' => padded("%", &conversion, to),
            'n' => to.push('\n'),
            letter => {
                let index = conversion.position.unwrap_or(next);
                next += usize::from(conversion.position.is_none());
                let argument = arguments.get_mut(index)?;
                let text = converted(argument, row, letter, &conversion)?;
                padded(&text, &conversion, to);
            }
        }
    }
    to.push_str(rest);
    Some(())
}

fn read_conversion(text: &str) -> Option<(Conversion, char, &str)> {
    let mut conversion = Conversion::default();
    let mut rest = text;
    let number = |rest: &mut &str| {
        let count = rest.bytes().take_while(u8::is_ascii_digit).count();
        let value = rest[..count].parse::<usize>().ok();
        *rest = &rest[count..];
        value
    };
    let mut ahead = rest;
    if !rest.starts_with('0')
        && let Some(position) = number(&mut ahead)
        && let Some(behind) = ahead.strip_prefix('$')
    {
        conversion.position = Some(position.checked_sub(1)?);
        rest = behind;
    }
    loop {
        let flag = rest.chars().next()?;
        match flag {
            '-' => conversion.left = true,
            '0' => conversion.zero = true,
            '+' => conversion.plus = true,
            ' ' => conversion.space = true,
            ',' => conversion.grouped = true,
            '#' | '(' => {}
            _ => break,
        }
        rest = &rest[1..];
    }
    conversion.width = number(&mut rest).unwrap_or(0).min(1 << 16);
    if let Some(behind) = rest.strip_prefix('.') {
        rest = behind;
        conversion.precision = Some(number(&mut rest)?.min(1 << 10));
    }
    let letter = rest.chars().next()?;
    Some((conversion, letter, &rest[letter.len_utf8()..]))
}

fn padded(text: &str, conversion: &Conversion, to: &mut String) {
    let missing = conversion.width.saturating_sub(text.chars().count());
    if conversion.left {
        to.push_str(text);
        (0..missing).for_each(|_| to.push(' '));
    } else if conversion.zero {
        let (sign, digits) = match text.strip_prefix(['-', '+']) {
            Some(digits) => (&text[..1], digits),
            None => ("", text),
        };
        to.push_str(sign);
        (0..missing).for_each(|_| to.push('0'));
        to.push_str(digits);
    } else {
        (0..missing).for_each(|_| to.push(' '));
        to.push_str(text);
    }
}

fn converted(argument: &mut Argument<'_>, row: usize, letter: char, conversion: &Conversion) -> Option<String> {
    let index = if argument.constant { 0 } else { row };
    if *argument.array.data_type() == DataType::Null || argument.array.is_null(index) {
        return Some(if letter.is_uppercase() { "NULL".into() } else { "null".into() });
    }
    let text = match letter.to_ascii_lowercase() {
        's' => {
            let mut text = String::new();
            (argument.text)(index, &mut text);
            // Java writes truth values in lower case.
            if *argument.array.data_type() == DataType::Boolean {
                text.make_ascii_lowercase()
            }
            cut(text, conversion.precision)
        }
        'b' => cut(argument.array.as_boolean_opt().is_none_or(|b| b.value(index)).to_string(), conversion.precision),
        'd' => signed(integer(argument, index)?.to_string(), conversion),
        'x' => format!("{:x}", bits(argument, index)?),
        'o' => format!("{:o}", bits(argument, index)?),
        'c' => u32::try_from(integer(argument, index)?).ok().and_then(char::from_u32)?.to_string(),
        'f' => signed(fixed(double(argument, index)?, conversion.precision.unwrap_or(6)), conversion),
        'e' => signed(scientific(double(argument, index)?, conversion.precision.unwrap_or(6)), conversion),
        _ => return None,
    };
    Some(if letter.is_uppercase() { text.to_uppercase() } else { text })
}

fn cut(text: String, precision: Option<usize>) -> String {
    match precision {
        Some(most) => text.chars().take(most).collect(),
        None => text,
    }
}

fn integer(argument: &Argument<'_>, index: usize) -> Option<i64> {
    Some(argument.whole.as_ref()?.as_primitive::<arrow::datatypes::Int64Type>().value(index))
}

/// A negative number has as many bits as its type.
fn bits(argument: &Argument<'_>, index: usize) -> Option<u64> {
    let value = integer(argument, index)?;
    Some(match argument.array.data_type() {
        DataType::Int8 => u64::from(value as u8),
        DataType::Int16 => u64::from(value as u16),
        DataType::Int32 => u64::from(value as u32),
        _ => value as u64,
    })
}

fn double(argument: &Argument<'_>, index: usize) -> Option<f64> {
    Some(argument.double.as_ref()?.as_primitive::<arrow::datatypes::Float64Type>().value(index))
}

/// Rounds half up over the shortest digits, as Java does.
fn fixed(value: f64, precision: usize) -> String {
    let digits = crate::functions::decimal::parse(&value.to_string());
    let rounded =
        digits.and_then(|(unscaled, scale)| crate::functions::decimal::rescale(unscaled, scale, precision as i32));
    match (rounded, i8::try_from(precision)) {
        (Some(unscaled), Ok(scale)) => {
            let mut text = String::new();
            crate::functions::text_form::write_decimal(unscaled, scale, &mut text);
            text
        }
        _ if value.is_nan() => "NaN".into(),
        _ if value.is_infinite() => {
            if value > 0.0 {
                "Infinity".into()
            } else {
                "-Infinity".into()
            }
        }
        _ => format!("{value:.precision$}"),
    }
}

fn scientific(value: f64, precision: usize) -> String {
    let text = format!("{value:.precision$e}");
    let Some((mantissa, power)) = text.split_once('e') else { return text };
    let (sign, digits) = match power.strip_prefix('-') {
        Some(digits) => ('-', digits),
        None => ('+', power),
    };
    let mut result = String::new();
    let _ = write!(result, "{mantissa}e{sign}{digits:0>2}");
    result
}

fn signed(text: String, conversion: &Conversion) -> String {
    let text = if conversion.grouped { grouped(&text) } else { text };
    if text.starts_with('-') {
        text
    } else if conversion.plus {
        format!("+{text}")
    } else if conversion.space {
        format!(" {text}")
    } else {
        text
    }
}

fn grouped(text: &str) -> String {
    let (sign, digits) = match text.strip_prefix('-') {
        Some(digits) => ("-", digits),
        None => ("", text),
    };
    let (whole, fraction) = digits.split_once('.').map_or((digits, None), |(whole, fraction)| (whole, Some(fraction)));
    let mut result = String::from(sign);
    for (index, digit) in whole.chars().enumerate() {
        if index > 0 && (whole.len() - index) % 3 == 0 {
            result.push(',');
        }
        result.push(digit);
    }
    if let Some(fraction) = fraction {
        result.push('.');
        result.push_str(fraction);
    }
    result
}
