//! Points in time from one unit to another: cut down like everywhere here, and refused beyond what SQL's
//! types hold.

use arrow::array::{Array, ArrayRef, Int32Array, Int64Array, PrimitiveArray, make_array};
use arrow::datatypes::{DataType, Int32Type, Int64Type, TimeUnit};

use crate::error::{Error, Result};
use crate::types::{SqlType, TimeZone};

/// Days from the epoch to the first and the last day of the years 0000 to 9999.
const DAYS: std::ops::RangeInclusive<i64> = -719_528..=2_932_896;

const DAY_SECONDS: i64 = 86_400;

/// Units in a second.
pub(super) fn per_second(unit: TimeUnit) -> i64 {
    match unit {
        TimeUnit::Second => 1,
        TimeUnit::Millisecond => 1_000,
        TimeUnit::Microsecond => 1_000_000,
        TimeUnit::Nanosecond => 1_000_000_000,
    }
}

/// What one column's numbers go through.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Rescale {
    /// Units in a second before and after.
    from: i64,
    to: i64,
    /// What the result is a multiple of: the unit of the type's precision.
    step: i64,
    range: Range,
    data_type: DataType,
}

/// What the numbers mean.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Range {
    /// A time of day.
    Day,
    /// A point in time.
    Years,
}

impl Rescale {
    /// From the type of a column to one of SQL type `sql_type` kept as `data_type`; `None` if they are not both times
    /// of day or both points in time.
    pub(super) fn new(from: &DataType, data_type: &DataType, sql_type: &SqlType) -> Option<Rescale> {
        let (from, to, range) = match (from, data_type) {
            (DataType::Time32(from) | DataType::Time64(from), DataType::Time32(to) | DataType::Time64(to)) => {
                (*from, *to, Range::Day)
            }
            (DataType::Timestamp(from, _), DataType::Timestamp(to, _)) => (*from, *to, Range::Years),
            _ => return None,
        };
        let precision = match sql_type {
            SqlType::Time(precision) | SqlType::Timestamp(precision) | SqlType::TimestampLtz(precision) => *precision,
            _ => 9,
        };
        let (from, to) = (per_second(from), per_second(to));
        let step = (to / 10i64.pow(u32::from(precision.min(9)))).max(1);
        Some(Rescale { from, to, step, range, data_type: data_type.clone() })
    }

    /// The column in its new unit; with a zone, instants become its local times.
    ///
    /// # Errors
    /// If a value lies outside the type's range.
    pub(super) fn apply(&self, array: &ArrayRef, zone: Option<TimeZone>) -> Result<ArrayRef> {
        let numbers = numbers(array)?;
        let moved: PrimitiveArray<Int64Type> = numbers.try_unary(|value| self.value(value, zone))?;
        let data = match self.data_type {
            // Fewer than 2^31 milliseconds make a day.
            DataType::Time32(_) => moved.unary::<_, Int32Type>(|value| value as i32).into_data(),
            _ => moved.into_data(),
        };
        Ok(make_array(data.into_builder().data_type(self.data_type.clone()).build()?))
    }

    /// One value, as [`Rescale::apply`] does it.
    ///
    /// # Errors
    /// If it lies outside the type's range.
    #[inline]
    pub(super) fn value(&self, value: i64, zone: Option<TimeZone>) -> Result<i64> {
        let value = match zone {
            Some(zone) => value.saturating_add(zone.offset_at(value.div_euclid(self.from)) * self.from),
            None => value,
        };
        let seconds = value.div_euclid(self.from);
        let valid = match self.range {
            Range::Day => (0..DAY_SECONDS).contains(&seconds),
            Range::Years => DAYS.contains(&seconds.div_euclid(DAY_SECONDS)),
        };
        let scaled = if self.to >= self.from {
            value.checked_mul(self.to / self.from)
        } else {
            Some(value.div_euclid(self.from / self.to))
        };
        match scaled.filter(|_| valid) {
            Some(scaled) => Ok(scaled.div_euclid(self.step) * self.step),
            None if self.range == Range::Day => Err(Error::data(format!("{value} is no time of day"))),
            None => Err(Error::data(format!("a timestamp {seconds} seconds from 1970 is out of range"))),
        }
    }
}

