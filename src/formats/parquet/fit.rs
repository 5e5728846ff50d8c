//! How a column of a file becomes one of a table, and the other way round: decided once a file from the two types,
//! then applied to every batch.
//!
//! What loses nothing is allowed: `INT` to `BIGINT`, `DECIMAL(9, 2)` to `DECIMAL(10, 3)`, text to bytes; and digits of a
//! second may be cut off, as everywhere. Anything else is refused before a row is read. Fields of a `ROW` are found by
//! name like columns.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, ListArray, MapArray, StructArray, new_null_array};
use arrow::compute::{CastOptions, cast_with_options};
use arrow::datatypes::{DataType, Field, FieldRef, Fields};

use crate::error::{Error, Result};
use crate::formats::units::{Rescale, check_days};
use crate::types::{SqlType, TimeZone};

/// The way from one type to another.
#[derive(Debug, Clone)]
pub(super) enum Fit {
    /// The types are the same.
    Same,
    /// Every value has a value of the other type, or is refused when it is met.
    Cast(DataType),
    /// Days are the same number, within bounds.
    Date,
    /// Another unit.
    Units {
        rescale: Rescale,
        zone: Option<TimeZone>,
    },
    List {
        element: Box<Fit>,
        field: FieldRef,
    },
    Map {
        key: Box<Fit>,
        value: Box<Fit>,
        entries: FieldRef,
    },
    /// Each field's place and way; `None` for one that is not there.
    Row {
        fields: Vec<Option<(usize, Fit)>>,
        to: Fields,
    },
}

impl Fit {
    /// The way from `from` to `to`; `None` if there is none. Timestamps kept as instants become local times of `zone`
    /// where one is given.
    pub(super) fn new(from: &Field, to: &Field, zone: Option<TimeZone>) -> Option<Fit> {
        let sql_type = SqlType::of_field(to);
        let cast = || Some(Fit::Cast(to.data_type().clone()));
        match (from.data_type(), to.data_type()) {
            (DataType::Date32, DataType::Date32) => Some(Fit::Date),
            (from, to @ (DataType::Time32(_) | DataType::Time64(_) | DataType::Timestamp(..))) => {
                let zone = zone.filter(|_| matches!(sql_type, SqlType::Timestamp(_)));
                Some(Fit::Units { rescale: Rescale::new(from, to, &sql_type)?, zone })
            }
            (DataType::List(from) | DataType::LargeList(from), DataType::List(to)) => {
                Some(Fit::List { element: Box::new(Fit::new(from, to, zone)?), field: Arc::clone(to) })
            }
            (DataType::Map(from, _), DataType::Map(to, _)) => {
                let (DataType::Struct(from), DataType::Struct(pair)) = (from.data_type(), to.data_type()) else {
                    return None;
                };
                let key = Box::new(Fit::new(from.first()?, pair.first()?, zone)?);
                let value = Box::new(Fit::new(from.get(1)?, pair.get(1)?, zone)?);
                Some(Fit::Map { key, value, entries: Arc::clone(to) })
            }
            (DataType::Struct(from), DataType::Struct(to)) => {
                let fields = to
                    .iter()
                    .map(|field| match from.find(field.name()) {
                        Some((index, from)) => Fit::new(from, field, zone).map(|fit| Some((index, fit))),
                        // One that is not there is NULL, if it may be.
                        None => field.is_nullable().then_some(None),
                    })
                    .collect::<Option<Vec<_>>>()?;
                Some(Fit::Row { fields, to: to.clone() })
            }
            (from, to) if from == to => Some(Fit::Same),
            (from, to) if is_wider(from, to) => cast(),
            _ => None,
        }
    }

