//! One aggregate call over groups: FILTER, NULLs and DISTINCT before the accumulator.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, BooleanArray, RecordBatch, new_empty_array};
use arrow::compute::filter;
use arrow::datatypes::{DataType, FieldRef, Schema};

use super::factory::accumulator;
use super::kernel::{Accumulator, Action};
use super::program::as_rows;
use crate::error::{Error, Result};
use crate::state::{CodecKey, KeyTable, Multisets, Restored, TableDelta, with_codec};
use crate::types::{AggregateCall, AggregateFunction};

/// Lets only the first copy of a value be added and only the last one be retracted.
trait Gate: Send {
    fn grow(&mut self, slots: usize);
    fn clear(&mut self, slot: u32);
    fn bytes(&self) -> usize;
    fn pass(&mut self, slots: &[u32], actions: &mut [Action], argument: &ArrayRef) -> Result<()>;
    /// Moves the values of `from` to `into` and gives those that `into` did not have.
    fn merge(&mut self, into: u32, from: u32) -> Result<ArrayRef>;
    fn snapshot(&mut self, table: &str, keys: &KeyTable, base: bool) -> Result<TableDelta>;
    fn restore(&mut self, table: &str, keys: &mut KeyTable, from: &Restored) -> Result<()>;
}

impl<K: CodecKey> Gate for Multisets<K> {
    fn grow(&mut self, slots: usize) {
        Multisets::grow(self, slots);
    }

    fn clear(&mut self, slot: u32) {
        Multisets::clear(self, slot);
    }

    fn bytes(&self) -> usize {
        Multisets::bytes(self)
    }

    fn pass(&mut self, slots: &[u32], actions: &mut [Action], argument: &ArrayRef) -> Result<()> {
        let column = self.codec().encode(argument)?;
        for (row, (slot, action)) in slots.iter().zip(actions).enumerate() {
            let stays = match action {
                Action::Skip => continue,
                Action::Add => self.add(*slot, K::view(&column, row), 1) == 0,
                Action::Retract => self.add(*slot, K::view(&column, row), -1) == 1,
                Action::Clear => {
                    Multisets::clear(self, *slot);
                    continue;
                }
            };
            if !stays {
                *action = Action::Skip;
            }
        }
        Ok(())
    }

    fn merge(&mut self, into: u32, from: u32) -> Result<ArrayRef> {
        let (values, counts) = self.column(from)?;
        let column = self.codec().encode(&values)?;
        let mut new = Vec::with_capacity(counts.len());
        for (row, count) in counts.into_iter().enumerate() {
            // Below 0 a value has been retracted that never came: it counts neither before nor after.
            let before = self.add(into, K::view(&column, row), count);
            new.push(before <= 0 && before + count > 0);
        }
        Multisets::clear(self, from);
        Ok(filter(&values, &BooleanArray::from(new))?)
    }

    fn snapshot(&mut self, table: &str, keys: &KeyTable, base: bool) -> Result<TableDelta> {
        Multisets::snapshot(self, table, keys, base)
    }

    fn restore(&mut self, table: &str, keys: &mut KeyTable, from: &Restored) -> Result<()> {
        Multisets::restore(self, table, keys, from)
    }
}

/// A gate for values of this type, none of which is NULL.
fn gate(data_type: &DataType) -> Result<Box<dyn Gate>> {
    with_codec!(data_type, K => Ok(Box::new(Multisets::<K>::new(data_type)?)))
}

/// A gate for values of this type and NULL.
fn row_gate(data_type: &DataType) -> Result<Box<dyn Gate>> {
    Ok(Box::new(Multisets::<Arc<[u8]>>::new(data_type)?))
}

/// An aggregate call with its state for every group.
pub(super) struct Call {
    arguments: Vec<usize>,
    /// The columns of `ORDER BY`, which the accumulator gets behind the arguments.
    order: Vec<usize>,
    filter: Option<usize>,
    skips_null: bool,
    gate: Option<Box<dyn Gate>>,
    pub(super) accumulator: Box<dyn Accumulator>,
    distinct_table: String,
    values_table: String,
    narrowed: Vec<Action>,
}

impl Call {
    /// The `index`-th call over columns of `input`.
    pub(super) fn new(index: usize, call: &AggregateCall, input: &Schema, append_only: bool) -> Result<Call> {
        let columns = call.arguments.iter().chain(&call.filter);
        if let Some(column) = columns.max().filter(|column| **column >= input.fields().len()) {
            return Err(Error::bug(format!("aggregate {index} reads column {column} of {}", input.fields().len())));
        }
        // The least and greatest of a set are those of the multiset.
        let own_set = matches!(call.function, AggregateFunction::Min | AggregateFunction::Max);
        let own_set = own_set || !call.order.is_empty();
        // Where values may go, what is approximate otherwise is exact.
        let counts_set = call.function == AggregateFunction::ApproximateCountDistinct && !append_only;
        let keeps_null = matches!(
            call.function,
            AggregateFunction::ArrayAgg | AggregateFunction::SingleValue | AggregateFunction::Program(_)
        );
        let gate = match call.arguments.as_slice() {
            [..] if !(call.distinct || counts_set) || own_set => None,
            [] => None,
            [argument] if !keeps_null => Some(gate(input.field(*argument).data_type())?),
            // Numbers have no form for NULL; rows do.
            [argument] => Some(row_gate(input.field(*argument).data_type())?),
            several => {
                let empty: Vec<ArrayRef> =
                    several.iter().map(|column| new_empty_array(input.field(*column).data_type())).collect();
                Some(row_gate(as_rows(&empty)?.data_type())?)
            }
        };
        Ok(Call {
            arguments: call.arguments.clone(),
            order: call.order.iter().map(|sort| sort.column).collect(),
            filter: call.filter,
            skips_null: !keeps_null,
            gate,
            accumulator: accumulator(call, input, append_only)?,
            distinct_table: format!("aggregate_{index}_distinct"),
            values_table: format!("aggregate_{index}_values"),
            narrowed: Vec::new(),
        })
    }

