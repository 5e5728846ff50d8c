//! Counted values per group, in order: what DISTINCT, COLLECT and a retractable MIN or MAX remember.

use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray, Int64Array};
use arrow::datatypes::{DataType, Field, FieldRef, Int64Type};

use super::codec::{Codec, CodecKey};
use super::key_table::KeyTable;
use super::snapshot::{Restored, TableDelta};
use crate::error::{Error, Result};

#[derive(Debug, Default)]
struct Entry {
    /// Never 0; below 0 after a retraction of a value that was not there, until it comes.
    count: i64,
    dirty: bool,
}

/// A multiset of values for each slot of a [`KeyTable`]; saved as a table of its own, value by value.
#[derive(Debug)]
pub struct Multisets<K: CodecKey> {
    codec: Codec<K>,
    groups: Vec<BTreeMap<K, Entry>>,
    /// How many values there are, and the bytes of theirs that lie elsewhere.
    values: usize,
    heap_bytes: usize,
    /// Values written since the last snapshot; recorded from the first one on.
    dirty: Vec<(u32, K)>,
    tracking: bool,
}

impl<K: CodecKey> Multisets<K> {
    /// No values yet.
    ///
    /// # Errors
    /// If values of this type cannot be ordered.
    pub fn new(data_type: &DataType) -> Result<Multisets<K>> {
        let (groups, values, heap_bytes, dirty) = Default::default();
        Ok(Multisets { codec: Codec::new(data_type)?, groups, values, heap_bytes, dirty, tracking: false })
    }

    /// The codec of the values.
    pub fn codec(&self) -> &Codec<K> {
        &self.codec
    }

    /// Makes room for slots below `slots`.
    pub fn grow(&mut self, slots: usize) {
        if self.groups.len() < slots {
            self.groups.resize_with(slots, BTreeMap::new);
        }
    }

    /// Bytes in use, more or less: trees have some room.
    pub fn bytes(&self) -> usize {
        let groups = self.groups.capacity() * size_of::<BTreeMap<K, Entry>>();
        let values = self.values * (size_of::<K>() + size_of::<Entry>());
        groups + values + values / 2 + self.heap_bytes + self.dirty.capacity() * size_of::<(u32, K)>()
    }

    /// Changes a value's count by `by` and returns the count before.
    #[inline]
    pub fn add(&mut self, slot: u32, value: &K::View, by: i64) -> i64 {
        let group = &mut self.groups[slot as usize];
        let Some(entry) = group.get_mut(value) else {
            let key = K::own(value);
            if self.tracking {
                self.dirty.push((slot, key.clone()));
            }
            self.values += 1;
            self.heap_bytes += key.heap_bytes();
            group.insert(key, Entry { count: by, dirty: self.tracking });
            return 0;
        };
        let before = entry.count;
        entry.count += by;
        if self.tracking && !entry.dirty {
            entry.dirty = true;
            self.dirty.push((slot, K::own(value)));
        }
        if entry.count == 0
            && let Some((value, _)) = group.remove_entry(value)
        {
            self.values -= 1;
            self.heap_bytes -= value.heap_bytes();
        }
        before
    }

    /// The least value.
    pub fn first(&self, slot: u32) -> Option<&K> {
        self.groups[slot as usize].iter().find(|(_, entry)| entry.count > 0).map(|(value, _)| value)
    }

    /// The greatest value.
    pub fn last(&self, slot: u32) -> Option<&K> {
        self.groups[slot as usize].iter().rev().find(|(_, entry)| entry.count > 0).map(|(value, _)| value)
    }

    /// The values and their counts, ascending.
    pub fn values(&self, slot: u32) -> impl Iterator<Item = (&K, i64)> {
        let present = self.groups[slot as usize].iter().filter(|(_, entry)| entry.count > 0);
        present.map(|(value, entry)| (value, entry.count))
    }

    /// The least value from `at` on, with its count.
    pub fn at_or_after(&self, slot: u32, at: &K::View) -> Option<(&K, i64)> {
        let mut from = self.groups[slot as usize].range::<K::View, _>((Bound::Included(at), Bound::Unbounded));
        from.find(|(_, entry)| entry.count > 0).map(|(value, entry)| (value, entry.count))
    }

    /// The least value behind `at`, with its count.
    pub fn after(&self, slot: u32, at: &K::View) -> Option<(&K, i64)> {
        let mut from = self.groups[slot as usize].range::<K::View, _>((Bound::Excluded(at), Bound::Unbounded));
        from.find(|(_, entry)| entry.count > 0).map(|(value, entry)| (value, entry.count))
    }

    /// The greatest value before `at`, with its count.
    pub fn before(&self, slot: u32, at: &K::View) -> Option<(&K, i64)> {
        let mut from = self.groups[slot as usize].range::<K::View, _>((Bound::Unbounded, Bound::Excluded(at)));
        from.rfind(|(_, entry)| entry.count > 0).map(|(value, entry)| (value, entry.count))
    }

