//! Temporal joins: each left row meets the version of the table that was valid at its time.
//!
//! ```text
//! rates      +I EUR 1.10 09:00    +U EUR 1.20 10:00    -D EUR 10:30
//! payments   09:30 EUR  →  1.10   10:00 EUR  →  1.20   11:00 EUR  →  none
//! ```
//!
//! In event time, left rows wait until the watermark of both inputs has passed them: then the table will not change at
//! their time any more, and they are emitted in the order in which they came. Of each key the version that is valid at the
//! watermark stays, and later ones; older ones are forgotten. Left rows that are late meet what is left.
//!
//! In processing time a left row meets the table as it is when the row comes; a bounded table is read to its end first.
//! What was told stays told, however the table changes. Only a retraction of the left row takes it back, just as it was
//! told.

mod told;
mod versions;

use std::ops::Range;
use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray, RecordBatch, RecordBatchOptions, UInt8Array, UInt32Array};
use arrow::compute::take;
use arrow::datatypes::{DataType, Field, FieldRef, Schema, SchemaRef, UInt8Type};
use datafusion_physical_expr::PhysicalExpr;

use super::deadlines::Deadlines;
use super::event_time::{milliseconds, restore_watermark, row_times, save_watermark};
use super::join::JoinInput;
use super::join_keys::{NONE, columns_of, key_slots};
use super::lifetimes::Lifetimes;
use super::pairs::PairCondition;
use super::{Operator, Output, Port, ProcessingTime, StateSize};
use crate::changelog::{ChangeBatch, CheckpointId, Kind, Watermark};
use crate::error::{Error, Result};
use crate::limits::BATCH_ROWS;
use crate::state::{KeyGroupRange, KeyTable, Restored, RowStore, Snapshot};
use crate::types::{NullKeys, Versions};
use told::Told;
use versions::VersionTable;

/// What a temporal join is made of.
pub struct TemporalJoinParameters {
    /// Whether left rows without a match are emitted beside NULLs.
    pub outer: bool,
    /// Left, then the versioned table.
    pub inputs: [JoinInput; 2],
    /// The event-time columns; `None`: left rows meet the table as it is.
    pub times: Option<[usize; 2]>,
    /// What a key has of the table.
    pub versions: Versions,
    /// Whether left rows wait for the end of the table.
    pub table_first: bool,
    /// Whether only `+I` comes on the left.
    pub append_only: bool,
    /// The rest of the condition, over the left input's own columns and then the right's.
    pub condition: Option<Arc<dyn PhysicalExpr>>,
    /// The columns emitted.
    pub output: SchemaRef,
    /// Keys of the table not written (on event time, nor asked for) for so many milliseconds of processing time are
    /// forgotten; 0: never.
    pub ttl_ms: u64,
    /// The key groups of this subtask.
    pub key_groups: KeyGroupRange,
}

/// Joins rows with the version of a table that is valid at their time.
pub struct TemporalJoin {
    outer: bool,
    inputs: [JoinInput; 2],
    times: Option<[usize; 2]>,
    table_first: bool,
    condition: Option<PairCondition>,
    output: SchemaRef,
    key_groups: KeyGroupRange,
    keys: KeyTable,
    table: VersionTable,
    /// Left rows that wait, with their kinds.
    waiting: RowStore,
    deadlines: Deadlines,
    /// What was told of left rows that may be taken back.
    told: Option<Told>,
    lifetimes: Lifetimes,
    watermark: Watermark,
    late: u64,
    saved: bool,
}

/// Left rows that meet the table: columns, then kinds.
struct Arrivals {
    columns: Vec<ArrayRef>,
    kinds: Vec<Kind>,
    /// In which order they came: both images of an update one after the other.
    order: Vec<i64>,
    times: Vec<i64>,
}

/// Pairs of left rows and versions, by left row.
struct Met {
    left: Vec<u32>,
    /// [`NONE`]: NULLs.
    right: Vec<u32>,
}

