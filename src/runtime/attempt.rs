//! One attempt to run a job, laid out and restored, ready to be spawned.
//!
//! For `SELECT k, COUNT(*) … GROUP BY k` into a sink at parallelism 2 the tasks are
//!
//! ```text
//! source 0 ─┬─hash─▶ count 0, sink 0
//! source 1 ─┘    └─▶ count 1, sink 1
//! ```

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::sync::mpsc;

use super::build::{describe, operator};
use super::chain::{Chain, Link};
use super::channel::{Receiver, channel};
use super::checked::Checked;
use super::config::JobConfig;
use super::coordinator::Coordinator;
use super::declared::DeclaredColumns;
use super::exchange::{Exchange, Route};
use super::inputs::Inputs;
use super::job::{Shared, not_abandoned};
use super::layout::Layout;
use super::metrics::{Registry, Role, SubtaskMetrics};
use super::recover::{Recovered, recover};
use super::split_alignment::{AlignedSplit, AlignmentGroups};
use super::task::{CutRequest, Head, Report, Tail, Task};
use super::values::ValuesReader;
use super::warnings::{held_back, unbounded_state};
use crate::changelog::ChangeBatch;
use crate::checkpoint::manifest::OperatorEntry;
use crate::connectors::{ConnectorContext, Guarantee, Sink, Source, SourceReader};
use crate::error::{Error, Result};
use crate::limits::KEY_GROUPS;
use crate::operators::{Consolidate, Operator, Port};
use crate::plan::stream::{Distribution, NodeId, NodeKind, StreamGraph};
use crate::state::KeyGroupRange;
use crate::types::Firing;

/// Operators are told the time at least this often.
const TICK: Duration = Duration::from_millis(200);

/// A job that can be spawned.
pub struct Attempt {
    /// Its tasks and coordinator; `None` if an earlier run has completed it already.
    pub running: Option<Running>,
}

/// Tasks and their coordinator.
pub struct Running {
    /// The tasks.
    pub tasks: Vec<Task>,
    /// Drives their checkpoints.
    pub coordinator: Coordinator,
}

/// Lays out the job, restores it, and opens its sources and sinks. Only the `first` attempt may start afresh.
///
/// # Errors
/// Whatever cannot be opened, compiled or restored.
pub fn prepare(
    graph: &StreamGraph,
    config: &JobConfig,
    shared: &Arc<Shared>,
    sender: Option<mpsc::Sender<Result<ChangeBatch>>>,
    first: bool,
) -> Result<Attempt> {
    let parallelism = config.parallelism.clamp(1, usize::from(KEY_GROUPS));
    let connections = Connections::open(graph, config)?;
    let operators: BTreeMap<String, OperatorEntry> = graph
        .nodes
        .iter()
        .enumerate()
        .map(|(id, node)| {
            let entry = OperatorEntry { description: describe(&node.kind), fingerprint: graph.fingerprint(id) };
            (node.uid.clone(), entry)
        })
        .collect();
    // A query's rows are gone once they are read: there is nothing to go on from.
    let checkpoint = config.checkpoint.clone().filter(|_| sender.is_none());
    let recovered = recover(config, checkpoint.as_ref(), &connections.sinks, &operators, first)?;
    let (registry, metrics) = register(graph, &Layout::new(graph, parallelism));
    let mut warnings: Vec<String> = recovered.warning().into_iter().collect();
    if !config.batch && connections.sources.values().any(|source| !source.bounded()) {
        warnings.extend(held_back(&connections.sinks, checkpoint.as_ref()));
        warnings.extend(unbounded_state(graph));
    }
    shared.attempt(registry, recovered.restored_from(), warnings);
    shared
        .publishes(connections.commit_with_checkpoints(graph), checkpoint.as_ref().and_then(|config| config.interval));
    if recovered.already_complete(&operators) && !continues(graph, config, &connections, &recovered)? {
        return Ok(Attempt { running: None });
    }
    let (reports, received) = mpsc::unbounded_channel();
    let layout = Layout::new(graph, parallelism);
    let holds_back = graph.nodes.iter().any(|node| matches!(node.kind, NodeKind::ConsistentOutput));
    let visibility = config.visibility.filter(|_| holds_back);
    let aligned = visibility.is_some() || checkpoint.as_ref().is_none_or(|checkpoint| checkpoint.aligned);
    let assembly = Assembly {
        graph,
        config,
        layout,
        connections: &connections,
        recovered: &recovered,
        metrics,
        aligned_splits: AlignmentGroups::default(),
        sender,
        reports,
    };
    let (tasks, requests) = assembly.tasks(aligned)?;
    let sources = graph.nodes.iter().filter(|node| node.inputs.is_empty()).map(|node| node.uid.clone()).collect();
    let coordinator = Coordinator {
        job: config.name.clone(),
        parallelism,
        tasks: requests,
        source_tasks: tasks
            .iter()
            .filter(|task| matches!(task.head, Head::Source { .. }))
            .map(|task| task.index)
            .collect(),
        visibility,
        reports: received,
        config: checkpoint,
        store: Arc::new(Mutex::new(recovered.store)),
        abandoned: not_abandoned(),
        // Over bounded input the results are final rows: there is nothing to commit before the end.
        periodic: !config.batch,
        sinks: connections.sinks.clone(),
        operators,
        sources,
        clock: Arc::clone(&config.clock),
        shared: Arc::clone(shared),
    };
    Ok(Attempt { running: Some(Running { tasks, coordinator }) })
}

