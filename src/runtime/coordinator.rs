//! The coordinator of a job's checkpoints: asks for them, collects the tasks' parts, decides, lets the sinks commit.
//!
//! One checkpoint is under way at a time. One that is given up (it took too long) loses nothing: the state and the
//! committables that tasks handed over for it stay, and belong to the next one.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::{mpsc, oneshot};
use tokio::task::{JoinHandle, spawn_blocking};
use tokio::time::Instant;

use super::config::{CheckpointConfig, Clock};
use super::job::Shared;
use super::task::{Ack, CutRequest, Report};
use crate::changelog::{CheckpointId, Cut};
use crate::checkpoint::Store;
use crate::checkpoint::disk::LocalDisk;
use crate::checkpoint::manifest::{Manifest, OperatorEntry, SavedSplit};
use crate::checkpoint::state_file::{EncodedDelta, encode_snapshot};
use crate::connectors::{Committable, Sink, SplitPosition};
use crate::crash::crash_point;
use crate::error::{Error, Result};

/// A store that outlives the coordinator's own future: work on the disk is never cut in half.
pub type SharedStore = Arc<Mutex<Option<Store>>>;

/// What the outside asks of a running job.
pub enum Request {
    /// A checkpoint now.
    Checkpoint(oneshot::Sender<Result<CheckpointId>>),
    /// A last checkpoint, then the end; [`Shared::stop`] says whether with a savepoint.
    Stop,
}

/// How a job came to its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ending {
    /// All input has been read.
    Finished,
    /// It was stopped at a checkpoint.
    Stopped,
}

/// What the coordinator needs to know about its job.
pub struct Coordinator {
    /// The job's name.
    pub job: String,
    /// Its parallelism.
    pub parallelism: usize,
    /// Requests to each task.
    pub tasks: Vec<mpsc::UnboundedSender<CutRequest>>,
    /// Which of them are sources.
    pub source_tasks: Vec<usize>,
    /// How often results become visible, if they are held back until they are consistent.
    pub visibility: Option<Duration>,
    /// What tasks report.
    pub reports: mpsc::UnboundedReceiver<Report>,
    /// Settings; `None` without a directory: then sinks commit once, at the end.
    pub config: Option<CheckpointConfig>,
    /// The directory; `None` inside without one.
    pub store: SharedStore,
    /// Set when the job has failed: nothing more is published.
    pub abandoned: Arc<AtomicBool>,
    /// Whether checkpoints are taken at the interval.
    pub periodic: bool,
    /// The sinks by name.
    pub sinks: BTreeMap<String, Arc<dyn Sink>>,
    /// The plan's operators by uid, for the manifest.
    pub operators: BTreeMap<String, OperatorEntry>,
    /// Uids of the sources.
    pub sources: Vec<String>,
    /// The job's clock.
    pub clock: Arc<dyn Clock>,
    /// Where progress is shown.
    pub shared: Arc<Shared>,
}

/// What has been collected and is not in a manifest yet.
#[derive(Default)]
struct Collected {
    /// State being encoded, in the order of its coming.
    state: Vec<(CheckpointId, JoinHandle<Result<Vec<EncodedDelta>>>)>,
    /// Prepared by sinks, by name.
    committables: BTreeMap<String, Vec<Committable>>,
    /// Positions by source uid and subtask: the newest.
    positions: BTreeMap<String, BTreeMap<usize, Vec<SplitPosition>>>,
}

/// The checkpoint under way.
struct UnderWay {
    id: CheckpointId,
    waiting: HashSet<usize>,
    started: Instant,
    kind: Kind,
    answers: Vec<oneshot::Sender<Result<CheckpointId>>>,
}

#[derive(Clone, PartialEq)]
enum Kind {
    Periodic,
    Stop { savepoint: Option<PathBuf> },
    Final,
}

/// State of the loop.
struct Progress {
    collected: Collected,
    under_way: Option<UnderWay>,
    ended: usize,
    stop: Option<Option<PathBuf>>,
    asked: Vec<oneshot::Sender<Result<CheckpointId>>>,
    next_due: Option<Instant>,
    given_up: u32,
    merging: Option<JoinHandle<Result<()>>>,
    /// Ids of a job without a directory.
    next_id: CheckpointId,
    /// When held results are next let out, and the last cut at which they were.
    next_point: Option<Instant>,
    last_cut: Cut,
    /// Sources that have not sent it on yet.
    passing: usize,
}