impl TemporalJoin {
    /// The operator.
    ///
    /// # Errors
    /// If the keys do not go together.
    pub fn new(parameters: TemporalJoinParameters) -> Result<TemporalJoin> {
        let TemporalJoinParameters { outer, inputs, times, versions, table_first, append_only, .. } = parameters;
        let [left, right] = &inputs;
        let key_fields = |input: &JoinInput| -> Vec<FieldRef> {
            input.keys.iter().map(|key| Arc::clone(&input.schema.fields()[*key])).collect()
        };
        let fits = key_fields(left).iter().map(|f| f.data_type()).eq(key_fields(right).iter().map(|f| f.data_type()));
        if !fits || times.is_some() != (versions == Versions::ByTime) {
            return Err(Error::bug("the parts of a temporal join do not go together"));
        }
        let told = match append_only {
            true => None,
            false => Some(Told::new(left, right)?),
        };
        Ok(TemporalJoin {
            keys: KeyTable::new(key_fields(left))?,
            table: VersionTable::new(Arc::clone(&right.schema), versions, &right.keys, times.map(|times| times[1])),
            waiting: RowStore::new("waiting", with_kind(&left.schema), left.keys.clone()),
            deadlines: Deadlines::new(i64::MAX),
            condition: parameters.condition.map(|condition| PairCondition::new(condition, &inputs)),
            told,
            outer,
            inputs,
            times,
            table_first,
            lifetimes: Lifetimes::new("lifetimes", parameters.ttl_ms),
            output: parameters.output,
            key_groups: parameters.key_groups,
            watermark: Watermark::MIN,
            late: 0,
            saved: false,
        })
    }

    /// The slots of the keys; [`NONE`] for one with a NULL, which equals nothing.
    fn key_slots(&mut self, keys: &[ArrayRef], rows: usize) -> Result<Vec<u32>> {
        let slots = key_slots(&mut self.keys, keys, rows, NullKeys::Nothing)?;
        self.table.grow_keys(self.keys.capacity());
        if self.lifetimes.are_limited() {
            for slot in slots.iter().filter(|slot| **slot != NONE) {
                self.keys.touch(&[*slot]);
            }
        }
        Ok(slots)
    }

    /// Keys are written now, as far as the table has them; those that have been idle for too long start afresh.
    fn write_keys(&mut self, keys: &[u32], by_table: bool) {
        if !self.lifetimes.are_limited() {
            return;
        }
        for key in keys.iter().filter(|key| **key != NONE) {
            if self.lifetimes.is_expired(*key) {
                self.table.forget(*key);
            }
            if by_table || !self.table.is_empty(*key) {
                self.lifetimes.write(*key);
            }
        }
    }

    fn forget_unused(&mut self, keys: impl IntoIterator<Item = u32>) {
        for key in keys {
            if key != NONE && self.table.is_empty(key) {
                self.keys.remove(key);
            }
        }
    }

    /// Left rows that wait for the watermark, or for the end of the table.
    fn wait(&mut self, batch: &ChangeBatch) -> Result<()> {
        let kinds: ArrayRef = Arc::new(UInt8Array::from_iter_values((0..batch.len()).map(|row| batch.kind(row) as u8)));
        let columns = batch.rows().columns().iter().cloned().chain([kinds]).collect();
        let rows = RecordBatch::try_new(with_kind(&self.inputs[0].schema), columns)?;
        let all: Vec<u32> = (0..batch.len() as u32).collect();
        let mut slots = Vec::new();
        self.waiting.insert(&rows, &all, &mut slots)?;
        if let Some(times) = self.times {
            let times = row_times(batch.rows(), times[0])?;
            self.late += times.values().iter().filter(|time| **time < self.watermark.0).count() as u64;
            self.deadlines.note(times.values().iter().copied().zip(slots));
        }
        self.waiting.compact()
    }

