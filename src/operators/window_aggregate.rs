//! `GROUP BY` over windows: each window emits its groups once, when the watermark, or the clock, has passed its end.
//!
//! Every open window is a small table of groups of its own: a row is counted into each of its windows, and a window
//! that has fired is dropped whole. With the watermark 5 s behind, windows of 10 s and rows `(ts, key)`:
//!
//! ```text
//! 00:03 a   00:09 b   00:12 a   (watermark 00:07)
//! 00:16 a   (watermark 00:11)   [00:00, 00:10) fires:  +I[a, 00:00, 1]  +I[b, 00:00, 1]
//! 00:08 b   late: its window is gone; dropped and counted
//! ```
//!
//! Windows fire in order of their ends, groups within a window in order of arrival. Retractions are folded away before
//! a window fires; a group without rows does not show.
//!
//! The end of the input fires all windows, and that is final too: when the job is run again over files that have grown,
//! rows of those windows, and of any before them, are late; later windows open as ever. So a window emits once.
//!
//! Over processing time a row is in the windows of the moment at which it arrives, so none is late; the clock fires
//! windows, and the end of the input does not.

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow::array::{ArrayRef, RecordBatch, RecordBatchOptions};
use arrow::compute::concat_batches;
use arrow::datatypes::SchemaRef;

use super::aggregate::GroupTable;
use super::event_time::timestamps;
use super::lateness::Lateness;
use super::progress::Progress;
use super::window::{Placement, Window, check};
use super::window_tables::{SavedTables, assign, pick, restore};
use super::{Operator, Output, Port, ProcessingTime, StateSize, TimeReport};
use crate::changelog::{ChangeBatch, CheckpointId, Watermark};
use crate::error::{Error, Result};
use crate::limits::BATCH_ROWS;
use crate::state::{KeyGroupRange, Restored, Snapshot};
use crate::types::{AggregateCall, LocalTime, WindowColumn, WindowSpec, WindowTime};

/// What a [`WindowAggregate`] computes.
pub struct WindowAggregateParameters {
    /// The columns that come.
    pub input: SchemaRef,
    /// The columns emitted: keys, window columns, aggregates.
    pub output: SchemaRef,
    /// Key columns of the input, without the window's.
    pub keys: Vec<usize>,
    /// The event-time column.
    pub time: usize,
    /// How time is cut.
    pub window: WindowSpec,
    /// The clock along which it is cut. Windows, lateness and the saved watermark are in its local time.
    pub clock: LocalTime,
    /// Whether the rows' time counts, or that of the machine.
    pub moment: WindowTime,
    /// Which columns of the window are emitted.
    pub window_columns: Vec<WindowColumn>,
    /// What is computed.
    pub aggregates: Vec<AggregateCall>,
    /// Whether only `+I` comes.
    pub append_only_input: bool,
    /// The key groups of this subtask.
    pub key_groups: KeyGroupRange,
}

impl WindowAggregateParameters {
    /// Groups of a window.
    pub(super) fn new_table(&self) -> Result<GroupTable> {
        GroupTable::new(&self.input, &self.keys, &self.aggregates, self.append_only_input)
    }

    /// The windows of a batch's rows; `now` is processing time.
    pub(super) fn placement(&self, rows: &RecordBatch, now: ProcessingTime) -> Result<Placement> {
        match self.moment {
            WindowTime::Event => Placement::of(self.window, self.time, self.clock, rows),
            WindowTime::Processing => Ok(Placement::now(self.window, self.clock.local(now))),
        }
    }

    /// The emitted columns of a window, for so many rows.
    pub(super) fn window_values(&self, window: Window, rows: usize) -> Result<Vec<ArrayRef>> {
        let column = |(index, column): (usize, &WindowColumn)| {
            let value = match column {
                WindowColumn::Start => window.start,
                WindowColumn::End => window.end,
                WindowColumn::Time => self.clock.instant(window.end - 1),
            };
            timestamps(vec![value; rows], self.output.field(self.keys.len() + index).data_type())
        };
        self.window_columns.iter().enumerate().map(column).collect()
    }

    /// A fired window's groups as rows.
    pub(super) fn results(&self, window: Window, table: &GroupTable) -> Result<RecordBatch> {
        let mut slots = table.keys.live_slots();
        slots.retain(|slot| table.counts[*slot as usize] > 0);
        let mut columns = table.keys.take(&slots)?;
        columns.extend(self.window_values(window, slots.len())?);
        columns.extend(table.evaluate(&slots)?);
        let options = RecordBatchOptions::new().with_row_count(Some(slots.len()));
        Ok(RecordBatch::try_new_with_options(Arc::clone(&self.output), columns, &options)?)
    }

