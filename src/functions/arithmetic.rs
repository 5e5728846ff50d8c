//! `+ - * / %` and the sign with Flink's result types: whole numbers wrap, DECIMAL results follow the derivation rules
//! and become NULL when they do not fit, division by zero is an error except for FLOAT and DOUBLE.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, ArrowNativeTypeOp, ArrowPrimitiveType, AsArray, PrimitiveArray, PrimitiveBuilder};
use arrow::compute::cast;
use arrow::datatypes::{
    DataType, Decimal128Type, Field, FieldRef, Float32Type, Float64Type, Int8Type, Int16Type, Int32Type, Int64Type,
};
use datafusion_expr::{
    ColumnarValue, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};

use super::decimal;
use super::function::{Call, FunctionContext, invoke, outward};
use super::temporal::arithmetic as temporal;
use super::typing::{common_number, wider_integer};
use crate::error::{Error, Result};
use crate::types::SqlType;

/// An arithmetic operator.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ArithmeticOperator {
    /// `+`
    Plus,
    /// `-`
    Minus,
    /// `*`
    Multiply,
    /// `/`
    Divide,
    /// `%` and `MOD`
    Modulo,
    /// The sign `-`.
    Negate,
}

use ArithmeticOperator::*;

impl ArithmeticOperator {
    fn name(self) -> &'static str {
        match self {
            Plus => "flink_plus",
            Minus => "flink_minus",
            Multiply => "flink_multiply",
            Divide => "flink_divide",
            Modulo => "flink_modulo",
            Negate => "flink_negate",
        }
    }

    fn sign(self) -> &'static str {
        match self {
            Plus => "+",
            Minus | Negate => "-",
            Multiply => "*",
            Divide => "/",
            Modulo => "%",
        }
    }
}

/// The function that computes `left operator right` as Flink does, or nothing where DataFusion's own operator gives
/// exactly that: `+ - *` over two whole numbers of one type or two FLOAT or DOUBLE of one type. For
/// [`ArithmeticOperator::Negate`] there is only `left`.
pub fn arithmetic(operator: ArithmeticOperator, left: &Field, right: &Field) -> Option<Arc<ScalarUDF>> {
    let same = left.data_type() == right.data_type();
    let native = left.data_type().is_integer() || left.data_type().is_floating();
    if same && native && matches!(operator, Plus | Minus | Multiply) {
        return None;
    }
    Some(arithmetic_function(operator))
}

/// The function of an operator, for any operands.
pub fn arithmetic_function(operator: ArithmeticOperator) -> Arc<ScalarUDF> {
    let signature = Signature::user_defined(Volatility::Immutable);
    let aliases = if operator == Modulo { vec!["mod".to_string()] } else { Vec::new() };
    Arc::new(ScalarUDF::new_from_impl(Arithmetic { operator, aliases, signature }))
}

/// The result type of `left operator right`.
///
/// # Errors
/// Kind `Sql` if the operator does not take these types.
pub fn arithmetic_type(operator: ArithmeticOperator, left: &SqlType, right: &SqlType) -> Result<SqlType> {
    use SqlType::*;
    let plain = || Error::sql(format!("cannot apply '{}' to {left} and {right}", operator.sign()));
    let refused = || plain().hint("CAST one of them into a type that fits");
    let (left, right) = match (left, right) {
        (Null, Null) => (&Int, &Int),
        (Null, IntervalYearMonth | IntervalDayTime) if matches!(operator, Plus | Minus) => (&Timestamp(3), right),
        (Null, other) => (other, other),
        (Date | Time(_) | Timestamp(_) | TimestampLtz(_), Null) => (left, &IntervalDayTime),
        (other, Null)
            if matches!(other, IntervalYearMonth | IntervalDayTime) && matches!(operator, Multiply | Divide) =>
        {
            (other, &Int)
        }
        (other, Null) => (other, other),
        both => both,
    };
    if left.is_numeric() && right.is_numeric() {
        return number_type(operator, left, right).ok_or_else(refused);
    }
    match (operator, left, right) {
        (Plus | Minus, Date | Time(_) | Timestamp(_) | TimestampLtz(_), IntervalYearMonth | IntervalDayTime) => {
            Ok(left.clone())
        }
        (Plus, IntervalYearMonth | IntervalDayTime, Date | Time(_) | Timestamp(_) | TimestampLtz(_)) => {
            Ok(right.clone())
        }
        (Plus | Minus, IntervalYearMonth, IntervalYearMonth) | (Plus | Minus, IntervalDayTime, IntervalDayTime) => {
            Ok(left.clone())
        }
        (Multiply | Divide, IntervalYearMonth | IntervalDayTime, number) if number.is_numeric() => Ok(left.clone()),
        (Multiply, number, IntervalYearMonth | IntervalDayTime) if number.is_numeric() => Ok(right.clone()),
        (Minus, Date | Timestamp(_) | TimestampLtz(_), Date | Timestamp(_) | TimestampLtz(_)) => {
            Err(plain().hint("TIMESTAMPDIFF(unit, earlier, later) gives their distance"))
        }
        _ => Err(refused()),
    }
}

