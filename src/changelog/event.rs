//! What travels on an edge between two operators.

use super::ChangeBatch;

/// Number of a checkpoint; it only grows and is never used twice.
pub type CheckpointId = u64;

/// A cut through the job: what sources deliver before it, and everything that comes of it, lies before it on every edge.
/// In the order in which they are made.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Cut {
    /// The checkpoint that is taken at it, or the last one before it.
    pub checkpoint: CheckpointId,
    /// 0 for a checkpoint; else the number of a cut at which results only become visible.
    pub point: u64,
}

impl Cut {
    /// The cut of a checkpoint.
    pub fn of_checkpoint(checkpoint: CheckpointId) -> Cut {
        Cut { checkpoint, point: 0 }
    }

    /// The checkpoint that is taken at it.
    pub fn checkpoint(self) -> Option<CheckpointId> {
        (self.point == 0).then_some(self.checkpoint)
    }
}

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
    /// Everything before lies before this cut, everything after does not.
    Barrier(Cut),
    /// Nothing comes any more.
    End,
}
