//! Operators: one synchronous state machine per file.
//!
//! An operator is handed changes, watermarks and barriers by the runtime and answers through an [`Output`]. It never
//! waits, reads no clock and touches no disk; whatever it remembers lives in `state` and comes out in
//! [`Operator::snapshot`]. A life, told as calls:
//!
//! ```text
//! restore(saved)                      at most once, first; absent on a fresh start
//! on_changes(port, batch)             any number of times, mixed with the following
//! on_watermark(mark)                  already merged over the ports by the runtime; never goes back
//! on_clock(now)                       when processing time has moved; bundles close, timers fire
//! before_barrier() then snapshot(id)  at a checkpoint; what the first emits still belongs to the checkpoint
//! on_end(port)                        once per port; after the last one everything that waits is emitted
//! ```
//!
//! To add an operator: a file here, a node in `plan/stream.rs`, an arm in `runtime/build.rs`, a test.

mod aggregate;
mod calc;
mod changelog_normalize;
mod consistent_output;
mod consolidate;
mod current_watermark;
mod deadlines;
mod drop_update_before;
mod event_time;
mod expand;
mod expression;
mod group_aggregate;
mod images;
mod interval_join;
mod join;
mod join_keys;
mod keep_first;
mod late_mark;
mod lateness;
mod lifetimes;
mod local_aggregate;
mod over;
mod over_table;
mod pairs;
mod progress;
mod rank;
mod session_aggregate;
mod session_assign;
mod sessions;
mod set_operation;
mod sort;
mod temporal_join;
mod temporal_sort;
mod unnest;
mod upsert_materialize;
mod watermark_assigner;
mod window;
mod window_aggregate;
mod window_assign;
mod window_join;
mod window_rank;
mod window_slices;
mod window_tables;
mod window_updates;

#[cfg(test)]
mod state_tests;
#[cfg(test)]
mod testing;

pub use calc::Calc;
pub use changelog_normalize::ChangelogNormalize;
pub use consistent_output::ConsistentOutput;
pub use consolidate::Consolidate;
pub use current_watermark::CurrentWatermark;
pub use drop_update_before::DropUpdateBefore;
pub use expand::Expand;
pub use group_aggregate::{GroupAggregate, GroupAggregateParameters};
pub use interval_join::{IntervalJoin, IntervalJoinParameters};
pub use join::{Join, JoinInput, JoinParameters};
pub use keep_first::KeepFirst;
pub use late_mark::LateMark;
pub use lateness::Lateness;
pub use local_aggregate::LocalAggregate;
pub use over::{Over, OverParameters};
pub use over_table::{OverTable, OverTableParameters};
pub use rank::{Rank, RankParameters};
pub use session_aggregate::SessionAggregate;
pub use session_assign::{SessionAssign, SessionAssignParameters};
pub use set_operation::CountedSet;
pub use sort::Sort;
pub use temporal_join::{TemporalJoin, TemporalJoinParameters};
pub use temporal_sort::TemporalSort;
pub use unnest::{Unnest, UnnestParameters};
pub use upsert_materialize::{UpsertMaterialize, UpsertMaterializeParameters};
pub use watermark_assigner::WatermarkAssigner;
pub use window_aggregate::{WindowAggregate, WindowAggregateParameters};
pub use window_assign::WindowAssign;
pub use window_join::{WindowJoin, WindowJoinParameters};
pub use window_rank::{WindowRank, WindowRankParameters};
pub use window_slices::SlicedWindowAggregate;
pub use window_updates::UpdatingWindowAggregate;

use crate::changelog::{ChangeBatch, CheckpointId, Event, Watermark};
use crate::error::Result;
use crate::state::{Restored, Snapshot};

/// Which input of an operator: 0 for the first.
pub type Port = usize;

/// Milliseconds since the epoch on the job's clock.
pub type ProcessingTime = i64;

/// A synchronous state machine between edges.
pub trait Operator: Send {
    /// Rows have come on `port`.
    ///
    /// # Errors
    /// Bad data (an expression that fails, a delete without its insert): the job ends with it.
    fn on_changes(&mut self, port: Port, batch: ChangeBatch, out: &mut Output) -> Result<()>;

    /// Event time has moved to `mark` on every active input.
    ///
    /// # Errors
    /// As for [`Operator::on_changes`].
    fn on_watermark(&mut self, mark: Watermark, out: &mut Output) -> Result<()> {
        out.watermark(mark);
        Ok(())
    }

    /// Processing time has moved to `now`. Called at least every few hundred milliseconds, and before each batch.
    ///
    /// # Errors
    /// As for [`Operator::on_changes`].
    fn on_clock(&mut self, _now: ProcessingTime, _out: &mut Output) -> Result<()> {
        Ok(())
    }

