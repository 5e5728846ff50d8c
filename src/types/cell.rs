//! How a cell prints: Flink's SQL client's form, written straight from Arrow columns.
//!
//! A format is made once per schema, bound once per batch ([`RowFormat::bind`]: one downcast a column), and then
//! writes cell after cell into a `String` without allocating. Text is written as it is: what an empty string or a line
//! feed looks like in a table is for whoever draws the table.

mod number;
mod temporal;
#[cfg(test)]
mod tests;

use std::fmt::Write;

use arrow::array::{
    Array, AsArray, BinaryArray, BinaryViewArray, BooleanArray, LargeBinaryArray, LargeStringArray, RecordBatch,
    StringArray, StringViewArray,
};
use arrow::datatypes::{
    DataType, Date32Type, Date64Type, Decimal128Type, Field, Float32Type, Float64Type, Int8Type, Int16Type, Int32Type,
    Int64Type, IntervalDayTime, IntervalDayTimeType, IntervalMonthDayNano, IntervalMonthDayNanoType, IntervalUnit,
    IntervalYearMonthType, Schema, TimeUnit, UInt8Type, UInt16Type, UInt32Type, UInt64Type,
};
use arrow::temporal_conversions::{MICROSECONDS, MILLISECONDS, NANOSECONDS};
use arrow::util::display::{ArrayFormatter, FormatOptions};

use super::{SqlType, write_bitmap};
use crate::error::Result;

/// How NULL prints: apart in a cell of its own, and inside an array, map or row.
const NULL_CELL: &str = "<NULL>";
const NULL_INSIDE: &str = "NULL";

/// For the few Arrow types that no SQL type stands for.
const PLAIN: FormatOptions<'static> = FormatOptions::new();

/// Prints the cells of one column.
#[derive(Debug, Clone)]
pub struct CellFormat {
    sql_type: SqlType,
    zone: crate::types::TimeZone,
}

/// Prints whole rows.
#[derive(Debug, Clone)]
pub struct RowFormat {
    columns: Vec<CellFormat>,
}

/// The cells of one column, ready to be written.
pub struct ColumnCells<'a> {
    column: &'a dyn Array,
    values: Values<'a>,
}

/// The cells of one batch, ready to be written.
pub struct BatchCells<'a> {
    columns: Vec<ColumnCells<'a>>,
}

impl CellFormat {
    /// A format for columns like `field`; instants (`TIMESTAMP_LTZ`) are shown in `zone`.
    pub fn new(field: &Field, zone: crate::types::TimeZone) -> CellFormat {
        CellFormat { sql_type: SqlType::of_field(field), zone }
    }

    /// Looks up the column's values once, for many cells.
    ///
    /// # Errors
    /// If the column's type cannot be printed.
    pub fn bind<'a>(&self, column: &'a dyn Array) -> Result<ColumnCells<'a>> {
        bind(&self.sql_type, column, self.zone)
    }

    /// Appends one cell's text: NULL as `<NULL>`.
    ///
    /// # Errors
    /// If the column's type cannot be printed.
    pub fn write(&self, column: &dyn Array, row: usize, to: &mut String) -> Result<()> {
        self.bind(column)?.write(row, to)
    }
}

impl RowFormat {
    /// A format for rows of this schema.
    pub fn new(schema: &Schema, zone: crate::types::TimeZone) -> RowFormat {
        RowFormat { columns: schema.fields().iter().map(|field| CellFormat::new(field, zone)).collect() }
    }

    /// Looks up the columns of a batch once, for all its rows.
    ///
    /// # Errors
    /// If a column's type cannot be printed.
    pub fn bind<'a>(&self, rows: &'a RecordBatch) -> Result<BatchCells<'a>> {
        let columns = self.columns.iter().zip(rows.columns());
        Ok(BatchCells { columns: columns.map(|(format, column)| format.bind(column)).collect::<Result<_>>()? })
    }

    /// The texts of one row's cells.
    ///
    /// # Errors
    /// If a column's type cannot be printed.
    pub fn cells(&self, rows: &RecordBatch, row: usize) -> Result<Vec<String>> {
        self.bind(rows)?.cells(row)
    }
}

