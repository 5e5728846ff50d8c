//! FLOOR and CEIL: of dates and times to a unit (`FLOOR(t TO MONTH)` arrives as `floor(t, 'MONTH')`), and of numbers.

use arrow::array::ArrayRef;
use arrow::datatypes::DataType;

use super::calendar::{DAY_SECONDS, SECOND_NANOS, civil_from_days, days_from_civil};
use super::moment::{Moment, Moments, Zone, moments_to_array};
use super::unit::TimeUnitName;
use crate::error::{Error, Result};
use crate::functions::function::{Arguments, Call, Entry, Typing};
use crate::functions::math;
use crate::functions::parameter::Parameter::{self, Number, Temporal, Text};
use crate::types::SqlType;

/// The entries of this file.
pub(super) fn entries() -> Vec<Entry> {
    const FORMS: &[&[Parameter]] = &[&[Number], &[Temporal, Text]];
    vec![
        Entry::new(&["floor"], FORMS, Typing::By(rounded_type), |call| {
            if call.has(1) { to_unit(call, false) } else { math::floor(call) }
        }),
        Entry::new(&["ceil", "ceiling"], FORMS, Typing::By(rounded_type), |call| {
            if call.has(1) { to_unit(call, true) } else { math::ceil(call) }
        }),
    ]
}

fn rounded_type(arguments: &Arguments<'_>) -> Result<(SqlType, bool)> {
    let sql_type = match arguments.sql_type(0) {
        SqlType::Decimal(precision, _) => SqlType::Decimal(precision, 0),
        other => other,
    };
    if let Some(name) = arguments.constant_text(1) {
        TimeUnitName::parse(name)?;
    }
    Ok((sql_type, arguments.fields[0].is_nullable()))
}

fn to_unit(call: &Call<'_>, up: bool) -> Result<ArrayRef> {
    let unit = call.text(1)?.get(0).map(TimeUnitName::parse).transpose()?;
    let unit = unit.ok_or_else(|| Error::sql(format!("{} needs a unit of time", call.name)))?;
    let moments = Moments::argument(call, 0)?;
    let data_type = call.arguments[0].data_type();
    match data_type {
        DataType::Time32(_) | DataType::Time64(_) => {
            // A TIME has no day: units above the hour leave it as it is. The ceiling of 23:59:59 is 24:00:00.
            let whole_day = unit.nanos().is_none_or(|nanos| nanos >= DAY_SECONDS * SECOND_NANOS);
            let rounded = |m: Moment| if whole_day { m } else { rounded(m, unit, up) };
            time_array(call, data_type, |row| moments.get(row).map(rounded))
        }
        DataType::Timestamp(_, Some(_)) => {
            let mut zone = Zone::new(call.context.zone);
            moments_to_array(data_type, call.rows, |row| {
                Ok(moments.get(row).map(|m| {
                    let local = rounded(zone.local(m), unit, up);
                    zone.instant(local)
                }))
            })
        }
        _ => moments_to_array(data_type, call.rows, |row| Ok(moments.get(row).map(|m| rounded(m, unit, up)))),
    }
}

/// As [`moments_to_array`], but 24:00:00 stays.
fn time_array(call: &Call<'_>, data_type: &DataType, time: impl Fn(usize) -> Option<Moment>) -> Result<ArrayRef> {
    use arrow::datatypes::{
        Time32MillisecondType, Time32SecondType, Time64MicrosecondType, Time64NanosecondType, TimeUnit,
    };

    use crate::functions::column::primitives;
    let ticks = |row: usize, unit: TimeUnit| time(row).and_then(|m| m.ticks(unit));
    match data_type {
        DataType::Time32(unit @ TimeUnit::Second) => {
            primitives::<Time32SecondType>(call, |r| ticks(r, *unit).map(|t| t as i32))
        }
        DataType::Time32(unit) => primitives::<Time32MillisecondType>(call, |r| ticks(r, *unit).map(|t| t as i32)),
        DataType::Time64(unit @ TimeUnit::Microsecond) => {
            primitives::<Time64MicrosecondType>(call, |r| ticks(r, *unit))
        }
        DataType::Time64(unit) => primitives::<Time64NanosecondType>(call, |r| ticks(r, *unit)),
        other => Err(Error::bug(format!("a time of day in {other}"))),
    }
}

fn rounded(moment: Moment, unit: TimeUnitName, up: bool) -> Moment {
    let floor = floor(moment, unit);
    if !up || floor == moment { floor } else { next(floor, unit) }
}

fn floor(moment: Moment, unit: TimeUnitName) -> Moment {
    use TimeUnitName::*;
    let days = moment.days();
    let (year, month, _) = civil_from_days(days);
    let first_of = |year: i64, month: u32| Moment::of_days(days_from_civil(year, month, 1));
    match unit {
        Millennium => first_of((year - 1).div_euclid(1_000) * 1_000 + 1, 1),
        Century => first_of((year - 1).div_euclid(100) * 100 + 1, 1),
        Decade => first_of(year.div_euclid(10) * 10, 1),
        Year | IsoYear => first_of(year, 1),
        Quarter => first_of(year, (month - 1) / 3 * 3 + 1),
        Month => first_of(year, month),
        // Weeks start on Sunday here, where WEEK() counts ISO weeks.
        Week => Moment::of_days(days - (days + 4).rem_euclid(7)),
        Day | DayOfWeek | IsoDayOfWeek | DayOfYear => Moment::of_days(days),
        Hour => Moment { seconds: moment.seconds.div_euclid(3_600) * 3_600, nanos: 0 },
        Minute => Moment { seconds: moment.seconds.div_euclid(60) * 60, nanos: 0 },
        Second | Epoch => Moment { nanos: 0, ..moment },
        Millisecond => moment.truncated(3),
        Microsecond => moment.truncated(6),
        Nanosecond => moment,
    }
}

/// The start of the next unit.
fn next(floor: Moment, unit: TimeUnitName) -> Moment {
    if let Some(months) = unit.months() {
        return Moment::of_days(super::calendar::add_months(floor.days(), months));
    }
    let nanos = unit.nanos().unwrap_or(DAY_SECONDS * SECOND_NANOS);
    floor.plus_nanos(i128::from(nanos)).unwrap_or(floor)
}
