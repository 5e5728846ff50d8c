//! Points in time as functions see them: seconds and nanoseconds since the epoch, read from columns of any unit, in
//! UTC or in the local time of a zone.

use arrow::array::{Array, ArrayRef, AsArray};
use arrow::datatypes::{
    DataType, Date32Type, Time32MillisecondType, Time32SecondType, Time64MicrosecondType, Time64NanosecondType,
    TimeUnit, TimestampMicrosecondType, TimestampMillisecondType, TimestampNanosecondType, TimestampSecondType,
};

use super::calendar::{DAY_SECONDS, SECOND_NANOS};
use crate::error::{Error, Result};
use crate::functions::function::Call;
use crate::types::TimeZone;

/// A point in time, or a local time: `seconds` since 1970-01-01 00:00:00, rounded down, and the rest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(in crate::functions) struct Moment {
    /// Whole seconds.
    pub seconds: i64,
    /// Nanoseconds within the second.
    pub nanos: u32,
}

impl Moment {
    /// Midnight of a day.
    pub fn of_days(days: i64) -> Moment {
        Moment { seconds: days * DAY_SECONDS, nanos: 0 }
    }

    /// From a count of ticks since the epoch.
    pub fn of_ticks(ticks: i64, unit: TimeUnit) -> Moment {
        let per_second = ticks_per_second(unit);
        let nanos = ticks.rem_euclid(per_second) * (SECOND_NANOS / per_second);
        Moment { seconds: ticks.div_euclid(per_second), nanos: nanos as u32 }
    }

    /// As a count of ticks; nothing if it does not fit.
    pub fn ticks(self, unit: TimeUnit) -> Option<i64> {
        let per_second = ticks_per_second(unit);
        self.seconds.checked_mul(per_second)?.checked_add(i64::from(self.nanos) / (SECOND_NANOS / per_second))
    }

    /// The day since the epoch.
    pub fn days(self) -> i64 {
        self.seconds.div_euclid(DAY_SECONDS)
    }

    /// Seconds since midnight.
    pub fn second_of_day(self) -> i64 {
        self.seconds.rem_euclid(DAY_SECONDS)
    }

    /// `nanos` later.
    pub fn plus_nanos(self, nanos: i128) -> Option<Moment> {
        let total = i128::from(self.seconds) * i128::from(SECOND_NANOS) + i128::from(self.nanos) + nanos;
        let seconds = i64::try_from(total.div_euclid(i128::from(SECOND_NANOS))).ok()?;
        Some(Moment { seconds, nanos: total.rem_euclid(i128::from(SECOND_NANOS)) as u32 })
    }

    /// Cuts the fraction of the second to `precision` digits.
    pub fn truncated(self, precision: u8) -> Moment {
        let unit = 10_u32.pow(9 - u32::from(precision.min(9)));
        Moment { nanos: self.nanos / unit * unit, ..self }
    }
}

/// Ticks of a unit in a second.
pub(in crate::functions) fn ticks_per_second(unit: TimeUnit) -> i64 {
    match unit {
        TimeUnit::Second => 1,
        TimeUnit::Millisecond => 1_000,
        TimeUnit::Microsecond => 1_000_000,
        TimeUnit::Nanosecond => 1_000_000_000,
    }
}

/// A zone's distance to UTC, remembered for the day last asked for: neighbouring rows are mostly of one day.
pub(in crate::functions) struct Zone {
    zone: TimeZone,
    day: i64,
    offset: Option<i64>,
}

impl Zone {
    /// The rules of `zone`.
    pub fn new(zone: TimeZone) -> Zone {
        Zone { zone, day: i64::MIN, offset: None }
    }

    fn lookup(&self, instant: i64) -> i64 {
        self.zone.offset_at(instant)
    }

    /// Seconds to add to an instant to have its local time.
    pub fn offset_at(&mut self, instant: i64) -> i64 {
        if self.zone == TimeZone::UTC {
            return 0;
        }
        let day = instant.div_euclid(DAY_SECONDS);
        if day != self.day {
            self.day = day;
            let (first, last) = (self.lookup(day * DAY_SECONDS), self.lookup((day + 1) * DAY_SECONDS - 1));
            // On a day of change every row asks.
            self.offset = (first == last).then_some(first);
        }
        self.offset.unwrap_or_else(|| self.lookup(instant))
    }

    /// The local time of an instant.
    pub fn local(&mut self, instant: Moment) -> Moment {
        Moment { seconds: instant.seconds + self.offset_at(instant.seconds), ..instant }
    }

    /// The instant of a local time: the earlier one where the clock was put back; where it was put forward, the time
    /// that the clock would have shown.
    pub fn instant(&mut self, local: Moment) -> Moment {
        if self.zone == TimeZone::UTC {
            return local;
        }
        // The offset before any change near the local time decides, unless only the later one gives this local time.
        let before = self.offset_at(local.seconds - DAY_SECONDS);
        let early = local.seconds - before;
        if self.lookup(early) == before {
            return Moment { seconds: early, ..local };
        }
        let after = self.lookup(local.seconds + DAY_SECONDS);
        let late = local.seconds - after;
        let seconds = if self.lookup(late) == after { late } else { early };
        Moment { seconds, ..local }
    }
}

/// A column of dates, times or timestamps, read as moments. A time stands on 1970-01-01.
pub(in crate::functions) struct Moments<'a> {
    array: &'a ArrayRef,
    constant: bool,
    ticks: Ticks<'a>,
}

