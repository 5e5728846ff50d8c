//! `ORDER BY` event time over a stream: rows wait until the watermark has passed them, and come out in order.

use arrow::array::{RecordBatch, RecordBatchOptions};
use arrow::datatypes::SchemaRef;

use super::event_time::{restore_watermark, row_times, save_watermark};
use super::lateness::Lateness;
use super::{Operator, Output, Port, StateSize, TimeReport};
use crate::changelog::{ChangeBatch, CheckpointId, Watermark};
use crate::error::Result;
use crate::limits::BATCH_ROWS;
use crate::state::{KeyGroupRange, KeyTable, Position, Restored, Row, Snapshot, SortedRows};
use crate::types::SortColumn;

/// The table of waiting rows in a snapshot.
const ROWS: &str = "rows";

/// Sorts by event time, then by further columns; equal rows stay in the order in which they came.
pub struct TemporalSort {
    schema: SchemaRef,
    time: usize,
    keys: KeyTable,
    rows: SortedRows,
    watermark: Watermark,
    late: Lateness,
    saved: bool,
}

impl TemporalSort {
    /// Rows of `schema`; `order` begins with the event-time column `time`, ascending.
    ///
    /// # Errors
    /// If a column cannot be ordered or kept.
    pub fn new(schema: SchemaRef, time: usize, order: &[SortColumn]) -> Result<TemporalSort> {
        let rows = SortedRows::new(&schema, order, false, false)?;
        let (late, saved) = (Lateness::default(), false);
        Ok(TemporalSort {
            schema,
            time,
            keys: KeyTable::new(Vec::new())?,
            rows,
            watermark: Watermark::MIN,
            late,
            saved,
        })
    }

    fn slot(&mut self) -> Result<u32> {
        let mut slots = Vec::new();
        self.keys.slots_of(&[], 1, &mut slots)?;
        self.rows.grow(self.keys.capacity());
        Ok(slots[0])
    }

    /// Emits the waiting rows that the watermark has passed, a batch at a time.
    fn release(&mut self, mark: Watermark, out: &mut Output) -> Result<()> {
        let slot = self.slot()?;
        loop {
            let next: Vec<(Position, Row)> =
                self.rows.iter(slot).take(BATCH_ROWS).map(|(place, row)| (place.clone(), row.clone())).collect();
            if next.is_empty() {
                return Ok(());
            }
            let columns = self.rows.decode(next.iter().map(|(_, row)| row))?;
            let options = RecordBatchOptions::new().with_row_count(Some(next.len()));
            let batch = RecordBatch::try_new_with_options(self.schema.clone(), columns, &options)?;
            let times = row_times(&batch, self.time)?;
            let ready = times.values().iter().take_while(|time| **time <= mark.0).count();
            for (position, _) in &next[..ready] {
                self.rows.remove(slot, position);
            }
            out.changes(ChangeBatch::inserts(batch.slice(0, ready)));
            if ready < next.len() {
                return Ok(());
            }
        }
    }
}

impl Operator for TemporalSort {
    fn on_changes(&mut self, _port: Port, batch: ChangeBatch, _out: &mut Output) -> Result<()> {
        let slot = self.slot()?;
        let times = row_times(batch.rows(), self.time)?;
        let sort_keys = self.rows.encode_keys(batch.rows().columns())?;
        let rows = self.rows.encode_rows(batch.rows().columns())?;
        for (row, time) in times.values().iter().enumerate() {
            if *time <= self.watermark.0 {
                self.late.record(self.watermark.0, *time);
            } else {
                self.rows.insert(slot, sort_keys.get(row), rows.get(row).into());
            }
        }
        Ok(())
    }

    fn on_watermark(&mut self, mark: Watermark, out: &mut Output) -> Result<()> {
        self.watermark = self.watermark.max(mark);
        self.release(mark, out)?;
        out.watermark(mark);
        Ok(())
    }

    fn snapshot(&mut self, _at: CheckpointId) -> Result<Snapshot> {
        self.slot()?;
        let base = !std::mem::replace(&mut self.saved, true);
        let rows = self.rows.snapshot(ROWS, &self.keys, base)?;
        self.keys.finish_snapshot();
        Ok(Snapshot { tables: vec![rows, save_watermark(self.watermark)?] })
    }

    fn restore(&mut self, from: Restored) -> Result<()> {
        let from = from.restrict(KeyGroupRange::ALL)?;
        self.watermark = restore_watermark(&from)?;
        self.rows.restore(ROWS, &mut self.keys, &from)
    }

    fn state_size(&self) -> Option<StateSize> {
        Some(StateSize::new(self.rows.count(), self.rows.bytes()))
    }

    fn counters(&self) -> Vec<(&'static str, u64)> {
        vec![("late_rows", self.late.rows())]
    }

    fn time_report(&self) -> TimeReport {
        TimeReport { lateness: self.late.clone(), next_close: None, ..TimeReport::default() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::operators::testing::{changes, check, emitted, feed, saved, schema};

    fn operator() -> TemporalSort {
        let order = [(0, false), (1, true)];
        let order = order.map(|(column, descending)| SortColumn { column, descending, nulls_first: !descending });
        TemporalSort::new(schema("t TS, v BIGINT"), 0, &order).unwrap()
    }

    #[test]
    fn rows_come_out_in_order_as_time_passes_also_after_a_restart() {
        let input = schema("t TS, v BIGINT");
        for size in [1, 9] {
            let (mut first, mut out) = (operator(), Output::default());
            feed(&mut first, &changes(&input, "+I 5 1\n+I 3 2\n+I 3 7\n+I 9 1\n+I 9 1\n+I 3 _"), size, &mut out);
            let mut snapshots = vec![first.snapshot(1).unwrap()];
            first.on_watermark(Watermark(5), &mut out).unwrap();
            check(&emitted(&mut out), "+I[3, 7]\n+I[3, 2]\n+I[3, NULL]\n+I[5, 1]\nW 5");
            feed(&mut first, &changes(&input, "+I 5 3\n+I 6 4"), size, &mut out);
            assert_eq!(first.counters(), [("late_rows", 1)]);
            snapshots.push(first.snapshot(2).unwrap());
            let (mut second, mut out) = (operator(), Output::default());
            second.restore(saved(&snapshots)).unwrap();
            feed(&mut second, &changes(&input, "+I 5 3\n+I 8 0"), size, &mut out);
            second.on_watermark(Watermark::MAX, &mut out).unwrap();
            check(&emitted(&mut out), "+I[6, 4]\n+I[8, 0]\n+I[9, 1]\n+I[9, 1]\nW 9223372036854775807");
        }
    }
}
