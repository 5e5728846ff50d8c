//! Top-N: `ROW_NUMBER() OVER (PARTITION BY … ORDER BY …) … WHERE rn <= N`, and `ORDER BY … LIMIT`.
//!
//! The rows of a partition are kept in order. A change finds the place of its row; only what stands at or behind it,
//! up to the last wanted rank, can change. Told with the rank, each row that moves is an update of its rank:
//!
//! ```text
//! ranks 1 to 2 by pts    +I ben 70        +I fay 90
//! with the rank          +I[ben, 70, 1]   -U[ben, 70, 1]  +U[fay, 90, 1]  +I[ben, 70, 2]
//! without                +I[ben, 70]      +I[fay, 90]          (and -D of whoever leaves the first two)
//! ```
//!
//! A range that does not start at 1 is told as with the rank, whether the rank is shown or not: a row may enter it from
//! above. `RANK` and `DENSE_RANK` are in `ties`.

mod changes;
#[cfg(test)]
mod tests;
mod ties;

use std::sync::Arc;

use arrow::array::{ArrayRef, BooleanArray};
use arrow::datatypes::SchemaRef;

pub(super) use self::changes::RankChanges;
use super::lifetimes::Lifetimes;
use super::{Operator, Output, Port, ProcessingTime, StateSize};
use crate::changelog::{ChangeBatch, CheckpointId, Kind};
use crate::error::{Error, Result};
use crate::state::{KeyGroupRange, KeyTable, Position, Restored, Row, Snapshot, SortedRows};
use crate::types::{RankFunction, RankInput, SortColumn};

/// The table of rows in a snapshot.
const ROWS: &str = "rows";

/// Rows of deltas after which the table is written anew, beside twice its own size.
const DELTA_ROWS: usize = 100_000;

/// What a [`Rank`] computes.
pub struct RankParameters {
    /// The columns that come.
    pub input: SchemaRef,
    /// The columns emitted: those that come, and the rank if it is shown.
    pub output: SchemaRef,
    /// Partition columns of the input; none: one partition.
    pub partition: Vec<usize>,
    /// The order within a partition; none: by arrival.
    pub order: Vec<SortColumn>,
    /// How equal rows are counted.
    pub function: RankFunction,
    /// The first and last wanted rank.
    pub range: (u64, u64),
    /// Whether a row that moves within the range is told as an update of its rank.
    pub by_rank: bool,
    /// What comes.
    pub changes: RankInput,
    /// Whether of equal rows the latest stands first.
    pub newest_first: bool,
    /// Whether `-U` is emitted.
    pub emit_update_before: bool,
    /// Partitions not written for so many milliseconds of processing time are forgotten; 0: never.
    pub ttl_ms: u64,
    /// The key groups of this subtask.
    pub key_groups: KeyGroupRange,
}

/// Top-N by partition.
pub struct Rank {
    parameters: RankParameters,
    keys: KeyTable,
    rows: SortedRows,
    slots: Vec<u32>,
    lifetimes: Lifetimes,
    saved: bool,
    delta_rows: usize,
    kept: usize,
    unmatched: u64,
}

impl Rank {
    /// An operator without rows.
    ///
    /// # Errors
    /// If a column cannot be partitioned or ordered by, or kept.
    pub fn new(parameters: RankParameters) -> Result<Rank> {
        let RankParameters { input, partition, order, changes, newest_first, range, .. } = &parameters;
        if range.0 == 0 || range.1 < range.0 {
            return Err(Error::bug(format!("ranks from {} to {} are none", range.0, range.1)));
        }
        let fields = partition.iter().map(|column| Arc::clone(&input.fields()[*column])).collect();
        let keys = KeyTable::new(fields)?;
        let rows = SortedRows::new(input, order, *changes != RankInput::Append, *newest_first)?;
        let lifetimes = Lifetimes::new("lifetimes", parameters.ttl_ms);
        Ok(Rank {
            parameters,
            keys,
            rows,
            slots: Vec::new(),
            lifetimes,
            saved: false,
            delta_rows: 0,
            kept: 0,
            unmatched: 0,
        })
    }

    fn partition_arrays(&self, batch: &ChangeBatch) -> Vec<ArrayRef> {
        self.parameters.partition.iter().map(|column| Arc::clone(batch.rows().column(*column))).collect()
    }

    /// Finds the partitions of the rows; those that have expired start afresh.
    fn assign(&mut self, batch: &ChangeBatch) -> Result<()> {
        let partition = self.partition_arrays(batch);
        self.keys.slots_of(&partition, batch.len(), &mut self.slots)?;
        self.keys.touch(&self.slots);
        self.rows.grow(self.keys.capacity());
        if self.lifetimes.are_limited() {
            for slot in &self.slots {
                if self.lifetimes.is_expired(*slot) {
                    self.kept -= self.rows.take(*slot).count();
                }
                self.lifetimes.write(*slot);
            }
        }
        Ok(())
    }

