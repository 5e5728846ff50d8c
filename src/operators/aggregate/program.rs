//! Aggregate functions of the program's own, through the library's traits: one accumulator a group.
//!
//! | the accumulator | over input from which values go |
//! |---|---|
//! | can take a value back (`supports_retract_batch`) | takes back any value that came, not only the oldest |
//! | cannot | the group's values are kept, and every change computes the result anew from all of them |
//!
//! Over input that only comes no value is kept. Results are read again and again, so `evaluate` must leave an accumulator
//! as it is, as the library's windows ask of it too; after `state` it is made anew from what `state` gave.

use std::any::Any;
use std::cell::RefCell;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, StructArray, UInt32Array, new_empty_array};
use arrow::compute::{cast, take};
use arrow::datatypes::{DataType, Field, FieldRef, Fields, Schema};
use datafusion_common::ScalarValue;
use datafusion_expr::function::{AccumulatorArgs, StateFieldsArgs};
use datafusion_expr::{Accumulator as ProgramAccumulator, AggregateUDF};
use datafusion_physical_expr::PhysicalExpr;
use datafusion_physical_expr::expressions::Column;

use super::kernel::{Accumulator, Action};
use super::numeric::state_field;
use crate::error::{Error, Result};
use crate::state::{Arrivals, KeyTable, Restored, SavedColumn, TableDelta};
use crate::types::AggregateCall;

/// Makes accumulators of a function.
struct Maker {
    function: Arc<AggregateUDF>,
    arguments: Schema,
    fields: Vec<FieldRef>,
    expressions: Vec<Arc<dyn PhysicalExpr>>,
    output: FieldRef,
}

impl Maker {
    fn new_accumulator(&self) -> Result<Box<dyn ProgramAccumulator>> {
        let arguments = AccumulatorArgs {
            return_field: Arc::clone(&self.output),
            schema: &self.arguments,
            ignore_nulls: false,
            order_bys: &[],
            is_reversed: false,
            name: self.function.name(),
            // Of equal values only one is handed on.
            is_distinct: false,
            exprs: &self.expressions,
            expr_fields: &self.fields,
        };
        self.function.accumulator(arguments).map_err(|error| self.failed(error))
    }

    fn state_fields(&self) -> Result<Vec<FieldRef>> {
        let arguments = StateFieldsArgs {
            name: self.function.name(),
            input_fields: &self.fields,
            return_field: Arc::clone(&self.output),
            ordering_fields: &[],
            is_distinct: false,
        };
        self.function.state_fields(arguments).map_err(|error| self.failed(error))
    }

    fn failed(&self, error: datafusion_common::DataFusionError) -> Error {
        Error::data(format!("{}: {}", self.function.name(), error.strip_backtrace()))
    }
}

/// A function of the program's own.
pub(super) struct Program {
    maker: Maker,
    /// By slot; none before the first value, and none at all where values are kept instead.
    accumulators: Vec<RefCell<Option<Box<dyn ProgramAccumulator>>>>,
    /// The groups' values, where the function cannot take one back and values go.
    values: Option<Arrivals>,
    state_fields: Vec<FieldRef>,
    /// By slot: the result, as far as it is known.
    results: Vec<Option<ScalarValue>>,
    /// What a bundle found.
    before: Vec<ScalarValue>,
}

