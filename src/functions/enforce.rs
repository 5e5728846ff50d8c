//! What a sink's `NOT NULL` does to rows: the planner puts [`not_null`] around a value that may be NULL.

use std::sync::Arc;

use arrow::datatypes::{DataType, FieldRef};
use datafusion_expr::{
    ColumnarValue, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};

use super::function::outward;
use crate::error::Error;

/// The name of the function that [`not_null`] gives.
pub const NOT_NULL: &str = "flink_not_null";

/// A function that gives its argument, and fails if that is NULL; `column` is the sink's, for the message.
pub fn not_null(column: &str) -> Arc<ScalarUDF> {
    let signature = Signature::any(1, Volatility::Immutable);
    Arc::new(ScalarUDF::new_from_impl(NotNull { column: column.to_string(), signature }))
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct NotNull {
    column: String,
    signature: Signature,
}

impl NotNull {
    fn refused(&self) -> Error {
        Error::data(format!("column '{}' is NOT NULL, and the query gives it NULL", self.column))
            .hint("filter such rows out, or drop them silently: SET 'table.exec.sink.not-null-enforcer' = 'DROP'")
    }
}

impl ScalarUDFImpl for NotNull {
    fn name(&self) -> &str {
        NOT_NULL
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, arguments: &[DataType]) -> datafusion_common::Result<DataType> {
        arguments.first().cloned().ok_or_else(|| outward(Error::bug("NOT NULL of nothing")))
    }

    fn return_field_from_args(&self, arguments: ReturnFieldArgs) -> datafusion_common::Result<FieldRef> {
        let field = arguments.arg_fields.first().ok_or_else(|| outward(Error::bug("NOT NULL of nothing")))?;
        Ok(Arc::new(field.as_ref().clone().with_nullable(false)))
    }

    fn invoke_with_args(&self, arguments: ScalarFunctionArgs) -> datafusion_common::Result<ColumnarValue> {
        let Some(value) = arguments.args.into_iter().next() else {
            return Err(outward(Error::bug("NOT NULL of nothing")));
        };
        let holds_null = match &value {
            ColumnarValue::Array(array) => array.logical_null_count() > 0,
            ColumnarValue::Scalar(scalar) => scalar.is_null(),
        };
        if holds_null { Err(outward(self.refused())) } else { Ok(value) }
    }
}