enum Ticks<'a> {
    Days(&'a [i32]),
    Short(&'a [i32], TimeUnit),
    Long(&'a [i64], TimeUnit),
}

impl<'a> Moments<'a> {
    /// Reads a whole column.
    pub fn of(array: &'a ArrayRef) -> Result<Moments<'a>> {
        Moments::read(array, false)
    }

    /// Reads an argument.
    pub fn argument(call: &'a Call<'_>, index: usize) -> Result<Moments<'a>> {
        Moments::read(&call.arguments[index], call.constant[index])
    }

    fn read(array: &'a ArrayRef, constant: bool) -> Result<Moments<'a>> {
        use TimeUnit::*;
        let ticks = match array.data_type() {
            DataType::Date32 => Ticks::Days(array.as_primitive::<Date32Type>().values()),
            DataType::Time32(Second) => Ticks::Short(array.as_primitive::<Time32SecondType>().values(), Second),
            DataType::Time32(_) => Ticks::Short(array.as_primitive::<Time32MillisecondType>().values(), Millisecond),
            DataType::Time64(Microsecond) => {
                Ticks::Long(array.as_primitive::<Time64MicrosecondType>().values(), Microsecond)
            }
            DataType::Time64(_) => Ticks::Long(array.as_primitive::<Time64NanosecondType>().values(), Nanosecond),
            DataType::Timestamp(Second, _) => Ticks::Long(array.as_primitive::<TimestampSecondType>().values(), Second),
            DataType::Timestamp(Millisecond, _) => {
                Ticks::Long(array.as_primitive::<TimestampMillisecondType>().values(), Millisecond)
            }
            DataType::Timestamp(Microsecond, _) => {
                Ticks::Long(array.as_primitive::<TimestampMicrosecondType>().values(), Microsecond)
            }
            DataType::Timestamp(Nanosecond, _) => {
                Ticks::Long(array.as_primitive::<TimestampNanosecondType>().values(), Nanosecond)
            }
            other => return Err(Error::bug(format!("a column of {other} has no points in time"))),
        };
        Ok(Moments { array, constant, ticks })
    }

    /// The moment of a row.
    pub fn get(&self, row: usize) -> Option<Moment> {
        let index = if self.constant { 0 } else { row };
        if self.array.is_null(index) {
            return None;
        }
        Some(match self.ticks {
            Ticks::Days(days) => Moment::of_days(i64::from(days[index])),
            Ticks::Short(ticks, unit) => Moment::of_ticks(i64::from(ticks[index]), unit),
            Ticks::Long(ticks, unit) => Moment::of_ticks(ticks[index], unit),
        })
    }
}

/// Builds a column of dates, times or timestamps of the Arrow type `data_type` out of moments; of a time only the part
/// within the day counts, of a date only the day. Moments beyond the type's range become NULL.
pub(in crate::functions) fn moments_to_array(
    data_type: &DataType,
    rows: usize,
    mut moment: impl FnMut(usize) -> Result<Option<Moment>>,
) -> Result<ArrayRef> {
    use arrow::array::{Date32Array, Int32Array, Int64Array};
    use std::sync::Arc;
    if let DataType::Date32 = data_type {
        let mut builder = Date32Array::builder(rows);
        for row in 0..rows {
            builder.append_option(moment(row)?.and_then(|m| i32::try_from(m.days()).ok()));
        }
        return Ok(Arc::new(builder.finish()));
    }
    let (unit, of_day) = match data_type {
        DataType::Time32(unit) | DataType::Time64(unit) => (*unit, true),
        DataType::Timestamp(unit, _) => (*unit, false),
        other => return Err(Error::bug(format!("points in time do not make a column of {other}"))),
    };
    let mut ticks = |row: usize| -> Result<Option<i64>> {
        let Some(mut moment) = moment(row)? else { return Ok(None) };
        if of_day {
            moment.seconds = moment.second_of_day();
        }
        Ok(moment.ticks(unit))
    };
    if let DataType::Time32(_) = data_type {
        let mut builder = Int32Array::builder(rows);
        for row in 0..rows {
            builder.append_option(ticks(row)?.map(|t| t as i32));
        }
        return Ok(builder
            .finish()
            .to_data()
            .into_builder()
            .data_type(data_type.clone())
            .build()
            .map(arrow::array::make_array)?);
    }
    let mut builder = Int64Array::builder(rows);
    for row in 0..rows {
        builder.append_option(ticks(row)?);
    }
    Ok(builder.finish().to_data().into_builder().data_type(data_type.clone()).build().map(arrow::array::make_array)?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::functions::temporal::calendar::days_from_civil;

    fn at(year: i64, month: u32, day: u32, hour: i64, minute: i64) -> Moment {
        Moment { seconds: days_from_civil(year, month, day) * DAY_SECONDS + hour * 3_600 + minute * 60, nanos: 0 }
    }

    #[test]
    fn a_clock_put_forward_or_back_is_read_as_java_reads_it() {
        let mut zone = Zone::new(TimeZone::named("Europe/Berlin").expect("a zone"));
        // 02:30 does not exist on 2024-03-31, and comes twice on 2024-10-27.
        assert_eq!(zone.instant(at(2024, 3, 31, 2, 30)), at(2024, 3, 31, 1, 30));
        assert_eq!(zone.instant(at(2024, 10, 27, 2, 30)), at(2024, 10, 27, 0, 30));
        assert_eq!(zone.instant(at(2024, 10, 27, 3, 30)), at(2024, 10, 27, 2, 30));
        assert_eq!(zone.local(at(2024, 7, 1, 0, 0)), at(2024, 7, 1, 2, 0));
        assert_eq!(zone.instant(at(2024, 7, 1, 2, 0)), at(2024, 7, 1, 0, 0));
    }
}
