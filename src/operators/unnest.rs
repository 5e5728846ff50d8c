//! `UNNEST`: each row once for each element of a collection in it; what a retracted row gave is retracted with it.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, BooleanArray, Int32Array, RecordBatch, RecordBatchOptions, UInt32Array};
use arrow::buffer::NullBuffer;
use arrow::compute::{cast, take};
use arrow::datatypes::{DataType, Field, Int32Type, SchemaRef};
use datafusion_physical_expr::PhysicalExpr;

use super::expression::evaluate;
use super::{Operator, Output, Port};
use crate::changelog::{ChangeBatch, Kinds};
use crate::error::{Error, Result};

/// What an [`Unnest`] is made of.
pub struct UnnestParameters {
    /// The rows emitted: the columns `shown` of `pairs`.
    pub output: SchemaRef,
    /// The columns of the input, those of an element, and its number if that is wanted.
    pub pairs: SchemaRef,
    /// Indices into `pairs`, ascending.
    pub shown: Vec<usize>,
    /// The collection, over the input's columns.
    pub collection: Arc<dyn PhysicalExpr>,
    /// Whether the collection counts its elements: a `MULTISET`.
    pub counted: bool,
    /// Which elements are joined to their row, over `pairs`.
    pub condition: Option<Arc<dyn PhysicalExpr>>,
    /// Whether a row that no element is joined to comes once, with NULL for the element.
    pub outer: bool,
}

/// Joins each row to the elements of its own collection. Of the elements of type `ROW`, which are shown as columns, those
/// that are NULL are no rows.
pub struct Unnest(UnnestParameters);

/// Row by row, which row of the input stands beside which element of the collections laid end to end.
#[derive(Default)]
struct Pairs {
    rows: Vec<u32>,
    elements: Vec<Option<u32>>,
    numbers: Vec<Option<i32>>,
}

impl Pairs {
    fn push(&mut self, row: usize, element: Option<usize>, number: Option<i32>) {
        self.rows.push(row as u32);
        self.elements.push(element.map(|element| element as u32));
        self.numbers.push(number);
    }

    /// The pairs for which `mask` is true.
    fn kept(&self, mask: &BooleanArray) -> Pairs {
        let mut kept = Pairs::default();
        for index in (0..self.rows.len()).filter(|index| mask.is_valid(*index) && mask.value(*index)) {
            kept.rows.push(self.rows[index]);
            kept.elements.push(self.elements[index]);
            kept.numbers.push(self.numbers[index]);
        }
        kept
    }

    /// With a pair for each of `count` rows that has none.
    fn padded(self, count: usize) -> Pairs {
        let mut padded = Pairs::default();
        let mut at = 0;
        for row in 0..count {
            let from = at;
            while self.rows.get(at).is_some_and(|of| *of as usize == row) {
                padded.push(row, self.elements[at].map(|element| element as usize), self.numbers[at]);
                at += 1;
            }
            if at == from {
                padded.push(row, None, None);
            }
        }
        padded
    }
}

/// The elements of the collections of a batch, laid end to end.
struct Elements {
    /// The columns of an element.
    columns: Vec<ArrayRef>,
    /// Which elements are there; the others give no row.
    present: Option<NullBuffer>,
    /// How often each is in its multiset.
    counts: Option<Int32Array>,
}

impl Unnest {
    /// An operator of these parameters.
    pub fn new(parameters: UnnestParameters) -> Unnest {
        Unnest(parameters)
    }

    fn pairs(&self, collections: &ArrayRef, elements: &Elements) -> Result<Pairs> {
        let offsets = match collections.data_type() {
            DataType::List(_) => collections.as_list::<i32>().value_offsets(),
            _ => collections.as_map().value_offsets(),
        };
        let mut pairs = Pairs::default();
        for row in (0..collections.len()).filter(|row| collections.is_valid(*row)) {
            let mut number = 0;
            for element in offsets[row] as usize..offsets[row + 1] as usize {
                let count = elements.counts.as_ref().map_or(1, |counts| counts.value(element));
                let present = elements.present.as_ref().is_none_or(|present| present.is_valid(element));
                for _ in 0..count {
                    number += 1;
                    if present {
                        pairs.push(row, Some(element), Some(number));
                    }
                }
            }
        }
        if pairs.rows.len() > u32::MAX as usize {
            return Err(Error::data("UNNEST gives more rows than one batch can hold"));
        }
        Ok(pairs)
    }

