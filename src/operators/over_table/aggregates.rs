//! The aggregates of frames: rows that enter and leave, in one long list, so that columns of them are computed at once.

use arrow::array::{ArrayRef, RecordBatch, UInt32Array};
use arrow::compute::take_record_batch;
use arrow::datatypes::Schema;

use super::super::aggregate::GroupTable;
use crate::changelog::{ChangeBatch, Kind};
use crate::error::Result;
use crate::types::{AggregateCall, AggregateFunction, Frame, FrameBound, FrameCall, FrameFunction};

/// The aggregates, and what is to happen to them.
pub struct Aggregates {
    groups: GroupTable,
    /// Whether between changes each partition's aggregates hold all its rows; if not, none.
    kept: bool,
    rows: Vec<u32>,
    kinds: Vec<Kind>,
}

impl Aggregates {
    /// Of these calls, those that are aggregates.
    ///
    /// # Errors
    /// If an argument's type does not fit.
    pub fn new(input: &Schema, partition: &[usize], frame: Frame, calls: &[FrameCall]) -> Result<Aggregates> {
        let aggregate = |call: &FrameCall| match &call.function {
            FrameFunction::Aggregate(call) => Some(call.clone()),
            _ => None,
        };
        let calls: Vec<AggregateCall> = calls.iter().filter_map(aggregate).collect();
        let from_first = frame.start == FrameBound::UnboundedPreceding && frame.end == FrameBound::CurrentRow;
        let kept = from_first && calls.iter().all(|call| forgets_order(&call.function));
        let groups = GroupTable::new(input, partition, &calls, false)?;
        Ok(Aggregates { groups, kept, rows: Vec::new(), kinds: Vec::new() })
    }

    /// Whether between changes each partition's aggregates hold all its rows.
    pub fn kept(&self) -> bool {
        self.kept
    }

    /// A row enters. Returns the number of this step.
    pub fn enter(&mut self, row: u32) -> u32 {
        self.step(row, Kind::Insert)
    }

    /// A row leaves.
    pub fn leave(&mut self, row: u32) -> u32 {
        self.step(row, Kind::Delete)
    }

    fn step(&mut self, row: u32, kind: Kind) -> u32 {
        self.rows.push(row);
        self.kinds.push(kind);
        self.rows.len() as u32 - 1
    }

    /// Does all steps noted. Gives for each aggregate its values before and after each step, interleaved.
    ///
    /// # Errors
    /// If an aggregate fails on its data.
    pub fn run(&mut self, rows: &RecordBatch) -> Result<Vec<ArrayRef>> {
        let steps = UInt32Array::from(std::mem::take(&mut self.rows));
        let kinds = std::mem::take(&mut self.kinds);
        let changes = ChangeBatch::new(take_record_batch(rows, &steps)?, kinds)?;
        let mut changed = vec![false; changes.len()];
        self.groups.assign(changes.rows())?;
        self.groups.count(changes.kinds());
        let images = self.groups.update_each(changes.rows(), &mut changed)?;
        self.groups.remove_empty();
        Ok(images)
    }

    /// Bytes in use.
    pub fn bytes(&self) -> usize {
        usize::try_from(self.groups.size().bytes).unwrap_or(usize::MAX)
    }

    /// Gives back the memory of many partitions that are all gone.
    ///
    /// # Errors
    /// Only by a bug.
    pub fn shrink(&mut self) -> Result<()> {
        self.groups.shrink().map(drop)
    }

    /// Forgets what is kept of these partitions.
    ///
    /// # Errors
    /// If a partition key has no row form.
    pub fn forget(&mut self, partitions: &[ArrayRef], count: usize) -> Result<()> {
        if self.kept {
            let mut slots = Vec::new();
            self.groups.keys.slots_of(partitions, count, &mut slots)?;
            self.groups.assign_slots(slots.clone());
            slots.into_iter().for_each(|slot| self.groups.remove(slot));
        }
        Ok(())
    }

    /// Takes rows in again after a restart, in their order.
    ///
    /// # Errors
    /// If an aggregate fails on its data.
    pub fn load(&mut self, rows: &RecordBatch) -> Result<()> {
        self.groups.absorb(&ChangeBatch::inserts(rows.clone()))
    }
}

/// Whether the order in which rows entered makes no difference, so that the last one can leave first.
fn forgets_order(function: &AggregateFunction) -> bool {
    use AggregateFunction::{Avg, Count, Max, Min, StandardDeviation, Sum, SumZero, Variance};
    matches!(function, Count | Sum | SumZero | Avg | Min | Max | Variance { .. } | StandardDeviation { .. })
}
