//! Keys and their slots, and which slots changed since the last snapshot.
//!
//! A slot is a small number that stands for a key: accumulators are vectors indexed by it. Slots of removed keys are
//! given to new ones. Once a snapshot was taken, a removed slot rests until the next one, so that its key can still be
//! written as a deletion; before the first snapshot nothing is tracked, because that one writes everything.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, RecordBatch, RecordBatchOptions, UInt16Array};
use arrow::datatypes::{DataType, Field, FieldRef, Schema};

use super::hash::hash_rows;
use super::key_group::key_group;
use super::key_store::KeyStore;
use super::narrow::widen;
use super::snapshot::{KEY_COLUMNS, KEY_GROUP_COLUMN, Scope, TableDelta};
use crate::error::{Error, Result};

/// Tables that never had so many keys keep their memory.
const SHRUNK_SLOTS: usize = 1_024;

/// The slot holds a key.
const LIVE: u8 = 1;
/// Written since the last snapshot.
const DIRTY: u8 = 2;
/// Part of an earlier snapshot.
const SAVED: u8 = 4;

/// Keys that are hashed at once for a snapshot.
const HASHED_ROWS: usize = 4096;

/// What a snapshot has to write.
#[derive(Debug, Default)]
pub struct Changed {
    /// Slots whose key and values are written.
    pub upserts: Vec<u32>,
    /// Slots whose key is gone.
    pub deletes: Vec<u32>,
}

/// Keys and their slots.
pub struct KeyTable {
    fields: Vec<FieldRef>,
    /// The key columns that decide the key group; `None`: all.
    group_columns: Option<Vec<usize>>,
    store: KeyStore,
    slots: Slots,
    live: usize,
    /// Whether changes are recorded: from the first snapshot on.
    tracking: bool,
    dirty: Vec<u32>,
    /// Removed since the last snapshot, not yet to be given away.
    resting: Vec<u32>,
}

#[derive(Default)]
struct Slots {
    flags: Vec<u8>,
    free: Vec<u32>,
}

impl Slots {
    #[inline]
    fn allocate(&mut self) -> u32 {
        match self.free.pop() {
            Some(slot) => {
                self.flags[slot as usize] = LIVE;
                slot
            }
            None => {
                self.flags.push(LIVE);
                self.flags.len() as u32 - 1
            }
        }
    }
}

impl KeyTable {
    /// An empty table over these key columns; none: all rows share one key.
    ///
    /// # Errors
    /// If a column's type cannot be a key.
    pub fn new(fields: Vec<FieldRef>) -> Result<KeyTable> {
        let store = KeyStore::new(&fields)?;
        let (group_columns, dirty, resting) = Default::default();
        Ok(KeyTable { fields, group_columns, store, slots: Slots::default(), live: 0, tracking: false, dirty, resting })
    }

    /// An empty table whose keys belong to the key group of some of their columns: those by which rows are spread.
    ///
    /// # Errors
    /// If a column's type cannot be a key.
    pub fn grouped(fields: Vec<FieldRef>, group_columns: Vec<usize>) -> Result<KeyTable> {
        Ok(KeyTable { group_columns: Some(group_columns), ..KeyTable::new(fields)? })
    }

    /// One more than the greatest slot ever given.
    pub fn capacity(&self) -> usize {
        self.slots.flags.len()
    }

    /// Number of keys.
    pub fn len(&self) -> usize {
        self.live
    }

    /// Bytes in use.
    pub fn bytes(&self) -> usize {
        let slots = self.slots.flags.capacity() + self.slots.free.capacity() * size_of::<u32>();
        let changes = (self.dirty.capacity() + self.resting.capacity()) * size_of::<u32>();
        self.store.bytes() + slots + changes
    }

    /// Gives back the memory of a table that had many keys and has none, and nothing to write about them. Returns whether
    /// it did: then no slot is given any more, and vectors indexed by slot start anew.
    ///
    /// # Errors
    /// Only by a bug.
    pub fn shrink(&mut self) -> Result<bool> {
        let unused = self.live == 0 && self.dirty.is_empty() && self.resting.is_empty();
        if !unused || self.capacity() < SHRUNK_SLOTS {
            return Ok(false);
        }
        self.store = KeyStore::new(&self.fields)?;
        self.slots = Slots::default();
        (self.dirty, self.resting) = Default::default();
        Ok(true)
    }

