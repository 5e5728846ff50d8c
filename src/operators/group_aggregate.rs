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

use std::sync::Arc;

use arrow::array::{RecordBatch, RecordBatchOptions};
use arrow::datatypes::{Schema, SchemaRef};

use super::aggregate::{Action, GroupTable};
use super::images::Images;
use super::lifetimes::Lifetimes;
use super::{Operator, Output, Port, ProcessingTime, StateSize};
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
    lifetimes: Lifetimes,
    /// Whether a result that stays is told again, so that what is kept of it downstream lives on, as in Flink.
    keeps_alive: bool,
    now: ProcessingTime,
    saved: bool,
    delta_rows: usize,
    key_groups: KeyGroupRange,
    answers_nothing: bool,
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
        let table = GroupTable::new(&input, &keys, &aggregates, parameters.append_only_input)?;
        Ok(GroupAggregate {
            output,
            table,
            append_only_input: parameters.append_only_input,
            emit_update_before: parameters.emit_update_before,
            mini_batch: parameters.mini_batch,
            bundle: Bundle::default(),
            lifetimes: Lifetimes::new("lifetimes", parameters.ttl_ms),
            keeps_alive: parameters.ttl_ms > 0 && !aggregates.is_empty(),
            now: ProcessingTime::MIN,
            saved: false,
            delta_rows: 0,
            key_groups: parameters.key_groups,
            answers_nothing: false,
        })
    }

    /// The answer over no rows at all is a row too, as of a global aggregate over a bounded input: `COUNT(*)` is 0.
    #[must_use]
    pub fn answering_nothing(mut self) -> GroupAggregate {
        self.answers_nothing = true;
        self
    }

    /// The row of a group without rows.
    fn answer_nothing(&mut self, out: &mut Output) -> Result<()> {
        let options = RecordBatchOptions::new().with_row_count(Some(1));
        let nothing = RecordBatch::try_new_with_options(Arc::new(Schema::empty()), Vec::new(), &options)?;
        self.table.assign(&nothing)?;
        let slots = self.table.keys.live_slots();
        let columns = self.table.evaluate(&slots)?;
        slots.into_iter().for_each(|slot| self.table.remove(slot));
        out.changes(ChangeBatch::inserts(RecordBatch::try_new(Arc::clone(&self.output), columns)?));
        Ok(())
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
                Action::Add | Action::Retract => {
                    if *changed || self.keeps_alive {
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
        if self.lifetimes.are_limited() {
            for row in 0..self.table.slots.len() {
                let slot = self.table.slots[row];
                if self.is_expired(slot) && !self.bundle.marks.get(slot as usize).is_some_and(|mark| *mark) {
                    self.table.clear(slot);
                }
                self.lifetimes.write(slot);
            }
        }
        Ok(())
    }

    fn is_expired(&self, slot: u32) -> bool {
        self.table.counts[slot as usize] > 0 && self.lifetimes.is_expired(slot)
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
        self.table.remember(&self.bundle.touched[known..])?;
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
                    (true, true) if changed[place] || self.keeps_alive => images.update(place, self.emit_update_before),
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
        if self.lifetimes.advance(now) {
            self.expire();
        }
        Ok(())
    }

    fn before_barrier(&mut self, out: &mut Output) -> Result<()> {
        self.close_bundle(out)
    }

    fn on_end(&mut self, _port: Port, out: &mut Output) -> Result<()> {
        self.close_bundle(out)?;
        if self.answers_nothing && self.table.keys.len() == 0 { self.answer_nothing(out) } else { Ok(()) }
    }

    fn snapshot(&mut self, _at: CheckpointId) -> Result<Snapshot> {
        let base = !self.saved || self.delta_rows > DELTA_ROWS + 2 * self.table.keys.len();
        let base_of_groups = base || self.table.is_mostly_dirty();
        let lifetimes = self.lifetimes.snapshot(&mut self.table.keys, base_of_groups)?;
        let mut tables = self.table.snapshot(base_of_groups, base)?;
        tables.extend(lifetimes);
        let rows = |rows: &Option<RecordBatch>| rows.as_ref().map_or(0, RecordBatch::num_rows);
        let deltas = tables.iter().filter(|table| !table.base);
        let written: usize = deltas.map(|table| rows(&table.upserts) + rows(&table.deletes)).sum();
        self.delta_rows = if base { 0 } else { self.delta_rows + written };
        self.saved = true;
        Ok(Snapshot { tables })
    }

    fn restore(&mut self, from: Restored) -> Result<()> {
        let from = from.restrict(self.key_groups)?;
        self.table.restore(&from)?;
        self.lifetimes.restore(&mut self.table.keys, &from)
    }

    fn state_size(&self) -> Option<StateSize> {
        Some(self.table.size())
    }

    fn shrink(&mut self) -> Result<()> {
        if self.bundle.touched.is_empty() && self.table.shrink()? {
            self.bundle.marks = Vec::new();
            self.lifetimes.shrink();
        }
        Ok(())
    }

    fn counters(&self) -> Vec<(&'static str, u64)> {
        vec![("groups", self.table.keys.len() as u64), ("unmatched_retractions", self.table.unmatched)]
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::operators::testing::{call, changes, check, emitted, feed, saved, schema};
    use crate::types::AggregateFunction;

    fn operator(append_only: bool, change: impl FnOnce(&mut GroupAggregateParameters)) -> GroupAggregate {
        let mut parameters = GroupAggregateParameters {
            input: schema("k TEXT, v BIGINT"),
            output: schema("k TEXT, n BIGINT, s BIGINT"),
            keys: vec![0],
            aggregates: vec![
                call(AggregateFunction::Count, &[], "BIGINT"),
                call(AggregateFunction::Sum, &[1], "BIGINT"),
            ],
            append_only_input: append_only,
            emit_update_before: true,
            mini_batch: None,
            ttl_ms: 0,
            key_groups: KeyGroupRange::ALL,
        };
        change(&mut parameters);
        GroupAggregate::new(parameters).unwrap()
    }

    fn input(text: &str) -> ChangeBatch {
        changes(&schema("k TEXT, v BIGINT"), text)
    }

    const CHANGES: &str = "
        +I a 5
        +I b _
        +I a 0
        -U a 5
        +U b 5
        -D a 0
        -D zz 1
        +I a 7";

    #[test]
    fn every_change_is_emitted_in_order_whatever_the_batches() {
        for size in [1, 2, 3, 100] {
            let found = feed(&mut operator(false, |_| {}), &input(CHANGES), size, &mut Output::default());
            check(
                &found,
                "+I[a, 1, 5]
                +I[b, 1, NULL]
                -U[a, 1, 5]
                +U[a, 2, 5]
                -U[a, 2, 5]
                +U[a, 1, 0]
                -U[b, 1, NULL]
                +U[b, 2, 5]
                -D[a, 1, 0]
                +I[a, 1, 7]",
            );
        }
    }

    #[test]
    fn without_update_before_only_new_images_come() {
        let mut operator = operator(false, |p| p.emit_update_before = false);
        let found = feed(&mut operator, &input(CHANGES), 100, &mut Output::default());
        check(&found, "+I[a, 1, 5]\n+I[b, 1, NULL]\n+U[a, 2, 5]\n+U[a, 1, 0]\n+U[b, 2, 5]\n-D[a, 1, 0]\n+I[a, 1, 7]");
        assert_eq!(operator.counters(), [("groups", 2), ("unmatched_retractions", 1)]);
    }

    #[test]
    fn a_result_that_stays_is_not_emitted() {
        let mut operator = operator(true, |p| {
            p.aggregates.remove(0);
            p.output = schema("k TEXT, s BIGINT");
        });
        let found = feed(&mut operator, &input("+I a 0\n+I a 0\n+I a _\n+I a 1"), 2, &mut Output::default());
        check(&found, "+I[a, 0]\n-U[a, 0]\n+U[a, 1]");
    }

    #[test]
    fn a_global_aggregate_goes_when_its_last_row_goes() {
        let mut operator = operator(false, |p| {
            p.keys.clear();
            p.output = schema("n BIGINT, s BIGINT");
        });
        let mut out = Output::default();
        let found = feed(&mut operator, &input("+I a 1\n+I b 2\n-D a 1\n-D b 2\n+I c 4"), 3, &mut out);
        check(&found, "+I[1, 1]\n-U[1, 1]\n+U[2, 3]\n-U[2, 3]\n+U[1, 2]\n-D[1, 2]\n+I[1, 4]");
    }

    #[test]
    fn a_bundle_gives_the_net_change_of_each_group() {
        let mini_batch = MiniBatch { size: 4, latency_ms: 1_000 };
        let mut operator = operator(false, |p| p.mini_batch = Some(mini_batch));
        let mut out = Output::default();
        // Born and gone inside: never shows. The watermark waits for the bundle.
        let found = feed(&mut operator, &input("+I a 5\n+I b 1\n-D a 5\n+I c 3\n+I b 2"), 100, &mut out);
        check(&found, "+I[b, 1, 1]\n+I[c, 1, 3]");
        operator.on_watermark(Watermark(7), &mut out).unwrap();
        check(&emitted(&mut out), "");
        operator.on_clock(10_000, &mut out).unwrap();
        check(&emitted(&mut out), "-U[b, 1, 1]\n+U[b, 2, 3]\nW 7");
        let found = feed(&mut operator, &input("-D c 3\n+I c 3\n-D b 1"), 1, &mut out);
        check(&found, "");
        operator.before_barrier(&mut out).unwrap();
        check(&emitted(&mut out), "-U[b, 2, 3]\n+U[b, 1, 2]");
        feed(&mut operator, &input("-D c 3"), 1, &mut out);
        operator.on_watermark(Watermark::MAX, &mut out).unwrap();
        check(&emitted(&mut out), "-D[c, 1, 3]\nW 9223372036854775807");
    }

    #[test]
    fn idle_groups_expire_and_start_afresh() {
        let mut operator = operator(true, |p| p.ttl_ms = 1_000);
        let mut out = Output::default();
        operator.on_clock(0, &mut out).unwrap();
        feed(&mut operator, &input("+I a 1\n+I b 1"), 9, &mut out);
        operator.on_clock(900, &mut out).unwrap();
        check(&feed(&mut operator, &input("+I a 1"), 9, &mut out), "-U[a, 1, 1]\n+U[a, 2, 2]");
        operator.on_clock(1_000, &mut out).unwrap();
        check(&feed(&mut operator, &input("+I b 1\n+I a 1"), 9, &mut out), "+I[b, 1, 1]\n-U[a, 2, 2]\n+U[a, 3, 3]");
        operator.on_clock(60_000, &mut out).unwrap();
        assert_eq!(operator.counters()[0], ("groups", 0));
    }

    #[test]
    fn a_snapshot_writes_only_what_changed_and_brings_it_back() {
        let mut first = operator(false, |_| {});
        let mut out = Output::default();
        feed(&mut first, &input("+I a 1\n+I b 2\n+I c 3\n+I _ 9"), 9, &mut out);
        let mut snapshots = vec![first.snapshot(1).unwrap()];
        feed(&mut first, &input("-D a 1\n+I b 2\n+I d 4\n-D d 4"), 9, &mut out);
        snapshots.push(first.snapshot(2).unwrap());
        let delta = &snapshots[1].tables[0];
        assert!(snapshots[0].tables[0].base && !delta.base);
        let count = |rows: &Option<RecordBatch>| rows.as_ref().map_or(0, RecordBatch::num_rows);
        assert_eq!((count(&delta.upserts), count(&delta.deletes)), (1, 1));
        // A key that goes and comes back between two snapshots stays.
        feed(&mut first, &input("-D c 3\n+I c 30"), 1, &mut out);
        snapshots.push(first.snapshot(3).unwrap());
        let mut second = operator(false, |_| {});
        second.restore(saved(&snapshots)).unwrap();
        let found = feed(&mut second, &input("+I a 1\n+I b 1\n+I c 1\n+I _ 1"), 9, &mut out);
        check(
            &found,
            "+I[a, 1, 1]\n-U[b, 2, 4]\n+U[b, 3, 5]\n-U[c, 1, 30]\n+U[c, 2, 31]\n-U[NULL, 1, 9]\n+U[NULL, 2, 10]",
        );
    }

    #[test]
    fn groups_that_were_mostly_written_are_written_whole_and_what_stands_beside_them_is_not() {
        let distinct = || {
            operator(false, |p| {
                p.aggregates[0] = call(AggregateFunction::Count, &[1], "BIGINT");
                p.aggregates[0].distinct = true;
            })
        };
        let mut first = distinct();
        let mut out = Output::default();
        let lines = |keys: std::ops::Range<u32>, value: u32| -> String {
            keys.map(|key| format!("+I k{key} {value}\n")).collect()
        };
        feed(&mut first, &input(&lines(0..20_100, 1)), 8_192, &mut out);
        let mut snapshots = vec![first.snapshot(1).unwrap()];
        feed(&mut first, &input(&(lines(0..12_000, 2) + "-D k20000 1")), 8_192, &mut out);
        snapshots.push(first.snapshot(2).unwrap());
        let bases: Vec<bool> = snapshots[1].tables.iter().map(|table| table.base).collect();
        assert_eq!(bases, [true, false]);
        let mut second = distinct();
        second.restore(saved(&snapshots)).unwrap();
        assert_eq!(second.counters()[0], ("groups", 20_099));
        let found = feed(&mut second, &input("+I k7 2\n+I k20000 2\n+I k13000 2"), 9, &mut out);
        check(&found, "-U[k7, 2, 3]\n+U[k7, 2, 5]\n+I[k20000, 1, 2]\n-U[k13000, 1, 1]\n+U[k13000, 2, 3]");
    }

    #[test]
    fn equal_keys_of_any_type_meet() {
        for (columns, text, groups) in [
            ("k DOUBLE, v BIGINT", "+I 0.0 1\n+I -0.0 1\n+I NaN 1\n+I NaN 1\n+I _ 1", 3),
            ("k TS, v BIGINT", "+I 5 1\n+I 5 1\n+I _ 1\n+I _ 1", 2),
            ("k BOOL, v BIGINT", "+I true 1\n+I true 1\n+I _ 1\n+I false 1", 3),
            ("k DEC, v BIGINT", "+I 1.50 1\n+I 1.5 1\n+I _ 1", 2),
        ] {
            let input = schema(columns);
            let mut operator = operator(true, |p| {
                p.input = Arc::clone(&input);
                let fields = [input.field(0).clone(), p.output.field(1).clone(), p.output.field(2).clone()];
                p.output = Arc::new(arrow::datatypes::Schema::new(fields.to_vec()));
            });
            feed(&mut operator, &changes(&input, text), 2, &mut Output::default());
            assert_eq!(operator.counters()[0], ("groups", groups), "{columns}");
        }
    }
}
