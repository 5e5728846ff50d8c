//! Numbers as text: DOUBLE and FLOAT by Java's rules with the shortest digits that read back the same, DECIMAL with its
//! scale.

use std::fmt::Write;

/// `1.0`, `1.0E10`, `1.0E-5`, `NaN`, `-Infinity`.
pub fn write_double(value: f64, to: &mut String) {
    let plain = value == 0.0 || (1e-3..1e7).contains(&value.abs());
    if plain {
        let _ = write!(to, "{value:?}");
    } else if value.is_finite() {
        scientific(format_args!("{value:E}"), to);
    } else {
        to.push_str(not_finite(value.is_nan(), value < 0.0));
    }
}

/// As [`write_double`], with the fewer digits that tell one FLOAT from another.
pub fn write_float(value: f32, to: &mut String) {
    let plain = value == 0.0 || (1e-3..1e7).contains(&value.abs());
    if plain {
        let _ = write!(to, "{value:?}");
    } else if value.is_finite() {
        scientific(format_args!("{value:E}"), to);
    } else {
        to.push_str(not_finite(value.is_nan(), value < 0.0));
    }
}

fn not_finite(nan: bool, negative: bool) -> &'static str {
    match (nan, negative) {
        (true, _) => "NaN",
        (false, true) => "-Infinity",
        (false, false) => "Infinity",
    }
}

/// Rust writes `1E10` where Java writes `1.0E10`.
fn scientific(text: std::fmt::Arguments<'_>, to: &mut String) {
    let from = to.len();
    let _ = to.write_fmt(text);
    if !to[from..].contains('.')
        && let Some(exponent) = to[from..].find('E')
    {
        to.insert_str(from + exponent, ".0");
    }
}

/// `12.34` of 1234 with scale 2; every digit of the scale is written.
pub fn write_decimal(unscaled: i128, scale: i8, to: &mut String) {
    if unscaled < 0 {
        to.push('-');
    }
    let from = to.len();
    let _ = write!(to, "{}", unscaled.unsigned_abs());
    if scale < 0 {
        if unscaled != 0 {
            to.extend(std::iter::repeat_n('0', usize::from(scale.unsigned_abs())));
        }
        return;
    }
    let scale = usize::from(scale.unsigned_abs());
    if scale == 0 {
        return;
    }
    let digits = to.len() - from;
    if digits <= scale {
        to.insert_str(from, &"0".repeat(scale + 1 - digits));
    }
    to.insert(to.len() - scale, '.');
}