    /// Number of keys written or removed since the last snapshot; 0 before the first.
    pub fn dirty_len(&self) -> usize {
        self.dirty.len()
    }

    /// The slots that hold keys, ascending: in order of arrival as long as none was removed.
    pub fn live_slots(&self) -> Vec<u32> {
        let mut slots = Vec::with_capacity(self.live);
        let flags = self.slots.flags.iter().enumerate();
        slots.extend(flags.filter(|(_, flags)| **flags & LIVE != 0).map(|(slot, _)| slot as u32));
        slots
    }

    /// Writes the slot of each of `rows` rows into `slots`, making slots for new keys.
    ///
    /// # Errors
    /// If a key has no row form.
    pub fn slots_of(&mut self, keys: &[ArrayRef], rows: usize, slots: &mut Vec<u32>) -> Result<()> {
        slots.clear();
        slots.reserve(rows);
        if self.slots.flags.len().saturating_add(rows) >= u32::MAX as usize {
            return Err(Error::data("more than 4 billion keys in one table"));
        }
        let KeyTable { store, slots: allocator, live, .. } = self;
        store.get_or_insert(keys, rows, slots, || {
            *live += 1;
            allocator.allocate()
        })
    }

    /// Records that the values of these slots are about to change.
    pub fn touch(&mut self, slots: &[u32]) {
        if !self.tracking {
            return;
        }
        for slot in slots {
            let flags = &mut self.slots.flags[*slot as usize];
            if *flags & DIRTY == 0 {
                *flags |= DIRTY;
                self.dirty.push(*slot);
            }
        }
    }

    /// Forgets the key of `slot`, if it holds one.
    pub fn remove(&mut self, slot: u32) {
        let flags = &mut self.slots.flags[slot as usize];
        if *flags & LIVE == 0 {
            return;
        }
        *flags &= !LIVE;
        self.live -= 1;
        self.store.unlink(slot);
        if self.tracking {
            if *flags & DIRTY == 0 {
                *flags |= DIRTY;
                self.dirty.push(slot);
            }
            self.resting.push(slot);
        } else {
            self.store.release(slot);
            self.slots.free.push(slot);
        }
    }

    /// The key columns of these slots.
    ///
    /// # Errors
    /// Only by a bug.
    pub fn take(&self, slots: &[u32]) -> Result<Vec<ArrayRef>> {
        self.store.take(slots, &self.fields)
    }

    /// What changed since the last snapshot, or everything for a base; ends with [`KeyTable::finish_snapshot`].
    pub fn changed(&mut self, base: bool) -> Changed {
        if base || !self.tracking {
            return Changed { upserts: self.live_slots(), deletes: Vec::new() };
        }
        self.sort_dirty();
        let mut changed = Changed::default();
        for slot in &self.dirty {
            let flags = self.slots.flags[*slot as usize];
            if flags & LIVE != 0 {
                changed.upserts.push(*slot);
            } else if flags & SAVED != 0 {
                changed.deletes.push(*slot);
            }
        }
        changed
    }

    /// Puts the dirty slots in order: columns of values are then read from front to back, not here and there.
    fn sort_dirty(&mut self) {
        if self.dirty.len() < self.slots.flags.len() / 32 {
            self.dirty.sort_unstable();
            return;
        }
        // So many are found sooner by their flags.
        let flags = self.slots.flags.iter().enumerate();
        self.dirty.clear();
        self.dirty.extend(flags.filter(|(_, flags)| **flags & DIRTY != 0).map(|(slot, _)| slot as u32));
    }

    /// Whether the slot's key was part of an earlier snapshot.
    pub fn is_saved(&self, slot: u32) -> bool {
        self.slots.flags[slot as usize] & SAVED != 0
    }

