//! A batch of changes: Arrow columns and a kind per row.

use std::sync::Arc;

use arrow::array::{Array, BooleanArray, RecordBatch};
use arrow::compute::filter_record_batch;
use arrow::datatypes::SchemaRef;

use super::Kind;
use crate::error::{Error, Result};

/// The kinds of a batch's rows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Kinds {
    /// Every row is `+I`: the fast path, without a vector.
    AllInsert,
    /// One kind a row.
    Each(Arc<[Kind]>),
}

/// Rows and what each does to the table.
#[derive(Debug, Clone)]
pub struct ChangeBatch {
    rows: RecordBatch,
    kinds: Kinds,
}

impl ChangeBatch {
    /// Rows that all come (`+I`).
    pub fn inserts(rows: RecordBatch) -> ChangeBatch {
        ChangeBatch { rows, kinds: Kinds::AllInsert }
    }

    /// Rows with a kind each. Kinds that are all `+I` are folded into [`Kinds::AllInsert`].
    ///
    /// # Errors
    /// If there are not as many kinds as rows.
    pub fn new(rows: RecordBatch, kinds: Vec<Kind>) -> Result<ChangeBatch> {
        if rows.num_rows() != kinds.len() {
            return Err(Error::bug(format!("a batch of {} rows was given {} kinds", rows.num_rows(), kinds.len())));
        }
        let all_insert = kinds.iter().all(|kind| *kind == Kind::Insert);
        let kinds = if all_insert { Kinds::AllInsert } else { Kinds::Each(kinds.into()) };
        Ok(ChangeBatch { rows, kinds })
    }

    /// The same kinds over other columns (a projection).
    ///
    /// # Errors
    /// If the number of rows differs.
    pub fn with_rows(&self, rows: RecordBatch) -> Result<ChangeBatch> {
        if rows.num_rows() != self.rows.num_rows() {
            return Err(Error::bug(format!("{} rows replaced by {}", self.rows.num_rows(), rows.num_rows())));
        }
        Ok(ChangeBatch { rows, kinds: self.kinds.clone() })
    }

    /// The columns.
    pub fn rows(&self) -> &RecordBatch {
        &self.rows
    }

    /// The kinds.
    pub fn kinds(&self) -> &Kinds {
        &self.kinds
    }

    /// The kind of row `row`.
    #[inline]
    pub fn kind(&self, row: usize) -> Kind {
        match &self.kinds {
            Kinds::AllInsert => Kind::Insert,
            Kinds::Each(kinds) => kinds[row],
        }
    }

    /// Whether every row is `+I`.
    pub fn is_append_only(&self) -> bool {
        self.kinds == Kinds::AllInsert
    }

    /// Number of rows.
    pub fn len(&self) -> usize {
        self.rows.num_rows()
    }

    /// Whether there is no row.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The schema of the rows.
    pub fn schema(&self) -> SchemaRef {
        self.rows.schema()
    }

    /// Rows `from .. from + length`, without copying columns.
    #[must_use]
    pub fn slice(&self, from: usize, length: usize) -> ChangeBatch {
        let kinds = match &self.kinds {
            Kinds::AllInsert => Kinds::AllInsert,
            Kinds::Each(kinds) => Kinds::Each(kinds[from..from + length].into()),
        };
        ChangeBatch { rows: self.rows.slice(from, length), kinds }
    }

    /// The rows for which `mask` is true (NULL is not true).
    ///
    /// # Errors
    /// If `mask` has another length.
    pub fn filter(&self, mask: &BooleanArray) -> Result<ChangeBatch> {
        if mask.null_count() == 0 && mask.true_count() == mask.len() && mask.len() == self.len() {
            return Ok(self.clone());
        }
        let rows = filter_record_batch(&self.rows, mask)?;
        match &self.kinds {
            Kinds::AllInsert => Ok(ChangeBatch::inserts(rows)),
            Kinds::Each(kinds) => {
                let kept = kinds.iter().enumerate().filter(|(row, _)| mask.is_valid(*row) && mask.value(*row));
                ChangeBatch::new(rows, kept.map(|(_, kind)| *kind).collect())
            }
        }
    }
}
