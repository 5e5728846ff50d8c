//! `CURRENT_WATERMARK(ts)`: behind each row, the watermark that held when it came; NULL before the first.
//!
//! A row sees the watermark of the rows before it, so the planner has watermarks derived row by row where this stands.

use std::sync::Arc;

use arrow::array::new_null_array;
use arrow::datatypes::SchemaRef;
use arrow::record_batch::RecordBatch;

use super::event_time::{restore_watermark, save_watermark, timestamps};
use super::{Operator, Output, Port};
use crate::changelog::{ChangeBatch, CheckpointId, Watermark};
use crate::error::Result;
use crate::state::{Restored, Snapshot};

/// Appends the current watermark, once for each type of timestamp in which it is asked for.
pub struct CurrentWatermark {
    schema: SchemaRef,
    mark: Watermark,
}

impl CurrentWatermark {
    /// `schema` is the input's, and timestamps behind it.
    pub fn new(schema: SchemaRef) -> CurrentWatermark {
        CurrentWatermark { schema, mark: Watermark::MIN }
    }
}

impl Operator for CurrentWatermark {
    fn on_changes(&mut self, _port: Port, batch: ChangeBatch, out: &mut Output) -> Result<()> {
        let mut columns = batch.rows().columns().to_vec();
        for field in self.schema.fields().iter().skip(columns.len()) {
            columns.push(match self.mark {
                Watermark::MIN => new_null_array(field.data_type(), batch.len()),
                Watermark(mark) => timestamps(vec![mark; batch.len()], field.data_type())?,
            });
        }
        let rows = RecordBatch::try_new(Arc::clone(&self.schema), columns)?;
        out.changes(batch.with_rows(rows)?);
        Ok(())
    }

    fn on_watermark(&mut self, mark: Watermark, out: &mut Output) -> Result<()> {
        if mark != Watermark::MAX {
            self.mark = self.mark.max(mark);
        }
        out.watermark(mark);
        Ok(())
    }

    fn snapshot(&mut self, _at: CheckpointId) -> Result<Snapshot> {
        Ok(Snapshot { tables: vec![save_watermark(self.mark)?] })
    }

    fn restore(&mut self, from: Restored) -> Result<()> {
        self.mark = restore_watermark(&from)?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::operators::testing::{changes, check, emitted, feed, saved, schema};

    #[test]
    fn a_row_sees_the_watermark_before_it_also_after_a_restart() {
        let output = schema("ts TS, wm TS");
        let (mut first, mut out) = (CurrentWatermark::new(output.clone()), Output::default());
        let input = schema("ts TS");
        check(&feed(&mut first, &changes(&input, "+I 5\n-U 6"), 9, &mut out), "+I[5, NULL]\n-U[6, NULL]");
        first.on_watermark(Watermark(3), &mut out).unwrap();
        check(&feed(&mut first, &changes(&input, "+U 7"), 9, &mut out), "W 3\n+U[7, 3]");
        let mut second = CurrentWatermark::new(output);
        second.restore(saved(&[first.snapshot(1).unwrap()])).unwrap();
        let mut out = Output::default();
        check(&feed(&mut second, &changes(&input, "+I 8"), 9, &mut out), "+I[8, 3]");
        second.on_watermark(Watermark::MAX, &mut out).unwrap();
        check(&emitted(&mut out), "W 9223372036854775807");
        check(&feed(&mut second, &changes(&input, "+I 9"), 9, &mut out), "+I[9, 3]");
    }
}
