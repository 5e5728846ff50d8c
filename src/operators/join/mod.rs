//! Joins of two changelogs: `JOIN … ON`, `IN`, `EXISTS` and what else is planned as one.
//!
//! Both inputs are remembered as they stand. A row that arrives meets the rows of the other side under its key, is
//! judged with each by the rest of the condition, and what that changes in the result is emitted:
//!
//! ```text
//! LEFT JOIN          l: +I 1     →  +I[1, NULL]               no match: kept beside NULLs
//!                    r: +I 1 x   →  -D[1, NULL]  +I[1, x]     the first match takes its place
//!                    r: +I 1 y   →  +I[1, y]
//!                    r: -D 1 x   →  -D[1, x]
//!                    r: -D 1 y   →  -D[1, y]  +I[1, NULL]     the last match has gone
//! ```
//!
//! Each row of a side on which that depends carries the number of its matches, so that NULLs come and go exactly and
//! nothing is searched twice. Both images of an update are looked at together: where they have the same matches the
//! result is updated too (`-U`, `+U`), otherwise rows leave and others come.
//!
//! NULL keys match nothing (unless the join says what they do). Such rows are not even remembered: a preserved one is
//! emitted beside NULLs when it comes, and taken back when it goes.
//!
//! With a time to live a row that has been idle for too long is forgotten without a word: what was told of it stays told,
//! and the matches it was counted among stay counted, so that later changes fit what stands downstream.

mod emission;
mod side;

use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, AsArray, BooleanArray, RecordBatch, RecordBatchOptions, UInt32Array, new_null_array,
};
use arrow::buffer::NullBuffer;
use arrow::compute::{filter_record_batch, take};
use arrow::datatypes::{Schema, SchemaRef};
use datafusion_physical_expr::PhysicalExpr;

use super::expression::evaluate;
use super::{Operator, Output, Port, ProcessingTime, StateSize};
use crate::changelog::{ChangeBatch, CheckpointId, Kind};
use crate::error::{Error, Result};
use crate::limits::BATCH_ROWS;
use crate::state::{KeyGroupRange, KeyTable, Restored, Snapshot};
use crate::types::{JoinKind, NullKeys};
use emission::{Emission, Shape};
use side::{NONE, Side};

/// One input of a join.
#[derive(Debug, Clone)]
pub struct JoinInput {
    /// The columns that come.
    pub schema: SchemaRef,
    /// The columns that must equal the other input's, in the same order and of the same types.
    pub keys: Vec<usize>,
    /// How many columns, from the first on, are the input's own: the others hold computed keys and are not emitted.
    pub width: usize,
}

/// What a join is made of.
pub struct JoinParameters {
    /// What becomes of rows with and without a match.
    pub kind: JoinKind,
    /// Left, then right.
    pub inputs: [JoinInput; 2],
    /// The rest of the condition, over the left input's own columns and then the right's.
    pub condition: Option<Arc<dyn PhysicalExpr>>,
    /// What a NULL among the keys equals.
    pub null_keys: NullKeys,
    /// The columns emitted.
    pub output: SchemaRef,
    /// Rows of the left and of the right input not written for so many milliseconds of processing time are forgotten; 0:
    /// never.
    pub ttl_ms: [u64; 2],
    /// The key groups of this subtask.
    pub key_groups: KeyGroupRange,
}

/// Joins two changelogs.
pub struct Join {
    parameters: JoinParameters,
    /// The columns that the condition sees.
    pair_schema: SchemaRef,
    /// The keys of both sides.
    keys: KeyTable,
    sides: [Side; 2],
    emission: Emission,
    saved: bool,
    unmatched: u64,
}

/// Where the rows of a batch belong: [`NONE`] for a row whose key matches nothing.
#[derive(Default)]
struct Places {
    keys: Vec<u32>,
    rows: Vec<u32>,
    /// The slot of the NULL key, where NULL matches anything.
    null_key: Option<u32>,
}

/// Some rows of a batch and the rows of the other side that match each.
struct Matches {
    first: usize,
    /// Where the matches of each row begin in `rows`, and the end of the last.
    starts: Vec<usize>,
    rows: Vec<u32>,
}

impl Matches {
    fn of(&self, row: usize) -> &[u32] {
        let place = row - self.first;
        &self.rows[self.starts[place]..self.starts[place + 1]]
    }

