//! What a join remembers of one input: its rows by key, how often each is there, and how many matches it has.

use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray, Int64Array, RecordBatch};
use arrow::datatypes::{DataType, Field, FieldRef, Int64Type, SchemaRef};

use crate::error::{Error, Result};
use crate::operators::ProcessingTime;
use crate::operators::lifetimes::Lifetimes;
use crate::state::{KeyTable, Restored, TableDelta};

/// No slot.
pub(super) const NONE: u32 = u32::MAX;

/// The tables of when rows were last written, in a snapshot.
const LIFETIMES: [&str; 2] = ["left_lifetimes", "right_lifetimes"];

/// The first and the last row of a key.
type Ends = (u32, u32);

/// The rows of one input. Equal rows share a slot; the rows of a key form a list, oldest first.
pub(super) struct Side {
    table: &'static str,
    /// The key columns.
    keys: Vec<usize>,
    /// Whole rows.
    rows: KeyTable,
    /// By row: how often it is there. Never below 0.
    counts: Vec<i64>,
    /// By row: how many rows of the other side match it; kept only where the join depends on it.
    matches: Vec<i64>,
    /// By row: the key whose list it stands in, or [`NONE`].
    key_of: Vec<u32>,
    next: Vec<u32>,
    previous: Vec<u32>,
    /// By key.
    ends: Vec<Ends>,
    /// By row.
    lifetimes: Lifetimes,
}

impl Side {
    /// No rows yet, of the left (0) or right (1) input. Rows not written for `ttl_ms` are forgotten; 0: never.
    ///
    /// # Errors
    /// If a column's type cannot be kept.
    pub fn new(port: usize, schema: &SchemaRef, keys: Vec<usize>, ttl_ms: u64) -> Result<Side> {
        let table = ["left", "right"][port];
        let rows = KeyTable::grouped(schema.fields().iter().cloned().collect(), keys.clone())?;
        let (counts, matches, key_of, next, previous, ends) = Default::default();
        let lifetimes = Lifetimes::new(LIFETIMES[port], ttl_ms);
        Ok(Side { table, keys, rows, counts, matches, key_of, next, previous, ends, lifetimes })
    }

    /// The key columns of a batch of rows.
    pub fn key_columns(&self, columns: &[ArrayRef]) -> Vec<ArrayRef> {
        self.keys.iter().map(|column| Arc::clone(&columns[*column])).collect()
    }

    /// Number of different rows.
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    /// Bytes in use.
    pub fn bytes(&self) -> usize {
        let row = 2 * size_of::<i64>() + 3 * size_of::<u32>();
        self.rows.bytes() + self.counts.capacity() * row + self.ends.capacity() * size_of::<Ends>()
    }

    /// Gives back the memory of many rows that are all gone.
    ///
    /// # Errors
    /// Only by a bug.
    pub fn shrink(&mut self) -> Result<()> {
        if self.rows.shrink()? {
            (self.counts, self.matches, self.key_of, self.next, self.previous) = Default::default();
            self.lifetimes.shrink();
        }
        Ok(())
    }

    /// No key has a slot any more.
    pub fn shrink_keys(&mut self) {
        self.ends = Vec::new();
    }

    /// Writes the slots of whole rows, which are about to change, into `slots`.
    ///
    /// # Errors
    /// If a row has no row form.
    pub fn slots_of(&mut self, rows: &RecordBatch, slots: &mut Vec<u32>) -> Result<()> {
        self.rows.slots_of(rows.columns(), rows.num_rows(), slots)?;
        self.rows.touch(slots);
        self.grow();
        if self.lifetimes.are_limited() {
            for slot in slots.iter() {
                if self.lifetimes.is_expired(*slot) {
                    self.start_afresh(*slot);
                }
                self.lifetimes.write(*slot);
            }
        }
        Ok(())
    }

    /// A row that has been idle for too long comes anew.
    fn start_afresh(&mut self, slot: u32) {
        self.counts[slot as usize] = 0;
        self.matches[slot as usize] = 0;
        if self.key_of[slot as usize] != NONE {
            self.unlink(slot);
        }
    }

    /// It is `now`: forgets the rows that have been idle for too long, and gives their keys.
    pub fn expire(&mut self, now: ProcessingTime) -> Vec<u32> {
        if !self.lifetimes.advance(now) {
            return Vec::new();
        }
        let expired = self.lifetimes.expired(&self.rows);
        let keys = expired.iter().map(|slot| self.key_of[*slot as usize]).filter(|key| *key != NONE).collect();
        for slot in expired {
            self.start_afresh(slot);
            self.rows.remove(slot);
        }
        keys
    }

    fn grow(&mut self) {
        let slots = self.rows.capacity();
        if self.counts.len() < slots {
            self.counts.resize(slots, 0);
            self.matches.resize(slots, 0);
            self.key_of.resize(slots, NONE);
            self.next.resize(slots, NONE);
            self.previous.resize(slots, NONE);
        }
    }

    /// Makes room for key slots below `keys`.
    pub fn grow_keys(&mut self, keys: usize) {
        if self.ends.len() < keys {
            self.ends.resize(keys, (NONE, NONE));
        }
    }

    /// How often the row is there.
    #[inline]
    pub fn count(&self, slot: u32) -> i64 {
        self.counts[slot as usize]
    }

    /// One copy of the row comes or goes; `false` if there was none to go.
    #[inline]
    pub fn change(&mut self, slot: u32, by: i64) -> bool {
        let count = &mut self.counts[slot as usize];
        if *count + by < 0 {
            return false;
        }
        *count += by;
        true
    }