    /// The rows that can matter: over append-only input a row that stands behind a full partition never will.
    fn candidates(&self, batch: &ChangeBatch) -> Result<Option<BooleanArray>> {
        let RankParameters { changes, function, range, .. } = &self.parameters;
        if *changes != RankInput::Append || *function != RankFunction::RowNumber || self.parameters.newest_first {
            return Ok(None);
        }
        let keys = self.rows.encode_keys(batch.rows().columns())?;
        let candidate = |(row, slot): (usize, &u32)| match self.rows.last(*slot) {
            Some((last, _)) if self.rows.len(*slot) as u64 >= range.1 => keys.get(row) < &*last.key,
            _ => true,
        };
        Ok(Some(self.slots.iter().enumerate().map(|row| Some(candidate(row))).collect()))
    }

    fn process(&mut self, batch: &ChangeBatch, changes: &mut RankChanges) -> Result<()> {
        let keys = self.rows.encode_keys(batch.rows().columns())?;
        let rows = self.rows.encode_rows(batch.rows().columns())?;
        let mut row = 0;
        while row < batch.len() {
            let (slot, key) = (self.slots[row], keys.get(row));
            if !batch.kind(row).is_retraction() {
                self.insert(slot, key, rows.get(row).into(), changes);
            } else if self.parameters.changes == RankInput::Rising
                && batch.kind(row) == Kind::UpdateBefore
                && row + 1 < batch.len()
                && batch.kind(row + 1) == Kind::UpdateAfter
                && self.slots[row + 1] == slot
            {
                let after = (keys.get(row + 1), rows.get(row + 1));
                self.update(slot, (key, rows.get(row)), after, changes);
                row += 1;
            } else {
                self.retract(slot, key, rows.get(row), changes);
            }
            row += 1;
        }
        Ok(())
    }

    fn insert(&mut self, slot: u32, key: &[u8], row: Row, changes: &mut RankChanges) {
        let position = self.rows.insert(slot, key, Arc::clone(&row));
        self.kept += 1;
        if self.parameters.function != RankFunction::RowNumber {
            self.tied_insert(slot, &position, &row, changes);
            return;
        }
        let last = self.parameters.range.1;
        let Some(rank) = self.rank_of(slot, &position) else {
            self.forget_beyond(slot);
            return;
        };
        if self.parameters.by_rank {
            self.shift_down(slot, &position, rank, changes);
        } else {
            // The row that was last and is not any more.
            let pushed_out = self.nth(slot, last + 1);
            match pushed_out {
                Some(old) if last == 1 && self.parameters.changes != RankInput::Retract => {
                    changes.update(&old, &row, 1);
                }
                pushed_out => {
                    if let Some(old) = pushed_out {
                        changes.delete(&old, last);
                    }
                    changes.insert(&row, rank);
                }
            }
        }
        self.forget_beyond(slot);
    }

    /// Tells that a row has come at `rank`, and that every row behind it moves on by one.
    fn shift_down(&self, slot: u32, position: &Position, rank: u64, changes: &mut RankChanges) {
        let last = self.parameters.range.1;
        let mut moved = self.rows.from(slot, position).map(|(_, row)| row);
        let Some(mut current) = moved.next() else { return };
        let mut rank = rank;
        while rank <= last {
            let Some(before) = moved.next() else {
                changes.insert(current, rank);
                return;
            };
            changes.update(before, current, rank);
            current = before;
            rank += 1;
        }
    }

    fn retract(&mut self, slot: u32, key: &[u8], row: &[u8], changes: &mut RankChanges) {
        let Some(position) = self.rows.find(slot, key, row) else {
            // Rows beyond the last rank of rising input are forgotten: nothing is wrong.
            self.unmatched += u64::from(self.parameters.changes == RankInput::Retract);
            return;
        };
        if self.parameters.function != RankFunction::RowNumber {
            self.tied_retract(slot, &position, changes);
            return;
        }
        let rank = self.rank_of(slot, &position);
        let Some(gone) = self.rows.remove(slot, &position) else { return };
        self.kept -= 1;
        let Some(rank) = rank else { return };
        let last = self.parameters.range.1;
        if !self.parameters.by_rank {
            changes.delete(&gone, rank);
            if let Some(next) = self.nth(slot, last) {
                changes.insert(&next, last);
            }
            return;
        }
        let mut moved = self.rows.from(slot, &position).map(|(_, row)| row);
        let (mut before, mut rank) = (&gone, rank);
        while rank <= last {
            let Some(current) = moved.next() else {
                changes.delete(before, rank);
                return;
            };
            changes.update(before, current, rank);
            before = current;
            rank += 1;
        }
    }

