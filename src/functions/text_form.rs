//! The texts that values have in SQL: those of Java and Flink (`1.0E10`, `2024-02-29 10:11:12.345`, `+1 02:03:04.567`).

use std::fmt::Write;

use super::temporal::calendar::{DAY_SECONDS, civil_from_days};
use super::temporal::moment::Moment;

/// A `DOUBLE`: the shortest digits that read back, with an exponent below 0.001 and from 10,000,000.
pub(super) fn write_double(value: f64, to: &mut String) {
    if !plain(value, value.is_nan(), value.is_infinite(), value.abs(), to) {
        let start = to.len();
        let _ = write!(to, "{value:e}");
        exponent(to, start);
    }
}

/// A `FLOAT`, in the same way.
pub(super) fn write_float(value: f32, to: &mut String) {
    let wide = f64::from(value);
    if wide.is_nan() || wide.is_infinite() || wide == 0.0 || (wide.fract() == 0.0 && wide.abs() < 1e7) {
        plain(wide, wide.is_nan(), wide.is_infinite(), wide.abs(), to);
        return;
    }
    if (1e-3..1e7).contains(&value.abs()) {
        let _ = write!(to, "{value}");
        return;
    }
    let start = to.len();
    let _ = write!(to, "{value:e}");
    exponent(to, start);
}

/// Writes what needs no exponent; otherwise nothing, and says so.
fn plain(value: f64, nan: bool, infinite: bool, size: f64, to: &mut String) -> bool {
    if nan {
        to.push_str("NaN");
    } else if infinite {
        to.push_str(if value > 0.0 { "Infinity" } else { "-Infinity" });
    } else if size < 1e7 && value.fract() == 0.0 {
        if value.is_sign_negative() {
            to.push('-');
        }
        write_unsigned(size as u64, to);
        to.push_str(".0");
    } else if (1e-3..1e7).contains(&size) {
        let _ = write!(to, "{value}");
    } else {
        return false;
    }
    true
}

/// Turns Rust's `1e10` into Java's `1.0E10`.
fn exponent(to: &mut String, start: usize) {
    let Some(at) = to[start..].find('e').map(|at| start + at) else { return };
    let power = to.split_off(at);
    if !to[start..].contains('.') {
        to.push_str(".0");
    }
    to.push('E');
    to.push_str(&power[1..]);
}

/// A whole number.
pub(super) fn write_integer(value: i64, to: &mut String) {
    if value < 0 {
        to.push('-');
    }
    write_unsigned(value.unsigned_abs(), to);
}

fn write_unsigned(mut value: u64, to: &mut String) {
    let mut digits = [0_u8; 20];
    let mut at = digits.len();
    loop {
        at -= 1;
        digits[at] = b'0' + (value % 10) as u8;
        value /= 10;
        if value == 0 {
            break;
        }
    }
    to.extend(digits[at..].iter().map(|d| *d as char));
}

/// A `DECIMAL`: all digits of its scale.
pub(super) fn write_decimal(unscaled: i128, scale: i8, to: &mut String) {
    if unscaled < 0 {
        to.push('-');
    }
    let scale = usize::from(scale.max(0).unsigned_abs());
    let start = to.len();
    match u64::try_from(unscaled.unsigned_abs()) {
        Ok(small) => write_unsigned(small, to),
        Err(_) => {
            let _ = write!(to, "{}", unscaled.unsigned_abs());
        }
    }
    if scale == 0 {
        return;
    }
    let digits = to.len() - start;
    for _ in digits..=scale {
        to.insert(start, '0');
    }
    to.insert(to.len() - scale, '.');
}

/// A `BOOLEAN`.
pub(super) fn boolean(value: bool) -> &'static str {
    if value { "TRUE" } else { "FALSE" }
}

fn two(value: i64, to: &mut String) {
    to.push((b'0' + (value / 10 % 10) as u8) as char);
    to.push((b'0' + (value % 10) as u8) as char);
}

