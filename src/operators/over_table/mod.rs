//! `OVER` over a table that changes, in any order: when a row comes or goes, the results of the rows around it are told
//! anew.
//!
//! ```text
//! SUM(qty) OVER (PARTITION BY region ORDER BY qty)
//! rows            +I A 10             +I A 4                      -D A 4
//! emitted         +I A 10 10          +I A 4 4                    -D A 4 4
//!                                     -U A 10 10   +U A 10 14     -U A 10 14   +U A 10 10
//! ```
//!
//! All rows of a partition are kept in order. A change touches the rows whose frames hold it, and only those are computed
//! again ([`reach`]); what a change costs in a partition of n rows:
//!
//! | results | cost |
//! |---|---|
//! | frames of so many rows or units of value, `LAG`, `LEAD` | log n, and the rows of the frames that hold it |
//! | aggregates from the partition's first row, `ROW_NUMBER`, `RANK`, `DENSE_RANK` | log n, and the rows behind it |
//! | aggregates to the last row, `NTILE`, `PERCENT_RANK`, `CUME_DIST`, `FIRST_VALUE` … from the first row | n |

mod aggregates;
mod evaluation;
mod reach;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use arrow::array::{ArrayRef, RecordBatch, RecordBatchOptions, UInt32Array};
use arrow::compute::take;
use arrow::datatypes::SchemaRef;
use arrow::row::{RowConverter, SortField};

use self::aggregates::Aggregates;
use self::evaluation::{Evaluated, Side, evaluate};
use self::reach::{Reach, Touched};
use super::lifetimes::Lifetimes;
use super::{Operator, Output, Port, ProcessingTime, StateSize};
use crate::changelog::{ChangeBatch, CheckpointId, Kind};
use crate::error::{Error, Result};
use crate::state::{KeyGroupRange, KeyTable, Position, Restored, Row, Snapshot, SortedRows};
use crate::types::{Frame, FrameCall, SortColumn};

/// The table of rows in a snapshot.
const ROWS: &str = "rows";
/// So many rows are looked at before what they give is computed: bounds memory where each change touches many.
const LOOKED_AT: usize = 64 << 10;

/// What an [`OverTable`] computes.
pub struct OverTableParameters {
    /// The columns that come.
    pub input: SchemaRef,
    /// The columns emitted: the first of those that come, then the results.
    pub output: SchemaRef,
    /// Partition columns of the input; none: one partition.
    pub partition: Vec<usize>,
    /// The order within a partition; empty: by arrival, and all rows are of one value.
    pub order: Vec<SortColumn>,
    /// Which rows a row's results are over.
    pub frame: Frame,
    /// What is computed.
    pub calls: Vec<FrameCall>,
    /// How many columns of the input are emitted.
    pub shown: usize,
    /// Partitions not written for so many milliseconds of processing time are forgotten; 0: never.
    pub ttl_ms: u64,
    /// The key groups of this subtask.
    pub key_groups: KeyGroupRange,
}

/// `OVER` over a table that changes.
pub struct OverTable {
    parameters: OverTableParameters,
    keys: KeyTable,
    rows: SortedRows,
    /// How many values of the order there are in each partition.
    values: Vec<u64>,
    reach: Reach,
    aggregates: Aggregates,
    results: RowConverter,
    lifetimes: Lifetimes,
    /// Rows that went without having come.
    unmatched: u64,
    saved: bool,
}

/// A row that came or went, with the rows around it.
struct Change {
    kind: Kind,
    touched: Touched,
    /// Where its surroundings begin among all rows looked at.
    first: usize,
}

/// Rows looked at, to be computed together.
#[derive(Default)]
struct Work {
    changes: Vec<Change>,
    rows: Vec<Row>,
}

impl OverTable {
    /// An operator without rows.
    ///
    /// # Errors
    /// If a column cannot be partitioned by, kept, ordered or aggregated.
    pub fn new(parameters: OverTableParameters) -> Result<OverTable> {
        let OverTableParameters { input, partition, order, frame, calls, .. } = &parameters;
        let fields = partition.iter().map(|column| Arc::clone(&input.fields()[*column])).collect();
        let results = calls.iter().map(|call| SortField::new(call.output.data_type().clone())).collect();
        let aggregates = Aggregates::new(input, partition, *frame, calls)?;
        Ok(OverTable {
            keys: KeyTable::new(fields)?,
            rows: SortedRows::new(input, order, true, false)?,
            values: Vec::new(),
            reach: Reach::new(input, order, *frame, calls, aggregates.kept())?,
            aggregates,
            results: RowConverter::new(results)?,
            lifetimes: Lifetimes::new("lifetimes", parameters.ttl_ms),
            parameters,
            unmatched: 0,
            saved: false,
        })
    }

    fn partition_arrays(&self, rows: &RecordBatch) -> Vec<ArrayRef> {
        self.parameters.partition.iter().map(|column| Arc::clone(rows.column(*column))).collect()
    }

