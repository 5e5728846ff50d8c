//! Whole numbers in as few bytes as their values need: state is mostly counts, sums, instants and small keys.
//!
//! A column of 64-bit numbers becomes its distances from its least value, in one, two or four bytes; the field says the
//! type and the value they start from. Packed so, numbers are smaller than a general compression makes them, for a
//! fraction of its work, which is taken from the job's own cores.
//!
//! Operators whose state is such numbers hand them over narrow already ([`SavedColumn::numbers`]): the job stands still
//! while a snapshot is taken, and most of that time would go into fresh memory for wide columns.

use std::collections::HashMap;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, ArrowPrimitiveType, AsArray, Int64Array, PrimitiveArray, RecordBatch};
use arrow::array::{RecordBatchOptions, UInt8Array, UInt16Array, UInt32Array};
use arrow::compute::{cast, max, min};
use arrow::datatypes::{DataType, Field, FieldRef, Int64Type, Schema, UInt8Type, UInt16Type, UInt32Type};

use crate::error::{Error, Result};

/// Metadata key of a narrowed field: the value from which its numbers count.
const START: &str = "narrow_from";
/// Metadata key of a narrowed field: its own type.
const TYPE: &str = "narrow_type";

/// A column of a snapshot, as it is handed over: plain, or narrow already.
#[derive(Debug, Clone)]
pub struct SavedColumn {
    values: ArrayRef,
    /// The value from which the numbers count, and their type.
    narrowed: Option<(i64, DataType)>,
}

impl From<ArrayRef> for SavedColumn {
    fn from(values: ArrayRef) -> SavedColumn {
        SavedColumn { values, narrowed: None }
    }
}

impl SavedColumn {
    /// The numbers that stand at these places, as values of `data_type`, one of 64 bits. They are read twice, first for
    /// their span, and written once.
    ///
    /// # Errors
    /// If `data_type` is none of 64 bits.
    pub fn numbers(slots: &[u32], data_type: &DataType, number: impl Fn(usize) -> i64) -> Result<SavedColumn> {
        let numbers = || slots.iter().map(|slot| number(*slot as usize));
        let (least, greatest) =
            numbers().fold((i64::MAX, i64::MIN), |(least, greatest), number| (least.min(number), greatest.max(number)));
        let least = least.min(greatest);
        let distances = numbers().map(|number| number.wrapping_sub(least));
        let values: ArrayRef = match Width::of(least, greatest) {
            Width::One => Arc::new(UInt8Array::from_iter_values(distances.map(|distance| distance as u8))),
            Width::Two => Arc::new(UInt16Array::from_iter_values(distances.map(|distance| distance as u16))),
            Width::Four => Arc::new(UInt32Array::from_iter_values(distances.map(|distance| distance as u32))),
            Width::Eight => return Ok(cast(&Int64Array::from_iter_values(numbers()), data_type)?.into()),
        };
        Ok(SavedColumn { values, narrowed: Some((least, data_type.clone())) })
    }

    /// The column under a name.
    pub fn named(self, name: &str) -> (FieldRef, ArrayRef) {
        let SavedColumn { values, narrowed } = self;
        let field = Field::new(name, values.data_type().clone(), true);
        let field = match narrowed {
            Some((start, data_type)) => field.with_metadata(told(start, &data_type)),
            None => field,
        };
        (Arc::new(field), values)
    }
}

/// Bytes that a number's distance from the least takes.
enum Width {
    One,
    Two,
    Four,
    Eight,
}

impl Width {
    fn of(least: i64, greatest: i64) -> Width {
        match least.abs_diff(greatest) {
            0..=0xff => Width::One,
            0x100..=0xffff => Width::Two,
            0x1_0000..=0xffff_ffff => Width::Four,
            _ => Width::Eight,
        }
    }
}

/// What the field of a narrowed column says.
fn told(start: i64, data_type: &DataType) -> HashMap<String, String> {
    HashMap::from([(START.to_owned(), start.to_string()), (TYPE.to_owned(), data_type.to_string())])
}

/// The rows with their 64-bit numbers narrowed where that saves bytes.
///
/// # Errors
/// Only by a bug.
pub fn narrow(rows: &RecordBatch) -> Result<RecordBatch> {
    let schema = rows.schema();
    let narrowed = schema.fields().iter().zip(rows.columns()).map(|(field, column)| {
        Ok(narrow_column(field, column)?.unwrap_or_else(|| (Arc::clone(field), Arc::clone(column))))
    });
    rebuilt(rows, narrowed.collect::<Result<_>>()?)
}

