//! DECIMAL: how precision and scale of results follow from those of the operands, and arithmetic on unscaled values
//! that rounds half up and knows when a result does not fit.

use arrow::datatypes::i256;

use crate::types::SqlType;

/// The greatest precision.
pub(super) const MAX_PRECISION: u8 = 38;
/// Digits after the point that a result keeps when its precision must be cut, if it has so many.
const KEPT_SCALE: i32 = 6;

/// The powers of ten that an `i128` holds.
const POWERS: [i128; 39] = {
    let mut powers = [1_i128; 39];
    let mut index = 1;
    while index < powers.len() {
        powers[index] = powers[index - 1] * 10;
        index += 1;
    }
    powers
};

/// Ten to the power `exponent`, at most 38.
pub(super) fn power_of_ten(exponent: u32) -> i128 {
    POWERS[(exponent as usize).min(POWERS.len() - 1)]
}

/// The precision and scale of a number type seen as a DECIMAL; none for FLOAT and DOUBLE.
pub(super) fn as_decimal(sql_type: &SqlType) -> Option<(u8, i8)> {
    match sql_type {
        SqlType::TinyInt => Some((3, 0)),
        SqlType::SmallInt => Some((5, 0)),
        SqlType::Int => Some((10, 0)),
        SqlType::BigInt => Some((19, 0)),
        SqlType::Decimal(precision, scale) => Some((*precision, *scale)),
        _ => None,
    }
}

/// A precision beyond 38 is cut at the cost of digits after the point, but of those 6 stay.
fn adjusted(precision: i32, scale: i32) -> (u8, i8) {
    let most = i32::from(MAX_PRECISION);
    if precision <= most {
        return (precision as u8, scale as i8);
    }
    let whole = precision - scale;
    (MAX_PRECISION, (most - whole).max(scale.min(KEPT_SCALE)) as i8)
}

/// Type of a sum or difference.
pub(super) fn sum_type(left: (u8, i8), right: (u8, i8)) -> (u8, i8) {
    let scale = left.1.max(right.1);
    let whole = whole_digits(left).max(whole_digits(right));
    adjusted(whole + i32::from(scale) + 1, i32::from(scale))
}

/// Type of a product.
pub(super) fn product_type(left: (u8, i8), right: (u8, i8)) -> (u8, i8) {
    adjusted(i32::from(left.0) + i32::from(right.0) + 1, i32::from(left.1) + i32::from(right.1))
}

/// Type of a quotient.
pub(super) fn quotient_type(left: (u8, i8), right: (u8, i8)) -> (u8, i8) {
    let scale = KEPT_SCALE.max(i32::from(left.1) + i32::from(right.0) + 1);
    adjusted(i32::from(left.0) - i32::from(left.1) + i32::from(right.1) + scale, scale)
}

/// Type of a remainder.
pub(super) fn remainder_type(left: (u8, i8), right: (u8, i8)) -> (u8, i8) {
    let scale = left.1.max(right.1);
    adjusted(whole_digits(left).min(whole_digits(right)) + i32::from(scale), i32::from(scale))
}

/// The narrowest type that holds both, cut to 38 digits.
pub(super) fn common_decimal(left: (u8, i8), right: (u8, i8)) -> (u8, i8) {
    let scale = i32::from(left.1.max(right.1));
    let whole = whole_digits(left).max(whole_digits(right));
    let most = i32::from(MAX_PRECISION);
    if whole + scale <= most {
        return ((whole + scale) as u8, scale as i8);
    }
    // The digits before the point matter more.
    let whole = whole.min(most);
    (MAX_PRECISION, scale.min(most - whole) as i8)
}

fn whole_digits((precision, scale): (u8, i8)) -> i32 {
    i32::from(precision) - i32::from(scale)
}

/// Whether an unscaled value has at most `precision` digits.
pub(super) fn fits(unscaled: i128, precision: u8) -> bool {
    let bound = power_of_ten(u32::from(precision));
    -bound < unscaled && unscaled < bound
}

