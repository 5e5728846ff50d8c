//! Casts between DATE, TIME, TIMESTAMP and TIMESTAMP_LTZ.

use arrow::array::{Array, ArrayRef};

use crate::error::Result;
use crate::functions::temporal::calendar::DAY_SECONDS;
use crate::functions::temporal::moment::{Moment, Moments, Zone, moments_to_array};
use crate::types::{SqlType, TimeZone};

/// Casts a column of points in time.
pub(super) fn convert(array: &ArrayRef, from: &SqlType, to: &SqlType, zone: TimeZone) -> Result<ArrayRef> {
    use SqlType::*;
    if from == to {
        return Ok(array.clone());
    }
    let moments = Moments::of(array)?;
    let mut zone = Zone::new(zone);
    moments_to_array(&to.to_arrow(), array.len(), |row| {
        let Some(moment) = moments.get(row) else { return Ok(None) };
        Ok(Some(match (from, to) {
            (Timestamp(_), Date) => Moment::of_days(milliseconds(moment) / (DAY_SECONDS * 1_000)),
            (TimestampLtz(_), Date) => zone.local(moment),
            (Timestamp(_), Time(precision)) => cut(moment, *precision),
            (TimestampLtz(_), Time(precision)) => zone.local(moment).truncated(*precision),
            (Time(_), Time(precision)) => moment.truncated(*precision),
            (Timestamp(_), TimestampLtz(precision)) => zone.instant(cut(moment, *precision)),
            (TimestampLtz(_), Timestamp(precision)) => cut(zone.local(moment), *precision),
            (Date | Time(_), TimestampLtz(precision)) => zone.instant(moment.truncated(*precision)),
            (_, Timestamp(precision) | TimestampLtz(precision)) => cut(moment, *precision),
            _ => moment,
        }))
    })
}

fn milliseconds(moment: Moment) -> i64 {
    moment.seconds.saturating_mul(1_000).saturating_add(i64::from(moment.nanos) / 1_000_000)
}

/// Cuts a fraction. As in Flink, down to milliseconds backwards in time, and beyond that towards the epoch: before 1970
/// that is forwards.
fn cut(moment: Moment, precision: u8) -> Moment {
    let cut = moment.truncated(precision);
    if precision >= 3 || moment.seconds >= 0 {
        return cut;
    }
    let unit = 10_i64.pow(3 - u32::from(precision));
    let milliseconds = milliseconds(moment) / unit * unit;
    Moment { seconds: milliseconds.div_euclid(1_000), nanos: milliseconds.rem_euclid(1_000) as u32 * 1_000_000 }
}
