//! What one subtask tells of its time: when rows last came, whether it waits for somebody, and what it knows of event
//! time. `diagnosis` makes sentences of it.

use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::sync::{Mutex, PoisonError};

use crate::operators::TimeReport;

/// No moment.
const NEVER: i64 = i64::MIN;

/// Written by the subtask's task, read by anybody.
#[derive(Debug)]
pub struct TimeMetrics {
    /// Processing time at which rows last came.
    last_rows: AtomicI64,
    /// Processing time since which it has been waiting for room behind it.
    blocked_since: AtomicI64,
    /// Whether it counts as idle.
    idle: AtomicBool,
    /// Whether all its input has been processed.
    ended: AtomicBool,
    /// Written now and then, so a lock costs nothing.
    known: Mutex<Known>,
}

/// What changes seldom.
#[derive(Debug, Clone, Default)]
struct Known {
    report: TimeReport,
    splits: Vec<String>,
}

/// The state of one subtask at a moment.
#[derive(Debug, Clone, Default)]
pub struct TimeState {
    /// Processing time at which rows last came.
    pub last_rows: Option<i64>,
    /// Processing time since which it has been waiting for room behind it.
    pub blocked_since: Option<i64>,
    /// Whether it counts as idle.
    pub idle: bool,
    /// Whether all its input has been processed.
    pub ended: bool,
    /// What its operator knows of event time.
    pub report: TimeReport,
    /// The splits it reads, of a source.
    pub splits: Vec<String>,
}

impl Default for TimeMetrics {
    fn default() -> TimeMetrics {
        TimeMetrics {
            last_rows: AtomicI64::new(NEVER),
            blocked_since: AtomicI64::new(NEVER),
            idle: AtomicBool::new(false),
            ended: AtomicBool::new(false),
            known: Mutex::default(),
        }
    }
}

impl TimeMetrics {
    /// Rows have come at `now`.
    pub fn rows_came(&self, now: i64) {
        self.last_rows.store(now, Ordering::Relaxed);
    }

    /// It begins to wait for room, or has got it.
    pub fn blocked(&self, since: Option<i64>) {
        self.blocked_since.store(since.unwrap_or(NEVER), Ordering::Relaxed);
    }

    /// It counts as idle from now on, or no longer.
    pub fn set_idle(&self, idle: bool) {
        self.idle.store(idle, Ordering::Relaxed);
    }

    /// Whether it counts as idle.
    pub fn is_idle(&self) -> bool {
        self.idle.load(Ordering::Relaxed)
    }

    /// All its input has been processed.
    pub fn end(&self) {
        self.ended.store(true, Ordering::Relaxed);
    }

    /// Takes over what the operator knows of event time.
    pub fn set_report(&self, report: TimeReport) {
        self.known.lock().unwrap_or_else(PoisonError::into_inner).report = report;
    }

    /// Takes over the names of the splits it reads.
    pub fn set_splits(&self, splits: Vec<String>) {
        self.known.lock().unwrap_or_else(PoisonError::into_inner).splits = splits;
    }

    /// As it is now.
    pub fn state(&self) -> TimeState {
        let moment = |at: &AtomicI64| Some(at.load(Ordering::Relaxed)).filter(|at| *at != NEVER);
        let Known { report, splits } = self.known.lock().unwrap_or_else(PoisonError::into_inner).clone();
        TimeState {
            last_rows: moment(&self.last_rows),
            blocked_since: moment(&self.blocked_since),
            idle: self.is_idle(),
            ended: self.ended.load(Ordering::Relaxed),
            report,
            splits,
        }
    }
}
