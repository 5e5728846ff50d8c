//! `GROUP BY` over windows that overlap (HOP, CUMULATE): each row is counted once, into the slice of time it falls in.
//!
//! Time is cut at every boundary of any window; what lies between two cuts is a slice, and each window is a run of whole
//! slices. A slice has a small table of groups; when a window ends, the tables of its slices are merged. So the cost of a
//! row does not depend on how many windows it is in. HOP by 5 over 10, rows `(ts, key)`:
//!
//! ```text
//! 03 a   07 a   07 b         slices [00, 05): a 1     [05, 10): a 1, b 1
//! watermark 09               [00, 10) fires:  +I[a, 00, 10, 2]  +I[b, 00, 10, 1]; [00, 05) is in no open window and goes
//! 08 a                       late for [00, 10) and not for [05, 15): [05, 10): a 2, b 1
//! ```
//!
//! This is for aggregates whose groups merge by their columns of state ([`GroupTable::merges_by_columns`]); others are
//! counted into each window by [`super::WindowAggregate`], which is also what this operator is tested against. When
//! windows fire, in which order, and what is late is the same there. Windows of processing time are not for slices: a
//! slice outlives the windows that have fired, and by which clock they have is not known after a restart. Nor are rows that
//! are retracted: the row of a retraction may have been late, and then a window has other rows from which to take it.

use std::collections::{BTreeMap, BTreeSet};

use arrow::array::{Int64Array, RecordBatch};

use super::aggregate::GroupTable;
use super::lateness::Lateness;
use super::progress::Progress;
use super::window::{Window, check, for_each_window, local_times, start_of};
use super::window_aggregate::{WindowAggregateParameters, emit};
use super::window_tables::{SavedTables, pick, restore};
use super::{Operator, Output, Port, StateSize, TimeReport};
use crate::changelog::{ChangeBatch, CheckpointId, Watermark};
use crate::error::{Error, Result};
use crate::limits::BATCH_ROWS;
use crate::state::{Restored, Snapshot};
use crate::types::{WindowSpec, WindowTime};

/// Slices that one window may have for each window that a row may be in: HOP by 7 ms over 1 h is not cut into
/// milliseconds.
const SLICES_PER_WINDOW: i64 = 4;

/// How time is cut into slices.
#[derive(Debug, Clone, Copy)]
struct Cut {
    length: i64,
    offset: i64,
}

impl Cut {
    /// The slices of windows; `None` if they do not overlap, or cut time too finely.
    fn of(spec: WindowSpec) -> Option<Cut> {
        let (step, size, offset) = match spec {
            WindowSpec::Hop { slide, size, offset } => (slide, size, offset),
            WindowSpec::Cumulate { step, size, offset } => (step, size, offset),
            WindowSpec::Tumble { .. } | WindowSpec::Session { .. } | WindowSpec::Attached { .. } => return None,
        };
        let length = common_divisor(step, size);
        let few = size / length <= SLICES_PER_WINDOW * (size / step + 1);
        (few && step > 0 && size > step).then_some(Cut { length, offset })
    }
}

fn common_divisor(a: i64, b: i64) -> i64 {
    if b == 0 { a.max(1) } else { common_divisor(b, a % b) }
}

/// The groups of CUMULATE's last window, from which the next one goes on.
struct Running {
    start: i64,
    end: i64,
    table: GroupTable,
}

/// `GROUP BY` over windows that overlap.
pub struct SlicedWindowAggregate {
    parameters: WindowAggregateParameters,
    cut: Cut,
    /// Slices in some open window, each as a window by its bounds.
    slices: BTreeMap<Window, GroupTable>,
    /// Windows with slices that have not fired.
    open: BTreeSet<Window>,
    running: Option<Running>,
    progress: Progress,
    saved: SavedTables,
    late: Lateness,
}

