//! From images before and after to the changes that lie between.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, RecordBatch, RecordBatchOptions, UInt32Array};
use arrow::compute::take;
use arrow::datatypes::SchemaRef;

use crate::changelog::{ChangeBatch, Kind};
use crate::error::Result;

/// Collects which images are emitted, by place: `2 i` is the image before the `i`-th change, `2 i + 1` the one after.
#[derive(Debug, Default)]
pub(super) struct Images {
    places: Vec<u32>,
    kinds: Vec<Kind>,
}

impl Images {
    /// Room for `changes` updates.
    pub fn with_capacity(changes: usize) -> Images {
        Images { places: Vec::with_capacity(changes * 2), kinds: Vec::with_capacity(changes * 2) }
    }

    /// A row comes.
    #[inline]
    pub fn insert(&mut self, change: usize) {
        self.push(change * 2 + 1, Kind::Insert);
    }

    /// A row is replaced.
    #[inline]
    pub fn update(&mut self, change: usize, with_before: bool) {
        if with_before {
            self.push(change * 2, Kind::UpdateBefore);
        }
        self.push(change * 2 + 1, Kind::UpdateAfter);
    }

    /// A row leaves.
    #[inline]
    pub fn delete(&mut self, change: usize) {
        self.push(change * 2, Kind::Delete);
    }

    #[inline]
    fn push(&mut self, place: usize, kind: Kind) {
        self.places.push(place as u32);
        self.kinds.push(kind);
    }

    /// The changes: `keys` has one row a change, `values` an image before and one after, interleaved.
    ///
    /// # Errors
    /// Only by a bug.
    pub fn emit(self, schema: &SchemaRef, keys: &[ArrayRef], values: &[ArrayRef]) -> Result<ChangeBatch> {
        let halves = UInt32Array::from_iter_values(self.places.iter().map(|place| place / 2));
        let rows = self.places.len();
        let places = UInt32Array::from(self.places);
        let mut columns: Vec<ArrayRef> = Vec::with_capacity(keys.len() + values.len());
        for key in keys {
            columns.push(take(key, &halves, None)?);
        }
        for value in values {
            // Every image of every change, in order: nothing to pick.
            let whole = value.len() == rows;
            columns.push(if whole { Arc::clone(value) } else { take(value, &places, None)? });
        }
        let options = RecordBatchOptions::new().with_row_count(Some(rows));
        let rows = RecordBatch::try_new_with_options(Arc::clone(schema), columns, &options)?;
        ChangeBatch::new(rows, self.kinds)
    }
}
