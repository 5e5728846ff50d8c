//! Mathematics: rounding, roots, logarithms, angles, random numbers.

use arrow::array::{ArrayRef, ArrowPrimitiveType};
use arrow::datatypes::{DataType, Decimal128Type, Float32Type, Float64Type, Int8Type, Int16Type, Int32Type, Int64Type};

use super::column::{primitives, texts, try_primitives};
use super::decimal;
use super::function::{Arguments, Call, Entry, Typing};
use super::parameter::Parameter::{self, Double, Int, Number};
use crate::error::{Error, Result};
use crate::types::SqlType;

const ONE: &[&[Parameter]] = &[&[Double]];
const TWO: &[&[Parameter]] = &[&[Double, Double]];
const NONE: &[&[Parameter]] = &[&[]];

/// The entries of this file; FLOOR and CEIL stand with their forms for times.
pub(super) fn entries() -> Vec<Entry> {
    const ROUND: &[&[Parameter]] = &[&[Number], &[Number, Int]];
    const NUMBER: &[&[Parameter]] = &[&[Number]];
    const RANDOM: &[&[Parameter]] = &[&[], &[Int]];
    const RANDOM_BOUND: &[&[Parameter]] = &[&[Int], &[Int, Int]];
    const LOG: &[&[Parameter]] = &[&[Double], &[Double, Double]];
    let double = || Typing::Fixed(SqlType::Double);
    let constant = |names, body| Entry::new(names, NONE, Typing::NotNull(SqlType::Double), body);
    let mut all = vec![
        Entry::new(&["abs"], NUMBER, Typing::By(same_number), abs),
        Entry::new(&["sign"], NUMBER, Typing::By(same_number), sign),
        Entry::new(&["round"], ROUND, Typing::By(rounded_type), |call| rounded(call, true)),
        Entry::new(&["truncate"], ROUND, Typing::By(rounded_type), |call| rounded(call, false)),
        Entry::new(&["power"], TWO, double(), |call| binary(call, f64::powf)),
        Entry::new(&["atan2"], TWO, double(), |call| binary(call, f64::atan2)),
        Entry::new(&["log"], LOG, double(), log),
        constant(&["pi"], |call| primitives::<Float64Type>(call, |_| Some(std::f64::consts::PI))),
        constant(&["e"], |call| primitives::<Float64Type>(call, |_| Some(std::f64::consts::E))),
        Entry::new(&["rand"], RANDOM, Typing::Fixed(SqlType::Double), random).volatile(),
        Entry::new(&["rand_integer"], RANDOM_BOUND, Typing::Fixed(SqlType::Int), random_integer).volatile(),
        Entry::new(&["uuid"], NONE, Typing::NotNull(SqlType::Char(36)), uuid).volatile(),
    ];
    all.extend(unary_entries());
    all
}

fn unary_entries() -> Vec<Entry> {
    let entry = |names, body| Entry::new(names, ONE, Typing::Fixed(SqlType::Double), body);
    vec![
        entry(&["sqrt"], |call| unary(call, f64::sqrt)),
        entry(&["exp"], |call| unary(call, f64::exp)),
        entry(&["ln"], |call| unary(call, f64::ln)),
        entry(&["log2"], |call| unary(call, f64::log2)),
        entry(&["log10"], |call| unary(call, f64::log10)),
        entry(&["sin"], |call| unary(call, f64::sin)),
        entry(&["cos"], |call| unary(call, f64::cos)),
        entry(&["tan"], |call| unary(call, f64::tan)),
        entry(&["cot"], |call| unary(call, |v| 1.0 / v.tan())),
        entry(&["sinh"], |call| unary(call, f64::sinh)),
        entry(&["cosh"], |call| unary(call, f64::cosh)),
        entry(&["tanh"], |call| unary(call, f64::tanh)),
        entry(&["asin"], |call| unary(call, f64::asin)),
        entry(&["acos"], |call| unary(call, f64::acos)),
        entry(&["atan"], |call| unary(call, f64::atan)),
        entry(&["degrees"], |call| unary(call, |v| v * (180.0 / std::f64::consts::PI))),
        entry(&["radians"], |call| unary(call, |v| v * (std::f64::consts::PI / 180.0))),
    ]
}

