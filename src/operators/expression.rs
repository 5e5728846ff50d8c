//! Compiled expressions over a batch, with errors in our words.

use std::sync::Arc;

use arrow::array::{ArrayRef, RecordBatch};
use datafusion_common::DataFusionError;
use datafusion_physical_expr::PhysicalExpr;

use crate::error::{Error, Result};

/// The expression's value for each row.
///
/// # Errors
/// If it fails on the data.
pub(super) fn evaluate(expression: &Arc<dyn PhysicalExpr>, rows: &RecordBatch) -> Result<ArrayRef> {
    let value = expression.evaluate(rows).map_err(explain)?;
    value.into_array(rows.num_rows()).map_err(explain)
}

/// An error of an expression as ours: one of our own functions comes back as it was, the rest fails on its data.
fn explain(error: DataFusionError) -> Error {
    match error {
        DataFusionError::ArrowError(error, _) => match *error {
            arrow::error::ArrowError::ExternalError(inner) => external(inner),
            other => Error::from(other),
        },
        DataFusionError::External(inner) => external(inner),
        DataFusionError::Context(_, inner) => explain(*inner),
        DataFusionError::Execution(message) => Error::data(message),
        DataFusionError::Internal(message) => Error::bug(message),
        other => Error::data(other.strip_backtrace()),
    }
}

fn external(inner: Box<dyn std::error::Error + Send + Sync>) -> Error {
    match inner.downcast::<Error>() {
        Ok(own) => *own,
        Err(other) => match other.downcast::<DataFusionError>() {
            Ok(error) => explain(*error),
            Err(other) => Error::data(other.to_string()),
        },
    }
}
