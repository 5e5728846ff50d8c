//! The contract of accumulators: what a function does to one slot, and the loops that drive it over columns.

use std::any::Any;

use arrow::array::{Array, ArrayRef};
use arrow::compute::cast;
use arrow::datatypes::{DataType, FieldRef};

use crate::error::{Error, Result};
use crate::state::{KeyTable, Restored, SavedColumn, TableDelta};

/// What a row does to its group's accumulator.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Action {
    /// Nothing.
    Skip,
    /// Its value comes.
    Add,
    /// Its value goes.
    Retract,
    /// The group's last row goes: start afresh.
    Clear,
}

/// A function bound to the argument columns of one batch.
pub(super) trait Fold {
    /// The state as far as a reader of the result can tell it apart.
    type Value: Clone + PartialEq;
    /// The argument of `row` comes.
    fn add(&mut self, slot: u32, row: usize);
    /// The argument of `row` goes.
    fn retract(&mut self, slot: u32, row: usize);
    /// Start afresh.
    fn clear(&mut self, slot: u32);
    /// The value now.
    fn value(&self, slot: u32) -> Self::Value;
    /// What went wrong on the way.
    fn finish(self) -> Result<()>
    where
        Self: Sized,
    {
        Ok(())
    }
}

/// An aggregate function with its state for every slot.
pub(super) trait Kernel: Send + 'static {
    /// See [`Fold::Value`].
    type Value: Clone + PartialEq + Send;
    /// See [`Fold`].
    type Fold<'a>: Fold<Value = Self::Value>
    where
        Self: 'a;

    /// The function over these argument columns.
    fn bind<'a>(&'a mut self, arguments: &'a [ArrayRef]) -> Result<Self::Fold<'a>>;
    /// Makes room for slots below `slots`.
    fn grow(&mut self, slots: usize);
    /// Start afresh.
    fn clear(&mut self, slot: u32);
    /// What `from` has seen counts as seen by `into` too; `from` starts afresh.
    fn merge(&mut self, into: u32, from: u32);
    /// What the slot of another kernel of the same kind has seen counts as seen by `into` too. Whether it can be done: not
    /// where state has a table of its own ([`super::factory::merges_by_columns`]).
    fn absorb(&mut self, _into: u32, _other: &Self, _from: u32) -> bool {
        false
    }
    /// The value now.
    fn value(&self, slot: u32) -> Self::Value;
    /// Bytes in use, more or less.
    fn bytes(&self) -> usize;
    /// Values as a column.
    fn build(&self, values: Vec<Self::Value>) -> Result<ArrayRef>;

    /// The state columns of a group.
    fn state_fields(&self) -> Vec<FieldRef> {
        Vec::new()
    }
    /// The state columns of these slots.
    fn save(&self, _slots: &[u32]) -> Result<Vec<SavedColumn>> {
        Ok(Vec::new())
    }
    /// Takes back [`Kernel::save`]; the column types are checked.
    fn load(&mut self, _slots: &[u32], _columns: &[ArrayRef]) -> Result<()> {
        Ok(())
    }
    /// The part of the state that has a table of its own.
    fn snapshot(&mut self, _table: &str, _keys: &KeyTable, _base: bool) -> Result<Option<TableDelta>> {
        Ok(None)
    }
    /// Takes back [`Kernel::snapshot`].
    fn restore(&mut self, _table: &str, _keys: &mut KeyTable, _from: &Restored) -> Result<()> {
        Ok(())
    }
}

/// A [`Kernel`] behind a pointer, driven over batches. `actions: None` means that every row adds.
pub(super) trait Accumulator: Send {
    /// Makes room for slots below `slots`.
    fn grow(&mut self, slots: usize);
    /// Start afresh.
    fn clear(&mut self, slot: u32);
    /// See [`Kernel::merge`].
    fn merge(&mut self, into: u32, from: u32) -> Result<()>;
    /// See [`Kernel::absorb`], slot by slot.
    fn absorb(&mut self, into: &[u32], other: &dyn Accumulator, from: &[u32]) -> Result<()>;
    /// Itself, as whatever it is.
    fn as_any(&self) -> &dyn Any;
    /// Applies a batch.
    fn update(&mut self, slots: &[u32], actions: Option<&[Action]>, arguments: &[ArrayRef]) -> Result<()>;
    /// Applies a batch and gives the value before and after each row, interleaved; marks rows that made a difference.
    fn update_each(
        &mut self,
        slots: &[u32],
        actions: Option<&[Action]>,
        arguments: &[ArrayRef],
        changed: &mut [bool],
    ) -> Result<ArrayRef>;
    /// Keeps the values of slots that a bundle touches for the first time.
    fn remember(&mut self, slots: &[u32]) -> Result<()>;
    /// The values remembered and the values now, interleaved; marks slots that differ. `slots` are those given to
    /// [`Accumulator::remember`] since the last call, in order.
    fn images(&mut self, slots: &[u32], changed: &mut [bool]) -> Result<ArrayRef>;
    /// The values now.
    fn evaluate(&self, slots: &[u32]) -> Result<ArrayRef>;
    /// See [`Kernel::bytes`].
    fn bytes(&self) -> usize;
    /// See [`Kernel::state_fields`].
    fn state_fields(&self) -> Vec<FieldRef>;
    /// See [`Kernel::save`].
    fn save(&self, slots: &[u32]) -> Result<Vec<SavedColumn>>;
    /// See [`Kernel::load`].
    fn load(&mut self, slots: &[u32], columns: &[ArrayRef]) -> Result<()>;
    /// See [`Kernel::snapshot`].
    fn snapshot(&mut self, table: &str, keys: &KeyTable, base: bool) -> Result<Option<TableDelta>>;
    /// See [`Kernel::restore`].
    fn restore(&mut self, table: &str, keys: &mut KeyTable, from: &Restored) -> Result<()>;
}

