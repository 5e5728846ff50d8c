//! Whole rows per partition in an order: what Top-N, deduplication and sorting remember.
//!
//! A row stands at a [`Position`]: its sort key, whose bytes order as the query's `ORDER BY` does, and a number by
//! arrival that tells equal keys apart. The sort key is made of columns of the row, so only rows and numbers are saved.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;
use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray, Int64Array, RecordBatch};
use arrow::compute::SortOptions;
use arrow::datatypes::{DataType, Field, FieldRef, Int64Type, SchemaRef};
use arrow::row::{RowConverter, Rows, SortField};

use super::codec::shared_bytes;
use super::key_table::KeyTable;
use super::multiset::unfit;
use super::snapshot::{Restored, TableDelta};
use crate::error::{Error, Result};
use crate::types::SortColumn;

/// A row in Arrow's row form.
pub type Row = Arc<[u8]>;

/// Columns in row form.
pub struct Encoded(Option<Rows>);

impl Encoded {
    fn new(converter: &RowConverter, columns: &[ArrayRef]) -> Result<Encoded> {
        // Without columns there is nothing to count rows by; every row is the empty one.
        Ok(Encoded(if columns.is_empty() { None } else { Some(converter.convert_columns(columns)?) }))
    }

    /// The bytes of a row.
    #[inline]
    pub fn get(&self, row: usize) -> &[u8] {
        self.0.as_ref().map_or(&[], |rows| rows.row(row).data())
    }
}

/// Where a row stands in its partition.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Position {
    /// The sort key in row form.
    pub key: Arc<[u8]>,
    /// By arrival.
    pub sequence: i64,
}

#[derive(Debug, Default)]
struct Partition {
    rows: BTreeMap<Position, Row>,
    /// Finds the first arrival of a row that is retracted; empty if nothing is ever retracted.
    by_value: BTreeSet<(Row, i64)>,
}

/// The rows of each slot of a [`KeyTable`], in order; saved as a table of its own, row by row.
pub struct SortedRows {
    order: Vec<SortColumn>,
    keys: RowConverter,
    rows: RowConverter,
    fields: Vec<FieldRef>,
    partitions: Vec<Partition>,
    retractable: bool,
    newest_first: bool,
    /// How many rows there are, and their bytes with those of their sort keys.
    count: usize,
    row_bytes: usize,
    next: i64,
    /// Rows that came or went since the last snapshot; recorded from the first one on.
    dirty: Vec<(u32, Position)>,
    tracking: bool,
}

impl SortedRows {
    /// No rows yet. With `newest_first`, of equal sort keys the latest arrival stands first.
    ///
    /// # Errors
    /// If a column cannot be ordered or kept.
    pub fn new(input: &SchemaRef, order: &[SortColumn], retractable: bool, newest_first: bool) -> Result<SortedRows> {
        let sorted = |column: &SortColumn| {
            let options = SortOptions { descending: column.descending, nulls_first: column.nulls_first };
            SortField::new_with_options(input.field(column.column).data_type().clone(), options)
        };
        let keys = order.iter().map(sorted).collect();
        let rows = input.fields().iter().map(|field| SortField::new(field.data_type().clone())).collect();
        let converter = |fields| {
            RowConverter::new(fields).map_err(|error| Error::sql(format!("rows cannot be ordered or kept: {error}")))
        };
        // Names may repeat in the query; saved tables number them.
        let numbered = input.fields().iter().enumerate();
        let numbered = numbered.map(|(i, field)| Field::new(format!("row_{i}"), field.data_type().clone(), true));
        let (partitions, dirty) = Default::default();
        Ok(SortedRows {
            order: order.to_vec(),
            keys: converter(keys)?,
            rows: converter(rows)?,
            fields: numbered.map(Arc::new).collect(),
            partitions,
            retractable,
            newest_first,
            count: 0,
            row_bytes: 0,
            next: 0,
            dirty,
            tracking: false,
        })
    }

    /// The sort keys of rows.
    ///
    /// # Errors
    /// If the columns have other types.
    pub fn encode_keys(&self, columns: &[ArrayRef]) -> Result<Encoded> {
        let keys: Vec<ArrayRef> = self.order.iter().map(|order| Arc::clone(&columns[order.column])).collect();
        Encoded::new(&self.keys, &keys)
    }

    /// Whole rows in row form.
    ///
    /// # Errors
    /// If the columns have other types.
    pub fn encode_rows(&self, columns: &[ArrayRef]) -> Result<Encoded> {
        Encoded::new(&self.rows, columns)
    }