fn number_type(operator: ArithmeticOperator, left: &SqlType, right: &SqlType) -> Option<SqlType> {
    use SqlType::*;
    if left.is_integer() && right.is_integer() {
        // The remainder is smaller than the divisor and has its type.
        return Some(if operator == Modulo { right.clone() } else { wider_integer(left, right).clone() });
    }
    let (Some(l), Some(r)) = (decimal::as_decimal(left), decimal::as_decimal(right)) else {
        return match (left, right) {
            _ if operator == Modulo => None,
            // As in Flink, the first operand decides.
            (Float, Double) | (Double, Float) => Some(left.clone()),
            _ => Some(common_number(left, right)),
        };
    };
    let (precision, scale) = match operator {
        Plus | Minus => decimal::sum_type(l, r),
        Multiply => decimal::product_type(l, r),
        Divide => decimal::quotient_type(l, r),
        Modulo => decimal::remainder_type(l, r),
        Negate => l,
    };
    Some(Decimal(precision, scale))
}

/// An operator as a function.
#[derive(Debug, PartialEq, Eq, Hash)]
struct Arithmetic {
    operator: ArithmeticOperator,
    aliases: Vec<String>,
    signature: Signature,
}

impl Arithmetic {
    fn typed(&self, fields: &[FieldRef]) -> Result<Field> {
        let nullable = fields.iter().any(|f| f.is_nullable());
        let sql_type = match (self.operator, fields) {
            (Negate, [one]) => {
                let sql_type = SqlType::of_field(one);
                let fits = sql_type.is_numeric()
                    || matches!(sql_type, SqlType::IntervalYearMonth | SqlType::IntervalDayTime | SqlType::Null);
                if !fits {
                    return Err(Error::sql(format!("cannot apply '-' to {sql_type}")));
                }
                sql_type
            }
            (operator, [left, right]) if operator != Negate => {
                arithmetic_type(operator, &SqlType::of_field(left), &SqlType::of_field(right))?
            }
            // MOD is a function too.
            _ => {
                let operator = self.operator.sign();
                return Err(Error::sql(format!("'{operator}' takes two numbers, not {}", fields.len())));
            }
        };
        Ok(sql_type.to_field(self.operator.name(), nullable))
    }
}

impl ScalarUDFImpl for Arithmetic {
    fn name(&self) -> &str {
        self.operator.name()
    }