/// The inverse of [`narrow`]; rows that were not narrowed stay as they are.
///
/// # Errors
/// If the fields do not say what [`narrow`] writes into them.
pub fn widen(rows: &RecordBatch) -> Result<RecordBatch> {
    let schema = rows.schema();
    if !schema.fields().iter().any(|field| field.metadata().contains_key(START)) {
        return Ok(rows.clone());
    }
    let widened = schema.fields().iter().zip(rows.columns()).map(|(field, column)| widen_column(field, column));
    rebuilt(rows, widened.collect::<Result<_>>()?)
}

fn rebuilt(rows: &RecordBatch, columns: Vec<(FieldRef, ArrayRef)>) -> Result<RecordBatch> {
    let (fields, columns): (Vec<FieldRef>, Vec<ArrayRef>) = columns.into_iter().unzip();
    let schema = Schema::new_with_metadata(fields, rows.schema_ref().metadata().clone());
    let options = RecordBatchOptions::new().with_row_count(Some(rows.num_rows()));
    Ok(RecordBatch::try_new_with_options(Arc::new(schema), columns, &options)?)
}

/// Whether values of the type are 64-bit numbers.
pub(super) fn is_number(data_type: &DataType) -> bool {
    matches!(data_type, DataType::Int64 | DataType::Timestamp(..) | DataType::Time64(_) | DataType::Duration(_))
}

fn narrow_column(field: &FieldRef, column: &ArrayRef) -> Result<Option<(FieldRef, ArrayRef)>> {
    if !is_number(column.data_type()) {
        return Ok(None);
    }
    let numbers = cast(column, &DataType::Int64)?;
    let numbers = numbers.as_primitive::<Int64Type>();
    // Without a value, any start will do.
    let (least, greatest) = min(numbers).zip(max(numbers)).unwrap_or((0, 0));
    let narrowed: ArrayRef = match Width::of(least, greatest) {
        Width::One => Arc::new(distances::<UInt8Type>(numbers, least, |distance| distance as u8)),
        Width::Two => Arc::new(distances::<UInt16Type>(numbers, least, |distance| distance as u16)),
        Width::Four => Arc::new(distances::<UInt32Type>(numbers, least, |distance| distance as u32)),
        Width::Eight => return Ok(None),
    };
    let more = field.metadata().clone().into_iter().chain(told(least, field.data_type())).collect();
    let field = Field::new(field.name(), narrowed.data_type().clone(), field.is_nullable()).with_metadata(more);
    Ok(Some((Arc::new(field), narrowed)))
}

/// The distance of each number from `least`; what stands under a NULL does not matter.
fn distances<T: ArrowPrimitiveType>(
    numbers: &Int64Array,
    least: i64,
    cut: impl Fn(i64) -> T::Native,
) -> PrimitiveArray<T> {
    numbers.unary(|number| cut(number.wrapping_sub(least)))
}

fn widen_column(field: &FieldRef, column: &ArrayRef) -> Result<(FieldRef, ArrayRef)> {
    let Some(start) = field.metadata().get(START) else { return Ok((Arc::clone(field), Arc::clone(column))) };
    let damaged = || Error::state(format!("saved column '{}' does not say how it was narrowed", field.name()));
    let start: i64 = start.parse().map_err(|_| damaged())?;
    let data_type = field.metadata().get(TYPE).and_then(|name| name.parse::<DataType>().ok());
    let data_type = data_type.filter(is_number).ok_or_else(damaged)?;
    if !matches!(column.data_type(), DataType::UInt8 | DataType::UInt16 | DataType::UInt32) {
        return Err(damaged());
    }
    let numbers = widened(column, start, &data_type)?;
    let mut metadata = field.metadata().clone();
    metadata.retain(|key, _| key != START && key != TYPE);
    let field = Field::new(field.name(), data_type.clone(), field.is_nullable()).with_metadata(metadata);
    Ok((Arc::new(field), numbers))
}

