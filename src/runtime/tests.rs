//! Whole jobs over counting sources and an in-memory two-phase sink: killed, restored, rescaled, and always exact.

mod algebra;
mod windows;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use arrow::array::{ArrayRef, AsArray, Int64Array, RecordBatch};
use arrow::datatypes::{DataType, Field, Int64Type, Schema, SchemaRef};
use futures::future::BoxFuture;
use tempfile::TempDir;

use super::*;
use crate::catalog::{Options, TableDefinition};
use crate::changelog::{ChangeBatch, ChangelogMode, CheckpointId};
use crate::connectors::{
    Committable, ConnectorContext, Console, Guarantee, Sink, SinkWriter, Source, SourceEvent, SourceReader,
    SplitPosition,
};
use crate::error::{Error, ErrorKind, Result};
use crate::plan::stream::{Distribution, Edge, Node, NodeKind, NodeParallelism, StateBound, StreamGraph};
use crate::types::{AggregateCall, AggregateFunction};

/// Rows of each of the source's splits.
const ROWS: i64 = 4_000;
/// Splits of the source.
const SPLITS: usize = 4;
/// Rows of one batch.
const BATCH: i64 = 50;

fn key_schema() -> SchemaRef {
    Arc::new(Schema::new(vec![Field::new("k", DataType::Int64, false)]))
}

fn count_schema() -> SchemaRef {
    Arc::new(Schema::new(vec![Field::new("k", DataType::Int64, false), Field::new("n", DataType::Int64, false)]))
}

/// What the outside world sees, and how it behaves.
#[derive(Default)]
struct World {
    /// Rows a sink has made visible: by committable, so that committing twice is harmless.
    visible: Mutex<BTreeMap<String, Vec<Vec<i64>>>>,
    /// Rows that are prepared, by committable: durable, not visible.
    staged: Mutex<BTreeMap<String, Vec<Vec<i64>>>>,
    /// Rows read by all readers.
    read: AtomicU64,
    /// The reader fails once so many rows have been read; 0: never.
    fail_at: AtomicU64,
    /// Milliseconds a write takes.
    slow_ms: AtomicU64,
    /// Readers wait this long between batches.
    pace_us: AtomicU64,
    /// Readers that never end.
    endless: AtomicUsize,
}

struct Numbers(Arc<World>);

struct NumbersReader {
    world: Arc<World>,
    splits: Vec<(usize, i64)>,
    turn: usize,
}

impl Source for Numbers {
    fn mode(&self) -> ChangelogMode {
        ChangelogMode::APPEND
    }
    fn bounded(&self) -> bool {
        true
    }
    fn open(
        &self,
        subtask: usize,
        parallelism: usize,
        _projection: &[usize],
        restored: Option<&[SplitPosition]>,
    ) -> Result<Box<dyn SourceReader>> {
        let position = |split: usize| {
            let saved = restored.into_iter().flatten().find(|saved| saved.split == split.to_string());
            saved.and_then(|saved| saved.position.as_i64()).unwrap_or(0)
        };
        let splits = (0..SPLITS).filter(|split| split % parallelism == subtask).map(|s| (s, position(s))).collect();
        Ok(Box::new(NumbersReader { world: Arc::clone(&self.0), splits, turn: 0 }))
    }
}

impl SourceReader for NumbersReader {
    fn next(&mut self) -> BoxFuture<'_, Result<SourceEvent>> {
        Box::pin(async {
            let pace = self.world.pace_us.load(Ordering::Relaxed);
            if pace > 0 {
                tokio::time::sleep(Duration::from_micros(pace)).await;
            }
            self.turn += 1;
            let count = self.splits.len().max(1);
            let endless = self.world.endless.load(Ordering::Relaxed) > 0;
            for offset in 0..self.splits.len() {
                let (split, at) = &mut self.splits[(self.turn + offset) % count];
                if *at < ROWS || endless {
                    let from = *at;
                    *at = if endless { from + BATCH } else { (from + BATCH).min(ROWS) };
                    let keys = (from..*at).map(|row| (row * SPLITS as i64 + *split as i64) % 97);
                    let keys: ArrayRef = Arc::new(Int64Array::from_iter_values(keys));
                    let read = self.world.read.fetch_add(keys.len() as u64, Ordering::Relaxed);
                    let fail_at = self.world.fail_at.load(Ordering::Relaxed);
                    if fail_at > 0 && read >= fail_at {
                        self.world.fail_at.store(0, Ordering::Relaxed);
                        return Err(Error::external(true, "the source is unplugged"));
                    }
                    return Ok(SourceEvent::Changes(ChangeBatch::inserts(RecordBatch::try_new(
                        key_schema(),
                        vec![keys],
                    )?)));
                }
            }
            Ok(SourceEvent::End)
        })
    }
    fn positions(&self) -> Vec<SplitPosition> {
        let position = |(split, at): &(usize, i64)| SplitPosition { split: split.to_string(), position: (*at).into() };
        self.splits.iter().map(position).collect()
    }
}

