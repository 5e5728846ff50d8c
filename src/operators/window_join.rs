//! Window joins: rows of equal windows and keys, told once, when the watermark passes the window's end.
//!
//! The rows of both inputs wait, window by window. A window that has ended is joined as a whole, from two tables that
//! will not change any more, so nothing is ever taken back: outer and anti joins too only emit. Rows that come after that
//! are late, dropped and counted. The end of the input ends all windows, and that is final too.

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow::array::{ArrayRef, BooleanArray, RecordBatch, RecordBatchOptions};
use arrow::datatypes::{FieldRef, SchemaRef};
use datafusion_physical_expr::PhysicalExpr;

use super::event_time::{milliseconds, restore_closed, restore_watermark, row_times, save_closed, save_watermark};
use super::join::JoinInput;
use super::join_keys::{NONE, null_rows};
use super::lateness::Lateness;
use super::pairs::PairCondition;
use super::{Operator, Output, Port, StateSize, TimeReport};
use crate::changelog::{ChangeBatch, CheckpointId, Watermark};
use crate::error::{Error, Result};
use crate::limits::BATCH_ROWS;
use crate::state::{KeyGroupRange, KeyTable, Restored, RowStore, Snapshot};
use crate::types::{JoinKind, LocalTime, NullKeys};

/// What a window join is made of.
pub struct WindowJoinParameters {
    /// What becomes of rows with and without a match.
    pub kind: JoinKind,
    /// Left, then right; append-only. Start and end of the windows are among the keys.
    pub inputs: [JoinInput; 2],
    /// The columns of the windows' ends.
    pub ends: [usize; 2],
    /// The clock along which windows are cut. Lateness and the saved watermark are in its local time.
    pub clock: LocalTime,
    /// The rest of the condition, over the left input's own columns and then the right's.
    pub condition: Option<Arc<dyn PhysicalExpr>>,
    /// What a NULL among the keys equals: nothing, or NULL.
    pub null_keys: NullKeys,
    /// The columns emitted.
    pub output: SchemaRef,
    /// The key groups of this subtask.
    pub key_groups: KeyGroupRange,
}

/// Joins the rows of equal windows.
pub struct WindowJoin {
    kind: JoinKind,
    inputs: [JoinInput; 2],
    ends: [usize; 2],
    clock: LocalTime,
    condition: Option<PairCondition>,
    null_keys: NullKeys,
    output: SchemaRef,
    key_groups: KeyGroupRange,
    rows: [RowStore; 2],
    /// The rows of the windows that are open, by the windows' end, in order of arrival.
    open: BTreeMap<i64, [Vec<u32>; 2]>,
    mark: Watermark,
    /// The last moment of the last window that the end of the input has closed.
    closed: Watermark,
    late: Lateness,
    saved: bool,
}

/// Rows of both sides, to be emitted beside each other.
#[derive(Default)]
struct Told {
    left: Vec<u32>,
    right: Vec<u32>,
}

impl Told {
    fn push(&mut self, left: u32, right: u32) {
        self.left.push(left);
        self.right.push(right);
    }
}

/// The rows of one side by key.
struct ByKey {
    /// Where the rows of each key begin, and the end of the last.
    starts: Vec<usize>,
    /// Positions among the side's rows, key by key.
    positions: Vec<u32>,
}

impl ByKey {
    fn new(keys: &[u32], known: usize) -> ByKey {
        let mut starts = vec![0; known + 1];
        keys.iter().filter(|key| **key != NONE).for_each(|key| starts[*key as usize + 1] += 1);
        (0..known).for_each(|key| starts[key + 1] += starts[key]);
        let mut next = starts.clone();
        let mut positions = vec![0; starts[known]];
        for (position, key) in keys.iter().enumerate().filter(|(_, key)| **key != NONE) {
            positions[next[*key as usize]] = position as u32;
            next[*key as usize] += 1;
        }
        ByKey { starts, positions }
    }

