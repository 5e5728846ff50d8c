//! A column seen through its type once a batch, so that writing a cell is a match and a read.

use arrow::array::{
    Array, ArrayRef, BinaryArray, BooleanArray, Date32Array, Decimal128Array, Float32Array, Float64Array, Int8Array,
    Int16Array, Int32Array, Int64Array, ListArray, MapArray, StringArray, StructArray,
};
use arrow::buffer::ScalarBuffer;
use arrow::datatypes::{DataType, Field, TimeUnit};

use super::text::TimestampStyle;
use super::write;
use crate::error::{Error, Result};
use crate::types::SqlType;

/// A column of known type.
pub(crate) struct View<'a> {
    array: &'a dyn Array,
    pub(super) cells: Cells<'a>,
}

/// The typed part.
pub(super) enum Cells<'a> {
    Boolean(&'a BooleanArray),
    TinyInt(&'a Int8Array),
    SmallInt(&'a Int16Array),
    Int(&'a Int32Array),
    BigInt(&'a Int64Array),
    Float(&'a Float32Array),
    Double(&'a Float64Array),
    Decimal(&'a Decimal128Array, i8),
    Text(&'a StringArray),
    Bytes(&'a BinaryArray),
    Date(&'a Date32Array),
    Time { units: ScalarBuffer<i64>, digits: u8 },
    Timestamp { units: ScalarBuffer<i64>, digits: u8, instant: bool },
    List(&'a ListArray, Box<View<'a>>),
    Map(&'a MapArray, Box<View<'a>>, Box<View<'a>>),
    Row(Vec<(String, View<'a>)>),
}

impl<'a> View<'a> {
    /// The view of `array`, a column like `field`.
    ///
    /// # Errors
    /// If the type has no text form here (an interval, for instance).
    pub(crate) fn new(field: &Field, array: &'a ArrayRef) -> Result<View<'a>> {
        let any = array.as_any();
        let sql_type = SqlType::of_field(field);
        if matches!(sql_type, SqlType::Bitmap | SqlType::Variant) {
            let name = field.name();
            let error = Error::sql(format!("column '{name}' of type {sql_type} has no form in this format"));
            return Err(error.hint("write BITMAP_TO_BYTES or JSON_STRING of it"));
        }
        let cells = match array.data_type() {
            DataType::Boolean => any.downcast_ref().map(Cells::Boolean),
            DataType::Int8 => any.downcast_ref().map(Cells::TinyInt),
            DataType::Int16 => any.downcast_ref().map(Cells::SmallInt),
            DataType::Int32 => any.downcast_ref().map(Cells::Int),
            DataType::Int64 => any.downcast_ref().map(Cells::BigInt),
            DataType::Float32 => any.downcast_ref().map(Cells::Float),
            DataType::Float64 => any.downcast_ref().map(Cells::Double),
            DataType::Decimal128(_, scale) => any.downcast_ref().map(|decimals| Cells::Decimal(decimals, *scale)),
            DataType::Utf8 => any.downcast_ref().map(Cells::Text),
            DataType::Binary => any.downcast_ref().map(Cells::Bytes),
            DataType::Date32 => any.downcast_ref().map(Cells::Date),
            DataType::Time32(unit) | DataType::Time64(unit) => {
                Some(Cells::Time { units: units(array)?, digits: unit_digits(*unit) })
            }
            DataType::Timestamp(unit, zone) => {
                Some(Cells::Timestamp { units: units(array)?, digits: unit_digits(*unit), instant: zone.is_some() })
            }
            DataType::List(element) => match any.downcast_ref::<ListArray>() {
                Some(list) => Some(Cells::List(list, Box::new(View::new(element, list.values())?))),
                None => None,
            },
            DataType::Map(entries, _) => match (any.downcast_ref::<MapArray>(), entries.data_type()) {
                (Some(map), DataType::Struct(pair)) if pair.len() == 2 => Some(Cells::Map(
                    map,
                    Box::new(View::new(&pair[0], map.keys())?),
                    Box::new(View::new(&pair[1], map.values())?),
                )),
                _ => None,
            },
            DataType::Struct(fields) => match any.downcast_ref::<StructArray>() {
                Some(rows) => Some(Cells::Row(
                    fields
                        .iter()
                        .zip(rows.columns())
                        .map(|(field, column)| Ok((field.name().clone(), View::new(field, column)?)))
                        .collect::<Result<_>>()?,
                )),
                None => None,
            },
            _ => None,
        };
        match cells {
            Some(cells) => Ok(View { array: array.as_ref(), cells }),
            None => Err(Error::sql(format!(
                "column '{}' of type {} has no text form",
                field.name(),
                SqlType::of_field(field)
            ))
            .hint("CAST it to STRING")),
        }
    }

    /// Whether the cell is NULL.
    #[inline]
    pub(crate) fn is_null(&self, row: usize) -> bool {
        self.array.is_null(row)
    }

    /// Whether the cell's text can hold no delimiter, quote or space.
    pub(super) fn is_bare(&self) -> bool {
        matches!(
            self.cells,
            Cells::Boolean(_)
                | Cells::TinyInt(_)
                | Cells::SmallInt(_)
                | Cells::Int(_)
                | Cells::BigInt(_)
                | Cells::Float(_)
                | Cells::Double(_)
                | Cells::Decimal(..)
        )
    }

    /// Appends the text of a cell that is not NULL and no collection; strings as they are.
    pub(crate) fn write_scalar(&self, row: usize, style: TimestampStyle, to: &mut Vec<u8>) {
        match &self.cells {
            Cells::Boolean(cells) => to.extend_from_slice(if cells.value(row) { b"true" } else { b"false" }),
            Cells::TinyInt(cells) => write::integer(i64::from(cells.value(row)), to),
            Cells::SmallInt(cells) => write::integer(i64::from(cells.value(row)), to),
            Cells::Int(cells) => write::integer(i64::from(cells.value(row)), to),
            Cells::BigInt(cells) => write::integer(cells.value(row), to),
            Cells::Float(cells) => write::float(cells.value(row), to),
            Cells::Double(cells) => write::double(cells.value(row), to),
            Cells::Decimal(cells, scale) => write::decimal_stripped(cells.value(row), *scale, to),
            Cells::Text(cells) => to.extend_from_slice(cells.value(row).as_bytes()),
            Cells::Bytes(cells) => super::base64::encode(cells.value(row), to),
            Cells::Date(cells) => write::date(cells.value(row), to),
            Cells::Time { units, digits } => write::time(nanoseconds(units[row], *digits), to),
            Cells::Timestamp { units, digits, instant } => {
                write::timestamp(units[row], *digits, style, to);
                if *instant {
                    to.push(b'Z');
                }
            }
            Cells::List(..) | Cells::Map(..) | Cells::Row(_) => {}
        }
    }

    /// Appends the cell as Flink's `print` connector shows it (Java's `toString`): `null`, `[1, 2]`, `{k=1}`,
    /// `+I[1, x]`, `2026-01-02T10:11`.
    pub(crate) fn write_java(&self, row: usize, to: &mut Vec<u8>) {
        if self.is_null(row) {
            return to.extend_from_slice(b"null");
        }
        match &self.cells {
            Cells::Decimal(cells, scale) => write::decimal_plain(cells.value(row), *scale, to),
            Cells::Bytes(cells) => {
                let bytes = cells.value(row);
                separated(b"[", b"]", 0..bytes.len(), to, |index, to| {
                    // Java's bytes are signed.
                    write::integer(i64::from(i8::from_ne_bytes([bytes[index]])), to);
                });
            }
            Cells::Time { units, digits } => write::java_time(nanoseconds(units[row], *digits), false, to),
            Cells::Timestamp { units, digits, instant } => write::java_timestamp(units[row], *digits, *instant, to),
            Cells::List(list, elements) => {
                separated(b"[", b"]", range(list.value_offsets(), row), to, |index, to| elements.write_java(index, to));
            }
            Cells::Map(map, keys, values) => {
                separated(b"{", b"}", range(map.value_offsets(), row), to, |index, to| {
                    keys.write_java(index, to);
                    to.push(b'=');
                    values.write_java(index, to);
                });
            }
            Cells::Row(fields) => {
                separated(b"+I[", b"]", 0..fields.len(), to, |index, to| fields[index].1.write_java(row, to));
            }
            _ => self.write_scalar(row, TimestampStyle::Sql, to),
        }
    }
}

/// The elements of row `row` of a list or map.
pub(super) fn range(offsets: &[i32], row: usize) -> std::ops::Range<usize> {
    // Offsets never run below zero.
    offsets[row] as usize..offsets[row + 1] as usize
}

fn separated(
    open: &[u8],
    close: &[u8],
    range: std::ops::Range<usize>,
    to: &mut Vec<u8>,
    mut each: impl FnMut(usize, &mut Vec<u8>),
) {
    to.extend_from_slice(open);
    for index in range.clone() {
        if index > range.start {
            to.extend_from_slice(b", ");
        }
        each(index, to);
    }
    to.extend_from_slice(close);
}

fn units(array: &ArrayRef) -> Result<ScalarBuffer<i64>> {
    let numbers = match array.data_type() {
        DataType::Time32(_) => arrow::compute::cast(&arrow::compute::cast(array, &DataType::Int32)?, &DataType::Int64)?,
        _ => arrow::compute::cast(array, &DataType::Int64)?,
    };
    match numbers.as_any().downcast_ref::<Int64Array>() {
        Some(numbers) => Ok(numbers.values().clone()),
        None => Err(Error::bug("a time column that is no number")),
    }
}

fn unit_digits(unit: TimeUnit) -> u8 {
    match unit {
        TimeUnit::Second => 0,
        TimeUnit::Millisecond => 3,
        TimeUnit::Microsecond => 6,
        TimeUnit::Nanosecond => 9,
    }
}

fn nanoseconds(units: i64, digits: u8) -> i64 {
    units.saturating_mul(10i64.pow(9 - u32::from(digits)))
}