impl SlicedWindowAggregate {
    /// Whether these windows and aggregates can be computed by slices.
    pub fn serves(parameters: &WindowAggregateParameters) -> bool {
        parameters.moment == WindowTime::Event
            && parameters.append_only_input
            && Cut::of(parameters.window).is_some()
            && GroupTable::merges_by_columns(&parameters.aggregates, parameters.append_only_input)
    }

    /// An operator without open windows.
    ///
    /// # Errors
    /// If a key cannot be grouped by, a function does not take its argument, or the window makes no sense.
    pub fn new(parameters: WindowAggregateParameters) -> Result<SlicedWindowAggregate> {
        check(parameters.window)?;
        let cut = Cut::of(parameters.window).ok_or_else(|| Error::bug("these windows are not cut into slices"))?;
        parameters.check_width()?;
        parameters.new_table()?;
        Ok(SlicedWindowAggregate {
            parameters,
            cut,
            slices: BTreeMap::new(),
            open: BTreeSet::new(),
            running: None,
            progress: Progress::default(),
            saved: SavedTables::default(),
            late: Lateness::default(),
        })
    }

    /// The slice around a local time.
    fn slice(&self, time: i64) -> Window {
        let start = start_of(time, self.cut.length, self.cut.offset);
        Window { start, end: start.wrapping_add(self.cut.length) }
    }

    /// The last moment of the last window that a slice is part of; `None` if it is in none (a HOP that leaves gaps).
    fn last_moment(&self, slice: Window) -> Option<i64> {
        let mut last = None;
        for_each_window(self.parameters.window, slice.start, |window| last = last.max(Some(window.end - 1)));
        last
    }

    /// The rows of each slice; late rows are counted and in none.
    fn assign(&mut self, times: &Int64Array, passed: i64) -> BTreeMap<Window, Vec<u32>> {
        let mut assigned: BTreeMap<Window, Vec<u32>> = BTreeMap::new();
        let mut row = 0;
        while row < times.len() {
            // Rows come mostly in order, so those that follow are mostly of the same slice.
            let slice = self.slice(times.value(row));
            let rest = &times.values()[row..];
            let run = rest.iter().take_while(|time| (slice.start..slice.end).contains(*time)).count().max(1);
            match self.last_moment(slice) {
                None => {}
                Some(last) if last <= passed => (0..run).for_each(|_| self.late.record(passed, last)),
                Some(_) => assigned.entry(slice).or_default().extend(row as u32..(row + run) as u32),
            }
            row += run;
        }
        assigned
    }

    /// Counts rows into one slice.
    fn absorb(&mut self, slice: Window, batch: &ChangeBatch, passed: i64) -> Result<()> {
        if let Some(running) = &self.running
            && running.start <= slice.start
            && slice.start < running.end
        {
            // It was told with less.
            self.running = None;
        }
        if !self.slices.contains_key(&slice) {
            self.slices.insert(slice, self.parameters.new_table()?);
            self.open_windows(slice, passed);
        }
        match self.slices.get_mut(&slice) {
            Some(table) => table.absorb(batch),
            None => Err(Error::bug("a slice that was just made is gone")),
        }
    }

    fn open_windows(&mut self, slice: Window, passed: i64) {
        for_each_window(self.parameters.window, slice.start, |window| {
            if window.end - 1 > passed {
                self.open.insert(window);
            }
        });
    }

    /// The groups of a window, out of those of its slices.
    fn merged(&mut self, window: Window) -> Result<GroupTable> {
        let running = self.running.take().filter(|running| {
            let cumulates = matches!(self.parameters.window, WindowSpec::Cumulate { .. });
            cumulates && running.start == window.start && running.end <= window.end
        });
        let (from, mut table) = match running {
            Some(running) => (running.end, running.table),
            None => (window.start, self.parameters.new_table()?),
        };
        // Slices are as long as each other, so they stand in order of their starts too.
        let first = Window { start: from, end: from.wrapping_add(self.cut.length) };
        for (slice, part) in self.slices.range(first..) {
            if slice.end > window.end {
                break;
            }
            table.absorb_groups(part)?;
        }
        Ok(table)
    }

