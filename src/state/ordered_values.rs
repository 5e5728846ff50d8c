//! Values per group in an order of their own: what an aggregate with `ORDER BY` inside its call remembers.
//!
//! A value stands at its sort key, whose bytes order as the `ORDER BY` does, and behind it a number by arrival that tells
//! equal keys apart. The sort key goes over into its columns and back, so values, numbers and those columns are saved.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray, Int64Array};
use arrow::compute::SortOptions;
use arrow::datatypes::{DataType, Field, FieldRef, Int64Type};
use arrow::row::{RowConverter, Rows, SortField};

use super::codec::{Codec, CodecKey, shared_bytes};
use super::key_table::KeyTable;
use super::multiset::unfit;
use super::snapshot::{Restored, TableDelta};
use super::sorted_rows::Position;
use crate::error::{Error, Result};

/// A value in Arrow's row form.
type Bytes = Arc<[u8]>;

#[derive(Debug, Default)]
struct Group {
    values: BTreeMap<Position, Bytes>,
    /// Finds the first arrival of a value at its sort key when it is retracted; empty if nothing is ever retracted.
    by_value: BTreeSet<(Bytes, Bytes, i64)>,
}

/// The values of each slot of a [`KeyTable`] in order; saved as a table of its own, value by value.
#[derive(Debug)]
pub struct OrderedValues {
    codec: Codec<Bytes>,
    keys: RowConverter,
    /// The columns of the sort key in a snapshot.
    key_fields: Vec<FieldRef>,
    groups: Vec<Group>,
    retractable: bool,
    /// How many values there are, and their bytes with those of their sort keys.
    count: usize,
    value_bytes: usize,
    next: i64,
    /// Values that came or went since the last snapshot; recorded from the first one on.
    dirty: Vec<(u32, Position)>,
    tracking: bool,
}

/// A batch of values with their sort keys.
pub struct OrderedColumn {
    values: Rows,
    keys: Rows,
}

fn bytes_of(position: &Position, value: &Bytes) -> usize {
    shared_bytes(&position.key) + shared_bytes(value)
}

impl OrderedValues {
    /// No values yet: of type `values`, in the order of columns of the types of `order`.
    ///
    /// # Errors
    /// If values of these types have no row form.
    pub fn new(values: &DataType, order: &[(DataType, SortOptions)], retractable: bool) -> Result<OrderedValues> {
        let sorted = order.iter().map(|(data_type, options)| SortField::new_with_options(data_type.clone(), *options));
        let keys = RowConverter::new(sorted.collect())
            .map_err(|error| Error::sql(format!("values cannot be ordered by this: {error}")))?;
        let fields = order.iter().enumerate();
        let key_fields =
            fields.map(|(index, (data_type, _))| Field::new(format!("order_{index}"), data_type.clone(), true));
        let (groups, count, value_bytes, dirty) = Default::default();
        Ok(OrderedValues {
            codec: Codec::new(values)?,
            keys,
            key_fields: key_fields.map(Arc::new).collect(),
            groups,
            retractable,
            count,
            value_bytes,
            next: 0,
            dirty,
            tracking: false,
        })
    }

    /// The codec of the values.
    pub fn codec(&self) -> &Codec<Bytes> {
        &self.codec
    }

    /// Values and the columns they are ordered by.
    ///
    /// # Errors
    /// If a column has another type.
    pub fn encode(&self, values: &ArrayRef, order: &[ArrayRef]) -> Result<OrderedColumn> {
        Ok(OrderedColumn { values: self.codec.encode(values)?, keys: self.keys.convert_columns(order)? })
    }

    /// Makes room for slots below `slots`.
    pub fn grow(&mut self, slots: usize) {
        if self.groups.len() < slots {
            self.groups.resize_with(slots, Group::default);
        }
    }