/// The value at another scale, rounded half up; nothing if it does not fit an `i128`.
pub(super) fn rescale(unscaled: i128, from: i32, to: i32) -> Option<i128> {
    if to >= from {
        let up = (to - from) as u32;
        if unscaled == 0 {
            return Some(0);
        }
        return if up > 38 { None } else { unscaled.checked_mul(power_of_ten(up)) };
    }
    let down = (from - to) as u32;
    if down > 38 { Some(0) } else { Some(divide_half_up(unscaled, power_of_ten(down))) }
}

/// The quotient rounded half away from zero; the divisor is not zero.
pub(super) fn divide_half_up(dividend: i128, divisor: i128) -> i128 {
    let (quotient, remainder) = (dividend / divisor, dividend % divisor);
    let twice = remainder.unsigned_abs().saturating_mul(2);
    if twice < divisor.unsigned_abs() {
        return quotient;
    }
    if (dividend < 0) == (divisor < 0) { quotient + 1 } else { quotient - 1 }
}

/// A wide product, brought from scale `from` to scale `to`, if it fits `precision` digits.
pub(super) fn multiply(left: i128, right: i128, from: i32, to: i32, precision: u8) -> Option<i128> {
    if let Some(product) = left.checked_mul(right) {
        return rescale(product, from, to).filter(|v| fits(*v, precision));
    }
    let product = i256::from_i128(left).checked_mul(i256::from_i128(right))?;
    narrow(product, from, to).filter(|v| fits(*v, precision))
}

/// The quotient of two decimals at scale `to`, rounded half up, if it fits `precision` digits; the divisor is not zero.
pub(super) fn divide(
    left: i128,
    left_scale: i32,
    right: i128,
    right_scale: i32,
    to: i32,
    precision: u8,
) -> Option<i128> {
    // left / right * 10^(to + right_scale - left_scale)
    let shift = to + right_scale - left_scale;
    let quotient = if shift >= 0 {
        let narrow = if shift <= 38 { left.checked_mul(power_of_ten(shift as u32)) } else { None };
        match narrow {
            Some(dividend) => Some(divide_half_up(dividend, right)),
            None => {
                let power = i256::from_i128(10).checked_pow(shift as u32)?;
                wide_half_up(i256::from_i128(left).checked_mul(power)?, i256::from_i128(right))?.to_i128()
            }
        }
    } else {
        let power = i256::from_i128(10).checked_pow((-shift) as u32)?;
        wide_half_up(i256::from_i128(left), i256::from_i128(right).checked_mul(power)?)?.to_i128()
    };
    quotient.filter(|v| fits(*v, precision))
}

fn narrow(value: i256, from: i32, to: i32) -> Option<i128> {
    if to >= from {
        return value.checked_mul(i256::from_i128(10).checked_pow((to - from) as u32)?)?.to_i128();
    }
    wide_half_up(value, i256::from_i128(10).checked_pow((from - to) as u32)?)?.to_i128()
}

fn wide_half_up(dividend: i256, divisor: i256) -> Option<i256> {
    let quotient = dividend.checked_div(divisor)?;
    let remainder = dividend.checked_rem(divisor)?;
    let twice = remainder.checked_abs()?.checked_mul(i256::from_i128(2))?;
    if twice < divisor.checked_abs()? {
        return Some(quotient);
    }
    let negative = (dividend < i256::ZERO) != (divisor < i256::ZERO);
    quotient.checked_add(i256::from_i128(if negative { -1 } else { 1 }))
}

/// The sum or difference of two decimals at scale `to`, if it fits `precision` digits.
pub(super) fn add(left: i128, left_scale: i32, right: i128, right_scale: i32, to: i32, precision: u8) -> Option<i128> {
    let scale = left_scale.max(right_scale);
    let exact = (|| rescale(left, left_scale, scale)?.checked_add(rescale(right, right_scale, scale)?))();
    let sum = match exact {
        Some(sum) => rescale(sum, scale, to),
        None => {
            let raise = |value: i128, from: i32| {
                i256::from_i128(value).checked_mul(i256::from_i128(10).checked_pow((scale - from) as u32)?)
            };
            narrow(raise(left, left_scale)?.checked_add(raise(right, right_scale)?)?, scale, to)
        }
    };
    sum.filter(|v| fits(*v, precision))
}