    fn of(&self, key: u32) -> &[u32] {
        match self.starts.get(key as usize..=key as usize + 1) {
            Some([start, end]) => &self.positions[*start..*end],
            _ => &[],
        }
    }
}

impl WindowJoin {
    /// The operator.
    ///
    /// # Errors
    /// If the keys do not go together.
    pub fn new(parameters: WindowJoinParameters) -> Result<WindowJoin> {
        let WindowJoinParameters { kind, inputs, ends, clock, condition, null_keys, output, key_groups } = parameters;
        if kind == JoinKind::Mark || null_keys == NullKeys::Anything {
            return Err(Error::bug("a window join compares keys"));
        }
        let types = |input: &JoinInput| -> Vec<_> {
            input.keys.iter().map(|key| input.schema.field(*key).data_type().clone()).collect()
        };
        if types(&inputs[0]) != types(&inputs[1]) {
            return Err(Error::bug("the keys of a join have different types"));
        }
        let store = |port: usize, table| {
            let JoinInput { schema, keys, .. }: &JoinInput = &inputs[port];
            RowStore::new(table, Arc::clone(schema), keys.clone())
        };
        let (open, late, saved) = Default::default();
        Ok(WindowJoin {
            rows: [store(0, "left"), store(1, "right")],
            condition: condition.map(|condition| PairCondition::new(condition, &inputs)),
            kind,
            inputs,
            ends,
            clock,
            null_keys,
            output,
            key_groups,
            open,
            mark: Watermark::MIN,
            closed: Watermark::MIN,
            late,
            saved,
        })
    }

    /// The keys of both sides' rows as small numbers, [`NONE`] for one that equals no other; and how many there are.
    fn keys(&self, slots: &[Vec<u32>; 2]) -> Result<([Vec<u32>; 2], usize)> {
        let fields: Vec<FieldRef> =
            self.inputs[0].keys.iter().map(|key| Arc::clone(&self.inputs[0].schema.fields()[*key])).collect();
        let mut table = KeyTable::new(fields)?;
        let mut found: [Vec<u32>; 2] = Default::default();
        for port in [0, 1] {
            let keys: Vec<ArrayRef> = self.rows[port].take_columns(&slots[port], &self.inputs[port].keys)?;
            table.slots_of(&keys, slots[port].len(), &mut found[port])?;
            if self.null_keys == NullKeys::Nothing {
                let nulls = null_rows(&keys);
                let unknown = |row: &usize| nulls.as_ref().is_some_and(|nulls| nulls.is_null(*row));
                (0..found[port].len()).filter(unknown).for_each(|row| found[port][row] = NONE);
            }
        }
        Ok((found, table.capacity()))
    }

    /// Joins the rows of windows that have ended.
    fn join(&self, slots: &[Vec<u32>; 2], out: &mut Output) -> Result<()> {
        let ([left_keys, right_keys], known) = self.keys(slots)?;
        let right = ByKey::new(&right_keys, known);
        let mut matched = vec![false; right_keys.len()];
        let mut first = 0;
        while first < left_keys.len() {
            // As many left rows as give about a batch of pairs.
            let (mut pairs, mut starts, mut end) = (Told::default(), vec![0], first);
            while end < left_keys.len() && pairs.left.len() < BATCH_ROWS {
                let partners = if left_keys[end] == NONE { &[] } else { right.of(left_keys[end]) };
                partners.iter().for_each(|position| pairs.push(end as u32, *position));
                starts.push(pairs.left.len());
                end += 1;
            }
            let holds = self.judge(slots, &pairs)?;
            let mut told = Told::default();
            for (row, span) in (first..end).zip(starts.windows(2)) {
                let mut any = false;
                for pair in (span[0]..span[1]).filter(|pair| holds.as_ref().is_none_or(|holds| holds.value(*pair))) {
                    any = true;
                    matched[pairs.right[pair] as usize] = true;
                    if self.kind.emits_pairs() {
                        told.push(slots[0][row], slots[1][pairs.right[pair] as usize]);
                    }
                }
                let alone = if any { self.kind == JoinKind::Semi } else { self.kind == JoinKind::Anti };
                if alone || (!any && self.kind.pads(0)) {
                    told.push(slots[0][row], NONE);
                }
            }
            self.emit(told, out)?;
            first = end;
        }
        if self.kind.pads(1) {
            let alone = slots[1].iter().zip(&matched).filter(|(_, matched)| !**matched);
            let right: Vec<u32> = alone.map(|(slot, _)| *slot).collect();
            self.emit(Told { left: vec![NONE; right.len()], right }, out)?;
        }
        Ok(())
    }