/// A `DATE`; of a year beyond 9999 the last four digits, as Flink writes it.
pub(super) fn write_date(days: i64, to: &mut String) {
    let (year, month, day) = civil_from_days(days);
    let year = year.rem_euclid(10_000);
    two(year / 100, to);
    two(year % 100, to);
    to.push('-');
    two(i64::from(month), to);
    to.push('-');
    two(i64::from(day), to);
}

/// The time of day with `precision` digits of the second; 24:00:00 is possible.
pub(super) fn write_time(second_of_day: i64, nanos: u32, precision: u8, to: &mut String) {
    two(second_of_day / 3_600, to);
    to.push(':');
    two(second_of_day / 60 % 60, to);
    to.push(':');
    two(second_of_day % 60, to);
    write_fraction(nanos, precision, to);
}

fn write_fraction(nanos: u32, precision: u8, to: &mut String) {
    if precision == 0 {
        return;
    }
    to.push('.');
    let mut unit = 100_000_000;
    for _ in 0..precision.min(9) {
        to.push((b'0' + (nanos / unit % 10) as u8) as char);
        unit /= 10;
    }
}

/// A `TIMESTAMP(precision)`.
pub(super) fn write_timestamp(local: Moment, precision: u8, to: &mut String) {
    write_date(local.days(), to);
    to.push(' ');
    write_time(local.second_of_day(), local.nanos, precision, to);
}

/// An `INTERVAL YEAR TO MONTH`: `+1-02`.
pub(super) fn write_year_month(months: i64, to: &mut String) {
    to.push(if months < 0 { '-' } else { '+' });
    write_unsigned(months.unsigned_abs() / 12, to);
    to.push('-');
    two((months.unsigned_abs() % 12) as i64, to);
}

/// An `INTERVAL DAY TO SECOND`: `+1 02:03:04.567`.
pub(super) fn write_day_time(milliseconds: i64, to: &mut String) {
    to.push(if milliseconds < 0 { '-' } else { '+' });
    let size = milliseconds.unsigned_abs();
    let seconds = (size / 1_000) as i64;
    write_unsigned((seconds / DAY_SECONDS) as u64, to);
    to.push(' ');
    write_time(seconds % DAY_SECONDS, (size % 1_000) as u32 * 1_000_000, 3, to);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(write: impl FnOnce(&mut String)) -> String {
        let mut text = String::new();
        write(&mut text);
        text
    }

    #[test]
    fn doubles_look_as_in_java() {
        for (value, text) in [
            (1.0, "1.0"),
            (-0.0, "-0.0"),
            (0.0, "0.0"),
            (1e7, "1.0E7"),
            (1_234_567.0, "1234567.0"),
            (12_345_678.9, "1.23456789E7"),
            (0.001, "0.001"),
            (0.0001, "1.0E-4"),
            (1e300, "1.0E300"),
            (9_007_199_254_740_992.0, "9.007199254740992E15"),
            (f64::NAN, "NaN"),
            (f64::NEG_INFINITY, "-Infinity"),
            (0.1 + 0.2, "0.30000000000000004"),
        ] {
            assert_eq!(written(|to| write_double(value, to)), text);
        }
        assert_eq!(written(|to| write_float(3e38, to)), "3.0E38");
        assert_eq!(written(|to| write_float(0.1, to)), "0.1");
        assert_eq!(written(|to| write_float(0.010_000_001, to)), "0.010000001");
    }

    #[test]
    fn decimals_show_their_scale() {
        assert_eq!(written(|to| write_decimal(5, 2, to)), "0.05");
        assert_eq!(written(|to| write_decimal(-1_234, 2, to)), "-12.34");
        assert_eq!(written(|to| write_decimal(0, 6, to)), "0.000000");
        assert_eq!(written(|to| write_decimal(12, 0, to)), "12");
    }

    #[test]
    fn intervals_have_a_sign() {
        assert_eq!(written(|to| write_year_month(-14, to)), "-1-02");
        assert_eq!(written(|to| write_day_time(93_784_567, to)), "+1 02:03:04.567");
        assert_eq!(written(|to| write_day_time(0, to)), "+0 00:00:00.000");
    }
}
