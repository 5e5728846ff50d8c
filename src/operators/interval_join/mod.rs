//! Interval joins: `a.k = b.k AND b.ts BETWEEN a.ts AND a.ts + INTERVAL '1' HOUR`.
//!
//! Rows match whose times are close: the right row's time less the left row's lies between two bounds. So a row is kept
//! only until the watermark says that no match can come any more; a preserved row without one is then emitted beside
//! NULLs, once and for good. With bounds of 0 and 5, left rows preserved:
//!
//! ```text
//! l: 10 a                   kept
//! r: 12 x  →  +I[a, x]
//! l: 20 b                   kept
//! watermark 16              a goes: it has found a match
//! watermark 26  →  +I[b, NULL]
//! ```
//!
//! Nothing is ever taken back, and both times stay time attributes. A pair may be as old as the older of its rows, and a
//! row beside NULLs is as old as it was kept: the watermark that goes on is so far behind. Late rows are joined with what
//! is still there; those that find nothing are counted. In processing time rows are as old as their arrival.
//!
//! A row that comes costs as much as it has matches: it is found by key, its partners by time, and nothing else is read.

mod side;

use std::sync::Arc;

use arrow::array::{ArrayRef, Int64Array, RecordBatch, RecordBatchOptions, UInt32Array, new_null_array};
use arrow::compute::take;
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use datafusion_physical_expr::PhysicalExpr;

use super::event_time::{restore_watermark, row_times, save_watermark};
use super::join::JoinInput;
use super::join_keys::{NONE, columns_of, key_slots};
use super::lateness::Lateness;
use super::pairs::PairCondition;
use super::{Operator, Output, Port, ProcessingTime, StateSize, TimeReport};
use crate::changelog::{ChangeBatch, CheckpointId, Watermark};
use crate::error::{Error, Result};
use crate::limits::BATCH_ROWS;
use crate::state::{KeyGroupRange, KeyTable, Restored, Snapshot};
use crate::types::{JoinKind, NullKeys};
use side::Side;

/// What an interval join is made of.
pub struct IntervalJoinParameters {
    /// What becomes of rows with and without a match; one that emits pairs.
    pub kind: JoinKind,
    /// Left, then right; append-only.
    pub inputs: [JoinInput; 2],
    /// The event-time columns; `None`: rows are as old as their arrival.
    pub times: Option<[usize; 2]>,
    /// The least and the greatest milliseconds from a left row to a right row that matches it.
    pub bounds: (i64, i64),
    /// The rest of the condition, over the left input's own columns and then the right's.
    pub condition: Option<Arc<dyn PhysicalExpr>>,
    /// What a NULL among the keys equals: nothing, or NULL.
    pub null_keys: NullKeys,
    /// The columns emitted.
    pub output: SchemaRef,
    /// The key groups of this subtask.
    pub key_groups: KeyGroupRange,
}

/// Joins two append-only inputs whose rows are close in time.
pub struct IntervalJoin {
    kind: JoinKind,
    inputs: [JoinInput; 2],
    times: Option<[usize; 2]>,
    bounds: (i64, i64),
    condition: Option<PairCondition>,
    null_keys: NullKeys,
    output: SchemaRef,
    key_groups: KeyGroupRange,
    /// The keys of both sides.
    keys: KeyTable,
    sides: [Side; 2],
    /// Event time, or processing time where rows are as old as their arrival.
    now: i64,
    ended: [bool; 2],
    /// Rows that came too late to find anything.
    late: Lateness,
    saved: bool,
}

/// Rows of a batch beside rows of the other side.
#[derive(Default)]
struct Found {
    arriving: Vec<u32>,
    other: Vec<u32>,
}

impl Found {
    /// The pairs and the rows `alone`, which stand beside NULLs, in the order of the arriving rows.
    fn with_alone(self, alone: Vec<u32>) -> Found {
        if alone.is_empty() {
            return self;
        }
        let mut all = Found::default();
        let mut pairs = self.arriving.into_iter().zip(self.other).peekable();
        for row in alone {
            while let Some((arriving, other)) = pairs.next_if(|(arriving, _)| *arriving < row) {
                all.push(arriving, other);
            }
            all.push(row, NONE);
        }
        pairs.for_each(|(arriving, other)| all.push(arriving, other));
        all
    }

