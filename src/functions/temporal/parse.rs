//! Reading dates, times and timestamps from text as Flink's CAST does.

use super::calendar::checked_days;
use super::moment::Moment;
use super::pattern::{digits, smart_days, smart_moment};

/// The days since the epoch of `2024-02-29`, also without day or month, with blanks around or a time behind it.
pub(in crate::functions) fn parse_date(text: &str) -> Option<i64> {
    let text = text.trim();
    let text = text.split_once(' ').map_or(text, |(date, _)| date);
    let (year, rest) = digits(text, 1, 4)?;
    let year = year.parse().ok()?;
    if rest.is_empty() {
        return checked_days(year, 1, 1);
    }
    let (month, rest) = digits(rest.strip_prefix('-')?, 1, 2)?;
    let month = month.parse().ok()?;
    if rest.is_empty() {
        return checked_days(year, month, 1);
    }
    let (day, rest) = digits(rest.strip_prefix('-')?, 1, 2)?;
    if rest.is_empty() { checked_days(year, month, day.parse().ok()?) } else { None }
}

/// The time of day of `10:11:12.345`, also without seconds or minutes, with blanks around.
pub(in crate::functions) fn parse_time(text: &str) -> Option<Moment> {
    let text = text.trim();
    let (hour, rest) = digits(text, 1, 2)?;
    let part = |rest: &str| -> Option<(i64, usize)> {
        let (part, behind) = digits(rest.strip_prefix(':')?, 1, 2)?;
        Some((part.parse().ok()?, rest.len() - behind.len()))
    };
    let hour = hour.parse().ok().filter(|h| *h < 24)?;
    if rest.is_empty() {
        return smart_moment(0, hour, 0, 0, 0);
    }
    let (minute, used) = part(rest)?;
    let rest = &rest[used..];
    if rest.is_empty() {
        return smart_moment(0, hour, minute, 0, 0);
    }
    let (second, used) = part(rest)?;
    smart_moment(0, hour, minute, second, fraction(&rest[used..])?)
}

/// The nanoseconds of `.345`, or 0 where nothing is left.
fn fraction(text: &str) -> Option<i64> {
    if text.is_empty() {
        return Some(0);
    }
    let found = text.strip_prefix('.')?;
    if found.is_empty() {
        return Some(0);
    }
    if !found.bytes().all(|b| b.is_ascii_digit()) || found.len() > 9 {
        return None;
    }
    Some(found.parse::<i64>().ok()? * 10_i64.pow(9 - found.len() as u32))
}

/// The local time of `2024-02-29 10:11:12.345` or of a date alone.
pub(in crate::functions) fn parse_timestamp(text: &str) -> Option<Moment> {
    let (year, rest) = match text.strip_prefix('+') {
        Some(long) => digits(long, 5, 6)?,
        None => digits(text, 1, 4)?,
    };
    let (month, rest) = digits(rest.strip_prefix('-')?, 1, 2)?;
    let (day, rest) = digits(rest.strip_prefix('-')?, 1, 2)?;
    let days = smart_days(year.parse().ok()?, month.parse().ok()?, day.parse().ok()?)?;
    if rest.is_empty() {
        return Some(Moment::of_days(days));
    }
    let (hour, rest) = digits(rest.strip_prefix(' ')?, 1, 2)?;
    let (minute, rest) = digits(rest.strip_prefix(':')?, 1, 2)?;
    let (second, rest) = digits(rest.strip_prefix(':')?, 1, 2)?;
    smart_moment(days, hour.parse().ok()?, minute.parse().ok()?, second.parse().ok()?, fraction(rest)?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::functions::text_form::{write_date, write_timestamp};

    #[test]
    fn dates_may_lack_their_end_but_must_exist() {
        let read = |text: &str| {
            parse_date(text).map(|days| {
                let mut to = String::new();
                write_date(days, &mut to);
                to
            })
        };
        assert_eq!(read(" 2024-2-9 ").as_deref(), Some("2024-02-09"));
        assert_eq!(read("2024-02-29 10:00:00").as_deref(), Some("2024-02-29"));
        assert_eq!(read("2024").as_deref(), Some("2024-01-01"));
        assert_eq!(read("2024-03").as_deref(), Some("2024-03-01"));
        assert_eq!(read("24-03-01").as_deref(), Some("0024-03-01"));
        for wrong in ["2024-03-", "2024/03/01", "20240301", "2024-02-30", "2024-13-01", "", "10:20:30"] {
            assert_eq!(read(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn timestamps_roll_over_where_dates_do_not() {
        let read = |text: &str| {
            parse_timestamp(text).map(|moment| {
                let mut to = String::new();
                write_timestamp(moment, 3, &mut to);
                to
            })
        };
        assert_eq!(read("2024-2-9 1:2:3").as_deref(), Some("2024-02-09 01:02:03.000"));
        assert_eq!(read("2024-02-30 00:00:00").as_deref(), Some("2024-02-29 00:00:00.000"));
        assert_eq!(read("2024-02-29 24:00:00").as_deref(), Some("2024-03-01 00:00:00.000"));
        assert_eq!(read("+10000-01-01 00:00:00").as_deref(), Some("0000-01-01 00:00:00.000"));
        for wrong in [
            "2024-02-29 10:11",
            "2024-02-29T10:11:12",
            "2024-02-29 10:11:12Z",
            "2024-02-29 10:11:12 ",
            "10000-01-01 00:00:00",
        ] {
            assert_eq!(read(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn times_may_lack_their_end() {
        let read = |text: &str| parse_time(text).map(|m| (m.seconds, m.nanos));
        assert_eq!(read("10:11:12.345"), Some((36_672, 345_000_000)));
        assert_eq!(read("10"), Some((36_000, 0)));
        assert_eq!(read("10:11:12 "), Some((36_672, 0)));
        for wrong in ["24:00:00", "10:60:00", "x", "-1:00:00", "2024-01-02"] {
            assert_eq!(read(wrong), None, "{wrong}");
        }
    }
}
