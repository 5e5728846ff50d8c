//! Groups: their keys, how many rows each has, and their aggregates.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, RecordBatch};
use arrow::datatypes::{DataType, Int64Type, Schema};

use super::call::Call;
use super::factory::merges_by_columns;
use super::kernel::Action;
use crate::changelog::{ChangeBatch, Kinds};
use crate::error::{Error, Result};
use crate::operators::StateSize;
use crate::state::{KeyTable, Restored, SavedColumn, TableDelta, normalise};
use crate::types::AggregateCall;

/// The table of groups in a snapshot.
const GROUPS: &str = "groups";

/// Tables of at most so many rows are merged sooner than written anew.
const REWRITTEN_ROWS: usize = 10_000;

/// What makes the calls of a table.
struct Recipe {
    input: Schema,
    aggregates: Vec<AggregateCall>,
    append_only: bool,
}

impl Recipe {
    fn calls(&self) -> Result<Vec<Call>> {
        let calls = self.aggregates.iter().enumerate();
        calls.map(|(index, call)| Call::new(index, call, &self.input, self.append_only)).collect()
    }
}

/// Groups by key. A batch goes through `assign`, then `count`, then `update` or `update_each`.
pub(in crate::operators) struct GroupTable {
    pub keys: KeyTable,
    key_columns: Vec<usize>,
    /// Rows of each group; a group exists if there is one.
    pub counts: Vec<i64>,
    calls: Vec<Call>,
    /// What the calls are made of.
    recipe: Recipe,
    /// The slot of each row of the batch.
    pub slots: Vec<u32>,
    /// Whether the group did not exist before the row.
    pub births: Vec<bool>,
    actions: Vec<Action>,
    /// Whether some row does not simply add.
    mixed: bool,
    /// Retractions of rows in groups that do not exist: ignored, as Flink does.
    pub unmatched: u64,
}

impl GroupTable {
    /// Groups over columns of `input`.
    ///
    /// # Errors
    /// If a key or argument type does not fit.
    pub fn new(
        input: &Schema,
        key_columns: &[usize],
        aggregates: &[AggregateCall],
        append_only: bool,
    ) -> Result<GroupTable> {
        let fields = key_columns.iter().map(|column| Arc::clone(&input.fields()[*column])).collect();
        let mut table = GroupTable::with_keys(KeyTable::new(fields)?, input, aggregates, append_only)?;
        table.key_columns = key_columns.to_vec();
        Ok(table)
    }

    /// Groups under keys that are not columns of the input: batches go through `assign_slots` instead of `assign`.
    ///
    /// # Errors
    /// If an argument type does not fit.
    pub fn with_keys(
        keys: KeyTable,
        input: &Schema,
        aggregates: &[AggregateCall],
        append_only: bool,
    ) -> Result<GroupTable> {
        let recipe = Recipe { input: input.clone(), aggregates: aggregates.to_vec(), append_only };
        Ok(GroupTable {
            keys,
            key_columns: Vec::new(),
            counts: Vec::new(),
            calls: recipe.calls()?,
            recipe,
            slots: Vec::new(),
            births: Vec::new(),
            actions: Vec::new(),
            mixed: false,
            unmatched: 0,
        })
    }

    /// The key columns of a batch.
    pub fn key_arrays(&self, rows: &RecordBatch) -> Vec<ArrayRef> {
        // In the form in which the state keeps them: the old image of an update must equal the new one of the last.
        self.key_columns.iter().map(|column| normalise(rows.column(*column))).collect()
    }

    /// Finds or makes the slot of each row.
    ///
    /// # Errors
    /// If a key has no row form.
    pub fn assign(&mut self, rows: &RecordBatch) -> Result<()> {
        let keys = self.key_arrays(rows);
        let mut slots = std::mem::take(&mut self.slots);
        let assigned = self.keys.slots_of(&keys, rows.num_rows(), &mut slots);
        self.slots = slots;
        assigned?;
        self.grow();
        self.keys.touch(&self.slots);
        Ok(())
    }

    /// The batch's rows are of these slots, which are given already.
    pub fn assign_slots(&mut self, slots: Vec<u32>) {
        self.slots = slots;
        self.grow();
        self.keys.touch(&self.slots);
    }

    /// One group becomes part of another and is gone.
    ///
    /// # Errors
    /// If an aggregate fails on its data.
    pub fn merge(&mut self, into: u32, from: u32) -> Result<()> {
        self.keys.touch(&[into]);
        self.counts[into as usize] += self.counts[from as usize];
        self.calls.iter_mut().try_for_each(|call| call.merge(into, from))?;
        self.remove(from);
        Ok(())
    }

    /// Whether all that the groups of these aggregates hold is in their columns of state, so that tables can be merged by
    /// [`GroupTable::absorb_groups`].
    pub fn merges_by_columns(aggregates: &[AggregateCall], append_only: bool) -> bool {
        aggregates.iter().all(|call| merges_by_columns(call, append_only))
    }

