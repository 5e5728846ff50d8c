//! `GROUP BY` over sessions: each session of a key emits its group once, when time has closed it.
//!
//! [`Sessions`] tells which session a row is part of; the session's aggregates stand in a table of groups under the key
//! and the session's number. When a row joins two sessions their aggregates are merged. With a gap of 10 and rows
//! `(time, key)`:
//!
//! ```text
//! 00 a   25 a   50 b      a has the sessions [00, 10) and [25, 35), b has [50, 60)
//! 12 a   20 a             12 opens [12, 22), and 20 makes one of the two: [12, 35) with three rows
//! watermark 40            +I[a, 00, 10, 1]   +I[a, 12, 35, 3]
//! 30 a                    late: it touches no open session, and [30, 40) has been passed
//! ```
//!
//! A retraction takes its row's values back from the session in which the row is, as in Flink: the session keeps its
//! bounds, even without rows, until time closes it; without rows it does not show.
//!
//! Sessions close in order of their ends, then of their opening. What the end of the input has closed stays final when
//! the job is run again over files that have grown. Over processing time the clock closes sessions and the end of the
//! input does not.

use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray, BooleanArray, Int64Array, RecordBatch, RecordBatchOptions, UInt32Array};
use arrow::compute::take;
use arrow::datatypes::{DataType, Field, FieldRef, Int64Type, Schema};

use super::aggregate::GroupTable;
use super::event_time::timestamps;
use super::lateness::Lateness;
use super::progress::Progress;
use super::sessions::{Closed, SessionId, Sessions};
use super::window::{Placement, Window, check};
use super::window_aggregate::WindowAggregateParameters;
use super::{Operator, Output, Port, ProcessingTime, StateSize, TimeReport};
use crate::changelog::{ChangeBatch, CheckpointId, Watermark};
use crate::error::{Error, Result};
use crate::limits::BATCH_ROWS;
use crate::state::{KeyTable, Restored, Snapshot};
use crate::types::{WindowColumn, WindowTime};

/// Rows of deltas after which the tables are written anew, beside twice their own size.
const DELTA_ROWS: usize = 100_000;

/// The table of sessions' bounds in a snapshot.
const SESSIONS: &str = "sessions";

/// `GROUP BY` over sessions.
pub struct SessionAggregate {
    parameters: WindowAggregateParameters,
    /// Keys with open sessions.
    keys: KeyTable,
    sessions: Sessions,
    /// The aggregates, under the key and the session's number.
    groups: GroupTable,
    /// By session: its slot among the groups.
    slots: Vec<u32>,
    /// By slot: its session.
    ids: Vec<SessionId>,
    progress: Progress,
    now: ProcessingTime,
    saved: bool,
    delta_rows: usize,
    late: Lateness,
}

impl SessionAggregate {
    /// An operator without open sessions. The window is a session, or attached: then the rows' own windows are merged.
    ///
    /// # Errors
    /// If a key cannot be grouped by, a function does not take its argument, or the window makes no sense.
    pub fn new(parameters: WindowAggregateParameters) -> Result<SessionAggregate> {
        check(parameters.window)?;
        let WindowAggregateParameters { input, keys, aggregates, append_only_input, .. } = &parameters;
        if parameters.output.fields().len() != keys.len() + parameters.window_columns.len() + aggregates.len() {
            return Err(Error::bug("a session aggregate emits its keys, window columns and aggregates"));
        }
        let fields: Vec<FieldRef> = keys.iter().map(|column| Arc::clone(&input.fields()[*column])).collect();
        let (groups, key_table) = (groups(input, keys, aggregates, *append_only_input)?, KeyTable::new(fields)?);
        Ok(SessionAggregate {
            parameters,
            keys: key_table,
            sessions: Sessions::default(),
            groups,
            slots: Vec::new(),
            ids: Vec::new(),
            progress: Progress::default(),
            now: ProcessingTime::MIN,
            saved: false,
            delta_rows: 0,
            late: Lateness::default(),
        })
    }

