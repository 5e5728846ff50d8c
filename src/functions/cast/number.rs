//! Casts between numbers and Booleans, and between byte strings: whole numbers wrap as in Java, doubles saturate,
//! decimals round half up and become NULL when they do not fit.

use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, ArrowPrimitiveType, AsArray, BinaryBuilder, BooleanArray, PrimitiveArray, PrimitiveBuilder,
};
use arrow::datatypes::{DataType, Decimal128Type, Float32Type, Float64Type, Int8Type, Int16Type, Int32Type, Int64Type};

use crate::error::{Error, Result};
use crate::functions::decimal;
use crate::functions::text_form::write_decimal;
use crate::types::SqlType;

/// Casts a column of numbers or Booleans into a number type or BOOLEAN.
pub(super) fn convert(array: &ArrayRef, to: &SqlType) -> Result<ArrayRef> {
    if *array.data_type() == to.to_arrow() {
        return Ok(array.clone());
    }
    match array.data_type() {
        DataType::Boolean => from_boolean(array.as_boolean(), to),
        DataType::Int8 => from_integer(array.as_primitive::<Int8Type>(), to),
        DataType::Int16 => from_integer(array.as_primitive::<Int16Type>(), to),
        DataType::Int32 => from_integer(array.as_primitive::<Int32Type>(), to),
        DataType::Int64 => from_integer(array.as_primitive::<Int64Type>(), to),
        DataType::Float32 => {
            let wide = array.as_primitive::<Float32Type>();
            if let SqlType::Decimal(precision, scale) = to {
                return float_to_decimal(wide, *precision, *scale);
            }
            from_double(&wide.unary::<_, Float64Type>(f64::from), to)
        }
        DataType::Float64 => from_double(array.as_primitive::<Float64Type>(), to),
        DataType::Decimal128(_, scale) => from_decimal(array.as_primitive::<Decimal128Type>(), *scale, to),
        other => Err(Error::bug(format!("a number came as {other}"))),
    }
}

fn from_boolean(array: &BooleanArray, to: &SqlType) -> Result<ArrayRef> {
    let numbers: PrimitiveArray<Int32Type> = array.iter().map(|v| v.map(i32::from)).collect();
    from_integer(&numbers, to)
}

fn not_zero<T: ArrowPrimitiveType>(array: &PrimitiveArray<T>, zero: T::Native) -> ArrayRef {
    Arc::new(BooleanArray::from_unary(array, |v| v != zero))
}

fn from_integer<T>(array: &PrimitiveArray<T>, to: &SqlType) -> Result<ArrayRef>
where
    T: ArrowPrimitiveType,
    T::Native: Into<i64> + Default,
{
    let wide = |v: T::Native| -> i64 { v.into() };
    Ok(match to {
        SqlType::Boolean => not_zero(array, T::Native::default()),
        SqlType::TinyInt => Arc::new(array.unary::<_, Int8Type>(|v| wide(v) as i8)),
        SqlType::SmallInt => Arc::new(array.unary::<_, Int16Type>(|v| wide(v) as i16)),
        SqlType::Int => Arc::new(array.unary::<_, Int32Type>(|v| wide(v) as i32)),
        SqlType::BigInt => Arc::new(array.unary::<_, Int64Type>(wide)),
        SqlType::Float => Arc::new(array.unary::<_, Float32Type>(|v| wide(v) as f32)),
        SqlType::Double => Arc::new(array.unary::<_, Float64Type>(|v| wide(v) as f64)),
        SqlType::Decimal(precision, scale) => {
            decimals(array, to, |v| fitting(decimal::rescale(i128::from(wide(v)), 0, i32::from(*scale)), *precision))
        }
        other => return Err(Error::bug(format!("a cast of a whole number to {other}"))),
    })
}

fn from_double(array: &PrimitiveArray<Float64Type>, to: &SqlType) -> Result<ArrayRef> {
    Ok(match to {
        SqlType::Boolean => not_zero(array, 0.0),
        // Java goes through INT to the narrow types: it saturates there and wraps after.
        SqlType::TinyInt => Arc::new(array.unary::<_, Int8Type>(|v| v as i32 as i8)),
        SqlType::SmallInt => Arc::new(array.unary::<_, Int16Type>(|v| v as i32 as i16)),
        SqlType::Int => Arc::new(array.unary::<_, Int32Type>(|v| v as i32)),
        SqlType::BigInt => Arc::new(array.unary::<_, Int64Type>(|v| v as i64)),
        SqlType::Float => Arc::new(array.unary::<_, Float32Type>(|v| v as f32)),
        SqlType::Double => Arc::new(array.clone()),
        SqlType::Decimal(precision, scale) => {
            finite(array.iter().flatten().all(f64::is_finite), to)?;
            decimals(array, to, |v| decimal::from_double(v, *precision, *scale))
        }
        other => return Err(Error::bug(format!("a cast of DOUBLE to {other}"))),
    })
}

