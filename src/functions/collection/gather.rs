//! Results built out of arguments' elements: which list, which element, in which order.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, ListArray, new_empty_array};
use arrow::buffer::{NullBuffer, OffsetBuffer};
use arrow::compute::interleave;
use arrow::datatypes::DataType;
use arrow::row::{RowConverter, Rows, SortField};

use crate::error::{Error, Result};
use crate::functions::cast::cast_column;
use crate::functions::function::{Arguments, Call};
use crate::types::{RowField, SqlType};

/// The element of an array argument.
pub(super) fn element_of(arguments: &Arguments<'_>, index: usize) -> Result<RowField> {
    match arguments.sql_type(index) {
        SqlType::Array(element) => Ok(*element),
        SqlType::Null => Ok(RowField::unnamed(SqlType::Null, true)),
        other => Err(Error::sql(format!("{} needs an ARRAY, not {other}", arguments.name))),
    }
}

/// The element type of the result, or of the argument, of a call.
pub(super) fn result_element(call: &Call<'_>) -> SqlType {
    match SqlType::of_field(call.result) {
        SqlType::Array(element) => element.sql_type,
        other => other,
    }
}

/// A column of lists whose elements are at hand.
pub(super) struct Lists {
    list: ListArray,
    constant: bool,
}

impl Lists {
    /// Argument `index` with its elements in the type `element`.
    pub fn argument(call: &Call<'_>, index: usize, element: &SqlType) -> Result<Lists> {
        let array = &call.arguments[index];
        let constant = call.constant[index];
        let field = Arc::new(element.to_field("item", true));
        let Some(list) = array.as_list_opt::<i32>() else {
            // A bare NULL.
            let values = new_empty_array(field.data_type());
            let offsets = OffsetBuffer::new_zeroed(array.len());
            let list = ListArray::try_new(field, offsets, values, Some(NullBuffer::new_null(array.len())))?;
            return Ok(Lists { list, constant });
        };
        let from = match SqlType::of_field(&call.fields[index]) {
            SqlType::Array(from) if from.sql_type.to_arrow() == *list.values().data_type() => from.sql_type,
            _ => SqlType::from_arrow(list.values().data_type()),
        };
        let values = cast_column(list.values(), &from, element, call.context.zone)?;
        let list = ListArray::try_new(field, list.offsets().clone(), values, list.nulls().cloned())?;
        Ok(Lists { list, constant })
    }

    /// The elements of all rows.
    pub fn values(&self) -> &ArrayRef {
        self.list.values()
    }

    /// Where a row's elements stand among [`Lists::values`]; nothing for NULL.
    pub fn range(&self, row: usize) -> Option<std::ops::Range<usize>> {
        let row = if self.constant { 0 } else { row };
        if self.list.is_null(row) {
            return None;
        }
        let offsets = self.list.value_offsets();
        Some(offsets[row] as usize..offsets[row + 1] as usize)
    }
}

/// A single value a row, as a column that lists can be compared with and gathered from.
pub(super) struct Values {
    /// The values.
    pub array: ArrayRef,
    constant: bool,
}

impl Values {
    /// Argument `index` in the type `to`.
    pub fn argument(call: &Call<'_>, index: usize, to: &SqlType) -> Result<Values> {
        let array = &call.arguments[index];
        let declared = SqlType::of_field(&call.fields[index]);
        let from =
            if declared.to_arrow() == *array.data_type() { declared } else { SqlType::from_arrow(array.data_type()) };
        Ok(Values { array: cast_column(array, &from, to, call.context.zone)?, constant: call.constant[index] })
    }

    /// The place of a row's value.
    pub fn place(&self, row: usize) -> usize {
        if self.constant { 0 } else { row }
    }
}

/// Columns of one type in a form in which values are compared; NULL equals NULL and comes first.
pub(in crate::functions) fn comparable(columns: &[&ArrayRef]) -> Result<Vec<Rows>> {
    let Some(first) = columns.first() else { return Ok(Vec::new()) };
    let converter = RowConverter::new(vec![SortField::new(first.data_type().clone())])?;
    columns.iter().map(|column| Ok(converter.convert_columns(&[Arc::clone(column)])?)).collect()
}

/// Gathers lists from the elements of several columns.
pub(super) struct Gather {
    picks: Vec<(usize, usize)>,
    offsets: Vec<i32>,
    valid: Vec<bool>,
}

impl Gather {
    /// For so many rows.
    pub fn new(rows: usize) -> Gather {
        let mut offsets = Vec::with_capacity(rows + 1);
        offsets.push(0);
        Gather { picks: Vec::with_capacity(rows * 4), offsets, valid: Vec::with_capacity(rows) }
    }

    /// Appends element `index` of column `source` to the row under way.
    pub fn push(&mut self, source: usize, index: usize) {
        self.picks.push((source, index));
    }

    /// Elements of the row under way.
    pub fn current(&mut self) -> &mut [(usize, usize)] {
        let start = self.offsets.last().map_or(0, |offset| *offset as usize);
        &mut self.picks[start..]
    }

    /// Ends a row; one that is NULL loses its elements.
    pub fn end(&mut self, valid: bool) {
        if !valid {
            self.picks.truncate(self.offsets.last().map_or(0, |offset| *offset as usize));
        }
        self.offsets.push(self.picks.len() as i32);
        self.valid.push(valid);
    }

    /// The lists, in the result type of the call.
    pub fn finish(self, call: &Call<'_>, sources: &[&ArrayRef]) -> Result<ArrayRef> {
        let DataType::List(item) = call.result.data_type() else {
            return Err(Error::bug(format!("{} as {}", call.name, call.result.data_type())));
        };
        let arrays: Vec<&dyn Array> = sources.iter().map(|source| source.as_ref()).collect();
        let values =
            if self.picks.is_empty() { new_empty_array(item.data_type()) } else { interleave(&arrays, &self.picks)? };
        // Casts and gathering lose the names and metadata of inner fields; the declared type has them.
        let values = restored(values, item.data_type())?;
        let offsets = OffsetBuffer::new(self.offsets.into());
        Ok(Arc::new(ListArray::try_new(item.clone(), offsets, values, Some(NullBuffer::from(self.valid)))?))
    }
}

/// The same values under a data type that differs in names or metadata of inner fields only.
pub(super) fn restored(array: ArrayRef, data_type: &DataType) -> Result<ArrayRef> {
    if array.data_type() == data_type {
        return Ok(array);
    }
    let data = array.to_data().into_builder().data_type(data_type.clone()).build()?;
    Ok(arrow::array::make_array(data))
}
