//! The present: CURRENT_TIMESTAMP and its relatives, as the session's clock tells it.

use arrow::array::ArrayRef;
use arrow::datatypes::TimeUnit;

use super::moment::{Moment, Zone, moments_to_array};
use crate::error::Result;
use crate::functions::function::{Call, Entry, Typing};
use crate::types::SqlType;

/// The entries of this file. Every batch of rows asks the clock once; in batch mode the session gives a clock that
/// stands still.
pub(super) fn entries() -> Vec<Entry> {
    let entry = |names, sql_type| Entry::new(names, &[&[]], Typing::NotNull(sql_type), now).volatile();
    vec![
        entry(&["current_timestamp", "now", "current_row_timestamp"], SqlType::TimestampLtz(3)),
        entry(&["proctime"], SqlType::TimestampLtz(3)),
        entry(&["localtimestamp"], SqlType::Timestamp(3)),
        entry(&["localtime", "current_time"], SqlType::Time(0)),
        entry(&["current_date"], SqlType::Date),
    ]
}

fn now(call: &Call<'_>) -> Result<ArrayRef> {
    let instant = Moment::of_ticks((call.context.clock)(), TimeUnit::Millisecond);
    let moment = match SqlType::of_field(call.result) {
        SqlType::TimestampLtz(_) => instant,
        _ => Zone::new(call.context.zone).local(instant),
    };
    moments_to_array(call.result.data_type(), call.rows, |_| Ok(Some(moment)))
}
