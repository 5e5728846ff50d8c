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

use arrow::array::{ArrayRef, AsArray, Int64Array, RecordBatch, RecordBatchOptions, UInt32Array};
use arrow::compute::{concat_batches, take_record_batch};
use arrow::datatypes::{DataType, Field, Int64Type, Schema, SchemaRef};

use super::aggregate::GroupTable;
use super::event_time::{restore_closed, restore_watermark, save_closed, save_watermark, timestamps};
use super::window::{Placement, Window, check};
use super::{Operator, Output, Port, ProcessingTime};
use crate::changelog::{ChangeBatch, CheckpointId, Kinds, Watermark};
use crate::error::{Error, Result};
use crate::limits::BATCH_ROWS;
use crate::state::{KeyGroupRange, Restored, Scope, Snapshot, TableDelta};
use crate::types::{AggregateCall, LocalTime, WindowColumn, WindowSpec, WindowTime};

/// Rows of deltas after which the tables are written anew, beside twice their own size.
const DELTA_ROWS: usize = 100_000;

/// The columns of a window in saved rows, behind the key group.
const WINDOW_COLUMNS: [&str; 2] = ["window_end", "window_start"];

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

/// `GROUP BY` over windows.
pub struct WindowAggregate {
    parameters: WindowAggregateParameters,
    /// Open windows, by end.
    windows: BTreeMap<Window, GroupTable>,
    mark: Watermark,
    /// The last moment of the last window that the end of the input has fired.
    closed: Watermark,
    now: ProcessingTime,
    saved: bool,
    /// What snapshots hold of windows that have fired since the last one.
    forgotten: Vec<TableDelta>,
    delta_rows: usize,
    late_rows: u64,
    late_max_ms: u64,
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
        let width = parameters.keys.len() + parameters.window_columns.len() + parameters.aggregates.len();
        if parameters.output.fields().len() != width {
            return Err(Error::bug("a window aggregate emits its keys, window columns and aggregates"));
        }
        let operator = WindowAggregate {
            parameters,
            windows: BTreeMap::new(),
            mark: Watermark::MIN,
            closed: Watermark::MIN,
            now: ProcessingTime::MIN,
            saved: false,
            forgotten: Vec::new(),
            delta_rows: 0,
            late_rows: 0,
            late_max_ms: 0,
            unmatched: 0,
        };
        // Refuses what cannot be computed before the first row comes.
        operator.new_table()?;
        Ok(operator)
    }

    fn new_table(&self) -> Result<GroupTable> {
        let WindowAggregateParameters { input, keys, aggregates, append_only_input, .. } = &self.parameters;
        GroupTable::new(input, keys, aggregates, *append_only_input, false)
    }

    /// Counts rows into one window.
    fn absorb(&mut self, window: Window, batch: &ChangeBatch) -> Result<()> {
        if !self.windows.contains_key(&window) {
            let table = self.new_table()?;
            self.windows.insert(window, table);
        }
        match self.windows.get_mut(&window) {
            Some(table) => table.absorb(batch),
            None => Err(Error::bug("a window that was just opened is gone")),
        }
    }

    /// The rows of each open window; late rows are counted and in none.
    fn assign(&mut self, rows: usize, mut placement: Placement) -> BTreeMap<Window, Vec<u32>> {
        let mut assigned: BTreeMap<Window, Vec<u32>> = BTreeMap::new();
        // Rows come mostly in order, so most stand in the window of the row before.
        let (mut current, mut run): (Option<Window>, Vec<u32>) = (None, Vec::new());
        let fired = self.mark.max(self.closed).0;
        for row in 0..rows {
            let (mut any, mut open) = (false, false);
            placement.for_each(row, |window| {
                any = true;
                if window.end - 1 <= fired {
                    return;
                }
                open = true;
                if current != Some(window)
                    && let Some(last) = current.replace(window)
                {
                    append(&mut assigned, last, &mut run);
                }
                run.push(row as u32);
            });
            if any && !open {
                self.late_rows += 1;
                self.late_max_ms = self.late_max_ms.max(fired.abs_diff(placement.time(row)));
            }
        }
        if let Some(last) = current {
            append(&mut assigned, last, &mut run);
        }
        assigned
    }

    /// A fired window's groups as rows.
    fn results(&self, window: Window, table: &GroupTable) -> Result<RecordBatch> {
        let WindowAggregateParameters { output, keys, window_columns, .. } = &self.parameters;
        let mut slots = table.keys.live_slots();
        slots.retain(|slot| table.counts[*slot as usize] > 0);
        let mut columns = table.keys.take(&slots)?;
        for (index, column) in window_columns.iter().enumerate() {
            let value = match column {
                WindowColumn::Start => window.start,
                WindowColumn::End => window.end,
                WindowColumn::Time => self.parameters.clock.instant(window.end - 1),
            };
            columns.push(timestamps(vec![value; slots.len()], output.field(keys.len() + index).data_type())?);
        }
        columns.extend(table.evaluate(&slots)?);
        let options = RecordBatchOptions::new().with_row_count(Some(slots.len()));
        Ok(RecordBatch::try_new_with_options(Arc::clone(output), columns, &options)?)
    }

    /// Emits and forgets the windows whose last moment has passed.
    fn fire(&mut self, passed: i64, out: &mut Output) -> Result<()> {
        let mut results = Vec::new();
        let mut waiting = 0;
        while let Some(entry) = self.windows.first_entry().filter(|entry| entry.key().end - 1 <= passed) {
            let (window, table) = entry.remove_entry();
            let rows = self.results(window, &table)?;
            waiting += rows.num_rows();
            if rows.num_rows() > 0 {
                results.push(rows);
            }
            if waiting >= BATCH_ROWS {
                self.emit(&mut results, out)?;
                waiting = 0;
            }
            self.unmatched += table.unmatched;
            if self.saved {
                for delta in table.forget()? {
                    self.forgotten.push(in_window(window, delta)?);
                }
            }
        }
        self.emit(&mut results, out)
    }

    fn emit(&self, results: &mut Vec<RecordBatch>, out: &mut Output) -> Result<()> {
        match results.as_slice() {
            [] => {}
            [single] => out.changes(ChangeBatch::inserts(single.clone())),
            several => out.changes(ChangeBatch::inserts(concat_batches(&self.parameters.output, several)?)),
        }
        results.clear();
        Ok(())
    }
}