impl Program {
    /// The function over columns of `input`.
    ///
    /// # Errors
    /// If it does not take these arguments.
    pub fn new(
        function: &Arc<AggregateUDF>,
        call: &AggregateCall,
        input: &Schema,
        append_only: bool,
    ) -> Result<Program> {
        if call.arguments.is_empty() {
            return Err(Error::sql(format!("{} has no argument", function.name()))
                .hint("an aggregate function of the program's own takes at least one"));
        }
        // Columns may share a name; the arguments have names of their own.
        let named = call.arguments.iter().enumerate().map(|(index, column)| {
            Arc::new(input.field(*column).clone().with_name(format!("argument_{index}")).with_nullable(true))
        });
        let fields: Vec<FieldRef> = named.collect();
        let expression =
            |(index, field): (usize, &FieldRef)| Arc::new(Column::new(field.name(), index)) as Arc<dyn PhysicalExpr>;
        let maker = Maker {
            function: Arc::clone(function),
            arguments: Schema::new(fields.clone()),
            expressions: fields.iter().enumerate().map(expression).collect(),
            output: Arc::clone(&call.output),
            fields,
        };
        let recomputes = !append_only && !maker.new_accumulator()?.supports_retract_batch();
        let values = match recomputes {
            true => Some(Arrivals::new(&DataType::Struct(maker.arguments.fields().clone()), true)?),
            false => None,
        };
        let numbered =
            |(index, field): (usize, FieldRef)| state_field(&format!("state_{index}"), field.data_type().clone());
        let state_fields = match recomputes {
            true => Vec::new(),
            false => maker.state_fields()?.into_iter().enumerate().map(numbered).collect(),
        };
        let (accumulators, results, before) = Default::default();
        Ok(Program { maker, accumulators, values, state_fields, results, before })
    }

    fn evaluate_slot(&self, slot: u32) -> Result<ScalarValue> {
        let failed = |error| self.maker.failed(error);
        let Some(values) = &self.values else {
            return match &mut *self.accumulators[slot as usize].borrow_mut() {
                Some(accumulator) => accumulator.evaluate().map_err(failed),
                None => self.maker.new_accumulator()?.evaluate().map_err(failed),
            };
        };
        let mut accumulator = self.maker.new_accumulator()?;
        let rows: Vec<_> = values.values(slot).cloned().map(Some).collect();
        if !rows.is_empty() {
            let rows = values.codec().decode(&rows)?;
            accumulator.update_batch(rows.as_struct().columns()).map_err(failed)?;
        }
        accumulator.evaluate().map_err(failed)
    }

    fn column(&self, results: Vec<ScalarValue>) -> Result<ArrayRef> {
        let output = self.maker.output.data_type();
        if results.is_empty() {
            return Ok(new_empty_array(output));
        }
        let column = ScalarValue::iter_to_array(results).map_err(|error| self.maker.failed(error))?;
        if column.data_type() == output { Ok(column) } else { Ok(cast(&column, output)?) }
    }

    /// Applies what some rows of one slot do, all the same.
    fn apply(&mut self, slot: u32, action: Action, arguments: &[ArrayRef]) -> Result<()> {
        let place = slot as usize;
        if let Some(values) = &mut self.values {
            let rows = self.maker.arguments.fields().clone();
            let rows: ArrayRef = Arc::new(StructArray::try_new(rows, arguments.to_vec(), None)?);
            let encoded = values.encode(&rows)?;
            for row in 0..rows.len() {
                match action {
                    Action::Skip => {}
                    Action::Add => values.push(slot, encoded.row(row).data()),
                    Action::Retract => drop(values.retract(slot, encoded.row(row).data())),
                    Action::Clear => values.clear(slot),
                }
            }
            return Ok(());
        }
        if matches!(action, Action::Clear | Action::Skip) {
            if action == Action::Clear {
                self.accumulators[place] = RefCell::default();
            }
            return Ok(());
        }
        let accumulator = self.accumulators[place].get_mut();
        let accumulator = match accumulator {
            Some(accumulator) => accumulator,
            None => accumulator.insert(self.maker.new_accumulator()?),
        };
        let done = match action {
            Action::Retract => accumulator.retract_batch(arguments),
            _ => accumulator.update_batch(arguments),
        };
        done.map_err(|error| self.maker.failed(error))
    }

    /// The state of a slot as a row, one column a part. The accumulator goes on from what it gave.
    fn state_of(&self, slot: u32) -> Result<Vec<ScalarValue>> {
        let failed = |error| self.maker.failed(error);
        let mut place = self.accumulators[slot as usize].borrow_mut();
        let Some(accumulator) = place.as_mut() else {
            return self.maker.new_accumulator()?.state().map_err(failed);
        };
        let state = accumulator.state().map_err(failed)?;
        let columns = state.iter().map(ScalarValue::to_array).collect::<Result<Vec<_>, _>>().map_err(failed)?;
        let mut again = self.maker.new_accumulator()?;
        again.merge_batch(&columns).map_err(failed)?;
        *place = Some(again);
        Ok(state)
    }
}