    /// Whether the rest of the condition holds of each pair; `None`: of all.
    fn judge(&self, slots: &[Vec<u32>; 2], pairs: &Told) -> Result<Option<BooleanArray>> {
        let Some(condition) = self.condition.as_ref().filter(|_| !pairs.left.is_empty()) else { return Ok(None) };
        let side = |port: usize, positions: &[u32]| {
            let rows: Vec<u32> = positions.iter().map(|position| slots[port][*position as usize]).collect();
            self.rows[port].take(&rows, self.inputs[port].width)
        };
        Ok(Some(condition.judge(side(0, &pairs.left)?, side(1, &pairs.right)?, pairs.left.len())?))
    }

    fn emit(&self, told: Told, out: &mut Output) -> Result<()> {
        if told.left.is_empty() {
            return Ok(());
        }
        let mut columns = self.rows[0].take(&told.left, self.inputs[0].width)?;
        if self.kind.emits_pairs() {
            columns.extend(self.rows[1].take(&told.right, self.inputs[1].width)?);
        }
        let options = RecordBatchOptions::new().with_row_count(Some(told.left.len()));
        let rows = RecordBatch::try_new_with_options(Arc::clone(&self.output), columns, &options)?;
        out.changes(ChangeBatch::inserts(rows));
        Ok(())
    }
}

impl Operator for WindowJoin {
    fn on_changes(&mut self, port: Port, batch: ChangeBatch, _out: &mut Output) -> Result<()> {
        let ends = row_times(batch.rows(), self.ends[port])?;
        let passed = self.mark.max(self.closed).0;
        let mut kept: Vec<u32> = Vec::with_capacity(batch.len());
        for (row, end) in ends.values().iter().enumerate() {
            if end - 1 > passed {
                kept.push(row as u32);
            } else {
                self.late.record(passed, end - 1);
            }
        }
        let mut slots = Vec::new();
        self.rows[port].insert(batch.rows(), &kept, &mut slots)?;
        for (row, slot) in kept.into_iter().zip(slots) {
            self.open.entry(ends.value(row as usize)).or_default()[port].push(slot);
        }
        self.rows[port].compact()
    }

    fn on_watermark(&mut self, mark: Watermark, out: &mut Output) -> Result<()> {
        let passed = self.clock.complete(mark.0);
        if mark == Watermark::MAX {
            let last = self.open.last_key_value().map_or(Watermark::MIN, |(end, _)| Watermark(end - 1));
            self.closed = self.closed.max(last);
        } else {
            self.mark = self.mark.max(Watermark(passed));
        }
        while let Some(window) = self.open.first_entry().filter(|window| window.key() - 1 <= passed) {
            let slots = window.remove();
            self.join(&slots, out)?;
            for (rows, slots) in self.rows.iter_mut().zip(slots) {
                slots.into_iter().for_each(|slot| rows.release(slot));
            }
        }
        self.rows.iter_mut().try_for_each(RowStore::compact)?;
        out.watermark(mark);
        Ok(())
    }

