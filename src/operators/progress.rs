//! How far event time has come for an operator over windows, and what the end of the input has made final.

use super::event_time::{restore_closed, restore_watermark, save_closed, save_watermark};
use crate::changelog::Watermark;
use crate::error::Result;
use crate::state::{Restored, TableDelta};

/// Event time so far.
///
/// The end of the input is no watermark of the rows: over files that have grown, the same job goes on behind the last
/// moment that was open then, and rows for what comes after are not late.
#[derive(Debug)]
pub(super) struct Progress {
    mark: Watermark,
    closed: Watermark,
}

impl Default for Progress {
    fn default() -> Progress {
        Progress { mark: Watermark::MIN, closed: Watermark::MIN }
    }
}

impl Progress {
    /// The watermark of the rows, by the clock of the windows.
    pub fn mark(&self) -> i64 {
        self.mark.0
    }

    /// What ends at this moment or before is closed, if windows stay open `lateness_ms` after their end.
    pub fn passed(&self, lateness_ms: i64) -> i64 {
        self.mark.0.saturating_sub(lateness_ms).max(self.closed.0)
    }

    /// A watermark has come, which is `passed` by the clock of the windows; `last` is the last moment of any open one.
    pub fn advance(&mut self, mark: Watermark, passed: i64, last: Option<i64>) {
        if mark == Watermark::MAX {
            self.closed = self.closed.max(last.map_or(Watermark::MIN, Watermark));
        } else {
            self.mark = self.mark.max(Watermark(passed));
        }
    }

    /// As tables of a snapshot.
    ///
    /// # Errors
    /// Only by a bug.
    pub fn save(&self) -> Result<Vec<TableDelta>> {
        Ok(vec![save_watermark(self.mark)?, save_closed(self.closed)?])
    }

    /// Out of what all former subtasks saved.
    ///
    /// # Errors
    /// If the saved rows do not fit.
    pub fn restore(from: &Restored) -> Result<Progress> {
        Ok(Progress { mark: restore_watermark(from)?, closed: restore_closed(from)? })
    }
}