    /// The values of `from` become `into`'s too.
    pub fn merge(&mut self, into: u32, from: u32) {
        let group = self.take(from);
        for (value, entry) in group {
            self.add(into, value.borrow(), entry.count);
            if self.tracking {
                self.dirty.push((from, value));
            }
        }
    }

    fn take(&mut self, slot: u32) -> BTreeMap<K, Entry> {
        let group = std::mem::take(&mut self.groups[slot as usize]);
        self.values -= group.len();
        self.heap_bytes -= group.keys().map(K::heap_bytes).sum::<usize>();
        group
    }

    /// The values of a slot as a column, and how many there are of each.
    ///
    /// # Errors
    /// Only by a bug.
    pub fn column(&self, slot: u32) -> Result<(ArrayRef, Vec<i64>)> {
        let (values, counts): (Vec<Option<K>>, Vec<i64>) =
            self.groups[slot as usize].iter().map(|(value, entry)| (Some(value.clone()), entry.count)).unzip();
        Ok((self.codec.decode(&values)?, counts))
    }

    /// Forgets the values of a slot.
    pub fn clear(&mut self, slot: u32) {
        let group = self.take(slot);
        if self.tracking {
            self.dirty.extend(group.into_keys().map(|value| (slot, value)));
        }
    }

    /// What changed since the last snapshot (everything for a base), as the table `table`.
    ///
    /// # Errors
    /// Only by a bug.
    pub fn snapshot(&mut self, table: &str, keys: &KeyTable, base: bool) -> Result<TableDelta> {
        let (mut slots, mut values, mut counts) = (Vec::new(), Vec::new(), Vec::new());
        let (mut gone_slots, mut gone) = (Vec::new(), Vec::new());
        if base || !self.tracking {
            for slot in keys.live_slots() {
                for (value, entry) in &mut self.groups[slot as usize] {
                    entry.dirty = false;
                    slots.push(slot);
                    values.push(Some(value.clone()));
                    counts.push(entry.count);
                }
            }
            self.dirty.clear();
        }
        for (slot, value) in self.dirty.drain(..) {
            match self.groups[slot as usize].get_mut(value.borrow()) {
                Some(entry) if entry.dirty => {
                    entry.dirty = false;
                    slots.push(slot);
                    values.push(Some(value));
                    counts.push(entry.count);
                }
                // Written twice since: its row stands above.
                Some(_) => {}
                None if keys.is_saved(slot) => {
                    gone_slots.push(slot);
                    gone.push(Some(value));
                }
                None => {}
            }
        }
        self.tracking = true;
        let value_field = self.value_field();
        let count_field: FieldRef = Arc::new(Field::new("count", DataType::Int64, false));
        let counts: ArrayRef = Arc::new(Int64Array::from(counts));
        let more = vec![(Arc::clone(&value_field), self.codec.decode(&values)?), (count_field, counts)];
        let upserts = keys.rows(&slots, more)?;
        let deletes = keys.rows(&gone_slots, vec![(value_field, self.codec.decode(&gone)?)])?;
        keys.delta(table, base, 1, upserts, deletes)
    }

    fn value_field(&self) -> FieldRef {
        Arc::new(Field::new("value", self.codec.data_type().clone(), true))
    }

    /// Takes back what snapshots held; the groups themselves are in `keys` already.
    ///
    /// # Errors
    /// If the saved rows do not fit.
    pub fn restore(&mut self, table: &str, keys: &mut KeyTable, from: &Restored) -> Result<()> {
        let mut slots = Vec::new();
        for delta in from.table(table) {
            if let Some(rows) = &delta.deletes {
                let (key, values) = keys.split_saved(table, rows)?;
                let [value] = values.as_slice() else { return Err(unfit(table)) };
                keys.slots_of(&key, rows.num_rows(), &mut slots)?;
                self.grow(keys.capacity());
                let column = self.codec.encode(value)?;
                for (row, slot) in slots.iter().enumerate() {
                    self.groups[*slot as usize].remove(K::view(&column, row));
                }
            }
            if let Some(rows) = &delta.upserts {
                let (key, values) = keys.split_saved(table, rows)?;
                let [value, counts] = values.as_slice() else { return Err(unfit(table)) };
                let counts = counts.as_primitive_opt::<Int64Type>().ok_or_else(|| unfit(table))?;
                keys.slots_of(&key, rows.num_rows(), &mut slots)?;
                self.grow(keys.capacity());
                let column = self.codec.encode(value)?;
                for (row, slot) in slots.iter().enumerate() {
                    let entry = Entry { count: counts.value(row), dirty: false };
                    self.groups[*slot as usize].insert(K::own(K::view(&column, row)), entry);
                }
            }
        }
        self.values = self.groups.iter().map(BTreeMap::len).sum();
        self.heap_bytes = self.groups.iter().flat_map(BTreeMap::keys).map(K::heap_bytes).sum();
        Ok(())
    }
}

pub(super) fn unfit(table: &str) -> Error {
    Error::state(format!("saved state table '{table}' does not have the columns of this version"))
}
