//! Values per group in order of arrival: what LISTAGG, ARRAY_AGG and a retractable FIRST_VALUE or LAST_VALUE remember.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray, Int64Array};
use arrow::datatypes::{DataType, Field, FieldRef, Int64Type};
use arrow::row::Rows;

use super::codec::{Codec, CodecKey, shared_bytes};
use super::key_table::KeyTable;
use super::multiset::unfit;
use super::snapshot::{Restored, TableDelta};
use crate::error::Result;

/// A value in Arrow's row form.
type Bytes = Arc<[u8]>;

#[derive(Debug, Default)]
struct Group {
    by_sequence: BTreeMap<i64, Bytes>,
    /// Finds the first arrival of a value that is retracted; empty if nothing is ever retracted.
    by_value: BTreeSet<(Bytes, i64)>,
}

/// The values of each slot of a [`KeyTable`] in order of arrival; saved as a table of its own, arrival by arrival.
#[derive(Debug)]
pub struct Arrivals {
    codec: Codec<Bytes>,
    groups: Vec<Group>,
    retractable: bool,
    /// How many values there are, and their bytes.
    count: usize,
    value_bytes: usize,
    next: i64,
    /// Arrivals that came or went since the last snapshot; recorded from the first one on.
    dirty: Vec<(u32, i64)>,
    tracking: bool,
}

impl Arrivals {
    /// No values yet.
    ///
    /// # Errors
    /// If values of this type have no row form.
    pub fn new(data_type: &DataType, retractable: bool) -> Result<Arrivals> {
        let (groups, count, value_bytes, dirty) = Default::default();
        let codec = Codec::new(data_type)?;
        Ok(Arrivals { codec, groups, retractable, count, value_bytes, next: 0, dirty, tracking: false })
    }

    /// The codec of the values.
    pub fn codec(&self) -> &Codec<Bytes> {
        &self.codec
    }

    /// A column's values in row form.
    ///
    /// # Errors
    /// If the column has another type.
    pub fn encode(&self, array: &ArrayRef) -> Result<Rows> {
        self.codec.encode(array)
    }

    /// Makes room for slots below `slots`.
    pub fn grow(&mut self, slots: usize) {
        if self.groups.len() < slots {
            self.groups.resize_with(slots, Group::default);
        }
    }

    /// Bytes in use, more or less: trees have some room.
    pub fn bytes(&self) -> usize {
        let place = size_of::<(i64, Bytes)>() * if self.retractable { 2 } else { 1 };
        let groups = self.groups.capacity() * size_of::<Group>();
        groups + self.count * (place + place / 2) + self.value_bytes + self.dirty.capacity() * size_of::<(u32, i64)>()
    }

    /// Gives back the memory of slots, none of which holds a value.
    pub fn shrink(&mut self) {
        if self.count == 0 {
            self.groups = Vec::new();
            self.dirty.shrink_to_fit();
        }
    }

    /// A value arrives.
    pub fn push(&mut self, slot: u32, value: &[u8]) {
        let sequence = self.next;
        self.next += 1;
        self.insert(slot, sequence, value.into());
        if self.tracking {
            self.dirty.push((slot, sequence));
        }
    }

    fn insert(&mut self, slot: u32, sequence: i64, value: Bytes) {
        self.count += 1;
        self.value_bytes += shared_bytes(&value);
        let group = &mut self.groups[slot as usize];
        if self.retractable {
            group.by_value.insert((Arc::clone(&value), sequence));
        }
        group.by_sequence.insert(sequence, value);
    }

    /// The first arrival of a value leaves; returns whether there was one.
    pub fn retract(&mut self, slot: u32, value: &[u8]) -> bool {
        let group = &mut self.groups[slot as usize];
        let from = (Bytes::from(value), i64::MIN);
        let Some(found) = group.by_value.range(from..).next().filter(|(found, _)| **found == *value).cloned() else {
            return false;
        };
        group.by_value.remove(&found);
        group.by_sequence.remove(&found.1);
        self.count -= 1;
        self.value_bytes -= shared_bytes(&found.0);
        if self.tracking {
            self.dirty.push((slot, found.1));
        }
        true
    }

    /// The value that came first.
    pub fn first(&self, slot: u32) -> Option<&Bytes> {
        self.groups[slot as usize].by_sequence.first_key_value().map(|(_, value)| value)
    }

    /// The value that came last.
    pub fn last(&self, slot: u32) -> Option<&Bytes> {
        self.groups[slot as usize].by_sequence.last_key_value().map(|(_, value)| value)
    }

