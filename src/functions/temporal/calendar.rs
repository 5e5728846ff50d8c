//! The proleptic Gregorian calendar in whole numbers: days since 1970-01-01 to and from year, month and day.
//! Algorithms: Howard Hinnant, "chrono-Compatible Low-Level Date Algorithms".

/// Seconds of a day.
pub(in crate::functions) const DAY_SECONDS: i64 = 86_400;
/// Nanoseconds of a second.
pub(in crate::functions) const SECOND_NANOS: i64 = 1_000_000_000;

/// Days since the epoch of a date; `month` counts from 1 to 12.
pub(in crate::functions) fn days_from_civil(year: i64, month: u32, day: u32) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let era = year.div_euclid(400);
    let year_of_era = year.rem_euclid(400);
    let month_from_march = (i64::from(month) + 9) % 12;
    let day_of_year = (153 * month_from_march + 2) / 5 + i64::from(day) - 1;
    let day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
    era * 146_097 + day_of_era - 719_468
}

/// Year, month and day of a number of days since the epoch.
pub(in crate::functions) fn civil_from_days(days: i64) -> (i64, u32, u32) {
    let shifted = days + 719_468;
    let era = shifted.div_euclid(146_097);
    let day_of_era = shifted.rem_euclid(146_097);
    let year_of_era = (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = (day_of_year - (153 * month_from_march + 2) / 5 + 1) as u32;
    let month = (if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 }) as u32;
    (year_of_era + era * 400 + i64::from(month <= 2), month, day)
}

/// Whether the year has a 29th of February.
pub(in crate::functions) fn is_leap_year(year: i64) -> bool {
    year % 4 == 0 && (year % 100 != 0 || year % 400 == 0)
}

/// Days of a month.
pub(in crate::functions) fn days_in_month(year: i64, month: u32) -> u32 {
    match month {
        2 => 28 + u32::from(is_leap_year(year)),
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

/// Days since the epoch, if the date exists.
pub(in crate::functions) fn checked_days(year: i64, month: u32, day: u32) -> Option<i64> {
    let exists = (1..=12).contains(&month) && day >= 1 && day <= days_in_month(year, month);
    exists.then(|| days_from_civil(year, month, day))
}

/// The date `months` later; a day that the month lacks becomes its last.
pub(in crate::functions) fn add_months(days: i64, months: i64) -> i64 {
    let (year, month, day) = civil_from_days(days);
    let total = year * 12 + i64::from(month) - 1 + months;
    let (year, month) = (total.div_euclid(12), total.rem_euclid(12) as u32 + 1);
    days_from_civil(year, month, day.min(days_in_month(year, month)))
}

/// Day of the week, Monday 1 to Sunday 7.
pub(in crate::functions) fn iso_day_of_week(days: i64) -> i64 {
    (days + 3).rem_euclid(7) + 1
}

/// Day of the year from 1.
pub(in crate::functions) fn day_of_year(days: i64) -> i64 {
    let (year, _, _) = civil_from_days(days);
    days - days_from_civil(year, 1, 1) + 1
}

/// The ISO year and the ISO week of a date.
pub(in crate::functions) fn iso_week(days: i64) -> (i64, i64) {
    // The week belongs to the year of its Thursday.
    let thursday = days - iso_day_of_week(days) + 4;
    let (year, _, _) = civil_from_days(thursday);
    (year, (thursday - days_from_civil(year, 1, 1)) / 7 + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_go_to_days_and_back() {
        for (year, month, day, days) in
            [(1970, 1, 1, 0), (1969, 12, 31, -1), (2024, 2, 29, 19_782), (1, 1, 1, -719_162), (9999, 12, 31, 2_932_896)]
        {
            assert_eq!(days_from_civil(year, month, day), days);
            assert_eq!(civil_from_days(days), (year, month, day));
        }
    }

    #[test]
    fn weeks_belong_to_the_year_of_their_thursday() {
        assert_eq!(iso_week(days_from_civil(2018, 12, 31)), (2019, 1));
        assert_eq!(iso_week(days_from_civil(2021, 1, 1)), (2020, 53));
        assert_eq!(iso_week(days_from_civil(2022, 1, 2)), (2021, 52));
    }

    #[test]
    fn adding_months_stays_within_the_month() {
        assert_eq!(add_months(days_from_civil(2024, 1, 31), 1), days_from_civil(2024, 2, 29));
        assert_eq!(add_months(days_from_civil(2024, 2, 29), -12), days_from_civil(2023, 2, 28));
    }
}