    /// Sets the number of matches of a row that is about to change.
    #[inline]
    pub fn set_matches(&mut self, slot: u32, matches: i64) {
        self.matches[slot as usize] = matches;
    }

    /// Changes the number of matches and returns what it was.
    #[inline]
    pub fn add_matches(&mut self, slot: u32, by: i64) -> i64 {
        self.rows.touch(&[slot]);
        // As in Flink: a row whose matches change is written anew.
        self.lifetimes.write(slot);
        let matches = &mut self.matches[slot as usize];
        let before = *matches;
        *matches += by;
        before
    }

    /// Appends the rows of a key to `rows`, oldest first.
    #[inline]
    pub fn rows_of(&self, key: u32, rows: &mut Vec<u32>) {
        let mut row = self.ends[key as usize].0;
        while row != NONE {
            if !self.lifetimes.is_expired(row) {
                rows.push(row);
            }
            row = self.next[row as usize];
        }
    }

    /// Appends the rows of all keys to `rows`.
    pub fn all_rows(&self, rows: &mut Vec<u32>) {
        let there = |row: &u32| self.key_of[*row as usize] != NONE && !self.lifetimes.is_expired(*row);
        rows.extend(self.rows.live_slots().into_iter().filter(there));
    }

    /// Whether the key has no rows.
    pub fn is_empty(&self, key: u32) -> bool {
        self.ends[key as usize].0 == NONE
    }

    /// Brings the list of `key` up to date with a row whose count has changed.
    pub fn settle(&mut self, slot: u32, key: u32) {
        let linked = self.key_of[slot as usize] != NONE;
        let present = self.counts[slot as usize] > 0;
        if present && !linked {
            self.link(slot, key);
        } else if !present {
            if linked {
                self.unlink(slot);
            }
            self.rows.remove(slot);
        }
    }

    fn link(&mut self, slot: u32, key: u32) {
        let last = std::mem::replace(&mut self.ends[key as usize].1, slot);
        match last {
            NONE => self.ends[key as usize].0 = slot,
            last => self.next[last as usize] = slot,
        }
        self.previous[slot as usize] = last;
        self.next[slot as usize] = NONE;
        self.key_of[slot as usize] = key;
    }

    fn unlink(&mut self, slot: u32) {
        let (before, after) = (self.previous[slot as usize], self.next[slot as usize]);
        let ends = &mut self.ends[self.key_of[slot as usize] as usize];
        match before {
            NONE => ends.0 = after,
            before => self.next[before as usize] = after,
        }
        match after {
            NONE => ends.1 = before,
            after => self.previous[after as usize] = before,
        }
        self.key_of[slot as usize] = NONE;
    }

    /// The columns of these rows.
    ///
    /// # Errors
    /// Only by a bug.
    pub fn take(&self, slots: &[u32]) -> Result<Vec<ArrayRef>> {
        self.rows.take(slots)
    }

    /// What changed since the last snapshot (everything for a base).
    ///
    /// # Errors
    /// Only by a bug.
    pub fn snapshot(&mut self, base: bool) -> Result<Vec<TableDelta>> {
        let lifetimes = self.lifetimes.snapshot(&mut self.rows, base)?;
        let changed = self.rows.changed(base);
        let column = |values: &[i64]| -> ArrayRef {
            Arc::new(Int64Array::from_iter_values(changed.upserts.iter().map(|slot| values[*slot as usize])))
        };
        let field = |name: &str| -> FieldRef { Arc::new(Field::new(name, DataType::Int64, false)) };
        let more = vec![(field("count"), column(&self.counts)), (field("matches"), column(&self.matches))];
        let upserts = self.rows.rows(&changed.upserts, more)?;
        let deletes = self.rows.rows(&changed.deletes, Vec::new())?;
        self.rows.finish_snapshot();
        let rows = self.rows.delta(self.table, base, 0, upserts, deletes)?;
        Ok(std::iter::once(rows).chain(lifetimes).collect())
    }

    /// Takes back what snapshots held; keys get their slots from `keys`.
    ///
    /// # Errors
    /// If the saved rows do not fit.
    pub fn restore(&mut self, keys: &mut KeyTable, from: &Restored) -> Result<()> {
        let (mut slots, mut key_slots) = (Vec::new(), Vec::new());
        for delta in from.table(self.table) {
            if let Some(rows) = &delta.deletes {
                let (columns, _) = self.rows.split_saved(self.table, rows)?;
                self.rows.slots_of(&columns, rows.num_rows(), &mut slots)?;
                self.grow();
                for slot in &slots {
                    self.counts[*slot as usize] = 0;
                    self.settle(*slot, NONE);
                }
            }
            if let Some(rows) = &delta.upserts {
                let (columns, values) = self.rows.split_saved(self.table, rows)?;
                let numbers = |index: usize| values.get(index)?.as_primitive_opt::<Int64Type>();
                let (Some(counts), Some(matches)) = (numbers(0), numbers(1)) else {
                    return Err(Error::state(format!("saved state table '{}' lacks its counts", self.table)));
                };
                self.rows.slots_of(&columns, rows.num_rows(), &mut slots)?;
                self.grow();
                keys.slots_of(&self.key_columns(&columns), rows.num_rows(), &mut key_slots)?;
                self.grow_keys(keys.capacity());
                for (row, (slot, key)) in slots.iter().zip(&key_slots).enumerate() {
                    self.counts[*slot as usize] = counts.value(row);
                    self.matches[*slot as usize] = matches.value(row);
                    self.settle(*slot, *key);
                }
            }
        }
        self.lifetimes.restore(&mut self.rows, from)
    }
}