/// Whether a job that had read all its input finds more now.
///
/// # Errors
/// If it does and its result was final rows, which cannot be added to; or if it cannot be found out.
fn continues(
    graph: &StreamGraph,
    config: &JobConfig,
    connections: &Connections,
    recovered: &Recovered,
) -> Result<bool> {
    for (id, source) in &connections.sources {
        let positions = recovered.positions(&graph.nodes[*id].uid).unwrap_or_default();
        if !source.has_more(&positions)? {
            continue;
        }
        if config.batch {
            let table = describe(&graph.nodes[*id].kind);
            let what =
                format!("the job is complete, and {table} has grown since; results of batch mode are not added to");
            return Err(Error::setup(what)
                .hint("compute them anew with --fresh, or go on with SET 'execution.runtime-mode' = 'streaming'"));
        }
        return Ok(true);
    }
    Ok(false)
}

/// The job's sources by node and sinks by name.
struct Connections {
    sources: BTreeMap<NodeId, Arc<dyn Source>>,
    sinks: BTreeMap<String, Arc<dyn Sink>>,
}

impl Connections {
    fn open(graph: &StreamGraph, config: &JobConfig) -> Result<Connections> {
        let mut connections = Connections { sources: BTreeMap::new(), sinks: BTreeMap::new() };
        let in_order = graph.depends_on_arrival();
        for (id, node) in graph.nodes.iter().enumerate() {
            let (NodeKind::Source { table, .. } | NodeKind::Sink { table, .. }) = &node.kind else { continue };
            let context = ConnectorContext {
                table: Arc::clone(table),
                console: Arc::clone(&config.console),
                batch: config.batch,
                zone: config.zone,
                in_order,
            };
            if let NodeKind::Sink { name, .. } = &node.kind {
                connections.sinks.insert(name.clone(), config.connectors.sink(table, &context)?);
            } else {
                connections.sources.insert(id, config.connectors.source(table, &context)?);
            }
        }
        Ok(connections)
    }

    /// Uids of the sinks whose rows become visible with a checkpoint.
    fn commit_with_checkpoints(&self, graph: &StreamGraph) -> Vec<String> {
        let commits =
            |name: &String| self.sinks.get(name).is_some_and(|sink| sink.guarantee() == Guarantee::ExactlyOnce);
        let uid = |node: &crate::plan::stream::Node| match &node.kind {
            NodeKind::Sink { name, .. } if commits(name) => Some(node.uid.clone()),
            _ => None,
        };
        graph.nodes.iter().filter_map(uid).collect()
    }
}

/// Makes the counters of every node; gives them by node and subtask.
fn register(graph: &StreamGraph, layout: &Layout) -> (Registry, Vec<Vec<Arc<SubtaskMetrics>>>) {
    let mut registry = Registry::default();
    let add = |(node, parallelism): (&crate::plan::stream::Node, &usize)| {
        let role = match node.kind {
            NodeKind::Source { .. } | NodeKind::Values { .. } => Role::Source,
            NodeKind::Sink { .. } | NodeKind::Collect => Role::Sink,
            _ => Role::Inner,
        };
        registry.add(&node.uid, &describe(&node.kind), role, *parallelism)
    };
    let metrics = graph.nodes.iter().zip(&layout.parallelism).map(add).collect();
    (registry, metrics)
}