fn unary(call: &Call<'_>, function: fn(f64) -> f64) -> Result<ArrayRef> {
    let value = call.primitive::<Float64Type>(0)?;
    primitives::<Float64Type>(call, |row| value.get(row).map(function))
}

fn binary(call: &Call<'_>, function: fn(f64, f64) -> f64) -> Result<ArrayRef> {
    let (left, right) = (call.primitive::<Float64Type>(0)?, call.primitive::<Float64Type>(1)?);
    primitives::<Float64Type>(call, |row| Some(function(left.get(row)?, right.get(row)?)))
}

/// With one argument the natural logarithm, with two that of the second to the base of the first.
fn log(call: &Call<'_>) -> Result<ArrayRef> {
    if !call.has(1) {
        return unary(call, f64::ln);
    }
    binary(call, |base, value| value.ln() / base.ln())
}

fn same_number(arguments: &Arguments<'_>) -> Result<(SqlType, bool)> {
    let sql_type = match arguments.sql_type(0) {
        SqlType::Null => SqlType::Int,
        other => other,
    };
    Ok((sql_type, arguments.nullable()))
}

fn map<T: ArrowPrimitiveType>(call: &Call<'_>, function: impl Fn(T::Native) -> T::Native) -> Result<ArrayRef> {
    let value = call.primitive::<T>(0)?;
    primitives::<T>(call, |row| value.get(row).map(&function))
}

fn no_number(call: &Call<'_>) -> Error {
    Error::bug(format!("{} of {}", call.name, call.arguments[0].data_type()))
}

/// The least whole number is its own size, as in Java.
fn abs(call: &Call<'_>) -> Result<ArrayRef> {
    match call.arguments[0].data_type() {
        DataType::Int8 => map::<Int8Type>(call, i8::wrapping_abs),
        DataType::Int16 => map::<Int16Type>(call, i16::wrapping_abs),
        DataType::Int32 => map::<Int32Type>(call, i32::wrapping_abs),
        DataType::Int64 => map::<Int64Type>(call, i64::wrapping_abs),
        DataType::Float32 => map::<Float32Type>(call, f32::abs),
        DataType::Float64 => map::<Float64Type>(call, f64::abs),
        DataType::Decimal128(..) => map::<Decimal128Type>(call, i128::wrapping_abs),
        _ => Err(no_number(call)),
    }
}

fn sign(call: &Call<'_>) -> Result<ArrayRef> {
    // Zero and NaN keep themselves, as in Java's `signum`.
    let of_double = |v: f64| if v == 0.0 || v.is_nan() { v } else { v.signum() };
    match call.arguments[0].data_type() {
        DataType::Int8 => map::<Int8Type>(call, i8::signum),
        DataType::Int16 => map::<Int16Type>(call, i16::signum),
        DataType::Int32 => map::<Int32Type>(call, i32::signum),
        DataType::Int64 => map::<Int64Type>(call, i64::signum),
        DataType::Float32 => map::<Float32Type>(call, |v| of_double(f64::from(v)) as f32),
        DataType::Float64 => map::<Float64Type>(call, of_double),
        DataType::Decimal128(_, scale) => {
            let one = decimal::power_of_ten((*scale).max(0) as u32);
            map::<Decimal128Type>(call, |v| v.signum() * one)
        }
        _ => Err(no_number(call)),
    }
}

/// The next whole number at or below.
pub(super) fn floor(call: &Call<'_>) -> Result<ArrayRef> {
    to_whole(call, f64::floor, |value, unit| value.div_euclid(unit))
}

/// The next whole number at or above.
pub(super) fn ceil(call: &Call<'_>) -> Result<ArrayRef> {
    to_whole(call, f64::ceil, |value, unit| -(-value).div_euclid(unit))
}

