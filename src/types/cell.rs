//! How a cell prints: Flink's SQL client's form.

use arrow::array::{Array, RecordBatch};
use arrow::datatypes::{Field, Schema};

use crate::error::Result;

/// Prints the cells of one column.
pub struct CellFormat {}

/// Prints whole rows.
pub struct RowFormat {}

impl CellFormat {
    /// A format for columns like `field`; instants (`TIMESTAMP_LTZ`) are shown in `zone`.
    pub fn new(_field: &Field, _zone: chrono_tz::Tz) -> CellFormat {
        CellFormat {}
    }

    /// Appends the cell's text: NULL as `<NULL>`.
    ///
    /// # Errors
    /// If the column's type cannot be printed.
    pub fn write(&self, _column: &dyn Array, _row: usize, _to: &mut String) -> Result<()> {
        unimplemented!()
    }
}

impl RowFormat {
    /// A format for rows of this schema.
    pub fn new(_schema: &Schema, _zone: chrono_tz::Tz) -> RowFormat {
        RowFormat {}
    }

    /// The texts of a row's cells.
    ///
    /// # Errors
    /// If a column's type cannot be printed.
    pub fn cells(&self, _rows: &RecordBatch, _row: usize) -> Result<Vec<String>> {
        unimplemented!()
    }
}
