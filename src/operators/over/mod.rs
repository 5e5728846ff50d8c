//! `OVER` ordered by time: each row goes out once, with aggregates over the rows before it.
//!
//! ```text
//! SUM(px) OVER (PARTITION BY sym ORDER BY ts ROWS BETWEEN 1 PRECEDING AND CURRENT ROW)
//! rows            A 10:00 5    A 10:03 7    A 10:01 6        (out of order)
//! watermark 10:02              +I A 10:00 5 5    +I A 10:01 6 11
//! watermark 10:05                                +I A 10:03 7 13
//! ```
//!
//! In event time rows wait until the watermark has passed them, and come out by time; in processing time they come out
//! as they arrive. The aggregates of a partition are those of a grouping: a row enters, rows that leave its frame are
//! retracted first. Only rows that are still in the frame, or that a `LAG` looks back to, are kept.

mod history;
#[cfg(test)]
mod tests;

use std::collections::BTreeSet;
use std::sync::Arc;

use arrow::array::{ArrayRef, Int64Array, RecordBatch, RecordBatchOptions, UInt32Array, new_null_array};
use arrow::compute::{cast, interleave, take};
use arrow::datatypes::SchemaRef;

use self::history::{Frames, History};
use super::aggregate::GroupTable;
use super::event_time::{restore_watermark, row_times, save_watermark};
use super::lateness::Lateness;
use super::lifetimes::Lifetimes;
use super::{Operator, Output, Port, ProcessingTime, StateSize, TimeReport};
use crate::changelog::{ChangeBatch, CheckpointId, Watermark};
use crate::error::Result;
use crate::state::{KeyGroupRange, KeyTable, Restored, Row, Snapshot, SortedRows};
use crate::types::{AggregateCall, OverCall, OverFrame, SortColumn};

/// The table of waiting rows in a snapshot.
const WAITING: &str = "waiting";

/// What an [`Over`] computes.
pub struct OverParameters {
    /// The columns that come.
    pub input: SchemaRef,
    /// The columns emitted: the first of those that come, then the results.
    pub output: SchemaRef,
    /// Partition columns of the input; none: one partition.
    pub partition: Vec<usize>,
    /// The event-time column; `None`: rows are taken as they arrive.
    pub time: Option<usize>,
    /// Which rows the aggregates of a row are over.
    pub frame: OverFrame,
    /// What is computed.
    pub calls: Vec<OverCall>,
    /// How many columns of the input are emitted.
    pub shown: usize,
    /// Partitions not written for so many milliseconds of processing time are forgotten, unless rows of theirs wait; 0:
    /// never.
    pub ttl_ms: u64,
    /// The key groups of this subtask.
    pub key_groups: KeyGroupRange,
}

/// `OVER` ordered by time.
pub struct Over {
    parameters: OverParameters,
    keys: KeyTable,
    waiting: SortedRows,
    /// Waiting rows by time, then arrival, with their slot.
    timers: BTreeSet<(i64, i64, u32)>,
    history: History,
    groups: GroupTable,
    /// Of the partitions in `groups`, where every partition with a past is.
    lifetimes: Lifetimes,
    watermark: Watermark,
    late: Lateness,
    saved: bool,
}

impl Over {
    /// An operator without rows.
    ///
    /// # Errors
    /// If a column cannot be partitioned by, kept or aggregated.
    pub fn new(parameters: OverParameters) -> Result<Over> {
        let OverParameters { input, partition, time, frame, calls, .. } = &parameters;
        let fields = || partition.iter().map(|column| Arc::clone(&input.fields()[*column])).collect();
        let order: Vec<SortColumn> =
            time.iter().map(|time| SortColumn { column: *time, descending: false, nulls_first: true }).collect();
        let aggregates: Vec<AggregateCall> = calls.iter().filter_map(aggregate).cloned().collect();
        let bounded = matches!(frame, OverFrame::Rows(Some(_)) | OverFrame::Range(Some(_)));
        let history = History::new(input, fields(), &order, *frame, calls)?;
        Ok(Over {
            keys: KeyTable::new(fields())?,
            waiting: SortedRows::new(input, &order, false, false)?,
            timers: BTreeSet::new(),
            history,
            groups: GroupTable::new(input, partition, &aggregates, !bounded)?,
            lifetimes: Lifetimes::new("lifetimes", parameters.ttl_ms),
            parameters,
            watermark: Watermark::MIN,
            late: Lateness::default(),
            saved: false,
        })
    }

    fn partition_arrays(&self, rows: &RecordBatch) -> Vec<ArrayRef> {
        self.parameters.partition.iter().map(|column| Arc::clone(rows.column(*column))).collect()
    }