impl Accumulator for Program {
    fn grow(&mut self, slots: usize) {
        if self.accumulators.len() < slots {
            self.accumulators.resize_with(slots, RefCell::default);
            self.results.resize(slots, None);
        }
        if let Some(values) = &mut self.values {
            values.grow(slots);
        }
    }

    fn clear(&mut self, slot: u32) {
        self.accumulators[slot as usize] = RefCell::default();
        self.results[slot as usize] = None;
        if let Some(values) = &mut self.values {
            values.clear(slot);
        }
    }

    fn merge(&mut self, into: u32, from: u32) -> Result<()> {
        self.results[into as usize] = None;
        if let Some(values) = &mut self.values {
            values.merge(into, from);
        } else if self.accumulators[from as usize].get_mut().is_some() {
            let failed = |error| self.maker.failed(error);
            let state = self.state_of(from)?;
            let columns = state.iter().map(ScalarValue::to_array).collect::<Result<Vec<_>, _>>().map_err(failed)?;
            let mut accumulator = match self.accumulators[into as usize].take() {
                Some(accumulator) => accumulator,
                None => self.maker.new_accumulator()?,
            };
            accumulator.merge_batch(&columns).map_err(failed)?;
            self.accumulators[into as usize] = RefCell::new(Some(accumulator));
        }
        self.clear(from);
        Ok(())
    }

    /// Windows of several panes are computed over their rows ([`super::factory::merges_by_columns`]).
    fn absorb(&mut self, _into: &[u32], _other: &dyn Accumulator, _from: &[u32]) -> Result<()> {
        Err(Error::bug("the groups of a program's aggregate do not merge by columns"))
    }

    fn as_any(&self) -> &dyn Any {
        self
    }

    fn update(&mut self, slots: &[u32], actions: Option<&[Action]>, arguments: &[ArrayRef]) -> Result<()> {
        // Rows of one slot in their order, so that each accumulator is called once a run of equal actions.
        let action = |row: u32| actions.map_or(Action::Add, |actions| actions[row as usize]);
        let mut rows: Vec<u32> = (0..slots.len() as u32).filter(|row| action(*row) != Action::Skip).collect();
        rows.sort_by_key(|row| slots[*row as usize]);
        for run in
            rows.chunk_by(|one, next| slots[*one as usize] == slots[*next as usize] && action(*one) == action(*next))
        {
            let slot = slots[run[0] as usize];
            self.results[slot as usize] = None;
            let places = UInt32Array::from(run.to_vec());
            let taken =
                arguments.iter().map(|argument| take(argument, &places, None)).collect::<Result<Vec<_>, _>>()?;
            self.apply(slot, action(run[0]), &taken)?;
        }
        Ok(())
    }

    fn update_each(
        &mut self,
        slots: &[u32],
        actions: Option<&[Action]>,
        arguments: &[ArrayRef],
        changed: &mut [bool],
    ) -> Result<ArrayRef> {
        let mut images = Vec::with_capacity(slots.len() * 2);
        for (row, slot) in slots.iter().enumerate() {
            let before = match self.results[*slot as usize].take() {
                Some(known) => known,
                None => self.evaluate_slot(*slot)?,
            };
            let action = actions.map_or(Action::Add, |actions| actions[row]);
            let after = if action == Action::Skip {
                before.clone()
            } else {
                let one: Vec<ArrayRef> = arguments.iter().map(|argument| argument.slice(row, 1)).collect();
                self.apply(*slot, action, &one)?;
                self.evaluate_slot(*slot)?
            };
            changed[row] |= before != after;
            self.results[*slot as usize] = Some(after.clone());
            images.extend([before, after]);
        }
        self.column(images)
    }

    fn remember(&mut self, slots: &[u32]) -> Result<()> {
        for slot in slots {
            let value = match &self.results[*slot as usize] {
                Some(known) => known.clone(),
                None => self.evaluate_slot(*slot)?,
            };
            self.before.push(value);
        }
        Ok(())
    }