/// A FLOAT's own shortest digits count, not those of its DOUBLE.
fn float_to_decimal(array: &PrimitiveArray<Float32Type>, precision: u8, scale: i8) -> Result<ArrayRef> {
    let to = SqlType::Decimal(precision, scale);
    finite(array.iter().flatten().all(f32::is_finite), &to)?;
    Ok(decimals(array, &to, |v| {
        let (unscaled, from) = decimal::parse(&v.to_string())?;
        fitting(decimal::rescale(unscaled, from, i32::from(scale)), precision)
    }))
}

/// Not even TRY_CAST makes a DECIMAL of NaN or an infinity.
fn finite(all: bool, to: &SqlType) -> Result<()> {
    if all {
        return Ok(());
    }
    Err(Error::data(format!("cannot cast NaN or Infinity to {to}"))
        .hint("leave such values out with a condition first"))
}

fn from_decimal(array: &PrimitiveArray<Decimal128Type>, scale: i8, to: &SqlType) -> Result<ArrayRef> {
    let unit = decimal::power_of_ten(scale.max(0) as u32);
    // Java cuts the fraction off and wraps.
    let whole = move |v: i128| (v / unit) as i64;
    Ok(match to {
        SqlType::Boolean => not_zero(array, 0),
        SqlType::TinyInt => Arc::new(array.unary::<_, Int8Type>(|v| whole(v) as i8)),
        SqlType::SmallInt => Arc::new(array.unary::<_, Int16Type>(|v| whole(v) as i16)),
        SqlType::Int => Arc::new(array.unary::<_, Int32Type>(|v| whole(v) as i32)),
        SqlType::BigInt => Arc::new(array.unary::<_, Int64Type>(whole)),
        SqlType::Float => Arc::new(array.unary::<_, Float32Type>(|v| decimal_to_double(v, scale) as f32)),
        SqlType::Double => Arc::new(array.unary::<_, Float64Type>(|v| decimal_to_double(v, scale))),
        SqlType::Decimal(precision, target) => {
            decimals(array, to, |v| fitting(decimal::rescale(v, i32::from(scale), i32::from(*target)), *precision))
        }
        other => return Err(Error::bug(format!("a cast of DECIMAL to {other}"))),
    })
}

/// The nearest double.
pub(in crate::functions) fn decimal_to_double(unscaled: i128, scale: i8) -> f64 {
    if scale < 0 {
        return unscaled as f64 * 10_f64.powi(-i32::from(scale));
    }
    // Both are exact doubles, so one division rounds once.
    if unscaled.unsigned_abs() < 1 << 53 && scale <= 22 {
        return unscaled as f64 / 10_f64.powi(i32::from(scale));
    }
    let mut text = String::new();
    write_decimal(unscaled, scale, &mut text);
    text.parse().unwrap_or(f64::NAN)
}

fn fitting(value: Option<i128>, precision: u8) -> Option<i128> {
    value.filter(|v| decimal::fits(*v, precision))
}

fn decimals<T: ArrowPrimitiveType>(
    array: &PrimitiveArray<T>,
    to: &SqlType,
    convert: impl Fn(T::Native) -> Option<i128>,
) -> ArrayRef {
    let mut builder = PrimitiveBuilder::<Decimal128Type>::with_capacity(array.len()).with_data_type(to.to_arrow());
    for row in 0..array.len() {
        builder.append_option(if array.is_null(row) { None } else { convert(array.value(row)) });
    }
    Arc::new(builder.finish())
}

/// Cuts byte strings to the length of `to`; BINARY also fills them up with zeros.
pub(super) fn fit_bytes(array: &ArrayRef, to: &SqlType) -> ArrayRef {
    let (length, pad) = match to {
        SqlType::Binary(length) => (*length as usize, true),
        SqlType::Varbinary(length) => (*length as usize, false),
        _ => return array.clone(),
    };
    let bytes = array.as_binary::<i32>();
    if !pad && (0..bytes.len()).all(|row| bytes.value(row).len() <= length) {
        return array.clone();
    }
    let mut builder = BinaryBuilder::with_capacity(bytes.len(), bytes.value_data().len());
    let mut fitted = Vec::new();
    for row in 0..bytes.len() {
        if bytes.is_null(row) {
            builder.append_null();
            continue;
        }
        let value = bytes.value(row);
        fitted.clear();
        fitted.extend_from_slice(&value[..value.len().min(length)]);
        if pad {
            fitted.resize(length, 0);
        }
        builder.append_value(&fitted);
    }
    Arc::new(builder.finish())
}
