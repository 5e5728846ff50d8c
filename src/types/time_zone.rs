//! Time zones: those of the time zone database, and fixed distances from UTC.

use chrono::{DateTime, Offset, TimeZone as _};
use chrono_tz::Tz;

/// The greatest distance from UTC, in seconds: that of Java's zones.
const FARTHEST: i64 = 18 * 3_600;

/// Where instants become local times (`table.local-time-zone`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct TimeZone(Rules);

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Rules {
    Named(Tz),
    /// Seconds to add to an instant.
    Fixed(i64),
}

impl TimeZone {
    /// UTC.
    pub const UTC: TimeZone = TimeZone(Rules::Named(Tz::UTC));

    /// The zone of a name: one of the database (`Europe/Berlin`), or a distance from UTC (`GMT+8`, `UTC-03:30`,
    /// `+08:00`).
    pub fn named(name: &str) -> Option<TimeZone> {
        if let Ok(zone) = name.parse() {
            return Some(TimeZone(Rules::Named(zone)));
        }
        let distance = ["GMT", "UTC", "UT", ""].iter().find_map(|prefix| name.strip_prefix(prefix))?;
        let (sign, distance) = match distance.split_at_checked(1)? {
            ("+", rest) => (1, rest),
            ("-", rest) => (-1, rest),
            _ => return None,
        };
        let (hours, minutes) = distance.split_once(':').unwrap_or((distance, "00"));
        if !(1..=2).contains(&hours.len()) || minutes.len() != 2 {
            return None;
        }
        let seconds = i64::from(digits(hours)?) * 3_600 + i64::from(digits(minutes).filter(|part| *part < 60)?) * 60;
        match seconds {
            0 => Some(TimeZone::UTC),
            1..=FARTHEST => Some(TimeZone(Rules::Fixed(sign * seconds))),
            _ => None,
        }
    }

    /// Its name in the database, or its distance from UTC.
    pub fn name(self) -> String {
        match self.0 {
            Rules::Named(zone) => zone.name().to_string(),
            Rules::Fixed(seconds) => {
                let sign = if seconds < 0 { '-' } else { '+' };
                format!("GMT{sign}{:02}:{:02}", seconds.abs() / 3_600, seconds.abs() / 60 % 60)
            }
        }
    }

    /// Seconds to add to an instant, in seconds since the epoch, to have its local time. Beyond chrono's 262,000 years
    /// no zone is known; UTC is as good as any.
    pub fn offset_at(self, instant: i64) -> i64 {
        match self.0 {
            Rules::Fixed(seconds) => seconds,
            Rules::Named(zone) => DateTime::from_timestamp(instant, 0)
                .map_or(0, |time| i64::from(zone.offset_from_utc_datetime(&time.naive_utc()).fix().local_minus_utc())),
        }
    }
}

fn digits(text: &str) -> Option<u8> {
    text.bytes().all(|byte| byte.is_ascii_digit()).then(|| text.parse().ok()).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn zones_have_names_or_a_distance_from_utc() {
        let hours = |name: &str| TimeZone::named(name).map(|zone| zone.offset_at(1_720_000_000) as f64 / 3_600.0);
        assert_eq!(hours("Asia/Shanghai"), Some(8.0));
        assert_eq!(hours("Europe/Berlin"), Some(2.0));
        for name in ["GMT+8", "UTC+08:00", "+08:00", "UTC+8"] {
            assert_eq!(hours(name), Some(8.0), "{name}");
        }
        assert_eq!(hours("GMT-05:30"), Some(-5.5));
        assert_eq!(TimeZone::named("UTC-0"), Some(TimeZone::UTC));
        for name in ["Mars/Olympus", "GMT+", "", "+", "GMT+99", "GMT+1:7", "GMT+01:60", "GMT+-1", "é"] {
            assert_eq!(TimeZone::named(name), None, "{name}");
        }
    }
}