    /// Adds the groups of another table of the same kind, for which [`GroupTable::merges_by_columns`] holds.
    ///
    /// # Errors
    /// Only by a bug.
    pub fn absorb_groups(&mut self, other: &GroupTable) -> Result<()> {
        let mut theirs = other.keys.live_slots();
        theirs.retain(|slot| other.counts[*slot as usize] > 0);
        let mut own = std::mem::take(&mut self.slots);
        self.keys.slots_of(&other.keys.take(&theirs)?, theirs.len(), &mut own)?;
        self.grow();
        for (call, others) in self.calls.iter_mut().zip(&other.calls) {
            call.accumulator.absorb(&own, &*others.accumulator, &theirs)?;
        }
        for (own, theirs) in own.iter().zip(&theirs) {
            self.counts[*own as usize] += other.counts[*theirs as usize];
        }
        self.slots = own;
        Ok(())
    }

    fn grow(&mut self) {
        let capacity = self.keys.capacity();
        if self.counts.len() < capacity {
            // Amortised: accumulators grow as vectors do.
            let room = capacity.max(self.counts.len() * 2).max(64);
            self.counts.resize(room, 0);
            self.calls.iter_mut().for_each(|call| call.grow(room));
        }
    }

    /// Counts the rows of the batch into their groups and settles what each does.
    pub fn count(&mut self, kinds: &Kinds) {
        self.births.clear();
        let counts = &mut self.counts;
        let Kinds::Each(kinds) = kinds else {
            self.mixed = false;
            self.births.extend(self.slots.iter().map(|slot| {
                let count = &mut counts[*slot as usize];
                *count += 1;
                *count == 1
            }));
            return;
        };
        self.mixed = true;
        self.actions.clear();
        for (slot, kind) in self.slots.iter().zip(kinds.iter()) {
            let count = &mut counts[*slot as usize];
            let birth = *count == 0;
            let action = match (kind.is_retraction(), *count) {
                (false, _) => Action::Add,
                (true, 0) => {
                    self.unmatched += 1;
                    Action::Skip
                }
                (true, 1) => Action::Clear,
                (true, _) => Action::Retract,
            };
            match action {
                Action::Add => *count += 1,
                Action::Retract | Action::Clear => *count -= 1,
                Action::Skip => {}
            }
            self.births.push(birth);
            self.actions.push(action);
        }
    }

    /// What `row` of the batch does to its group.
    #[inline]
    pub fn action(&self, row: usize) -> Action {
        if self.mixed { self.actions[row] } else { Action::Add }
    }

    /// Applies the batch to the aggregates.
    ///
    /// # Errors
    /// If an aggregate fails on its data.
    pub fn update(&mut self, rows: &RecordBatch) -> Result<()> {
        let actions = self.mixed.then_some(self.actions.as_slice());
        self.calls.iter_mut().try_for_each(|call| call.update(rows, &self.slots, actions))
    }

    /// Applies the batch and gives for each aggregate the values before and after each row, interleaved; marks rows
    /// that changed one.
    ///
    /// # Errors
    /// If an aggregate fails on its data.
    pub fn update_each(&mut self, rows: &RecordBatch, changed: &mut [bool]) -> Result<Vec<ArrayRef>> {
        let actions = self.mixed.then_some(self.actions.as_slice());
        self.calls.iter_mut().map(|call| call.update_each(rows, &self.slots, actions, changed)).collect()
    }

    /// Removes the groups among the batch's that have no row left.
    pub fn remove_empty(&mut self) {
        if self.mixed {
            for slot in &self.slots {
                if self.counts[*slot as usize] == 0 {
                    self.keys.remove(*slot);
                }
            }
        }
    }

    /// Removes a group with everything in it.
    pub fn remove(&mut self, slot: u32) {
        self.counts[slot as usize] = 0;
        self.calls.iter_mut().for_each(|call| call.clear(slot));
        self.keys.remove(slot);
    }

    /// Starts a group afresh without removing it.
    pub fn clear(&mut self, slot: u32) {
        self.counts[slot as usize] = 0;
        self.calls.iter_mut().for_each(|call| call.clear(slot));
    }

    /// Keeps the aggregates of slots that a bundle touches for the first time.
    ///
    /// # Errors
    /// If an aggregate fails on its data.
    pub fn remember(&mut self, slots: &[u32]) -> Result<()> {
        self.calls.iter_mut().try_for_each(|call| call.accumulator.remember(slots))
    }

    /// For each aggregate the values remembered and the values now, interleaved; marks slots where one differs.
    ///
    /// # Errors
    /// If an aggregate fails on its data.
    pub fn images(&mut self, slots: &[u32], changed: &mut [bool]) -> Result<Vec<ArrayRef>> {
        self.calls.iter_mut().map(|call| call.accumulator.images(slots, changed)).collect()
    }

    /// The aggregates of these slots.
    ///
    /// # Errors
    /// If an aggregate fails on its data.
    pub fn evaluate(&self, slots: &[u32]) -> Result<Vec<ArrayRef>> {
        self.calls.iter().map(|call| call.accumulator.evaluate(slots)).collect()
    }

