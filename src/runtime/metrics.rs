//! What a running job counts, for progress lines, reports and people who look for the slow operator.

use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use super::time_metrics::TimeMetrics;
use crate::connectors::Progress;
use crate::operators::Lateness;
use crate::operators::StateSize;

/// The counts of one operator subtask; written by its task, read by anybody.
#[derive(Debug)]
pub struct SubtaskMetrics {
    /// Rows that came.
    pub rows_in: AtomicU64,
    /// Rows that went.
    pub rows_out: AtomicU64,
    /// The last watermark emitted.
    pub watermark: AtomicI64,
    /// When rows came, whom it waits for, what it knows of event time.
    pub time: TimeMetrics,
    /// Nanoseconds spent in the operator itself.
    busy: AtomicU64,
    /// The operator's own counters, and a reader's progress: written now and then, so a lock costs nothing.
    details: Mutex<Details>,
}

#[derive(Debug, Default)]
struct Details {
    counters: Vec<(&'static str, u64)>,
    state: Option<StateSize>,
    progress: Progress,
}

impl Default for SubtaskMetrics {
    fn default() -> SubtaskMetrics {
        SubtaskMetrics {
            rows_in: AtomicU64::new(0),
            rows_out: AtomicU64::new(0),
            watermark: AtomicI64::new(i64::MIN),
            time: TimeMetrics::default(),
            busy: AtomicU64::new(0),
            details: Mutex::default(),
        }
    }
}

impl SubtaskMetrics {
    /// Counts rows that came.
    pub fn add_in(&self, rows: usize) {
        self.rows_in.fetch_add(rows as u64, Ordering::Relaxed);
    }

    /// Counts rows that went.
    pub fn add_out(&self, rows: usize) {
        self.rows_out.fetch_add(rows as u64, Ordering::Relaxed);
    }

    /// Counts time spent in the operator itself.
    pub fn add_busy(&self, time: Duration) {
        self.busy.fetch_add(u64::try_from(time.as_nanos()).unwrap_or(u64::MAX), Ordering::Relaxed);
    }

    /// Takes over how much the operator remembers.
    pub fn set_state(&self, state: Option<StateSize>) {
        self.details.lock().unwrap_or_else(PoisonError::into_inner).state = state;
    }

    /// Takes over the operator's counters.
    pub fn set_counters(&self, counters: Vec<(&'static str, u64)>) {
        self.details.lock().unwrap_or_else(PoisonError::into_inner).counters = counters;
    }

    /// Takes over a reader's progress.
    pub fn set_progress(&self, progress: Progress) {
        self.details.lock().unwrap_or_else(PoisonError::into_inner).progress = progress;
    }

    fn details<T>(&self, read: impl FnOnce(&Details) -> T) -> T {
        read(&self.details.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// The counts of one operator over all its subtasks.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct OperatorMetrics {
    /// Its uid.
    pub uid: String,
    /// What it is.
    pub description: String,
    /// Subtasks.
    pub parallelism: usize,
    /// Rows that came.
    pub rows_in: u64,
    /// Rows that went.
    pub rows_out: u64,
    /// The lowest watermark of its subtasks, in milliseconds since the epoch; `None` before the first.
    pub watermark: Option<i64>,
    /// Its own counters by name (`late_rows`).
    pub counters: Vec<(String, u64)>,
    /// How late the latest row was that it dropped as late, in milliseconds; 0 if none was.
    pub latest_row_ms: u64,
    /// Bytes of its state in the last checkpoint; `None` without checkpoints.
    pub state_bytes: Option<u64>,
    /// Keys it remembers (groups, partitions; rows where rows are kept), as of a moment ago; `None` if it remembers nothing.
    pub state_keys: Option<u64>,
    /// Bytes of memory that takes, more or less.
    pub memory_bytes: Option<u64>,
    /// Time spent in the operator itself, over all its subtasks.
    pub busy: Duration,
}

/// Which operators a job has, and where their counts are.
#[derive(Debug, Default, Clone)]
pub struct Registry {
    operators: Vec<(String, String, Role, Vec<Arc<SubtaskMetrics>>)>,
}

/// Whether an operator stands at an edge of the job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// Reads from outside.
    Source,
    /// Neither.
    Inner,
    /// Writes to outside.
    Sink,
}

/// Sums over a whole job.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Totals {
    /// Rows read by all sources.
    pub rows_read: u64,
    /// Rows written by all sinks.
    pub rows_written: u64,
    /// Rows dropped as late.
    pub late_rows: u64,
    /// How late they were.
    pub lateness: Lateness,
    /// Rows dropped because they have no event time.
    pub null_event_times: u64,
    /// Rows dropped because their event time is too far ahead of the clock.
    pub rows_ahead: u64,
    /// How far an event time was ahead of the clock at most, in milliseconds.
    pub ahead_ms: u64,
    /// Records skipped as malformed.
    pub skipped_rows: u64,
    /// Bytes read.
    pub bytes_read: u64,
    /// Bytes there are to read, if every reader knows.
    pub total_bytes: Option<u64>,
}

impl Registry {
    /// Adds an operator; gives the counts of each subtask.
    pub fn add(&mut self, uid: &str, description: &str, role: Role, parallelism: usize) -> Vec<Arc<SubtaskMetrics>> {
        let subtasks: Vec<Arc<SubtaskMetrics>> = (0..parallelism).map(|_| Arc::default()).collect();
        self.operators.push((uid.to_owned(), description.to_owned(), role, subtasks.clone()));
        subtasks
    }

