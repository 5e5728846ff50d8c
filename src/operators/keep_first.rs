//! Deduplication that keeps the first row of each key by event time.
//!
//! A row waits until the watermark has passed it: until then one with an earlier time may come in its place. Then it is
//! told, once and for all; whatever comes later for its key is passed over, and a row from before the watermark is
//! late (not one of its very moment, as in Flink). Of rows of equal time the one that came first is kept.

use std::collections::BTreeSet;

use arrow::array::ArrayRef;
use arrow::datatypes::SchemaRef;

use super::event_time::{restore_watermark, row_times, save_watermark};
use super::lateness::Lateness;
use super::lifetimes::Lifetimes;
use super::rank::RankChanges;
use super::{Operator, Output, Port, ProcessingTime, StateSize, TimeReport};
use crate::changelog::{ChangeBatch, CheckpointId, Watermark};
use crate::error::Result;
use crate::state::{KeyGroupRange, KeyTable, Restored, Snapshot, SortedRows};
use crate::types::SortColumn;

/// The table of waiting rows in a snapshot.
const WAITING: &str = "waiting";
/// The table of keys whose row has been told.
const DONE: &str = "done";

/// Keeps the first row of each key.
pub struct KeepFirst {
    input: SchemaRef,
    output: SchemaRef,
    key: Vec<usize>,
    time: usize,
    keys: KeyTable,
    /// By slot: the row that waits, if any.
    waiting: SortedRows,
    /// Waiting rows by time, then arrival, with their slot.
    timers: BTreeSet<(i64, i64, u32)>,
    /// By slot: time and arrival of the waiting row.
    times: Vec<(i64, i64)>,
    /// By slot: whether the key's row has been told.
    done: Vec<bool>,
    lifetimes: Lifetimes,
    watermark: Watermark,
    late: Lateness,
    saved: bool,
    key_groups: KeyGroupRange,
}

impl KeepFirst {
    /// Keys are the columns `key` of `input`, event time is the column `time`.
    ///
    /// # Errors
    /// If a column cannot be a key, or be kept.
    pub fn new(
        input: &SchemaRef,
        output: SchemaRef,
        key: &[usize],
        time: usize,
        ttl_ms: u64,
        key_groups: KeyGroupRange,
    ) -> Result<KeepFirst> {
        let fields = key.iter().map(|column| input.fields()[*column].clone()).collect();
        let order = [SortColumn { column: time, descending: false, nulls_first: true }];
        let (timers, times, done) = Default::default();
        Ok(KeepFirst {
            keys: KeyTable::new(fields)?,
            waiting: SortedRows::new(input, &order, false, false)?,
            input: input.clone(),
            output,
            key: key.to_vec(),
            time,
            timers,
            times,
            done,
            lifetimes: Lifetimes::new("lifetimes", ttl_ms),
            watermark: Watermark::MIN,
            late: Lateness::default(),
            saved: false,
            key_groups,
        })
    }

    fn grow(&mut self) {
        let slots = self.keys.capacity().max(self.done.len());
        self.waiting.grow(slots);
        self.done.resize(slots, false);
        self.times.resize(slots, (0, 0));
    }

    /// Forgets a key and its row.
    fn forget(&mut self, slot: u32) {
        self.start_afresh(slot);
        self.keys.remove(slot);
    }

    /// Forgets the row of a key, told or not.
    fn start_afresh(&mut self, slot: u32) {
        if self.waiting.take(slot).count() > 0 {
            let (time, arrival) = self.times[slot as usize];
            self.timers.remove(&(time, arrival, slot));
        }
        self.done[slot as usize] = false;
    }
}

