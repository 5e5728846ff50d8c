//! `GROUP BY` over windows that tell their results before they end, or take late rows: `table.exec.emit.*`.
//!
//! Before its end a window is told row by row, or at intervals of processing time, or not at all; when the watermark
//! passes its end, what has changed since; after that, while it may still get late rows, again row by row or at
//! intervals. What was told and has changed is told as an update, a group that has lost its rows as a deletion:
//!
//! ```text
//! late fire at once, allowed for 20; windows of 10
//! 03 a   07 a              nothing
//! watermark 12             +I[a, 00, 10, 2]
//! 08 a                     -U[a, 00, 10, 2]   +U[a, 00, 10, 3]
//! watermark 29             the window goes; from now on its rows are late
//! ```
//!
//! What waits for an interval is told before a checkpoint, so that no former result need be saved: a group of a window
//! that is told early, or has passed, has been told if it has rows.

use std::collections::BTreeMap;

use arrow::array::{ArrayRef, RecordBatch, UInt32Array};
use arrow::compute::{concat_batches, take_record_batch};

use super::aggregate::{Action, GroupTable};
use super::images::Images;
use super::lateness::Lateness;
use super::progress::Progress;
use super::window::{Window, check};
use super::window_aggregate::WindowAggregateParameters;
use super::window_tables::{SavedTables, assign, pick, restore};
use super::{Operator, Output, Port, ProcessingTime, StateSize, TimeReport};
use crate::changelog::{ChangeBatch, CheckpointId, Kind, Watermark};
use crate::error::{Error, Result};
use crate::state::{Restored, Snapshot};
use crate::types::{Emission, Firing, WindowSpec, WindowTime};

/// A window that may be told more than once.
struct Open {
    table: GroupTable,
    /// By slot: whether users downstream have the group.
    told: Vec<bool>,
    /// Groups that have changed since they were told, and by slot whether it is one of them.
    waiting: Vec<u32>,
    waits: Vec<bool>,
    /// When they are told, if at an interval.
    due: Option<ProcessingTime>,
}

impl Open {
    fn new(table: GroupTable) -> Open {
        Open { table, told: Vec::new(), waiting: Vec::new(), waits: Vec::new(), due: None }
    }

    fn grow(&mut self) {
        let slots = self.table.counts.len();
        self.told.resize(slots, false);
        self.waits.resize(slots, false);
    }

    fn wait(&mut self, slots: &[u32]) -> Result<()> {
        self.grow();
        let known = self.waiting.len();
        for slot in slots {
            if !std::mem::replace(&mut self.waits[*slot as usize], true) {
                self.waiting.push(*slot);
            }
        }
        self.table.remember(&self.waiting[known..])
    }
}

/// Changes of one window, with the row of the batch that each comes from.
struct Told {
    changes: ChangeBatch,
    origins: Vec<u32>,
}

/// `GROUP BY` over windows that are told more than once.
pub struct UpdatingWindowAggregate {
    parameters: WindowAggregateParameters,
    emission: Emission,
    windows: BTreeMap<Window, Open>,
    progress: Progress,
    now: ProcessingTime,
    saved: SavedTables,
    late: Lateness,
    /// Of windows that are gone.
    unmatched: u64,
}

impl UpdatingWindowAggregate {
    /// An operator without open windows.
    ///
    /// # Errors
    /// If a key cannot be grouped by, a function does not take its argument, or the window makes no sense.
    pub fn new(parameters: WindowAggregateParameters, emission: Emission) -> Result<UpdatingWindowAggregate> {
        check(parameters.window)?;
        if matches!(parameters.window, WindowSpec::Session { .. }) {
            return Err(Error::bug("sessions are told once"));
        }
        parameters.new_table()?;
        Ok(UpdatingWindowAggregate {
            parameters,
            emission,
            windows: BTreeMap::new(),
            progress: Progress::default(),
            now: ProcessingTime::MIN,
            saved: SavedTables::default(),
            late: Lateness::default(),
            unmatched: 0,
        })
    }

    fn has_passed(&self, window: Window) -> bool {
        window.end - 1 <= self.progress.mark()
    }

    /// When rows of a window are told.
    fn firing(&self, window: Window) -> Option<Firing> {
        if self.has_passed(window) { self.emission.late } else { self.emission.early }
    }

