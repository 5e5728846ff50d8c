//! A SESSION table function alone: rows wait until time has closed their session, then come with its columns.
//!
//! ```text
//! gap 10, rows at 00, 25, 12, 20        watermark 40: 00 with [00, 10); then 25, 12 and 20 with [12, 35)
//! ```
//!
//! Rows of a key stand by time, so those of a session stand together, whatever sessions have been joined: only rows are
//! saved, and a restart finds the sessions in their times. Rows of a session come in order of arrival, each with its own
//! kind: the images of an update may be in different sessions, and a row that is retracted still stretches its session.

use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray, Int64Array, RecordBatch, UInt8Array};
use arrow::datatypes::{DataType, Field, Int64Type, Schema, SchemaRef, UInt8Type};

use super::event_time::timestamps;
use super::lateness::Lateness;
use super::progress::Progress;
use super::sessions::{Closed, Sessions};
use super::window::{Window, check, local_times};
use super::{Operator, Output, Port, ProcessingTime, StateSize, TimeReport};
use crate::changelog::{ChangeBatch, CheckpointId, Kind, Watermark};
use crate::error::{Error, Result};
use crate::limits::BATCH_ROWS;
use crate::state::{KeyGroupRange, KeyTable, Position, Restored, Row, Snapshot, SortedRows};
use crate::types::{LocalTime, SortColumn, WindowSpec, WindowTime};

/// The table of waiting rows in a snapshot.
const ROWS: &str = "rows";

/// Columns that are kept before a row's own: its time, and its kind.
const KEPT_BEFORE: usize = 2;

/// What a [`SessionAssign`] does.
pub struct SessionAssignParameters {
    /// The columns that come.
    pub input: SchemaRef,
    /// The columns emitted: those that come, then the window's three.
    pub output: SchemaRef,
    /// `PARTITION BY` columns: each key has sessions of its own.
    pub partition: Vec<usize>,
    /// The time column.
    pub time: usize,
    /// The silence that ends a session.
    pub gap: i64,
    /// The clock along which sessions are measured.
    pub clock: LocalTime,
    /// Whether the rows' time counts, or that of the machine.
    pub moment: WindowTime,
    /// The key groups of this subtask.
    pub key_groups: KeyGroupRange,
}

/// Rows with the columns of their sessions.
pub struct SessionAssign {
    parameters: SessionAssignParameters,
    keys: KeyTable,
    rows: SortedRows,
    sessions: Sessions,
    progress: Progress,
    now: ProcessingTime,
    saved: bool,
    late: Lateness,
}

impl SessionAssign {
    /// An operator without rows.
    ///
    /// # Errors
    /// If a column cannot be partitioned by or kept, or the gap makes no sense.
    pub fn new(parameters: SessionAssignParameters) -> Result<SessionAssign> {
        let SessionAssignParameters { input, partition, gap, .. } = &parameters;
        check(WindowSpec::Session { gap: *gap })?;
        let keys = KeyTable::new(partition.iter().map(|column| Arc::clone(&input.fields()[*column])).collect())?;
        let mut kept = vec![
            Arc::new(Field::new("time", DataType::Int64, false)),
            Arc::new(Field::new("kind", DataType::UInt8, false)),
        ];
        kept.extend(input.fields().iter().cloned());
        let order = [SortColumn { column: 0, descending: false, nulls_first: true }];
        let rows = SortedRows::new(&Arc::new(Schema::new(kept)), &order, false, false)?;
        Ok(SessionAssign {
            parameters,
            keys,
            rows,
            sessions: Sessions::default(),
            progress: Progress::default(),
            now: ProcessingTime::MIN,
            saved: false,
            late: Lateness::default(),
        })
    }

    fn times(&self, batch: &ChangeBatch) -> Result<Int64Array> {
        let SessionAssignParameters { time, clock, moment, .. } = self.parameters;
        match moment {
            WindowTime::Event => local_times(batch.rows(), time, clock),
            WindowTime::Processing => Ok(Int64Array::from(vec![clock.local(self.now); batch.len()])),
        }
    }