    fn push(&mut self, arriving: u32, other: u32) {
        self.arriving.push(arriving);
        self.other.push(other);
    }
}

/// The schema of rows that are kept with the time of their arrival.
fn with_arrival(schema: &SchemaRef) -> SchemaRef {
    let arrival = Arc::new(Field::new("arrival", DataType::Int64, false));
    Arc::new(Schema::new(schema.fields().iter().cloned().chain([arrival]).collect::<Vec<_>>()))
}

impl IntervalJoin {
    /// The operator.
    ///
    /// # Errors
    /// If the keys do not go together.
    pub fn new(parameters: IntervalJoinParameters) -> Result<IntervalJoin> {
        let IntervalJoinParameters { kind, inputs, times, bounds, condition, null_keys, output, key_groups } =
            parameters;
        if !kind.emits_pairs() || null_keys == NullKeys::Anything {
            return Err(Error::bug("an interval join emits pairs of equal keys"));
        }
        let [left, right] = &inputs;
        let keys = |input: &JoinInput| -> Vec<_> {
            input.keys.iter().map(|key| Arc::clone(&input.schema.fields()[*key])).collect()
        };
        if !keys(left).iter().map(|field| field.data_type()).eq(keys(right).iter().map(|field| field.data_type())) {
            return Err(Error::bug("the keys of a join have different types"));
        }
        let span = bounds.1.saturating_sub(bounds.0).max(0);
        let side = |port: usize, table| {
            let input = &inputs[port];
            let (schema, time) = match times {
                Some(times) => (Arc::clone(&input.schema), times[port]),
                None => (with_arrival(&input.schema), input.schema.fields().len()),
            };
            Side::new(table, schema, &input.keys, time, span)
        };
        Ok(IntervalJoin {
            keys: KeyTable::new(keys(left))?,
            sides: [side(0, "left"), side(1, "right")],
            condition: condition.map(|condition| PairCondition::new(condition, &inputs)),
            kind,
            inputs,
            times,
            bounds,
            null_keys,
            output,
            key_groups,
            now: i64::MIN,
            ended: [false; 2],
            late: Lateness::default(),
            saved: false,
        })
    }

    /// The other side's times that match a row of this time.
    fn partners(&self, port: Port, time: i64) -> (i64, i64) {
        let (least, greatest) = self.bounds;
        match port {
            0 => (time.saturating_add(least), time.saturating_add(greatest)),
            _ => (time.saturating_sub(greatest), time.saturating_sub(least)),
        }
    }

    /// Rows of a port go when their time is before this.
    fn limit(&self, port: Port) -> i64 {
        let (least, greatest) = self.bounds;
        if port == 0 { self.now.saturating_sub(greatest) } else { self.now.saturating_add(least) }
    }

    /// How far what is emitted may be behind what comes.
    fn delay(&self) -> i64 {
        let (least, greatest) = self.bounds;
        greatest.max(least.saturating_neg()).max(0).saturating_add(1)
    }

    /// The pairs of the rows from `first` on, of as many rows as give about a batch of them; and the row after the last.
    fn pairs(&self, port: Port, keys: &[u32], times: &[i64], first: usize) -> (Found, usize) {
        let (mut found, mut row) = (Found::default(), first);
        let other = &self.sides[1 - port];
        while row < keys.len() && found.other.len() < BATCH_ROWS {
            if keys[row] != NONE {
                let (from, to) = self.partners(port, times[row]);
                other.between(keys[row], from, to, &mut found.other);
                found.arriving.resize(found.other.len(), row as u32);
            }
            row += 1;
        }
        (found, row)
    }

    /// The columns of pairs, left then right.
    fn columns(&self, port: Port, batch: &RecordBatch, found: &Found) -> Result<[Vec<ArrayRef>; 2]> {
        let arriving = UInt32Array::from(found.arriving.clone());
        let own = batch.columns()[..self.inputs[port].width].iter();
        let own = own.map(|column| Ok(take(column, &arriving, None)?)).collect::<Result<Vec<_>>>()?;
        let other = self.sides[1 - port].rows.take(&found.other, self.inputs[1 - port].width)?;
        Ok(if port == 0 { [own, other] } else { [other, own] })
    }