    fn key_arrays(&self, rows: &RecordBatch) -> Vec<ArrayRef> {
        self.parameters.keys.iter().map(|column| Arc::clone(rows.column(*column))).collect()
    }

    /// Finds or opens the session of each row; late rows have none.
    fn place(&mut self, keys: &[ArrayRef], batch: &ChangeBatch) -> Result<Vec<Option<SessionId>>> {
        let WindowAggregateParameters { window, time, clock, moment, .. } = self.parameters;
        let mut placement = match moment {
            WindowTime::Event => Placement::of(window, time, clock, batch.rows())?,
            WindowTime::Processing => Placement::now(window, clock.local(self.now)),
        };
        let mut key_slots = Vec::new();
        self.keys.slots_of(keys, batch.len(), &mut key_slots)?;
        self.sessions.grow(self.keys.capacity());
        let passed = match moment {
            WindowTime::Event => self.progress.passed(0),
            WindowTime::Processing => i64::MIN,
        };
        let mut placed = Vec::with_capacity(batch.len());
        for (row, key) in key_slots.iter().enumerate() {
            let mut session = None;
            placement.for_each(row, |window| {
                session = self.sessions.place(*key, window, passed, row as u32);
                if session.is_none() {
                    self.late.record(passed, window.end - 1);
                }
            });
            placed.push(session);
        }
        if placed.contains(&None) {
            // Keys are looked up before it is known that all of their rows are late.
            for key in key_slots.into_iter().filter(|key| self.sessions.is_idle(*key)) {
                self.keys.remove(key);
            }
        }
        Ok(placed)
    }

    /// Gives the sessions that the batch has opened a group each, and merges the groups of those it has joined.
    fn settle(&mut self, keys: &[ArrayRef]) -> Result<()> {
        self.slots.resize(self.sessions.capacity(), 0);
        for (gone, into) in self.sessions.merges() {
            self.groups.merge(self.slots[into as usize], self.slots[gone as usize])?;
        }
        let (ids, (numbers, rows)): (Vec<SessionId>, (Vec<i64>, Vec<u32>)) =
            self.sessions.opened().map(|(id, number, row)| (id, (number, row))).unzip();
        if ids.is_empty() {
            return Ok(());
        }
        let rows = UInt32Array::from(rows);
        let mut columns = keys.iter().map(|key| take(key, &rows, None)).collect::<Result<Vec<_>, _>>()?;
        columns.push(Arc::new(Int64Array::from(numbers)));
        let mut slots = Vec::new();
        self.groups.keys.slots_of(&columns, ids.len(), &mut slots)?;
        self.ids.resize(self.groups.keys.capacity(), 0);
        for (id, slot) in ids.iter().zip(slots) {
            self.slots[*id as usize] = slot;
            self.ids[slot as usize] = *id;
        }
        Ok(())
    }

    /// Emits the groups of sessions and forgets them.
    fn emit(&mut self, closed: &[Closed], out: &mut Output) -> Result<()> {
        let slot = |session: &Closed| self.slots[session.id as usize];
        let shown: Vec<&Closed> =
            closed.iter().filter(|session| self.groups.counts[slot(session) as usize] > 0).collect();
        let slots: Vec<u32> = shown.iter().map(|session| slot(session)).collect();
        let WindowAggregateParameters { output, keys, window_columns, clock, .. } = &self.parameters;
        let mut columns = self.groups.keys.take(&slots)?;
        columns.truncate(keys.len());
        for (index, column) in window_columns.iter().enumerate() {
            let value = |session: &&Closed| match column {
                WindowColumn::Start => session.window.start,
                WindowColumn::End => session.window.end,
                WindowColumn::Time => clock.instant(session.window.end - 1),
            };
            let values = shown.iter().map(value).collect();
            columns.push(timestamps(values, output.field(keys.len() + index).data_type())?);
        }
        columns.extend(self.groups.evaluate(&slots)?);
        let options = RecordBatchOptions::new().with_row_count(Some(slots.len()));
        let rows = RecordBatch::try_new_with_options(Arc::clone(output), columns, &options)?;
        out.changes(ChangeBatch::inserts(rows));
        for session in closed {
            self.groups.remove(self.slots[session.id as usize]);
            if session.last_of_key {
                self.keys.remove(session.key);
            }
        }
        Ok(())
    }

