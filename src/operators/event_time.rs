//! Event time in columns: timestamps of any unit as milliseconds since the epoch, and back.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, Int64Array, RecordBatch, TimestampMillisecondArray};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Int64Type, Schema, TimeUnit};

use crate::changelog::Watermark;
use crate::error::{Error, Result};
use crate::state::{Restored, Scope, TableDelta};

/// The table in which operators save their watermark.
const WATERMARK: &str = "watermark";

/// The table in which operators save up to where the end of the input has made their results final.
const CLOSED: &str = "closed";

/// Milliseconds from the epoch that an event time may lie away, so that windows around it can be reckoned: 70 million
/// years.
pub(super) const FAR: i64 = i64::MAX / 4;

/// A timestamp column as milliseconds; finer units round down.
///
/// # Errors
/// If it is no timestamp column, or a value is too far from the epoch.
pub(super) fn milliseconds(column: &ArrayRef) -> Result<Int64Array> {
    let DataType::Timestamp(unit, _) = column.data_type() else {
        return Err(Error::bug(format!("event time is a timestamp, not {}", column.data_type())));
    };
    let raw = cast(column, &DataType::Int64)?;
    let raw = raw.as_primitive::<Int64Type>();
    Ok(match unit {
        TimeUnit::Second => raw.try_unary(|seconds| {
            seconds.checked_mul(1_000).ok_or_else(|| Error::data(format!("the timestamp {seconds} s is out of range")))
        })?,
        TimeUnit::Millisecond => raw.clone(),
        TimeUnit::Microsecond => raw.unary(|micros| micros.div_euclid(1_000)),
        TimeUnit::Nanosecond => raw.unary(|nanos| nanos.div_euclid(1_000_000)),
    })
}

/// An event-time column as milliseconds, in which NULL is an error.
///
/// # Errors
/// As [`milliseconds`], and if there is a NULL.
pub(super) fn row_times(rows: &RecordBatch, column: usize) -> Result<Int64Array> {
    let times = milliseconds(rows.column(column))?;
    if times.null_count() > 0 {
        return Err(null_time(&rows.schema(), column));
    }
    if let Some(time) = times.values().iter().find(|time| !(-FAR..=FAR).contains(*time)) {
        let schema = rows.schema();
        let name = schema.field(column).name();
        return Err(Error::data(format!("the event time '{name}' is {time} ms from the epoch, which is out of range")));
    }
    Ok(times)
}

fn null_time(schema: &Schema, column: usize) -> Error {
    let name = schema.field(column).name();
    Error::data(format!("the event time '{name}' is NULL in a row"))
        .hint(format!("every row needs one: filter with WHERE {name} IS NOT NULL, give a default with COALESCE, or SET 'table.exec.event-time.null-policy' = 'DROP'"))
}

/// Milliseconds as a timestamp column of this type.
///
/// # Errors
/// If it is no timestamp type or a value does not fit its unit.
pub(super) fn timestamps(milliseconds: Vec<i64>, data_type: &DataType) -> Result<ArrayRef> {
    let DataType::Timestamp(_, zone) = data_type else {
        return Err(Error::bug(format!("a window column is a timestamp, not {data_type}")));
    };
    let exact: ArrayRef = Arc::new(TimestampMillisecondArray::from(milliseconds).with_timezone_opt(zone.clone()));
    if exact.data_type() == data_type { Ok(exact) } else { Ok(cast(&exact, data_type)?) }
}

/// A watermark as a table of one row. It is that of the rows: [`Watermark::MAX`] stands for the end of the input, and
/// whoever saved it could take no row when the same job is run again over files that have grown.
///
/// # Errors
/// Only by a bug.
pub(super) fn save_watermark(mark: Watermark) -> Result<TableDelta> {
    save(WATERMARK, mark)
}

/// Up to where the end of the input has made results final.
///
/// # Errors
/// Only by a bug.
pub(super) fn save_closed(mark: Watermark) -> Result<TableDelta> {
    save(CLOSED, mark)
}

fn save(table: &str, mark: Watermark) -> Result<TableDelta> {
    let column: ArrayRef = Arc::new(Int64Array::from(vec![mark.0]));
    let upserts = Some(RecordBatch::try_from_iter([(table, column)])?);
    Ok(TableDelta { table: table.to_string(), scope: Scope::Broadcast, base: true, upserts, deletes: None })
}

/// The least of the watermarks saved by all subtasks: what all of them have promised.
///
/// # Errors
/// If the saved rows do not fit.
pub(super) fn restore_watermark(from: &Restored) -> Result<Watermark> {
    Ok(saved(from, WATERMARK)?.into_iter().min().unwrap_or(Watermark::MIN))
}

/// The greatest that any subtask has saved: keys move between subtasks, and what one has closed is closed for all.
///
/// # Errors
/// If the saved rows do not fit.
pub(super) fn restore_closed(from: &Restored) -> Result<Watermark> {
    Ok(saved(from, CLOSED)?.into_iter().max().unwrap_or(Watermark::MIN))
}

fn saved(from: &Restored, table: &str) -> Result<Vec<Watermark>> {
    let mut all = Vec::new();
    for rows in from.table(table).filter_map(|delta| delta.upserts.as_ref()) {
        let marks = rows.columns().first().and_then(|column| column.as_primitive_opt::<Int64Type>());
        let marks = marks.ok_or_else(|| Error::state("a saved watermark is one whole number"))?;
        all.extend(marks.values().iter().copied().map(Watermark));
    }
    Ok(all)
}