    /// Bytes in use, more or less: trees have some room.
    pub fn bytes(&self) -> usize {
        let place = size_of::<(Position, Bytes)>() * if self.retractable { 2 } else { 1 };
        let groups = self.groups.capacity() * size_of::<Group>();
        let changes = self.dirty.capacity() * size_of::<(u32, Position)>();
        groups + self.count * (place + place / 2) + self.value_bytes + changes
    }

    /// The value of a row arrives.
    pub fn push(&mut self, slot: u32, column: &OrderedColumn, row: usize) {
        let position = Position { key: column.keys.row(row).data().into(), sequence: self.next };
        self.next += 1;
        if self.tracking {
            self.dirty.push((slot, position.clone()));
        }
        self.insert(slot, position, column.values.row(row).data().into());
    }

    fn insert(&mut self, slot: u32, position: Position, value: Bytes) {
        self.count += 1;
        self.value_bytes += bytes_of(&position, &value);
        let group = &mut self.groups[slot as usize];
        if self.retractable {
            group.by_value.insert((Arc::clone(&position.key), Arc::clone(&value), position.sequence));
        }
        group.values.insert(position, value);
    }

    /// The first arrival of the row's value at its sort key leaves; returns whether there was one.
    pub fn retract(&mut self, slot: u32, column: &OrderedColumn, row: usize) -> bool {
        let (key, value) = (column.keys.row(row).data(), column.values.row(row).data());
        let group = &mut self.groups[slot as usize];
        let from = (Bytes::from(key), Bytes::from(value), i64::MIN);
        let Some(found) = group.by_value.range(from..).next().filter(|(at, what, _)| **at == *key && **what == *value)
        else {
            return false;
        };
        let found = found.clone();
        group.by_value.remove(&found);
        let position = Position { key: found.0, sequence: found.2 };
        group.values.remove(&position);
        self.count -= 1;
        self.value_bytes -= bytes_of(&position, &found.1);
        if self.tracking {
            self.dirty.push((slot, position));
        }
        true
    }

    /// The first value in the order.
    pub fn first(&self, slot: u32) -> Option<&Bytes> {
        self.groups[slot as usize].values.first_key_value().map(|(_, value)| value)
    }

    /// The last value in the order.
    pub fn last(&self, slot: u32) -> Option<&Bytes> {
        self.groups[slot as usize].values.last_key_value().map(|(_, value)| value)
    }

    /// The values in order.
    pub fn values(&self, slot: u32) -> impl Iterator<Item = &Bytes> {
        self.groups[slot as usize].values.values()
    }

    /// Forgets every value but the first, or the last: of values that never go no other is ever asked for.
    pub fn keep_one(&mut self, slot: u32, last: bool) {
        let group = &mut self.groups[slot as usize];
        while group.values.len() > 1 {
            let gone = if last { group.values.pop_first() } else { group.values.pop_last() };
            let Some((position, value)) = gone else { return };
            self.count -= 1;
            self.value_bytes -= bytes_of(&position, &value);
            if self.tracking {
                self.dirty.push((slot, position));
            }
        }
    }

    /// The values of `from` become `into`'s.
    pub fn merge(&mut self, into: u32, from: u32) {
        let group = self.take(from);
        for (position, value) in group.values {
            if self.tracking {
                self.dirty.extend([(from, position.clone()), (into, position.clone())]);
            }
            self.insert(into, position, value);
        }
    }

    fn take(&mut self, slot: u32) -> Group {
        let group = std::mem::take(&mut self.groups[slot as usize]);
        self.count -= group.values.len();
        self.value_bytes -= group.values.iter().map(|(position, value)| bytes_of(position, value)).sum::<usize>();
        group
    }