    /// Notes that partitions are written now; those that have been idle for too long start afresh.
    fn write_partitions(&mut self, slots: &[u32]) -> Result<()> {
        if !self.lifetimes.are_limited() {
            return Ok(());
        }
        let mut expired: Vec<u32> = slots.iter().copied().filter(|slot| self.lifetimes.is_expired(*slot)).collect();
        slots.iter().for_each(|slot| self.lifetimes.write(*slot));
        expired.sort_unstable();
        expired.dedup();
        self.empty(&expired)
    }

    /// Forgets the rows of partitions.
    fn empty(&mut self, slots: &[u32]) -> Result<()> {
        if slots.is_empty() {
            return Ok(());
        }
        self.aggregates.forget(&self.keys.take(slots)?, slots.len())?;
        for slot in slots {
            self.rows.take(*slot).for_each(drop);
            self.values[*slot as usize] = 0;
        }
        Ok(())
    }

    /// Takes a row in, and what is around it.
    fn insert(&mut self, slot: u32, key: &[u8], row: &[u8], bounds: &reach::Bounds) -> Touched {
        let position = self.rows.insert(slot, key, row.into());
        if self.is_alone(slot, &position) {
            self.values[slot as usize] += 1;
        }
        self.reach.around(&self.rows, slot, &position, bounds, self.values[slot as usize])
    }

    /// What is around a row, which then goes.
    fn remove(&mut self, slot: u32, position: &Position, bounds: &reach::Bounds) -> Touched {
        let touched = self.reach.around(&self.rows, slot, position, bounds, self.values[slot as usize]);
        if self.is_alone(slot, position) {
            self.values[slot as usize] -= 1;
        }
        self.rows.remove(slot, position);
        touched
    }

    /// Whether no other row has the value of this one.
    fn is_alone(&self, slot: u32, position: &Position) -> bool {
        let before = self.rows.before(slot, position).next();
        let after = self.rows.after(slot, position).next();
        [before, after].into_iter().flatten().all(|(other, _)| other.key != position.key)
    }

    /// Computes and emits what the changes make of the rows around them.
    fn settle(&mut self, work: &mut Work, out: &mut Output) -> Result<()> {
        let Work { changes, rows } = std::mem::take(work);
        if changes.is_empty() {
            return Ok(());
        }
        let columns = self.rows.decode(rows.iter())?;
        let options = RecordBatchOptions::new().with_row_count(Some(rows.len()));
        let rows = RecordBatch::try_new_with_options(Arc::clone(&self.parameters.input), columns, &options)?;
        let numbers = self.reach.numbers(&rows)?;
        let mut evaluated = Evaluated::new(&self.parameters.calls, &rows);
        // For each change the results without the row and with it, before and after as it comes or goes.
        let mut sides = Vec::with_capacity(changes.len());
        for change in &changes {
            let comes = !change.kind.is_retraction();
            let mut of = |with: bool, script: &mut Aggregates| {
                let side = Side::new(&change.touched, change.first, with, &self.parameters, numbers.as_ref());
                evaluate(&side, &mut evaluated, script, with == comes)
            };
            let before = of(!comes, &mut self.aggregates);
            let after = of(comes, &mut self.aggregates);
            sides.push((before, after));
        }
        let images = self.aggregates.run(&rows)?;
        let results = evaluated.columns(&self.parameters.calls, &rows, &images)?;
        let emitted = self.emitted(&changes, &sides, &results)?;
        let (kinds, places): (Vec<Kind>, Vec<u32>) = emitted.into_iter().unzip();
        let places = UInt32Array::from(places);
        let sources = take(&evaluated.sources(), &places, None)?;
        let shown = rows.columns()[..self.parameters.shown].iter().map(|column| take(column, &sources, None));
        let mut columns = shown.collect::<Result<Vec<_>, _>>()?;
        for result in &results {
            columns.push(take(result, &places, None)?);
        }
        let options = RecordBatchOptions::new().with_row_count(Some(kinds.len()));
        let rows = RecordBatch::try_new_with_options(Arc::clone(&self.parameters.output), columns, &options)?;
        out.changes(ChangeBatch::new(rows, kinds)?);
        Ok(())
    }

    /// Which results are told, and as what: the changed row first, then those around it that differ.
    fn emitted(
        &self,
        changes: &[Change],
        sides: &[(std::ops::Range<u32>, std::ops::Range<u32>)],
        results: &[ArrayRef],
    ) -> Result<Vec<(Kind, u32)>> {
        let compared = if results.is_empty() { None } else { Some(self.results.convert_columns(results)?) };
        let differ =
            |old: u32, new: u32| compared.as_ref().is_some_and(|rows| rows.row(old as usize) != rows.row(new as usize));
        let mut emitted = Vec::new();
        for (change, (before, after)) in changes.iter().zip(sides) {
            let place = change.touched.place_in_region() as u32;
            let (mut before, mut after) = (before.clone(), after.clone());
            let own = if change.kind.is_retraction() { &before } else { &after };
            let told = if change.kind.is_retraction() { Kind::Delete } else { change.kind };
            emitted.push((told, own.start + place));
            for index in 0..change.touched.region_len() as u32 {
                let (old, new) = match (index == place, change.kind.is_retraction()) {
                    (true, true) => {
                        before.next();
                        continue;
                    }
                    (true, false) => {
                        after.next();
                        continue;
                    }
                    _ => (before.next(), after.next()),
                };
                let (Some(old), Some(new)) = (old, new) else {
                    return Err(Error::bug("a change touches other rows before than after"));
                };
                if differ(old, new) {
                    emitted.extend([(Kind::UpdateBefore, old), (Kind::UpdateAfter, new)]);
                }
            }
        }
        Ok(emitted)
    }
}

