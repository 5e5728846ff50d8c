//! Counts, moments and spans of time as people read them.

use chrono::DateTime;

use crate::changelog::Watermark;

/// `1 row`, `12 rows`
pub(super) fn rows(count: u64) -> String {
    if count == 1 { "1 row".into() } else { format!("{count} rows") }
}

/// An event time, in UTC.
pub(super) fn moment(ms: i64) -> String {
    if ms == Watermark::MAX.0 {
        return "the end of the input".into();
    }
    match DateTime::from_timestamp_millis(ms) {
        Some(time) => time.format("%Y-%m-%d %H:%M:%S%.3f").to_string(),
        None => format!("{ms} ms"),
    }
}

/// A length of time in its greatest units.
pub(super) fn span(ms: i64) -> String {
    let seconds = ms / 1_000;
    match seconds {
        ..0 => format!("{ms} ms"),
        0 => format!("{ms} ms"),
        1..60 if ms % 1_000 == 0 => format!("{seconds} s"),
        1..60 => format!("{:.1} s", ms as f64 / 1e3),
        60..3_600 => format!("{} min {} s", seconds / 60, seconds % 60),
        3_600..172_800 => format!("{} h {} min", seconds / 3_600, seconds / 60 % 60),
        _ => format!("{} days", seconds / 86_400),
    }
}