    /// Assigns, counts and applies a batch whose results are not asked for now.
    ///
    /// # Errors
    /// If an aggregate fails on its data.
    pub fn absorb(&mut self, batch: &ChangeBatch) -> Result<()> {
        self.assign(batch.rows())?;
        self.count(batch.kinds());
        self.update(batch.rows())?;
        self.remove_empty();
        Ok(())
    }

    /// How many groups there are, and how many bytes they take.
    pub fn size(&self) -> StateSize {
        let slots = self.counts.capacity() * size_of::<i64>() + self.slots.capacity() * size_of::<u32>();
        let calls: usize = self.calls.iter().map(Call::bytes).sum();
        StateSize::new(self.keys.len(), self.keys.bytes() + slots + calls)
    }

    /// Gives back the memory of many groups that are all gone. Returns whether it did: then no slot is given any more.
    ///
    /// # Errors
    /// Only by a bug.
    pub fn shrink(&mut self) -> Result<bool> {
        let shrunk = self.keys.shrink()?;
        if shrunk {
            (self.counts, self.slots, self.births, self.actions) = Default::default();
            self.calls = self.recipe.calls()?;
        }
        Ok(shrunk)
    }

    /// Whether most groups were written since the last snapshot: then a base of them costs hardly more than a delta,
    /// and spares the merging of deltas.
    pub fn is_mostly_dirty(&self) -> bool {
        self.keys.dirty_len() > REWRITTEN_ROWS.max(self.keys.len() / 2)
    }

    /// What changed since the last snapshot, or everything for a base: of the groups, and of what some aggregates keep
    /// `beside` them.
    ///
    /// # Errors
    /// Only by a bug.
    pub fn snapshot(&mut self, base: bool, beside: bool) -> Result<Vec<TableDelta>> {
        let changed = self.keys.changed(base);
        let slots = &changed.upserts;
        let mut more = vec![SavedColumn::numbers(slots, &DataType::Int64, |slot| self.counts[slot])?.named("rows")];
        for (index, call) in self.calls.iter().enumerate() {
            for (field, column) in call.state_fields().iter().zip(call.accumulator.save(slots)?) {
                more.push(column.named(&format!("aggregate_{index}_{}", field.name())));
            }
        }
        let upserts = self.keys.rows(slots, more)?;
        let deletes = self.keys.rows(&changed.deletes, Vec::new())?;
        let mut tables = vec![self.keys.delta(GROUPS, base, 0, upserts, deletes)?];
        for call in &mut self.calls {
            tables.extend(call.snapshot(&self.keys, beside)?);
        }
        self.keys.finish_snapshot();
        Ok(tables)
    }

    /// Removes every group; what an earlier snapshot holds of them comes out as deletions.
    ///
    /// # Errors
    /// Only by a bug.
    pub fn forget(mut self) -> Result<Vec<TableDelta>> {
        for slot in self.keys.live_slots() {
            self.remove(slot);
        }
        self.snapshot(false, false)
    }

    /// Takes back what snapshots held.
    ///
    /// # Errors
    /// If the saved rows do not fit.
    pub fn restore(&mut self, from: &Restored) -> Result<()> {
        let mut slots = Vec::new();
        for delta in from.table(GROUPS) {
            if let Some(rows) = &delta.deletes {
                let (keys, _) = self.keys.split_saved(GROUPS, rows)?;
                self.keys.slots_of(&keys, rows.num_rows(), &mut slots)?;
                self.grow();
                slots.iter().for_each(|slot| self.remove(*slot));
            }
            if let Some(rows) = &delta.upserts {
                let (keys, columns) = self.keys.split_saved(GROUPS, rows)?;
                self.keys.slots_of(&keys, rows.num_rows(), &mut slots)?;
                self.grow();
                self.load(&slots, &columns)?;
            }
        }
        for call in &mut self.calls {
            call.restore(&mut self.keys, from)?;
        }
        self.grow();
        // Older deltas of the tables beside may name groups that are gone since.
        for slot in self.keys.live_slots() {
            if self.counts[slot as usize] == 0 {
                self.remove(slot);
            }
        }
        Ok(())
    }

    fn load(&mut self, slots: &[u32], columns: &[ArrayRef]) -> Result<()> {
        let unfit = || Error::state("saved groups do not have the state columns of the query's aggregates");
        let mut rest = columns;
        let mut next = |count: usize| {
            let (taken, left) = rest.split_at_checked(count)?;
            rest = left;
            Some(taken)
        };
        let whole = |column: &[ArrayRef]| column[0].as_primitive_opt::<Int64Type>().cloned();
        let counts = next(1).and_then(whole).ok_or_else(unfit)?;
        for (row, slot) in slots.iter().enumerate() {
            self.counts[*slot as usize] = counts.value(row);
        }
        for call in &mut self.calls {
            let fields = call.state_fields();
            let taken = next(fields.len()).ok_or_else(unfit)?;
            if fields.iter().zip(taken).any(|(field, column)| field.data_type() != column.data_type()) {
                return Err(unfit());
            }
            call.accumulator.load(slots, taken)?;
        }
        if rest.is_empty() { Ok(()) } else { Err(unfit()) }
    }
}
