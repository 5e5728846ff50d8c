//! The one notation for changes: `+I[Mary, 1]`, in the shell, in tests, in docs, in failures.

use super::{ChangeBatch, Kind};
use crate::error::Result;
use crate::types::RowFormat;

/// `+I[Mary, 1]`.
pub fn line(kind: Kind, cells: &[String]) -> String {
    format!("{kind}[{}]", cells.join(", "))
}

/// One line a change, in order.
///
/// # Errors
/// If a column's type cannot be printed.
pub fn lines(batch: &ChangeBatch, format: &RowFormat) -> Result<Vec<String>> {
    (0..batch.len()).map(|row| Ok(line(batch.kind(row), &format.cells(batch.rows(), row)?))).collect()
}
