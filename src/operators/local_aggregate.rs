//! The first of two phases of a `GROUP BY`: rows are added up where they are, so that one row a key goes on of each bundle,
//! and not every row.
//!
//! ```text
//! two subtasks            SUM(v): rows of one key      what goes on         the second phase
//! local, subtask 0        5  7  2                      [a, 14]
//! local, subtask 1        1  1                         [a, 2]               +I[a, 16]
//! ```
//!
//! A bundle goes on when it has as many rows as configured, when its first row is old enough, before a barrier and at the
//! end; so nothing is kept over a checkpoint. A watermark waits for the open bundle.

use std::sync::Arc;

use arrow::array::{RecordBatch, RecordBatchOptions};
use arrow::datatypes::SchemaRef;

use super::aggregate::GroupTable;
use super::{Operator, Output, Port, ProcessingTime, StateSize};
use crate::changelog::{ChangeBatch, Watermark};
use crate::error::{Error, Result};
use crate::types::{AggregateCall, MiniBatch};

/// The first phase of a grouping over rows that only come.
pub struct LocalAggregate {
    output: SchemaRef,
    groups: GroupTable,
    mini_batch: MiniBatch,
    /// The slots of the bundle's groups, in the order in which they came.
    order: Vec<u32>,
    rows: u64,
    since: Option<ProcessingTime>,
    waiting: Option<Watermark>,
    now: ProcessingTime,
}

impl LocalAggregate {
    /// Emits the columns `keys` of `input`, then the aggregates.
    ///
    /// # Errors
    /// If a key cannot be grouped by, or a function does not take its argument.
    pub fn new(
        input: &SchemaRef,
        output: SchemaRef,
        keys: &[usize],
        aggregates: &[AggregateCall],
        mini_batch: MiniBatch,
    ) -> Result<LocalAggregate> {
        if output.fields().len() != keys.len() + aggregates.len() {
            return Err(Error::bug("a local aggregate emits its keys and its aggregates"));
        }
        Ok(LocalAggregate {
            output,
            groups: GroupTable::new(input, keys, aggregates, true)?,
            mini_batch,
            order: Vec::new(),
            rows: 0,
            since: None,
            waiting: None,
            now: ProcessingTime::MIN,
        })
    }

    fn add(&mut self, batch: &ChangeBatch) -> Result<()> {
        self.groups.assign(batch.rows())?;
        self.groups.count(batch.kinds());
        let born = self.groups.slots.iter().zip(&self.groups.births).filter(|(_, birth)| **birth);
        self.order.extend(born.map(|(slot, _)| *slot));
        self.groups.update(batch.rows())?;
        self.rows += batch.len() as u64;
        self.since.get_or_insert(self.now);
        Ok(())
    }

    fn close_bundle(&mut self, out: &mut Output) -> Result<()> {
        if !self.order.is_empty() {
            let mut columns = self.groups.keys.take(&self.order)?;
            columns.extend(self.groups.evaluate(&self.order)?);
            let options = RecordBatchOptions::new().with_row_count(Some(self.order.len()));
            let rows = RecordBatch::try_new_with_options(Arc::clone(&self.output), columns, &options)?;
            out.changes(ChangeBatch::inserts(rows));
            self.order.drain(..).for_each(|slot| self.groups.remove(slot));
        }
        (self.rows, self.since) = (0, None);
        if let Some(mark) = self.waiting.take() {
            out.watermark(mark);
        }
        Ok(())
    }
}

impl Operator for LocalAggregate {
    fn on_changes(&mut self, _port: Port, batch: ChangeBatch, out: &mut Output) -> Result<()> {
        if !batch.is_append_only() {
            return Err(Error::bug("a local aggregate was given a row that goes"));
        }
        let mut from = 0;
        while from < batch.len() {
            let room = usize::try_from(self.mini_batch.size.max(1) - self.rows).unwrap_or(usize::MAX);
            let length = room.min(batch.len() - from);
            self.add(&batch.slice(from, length))?;
            from += length;
            if self.rows >= self.mini_batch.size {
                self.close_bundle(out)?;
            }
        }
        Ok(())
    }

    fn on_watermark(&mut self, mark: Watermark, out: &mut Output) -> Result<()> {
        if self.rows == 0 {
            out.watermark(mark);
            return Ok(());
        }
        self.waiting = Some(mark);
        if mark == Watermark::MAX { self.close_bundle(out) } else { Ok(()) }
    }

    fn on_clock(&mut self, now: ProcessingTime, out: &mut Output) -> Result<()> {
        self.now = now;
        let latency = i64::try_from(self.mini_batch.latency_ms).unwrap_or(i64::MAX);
        match self.since {
            Some(since) if now.saturating_sub(since) >= latency => self.close_bundle(out),
            _ => Ok(()),
        }
    }

    fn before_barrier(&mut self, out: &mut Output) -> Result<()> {
        self.close_bundle(out)
    }

    fn on_end(&mut self, _port: Port, out: &mut Output) -> Result<()> {
        self.close_bundle(out)
    }

    fn state_size(&self) -> Option<StateSize> {
        Some(self.groups.size())
    }

    fn shrink(&mut self) -> Result<()> {
        self.groups.shrink().map(drop)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::operators::testing::{call, changes, check, emitted, feed, schema};
    use crate::types::AggregateFunction;

    fn operator(size: u64) -> LocalAggregate {
        let calls = [call(AggregateFunction::Count, &[], "BIGINT"), call(AggregateFunction::Max, &[1], "BIGINT")];
        let output = schema("k TEXT, n BIGINT, m BIGINT");
        LocalAggregate::new(&schema("k TEXT, v BIGINT"), output, &[0], &calls, MiniBatch { size, latency_ms: 100 })
            .unwrap()
    }

    #[test]
    fn a_bundle_gives_one_row_a_key_in_the_order_in_which_they_came() {
        let rows = changes(&schema("k TEXT, v BIGINT"), "+I b 5\n+I a 1\n+I b 7\n+I a _\n+I c 2\n+I a 3");
        for batches in [1, 2, 6] {
            let (mut operator, mut out) = (operator(3), Output::default());
            check(&feed(&mut operator, &rows, batches, &mut out), "+I[b, 2, 7]\n+I[a, 1, 1]\n+I[a, 2, 3]\n+I[c, 1, 2]");
        }
    }

    #[test]
    fn time_barriers_and_the_end_close_a_bundle_and_watermarks_wait_for_it() {
        let rows = |text| changes(&schema("k TEXT, v BIGINT"), text);
        let (mut operator, mut out) = (operator(100), Output::default());
        operator.on_clock(0, &mut out).unwrap();
        check(&feed(&mut operator, &rows("+I a 1"), 9, &mut out), "");
        operator.on_watermark(Watermark(7), &mut out).unwrap();
        operator.on_clock(99, &mut out).unwrap();
        check(&emitted(&mut out), "");
        operator.on_clock(100, &mut out).unwrap();
        check(&emitted(&mut out), "+I[a, 1, 1]\nW 7");
        feed(&mut operator, &rows("+I a 2\n+I b _"), 9, &mut out);
        operator.before_barrier(&mut out).unwrap();
        check(&emitted(&mut out), "+I[a, 1, 2]\n+I[b, 1, NULL]");
        feed(&mut operator, &rows("+I a 3"), 9, &mut out);
        operator.on_watermark(Watermark::MAX, &mut out).unwrap();
        operator.on_end(0, &mut out).unwrap();
        check(&emitted(&mut out), "+I[a, 1, 3]\nW 9223372036854775807");
        assert_eq!(operator.state_size().unwrap().keys, 0);
    }
}
