//! Collects what a Top-N tells, as rows and ranks, and makes a batch of it.

use std::sync::Arc;

use arrow::array::{ArrayRef, Int64Array, RecordBatch, RecordBatchOptions};
use arrow::datatypes::SchemaRef;

use crate::changelog::{ChangeBatch, Kind};
use crate::error::Result;
use crate::state::{Row, SortedRows};

/// The changes told so far; those of ranks before the first wanted one are passed over.
pub(in crate::operators) struct RankChanges {
    first: u64,
    with_before: bool,
    kinds: Vec<Kind>,
    rows: Vec<Row>,
    ranks: Vec<i64>,
}

impl RankChanges {
    /// Nothing told yet.
    pub fn new(first: u64, with_before: bool) -> RankChanges {
        RankChanges { first, with_before, kinds: Vec::new(), rows: Vec::new(), ranks: Vec::new() }
    }

    /// A row comes at a rank.
    pub fn insert(&mut self, row: &Row, rank: u64) {
        self.push(Kind::Insert, row, rank);
    }

    /// The row at a rank leaves.
    pub fn delete(&mut self, row: &Row, rank: u64) {
        self.push(Kind::Delete, row, rank);
    }

    /// The row at a rank is replaced.
    pub fn update(&mut self, before: &Row, after: &Row, rank: u64) {
        self.push(Kind::UpdateBefore, before, rank);
        self.push(Kind::UpdateAfter, after, rank);
    }

    /// A row changes its rank.
    pub fn rerank(&mut self, row: &Row, before: u64, after: u64) {
        self.push(Kind::UpdateBefore, row, before);
        self.push(Kind::UpdateAfter, row, after);
    }

    /// `gone` stood at the last of the ranks from `rank` on where `now` stand: its new image has overtaken the others.
    /// All old images come before all new ones, so that no row is in two places in between.
    pub fn rotate(&mut self, now: &[&Row], gone: &Row, rank: u64) {
        let before = now.iter().skip(1).copied().chain([gone]);
        for (rank, row) in (rank..).zip(before) {
            self.push(Kind::UpdateBefore, row, rank);
        }
        for (rank, row) in (rank..).zip(now) {
            self.push(Kind::UpdateAfter, row, rank);
        }
    }

    fn push(&mut self, kind: Kind, row: &Row, rank: u64) {
        if rank < self.first || (kind == Kind::UpdateBefore && !self.with_before) {
            return;
        }
        self.kinds.push(kind);
        self.rows.push(Arc::clone(row));
        self.ranks.push(i64::try_from(rank).unwrap_or(i64::MAX));
    }

    /// The changes as columns, with the rank behind them if `schema` has it.
    ///
    /// # Errors
    /// Only by a bug.
    pub fn emit(self, rows: &SortedRows, schema: &SchemaRef) -> Result<ChangeBatch> {
        let mut columns = rows.decode(self.rows.iter())?;
        if columns.len() < schema.fields().len() {
            let ranks: ArrayRef = Arc::new(Int64Array::from(self.ranks));
            columns.push(ranks);
        }
        let options = RecordBatchOptions::new().with_row_count(Some(self.kinds.len()));
        let rows = RecordBatch::try_new_with_options(Arc::clone(schema), columns, &options)?;
        ChangeBatch::new(rows, self.kinds)
    }
}