/// The numbers under a column of times.
fn numbers(array: &ArrayRef) -> Result<PrimitiveArray<Int64Type>> {
    let plain = |data_type| array.to_data().into_builder().data_type(data_type).build().map(make_array);
    let bug = || Error::bug("a time column that is no number");
    Ok(match array.data_type() {
        DataType::Time32(_) => {
            let narrow = plain(DataType::Int32)?;
            narrow.as_any().downcast_ref::<Int32Array>().ok_or_else(bug)?.unary(i64::from)
        }
        _ => {
            let wide = plain(DataType::Int64)?;
            wide.as_any().downcast_ref::<Int64Array>().ok_or_else(bug)?.clone()
        }
    })
}

/// Checks that the days of a `DATE` column lie in the years 0000 to 9999.
///
/// # Errors
/// If one does not.
pub(super) fn check_days(array: &ArrayRef) -> Result<()> {
    let days = arrow::compute::cast(array, &DataType::Int32)?;
    let days =
        days.as_any().downcast_ref::<Int32Array>().ok_or_else(|| Error::bug("a date column that is no number"))?;
    match days.iter().flatten().find(|days| day(*days).is_none()) {
        Some(day) => Err(Error::data(format!("a date {day} days from 1970 is out of range"))),
        None => Ok(()),
    }
}

/// The day, if it lies in the years 0000 to 9999.
pub(super) fn day(days: i32) -> Option<i32> {
    DAYS.contains(&i64::from(days)).then_some(days)
}

/// The time part of `field`'s type in `unit`.
pub(super) fn with_unit(data_type: &DataType, unit: TimeUnit) -> DataType {
    match data_type {
        DataType::Timestamp(_, zone) => DataType::Timestamp(unit, zone.clone()),
        DataType::Time32(TimeUnit::Second) => DataType::Time32(TimeUnit::Millisecond),
        other => other.clone(),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow::array::{Time32MillisecondArray, Time64MicrosecondArray, TimestampMicrosecondArray};

    use super::*;

    #[test]
    fn units_are_cut_down_and_bounds_are_kept() {
        let to = DataType::Timestamp(TimeUnit::Millisecond, None);
        let rescale =
            Rescale::new(&DataType::Timestamp(TimeUnit::Microsecond, None), &to, &SqlType::Timestamp(2)).unwrap();
        let micros: ArrayRef = Arc::new(TimestampMicrosecondArray::from(vec![Some(1_239_999), None, Some(-1)]));
        let moved = rescale.apply(&micros, None).unwrap();
        assert_eq!(moved.data_type(), &to);
        assert_eq!(numbers(&moved).unwrap(), Int64Array::from(vec![Some(1_230), None, Some(-10)]));
        let later = rescale.apply(&micros, TimeZone::named("GMT+1")).unwrap();
        assert_eq!(numbers(&later).unwrap(), Int64Array::from(vec![Some(3_601_230), None, Some(3_599_990)]));
        let beyond: ArrayRef = Arc::new(TimestampMicrosecondArray::from(vec![i64::MAX]));
        assert!(rescale.apply(&beyond, None).is_err());

        let times = Rescale::new(
            &DataType::Time64(TimeUnit::Microsecond),
            &DataType::Time32(TimeUnit::Millisecond),
            &SqlType::Time(3),
        )
        .unwrap();
        let noon: ArrayRef = Arc::new(Time64MicrosecondArray::from(vec![43_200_000_999]));
        let noon = times.apply(&noon, None).unwrap();
        assert_eq!(noon.as_any().downcast_ref::<Time32MillisecondArray>().unwrap().value(0), 43_200_000);
        let midnight: ArrayRef = Arc::new(Time64MicrosecondArray::from(vec![86_400_000_000]));
        assert!(times.apply(&midnight, None).is_err());
    }
}