    /// Forgets the values of a slot.
    pub fn clear(&mut self, slot: u32) {
        let group = self.take(slot);
        if self.tracking {
            self.dirty.extend(group.values.into_keys().map(|position| (slot, position)));
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
                self.dirty.extend(self.groups[slot as usize].values.keys().map(|position| (slot, position.clone())));
            }
        }
        self.dirty.sort_unstable();
        self.dirty.dedup();
        let (mut slots, mut kept, mut values) = (Vec::new(), Vec::new(), Vec::new());
        let (mut gone_slots, mut gone) = (Vec::new(), Vec::new());
        for (slot, position) in self.dirty.drain(..) {
            match self.groups[slot as usize].values.get(&position) {
                Some(value) => {
                    slots.push(slot);
                    values.push(Some(Arc::clone(value)));
                    kept.push(position);
                }
                None if keys.is_saved(slot) => {
                    gone_slots.push(slot);
                    gone.push(position.sequence);
                }
                None => {}
            }
        }
        self.tracking = true;
        let sequence_field: FieldRef = Arc::new(Field::new("sequence", DataType::Int64, false));
        let value_field: FieldRef = Arc::new(Field::new("value", self.codec.data_type().clone(), true));
        let sequences: ArrayRef = Arc::new(Int64Array::from_iter_values(kept.iter().map(|place| place.sequence)));
        let mut more = vec![(Arc::clone(&sequence_field), sequences), (value_field, self.codec.decode(&values)?)];
        let parser = self.keys.parser();
        let order = self.keys.convert_rows(kept.iter().map(|position| parser.parse(&position.key)))?;
        more.extend(self.key_fields.iter().cloned().zip(order));
        let upserts = keys.rows(&slots, more)?;
        let gone: ArrayRef = Arc::new(Int64Array::from(gone));
        let deletes = keys.rows(&gone_slots, vec![(sequence_field, gone)])?;
        keys.delta(table, base, 1, upserts, deletes)
    }

    /// Takes back what snapshots held; the groups themselves are in `keys` already.
    ///
    /// # Errors
    /// If the saved rows do not fit.
    pub fn restore(&mut self, table: &str, keys: &mut KeyTable, from: &Restored) -> Result<()> {
        // Deletions name values by number alone.
        let mut by_sequence: BTreeMap<(u32, i64), Position> = BTreeMap::new();
        let mut slots = Vec::new();
        for delta in from.table(table) {
            if let Some(rows) = &delta.deletes {
                let (key, columns) = keys.split_saved(table, rows)?;
                let sequences = columns.first().and_then(|column| column.as_primitive_opt::<Int64Type>());
                let sequences = sequences.ok_or_else(|| unfit(table))?;
                keys.slots_of(&key, rows.num_rows(), &mut slots)?;
                self.grow(keys.capacity());
                for (row, slot) in slots.iter().enumerate() {
                    if let Some(position) = by_sequence.remove(&(*slot, sequences.value(row))) {
                        self.remove(*slot, position);
                    }
                }
            }
            if let Some(rows) = &delta.upserts {
                let (key, columns) = keys.split_saved(table, rows)?;
                let [sequences, values, order @ ..] = columns.as_slice() else { return Err(unfit(table)) };
                let sequences = sequences.as_primitive_opt::<Int64Type>().ok_or_else(|| unfit(table))?;
                let types = order.iter().map(|column| column.data_type());
                if !types.eq(self.key_fields.iter().map(|field| field.data_type())) {
                    return Err(unfit(table));
                }
                keys.slots_of(&key, rows.num_rows(), &mut slots)?;
                self.grow(keys.capacity());
                let column = self.encode(values, order)?;
                for (row, slot) in slots.iter().enumerate() {
                    let sequence = sequences.value(row);
                    self.next = self.next.max(sequence + 1);
                    let position = Position { key: column.keys.row(row).data().into(), sequence };
                    by_sequence.insert((*slot, sequence), position.clone());
                    self.insert(*slot, position, Bytes::own(column.values.row(row).data()));
                }
            }
        }
        Ok(())
    }

    fn remove(&mut self, slot: u32, position: Position) {
        let group = &mut self.groups[slot as usize];
        if let Some(value) = group.values.remove(&position) {
            self.count -= 1;
            self.value_bytes -= bytes_of(&position, &value);
            group.by_value.remove(&(position.key, value, position.sequence));
        }
    }
}