    /// Keeps the pairs for which the rest of the condition holds.
    fn judge(&self, port: Port, batch: &RecordBatch, found: Found) -> Result<Found> {
        let Some(condition) = self.condition.as_ref().filter(|_| !found.arriving.is_empty()) else { return Ok(found) };
        let [left, right] = self.columns(port, batch, &found)?;
        let holds = condition.judge(left, right, found.arriving.len())?;
        let kept = |rows: Vec<u32>| {
            rows.into_iter().enumerate().filter(|(pair, _)| holds.value(*pair)).map(|(_, row)| row).collect()
        };
        Ok(Found { arriving: kept(found.arriving), other: kept(found.other) })
    }

    /// Keeps rows for partners that are still to come.
    fn keep(
        &mut self,
        port: Port,
        batch: &RecordBatch,
        kept: &[u32],
        keys: &[u32],
        times: &[i64],
        matched: &[bool],
    ) -> Result<()> {
        let side = &mut self.sides[port];
        let slots = match self.times {
            Some(_) => side.keep(batch, kept, keys, times)?,
            None => {
                let arrivals: ArrayRef = Arc::new(Int64Array::from(times.to_vec()));
                let columns = batch.columns().iter().cloned().chain([arrivals]).collect();
                let rows = RecordBatch::try_new(with_arrival(&self.inputs[port].schema), columns)?;
                side.keep(&rows, kept, keys, times)?
            }
        };
        if self.kind.pads(port) {
            let found = kept.iter().zip(slots).filter(|(row, _)| matched[**row as usize]);
            found.for_each(|(_, slot)| side.rows.mark(slot));
        }
        Ok(())
    }

    fn emit(&self, columns: [Vec<ArrayRef>; 2], rows: usize, out: &mut Output) -> Result<()> {
        let options = RecordBatchOptions::new().with_row_count(Some(rows));
        let rows = RecordBatch::try_new_with_options(Arc::clone(&self.output), columns.concat(), &options)?;
        out.changes(ChangeBatch::inserts(rows));
        Ok(())
    }

    /// Lets go the rows of a port that can find no match any more; preserved ones without one are emitted beside NULLs.
    fn expire(&mut self, port: Port, limit: i64, out: &mut Output) -> Result<()> {
        let expired = self.sides[port].expire(limit, self.kind.pads(port));
        if self.kind.pads(port) {
            let alone = expired.iter().map(|(_, slot)| *slot).filter(|slot| !self.sides[port].rows.is_marked(*slot));
            let alone: Vec<u32> = alone.collect();
            for alone in alone.chunks(BATCH_ROWS) {
                let own = self.sides[port].rows.take(alone, self.inputs[port].width)?;
                let missing = self.missing(1 - port, alone.len());
                let columns = if port == 0 { [own, missing] } else { [missing, own] };
                self.emit(columns, alone.len(), out)?;
            }
        }
        for (key, slot) in expired {
            self.sides[port].rows.release(slot);
            self.forget_if_empty(key);
        }
        self.sides[port].rows.compact()
    }

    /// NULLs in the place of a port's rows.
    fn missing(&self, port: Port, rows: usize) -> Vec<ArrayRef> {
        let input = &self.inputs[port];
        input.schema.fields()[..input.width].iter().map(|field| new_null_array(field.data_type(), rows)).collect()
    }

    fn forget_if_empty(&mut self, key: u32) {
        if self.sides.iter().all(|side| side.is_empty(key)) {
            self.keys.remove(key);
        }
    }

    fn pass(&mut self, out: &mut Output) -> Result<()> {
        for port in [0, 1] {
            self.expire(port, self.limit(port), out)?;
        }
        Ok(())
    }

    /// Emits what still waits, since no row will come.
    fn finish(&mut self, out: &mut Output) -> Result<()> {
        for port in [0, 1] {
            self.expire(port, i64::MAX, out)?;
        }
        Ok(())
    }
}

