//! Casts into CHAR and VARCHAR: every value has a text, nested ones in brackets; then the text is cut or padded.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, StringBuilder};
use arrow::datatypes::{DataType, Decimal128Type, Float32Type, Float64Type, Int8Type, Int16Type, Int32Type, Int64Type};

use crate::error::{Error, Result};
use crate::functions::temporal::interval::Lengths;
use crate::functions::temporal::moment::{Moments, Zone};
use crate::functions::text_form::{
    boolean, write_date, write_day_time, write_decimal, write_double, write_float, write_integer, write_time,
    write_timestamp, write_year_month,
};
use crate::types::{RowField, SqlType, TimeZone, write_bitmap};

/// Writes the text of a row, which must not be NULL.
type Printer<'a> = Box<dyn FnMut(usize, &mut String) + 'a>;

/// Casts a column of any type into the text type `to`.
pub(super) fn into_text(array: &ArrayRef, from: &SqlType, to: &SqlType, zone: TimeZone) -> Result<ArrayRef> {
    let (length, pad) = match to {
        SqlType::Char(length) => (*length as usize, true),
        SqlType::Varchar(length) => (*length as usize, false),
        other => return Err(Error::bug(format!("{other} is no text type"))),
    };
    if *to == SqlType::STRING && from.is_text() {
        return Ok(array.clone());
    }
    let mut print = printer(array, from, zone)?;
    let mut builder = StringBuilder::with_capacity(array.len(), array.len() * 16);
    let mut text = String::new();
    for row in 0..array.len() {
        if array.is_null(row) {
            builder.append_null();
            continue;
        }
        text.clear();
        print(row, &mut text);
        fit(&mut text, length, pad);
        builder.append_value(&text);
    }
    Ok(Arc::new(builder.finish()))
}

/// Cuts a text to `length` characters and, for CHAR, fills it up with blanks.
fn fit(text: &mut String, length: usize, pad: bool) {
    // A text has at most as many characters as bytes.
    if text.len() > length
        && let Some((end, _)) = text.char_indices().nth(length)
    {
        text.truncate(end);
    }
    if pad {
        for _ in text.chars().count()..length {
            text.push(' ');
        }
    }
}

/// How the values of a column are written.
pub(in crate::functions) fn printer<'a>(
    array: &'a ArrayRef,
    sql_type: &SqlType,
    zone: TimeZone,
) -> Result<Printer<'a>> {
    macro_rules! primitive {
        ($arrow:ty, $write:expr) => {{
            let values = array.as_primitive::<$arrow>().values();
            Box::new(move |row, to: &mut String| $write(values[row], to))
        }};
    }
    Ok(match sql_type {
        SqlType::Null => Box::new(|_, to| to.push_str("NULL")),
        SqlType::Boolean => {
            let values = array.as_boolean();
            Box::new(|row, to| to.push_str(boolean(values.value(row))))
        }
        SqlType::TinyInt => primitive!(Int8Type, |v, to| write_integer(i64::from(v), to)),
        SqlType::SmallInt => primitive!(Int16Type, |v, to| write_integer(i64::from(v), to)),
        SqlType::Int => primitive!(Int32Type, |v, to| write_integer(i64::from(v), to)),
        SqlType::BigInt => primitive!(Int64Type, write_integer),
        SqlType::Float => primitive!(Float32Type, write_float),
        SqlType::Double => primitive!(Float64Type, write_double),
        SqlType::Decimal(_, scale) => {
            let scale = *scale;
            primitive!(Decimal128Type, |v, to| write_decimal(v, scale, to))
        }
        SqlType::Bitmap => {
            let values = array.as_binary::<i32>();
            // Whatever made the column made bitmaps.
            Box::new(|row, to| drop(write_bitmap(values.value(row), to)))
        }
        SqlType::Char(_) | SqlType::Varchar(_) | SqlType::Variant => {
            let values = array.as_string::<i32>();
            Box::new(|row, to| to.push_str(values.value(row)))
        }
        SqlType::Binary(_) | SqlType::Varbinary(_) => {
            let values = array.as_binary::<i32>();
            Box::new(|row, to| to.push_str(&String::from_utf8_lossy(values.value(row))))
        }
        SqlType::Date | SqlType::Time(_) | SqlType::Timestamp(_) | SqlType::TimestampLtz(_) => {
            moment_printer(array, sql_type, zone)?
        }
        SqlType::IntervalYearMonth | SqlType::IntervalDayTime => {
            let lengths = Lengths::read(array, false)?;
            let months = *sql_type == SqlType::IntervalYearMonth;
            Box::new(move |row, to| {
                let length = lengths.get(row).unwrap_or_default();
                if months { write_year_month(length.months, to) } else { write_day_time(length.milliseconds(), to) }
            })
        }
        SqlType::Array(element) => list_printer(array, element, zone)?,
        SqlType::Map(key, value) => map_printer(array, key, value, zone)?,
        SqlType::Multiset(element) => map_printer(array, element, &RowField::unnamed(SqlType::Int, false), zone)?,
        SqlType::Row(fields) => row_printer(array, fields, zone)?,
    })
}

