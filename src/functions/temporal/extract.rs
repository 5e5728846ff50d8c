//! EXTRACT and its shorthands (YEAR, QUARTER, …): parts of dates, times, timestamps and intervals, as BIGINT.
//! Before 1970 the parts are those of the calendar; Flink counts them from the other side there.

use arrow::array::ArrayRef;
use arrow::datatypes::{DataType, Int64Type};

use super::calendar::{SECOND_NANOS, civil_from_days, day_of_year, iso_day_of_week, iso_week};
use super::interval::{Length, Lengths};
use super::moment::{Moment, Moments, Zone};
use super::unit::TimeUnitName;
use crate::error::{Error, Result};
use crate::functions::column::primitives;
use crate::functions::function::{Arguments, Call, Entry, Typing};
use crate::functions::parameter::Parameter::{self, Interval, Temporal, Text};
use crate::types::SqlType;

/// The entries of this file. EXTRACT itself takes the unit's name as its first argument (`date_part` is the name under
/// which the parser knows it).
pub(super) fn entries() -> Vec<Entry> {
    const PART: &[&[Parameter]] = &[&[Text, Temporal], &[Text, Interval]];
    const ONE: &[&[Parameter]] = &[&[Temporal], &[Interval]];
    let shorthand = |names, body| Entry::new(names, ONE, Typing::By(shorthand_type), body);
    vec![
        Entry::new(&["extract", "date_part"], PART, Typing::By(extract_type), |call| {
            let unit = call.text(0)?.get(0).map(TimeUnitName::parse).transpose()?;
            let unit = unit.ok_or_else(|| Error::sql("EXTRACT needs a unit of time"))?;
            extract(call, 1, unit)
        }),
        shorthand(&["year"], |call| extract(call, 0, TimeUnitName::Year)),
        shorthand(&["quarter"], |call| extract(call, 0, TimeUnitName::Quarter)),
        shorthand(&["month"], |call| extract(call, 0, TimeUnitName::Month)),
        shorthand(&["week"], |call| extract(call, 0, TimeUnitName::Week)),
        shorthand(&["dayofyear"], |call| extract(call, 0, TimeUnitName::DayOfYear)),
        shorthand(&["dayofmonth"], |call| extract(call, 0, TimeUnitName::Day)),
        shorthand(&["dayofweek"], |call| extract(call, 0, TimeUnitName::DayOfWeek)),
        shorthand(&["hour"], |call| extract(call, 0, TimeUnitName::Hour)),
        shorthand(&["minute"], |call| extract(call, 0, TimeUnitName::Minute)),
        shorthand(&["second"], |call| extract(call, 0, TimeUnitName::Second)),
    ]
}

fn extract_type(arguments: &Arguments<'_>) -> Result<(SqlType, bool)> {
    if let Some(name) = arguments.constant_text(0) {
        let unit = TimeUnitName::parse(name)?;
        if matches!(arguments.sql_type(1), SqlType::Time(_)) && !of_time(unit) {
            return Err(Error::sql(format!("a TIME has no {}", unit.name())));
        }
    }
    Ok((SqlType::BigInt, arguments.fields[1].is_nullable()))
}

fn shorthand_type(arguments: &Arguments<'_>) -> Result<(SqlType, bool)> {
    if matches!(arguments.sql_type(0), SqlType::Time(_)) && !matches!(arguments.name, "HOUR" | "MINUTE" | "SECOND") {
        return Err(Error::sql(format!("a TIME has no {}", arguments.name)));
    }
    Ok((SqlType::BigInt, arguments.nullable()))
}

fn of_time(unit: TimeUnitName) -> bool {
    use TimeUnitName::*;
    matches!(unit, Hour | Minute | Second | Millisecond | Microsecond | Nanosecond | Epoch)
}

fn extract(call: &Call<'_>, index: usize, unit: TimeUnitName) -> Result<ArrayRef> {
    if let DataType::Interval(_) = call.arguments[index].data_type() {
        let lengths = Lengths::argument(call, index)?;
        return primitives::<Int64Type>(call, |row| lengths.get(row).and_then(|length| part_of_interval(length, unit)));
    }
    let moments = Moments::argument(call, index)?;
    if matches!(call.arguments[index].data_type(), DataType::Timestamp(_, Some(_))) {
        let mut zone = Zone::new(call.context.zone);
        return primitives::<Int64Type>(call, |row| moments.get(row).map(|m| part(zone.local(m), unit)));
    }
    primitives::<Int64Type>(call, |row| moments.get(row).map(|m| part(m, unit)))
}

fn part(local: Moment, unit: TimeUnitName) -> i64 {
    use TimeUnitName::*;
    let days = local.days();
    match unit {
        Millennium => (civil_from_days(days).0 + 999) / 1_000,
        Century => (civil_from_days(days).0 + 99) / 100,
        Decade => civil_from_days(days).0.div_euclid(10),
        Year => civil_from_days(days).0,
        IsoYear => iso_week(days).0,
        Quarter => i64::from((civil_from_days(days).1 - 1) / 3 + 1),
        Month => i64::from(civil_from_days(days).1),
        Week => iso_week(days).1,
        Day => i64::from(civil_from_days(days).2),
        DayOfWeek => iso_day_of_week(days) % 7 + 1,
        IsoDayOfWeek => iso_day_of_week(days),
        DayOfYear => day_of_year(days),
        Hour => local.second_of_day() / 3_600,
        Minute => local.second_of_day() / 60 % 60,
        Second => local.second_of_day() % 60,
        Millisecond => local.second_of_day() % 60 * 1_000 % 1_000 + i64::from(local.nanos) / 1_000_000,
        Microsecond => i64::from(local.nanos) / 1_000,
        Nanosecond => i64::from(local.nanos),
        Epoch => local.seconds,
    }
}

fn part_of_interval(length: Length, unit: TimeUnitName) -> Option<i64> {
    use TimeUnitName::*;
    let seconds = (length.nanos / i128::from(SECOND_NANOS)) as i64;
    Some(match unit {
        Millennium => length.months / 12_000,
        Century => length.months / 1_200,
        Decade => length.months / 120,
        Year => length.months / 12,
        Quarter => length.months % 12 / 3 + 1,
        Month => length.months % 12,
        Week => seconds / 604_800,
        Day => seconds / 86_400,
        Hour => seconds / 3_600 % 24,
        Minute => seconds / 60 % 60,
        Second => seconds % 60,
        Millisecond => (length.nanos / 1_000_000 % 1_000) as i64,
        Microsecond => (length.nanos / 1_000 % 1_000_000) as i64,
        Nanosecond => (length.nanos % i128::from(SECOND_NANOS)) as i64,
        Epoch => seconds,
        _ => return None,
    })
}
