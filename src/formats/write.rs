//! Values to text, as Java prints them: what Flink's text formats and its `print` connector write.

use std::io::Write;

use super::text::{TimestampStyle, civil_from_days};

/// A `DOUBLE` as `Double.toString` prints it: `1.0`, `1.0E10`, `1.0E-5`, `NaN`.
pub(crate) fn double(value: f64, to: &mut Vec<u8>) {
    if !value.is_finite() {
        return not_finite(value.is_nan(), value < 0.0, to);
    }
    shortest(&format_args!("{value:e}"), value == 0.0 || (1e-3..1e7).contains(&value.abs()), to);
}

/// A `FLOAT` as `Float.toString` prints it.
pub(crate) fn float(value: f32, to: &mut Vec<u8>) {
    if !value.is_finite() {
        return not_finite(value.is_nan(), value < 0.0, to);
    }
    shortest(&format_args!("{value:e}"), value == 0.0 || (1e-3..1e7).contains(&value.abs()), to);
}

fn not_finite(nan: bool, negative: bool, to: &mut Vec<u8>) {
    to.extend_from_slice(if nan {
        b"NaN"
    } else if negative {
        b"-Infinity"
    } else {
        b"Infinity"
    });
}

/// Rewrites Rust's shortest digits (`1.25e-7`) in Java's layout.
fn shortest(scientific: &std::fmt::Arguments<'_>, plain: bool, to: &mut Vec<u8>) {
    let mut space = [0u8; 40];
    let length = {
        let mut rest = &mut space[..];
        // 40 bytes hold every shortest form of a double.
        let _ = rest.write_fmt(*scientific);
        40 - rest.len()
    };
    let text = &space[..length];
    let exponent_at = text.iter().position(|byte| *byte == b'e').unwrap_or(length);
    let (mantissa, exponent) =
        (&text[..exponent_at], super::text::integer(&text[(exponent_at + 1).min(length)..]).unwrap_or(0));
    let (negative, mantissa) = match mantissa.strip_prefix(b"-") {
        Some(rest) => (true, rest),
        None => (false, mantissa),
    };
    if negative {
        to.push(b'-');
    }
    let (whole, fraction) = (&mantissa[..1.min(mantissa.len())], mantissa.get(2..).unwrap_or(&[]));
    if !plain {
        to.extend_from_slice(whole);
        to.push(b'.');
        to.extend_from_slice(if fraction.is_empty() { b"0" } else { fraction });
        let _ = write!(to, "E{exponent}");
        return;
    }
    if exponent < 0 {
        to.extend_from_slice(b"0.");
        to.extend(std::iter::repeat_n(b'0', (-exponent - 1) as usize));
        to.extend_from_slice(whole);
        to.extend_from_slice(fraction);
        return;
    }
    let exponent = exponent as usize;
    to.extend_from_slice(whole);
    to.extend_from_slice(&fraction[..exponent.min(fraction.len())]);
    to.extend(std::iter::repeat_n(b'0', exponent.saturating_sub(fraction.len())));
    to.push(b'.');
    let rest = fraction.get(exponent..).unwrap_or(&[]);
    to.extend_from_slice(if rest.is_empty() { b"0" } else { rest });
}

/// A whole number.
pub(crate) fn integer(value: i64, to: &mut Vec<u8>) {
    let mut digits = [0u8; 20];
    let mut at = digits.len();
    let mut rest = value.unsigned_abs();
    loop {
        at -= 1;
        digits[at] = b'0' + (rest % 10) as u8;
        rest /= 10;
        if rest == 0 {
            break;
        }
    }
    if value < 0 {
        to.push(b'-');
    }
    to.extend_from_slice(&digits[at..]);
}