impl Coordinator {
    /// Runs until the job has come to its end and everything is committed.
    ///
    /// # Errors
    /// If a checkpoint cannot be written or committed, or too many took too long.
    pub async fn run(mut self, requests: &mut mpsc::UnboundedReceiver<Request>) -> Result<Ending> {
        let interval = self.config.as_ref().filter(|_| self.periodic).and_then(|config| config.interval);
        let mut progress = Progress {
            collected: Collected::default(),
            under_way: None,
            ended: 0,
            stop: self.shared.stop(),
            asked: Vec::new(),
            next_due: interval.map(|interval| Instant::now() + interval),
            given_up: 0,
            merging: None,
            next_id: 1,
            next_point: self.visibility.map(|interval| Instant::now() + interval),
            last_cut: Cut::default(),
            passing: 0,
        };
        loop {
            self.start_if_due(&mut progress)?;
            self.let_out_if_due(&mut progress);
            let deadline = self.deadline(&progress).into_iter().chain(progress.next_point).min();
            tokio::select! {
                biased;
                report = self.reports.recv() => match report {
                    // All tasks are gone: one has failed, and whoever joins them has its error.
                    None => std::future::pending().await,
                    Some(Report::Ended) => progress.ended += 1,
                    Some(Report::Passed) => progress.passing = progress.passing.saturating_sub(1),
                    Some(Report::Ack(ack)) => {
                        if self.acknowledge(&mut progress, *ack)
                            && let Some(ending) = self.complete(&mut progress).await?
                        {
                            return Ok(ending);
                        }
                    }
                },
                Some(request) = requests.recv() => match request {
                    Request::Checkpoint(answer) if self.config.is_none() => drop(answer.send(Err(no_directory()))),
                    Request::Checkpoint(answer) => progress.asked.push(answer),
                    Request::Stop => progress.stop = self.shared.stop(),
                },
                merged = finished(&mut progress.merging) => {
                    progress.merging = None;
                    merged?;
                }
                () = sleep_until(deadline) => self.give_up_if_late(&mut progress)?,
            }
        }
    }

    /// When the loop must look at the time again.
    fn deadline(&self, progress: &Progress) -> Option<Instant> {
        match (&progress.under_way, &self.config) {
            (Some(under_way), Some(config)) if under_way.kind == Kind::Periodic => {
                under_way.started.checked_add(config.timeout)
            }
            (Some(_), _) => None,
            (None, _) => progress.next_due,
        }
    }

    /// Starts a checkpoint if none is under way and there is a reason for one.
    fn start_if_due(&self, progress: &mut Progress) -> Result<()> {
        if progress.under_way.is_some() {
            return Ok(());
        }
        let kind = if progress.ended == self.tasks.len() {
            Kind::Final
        } else if let Some(savepoint) = &progress.stop {
            Kind::Stop { savepoint: savepoint.clone() }
        } else if !progress.asked.is_empty() || progress.next_due.is_some_and(|due| due <= Instant::now()) {
            Kind::Periodic
        } else {
            return Ok(());
        };
        let store = self.store.lock().unwrap_or_else(PoisonError::into_inner).as_mut().map(Store::next_id);
        let id = match store {
            Some(id) => id?,
            None => progress.next_id,
        };
        progress.next_id = id + 1;
        progress.last_cut.checkpoint = id;
        let request = CutRequest { cut: Cut::of_checkpoint(id), stop: matches!(kind, Kind::Stop { .. }) };
        for task in &self.tasks {
            // A task that is gone has failed; its error is on the way.
            let _ = task.send(request);
        }
        let waiting = (0..self.tasks.len()).collect();
        let answers = std::mem::take(&mut progress.asked);
        progress.under_way = Some(UnderWay { id, waiting, started: Instant::now(), kind, answers });
        Ok(())
    }

    /// Sends a cut on its way at which results become visible: one at a time, so that none queue up before a source that
    /// is held up.
    fn let_out_if_due(&self, progress: &mut Progress) {
        let now = Instant::now();
        let Some(interval) = self.visibility.filter(|_| progress.next_point.is_some_and(|due| due <= now)) else {
            return;
        };
        progress.next_point = Some(now + interval);
        if progress.passing > 0 {
            return;
        }
        progress.last_cut.point += 1;
        progress.passing = self.source_tasks.len();
        for task in &self.source_tasks {
            // A task that is gone has failed; its error is on the way.
            let _ = self.tasks[*task].send(CutRequest { cut: progress.last_cut, stop: false });
        }
    }

