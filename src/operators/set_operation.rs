//! `INTERSECT ALL` and `EXCEPT ALL`: how often each side has a row decides how often it is in the result.

use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray, Int64Array, RecordBatch, RecordBatchOptions, UInt32Array};
use arrow::compute::take_record_batch;
use arrow::datatypes::{DataType, Field, FieldRef, Int64Type, SchemaRef};

use super::lifetimes::Lifetimes;
use super::{Operator, Output, Port, ProcessingTime, StateSize};
use crate::changelog::{ChangeBatch, CheckpointId, Kind};
use crate::error::{Error, Result};
use crate::state::{KeyGroupRange, KeyTable, Restored, Snapshot};
use crate::types::SetOperation;

/// The table of counts in a snapshot.
const COUNTS: &str = "counts";

/// Counts the copies of rows on both sides. NULLs equal each other.
pub struct CountedSet {
    operation: SetOperation,
    output: SchemaRef,
    rows: KeyTable,
    /// By row: how often the left and the right input have it.
    counts: Vec<[i64; 2]>,
    lifetimes: Lifetimes,
    saved: bool,
    unmatched: u64,
    key_groups: KeyGroupRange,
}

impl CountedSet {
    /// Both inputs have the columns of `output`.
    ///
    /// # Errors
    /// If rows of these columns cannot be kept.
    pub fn new(
        operation: SetOperation,
        output: SchemaRef,
        ttl_ms: u64,
        key_groups: KeyGroupRange,
    ) -> Result<CountedSet> {
        let rows = KeyTable::new(output.fields().iter().cloned().collect())?;
        let (counts, lifetimes) = (Vec::new(), Lifetimes::new("lifetimes", ttl_ms));
        Ok(CountedSet { operation, output, rows, counts, lifetimes, saved: false, unmatched: 0, key_groups })
    }

    fn copies(&self, slot: u32) -> i64 {
        let [left, right] = self.counts[slot as usize];
        self.operation.copies(left, right)
    }

    fn slots_of(&mut self, columns: &[ArrayRef], rows: usize, slots: &mut Vec<u32>) -> Result<()> {
        self.rows.slots_of(columns, rows, slots)?;
        self.counts.resize(self.rows.capacity().max(self.counts.len()), [0; 2]);
        Ok(())
    }
}

impl Operator for CountedSet {
    fn on_changes(&mut self, port: Port, batch: ChangeBatch, out: &mut Output) -> Result<()> {
        let mut slots = Vec::new();
        self.slots_of(batch.rows().columns(), batch.len(), &mut slots)?;
        self.rows.touch(&slots);
        for slot in &slots {
            if self.lifetimes.is_expired(*slot) {
                self.counts[*slot as usize] = [0; 2];
            }
            self.lifetimes.write(*slot);
        }
        let (mut emitted, mut kinds) = (Vec::new(), Vec::new());
        for (row, slot) in slots.iter().enumerate() {
            let before = self.copies(*slot);
            let sign = batch.kind(row).sign();
            let count = &mut self.counts[*slot as usize][port];
            if *count + sign < 0 {
                self.unmatched += 1;
                continue;
            }
            *count += sign;
            // One copy more or less on one side changes the result by one at most.
            let kind = match self.copies(*slot) - before {
                0 => continue,
                1 => Kind::Insert,
                _ => Kind::Delete,
            };
            emitted.push(row as u32);
            kinds.push(kind);
        }
        for slot in slots {
            if self.counts[slot as usize] == [0; 2] {
                self.rows.remove(slot);
            }
        }
        let rows = take_record_batch(batch.rows(), &UInt32Array::from(emitted))?;
        let options = RecordBatchOptions::new().with_row_count(Some(kinds.len()));
        // The right input's columns may have other names.
        let rows = RecordBatch::try_new_with_options(Arc::clone(&self.output), rows.columns().to_vec(), &options)?;
        out.changes(ChangeBatch::new(rows, kinds)?);
        Ok(())
    }

    fn on_clock(&mut self, now: ProcessingTime, _out: &mut Output) -> Result<()> {
        if self.lifetimes.advance(now) {
            for slot in self.lifetimes.expired(&self.rows) {
                self.counts[slot as usize] = [0; 2];
                self.rows.remove(slot);
            }
        }
        Ok(())
    }