/// Moves a run of rows to the window's others.
fn append(assigned: &mut BTreeMap<Window, Vec<u32>>, window: Window, run: &mut Vec<u32>) {
    let rows = assigned.entry(window).or_default();
    if rows.is_empty() {
        *rows = std::mem::take(run);
    } else {
        rows.append(run);
    }
}

/// The rows `rows` of a batch.
fn pick(batch: &ChangeBatch, rows: Vec<u32>) -> Result<ChangeBatch> {
    if rows.len() == batch.len() {
        return Ok(batch.clone());
    }
    let kinds = match batch.kinds() {
        Kinds::AllInsert => None,
        Kinds::Each(kinds) => Some(rows.iter().map(|row| kinds[*row as usize]).collect()),
    };
    let picked = take_record_batch(batch.rows(), &UInt32Array::from(rows))?;
    match kinds {
        None => Ok(ChangeBatch::inserts(picked)),
        Some(kinds) => ChangeBatch::new(picked, kinds),
    }
}

impl Operator for WindowAggregate {
    fn on_changes(&mut self, _port: Port, batch: ChangeBatch, _out: &mut Output) -> Result<()> {
        if self.parameters.append_only_input && !batch.is_append_only() {
            return Err(Error::bug("an aggregate planned for append-only input was given another change"));
        }
        let WindowAggregateParameters { window, time, clock, moment, .. } = self.parameters;
        let placement = match moment {
            WindowTime::Event => Placement::of(window, time, clock, batch.rows())?,
            WindowTime::Processing => Placement::now(window, clock.local(self.now)),
        };
        for (window, rows) in self.assign(batch.len(), placement) {
            self.absorb(window, &pick(&batch, rows)?)?;
        }
        Ok(())
    }