    /// The counts by operator, in the order of the plan.
    pub fn operators(&self) -> Vec<OperatorMetrics> {
        let sum = |subtasks: &[Arc<SubtaskMetrics>], count: fn(&SubtaskMetrics) -> &AtomicU64| {
            subtasks.iter().map(|subtask| count(subtask).load(Ordering::Relaxed)).sum()
        };
        let describe = |(uid, description, _, subtasks): &(String, String, Role, Vec<Arc<SubtaskMetrics>>)| {
            let watermark = subtasks.iter().map(|subtask| subtask.watermark.load(Ordering::Relaxed)).min();
            let mut counters: Vec<(String, u64)> = Vec::new();
            for (name, count) in subtasks.iter().flat_map(|subtask| subtask.details(|details| details.counters.clone()))
            {
                match counters.iter_mut().find(|(known, _)| known == name) {
                    Some((_, total)) => *total += count,
                    None => counters.push((name.to_owned(), count)),
                }
            }
            let states = subtasks.iter().map(|subtask| subtask.details(|details| details.state));
            let state: Option<StateSize> = states.sum();
            let latest = subtasks.iter().map(|subtask| subtask.time.state().report.lateness.max_ms());
            OperatorMetrics {
                uid: uid.clone(),
                description: description.clone(),
                parallelism: subtasks.len(),
                rows_in: sum(subtasks, |subtask| &subtask.rows_in),
                rows_out: sum(subtasks, |subtask| &subtask.rows_out),
                watermark: watermark.filter(|mark| *mark != i64::MIN),
                counters,
                latest_row_ms: latest.max().unwrap_or(0),
                state_bytes: None,
                state_keys: state.map(|state| state.keys),
                memory_bytes: state.map(|state| state.bytes),
                busy: Duration::from_nanos(sum(subtasks, |subtask| &subtask.busy)),
            }
        };
        self.operators.iter().map(describe).collect()
    }

    /// The subtasks' counts by operator, in the order of the plan.
    pub fn subtasks(&self) -> impl Iterator<Item = &[Arc<SubtaskMetrics>]> {
        self.operators.iter().map(|(.., subtasks)| subtasks.as_slice())
    }

    /// The sums over the job.
    pub fn totals(&self) -> Totals {
        let mut totals = Totals::default();
        let mut all_known = true;
        for (_, _, role, subtasks) in &self.operators {
            for subtask in subtasks {
                let counted = |details: &Details, wanted: &str| {
                    details.counters.iter().filter(|(name, _)| *name == wanted).map(|(_, count)| count).sum::<u64>()
                };
                let progress = subtask.details(|details| {
                    totals.late_rows += counted(details, "late_rows");
                    totals.null_event_times += counted(details, "null_event_times");
                    totals.rows_ahead += counted(details, "rows_ahead_of_the_clock");
                    details.progress
                });
                let report = subtask.time.state().report;
                totals.lateness.merge(&report.lateness);
                totals.ahead_ms = totals.ahead_ms.max(report.ahead_ms);
                match role {
                    Role::Source => {
                        totals.rows_read += subtask.rows_out.load(Ordering::Relaxed);
                        totals.skipped_rows += progress.skipped_rows;
                        totals.bytes_read += progress.bytes;
                        all_known &= progress.total_bytes.is_some();
                        totals.total_bytes = Some(totals.total_bytes.unwrap_or(0) + progress.total_bytes.unwrap_or(0));
                    }
                    Role::Sink => totals.rows_written += subtask.rows_in.load(Ordering::Relaxed),
                    Role::Inner => {}
                }
            }
        }
        totals.total_bytes = totals.total_bytes.filter(|_| all_known);
        totals
    }
}