    /// Puts rows aside until the watermark passes them.
    fn put_aside(&mut self, rows: &RecordBatch, time: usize) -> Result<()> {
        let times = row_times(rows, time)?;
        let mut slots = Vec::new();
        self.keys.slots_of(&self.partition_arrays(rows), rows.num_rows(), &mut slots)?;
        self.keys.touch(&slots);
        self.waiting.grow(self.keys.capacity());
        let sort_keys = self.waiting.encode_keys(rows.columns())?;
        let encoded = self.waiting.encode_rows(rows.columns())?;
        for (row, slot) in slots.iter().enumerate() {
            if times.value(row) <= self.watermark.0 {
                self.late.record(self.watermark.0, times.value(row));
                continue;
            }
            let position = self.waiting.insert(*slot, sort_keys.get(row), encoded.get(row).into());
            self.timers.insert((times.value(row), position.sequence, *slot));
        }
        self.drop_idle(&slots);
        Ok(())
    }

    fn drop_idle(&mut self, slots: &[u32]) {
        for slot in slots {
            if self.waiting.len(*slot) == 0 {
                self.keys.remove(*slot);
            }
        }
    }

    /// Takes the waiting rows that the watermark has passed, by time.
    fn ready(&mut self, mark: Watermark) -> Result<Option<RecordBatch>> {
        let (mut rows, mut slots): (Vec<Row>, Vec<u32>) = Default::default();
        while let Some((time, sequence, slot)) = self.timers.first().copied()
            && time <= mark.0
        {
            self.timers.pop_first();
            // Timers and rows are in the same order within a partition.
            let first = self.waiting.iter(slot).next().map(|(position, _)| position.clone());
            if let Some(position) = first.filter(|position| position.sequence == sequence)
                && let Some(row) = self.waiting.remove(slot, &position)
            {
                rows.push(row);
                slots.push(slot);
            }
        }
        self.drop_idle(&slots);
        if rows.is_empty() {
            return Ok(None);
        }
        let columns = self.waiting.decode(rows.iter())?;
        Ok(Some(RecordBatch::try_new(Arc::clone(&self.parameters.input), columns)?))
    }

    /// Notes that partitions are written now; those that have been idle for too long start afresh.
    fn write_partitions(&mut self, rows: &RecordBatch) -> Result<()> {
        if !self.lifetimes.are_limited() {
            return Ok(());
        }
        self.groups.assign(rows)?;
        let slots = self.groups.slots.clone();
        let mut expired: Vec<u32> = slots.iter().copied().filter(|slot| self.lifetimes.is_expired(*slot)).collect();
        slots.iter().for_each(|slot| self.lifetimes.write(*slot));
        expired.sort_unstable();
        expired.dedup();
        self.forget_past(&expired)
    }

    /// Forgets the past of partitions, given by their slots in `groups`.
    fn forget_past(&mut self, slots: &[u32]) -> Result<()> {
        if slots.is_empty() {
            return Ok(());
        }
        let keys = self.groups.keys.take(slots)?;
        self.history.forget(&keys, slots.len())?;
        slots.iter().for_each(|slot| self.groups.clear(*slot));
        Ok(())
    }

    /// Forgets partitions that have been idle for too long. Rows that wait are never forgotten, nor what they will need.
    fn expire(&mut self) -> Result<()> {
        let expired = self.lifetimes.expired(&self.groups.keys);
        let keys = self.groups.keys.take(&expired)?;
        let mut slots = Vec::new();
        self.keys.slots_of(&keys, expired.len(), &mut slots)?;
        self.waiting.grow(self.keys.capacity());
        let idle = expired.into_iter().zip(&slots).filter(|(_, slot)| self.waiting.len(**slot) == 0);
        let idle: Vec<u32> = idle.map(|(slot, _)| slot).collect();
        self.drop_idle(&slots);
        self.forget_past(&idle)?;
        idle.into_iter().for_each(|slot| self.groups.remove(slot));
        Ok(())
    }

    /// Computes and emits rows that come in order.
    fn compute(&mut self, rows: &RecordBatch, out: &mut Output) -> Result<()> {
        self.write_partitions(rows)?;
        let times = match self.parameters.time {
            Some(time) => row_times(rows, time)?,
            None => Int64Array::from(vec![0; rows.num_rows()]),
        };
        let frames = self.history.frames(rows, &self.partition_arrays(rows), &times)?;
        let changes = frames.changes()?;
        self.groups.assign(changes.rows())?;
        self.groups.count(changes.kinds());
        let mut changed = vec![false; changes.len()];
        let images = self.groups.update_each(changes.rows(), &mut changed)?;
        let mut images = images.iter();
        let shown = self.parameters.shown;
        let mut columns: Vec<ArrayRef> = rows.columns()[..shown].to_vec();
        for (call, field) in self.parameters.calls.iter().zip(self.parameters.output.fields().iter().skip(shown)) {
            let column = match call {
                OverCall::Lag { column, offset, default, .. } => look_back(&frames, *column, *offset, *default)?,
                OverCall::Aggregate(_) => match images.next() {
                    Some(image) => take(image, &frames.images(), None)?,
                    None => continue,
                },
                OverCall::RowNumber(_) => match images.next() {
                    Some(image) => take(image, &frames.own_images(), None)?,
                    None => continue,
                },
            };
            let fits = column.data_type() == field.data_type();
            columns.push(if fits { column } else { cast(&column, field.data_type())? });
        }
        let options = RecordBatchOptions::new().with_row_count(Some(rows.num_rows()));
        let emitted = RecordBatch::try_new_with_options(Arc::clone(&self.parameters.output), columns, &options)?;
        out.changes(ChangeBatch::inserts(emitted));
        self.history.keep(frames)
    }
}

