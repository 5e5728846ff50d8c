//! Times to text and back by Java patterns: DATE_FORMAT, FROM_UNIXTIME, TO_DATE, TO_TIMESTAMP, TO_TIMESTAMP_LTZ,
//! UNIX_TIMESTAMP and CONVERT_TZ.

use arrow::array::ArrayRef;
use arrow::datatypes::{DataType, Int64Type};

use super::moment::{Moment, Moments, Zone, moments_to_array};
use super::parse::{parse_date, parse_timestamp};
use super::pattern::Pattern;
use crate::error::{Error, Result};
use crate::functions::column::{primitives, texts, try_primitives, try_texts};
use crate::functions::function::{Arguments, Call, Entry, Typing};
use crate::functions::parameter::Parameter::{self, Long, Number, Temporal, Text};
use crate::types::{SqlType, TimeZone};

const DEFAULT: &str = "yyyy-MM-dd HH:mm:ss";

/// The entries of this file.
pub(super) fn entries() -> Vec<Entry> {
    const FORMAT: &[&[Parameter]] = &[&[Temporal, Text], &[Text, Text]];
    const UNIX: &[&[Parameter]] = &[&[], &[Text], &[Text, Text]];
    const READ: &[&[Parameter]] = &[&[Text], &[Text, Text]];
    const LTZ: &[&[Parameter]] = &[&[Number], &[Number, Long], &[Text], &[Text, Text], &[Text, Text, Text]];
    let string = || Typing::Fixed(SqlType::STRING);
    vec![
        Entry::new(&["date_format"], FORMAT, string(), date_format),
        Entry::new(&["from_unixtime"], &[&[Long], &[Long, Text]], string(), from_unixtime),
        Entry::new(&["to_date"], READ, Typing::Nullable(SqlType::Date), to_date),
        Entry::new(&["to_timestamp"], READ, Typing::Nullable(SqlType::Timestamp(3)), to_timestamp),
        Entry::new(&["to_timestamp_ltz"], LTZ, Typing::By(ltz_type), to_timestamp_ltz),
        Entry::new(&["unix_timestamp"], UNIX, Typing::Fixed(SqlType::BigInt), unix_timestamp).volatile(),
        Entry::new(&["convert_tz"], &[&[Text, Text, Text]], string(), convert_tz),
    ]
}

/// Compiled patterns of an argument; neighbouring rows mostly share theirs.
struct Patterns {
    last: Option<(String, Pattern)>,
}

impl Patterns {
    fn new() -> Patterns {
        Patterns { last: None }
    }

    fn get(&mut self, text: &str) -> Result<&Pattern> {
        let known = self.last.as_ref().is_some_and(|(known, _)| known == text);
        if !known {
            self.last = Some((text.to_string(), Pattern::compile(text)?));
        }
        match &self.last {
            Some((_, pattern)) => Ok(pattern),
            None => Err(Error::bug("a pattern was just stored")),
        }
    }
}

fn date_format(call: &Call<'_>) -> Result<ArrayRef> {
    let pattern = call.text(1)?;
    let mut patterns = Patterns::new();
    if *call.arguments[0].data_type() == DataType::Utf8 {
        let text = call.text(0)?;
        return try_texts(call, |row, to| {
            let (Some(text), Some(pattern)) = (text.get(row), pattern.get(row)) else { return Ok(None) };
            let Some(moment) = parse_timestamp(text) else { return Ok(None) };
            patterns.get(pattern)?.format(moment, 0, "UTC", to);
            Ok(Some(()))
        });
    }
    let moments = Moments::argument(call, 0)?;
    let instant = matches!(call.arguments[0].data_type(), DataType::Timestamp(_, Some(_)));
    let mut zone = Zone::new(call.context.zone);
    let zone_name = call.context.zone.name();
    try_texts(call, |row, to| {
        let (Some(moment), Some(pattern)) = (moments.get(row), pattern.get(row)) else { return Ok(None) };
        let offset = if instant { zone.offset_at(moment.seconds) } else { 0 };
        let local = Moment { seconds: moment.seconds + offset, ..moment };
        patterns.get(pattern)?.format(local, offset, &zone_name, to);
        Ok(Some(()))
    })
}