    fn window(&self, time: i64) -> Window {
        Window { start: time, end: time + self.parameters.gap }
    }

    /// Emits the rows of closed sessions, the sessions one after the other.
    fn emit(&mut self, closed: &[Closed], out: &mut Output) -> Result<()> {
        let last: ArrayRef = Arc::new(Int64Array::from_iter_values(
            closed.iter().map(|session| session.window.end - self.parameters.gap),
        ));
        let last = self.rows.encode_keys(&[last])?;
        let (mut rows, mut windows): (Vec<Row>, Vec<Window>) = (Vec::new(), Vec::new());
        for (place, session) in closed.iter().enumerate() {
            // The sessions before it have closed before it, so its rows are the first.
            let of_session = self.rows.iter(session.key).take_while(|(position, _)| *position.key <= *last.get(place));
            let mut positions: Vec<Position> = of_session.map(|(position, _)| position.clone()).collect();
            positions.sort_unstable_by_key(|position| position.sequence);
            rows.extend(positions.iter().filter_map(|position| self.rows.remove(session.key, position)));
            windows.resize(rows.len(), session.window);
            if session.last_of_key {
                self.keys.remove(session.key);
            }
            if rows.len() >= BATCH_ROWS || place + 1 == closed.len() {
                out.changes(self.widen(&rows, &windows)?);
                rows.clear();
                windows.clear();
            }
        }
        Ok(())
    }

    /// Rows with the columns of their windows.
    fn widen(&self, rows: &[Row], windows: &[Window]) -> Result<ChangeBatch> {
        let mut columns = self.rows.decode(rows.iter())?;
        let kinds = columns[1].as_primitive::<UInt8Type>();
        let kinds = kinds.values().iter().map(|code| Kind::from_code(*code));
        let kinds: Option<Vec<Kind>> = kinds.collect();
        columns.drain(..KEPT_BEFORE);
        let SessionAssignParameters { output, clock, .. } = &self.parameters;
        let starts = windows.iter().map(|window| window.start).collect();
        let ends = windows.iter().map(|window| window.end).collect();
        let times = windows.iter().map(|window| clock.instant(window.end - 1)).collect();
        for values in [starts, ends, times] {
            let field = output.fields().get(columns.len()).ok_or_else(|| Error::bug("no window columns"))?;
            columns.push(timestamps(values, field.data_type())?);
        }
        let rows = RecordBatch::try_new(Arc::clone(output), columns)?;
        ChangeBatch::new(rows, kinds.ok_or_else(|| Error::state("a kept row has no kind"))?)
    }
}

impl Operator for SessionAssign {
    fn on_changes(&mut self, _port: Port, batch: ChangeBatch, _out: &mut Output) -> Result<()> {
        let times = self.times(&batch)?;
        let columns = batch.rows().columns();
        let partition: Vec<ArrayRef> =
            self.parameters.partition.iter().map(|column| Arc::clone(&columns[*column])).collect();
        let mut slots = Vec::new();
        self.keys.slots_of(&partition, batch.len(), &mut slots)?;
        self.keys.touch(&slots);
        self.rows.grow(self.keys.capacity());
        self.sessions.grow(self.keys.capacity());
        let kinds = UInt8Array::from_iter_values((0..batch.len()).map(|row| batch.kind(row) as u8));
        let mut kept: Vec<ArrayRef> = vec![Arc::new(times.clone()), Arc::new(kinds)];
        kept.extend(columns.iter().cloned());
        let (sort_keys, rows) = (self.rows.encode_keys(&kept)?, self.rows.encode_rows(&kept)?);
        let passed = match self.parameters.moment {
            WindowTime::Event => self.progress.passed(0),
            WindowTime::Processing => i64::MIN,
        };
        for (row, (slot, time)) in slots.iter().zip(times.values()).enumerate() {
            if self.sessions.place(*slot, self.window(*time), passed, row as u32).is_none() {
                self.late.record(passed, self.window(*time).end - 1);
            } else {
                self.rows.insert(*slot, sort_keys.get(row), rows.get(row).into());
            }
        }
        self.sessions.finish_batch();
        for slot in slots {
            if self.sessions.is_idle(slot) {
                self.keys.remove(slot);
            }
        }
        Ok(())
    }