    fn end(&self) -> usize {
        self.first + self.starts.len() - 1
    }
}

impl Join {
    /// The operator.
    ///
    /// # Errors
    /// If a column's type cannot be kept, or the keys do not go together.
    pub fn new(parameters: JoinParameters) -> Result<Join> {
        let [left, right] = &parameters.inputs;
        let types = |input: &JoinInput| -> Vec<_> {
            input.keys.iter().map(|key| input.schema.field(*key).data_type().clone()).collect()
        };
        if types(left) != types(right) {
            return Err(Error::bug("the keys of a join have different types"));
        }
        if parameters.null_keys == NullKeys::Anything && left.keys.len() != 1 {
            return Err(Error::bug("a join whose NULLs match anything has one key"));
        }
        let key_fields = left.keys.iter().map(|key| Arc::clone(&left.schema.fields()[*key])).collect();
        let own = |input: &JoinInput| input.schema.fields()[..input.width].to_vec();
        // NULLs in a condition are no violation: the fields only name columns.
        let fields = own(left).into_iter().chain(own(right)).map(|f| f.as_ref().clone().with_nullable(true));
        let pair_schema = Arc::new(Schema::new(fields.collect::<Vec<_>>()));
        Ok(Join {
            keys: KeyTable::new(key_fields)?,
            sides: [
                Side::new(0, &left.schema, left.keys.clone(), parameters.ttl_ms[0])?,
                Side::new(1, &right.schema, right.keys.clone(), parameters.ttl_ms[1])?,
            ],
            pair_schema,
            parameters,
            emission: Emission::default(),
            saved: false,
            unmatched: 0,
        })
    }

    /// Finds the key and the slot of each row.
    fn locate(&mut self, port: Port, rows: &RecordBatch) -> Result<Places> {
        let mut places = Places::default();
        let key_columns = self.sides[port].key_columns(rows.columns());
        let nulls = match self.parameters.null_keys {
            NullKeys::Null | NullKeys::Anything => None,
            NullKeys::Nothing => {
                key_columns.iter().fold(None, |nulls, column| NullBuffer::union(nulls.as_ref(), column.nulls()))
            }
        };
        match nulls.filter(|nulls| nulls.null_count() > 0) {
            None => self.locate_in(port, rows, key_columns, &mut places)?,
            Some(nulls) => {
                let known = filter_record_batch(rows, &BooleanArray::new(nulls.inner().clone(), None))?;
                let key_columns = self.sides[port].key_columns(known.columns());
                let mut dense = Places::default();
                self.locate_in(port, &known, key_columns, &mut dense)?;
                let mut next = dense.keys.into_iter().zip(dense.rows);
                for row in 0..rows.num_rows() {
                    let place = if nulls.is_valid(row) { next.next() } else { None };
                    let (key, row) = place.unwrap_or((NONE, NONE));
                    places.keys.push(key);
                    places.rows.push(row);
                }
            }
        }
        if self.parameters.null_keys == NullKeys::Anything {
            let key = &self.sides[port].key_columns(rows.columns())[0];
            let mut slots = Vec::new();
            self.keys.slots_of(&[new_null_array(key.data_type(), 1)], 1, &mut slots)?;
            places.null_key = slots.first().copied();
        }
        for side in &mut self.sides {
            side.grow_keys(self.keys.capacity());
        }
        Ok(places)
    }

    fn locate_in(&mut self, port: Port, rows: &RecordBatch, keys: Vec<ArrayRef>, places: &mut Places) -> Result<()> {
        self.keys.slots_of(&keys, rows.num_rows(), &mut places.keys)?;
        self.sides[port].slots_of(rows, &mut places.rows)
    }