    /// Takes a task's part; true if it was the last one of the checkpoint under way.
    fn acknowledge(&self, progress: &mut Progress, ack: Ack) -> bool {
        let collected = &mut progress.collected;
        if self.config.is_some() || matches!(progress.stop, Some(Some(_))) {
            let (subtask, snapshots) = (ack.subtask, ack.snapshots);
            if snapshots.iter().any(|(_, snapshot)| !snapshot.tables.is_empty()) {
                let encode = move || {
                    let encoded = snapshots.into_iter().map(|(uid, snapshot)| encode_snapshot(&uid, subtask, snapshot));
                    Ok(encoded.collect::<Result<Vec<_>>>()?.into_iter().flatten().collect())
                };
                collected.state.push((ack.id, spawn_blocking(encode)));
            }
        }
        if let Some((uid, positions)) = ack.positions {
            collected.positions.entry(uid).or_default().insert(ack.subtask, positions);
        }
        if let Some((sink, committable)) = ack.committable {
            collected.committables.entry(sink).or_default().push(committable);
        }
        match &mut progress.under_way {
            Some(under_way) if under_way.id == ack.id => {
                under_way.waiting.remove(&ack.task) && under_way.waiting.is_empty()
            }
            _ => false,
        }
    }

    /// Gives up a checkpoint that takes too long; what was collected for it stays.
    fn give_up_if_late(&self, progress: &mut Progress) -> Result<()> {
        let Some(config) = &self.config else { return Ok(()) };
        let late =
            |under_way: &UnderWay| under_way.kind == Kind::Periodic && under_way.started.elapsed() >= config.timeout;
        if !progress.under_way.as_ref().is_some_and(late) {
            return Ok(());
        }
        let Some(under_way) = progress.under_way.take() else { return Ok(()) };
        let error =
            Error::external(true, format!("checkpoint {} did not complete within {:?}", under_way.id, config.timeout));
        for answer in under_way.answers {
            drop(answer.send(Err(error.clone())));
        }
        progress.given_up += 1;
        if progress.given_up > config.tolerable_failures {
            return Err(error.hint("a slow sink holds it up, or 'execution.checkpointing.timeout' is too short"));
        }
        progress.next_due = config.interval.map(|interval| Instant::now() + interval.max(config.min_pause));
        Ok(())
    }

    /// All parts are there: writes them, decides, commits. Gives the job's ending if this was the last checkpoint.
    async fn complete(&mut self, progress: &mut Progress) -> Result<Option<Ending>> {
        let Some(under_way) = progress.under_way.take() else { return Ok(None) };
        let id = under_way.id;
        let mut state = Vec::new();
        for (id, encoding) in std::mem::take(&mut progress.collected.state) {
            state.push((id, joined(encoding.await)??));
        }
        let publication = Publication {
            manifest: self.manifest(progress, &under_way),
            state,
            committables: std::mem::take(&mut progress.collected.committables),
            sinks: self.sinks.clone(),
            retained: self.config.as_ref().map_or(1, |config| config.retained),
            savepoint: match &under_way.kind {
                Kind::Stop { savepoint } => savepoint.clone(),
                _ => None,
            },
            job: self.job.clone(),
        };
        let (store, abandoned) = (Arc::clone(&self.store), Arc::clone(&self.abandoned));
        let written = joined(spawn_blocking(move || publication.run(&store, &abandoned)).await)??;
        self.shared.committed();
        if let Some((bytes, savepoint)) = written {
            self.shared.checkpoint_completed(id, bytes, savepoint);
        }
        for answer in under_way.answers {
            drop(answer.send(Ok(id)));
        }
        progress.given_up = 0;
        match under_way.kind {
            Kind::Final => return Ok(Some(Ending::Finished)),
            Kind::Stop { .. } => return Ok(Some(Ending::Stopped)),
            Kind::Periodic => {}
        }
        self.schedule(progress, under_way.started);
        if progress.merging.is_none() {
            let (store, abandoned) = (Arc::clone(&self.store), Arc::clone(&self.abandoned));
            progress.merging = Some(spawn_blocking(move || merge_one(&store, &abandoned)));
        }
        Ok(None)
    }

    /// The next one is due an interval after the last began, and not before the pause is over.
    fn schedule(&self, progress: &mut Progress, started: Instant) {
        let Some(config) = &self.config else { return };
        let interval = config.interval.filter(|_| self.periodic);
        let pause: Duration = config.min_pause;
        progress.next_due = interval.map(|interval| (started + interval).max(Instant::now() + pause));
    }

