//! The front door: an engine, its sessions, and the jobs they start.

pub mod checkpoints;

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;

use crate::changelog::{ChangeBatch, ChangelogMode, CheckpointId};
use crate::connectors::Console;
use crate::error::Result;

/// Owns the worker threads; sessions are cheap.
#[derive(Clone)]
pub struct Engine {}

/// Settings of an [`Engine`].
#[derive(Default)]
pub struct EngineBuilder {}

/// A catalog, options, and the statements run against them.
#[derive(Clone)]
pub struct Session {}

/// One statement of a script, ready to be executed by [`Session::execute`].
pub struct ScriptStatement {
    /// Its text, without the semicolon.
    pub text: String,
    /// Line of the script on which it begins, from 1.
    pub line: u64,
    /// Whether it is a command for the shell (`QUIT`, `CLEAR`, `HELP`) and which, upper case.
    pub client: Option<String>,
}

/// What a statement gave.
pub enum Outcome {
    /// It is done; a word to show ("Table created").
    Done(String),
    /// It is done and has rows to show, without an op column: `SHOW`, `DESCRIBE`, `EXPLAIN`, `SET`.
    Rows(RecordBatch),
    /// A query runs; its changes can be read.
    Query(Changes),
    /// A job runs.
    Job(Job),
}

/// A running query's changes: a `Stream` of `Result<ChangeBatch>`. Dropping it stops the query.
pub struct Changes {}

/// A running job. Dropping it does not stop an `INSERT`; dropping the session's engine does.
#[derive(Clone)]
pub struct Job {}

/// What a job did.
#[derive(Debug, Clone, Default)]
pub struct JobReport {
    /// Rows read by all sources.
    pub rows_read: u64,
    /// Rows written by all sinks, changes counted one by one.
    pub rows_written: u64,
    /// Rows dropped because they came after their window had closed.
    pub late_rows: u64,
    /// Records skipped because they could not be parsed.
    pub skipped_rows: u64,
    /// The last checkpoint that completed.
    pub last_checkpoint: Option<CheckpointId>,
    /// The checkpoint from which it went on.
    pub restored_from: Option<CheckpointId>,
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

impl Engine {
    /// Starts to build one.
    pub fn builder() -> EngineBuilder {
        todo!()
    }
    /// Runs a future on the engine's threads and waits for it: the way into the library for a program without a
    /// runtime of its own.
    pub fn block_on<F: std::future::Future>(&self, _future: F) -> F::Output {
        todo!()
    }
    /// A fresh session: an empty catalog, default options.
    pub fn session(&self) -> Session {
        todo!()
    }
}

impl EngineBuilder {
    /// Default parallelism; else the number of cores.
    pub fn parallelism(self, _parallelism: usize) -> EngineBuilder {
        todo!()
    }
    /// Where `print` tables write.
    pub fn console(self, _console: Arc<dyn Console>) -> EngineBuilder {
        todo!()
    }
    /// Starts the worker threads.
    ///
    /// # Errors
    /// If threads cannot be started.
    pub fn build(self) -> Result<Engine> {
        todo!()
    }
}

impl Session {
    /// Splits a script into statements; text that does not parse is an error with its place in the script.
    ///
    /// # Errors
    /// On a syntax error.
    pub fn split(&self, _script: &str) -> Result<Vec<ScriptStatement>> {
        todo!()
    }
    /// Runs one statement. Spans in its error are relative to `sql`.
    ///
    /// # Errors
    /// Whatever is wrong with it.
    pub async fn execute(&self, _sql: &str) -> Result<Outcome> {
        todo!()
    }
    /// Runs a query.
    ///
    /// # Errors
    /// Whatever is wrong with it.
    pub async fn query(&self, _sql: &str) -> Result<Changes> {
        todo!()
    }
    /// The value of an option, as set or by default.
    pub fn option(&self, _key: &str) -> Option<String> {
        todo!()
    }
    /// Sets an option, as `SET` does.
    ///
    /// # Errors
    /// If the value is not valid.
    pub fn set(&self, _key: &str, _value: &str) -> Result<()> {
        todo!()
    }
    /// The zone in which instants are shown (`table.local-time-zone`).
    pub fn zone(&self) -> chrono_tz::Tz {
        todo!()
    }
    /// Names of tables, columns and functions, for completion.
    pub fn names(&self) -> Vec<String> {
        todo!()
    }
}

impl Changes {
    /// The columns.
    pub fn schema(&self) -> SchemaRef {
        todo!()
    }
    /// The kinds that can come.
    pub fn mode(&self) -> ChangelogMode {
        todo!()
    }
    /// Whether only the final rows come (`execution.runtime-mode = batch`).
    pub fn batch(&self) -> bool {
        todo!()
    }
    /// The job behind it.
    pub fn job(&self) -> &Job {
        todo!()
    }
    /// The next changes; `None` at the end.
    pub async fn next(&mut self) -> Option<Result<ChangeBatch>> {
        todo!()
    }
}

impl futures::Stream for Changes {
    type Item = Result<ChangeBatch>;
    fn poll_next(self: Pin<&mut Self>, _cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        todo!()
    }
}

impl Job {
    /// A name to show.
    pub fn name(&self) -> &str {
        todo!()
    }
    /// Waits for the end; the first failure is the answer. May be called by several.
    ///
    /// # Errors
    /// The job's failure, or `Cancelled`.
    pub async fn wait(&self) -> Result<JobReport> {
        todo!()
    }
    /// How far it is.
    pub fn progress(&self) -> JobProgress {
        todo!()
    }
    /// Takes a checkpoint now and waits until it is complete.
    ///
    /// # Errors
    /// If there is no checkpoint directory, or the checkpoint fails.
    pub async fn checkpoint(&self) -> Result<CheckpointId> {
        todo!()
    }
    /// Stops: a last checkpoint if there is a directory, then the end.
    ///
    /// # Errors
    /// If the last checkpoint fails.
    pub async fn stop(&self) -> Result<JobReport> {
        todo!()
    }
    /// Stops at a savepoint written to `directory`.
    ///
    /// # Errors
    /// If it cannot be written.
    pub async fn stop_with_savepoint(&self, _directory: &str) -> Result<JobReport> {
        todo!()
    }
    /// Stops at once.
    pub fn cancel(&self) {
        todo!()
    }
}