    fn on_watermark(&mut self, mark: Watermark, out: &mut Output) -> Result<()> {
        if self.parameters.moment == WindowTime::Event {
            let passed = self.parameters.clock.complete(mark.0);
            if mark == Watermark::MAX {
                let last = self.windows.last_key_value().map_or(i64::MIN, |(window, _)| window.end - 1);
                self.closed = self.closed.max(Watermark(last));
            } else {
                self.mark = self.mark.max(Watermark(passed));
            }
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
        let groups: usize = self.windows.values().map(|table| table.keys.len()).sum();
        let base = !self.saved || self.delta_rows > DELTA_ROWS + 2 * groups;
        let mut parts: BTreeMap<String, Parts> = BTreeMap::new();
        for delta in self.new_table()?.snapshot(true, true)? {
            parts.entry(delta.table).or_default();
        }
        let mut written = 0;
        let mut add = |delta: TableDelta| {
            let part = parts.entry(delta.table).or_default();
            let rows = [&delta.upserts, &delta.deletes].into_iter().flatten().map(RecordBatch::num_rows);
            written += rows.sum::<usize>();
            part.upserts.extend(delta.upserts);
            part.deletes.extend(delta.deletes.filter(|_| !base));
        };
        self.forgotten.drain(..).for_each(&mut add);
        for (window, table) in &mut self.windows {
            for delta in table.snapshot(base, base)? {
                add(in_window(*window, delta)?);
            }
        }
        self.delta_rows = if base { 0 } else { self.delta_rows + written };
        self.saved = true;
        let mut tables = vec![save_watermark(self.mark)?, save_closed(self.closed)?];
        for (table, part) in parts {
            tables.push(TableDelta {
                table,
                scope: Scope::Keyed,
                base,
                upserts: together(&part.upserts)?,
                deletes: together(&part.deletes)?,
            });
        }
        Ok(Snapshot { tables })
    }

    fn restore(&mut self, from: Restored) -> Result<()> {
        let from = from.restrict(self.parameters.key_groups)?;
        self.mark = restore_watermark(&from)?;
        self.closed = restore_closed(&from)?;
        let mut by_window: BTreeMap<Window, Restored> = BTreeMap::new();
        for delta in from.deltas.iter().filter(|delta| delta.scope == Scope::Keyed) {
            for (rows, upserts) in [(&delta.deletes, false), (&delta.upserts, true)] {
                let Some(rows) = rows else { continue };
                for (window, rows) in by_windows(&delta.table, rows)? {
                    let (upserts, deletes) = if upserts { (Some(rows), None) } else { (None, Some(rows)) };
                    let part = TableDelta { upserts, deletes, ..delta.clone() };
                    by_window.entry(window).or_default().deltas.push(part);
                }
            }
        }
        for (window, part) in by_window {
            let mut table = self.new_table()?;
            table.restore(&part)?;
            if table.keys.len() > 0 {
                self.windows.insert(window, table);
            }
        }
        Ok(())
    }

    fn counters(&self) -> Vec<(&'static str, u64)> {
        let unmatched: u64 = self.windows.values().map(|table| table.unmatched).sum();
        vec![
            ("open_windows", self.windows.len() as u64),
            ("late_rows", self.late_rows),
            ("late_max_ms", self.late_max_ms),
            ("unmatched_retractions", self.unmatched + unmatched),
        ]
    }
}

/// A table's rows of several windows.
#[derive(Default)]
struct Parts {
    upserts: Vec<RecordBatch>,
    deletes: Vec<RecordBatch>,
}

fn together(parts: &[RecordBatch]) -> Result<Option<RecordBatch>> {
    match parts {
        [] => Ok(None),
        [first, ..] => Ok(Some(concat_batches(&first.schema(), parts)?)),
    }
}

/// A delta of one window's table as one of all windows': the window stands behind the key group.
fn in_window(window: Window, mut delta: TableDelta) -> Result<TableDelta> {
    for rows in [&mut delta.upserts, &mut delta.deletes].into_iter().flatten() {
        let mut fields = rows.schema().fields().to_vec();
        let mut columns = rows.columns().to_vec();
        for (place, (name, value)) in WINDOW_COLUMNS.into_iter().zip([window.end, window.start]).enumerate() {
            fields.insert(place + 1, Arc::new(Field::new(name, DataType::Int64, false)));
            columns.insert(place + 1, Arc::new(Int64Array::from(vec![value; rows.num_rows()])) as ArrayRef);
        }
        *rows = RecordBatch::try_new(Arc::new(Schema::new(fields)), columns)?;
    }
    Ok(delta)
}

/// The inverse of [`in_window`] over rows of many windows.
fn by_windows(table: &str, rows: &RecordBatch) -> Result<Vec<(Window, RecordBatch)>> {
    let whole = |place: usize| rows.columns().get(place).and_then(|column| column.as_primitive_opt::<Int64Type>());
    let (Some(ends), Some(starts)) = (whole(1), whole(2)) else {
        return Err(Error::state(format!("saved state table '{table}' has no windows")));
    };
    let mut places: BTreeMap<Window, Vec<u32>> = BTreeMap::new();
    for (row, (end, start)) in ends.values().iter().zip(starts.values()).enumerate() {
        places.entry(Window { end: *end, start: *start }).or_default().push(row as u32);
    }
    let columns: Vec<usize> = (0..rows.num_columns()).filter(|column| !(1..=2).contains(column)).collect();
    let narrow = rows.project(&columns)?;
    let parts = places.into_iter();
    parts.map(|(window, rows)| Ok((window, take_record_batch(&narrow, &UInt32Array::from(rows))?))).collect()
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
            assert_eq!(operator.counters()[1..3], [("late_rows", 1), ("late_max_ms", 5)]);
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