    /// Checks that the emitted columns are those of the parts.
    pub(super) fn check_width(&self) -> Result<()> {
        if self.output.fields().len() != self.keys.len() + self.window_columns.len() + self.aggregates.len() {
            return Err(Error::bug("a window aggregate emits its keys, window columns and aggregates"));
        }
        Ok(())
    }
}

/// Emits what several windows have come to, and empties the list.
pub(super) fn emit(output: &SchemaRef, results: &mut Vec<RecordBatch>, out: &mut Output) -> Result<()> {
    match results.as_slice() {
        [] => {}
        [single] => out.changes(ChangeBatch::inserts(single.clone())),
        several => out.changes(ChangeBatch::inserts(concat_batches(output, several)?)),
    }
    results.clear();
    Ok(())
}

/// `GROUP BY` over windows.
pub struct WindowAggregate {
    parameters: WindowAggregateParameters,
    /// Open windows, by end.
    windows: BTreeMap<Window, GroupTable>,
    progress: Progress,
    now: ProcessingTime,
    saved: SavedTables,
    late: Lateness,
    /// Of windows that have fired.
    unmatched: u64,
}

impl WindowAggregate {
    /// An operator without open windows.
    ///
    /// # Errors
    /// If a key cannot be grouped by, a function does not take its argument, or the window makes no sense.
    pub fn new(parameters: WindowAggregateParameters) -> Result<WindowAggregate> {
        check(parameters.window)?;
        if matches!(parameters.window, WindowSpec::Session { .. }) {
            return Err(Error::bug("sessions have an operator of their own"));
        }
        parameters.check_width()?;
        let operator = WindowAggregate {
            parameters,
            windows: BTreeMap::new(),
            progress: Progress::default(),
            now: ProcessingTime::MIN,
            saved: SavedTables::default(),
            late: Lateness::default(),
            unmatched: 0,
        };
        // Refuses what cannot be computed before the first row comes.
        operator.parameters.new_table()?;
        Ok(operator)
    }

    /// Counts rows into one window.
    fn absorb(&mut self, window: Window, batch: &ChangeBatch) -> Result<()> {
        if !self.windows.contains_key(&window) {
            let table = self.parameters.new_table()?;
            self.windows.insert(window, table);
        }
        match self.windows.get_mut(&window) {
            Some(table) => table.absorb(batch),
            None => Err(Error::bug("a window that was just opened is gone")),
        }
    }

    /// Emits and forgets the windows whose last moment has passed.
    fn fire(&mut self, passed: i64, out: &mut Output) -> Result<()> {
        let mut results = Vec::new();
        let mut waiting = 0;
        while let Some(entry) = self.windows.first_entry().filter(|entry| entry.key().end - 1 <= passed) {
            let (window, table) = entry.remove_entry();
            let rows = self.parameters.results(window, &table)?;
            waiting += rows.num_rows();
            if rows.num_rows() > 0 {
                results.push(rows);
            }
            if waiting >= BATCH_ROWS {
                emit(&self.parameters.output, &mut results, out)?;
                waiting = 0;
            }
            self.unmatched += table.unmatched;
            self.saved.forget(window, table)?;
        }
        emit(&self.parameters.output, &mut results, out)
    }
}

impl WindowAggregate {
    /// The watermark that ends the next window.
    fn next_close(&self) -> Option<i64> {
        let by_event_time = self.parameters.moment == WindowTime::Event;
        let mut ends = self.windows.keys().map(|window| window.end - 1);
        let next = ends.next();
        next.filter(|_| by_event_time).map(|last| self.parameters.clock.instant(last))
    }
}

impl Operator for WindowAggregate {
    fn on_changes(&mut self, _port: Port, batch: ChangeBatch, _out: &mut Output) -> Result<()> {
        if self.parameters.append_only_input && !batch.is_append_only() {
            return Err(Error::bug("an aggregate planned for append-only input was given another change"));
        }
        let placement = self.parameters.placement(batch.rows(), self.now)?;
        let passed = self.progress.passed(0);
        for (window, rows) in assign(batch.len(), placement, passed, &mut self.late) {
            self.absorb(window, &pick(&batch, rows)?)?;
        }
        Ok(())
    }

    fn on_watermark(&mut self, mark: Watermark, out: &mut Output) -> Result<()> {
        if self.parameters.moment == WindowTime::Event {
            let passed = self.parameters.clock.complete(mark.0);
            let last = self.windows.last_key_value().map(|(window, _)| window.end - 1);
            self.progress.advance(mark, passed, last);
            self.fire(passed, out)?;
        }
        out.watermark(mark);
        Ok(())
    }