impl Operator for KeepFirst {
    fn on_changes(&mut self, _port: Port, batch: ChangeBatch, _out: &mut Output) -> Result<()> {
        let times = row_times(batch.rows(), self.time)?;
        let columns = batch.rows().columns();
        let key: Vec<ArrayRef> = self.key.iter().map(|column| columns[*column].clone()).collect();
        let mut slots = Vec::new();
        self.keys.slots_of(&key, batch.len(), &mut slots)?;
        self.grow();
        let sort_keys = self.waiting.encode_keys(columns)?;
        let rows = self.waiting.encode_rows(columns)?;
        for (row, slot) in slots.iter().enumerate() {
            let (place, time) = (*slot as usize, times.value(row));
            if self.lifetimes.is_expired(*slot) {
                self.start_afresh(*slot);
            }
            if self.done[place] {
                continue;
            }
            if time < self.watermark.0 {
                self.late.record(self.watermark.0 - 1, time);
                continue;
            }
            if self.waiting.len(*slot) > 0 {
                let (waiting, arrival) = self.times[place];
                if waiting <= time {
                    continue;
                }
                self.timers.remove(&(waiting, arrival, *slot));
                self.waiting.take(*slot).for_each(drop);
            }
            let position = self.waiting.insert(*slot, sort_keys.get(row), rows.get(row).into());
            self.times[place] = (time, position.sequence);
            self.timers.insert((time, position.sequence, *slot));
            self.lifetimes.write(*slot);
        }
        self.keys.touch(&slots);
        for slot in slots {
            if self.waiting.len(slot) == 0 && !self.done[slot as usize] {
                self.keys.remove(slot);
            }
        }
        Ok(())
    }

    fn on_watermark(&mut self, mark: Watermark, out: &mut Output) -> Result<()> {
        self.watermark = self.watermark.max(mark);
        let mut told = RankChanges::new(1, false);
        while let Some((time, _, slot)) = self.timers.first().copied()
            && time <= mark.0
        {
            self.timers.pop_first();
            for (_, row) in self.waiting.take(slot) {
                told.insert(&row, 1);
            }
            self.done[slot as usize] = true;
            self.keys.touch(&[slot]);
        }
        out.changes(told.emit(&self.waiting, &self.output)?);
        out.watermark(mark);
        Ok(())
    }

    fn on_clock(&mut self, now: ProcessingTime, _out: &mut Output) -> Result<()> {
        if self.lifetimes.advance(now) {
            self.lifetimes.expired(&self.keys).into_iter().for_each(|slot| self.forget(slot));
        }
        Ok(())
    }

    fn snapshot(&mut self, _at: CheckpointId) -> Result<Snapshot> {
        let base = !std::mem::replace(&mut self.saved, true);
        let changed = self.keys.changed(base);
        let done: Vec<u32> = changed.upserts.into_iter().filter(|slot| self.done[*slot as usize]).collect();
        let upserts = self.keys.rows(&done, Vec::new())?;
        let deletes = self.keys.rows(&changed.deletes, Vec::new())?;
        let done = self.keys.delta(DONE, base, 0, upserts, deletes)?;
        let lifetimes = self.lifetimes.snapshot(&mut self.keys, base)?;
        let waiting = self.waiting.snapshot(WAITING, &self.keys, base)?;
        self.keys.finish_snapshot();
        let tables = [waiting, done, save_watermark(self.watermark)?].into_iter().chain(lifetimes);
        Ok(Snapshot { tables: tables.collect() })
    }

    fn restore(&mut self, from: Restored) -> Result<()> {
        let from = from.restrict(self.key_groups)?;
        self.watermark = restore_watermark(&from)?;
        self.waiting.restore(WAITING, &mut self.keys, &from)?;
        self.grow();
        for slot in self.keys.live_slots() {
            let rows: Vec<_> =
                self.waiting.iter(slot).map(|(position, row)| (position.sequence, row.clone())).collect();
            let columns = self.waiting.decode(rows.iter().map(|(_, row)| row))?;
            let batch = arrow::array::RecordBatch::try_new(self.input.clone(), columns)?;
            let times = row_times(&batch, self.time)?;
            for ((arrival, _), time) in rows.iter().zip(times.values()) {
                self.times[slot as usize] = (*time, *arrival);
                self.timers.insert((*time, *arrival, slot));
            }
        }
        let mut slots = Vec::new();
        for delta in from.table(DONE) {
            for (rows, done) in [(&delta.deletes, false), (&delta.upserts, true)] {
                let Some(rows) = rows else { continue };
                let (key, _) = self.keys.split_saved(DONE, rows)?;
                self.keys.slots_of(&key, rows.num_rows(), &mut slots)?;
                self.grow();
                for slot in &slots {
                    self.done[*slot as usize] = done;
                    if !done && self.waiting.len(*slot) == 0 {
                        self.keys.remove(*slot);
                    }
                }
            }
        }
        self.lifetimes.restore(&mut self.keys, &from)
    }