    /// A snapshot has been taken: everything that lives is saved, resting slots may be given away.
    pub fn finish_snapshot(&mut self) {
        if self.tracking {
            for slot in self.dirty.drain(..) {
                let flags = &mut self.slots.flags[slot as usize];
                *flags = if *flags & LIVE != 0 { LIVE | SAVED } else { 0 };
            }
        } else {
            for flags in &mut self.slots.flags {
                *flags = if *flags & LIVE != 0 { LIVE | SAVED } else { 0 };
            }
        }
        self.tracking = true;
        for slot in self.resting.drain(..) {
            self.store.release(slot);
            self.slots.free.push(slot);
        }
    }

    /// `[key group,] keys…, more…` of these slots as rows; `None` if there are no slots.
    ///
    /// # Errors
    /// Only by a bug.
    pub fn rows(&self, slots: &[u32], more: Vec<(FieldRef, ArrayRef)>) -> Result<Option<RecordBatch>> {
        if slots.is_empty() {
            return Ok(None);
        }
        let mut fields: Vec<FieldRef> = vec![Arc::new(Field::new(KEY_GROUP_COLUMN, DataType::UInt16, false))];
        let mut columns: Vec<ArrayRef> = vec![Arc::new(self.key_groups(slots)?)];
        // Names of key and value columns may repeat in the query; saved tables number them.
        for (index, key) in self.store.saved(slots, &self.fields)?.into_iter().enumerate() {
            let (field, key) = key.named(&format!("key_{index}"));
            fields.push(field);
            columns.push(key);
        }
        for (field, values) in more {
            fields.push(field);
            columns.push(values);
        }
        let options = RecordBatchOptions::new().with_row_count(Some(slots.len()));
        Ok(Some(RecordBatch::try_new_with_options(Arc::new(Schema::new(fields)), columns, &options)?))
    }

    /// The key group of each of these slots.
    fn key_groups(&self, slots: &[u32]) -> Result<UInt16Array> {
        let mut groups = Vec::with_capacity(slots.len());
        let mut hashes = Vec::new();
        // Piece by piece: the keys and their hashes are then never out of the cache.
        for slots in slots.chunks(HASHED_ROWS) {
            let mut keys = self.take(slots)?;
            if let Some(columns) = &self.group_columns {
                keys = columns.iter().map(|column| Arc::clone(&keys[*column])).collect();
            }
            hash_rows(&keys, &mut hashes)?;
            // A table without key columns belongs to one subtask: the one that owns the first key group.
            hashes.resize(slots.len(), 0);
            groups.extend(hashes.iter().map(|hash| key_group(*hash)));
        }
        Ok(groups.into())
    }

    /// A delta of a keyed table out of rows made by [`KeyTable::rows`]. Its key is this table's, and `more_keys` columns
    /// behind it; the rows say so, so that deltas can be merged even before a key is deleted.
    ///
    /// # Errors
    /// Only by a bug.
    pub fn delta(
        &self,
        table: impl Into<String>,
        base: bool,
        more_keys: usize,
        upserts: Option<RecordBatch>,
        deletes: Option<RecordBatch>,
    ) -> Result<TableDelta> {
        let width = 1 + self.fields.len() + more_keys;
        let told = |rows: RecordBatch| {
            let metadata = [(KEY_COLUMNS.to_owned(), width.to_string())].into();
            let schema = rows.schema().as_ref().clone().with_metadata(metadata);
            rows.with_schema(Arc::new(schema))
        };
        let upserts = upserts.map(told).transpose()?;
        Ok(TableDelta { table: table.into(), scope: Scope::Keyed, base, upserts, deletes })
    }