    /// The columns `shown` of the pairs, as `schema` names them.
    fn columns(
        rows: &RecordBatch,
        elements: &Elements,
        pairs: &Pairs,
        shown: impl Iterator<Item = usize>,
        schema: &SchemaRef,
    ) -> Result<RecordBatch> {
        let of_row = UInt32Array::from(pairs.rows.clone());
        let of_element = UInt32Array::from(pairs.elements.clone());
        let own = rows.num_columns();
        let column = |index: usize| -> Result<ArrayRef> {
            let Some(place) = index.checked_sub(own) else { return Ok(take(rows.column(index), &of_row, None)?) };
            match elements.columns.get(place) {
                Some(column) => Ok(take(column, &of_element, None)?),
                None => Ok(Arc::new(Int32Array::from(pairs.numbers.clone()))),
            }
        };
        let typed = |(index, field): (usize, &Arc<Field>)| -> Result<ArrayRef> {
            let values = column(index)?;
            // Within a type, what its parts are called beyond Arrow's types may have been lost on the way.
            if values.data_type() == field.data_type() { Ok(values) } else { Ok(cast(&values, field.data_type())?) }
        };
        let columns = shown.zip(schema.fields()).map(typed).collect::<Result<Vec<_>>>()?;
        let options = RecordBatchOptions::new().with_row_count(Some(pairs.rows.len()));
        Ok(RecordBatch::try_new_with_options(Arc::clone(schema), columns, &options)?)
    }
}

impl Elements {
    fn of(collections: &ArrayRef, counted: bool) -> Result<Elements> {
        match collections.data_type() {
            DataType::List(_) => {
                let values = collections.as_list::<i32>().values();
                Ok(match values.as_struct_opt() {
                    Some(fields) => {
                        Elements { columns: fields.columns().to_vec(), present: fields.nulls().cloned(), counts: None }
                    }
                    None => Elements { columns: vec![Arc::clone(values)], present: None, counts: None },
                })
            }
            DataType::Map(..) => {
                let map = collections.as_map();
                if !counted {
                    let columns = vec![Arc::clone(map.keys()), Arc::clone(map.values())];
                    return Ok(Elements { columns, present: None, counts: None });
                }
                let counts = map.values().as_primitive::<Int32Type>().clone();
                Ok(match map.keys().as_struct_opt() {
                    Some(fields) => Elements {
                        columns: fields.columns().to_vec(),
                        present: fields.nulls().cloned(),
                        counts: Some(counts),
                    },
                    None => Elements { columns: vec![Arc::clone(map.keys())], present: None, counts: Some(counts) },
                })
            }
            other => Err(Error::bug(format!("UNNEST of {other}"))),
        }
    }
}