struct Memory(Arc<World>);

struct MemoryWriter {
    world: Arc<World>,
    name: String,
    rows: Vec<Vec<i64>>,
}

impl Sink for Memory {
    fn accepts(&self) -> ChangelogMode {
        ChangelogMode::RETRACT
    }
    fn guarantee(&self) -> Guarantee {
        Guarantee::ExactlyOnce
    }
    fn open(&self, sink: &str, subtask: usize, incarnation: u64, _schema: SchemaRef) -> Result<Box<dyn SinkWriter>> {
        let name = format!("{sink}-{subtask}-{incarnation}");
        Ok(Box::new(MemoryWriter { world: Arc::clone(&self.0), name, rows: Vec::new() }))
    }
    fn commit(&self, committables: &[Committable]) -> Result<()> {
        for committable in committables {
            let name = committable.0.as_str().unwrap().to_owned();
            let rows = self.0.staged.lock().unwrap().get(&name).cloned();
            self.0.visible.lock().unwrap().insert(name, rows.ok_or_else(|| Error::state("staged rows are lost"))?);
        }
        Ok(())
    }
}

impl SinkWriter for MemoryWriter {
    fn write(&mut self, batch: &ChangeBatch) -> Result<()> {
        std::thread::sleep(Duration::from_millis(self.world.slow_ms.load(Ordering::Relaxed)));
        for row in 0..batch.len() {
            let cells = batch.rows().columns().iter().map(|column| column.as_primitive::<Int64Type>().value(row));
            self.rows.push(std::iter::once(batch.kind(row).sign()).chain(cells).collect());
        }
        Ok(())
    }
    fn prepare(&mut self, checkpoint: CheckpointId) -> Result<Option<Committable>> {
        if self.rows.is_empty() {
            return Ok(None);
        }
        let name = format!("{}-{checkpoint}", self.name);
        let before = self.world.staged.lock().unwrap().insert(name.clone(), std::mem::take(&mut self.rows));
        assert!(before.is_none(), "{name} was prepared twice");
        Ok(Some(Committable(name.into())))
    }
}

struct Nowhere;

impl Console for Nowhere {
    fn write(&self, _error: bool, _bytes: &[u8]) -> std::io::Result<()> {
        Ok(())
    }
    fn input(&self) -> Box<dyn std::io::Read + Send> {
        Box::new(std::io::empty())
    }
}

struct TestConnectors(Arc<World>);

impl Connectors for TestConnectors {
    fn source(&self, _table: &Arc<TableDefinition>, _context: &ConnectorContext) -> Result<Arc<dyn Source>> {
        Ok(Arc::new(Numbers(Arc::clone(&self.0))))
    }
    fn sink(&self, _table: &Arc<TableDefinition>, _context: &ConnectorContext) -> Result<Arc<dyn Sink>> {
        Ok(Arc::new(Memory(Arc::clone(&self.0))))
    }
}

fn table(name: &str) -> Arc<TableDefinition> {
    Arc::new(TableDefinition {
        name: name.to_owned(),
        columns: Vec::new(),
        watermark: None,
        primary_key: Vec::new(),
        primary_key_name: None,
        partitioned_by: Vec::new(),
        options: Options::default(),
        comment: None,
        temporary: false,
        span: None,
    })
}

