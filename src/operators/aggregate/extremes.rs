//! Functions that keep one value per group: MIN, MAX, FIRST_VALUE and LAST_VALUE over append-only input, and the value
//! of a scalar subquery.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray};
use arrow::datatypes::{DataType, FieldRef, Int64Type};

use super::kernel::{Fold, Kernel};
use super::numeric::state_field;
use crate::error::{Error, Result};
use crate::operators::bytes_of_all;
use crate::state::{Codec, CodecKey, SavedColumn};

/// Which value is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Keep {
    Least,
    Greatest,
    First,
    Last,
}

/// One value per group, chosen among those that came.
pub(super) struct Kept<K: CodecKey> {
    keep: Keep,
    codec: Codec<K>,
    values: Vec<Option<K>>,
}

impl<K: CodecKey> Kept<K> {
    /// Over values of this type.
    pub fn new(keep: Keep, data_type: &DataType) -> Result<Kept<K>> {
        Ok(Kept { keep, codec: Codec::new(data_type)?, values: Vec::new() })
    }

    /// Another group's value comes to that of a slot.
    fn take_in(&mut self, into: u32, other: K) {
        let kept = &mut self.values[into as usize];
        let better = match (&kept, self.keep) {
            (None, _) => true,
            (Some(known), Keep::Least) => other < *known,
            (Some(known), Keep::Greatest) => other > *known,
            (Some(_), Keep::First | Keep::Last) => false,
        };
        if better {
            *kept = Some(other);
        }
    }
}

pub(super) struct KeptFold<'a, K: CodecKey> {
    keep: Keep,
    values: &'a mut [Option<K>],
    column: K::Column,
}

impl<K: CodecKey> Fold for KeptFold<'_, K> {
    type Value = Option<K>;

    #[inline]
    fn add(&mut self, slot: u32, row: usize) {
        let view = K::view(&self.column, row);
        let kept = &mut self.values[slot as usize];
        let better = match kept {
            None => true,
            Some(known) => match self.keep {
                Keep::Least => view < (*known).borrow(),
                Keep::Greatest => view > (*known).borrow(),
                Keep::First => false,
                Keep::Last => view != (*known).borrow(),
            },
        };
        if better {
            *kept = Some(K::own(view));
        }
    }

    /// Append-only input has no retractions, and where the argument only moves towards the result (`monotone`) the new
    /// image replaces the old by itself; other updating input gets the functions in `collected`.
    fn retract(&mut self, _slot: u32, _row: usize) {}

    fn clear(&mut self, slot: u32) {
        self.values[slot as usize] = None;
    }

    #[inline]
    fn value(&self, slot: u32) -> Option<K> {
        self.values[slot as usize].clone()
    }
}

impl<K: CodecKey> Kernel for Kept<K> {
    type Value = Option<K>;
    type Fold<'a> = KeptFold<'a, K>;

    fn bind<'a>(&'a mut self, arguments: &'a [ArrayRef]) -> Result<KeptFold<'a, K>> {
        Ok(KeptFold { keep: self.keep, column: self.codec.encode(&arguments[0])?, values: &mut self.values })
    }

    fn grow(&mut self, slots: usize) {
        self.values.resize(slots.max(self.values.len()), None);
    }

    fn clear(&mut self, slot: u32) {
        self.values[slot as usize] = None;
    }

    /// Groups do not tell which of their values came first, so planning refuses FIRST_VALUE and LAST_VALUE over windows
    /// that merge.
    fn merge(&mut self, into: u32, from: u32) {
        if let Some(other) = self.values[from as usize].take() {
            self.take_in(into, other);
        }
    }

    /// Groups do not tell which of their values came first either.
    fn absorb(&mut self, into: u32, other: &Self, from: u32) -> bool {
        if let Some(other) = &other.values[from as usize] {
            self.take_in(into, other.clone());
        }
        matches!(self.keep, Keep::Least | Keep::Greatest)
    }

    #[inline]
    fn value(&self, slot: u32) -> Option<K> {
        self.values[slot as usize].clone()
    }

    fn bytes(&self) -> usize {
        let elsewhere = bytes_of_all(self.values.iter().flatten().map(K::heap_bytes), self.values.len());
        self.values.capacity() * size_of::<Option<K>>() + elsewhere
    }

    fn build(&self, values: Vec<Option<K>>) -> Result<ArrayRef> {
        self.codec.decode(&values)
    }

    fn state_fields(&self) -> Vec<FieldRef> {
        vec![state_field("value", self.codec.data_type().clone())]
    }

