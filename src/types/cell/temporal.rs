//! Dates, times, instants and intervals as text, for every value their Arrow types can hold.

use std::fmt::Write;

/// Milliseconds of a day.
pub const DAY_MILLIS: i64 = 86_400_000;
const DAY_SECONDS: i64 = 86_400;

/// `2024-02-29` of days since 1970-01-01.
pub fn write_date(days: i64, to: &mut String) {
    let (year, month, day) = civil(days);
    let sign = if year < 0 { "-" } else { "" };
    let _ = write!(to, "{sign}{:04}-{month:02}-{day:02}", year.unsigned_abs());
}

/// `10:11:12`; with a precision, a fraction without trailing zeros but of at least one digit (as Flink prints it).
pub fn write_time(value: i64, per_second: i64, precision: u8, to: &mut String) {
    let seconds = value.div_euclid(per_second);
    // The ceiling of a minute before midnight is 24:00:00.
    write_clock(if seconds == DAY_SECONDS { seconds } else { seconds.rem_euclid(DAY_SECONDS) }, to);
    if precision > 0 {
        write_fraction(value.rem_euclid(per_second) * (1_000_000_000 / per_second), 1, to);
    }
}

/// `2024-02-29 10:11:12.345`, with at least `precision` digits of a second.
pub fn write_timestamp(value: i64, per_second: i64, precision: u8, to: &mut String) {
    let (seconds, fraction) = (value.div_euclid(per_second), value.rem_euclid(per_second));
    write_date(seconds.div_euclid(DAY_SECONDS), to);
    to.push(' ');
    write_clock(seconds.rem_euclid(DAY_SECONDS), to);
    write_fraction(fraction * (1_000_000_000 / per_second), precision, to);
}

/// An instant as a clock in `zone` shows it.
pub fn write_instant(value: i64, per_second: i64, precision: u8, zone: crate::types::TimeZone, to: &mut String) {
    let seconds = value.div_euclid(per_second);
    let shift = if zone == crate::types::TimeZone::UTC { 0 } else { zone.offset_at(seconds) };
    write_timestamp(value.saturating_add(shift * per_second), per_second, precision, to);
}

/// `+1-02`: years and months.
pub fn write_months(months: i64, to: &mut String) {
    let (sign, months) = (if months < 0 { '-' } else { '+' }, months.unsigned_abs());
    let _ = write!(to, "{sign}{}-{:02}", months / 12, months % 12);
}

/// `+1 02:03:04.567`: days and a clock.
pub fn write_day_time(days: i64, milliseconds: i64, to: &mut String) {
    let total = i128::from(days) * i128::from(DAY_MILLIS) + i128::from(milliseconds);
    let (sign, total) = (if total < 0 { '-' } else { '+' }, total.unsigned_abs());
    let day = DAY_MILLIS.unsigned_abs();
    let (days, rest) = (total / u128::from(day), total % u128::from(day));
    let (hours, minutes) = (rest / 3_600_000, rest / 60_000 % 60);
    let _ = write!(to, "{sign}{days} {hours:02}:{minutes:02}:{:02}.{:03}", rest / 1_000 % 60, rest % 1_000);
}

fn write_clock(seconds: i64, to: &mut String) {
    let _ = write!(to, "{:02}:{:02}:{:02}", seconds / 3_600, seconds / 60 % 60, seconds % 60);
}

/// `.345` of nanoseconds, cut behind the last digit that says something but not shorter than `least` digits.
fn write_fraction(nanoseconds: i64, least: u8, to: &mut String) {
    let (mut digits, mut fraction) = (9, nanoseconds);
    while digits > least && fraction % 10 == 0 {
        fraction /= 10;
        digits -= 1;
    }
    if digits > 0 {
        let _ = write!(to, ".{fraction:0width$}", width = usize::from(digits));
    }
}

/// Year, month and day of days since 1970-01-01 in the Gregorian calendar, by counting in eras of 400 years that begin
/// on 1 March, so that the leap day is the last of its year (H. Hinnant, "chrono-compatible low-level date algorithms").
fn civil(days: i64) -> (i64, i64, i64) {
    let shifted = days + 719_468;
    let (era, of_era) = (shifted.div_euclid(146_097), shifted.rem_euclid(146_097));
    let year_of_era = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
    let day_of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
    (year_of_era + era * 400 + i64::from(month <= 2), month, day)
}
