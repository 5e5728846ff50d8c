//! The keys of joined rows as small numbers.

use arrow::array::{Array, ArrayRef, BooleanArray, RecordBatch};
use arrow::buffer::NullBuffer;
use arrow::compute::filter;

use crate::error::Result;
use crate::state::KeyTable;
use crate::types::NullKeys;

/// Stands for a key that equals no other, and for no row.
pub(super) const NONE: u32 = u32::MAX;

/// Some columns of a batch.
pub(super) fn columns_of(rows: &RecordBatch, columns: &[usize]) -> Vec<ArrayRef> {
    columns.iter().map(|column| rows.column(*column).clone()).collect()
}

/// The slots of `rows` keys in `table`, new ones made; [`NONE`] for a key with a NULL, unless NULL equals NULL.
///
/// # Errors
/// If a key has no row form.
pub(super) fn key_slots(table: &mut KeyTable, keys: &[ArrayRef], rows: usize, nulls: NullKeys) -> Result<Vec<u32>> {
    let unknown = match nulls {
        NullKeys::Nothing => null_rows(keys),
        NullKeys::Null | NullKeys::Anything => None,
    };
    let mut slots = Vec::new();
    let Some(unknown) = unknown else {
        table.slots_of(keys, rows, &mut slots)?;
        return Ok(slots);
    };
    let valid = BooleanArray::new(unknown.inner().clone(), None);
    let known = keys.iter().map(|key| Ok(filter(key, &valid)?)).collect::<Result<Vec<_>>>()?;
    let mut dense = Vec::new();
    table.slots_of(&known, valid.true_count(), &mut dense)?;
    let mut dense = dense.into_iter();
    slots.extend(unknown.iter().map(|valid| if valid { dense.next().unwrap_or(NONE) } else { NONE }));
    Ok(slots)
}

/// Which rows have a NULL among these columns, if any has.
pub(super) fn null_rows(columns: &[ArrayRef]) -> Option<NullBuffer> {
    let nulls = columns.iter().map(|column| column.logical_nulls());
    let nulls = nulls.fold(None, |all, nulls| NullBuffer::union(all.as_ref(), nulls.as_ref()));
    nulls.filter(|nulls| nulls.null_count() > 0)
}