impl Operator for Unnest {
    fn on_changes(&mut self, _port: Port, batch: ChangeBatch, out: &mut Output) -> Result<()> {
        let collections = evaluate(&self.0.collection, batch.rows())?;
        let elements = Elements::of(&collections, self.0.counted)?;
        let mut pairs = self.pairs(&collections, &elements)?;
        if let Some(condition) = &self.0.condition {
            let every = 0..self.0.pairs.fields().len();
            let all = Unnest::columns(batch.rows(), &elements, &pairs, every, &self.0.pairs)?;
            let mask = evaluate(condition, &all)?;
            let mask = mask.as_boolean_opt().ok_or_else(|| Error::bug("a condition is not a Boolean"))?;
            pairs = pairs.kept(mask);
        }
        if self.0.outer {
            pairs = pairs.padded(batch.len());
        }
        if pairs.rows.is_empty() {
            return Ok(());
        }
        let shown = self.0.shown.iter().copied();
        let rows = Unnest::columns(batch.rows(), &elements, &pairs, shown, &self.0.output)?;
        out.changes(match batch.kinds() {
            Kinds::AllInsert => ChangeBatch::inserts(rows),
            Kinds::Each(kinds) => ChangeBatch::new(rows, pairs.rows.iter().map(|row| kinds[*row as usize]).collect())?,
        });
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use arrow::array::{Int32Builder, types::Int32Type as Element};
    use arrow::array::{Int64Array, ListArray, MapBuilder, StringBuilder, StructArray};
    use arrow::datatypes::Schema;
    use datafusion_physical_expr::expressions::{Column, IsNotNullExpr};

    use super::*;
    use crate::changelog::Kind;

    /// One collection a row, with the number of the row before it.
    fn input(collections: ArrayRef) -> RecordBatch {
        let ids: ArrayRef = Arc::new(Int64Array::from_iter_values(0..collections.len() as i64));
        RecordBatch::try_from_iter([("id", ids), ("xs", collections)]).unwrap()
    }

    fn operator(input: &RecordBatch, columns: &[(&str, DataType)], change: impl Fn(&mut UnnestParameters)) -> Unnest {
        let added = columns.iter().map(|(name, data_type)| Arc::new(Field::new(*name, data_type.clone(), true)));
        let fields: Vec<_> = input.schema().fields().iter().cloned().chain(added).collect();
        let all = Arc::new(Schema::new(fields));
        let mut parameters = UnnestParameters {
            output: Arc::clone(&all),
            shown: (0..all.fields().len()).collect(),
            pairs: all,
            collection: Arc::new(Column::new("xs", 1)),
            counted: false,
            condition: None,
            outer: false,
        };
        change(&mut parameters);
        Unnest::new(parameters)
    }

    /// Each row emitted: its kind, the number of the row it comes from, and the element's columns.
    fn run(unnest: &mut Unnest, batch: ChangeBatch) -> Vec<String> {
        let mut out = Output::default();
        unnest.on_changes(0, batch, &mut out).unwrap();
        let mut lines = Vec::new();
        for event in out.drain() {
            let crate::changelog::Event::Changes(batch) = event else { continue };
            let cell = |column: &ArrayRef, row| {
                arrow::util::display::array_value_to_string(column, row)
                    .map(|text| if column.is_null(row) { "NULL".to_string() } else { text })
                    .unwrap()
            };
            for row in 0..batch.len() {
                let columns = batch.rows().columns().iter().enumerate().filter(|(index, _)| *index != 1);
                let cells: Vec<String> = columns.map(|(_, column)| cell(column, row)).collect();
                lines.push(format!("{} {}", batch.kind(row), cells.join(" ")));
            }
        }
        lines
    }

    fn lists() -> RecordBatch {
        let lists = vec![Some(vec![Some(7), None]), None, Some(vec![]), Some(vec![Some(8)])];
        input(Arc::new(ListArray::from_iter_primitive::<Element, _, _>(lists)))
    }

    #[test]
    fn each_element_is_a_row_of_the_kind_of_its_own() {
        let rows = lists();
        let kinds = vec![Kind::UpdateBefore, Kind::UpdateAfter, Kind::Insert, Kind::Delete];
        let batch = ChangeBatch::new(rows.clone(), kinds).unwrap();
        let mut inner = operator(&rows, &[("x", DataType::Int32)], |_| {});
        assert_eq!(run(&mut inner, batch.clone()), ["-U 0 7", "-U 0 NULL", "-D 3 8"]);
        let mut outer = operator(&rows, &[("x", DataType::Int32)], |parameters| parameters.outer = true);
        assert_eq!(run(&mut outer, batch), ["-U 0 7", "-U 0 NULL", "+U 1 NULL", "+I 2 NULL", "-D 3 8"]);
    }

    #[test]
    fn a_condition_says_which_elements_are_joined() {
        let rows = lists();
        let columns = [("x", DataType::Int32), ("n", DataType::Int32)];
        let mut outer = operator(&rows, &columns, |parameters| {
            parameters.condition = Some(Arc::new(IsNotNullExpr::new(Arc::new(Column::new("x", 2)))));
            parameters.outer = true;
        });
        let lines = run(&mut outer, ChangeBatch::inserts(rows));
        assert_eq!(lines, ["+I 0 7 1", "+I 1 NULL NULL", "+I 2 NULL NULL", "+I 3 8 1"]);
    }

    #[test]
    fn maps_give_two_columns_and_multisets_count() {
        let mut builder = MapBuilder::new(None, StringBuilder::new(), Int32Builder::new());
        for (key, value) in [("a", 2), ("b", 1)] {
            builder.keys().append_value(key);
            builder.values().append_value(value);
        }
        builder.append(true).unwrap();
        builder.append(false).unwrap();
        let rows = input(Arc::new(builder.finish()));
        let columns = [("k", DataType::Utf8), ("v", DataType::Int32), ("n", DataType::Int32)];
        let mut map = operator(&rows, &columns, |_| {});
        assert_eq!(run(&mut map, ChangeBatch::inserts(rows.clone())), ["+I 0 a 2 1", "+I 0 b 1 2"]);
        let columns = [("k", DataType::Utf8), ("n", DataType::Int32)];
        let mut multiset = operator(&rows, &columns, |parameters| {
            parameters.counted = true;
        });
        assert_eq!(run(&mut multiset, ChangeBatch::inserts(rows)), ["+I 0 a 1", "+I 0 a 2", "+I 0 b 3"]);
    }

    #[test]
    fn elements_that_are_rows_are_columns_and_none_if_null() {
        let fields = vec![
            (Arc::new(Field::new("p", DataType::Int64, true)), Arc::new(Int64Array::from(vec![1, 2, 3])) as ArrayRef),
            (Arc::new(Field::new("q", DataType::Int64, true)), Arc::new(Int64Array::from(vec![4, 5, 6])) as ArrayRef),
        ];
        let (fields, arrays): (Vec<_>, Vec<_>) = fields.into_iter().unzip();
        let elements = StructArray::new(fields.into(), arrays, Some(NullBuffer::from(vec![true, false, true])));
        let item = Arc::new(Field::new("item", elements.data_type().clone(), true));
        let offsets = arrow::buffer::OffsetBuffer::from_lengths([3]);
        let rows = input(Arc::new(ListArray::new(item, offsets, Arc::new(elements), None)));
        let columns = [("p", DataType::Int64), ("q", DataType::Int64), ("n", DataType::Int32)];
        let mut unnest = operator(&rows, &columns, |_| {});
        assert_eq!(run(&mut unnest, ChangeBatch::inserts(rows)), ["+I 0 1 4 1", "+I 0 3 6 3"]);
    }
}