/// A kernel with what the bundle remembers of it.
pub(super) struct Driven<K: Kernel> {
    kernel: K,
    before: Vec<K::Value>,
    output: DataType,
}

impl<K: Kernel> Driven<K> {
    /// Results are cast to `output` where the kernel's own type differs.
    pub fn new(kernel: K, output: DataType) -> Driven<K> {
        Driven { kernel, before: Vec::new(), output }
    }

    fn build(&self, values: Vec<K::Value>) -> Result<ArrayRef> {
        let array = self.kernel.build(values)?;
        if array.data_type() == &self.output { Ok(array) } else { Ok(cast(&array, &self.output)?) }
    }
}

impl<K: Kernel> Accumulator for Driven<K> {
    fn grow(&mut self, slots: usize) {
        self.kernel.grow(slots);
    }

    fn clear(&mut self, slot: u32) {
        self.kernel.clear(slot);
    }

    fn merge(&mut self, into: u32, from: u32) -> Result<()> {
        self.kernel.merge(into, from);
        Ok(())
    }

    fn absorb(&mut self, into: &[u32], other: &dyn Accumulator, from: &[u32]) -> Result<()> {
        let unfit = || Error::bug("the groups of these aggregates do not merge");
        let other = other.as_any().downcast_ref::<Driven<K>>().ok_or_else(unfit)?;
        let mut slots = into.iter().zip(from);
        let absorbed = slots.all(|(into, from)| self.kernel.absorb(*into, &other.kernel, *from));
        if absorbed { Ok(()) } else { Err(unfit()) }
    }

    fn as_any(&self) -> &dyn Any {
        self
    }

    fn update(&mut self, slots: &[u32], actions: Option<&[Action]>, arguments: &[ArrayRef]) -> Result<()> {
        let mut fold = self.kernel.bind(arguments)?;
        match actions {
            None => {
                for (row, slot) in slots.iter().enumerate() {
                    fold.add(*slot, row);
                }
            }
            Some(actions) => {
                for (row, (slot, action)) in slots.iter().zip(actions).enumerate() {
                    apply(&mut fold, *slot, *action, row);
                }
            }
        }
        fold.finish()
    }

    fn update_each(
        &mut self,
        slots: &[u32],
        actions: Option<&[Action]>,
        arguments: &[ArrayRef],
        changed: &mut [bool],
    ) -> Result<ArrayRef> {
        let mut images = Vec::with_capacity(slots.len() * 2);
        let mut fold = self.kernel.bind(arguments)?;
        for (row, slot) in slots.iter().enumerate() {
            let action = actions.map_or(Action::Add, |actions| actions[row]);
            let before = fold.value(*slot);
            if action == Action::Skip {
                images.push(before.clone());
                images.push(before);
                continue;
            }
            apply(&mut fold, *slot, action, row);
            let after = fold.value(*slot);
            changed[row] |= before != after;
            images.push(before);
            images.push(after);
        }
        fold.finish()?;
        self.build(images)
    }

    fn remember(&mut self, slots: &[u32]) -> Result<()> {
        self.before.extend(slots.iter().map(|slot| self.kernel.value(*slot)));
        Ok(())
    }

    fn images(&mut self, slots: &[u32], changed: &mut [bool]) -> Result<ArrayRef> {
        if self.before.len() != slots.len() {
            return Err(Error::bug("a bundle closes over other slots than it remembers"));
        }
        let mut images = Vec::with_capacity(slots.len() * 2);
        for (place, (before, slot)) in self.before.drain(..).zip(slots).enumerate() {
            let after = self.kernel.value(*slot);
            changed[place] |= before != after;
            images.push(before);
            images.push(after);
        }
        self.build(images)
    }

    fn evaluate(&self, slots: &[u32]) -> Result<ArrayRef> {
        self.build(slots.iter().map(|slot| self.kernel.value(*slot)).collect())
    }

    fn bytes(&self) -> usize {
        self.kernel.bytes() + self.before.capacity() * size_of::<K::Value>()
    }

    fn state_fields(&self) -> Vec<FieldRef> {
        self.kernel.state_fields()
    }

    fn save(&self, slots: &[u32]) -> Result<Vec<SavedColumn>> {
        self.kernel.save(slots)
    }

    fn load(&mut self, slots: &[u32], columns: &[ArrayRef]) -> Result<()> {
        self.kernel.load(slots, columns)
    }

    fn snapshot(&mut self, table: &str, keys: &KeyTable, base: bool) -> Result<Option<TableDelta>> {
        self.kernel.snapshot(table, keys, base)
    }

    fn restore(&mut self, table: &str, keys: &mut KeyTable, from: &Restored) -> Result<()> {
        self.kernel.restore(table, keys, from)
    }
}

#[inline]
fn apply(fold: &mut impl Fold, slot: u32, action: Action, row: usize) {
    match action {
        Action::Skip => {}
        Action::Add => fold.add(slot, row),
        Action::Retract => fold.retract(slot, row),
        Action::Clear => fold.clear(slot),
    }
}