    fn images(&mut self, slots: &[u32], changed: &mut [bool]) -> Result<ArrayRef> {
        let before = std::mem::take(&mut self.before);
        if before.len() != slots.len() {
            return Err(Error::bug("a bundle closes over other slots than it remembers"));
        }
        let mut images = Vec::with_capacity(slots.len() * 2);
        for (place, (before, slot)) in before.into_iter().zip(slots).enumerate() {
            let after = self.evaluate_slot(*slot)?;
            changed[place] |= before != after;
            self.results[*slot as usize] = Some(after.clone());
            images.extend([before, after]);
        }
        self.column(images)
    }

    fn evaluate(&self, slots: &[u32]) -> Result<ArrayRef> {
        self.column(slots.iter().map(|slot| self.evaluate_slot(*slot)).collect::<Result<_>>()?)
    }

    fn bytes(&self) -> usize {
        let of = |place: &RefCell<Option<Box<dyn ProgramAccumulator>>>| {
            place.borrow().as_ref().map_or(0, |accumulator| accumulator.size())
        };
        let slot = size_of::<RefCell<Option<Box<dyn ProgramAccumulator>>>>() + size_of::<Option<ScalarValue>>();
        let values = self.values.as_ref().map_or(0, Arrivals::bytes);
        self.accumulators.len() * slot + self.accumulators.iter().map(of).sum::<usize>() + values
    }

    fn state_fields(&self) -> Vec<FieldRef> {
        self.state_fields.clone()
    }

    fn save(&self, slots: &[u32]) -> Result<Vec<SavedColumn>> {
        if self.state_fields.is_empty() {
            return Ok(Vec::new());
        }
        let mut parts: Vec<Vec<ScalarValue>> = vec![Vec::with_capacity(slots.len()); self.state_fields.len()];
        for slot in slots {
            let state = self.state_of(*slot)?;
            if state.len() != parts.len() {
                return Err(self.unlike_fields());
            }
            parts.iter_mut().zip(state).for_each(|(part, value)| part.push(value));
        }
        let columns = parts.into_iter().zip(&self.state_fields).map(|(part, field)| {
            if part.is_empty() {
                return Ok(new_empty_array(field.data_type()).into());
            }
            let column = ScalarValue::iter_to_array(part).map_err(|error| self.maker.failed(error))?;
            if column.data_type() == field.data_type() { Ok(column.into()) } else { Err(self.unlike_fields()) }
        });
        columns.collect()
    }

    fn load(&mut self, slots: &[u32], columns: &[ArrayRef]) -> Result<()> {
        if self.state_fields.is_empty() {
            return Ok(());
        }
        for (row, slot) in slots.iter().enumerate() {
            let mut accumulator = self.maker.new_accumulator()?;
            let state: Vec<ArrayRef> = columns.iter().map(|column| column.slice(row, 1)).collect();
            accumulator.merge_batch(&state).map_err(|error| self.maker.failed(error))?;
            self.accumulators[*slot as usize] = RefCell::new(Some(accumulator));
            self.results[*slot as usize] = None;
        }
        Ok(())
    }

    fn snapshot(&mut self, table: &str, keys: &KeyTable, base: bool) -> Result<Option<TableDelta>> {
        self.values.as_mut().map(|values| values.snapshot(table, keys, base)).transpose()
    }

    fn restore(&mut self, table: &str, keys: &mut KeyTable, from: &Restored) -> Result<()> {
        match &mut self.values {
            Some(values) => values.restore(table, keys, from),
            None => Ok(()),
        }
    }
}

impl Program {
    fn unlike_fields(&self) -> Error {
        Error::data(format!("the state of {} is not what its state_fields say", self.maker.function.name()))
    }
}

/// The arguments of a call as one column of rows, for DISTINCT over several.
pub(super) fn as_rows(arguments: &[ArrayRef]) -> Result<ArrayRef> {
    let fields: Fields = arguments
        .iter()
        .enumerate()
        .map(|(index, column)| Field::new(format!("c{index}"), column.data_type().clone(), true))
        .collect();
    Ok(Arc::new(StructArray::try_new(fields, arguments.to_vec(), None)?))
}
