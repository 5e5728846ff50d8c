//! Dates, times and timestamps plus and minus intervals, intervals among themselves, TIMESTAMPADD and TIMESTAMPDIFF.

use std::cmp::Ordering;

use arrow::array::{Array, ArrayRef, AsArray};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Float64Type, Int32Type};

use super::calendar::{DAY_SECONDS, SECOND_NANOS, add_months, civil_from_days};
use super::interval::{Length, Lengths, lengths_to_array};
use super::moment::{Moment, Moments, moments_to_array};
use super::unit::TimeUnitName;
use crate::error::{Error, Result};
use crate::functions::arithmetic::ArithmeticOperator;
use crate::functions::column::primitives;
use crate::functions::function::{Arguments, Call, Entry, Typing};
use crate::functions::parameter::Parameter::{self, Long, Temporal, Text};
use crate::types::SqlType;

/// The entries of this file; the unit is the first argument, as text.
pub(super) fn entries() -> Vec<Entry> {
    const ADD: &[&[Parameter]] = &[&[Text, Long, Temporal]];
    const DIFFERENCE: &[&[Parameter]] = &[&[Text, Temporal, Temporal]];
    vec![
        Entry::new(&["timestampadd"], ADD, Typing::By(add_type), timestamp_add),
        Entry::new(&["timestampdiff"], DIFFERENCE, Typing::By(difference_type), timestamp_difference),
    ]
}

/// Evaluates an operator that has an interval on at least one side.
pub(in crate::functions) fn evaluate(operator: ArithmeticOperator, call: &Call<'_>) -> Result<ArrayRef> {
    use ArithmeticOperator::{Minus, Multiply, Plus};
    let interval = |index: usize| matches!(call.arguments[index].data_type(), DataType::Interval(_));
    match (interval(0), interval(1)) {
        (true, true) => between_intervals(call, operator == Minus),
        (false, true) if matches!(operator, Plus | Minus) => shift(call, 0, 1, operator == Minus),
        (true, false) if operator == Plus => shift(call, 1, 0, false),
        (true, false) => scale(call, 0, 1, operator == Multiply),
        (false, true) => scale(call, 1, 0, true),
        (false, false) => Err(Error::bug("arithmetic over times without an interval")),
    }
}

/// The opposite of an interval.
pub(in crate::functions) fn negate(call: &Call<'_>) -> Result<ArrayRef> {
    let lengths = Lengths::argument(call, 0)?;
    Ok(lengths_to_array(call.result.data_type(), call.rows, |row| lengths.get(row).map(Length::negated)))
}

/// Months first, as the calendar has them, then the exact time.
fn shifted(moment: Moment, length: Length) -> Option<Moment> {
    let moved = if length.months == 0 {
        moment
    } else {
        let days = add_months(moment.days(), length.months);
        Moment { seconds: days * DAY_SECONDS + moment.second_of_day(), ..moment }
    };
    if length.nanos == 0 { Some(moved) } else { moved.plus_nanos(length.nanos) }
}

fn shift(call: &Call<'_>, moment: usize, length: usize, back: bool) -> Result<ArrayRef> {
    let moments = Moments::argument(call, moment)?;
    let lengths = Lengths::argument(call, length)?;
    moments_to_array(call.result.data_type(), call.rows, |row| {
        let (Some(moment), Some(length)) = (moments.get(row), lengths.get(row)) else { return Ok(None) };
        Ok(shifted(moment, if back { length.negated() } else { length }))
    })
}

fn between_intervals(call: &Call<'_>, minus: bool) -> Result<ArrayRef> {
    let (left, right) = (Lengths::argument(call, 0)?, Lengths::argument(call, 1)?);
    Ok(lengths_to_array(call.result.data_type(), call.rows, |row| {
        let (left, right) = (left.get(row)?, right.get(row)?);
        let right = if minus { right.negated() } else { right };
        Some(Length { months: left.months + right.months, nanos: left.nanos.checked_add(right.nanos)? })
    }))
}

