//! Top-N of each window: told once, when the watermark passes the window's end.

use std::collections::BTreeMap;

use arrow::array::ArrayRef;
use arrow::datatypes::SchemaRef;

use super::event_time::{restore_watermark, row_times, save_watermark};
use super::lateness::Lateness;
use super::rank::RankChanges;
use super::{Operator, Output, Port, StateSize, TimeReport};
use crate::changelog::{ChangeBatch, CheckpointId, Watermark};
use crate::error::Result;
use crate::state::{KeyGroupRange, KeyTable, Restored, Row, Snapshot, SortedRows};
use crate::types::{LocalTime, RankFunction, SortColumn};

/// The table of rows in a snapshot.
const ROWS: &str = "rows";

/// What a [`WindowRank`] computes.
pub struct WindowRankParameters {
    /// The columns that come.
    pub input: SchemaRef,
    /// The columns emitted: those that come, and the rank if it is shown.
    pub output: SchemaRef,
    /// Partition columns of the input, the window's start and end among them.
    pub partition: Vec<usize>,
    /// The column of the window's end.
    pub window_end: usize,
    /// The clock whose local times the windows' bounds are.
    pub clock: LocalTime,
    /// The order within a partition.
    pub order: Vec<SortColumn>,
    /// How equal rows are counted.
    pub function: RankFunction,
    /// The first and last wanted rank.
    pub range: (u64, u64),
    /// Whether of equal rows the latest stands first.
    pub newest_first: bool,
    /// The key groups of this subtask.
    pub key_groups: KeyGroupRange,
}

/// Top-N by window and partition.
pub struct WindowRank {
    parameters: WindowRankParameters,
    keys: KeyTable,
    rows: SortedRows,
    /// The partitions of the windows that are open, by the window's end, in order of arrival.
    open: BTreeMap<i64, Vec<u32>>,
    watermark: Watermark,
    late: Lateness,
    saved: bool,
}

impl WindowRank {
    /// An operator without rows.
    ///
    /// # Errors
    /// If a column cannot be partitioned or ordered by, or kept.
    pub fn new(parameters: WindowRankParameters) -> Result<WindowRank> {
        let WindowRankParameters { input, partition, order, newest_first, .. } = &parameters;
        let fields = partition.iter().map(|column| input.fields()[*column].clone()).collect();
        let (keys, rows) = (KeyTable::new(fields)?, SortedRows::new(input, order, false, *newest_first)?);
        let (open, late, saved) = Default::default();
        Ok(WindowRank { parameters, keys, rows, open, watermark: Watermark::MIN, late, saved })
    }

    /// Tells the wanted ranks of a partition and forgets it.
    fn close(&mut self, slot: u32, told: &mut RankChanges) {
        let mut ranks = Ranks::new(self.parameters.function);
        for (position, row) in self.rows.take(slot) {
            let rank = ranks.next(&position.key);
            if rank > self.parameters.range.1 {
                break;
            }
            told.insert(&row, rank);
        }
        self.keys.remove(slot);
    }

    /// Forgets the last row of a partition that has one more than can be wanted.
    fn push_out(&mut self, slot: u32) {
        let full = self.rows.len(slot) as u64 > self.parameters.range.1;
        if self.parameters.function == RankFunction::RowNumber
            && full
            && let Some(last) = self.rows.last(slot).map(|(position, _)| position.clone())
        {
            self.rows.remove(slot, &last);
        }
    }
}

/// Counts ranks along a partition.
struct Ranks {
    function: RankFunction,
    seen: u64,
    rank: u64,
    previous: Option<Row>,
}

impl Ranks {
    fn new(function: RankFunction) -> Ranks {
        Ranks { function, seen: 0, rank: 0, previous: None }
    }

    fn next(&mut self, key: &Row) -> u64 {
        self.seen += 1;
        if self.function == RankFunction::RowNumber || self.previous.as_ref() != Some(key) {
            self.rank = if self.function == RankFunction::DenseRank { self.rank + 1 } else { self.seen };
            self.previous = Some(key.clone());
        }
        self.rank
    }
}