    fn save(&self, slots: &[u32]) -> Result<Vec<SavedColumn>> {
        let values: Vec<Option<K>> = slots.iter().map(|slot| self.values[*slot as usize].clone()).collect();
        Ok(vec![self.codec.decode(&values)?.into()])
    }

    fn load(&mut self, slots: &[u32], columns: &[ArrayRef]) -> Result<()> {
        let column = self.codec.encode(&columns[0])?;
        for (row, slot) in slots.iter().enumerate() {
            self.values[*slot as usize] = columns[0].is_valid(row).then(|| K::own(K::view(&column, row)));
        }
        Ok(())
    }
}

/// The value of the only row of a group; NULL counts as a row.
pub(super) struct Single {
    codec: Codec<Arc<[u8]>>,
    cells: Vec<(i64, Option<Arc<[u8]>>)>,
}

impl Single {
    /// Over values of this type.
    pub fn new(data_type: &DataType) -> Result<Single> {
        Ok(Single { codec: Codec::new(data_type)?, cells: Vec::new() })
    }
}

pub(super) struct SingleFold<'a> {
    cells: &'a mut [(i64, Option<Arc<[u8]>>)],
    column: arrow::row::Rows,
    crowded: bool,
}

impl Fold for SingleFold<'_> {
    type Value = Option<Arc<[u8]>>;

    fn add(&mut self, slot: u32, row: usize) {
        let cell = &mut self.cells[slot as usize];
        cell.0 += 1;
        self.crowded |= cell.0 > 1;
        cell.1 = Some(self.column.row(row).data().into());
    }

    fn retract(&mut self, slot: u32, _row: usize) {
        let cell = &mut self.cells[slot as usize];
        cell.0 -= 1;
        if cell.0 <= 0 {
            cell.1 = None;
        }
    }

    fn clear(&mut self, slot: u32) {
        self.cells[slot as usize] = (0, None);
    }

    fn value(&self, slot: u32) -> Option<Arc<[u8]>> {
        self.cells[slot as usize].1.clone()
    }

    fn finish(self) -> Result<()> {
        if self.crowded {
            return Err(Error::data("a scalar subquery gave more than one row")
                .hint("make it give one, for instance with an aggregate or LIMIT 1"));
        }
        Ok(())
    }
}

impl Kernel for Single {
    type Value = Option<Arc<[u8]>>;
    type Fold<'a> = SingleFold<'a>;

    fn bind<'a>(&'a mut self, arguments: &'a [ArrayRef]) -> Result<SingleFold<'a>> {
        Ok(SingleFold { column: self.codec.encode(&arguments[0])?, cells: &mut self.cells, crowded: false })
    }

    fn grow(&mut self, slots: usize) {
        self.cells.resize(slots.max(self.cells.len()), (0, None));
    }

    fn clear(&mut self, slot: u32) {
        self.cells[slot as usize] = (0, None);
    }

    /// Only a scalar subquery's global aggregate asks for a single value, and nothing merges there.
    fn merge(&mut self, into: u32, from: u32) {
        let (rows, value) = std::mem::take(&mut self.cells[from as usize]);
        let cell = &mut self.cells[into as usize];
        cell.0 += rows;
        cell.1 = value.or(cell.1.take());
    }

    fn value(&self, slot: u32) -> Option<Arc<[u8]>> {
        self.cells[slot as usize].1.clone()
    }

    fn bytes(&self) -> usize {
        self.cells.capacity() * size_of::<(i64, Option<Arc<[u8]>>)>()
    }

    fn build(&self, values: Vec<Option<Arc<[u8]>>>) -> Result<ArrayRef> {
        self.codec.decode(&values)
    }

    fn state_fields(&self) -> Vec<FieldRef> {
        vec![state_field("rows", DataType::Int64), state_field("value", self.codec.data_type().clone())]
    }

    fn save(&self, slots: &[u32]) -> Result<Vec<SavedColumn>> {
        let rows = SavedColumn::numbers(slots, &DataType::Int64, |slot| self.cells[slot].0)?;
        let values: Vec<_> = slots.iter().map(|slot| self.cells[*slot as usize].1.clone()).collect();
        Ok(vec![rows, self.codec.decode(&values)?.into()])
    }

    fn load(&mut self, slots: &[u32], columns: &[ArrayRef]) -> Result<()> {
        let rows = columns[0].as_primitive::<Int64Type>().values();
        let column = self.codec.encode(&columns[1])?;
        for (row, slot) in slots.iter().enumerate() {
            let value = (rows[row] > 0).then(|| column.row(row).data().into());
            self.cells[*slot as usize] = (rows[row], value);
        }
        Ok(())
    }
}