    /// Counts rows into one window; tells at once what is told row by row.
    fn absorb(&mut self, window: Window, batch: &ChangeBatch, origins: &[u32]) -> Result<Option<Told>> {
        let firing = self.firing(window);
        if !self.windows.contains_key(&window) {
            let table = self.parameters.new_table()?;
            self.windows.insert(window, Open::new(table));
        }
        let Some(open) = self.windows.get_mut(&window) else {
            return Err(Error::bug("a window that was just opened is gone"));
        };
        open.table.assign(batch.rows())?;
        if firing == Some(Firing::EachRow) {
            let window_values = self.parameters.window_values(window, batch.len())?;
            return tell_each(open, batch, origins, window_values, &self.parameters).map(Some);
        }
        let slots = std::mem::take(&mut open.table.slots);
        open.wait(&slots)?;
        open.table.slots = slots;
        open.table.count(batch.kinds());
        open.table.update(batch.rows())?;
        if let Some(Firing::Every(interval)) = firing {
            open.due.get_or_insert(self.now.saturating_add(interval));
        }
        Ok(None)
    }

    /// Tells what has changed in a window since it was told.
    fn tell(&mut self, window: Window, out: &mut Output) -> Result<()> {
        let Some(open) = self.windows.get_mut(&window) else { return Ok(()) };
        open.due = None;
        let slots = std::mem::take(&mut open.waiting);
        if slots.is_empty() {
            return Ok(());
        }
        let mut changed = vec![false; slots.len()];
        let values = open.table.images(&slots, &mut changed)?;
        let mut keys = open.table.keys.take(&slots)?;
        keys.extend(self.parameters.window_values(window, slots.len())?);
        let mut images = Images::with_capacity(slots.len());
        for (place, slot) in slots.into_iter().enumerate() {
            let exists = open.table.counts[slot as usize] > 0;
            match (open.told[slot as usize], exists) {
                (false, true) => images.insert(place),
                (true, true) if changed[place] => images.update(place, true),
                (true, false) => images.delete(place),
                (true, true) | (false, false) => {}
            }
            open.told[slot as usize] = exists;
            open.waits[slot as usize] = false;
            if !exists {
                open.table.remove(slot);
            }
        }
        out.changes(images.emit(&self.parameters.output, &keys, &values)?);
        Ok(())
    }

    /// Tells the windows that have ended since `before`, and forgets those that can change no more.
    fn pass(&mut self, before: i64, passed: i64, out: &mut Output) -> Result<()> {
        let ended: Vec<Window> = self.windows.keys().copied().take_while(|window| window.end - 1 <= passed).collect();
        for window in ended.iter().filter(|window| window.end - 1 > before) {
            self.tell(*window, out)?;
        }
        let final_end = passed.saturating_sub(self.lateness());
        for window in ended.into_iter().filter(|window| window.end - 1 <= final_end) {
            if let Some(open) = self.windows.remove(&window) {
                self.unmatched += open.table.unmatched;
                self.saved.forget(window, open.table)?;
            }
        }
        Ok(())
    }

    fn lateness(&self) -> i64 {
        match self.parameters.moment {
            WindowTime::Event => self.emission.lateness_ms,
            WindowTime::Processing => 0,
        }
    }
}

/// Counts rows into a window and tells what each changes.
fn tell_each(
    open: &mut Open,
    batch: &ChangeBatch,
    origins: &[u32],
    window_values: Vec<ArrayRef>,
    parameters: &WindowAggregateParameters,
) -> Result<Told> {
    let table = &mut open.table;
    table.count(batch.kinds());
    let mut changed = vec![false; batch.len()];
    let values = table.update_each(batch.rows(), &mut changed)?;
    let mut images = Images::with_capacity(batch.len());
    let mut told = Vec::with_capacity(batch.len() * 2);
    for (row, (changed, origin)) in changed.into_iter().zip(origins).enumerate() {
        match table.action(row) {
            Action::Skip => {}
            Action::Clear => {
                images.delete(row);
                told.push(*origin);
            }
            Action::Add | Action::Retract if table.births[row] => {
                images.insert(row);
                told.push(*origin);
            }
            Action::Add | Action::Retract if changed => {
                images.update(row, true);
                told.extend([*origin, *origin]);
            }
            Action::Add | Action::Retract => {}
        }
    }
    let mut keys = table.key_arrays(batch.rows());
    keys.extend(window_values);
    let changes = images.emit(&parameters.output, &keys, &values)?;
    let slots = table.slots.clone();
    table.remove_empty();
    open.grow();
    for slot in slots {
        open.told[slot as usize] = open.table.counts[slot as usize] > 0;
    }
    Ok(Told { changes, origins: told })
}

