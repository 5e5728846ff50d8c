//! What was told of left rows that may be taken back: a retraction takes back exactly that, whatever the table says now.

use std::collections::VecDeque;
use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray, Int64Array, RecordBatch};
use arrow::datatypes::{DataType, Field, FieldRef, Int64Type, Schema, SchemaRef};

use crate::error::{Error, Result};
use crate::operators::join::JoinInput;
use crate::state::{KeyTable, Restored, RowStore};

/// The joined rows of one left row.
type Rows = Vec<u32>;

/// Joined rows by the left row they were made of.
pub(super) struct Told {
    pub rows: RowStore,
    schema: SchemaRef,
    /// How many columns are the left row's own.
    width: usize,
    left: KeyTable,
    /// By left row: what was told of each of its copies, oldest first.
    copies: Vec<VecDeque<Rows>>,
    /// Numbers the left rows.
    next: i64,
}

impl Told {
    /// Nothing was told yet.
    ///
    /// # Errors
    /// If a column's type cannot be kept.
    pub fn new(left: &JoinInput, right: &JoinInput) -> Result<Told> {
        let number: FieldRef = Arc::new(Field::new("left_row", DataType::Int64, false));
        // NULLs beside left rows are no violation.
        let padded = right.schema.fields()[..right.width].iter();
        let padded = padded.map(|field| Arc::new(field.as_ref().clone().with_nullable(true)));
        let fields: Vec<FieldRef> = left.schema.fields().iter().cloned().chain(padded).chain([number]).collect();
        let schema = Arc::new(Schema::new(fields));
        Ok(Told {
            rows: RowStore::new("told", Arc::clone(&schema), left.keys.clone()),
            left: KeyTable::new(left.schema.fields().to_vec())?,
            schema,
            width: left.schema.fields().len(),
            copies: Vec::new(),
            next: 0,
        })
    }

    /// The left rows of a batch as small numbers.
    ///
    /// # Errors
    /// If a row has no row form.
    pub fn left_rows(&mut self, columns: &[ArrayRef], rows: usize) -> Result<Vec<u32>> {
        let mut slots = Vec::new();
        self.left.slots_of(&columns[..self.width], rows, &mut slots)?;
        self.copies.resize_with(self.left.capacity(), VecDeque::new);
        Ok(slots)
    }

    /// Keeps joined rows: `of` has a number for each, the same for those of one left row. Gives their slots.
    ///
    /// # Errors
    /// If there are too many rows.
    pub fn keep(&mut self, mut columns: Vec<ArrayRef>, of: &[u32]) -> Result<Vec<u32>> {
        columns.push(Arc::new(Int64Array::from_iter_values(of.iter().map(|row| self.next + i64::from(*row)))));
        self.next += of.last().map_or(0, |last| i64::from(*last) + 1);
        let rows = RecordBatch::try_new(Arc::clone(&self.schema), columns)?;
        let all: Vec<u32> = (0..of.len() as u32).collect();
        let mut slots = Vec::new();
        self.rows.insert(&rows, &all, &mut slots)?;
        Ok(slots)
    }

    /// A copy of a left row has come, of which `rows` are told.
    pub fn come(&mut self, left: u32, rows: Rows) {
        self.copies[left as usize].push_back(rows);
    }

    /// A copy of a left row goes: what was told of it. `None`: there is no such row, or nothing was told.
    pub fn go(&mut self, left: u32) -> Option<Rows> {
        self.copies[left as usize].pop_front()
    }

    /// Forgets left rows of which nothing is told any more.
    pub fn forget(&mut self, left: &[u32]) {
        left.iter().filter(|row| self.copies[**row as usize].is_empty()).for_each(|row| self.left.remove(*row));
    }

    /// Takes back what snapshots held.
    ///
    /// # Errors
    /// If the saved rows do not fit.
    pub fn restore(&mut self, from: &Restored) -> Result<()> {
        self.rows.restore(from)?;
        let slots = self.rows.live_slots();
        let columns = self.rows.take(&slots, self.width)?;
        let numbers = self.rows.take_columns(&slots, &[self.schema.fields().len() - 1])?.remove(0);
        let numbers =
            numbers.as_primitive_opt::<Int64Type>().ok_or_else(|| Error::state("a left row has no number"))?;
        let left = self.left_rows(&columns, slots.len())?;
        // Rows of one left row were kept one after the other.
        let mut current = None;
        for ((slot, left), number) in slots.into_iter().zip(left).zip(numbers.values()) {
            match self.copies[left as usize].back_mut().filter(|_| current == Some((left, *number))) {
                Some(rows) => rows.push(slot),
                None => self.come(left, vec![slot]),
            }
            current = Some((left, *number));
            self.next = self.next.max(number + 1);
        }
        Ok(())
    }
}