    fn on_clock(&mut self, now: ProcessingTime, out: &mut Output) -> Result<()> {
        self.now = self.now.max(now);
        match self.parameters.moment {
            WindowTime::Event => Ok(()),
            WindowTime::Processing => self.fire(self.parameters.clock.complete(self.now), out),
        }
    }

    fn snapshot(&mut self, _at: CheckpointId) -> Result<Snapshot> {
        let mut tables = self.progress.save()?;
        let empty = self.parameters.new_table()?;
        tables.extend(self.saved.snapshot(empty, self.windows.iter_mut().map(|(window, table)| (*window, table)))?);
        Ok(Snapshot { tables })
    }

    fn restore(&mut self, from: Restored) -> Result<()> {
        let from = from.restrict(self.parameters.key_groups)?;
        self.progress = Progress::restore(&from)?;
        self.windows = restore(&from, &|| self.parameters.new_table())?;
        Ok(())
    }

    fn state_size(&self) -> Option<StateSize> {
        Some(self.windows.values().map(GroupTable::size).sum())
    }

    fn shrink(&mut self) -> Result<()> {
        self.windows.values_mut().try_for_each(|table| table.shrink().map(drop))
    }

    fn counters(&self) -> Vec<(&'static str, u64)> {
        let unmatched: u64 = self.windows.values().map(|table| table.unmatched).sum();
        vec![
            ("open_windows", self.windows.len() as u64),
            ("late_rows", self.late.rows()),
            ("unmatched_retractions", self.unmatched + unmatched),
        ]
    }