    /// The values, oldest first.
    pub fn values(&self, slot: u32) -> impl Iterator<Item = &Bytes> {
        self.groups[slot as usize].by_sequence.values()
    }

    /// The values of `from` become `into`'s, still in order of arrival over both.
    pub fn merge(&mut self, into: u32, from: u32) {
        let group = self.take(from);
        for (sequence, value) in group.by_sequence {
            if self.tracking {
                self.dirty.extend([(from, sequence), (into, sequence)]);
            }
            self.insert(into, sequence, value);
        }
    }

    fn take(&mut self, slot: u32) -> Group {
        let group = std::mem::take(&mut self.groups[slot as usize]);
        self.count -= group.by_sequence.len();
        self.value_bytes -= group.by_sequence.values().map(|value| shared_bytes(value)).sum::<usize>();
        group
    }

    /// Forgets the values of a slot.
    pub fn clear(&mut self, slot: u32) {
        let group = self.take(slot);
        if self.tracking {
            self.dirty.extend(group.by_sequence.into_keys().map(|sequence| (slot, sequence)));
        }
    }

    /// What changed since the last snapshot (everything for a base), as the table `table`.
    ///
    /// # Errors
    /// Only by a bug.
    pub fn snapshot(&mut self, table: &str, keys: &KeyTable, base: bool) -> Result<TableDelta> {
        if base || !self.tracking {
            self.dirty.clear();
            for slot in keys.live_slots() {
                self.dirty.extend(self.groups[slot as usize].by_sequence.keys().map(|sequence| (slot, *sequence)));
            }
        }
        let (mut slots, mut sequences, mut values) = (Vec::new(), Vec::new(), Vec::new());
        let (mut gone_slots, mut gone) = (Vec::new(), Vec::new());
        for (slot, sequence) in self.dirty.drain(..) {
            match self.groups[slot as usize].by_sequence.get(&sequence) {
                Some(value) => {
                    slots.push(slot);
                    sequences.push(sequence);
                    values.push(Some(Arc::clone(value)));
                }
                None if keys.is_saved(slot) => {
                    gone_slots.push(slot);
                    gone.push(sequence);
                }
                None => {}
            }
        }
        self.tracking = true;
        let sequence_field: FieldRef = Arc::new(Field::new("sequence", DataType::Int64, false));
        let value_field: FieldRef = Arc::new(Field::new("value", self.codec.data_type().clone(), true));
        let sequences: ArrayRef = Arc::new(Int64Array::from(sequences));
        let gone: ArrayRef = Arc::new(Int64Array::from(gone));
        let more = vec![(Arc::clone(&sequence_field), sequences), (value_field, self.codec.decode(&values)?)];
        let upserts = keys.rows(&slots, more)?;
        let deletes = keys.rows(&gone_slots, vec![(sequence_field, gone)])?;
        keys.delta(table, base, 1, upserts, deletes)
    }

    /// Takes back what snapshots held; the groups themselves are in `keys` already.
    ///
    /// # Errors
    /// If the saved rows do not fit.
    pub fn restore(&mut self, table: &str, keys: &mut KeyTable, from: &Restored) -> Result<()> {
        let mut slots = Vec::new();
        for delta in from.table(table) {
            if let Some(rows) = &delta.deletes {
                let (key, columns) = keys.split_saved(table, rows)?;
                let sequences = columns.first().and_then(|column| column.as_primitive_opt::<Int64Type>());
                let sequences = sequences.ok_or_else(|| unfit(table))?;
                keys.slots_of(&key, rows.num_rows(), &mut slots)?;
                self.grow(keys.capacity());
                for (row, slot) in slots.iter().enumerate() {
                    let group = &mut self.groups[*slot as usize];
                    if let Some(value) = group.by_sequence.remove(&sequences.value(row)) {
                        self.count -= 1;
                        self.value_bytes -= shared_bytes(&value);
                        group.by_value.remove(&(value, sequences.value(row)));
                    }
                }
            }
            if let Some(rows) = &delta.upserts {
                let (key, columns) = keys.split_saved(table, rows)?;
                let [sequences, values] = columns.as_slice() else { return Err(unfit(table)) };
                let sequences = sequences.as_primitive_opt::<Int64Type>().ok_or_else(|| unfit(table))?;
                keys.slots_of(&key, rows.num_rows(), &mut slots)?;
                self.grow(keys.capacity());
                let column = self.codec.encode(values)?;
                for (row, slot) in slots.iter().enumerate() {
                    let sequence = sequences.value(row);
                    self.next = self.next.max(sequence + 1);
                    self.insert(*slot, sequence, Bytes::own(Bytes::view(&column, row)));
                }
            }
        }
        Ok(())
    }
}