    /// Emits the windows whose last moment has passed, and forgets slices that are in no open window.
    fn fire(&mut self, passed: i64, out: &mut Output) -> Result<()> {
        let mut results: Vec<RecordBatch> = Vec::new();
        let mut waiting = 0;
        while let Some(window) = self.open.first().copied().filter(|window| window.end - 1 <= passed) {
            self.open.pop_first();
            let table = self.merged(window)?;
            let rows = self.parameters.results(window, &table)?;
            if let WindowSpec::Cumulate { .. } = self.parameters.window {
                self.running = Some(Running { start: window.start, end: window.end, table });
            }
            waiting += rows.num_rows();
            if rows.num_rows() > 0 {
                results.push(rows);
            }
            if waiting >= BATCH_ROWS {
                emit(&self.parameters.output, &mut results, out)?;
                waiting = 0;
            }
        }
        while let Some((slice, _)) = self.slices.first_key_value()
            && self.last_moment(*slice).is_none_or(|last| last <= passed)
            && let Some((slice, table)) = self.slices.pop_first()
        {
            self.saved.forget(slice, table)?;
        }
        if self.slices.is_empty() {
            self.running = None;
        }
        emit(&self.parameters.output, &mut results, out)
    }
}

impl Operator for SlicedWindowAggregate {
    fn on_changes(&mut self, _port: Port, batch: ChangeBatch, _out: &mut Output) -> Result<()> {
        if !batch.is_append_only() {
            return Err(Error::bug("an aggregate planned for append-only input was given another change"));
        }
        let times = local_times(batch.rows(), self.parameters.time, self.parameters.clock)?;
        let passed = self.progress.passed(0);
        for (slice, rows) in self.assign(&times, passed) {
            self.absorb(slice, &pick(&batch, rows)?, passed)?;
        }
        Ok(())
    }

    fn on_watermark(&mut self, mark: Watermark, out: &mut Output) -> Result<()> {
        let passed = self.parameters.clock.complete(mark.0);
        let last = self.open.last().map(|window| window.end - 1);
        self.progress.advance(mark, passed, last);
        self.fire(passed, out)?;
        out.watermark(mark);
        Ok(())
    }

    fn snapshot(&mut self, _at: CheckpointId) -> Result<Snapshot> {
        let mut tables = self.progress.save()?;
        let empty = self.parameters.new_table()?;
        tables.extend(self.saved.snapshot(empty, self.slices.iter_mut().map(|(slice, table)| (*slice, table)))?);
        Ok(Snapshot { tables })
    }

    fn restore(&mut self, from: Restored) -> Result<()> {
        let from = from.restrict(self.parameters.key_groups)?;
        self.progress = Progress::restore(&from)?;
        self.slices = restore(&from, &|| self.parameters.new_table())?;
        let passed = self.progress.passed(0);
        let slices: Vec<Window> = self.slices.keys().copied().collect();
        slices.into_iter().for_each(|slice| self.open_windows(slice, passed));
        Ok(())
    }

    fn state_size(&self) -> Option<StateSize> {
        let running = self.running.iter().map(|running| &running.table);
        Some(self.slices.values().chain(running).map(GroupTable::size).sum())
    }

    fn shrink(&mut self) -> Result<()> {
        self.slices.values_mut().try_for_each(|table| table.shrink().map(drop))
    }

    fn counters(&self) -> Vec<(&'static str, u64)> {
        vec![("open_windows", self.open.len() as u64), ("late_rows", self.late.rows())]
    }

    fn time_report(&self) -> TimeReport {
        let next_close = self.open.first().map(|window| self.parameters.clock.instant(window.end - 1));
        TimeReport { lateness: self.late.clone(), next_close, ..TimeReport::default() }
    }
}

#[cfg(test)]
mod tests;
