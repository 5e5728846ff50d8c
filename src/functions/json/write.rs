//! JSON text out of columns and values: as Flink writes it, without blanks.

use arrow::array::{Array, ArrayRef, AsArray};
use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use serde_json::Value;

use crate::error::{Error, Result};
use crate::functions::cast::printer;
use crate::functions::decimal;
use crate::functions::temporal::moment::Moments;
use crate::functions::text_form::{write_date, write_double, write_float, write_time};
use crate::types::{RowField, SqlType, TimeZone};

/// Writes the JSON of a row of a column, `null` for NULL.
pub(super) type Writer<'a> = Box<dyn FnMut(usize, &mut String) + 'a>;

/// Appends a quoted text; what JSON does not allow is escaped.
pub(super) fn push_text(text: &str, to: &mut String) {
    use std::fmt::Write;
    to.push('"');
    for character in text.chars() {
        match character {
            '"' => to.push_str("\\\""),
            '\\' => to.push_str("\\\\"),
            '\n' => to.push_str("\\n"),
            '\r' => to.push_str("\\r"),
            '\t' => to.push_str("\\t"),
            '\u{8}' => to.push_str("\\b"),
            '\u{c}' => to.push_str("\\f"),
            control if control < ' ' => {
                let _ = write!(to, "\\u{:04X}", u32::from(control));
            }
            other => to.push(other),
        }
    }
    to.push('"');
}

/// Appends a parsed value.
pub(super) fn push_value(value: &Value, to: &mut String) {
    match value {
        Value::Null => to.push_str("null"),
        Value::Bool(value) => to.push_str(if *value { "true" } else { "false" }),
        Value::Number(number) => match number.as_f64().filter(|_| number.is_f64()) {
            Some(double) => write_double(double, to),
            None => to.push_str(&number.to_string()),
        },
        Value::String(text) => push_text(text, to),
        Value::Array(elements) => {
            to.push('[');
            for (index, element) in elements.iter().enumerate() {
                if index > 0 {
                    to.push(',');
                }
                push_value(element, to);
            }
            to.push(']');
        }
        Value::Object(members) => {
            to.push('{');
            for (index, (name, member)) in members.iter().enumerate() {
                if index > 0 {
                    to.push(',');
                }
                push_text(name, to);
                to.push(':');
                push_value(member, to);
            }
            to.push('}');
        }
    }
}

/// The digits of a FLOAT or DOUBLE as Java's `BigDecimal` shows them: an exponent only where the digits end before the
/// point.
fn push_number(java: &str, to: &mut String) {
    let Some((unscaled, scale)) = decimal::parse(java) else {
        // JSON has no numbers for these.
        push_text(java, to);
        return;
    };
    let digits = unscaled.unsigned_abs().to_string();
    let adjusted = digits.len() as i64 - 1 - i64::from(scale);
    if unscaled < 0 {
        to.push('-');
    }
    if scale >= 0 && adjusted >= -6 {
        let scale = scale as usize;
        let padded = format!("{digits:0>width$}", width = scale + 1);
        let (whole, fraction) = padded.split_at(padded.len() - scale);
        to.push_str(whole);
        if scale > 0 {
            to.push('.');
            to.push_str(fraction);
        }
        return;
    }
    to.push_str(&digits[..1]);
    if digits.len() > 1 {
        to.push('.');
        to.push_str(&digits[1..]);
    }
    to.push_str(if adjusted < 0 { "E-" } else { "E+" });
    to.push_str(&adjusted.unsigned_abs().to_string());
}

/// How the values of a column are written as JSON.
///
/// # Errors
/// Kind `Sql` for DATE, TIME and intervals, which Flink does not write.
pub(super) fn writer<'a>(array: &'a ArrayRef, sql_type: &SqlType, zone: TimeZone) -> Result<Writer<'a>> {
    let inner = value_writer(array, sql_type, zone)?;
    let mut inner = inner;
    Ok(Box::new(move |row, to| if array.is_null(row) { to.push_str("null") } else { inner(row, to) }))
}