    /// Waiting rows, in the order in which they came, meet the table.
    fn release(&mut self, mut slots: Vec<u32>, out: &mut Output) -> Result<()> {
        slots.sort_unstable_by_key(|slot| self.waiting.sequence(*slot));
        let width = self.inputs[0].schema.fields().len();
        for slots in slots.chunks(BATCH_ROWS) {
            let mut columns = self.waiting.take(slots, width + 1)?;
            let kinds = columns.pop().ok_or_else(|| Error::bug("a waiting row has no kind"))?;
            let kinds = kinds.as_primitive_opt::<UInt8Type>().ok_or_else(|| Error::bug("a kind is a number"))?;
            let kinds = kinds.values().iter().map(|kind| kind_of(*kind)).collect::<Result<_>>()?;
            let order = slots.iter().map(|slot| self.waiting.sequence(*slot)).collect();
            self.meet(columns, kinds, order, out)?;
            slots.iter().for_each(|slot| self.waiting.release(*slot));
        }
        self.waiting.compact()
    }

    /// Left rows meet the table.
    fn meet(&mut self, columns: Vec<ArrayRef>, kinds: Vec<Kind>, order: Vec<i64>, out: &mut Output) -> Result<()> {
        let keys: Vec<ArrayRef> = self.inputs[0].keys.iter().map(|key| Arc::clone(&columns[*key])).collect();
        let times = match self.times {
            Some(times) => milliseconds(&columns[times[0]])?.values().to_vec(),
            None => vec![0; kinds.len()],
        };
        let slots = self.key_slots(&keys, kinds.len())?;
        if self.times.is_some() {
            // As in Flink: on event time a version that is asked for is needed.
            self.write_keys(&slots, false);
        }
        let arrivals = Arrivals { columns, kinds, order, times };
        let mut first = 0;
        while first < arrivals.kinds.len() {
            let (met, end) = self.versions_of(&arrivals, &slots, first)?;
            match self.told {
                None => self.emit(&arrivals.columns, &met, out)?,
                Some(_) => self.emit_changes(&arrivals, first..end, &met, out)?,
            }
            first = end;
        }
        self.forget_unused(slots);
        Ok(())
    }

    /// The versions that the rows which come, from `first` on, meet: of as many rows as give about a batch; and the row
    /// after the last.
    fn versions_of(&self, arrivals: &Arrivals, keys: &[u32], first: usize) -> Result<(Met, usize)> {
        let (mut pairs, mut end) = (Met { left: Vec::new(), right: Vec::new() }, first);
        while end < keys.len() && pairs.left.len() < BATCH_ROWS {
            let known = keys[end] != NONE && !self.lifetimes.is_expired(keys[end]);
            if known && !arrivals.kinds[end].is_retraction() {
                self.table.at(keys[end], arrivals.times[end], &mut pairs.right);
                pairs.left.resize(pairs.right.len(), end as u32);
            }
            end += 1;
        }
        let holds = match &self.condition {
            Some(condition) if !pairs.left.is_empty() => {
                let [left, right] = self.columns(&arrivals.columns, &pairs)?;
                Some(condition.judge(left, right, pairs.left.len())?)
            }
            _ => None,
        };
        let holds = |pair: usize| holds.as_ref().is_none_or(|holds| holds.value(pair));
        let mut met = Met { left: Vec::new(), right: Vec::new() };
        let mut pairs = pairs.left.into_iter().zip(pairs.right).enumerate().peekable();
        for row in first..end {
            let before = met.left.len();
            while let Some((pair, (left, right))) = pairs.next_if(|(_, (left, _))| *left == row as u32) {
                if holds(pair) {
                    met.left.push(left);
                    met.right.push(right);
                }
            }
            if self.outer && met.left.len() == before && !arrivals.kinds[row].is_retraction() {
                met.left.push(row as u32);
                met.right.push(NONE);
            }
        }
        Ok((met, end))
    }

    /// The inputs' own columns of pairs.
    fn columns(&self, left: &[ArrayRef], met: &Met) -> Result<[Vec<ArrayRef>; 2]> {
        let [own, right] = [self.inputs[0].width, self.inputs[1].width];
        let rows = UInt32Array::from(met.left.clone());
        let left = left[..own].iter().map(|column| Ok(take(column, &rows, None)?)).collect::<Result<Vec<_>>>()?;
        Ok([left, self.table.rows.take(&met.right, right)?])
    }

