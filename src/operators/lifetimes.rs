//! Time to live: when each key was last written, in processing time, and which keys have been idle for too long.
//!
//! A key that has expired is treated as if it had never come, whether it has been swept away already or not: its next row
//! starts afresh. What was told of it downstream is not taken back, as in Flink. When it was last written is saved beside
//! the operator's own tables, so that a restart does not give idle keys another life; keys saved without time to live,
//! and those of an operator that has not been told the time yet, live from the first moment that is known.

use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray, Int64Array};
use arrow::datatypes::{DataType, Field, FieldRef, Int64Type};

use super::ProcessingTime;
use crate::error::{Error, Result};
use crate::state::{KeyTable, Restored, TableDelta};

/// Not known yet.
const UNKNOWN: ProcessingTime = ProcessingTime::MIN;

/// Milliseconds between two sweeps at the least.
const SWEEP_MS: i64 = 1_000;

/// When the keys of a [`KeyTable`] were last written.
pub(super) struct Lifetimes {
    /// The table in a snapshot.
    table: &'static str,
    /// 0: keys live for ever, and nothing is noted.
    ttl_ms: i64,
    now: ProcessingTime,
    next_sweep: ProcessingTime,
    written: Vec<ProcessingTime>,
}

impl Lifetimes {
    /// Keys live so many milliseconds after they are written; 0: for ever. Saved under the name `table`.
    pub fn new(table: &'static str, ttl_ms: u64) -> Lifetimes {
        let ttl_ms = i64::try_from(ttl_ms).unwrap_or(i64::MAX);
        Lifetimes { table, ttl_ms, now: UNKNOWN, next_sweep: UNKNOWN, written: Vec::new() }
    }

    /// Whether keys expire at all.
    #[inline]
    pub fn are_limited(&self) -> bool {
        self.ttl_ms > 0
    }

    /// It is `now`. Returns whether it is time to sweep: to forget [`Lifetimes::expired`].
    pub fn advance(&mut self, now: ProcessingTime) -> bool {
        if !self.are_limited() {
            return false;
        }
        if self.now == UNKNOWN {
            self.written.iter_mut().filter(|written| **written == UNKNOWN).for_each(|written| *written = now);
        }
        self.now = now;
        let due = now >= self.next_sweep;
        if due {
            self.next_sweep = now.saturating_add((self.ttl_ms / 4).max(SWEEP_MS));
        }
        due
    }

    /// The key of a slot is written now.
    #[inline]
    pub fn write(&mut self, slot: u32) {
        if !self.are_limited() {
            return;
        }
        if self.written.len() <= slot as usize {
            self.written.resize(slot as usize + 1, self.now);
        }
        self.written[slot as usize] = self.now;
    }

    /// Whether the key of a slot has been idle for too long.
    #[inline]
    pub fn is_expired(&self, slot: u32) -> bool {
        self.are_limited()
            && self
                .written
                .get(slot as usize)
                .is_some_and(|written| *written != UNKNOWN && written.saturating_add(self.ttl_ms) <= self.now)
    }

    /// The slots whose keys have been idle for too long.
    pub fn expired(&self, keys: &KeyTable) -> Vec<u32> {
        let mut slots = keys.live_slots();
        slots.retain(|slot| self.is_expired(*slot));
        slots
    }

    /// No slot is given any more.
    pub fn shrink(&mut self) {
        self.written = Vec::new();
    }

    /// What changed since the last snapshot (everything for a base); to be taken before the keys finish theirs.
    ///
    /// # Errors
    /// Only by a bug.
    pub fn snapshot(&self, keys: &mut KeyTable, base: bool) -> Result<Option<TableDelta>> {
        if !self.are_limited() {
            return Ok(None);
        }
        let changed = keys.changed(base);
        let written = changed.upserts.iter().map(|slot| self.written.get(*slot as usize).copied().unwrap_or(self.now));
        let written: ArrayRef = Arc::new(Int64Array::from_iter_values(written));
        let field: FieldRef = Arc::new(Field::new("written", DataType::Int64, false));
        let upserts = keys.rows(&changed.upserts, vec![(field, written)])?;
        let deletes = keys.rows(&changed.deletes, Vec::new())?;
        keys.delta(self.table, base, 0, upserts, deletes).map(Some)
    }

    /// Takes back what snapshots held, for the keys that the operator has restored.
    ///
    /// # Errors
    /// If the saved rows do not fit.
    pub fn restore(&mut self, keys: &mut KeyTable, from: &Restored) -> Result<()> {
        if !self.are_limited() {
            return Ok(());
        }
        let mut live = vec![false; keys.capacity()];
        keys.live_slots().into_iter().for_each(|slot| live[slot as usize] = true);
        self.written.resize(keys.capacity().max(self.written.len()), UNKNOWN);
        let mut slots = Vec::new();
        for delta in from.table(self.table) {
            let Some(rows) = &delta.upserts else { continue };
            let (key, columns) = keys.split_saved(self.table, rows)?;
            let written = columns.first().and_then(|column| column.as_primitive_opt::<Int64Type>());
            let written = written.ok_or_else(|| {
                Error::state(format!("saved state table '{}' does not say when keys were written", self.table))
            })?;
            keys.slots_of(&key, rows.num_rows(), &mut slots)?;
            for (row, slot) in slots.iter().enumerate() {
                if live.get(*slot as usize).is_some_and(|live| *live) {
                    self.written[*slot as usize] = written.value(row);
                }
            }
            // Keys that are gone since are named by older deltas.
            for slot in &slots {
                if !live.get(*slot as usize).is_some_and(|live| *live) {
                    keys.remove(*slot);
                }
            }
        }
        Ok(())
    }
}