    fn state_size(&self) -> Option<StateSize> {
        let slots = self.times.capacity() * (size_of::<(i64, i64)>() + 1);
        let timers = self.timers.len() * size_of::<(i64, i64, u32)>() * 3 / 2;
        Some(StateSize::new(self.keys.len(), self.keys.bytes() + self.waiting.bytes() + slots + timers))
    }

    fn shrink(&mut self) -> Result<()> {
        if self.keys.shrink()? {
            self.waiting.shrink();
            (self.times, self.done) = Default::default();
            self.lifetimes.shrink();
        }
        Ok(())
    }

    fn counters(&self) -> Vec<(&'static str, u64)> {
        vec![("keys", self.keys.len() as u64), ("late_rows", self.late.rows())]
    }

    fn time_report(&self) -> TimeReport {
        TimeReport {
            lateness: self.late.clone(),
            next_close: self.timers.first().map(|(time, ..)| *time),
            ..TimeReport::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::operators::testing::{changes, check, emitted, feed, saved, schema};

    fn operator() -> KeepFirst {
        let input = schema("k TEXT, t TS, v BIGINT");
        KeepFirst::new(&input, schema("k TEXT, t TS, v BIGINT, rn BIGINT"), &[0], 1, 0, KeyGroupRange::ALL).unwrap()
    }

    fn input(text: &str) -> ChangeBatch {
        changes(&schema("k TEXT, t TS, v BIGINT"), text)
    }

    #[test]
    fn the_first_row_by_time_is_told_once_the_watermark_has_passed_it() {
        for size in [1, 2, 9] {
            let (mut operator, mut out) = (operator(), Output::default());
            feed(&mut operator, &input("+I a 5 1\n+I b 4 2\n+I a 3 3\n+I a 3 4\n+I _ 9 5"), size, &mut out);
            operator.on_watermark(Watermark(4), &mut out).unwrap();
            check(&emitted(&mut out), "+I[a, 3, 3, 1]\n+I[b, 4, 2, 1]\nW 4");
            // Later rows of a told key are nothing; a late row of a new one is counted.
            feed(&mut operator, &input("+I a 8 6\n+I c 3 7\n+I d 10 8"), size, &mut out);
            operator.on_watermark(Watermark::MAX, &mut out).unwrap();
            check(&emitted(&mut out), "+I[NULL, 9, 5, 1]\n+I[d, 10, 8, 1]\nW 9223372036854775807");
            assert_eq!(operator.counters(), [("keys", 4), ("late_rows", 1)]);
        }
    }

    #[test]
    fn what_waits_and_what_was_told_survive_a_restart() {
        let (mut first, mut out) = (operator(), Output::default());
        feed(&mut first, &input("+I a 5 1\n+I b 20 2"), 9, &mut out);
        let mut snapshots = vec![first.snapshot(1).unwrap()];
        first.on_watermark(Watermark(6), &mut out).unwrap();
        feed(&mut first, &input("+I b 15 3\n+I c 9 4"), 9, &mut out);
        snapshots.push(first.snapshot(2).unwrap());
        emitted(&mut out);
        let (mut second, mut out) = (operator(), Output::default());
        second.restore(saved(&snapshots)).unwrap();
        feed(&mut second, &input("+I a 8 5\n+I d 5 6\n+I c 10 7"), 9, &mut out);
        second.on_watermark(Watermark(30), &mut out).unwrap();
        check(&emitted(&mut out), "+I[c, 9, 4, 1]\n+I[b, 15, 3, 1]\nW 30");
    }
}