    pub(super) fn grow(&mut self, slots: usize) {
        self.accumulator.grow(slots);
        if let Some(gate) = &mut self.gate {
            gate.grow(slots);
        }
    }

    pub(super) fn clear(&mut self, slot: u32) {
        self.accumulator.clear(slot);
        if let Some(gate) = &mut self.gate {
            gate.clear(slot);
        }
    }

    /// Bytes in use, more or less.
    pub(super) fn bytes(&self) -> usize {
        self.accumulator.bytes() + self.gate.as_ref().map_or(0, |gate| gate.bytes())
    }

    /// What `from` has seen counts as seen by `into` too; `from` starts afresh.
    pub(super) fn merge(&mut self, into: u32, from: u32) -> Result<()> {
        let Some(gate) = &mut self.gate else {
            return self.accumulator.merge(into, from);
        };
        // Of a value that both have seen, one copy stays: the other group's are added anew, one by one.
        let values = gate.merge(into, from)?;
        self.accumulator.clear(from);
        let arguments = match self.arguments.as_slice() {
            [_] => vec![values],
            _ => values.as_struct().columns().to_vec(),
        };
        self.accumulator.update(&vec![into; arguments[0].len()], None, &arguments)
    }

    fn argument_columns(&self, rows: &RecordBatch) -> Vec<ArrayRef> {
        self.arguments.iter().chain(&self.order).map(|column| ArrayRef::clone(rows.column(*column))).collect()
    }

    /// Applies a batch; `actions: None` means that every row adds.
    pub(super) fn update(&mut self, rows: &RecordBatch, slots: &[u32], actions: Option<&[Action]>) -> Result<()> {
        let arguments = self.argument_columns(rows);
        let narrowed = self.narrow(rows, slots, actions, &arguments)?;
        let actions = if narrowed { Some(self.narrowed.as_slice()) } else { actions };
        self.accumulator.update(slots, actions, &arguments)
    }

    /// Applies a batch and gives the values before and after each row, interleaved.
    pub(super) fn update_each(
        &mut self,
        rows: &RecordBatch,
        slots: &[u32],
        actions: Option<&[Action]>,
        changed: &mut [bool],
    ) -> Result<ArrayRef> {
        let arguments = self.argument_columns(rows);
        let narrowed = self.narrow(rows, slots, actions, &arguments)?;
        let actions = if narrowed { Some(self.narrowed.as_slice()) } else { actions };
        self.accumulator.update_each(slots, actions, &arguments, changed)
    }

    /// Skips rows that FILTER, NULL or DISTINCT leave out. Returns false if there are none, so that `actions` stand.
    fn narrow(
        &mut self,
        rows: &RecordBatch,
        slots: &[u32],
        actions: Option<&[Action]>,
        arguments: &[ArrayRef],
    ) -> Result<bool> {
        let arguments = &arguments[..self.arguments.len()];
        let nulls: Vec<_> = arguments
            .iter()
            .filter(|_| self.skips_null)
            .filter_map(|argument| argument.logical_nulls())
            .filter(|nulls| nulls.null_count() > 0)
            .collect();
        if nulls.is_empty() && self.filter.is_none() && self.gate.is_none() {
            return Ok(false);
        }
        self.narrowed.clear();
        match actions {
            Some(actions) => self.narrowed.extend_from_slice(actions),
            None => self.narrowed.resize(slots.len(), Action::Add),
        }
        let mut keep = |passes: &dyn Fn(usize) -> bool| {
            for (row, action) in self.narrowed.iter_mut().enumerate() {
                if *action != Action::Clear && !passes(row) {
                    *action = Action::Skip;
                }
            }
        };
        if let Some(filter) = self.filter {
            let filter =
                rows.column(filter).as_boolean_opt().ok_or_else(|| Error::bug("FILTER is a Boolean column"))?;
            keep(&|row| filter.is_valid(row) && filter.value(row));
        }
        for nulls in &nulls {
            keep(&|row| nulls.is_valid(row));
        }
        if let Some(gate) = &mut self.gate {
            match arguments {
                [argument] => gate.pass(slots, &mut self.narrowed, argument)?,
                several => gate.pass(slots, &mut self.narrowed, &as_rows(several)?)?,
            }
        }
        Ok(true)
    }

    /// The state columns, named after the call's place.
    pub(super) fn state_fields(&self) -> Vec<FieldRef> {
        self.accumulator.state_fields()
    }

    /// The tables beside the groups' own.
    pub(super) fn snapshot(&mut self, keys: &KeyTable, base: bool) -> Result<Vec<TableDelta>> {
        let mut tables = Vec::new();
        if let Some(gate) = &mut self.gate {
            tables.push(gate.snapshot(&self.distinct_table, keys, base)?);
        }
        tables.extend(self.accumulator.snapshot(&self.values_table, keys, base)?);
        Ok(tables)
    }

    /// Takes back the tables beside the groups' own.
    pub(super) fn restore(&mut self, keys: &mut KeyTable, from: &Restored) -> Result<()> {
        self.grow(keys.capacity());
        if let Some(gate) = &mut self.gate {
            gate.restore(&self.distinct_table, keys, from)?;
        }
        self.accumulator.restore(&self.values_table, keys, from)
    }
}