/// A decimal with all digits of its scale: `1.50`.
pub(crate) fn decimal_plain(value: i128, scale: i8, to: &mut Vec<u8>) {
    let scale = usize::from(scale.max(0).unsigned_abs());
    if value < 0 {
        to.push(b'-');
    }
    let start = to.len();
    let _ = write!(to, "{}", value.unsigned_abs());
    let digits = to.len() - start;
    if scale == 0 {
        return;
    }
    if digits <= scale {
        let zeros = std::iter::repeat_n(b'0', scale + 1 - digits);
        to.splice(start..start, zeros);
    }
    to.insert(to.len() - scale, b'.');
}

/// A decimal without trailing zeros, as `BigDecimal.toString` prints it: `1.5`, `0`, `1.2E+2`, `1.5E-9`.
pub(crate) fn decimal_stripped(mut value: i128, scale: i8, to: &mut Vec<u8>) {
    if value == 0 {
        return to.push(b'0');
    }
    let mut scale = i32::from(scale);
    while value % 10 == 0 {
        value /= 10;
        scale -= 1;
    }
    if value < 0 {
        to.push(b'-');
    }
    let start = to.len();
    let _ = write!(to, "{}", value.unsigned_abs());
    let digits = (to.len() - start) as i32;
    let exponent = digits - 1 - scale;
    if scale >= 0 && exponent >= -6 {
        if scale == 0 {
            return;
        }
        if digits <= scale {
            to.splice(start..start, std::iter::repeat_n(b'0', (scale + 1 - digits) as usize));
        }
        return to.insert(to.len() - scale as usize, b'.');
    }
    if digits > 1 {
        to.insert(start + 1, b'.');
    }
    let _ = write!(to, "E{exponent:+}");
}

/// `2026-01-02`
pub(crate) fn date(days: i32, to: &mut Vec<u8>) {
    let (year, month, day) = civil_from_days(days);
    if (0..=9999).contains(&year) {
        padded(year as u32, 4, to);
    } else {
        let _ = write!(to, "{}{:04}", if year < 0 { "-" } else { "+" }, year.unsigned_abs());
    }
    to.push(b'-');
    padded(month, 2, to);
    to.push(b'-');
    padded(day, 2, to);
}

/// `10:11:12` and as many digits of a second as are needed.
pub(crate) fn time(nanoseconds: i64, to: &mut Vec<u8>) {
    hour_minute(nanoseconds, to);
    to.push(b':');
    padded((nanoseconds / 1_000_000_000 % 60) as u32, 2, to);
    fraction((nanoseconds % 1_000_000_000) as u32, 1, to);
}

/// As `LocalTime.toString`: no seconds if they are zero, and three, six or nine digits of a second.
pub(crate) fn java_time(nanoseconds: i64, seconds_always: bool, to: &mut Vec<u8>) {
    hour_minute(nanoseconds, to);
    if nanoseconds % 60_000_000_000 == 0 && !seconds_always {
        return;
    }
    to.push(b':');
    padded((nanoseconds / 1_000_000_000 % 60) as u32, 2, to);
    fraction((nanoseconds % 1_000_000_000) as u32, 3, to);
}

fn hour_minute(nanoseconds: i64, to: &mut Vec<u8>) {
    padded((nanoseconds / 3_600_000_000_000) as u32, 2, to);
    to.push(b':');
    padded((nanoseconds / 60_000_000_000 % 60) as u32, 2, to);
}

/// The fraction with its point, cut after the last digit that counts; digits come in groups of `group`.
fn fraction(nanoseconds: u32, group: usize, to: &mut Vec<u8>) {
    if nanoseconds == 0 {
        return;
    }
    to.push(b'.');
    let start = to.len();
    padded(nanoseconds, 9, to);
    while to.len() > start && to[to.len() - group..].iter().all(|digit| *digit == b'0') {
        to.truncate(to.len() - group);
    }
}

/// A timestamp: `value` units of `10^-digits` seconds since 1970-01-01, in `style`.
pub(crate) fn timestamp(value: i64, digits: u8, style: TimestampStyle, to: &mut Vec<u8>) {
    let (days, nanoseconds) = split(value, digits);
    date(days, to);
    to.push(match style {
        TimestampStyle::Sql => b' ',
        TimestampStyle::Iso => b'T',
    });
    time(nanoseconds, to);
}