    fn snapshot(&mut self, _at: CheckpointId) -> Result<Snapshot> {
        let base = !std::mem::replace(&mut self.saved, true);
        let lifetimes = self.lifetimes.snapshot(&mut self.rows, base)?;
        let changed = self.rows.changed(base);
        let column = |port: Port| -> ArrayRef {
            Arc::new(Int64Array::from_iter_values(changed.upserts.iter().map(|slot| self.counts[*slot as usize][port])))
        };
        let field = |name: &str| -> FieldRef { Arc::new(Field::new(name, DataType::Int64, false)) };
        let more = vec![(field("left"), column(0)), (field("right"), column(1))];
        let upserts = self.rows.rows(&changed.upserts, more)?;
        let deletes = self.rows.rows(&changed.deletes, Vec::new())?;
        self.rows.finish_snapshot();
        let counts = self.rows.delta(COUNTS, base, 0, upserts, deletes)?;
        Ok(Snapshot { tables: std::iter::once(counts).chain(lifetimes).collect() })
    }

    fn restore(&mut self, from: Restored) -> Result<()> {
        let from = from.restrict(self.key_groups)?;
        let mut slots = Vec::new();
        for delta in from.table(COUNTS) {
            if let Some(rows) = &delta.deletes {
                let (columns, _) = self.rows.split_saved(COUNTS, rows)?;
                self.slots_of(&columns, rows.num_rows(), &mut slots)?;
                for slot in &slots {
                    self.counts[*slot as usize] = [0; 2];
                    self.rows.remove(*slot);
                }
            }
            if let Some(rows) = &delta.upserts {
                let (columns, values) = self.rows.split_saved(COUNTS, rows)?;
                let numbers = |index: usize| values.get(index)?.as_primitive_opt::<Int64Type>();
                let (Some(left), Some(right)) = (numbers(0), numbers(1)) else {
                    return Err(Error::state(format!("saved state table '{COUNTS}' lacks its counts")));
                };
                self.slots_of(&columns, rows.num_rows(), &mut slots)?;
                for (row, slot) in slots.iter().enumerate() {
                    self.counts[*slot as usize] = [left.value(row), right.value(row)];
                }
            }
        }
        self.lifetimes.restore(&mut self.rows, &from)
    }

    fn state_size(&self) -> Option<StateSize> {
        let counts = self.counts.capacity() * size_of::<[i64; 2]>();
        Some(StateSize::new(self.rows.len(), self.rows.bytes() + counts))
    }

    fn shrink(&mut self) -> Result<()> {
        if self.rows.shrink()? {
            self.counts = Vec::new();
            self.lifetimes.shrink();
        }
        Ok(())
    }

    fn counters(&self) -> Vec<(&'static str, u64)> {
        vec![("rows", self.rows.len() as u64), ("unmatched_retractions", self.unmatched)]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::operators::testing::{changes, check, emitted, saved, schema};

    fn run(operator: &mut CountedSet, port: Port, text: &str) -> Vec<String> {
        let mut out = Output::default();
        operator.on_changes(port, changes(&schema("a BIGINT"), text), &mut out).unwrap();
        emitted(&mut out)
    }

    #[test]
    fn copies_are_counted_on_both_sides_and_after_a_restart() {
        let new = |operation| CountedSet::new(operation, schema("a BIGINT"), 0, KeyGroupRange::ALL).unwrap();
        let (mut both, mut except) = (new(SetOperation::IntersectAll), new(SetOperation::ExceptAll));
        check(&run(&mut both, 0, "+I 1\n+I 1\n+I _"), "");
        check(&run(&mut both, 1, "+I 1\n+I 1\n+I 1\n+I _"), "+I[1]\n+I[1]\n+I[NULL]");
        check(&run(&mut both, 1, "-D 1\n-D 1"), "-D[1]");
        check(&run(&mut except, 0, "+I 1\n+I 1\n+I 2"), "+I[1]\n+I[1]\n+I[2]");
        let first = except.snapshot(1).unwrap();
        check(&run(&mut except, 1, "+I 1\n+I 3\n+I 2\n-D 2"), "-D[1]\n-D[2]\n+I[2]");
        check(&run(&mut except, 0, "-D 2\n-D 2"), "-D[2]");
        let second = except.snapshot(2).unwrap();
        let mut again = new(SetOperation::ExceptAll);
        again.restore(saved(&[first, second])).unwrap();
        check(&run(&mut again, 0, "+I 3\n+I 3\n-D 1\n+I 2"), "+I[3]\n-D[1]\n+I[2]");
        check(&run(&mut again, 1, "-D 1\n-D 3"), "+I[1]\n+I[3]");
    }
}
