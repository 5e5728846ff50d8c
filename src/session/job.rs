//! Running jobs and running queries, as a program holds them.

use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use arrow::datatypes::SchemaRef;
use tokio::sync::mpsc;

use crate::changelog::{ChangeBatch, ChangelogMode, CheckpointId, notation};
use crate::error::{Error, Result};
use crate::runtime::{Diagnosis, JobHandle, OperatorMetrics, RunReport, RunningJob};
use crate::types::RowFormat;

/// A running job. Dropping it leaves the job running; dropping the engine and its sessions stops it.
#[derive(Clone)]
pub struct Job {
    handle: JobHandle,
}

/// What a job did.
#[derive(Debug, Clone, Default)]
pub struct JobReport {
    /// Rows read by all sources.
    pub rows_read: u64,
    /// Rows written by all sinks, changes counted one by one.
    pub rows_written: u64,
    /// Rows dropped because they came after their window had closed.
    pub late_rows: u64,
    /// How late they were at most: so much longer the watermark would have had to wait to keep them all.
    pub latest_row: Duration,
    /// By how much longer the watermark would have had to wait to keep 99.9 % of them.
    pub wait_for_most: Duration,
    /// Rows dropped because they had no event time.
    pub null_event_times: u64,
    /// Rows dropped because their event time was too far ahead of the clock.
    pub rows_ahead: u64,
    /// How far the event time of a row was ahead of the clock at most.
    pub ahead: Duration,
    /// Records skipped because they could not be parsed.
    pub skipped_rows: u64,
    /// The last checkpoint that completed in this run.
    pub last_checkpoint: Option<CheckpointId>,
    /// The checkpoint from which it went on.
    pub restored_from: Option<CheckpointId>,
    /// The folder of the savepoint it stopped at, if one was asked for.
    pub savepoint: Option<std::path::PathBuf>,
    /// Whether an earlier run had done everything already: nothing was read or written.
    pub already_complete: bool,
    /// Things that somebody should know, such as a damaged checkpoint that was passed over.
    pub warnings: Vec<String>,
    /// How often it was restarted after a failure.
    pub restarts: u32,
    /// How long it ran.
    pub elapsed: Duration,
}

/// How far a job is.
#[derive(Debug, Clone, Copy, Default)]
pub struct JobProgress {
    /// Rows read so far.
    pub rows_read: u64,
    /// Rows written so far.
    pub rows_written: u64,
    /// Bytes read so far.
    pub bytes_read: u64,
    /// Bytes there are to read, if known.
    pub total_bytes: Option<u64>,
}

impl Job {
    pub(super) fn new(handle: JobHandle) -> Job {
        Job { handle }
    }

    /// A name to show, and the name of its folder among the checkpoints.
    pub fn name(&self) -> &str {
        self.handle.name()
    }

