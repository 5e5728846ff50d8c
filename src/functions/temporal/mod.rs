//! Functions over dates, times, timestamps and intervals.
//!
//! A column of any of these is read as a [`moment::Moment`] (seconds and nanoseconds since the epoch); an instant
//! (`TIMESTAMP_LTZ`) becomes the local time of the session's zone first. `EXTRACT(HOUR FROM z)` reads the instant's
//! ticks, adds the zone's offset, and takes the hour of the day.

pub(super) mod arithmetic;
pub(super) mod calendar;
mod extract;
mod floor_ceil;
mod format;
pub(super) mod interval;
pub(super) mod moment;
mod now;
pub(super) mod parse;
mod pattern;
mod unit;

use super::function::Entry;

/// The entries of this folder.
pub(super) fn entries() -> Vec<Entry> {
    let mut all = extract::entries();
    all.extend(floor_ceil::entries());
    all.extend(format::entries());
    all.extend(arithmetic::entries());
    all.extend(now::entries());
    all
}