    /// A row is replaced by one that stands no lower: told as one update, where both are in the range.
    fn update(&mut self, slot: u32, before: (&[u8], &[u8]), after: (&[u8], &[u8]), changes: &mut RankChanges) {
        let old = self.rows.find(slot, before.0, before.1);
        let old_rank = old.as_ref().and_then(|position| self.rank_of(slot, position));
        let (Some(old), Some(old_rank)) = (old, old_rank) else {
            self.retract(slot, before.0, before.1, changes);
            self.insert(slot, after.0, after.1.into(), changes);
            return;
        };
        if *after.0 > *old.key {
            self.retract(slot, before.0, before.1, changes);
            self.insert(slot, after.0, after.1.into(), changes);
            return;
        }
        let row: Row = after.1.into();
        let Some(gone) = self.rows.remove(slot, &old) else { return };
        let position = if *after.0 == *old.key {
            self.rows.put(slot, old.clone(), Arc::clone(&row));
            old
        } else {
            self.rows.insert(slot, after.0, Arc::clone(&row))
        };
        let Some(rank) = self.rank_of(slot, &position).filter(|_| self.parameters.by_rank) else {
            changes.update(&gone, &row, old_rank);
            return;
        };
        let places = usize::try_from(old_rank - rank).unwrap_or(usize::MAX).saturating_add(1);
        let now: Vec<&Row> = self.rows.from(slot, &position).map(|(_, row)| row).take(places).collect();
        changes.rotate(&now, &gone, rank);
    }

    /// The rank of the row at `position`, if it is not beyond the last wanted.
    fn rank_of(&self, slot: u32, position: &Position) -> Option<u64> {
        let wanted = usize::try_from(self.parameters.range.1).unwrap_or(usize::MAX);
        let place = self.rows.iter(slot).take(wanted).position(|(other, _)| other == position)?;
        Some(place as u64 + 1)
    }

    fn nth(&self, slot: u32, rank: u64) -> Option<Row> {
        let place = usize::try_from(rank.checked_sub(1)?).ok()?;
        if self.rows.len(slot) <= place {
            return None;
        }
        self.rows.iter(slot).nth(place).map(|(_, row)| Arc::clone(row))
    }

    /// Forgets rows that can never have a wanted rank again.
    fn forget_beyond(&mut self, slot: u32) {
        if self.parameters.changes == RankInput::Retract {
            return;
        }
        while self.rows.len(slot) as u64 > self.parameters.range.1 {
            let Some(last) = self.rows.last(slot).map(|(position, _)| position.clone()) else { return };
            self.rows.remove(slot, &last);
            self.kept -= 1;
        }
    }
}

impl Operator for Rank {
    fn on_changes(&mut self, _port: Port, batch: ChangeBatch, out: &mut Output) -> Result<()> {
        if self.parameters.changes == RankInput::Append && !batch.is_append_only() {
            return Err(Error::bug("a Top-N planned for append-only input was given another change"));
        }
        self.assign(&batch)?;
        let mut batch = batch;
        if let Some(candidates) = self.candidates(&batch)? {
            let mut kept = candidates.values().iter();
            self.slots.retain(|_| kept.next().unwrap_or(true));
            batch = batch.filter(&candidates)?;
        }
        let mut changes = RankChanges::new(self.parameters.range.0, self.parameters.emit_update_before);
        self.process(&batch, &mut changes)?;
        out.changes(changes.emit(&self.rows, &self.parameters.output)?);
        for slot in &self.slots {
            if self.rows.len(*slot) == 0 {
                self.keys.remove(*slot);
            }
        }
        Ok(())
    }

    fn on_clock(&mut self, now: ProcessingTime, _out: &mut Output) -> Result<()> {
        if self.lifetimes.advance(now) {
            for slot in self.lifetimes.expired(&self.keys) {
                self.kept -= self.rows.take(slot).count();
                self.keys.remove(slot);
            }
        }
        Ok(())
    }

    fn snapshot(&mut self, _at: CheckpointId) -> Result<Snapshot> {
        let base = !self.saved || self.delta_rows > DELTA_ROWS + 2 * self.kept;
        let lifetimes = self.lifetimes.snapshot(&mut self.keys, base)?;
        let table = self.rows.snapshot(ROWS, &self.keys, base)?;
        self.keys.finish_snapshot();
        let written: usize = [&table.upserts, &table.deletes].into_iter().flatten().map(|rows| rows.num_rows()).sum();
        self.delta_rows = if base { 0 } else { self.delta_rows + written };
        self.saved = true;
        Ok(Snapshot { tables: std::iter::once(table).chain(lifetimes).collect() })
    }

    fn restore(&mut self, from: Restored) -> Result<()> {
        let from = from.restrict(self.parameters.key_groups)?;
        self.rows.restore(ROWS, &mut self.keys, &from)?;
        self.lifetimes.restore(&mut self.keys, &from)?;
        self.kept = self.keys.live_slots().into_iter().map(|slot| self.rows.len(slot)).sum();
        Ok(())
    }

    fn state_size(&self) -> Option<StateSize> {
        Some(StateSize::new(self.keys.len(), self.keys.bytes() + self.rows.bytes()))
    }

    fn shrink(&mut self) -> Result<()> {
        if self.keys.shrink()? {
            self.rows.shrink();
            self.slots = Vec::new();
            self.lifetimes.shrink();
        }
        Ok(())
    }

    fn counters(&self) -> Vec<(&'static str, u64)> {
        vec![
            ("partitions", self.keys.len() as u64),
            ("rows", self.kept as u64),
            ("unmatched_retractions", self.unmatched),
        ]
    }
}