impl Operator for OverTable {
    fn on_changes(&mut self, _port: Port, batch: ChangeBatch, out: &mut Output) -> Result<()> {
        let rows = batch.rows();
        let mut slots = Vec::new();
        self.keys.slots_of(&self.partition_arrays(rows), rows.num_rows(), &mut slots)?;
        self.keys.touch(&slots);
        self.rows.grow(self.keys.capacity());
        self.values.resize(self.keys.capacity().max(self.values.len()), 0);
        self.write_partitions(&slots)?;
        let sort_keys = self.rows.encode_keys(rows.columns())?;
        let encoded = self.rows.encode_rows(rows.columns())?;
        let bounds = self.reach.bounds(&self.rows, rows)?;
        let mut work = Work::default();
        for (row, slot) in slots.iter().enumerate() {
            let kind = batch.kind(row);
            let bounds = bounds.row(row);
            let touched = if kind.is_retraction() {
                let Some(position) = self.rows.find(*slot, sort_keys.get(row), encoded.get(row)) else {
                    self.unmatched += 1;
                    continue;
                };
                self.remove(*slot, &position, &bounds)
            } else {
                self.insert(*slot, sort_keys.get(row), encoded.get(row), &bounds)
            };
            let first = work.rows.len();
            work.rows.extend(touched.rows().cloned());
            work.changes.push(Change { kind, touched, first });
            if work.rows.len() > LOOKED_AT {
                self.settle(&mut work, out)?;
            }
        }
        self.settle(&mut work, out)?;
        for slot in slots {
            if self.rows.len(slot) == 0 {
                self.keys.remove(slot);
            }
        }
        Ok(())
    }

    fn on_clock(&mut self, now: ProcessingTime, _out: &mut Output) -> Result<()> {
        if self.lifetimes.advance(now) {
            let expired = self.lifetimes.expired(&self.keys);
            self.empty(&expired)?;
            expired.into_iter().for_each(|slot| self.keys.remove(slot));
        }
        Ok(())
    }

    fn snapshot(&mut self, _at: CheckpointId) -> Result<Snapshot> {
        let base = !std::mem::replace(&mut self.saved, true);
        let lifetimes = self.lifetimes.snapshot(&mut self.keys, base)?;
        let rows = self.rows.snapshot(ROWS, &self.keys, base)?;
        self.keys.finish_snapshot();
        Ok(Snapshot { tables: std::iter::once(rows).chain(lifetimes).collect() })
    }

    fn restore(&mut self, from: Restored) -> Result<()> {
        let from = from.restrict(self.parameters.key_groups)?;
        self.rows.restore(ROWS, &mut self.keys, &from)?;
        self.lifetimes.restore(&mut self.keys, &from)?;
        self.values.resize(self.keys.capacity(), 0);
        for slot in self.keys.live_slots() {
            let mut last: Option<&Position> = None;
            for (position, _) in self.rows.iter(slot) {
                if last.is_none_or(|last| last.key != position.key) {
                    self.values[slot as usize] += 1;
                }
                last = Some(position);
            }
            if self.aggregates.kept() {
                let rows: Vec<&Row> = self.rows.iter(slot).map(|(_, row)| row).collect();
                for rows in rows.chunks(LOOKED_AT) {
                    let columns = self.rows.decode(rows.iter().copied())?;
                    let options = RecordBatchOptions::new().with_row_count(Some(rows.len()));
                    let input = Arc::clone(&self.parameters.input);
                    self.aggregates.load(&RecordBatch::try_new_with_options(input, columns, &options)?)?;
                }
            }
        }
        Ok(())
    }

    fn state_size(&self) -> Option<StateSize> {
        let values = self.values.capacity() * size_of::<u64>();
        let rows = self.keys.bytes() + self.rows.bytes() + values + self.aggregates.bytes();
        Some(StateSize::new(self.keys.len(), rows))
    }

    fn shrink(&mut self) -> Result<()> {
        if self.keys.shrink()? {
            self.rows.shrink();
            self.values = Vec::new();
            self.lifetimes.shrink();
        }
        self.aggregates.shrink()
    }

    fn counters(&self) -> Vec<(&'static str, u64)> {
        vec![("partitions", self.keys.len() as u64), ("unmatched_retractions", self.unmatched)]
    }
}