fn to_whole(call: &Call<'_>, double: fn(f64) -> f64, exact: fn(i128, i128) -> i128) -> Result<ArrayRef> {
    match call.arguments[0].data_type() {
        DataType::Float32 => map::<Float32Type>(call, |v| double(f64::from(v)) as f32),
        DataType::Float64 => map::<Float64Type>(call, double),
        DataType::Decimal128(_, scale) => {
            let unit = decimal::power_of_ten((*scale).max(0) as u32);
            map::<Decimal128Type>(call, |v| exact(v, unit))
        }
        _ => call.column(0),
    }
}

/// A decimal that loses digits has one digit more before the point: 9.9 rounds to 10.
fn rounded_type(arguments: &Arguments<'_>) -> Result<(SqlType, bool)> {
    let digits = match arguments.fields.len() {
        1 => Some(0),
        _ => arguments.constant_integer(1),
    };
    let sql_type = match (arguments.sql_type(0), digits) {
        (SqlType::Null, _) => SqlType::Int,
        (SqlType::Decimal(precision, scale), Some(digits)) if digits < i64::from(scale) => {
            let kept = digits.max(0) as i8;
            let whole = i32::from(precision) - i32::from(scale) + 1;
            SqlType::Decimal((whole + i32::from(kept)).min(38) as u8, kept)
        }
        (other, _) => other,
    };
    Ok((sql_type, arguments.nullable()))
}

fn rounded(call: &Call<'_>, half_up: bool) -> Result<ArrayRef> {
    let digits = call.has(1).then(|| call.int(1)).transpose()?;
    let digits = |row: usize| match &digits {
        Some(digits) => digits.get(row),
        None => Some(0),
    };
    let scaled = |unscaled: i128, from: i32, digits: i32| -> Option<i128> {
        // Down to the wanted digits, then back to the scale it had.
        let target = digits.min(from).max(-38);
        let cut = if half_up {
            decimal::rescale(unscaled, from, target)?
        } else {
            unscaled / decimal::power_of_ten((from - target).clamp(0, 38) as u32)
        };
        decimal::rescale(cut, target, from)
    };
    macro_rules! whole {
        ($arrow:ty) => {{
            let value = call.primitive::<$arrow>(0)?;
            primitives::<$arrow>(call, |row| {
                let (value, digits) = (value.get(row)?, digits(row)?);
                if digits >= 0 { Some(value) } else { scaled(i128::from(value), 0, digits).map(|v| v as _) }
            })
        }};
    }
    match call.arguments[0].data_type() {
        DataType::Int8 => whole!(Int8Type),
        DataType::Int16 => whole!(Int16Type),
        DataType::Int32 => whole!(Int32Type),
        DataType::Int64 => whole!(Int64Type),
        DataType::Float32 => {
            let value = call.primitive::<Float32Type>(0)?;
            primitives::<Float32Type>(call, |row| {
                Some(round_double(f64::from(value.get(row)?), digits(row)?, half_up) as f32)
            })
        }
        DataType::Float64 => {
            let value = call.primitive::<Float64Type>(0)?;
            primitives::<Float64Type>(call, |row| Some(round_double(value.get(row)?, digits(row)?, half_up)))
        }
        DataType::Decimal128(_, from) => {
            let (from, to) = (i32::from(*from), result_scale(call));
            let value = call.primitive::<Decimal128Type>(0)?;
            primitives::<Decimal128Type>(call, |row| {
                let exact = scaled(value.get(row)?, from, digits(row)?)?;
                decimal::rescale(exact, from, to)
            })
        }
        _ => Err(no_number(call)),
    }
}

fn result_scale(call: &Call<'_>) -> i32 {
    match call.result.data_type() {
        DataType::Decimal128(_, scale) => i32::from(*scale),
        _ => 0,
    }
}