/// As `LocalDateTime.toString`, or with `instant` as `Instant.toString`.
pub(crate) fn java_timestamp(value: i64, digits: u8, instant: bool, to: &mut Vec<u8>) {
    let (days, nanoseconds) = split(value, digits);
    date(days, to);
    to.push(b'T');
    java_time(nanoseconds, instant, to);
    if instant {
        to.push(b'Z');
    }
}

fn split(value: i64, digits: u8) -> (i32, i64) {
    let day = 86_400 * 10i64.pow(u32::from(digits));
    let days = value.div_euclid(day).clamp(i64::from(i32::MIN / 2), i64::from(i32::MAX / 2)) as i32;
    (days, value.rem_euclid(day) * 10i64.pow(9 - u32::from(digits)))
}

fn padded(value: u32, width: usize, to: &mut Vec<u8>) {
    let mut place = 10u32.pow(width as u32 - 1);
    while place > 0 {
        to.push(b'0' + (value / place % 10) as u8);
        place /= 10;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(write: impl FnOnce(&mut Vec<u8>)) -> String {
        let mut to = Vec::new();
        write(&mut to);
        String::from_utf8(to).unwrap()
    }

    #[test]
    fn floating_point_prints_as_java_does() {
        for (value, expected) in [
            (1.0, "1.0"),
            (1.5, "1.5"),
            (100.0, "100.0"),
            (1e7, "1.0E7"),
            (9_999_999.5, "9999999.5"),
            (1e10, "1.0E10"),
            (0.001, "0.001"),
            (1e-5, "1.0E-5"),
            (1.25e-7, "1.25E-7"),
            (0.0, "0.0"),
            (-0.0, "-0.0"),
            (-123.456, "-123.456"),
            (f64::NAN, "NaN"),
            (f64::NEG_INFINITY, "-Infinity"),
            (f64::MAX, "1.7976931348623157E308"),
        ] {
            assert_eq!(text(|to| double(value, to)), expected);
        }
        assert_eq!(text(|to| float(0.1, to)), "0.1");
    }

    #[test]
    fn decimals_print_plain_or_stripped() {
        assert_eq!(text(|to| decimal_plain(150, 2, to)), "1.50");
        assert_eq!(text(|to| decimal_plain(-5, 2, to)), "-0.05");
        assert_eq!(text(|to| decimal_plain(0, 2, to)), "0.00");
        assert_eq!(text(|to| decimal_stripped(150, 2, to)), "1.5");
        assert_eq!(text(|to| decimal_stripped(0, 2, to)), "0");
        assert_eq!(text(|to| decimal_stripped(12_000, 2, to)), "1.2E+2");
        assert_eq!(text(|to| decimal_stripped(15, 10, to)), "1.5E-9");
        assert_eq!(text(|to| decimal_stripped(1234, 10, to)), "1.234E-7");
        assert_eq!(text(|to| decimal_stripped(-5, 3, to)), "-0.005");
        assert_eq!(text(|to| decimal_stripped(i128::MIN + 1, 0, to)), "-170141183460469231731687303715884105727");
    }

    #[test]
    fn times_print_only_the_digits_that_count() {
        assert_eq!(text(|to| timestamp(1_500, 3, TimestampStyle::Sql, to)), "1970-01-01 00:00:01.5");
        assert_eq!(text(|to| timestamp(-1, 3, TimestampStyle::Iso, to)), "1969-12-31T23:59:59.999");
        assert_eq!(text(|to| java_timestamp(60_000, 3, false, to)), "1970-01-01T00:01");
        assert_eq!(text(|to| java_timestamp(60_100, 3, false, to)), "1970-01-01T00:01:00.100");
        assert_eq!(text(|to| java_timestamp(0, 0, true, to)), "1970-01-01T00:00:00Z");
    }
}
