//! `=`, `<>`, `<`, `<=`, `>`, `>=` where Arrow's own kernels order values differently: FLOAT and DOUBLE compare as
//! numbers (NaN equals nothing, the two zeros are equal), collections and rows are equal element by element.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, BooleanArray, BooleanBufferBuilder, MapArray};
use arrow::buffer::{BooleanBuffer, NullBuffer};
use arrow::datatypes::{ArrowPrimitiveType, DataType, Field, FieldRef, Float32Type, Float64Type};
use arrow::row::Rows;
use datafusion_expr::{
    ColumnarValue, Operator, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};

use super::collection::comparable;
use super::function::{Call, FunctionContext, invoke, outward};
use crate::error::{Error, Result};

/// The function that compares two values of one type as Flink does; nothing where DataFusion's operator does just that.
pub fn comparison(operator: Operator, data_type: &DataType) -> Option<Arc<ScalarUDF>> {
    let own = data_type.is_floating() || data_type.is_nested();
    own.then(|| {
        let signature = Signature::user_defined(Volatility::Immutable);
        Arc::new(ScalarUDF::new_from_impl(Comparison { operator, signature }))
    })
}

/// A comparison as a function.
#[derive(Debug, PartialEq, Eq, Hash)]
struct Comparison {
    operator: Operator,
    signature: Signature,
}

impl ScalarUDFImpl for Comparison {
    fn name(&self) -> &str {
        "flink_compare"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn schema_name(&self, args: &[datafusion_expr::Expr]) -> datafusion_common::Result<String> {
        let sides: Vec<String> = args.iter().map(|side| side.schema_name().to_string()).collect();
        Ok(sides.join(&format!(" {} ", self.operator)))
    }

    fn coerce_types(&self, types: &[DataType]) -> datafusion_common::Result<Vec<DataType>> {
        Ok(types.to_vec())
    }

    fn return_type(&self, _: &[DataType]) -> datafusion_common::Result<DataType> {
        Ok(DataType::Boolean)
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs<'_>) -> datafusion_common::Result<FieldRef> {
        let nullable = args.arg_fields.iter().any(|field| field.is_nullable());
        Ok(Arc::new(Field::new(self.name(), DataType::Boolean, nullable)))
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> datafusion_common::Result<ColumnarValue> {
        let wanted: Vec<DataType> = args.args.iter().map(ColumnarValue::data_type).collect();
        if wanted.len() != 2 {
            return Err(outward(Error::bug(format!("a comparison of {} values", wanted.len()))));
        }
        let name = self.operator.to_string();
        invoke(&name, Volatility::Immutable, args, &wanted, &FunctionContext::utc(), |call| {
            compare(self.operator, call)
        })
    }
}

fn compare(operator: Operator, call: &Call<'_>) -> Result<ArrayRef> {
    match call.arguments[0].data_type() {
        DataType::Float32 => numbers::<Float32Type>(operator, call),
        DataType::Float64 => numbers::<Float64Type>(operator, call),
        _ => nested(operator, call),
    }
}

/// The operator is chosen before the loop.
fn numbers<T: ArrowPrimitiveType>(operator: Operator, call: &Call<'_>) -> Result<ArrayRef>
where
    T::Native: PartialOrd,
{
    match operator {
        Operator::Eq => each::<T>(call, |left, right| left == right),
        Operator::NotEq => each::<T>(call, |left, right| left != right),
        Operator::Lt => each::<T>(call, |left, right| left < right),
        Operator::LtEq => each::<T>(call, |left, right| left <= right),
        Operator::Gt => each::<T>(call, |left, right| left > right),
        Operator::GtEq => each::<T>(call, |left, right| left >= right),
        other => Err(Error::bug(format!("'{other}' compares nothing"))),
    }
}

fn each<T: ArrowPrimitiveType>(call: &Call<'_>, test: impl Fn(T::Native, T::Native) -> bool) -> Result<ArrayRef> {
    let (left, right) = (call.arguments[0].as_primitive::<T>(), call.arguments[1].as_primitive::<T>());
    let (left_step, right_step) = (usize::from(!call.constant[0]), usize::from(!call.constant[1]));
    let mut answers = BooleanBufferBuilder::new(call.rows);
    for row in 0..call.rows {
        answers.append(test(left.value(row * left_step), right.value(row * right_step)));
    }
    let nulls = NullBuffer::union(call.column(0)?.nulls(), call.column(1)?.nulls());
    Ok(Arc::new(BooleanArray::new(answers.finish(), nulls)))
}

/// Equality of collections and rows, by their encoding: equal values have equal bytes.
fn nested(operator: Operator, call: &Call<'_>) -> Result<ArrayRef> {
    let (left, right) = (call.column(0)?, call.column(1)?);
    let same = match (left.as_map_opt(), right.as_map_opt()) {
        (Some(left), Some(right)) => same_maps(left, right)?,
        _ => {
            let rows = comparable(&[&left, &right])?;
            let [left_rows, right_rows] = rows.as_slice() else { return Err(Error::bug("a comparison lost a side")) };
            (0..call.rows).map(|row| left_rows.row(row) == right_rows.row(row)).collect()
        }
    };
    let answers = if matches!(operator, Operator::Eq) { same } else { !&same };
    let nulls = NullBuffer::union(left.nulls(), right.nulls());
    Ok(Arc::new(BooleanArray::new(answers, nulls)))
}

/// Maps are equal if they have the same entries, in whatever order.
fn same_maps(left: &MapArray, right: &MapArray) -> Result<BooleanBuffer> {
    let keys = comparable(&[left.keys(), right.keys()])?;
    let values = comparable(&[left.values(), right.values()])?;
    let ([left_keys, right_keys], [left_values, right_values]) = (keys.as_slice(), values.as_slice()) else {
        return Err(Error::bug("a comparison lost a side"));
    };
    let entries = |map: &MapArray, row: usize, keys: &Rows, order: &mut Vec<usize>| {
        order.clear();
        order.extend(map.value_offsets()[row] as usize..map.value_offsets()[row + 1] as usize);
        order.sort_unstable_by(|one, other| keys.row(*one).cmp(&keys.row(*other)));
    };
    let (mut left_order, mut right_order) = (Vec::new(), Vec::new());
    let mut same = BooleanBufferBuilder::new(left.len());
    for row in 0..left.len() {
        entries(left, row, left_keys, &mut left_order);
        entries(right, row, right_keys, &mut right_order);
        let equal = |(one, other): (&usize, &usize)| {
            left_keys.row(*one) == right_keys.row(*other) && left_values.row(*one) == right_values.row(*other)
        };
        same.append(left_order.len() == right_order.len() && left_order.iter().zip(&right_order).all(equal));
    }
    Ok(same.finish())
}
