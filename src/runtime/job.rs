//! A running job: started, watched, restarted after failures, and ended; and the handle by which it is steered.

use std::any::Any;
use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::{mpsc, oneshot, watch};
use tokio::task::{JoinSet, spawn_blocking};

use super::attempt::{Attempt, prepare};
use super::config::{Clock, JobConfig};
use super::coordinator::{Ending, Request};
use super::diagnosis::{Diagnosis, Places, Publishing, diagnose};
use super::metrics::{OperatorMetrics, Registry, Totals};
use super::task::Exit;
use crate::changelog::{ChangeBatch, CheckpointId};
use crate::error::{Error, ErrorKind, Result};
use crate::plan::stream::{NodeKind, StreamGraph};

/// Batches of a query's result that may wait for their reader.
const COLLECTED_BATCHES: usize = 8;

/// What a job did.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RunReport {
    /// Sums over the job.
    pub totals: Totals,
    /// The last checkpoint that completed in this run.
    pub last_checkpoint: Option<CheckpointId>,
    /// The checkpoint from which it went on.
    pub restored_from: Option<CheckpointId>,
    /// Whether an earlier run had already read all input: nothing was done.
    pub already_complete: bool,
    /// Said to people, e.g. that a damaged checkpoint was passed over.
    pub warnings: Vec<String>,
    /// The savepoint it left.
    pub savepoint: Option<PathBuf>,
    /// How often it was restarted after a failure.
    pub restarts: u32,
    /// How long it ran.
    pub elapsed: Duration,
}

/// A job that has been started.
pub struct RunningJob {
    /// The result, of a graph that ends in [`NodeKind::Collect`]. Dropping it stops the job.
    pub changes: Option<mpsc::Receiver<Result<ChangeBatch>>>,
    /// Steers the job.
    pub handle: JobHandle,
}

/// Steers and watches a job. Clones steer the same one; dropping them leaves it alone.
#[derive(Clone)]
pub struct JobHandle {
    shared: Arc<Shared>,
    requests: mpsc::UnboundedSender<Request>,
    cancel: watch::Sender<bool>,
    result: watch::Receiver<Option<Result<RunReport>>>,
}

/// What the handle reads while the job writes.
pub struct Shared {
    name: String,
    /// The plan, to find out why nothing comes.
    places: Places,
    clock: Arc<dyn Clock>,
    started: Instant,
    /// Short reads and writes; never held over a wait.
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    registry: Registry,
    report: RunReport,
    state_bytes: HashMap<String, u64>,
    publishing: Publishing,
    /// Whether the job is to stop, and where its savepoint goes.
    stop: Option<Option<PathBuf>>,
}

/// Starts a job on the runtime of the caller. Recovery happens here, before it returns: it reads the checkpoint and lets
/// the sinks commit, so call it where blocking is allowed.
///
/// # Errors
/// If a connector cannot be opened, an expression not compiled, or a checkpoint not be restored.
pub fn start(graph: StreamGraph, config: JobConfig) -> Result<RunningJob> {
    let shared = Arc::new(Shared {
        name: config.name.clone(),
        places: Places::of(&graph),
        clock: Arc::clone(&config.clock),
        started: Instant::now(),
        state: Mutex::default(),
    });
    let collects = graph.nodes.iter().any(|node| matches!(node.kind, NodeKind::Collect));
    let (sender, changes) = match collects {
        true => {
            let (sender, changes) = mpsc::channel(COLLECTED_BATCHES);
            (Some(sender), Some(changes))
        }
        false => (None, None),
    };
    let attempt = prepare(&graph, &config, &shared, sender.clone(), true)?;
    let (requests, received) = mpsc::unbounded_channel();
    let (cancel, cancelled) = watch::channel(false);
    let (publish, result) = watch::channel(None);
    let run = Run { graph, config, shared: Arc::clone(&shared), requests: received, cancelled, sender };
    tokio::spawn(run.supervise(attempt, publish));
    Ok(RunningJob { changes, handle: JobHandle { shared, requests, cancel, result } })
}

impl JobHandle {
    /// The job's name.
    pub fn name(&self) -> &str {
        &self.shared.name
    }

    /// Waits for the end. Every caller gets the same answer, also after the end.
    ///
    /// # Errors
    /// The job's first failure, or `Cancelled`.
    pub async fn wait(&self) -> Result<RunReport> {
        let mut result = self.result.clone();
        let ended = result.wait_for(Option::is_some).await;
        match ended.ok().and_then(|result| result.clone()) {
            Some(result) => result,
            // The runtime was shut down under the job.
            None => Err(Error::cancelled()),
        }
    }

    /// Whether it has ended, and then whether well.
    pub fn ended(&self) -> Option<bool> {
        self.result.borrow().as_ref().map(Result::is_ok)
    }