/// Everything that tasks are made from.
struct Assembly<'a> {
    graph: &'a StreamGraph,
    config: &'a JobConfig,
    layout: Layout,
    connections: &'a Connections,
    recovered: &'a Recovered,
    metrics: Vec<Vec<Arc<SubtaskMetrics>>>,
    aligned_splits: AlignmentGroups,
    sender: Option<mpsc::Sender<Result<ChangeBatch>>>,
    reports: mpsc::UnboundedSender<Report>,
}

/// The channels between tasks.
struct Wiring {
    /// By producing node and subtask.
    exchanges: Vec<Vec<Exchange>>,
    /// By receiving node and subtask.
    receivers: Vec<Vec<Vec<(Port, Receiver)>>>,
}

impl Assembly<'_> {
    fn tasks(mut self, aligned: bool) -> Result<(Vec<Task>, Vec<mpsc::UnboundedSender<CutRequest>>)> {
        let mut wiring = self.wire();
        let (mut tasks, mut requests) = (Vec::new(), Vec::new());
        for chain in std::mem::take(&mut self.layout.chains) {
            let (Some(first), Some(last)) = (chain.first().copied(), chain.last().copied()) else { continue };
            for subtask in 0..self.layout.parallelism[first] {
                let (sender, receiver) = mpsc::unbounded_channel();
                requests.push(sender);
                let receivers = std::mem::take(&mut wiring.receivers[first][subtask]);
                let exchange = std::mem::take(&mut wiring.exchanges[last][subtask]);
                tasks.push(Task {
                    index: tasks.len(),
                    subtask,
                    head: self.head(first, subtask, receivers, aligned)?,
                    chain: self.chain(&chain, subtask)?,
                    tail: self.tail(last, subtask, exchange)?,
                    requests: receiver,
                    reports: self.reports.clone(),
                    clock: Arc::clone(&self.config.clock),
                    tick: self.tick(&chain),
                    metrics: Arc::clone(&self.metrics[last][subtask]),
                    alignment: self.alignment(&chain, subtask),
                });
            }
        }
        Ok((tasks, requests))
    }

    /// Joins the last node of every chain with its users.
    fn wire(&self) -> Wiring {
        let each = || self.layout.parallelism.iter();
        let mut wiring = Wiring {
            exchanges: each().map(|subtasks| (0..*subtasks).map(|_| Exchange::default()).collect()).collect(),
            receivers: each().map(|subtasks| (0..*subtasks).map(|_| Vec::new()).collect()).collect(),
        };
        for from in self.layout.chains.iter().filter_map(|chain| chain.last().copied()) {
            for &(to, port) in &self.layout.users[from] {
                let targets = self.layout.parallelism[to];
                for subtask in 0..self.layout.parallelism[from] {
                    let (route, targets) = match &self.graph.nodes[to].inputs[port].distribution {
                        // The same target for all rows of a subtask: the order of a key's changes is kept.
                        Distribution::Forward => (Route::One, subtask % targets..subtask % targets + 1),
                        Distribution::Single => (Route::One, 0..1),
                        Distribution::Hash(columns) => (Route::Hash(columns.clone()), 0..targets),
                    };
                    let connect = |target: usize| {
                        let (sender, receiver) = channel();
                        wiring.receivers[to][target].push((port, receiver));
                        sender
                    };
                    let senders = targets.map(connect).collect();
                    wiring.exchanges[from][subtask].add(route, senders);
                }
            }
        }
        wiring
    }

    fn head(&self, id: NodeId, subtask: usize, receivers: Vec<(Port, Receiver)>, aligned: bool) -> Result<Head> {
        let node = &self.graph.nodes[id];
        let restored = self.recovered.positions(&node.uid);
        let reader: Box<dyn SourceReader> = match &node.kind {
            NodeKind::Values { rows } => Box::new(ValuesReader::new(rows.clone(), restored.as_deref())),
            NodeKind::Source { projection, .. } => {
                let source = self.connections.sources.get(&id).ok_or_else(|| Error::bug("a source was not opened"))?;
                source.open(subtask, self.layout.parallelism[id], projection, restored.as_deref())?
            }
            _ => return Ok(Head::Inputs(Inputs::new(receivers, node.inputs.len(), aligned))),
        };
        Ok(Head::Source { uid: node.uid.clone(), reader, metrics: Arc::clone(&self.metrics[id][subtask]) })
    }

    /// The operators of a chain, restored.
    fn chain(&self, nodes: &[NodeId], subtask: usize) -> Result<Chain> {
        let mut links = Vec::new();
        for &id in nodes {
            let node = &self.graph.nodes[id];
            let metrics = &self.metrics[id][subtask];
            if let (NodeKind::Sink { .. } | NodeKind::Collect, true) = (&node.kind, self.config.batch)
                && let Some(fold) = self.fold(id)?
            {
                links.push(Link::new(fold, &format!("{}/consolidate", node.uid), Arc::default(), 0));
            }
            let range = KeyGroupRange::of_subtask(subtask, self.layout.parallelism[id]);
            let Some(mut operator) = operator(self.graph, node, self.config, range)? else { continue };
            if cfg!(debug_assertions) {
                operator = Box::new(Checked::new(operator, &node.uid, node.schema.clone(), node.mode));
            }
            if let Some(restored) = self.recovered.state(&node.uid, range)? {
                operator.restore(restored).map_err(|error| error.context(describe(&node.kind)))?;
            }
            let idle_timeout = match node.kind {
                NodeKind::WatermarkAssigner { ref policy, .. } => policy.idle_timeout_ms,
                _ => 0,
            };
            links.push(Link::new(operator, &node.uid, Arc::clone(metrics), idle_timeout));
        }
        Ok(Chain::new(links))
    }

    /// The place of a chain among those that wait for each other: one from a source to what derives its watermarks.
    fn alignment(&self, nodes: &[NodeId], subtask: usize) -> Option<AlignedSplit> {
        let source = nodes.first().filter(|first| matches!(self.graph.nodes[**first].kind, NodeKind::Source { .. }));
        source?;
        nodes.iter().find_map(|id| match &self.graph.nodes[*id].kind {
            NodeKind::WatermarkAssigner { policy, .. } => {
                let alignment = policy.alignment.as_ref()?;
                Some(self.aligned_splits.join(alignment, Arc::clone(&self.metrics[*id][subtask])))
            }
            _ => None,
        })
    }

    /// In batch mode, what folds an updating changelog before it leaves the job.
    fn fold(&self, id: NodeId) -> Result<Option<Box<dyn Operator>>> {
        let Some(edge) = self.graph.nodes[id].inputs.first() else { return Ok(None) };
        let input = &self.graph.nodes[edge.from];
        if input.mode.is_append_only() {
            return Ok(None);
        }
        let key = input.upsert_key.clone().filter(|_| input.mode.is_upsert());
        Ok(Some(Box::new(Consolidate::new(input.schema.clone(), key)?)))
    }

    fn tail(&self, id: NodeId, subtask: usize, exchange: Exchange) -> Result<Tail> {
        let node = &self.graph.nodes[id];
        let metrics = Arc::clone(&self.metrics[id][subtask]);
        Ok(match &node.kind {
            NodeKind::Sink { name, .. } => {
                let sink = self.connections.sinks.get(name).ok_or_else(|| Error::bug("a sink was not opened"))?;
                let writer = sink.open(
                    &self.recovered.sink_name(name),
                    subtask,
                    self.recovered.incarnation,
                    node.schema.clone(),
                )?;
                let columns = DeclaredColumns::new(node.schema.clone());
                Tail::Sink { name: name.clone(), columns, writer, metrics, dirty: false }
            }
            NodeKind::Collect => {
                let sender = self.sender.clone().ok_or_else(|| Error::bug("nobody collects the result"))?;
                Tail::Collect { sender, metrics }
            }
            _ => Tail::Exchange(exchange),
        })
    }

    /// How often the clock of a chain must be looked at: as often as a bundle of it may close or a window be told.
    fn tick(&self, nodes: &[NodeId]) -> Duration {
        let latency = |id: &NodeId| match &self.graph.nodes[*id].kind {
            NodeKind::GroupAggregate { mini_batch: Some(bundle), .. }
            | NodeKind::LocalAggregate { mini_batch: bundle, .. } => Some(Duration::from_millis(bundle.latency_ms)),
            NodeKind::WindowAggregate { emission: Some(emission), .. } => {
                let delay = |firing: Option<Firing>| match firing {
                    Some(Firing::Every(delay)) => u64::try_from(delay).ok(),
                    Some(Firing::EachRow) | None => None,
                };
                delay(emission.early).into_iter().chain(delay(emission.late)).min().map(Duration::from_millis)
            }
            _ => None,
        };
        nodes.iter().filter_map(latency).chain([TICK]).min().unwrap_or(TICK).max(Duration::from_millis(1))
    }
}
