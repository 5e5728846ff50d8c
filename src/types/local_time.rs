//! Instants and the local times that a zone's clocks show, both in milliseconds, as windows of event time need them:
//! windows over `TIMESTAMP_LTZ` are cut along the local day.

use super::TimeZone;

const DAY: i64 = 86_400_000;

/// How instants become local times; without a zone they are what they are.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct LocalTime {
    zone: Option<TimeZone>,
}

impl LocalTime {
    /// By the clocks of `zone`.
    pub fn in_zone(zone: TimeZone) -> LocalTime {
        LocalTime { zone: Some(zone).filter(|zone| *zone != TimeZone::UTC) }
    }

    fn offset(zone: TimeZone, instant: i64) -> i64 {
        zone.offset_at(instant.div_euclid(1_000)) * 1_000
    }

    /// The local time of an instant.
    pub fn local(self, instant: i64) -> i64 {
        self.zone.map_or(instant, |zone| instant.saturating_add(LocalTime::offset(zone, instant)))
    }

    /// The local times of many instants; neighbours are mostly of one day, and most days have one offset.
    pub fn all_local(self, instants: &mut [i64]) {
        let Some(zone) = self.zone else { return };
        let (mut day, mut of_day) = (i64::MIN, None);
        for instant in instants {
            let today = instant.div_euclid(DAY);
            if today != day {
                day = today;
                let (first, last) = (today.saturating_mul(DAY), today.saturating_add(1).saturating_mul(DAY) - 1);
                let offsets = (LocalTime::offset(zone, first), LocalTime::offset(zone, last));
                of_day = (offsets.0 == offsets.1).then_some(offsets.0);
            }
            *instant = instant.saturating_add(of_day.unwrap_or_else(|| LocalTime::offset(zone, *instant)));
        }
    }

    /// The instant of a local time: the earlier one where clocks were put back; where they were put forward, the one
    /// that they would have shown.
    pub fn instant(self, local: i64) -> i64 {
        let Some(zone) = self.zone else { return local };
        let before = LocalTime::offset(zone, local.saturating_sub(DAY));
        let early = local.saturating_sub(before);
        let after = LocalTime::offset(zone, local.saturating_add(DAY));
        let late = local.saturating_sub(after);
        let late_fits = LocalTime::offset(zone, early) != before && LocalTime::offset(zone, late) == after;
        if late_fits { late } else { early }
    }

    /// Up to which local time everything has come once `instant` has passed. In the hour that clocks show twice, that
    /// is the time before it until its second round: what is still to come has these local times again.
    pub fn complete(self, instant: i64) -> i64 {
        let Some(zone) = self.zone else { return instant };
        let local = self.local(instant);
        let (before, mut changed) = (LocalTime::offset(zone, instant), instant.saturating_add(DAY));
        let after = LocalTime::offset(zone, changed);
        if after >= before {
            return local;
        }
        // The first instant with the later, lesser offset.
        let mut unchanged = instant;
        while unchanged + 1 < changed {
            let middle = unchanged + (changed - unchanged) / 2;
            if LocalTime::offset(zone, middle) == before {
                unchanged = middle;
            } else {
                changed = middle;
            }
        }
        local.min(changed.saturating_add(LocalTime::offset(zone, changed)) - 1)
    }
}

#[cfg(test)]
mod tests {
    use chrono::DateTime;

    use super::*;

    fn at(text: &str) -> i64 {
        DateTime::parse_from_rfc3339(text).unwrap().timestamp_millis()
    }

    #[test]
    fn local_times_follow_the_clocks_of_the_zone() {
        let berlin = LocalTime::in_zone(TimeZone::named("Europe/Berlin").unwrap());
        assert_eq!(berlin.local(at("2024-07-01T00:00:00Z")), at("2024-07-01T02:00:00Z"));
        assert_eq!(berlin.instant(at("2024-07-01T02:00:00Z")), at("2024-07-01T00:00:00Z"));
        let mut times = [at("2024-10-27T00:30:00Z"), at("2024-10-27T01:30:00Z")];
        berlin.all_local(&mut times);
        assert_eq!(times, [at("2024-10-27T02:30:00Z"); 2]);
        assert_eq!(berlin.instant(at("2024-10-27T02:30:00Z")), at("2024-10-27T00:30:00Z"));
        assert_eq!(LocalTime::default().complete(5), 5);
        assert_eq!(berlin.complete(i64::MAX), i64::MAX);
        assert_eq!(berlin.complete(i64::MIN), i64::MIN);
    }

    #[test]
    fn an_hour_that_comes_twice_is_complete_after_the_second_time() {
        let berlin = LocalTime::in_zone(TimeZone::named("Europe/Berlin").unwrap());
        let before = at("2024-10-27T02:00:00Z") - 1;
        assert_eq!(berlin.complete(at("2024-10-26T22:00:00Z")), at("2024-10-27T00:00:00Z"));
        assert_eq!(berlin.complete(at("2024-10-27T00:30:00Z")), before);
        assert_eq!(berlin.complete(at("2024-10-27T00:59:59Z")), before);
        assert_eq!(berlin.complete(at("2024-10-27T01:30:00Z")), at("2024-10-27T02:30:00Z"));
        assert_eq!(berlin.complete(at("2024-03-31T01:00:00Z")), at("2024-03-31T03:00:00Z"));
    }
}