    fn snapshot(&mut self, _at: CheckpointId) -> Result<Snapshot> {
        let base = !std::mem::replace(&mut self.saved, true);
        let [left, right] = &mut self.rows;
        let tables =
            vec![left.snapshot(base)?, right.snapshot(base)?, save_watermark(self.mark)?, save_closed(self.closed)?];
        Ok(Snapshot { tables })
    }

    fn restore(&mut self, from: Restored) -> Result<()> {
        let from = from.restrict(self.key_groups)?;
        self.mark = restore_watermark(&from)?;
        self.closed = restore_closed(&from)?;
        for port in [0, 1] {
            self.rows[port].restore(&from)?;
            let slots = self.rows[port].live_slots();
            let ends = milliseconds(&self.rows[port].take_columns(&slots, &[self.ends[port]])?.remove(0))?;
            for (slot, end) in slots.into_iter().zip(ends.values()) {
                self.open.entry(*end).or_default()[port].push(slot);
            }
        }
        Ok(())
    }

    fn state_size(&self) -> Option<StateSize> {
        Some(self.rows.iter().map(|rows| StateSize::new(rows.len(), rows.bytes())).sum())
    }

    fn shrink(&mut self) -> Result<()> {
        self.rows.iter_mut().for_each(RowStore::shrink);
        Ok(())
    }

    fn counters(&self) -> Vec<(&'static str, u64)> {
        vec![
            ("left_rows", self.rows[0].len() as u64),
            ("right_rows", self.rows[1].len() as u64),
            ("late_rows", self.late.rows()),
        ]
    }