fn from_unixtime(call: &Call<'_>) -> Result<ArrayRef> {
    let seconds = call.long(0)?;
    let pattern = call.has(1).then(|| call.text(1)).transpose()?;
    let mut patterns = Patterns::new();
    let mut zone = Zone::new(call.context.zone);
    let zone_name = call.context.zone.name();
    try_texts(call, |row, to| {
        let Some(seconds) = seconds.get(row) else { return Ok(None) };
        let pattern = match &pattern {
            Some(pattern) => pattern.get(row),
            None => Some(DEFAULT),
        };
        let Some(pattern) = pattern else { return Ok(None) };
        // Beyond this the calendar's own arithmetic would overflow.
        if seconds.unsigned_abs() > 1 << 50 {
            return Ok(None);
        }
        let offset = zone.offset_at(seconds);
        patterns.get(pattern)?.format(Moment { seconds: seconds + offset, nanos: 0 }, offset, &zone_name, to);
        Ok(Some(()))
    })
}

/// Reads a text argument by the pattern in the next one, or in the default form.
fn read(call: &Call<'_>, mut each: impl FnMut(usize, Option<Moment>) -> Result<()>) -> Result<()> {
    let text = call.text(0)?;
    let pattern = call.has(1).then(|| call.text(1)).transpose()?;
    let mut patterns = Patterns::new();
    for row in 0..call.rows {
        let moment = match (text.get(row), &pattern) {
            (None, _) => None,
            (Some(text), None) => parse_timestamp(text),
            (Some(text), Some(pattern)) => match pattern.get(row) {
                Some(pattern) => patterns.get(pattern)?.parse(text),
                None => None,
            },
        };
        each(row, moment)?;
    }
    Ok(())
}

fn read_all(call: &Call<'_>) -> Result<Vec<Option<Moment>>> {
    let mut moments = Vec::with_capacity(call.rows);
    read(call, |_, moment| {
        moments.push(moment);
        Ok(())
    })?;
    Ok(moments)
}

fn to_date(call: &Call<'_>) -> Result<ArrayRef> {
    if call.has(1) {
        let moments = read_all(call)?;
        return moments_to_array(call.result.data_type(), call.rows, |row| Ok(moments[row]));
    }
    let text = call.text(0)?;
    moments_to_array(call.result.data_type(), call.rows, |row| {
        Ok(text.get(row).and_then(parse_date).map(Moment::of_days))
    })
}

fn to_timestamp(call: &Call<'_>) -> Result<ArrayRef> {
    let moments = read_all(call)?;
    moments_to_array(call.result.data_type(), call.rows, |row| Ok(moments[row]))
}

fn ltz_type(arguments: &Arguments<'_>) -> Result<(SqlType, bool)> {
    if let Some(precision) = arguments.constant_integer(1)
        && precision != 0
        && precision != 3
    {
        return Err(Error::sql(format!(
            "TO_TIMESTAMP_LTZ takes the precision 0 (seconds) or 3 (milliseconds), not {precision}"
        )));
    }
    Ok((SqlType::TimestampLtz(3), true))
}

fn to_timestamp_ltz(call: &Call<'_>) -> Result<ArrayRef> {
    let data_type = call.result.data_type();
    if *call.arguments[0].data_type() != DataType::Utf8 {
        let numbers = arrow::compute::cast(&call.arguments[0], &DataType::Float64)?;
        let whole = arrow::compute::cast(&call.arguments[0], &DataType::Int64).ok();
        let precision = call.has(1).then(|| call.long(1)).transpose()?;
        let constant = call.constant[0];
        return epoch_numbers(call, &numbers, whole.as_ref(), constant, |row| match &precision {
            Some(precision) => precision.get(row),
            None => Some(3),
        });
    }
    // A text is read in UTC unless a zone is given.
    let moments = read_all(call)?;
    let zone_name = call.has(2).then(|| call.text(2)).transpose()?;
    let mut zone: Option<(String, Zone)> = None;
    moments_to_array(data_type, call.rows, |row| {
        let (Some(moment), Some(zone_name)) = (moments[row], &zone_name) else { return Ok(moments[row]) };
        let Some(name) = zone_name.get(row) else { return Ok(None) };
        Ok(Some(zone_of(&mut zone, name)?.instant(moment)))
    })
}

