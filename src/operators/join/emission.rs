//! What a join emits: pairs by row numbers first, columns at the end.

use std::sync::Arc;

use arrow::array::{ArrayRef, BooleanArray, RecordBatch, RecordBatchOptions, UInt32Array, new_null_array};
use arrow::compute::take;
use arrow::datatypes::SchemaRef;

use super::side::{NONE, Side};
use crate::changelog::{ChangeBatch, Kind};
use crate::error::Result;

/// Changes to be emitted, of rows that arrive beside rows of the other side.
#[derive(Debug, Default)]
pub(super) struct Emission {
    /// Rows of the batch that arrives; [`NONE`]: NULLs.
    arriving: Vec<u32>,
    /// Rows of the other side; [`NONE`]: NULLs.
    other: Vec<u32>,
    kinds: Vec<Kind>,
    /// Whether the left row has a match; only where the join emits that.
    marks: Vec<bool>,
}

impl Emission {
    /// A row of the batch beside one of the other side, `times` times.
    #[inline]
    pub fn push(&mut self, kind: Kind, arriving: u32, other: u32, times: i64) {
        for _ in 0..times {
            self.arriving.push(arriving);
            self.other.push(other);
            self.kinds.push(kind);
        }
    }

    /// As [`Emission::push`], for a row whose mark is emitted too.
    #[inline]
    pub fn push_marked(&mut self, kind: Kind, arriving: u32, other: u32, mark: bool) {
        self.push(kind, arriving, other, 1);
        self.marks.push(mark);
    }

    pub fn is_empty(&self) -> bool {
        self.kinds.is_empty()
    }

    /// The columns of the arriving rows: the first `width` of the batch.
    fn arriving_columns(&self, batch: &RecordBatch, width: usize) -> Result<Vec<ArrayRef>> {
        let places: UInt32Array = nullable(&self.arriving);
        batch.columns()[..width].iter().map(|column| Ok(take(column, &places, None)?)).collect()
    }

    /// The columns of the other side's rows: the first `width` of them.
    fn other_columns(&self, side: &Side, schema: &SchemaRef, width: usize) -> Result<Vec<ArrayRef>> {
        if width == 0 {
            return Ok(Vec::new());
        }
        let present: Vec<u32> = self.other.iter().copied().filter(|slot| *slot != NONE).collect();
        if present.is_empty() {
            let fields = schema.fields()[..width].iter();
            return Ok(fields.map(|field| new_null_array(field.data_type(), self.other.len())).collect());
        }
        let mut columns = side.take(&present)?;
        columns.truncate(width);
        if present.len() == self.other.len() {
            return Ok(columns);
        }
        let mut place = 0;
        let places = self.other.iter().map(|slot| {
            (*slot != NONE).then(|| {
                place += 1;
                place - 1
            })
        });
        let places: UInt32Array = places.collect();
        columns.iter().map(|column| Ok(take(column, &places, None)?)).collect()
    }

    /// The changes as a batch, and an empty emission again.
    ///
    /// # Errors
    /// Only by a bug.
    pub fn finish(&mut self, batch: &RecordBatch, side: &Side, shape: &Shape<'_>) -> Result<ChangeBatch> {
        let arriving = self.arriving_columns(batch, shape.arriving_width)?;
        let other = self.other_columns(side, shape.other_schema, shape.other_width)?;
        let (mut columns, right) = if shape.arriving_is_left { (arriving, other) } else { (other, arriving) };
        columns.extend(right);
        if shape.marked {
            columns.push(Arc::new(BooleanArray::from(std::mem::take(&mut self.marks))));
        }
        let options = RecordBatchOptions::new().with_row_count(Some(self.kinds.len()));
        let rows = RecordBatch::try_new_with_options(Arc::clone(shape.output), columns, &options)?;
        self.arriving.clear();
        self.other.clear();
        ChangeBatch::new(rows, std::mem::take(&mut self.kinds))
    }
}

/// How emitted rows are put together.
pub(super) struct Shape<'a> {
    pub output: &'a SchemaRef,
    pub arriving_is_left: bool,
    /// How many columns of the arriving rows are emitted.
    pub arriving_width: usize,
    pub other_width: usize,
    pub other_schema: &'a SchemaRef,
    /// Whether a column says if the left row has a match.
    pub marked: bool,
}

fn nullable(places: &[u32]) -> UInt32Array {
    if places.contains(&NONE) {
        return places.iter().map(|place| (*place != NONE).then_some(*place)).collect();
    }
    UInt32Array::from(places.to_vec())
}