    fn time_report(&self) -> TimeReport {
        TimeReport {
            lateness: self.late.clone(),
            next_close: self.open.keys().next().map(|end| self.clock.instant(end - 1)),
            ..TimeReport::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use datafusion_expr::Operator as Binary;
    use datafusion_physical_expr::expressions::{BinaryExpr, Column};

    use super::*;
    use crate::operators::testing::{changes, check, emitted, saved, schema};

    /// Joins `k BIGINT, e TS, v BIGINT` with the same, on `k` and the window's end `e`.
    fn join(kind: JoinKind, less: bool) -> WindowJoin {
        let input = schema("k BIGINT, e TS, v BIGINT");
        let side = JoinInput { schema: Arc::clone(&input), keys: vec![0, 1], width: 3 };
        let column = |index| -> Arc<dyn PhysicalExpr> { Arc::new(Column::new("v", index)) };
        let condition = || -> Arc<dyn PhysicalExpr> { Arc::new(BinaryExpr::new(column(2), Binary::Lt, column(5))) };
        let output = match kind.emits_pairs() {
            true => schema("k BIGINT, e TS, v BIGINT, k2 BIGINT, e2 TS, v2 BIGINT"),
            false => input,
        };
        WindowJoin::new(WindowJoinParameters {
            kind,
            inputs: [side.clone(), side],
            ends: [1, 1],
            clock: LocalTime::default(),
            condition: less.then(condition),
            null_keys: NullKeys::Nothing,
            output,
            key_groups: KeyGroupRange::ALL,
        })
        .unwrap()
    }

    fn feed(join: &mut WindowJoin, port: Port, text: &str) {
        let rows = changes(&schema("k BIGINT, e TS, v BIGINT"), text);
        join.on_changes(port, rows, &mut Output::default()).unwrap();
    }

    fn pass(join: &mut WindowJoin, mark: Watermark) -> Vec<String> {
        let mut out = Output::default();
        join.on_watermark(mark, &mut out).unwrap();
        emitted(&mut out)
    }

    const LEFT: &str = "+I 1 10 1\n+I 1 10 5\n+I 2 10 1\n+I _ 10 7\n+I 1 20 1";
    const RIGHT: &str = "+I 1 10 3\n+I 1 10 4\n+I 3 10 9\n+I _ 10 8\n+I 1 20 0";

    #[test]
    fn a_window_is_told_once_it_has_ended_and_nothing_is_kept_of_it() {
        let mut full = join(JoinKind::Full, true);
        feed(&mut full, 0, LEFT);
        feed(&mut full, 1, RIGHT);
        check(&pass(&mut full, Watermark(8)), "W 8");
        check(
            &pass(&mut full, Watermark(9)),
            "+I[1, 10, 1, 1, 10, 3]
             +I[1, 10, 1, 1, 10, 4]
             +I[1, 10, 5, NULL, NULL, NULL]
             +I[2, 10, 1, NULL, NULL, NULL]
             +I[NULL, 10, 7, NULL, NULL, NULL]
             +I[NULL, NULL, NULL, 3, 10, 9]
             +I[NULL, NULL, NULL, NULL, 10, 8]
             W 9",
        );
        feed(&mut full, 1, "+I 1 10 6");
        assert_eq!(full.counters(), [("left_rows", 1), ("right_rows", 1), ("late_rows", 1)]);
        check(
            &pass(&mut full, Watermark::MAX),
            "+I[1, 20, 1, NULL, NULL, NULL]\n+I[NULL, NULL, NULL, 1, 20, 0]\nW 9223372036854775807",
        );
        assert_eq!(full.counters()[0], ("left_rows", 0));
    }

    #[test]
    fn every_kind_gives_its_rows() {
        let inner = "+I[1, 10, 1, 1, 10, 3]\n+I[1, 10, 1, 1, 10, 4]";
        let cases = [
            (JoinKind::Inner, inner.to_string()),
            (JoinKind::Semi, "+I[1, 10, 1]".to_string()),
            (JoinKind::Anti, "+I[1, 10, 5]\n+I[2, 10, 1]\n+I[NULL, 10, 7]".to_string()),
            (JoinKind::Right, format!("{inner}\n+I[NULL, NULL, NULL, 3, 10, 9]\n+I[NULL, NULL, NULL, NULL, 10, 8]")),
        ];
        for (kind, expected) in cases {
            let mut operator = join(kind, true);
            feed(&mut operator, 0, LEFT);
            feed(&mut operator, 1, RIGHT);
            check(&pass(&mut operator, Watermark(9)), &format!("{expected}\nW 9"));
        }
    }

    #[test]
    fn open_windows_survive_restarts_and_those_that_the_end_has_closed_stay_closed() {
        let mut first = join(JoinKind::Left, false);
        feed(&mut first, 0, "+I 1 10 1\n+I 2 20 2");
        let mut snapshots = vec![first.snapshot(1).unwrap()];
        feed(&mut first, 1, "+I 2 20 3\n+I 1 10 9");
        pass(&mut first, Watermark(10));
        snapshots.push(first.snapshot(2).unwrap());
        let mut second = join(JoinKind::Left, false);
        second.restore(saved(&snapshots)).unwrap();
        feed(&mut second, 0, "+I 2 20 4\n+I 1 10 5");
        check(
            &pass(&mut second, Watermark::MAX),
            "+I[2, 20, 2, 2, 20, 3]\n+I[2, 20, 4, 2, 20, 3]\nW 9223372036854775807",
        );
        let mut third = join(JoinKind::Left, false);
        third.restore(saved(&[second.snapshot(3).unwrap()])).unwrap();
        feed(&mut third, 0, "+I 1 20 1\n+I 1 30 1");
        check(&pass(&mut third, Watermark::MAX), "+I[1, 30, 1, NULL, NULL, NULL]\nW 9223372036854775807");
    }

    #[test]
    fn a_row_with_more_matches_than_a_batch_meets_them_all() {
        let mut inner = join(JoinKind::Left, false);
        let rows: Vec<String> = (0..9_000).map(|value| format!("+I 1 10 {value}")).collect();
        feed(&mut inner, 1, &rows.join("\n"));
        feed(&mut inner, 0, "+I 1 10 0\n+I 1 10 1\n+I 2 10 1");
        assert_eq!(pass(&mut inner, Watermark(9)).len(), 18_002);
    }
}