    fn aliases(&self) -> &[String] {
        &self.aliases
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn coerce_types(&self, types: &[DataType]) -> datafusion_common::Result<Vec<DataType>> {
        Ok(types.to_vec())
    }

    fn return_type(&self, types: &[DataType]) -> datafusion_common::Result<DataType> {
        let fields: Vec<FieldRef> = types.iter().map(|t| Arc::new(Field::new("", t.clone(), true))).collect();
        Ok(self.typed(&fields).map_err(outward)?.data_type().clone())
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs<'_>) -> datafusion_common::Result<FieldRef> {
        Ok(Arc::new(self.typed(args.arg_fields).map_err(outward)?))
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> datafusion_common::Result<ColumnarValue> {
        let wanted: Vec<DataType> = args.args.iter().map(ColumnarValue::data_type).collect();
        invoke(self.operator.sign(), Volatility::Immutable, args, &wanted, &FunctionContext::utc(), |call| {
            evaluate(self.operator, call)
        })
    }
}

fn evaluate(operator: ArithmeticOperator, call: &Call<'_>) -> Result<ArrayRef> {
    let data_type = call.result.data_type();
    if call.arguments.iter().any(|a| *a.data_type() == DataType::Null) {
        return Ok(arrow::array::new_null_array(data_type, call.rows));
    }
    if operator == Negate {
        return negate(call);
    }
    let numbers = call.arguments.iter().all(|a| a.data_type().is_numeric());
    match data_type {
        _ if !numbers => temporal::evaluate(operator, call),
        DataType::Int8 => whole::<Int8Type>(operator, call),
        DataType::Int16 => whole::<Int16Type>(operator, call),
        DataType::Int32 => whole::<Int32Type>(operator, call),
        DataType::Int64 => whole::<Int64Type>(operator, call),
        DataType::Float32 => floating::<Float32Type>(operator, call),
        DataType::Float64 => floating::<Float64Type>(operator, call),
        DataType::Decimal128(precision, scale) => decimals(operator, call, *precision, i32::from(*scale)),
        other => Err(Error::bug(format!("arithmetic over {other}"))),
    }
}

/// Both operands in one type, with which of them is constant.
struct Operands<T: ArrowPrimitiveType> {
    left: PrimitiveArray<T>,
    right: PrimitiveArray<T>,
    constant: [bool; 2],
}

impl<T: ArrowPrimitiveType> Operands<T> {
    fn of(call: &Call<'_>, data_type: &DataType) -> Result<Operands<T>> {
        let left = cast(&call.arguments[0], data_type)?;
        let right = cast(&call.arguments[1], data_type)?;
        Ok(Operands {
            left: left.as_primitive::<T>().clone(),
            right: right.as_primitive::<T>().clone(),
            constant: [call.constant[0], call.constant[1]],
        })
    }

    /// Applies an operation that gives a value for all values.
    fn total(&self, rows: usize, operation: impl Fn(T::Native, T::Native) -> T::Native) -> Result<PrimitiveArray<T>> {
        let nothing = |array: &PrimitiveArray<T>, constant: bool| constant && array.is_null(0);
        if nothing(&self.left, self.constant[0]) || nothing(&self.right, self.constant[1]) {
            return Ok(PrimitiveArray::new_null(rows));
        }
        Ok(match self.constant {
            [false, false] => arrow::compute::binary(&self.left, &self.right, operation)?,
            [false, true] => {
                let right = self.right.value(0);
                self.left.unary(|left| operation(left, right))
            }
            [true, false] => {
                let left = self.left.value(0);
                self.right.unary(|right| operation(left, right))
            }
            [true, true] => {
                let value = operation(self.left.value(0), self.right.value(0));
                PrimitiveArray::from_value(value, rows)
            }
        })
    }

    /// Applies an operation that may fail or give nothing.
    fn partial(
        &self,
        rows: usize,
        mut operation: impl FnMut(T::Native, T::Native) -> Result<Option<T::Native>>,
    ) -> Result<PrimitiveArray<T>> {
        let mut builder = PrimitiveBuilder::<T>::with_capacity(rows);
        for row in 0..rows {
            let left = if self.constant[0] { 0 } else { row };
            let right = if self.constant[1] { 0 } else { row };
            if self.left.is_null(left) || self.right.is_null(right) {
                builder.append_null();
            } else {
                builder.append_option(operation(self.left.value(left), self.right.value(right))?);
            }
        }
        Ok(builder.finish())
    }
}

fn division_by_zero() -> Error {
    Error::data("division by zero").hint("NULLIF(divisor, 0) makes the result NULL instead")
}

fn whole<T>(operator: ArithmeticOperator, call: &Call<'_>) -> Result<ArrayRef>
where
    T: ArrowPrimitiveType,
    T::Native: ArrowNativeTypeOp,
{
    if operator == Modulo && call.arguments[0].data_type() != call.result.data_type() {
        return mixed_modulo(call);
    }
    let operands = Operands::<T>::of(call, call.result.data_type())?;
    let rows = call.rows;
    let checked =
        |operation: fn(T::Native, T::Native) -> T::Native| {
            operands.partial(rows, |left, right| {
                if right.is_zero() { Err(division_by_zero()) } else { Ok(Some(operation(left, right))) }
            })
        };
    Ok(Arc::new(match operator {
        Plus => operands.total(rows, |l, r| l.add_wrapping(r))?,
        Minus => operands.total(rows, |l, r| l.sub_wrapping(r))?,
        Multiply => operands.total(rows, |l, r| l.mul_wrapping(r))?,
        Divide => checked(|l, r| l.div_wrapping(r))?,
        Modulo => checked(|l, r| l.mod_wrapping(r))?,
        Negate => return Err(Error::bug("a sign with two operands")),
    }))
}

/// A remainder over two widths is computed in the wider one; it fits the divisor's type.
fn mixed_modulo(call: &Call<'_>) -> Result<ArrayRef> {
    let operands = Operands::<Int64Type>::of(call, &DataType::Int64)?;
    let wide = operands.partial(call.rows, |left, right| {
        if right == 0 { Err(division_by_zero()) } else { Ok(Some(left.wrapping_rem(right))) }
    })?;
    Ok(cast(&wide, call.result.data_type())?)
}

fn floating<T>(operator: ArithmeticOperator, call: &Call<'_>) -> Result<ArrayRef>
where
    T: ArrowPrimitiveType,
    T::Native: ArrowNativeTypeOp,
{
    let operands = Operands::<T>::of(call, call.result.data_type())?;
    let rows = call.rows;
    Ok(Arc::new(match operator {
        Plus => operands.total(rows, |l, r| l.add_wrapping(r))?,
        Minus => operands.total(rows, |l, r| l.sub_wrapping(r))?,
        Multiply => operands.total(rows, |l, r| l.mul_wrapping(r))?,
        Divide => operands.total(rows, |l, r| l.div_wrapping(r))?,
        _ => return Err(Error::bug("a remainder of FLOAT or DOUBLE")),
    }))
}

fn decimals(operator: ArithmeticOperator, call: &Call<'_>, precision: u8, scale: i32) -> Result<ArrayRef> {
    let unscaled = |index: usize| -> Result<(ArrayRef, i32)> {
        let array = &call.arguments[index];
        match array.data_type() {
            DataType::Decimal128(_, scale) => Ok((array.clone(), i32::from(*scale))),
            _ => Ok((cast(array, &DataType::Decimal128(19, 0))?, 0)),
        }
    };
    let ((left, left_scale), (right, right_scale)) = (unscaled(0)?, unscaled(1)?);
    let operands = Operands::<Decimal128Type> {
        left: left.as_primitive::<Decimal128Type>().clone(),
        right: right.as_primitive::<Decimal128Type>().clone(),
        constant: [call.constant[0], call.constant[1]],
    };
    let result = match operator {
        Plus => operands.partial(call.rows, |l, r| Ok(decimal::add(l, left_scale, r, right_scale, scale, precision))),
        Minus => operands.partial(call.rows, |l, r| Ok(decimal::add(l, left_scale, -r, right_scale, scale, precision))),
        Multiply => {
            operands.partial(call.rows, |l, r| Ok(decimal::multiply(l, r, left_scale + right_scale, scale, precision)))
        }
        Divide => operands.partial(call.rows, |l, r| match r {
            0 => Err(division_by_zero()),
            _ => Ok(decimal::divide(l, left_scale, r, right_scale, scale, precision)),
        }),
        Modulo => operands.partial(call.rows, |l, r| match r {
            0 => Err(division_by_zero()),
            _ => Ok(remainder(l, left_scale, r, right_scale, scale)),
        }),
        Negate => return Err(Error::bug("a sign with two operands")),
    }?;
    Ok(Arc::new(result.with_data_type(call.result.data_type().clone())))
}

fn remainder(left: i128, left_scale: i32, right: i128, right_scale: i32, scale: i32) -> Option<i128> {
    let common = left_scale.max(right_scale);
    let (left, right) = (decimal::rescale(left, left_scale, common)?, decimal::rescale(right, right_scale, common)?);
    decimal::rescale(left.checked_rem(right)?, common, scale)
}

fn negate(call: &Call<'_>) -> Result<ArrayRef> {
    let array = &call.arguments[0];
    fn unary<T>(array: &ArrayRef) -> ArrayRef
    where
        T: ArrowPrimitiveType,
        T::Native: ArrowNativeTypeOp,
    {
        let array = array.as_primitive::<T>();
        Arc::new(array.unary::<_, T>(|v| v.neg_wrapping()).with_data_type(array.data_type().clone()))
    }
    let result = match array.data_type() {
        DataType::Int8 => unary::<Int8Type>(array),
        DataType::Int16 => unary::<Int16Type>(array),
        DataType::Int32 => unary::<Int32Type>(array),
        DataType::Int64 => unary::<Int64Type>(array),
        DataType::Float32 => unary::<Float32Type>(array),
        DataType::Float64 => unary::<Float64Type>(array),
        DataType::Decimal128(..) => unary::<Decimal128Type>(array),
        _ => return temporal::negate(call),
    };
    Ok(result)
}