impl Operator for WindowRank {
    fn on_changes(&mut self, _port: Port, batch: ChangeBatch, _out: &mut Output) -> Result<()> {
        let ends = row_times(batch.rows(), self.parameters.window_end)?;
        let passed = self.parameters.clock.complete(self.watermark.0);
        ends.values().iter().filter(|end| **end - 1 <= passed).for_each(|end| self.late.record(passed, end - 1));
        let on_time = ends.values().iter().map(|end| Some(end - 1 > passed)).collect();
        let (batch, ends) = (batch.filter(&on_time)?, arrow::compute::filter(&ends, &on_time)?);
        let ends = arrow::array::AsArray::as_primitive::<arrow::datatypes::Int64Type>(&ends);
        let columns = batch.rows().columns();
        let partition: Vec<ArrayRef> =
            self.parameters.partition.iter().map(|column| columns[*column].clone()).collect();
        let mut slots = Vec::new();
        self.keys.slots_of(&partition, batch.len(), &mut slots)?;
        self.keys.touch(&slots);
        self.rows.grow(self.keys.capacity());
        let sort_keys = self.rows.encode_keys(columns)?;
        let rows = self.rows.encode_rows(columns)?;
        for (row, slot) in slots.iter().enumerate() {
            if self.rows.len(*slot) == 0 {
                self.open.entry(ends.value(row)).or_default().push(*slot);
            }
            self.rows.insert(*slot, sort_keys.get(row), rows.get(row).into());
            self.push_out(*slot);
        }
        Ok(())
    }

    fn on_watermark(&mut self, mark: Watermark, out: &mut Output) -> Result<()> {
        self.watermark = self.watermark.max(mark);
        let passed = self.parameters.clock.complete(mark.0);
        let mut told = RankChanges::new(self.parameters.range.0, false);
        while let Some(window) = self.open.first_entry()
            && *window.key() - 1 <= passed
        {
            for slot in window.remove() {
                self.close(slot, &mut told);
            }
        }
        out.changes(told.emit(&self.rows, &self.parameters.output)?);
        out.watermark(mark);
        Ok(())
    }

    fn snapshot(&mut self, _at: CheckpointId) -> Result<Snapshot> {
        let base = !std::mem::replace(&mut self.saved, true);
        let rows = self.rows.snapshot(ROWS, &self.keys, base)?;
        self.keys.finish_snapshot();
        Ok(Snapshot { tables: vec![rows, save_watermark(self.watermark)?] })
    }

    fn restore(&mut self, from: Restored) -> Result<()> {
        let from = from.restrict(self.parameters.key_groups)?;
        self.watermark = restore_watermark(&from)?;
        self.rows.restore(ROWS, &mut self.keys, &from)?;
        let slots = self.keys.live_slots();
        let first = slots.iter().filter_map(|slot| self.rows.iter(*slot).next().map(|(_, row)| row));
        let columns = self.rows.decode(first)?;
        if columns.is_empty() {
            return Ok(());
        }
        let rows = arrow::array::RecordBatch::try_new(self.parameters.input.clone(), columns)?;
        let ends = row_times(&rows, self.parameters.window_end)?;
        for (slot, end) in slots.into_iter().zip(ends.values()) {
            self.open.entry(*end).or_default().push(slot);
        }
        Ok(())
    }

    fn state_size(&self) -> Option<StateSize> {
        Some(StateSize::new(self.keys.len(), self.keys.bytes() + self.rows.bytes()))
    }

    fn shrink(&mut self) -> Result<()> {
        if self.keys.shrink()? {
            self.rows.shrink();
        }
        Ok(())
    }

    fn counters(&self) -> Vec<(&'static str, u64)> {
        vec![("partitions", self.keys.len() as u64), ("late_rows", self.late.rows())]
    }