    /// The matches of the rows from `first` on: of as many rows as give about a batch of them.
    fn matches(&self, port: Port, batch: &ChangeBatch, places: &Places, first: usize) -> Result<Matches> {
        let mut matches = Matches { first, starts: vec![0], rows: Vec::new() };
        let other = &self.sides[1 - port];
        for row in first..batch.len() {
            // The new image of an update is looked at together with the old one.
            let inside = row > first && batch.kind(row - 1) == Kind::UpdateBefore;
            if matches.rows.len() >= BATCH_ROWS && !inside {
                break;
            }
            match (places.keys[row], places.null_key) {
                (NONE, _) => {}
                (key, None) => other.rows_of(key, &mut matches.rows),
                (key, Some(null)) if key == null => other.all_rows(&mut matches.rows),
                (key, Some(null)) => {
                    other.rows_of(key, &mut matches.rows);
                    other.rows_of(null, &mut matches.rows);
                }
            }
            matches.starts.push(matches.rows.len());
        }
        match &self.parameters.condition {
            Some(condition) if !matches.rows.is_empty() => self.judge(port, batch.rows(), condition, matches),
            _ => Ok(matches),
        }
    }

    /// Keeps the pairs for which the condition is true.
    fn judge(
        &self,
        port: Port,
        batch: &RecordBatch,
        condition: &Arc<dyn PhysicalExpr>,
        matches: Matches,
    ) -> Result<Matches> {
        let spans = matches.starts.windows(2).enumerate();
        let arriving =
            spans.flat_map(|(place, span)| std::iter::repeat_n((matches.first + place) as u32, span[1] - span[0]));
        let arriving: UInt32Array = arriving.collect();
        let width = |port: Port| self.parameters.inputs[port].width;
        let own = batch.columns()[..width(port)].iter().map(|column| Ok(take(column, &arriving, None)?));
        let own = own.collect::<Result<Vec<_>>>()?;
        let mut others = self.sides[1 - port].take(&matches.rows)?;
        others.truncate(width(1 - port));
        let columns = if port == 0 { [own, others] } else { [others, own] }.concat();
        let options = RecordBatchOptions::new().with_row_count(Some(matches.rows.len()));
        let pairs = RecordBatch::try_new_with_options(Arc::clone(&self.pair_schema), columns, &options)?;
        let verdict = evaluate(condition, &pairs)?;
        let verdict = verdict.as_boolean_opt().ok_or_else(|| Error::bug("a join's condition is not a Boolean"))?;
        let holds = |pair: usize| verdict.is_valid(pair) && verdict.value(pair);
        let mut kept = Matches { first: matches.first, starts: vec![0], rows: Vec::new() };
        for span in matches.starts.windows(2) {
            kept.rows.extend((span[0]..span[1]).filter(|pair| holds(*pair)).map(|pair| matches.rows[pair]));
            kept.starts.push(kept.rows.len());
        }
        Ok(kept)
    }

    /// Emits what the rows of `matches` change.
    fn apply(&mut self, port: Port, batch: &ChangeBatch, places: &Places, matches: &Matches) {
        let mut row = matches.first;
        while row < matches.end() {
            let (key, slot) = (places.keys[row], places.rows[row]);
            if key == NONE {
                self.apply_unmatchable(port, row as u32, batch.kind(row));
                row += 1;
                continue;
            }
            let update = batch.kind(row) == Kind::UpdateBefore
                && row + 1 < matches.end()
                && batch.kind(row + 1) == Kind::UpdateAfter
                && places.keys[row + 1] != NONE
                && self.sides[port].count(slot) > 0;
            if update && self.apply_update(port, row, places, matches) {
                row += 2;
                continue;
            }
            let sign = batch.kind(row).sign();
            if !self.sides[port].change(slot, sign) {
                self.unmatched += 1;
            } else if self.parameters.kind.emits_pairs() {
                self.apply_to_pairs(port, row as u32, slot, sign, matches.of(row));
            } else {
                self.apply_to_left_rows(port, row as u32, slot, sign, matches.of(row));
            }
            row += 1;
        }
    }

    /// A row whose key equals no other.
    fn apply_unmatchable(&mut self, port: Port, row: u32, kind: Kind) {
        let kind = if kind.is_retraction() { Kind::Delete } else { Kind::Insert };
        let emitted = match self.parameters.kind {
            JoinKind::Anti => port == 0,
            JoinKind::Mark if port == 0 => return self.emission.push_marked(kind, row, NONE, false),
            other => other.pads(port),
        };
        if emitted {
            self.emission.push(kind, row, NONE, 1);
        }
    }