    /// The key columns of saved rows, checked against this table, and the columns after them.
    ///
    /// # Errors
    /// If the rows do not fit.
    pub fn split_saved(&self, table: &str, rows: &RecordBatch) -> Result<(Vec<ArrayRef>, Vec<ArrayRef>)> {
        let rows = widen(rows)?;
        let columns = rows.columns();
        let fits = columns.len() > self.fields.len()
            && self.fields.iter().zip(&columns[1..]).all(|(field, column)| field.data_type() == column.data_type());
        if !fits {
            let wanted: Vec<String> = self.fields.iter().map(|field| field.data_type().to_string()).collect();
            return Err(Error::state(format!(
                "saved state table '{table}' does not fit the query's key columns ({})",
                wanted.join(", ")
            )));
        }
        Ok((columns[1..=self.fields.len()].to_vec(), columns[self.fields.len() + 1..].to_vec()))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use arrow::array::{Int32Array, Int64Array, StringArray};
    use arrow::compute::cast;
    use rand::rngs::StdRng;
    use rand::{RngExt, SeedableRng};

    use super::*;

    /// Key columns of the numbers, of which 0 stands for NULL.
    fn keys(numbers: &[i64], types: &[DataType]) -> Vec<ArrayRef> {
        let column: Int64Array = numbers.iter().map(|number| (*number != 0).then_some(*number)).collect();
        types.iter().map(|data_type| cast(&column, data_type).unwrap()).collect()
    }

    fn table(types: &[DataType]) -> KeyTable {
        KeyTable::new(types.iter().map(|t| Arc::new(Field::new("k", t.clone(), true))).collect()).unwrap()
    }

    #[test]
    fn slots_follow_keys_through_removals_and_snapshots_hold_the_difference() {
        let composite = vec![DataType::Utf8, DataType::Int32];
        for types in [vec![DataType::Int64], vec![DataType::Utf8], vec![DataType::Decimal128(20, 0)], composite] {
            let mut random = StdRng::seed_from_u64(7);
            let mut keyed = table(&types);
            let (mut model, mut saved): (BTreeMap<i64, u32>, BTreeMap<String, ()>) = Default::default();
            let mut slots = Vec::new();
            for step in 0..3_000 {
                let numbers: Vec<i64> = (0..random.random_range(1..6)).map(|_| random.random_range(0..40)).collect();
                keyed.slots_of(&keys(&numbers, &types), numbers.len(), &mut slots).unwrap();
                keyed.touch(&slots);
                for (number, slot) in numbers.iter().zip(&slots) {
                    assert_eq!(model.entry(*number).or_insert(*slot), slot, "a key keeps its slot");
                }
                if random.random() {
                    let gone = numbers[0];
                    keyed.remove(slots[0]);
                    model.remove(&gone);
                }
                if step % 50 == 0 {
                    let changed = keyed.changed(step == 0);
                    let rows = |slots: &[u32]| format_rows(&keyed.take(slots).unwrap());
                    rows(&changed.deletes).into_iter().for_each(|row| assert!(saved.remove(&row).is_some()));
                    saved.extend(rows(&changed.upserts).into_iter().map(|row| (row, ())));
                    let live: Vec<i64> = model.keys().copied().collect();
                    let mut expected = format_rows(&keys(&live, &types));
                    expected.sort();
                    assert_eq!(saved.keys().cloned().collect::<Vec<_>>(), expected);
                    keyed.finish_snapshot();
                }
            }
            assert_eq!(keyed.len(), model.len());
            assert!(keyed.capacity() < 200, "slots of removed keys are given away: {}", keyed.capacity());
        }
    }

    fn format_rows(columns: &[ArrayRef]) -> Vec<String> {
        let texts: Vec<ArrayRef> = columns.iter().map(|column| cast(column, &DataType::Utf8).unwrap()).collect();
        let cell = |column: &ArrayRef, row| match column.is_null(row) {
            true => "NULL".to_string(),
            false => column.as_any().downcast_ref::<StringArray>().unwrap().value(row).to_string(),
        };
        (0..columns[0].len()).map(|row| texts.iter().map(|c| cell(c, row)).collect::<Vec<_>>().join("|")).collect()
    }

    #[test]
    fn saved_rows_of_other_types_are_refused() {
        let mut saved = table(&[DataType::Int64]);
        let mut slots = Vec::new();
        saved.slots_of(&[Arc::new(Int64Array::from(vec![1]))], 1, &mut slots).unwrap();
        let rows = saved.rows(&slots, Vec::new()).unwrap().unwrap();
        let error = table(&[DataType::Int32]).split_saved("groups", &rows).unwrap_err();
        assert_eq!(error.kind(), crate::error::ErrorKind::State);
        let numbers: ArrayRef = Arc::new(Int32Array::from(vec![1]));
        assert!(table(&[DataType::Int32]).slots_of(&[numbers], 1, &mut slots).is_ok());
    }
}