    /// `RUNNING`, `FINISHED` or `FAILED`.
    pub fn status(&self) -> &'static str {
        match self.handle.ended() {
            None => "RUNNING",
            Some(true) => "FINISHED",
            Some(false) => "FAILED",
        }
    }

    /// Waits for the end; the first failure is the answer. May be called by several.
    ///
    /// # Errors
    /// The job's failure, or `Cancelled`.
    pub async fn wait(&self) -> Result<JobReport> {
        self.handle.wait().await.map(report)
    }

    /// How far it is.
    pub fn progress(&self) -> JobProgress {
        let totals = self.handle.progress();
        JobProgress {
            rows_read: totals.rows_read,
            rows_written: totals.rows_written,
            bytes_read: totals.bytes_read,
            total_bytes: totals.total_bytes,
        }
    }

    /// What somebody should know so far: failures it got over, a damaged checkpoint it passed over. Those of a whole run
    /// stand in its report.
    pub fn warnings(&self) -> Vec<String> {
        self.handle.warnings()
    }

    /// Counts by operator: rows in and out, watermark, state, and the operator's own counters.
    pub fn metrics(&self) -> Vec<OperatorMetrics> {
        self.handle.metrics()
    }

    /// What it is doing, and why no (more) rows come out of it.
    pub fn diagnose(&self) -> Diagnosis {
        self.handle.diagnose()
    }

    /// Takes a checkpoint now and waits until it is complete.
    ///
    /// # Errors
    /// If there is no checkpoint directory, or the checkpoint fails.
    pub async fn checkpoint(&self) -> Result<CheckpointId> {
        self.handle.checkpoint().await
    }

    /// Stops: a last checkpoint if there is a directory, then the end.
    ///
    /// # Errors
    /// If the last checkpoint fails.
    pub async fn stop(&self) -> Result<JobReport> {
        self.handle.stop().await.map(report)
    }

    /// Stops at a savepoint written below `directory`.
    ///
    /// # Errors
    /// If it cannot be written.
    pub async fn stop_with_savepoint(&self, directory: impl Into<std::path::PathBuf>) -> Result<JobReport> {
        self.handle.stop_with_savepoint(directory).await.map(report)
    }

    /// Stops at once.
    pub fn cancel(&self) {
        self.handle.cancel();
    }
}

fn report(run: RunReport) -> JobReport {
    JobReport {
        rows_read: run.totals.rows_read,
        rows_written: run.totals.rows_written,
        late_rows: run.totals.late_rows,
        latest_row: Duration::from_millis(run.totals.lateness.max_ms()),
        wait_for_most: Duration::from_millis(run.totals.lateness.delay_for(999)),
        null_event_times: run.totals.null_event_times,
        rows_ahead: run.totals.rows_ahead,
        ahead: Duration::from_millis(run.totals.ahead_ms),
        skipped_rows: run.totals.skipped_rows,
        last_checkpoint: run.last_checkpoint,
        restored_from: run.restored_from,
        savepoint: run.savepoint,
        already_complete: run.already_complete,
        warnings: run.warnings,
        restarts: run.restarts,
        elapsed: run.elapsed,
    }
}

/// A running query's changes: a `Stream` of `Result<ChangeBatch>`. Dropping it stops the query.
pub struct Changes {
    changes: mpsc::Receiver<Result<ChangeBatch>>,
    job: Job,
    schema: SchemaRef,
    mode: ChangelogMode,
    batch: bool,
    format: RowFormat,
}

impl Changes {
    pub(super) fn new(
        running: RunningJob,
        schema: SchemaRef,
        mode: ChangelogMode,
        batch: bool,
        zone: crate::types::TimeZone,
    ) -> Result<Changes> {
        let Some(changes) = running.changes else { return Err(Error::bug("a query was planned without a result")) };
        let format = RowFormat::new(&schema, zone);
        Ok(Changes { changes, job: Job::new(running.handle), schema, mode, batch, format })
    }

    /// The columns.
    pub fn schema(&self) -> SchemaRef {
        SchemaRef::clone(&self.schema)
    }

    /// The kinds that can come.
    pub fn mode(&self) -> ChangelogMode {
        self.mode
    }

    /// Whether only the final rows come (`execution.runtime-mode = batch`).
    pub fn batch(&self) -> bool {
        self.batch
    }

    /// The job behind it.
    pub fn job(&self) -> &Job {
        &self.job
    }

    /// The next changes; `None` at the end.
    pub async fn next(&mut self) -> Option<Result<ChangeBatch>> {
        self.changes.recv().await
    }

    /// A batch in the notation for changes: `+I[Mary, 1]`.
    ///
    /// # Errors
    /// If a column's type cannot be printed.
    pub fn lines(&self, batch: &ChangeBatch) -> Result<Vec<String>> {
        notation::lines(batch, &self.format)
    }
}

impl futures::Stream for Changes {
    type Item = Result<ChangeBatch>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.changes.poll_recv(context)
    }
}