    fn time_report(&self) -> TimeReport {
        TimeReport {
            lateness: self.late.clone(),
            next_close: self.open.keys().next().map(|end| self.parameters.clock.instant(end - 1)),
            ..TimeReport::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::operators::testing::{changes, check, emitted, feed, saved, schema};

    fn operator(function: RankFunction, range: (u64, u64), newest_first: bool) -> WindowRank {
        WindowRank::new(WindowRankParameters {
            input: schema("s TS, e TS, k TEXT, v BIGINT"),
            output: schema("s TS, e TS, k TEXT, v BIGINT, rn BIGINT"),
            partition: vec![0, 1],
            window_end: 1,
            clock: LocalTime::default(),
            order: vec![SortColumn { column: 3, descending: true, nulls_first: false }],
            function,
            range,
            newest_first,
            key_groups: KeyGroupRange::ALL,
        })
        .unwrap()
    }

    const ROWS: &str = "
        +I 0 10 a 5
        +I 0 10 b 5
        +I 10 20 c 1
        +I 0 10 c _
        +I 0 10 d 4
        +I 0 10 e 5";

    fn run(function: RankFunction, range: (u64, u64), newest_first: bool, size: usize) -> Vec<String> {
        let (mut operator, mut out) = (operator(function, range, newest_first), Output::default());
        feed(&mut operator, &changes(&schema("s TS, e TS, k TEXT, v BIGINT"), ROWS), size, &mut out);
        operator.on_watermark(Watermark(9), &mut out).unwrap();
        emitted(&mut out)
    }

    #[test]
    fn a_window_is_told_when_it_has_ended() {
        use RankFunction::*;
        for size in [1, 2, 9] {
            check(&run(RowNumber, (1, 2), false, size), "+I[0, 10, a, 5, 1]\n+I[0, 10, b, 5, 2]\nW 9");
            check(&run(RowNumber, (1, 1), true, size), "+I[0, 10, e, 5, 1]\nW 9");
            check(&run(Rank, (2, 4), false, size), "+I[0, 10, d, 4, 4]\nW 9");
            check(&run(DenseRank, (2, 3), false, size), "+I[0, 10, d, 4, 2]\n+I[0, 10, c, NULL, 3]\nW 9");
        }
    }

    #[test]
    fn windows_of_local_time_end_by_its_clock() {
        let hours_behind = 5 * 3_600_000;
        let mut operator = operator(RankFunction::RowNumber, (1, 1), false);
        operator.parameters.clock = LocalTime::in_zone(crate::types::TimeZone::named("GMT-05:00").unwrap());
        let mut out = Output::default();
        let rows = |text| changes(&schema("s TS, e TS, k TEXT, v BIGINT"), text);
        feed(&mut operator, &rows("+I 0 10 a 5"), 9, &mut out);
        operator.on_watermark(Watermark(9), &mut out).unwrap();
        check(&emitted(&mut out), "W 9");
        feed(&mut operator, &rows("+I 0 10 b 6"), 9, &mut out);
        operator.on_watermark(Watermark(9 + hours_behind), &mut out).unwrap();
        check(&emitted(&mut out), "+I[0, 10, b, 6, 1]\nW 18000009");
        feed(&mut operator, &rows("+I 0 10 c 7"), 9, &mut out);
        assert_eq!(operator.counters()[1], ("late_rows", 1));
    }

    #[test]
    fn open_windows_survive_a_restart_and_late_rows_are_counted() {
        let input = schema("s TS, e TS, k TEXT, v BIGINT");
        let (mut first, mut out) = (operator(RankFunction::RowNumber, (1, 1), false), Output::default());
        feed(&mut first, &changes(&input, ROWS), 3, &mut out);
        let mut snapshots = vec![first.snapshot(1).unwrap()];
        first.on_watermark(Watermark(9), &mut out).unwrap();
        feed(&mut first, &changes(&input, "+I 10 20 z 9\n+I 0 10 y 9"), 3, &mut out);
        assert_eq!(first.counters(), [("partitions", 1), ("late_rows", 1)]);
        snapshots.push(first.snapshot(2).unwrap());
        let mut out = Output::default();
        let mut second = operator(RankFunction::RowNumber, (1, 1), false);
        second.restore(saved(&snapshots)).unwrap();
        feed(&mut second, &changes(&input, "+I 10 20 y 9\n+I 0 10 y 9"), 3, &mut out);
        second.on_watermark(Watermark::MAX, &mut out).unwrap();
        check(&emitted(&mut out), "+I[10, 20, z, 9, 1]\nW 9223372036854775807");
    }
}