    /// A barrier is about to pass: bundles that belong before it are emitted.
    ///
    /// # Errors
    /// As for [`Operator::on_changes`].
    fn before_barrier(&mut self, _out: &mut Output) -> Result<()> {
        Ok(())
    }

    /// `port` has ended; a `Watermark::MAX` has come before the last end.
    ///
    /// # Errors
    /// As for [`Operator::on_changes`].
    fn on_end(&mut self, _port: Port, _out: &mut Output) -> Result<()> {
        Ok(())
    }

    /// What is remembered, for checkpoint `at`: only what changed since the last call where the table allows it.
    ///
    /// # Errors
    /// As for [`Operator::on_changes`].
    fn snapshot(&mut self, _at: CheckpointId) -> Result<Snapshot> {
        Ok(Snapshot::empty())
    }

    /// Takes back what snapshots held. Called once, before anything else.
    ///
    /// # Errors
    /// If the saved state does not fit this operator.
    fn restore(&mut self, from: Restored) -> Result<()> {
        from.expect_empty()
    }

    /// How much is remembered now; `None` for an operator that remembers nothing.
    fn state_size(&self) -> Option<StateSize> {
        None
    }

    /// Gives back the memory of what is gone. Called now and then, between other calls.
    ///
    /// # Errors
    /// Only by a bug.
    fn shrink(&mut self) -> Result<()> {
        Ok(())
    }

    /// Counts to show to people, e.g. late rows dropped; names are stable.
    fn counters(&self) -> Vec<(&'static str, u64)> {
        Vec::new()
    }

    /// What it knows of event time, for people who wonder where their rows are.
    fn time_report(&self) -> TimeReport {
        TimeReport::default()
    }
}

/// What an operator knows of event time.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TimeReport {
    /// How late the rows were that it dropped as late.
    pub lateness: Lateness,
    /// The greatest event time of a row, of an operator that derives watermarks.
    pub newest: Option<i64>,
    /// By how much the event time of a row was ahead of the clock at most, in milliseconds; 0 if none was.
    pub ahead_ms: u64,
    /// The watermark that closes the next window, as an instant.
    pub next_close: Option<i64>,
}

/// How much an operator remembers.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct StateSize {
    /// Keys: of groups, partitions, windows' groups; of an operator that keeps rows, rows.
    pub keys: u64,
    /// Bytes in memory, more or less.
    pub bytes: u64,
}

impl StateSize {
    /// So many keys in so many bytes.
    pub fn new(keys: usize, bytes: usize) -> StateSize {
        StateSize { keys: keys as u64, bytes: bytes as u64 }
    }
}

/// How many bytes `count` values take, of some of which the bytes are given: the first stand for all.
fn bytes_of_all(bytes: impl Iterator<Item = usize>, count: usize) -> usize {
    const LOOKED_AT: usize = 1_024;
    let (looked_at, sum) = bytes.take(LOOKED_AT).fold((0, 0), |(values, sum), bytes| (values + 1, sum + bytes));
    (sum * count).checked_div(looked_at).unwrap_or(0)
}

impl std::iter::Sum for StateSize {
    fn sum<I: Iterator<Item = StateSize>>(sizes: I) -> StateSize {
        sizes.fold(StateSize::default(), |all, size| StateSize {
            keys: all.keys + size.keys,
            bytes: all.bytes + size.bytes,
        })
    }
}

/// Where an operator puts what it emits: changes and watermarks, in order.
///
/// It holds the watermark promise by construction: a watermark that does not advance is not sent.
#[derive(Debug)]
pub struct Output {
    events: Vec<Event>,
    watermark: Watermark,
}

impl Default for Output {
    fn default() -> Output {
        Output { events: Vec::new(), watermark: Watermark::MIN }
    }
}

impl Output {
    /// Emits rows; an empty batch is dropped.
    pub fn changes(&mut self, batch: ChangeBatch) {
        if !batch.is_empty() {
            self.events.push(Event::Changes(batch));
        }
    }

    /// Emits a watermark, if it advances.
    pub fn watermark(&mut self, mark: Watermark) {
        if mark > self.watermark {
            self.watermark = mark;
            self.events.push(Event::Watermark(mark));
        }
    }

    /// The last watermark emitted.
    pub fn current_watermark(&self) -> Watermark {
        self.watermark
    }

    /// Takes what has been emitted since the last call.
    pub fn drain(&mut self) -> std::vec::Drain<'_, Event> {
        self.events.drain(..)
    }
}