fn value_writer<'a>(array: &'a ArrayRef, sql_type: &SqlType, zone: TimeZone) -> Result<Writer<'a>> {
    use arrow::datatypes::{Float32Type, Float64Type};
    Ok(match sql_type {
        SqlType::Null => Box::new(|_, to| to.push_str("null")),
        SqlType::Boolean => {
            let values = array.as_boolean();
            Box::new(|row, to| to.push_str(if values.value(row) { "true" } else { "false" }))
        }
        SqlType::Float | SqlType::Double => {
            let mut scratch = String::new();
            let single = *sql_type == SqlType::Float;
            Box::new(move |row, to| {
                scratch.clear();
                if single {
                    write_float(array.as_primitive::<Float32Type>().value(row), &mut scratch);
                } else {
                    write_double(array.as_primitive::<Float64Type>().value(row), &mut scratch);
                }
                push_number(&scratch, to);
            })
        }
        number if number.is_numeric() => printer(array, sql_type, zone)?,
        text if text.is_text() => {
            let values = array.as_string::<i32>();
            Box::new(|row, to| push_text(values.value(row), to))
        }
        SqlType::Binary(_) | SqlType::Varbinary(_) => {
            let values = array.as_binary::<i32>();
            Box::new(|row, to| {
                to.push('"');
                BASE64_STANDARD.encode_string(values.value(row), to);
                to.push('"');
            })
        }
        SqlType::Timestamp(_) | SqlType::TimestampLtz(_) => {
            let moments = Moments::of(array)?;
            let instant = matches!(sql_type, SqlType::TimestampLtz(_));
            Box::new(move |row, to| {
                let Some(moment) = moments.get(row) else { return };
                to.push('"');
                write_date(moment.days(), to);
                to.push('T');
                write_time(moment.second_of_day(), moment.nanos, 9, to);
                while to.ends_with('0') {
                    to.pop();
                }
                // The seconds keep their zeros.
                if to.ends_with('.') {
                    to.pop();
                }
                to.push_str(if instant { "Z\"" } else { "\"" });
            })
        }
        SqlType::Array(element) => list_writer(array, element, zone)?,
        SqlType::Map(key, value) => map_writer(array, key, value, zone)?,
        SqlType::Multiset(element) => map_writer(array, element, &RowField::unnamed(SqlType::Int, false), zone)?,
        SqlType::Row(fields) => row_writer(array, fields, zone)?,
        other => {
            return Err(
                Error::sql(format!("a value of type {other} cannot become JSON")).hint("CAST it to STRING first")
            );
        }
    })
}

fn list_writer<'a>(array: &'a ArrayRef, element: &RowField, zone: TimeZone) -> Result<Writer<'a>> {
    let list = array.as_list::<i32>();
    let mut write = writer(list.values(), &element.sql_type, zone)?;
    Ok(Box::new(move |row, to| {
        let range = list.value_offsets()[row] as usize..list.value_offsets()[row + 1] as usize;
        to.push('[');
        for index in range.clone() {
            if index > range.start {
                to.push(',');
            }
            write(index, to);
        }
        to.push(']');
    }))
}

fn map_writer<'a>(array: &'a ArrayRef, key: &RowField, value: &RowField, zone: TimeZone) -> Result<Writer<'a>> {
    let map = array.as_map();
    let mut keys = printer(map.keys(), &key.sql_type, zone)?;
    let mut values = writer(map.values(), &value.sql_type, zone)?;
    let mut scratch = String::new();
    Ok(Box::new(move |row, to| {
        let range = map.value_offsets()[row] as usize..map.value_offsets()[row + 1] as usize;
        to.push('{');
        for index in range.clone() {
            if index > range.start {
                to.push(',');
            }
            scratch.clear();
            keys(index, &mut scratch);
            push_text(&scratch, to);
            to.push(':');
            values(index, to);
        }
        to.push('}');
    }))
}

fn row_writer<'a>(array: &'a ArrayRef, fields: &[RowField], zone: TimeZone) -> Result<Writer<'a>> {
    let columns = array.as_struct().columns();
    let mut writers = Vec::with_capacity(fields.len());
    for (column, field) in columns.iter().zip(fields) {
        writers.push((field.name.clone(), writer(column, &field.sql_type, zone)?));
    }
    Ok(Box::new(move |row, to| {
        to.push('{');
        for (index, (name, write)) in writers.iter_mut().enumerate() {
            if index > 0 {
                to.push(',');
            }
            push_text(name, to);
            to.push(':');
            write(row, to);
        }
        to.push('}');
    }))
}