    /// Both images of an update at once, if the result is updated too; `false` if they have to be seen one by one.
    fn apply_update(&mut self, port: Port, row: usize, places: &Places, matches: &Matches) -> bool {
        let (before, after) = (matches.of(row), matches.of(row + 1));
        let kind = self.parameters.kind;
        // What changed is not among the columns that the query needs.
        if places.rows[row] == places.rows[row + 1] {
            return true;
        }
        let images = [(Kind::UpdateBefore, row as u32), (Kind::UpdateAfter, row as u32 + 1)];
        match kind {
            JoinKind::Inner if before == after => {
                for other in before {
                    for _ in 0..self.sides[1 - port].count(*other) {
                        images.into_iter().for_each(|(kind, row)| self.emission.push(kind, row, *other, 1));
                    }
                }
            }
            // The same left rows lose a match and win one.
            JoinKind::Semi | JoinKind::Anti | JoinKind::Mark if port == 1 && before == after => {}
            JoinKind::Semi if port == 0 && !before.is_empty() && !after.is_empty() => {
                images.into_iter().for_each(|(kind, row)| self.emission.push(kind, row, NONE, 1));
            }
            JoinKind::Anti if port == 0 && before.is_empty() && after.is_empty() => {
                images.into_iter().for_each(|(kind, row)| self.emission.push(kind, row, NONE, 1));
            }
            JoinKind::Mark if port == 0 => {
                self.emission.push_marked(Kind::UpdateBefore, row as u32, NONE, !before.is_empty());
                self.emission.push_marked(Kind::UpdateAfter, row as u32 + 1, NONE, !after.is_empty());
            }
            _ => return false,
        }
        self.sides[port].change(places.rows[row], -1);
        self.sides[port].change(places.rows[row + 1], 1);
        if kind.counts_matches(port) {
            let count = self.count_all(port, after);
            self.sides[port].set_matches(places.rows[row + 1], count);
        }
        true
    }

    /// How many rows these slots of the other side stand for.
    fn count_all(&self, port: Port, others: &[u32]) -> i64 {
        others.iter().map(|other| self.sides[1 - port].count(*other)).sum()
    }

    /// One row of a join that emits pairs, in Flink's order.
    fn apply_to_pairs(&mut self, port: Port, row: u32, slot: u32, sign: i64, others: &[u32]) {
        let (kind, other_port) = (self.parameters.kind, 1 - port);
        let gone = sign < 0;
        let pair = if gone { Kind::Delete } else { Kind::Insert };
        if kind.counts_matches(port) {
            let count = self.count_all(port, others);
            self.sides[port].set_matches(slot, count);
            if others.is_empty() {
                return self.emission.push(pair, row, NONE, 1);
            }
        }
        let pads = kind.pads(other_port);
        // Between two preserved sides all NULLs go before the first pair comes; otherwise pair by pair.
        let first_all = kind.pads(port) || gone;
        if pads && !gone && first_all {
            others.iter().for_each(|other| self.meet(other_port, *other, sign));
        }
        for other in others {
            if pads && !first_all {
                self.meet(other_port, *other, sign);
            }
            self.emission.push(pair, row, *other, self.sides[other_port].count(*other));
        }
        if pads && gone {
            others.iter().for_each(|other| self.meet(other_port, *other, sign));
        }
    }

    /// A preserved row of the other side wins or loses a match: its form beside NULLs goes with the first, and comes
    /// back after the last.
    fn meet(&mut self, other_port: Port, other: u32, sign: i64) {
        let before = self.sides[other_port].add_matches(other, sign);
        let count = self.sides[other_port].count(other);
        if before == 0 {
            self.emission.push(Kind::Delete, NONE, other, count);
        } else if before + sign == 0 {
            self.emission.push(Kind::Insert, NONE, other, count);
        }
    }

    /// One row of a join that emits left rows.
    fn apply_to_left_rows(&mut self, port: Port, row: u32, slot: u32, sign: i64, others: &[u32]) {
        let kind = self.parameters.kind;
        let change = |comes: bool| if comes { Kind::Insert } else { Kind::Delete };
        if port == 0 {
            let count = self.count_all(port, others);
            self.sides[0].set_matches(slot, count);
            let matched = count > 0;
            return match kind {
                JoinKind::Mark => self.emission.push_marked(change(sign > 0), row, NONE, matched),
                _ if matched == (kind == JoinKind::Semi) => self.emission.push(change(sign > 0), row, NONE, 1),
                _ => {}
            };
        }
        for left in others {
            let before = self.sides[0].add_matches(*left, sign);
            let (was, is) = (before > 0, before + sign > 0);
            if was == is {
                continue;
            }
            let copies = self.sides[0].count(*left);
            match kind {
                JoinKind::Mark => {
                    for _ in 0..copies {
                        self.emission.push_marked(Kind::UpdateBefore, NONE, *left, was);
                        self.emission.push_marked(Kind::UpdateAfter, NONE, *left, is);
                    }
                }
                _ => self.emission.push(change(is == (kind == JoinKind::Semi)), NONE, *left, copies),
            }
        }
    }

