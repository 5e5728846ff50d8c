//! What travels on an edge between two operators.

use super::ChangeBatch;

/// Number of a checkpoint; it only grows and is never used twice.
pub type CheckpointId = u64;

/// "No row with an event time at or before this comes any more": milliseconds since the epoch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Watermark(pub i64);

impl Watermark {
    /// Before all time: nothing has been promised.
    pub const MIN: Watermark = Watermark(i64::MIN);
    /// After all time: the input has ended.
    pub const MAX: Watermark = Watermark(i64::MAX);
}

/// One message on an edge.
#[derive(Debug, Clone)]
pub enum Event {
    /// Rows.
    Changes(ChangeBatch),
    /// Event time has come this far; never goes back.
    Watermark(Watermark),
    /// The sender has no rows at present and does not hold back event time until its next change or watermark.
    Idle,
    /// Everything before belongs to this checkpoint, everything after does not.
    Barrier(CheckpointId),
    /// Nothing comes any more.
    End,
}