    /// The sums so far.
    pub fn progress(&self) -> Totals {
        self.shared.lock().registry.totals()
    }

    /// What people should know so far: failures it got over, checkpoints it passed over.
    pub fn warnings(&self) -> Vec<String> {
        self.shared.lock().report.warnings.clone()
    }

    /// The counts by operator so far.
    pub fn metrics(&self) -> Vec<OperatorMetrics> {
        let state = self.shared.lock();
        let mut operators = state.registry.operators();
        for operator in &mut operators {
            operator.state_bytes = state.state_bytes.get(&operator.uid).copied();
        }
        operators
    }

    /// What it is doing, and why no (more) rows come out of it.
    pub fn diagnose(&self) -> Diagnosis {
        let state = self.shared.lock();
        diagnose(&self.shared.places, &state.registry, &state.publishing, self.shared.clock.now_ms())
    }

    /// Takes a checkpoint now, and waits until every sink has committed it.
    ///
    /// # Errors
    /// If there is no checkpoint directory, or it fails, or the job ends before.
    pub async fn checkpoint(&self) -> Result<CheckpointId> {
        let (answer, answered) = oneshot::channel();
        if self.requests.send(Request::Checkpoint(answer)).is_ok()
            && let Ok(answer) = answered.await
        {
            return answer;
        }
        if self.ended().is_none() {
            return Err(Error::external(true, "the job failed while the checkpoint was under way"));
        }
        // The job has ended meanwhile; its last checkpoint holds everything.
        let report = self.wait().await?;
        report.last_checkpoint.ok_or_else(|| Error::setup("the job ended before the checkpoint was taken"))
    }

    /// Stops at a last checkpoint, after which the sinks have committed, and waits for the end.
    ///
    /// # Errors
    /// The job's failure.
    pub async fn stop(&self) -> Result<RunReport> {
        self.request_stop(None).await
    }

    /// As [`JobHandle::stop`], and leaves a savepoint below `directory`.
    ///
    /// # Errors
    /// The job's failure; if the savepoint cannot be written.
    pub async fn stop_with_savepoint(&self, directory: impl Into<PathBuf>) -> Result<RunReport> {
        self.request_stop(Some(directory.into())).await
    }

    async fn request_stop(&self, savepoint: Option<PathBuf>) -> Result<RunReport> {
        // Kept beside the message, so that a restart after a failure still knows that it is to stop.
        self.shared.lock().stop = Some(savepoint);
        drop(self.requests.send(Request::Stop));
        self.wait().await
    }

    /// Stops at once, without a checkpoint.
    pub fn cancel(&self) {
        self.cancel.send_replace(true);
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        // Nothing that is done under the lock can leave it half done.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A new attempt has been laid out.
    pub fn attempt(&self, registry: Registry, restored_from: Option<CheckpointId>, warnings: Vec<String>) {
        let mut state = self.lock();
        state.registry = registry;
        state.report.restored_from = restored_from;
        for warning in warnings {
            // Every attempt finds the same settings.
            if !state.report.warnings.contains(&warning) {
                state.report.warnings.push(warning);
            }
        }
    }

    /// Which sinks show their rows with a checkpoint, and how often one is taken.
    pub fn publishes(&self, sinks: Vec<String>, interval: Option<Duration>) {
        self.lock().publishing = Publishing { sinks, published: HashMap::new(), interval };
    }

    /// A checkpoint has been completed and committed.
    pub fn committed(&self) {
        let mut state = self.lock();
        let counts = state.registry.operators().into_iter().map(|operator| (operator.uid, operator.rows_in));
        state.publishing.published = counts.collect();
    }

    /// A checkpoint has completed; `bytes` of state by operator.
    pub fn checkpoint_completed(&self, id: CheckpointId, bytes: HashMap<String, u64>, savepoint: Option<PathBuf>) {
        let mut state = self.lock();
        state.report.savepoint = savepoint;
        state.report.last_checkpoint = Some(id);
        state.state_bytes = bytes;
    }

    /// Whether the job is to stop, and where its savepoint goes.
    pub fn stop(&self) -> Option<Option<PathBuf>> {
        self.lock().stop.clone()
    }

    fn report(&self) -> RunReport {
        let state = self.lock();
        RunReport { totals: state.registry.totals(), elapsed: self.started.elapsed(), ..state.report.clone() }
    }
}

/// A job over all its attempts.
struct Run {
    graph: StreamGraph,
    config: JobConfig,
    shared: Arc<Shared>,
    requests: mpsc::UnboundedReceiver<Request>,
    cancelled: watch::Receiver<bool>,
    sender: Option<mpsc::Sender<Result<ChangeBatch>>>,
}

impl Run {
    async fn supervise(mut self, first: Attempt, publish: watch::Sender<Option<Result<RunReport>>>) {
        let result = self.attempts(first).await;
        let result = result.map(|()| self.shared.report());
        publish.send_replace(Some(result.clone()));
        // Requests that nobody will answer any more fail at once, and not when the reader of the result is done.
        self.requests.close();
        while self.requests.try_recv().is_ok() {}
        if let (Err(error), Some(sender)) = (result, self.sender.take()) {
            // The reader may be slow or gone.
            drop(sender.send(Err(error)).await);
        }
    }