/// Distances from `start` as values of a type of 64 bits.
fn widened(distances: &ArrayRef, start: i64, data_type: &DataType) -> Result<ArrayRef> {
    let distances = cast(distances, &DataType::UInt32)?;
    let distances: &UInt32Array = distances.as_primitive::<UInt32Type>();
    let numbers: Int64Array = distances.unary(|distance| start.wrapping_add(i64::from(distance)));
    Ok(cast(&numbers, data_type)?)
}

#[cfg(test)]
mod tests {
    use arrow::array::{StringArray, TimestampMicrosecondArray};
    use arrow::datatypes::TimeUnit;

    use super::*;

    #[test]
    fn numbers_take_the_bytes_they_need_and_come_back_as_they_were() {
        let spans = [
            (vec![Some(-3), None, Some(252)], DataType::UInt8),
            (vec![Some(i64::MAX), Some(i64::MAX - 65_535)], DataType::UInt16),
            (vec![Some(i64::MIN), Some(i64::MIN + 0xffff_ffff)], DataType::UInt32),
            (vec![Some(i64::MIN), Some(i64::MAX), Some(0)], DataType::Int64),
            (vec![None, None], DataType::UInt8),
            (vec![], DataType::UInt8),
        ];
        for (values, stored) in spans {
            let zoned = TimestampMicrosecondArray::from(values.clone()).with_timezone("UTC");
            let columns: Vec<(&str, ArrayRef, bool)> = vec![
                ("n", Arc::new(Int64Array::from(values.clone())), true),
                ("plain", Arc::new(TimestampMicrosecondArray::from(values.clone())), true),
                ("zoned", Arc::new(zoned), true),
                ("name", Arc::new(StringArray::from(vec!["x"; values.len()])), true),
            ];
            let rows = RecordBatch::try_from_iter_with_nullable(columns).unwrap();
            let narrowed = narrow(&rows).unwrap();
            let types: Vec<&DataType> = narrowed.columns().iter().map(|column| column.data_type()).collect();
            assert_eq!(types[0], &stored);
            assert_eq!(types[1] == types[0], stored != DataType::Int64);
            assert_eq!(types[3], &DataType::Utf8);
            assert_eq!(widen(&narrowed).unwrap(), rows);
            assert_eq!(widen(&rows).unwrap(), rows);
        }
    }

    #[test]
    fn numbers_handed_over_narrow_are_the_same() {
        let instants = DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into()));
        for numbers in [vec![-3, 252, 7], vec![i64::MAX, i64::MAX - 65_535], vec![i64::MIN, i64::MAX], vec![5]] {
            let slots: Vec<u32> = (0..numbers.len() as u32).rev().collect();
            let backwards: Int64Array = slots.iter().map(|slot| Some(numbers[*slot as usize])).collect();
            for data_type in [DataType::Int64, instants.clone()] {
                let saved = SavedColumn::numbers(&slots, &data_type, |slot| numbers[slot]).unwrap();
                let (field, values) = saved.named("n");
                let rows = RecordBatch::try_new(Arc::new(Schema::new(vec![field])), vec![values]).unwrap();
                assert_eq!(narrow(&rows).unwrap(), rows, "narrow already");
                let plain = cast(&backwards, &data_type).unwrap();
                assert_eq!(rows.column(0).len(), numbers.len());
                assert_eq!(widen(&rows).unwrap().column(0), &plain);
            }
        }
        let none = SavedColumn::numbers(&[], &DataType::Int64, |_| 0).unwrap();
        assert_eq!(none.named("n").1.len(), 0);
    }

    #[test]
    fn a_field_that_does_not_say_how_it_was_narrowed_is_refused() {
        for (start, of_type) in [("x", "Int64"), ("3", "Utf8"), ("3", "no type")] {
            let metadata = [(START.to_owned(), start.to_owned()), (TYPE.to_owned(), of_type.to_owned())].into();
            let field = Field::new("n", DataType::UInt32, false).with_metadata(metadata);
            let numbers: ArrayRef = Arc::new(UInt32Array::from(vec![1]));
            let rows = RecordBatch::try_new(Arc::new(Schema::new(vec![field])), vec![numbers]).unwrap();
            assert!(widen(&rows).unwrap_err().message().contains("column 'n'"));
        }
        let micros = DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into()));
        assert_eq!(micros.to_string().parse::<DataType>().unwrap(), micros, "types are read as they are written");
    }
}