fn aggregate(call: &OverCall) -> Option<&AggregateCall> {
    match call {
        OverCall::Aggregate(call) | OverCall::RowNumber(call) => Some(call),
        OverCall::Lag { .. } => None,
    }
}

/// For each row the value so many rows before the end of its frame, or the default of that row.
fn look_back(frames: &Frames, column: usize, offset: u64, default: Option<usize>) -> Result<ArrayRef> {
    let values = frames.rows().column(column);
    let places = frames.look_back(offset);
    let Some(default) = default else {
        return Ok(take(values, &UInt32Array::from_iter(places.into_iter().map(|(found, _)| found)), None)?);
    };
    let default = frames.rows().column(default);
    let fits = default.data_type() == values.data_type();
    let default = if fits { Arc::clone(default) } else { cast(default, values.data_type())? };
    let picks: Vec<(usize, usize)> =
        places.into_iter().map(|(found, end)| found.map_or((1, end as usize), |found| (0, found as usize))).collect();
    if picks.is_empty() {
        return Ok(new_null_array(values.data_type(), 0));
    }
    Ok(interleave(&[values.as_ref(), default.as_ref()], &picks)?)
}

impl Operator for Over {
    fn on_changes(&mut self, _port: Port, batch: ChangeBatch, out: &mut Output) -> Result<()> {
        match self.parameters.time {
            Some(time) => self.put_aside(batch.rows(), time),
            None if batch.is_empty() => Ok(()),
            None => self.compute(batch.rows(), out),
        }
    }

    fn on_clock(&mut self, now: ProcessingTime, _out: &mut Output) -> Result<()> {
        if self.lifetimes.advance(now) { self.expire() } else { Ok(()) }
    }

    fn on_watermark(&mut self, mark: Watermark, out: &mut Output) -> Result<()> {
        self.watermark = self.watermark.max(mark);
        if let Some(rows) = self.ready(mark)? {
            self.compute(&rows, out)?;
        }
        out.watermark(mark);
        Ok(())
    }

    fn snapshot(&mut self, _at: CheckpointId) -> Result<Snapshot> {
        let base = !std::mem::replace(&mut self.saved, true);
        let lifetimes = self.lifetimes.snapshot(&mut self.groups.keys, base)?;
        let mut tables = self.groups.snapshot(base, base)?;
        tables.extend(lifetimes);
        tables.push(self.waiting.snapshot(WAITING, &self.keys, base)?);
        self.keys.finish_snapshot();
        tables.push(self.history.snapshot(base)?);
        tables.push(save_watermark(self.watermark)?);
        Ok(Snapshot { tables })
    }

    fn restore(&mut self, from: Restored) -> Result<()> {
        let from = from.restrict(self.parameters.key_groups)?;
        self.watermark = restore_watermark(&from)?;
        self.groups.restore(&from)?;
        self.lifetimes.restore(&mut self.groups.keys, &from)?;
        self.history.restore(&from)?;
        self.waiting.restore(WAITING, &mut self.keys, &from)?;
        let Some(time) = self.parameters.time else { return Ok(()) };
        for slot in self.keys.live_slots() {
            let columns = self.waiting.decode(self.waiting.iter(slot).map(|(_, row)| row))?;
            let times = row_times(&RecordBatch::try_new(Arc::clone(&self.parameters.input), columns)?, time)?;
            let sequences = self.waiting.iter(slot).map(|(position, _)| position.sequence);
            self.timers.extend(sequences.zip(times.values()).map(|(sequence, time)| (*time, sequence, slot)));
        }
        Ok(())
    }

    fn state_size(&self) -> Option<StateSize> {
        let timers = self.timers.len() * size_of::<(i64, i64, u32)>() * 3 / 2;
        let waiting = StateSize::new(0, self.keys.bytes() + self.waiting.bytes() + timers + self.history.bytes());
        Some([self.groups.size(), waiting].into_iter().sum())
    }

    fn shrink(&mut self) -> Result<()> {
        if self.keys.shrink()? {
            self.waiting.shrink();
        }
        self.history.shrink()?;
        if self.groups.shrink()? {
            self.lifetimes.shrink();
        }
        Ok(())
    }

    fn counters(&self) -> Vec<(&'static str, u64)> {
        vec![("partitions", self.groups.keys.len() as u64), ("late_rows", self.late.rows())]
    }

    fn time_report(&self) -> TimeReport {
        TimeReport {
            lateness: self.late.clone(),
            next_close: self.timers.first().map(|(time, ..)| *time),
            ..TimeReport::default()
        }
    }
}
