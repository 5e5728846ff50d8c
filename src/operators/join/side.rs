//! What a join remembers of one input: its rows by key, how often each is there, and how many matches it has.

use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray, Int64Array, RecordBatch};
use arrow::datatypes::{DataType, Field, FieldRef, Int64Type, SchemaRef};

use crate::error::{Error, Result};
use crate::state::{KeyTable, Restored, TableDelta};

/// No slot.
pub(super) const NONE: u32 = u32::MAX;

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
}

impl Side {
    /// No rows yet; saved under the name `table`.
    ///
    /// # Errors
    /// If a column's type cannot be kept.
    pub fn new(table: &'static str, schema: &SchemaRef, keys: Vec<usize>) -> Result<Side> {
        let rows = KeyTable::grouped(schema.fields().iter().cloned().collect(), keys.clone())?;
        let (counts, matches, key_of, next, previous, ends) = Default::default();
        Ok(Side { table, keys, rows, counts, matches, key_of, next, previous, ends })
    }

    /// The key columns of a batch of rows.
    pub fn key_columns(&self, columns: &[ArrayRef]) -> Vec<ArrayRef> {
        self.keys.iter().map(|column| Arc::clone(&columns[*column])).collect()
    }

    /// Number of different rows.
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    /// Writes the slots of whole rows, which are about to change, into `slots`.
    ///
    /// # Errors
    /// If a row has no row form.
    pub fn slots_of(&mut self, rows: &RecordBatch, slots: &mut Vec<u32>) -> Result<()> {
        self.rows.slots_of(rows.columns(), rows.num_rows(), slots)?;
        self.rows.touch(slots);
        self.grow();
        Ok(())
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
            rows.push(row);
            row = self.next[row as usize];
        }
    }

    /// Appends the rows of all keys to `rows`.
    pub fn all_rows(&self, rows: &mut Vec<u32>) {
        rows.extend(self.rows.live_slots().into_iter().filter(|row| self.key_of[*row as usize] != NONE));
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
    pub fn snapshot(&mut self, base: bool) -> Result<TableDelta> {
        let changed = self.rows.changed(base);
        let column = |values: &[i64]| -> ArrayRef {
            Arc::new(Int64Array::from_iter_values(changed.upserts.iter().map(|slot| values[*slot as usize])))
        };
        let field = |name: &str| -> FieldRef { Arc::new(Field::new(name, DataType::Int64, false)) };
        let more = vec![(field("count"), column(&self.counts)), (field("matches"), column(&self.matches))];
        let upserts = self.rows.rows(&changed.upserts, more)?;
        let deletes = self.rows.rows(&changed.deletes, Vec::new())?;
        self.rows.finish_snapshot();
        self.rows.delta(self.table, base, 0, upserts, deletes)
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
        Ok(())
    }
}