/// A double as a decimal: its shortest digits, rounded half up, as Java's `BigDecimal` reads them.
pub(super) fn from_double(value: f64, precision: u8, scale: i8) -> Option<i128> {
    if !value.is_finite() {
        return None;
    }
    // The fast way is exact enough only for values that are their own shortest digits: whole numbers.
    if value.fract() == 0.0 && value.abs() < 1e15 {
        return rescale(value as i128, 0, i32::from(scale)).filter(|v| fits(*v, precision));
    }
    let mut text = String::new();
    super::text_form::write_double(value, &mut text);
    parse(&text).and_then(|(unscaled, from)| rescale(unscaled, from, i32::from(scale))).filter(|v| fits(*v, precision))
}

/// Reads digits with an optional sign, point and exponent: the unscaled value and its scale. Digits that an `i128`
/// cannot hold are cut behind the point; too many before it give nothing.
pub(super) fn parse(text: &str) -> Option<(i128, i32)> {
    let (mantissa, exponent) = match text.find(['e', 'E']) {
        Some(at) => (&text[..at], text[at + 1..].parse::<i32>().ok()?),
        None => (text, 0),
    };
    let (negative, digits) = match mantissa.as_bytes().first()? {
        b'-' => (true, &mantissa[1..]),
        b'+' => (false, &mantissa[1..]),
        _ => (false, mantissa),
    };
    let (mut unscaled, mut scale, mut point, mut any) = (0_i128, 0_i32, false, false);
    for byte in digits.bytes() {
        match byte {
            b'0'..=b'9' => {
                any = true;
                match unscaled.checked_mul(10).and_then(|v| v.checked_add(i128::from(byte - b'0'))) {
                    Some(more) => {
                        unscaled = more;
                        scale += i32::from(point);
                    }
                    None if point => {}
                    None => return None,
                }
            }
            b'.' if !point => point = true,
            _ => return None,
        }
    }
    any.then_some((if negative { -unscaled } else { unscaled }, scale.checked_sub(exponent)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_follow_from_the_operands() {
        assert_eq!(sum_type((10, 2), (20, 6)), (21, 6));
        assert_eq!(product_type((10, 2), (20, 6)), (31, 8));
        assert_eq!(quotient_type((10, 2), (20, 6)), (37, 23));
        assert_eq!(remainder_type((10, 2), (20, 6)), (14, 6));
        assert_eq!(sum_type((38, 10), (38, 10)), (38, 9));
        assert_eq!(product_type((38, 10), (38, 10)), (38, 6));
        assert_eq!(quotient_type((38, 0), (38, 0)), (38, 6));
        assert_eq!(product_type((20, 15), (20, 15)), (38, 27));
        assert_eq!(product_type((38, 38), (38, 38)), (38, 37));
        assert_eq!(common_decimal((10, 2), (8, 5)), (13, 5));
    }

    #[test]
    fn results_round_half_up_and_know_their_bounds() {
        assert_eq!(divide(1, 0, 3, 0, 6, 38), Some(333_333));
        assert_eq!(divide(2, 0, 3, 0, 2, 38), Some(67));
        assert_eq!(divide(-2, 0, 3, 0, 2, 38), Some(-67));
        assert_eq!(multiply(i128::MAX / 2, 10, 0, 0, 38), None);
        assert_eq!(multiply(power_of_ten(37), power_of_ten(20), 30, 10, 38), Some(power_of_ten(37)));
        assert_eq!(add(5, 1, 5, 2, 2, 10), Some(55));
        assert_eq!(add(power_of_ten(38) - 1, 0, 1, 0, 0, 38), None);
        assert_eq!(from_double(0.1, 38, 20), Some(power_of_ten(19)));
        assert_eq!(from_double(1e30, 3, 1), None);
    }
}