    fn emit(&mut self, port: Port, batch: &RecordBatch, out: &mut Output) -> Result<()> {
        if self.emission.is_empty() {
            return Ok(());
        }
        let kind = self.parameters.kind;
        let width = |port: Port| if kind.emits_pairs() || port == 0 { self.parameters.inputs[port].width } else { 0 };
        let shape = Shape {
            output: &self.parameters.output,
            arriving_is_left: port == 0,
            arriving_width: width(port),
            other_width: width(1 - port),
            other_schema: &self.parameters.inputs[1 - port].schema,
            marked: kind == JoinKind::Mark,
        };
        out.changes(self.emission.finish(batch, &self.sides[1 - port], &shape)?);
        Ok(())
    }

    /// Brings the lists up to date, and forgets rows and keys that are gone.
    fn settle(&mut self, port: Port, places: &Places) {
        for (key, slot) in places.keys.iter().zip(&places.rows).filter(|(key, _)| **key != NONE) {
            self.sides[port].settle(*slot, *key);
        }
        for key in places.keys.iter().chain(&places.null_key).filter(|key| **key != NONE) {
            self.forget_if_empty(*key);
        }
    }

    fn forget_if_empty(&mut self, key: u32) {
        if self.sides.iter().all(|side| side.is_empty(key)) {
            self.keys.remove(key);
        }
    }
}

impl Operator for Join {
    fn on_changes(&mut self, port: Port, batch: ChangeBatch, out: &mut Output) -> Result<()> {
        let places = self.locate(port, batch.rows())?;
        let mut first = 0;
        while first < batch.len() {
            let matches = self.matches(port, &batch, &places, first)?;
            self.apply(port, &batch, &places, &matches);
            self.emit(port, batch.rows(), out)?;
            first = matches.end();
        }
        self.settle(port, &places);
        Ok(())
    }

    fn on_clock(&mut self, now: ProcessingTime, _out: &mut Output) -> Result<()> {
        for port in 0..2 {
            for key in self.sides[port].expire(now) {
                self.forget_if_empty(key);
            }
        }
        Ok(())
    }

    fn snapshot(&mut self, _at: CheckpointId) -> Result<Snapshot> {
        let base = !std::mem::replace(&mut self.saved, true);
        let [left, right] = &mut self.sides;
        Ok(Snapshot { tables: [left.snapshot(base)?, right.snapshot(base)?].concat() })
    }

    fn restore(&mut self, from: Restored) -> Result<()> {
        let from = from.restrict(self.parameters.key_groups)?;
        self.sides.iter_mut().try_for_each(|side| side.restore(&mut self.keys, &from))?;
        for side in &mut self.sides {
            side.grow_keys(self.keys.capacity());
        }
        for key in self.keys.live_slots() {
            self.forget_if_empty(key);
        }
        Ok(())
    }

    fn state_size(&self) -> Option<StateSize> {
        let rows = self.sides.iter().map(|side| StateSize::new(side.len(), side.bytes())).sum();
        Some([rows, StateSize::new(0, self.keys.bytes())].into_iter().sum())
    }

    fn shrink(&mut self) -> Result<()> {
        self.sides.iter_mut().try_for_each(Side::shrink)?;
        if self.keys.shrink()? {
            self.sides.iter_mut().for_each(Side::shrink_keys);
        }
        Ok(())
    }

    fn counters(&self) -> Vec<(&'static str, u64)> {
        let [left, right] = &self.sides;
        vec![
            ("left_rows", left.len() as u64),
            ("right_rows", right.len() as u64),
            ("unmatched_retractions", self.unmatched),
        ]
    }
}

#[cfg(test)]
mod tests;