    /// The column in its new type.
    ///
    /// # Errors
    /// If a value has none, or a part of one is NULL where that is not allowed.
    pub(super) fn apply(&self, array: &ArrayRef) -> Result<ArrayRef> {
        Ok(match self {
            Fit::Same => Arc::clone(array),
            Fit::Cast(data_type) => {
                cast_with_options(array, data_type, &CastOptions { safe: false, ..CastOptions::default() })?
            }
            Fit::Date => {
                check_days(array)?;
                Arc::clone(array)
            }
            Fit::Units { rescale, zone } => rescale.apply(array, *zone)?,
            Fit::List { element, field } => {
                let list = arrow::compute::cast(array, &as_list(array.data_type()))?;
                let list = list.as_any().downcast_ref::<ListArray>().ok_or_else(|| bug("list"))?;
                let values = element.apply(list.values())?;
                Arc::new(ListArray::try_new(Arc::clone(field), list.offsets().clone(), values, list.nulls().cloned())?)
            }
            Fit::Map { key, value, entries } => {
                let map = array.as_any().downcast_ref::<MapArray>().ok_or_else(|| bug("map"))?;
                let DataType::Struct(pair) = entries.data_type() else { return Err(bug("map")) };
                let columns = vec![key.apply(map.keys())?, value.apply(map.values())?];
                let pairs = StructArray::try_new(pair.clone(), columns, None)?;
                Arc::new(MapArray::try_new(
                    Arc::clone(entries),
                    map.offsets().clone(),
                    pairs,
                    map.nulls().cloned(),
                    false,
                )?)
            }
            Fit::Row { fields, to } => {
                let rows = array.as_any().downcast_ref::<StructArray>().ok_or_else(|| bug("row"))?;
                let columns = fields
                    .iter()
                    .zip(to)
                    .map(|(fit, field)| match fit {
                        Some((index, fit)) => fit.apply(rows.column(*index)),
                        None => Ok(new_null_array(field.data_type(), rows.len())),
                    })
                    .collect::<Result<Vec<_>>>()?;
                Arc::new(StructArray::try_new_with_length(to.clone(), columns, rows.nulls().cloned(), rows.len())?)
            }
        })
    }
}

fn bug(what: &str) -> Error {
    Error::bug(format!("a {what} column of another kind"))
}

/// The list type of the same elements with short offsets.
fn as_list(data_type: &DataType) -> DataType {
    match data_type {
        DataType::LargeList(element) => DataType::List(Arc::clone(element)),
        other => other.clone(),
    }
}

/// Whether every value of `from` has one of `to`, or at least tells when it has none (bytes that are no UTF-8, the upper
/// half of the unsigned 64-bit numbers).
fn is_wider(from: &DataType, to: &DataType) -> bool {
    use DataType::*;
    match (from, to) {
        (Utf8 | LargeUtf8 | Utf8View | Binary | LargeBinary | BinaryView, Utf8 | Binary) => true,
        (FixedSizeBinary(_), Binary) => true,
        (Float16, Float32 | Float64) | (Float32, Float64) => true,
        (_, Float64) => integer(from).is_some_and(|(bits, _)| bits <= 32),
        (_, Float32) => integer(from).is_some_and(|(bits, _)| bits <= 16),
        (Decimal32(p, s) | Decimal64(p, s) | Decimal128(p, s) | Decimal256(p, s), Decimal128(precision, scale)) => {
            scale >= s && whole(*precision, *scale) >= whole(*p, *s)
        }
        (_, Decimal128(precision, scale)) => {
            let digits = |(bits, signed): (u8, bool)| match (bits, signed) {
                (8, _) => 3,
                (16, _) => 5,
                (32, _) => 10,
                (_, true) => 19,
                (_, false) => 20,
            };
            integer(from).is_some_and(|integer| whole(*precision, *scale) >= digits(integer))
        }
        _ => match (integer(from), integer(to)) {
            (Some((from, true)), Some((to, true))) => to >= from,
            (Some((from, false)), Some((to, true))) => to > from || from == 64 && to == 64,
            _ => false,
        },
    }
}

/// Digits before the point.
fn whole(precision: u8, scale: i8) -> i16 {
    i16::from(precision) - i16::from(scale)
}

/// Bits of a whole-number type and whether it has a sign.
fn integer(data_type: &DataType) -> Option<(u8, bool)> {
    Some(match data_type {
        DataType::Int8 => (8, true),
        DataType::Int16 => (16, true),
        DataType::Int32 => (32, true),
        DataType::Int64 => (64, true),
        DataType::UInt8 => (8, false),
        DataType::UInt16 => (16, false),
        DataType::UInt32 => (32, false),
        DataType::UInt64 => (64, false),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_loses_nothing_fits() {
        let fits = |from: DataType, to: DataType| {
            Fit::new(&Field::new("c", from, true), &Field::new("c", to, true), None).is_some()
        };
        use DataType::*;
        for (from, to) in [
            (Int8, Int64),
            (UInt32, Int64),
            (Int32, Decimal128(12, 2)),
            (Decimal128(9, 2), Decimal128(10, 3)),
            (Binary, Utf8),
            (Float32, Float64),
            (Int32, Float64),
        ] {
            assert!(fits(from.clone(), to.clone()), "{from} {to}");
        }
        for (from, to) in [
            (Int64, Int32),
            (UInt32, Int32),
            (Int64, Float64),
            (Int32, Decimal128(11, 2)),
            (Decimal128(10, 3), Decimal128(10, 2)),
            (Utf8, Int32),
            (Int32, Boolean),
            (Date32, Timestamp(arrow::datatypes::TimeUnit::Second, None)),
        ] {
            assert!(!fits(from.clone(), to.clone()), "{from} {to}");
        }
    }
}