fn epoch_numbers(
    call: &Call<'_>,
    numbers: &ArrayRef,
    whole: Option<&ArrayRef>,
    constant: bool,
    precision: impl Fn(usize) -> Option<i64>,
) -> Result<ArrayRef> {
    use arrow::array::{Array, AsArray};
    use arrow::datatypes::Float64Type;
    let numbers = numbers.as_primitive::<Float64Type>();
    let whole = whole.map(|w| w.as_primitive::<Int64Type>());
    moments_to_array(call.result.data_type(), call.rows, |row| {
        let index = if constant { 0 } else { row };
        if numbers.is_null(index) {
            return Ok(None);
        }
        let number = match whole {
            Some(whole) if whole.is_valid(index) => whole.value(index),
            _ => numbers.value(index) as i64,
        };
        match precision(row) {
            None => Ok(None),
            Some(0) => Ok(Some(Moment { seconds: number, nanos: 0 })),
            Some(3) => Ok(Some(Moment::of_ticks(number, arrow::datatypes::TimeUnit::Millisecond))),
            Some(other) => Err(call.error(format!("the precision must be 0 or 3, not {other}"))),
        }
    })
}

fn zone_of<'a>(known: &'a mut Option<(String, Zone)>, name: &str) -> Result<&'a mut Zone> {
    if known.as_ref().is_none_or(|(known, _)| known != name) {
        let zone = TimeZone::named(name).ok_or_else(|| {
            Error::data(format!("'{name}' is no time zone")).hint("zones have names like 'UTC' or 'Asia/Shanghai'")
        })?;
        *known = Some((name.to_string(), Zone::new(zone)));
    }
    match known {
        Some((_, zone)) => Ok(zone),
        None => Err(Error::bug("a zone was just stored")),
    }
}

/// What Flink gives for a text that is no time: the least number, in seconds.
const UNREADABLE: i64 = i64::MIN / 1_000;

fn unix_timestamp(call: &Call<'_>) -> Result<ArrayRef> {
    if !call.has(0) {
        let now = (call.context.clock)().div_euclid(1_000);
        return primitives::<Int64Type>(call, |_| Some(now));
    }
    let moments = read_all(call)?;
    let text = call.text(0)?;
    let pattern = call.has(1).then(|| call.text(1)).transpose()?;
    let mut zone = Zone::new(call.context.zone);
    try_primitives::<Int64Type>(call, |row| {
        if text.get(row).is_none() || pattern.as_ref().is_some_and(|p| p.get(row).is_none()) {
            return Ok(None);
        }
        Ok(Some(moments[row].map_or(UNREADABLE, |moment| zone.instant(moment).seconds)))
    })
}

fn convert_tz(call: &Call<'_>) -> Result<ArrayRef> {
    let (text, from, to_zone) = (call.text(0)?, call.text(1)?, call.text(2)?);
    let (mut from_zone, mut into_zone) = (None, None);
    let mut failure = None;
    let result = texts(call, |row, to| {
        let (text, from, into) = (text.get(row)?, from.get(row)?, to_zone.get(row)?);
        let moment = parse_timestamp(text)?;
        let converted = zone_of(&mut from_zone, from)
            .map(|zone| zone.instant(moment))
            .and_then(|instant| Ok(zone_of(&mut into_zone, into)?.local(instant)));
        match converted {
            Ok(local) => crate::functions::text_form::write_timestamp(local, 0, to),
            Err(error) => failure = Some(error),
        }
        Some(())
    })?;
    failure.map_or(Ok(result), Err)
}