    fn close(&mut self, passed: i64, out: &mut Output) -> Result<()> {
        self.sessions.close(passed).chunks(BATCH_ROWS).try_for_each(|closed| self.emit(closed, out))
    }

    /// Bounds of saved sessions by slot of their group.
    fn restore_bounds(&mut self, from: &Restored) -> Result<Vec<Option<Window>>> {
        let unfit = || Error::state("saved sessions do not have the columns of this version");
        let mut bounds: Vec<Option<Window>> = Vec::new();
        let mut slots = Vec::new();
        for delta in from.table(SESSIONS) {
            for (rows, written) in [(&delta.deletes, false), (&delta.upserts, true)] {
                let Some(rows) = rows else { continue };
                let (key, columns) = self.groups.keys.split_saved(SESSIONS, rows)?;
                self.groups.keys.slots_of(&key, rows.num_rows(), &mut slots)?;
                bounds.resize(self.groups.keys.capacity(), None);
                let whole = |place: usize| columns.get(place)?.as_primitive_opt::<Int64Type>();
                for (row, slot) in slots.iter().enumerate() {
                    bounds[*slot as usize] = match (written, whole(0), whole(1)) {
                        (false, ..) => None,
                        (true, Some(starts), Some(ends)) => {
                            Some(Window { start: starts.value(row), end: ends.value(row) })
                        }
                        (true, ..) => return Err(unfit()),
                    };
                }
            }
        }
        Ok(bounds)
    }
}

/// Groups by key and number of a session; a session belongs to the key group of its key.
fn groups(
    input: &Schema,
    keys: &[usize],
    aggregates: &[crate::types::AggregateCall],
    append_only: bool,
) -> Result<GroupTable> {
    let mut fields: Vec<FieldRef> = keys.iter().map(|column| Arc::clone(&input.fields()[*column])).collect();
    fields.push(Arc::new(Field::new("session", DataType::Int64, false)));
    let keys = KeyTable::grouped(fields, (0..keys.len()).collect())?;
    GroupTable::with_keys(keys, input, aggregates, append_only)
}

impl Operator for SessionAggregate {
    fn on_changes(&mut self, _port: Port, batch: ChangeBatch, _out: &mut Output) -> Result<()> {
        if self.parameters.append_only_input && !batch.is_append_only() {
            return Err(Error::bug("an aggregate planned for append-only input was given another change"));
        }
        let keys = self.key_arrays(batch.rows());
        let placed = self.place(&keys, &batch)?;
        self.settle(&keys)?;
        let merged = self.sessions.has_merged();
        let slot = |id: SessionId| {
            let id = if merged { self.sessions.current(id) } else { id };
            self.slots[id as usize]
        };
        let slots: Vec<u32> = placed.iter().flatten().map(|id| slot(*id)).collect();
        self.sessions.finish_batch();
        let batch = if slots.len() < batch.len() {
            batch.filter(&placed.iter().map(|session| Some(session.is_some())).collect::<BooleanArray>())?
        } else {
            batch
        };
        self.groups.assign_slots(slots);
        self.groups.count(batch.kinds());
        self.groups.update(batch.rows())
    }

    fn on_watermark(&mut self, mark: Watermark, out: &mut Output) -> Result<()> {
        if self.parameters.moment == WindowTime::Event {
            let passed = self.parameters.clock.complete(mark.0);
            self.progress.advance(mark, passed, self.sessions.last_moment());
            self.close(passed, out)?;
        }
        out.watermark(mark);
        Ok(())
    }

