//! `GROUP BY` over a changelog.
//!
//! Two ways to emit, over the same groups:
//!
//! * every change: each row of the input that changes its group's result gives `+I`, `-U` and `+U`, or `-D`, at once;
//! * net change: rows are gathered in a bundle, and when it closes each touched group gives at most one change, in the
//!   order in which the groups were first touched. A group born and gone within a bundle never shows.
//!
//! A bundle closes when it has as many rows as configured, when its first row is old enough, before a barrier, and at
//! the end. A watermark waits for the open bundle: the rows behind it in the bundle are not late for anybody.

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;

use super::aggregate::{Action, GroupTable};
use super::images::Images;
use super::{Operator, Output, Port, ProcessingTime};
use crate::changelog::{ChangeBatch, CheckpointId, Watermark};
use crate::error::{Error, Result};
use crate::state::{KeyGroupRange, Restored, Snapshot};
use crate::types::{AggregateCall, MiniBatch};

/// Rows of deltas after which a table is written anew, beside twice its own size.
const DELTA_ROWS: usize = 100_000;

/// What a [`GroupAggregate`] computes.
pub struct GroupAggregateParameters {
    /// The columns that come.
    pub input: SchemaRef,
    /// The columns emitted: keys, then aggregates.
    pub output: SchemaRef,
    /// Key columns of the input; none: one group.
    pub keys: Vec<usize>,
    /// What is computed.
    pub aggregates: Vec<AggregateCall>,
    /// Whether only `+I` comes.
    pub append_only_input: bool,
    /// Whether `-U` is emitted.
    pub emit_update_before: bool,
    /// Net changes per bundle, instead of every change.
    pub mini_batch: Option<MiniBatch>,
    /// Groups not written for so many milliseconds of processing time are forgotten; 0: never.
    pub ttl_ms: u64,
    /// The key groups of this subtask.
    pub key_groups: KeyGroupRange,
}

/// The bundle that is open.
#[derive(Default)]
struct Bundle {
    rows: u64,
    /// Slots in the order in which they were first touched, and whether their group existed.
    touched: Vec<u32>,
    existed: Vec<bool>,
    /// By slot: whether it stands in `touched`.
    marks: Vec<bool>,
    since: Option<ProcessingTime>,
    waiting: Option<Watermark>,
}

/// `GROUP BY` over a changelog.
pub struct GroupAggregate {
    output: SchemaRef,
    table: GroupTable,
    append_only_input: bool,
    emit_update_before: bool,
    mini_batch: Option<MiniBatch>,
    bundle: Bundle,
    ttl_ms: i64,
    now: ProcessingTime,
    next_expiry: ProcessingTime,
    saved: bool,
    delta_rows: usize,
}

impl GroupAggregate {
    /// An operator without groups.
    ///
    /// # Errors
    /// If a key cannot be grouped by, or a function does not take its argument.
    pub fn new(parameters: GroupAggregateParameters) -> Result<GroupAggregate> {
        let GroupAggregateParameters { input, output, keys, aggregates, .. } = parameters;
        if output.fields().len() != keys.len() + aggregates.len() {
            return Err(Error::bug("a group aggregate emits its keys and its aggregates"));
        }
        let table =
            GroupTable::new(&input, &keys, &aggregates, parameters.append_only_input, parameters.ttl_ms > 0)?;
        Ok(GroupAggregate {
            output,
            table,
            append_only_input: parameters.append_only_input,
            emit_update_before: parameters.emit_update_before,
            mini_batch: parameters.mini_batch,
            bundle: Bundle::default(),
            ttl_ms: i64::try_from(parameters.ttl_ms).unwrap_or(i64::MAX),
            now: ProcessingTime::MIN,
            next_expiry: ProcessingTime::MIN,
            saved: false,
            delta_rows: 0,
        })
    }

    fn every_change(&mut self, batch: &ChangeBatch, out: &mut Output) -> Result<()> {
        let rows = batch.rows();
        self.assign(rows)?;
        self.table.count(batch.kinds());
        let mut changed = vec![false; rows.num_rows()];
        let values = self.table.update_each(rows, &mut changed)?;
        let mut images = Images::with_capacity(rows.num_rows());
        for (row, changed) in changed.iter().enumerate() {
            let birth = self.table.births[row];
            match self.table.action(row) {
                Action::Skip => {}
                Action::Clear => images.delete(row),
                Action::Add | Action::Retract if birth => images.insert(row),
                // With a time to live Flink emits even an equal row, so that users downstream live on.
                Action::Add | Action::Retract => {
                    if *changed || self.ttl_ms > 0 {
                        images.update(row, self.emit_update_before);
                    }
                }
            }
        }
        out.changes(images.emit(&self.output, &self.table.key_arrays(rows), &values)?);
        self.table.remove_empty();
        Ok(())
    }

    /// Finds the groups of the rows; those that have expired start afresh.
    fn assign(&mut self, rows: &RecordBatch) -> Result<()> {
        self.table.assign(rows)?;
        if self.ttl_ms > 0 {
            for row in 0..self.table.slots.len() {
                let slot = self.table.slots[row];
                if self.is_expired(slot) && !self.bundle.marks.get(slot as usize).is_some_and(|mark| *mark) {
                    self.table.clear(slot);
                }
                self.table.written[slot as usize] = self.now;
            }
        }
        Ok(())
    }

    fn is_expired(&self, slot: u32) -> bool {
        let slot = slot as usize;
        self.table.counts[slot] > 0 && self.table.written[slot].saturating_add(self.ttl_ms) <= self.now
    }