    fn on_watermark(&mut self, mark: Watermark, out: &mut Output) -> Result<()> {
        if self.parameters.moment == WindowTime::Event {
            let passed = self.parameters.clock.complete(mark.0);
            self.progress.advance(mark, passed, self.sessions.last_moment());
            let closed = self.sessions.close(passed);
            self.emit(&closed, out)?;
        }
        out.watermark(mark);
        Ok(())
    }

    fn on_clock(&mut self, now: ProcessingTime, out: &mut Output) -> Result<()> {
        self.now = self.now.max(now);
        if self.parameters.moment == WindowTime::Processing {
            let closed = self.sessions.close(self.parameters.clock.complete(self.now));
            self.emit(&closed, out)?;
        }
        Ok(())
    }

    fn snapshot(&mut self, _at: CheckpointId) -> Result<Snapshot> {
        let base = !std::mem::replace(&mut self.saved, true);
        let rows = self.rows.snapshot(ROWS, &self.keys, base)?;
        self.keys.finish_snapshot();
        let mut tables = self.progress.save()?;
        tables.push(rows);
        Ok(Snapshot { tables })
    }

    fn restore(&mut self, from: Restored) -> Result<()> {
        let from = from.restrict(self.parameters.key_groups)?;
        self.progress = Progress::restore(&from)?;
        self.rows.restore(ROWS, &mut self.keys, &from)?;
        self.sessions.grow(self.keys.capacity());
        for slot in self.keys.live_slots() {
            let columns = self.rows.decode(self.rows.iter(slot).map(|(_, row)| row))?;
            for time in columns[0].as_primitive::<Int64Type>().values() {
                // None of them was late, so none is now.
                self.sessions.place(slot, self.window(*time), i64::MIN, 0);
            }
        }
        self.sessions.finish_batch();
        Ok(())
    }

    fn state_size(&self) -> Option<StateSize> {
        Some(StateSize::new(self.keys.len(), self.keys.bytes() + self.rows.bytes()))
    }

    fn counters(&self) -> Vec<(&'static str, u64)> {
        vec![("open_windows", self.sessions.len() as u64), ("late_rows", self.late.rows())]
    }