/// Rounds the shortest digits, as Java's `BigDecimal` does: 1.005 to two digits is 1.01.
fn round_double(value: f64, digits: i32, half_up: bool) -> f64 {
    if !value.is_finite() || value == 0.0 {
        return value;
    }
    // Small numbers with few digits can be scaled without loss of a digit that decides.
    let text = value.to_string();
    let Some((unscaled, scale)) = decimal::parse(&text) else { return value };
    if digits >= scale {
        return value;
    }
    let digits = digits.max(-38);
    let cut = if half_up {
        decimal::rescale(unscaled, scale, digits)
    } else {
        Some(unscaled / decimal::power_of_ten((scale - digits).clamp(0, 38) as u32))
    };
    match cut {
        Some(cut) => super::cast::decimal_to_double(cut, digits as i8),
        None => value,
    }
}

/// Java's linear congruential generator, so that a seed gives the same numbers as in Flink. It starts anew with every
/// batch of rows.
struct JavaRandom {
    state: u64,
}

impl JavaRandom {
    const MULTIPLIER: u64 = 0x5_DEEC_E66D;
    const MASK: u64 = (1 << 48) - 1;

    fn new(seed: i64) -> JavaRandom {
        JavaRandom { state: (seed as u64 ^ Self::MULTIPLIER) & Self::MASK }
    }

    fn next(&mut self, bits: u32) -> i32 {
        self.state = (self.state.wrapping_mul(Self::MULTIPLIER).wrapping_add(0xB)) & Self::MASK;
        (self.state >> (48 - bits)) as i32
    }

    fn double(&mut self) -> f64 {
        let high = (self.next(26) as u64) << 27;
        (high + self.next(27) as u64) as f64 / (1_u64 << 53) as f64
    }

    fn below(&mut self, bound: i32) -> i32 {
        if bound & (bound - 1) == 0 {
            return ((i64::from(bound) * i64::from(self.next(31))) >> 31) as i32;
        }
        loop {
            let bits = self.next(31);
            let value = bits % bound;
            if bits.wrapping_sub(value).wrapping_add(bound - 1) >= 0 {
                return value;
            }
        }
    }
}

fn random(call: &Call<'_>) -> Result<ArrayRef> {
    if !call.has(0) {
        return primitives::<Float64Type>(call, |_| Some(rand::random::<f64>()));
    }
    let seed = call.int(0)?;
    let mut shared = seed.get(0).filter(|_| seed.is_constant()).map(|seed| JavaRandom::new(i64::from(seed)));
    primitives::<Float64Type>(call, |row| match &mut shared {
        Some(random) => Some(random.double()),
        None => seed.get(row).map(|seed| JavaRandom::new(i64::from(seed)).double()),
    })
}

fn random_integer(call: &Call<'_>) -> Result<ArrayRef> {
    let seeded = call.has(1);
    let bound = call.int(usize::from(seeded))?;
    let seed = seeded.then(|| call.int(0)).transpose()?;
    let fixed = seed.as_ref().filter(|seed| seed.is_constant()).and_then(|seed| seed.get(0));
    let mut shared = fixed.map(|seed| JavaRandom::new(i64::from(seed)));
    try_primitives::<Int32Type>(call, |row| {
        let Some(bound) = bound.get(row) else { return Ok(None) };
        if bound <= 0 {
            return Err(call.error(format!("the bound must be positive, not {bound}")));
        }
        Ok(match (&seed, &mut shared) {
            (None, _) => Some((rand::random::<u64>() % bound as u64) as i32),
            (Some(_), Some(random)) => Some(random.below(bound)),
            (Some(seed), None) => seed.get(row).map(|seed| JavaRandom::new(i64::from(seed)).below(bound)),
        })
    })
}

/// A random identifier of version 4.
fn uuid(call: &Call<'_>) -> Result<ArrayRef> {
    texts(call, |_, to| {
        let bits = rand::random::<u128>() & !(0xf << 76) & !(0x3 << 62) | (0x4 << 76) | (0x2 << 62);
        for digit in 0..32 {
            if matches!(digit, 8 | 12 | 16 | 20) {
                to.push('-');
            }
            let nibble = (bits >> (124 - 4 * digit)) & 0xf;
            to.extend(char::from_digit(nibble as u32, 16));
        }
        Some(())
    })
}