    /// Emits pairs, none of which is ever taken back.
    fn emit(&self, left: &[ArrayRef], met: &Met, out: &mut Output) -> Result<()> {
        if met.left.is_empty() {
            return Ok(());
        }
        let options = RecordBatchOptions::new().with_row_count(Some(met.left.len()));
        let columns = self.columns(left, met)?.concat();
        let rows = RecordBatch::try_new_with_options(Arc::clone(&self.output), columns, &options)?;
        out.changes(ChangeBatch::inserts(rows));
        Ok(())
    }

    /// Emits what some left rows change; what is told is kept until it is taken back.
    fn emit_changes(&mut self, arrivals: &Arrivals, rows: Range<usize>, met: &Met, out: &mut Output) -> Result<()> {
        let whole = UInt32Array::from(met.left.clone());
        let mut joined =
            arrivals.columns.iter().map(|column| Ok(take(column, &whole, None)?)).collect::<Result<Vec<_>>>()?;
        joined.extend(self.table.rows.take(&met.right, self.inputs[1].width)?);
        let Some(told) = self.told.as_mut() else { return Err(Error::bug("nothing is kept of what was told")) };
        let left_rows = told.left_rows(&arrivals.columns, arrivals.kinds.len())?;
        let mut fresh = told.keep(joined, &met.left)?.into_iter().zip(&met.left).peekable();
        let (mut slots, mut of, mut gone): (Vec<u32>, Vec<usize>, Vec<u32>) = Default::default();
        for row in rows {
            if arrivals.kinds[row].is_retraction() {
                let taken_back = told.go(left_rows[row]).unwrap_or_default();
                slots.extend_from_slice(&taken_back);
                gone.extend(taken_back);
            } else {
                let mut own = Vec::new();
                while let Some((slot, _)) = fresh.next_if(|(_, left)| **left == row as u32) {
                    own.push(slot);
                }
                slots.extend_from_slice(&own);
                if !own.is_empty() {
                    told.come(left_rows[row], own);
                }
            }
            of.resize(slots.len(), row);
        }
        let columns = told.rows.take(&slots, arrivals.columns.len() + self.inputs[1].width)?;
        gone.into_iter().for_each(|slot| told.rows.release(slot));
        told.forget(&left_rows);
        told.rows.compact()?;
        if slots.is_empty() {
            return Ok(());
        }
        let own = columns[..self.inputs[0].width].iter().chain(&columns[arrivals.columns.len()..]).cloned().collect();
        let options = RecordBatchOptions::new().with_row_count(Some(slots.len()));
        let rows = RecordBatch::try_new_with_options(Arc::clone(&self.output), own, &options)?;
        out.changes(ChangeBatch::new(rows, arrivals.kinds_of(&of))?);
        Ok(())
    }
}

impl Arrivals {
    /// The kinds of emitted rows, each made of the left row whose number is given. Both images of an update stay a pair
    /// where each gives one row, one after the other; otherwise rows leave and others come.
    fn kinds_of(&self, of: &[usize]) -> Vec<Kind> {
        let mut kinds = Vec::with_capacity(of.len());
        while kinds.len() < of.len() {
            let at = kinds.len();
            let lonely = |place: usize, row: usize| of.get(place) != Some(&row);
            let pair = self.kinds[of[at]] == Kind::UpdateBefore
                && of.get(at + 1).is_some_and(|next| {
                    self.kinds[*next] == Kind::UpdateAfter && self.order[*next] == self.order[of[at]] + 1
                })
                && (at == 0 || lonely(at - 1, of[at]))
                && lonely(at + 2, of[at + 1]);
            if pair {
                kinds.extend([Kind::UpdateBefore, Kind::UpdateAfter]);
            } else {
                kinds.push(if self.kinds[of[at]].is_retraction() { Kind::Delete } else { Kind::Insert });
            }
        }
        kinds
    }
}

impl Operator for TemporalJoin {
    fn on_changes(&mut self, port: Port, batch: ChangeBatch, out: &mut Output) -> Result<()> {
        if port == 1 {
            let keys = self.key_slots(&columns_of(batch.rows(), &self.inputs[1].keys), batch.len())?;
            self.write_keys(&keys, true);
            self.table.change(&batch, &keys)?;
            self.forget_unused(keys);
            return Ok(());
        }
        if self.times.is_some() || self.table_first {
            return self.wait(&batch);
        }
        let kinds = (0..batch.len()).map(|row| batch.kind(row)).collect();
        let order = (0..batch.len() as i64).collect();
        self.meet(batch.rows().columns().to_vec(), kinds, order, out)
    }

