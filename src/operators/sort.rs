//! `ORDER BY` and `LIMIT` over the whole of a bounded input: what is left at its end comes out in order.

use arrow::array::{RecordBatch, RecordBatchOptions};
use arrow::datatypes::SchemaRef;

use super::{Operator, Output, Port, StateSize};
use crate::changelog::{ChangeBatch, CheckpointId, Watermark};
use crate::error::{Error, Result};
use crate::limits::BATCH_ROWS;
use crate::state::{KeyGroupRange, KeyTable, Restored, Row, Snapshot, SortedRows};
use crate::types::SortColumn;

/// The table of rows in a snapshot.
const ROWS: &str = "rows";

/// Sorts, and cuts out a range; equal rows stay in the order in which they came.
pub struct Sort {
    schema: SchemaRef,
    /// First and last wanted row, from 1.
    range: (u64, u64),
    keys: KeyTable,
    rows: SortedRows,
    saved: bool,
}

impl Sort {
    /// Rows of `schema` in this order; none: as they came.
    ///
    /// # Errors
    /// If a column cannot be ordered or kept.
    pub fn new(schema: SchemaRef, order: &[SortColumn], range: (u64, u64)) -> Result<Sort> {
        let rows = SortedRows::new(&schema, order, true, false)?;
        Ok(Sort { schema, range, keys: KeyTable::new(Vec::new())?, rows, saved: false })
    }

    fn slot(&mut self) -> Result<u32> {
        let mut slots = Vec::new();
        self.keys.slots_of(&[], 1, &mut slots)?;
        self.rows.grow(self.keys.capacity());
        Ok(slots[0])
    }
}

impl Operator for Sort {
    fn on_changes(&mut self, _port: Port, batch: ChangeBatch, _out: &mut Output) -> Result<()> {
        let slot = self.slot()?;
        let sort_keys = self.rows.encode_keys(batch.rows().columns())?;
        let rows = self.rows.encode_rows(batch.rows().columns())?;
        for row in 0..batch.len() {
            if !batch.kind(row).is_retraction() {
                self.rows.insert(slot, sort_keys.get(row), rows.get(row).into());
                continue;
            }
            let Some(position) = self.rows.find(slot, sort_keys.get(row), rows.get(row)) else {
                return Err(Error::data("a row was deleted that had not come"));
            };
            self.rows.remove(slot, &position);
        }
        Ok(())
    }

    /// The rows come after all time has passed.
    fn on_watermark(&mut self, _mark: Watermark, _out: &mut Output) -> Result<()> {
        Ok(())
    }

    fn on_end(&mut self, _port: Port, out: &mut Output) -> Result<()> {
        let slot = self.slot()?;
        let (first, last) = self.range;
        let skipped = usize::try_from(first.saturating_sub(1)).unwrap_or(usize::MAX);
        let wanted = usize::try_from(last.saturating_add(1).saturating_sub(first)).unwrap_or(usize::MAX);
        let sorted: Vec<Row> = self.rows.take(slot).skip(skipped).take(wanted).map(|(_, row)| row).collect();
        for part in sorted.chunks(BATCH_ROWS) {
            let columns = self.rows.decode(part.iter())?;
            let options = RecordBatchOptions::new().with_row_count(Some(part.len()));
            let batch = RecordBatch::try_new_with_options(self.schema.clone(), columns, &options)?;
            out.changes(ChangeBatch::inserts(batch));
        }
        out.watermark(Watermark::MAX);
        Ok(())
    }

    fn state_size(&self) -> Option<StateSize> {
        Some(StateSize::new(self.rows.count(), self.rows.bytes()))
    }

    fn snapshot(&mut self, _at: CheckpointId) -> Result<Snapshot> {
        self.slot()?;
        let base = !std::mem::replace(&mut self.saved, true);
        let rows = self.rows.snapshot(ROWS, &self.keys, base)?;
        self.keys.finish_snapshot();
        Ok(Snapshot { tables: vec![rows] })
    }

    fn restore(&mut self, from: Restored) -> Result<()> {
        self.rows.restore(ROWS, &mut self.keys, &from.restrict(KeyGroupRange::ALL)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::operators::testing::{changes, check, emitted, feed, saved, schema};

    #[test]
    fn the_rows_that_are_left_come_out_in_order() {
        let input = schema("a TEXT, b BIGINT");
        let text = changes(&input, "+I x 2\n+I y 1\n+I z _\n+I y 1\n-U x 2\n+U x 5\n-D y 1\n+I w 5");
        for (range, expected) in [
            ((1, u64::MAX), "+I[w, 5]\n+I[x, 5]\n+I[y, 1]\n+I[z, NULL]\nW 9223372036854775807"),
            ((2, 3), "+I[x, 5]\n+I[y, 1]\nW 9223372036854775807"),
            ((1, 0), "W 9223372036854775807"),
        ] {
            let order = [(1, true), (0, false)];
            let order = order.map(|(column, descending)| SortColumn { column, descending, nulls_first: !descending });
            let (mut first, mut out) = (Sort::new(input.clone(), &order, range).unwrap(), Output::default());
            feed(&mut first, &text.slice(0, 5), 2, &mut out);
            let snapshot = first.snapshot(1).unwrap();
            let mut second = Sort::new(input.clone(), &order, range).unwrap();
            second.restore(saved(&[snapshot])).unwrap();
            feed(&mut second, &text.slice(5, 3), 9, &mut out);
            second.on_end(0, &mut out).unwrap();
            check(&emitted(&mut out), expected);
        }
    }
}