fn node(kind: NodeKind, inputs: &[(usize, Distribution)], schema: SchemaRef, mode: ChangelogMode, uid: &str) -> Node {
    let inputs = inputs.iter().map(|(from, distribution)| Edge { from: *from, distribution: distribution.clone() });
    Node {
        kind,
        inputs: inputs.collect(),
        schema,
        mode,
        upsert_key: None,
        rowtime: Vec::new(),
        proctime: Vec::new(),
        state: StateBound::Stateless,
        parallelism: NodeParallelism::Any,
        uid: uid.to_owned(),
    }
}

/// `SELECT k, COUNT(*) FROM numbers GROUP BY k` into `last`.
fn counting(last: NodeKind) -> StreamGraph {
    let source = NodeKind::Source { table: table("numbers"), projection: vec![0] };
    let count = AggregateCall {
        function: AggregateFunction::Count,
        arguments: Vec::new(),
        distinct: false,
        order: Vec::new(),
        filter: None,
        monotone: false,
        output: Arc::new(Field::new("n", DataType::Int64, false)),
    };
    let aggregate = NodeKind::GroupAggregate {
        keys: vec![0],
        aggregates: vec![count],
        append_only_input: true,
        emit_update_before: true,
        mini_batch: None,
        ttl_ms: 0,
    };
    let (append, retract) = (ChangelogMode::APPEND, ChangelogMode::RETRACT);
    StreamGraph {
        nodes: vec![
            node(source, &[], key_schema(), append, "source"),
            node(aggregate, &[(0, Distribution::Hash(vec![0]))], count_schema(), retract, "count"),
            node(last, &[(1, Distribution::Forward)], count_schema(), retract, "last"),
        ],
    }
}

fn to_sink() -> StreamGraph {
    counting(NodeKind::Sink { table: table("out"), name: "out".to_owned() })
}

fn config(world: &Arc<World>, directory: Option<&TempDir>, parallelism: usize) -> JobConfig {
    let checkpoint = directory.map(|directory| CheckpointConfig {
        directory: directory.path().to_owned(),
        interval: Some(Duration::from_millis(3)),
        retained: 1,
        aligned: true,
        timeout: Duration::from_secs(60),
        min_pause: Duration::ZERO,
        tolerable_failures: 0,
        fresh: false,
        allow_non_restored_state: false,
        restore_path: None,
    });
    JobConfig {
        name: "counts".to_owned(),
        parallelism,
        batch: false,
        checkpoint,
        clock: Arc::new(SystemClock),
        zone: crate::types::TimeZone::UTC,
        console: Arc::new(Nowhere),
        connectors: Arc::new(TestConnectors(Arc::clone(world))),
        watermark_interval_ms: 200,
        visibility: None,
        restart: RestartStrategy::None,
    }
}

/// What the visible changes add up to: count by key, each with multiplicity one.
fn visible(world: &World) -> BTreeMap<i64, i64> {
    let mut rows: BTreeMap<(i64, i64), i64> = BTreeMap::new();
    for row in world.visible.lock().unwrap().values().flatten() {
        *rows.entry((row[1], row[2])).or_default() += row[0];
    }
    rows.retain(|_, times| *times != 0);
    assert!(rows.values().all(|times| *times == 1), "rows were lost or doubled: {rows:?}");
    rows.into_keys().collect()
}