    /// Runs, and after a failure goes on from the last checkpoint as often as the strategy allows.
    async fn attempts(&mut self, first: Attempt) -> Result<()> {
        let mut next = Ok(first);
        let mut restarts = 0;
        loop {
            let failure = match next {
                Ok(attempt) => match self.attempt(attempt).await {
                    Ok(_) => return Ok(()),
                    Err(failure) => failure,
                },
                Err(failure) => failure,
            };
            let hopeless = matches!(failure.kind(), ErrorKind::Cancelled | ErrorKind::State);
            if hopeless || self.config.checkpoint.is_none() || self.sender.is_some() {
                return Err(failure);
            }
            restarts += 1;
            let Some(delay) = self.config.restart.delay(restarts) else { return Err(failure) };
            {
                let mut state = self.shared.lock();
                state.report.restarts = restarts;
                state.report.warnings.push(format!("restart {restarts} after: {failure}"));
            }
            tokio::select! {
                () = tokio::time::sleep(delay) => {}
                () = cancelled(&mut self.cancelled) => return Err(Error::cancelled()),
            }
            let (graph, config, shared) = (self.graph.clone(), self.config.clone(), Arc::clone(&self.shared));
            let prepared = spawn_blocking(move || prepare(&graph, &config, &shared, None, false)).await;
            next = prepared.unwrap_or_else(|error| Err(join_error(error)));
        }
    }

    /// One attempt, from its tasks' start to their end.
    async fn attempt(&mut self, attempt: Attempt) -> Result<Ending> {
        let Some(running) = attempt.running else {
            self.shared.lock().report.already_complete = true;
            return Ok(Ending::Finished);
        };
        let (store, abandoned) = (Arc::clone(&running.coordinator.store), Arc::clone(&running.coordinator.abandoned));
        let mut tasks = JoinSet::new();
        for task in running.tasks {
            tasks.spawn(task.run());
        }
        let result = {
            let coordinator = running.coordinator.run(&mut self.requests);
            tokio::pin!(coordinator);
            loop {
                tokio::select! {
                    biased;
                    () = cancelled(&mut self.cancelled) => break Err(Error::cancelled()),
                    ended = tasks.join_next() => match ended {
                        Some(Ok(Ok(Exit::Done | Exit::Disconnected))) => {}
                        Some(Ok(Ok(Exit::Unwanted))) => break Err(Error::cancelled()),
                        Some(Ok(Err(error))) => break Err(error),
                        Some(Err(error)) => break Err(join_error(error)),
                        // Tasks wait for the coordinator when they are done, and it for them.
                        None => break Err(Error::bug("all tasks are gone before the job's end")),
                    },
                    () = unwanted(self.sender.as_ref()) => break Err(Error::cancelled()),
                    ending = &mut coordinator => break ending,
                }
            }
        };
        tasks.abort_all();
        while tasks.join_next().await.is_some() {}
        // What is being written to the disk is waited for, and nothing begins after it: the next attempt, or the next
        // process, must find the directory at rest.
        let rest = spawn_blocking(move || {
            let mut store = store.lock().unwrap_or_else(PoisonError::into_inner);
            abandoned.store(true, Ordering::SeqCst);
            drop(store.take());
        });
        rest.await.map_err(join_error)?;
        result
    }
}

/// Waits until the job is cancelled; for ever if nobody is left who could.
async fn cancelled(cancelled: &mut watch::Receiver<bool>) {
    if cancelled.wait_for(|cancelled| *cancelled).await.is_err() {
        std::future::pending().await
    }
}

/// Waits until nobody reads the query's result any more.
async fn unwanted(sender: Option<&mpsc::Sender<Result<ChangeBatch>>>) {
    match sender {
        Some(sender) => sender.closed().await,
        None => std::future::pending().await,
    }
}

fn join_error(error: tokio::task::JoinError) -> Error {
    match error.try_into_panic() {
        Ok(panic) => panic_error(&*panic),
        Err(_) => Error::cancelled(),
    }
}

/// A panic, caught at the task's edge, as the error it is.
pub fn panic_error(panic: &(dyn Any + Send)) -> Error {
    let message = panic.downcast_ref::<&str>().copied().map(str::to_owned);
    let message = message.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_else(|| "a panic".to_owned());
    Error::bug(message).hint("please report it with the SQL that led to it")
}

/// Set when a job has failed: nothing more is published.
pub fn not_abandoned() -> Arc<AtomicBool> {
    Arc::new(AtomicBool::new(false))
}