    fn on_clock(&mut self, now: ProcessingTime, out: &mut Output) -> Result<()> {
        self.now = self.now.max(now);
        match self.parameters.moment {
            WindowTime::Event => Ok(()),
            WindowTime::Processing => self.close(self.parameters.clock.complete(self.now), out),
        }
    }

    fn snapshot(&mut self, _at: CheckpointId) -> Result<Snapshot> {
        let base = !self.saved || self.delta_rows > DELTA_ROWS + 2 * self.groups.keys.len();
        let mut tables = self.progress.save()?;
        let changed = self.groups.keys.changed(base);
        let windows = changed.upserts.iter().map(|slot| self.sessions.window(self.ids[*slot as usize]));
        let windows: Option<Vec<Window>> = windows.collect();
        let windows = windows.ok_or_else(|| Error::bug("a group has no open session"))?;
        let column = |value: &dyn Fn(&Window) -> i64| -> ArrayRef {
            Arc::new(Int64Array::from_iter_values(windows.iter().map(value)))
        };
        let field = |name: &str| -> FieldRef { Arc::new(Field::new(name, DataType::Int64, false)) };
        let bounds = vec![
            (field("window_start"), column(&|window| window.start)),
            (field("window_end"), column(&|window| window.end)),
        ];
        let upserts = self.groups.keys.rows(&changed.upserts, bounds)?;
        let deletes = self.groups.keys.rows(&changed.deletes, Vec::new())?;
        self.delta_rows = if base { 0 } else { self.delta_rows + changed.upserts.len() + changed.deletes.len() };
        tables.push(self.groups.keys.delta(SESSIONS, base, 0, upserts, deletes)?);
        tables.extend(self.groups.snapshot(base, base)?);
        self.saved = true;
        Ok(Snapshot { tables })
    }

    fn restore(&mut self, from: Restored) -> Result<()> {
        let from = from.restrict(self.parameters.key_groups)?;
        self.progress = Progress::restore(&from)?;
        self.groups.restore(&from)?;
        let bounds = self.restore_bounds(&from)?;
        self.groups.assign_slots(Vec::new());
        let mut live = self.groups.keys.live_slots();
        live.retain(|slot| bounds.get(*slot as usize).copied().flatten().is_some());
        for slot in self.groups.keys.live_slots() {
            if live.binary_search(&slot).is_err() {
                self.groups.remove(slot);
            }
        }
        let mut columns = self.groups.keys.take(&live)?;
        let numbers = columns.pop().ok_or_else(|| Error::bug("sessions without numbers"))?;
        let numbers = numbers.as_primitive::<Int64Type>();
        let mut key_slots = Vec::new();
        self.keys.slots_of(&columns, live.len(), &mut key_slots)?;
        self.sessions.grow(self.keys.capacity());
        for (row, (key, slot)) in key_slots.into_iter().zip(&live).enumerate() {
            let Some(window) = bounds[*slot as usize] else { continue };
            let id = self.sessions.restore(key, window, numbers.value(row));
            self.slots.resize(self.sessions.capacity(), 0);
            self.slots[id as usize] = *slot;
            self.ids.resize(self.groups.keys.capacity(), 0);
            self.ids[*slot as usize] = id;
        }
        self.sessions.number_from(numbers.iter().flatten().max().map_or(0, |last| last + 1));
        Ok(())
    }

    fn state_size(&self) -> Option<StateSize> {
        Some([self.groups.size(), StateSize::new(0, self.keys.bytes())].into_iter().sum())
    }

    fn counters(&self) -> Vec<(&'static str, u64)> {
        vec![
            ("open_windows", self.sessions.len() as u64),
            ("late_rows", self.late.rows()),
            ("unmatched_retractions", self.groups.unmatched),
        ]
    }

    fn time_report(&self) -> TimeReport {
        TimeReport { lateness: self.late.clone(), next_close: None, ..TimeReport::default() }
    }
}

#[cfg(test)]
mod tests;