    fn manifest(&self, progress: &Progress, under_way: &UnderWay) -> Manifest {
        let mut manifest = Manifest::new(&self.job, 0, under_way.id);
        manifest.time_ms = self.clock.now_ms();
        manifest.finished = under_way.kind == Kind::Final;
        manifest.parallelism = self.parallelism;
        manifest.operators = self.operators.clone();
        for uid in &self.sources {
            let subtasks = progress.collected.positions.get(uid);
            let positions = subtasks.into_iter().flat_map(BTreeMap::values).flatten();
            let saved = |at: &SplitPosition| SavedSplit { split: at.split.clone(), position: at.position.clone() };
            manifest.sources.insert(uid.clone(), positions.map(saved).collect());
        }
        for sink in self.sinks.keys() {
            let committables = progress.collected.committables.get(sink).into_iter().flatten();
            manifest.sinks.insert(sink.clone(), committables.map(|committable| committable.0.clone()).collect());
        }
        manifest
    }
}

/// A checkpoint whose parts are complete, on its way to the disk and the sinks.
struct Publication {
    manifest: Manifest,
    state: Vec<(CheckpointId, Vec<EncodedDelta>)>,
    committables: BTreeMap<String, Vec<Committable>>,
    sinks: BTreeMap<String, Arc<dyn Sink>>,
    retained: usize,
    savepoint: Option<PathBuf>,
    job: String,
}

/// Bytes of state by operator, and the path of the savepoint.
type Written = (HashMap<String, u64>, Option<PathBuf>);

impl Publication {
    /// Writes, decides, commits, confirms, in this order. Gives the bytes of state by operator and the savepoint's path,
    /// if there is a store.
    fn run(mut self, store: &SharedStore, abandoned: &AtomicBool) -> Result<Option<Written>> {
        let mut guard = store.lock().unwrap_or_else(PoisonError::into_inner);
        if abandoned.load(Ordering::SeqCst) {
            return Err(Error::cancelled());
        }
        let of_its_own = guard.is_some();
        if let (None, Some(target)) = (&*guard, &self.savepoint) {
            *guard = Some(Store::open(Arc::new(LocalDisk), target, &self.job)?);
            // A store without a past: the savepoint is its only checkpoint.
            self.manifest.savepoint = true;
        }
        let id = self.manifest.checkpoint;
        if let Some(store) = guard.as_mut() {
            for (id, deltas) in self.state {
                store.append(id, deltas)?;
            }
            self.manifest.incarnation = store.incarnation();
            store.publish(self.manifest)?;
        }
        // The decision stands. From here on the checkpoint may only go forward.
        for (name, committables) in &self.committables {
            if let Some(sink) = self.sinks.get(name) {
                sink.commit(committables)?;
                crash_point("one_sink_committed");
            }
        }
        let Some(store) = guard.as_mut() else { return Ok(None) };
        store.confirm(id)?;
        let savepoint = match self.savepoint {
            Some(target) if of_its_own => Some(store.savepoint(&target)?),
            Some(_) => Some(store.directory().to_owned()),
            None => None,
        };
        store.retain(self.retained)?;
        Ok(Some((store.state_bytes(), savepoint)))
    }
}

/// Merges one table that has outgrown its base. The disk is read and rows are merged without holding the store.
fn merge_one(store: &SharedStore, abandoned: &AtomicBool) -> Result<()> {
    let lock = || store.lock().unwrap_or_else(PoisonError::into_inner);
    let Some(merge) = lock().as_mut().and_then(Store::merge_candidate) else { return Ok(()) };
    let Some(merged) = merge.run()? else { return Ok(()) };
    match lock().as_mut() {
        Some(store) if !abandoned.load(Ordering::SeqCst) => store.replace(&merge, merged),
        _ => Ok(()),
    }
}

fn no_directory() -> Error {
    Error::setup("a checkpoint needs a directory").hint("SET 'execution.checkpointing.dir' = '…'")
}

/// A panic beside the job is a bug like one within it.
fn joined<T>(result: std::result::Result<T, tokio::task::JoinError>) -> Result<T> {
    result.map_err(|error| match error.try_into_panic() {
        Ok(panic) => super::job::panic_error(&*panic),
        Err(_) => Error::cancelled(),
    })
}

/// Waits for work beside the job; for ever if there is none.
async fn finished(work: &mut Option<JoinHandle<Result<()>>>) -> Result<()> {
    match work {
        Some(work) => joined(work.await)?,
        None => std::future::pending().await,
    }
}

async fn sleep_until(deadline: Option<Instant>) {
    match deadline {
        Some(deadline) => tokio::time::sleep_until(deadline).await,
        None => std::future::pending().await,
    }
}
