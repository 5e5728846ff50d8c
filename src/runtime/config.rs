//! What a job is started with.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use crate::catalog::TableDefinition;
use crate::connectors::{ConnectorContext, Console, Sink, Source};
use crate::error::Result;

/// Where a job gets the time of day from.
pub trait Clock: Send + Sync {
    /// Milliseconds since the epoch.
    fn now_ms(&self) -> i64;
}

/// The clock of this machine.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    fn now_ms(&self) -> i64 {
        // A clock set before 1970 or beyond the year 292 million counts as the epoch.
        SystemTime::now().duration_since(UNIX_EPOCH).ok().and_then(|past| past.as_millis().try_into().ok()).unwrap_or(0)
    }
}

/// Finds the connector behind a table: the built-in list, and tables that a program registered.
pub trait Connectors: Send + Sync {
    /// Makes the table's source.
    ///
    /// # Errors
    /// If it cannot be read.
    fn source(&self, table: &Arc<TableDefinition>, context: &ConnectorContext) -> Result<Arc<dyn Source>>;

    /// Makes the table's sink.
    ///
    /// # Errors
    /// If it cannot be written.
    fn sink(&self, table: &Arc<TableDefinition>, context: &ConnectorContext) -> Result<Arc<dyn Sink>>;
}

/// Settings of a job.
#[derive(Clone)]
pub struct JobConfig {
    /// A name to show; with checkpoints it also names the job's directory.
    pub name: String,
    /// Subtasks of every operator that may have several; at most the number of key groups.
    pub parallelism: usize,
    /// Whether only the final rows are wanted (`execution.runtime-mode = batch`).
    pub batch: bool,
    /// Checkpoints, if there is a directory. A job that ends in a query's result takes none.
    pub checkpoint: Option<CheckpointConfig>,
    /// The clock of processing time.
    pub clock: Arc<dyn Clock>,
    /// The session's zone.
    pub zone: crate::types::TimeZone,
    /// The standard streams.
    pub console: Arc<dyn Console>,
    /// The connectors of the tables.
    pub connectors: Arc<dyn Connectors>,
    /// How often watermarks are derived from rows, in milliseconds (`pipeline.auto-watermark-interval`).
    pub watermark_interval_ms: i64,
    /// How often results become visible that are held back until they are consistent
    /// (`table.exec.consistent-results.interval`); `None`: at checkpoints and at the end.
    pub visibility: Option<Duration>,
    /// What happens after a failure.
    pub restart: RestartStrategy,
}

/// `execution.checkpointing.*`.
#[derive(Debug, Clone)]
pub struct CheckpointConfig {
    /// Where; the job has a directory of its own below.
    pub directory: PathBuf,
    /// How often; `None`: only on request and at the end.
    pub interval: Option<Duration>,
    /// How many are kept.
    pub retained: usize,
    /// Whether barriers are aligned (`EXACTLY_ONCE`) or only counted (`AT_LEAST_ONCE`).
    pub aligned: bool,
    /// One that takes longer is given up.
    pub timeout: Duration,
    /// The least time between the end of one and the start of the next.
    pub min_pause: Duration,
    /// So many in a row may be given up before the job fails.
    pub tolerable_failures: u32,
    /// Forget what the directory holds.
    pub fresh: bool,
    /// Go on even if operators of a changed plan lose their state.
    pub allow_non_restored_state: bool,
    /// A savepoint or checkpoint to begin from, when the job's own directory holds none
    /// (`execution.state-recovery.path`).
    pub restore_path: Option<PathBuf>,
}

/// `restart-strategy.*`: what happens after a failure of a job that takes checkpoints.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum RestartStrategy {
    /// The job ends.
    None,
    /// It goes on from the last checkpoint after `delay`, at most `attempts` times.
    FixedDelay {
        /// How many times.
        attempts: u32,
        /// The wait before each.
        delay: Duration,
    },
    /// As `FixedDelay`, with waits that grow.
    ExponentialDelay {
        /// The first wait.
        initial: Duration,
        /// The longest.
        maximum: Duration,
        /// By how much it grows.
        multiplier: f64,
        /// How many times; `None`: without end.
        attempts: Option<u32>,
    },
}

impl RestartStrategy {
    /// The wait before restart number `attempt`, counted from 1; `None` if the job ends.
    pub fn delay(&self, attempt: u32) -> Option<Duration> {
        match *self {
            RestartStrategy::None => None,
            RestartStrategy::FixedDelay { attempts, delay } => (attempt <= attempts).then_some(delay),
            RestartStrategy::ExponentialDelay { initial, maximum, multiplier, attempts } => {
                if attempts.is_some_and(|attempts| attempt > attempts) {
                    return None;
                }
                let grown =
                    initial.as_secs_f64() * multiplier.max(1.0).powi(attempt.saturating_sub(1).min(1_000) as i32);
                Some(Duration::from_secs_f64(grown.min(maximum.as_secs_f64())))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_grow_to_their_maximum_and_attempts_end() {
        let seconds = Duration::from_secs;
        let fixed = RestartStrategy::FixedDelay { attempts: 2, delay: seconds(1) };
        assert_eq!([1, 2, 3].map(|attempt| fixed.delay(attempt)), [Some(seconds(1)), Some(seconds(1)), None]);
        let (initial, maximum) = (seconds(1), seconds(5));
        let growing = RestartStrategy::ExponentialDelay { initial, maximum, multiplier: 2.0, attempts: None };
        assert_eq!([1, 2, 3, 4, 9_999].map(|attempt| growing.delay(attempt).unwrap().as_secs()), [1, 2, 4, 5, 5]);
    }
}