    fn time_report(&self) -> TimeReport {
        TimeReport { lateness: self.late.clone(), next_close: None, ..TimeReport::default() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::operators::testing::{changes, check, emitted, feed, saved, schema};

    fn operator(partition: &[usize], moment: WindowTime) -> SessionAssign {
        SessionAssign::new(SessionAssignParameters {
            input: schema("k TEXT, ts TS, v BIGINT"),
            output: schema("k TEXT, ts TS, v BIGINT, window_start TS, window_end TS, window_time TS"),
            partition: partition.to_vec(),
            time: 1,
            gap: 10,
            clock: LocalTime::default(),
            moment,
            key_groups: KeyGroupRange::ALL,
        })
        .unwrap()
    }

    fn input(text: &str) -> ChangeBatch {
        changes(&schema("k TEXT, ts TS, v BIGINT"), text)
    }

    #[test]
    fn rows_come_with_the_session_they_ended_up_in() {
        for size in [1, 2, 9] {
            let (mut operator, mut out) = (operator(&[0], WindowTime::Event), Output::default());
            let rows = input("+I a 0 1\n+I a 25 2\n+I b 50 3\n+I a 12 4\n+I a 20 5");
            check(&feed(&mut operator, &rows, size, &mut out), "");
            operator.on_watermark(Watermark(40), &mut out).unwrap();
            let closed = "+I[a, 0, 1, 0, 10, 9]
                +I[a, 25, 2, 12, 35, 34]
                +I[a, 12, 4, 12, 35, 34]
                +I[a, 20, 5, 12, 35, 34]
                W 40";
            check(&emitted(&mut out), closed);
            feed(&mut operator, &input("+I a 30 6\n+I b 41 7"), size, &mut out);
            operator.on_watermark(Watermark::MAX, &mut out).unwrap();
            check(&emitted(&mut out), "+I[b, 50, 3, 41, 60, 59]\n+I[b, 41, 7, 41, 60, 59]\nW 9223372036854775807");
            assert_eq!(operator.counters(), [("open_windows", 0), ("late_rows", 1)]);
            assert_eq!(operator.keys.len(), 0);
        }
    }

    #[test]
    fn changes_keep_their_kinds_and_a_retracted_row_still_stretches() {
        let (mut operator, mut out) = (operator(&[], WindowTime::Event), Output::default());
        feed(&mut operator, &input("+I a 0 1\n+I b 9 2\n-D b 9 2\n-U a 0 1\n+U a 30 3"), 2, &mut out);
        operator.on_watermark(Watermark(50), &mut out).unwrap();
        let rows = "+I[a, 0, 1, 0, 19, 18]
            +I[b, 9, 2, 0, 19, 18]
            -D[b, 9, 2, 0, 19, 18]
            -U[a, 0, 1, 0, 19, 18]
            +U[a, 30, 3, 30, 40, 39]
            W 50";
        check(&emitted(&mut out), rows);
    }

    #[test]
    fn waiting_rows_survive_a_restart() {
        let (mut first, mut out) = (operator(&[0], WindowTime::Event), Output::default());
        feed(&mut first, &input("+I a 0 1\n+I b 25 2"), 9, &mut out);
        let mut snapshots = vec![first.snapshot(1).unwrap()];
        first.on_watermark(Watermark(12), &mut out).unwrap();
        feed(&mut first, &input("+I b 17 3\n+I a 40 4"), 9, &mut out);
        snapshots.push(first.snapshot(2).unwrap());
        let (mut second, mut out) = (operator(&[0], WindowTime::Event), Output::default());
        second.restore(saved(&snapshots)).unwrap();
        feed(&mut second, &input("+I b 34 5\n+I a 1 6"), 9, &mut out);
        second.on_watermark(Watermark::MAX, &mut out).unwrap();
        let rows = "+I[b, 25, 2, 17, 44, 43]
            +I[b, 17, 3, 17, 44, 43]
            +I[b, 34, 5, 17, 44, 43]
            +I[a, 40, 4, 40, 50, 49]
            W 9223372036854775807";
        check(&emitted(&mut out), rows);
        assert_eq!(second.counters()[1], ("late_rows", 1));
    }

    #[test]
    fn over_processing_time_the_clock_closes_sessions_and_the_end_does_not() {
        let (mut operator, mut out) = (operator(&[0], WindowTime::Processing), Output::default());
        operator.on_clock(100, &mut out).unwrap();
        feed(&mut operator, &input("+I a 0 1"), 9, &mut out);
        operator.on_clock(105, &mut out).unwrap();
        feed(&mut operator, &input("+I a 0 2\n+I b 0 3"), 9, &mut out);
        operator.on_clock(113, &mut out).unwrap();
        check(&emitted(&mut out), "");
        operator.on_clock(114, &mut out).unwrap();
        let rows = "+I[a, 0, 1, 100, 115, 114]\n+I[a, 0, 2, 100, 115, 114]\n+I[b, 0, 3, 105, 115, 114]";
        check(&emitted(&mut out), rows);
        feed(&mut operator, &input("+I a 0 4"), 9, &mut out);
        operator.on_watermark(Watermark::MAX, &mut out).unwrap();
        check(&emitted(&mut out), "W 9223372036854775807");
    }
}