    fn time_report(&self) -> TimeReport {
        TimeReport { lateness: self.late.clone(), next_close: self.next_close(), ..TimeReport::default() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::operators::testing::{call, changes, check, emitted, feed, saved, schema};
    use crate::types::AggregateFunction;

    fn operator(window: WindowSpec) -> WindowAggregate {
        WindowAggregate::new(WindowAggregateParameters {
            input: schema("k TEXT, ts TS, v BIGINT"),
            output: schema("k TEXT, s TS, e TS, n BIGINT, m BIGINT"),
            keys: vec![0],
            time: 1,
            window,
            clock: LocalTime::default(),
            moment: WindowTime::Event,
            window_columns: vec![WindowColumn::Start, WindowColumn::Time],
            aggregates: vec![
                call(AggregateFunction::Count, &[], "BIGINT"),
                call(AggregateFunction::Max, &[2], "BIGINT"),
            ],
            append_only_input: false,
            key_groups: KeyGroupRange::ALL,
        })
        .unwrap()
    }

    fn input(text: &str) -> ChangeBatch {
        changes(&schema("k TEXT, ts TS, v BIGINT"), text)
    }

    const TUMBLE: WindowSpec = WindowSpec::Tumble { size: 10, offset: 0 };

    #[test]
    fn windows_fire_by_end_and_late_rows_are_counted() {
        for size in [1, 3, 100] {
            let (mut operator, mut out) = (operator(TUMBLE), Output::default());
            feed(&mut operator, &input("+I a 12 1\n+I b 3 7\n+I a 9 2\n+I b 19 5\n+I a 11 4"), size, &mut out);
            operator.on_watermark(Watermark(8), &mut out).unwrap();
            check(&emitted(&mut out), "W 8");
            operator.on_watermark(Watermark(9), &mut out).unwrap();
            check(&emitted(&mut out), "+I[b, 0, 9, 1, 7]\n+I[a, 0, 9, 1, 2]\nW 9");
            feed(&mut operator, &input("+I a 4 1\n+I c 10 1"), size, &mut out);
            operator.on_watermark(Watermark::MAX, &mut out).unwrap();
            let last = "+I[a, 10, 19, 2, 4]\n+I[b, 10, 19, 1, 5]\n+I[c, 10, 19, 1, 1]\nW 9223372036854775807";
            check(&emitted(&mut out), last);
            assert_eq!(operator.counters()[1..3], [("late_rows", 1), ("unmatched_retractions", 0)]);
        }
    }

    #[test]
    fn retractions_are_folded_before_a_window_fires() {
        let (mut operator, mut out) = (operator(TUMBLE), Output::default());
        feed(&mut operator, &input("+I a 1 5\n+I a 2 9\n-U a 2 9\n+U a 12 9\n+I b 3 1\n-D b 3 1"), 2, &mut out);
        operator.on_watermark(Watermark(100), &mut out).unwrap();
        check(&emitted(&mut out), "+I[a, 0, 9, 1, 5]\n+I[a, 10, 19, 1, 9]\nW 100");
    }

    #[test]
    fn hop_and_cumulate_count_a_row_into_each_of_its_open_windows() {
        let (mut hop, mut out) = (operator(WindowSpec::Hop { slide: 5, size: 10, offset: 0 }), Output::default());
        feed(&mut hop, &input("+I a 7 1"), 1, &mut out);
        hop.on_watermark(Watermark(9), &mut out).unwrap();
        check(&emitted(&mut out), "+I[a, 0, 9, 1, 1]\nW 9");
        // Late for [0, 10), not for [5, 15).
        feed(&mut hop, &input("+I a 8 3"), 1, &mut out);
        hop.on_watermark(Watermark(50), &mut out).unwrap();
        check(&emitted(&mut out), "+I[a, 5, 14, 2, 3]\nW 50");
        let cumulate = WindowSpec::Cumulate { step: 10, size: 30, offset: 0 };
        let (mut cumulate, mut out) = (operator(cumulate), Output::default());
        feed(&mut cumulate, &input("+I a 7 1\n+I a 22 5"), 1, &mut out);
        cumulate.on_watermark(Watermark(50), &mut out).unwrap();
        check(&emitted(&mut out), "+I[a, 0, 9, 1, 1]\n+I[a, 0, 19, 1, 1]\n+I[a, 0, 29, 2, 5]\nW 50");
    }

    #[test]
    fn open_windows_survive_a_restart_and_fired_ones_stay_gone() {
        let (mut first, mut out) = (operator(TUMBLE), Output::default());
        feed(&mut first, &input("+I a 1 5\n+I a 12 6\n+I b 25 7"), 9, &mut out);
        let mut snapshots = vec![first.snapshot(1).unwrap()];
        first.on_watermark(Watermark(9), &mut out).unwrap();
        feed(&mut first, &input("+I a 13 9\n-D b 25 7\n+I c 31 1"), 9, &mut out);
        snapshots.push(first.snapshot(2).unwrap());
        let (mut second, mut out) = (operator(TUMBLE), Output::default());
        second.restore(saved(&snapshots)).unwrap();
        // Late after the restart as before it.
        feed(&mut second, &input("+I a 2 1\n-D a 13 9"), 9, &mut out);
        second.on_watermark(Watermark(100), &mut out).unwrap();
        check(&emitted(&mut out), "+I[a, 10, 19, 1, 6]\n+I[c, 30, 39, 1, 1]\nW 100");
    }
    #[test]
    fn what_the_end_of_the_input_has_fired_stays_final_and_later_windows_open() {
        let (mut first, mut out) = (operator(TUMBLE), Output::default());
        feed(&mut first, &input("+I a 1 5\n+I a 12 6"), 9, &mut out);
        first.on_watermark(Watermark(2), &mut out).unwrap();
        first.on_watermark(Watermark::MAX, &mut out).unwrap();
        let snapshot = first.snapshot(1).unwrap();
        let (mut second, mut out) = (operator(TUMBLE), Output::default());
        second.restore(saved(&[snapshot])).unwrap();
        feed(&mut second, &input("+I a 3 1\n+I b 19 1\n+I a 20 9"), 9, &mut out);
        second.on_watermark(Watermark::MAX, &mut out).unwrap();
        check(&emitted(&mut out), "+I[a, 20, 29, 1, 9]\nW 9223372036854775807");
        assert_eq!(second.counters()[1], ("late_rows", 2));
    }

    #[test]
    fn over_processing_time_the_clock_fires_windows_and_the_end_does_not() {
        let mut operator = operator(WindowSpec::Hop { slide: 10, size: 20, offset: 0 });
        operator.parameters.moment = WindowTime::Processing;
        let mut out = Output::default();
        operator.on_clock(105, &mut out).unwrap();
        feed(&mut operator, &input("+I a 0 1\n+I b 0 7"), 9, &mut out);
        operator.on_clock(109, &mut out).unwrap();
        check(&emitted(&mut out), "+I[a, 90, 109, 1, 1]\n+I[b, 90, 109, 1, 7]");
        feed(&mut operator, &input("+I a 500 4"), 9, &mut out);
        let (mut second, snapshot) =
            (super::tests::operator(WindowSpec::Hop { slide: 10, size: 20, offset: 0 }), operator.snapshot(1));
        second.parameters.moment = WindowTime::Processing;
        second.restore(saved(&[snapshot.unwrap()])).unwrap();
        second.on_clock(125, &mut out).unwrap();
        check(&emitted(&mut out), "+I[a, 90, 109, 1, 4]\n+I[a, 100, 119, 2, 4]\n+I[b, 100, 119, 1, 7]");
        feed(&mut second, &input("+I a 0 4"), 9, &mut out);
        second.on_watermark(Watermark::MAX, &mut out).unwrap();
        check(&emitted(&mut out), "W 9223372036854775807");
        assert_eq!(second.counters()[1], ("late_rows", 0));
    }
}