impl BatchCells<'_> {
    /// Number of columns.
    pub fn width(&self) -> usize {
        self.columns.len()
    }

    /// Appends the text of the cell in row `row` of column `column`.
    ///
    /// # Errors
    /// If the column's type cannot be printed.
    pub fn write(&self, row: usize, column: usize, to: &mut String) -> Result<()> {
        self.columns[column].write(row, to)
    }

    /// The texts of one row's cells.
    ///
    /// # Errors
    /// If a column's type cannot be printed.
    pub fn cells(&self, row: usize) -> Result<Vec<String>> {
        let text = |column: &ColumnCells<'_>| {
            let mut text = String::new();
            column.write(row, &mut text).map(|()| text)
        };
        self.columns.iter().map(text).collect()
    }
}

impl ColumnCells<'_> {
    /// Appends the text of the cell in row `row`: NULL as `<NULL>`.
    ///
    /// # Errors
    /// If the column's type cannot be printed.
    pub fn write(&self, row: usize, to: &mut String) -> Result<()> {
        self.write_or(NULL_CELL, row, to)
    }

    fn write_or(&self, null: &str, row: usize, to: &mut String) -> Result<()> {
        if self.column.is_null(row) {
            to.push_str(null);
            return Ok(());
        }
        self.values.write(row, to)
    }

    /// The elements `from..to` of an array, joined by commas.
    fn write_all(&self, rows: std::ops::Range<usize>, to: &mut String) -> Result<()> {
        for (index, row) in rows.enumerate() {
            to.push_str(if index > 0 { ", " } else { "" });
            self.write_or(NULL_INSIDE, row, to)?;
        }
        Ok(())
    }
}

