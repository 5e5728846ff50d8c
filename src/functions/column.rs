//! Reading argument columns and building result columns: a constant argument is read as if it stood in every row,
//! without being copied there, and results are built without an allocation a row.

use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, ArrowPrimitiveType, BinaryArray, BinaryBuilder, BooleanArray, BooleanBuilder, PrimitiveArray,
    PrimitiveBuilder, StringArray, StringBuilder,
};
use arrow::datatypes::{Int32Type, Int64Type};

use super::function::Call;
use crate::error::{Error, Result};

/// An argument column that is read row by row.
pub(super) struct Column<'a, A> {
    array: &'a A,
    constant: bool,
    nulls: bool,
}

impl<'a, A: Array> Column<'a, A> {
    fn index(&self, row: usize) -> Option<usize> {
        let index = if self.constant { 0 } else { row };
        if self.nulls && self.array.is_null(index) { None } else { Some(index) }
    }

    /// Whether every row has the same value.
    pub fn is_constant(&self) -> bool {
        self.constant
    }
}

impl<'a> Column<'a, StringArray> {
    /// The text of `row`.
    pub fn get(&self, row: usize) -> Option<&'a str> {
        self.index(row).map(|index| self.array.value(index))
    }
}

impl<'a> Column<'a, BinaryArray> {
    /// The bytes of `row`.
    pub fn get(&self, row: usize) -> Option<&'a [u8]> {
        self.index(row).map(|index| self.array.value(index))
    }
}

impl Column<'_, BooleanArray> {
    /// The truth value of `row`.
    pub fn get(&self, row: usize) -> Option<bool> {
        self.index(row).map(|index| self.array.value(index))
    }
}

impl<T: ArrowPrimitiveType> Column<'_, PrimitiveArray<T>> {
    /// The value of `row`.
    pub fn get(&self, row: usize) -> Option<T::Native> {
        self.index(row).map(|index| self.array.value(index))
    }
}

impl Call<'_> {
    fn typed<'a, A: Array + 'static>(&'a self, index: usize) -> Result<Column<'a, A>> {
        let array = &self.arguments[index];
        let typed = array.as_any().downcast_ref::<A>();
        let typed = typed.ok_or_else(|| {
            Error::bug(format!("argument {} of {} came as {}", index + 1, self.name, array.data_type()))
        })?;
        Ok(Column { array: typed, constant: self.constant[index], nulls: array.null_count() > 0 })
    }

    /// A text argument.
    pub fn text(&self, index: usize) -> Result<Column<'_, StringArray>> {
        self.typed(index)
    }

    /// A byte string argument.
    pub fn bytes(&self, index: usize) -> Result<Column<'_, BinaryArray>> {
        self.typed(index)
    }

    /// A Boolean argument.
    pub fn boolean(&self, index: usize) -> Result<Column<'_, BooleanArray>> {
        self.typed(index)
    }

    /// An `INT` argument.
    pub fn int(&self, index: usize) -> Result<Column<'_, PrimitiveArray<Int32Type>>> {
        self.typed(index)
    }

    /// A `BIGINT` argument.
    pub fn long(&self, index: usize) -> Result<Column<'_, PrimitiveArray<Int64Type>>> {
        self.typed(index)
    }

    /// An argument of a primitive type.
    pub fn primitive<T: ArrowPrimitiveType>(&self, index: usize) -> Result<Column<'_, PrimitiveArray<T>>> {
        self.typed(index)
    }
}

/// Texts: `write` appends a row's text, or gives nothing for NULL.
pub(super) fn texts(call: &Call<'_>, mut write: impl FnMut(usize, &mut String) -> Option<()>) -> Result<ArrayRef> {
    try_texts(call, |row, to| Ok(write(row, to)))
}

/// Texts: `write` appends a row's text, or gives nothing for NULL, or fails.
pub(super) fn try_texts(
    call: &Call<'_>,
    mut write: impl FnMut(usize, &mut String) -> Result<Option<()>>,
) -> Result<ArrayRef> {
    let mut builder = StringBuilder::with_capacity(call.rows, call.rows * 16);
    let mut scratch = String::new();
    for row in 0..call.rows {
        scratch.clear();
        match write(row, &mut scratch)? {
            Some(()) => builder.append_value(&scratch),
            None => builder.append_null(),
        }
    }
    Ok(Arc::new(builder.finish()))
}

/// Texts that are parts of an argument: nothing is copied but into the result.
pub(super) fn slices<'a>(call: &Call<'_>, mut part: impl FnMut(usize) -> Option<&'a str>) -> Result<ArrayRef> {
    let mut builder = StringBuilder::with_capacity(call.rows, call.rows * 16);
    for row in 0..call.rows {
        builder.append_option(part(row));
    }
    Ok(Arc::new(builder.finish()))
}

/// Byte strings: `write` appends a row's bytes, or gives nothing for NULL, or fails.
pub(super) fn try_binaries(
    call: &Call<'_>,
    mut write: impl FnMut(usize, &mut Vec<u8>) -> Result<Option<()>>,
) -> Result<ArrayRef> {
    let mut builder = BinaryBuilder::with_capacity(call.rows, call.rows * 16);
    let mut scratch = Vec::new();
    for row in 0..call.rows {
        scratch.clear();
        match write(row, &mut scratch)? {
            Some(()) => builder.append_value(&scratch),
            None => builder.append_null(),
        }
    }
    Ok(Arc::new(builder.finish()))
}

/// Values of a primitive type.
pub(super) fn primitives<T: ArrowPrimitiveType>(
    call: &Call<'_>,
    mut value: impl FnMut(usize) -> Option<T::Native>,
) -> Result<ArrayRef> {
    try_primitives::<T>(call, |row| Ok(value(row)))
}

/// Values of a primitive type, in the result's own Arrow type (decimals, timestamps).
pub(super) fn try_primitives<T: ArrowPrimitiveType>(
    call: &Call<'_>,
    mut value: impl FnMut(usize) -> Result<Option<T::Native>>,
) -> Result<ArrayRef> {
    let mut builder = PrimitiveBuilder::<T>::with_capacity(call.rows);
    for row in 0..call.rows {
        builder.append_option(value(row)?);
    }
    let array = builder.finish();
    let data_type = call.result.data_type();
    let fits = T::DATA_TYPE == *data_type || PrimitiveArray::<T>::is_compatible(data_type);
    Ok(Arc::new(if fits { array.with_data_type(data_type.clone()) } else { array }))
}

/// Truth values.
pub(super) fn booleans(call: &Call<'_>, mut value: impl FnMut(usize) -> Option<bool>) -> Result<ArrayRef> {
    let mut builder = BooleanBuilder::with_capacity(call.rows);
    for row in 0..call.rows {
        builder.append_option(value(row));
    }
    Ok(Arc::new(builder.finish()))
}
