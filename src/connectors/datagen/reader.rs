//! One subtask of `datagen`: makes batches at the pace asked for.

use std::time::Duration;

use arrow::array::{RecordBatch, RecordBatchOptions};
use arrow::datatypes::SchemaRef;
use futures::FutureExt;
use futures::future::BoxFuture;
use tokio::time::Instant;

use super::generate::Generator;
use crate::changelog::ChangeBatch;
use crate::connectors::{SourceEvent, SourceReader, SplitPosition};
use crate::error::{Error, Result};
use crate::limits::BATCH_ROWS;

/// The rows `index, index + of, index + 2·of, …`, of which `made` are made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Split {
    pub index: u64,
    pub of: u64,
    pub made: u64,
}

impl Split {
    /// # Errors
    /// If the position is not one this connector has written.
    pub(super) fn restore(saved: &SplitPosition) -> Result<Split> {
        let read = || {
            let (index, of) = saved.split.split_once('/')?;
            let (index, of) = (index.parse().ok()?, of.parse().ok().filter(|of| *of > 0)?);
            Some(Split { index, of, made: saved.position["rows"].as_u64()? })
        };
        read()
            .ok_or_else(|| Error::state(format!("the checkpoint's position of split '{}' cannot be read", saved.split)))
    }

    /// Rows of this split in a table of `total`.
    fn length(&self, total: u64) -> u64 {
        (total + self.of - 1).saturating_sub(self.index) / self.of
    }
}

/// Makes rows.
pub(super) struct DatagenReader {
    schema: SchemaRef,
    generators: Vec<Generator>,
    splits: Vec<Split>,
    /// Rows a second of this subtask.
    rate: Option<f64>,
    total: Option<u64>,
    /// When the pace began, and the rows made since.
    began: Option<(Instant, u64)>,
    /// The split whose turn it is.
    turn: usize,
}

impl DatagenReader {
    pub(super) fn new(
        schema: SchemaRef,
        generators: Vec<Generator>,
        splits: Vec<Split>,
        rate: Option<f64>,
        total: Option<u64>,
    ) -> DatagenReader {
        let share: f64 = splits.iter().map(|split| 1.0 / split.of as f64).sum();
        DatagenReader { schema, generators, splits, rate: rate.map(|rate| rate * share), total, began: None, turn: 0 }
    }

    async fn make(&mut self) -> Result<SourceEvent> {
        let Some((turn, left)) = self.next_split() else { return Ok(SourceEvent::End) };
        let mut count = left.min(BATCH_ROWS as u64);
        if let Some(rate) = self.rate {
            // Ten batches a second, or a row at a time if the pace is slower than that.
            count = count.min(((rate / 10.0) as u64).max(1));
            let (began, made) = *self.began.get_or_insert_with(|| (Instant::now(), 0));
            tokio::time::sleep_until(began + Duration::from_secs_f64(made as f64 / rate)).await;
        }
        let split = &mut self.splits[turn];
        let (first, step) = (split.index + split.made * split.of, split.of);
        let rows: Vec<u64> = (0..count).map(|row| first + row * step).collect();
        let now = chrono::Utc::now();
        let columns =
            self.generators.iter().map(|generator| generator.column(&rows, now)).collect::<Result<Vec<_>>>()?;
        let options = RecordBatchOptions::new().with_row_count(Some(rows.len()));
        let batch = RecordBatch::try_new_with_options(self.schema.clone(), columns, &options)?;
        split.made += count;
        self.turn = turn + 1;
        if let Some((_, made)) = &mut self.began {
            *made += count;
        }
        Ok(SourceEvent::Changes(ChangeBatch::inserts(batch)))
    }

    /// The next split that has rows left, and how many.
    fn next_split(&self) -> Option<(usize, u64)> {
        let count = self.splits.len();
        (0..count).map(|step| (self.turn + step) % count).find_map(|index| {
            let split = &self.splits[index];
            let left = self.total.map_or(u64::MAX, |total| split.length(total).saturating_sub(split.made));
            (left > 0).then_some((index, left))
        })
    }
}

impl SourceReader for DatagenReader {
    fn next(&mut self) -> BoxFuture<'_, Result<SourceEvent>> {
        self.make().boxed()
    }

    fn positions(&self) -> Vec<SplitPosition> {
        let position = |split: &Split| SplitPosition {
            split: format!("{}/{}", split.index, split.of),
            position: serde_json::json!({ "rows": split.made }),
        };
        self.splits.iter().map(position).collect()
    }
}
