//! The units of time that SQL names: in EXTRACT, FLOOR, CEIL, TIMESTAMPADD and TIMESTAMPDIFF.

use crate::error::{Error, Result, nearest};

/// A unit of time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TimeUnitName {
    Millennium,
    Century,
    Decade,
    Year,
    IsoYear,
    Quarter,
    Month,
    Week,
    Day,
    DayOfWeek,
    IsoDayOfWeek,
    DayOfYear,
    Hour,
    Minute,
    Second,
    Millisecond,
    Microsecond,
    Nanosecond,
    Epoch,
}

use TimeUnitName::*;

const NAMES: [(&str, TimeUnitName); 19] = [
    ("MILLENNIUM", Millennium),
    ("CENTURY", Century),
    ("DECADE", Decade),
    ("YEAR", Year),
    ("ISOYEAR", IsoYear),
    ("QUARTER", Quarter),
    ("MONTH", Month),
    ("WEEK", Week),
    ("DAY", Day),
    ("DOW", DayOfWeek),
    ("ISODOW", IsoDayOfWeek),
    ("DOY", DayOfYear),
    ("HOUR", Hour),
    ("MINUTE", Minute),
    ("SECOND", Second),
    ("MILLISECOND", Millisecond),
    ("MICROSECOND", Microsecond),
    ("NANOSECOND", Nanosecond),
    ("EPOCH", Epoch),
];

impl TimeUnitName {
    /// Reads a unit's name, also in the plural and as `SQL_TSI_…`.
    ///
    /// # Errors
    /// Kind `Sql` if there is no such unit.
    pub fn parse(text: &str) -> Result<TimeUnitName> {
        let upper = text.trim().to_uppercase();
        let bare = upper.strip_prefix("SQL_TSI_").unwrap_or(&upper);
        let singular = bare.strip_suffix('S').unwrap_or(bare);
        let found = NAMES.iter().find(|(name, _)| *name == bare || *name == singular);
        found.map(|(_, unit)| *unit).ok_or_else(|| {
            let error = Error::sql(format!("'{text}' is no unit of time"));
            match nearest(&upper, NAMES.iter().map(|(name, _)| *name)) {
                Some(name) => error.hint(format!("did you mean {name}?")),
                None => error.hint("units are YEAR, QUARTER, MONTH, WEEK, DAY, HOUR, MINUTE, SECOND, …"),
            }
        })
    }

    /// Its name.
    pub fn name(self) -> &'static str {
        NAMES.iter().find(|(_, unit)| *unit == self).map_or("", |(name, _)| name)
    }

    /// Its length in nanoseconds, if that is fixed.
    pub fn nanos(self) -> Option<i64> {
        Some(match self {
            Week => 604_800_000_000_000,
            Day => 86_400_000_000_000,
            Hour => 3_600_000_000_000,
            Minute => 60_000_000_000,
            Second => 1_000_000_000,
            Millisecond => 1_000_000,
            Microsecond => 1_000,
            Nanosecond => 1,
            _ => return None,
        })
    }

    /// Its length in months, if it is made of months.
    pub fn months(self) -> Option<i64> {
        Some(match self {
            Millennium => 12_000,
            Century => 1_200,
            Decade => 120,
            Year => 12,
            Quarter => 3,
            Month => 1,
            _ => return None,
        })
    }
}
