//! Reading and building interval columns: months on one side, nanoseconds on the other.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, IntervalMonthDayNanoArray, IntervalYearMonthArray};
use arrow::datatypes::{
    DataType, IntervalDayTimeType, IntervalMonthDayNano, IntervalMonthDayNanoType, IntervalUnit, IntervalYearMonthType,
};

use super::calendar::{DAY_SECONDS, SECOND_NANOS};
use crate::error::{Error, Result};
use crate::functions::function::Call;

/// A length of time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(in crate::functions) struct Length {
    /// Months of the calendar.
    pub months: i64,
    /// Exact time.
    pub nanos: i128,
}

const DAY_NANOS: i128 = (DAY_SECONDS * SECOND_NANOS) as i128;

impl Length {
    /// The exact time in milliseconds.
    pub fn milliseconds(self) -> i64 {
        (self.nanos / 1_000_000) as i64
    }

    /// The opposite.
    pub fn negated(self) -> Length {
        Length { months: -self.months, nanos: -self.nanos }
    }
}

/// A column of intervals.
pub(in crate::functions) struct Lengths<'a> {
    array: &'a ArrayRef,
    constant: bool,
    unit: IntervalUnit,
}

impl<'a> Lengths<'a> {
    /// Reads an argument.
    pub fn argument(call: &'a Call<'_>, index: usize) -> Result<Lengths<'a>> {
        Lengths::read(&call.arguments[index], call.constant[index])
    }

    /// Reads a column.
    pub fn read(array: &'a ArrayRef, constant: bool) -> Result<Lengths<'a>> {
        match array.data_type() {
            DataType::Interval(unit) => Ok(Lengths { array, constant, unit: *unit }),
            other => Err(Error::bug(format!("a column of {other} has no intervals"))),
        }
    }

    /// The interval of a row.
    pub fn get(&self, row: usize) -> Option<Length> {
        let index = if self.constant { 0 } else { row };
        if self.array.is_null(index) {
            return None;
        }
        Some(match self.unit {
            IntervalUnit::YearMonth => {
                let months = self.array.as_primitive::<IntervalYearMonthType>().value(index);
                Length { months: i64::from(months), nanos: 0 }
            }
            IntervalUnit::DayTime => {
                let value = self.array.as_primitive::<IntervalDayTimeType>().value(index);
                Length {
                    months: 0,
                    nanos: i128::from(value.days) * DAY_NANOS + i128::from(value.milliseconds) * 1_000_000,
                }
            }
            IntervalUnit::MonthDayNano => {
                let value = self.array.as_primitive::<IntervalMonthDayNanoType>().value(index);
                let nanos = i128::from(value.days) * DAY_NANOS + i128::from(value.nanoseconds);
                Length { months: i64::from(value.months), nanos }
            }
        })
    }
}

/// Builds a column of intervals.
pub(in crate::functions) fn lengths_to_array(
    data_type: &DataType,
    rows: usize,
    length: impl Fn(usize) -> Option<Length>,
) -> ArrayRef {
    if *data_type == DataType::Interval(IntervalUnit::YearMonth) {
        let mut builder = IntervalYearMonthArray::builder(rows);
        for row in 0..rows {
            builder.append_option(length(row).and_then(|l| i32::try_from(l.months).ok()));
        }
        return Arc::new(builder.finish());
    }
    let mut builder = IntervalMonthDayNanoArray::builder(rows);
    for row in 0..rows {
        builder.append_option(length(row).and_then(month_day_nano));
    }
    Arc::new(builder.finish())
}

fn month_day_nano(length: Length) -> Option<IntervalMonthDayNano> {
    let months = i32::try_from(length.months).ok()?;
    let days = i32::try_from(length.nanos / DAY_NANOS).ok()?;
    Some(IntervalMonthDayNano::new(months, days, (length.nanos % DAY_NANOS) as i64))
}
