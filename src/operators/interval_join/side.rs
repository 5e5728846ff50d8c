//! What an interval join remembers of one input: its rows by key, in order of time.

use std::collections::VecDeque;

use arrow::array::{AsArray, RecordBatch};
use arrow::datatypes::{Int64Type, SchemaRef};

use crate::error::Result;
use crate::operators::deadlines::Deadlines;
use crate::operators::event_time::milliseconds;
use crate::state::{KeyTable, Restored, RowStore};

/// A row by its time and slot.
type Entry = (i64, u32);

/// The rows of one input that may still find a match.
pub(super) struct Side {
    pub rows: RowStore,
    keys: Vec<usize>,
    /// The column of the rows' time in the store.
    time: usize,
    /// By row: its key.
    key_of: Vec<u32>,
    /// By key: its rows in order of time, of equal times in order of arrival.
    lists: Vec<VecDeque<Entry>>,
    deadlines: Deadlines,
}

impl Side {
    /// No rows yet. They stay for about `span` milliseconds.
    pub fn new(table: &'static str, schema: SchemaRef, keys: &[usize], time: usize, span: i64) -> Side {
        let rows = RowStore::new(table, schema, keys.to_vec());
        let (key_of, lists) = Default::default();
        Side { rows, keys: keys.to_vec(), time, key_of, lists, deadlines: Deadlines::new(span) }
    }

    /// Makes room for key slots below `keys`.
    pub fn grow_keys(&mut self, keys: usize) {
        if self.lists.len() < keys {
            self.lists.resize_with(keys, VecDeque::new);
        }
    }

    /// Whether the key has no rows.
    pub fn is_empty(&self, key: u32) -> bool {
        self.lists[key as usize].is_empty()
    }

    /// Appends the rows of a key with times `from ..= to` to `found`.
    #[inline]
    pub fn between(&self, key: u32, from: i64, to: i64, found: &mut Vec<u32>) {
        let list = &self.lists[key as usize];
        let first = list.partition_point(|(time, _)| *time < from);
        found.extend(list.range(first..).take_while(|(time, _)| *time <= to).map(|(_, slot)| *slot));
    }

    /// Keeps the rows `kept` of a batch, whose keys and times are given by row; gives their slots.
    ///
    /// # Errors
    /// If there are too many rows.
    pub fn keep(&mut self, batch: &RecordBatch, kept: &[u32], keys: &[u32], times: &[i64]) -> Result<Vec<u32>> {
        let mut slots = Vec::new();
        self.rows.insert(batch, kept, &mut slots)?;
        self.key_of.resize(self.rows.capacity(), 0);
        for (row, slot) in kept.iter().zip(&slots) {
            self.list(*slot, keys[*row as usize], times[*row as usize]);
        }
        self.deadlines.note(kept.iter().map(|row| times[*row as usize]).zip(slots.iter().copied()));
        self.rows.compact()?;
        Ok(slots)
    }

    /// Puts a row into its key's list.
    fn list(&mut self, slot: u32, key: u32, time: i64) {
        self.key_of[slot as usize] = key;
        let list = &mut self.lists[key as usize];
        match list.back() {
            Some((last, _)) if *last > time => {
                let place = list.partition_point(|(other, _)| *other <= time);
                list.insert(place, (time, slot));
            }
            _ => list.push_back((time, slot)),
        }
    }

    /// Takes the rows whose time is before `limit` out of their lists, perhaps in order of time and arrival:
    /// `(key, slot)`. They stay in the store until they are released.
    pub fn expire(&mut self, limit: i64, ordered: bool) -> Vec<(u32, u32)> {
        let mut expired = self.deadlines.before(limit);
        if ordered {
            expired.sort_unstable_by_key(|(time, slot)| (*time, self.rows.sequence(*slot)));
        }
        for (_, slot) in &expired {
            // All that stands before the limit in a key's list leaves, so it does not matter which of them this is.
            self.lists[self.key_of[*slot as usize] as usize].pop_front();
        }
        expired.into_iter().map(|(_, slot)| (self.key_of[slot as usize], slot)).collect()
    }

    /// Takes back what snapshots held; keys get their slots from `keys`.
    ///
    /// # Errors
    /// If the saved rows do not fit.
    pub fn restore(&mut self, keys: &mut KeyTable, from: &Restored) -> Result<()> {
        self.rows.restore(from)?;
        let live = self.rows.live_slots();
        let columns = self.rows.take_columns(&live, &self.keys)?;
        let mut key_slots = Vec::new();
        keys.slots_of(&columns, live.len(), &mut key_slots)?;
        self.grow_keys(keys.capacity());
        self.key_of.resize(self.rows.capacity(), 0);
        let times = self.rows.take_columns(&live, &[self.time])?.remove(0);
        let times = match times.as_primitive_opt::<Int64Type>() {
            Some(arrivals) => arrivals.clone(),
            None => milliseconds(&times)?,
        };
        for ((slot, key), time) in live.iter().zip(&key_slots).zip(times.values()) {
            self.list(*slot, *key, *time);
        }
        self.deadlines.note(times.values().iter().copied().zip(live));
        Ok(())
    }
}