/// The changes of several windows in the order of the rows that they come from.
fn in_row_order(told: Vec<Told>) -> Result<Option<ChangeBatch>> {
    let [first, _, ..] = told.as_slice() else {
        return Ok(told.into_iter().next().map(|only| only.changes));
    };
    let schema = first.changes.schema();
    let batches: Vec<RecordBatch> = told.iter().map(|window| window.changes.rows().clone()).collect();
    let rows = concat_batches(&schema, &batches)?;
    let kinds: Vec<Kind> =
        told.iter().flat_map(|window| (0..window.changes.len()).map(|row| window.changes.kind(row))).collect();
    let origins: Vec<u32> = told.iter().flat_map(|window| window.origins.iter().copied()).collect();
    let mut order: Vec<u32> = (0..origins.len() as u32).collect();
    // Stable: the images of an update stay together.
    order.sort_by_key(|place| origins[*place as usize]);
    let kinds = order.iter().map(|place| kinds[*place as usize]).collect();
    Ok(Some(ChangeBatch::new(take_record_batch(&rows, &UInt32Array::from(order))?, kinds)?))
}

impl UpdatingWindowAggregate {
    /// The watermark that ends the next window.
    fn next_close(&self) -> Option<i64> {
        let by_event_time = self.parameters.moment == WindowTime::Event;
        let mut ends = self.windows.keys().map(|window| window.end - 1);
        let next = ends.find(|last| *last > self.progress.mark());
        next.filter(|_| by_event_time).map(|last| self.parameters.clock.instant(last))
    }
}

impl Operator for UpdatingWindowAggregate {
    fn on_changes(&mut self, _port: Port, batch: ChangeBatch, out: &mut Output) -> Result<()> {
        if self.parameters.append_only_input && !batch.is_append_only() {
            return Err(Error::bug("an aggregate planned for append-only input was given another change"));
        }
        let placement = self.parameters.placement(batch.rows(), self.now)?;
        let passed = self.progress.passed(self.lateness());
        let mut told = Vec::new();
        // Of a row's windows the latest is told first.
        for (window, rows) in assign(batch.len(), placement, passed, &mut self.late).into_iter().rev() {
            let picked = pick(&batch, rows.clone())?;
            told.extend(self.absorb(window, &picked, &rows)?);
        }
        if let Some(changes) = in_row_order(told)? {
            out.changes(changes);
        }
        Ok(())
    }

    fn on_watermark(&mut self, mark: Watermark, out: &mut Output) -> Result<()> {
        if self.parameters.moment == WindowTime::Event {
            let (before, passed) = (self.progress.mark(), self.parameters.clock.complete(mark.0));
            let last = self.windows.last_key_value().map(|(window, _)| window.end - 1);
            self.progress.advance(mark, passed, last);
            self.pass(before, passed, out)?;
        }
        out.watermark(mark);
        Ok(())
    }

    fn on_clock(&mut self, now: ProcessingTime, out: &mut Output) -> Result<()> {
        self.now = self.now.max(now);
        let due = |open: &Open| open.due.is_some_and(|due| due <= self.now);
        let due: Vec<Window> = self.windows.iter().filter(|(_, open)| due(open)).map(|(window, _)| *window).collect();
        due.into_iter().try_for_each(|window| self.tell(window, out))?;
        match self.parameters.moment {
            WindowTime::Event => Ok(()),
            WindowTime::Processing => self.pass(i64::MIN, self.parameters.clock.complete(self.now), out),
        }
    }

    fn before_barrier(&mut self, out: &mut Output) -> Result<()> {
        let windows: Vec<Window> =
            self.windows.keys().copied().filter(|window| self.firing(*window).is_some()).collect();
        windows.into_iter().try_for_each(|window| self.tell(window, out))
    }

    fn snapshot(&mut self, _at: CheckpointId) -> Result<Snapshot> {
        let mut tables = self.progress.save()?;
        let empty = self.parameters.new_table()?;
        let open = self.windows.iter_mut().map(|(window, open)| (*window, &mut open.table));
        tables.extend(self.saved.snapshot(empty, open)?);
        Ok(Snapshot { tables })
    }

    fn restore(&mut self, from: Restored) -> Result<()> {
        let from = from.restrict(self.parameters.key_groups)?;
        self.progress = Progress::restore(&from)?;
        for (window, table) in restore(&from, &|| self.parameters.new_table())? {
            let slots = table.keys.live_slots();
            let mut open = Open::new(table);
            open.grow();
            if self.firing(window).is_some() {
                slots.into_iter().for_each(|slot| open.told[slot as usize] = true);
            } else {
                open.wait(&slots)?;
            }
            self.windows.insert(window, open);
        }
        Ok(())
    }

    fn state_size(&self) -> Option<StateSize> {
        Some(self.windows.values().map(|open| open.table.size()).sum())
    }

    fn shrink(&mut self) -> Result<()> {
        for open in self.windows.values_mut() {
            if open.waiting.is_empty() && open.table.shrink()? {
                (open.told, open.waits) = Default::default();
            }
        }
        Ok(())
    }

    fn counters(&self) -> Vec<(&'static str, u64)> {
        let unmatched: u64 = self.windows.values().map(|open| open.table.unmatched).sum();
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
mod tests;
