//! The source of constant rows.

use arrow::array::RecordBatch;
use futures::future::BoxFuture;

use crate::changelog::ChangeBatch;
use crate::connectors::{SourceEvent, SourceReader, SplitPosition};
use crate::error::Result;

/// The name of its only split.
const SPLIT: &str = "values";

/// Delivers its rows once, then ends; after a restart only if they had not been delivered.
pub struct ValuesReader {
    rows: Option<RecordBatch>,
}

impl ValuesReader {
    /// Reads `rows`, unless `restored` says that they were read before.
    pub fn new(rows: RecordBatch, restored: Option<&[SplitPosition]>) -> ValuesReader {
        let read = restored.into_iter().flatten().any(|at| at.split == SPLIT && at.position == serde_json::json!(true));
        ValuesReader { rows: Some(rows).filter(|_| !read) }
    }
}

impl SourceReader for ValuesReader {
    fn next(&mut self) -> BoxFuture<'_, Result<SourceEvent>> {
        Box::pin(async {
            Ok(match self.rows.take() {
                Some(rows) if rows.num_rows() > 0 => SourceEvent::Changes(ChangeBatch::inserts(rows)),
                _ => SourceEvent::End,
            })
        })
    }

    fn positions(&self) -> Vec<SplitPosition> {
        vec![SplitPosition { split: SPLIT.to_owned(), position: serde_json::json!(self.rows.is_none()) }]
    }
}