fn expected() -> BTreeMap<i64, i64> {
    let mut counts = BTreeMap::new();
    (0..ROWS * SPLITS as i64).for_each(|row| *counts.entry(row % 97).or_default() += 1);
    counts
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_bounded_job_commits_everything_once_with_and_without_a_directory() {
    for parallelism in [1, 2, 4] {
        let world = Arc::new(World::default());
        let job = start(to_sink(), config(&world, None, parallelism)).unwrap();
        let report = job.handle.wait().await.unwrap();
        assert_eq!(visible(&world), expected());
        assert_eq!(report.totals.rows_read, (ROWS * SPLITS as i64) as u64);
        assert_eq!(job.handle.wait().await.unwrap().totals, report.totals, "later callers get the same answer");

        let (world, directory) = (Arc::new(World::default()), TempDir::new().unwrap());
        let job = start(to_sink(), config(&world, Some(&directory), parallelism)).unwrap();
        let report = job.handle.wait().await.unwrap();
        assert_eq!(visible(&world), expected());
        drop(job);
        let again =
            start(to_sink(), config(&world, Some(&directory), parallelism)).unwrap().handle.wait().await.unwrap();
        assert!(again.already_complete && again.totals.rows_read == 0);
        assert_eq!(again.restored_from, report.last_checkpoint);
        assert_eq!(visible(&world), expected());
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn killed_at_any_time_and_restored_at_any_parallelism_every_change_is_there_once() {
    for seed in 0..3u64 {
        let (world, directory) = (Arc::new(World::default()), TempDir::new().unwrap());
        world.pace_us.store(200, Ordering::Relaxed);
        let mut restored = BTreeSet::new();
        for attempt in 0.. {
            let parallelism = [1, 2, 4, 3][((seed + attempt) % 4) as usize];
            let job = start(to_sink(), config(&world, Some(&directory), parallelism)).unwrap();
            let wait = Duration::from_millis(15 + (seed * 7 + attempt * 13) % 70);
            if let Ok(report) = tokio::time::timeout(wait, job.handle.wait()).await {
                restored.extend(report.unwrap().restored_from);
                break;
            }
            job.handle.cancel();
            match job.handle.wait().await {
                // It came to its end between the time's running out and the cancellation.
                Ok(report) => {
                    restored.extend(report.restored_from);
                    break;
                }
                Err(error) => assert_eq!(error.kind(), ErrorKind::Cancelled, "{error}"),
            }
            // What is visible at any time is a union of whole checkpoints.
            visible(&world);
        }
        assert_eq!(visible(&world), expected(), "seed {seed}");
        assert!(!restored.is_empty(), "the job was never restored");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_failure_is_the_answer_or_is_gone_over_by_the_restart_strategy() {
    let (world, directory) = (Arc::new(World::default()), TempDir::new().unwrap());
    world.fail_at.store(9_000, Ordering::Relaxed);
    let job = start(to_sink(), config(&world, Some(&directory), 2)).unwrap();
    let error = job.handle.wait().await.unwrap_err();
    assert!(error.message().contains("unplugged"), "{error}");

    world.fail_at.store(world.read.load(Ordering::Relaxed) + 4_000, Ordering::Relaxed);
    let mut config = config(&world, Some(&directory), 2);
    config.restart = RestartStrategy::FixedDelay { attempts: 1, delay: Duration::ZERO };
    let report = start(to_sink(), config).unwrap().handle.wait().await.unwrap();
    assert_eq!(report.restarts, 1);
    assert_eq!(visible(&world), expected());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stopped_job_has_committed_and_its_savepoint_begins_another() {
    let (world, directory) = (Arc::new(World::default()), TempDir::new().unwrap());
    world.pace_us.store(500, Ordering::Relaxed);
    let job = start(to_sink(), config(&world, Some(&directory), 2)).unwrap();
    job.handle.checkpoint().await.unwrap();
    let savepoints = TempDir::new().unwrap();
    let report = job.handle.stop_with_savepoint(savepoints.path()).await.unwrap();
    assert!(report.savepoint.as_ref().is_some_and(|path| path.starts_with(savepoints.path())));
    let total: i64 = visible(&world).values().sum();
    assert!(total > 0 && total < ROWS * SPLITS as i64);
    let listed = crate::checkpoint::inspect::list(savepoints.path()).unwrap();
    assert_eq!((listed.len(), listed[0].savepoint, Some(listed[0].id)), (1, true, report.last_checkpoint));

    // The savepoint stands by itself: the job's own directory is gone.
    drop(directory);
    let elsewhere = TempDir::new().unwrap();
    let mut config = config(&world, Some(&elsewhere), 4);
    config.checkpoint.as_mut().unwrap().restore_path = Some(savepoints.path().to_owned());
    let report = start(to_sink(), config).unwrap().handle.wait().await.unwrap();
    assert!(report.restored_from.is_some());
    assert_eq!(visible(&world), expected());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_second_process_is_told_who_holds_the_directory() {
    let (world, directory) = (Arc::new(World::default()), TempDir::new().unwrap());
    world.endless.store(1, Ordering::Relaxed);
    let job = start(to_sink(), config(&world, Some(&directory), 1)).unwrap();
    let error = start(to_sink(), config(&world, Some(&directory), 1)).err().unwrap();
    assert!(error.message().contains(&format!("process {}", std::process::id())), "{error}");
    job.handle.cancel();
    drop(job.handle.wait().await);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_changed_plan_stops_unless_state_may_be_lost() {
    let (world, directory) = (Arc::new(World::default()), TempDir::new().unwrap());
    world.endless.store(1, Ordering::Relaxed);
    let job = start(to_sink(), config(&world, Some(&directory), 1)).unwrap();
    job.handle.checkpoint().await.unwrap();
    job.handle.stop().await.unwrap();
    let mut changed = to_sink();
    changed.nodes[1].uid = "another count".to_owned();
    let error = start(changed.clone(), config(&world, Some(&directory), 1)).err().unwrap();
    assert!(error.message().contains("GroupAggregate (count)"), "{error}");
    let mut config = config(&world, Some(&directory), 1);
    config.checkpoint.as_mut().unwrap().allow_non_restored_state = true;
    start(changed, config).unwrap().handle.cancel();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_slow_sink_slows_its_sources() {
    let world = Arc::new(World::default());
    world.endless.store(1, Ordering::Relaxed);
    world.slow_ms.store(20, Ordering::Relaxed);
    let job = start(to_sink(), config(&world, None, 2)).unwrap();
    tokio::time::sleep(Duration::from_millis(200)).await;
    let early = world.read.load(Ordering::Relaxed);
    tokio::time::sleep(Duration::from_millis(600)).await;
    let late = world.read.load(Ordering::Relaxed);
    // 8 channels' worth of events at most, whatever the time: a free-running source reads millions.
    let bound = (4 * crate::limits::CHANNEL_EVENTS as u64 + 100) * BATCH as u64;
    assert!(late < bound, "{early} rows early, {late} rows later, at most {bound} expected");
    job.handle.cancel();
    drop(job.handle.wait().await);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_query_hands_over_its_changes_and_stops_when_nobody_reads() {
    let world = Arc::new(World::default());
    let mut job = start(counting(NodeKind::Collect), config(&world, None, 1)).unwrap();
    let mut counts: BTreeMap<i64, i64> = BTreeMap::new();
    let changes = job.changes.as_mut().unwrap();
    while let Some(batch) = changes.recv().await {
        let batch = batch.unwrap();
        let (keys, values) = (batch.rows().column(0), batch.rows().column(1));
        for row in (0..batch.len()).filter(|row| !batch.kind(*row).is_retraction()) {
            counts.insert(keys.as_primitive::<Int64Type>().value(row), values.as_primitive::<Int64Type>().value(row));
        }
    }
    assert_eq!(counts, expected());

    world.endless.store(1, Ordering::Relaxed);
    let job = start(counting(NodeKind::Collect), config(&world, None, 2)).unwrap();
    drop(job.changes);
    assert!(job.handle.wait().await.is_err_and(|error| error.kind() == ErrorKind::Cancelled));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn batch_mode_gives_only_the_final_rows() {
    let world = Arc::new(World::default());
    let mut config = config(&world, None, 2);
    config.batch = true;
    start(to_sink(), config).unwrap().handle.wait().await.unwrap();
    let rows: usize = world.visible.lock().unwrap().values().map(Vec::len).sum();
    assert_eq!(rows, 97);
    assert_eq!(visible(&world), expected());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn constant_rows_and_a_shared_source_reach_every_user_once() {
    let rows = RecordBatch::try_new(key_schema(), vec![Arc::new(Int64Array::from(vec![1, 2, 3]))]).unwrap();
    let append = ChangelogMode::APPEND;
    let sink = |name: &str| NodeKind::Sink { table: table(name), name: name.to_owned() };
    let forward = Distribution::Forward;
    let graph = StreamGraph {
        nodes: vec![
            node(NodeKind::Values { rows }, &[], key_schema(), append, "values"),
            node(NodeKind::Union, &[(0, forward.clone()), (0, forward.clone())], key_schema(), append, "union"),
            node(sink("a"), &[(1, forward.clone())], key_schema(), append, "a"),
            node(sink("b"), &[(0, forward)], key_schema(), append, "b"),
        ],
    };
    let (world, directory) = (Arc::new(World::default()), TempDir::new().unwrap());
    start(graph, config(&world, Some(&directory), 3)).unwrap().handle.wait().await.unwrap();
    let visible = world.visible.lock().unwrap();
    let of = |sink: &str| {
        visible.iter().filter(|(name, _)| name.starts_with(sink)).map(|(_, rows)| rows.len()).sum::<usize>()
    };
    assert_eq!((of("a"), of("b")), (6, 3));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn checkpoints_that_are_given_up_or_not_aligned_lose_nothing() {
    for aligned in [true, false] {
        let (world, directory) = (Arc::new(World::default()), TempDir::new().unwrap());
        world.slow_ms.store(1, Ordering::Relaxed);
        let mut config = config(&world, Some(&directory), 2);
        let checkpoint = config.checkpoint.as_mut().unwrap();
        (checkpoint.timeout, checkpoint.tolerable_failures) = (Duration::from_millis(2), u32::MAX);
        checkpoint.aligned = aligned;
        start(to_sink(), config).unwrap().handle.wait().await.unwrap();
        assert_eq!(visible(&world), expected());
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn too_many_given_up_checkpoints_are_a_failure() {
    let (world, directory) = (Arc::new(World::default()), TempDir::new().unwrap());
    world.slow_ms.store(5, Ordering::Relaxed);
    // On a busy machine some checkpoints are in time: there must always be another one.
    world.endless.store(1, Ordering::Relaxed);
    let mut config = config(&world, Some(&directory), 2);
    config.checkpoint.as_mut().unwrap().timeout = Duration::from_millis(2);
    let error = start(to_sink(), config).unwrap().handle.wait().await.unwrap_err();
    assert!(error.message().contains("did not complete within"), "{error}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_savepoint_needs_no_checkpoint_directory() {
    let (world, savepoints) = (Arc::new(World::default()), TempDir::new().unwrap());
    world.pace_us.store(500, Ordering::Relaxed);
    let job = start(to_sink(), config(&world, None, 2)).unwrap();
    tokio::time::sleep(Duration::from_millis(30)).await;
    let report = job.handle.stop_with_savepoint(savepoints.path()).await.unwrap();
    let elsewhere = TempDir::new().unwrap();
    let mut config = config(&world, Some(&elsewhere), 1);
    config.checkpoint.as_mut().unwrap().restore_path = report.savepoint;
    start(to_sink(), config).unwrap().handle.wait().await.unwrap();
    assert_eq!(visible(&world), expected());
}

/// A panic in a writer.
struct Panics;

impl Connectors for Panics {
    fn source(&self, _table: &Arc<TableDefinition>, _context: &ConnectorContext) -> Result<Arc<dyn Source>> {
        Ok(Arc::new(Numbers(Arc::default())))
    }
    fn sink(&self, _table: &Arc<TableDefinition>, _context: &ConnectorContext) -> Result<Arc<dyn Sink>> {
        Ok(Arc::new(Panics))
    }
}

impl Sink for Panics {
    fn accepts(&self) -> ChangelogMode {
        ChangelogMode::RETRACT
    }
    fn guarantee(&self) -> Guarantee {
        Guarantee::None
    }
    fn open(&self, _sink: &str, _subtask: usize, _incarnation: u64, _: SchemaRef) -> Result<Box<dyn SinkWriter>> {
        Ok(Box::new(Panics))
    }
}

impl SinkWriter for Panics {
    fn write(&mut self, _batch: &ChangeBatch) -> Result<()> {
        panic!("a bug in the writer");
    }
    fn prepare(&mut self, _checkpoint: CheckpointId) -> Result<Option<Committable>> {
        Ok(None)
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_panic_is_the_jobs_answer_and_not_the_programs_end() {
    let mut config = config(&Arc::default(), None, 2);
    config.connectors = Arc::new(Panics);
    let error = start(to_sink(), config).unwrap().handle.wait().await.unwrap_err();
    assert_eq!((error.kind(), error.message()), (ErrorKind::Bug, "a bug in the writer"));
}