fn moment_printer<'a>(array: &'a ArrayRef, sql_type: &SqlType, zone: TimeZone) -> Result<Printer<'a>> {
    let moments = Moments::of(array)?;
    let sql_type = sql_type.clone();
    let mut zone = Zone::new(zone);
    Ok(Box::new(move |row, to| {
        let Some(moment) = moments.get(row) else { return };
        match sql_type {
            SqlType::Date => write_date(moment.days(), to),
            SqlType::Time(precision) => write_time(moment.seconds, moment.nanos, precision, to),
            SqlType::Timestamp(precision) => write_timestamp(moment, precision, to),
            SqlType::TimestampLtz(precision) => write_timestamp(zone.local(moment), precision, to),
            _ => {}
        }
    }))
}

/// A component of a nested value: NULL is written out.
fn component<'a>(array: &'a ArrayRef, sql_type: &SqlType, zone: TimeZone) -> Result<Printer<'a>> {
    let mut print = printer(array, sql_type, zone)?;
    Ok(Box::new(move |row, to| if array.is_null(row) { to.push_str("NULL") } else { print(row, to) }))
}

fn list_printer<'a>(array: &'a ArrayRef, element: &RowField, zone: TimeZone) -> Result<Printer<'a>> {
    let list =
        array.as_list_opt::<i32>().ok_or_else(|| Error::bug(format!("an ARRAY came as {}", array.data_type())))?;
    let mut print = component(list.values(), &element.sql_type, zone)?;
    Ok(Box::new(move |row, to| {
        let range = list.value_offsets()[row] as usize..list.value_offsets()[row + 1] as usize;
        to.push('[');
        for index in range.clone() {
            if index > range.start {
                to.push_str(", ");
            }
            print(index, to);
        }
        to.push(']');
    }))
}

fn map_printer<'a>(array: &'a ArrayRef, key: &RowField, value: &RowField, zone: TimeZone) -> Result<Printer<'a>> {
    let map = array.as_map_opt().ok_or_else(|| Error::bug(format!("a MAP came as {}", array.data_type())))?;
    let mut keys = component(map.keys(), &key.sql_type, zone)?;
    let mut values = component(map.values(), &value.sql_type, zone)?;
    Ok(Box::new(move |row, to| {
        let range = map.value_offsets()[row] as usize..map.value_offsets()[row + 1] as usize;
        to.push('{');
        for index in range.clone() {
            if index > range.start {
                to.push_str(", ");
            }
            keys(index, to);
            to.push('=');
            values(index, to);
        }
        to.push('}');
    }))
}

fn row_printer<'a>(array: &'a ArrayRef, fields: &[RowField], zone: TimeZone) -> Result<Printer<'a>> {
    let DataType::Struct(_) = array.data_type() else {
        return Err(Error::bug(format!("a ROW came as {}", array.data_type())));
    };
    let columns = array.as_struct().columns();
    let mut printers: Vec<Printer<'a>> = columns
        .iter()
        .zip(fields)
        .map(|(column, field)| component(column, &field.sql_type, zone))
        .collect::<Result<_>>()?;
    Ok(Box::new(move |row, to| {
        to.push('(');
        for (index, print) in printers.iter_mut().enumerate() {
            if index > 0 {
                to.push_str(", ");
            }
            print(row, to);
        }
        to.push(')');
    }))
}
