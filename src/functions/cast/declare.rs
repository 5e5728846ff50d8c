//! A function that changes nothing but the declared type: what the planner puts around an expression whose type is
//! known more exactly than its Arrow type tells, such as a `CASE` that gives `VARCHAR(3)`.

use std::sync::Arc;

use arrow::datatypes::{DataType, FieldRef};
use datafusion_expr::{
    ColumnarValue, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};

use crate::error::Error;
use crate::functions::function::outward;
use crate::types::SqlType;

/// The function that declares its argument to be of type `to`; the Arrow types must be equal.
pub fn declare_function(to: &SqlType) -> Arc<ScalarUDF> {
    let signature = Signature::user_defined(Volatility::Immutable);
    Arc::new(ScalarUDF::new_from_impl(Declare { to: to.clone(), signature }))
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct Declare {
    to: SqlType,
    signature: Signature,
}

impl ScalarUDFImpl for Declare {
    fn name(&self) -> &str {
        "flink_declare"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn schema_name(&self, args: &[datafusion_expr::Expr]) -> datafusion_common::Result<String> {
        Ok(args.first().map(|inner| inner.schema_name().to_string()).unwrap_or_default())
    }

    fn coerce_types(&self, types: &[DataType]) -> datafusion_common::Result<Vec<DataType>> {
        Ok(types.to_vec())
    }

    fn return_type(&self, _: &[DataType]) -> datafusion_common::Result<DataType> {
        Ok(self.to.to_arrow())
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs<'_>) -> datafusion_common::Result<FieldRef> {
        Ok(Arc::new(self.to.to_field(self.name(), args.arg_fields.iter().any(|field| field.is_nullable()))))
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> datafusion_common::Result<ColumnarValue> {
        args.args.into_iter().next().ok_or_else(|| outward(Error::bug("a declaration of nothing")))
    }
}
