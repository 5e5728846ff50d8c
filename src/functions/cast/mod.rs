//! CAST and TRY_CAST between all pairs of types that Flink allows.
//!
//! [`cast_function`] gives the function `flink_cast` or `flink_try_cast` for one target type. A cast of a column goes
//! by its kind: into text ([`print`]), out of text ([`read`]), between numbers ([`number`]), between points in time
//! ([`temporal`]), element by element ([`nested`]). What CAST cannot convert is an error that names the value; TRY_CAST
//! makes the whole outer value NULL. A number that a DECIMAL cannot hold is NULL in both, as in Flink.

mod allowed;
mod declare;
mod nested;
mod number;
mod print;
mod read;
mod temporal;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, BooleanArray, new_null_array};
use arrow::compute::nullif;
use arrow::datatypes::{DataType, Field, FieldRef};
use datafusion_expr::{
    ColumnarValue, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};

pub use declare::declare_function;
pub(super) use number::decimal_to_double;
pub(super) use print::printer;

use super::function::{Call, FunctionContext, invoke, outward};
use crate::error::{Error, Result};
use crate::types::{SqlType, TimeZone};

/// The function that casts a column like `from` into `to`, or nothing where Arrow's own cast gives exactly the same
/// value and type.
///
/// # Errors
/// Kind `Sql` if Flink has no such cast; the message names both types.
pub fn cast_function(
    from: &Field,
    to: &SqlType,
    try_cast: bool,
    context: &FunctionContext,
) -> Result<Option<Arc<ScalarUDF>>> {
    let source = SqlType::of_field(from);
    allowed::check(&source, to)?;
    // Any cast that changes the type is ours: the library's own would leave no trace in an expression's name, and two
    // aggregates that differ only in a cast would have one name.
    if source == *to && !try_cast && to.to_field("", true).metadata().is_empty() {
        return Ok(None);
    }
    Ok(Some(cast_into(to, try_cast, context)))
}

/// The function that casts into `to`, also where that changes nothing.
pub(super) fn cast_into(to: &SqlType, try_cast: bool, context: &FunctionContext) -> Arc<ScalarUDF> {
    let name = if try_cast { "flink_try_cast" } else { "flink_cast" };
    Arc::new(ScalarUDF::new_from_impl(Cast {
        name,
        to: to.clone(),
        try_cast,
        zone: context.zone,
        signature: Signature::user_defined(Volatility::Immutable),
    }))
}

/// A cast into one type.
#[derive(Debug, PartialEq, Eq, Hash)]
struct Cast {
    name: &'static str,
    to: SqlType,
    try_cast: bool,
    zone: TimeZone,
    signature: Signature,
}

impl ScalarUDFImpl for Cast {
    fn name(&self) -> &str {
        self.name
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn schema_name(&self, args: &[datafusion_expr::Expr]) -> datafusion_common::Result<String> {
        let word = if self.try_cast { "TRY_CAST" } else { "CAST" };
        let inner: Vec<String> = args.iter().map(|a| a.schema_name().to_string()).collect();
        Ok(format!("{word}({} AS {})", inner.join(", "), self.to))
    }

    fn coerce_types(&self, types: &[DataType]) -> datafusion_common::Result<Vec<DataType>> {
        Ok(types.to_vec())
    }

    fn return_type(&self, _: &[DataType]) -> datafusion_common::Result<DataType> {
        Ok(self.to.to_arrow())
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs<'_>) -> datafusion_common::Result<FieldRef> {
        let nullable = self.try_cast || args.arg_fields.iter().any(|f| f.is_nullable());
        Ok(Arc::new(self.to.to_field(self.name, nullable)))
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> datafusion_common::Result<ColumnarValue> {
        let wanted: Vec<DataType> = args.args.iter().map(ColumnarValue::data_type).collect();
        let [from] = args.arg_fields.as_slice() else {
            return Err(outward(Error::bug(format!("a cast of {} values", args.arg_fields.len()))));
        };
        let from = SqlType::of_field(from);
        let conversion = Conversion { zone: self.zone, try_cast: self.try_cast };
        invoke("CAST", Volatility::Immutable, args, &wanted, &FunctionContext::utc(), |call: &Call<'_>| {
            conversion.whole(&call.arguments[0], &from, &self.to)
        })
    }
}

/// Casts a column as `CAST` does, for the folder's other files.
pub(super) fn cast_column(array: &ArrayRef, from: &SqlType, to: &SqlType, zone: TimeZone) -> Result<ArrayRef> {
    Conversion { zone, try_cast: false }.whole(array, from, to)
}

/// How values are converted.
#[derive(Clone, Copy)]
struct Conversion {
    zone: TimeZone,
    try_cast: bool,
}

/// The rows of a column that could not be converted, under TRY_CAST.
type Failures = Vec<usize>;

impl Conversion {
    fn whole(self, array: &ArrayRef, from: &SqlType, to: &SqlType) -> Result<ArrayRef> {
        let mut failures = Failures::new();
        let result = self.column(array, from, to, &mut failures)?;
        if failures.is_empty() {
            return Ok(result);
        }
        let mut failed = vec![false; result.len()];
        failures.iter().for_each(|row| failed[*row] = true);
        Ok(nullif(&result, &BooleanArray::from(failed))?)
    }

    /// Converts a column; rows that fail are NULL in the result and listed.
    fn column(self, array: &ArrayRef, from: &SqlType, to: &SqlType, failures: &mut Failures) -> Result<ArrayRef> {
        use SqlType::*;
        if *array.data_type() == DataType::Null {
            return Ok(new_null_array(&to.to_arrow(), array.len()));
        }
        match (from, to) {
            (_, Char(_) | Varchar(_)) => print::into_text(array, from, to, self.zone),
            (Char(_) | Varchar(_), _) => read::out_of_text(array, to, self, failures),
            (Boolean, Boolean) | (Date, Date) => Ok(array.clone()),
            (number, _) if (number.is_numeric() || *number == Boolean) && (to.is_numeric() || *to == Boolean) => {
                number::convert(array, to)
            }
            (Binary(_) | Varbinary(_), Binary(_) | Varbinary(_)) => Ok(number::fit_bytes(array, to)),
            (Date | Time(_) | Timestamp(_) | TimestampLtz(_), Date | Time(_) | Timestamp(_) | TimestampLtz(_)) => {
                temporal::convert(array, from, to, self.zone)
            }
            (Array(_) | Map(..) | Multiset(_) | Row(_), _) => nested::convert(array, from, to, self, failures),
            (IntervalYearMonth, IntervalYearMonth) | (IntervalDayTime, IntervalDayTime) => Ok(array.clone()),
            (Bitmap, Bitmap) | (Variant, Variant) => Ok(array.clone()),
            _ => Err(Error::bug(format!("a cast from {from} to {to} went through planning"))),
        }
    }

    /// Notes a value that cannot be converted, or fails.
    fn fail(self, row: usize, failures: &mut Failures, error: impl FnOnce() -> Error) -> Result<()> {
        if !self.try_cast {
            return Err(error());
        }
        failures.push(row);
        Ok(())
    }
}