impl Operator for IntervalJoin {
    fn on_changes(&mut self, port: Port, batch: ChangeBatch, out: &mut Output) -> Result<()> {
        let batch = batch.rows();
        let times = match self.times {
            Some(times) => row_times(batch, times[port])?,
            None => Int64Array::from(vec![self.now; batch.num_rows()]),
        };
        let times = times.values();
        let keys = columns_of(batch, &self.inputs[port].keys);
        let keys = key_slots(&mut self.keys, &keys, batch.num_rows(), self.null_keys)?;
        self.sides.iter_mut().for_each(|side| side.grow_keys(self.keys.capacity()));
        let mut kept = Vec::with_capacity(batch.num_rows());
        let mut matched = vec![false; batch.num_rows()];
        let (limit, possible, pads) = (self.limit(port), self.bounds.0 <= self.bounds.1, self.kind.pads(port));
        let mut first = 0;
        while first < batch.num_rows() {
            let (found, end) = self.pairs(port, &keys, times, first);
            let found = self.judge(port, batch, found)?;
            found.arriving.iter().for_each(|row| matched[*row as usize] = true);
            if self.kind.pads(1 - port) {
                found.other.iter().for_each(|slot| self.sides[1 - port].rows.mark(*slot));
            }
            let mut alone = Vec::new();
            for row in first..end {
                if keys[row] != NONE && possible && times[row] >= limit {
                    kept.push(row as u32);
                } else if pads && !matched[row] {
                    alone.push(row as u32);
                } else if !matched[row] && keys[row] != NONE && self.times.is_some() && times[row] < self.now {
                    self.late.record(self.now - 1, times[row]);
                }
            }
            let found = found.with_alone(alone);
            if !found.arriving.is_empty() {
                self.emit(self.columns(port, batch, &found)?, found.arriving.len(), out)?;
            }
            first = end;
        }
        self.keep(port, batch, &kept, &keys, times, &matched)?;
        for key in keys.into_iter().filter(|key| *key != NONE) {
            self.forget_if_empty(key);
        }
        Ok(())
    }

    fn on_watermark(&mut self, mark: Watermark, out: &mut Output) -> Result<()> {
        if self.times.is_none() {
            out.watermark(mark);
        } else if mark == Watermark::MAX {
            self.finish(out)?;
            out.watermark(mark);
        } else {
            self.now = self.now.max(mark.0);
            self.pass(out)?;
            out.watermark(Watermark(mark.0.saturating_sub(self.delay())));
        }
        Ok(())
    }

    fn on_clock(&mut self, now: ProcessingTime, out: &mut Output) -> Result<()> {
        if self.times.is_none() {
            self.now = self.now.max(now);
            self.pass(out)?;
        }
        Ok(())
    }

    fn on_end(&mut self, port: Port, out: &mut Output) -> Result<()> {
        self.ended[port] = true;
        if self.ended == [true; 2] { self.finish(out) } else { Ok(()) }
    }

    fn snapshot(&mut self, _at: CheckpointId) -> Result<Snapshot> {
        let base = !std::mem::replace(&mut self.saved, true);
        let [left, right] = &mut self.sides;
        let mut tables = vec![left.rows.snapshot(base)?, right.rows.snapshot(base)?];
        if self.times.is_some() {
            tables.push(save_watermark(Watermark(self.now))?);
        }
        Ok(Snapshot { tables })
    }

    fn restore(&mut self, from: Restored) -> Result<()> {
        let from = from.restrict(self.key_groups)?;
        if self.times.is_some() {
            self.now = restore_watermark(&from)?.0;
        }
        self.sides.iter_mut().try_for_each(|side| side.restore(&mut self.keys, &from))?;
        self.sides.iter_mut().for_each(|side| side.grow_keys(self.keys.capacity()));
        Ok(())
    }

    fn state_size(&self) -> Option<StateSize> {
        let rows = self.sides.iter().map(|side| StateSize::new(side.rows.len(), side.rows.bytes())).sum();
        Some([rows, StateSize::new(0, self.keys.bytes())].into_iter().sum())
    }

    fn counters(&self) -> Vec<(&'static str, u64)> {
        let [left, right] = &self.sides;
        vec![
            ("left_rows", left.rows.len() as u64),
            ("right_rows", right.rows.len() as u64),
            ("late_rows", self.late.rows()),
        ]
    }

    fn time_report(&self) -> TimeReport {
        TimeReport { lateness: self.late.clone(), next_close: None, ..TimeReport::default() }
    }
}

#[cfg(test)]
mod tests;