    fn bundle_rows(&mut self, batch: &ChangeBatch) -> Result<()> {
        let rows = batch.rows();
        self.assign(rows)?;
        let Bundle { touched, existed, marks, .. } = &mut self.bundle;
        marks.resize(self.table.counts.len().max(marks.len()), false);
        let known = touched.len();
        for slot in &self.table.slots {
            let mark = &mut marks[*slot as usize];
            if !*mark {
                *mark = true;
                touched.push(*slot);
                existed.push(self.table.counts[*slot as usize] > 0);
            }
        }
        self.table.remember(&self.bundle.touched[known..]);
        self.table.count(batch.kinds());
        self.table.update(rows)?;
        self.bundle.rows += rows.num_rows() as u64;
        self.bundle.since.get_or_insert(self.now);
        Ok(())
    }

    fn close_bundle(&mut self, out: &mut Output) -> Result<()> {
        let touched = std::mem::take(&mut self.bundle.touched);
        if !touched.is_empty() {
            let mut changed = vec![false; touched.len()];
            let values = self.table.images(&touched, &mut changed)?;
            let keys = self.table.keys.take(&touched)?;
            let mut images = Images::with_capacity(touched.len());
            for (place, slot) in touched.iter().enumerate() {
                self.bundle.marks[*slot as usize] = false;
                match (self.bundle.existed[place], self.table.counts[*slot as usize] > 0) {
                    (false, true) => images.insert(place),
                    (true, true) if changed[place] || self.ttl_ms > 0 => images.update(place, self.emit_update_before),
                    (true, true) => {}
                    (true, false) => images.delete(place),
                    (false, false) => {}
                }
            }
            out.changes(images.emit(&self.output, &keys, &values)?);
            for slot in &touched {
                if self.table.counts[*slot as usize] == 0 {
                    self.table.keys.remove(*slot);
                }
            }
        }
        self.bundle.touched = touched;
        self.bundle.touched.clear();
        self.bundle.existed.clear();
        self.bundle.rows = 0;
        self.bundle.since = None;
        if let Some(mark) = self.bundle.waiting.take() {
            out.watermark(mark);
        }
        Ok(())
    }

    /// Forgets groups that have not been written for too long. Their rows downstream are not taken back, as in Flink.
    fn expire(&mut self) {
        for slot in self.table.keys.live_slots() {
            if self.is_expired(slot) && !self.bundle.marks.get(slot as usize).is_some_and(|mark| *mark) {
                self.table.remove(slot);
            }
        }
        self.next_expiry = self.now.saturating_add((self.ttl_ms / 4).max(1_000));
    }
}

impl Operator for GroupAggregate {
    fn on_changes(&mut self, _port: Port, batch: ChangeBatch, out: &mut Output) -> Result<()> {
        if self.append_only_input && !batch.is_append_only() {
            return Err(Error::bug("an aggregate planned for append-only input was given another change"));
        }
        let Some(mini_batch) = self.mini_batch else { return self.every_change(&batch, out) };
        let mut from = 0;
        while from < batch.len() {
            let room = usize::try_from(mini_batch.size.max(1) - self.bundle.rows).unwrap_or(usize::MAX);
            let length = room.min(batch.len() - from);
            self.bundle_rows(&batch.slice(from, length))?;
            from += length;
            if self.bundle.rows >= mini_batch.size {
                self.close_bundle(out)?;
            }
        }
        Ok(())
    }

    fn on_watermark(&mut self, mark: Watermark, out: &mut Output) -> Result<()> {
        if self.bundle.rows == 0 {
            out.watermark(mark);
            return Ok(());
        }
        self.bundle.waiting = Some(mark);
        if mark == Watermark::MAX { self.close_bundle(out) } else { Ok(()) }
    }

    fn on_clock(&mut self, now: ProcessingTime, out: &mut Output) -> Result<()> {
        self.now = now;
        if let (Some(mini_batch), Some(since)) = (self.mini_batch, self.bundle.since)
            && now.saturating_sub(since) >= i64::try_from(mini_batch.latency_ms).unwrap_or(i64::MAX)
        {
            self.close_bundle(out)?;
        }
        if self.ttl_ms > 0 && now >= self.next_expiry {
            self.expire();
        }
        Ok(())
    }

    fn before_barrier(&mut self, out: &mut Output) -> Result<()> {
        self.close_bundle(out)
    }

    fn on_end(&mut self, _port: Port, out: &mut Output) -> Result<()> {
        self.close_bundle(out)
    }

    fn snapshot(&mut self, _at: CheckpointId) -> Result<Snapshot> {
        let base = !self.saved || self.delta_rows > DELTA_ROWS + 2 * self.table.keys.len();
        let tables = self.table.snapshot(base)?;
        let rows = |rows: &Option<RecordBatch>| rows.as_ref().map_or(0, RecordBatch::num_rows);
        let written: usize = tables.iter().map(|table| rows(&table.upserts) + rows(&table.deletes)).sum();
        self.delta_rows = if base { 0 } else { self.delta_rows + written };
        self.saved = true;
        Ok(Snapshot { tables })
    }

    fn restore(&mut self, from: Restored) -> Result<()> {
        self.table.restore(&from)
    }

    fn counters(&self) -> Vec<(&'static str, u64)> {
        vec![("groups", self.table.keys.len() as u64), ("unmatched_retractions", self.table.unmatched)]
    }
}