/// A column's values under their type; NULLs are dealt with before.
enum Values<'a> {
    Null,
    Boolean(&'a BooleanArray),
    Int8(&'a [i8]),
    Int16(&'a [i16]),
    Int32(&'a [i32]),
    Int64(&'a [i64]),
    UInt8(&'a [u8]),
    UInt16(&'a [u16]),
    UInt32(&'a [u32]),
    UInt64(&'a [u64]),
    Float(&'a [f32]),
    Double(&'a [f64]),
    Decimal(&'a [i128], i8),
    Text(&'a StringArray),
    LargeText(&'a LargeStringArray),
    TextView(&'a StringViewArray),
    Bytes(&'a BinaryArray),
    Bitmap(&'a BinaryArray),
    LargeBytes(&'a LargeBinaryArray),
    BytesView(&'a BinaryViewArray),
    Date(&'a [i32]),
    DateMillis(&'a [i64]),
    SmallTime { values: &'a [i32], per_second: i64, precision: u8 },
    Time { values: &'a [i64], per_second: i64, precision: u8 },
    Timestamp { values: &'a [i64], per_second: i64, precision: u8 },
    Instant { values: &'a [i64], per_second: i64, precision: u8, zone: crate::types::TimeZone },
    Months(&'a [i32]),
    DayTime(&'a [IntervalDayTime]),
    MonthDayNano(&'a [IntervalMonthDayNano]),
    List { offsets: &'a [i32], items: Box<ColumnCells<'a>> },
    LargeList { offsets: &'a [i64], items: Box<ColumnCells<'a>> },
    FixedList { length: usize, offset: usize, items: Box<ColumnCells<'a>> },
    Map { offsets: &'a [i32], keys: Box<ColumnCells<'a>>, values: Box<ColumnCells<'a>> },
    Row(Vec<ColumnCells<'a>>),
    Other(ArrayFormatter<'a>),
}

fn bind<'a>(sql_type: &SqlType, column: &'a dyn Array, zone: crate::types::TimeZone) -> Result<ColumnCells<'a>> {
    let nested = |element: Option<&SqlType>, items: &'a dyn Array| {
        // Rows whose schema says less than the column (a plain Arrow table) are shown by what the column itself says.
        let own = || SqlType::from_arrow(items.data_type());
        bind(&element.cloned().unwrap_or_else(own), items, zone).map(Box::new)
    };
    let values = match column.data_type() {
        DataType::List(_) => {
            let list = column.as_list::<i32>();
            Values::List { offsets: list.value_offsets(), items: nested(element(sql_type), list.values())? }
        }
        DataType::LargeList(_) => {
            let list = column.as_list::<i64>();
            Values::LargeList { offsets: list.value_offsets(), items: nested(element(sql_type), list.values())? }
        }
        DataType::FixedSizeList(_, length) => {
            let list = column.as_fixed_size_list();
            let length = usize::try_from(*length).unwrap_or(0);
            let offset = list.value_offset(0).try_into().unwrap_or(0);
            Values::FixedList { length, offset, items: nested(element(sql_type), list.values())? }
        }
        DataType::Map(..) => {
            let map = column.as_map();
            let (key, value) = match sql_type {
                SqlType::Map(key, value) => (Some(&key.sql_type), Some(&value.sql_type)),
                other => (element(other), None),
            };
            let (keys, values) = (nested(key, map.keys())?, nested(value, map.values())?);
            Values::Map { offsets: map.value_offsets(), keys, values }
        }
        DataType::Struct(_) => {
            let of = |index: usize| match sql_type {
                SqlType::Row(fields) => fields.get(index).map(|field| &field.sql_type),
                _ => None,
            };
            let parts = column.as_struct().columns().iter().enumerate();
            Values::Row(parts.map(|(index, part)| nested(of(index), part).map(|part| *part)).collect::<Result<_>>()?)
        }
        _ => bind_scalar(sql_type, column, zone)?,
    };
    Ok(ColumnCells { column, values })
}

fn element(sql_type: &SqlType) -> Option<&SqlType> {
    match sql_type {
        SqlType::Array(element) | SqlType::Multiset(element) => Some(&element.sql_type),
        _ => None,
    }
}

fn bind_scalar<'a>(sql_type: &SqlType, column: &'a dyn Array, zone: crate::types::TimeZone) -> Result<Values<'a>> {
    Ok(match column.data_type() {
        DataType::Null => Values::Null,
        DataType::Boolean => Values::Boolean(column.as_boolean()),
        DataType::Int8 => Values::Int8(column.as_primitive::<Int8Type>().values()),
        DataType::Int16 => Values::Int16(column.as_primitive::<Int16Type>().values()),
        DataType::Int32 => Values::Int32(column.as_primitive::<Int32Type>().values()),
        DataType::Int64 => Values::Int64(column.as_primitive::<Int64Type>().values()),
        DataType::UInt8 => Values::UInt8(column.as_primitive::<UInt8Type>().values()),
        DataType::UInt16 => Values::UInt16(column.as_primitive::<UInt16Type>().values()),
        DataType::UInt32 => Values::UInt32(column.as_primitive::<UInt32Type>().values()),
        DataType::UInt64 => Values::UInt64(column.as_primitive::<UInt64Type>().values()),
        DataType::Float32 => Values::Float(column.as_primitive::<Float32Type>().values()),
        DataType::Float64 => Values::Double(column.as_primitive::<Float64Type>().values()),
        DataType::Decimal128(_, scale) => Values::Decimal(column.as_primitive::<Decimal128Type>().values(), *scale),
        DataType::Utf8 => Values::Text(column.as_string::<i32>()),
        DataType::LargeUtf8 => Values::LargeText(column.as_string::<i64>()),
        DataType::Utf8View => Values::TextView(column.as_string_view()),
        DataType::Binary if *sql_type == SqlType::Bitmap => Values::Bitmap(column.as_binary::<i32>()),
        DataType::Binary => Values::Bytes(column.as_binary::<i32>()),
        DataType::LargeBinary => Values::LargeBytes(column.as_binary::<i64>()),
        DataType::BinaryView => Values::BytesView(column.as_binary_view()),
        DataType::Date32 => Values::Date(column.as_primitive::<Date32Type>().values()),
        DataType::Date64 => Values::DateMillis(column.as_primitive::<Date64Type>().values()),
        DataType::Interval(IntervalUnit::YearMonth) => {
            Values::Months(column.as_primitive::<IntervalYearMonthType>().values())
        }
        DataType::Interval(IntervalUnit::DayTime) => {
            Values::DayTime(column.as_primitive::<IntervalDayTimeType>().values())
        }
        DataType::Interval(IntervalUnit::MonthDayNano) => {
            Values::MonthDayNano(column.as_primitive::<IntervalMonthDayNanoType>().values())
        }
        DataType::Time32(unit) | DataType::Time64(unit) | DataType::Timestamp(unit, _) => {
            bind_temporal(sql_type, column, *unit, zone)
        }
        _ => Values::Other(ArrayFormatter::try_new(column, &PLAIN)?),
    })
}

fn bind_temporal<'a>(
    sql_type: &SqlType,
    column: &'a dyn Array,
    unit: TimeUnit,
    zone: crate::types::TimeZone,
) -> Values<'a> {
    use arrow::datatypes::{
        Time32MillisecondType, Time32SecondType, Time64MicrosecondType, Time64NanosecondType, TimestampMicrosecondType,
        TimestampMillisecondType, TimestampNanosecondType, TimestampSecondType,
    };
    let (per_second, digits) = match unit {
        TimeUnit::Second => (1, 0),
        TimeUnit::Millisecond => (MILLISECONDS, 3),
        TimeUnit::Microsecond => (MICROSECONDS, 6),
        TimeUnit::Nanosecond => (NANOSECONDS, 9),
    };
    let precision = match sql_type {
        SqlType::Time(p) | SqlType::Timestamp(p) | SqlType::TimestampLtz(p) => *p,
        _ => digits,
    };
    let small = |values| Values::SmallTime { values, per_second, precision };
    let time = |values| Values::Time { values, per_second, precision };
    match column.data_type() {
        DataType::Time32(TimeUnit::Second) => small(column.as_primitive::<Time32SecondType>().values()),
        DataType::Time32(_) => small(column.as_primitive::<Time32MillisecondType>().values()),
        DataType::Time64(TimeUnit::Microsecond) => time(column.as_primitive::<Time64MicrosecondType>().values()),
        DataType::Time64(_) => time(column.as_primitive::<Time64NanosecondType>().values()),
        data_type => {
            let values: &[i64] = match unit {
                TimeUnit::Second => column.as_primitive::<TimestampSecondType>().values(),
                TimeUnit::Millisecond => column.as_primitive::<TimestampMillisecondType>().values(),
                TimeUnit::Microsecond => column.as_primitive::<TimestampMicrosecondType>().values(),
                TimeUnit::Nanosecond => column.as_primitive::<TimestampNanosecondType>().values(),
            };
            match data_type {
                DataType::Timestamp(_, Some(_)) => Values::Instant { values, per_second, precision, zone },
                _ => Values::Timestamp { values, per_second, precision },
            }
        }
    }
}

/// Writing into a `String` does not fail.
fn put(to: &mut String, value: impl std::fmt::Display) {
    let _ = write!(to, "{value}");
}

impl Values<'_> {
    fn write(&self, row: usize, to: &mut String) -> Result<()> {
        match self {
            Values::Null => to.push_str(NULL_CELL),
            Values::Boolean(values) => to.push_str(if values.value(row) { "TRUE" } else { "FALSE" }),
            Values::Int8(values) => put(to, values[row]),
            Values::Int16(values) => put(to, values[row]),
            Values::Int32(values) => put(to, values[row]),
            Values::Int64(values) => put(to, values[row]),
            Values::UInt8(values) => put(to, values[row]),
            Values::UInt16(values) => put(to, values[row]),
            Values::UInt32(values) => put(to, values[row]),
            Values::UInt64(values) => put(to, values[row]),
            Values::Float(values) => number::write_float(values[row], to),
            Values::Double(values) => number::write_double(values[row], to),
            Values::Decimal(values, scale) => number::write_decimal(values[row], *scale, to),
            Values::Text(values) => to.push_str(values.value(row)),
            Values::LargeText(values) => to.push_str(values.value(row)),
            Values::TextView(values) => to.push_str(values.value(row)),
            Values::Bytes(values) => write_bytes(values.value(row), to),
            Values::Bitmap(values) => write_bitmap(values.value(row), to)?,
            Values::LargeBytes(values) => write_bytes(values.value(row), to),
            Values::BytesView(values) => write_bytes(values.value(row), to),
            Values::Date(values) => temporal::write_date(i64::from(values[row]), to),
            Values::DateMillis(values) => temporal::write_date(values[row].div_euclid(temporal::DAY_MILLIS), to),
            Values::SmallTime { values, per_second, precision } => {
                temporal::write_time(i64::from(values[row]), *per_second, *precision, to);
            }
            Values::Time { values, per_second, precision } => {
                temporal::write_time(values[row], *per_second, *precision, to);
            }
            Values::Timestamp { values, per_second, precision } => {
                temporal::write_timestamp(values[row], *per_second, *precision, to);
            }
            Values::Instant { values, per_second, precision, zone } => {
                temporal::write_instant(values[row], *per_second, *precision, *zone, to);
            }
            Values::Months(values) => temporal::write_months(i64::from(values[row]), to),
            Values::DayTime(values) => {
                let value = values[row];
                temporal::write_day_time(i64::from(value.days), i64::from(value.milliseconds), to);
            }
            Values::MonthDayNano(values) => {
                let value = values[row];
                temporal::write_day_time(i64::from(value.days), value.nanoseconds / 1_000_000, to);
            }
            composite => composite.write_composite(row, to)?,
        }
        Ok(())
    }

    fn write_composite(&self, row: usize, to: &mut String) -> Result<()> {
        match self {
            Values::List { offsets, items } => {
                to.push('[');
                items.write_all(offsets[row] as usize..offsets[row + 1] as usize, to)?;
                to.push(']');
            }
            Values::LargeList { offsets, items } => {
                to.push('[');
                items.write_all(offsets[row] as usize..offsets[row + 1] as usize, to)?;
                to.push(']');
            }
            Values::FixedList { length, offset, items } => {
                to.push('[');
                items.write_all(offset + row * length..offset + (row + 1) * length, to)?;
                to.push(']');
            }
            Values::Map { offsets, keys, values } => {
                to.push('{');
                let from = offsets[row] as usize;
                for entry in from..offsets[row + 1] as usize {
                    to.push_str(if entry > from { ", " } else { "" });
                    keys.write_or(NULL_INSIDE, entry, to)?;
                    to.push('=');
                    values.write_or(NULL_INSIDE, entry, to)?;
                }
                to.push('}');
            }
            Values::Row(parts) => {
                to.push('(');
                for (index, part) in parts.iter().enumerate() {
                    to.push_str(if index > 0 { ", " } else { "" });
                    part.write_or(NULL_INSIDE, row, to)?;
                }
                to.push(')');
            }
            Values::Other(formatter) => formatter.value(row).write(to)?,
            _ => {}
        }
        Ok(())
    }
}

/// `x'0aff'`
fn write_bytes(bytes: &[u8], to: &mut String) {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    to.push_str("x'");
    for byte in bytes {
        to.push(char::from(DIGITS[usize::from(byte >> 4)]));
        to.push(char::from(DIGITS[usize::from(byte & 15)]));
    }
    to.push('\'');
}