    fn on_clock(&mut self, now: ProcessingTime, _out: &mut Output) -> Result<()> {
        if self.lifetimes.advance(now) {
            for key in self.lifetimes.expired(&self.keys) {
                self.table.forget(key);
                self.keys.remove(key);
            }
            self.table.rows.compact()?;
        }
        Ok(())
    }

    fn on_watermark(&mut self, mark: Watermark, out: &mut Output) -> Result<()> {
        if self.times.is_none() {
            // What waits for the end of the table must not be late behind what passes it.
            self.watermark = self.watermark.max(mark);
            if !self.table_first {
                out.watermark(mark);
            }
            return Ok(());
        }
        let due = self.deadlines.before(mark.0.saturating_add(1)).into_iter().map(|(_, slot)| slot).collect();
        self.release(due, out)?;
        if mark != Watermark::MAX {
            self.watermark = self.watermark.max(mark);
            let emptied = self.table.prune(self.watermark.0)?;
            self.forget_unused(emptied);
        }
        out.watermark(mark);
        Ok(())
    }

    fn on_end(&mut self, port: Port, out: &mut Output) -> Result<()> {
        if port == 1 && self.table_first {
            self.table_first = false;
            self.release(self.waiting.live_slots(), out)?;
            out.watermark(self.watermark);
        }
        Ok(())
    }

    fn snapshot(&mut self, _at: CheckpointId) -> Result<Snapshot> {
        let base = !std::mem::replace(&mut self.saved, true);
        let mut tables = vec![self.waiting.snapshot(base)?, self.table.rows.snapshot(base)?];
        tables.extend(self.lifetimes.snapshot(&mut self.keys, base)?);
        if self.lifetimes.are_limited() {
            self.keys.finish_snapshot();
        }
        if let Some(told) = &mut self.told {
            tables.push(told.rows.snapshot(base)?);
        }
        if self.times.is_some() {
            tables.push(save_watermark(self.watermark)?);
        }
        Ok(Snapshot { tables })
    }

    fn restore(&mut self, from: Restored) -> Result<()> {
        let from = from.restrict(self.key_groups)?;
        self.waiting.restore(&from)?;
        self.table.restore(&mut self.keys, &from)?;
        self.lifetimes.restore(&mut self.keys, &from)?;
        if let Some(told) = &mut self.told {
            told.restore(&from)?;
        }
        if let Some(times) = self.times {
            self.watermark = restore_watermark(&from)?;
            let slots = self.waiting.live_slots();
            let times = milliseconds(&self.waiting.take_columns(&slots, &[times[0]])?.remove(0))?;
            self.deadlines.note(times.values().iter().copied().zip(slots));
        }
        Ok(())
    }

    fn state_size(&self) -> Option<StateSize> {
        let told = self.told.iter().map(|told| &told.rows);
        let stores = [&self.waiting, &self.table.rows].into_iter().chain(told);
        let rows = stores.map(|rows| StateSize::new(rows.len(), rows.bytes())).sum();
        Some([rows, StateSize::new(0, self.keys.bytes())].into_iter().sum())
    }

    fn counters(&self) -> Vec<(&'static str, u64)> {
        vec![
            ("waiting_rows", self.waiting.len() as u64),
            ("versions", self.table.rows.len() as u64),
            ("late_left_rows", self.late),
        ]
    }
}

/// The schema of left rows with their kinds.
fn with_kind(schema: &SchemaRef) -> SchemaRef {
    let kind = Arc::new(Field::new("kind", DataType::UInt8, false));
    Arc::new(Schema::new(schema.fields().iter().cloned().chain([kind]).collect::<Vec<_>>()))
}

/// The kind of a number.
fn kind_of(code: u8) -> Result<Kind> {
    Kind::from_code(code).ok_or_else(|| Error::state(format!("{code} stands for no kind of change")))
}

#[cfg(test)]
mod tests;