fn scale(call: &Call<'_>, interval: usize, number: usize, multiply: bool) -> Result<ArrayRef> {
    let lengths = Lengths::argument(call, interval)?;
    let factors = cast(&call.arguments[number], &DataType::Float64)?;
    let factors = factors.as_primitive::<Float64Type>();
    let constant = call.constant[number];
    if !multiply && factors.iter().flatten().any(|f| f == 0.0) {
        return Err(Error::data("division of an interval by zero"));
    }
    Ok(lengths_to_array(call.result.data_type(), call.rows, |row| {
        let length = lengths.get(row)?;
        let index = if constant { 0 } else { row };
        if factors.is_null(index) {
            return None;
        }
        let factor = factors.value(index);
        let apply = |value: f64| if multiply { value * factor } else { value / factor };
        Some(Length {
            months: apply(length.months as f64) as i64,
            // Intervals have milliseconds.
            nanos: i128::from(apply(length.milliseconds() as f64) as i64) * 1_000_000,
        })
    }))
}

fn add_type(arguments: &Arguments<'_>) -> Result<(SqlType, bool)> {
    let unit = arguments.constant_text(0).map(TimeUnitName::parse).transpose()?;
    let within_day = unit.and_then(TimeUnitName::nanos).is_some_and(|nanos| nanos < DAY_SECONDS * SECOND_NANOS);
    let sql_type = match arguments.sql_type(2) {
        SqlType::Date if within_day => SqlType::Timestamp(0),
        SqlType::Null => SqlType::Timestamp(3),
        other => other,
    };
    Ok((sql_type, arguments.fields[1].is_nullable() || arguments.fields[2].is_nullable()))
}

fn timestamp_add(call: &Call<'_>) -> Result<ArrayRef> {
    let unit = constant_unit(call)?;
    let (counts, moments) = (call.long(1)?, Moments::argument(call, 2)?);
    let length = |count: i64| match (unit.months(), unit.nanos()) {
        (Some(months), _) => Ok(Length { months: months.saturating_mul(count), nanos: 0 }),
        (_, Some(nanos)) => Ok(Length { months: 0, nanos: i128::from(nanos) * i128::from(count) }),
        _ => Err(Error::sql(format!("TIMESTAMPADD does not count in {}", unit.name()))),
    };
    moments_to_array(call.result.data_type(), call.rows, |row| {
        let (Some(count), Some(moment)) = (counts.get(row), moments.get(row)) else { return Ok(None) };
        // A century of centuries is beyond every calendar; it must not overflow either.
        if count.unsigned_abs() > 1 << 40 && unit.months().is_some() {
            return Ok(None);
        }
        Ok(shifted(moment, length(count)?))
    })
}

fn difference_type(arguments: &Arguments<'_>) -> Result<(SqlType, bool)> {
    arguments.constant_text(0).map(TimeUnitName::parse).transpose()?;
    Ok((SqlType::Int, arguments.fields[1].is_nullable() || arguments.fields[2].is_nullable()))
}

fn timestamp_difference(call: &Call<'_>) -> Result<ArrayRef> {
    let unit = constant_unit(call)?;
    if unit.months().is_none() && unit.nanos().is_none() {
        return Err(Error::sql(format!("TIMESTAMPDIFF does not count in {}", unit.name())));
    }
    let (from, to) = (Moments::argument(call, 1)?, Moments::argument(call, 2)?);
    primitives::<Int32Type>(call, |row| Some(difference(unit, from.get(row)?, to.get(row)?) as i32))
}

/// Whole units from `from` to `to`, cut towards zero.
fn difference(unit: TimeUnitName, from: Moment, to: Moment) -> i64 {
    if let Some(months) = unit.months() {
        return months_between(from, to) / months;
    }
    let nanos = i128::from(to.seconds - from.seconds) * i128::from(SECOND_NANOS) + i128::from(to.nanos)
        - i128::from(from.nanos);
    (nanos / i128::from(unit.nanos().unwrap_or(1))) as i64
}

fn months_between(from: Moment, to: Moment) -> i64 {
    let ((from_year, from_month, from_day), (to_year, to_month, to_day)) =
        (civil_from_days(from.days()), civil_from_days(to.days()));
    let months = (to_year - from_year) * 12 + i64::from(to_month) - i64::from(from_month);
    let rest = (to_day, to.second_of_day(), to.nanos).cmp(&(from_day, from.second_of_day(), from.nanos));
    match (months.cmp(&0), rest) {
        (Ordering::Greater, Ordering::Less) => months - 1,
        (Ordering::Less, Ordering::Greater) => months + 1,
        _ => months,
    }
}

fn constant_unit(call: &Call<'_>) -> Result<TimeUnitName> {
    match call.text(0)?.get(0) {
        Some(name) => TimeUnitName::parse(name),
        None => Err(Error::sql(format!("{} needs a unit of time", call.name))),
    }
}