    /// Rows as columns.
    ///
    /// # Errors
    /// Only by a bug.
    pub fn decode<'a>(&self, rows: impl Iterator<Item = &'a Row>) -> Result<Vec<ArrayRef>> {
        if self.fields.is_empty() {
            return Ok(Vec::new());
        }
        let parser = self.rows.parser();
        Ok(self.rows.convert_rows(rows.map(|row| parser.parse(row)))?)
    }

    /// Makes room for slots below `slots`.
    pub fn grow(&mut self, slots: usize) {
        if self.partitions.len() < slots {
            self.partitions.resize_with(slots, Partition::default);
        }
    }

    /// Number of rows of all slots.
    pub fn count(&self) -> usize {
        self.count
    }

    /// Bytes in use, more or less: trees have some room.
    pub fn bytes(&self) -> usize {
        let place = size_of::<(Position, Row)>() * if self.retractable { 2 } else { 1 };
        let partitions = self.partitions.capacity() * size_of::<Partition>();
        let changes = self.dirty.capacity() * size_of::<(u32, Position)>();
        partitions + self.count * (place + place / 2) + self.row_bytes + changes
    }

    /// Gives back the memory of slots, none of which holds a row.
    pub fn shrink(&mut self) {
        if self.count == 0 {
            self.partitions = Vec::new();
            self.dirty.shrink_to_fit();
        }
    }

    /// Number of rows of a slot.
    pub fn len(&self, slot: u32) -> usize {
        self.partitions.get(slot as usize).map_or(0, |partition| partition.rows.len())
    }

    /// The rows of a slot, in order.
    pub fn iter(&self, slot: u32) -> impl Iterator<Item = (&Position, &Row)> {
        self.partitions[slot as usize].rows.iter()
    }

    /// The rows of a slot from a position on, that one included.
    pub fn from(&self, slot: u32, position: &Position) -> impl Iterator<Item = (&Position, &Row)> {
        self.partitions[slot as usize].rows.range(position..)
    }

    /// The rows of a slot between two positions.
    pub fn between(
        &self,
        slot: u32,
        range: (Bound<Position>, Bound<Position>),
    ) -> impl Iterator<Item = (&Position, &Row)> {
        self.partitions[slot as usize].rows.range(range)
    }

    /// The rows of a slot before a position, the nearest first.
    pub fn before(&self, slot: u32, position: &Position) -> impl Iterator<Item = (&Position, &Row)> {
        self.partitions[slot as usize].rows.range(..position).rev()
    }

    /// The rows of a slot behind a position, the nearest first.
    pub fn after(&self, slot: u32, position: &Position) -> impl Iterator<Item = (&Position, &Row)> {
        self.partitions[slot as usize].rows.range((Bound::Excluded(position), Bound::Unbounded))
    }

    /// The last row of a slot.
    pub fn last(&self, slot: u32) -> Option<(&Position, &Row)> {
        self.partitions.get(slot as usize)?.rows.last_key_value()
    }

    /// A row comes; returns where it stands: behind, or with `newest_first` before, those of equal key.
    pub fn insert(&mut self, slot: u32, key: &[u8], row: Row) -> Position {
        let sequence = if self.newest_first { -self.next } else { self.next };
        self.next += 1;
        let position = Position { key: key.into(), sequence };
        self.put(slot, position.clone(), row);
        position
    }

    /// A row stands at this position from now on.
    pub fn put(&mut self, slot: u32, position: Position, row: Row) {
        if self.tracking {
            self.dirty.push((slot, position.clone()));
        }
        let partition = &mut self.partitions[slot as usize];
        let sequence = position.sequence;
        let key_bytes = shared_bytes(&position.key);
        self.count += 1;
        self.row_bytes += key_bytes + shared_bytes(&row);
        let before = partition.rows.insert(position, Arc::clone(&row));
        if let Some(before) = &before {
            self.count -= 1;
            self.row_bytes -= key_bytes + shared_bytes(before);
        }
        if self.retractable {
            if let Some(before) = before {
                partition.by_value.remove(&(before, sequence));
            }
            partition.by_value.insert((row, sequence));
        }
    }

    /// Where the first arrival of a row stands.
    pub fn find(&self, slot: u32, key: &[u8], row: &[u8]) -> Option<Position> {
        let from = (Row::from(row), i64::MIN);
        let (found, sequence) = self.partitions[slot as usize].by_value.range(from..).next()?;
        (**found == *row).then(|| Position { key: key.into(), sequence: *sequence })
    }

    /// The row at a position leaves.
    pub fn remove(&mut self, slot: u32, position: &Position) -> Option<Row> {
        let partition = &mut self.partitions[slot as usize];
        let row = partition.rows.remove(position)?;
        self.count -= 1;
        self.row_bytes -= shared_bytes(&position.key) + shared_bytes(&row);
        if self.retractable {
            partition.by_value.remove(&(Arc::clone(&row), position.sequence));
        }
        if self.tracking {
            self.dirty.push((slot, position.clone()));
        }
        Some(row)
    }

    /// Takes all rows of a slot, in order.
    pub fn take(&mut self, slot: u32) -> impl Iterator<Item = (Position, Row)> + use<> {
        let partition = std::mem::take(&mut self.partitions[slot as usize]);
        self.count -= partition.rows.len();
        let bytes = partition.rows.iter().map(|(position, row)| shared_bytes(&position.key) + shared_bytes(row));
        self.row_bytes -= bytes.sum::<usize>();
        if self.tracking {
            self.dirty.extend(partition.rows.keys().map(|position| (slot, position.clone())));
        }
        partition.rows.into_iter()
    }

    /// What changed since the last snapshot (everything for a base), as the table `table`.
    ///
    /// # Errors
    /// Only by a bug.
    pub fn snapshot(&mut self, table: &str, keys: &KeyTable, base: bool) -> Result<TableDelta> {
        if base || !self.tracking {
            self.dirty.clear();
            for slot in keys.live_slots() {
                let Some(partition) = self.partitions.get(slot as usize) else { continue };
                self.dirty.extend(partition.rows.keys().map(|position| (slot, position.clone())));
            }
        }
        // A row may have come and gone several times over.
        self.dirty.sort_unstable();
        self.dirty.dedup();
        let (mut slots, mut sequences, mut rows) = (Vec::new(), Vec::new(), Vec::new());
        let (mut gone_slots, mut gone) = (Vec::new(), Vec::new());
        for (slot, position) in self.dirty.drain(..) {
            match self.partitions[slot as usize].rows.get(&position) {
                Some(row) => {
                    slots.push(slot);
                    sequences.push(position.sequence);
                    rows.push(Arc::clone(row));
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
        let mut more: Vec<(FieldRef, ArrayRef)> =
            vec![(Arc::clone(&sequence_field), Arc::new(Int64Array::from(sequences)))];
        more.extend(self.fields.iter().cloned().zip(self.decode(rows.iter())?));
        let upserts = keys.rows(&slots, more)?;
        let gone: ArrayRef = Arc::new(Int64Array::from(gone));
        let deletes = keys.rows(&gone_slots, vec![(sequence_field, gone)])?;
        keys.delta(table, base, 1, upserts, deletes)
    }

    /// Takes back what snapshots held, and the partitions' keys with it.
    ///
    /// # Errors
    /// If the saved rows do not fit.
    pub fn restore(&mut self, table: &str, keys: &mut KeyTable, from: &Restored) -> Result<()> {
        // Deletions name rows by number alone.
        let mut by_sequence: BTreeMap<(u32, i64), Position> = BTreeMap::new();
        let mut slots = Vec::new();
        for delta in from.table(table) {
            if let Some(rows) = &delta.deletes {
                let (sequences, _) = self.split(table, keys, rows, &mut slots)?;
                for (row, slot) in slots.iter().enumerate() {
                    if let Some(position) = by_sequence.remove(&(*slot, sequences.value(row))) {
                        self.remove(*slot, &position);
                    }
                }
            }
            if let Some(rows) = &delta.upserts {
                let (sequences, columns) = self.split(table, keys, rows, &mut slots)?;
                if !columns.iter().map(|c| c.data_type()).eq(self.fields.iter().map(|field| field.data_type())) {
                    return Err(unfit(table));
                }
                let (sort_keys, encoded) = (self.encode_keys(&columns)?, self.encode_rows(&columns)?);
                for (row, slot) in slots.iter().enumerate() {
                    let sequence = sequences.value(row);
                    self.next = self.next.max(sequence.saturating_abs() + 1);
                    let position = Position { key: sort_keys.get(row).into(), sequence };
                    by_sequence.insert((*slot, sequence), position.clone());
                    self.put(*slot, position, encoded.get(row).into());
                }
            }
        }
        for slot in keys.live_slots().into_iter().filter(|slot| self.len(*slot) == 0) {
            keys.remove(slot);
        }
        Ok(())
    }

    /// The slots of saved rows, their numbers and their columns.
    fn split(
        &mut self,
        table: &str,
        keys: &mut KeyTable,
        rows: &RecordBatch,
        slots: &mut Vec<u32>,
    ) -> Result<(Int64Array, Vec<ArrayRef>)> {
        let (key, mut columns) = keys.split_saved(table, rows)?;
        if columns.is_empty() {
            return Err(unfit(table));
        }
        let sequences = columns.remove(0);
        let sequences = sequences.as_primitive_opt::<Int64Type>().ok_or_else(|| unfit(table))?.clone();
        keys.slots_of(&key, rows.num_rows(), slots)?;
        self.grow(keys.capacity());
        Ok((sequences, columns))
    }
}
