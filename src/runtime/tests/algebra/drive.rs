//! A stream graph driven without tasks and channels: every event goes where its edge says, in any order that channels
//! allow, and state is saved and restored at will.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, Int64Array, RecordBatch, RecordBatchOptions, StringArray};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Int64Type};
use rand::RngExt;
use rand::rngs::StdRng;

use super::query::{Row, Value};
use crate::changelog::{ChangeBatch, Event, Kind, Watermark};
use crate::checkpoint::state_file::{EncodedDelta, EncodedRows, decode_rows, encode_snapshot, merge};
use crate::error::{Error, Result};
use crate::operators::{Operator, Output};
use crate::plan::stream::{Distribution, NodeKind, StreamGraph};
use crate::runtime::build::operator;
use crate::runtime::checked::Checked;
use crate::runtime::config::JobConfig;
use crate::runtime::exchange::split;
use crate::runtime::layout::Layout;
use crate::runtime::watermarks::WatermarkMerger;
use crate::state::{KeyGroupRange, Restored, Scope, TableDelta};

/// Rows, and how often each is there.
pub type Multiset = BTreeMap<Row, i64>;

/// An operator subtask and its saved state.
struct Subtask {
    operator: Option<Box<dyn Operator>>,
    output: Output,
    saved: Vec<TableDelta>,
}

/// From a subtask to a port of another.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Channel {
    from: (usize, usize),
    to: (usize, usize),
    port: usize,
}

/// By subtask: the channels into it, and how far event time has come on them.
type Mergers = BTreeMap<(usize, usize), (Vec<Channel>, WatermarkMerger)>;

pub struct Simulation<'a> {
    graph: &'a StreamGraph,
    config: JobConfig,
    layout: Layout,
    subtasks: Vec<Vec<Subtask>>,
    /// What each node has said and not taken back.
    said: Vec<Multiset>,
    channels: BTreeMap<Channel, VecDeque<Event>>,
    /// What has come on the channels into each subtask, if watermarks travel.
    merged: Option<Mergers>,
    random: StdRng,
    checkpoint: u64,
    /// The result.
    pub result: Multiset,
}

impl<'a> Simulation<'a> {
    pub fn new(graph: &'a StreamGraph, config: JobConfig, random: StdRng) -> Result<Simulation<'a>> {
        let mut simulation = Simulation {
            graph,
            layout: Layout::new(graph, config.parallelism),
            config,
            subtasks: Vec::new(),
            said: vec![Multiset::new(); graph.nodes.len()],
            channels: BTreeMap::new(),
            merged: None,
            random,
            checkpoint: 0,
            result: Multiset::new(),
        };
        simulation.subtasks = simulation.made(None)?;
        for (id, node) in graph.nodes.iter().enumerate() {
            if let NodeKind::Values { rows } = &node.kind {
                simulation.send(id, 0, ChangeBatch::inserts(rows.clone()))?;
            }
        }
        Ok(simulation)
    }

    /// Lets watermarks travel with the rows.
    pub fn timed(mut self) -> Simulation<'a> {
        self.merged = Some(self.mergers());
        self
    }

    /// The channels into each subtask.
    fn mergers(&self) -> Mergers {
        let mut into: BTreeMap<(usize, usize), Vec<Channel>> = BTreeMap::new();
        for (from, users) in self.layout.users.iter().enumerate() {
            for (user, port) in users {
                let targets = self.layout.parallelism[*user];
                for subtask in 0..self.layout.parallelism[from] {
                    let reached = match &self.graph.nodes[*user].inputs[*port].distribution {
                        Distribution::Hash(_) => 0..targets,
                        Distribution::Single => 0..1,
                        Distribution::Forward => subtask % targets..subtask % targets + 1,
                    };
                    for target in reached {
                        let channel = Channel { from: (from, subtask), to: (*user, target), port: *port };
                        into.entry((*user, target)).or_default().push(channel);
                    }
                }
            }
        }
        let merger = |(to, channels): ((usize, usize), Vec<Channel>)| {
            let merger = WatermarkMerger::new(channels.len());
            (to, (channels, merger))
        };
        into.into_iter().map(merger).collect()
    }

    /// Operators for the layout, with what their predecessors saved.
    fn made(&self, saved: Option<&[Vec<Subtask>]>) -> Result<Vec<Vec<Subtask>>> {
        let nodes = self.graph.nodes.iter().enumerate();
        let made = nodes.map(|(id, node)| {
            let parallelism = self.layout.parallelism[id];
            let subtasks = (0..parallelism).map(|subtask| {
                let range = KeyGroupRange::of_subtask(subtask, parallelism);
                let operator = operator(self.graph, node, &self.config, range)?;
                let mut operator: Option<Box<dyn Operator>> = operator.map(|operator| {
                    Box::new(Checked::new(operator, &node.uid, node.schema.clone(), node.mode)) as Box<dyn Operator>
                });
                if let (Some(operator), Some(saved)) = (&mut operator, saved) {
                    let deltas: Vec<TableDelta> = saved[id].iter().flat_map(|former| former.saved.clone()).collect();
                    if !deltas.is_empty() {
                        operator.restore(Restored { deltas }.restrict(range)?)?;
                    }
                }
                Ok(Subtask { operator, output: Output::default(), saved: Vec::new() })
            });
            subtasks.collect::<Result<Vec<Subtask>>>()
        });
        made.collect()
    }

    /// Rows of a table: their kinds and cells.
    pub fn feed(&mut self, table: &str, changes: &[(Kind, Row)]) -> Result<()> {
        for (id, node) in self.graph.nodes.iter().enumerate() {
            let NodeKind::Source { table: source, projection } = &node.kind else { continue };
            if source.name == table {
                let batch = batch(&node.schema, projection, changes)?;
                // A table is one split: its changes stay in order.
                let subtask = id % self.layout.parallelism[id];
                self.send(id, subtask, batch)?;
            }
        }
        Ok(())
    }

    /// Rows of a table, spread over the subtasks that read it.
    pub fn feed_spread(&mut self, table: &str, changes: &[(Kind, Row)]) -> Result<()> {
        for (id, node) in self.graph.nodes.iter().enumerate() {
            let NodeKind::Source { table: source, projection } = &node.kind else { continue };
            if source.name != table {
                continue;
            }
            for subtask in 0..self.layout.parallelism[id] {
                let mine = changes.iter().skip(subtask).step_by(self.layout.parallelism[id]);
                let mine: Vec<(Kind, Row)> = mine.cloned().collect();
                if !mine.is_empty() {
                    let batch = batch(&node.schema, projection, &mine)?;
                    self.send(id, subtask, batch)?;
                }
            }
        }
        Ok(())
    }

    /// A watermark goes into all channels to the users of a subtask.
    fn send_mark(&mut self, from: usize, subtask: usize, mark: Watermark) {
        let Some(merged) = &self.merged else { return };
        let channels = merged.values().flat_map(|(channels, _)| channels);
        let reached: Vec<Channel> = channels.filter(|channel| channel.from == (from, subtask)).copied().collect();
        for channel in reached {
            self.channels.entry(channel).or_default().push_back(Event::Watermark(mark));
        }
    }

    /// What a subtask emits goes into the channels to its users.
    fn send(&mut self, from: usize, subtask: usize, batch: ChangeBatch) -> Result<()> {
        for (user, port) in self.layout.users[from].clone() {
            let targets = self.layout.parallelism[user];
            let parts = match &self.graph.nodes[user].inputs[port].distribution {
                Distribution::Hash(columns) => split(&batch, columns, targets, &mut Vec::new())?,
                Distribution::Single => vec![Some(batch.clone())],
                Distribution::Forward => {
                    let mut parts = vec![None; targets];
                    parts[subtask % targets] = Some(batch.clone());
                    parts
                }
            };
            for (target, part) in parts.into_iter().enumerate() {
                if let Some(part) = part {
                    let channel = Channel { from: (from, subtask), to: (user, target), port };
                    self.channels.entry(channel).or_default().push_back(Event::Changes(part));
                }
            }
        }
        Ok(())
    }

    /// Delivers what waits in channels until none does, any channel next.
    pub fn settle(&mut self) -> Result<()> {
        while !self.channels.is_empty() {
            let next = self.random.random_range(0..self.channels.len());
            let Some(channel) = self.channels.keys().nth(next).copied() else { break };
            let waiting = self.channels.get_mut(&channel);
            let event = waiting.and_then(VecDeque::pop_front);
            if self.channels.get(&channel).is_some_and(VecDeque::is_empty) {
                self.channels.remove(&channel);
            }
            let (node, subtask) = channel.to;
            let receiver = &mut self.subtasks[node][subtask];
            match (&mut receiver.operator, event) {
                (Some(operator), Some(Event::Changes(batch))) => {
                    operator.on_changes(channel.port, batch, &mut receiver.output)?;
                    self.emit(node, subtask)?;
                }
                (None, Some(Event::Changes(batch))) => {
                    add(&mut self.result, &batch).map_err(|error| error.context("the result"))?;
                }
                (Some(operator), Some(Event::Watermark(mark))) => {
                    let merged = self.merged.as_mut().and_then(|merged| merged.get_mut(&channel.to));
                    let moved = merged.and_then(|(channels, merger)| {
                        let place = channels.iter().position(|other| *other == channel)?;
                        merger.watermark(place, mark)
                    });
                    if let Some(Event::Watermark(mark)) = moved {
                        operator.on_watermark(mark, &mut receiver.output)?;
                        self.emit(node, subtask)?;
                    }
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// Sends on what an operator has emitted, and checks that it takes back only what it has said.
    fn emit(&mut self, node: usize, subtask: usize) -> Result<()> {
        let emitter = &mut self.subtasks[node][subtask];
        let events: Vec<Event> = emitter.output.drain().collect();
        for event in events {
            if let Event::Watermark(mark) = &event
                && *mark < Watermark::MAX
            {
                self.send_mark(node, subtask, *mark);
            }
            if let Event::Changes(batch) = event {
                let of = &self.graph.nodes[node];
                if of.mode.contains(Kind::UpdateBefore) || of.mode.is_append_only() {
                    add(&mut self.said[node], &batch)
                        .map_err(|error| error.context(format!("{} ({})", of.kind.name(), of.uid)))?;
                }
                self.send(node, subtask, batch)?;
            }
        }
        Ok(())
    }

    /// Bundles close.
    pub fn flush(&mut self) -> Result<()> {
        self.settle()?;
        self.every_operator(|operator, output| operator.before_barrier(output))
    }

    /// All input ends.
    pub fn end(&mut self) -> Result<()> {
        self.settle()?;
        let ports: Vec<usize> = self.graph.nodes.iter().map(|node| node.inputs.len()).collect();
        for (node, ports) in ports.into_iter().enumerate() {
            for subtask in 0..self.layout.parallelism[node] {
                let receiver = &mut self.subtasks[node][subtask];
                let Some(operator) = &mut receiver.operator else { continue };
                operator.on_watermark(Watermark::MAX, &mut receiver.output)?;
                for port in 0..ports {
                    operator.on_end(port, &mut receiver.output)?;
                }
                self.emit(node, subtask)?;
                self.settle()?;
            }
        }
        Ok(())
    }

    fn every_operator(&mut self, call: impl Fn(&mut dyn Operator, &mut Output) -> Result<()>) -> Result<()> {
        for node in 0..self.graph.nodes.len() {
            for subtask in 0..self.layout.parallelism[node] {
                let receiver = &mut self.subtasks[node][subtask];
                if let Some(operator) = &mut receiver.operator {
                    call(&mut **operator, &mut receiver.output)?;
                    self.emit(node, subtask)?;
                }
            }
            self.settle()?;
        }
        Ok(())
    }

    /// Takes a checkpoint.
    pub fn save(&mut self) -> Result<()> {
        self.flush()?;
        self.checkpoint += 1;
        for subtask in self.subtasks.iter_mut().flatten() {
            let Some(operator) = &mut subtask.operator else { continue };
            for delta in encode_snapshot("operator", 0, operator.snapshot(self.checkpoint)?)? {
                let delta = read_back(delta)?;
                if delta.base {
                    subtask.saved.retain(|saved| saved.table != delta.table);
                }
                subtask.saved.push(delta);
            }
            if self.random.random_range(0..4) == 0 {
                merge_one(&mut subtask.saved)?;
            }
        }
        Ok(())
    }

    /// Goes on from the checkpoint just taken, at another parallelism.
    pub fn restore(&mut self, parallelism: usize) -> Result<()> {
        self.save()?;
        self.config.parallelism = parallelism;
        self.layout = Layout::new(self.graph, parallelism);
        let former = std::mem::take(&mut self.subtasks);
        self.subtasks = self.made(Some(&former))?;
        self.merged = self.merged.is_some().then(|| self.mergers());
        Ok(())
    }
}

/// A delta as the next start of the job finds it.
fn read_back(delta: EncodedDelta) -> Result<TableDelta> {
    let EncodedDelta { table, scope, base, upserts, deletes, .. } = delta;
    let rows = |encoded: Option<EncodedRows>| encoded.map(|encoded| decode_rows(encoded.bytes)).transpose();
    Ok(TableDelta { table, scope, base, upserts: rows(upserts)?, deletes: rows(deletes)? })
}

/// Puts a base in the place of one table's deltas.
fn merge_one(saved: &mut Vec<TableDelta>) -> Result<()> {
    let Some(table) = saved.last().map(|delta| delta.table.clone()) else { return Ok(()) };
    let (of_table, mut others): (Vec<TableDelta>, Vec<TableDelta>) =
        std::mem::take(saved).into_iter().partition(|delta| delta.table == table);
    let mergeable = of_table.first().is_some_and(|first| first.base && first.scope == Scope::Keyed);
    match if mergeable { merge(&of_table)? } else { None } {
        Some(merged) => others.push(merged),
        None => others.extend(of_table),
    }
    *saved = others;
    Ok(())
}

/// Applies changes; a row that is not there cannot go.
fn add(to: &mut Multiset, batch: &ChangeBatch) -> Result<()> {
    for (at, row) in rows(batch.rows()).into_iter().enumerate() {
        let times = to.entry(row.clone()).or_default();
        *times += if batch.kind(at).is_retraction() { -1 } else { 1 };
        match *times {
            0 => drop(to.remove(&row)),
            1.. => {}
            _ => return Err(Error::bug(format!("{} {row:?} takes back what was never said", batch.kind(at)))),
        }
    }
    Ok(())
}

fn batch(schema: &arrow::datatypes::SchemaRef, projection: &[usize], changes: &[(Kind, Row)]) -> Result<ChangeBatch> {
    let columns = projection.iter().zip(schema.fields()).map(|(column, field)| {
        let cells = changes.iter().map(|(_, row)| &row[*column]);
        let array: ArrayRef = match field.data_type() {
            DataType::Int64 | DataType::Timestamp(..) => Arc::new(
                cells.map(|cell| if let Value::Int(n) = cell { Some(*n) } else { None }).collect::<Int64Array>(),
            ),
            _ => Arc::new(
                cells
                    .map(|cell| if let Value::Text(t) = cell { Some(t.as_str()) } else { None })
                    .collect::<StringArray>(),
            ),
        };
        Ok(cast(&array, field.data_type())?)
    });
    let columns = columns.collect::<Result<Vec<ArrayRef>>>()?;
    let options = RecordBatchOptions::new().with_row_count(Some(changes.len()));
    let rows = RecordBatch::try_new_with_options(Arc::clone(schema), columns, &options)?;
    ChangeBatch::new(rows, changes.iter().map(|(kind, _)| *kind).collect())
}

/// The cells of a batch.
fn rows(batch: &RecordBatch) -> Vec<Row> {
    let columns: Vec<Vec<Value>> = batch.columns().iter().map(values).collect();
    (0..batch.num_rows()).map(|row| columns.iter().map(|column| column[row].clone()).collect()).collect()
}

fn values(column: &ArrayRef) -> Vec<Value> {
    if let DataType::Utf8 | DataType::Utf8View | DataType::LargeUtf8 = column.data_type() {
        let column = cast(column, &DataType::Utf8).expect("texts");
        let texts = column.as_string::<i32>();
        return (0..texts.len())
            .map(|row| if texts.is_null(row) { Value::Null } else { Value::Text(texts.value(row).to_owned()) })
            .collect();
    }
    if let DataType::Struct(fields) = column.data_type() {
        let parts: Vec<Vec<Value>> = column.as_struct().columns().iter().map(values).collect();
        let text = |row: usize| (0..fields.len()).map(|part| format!("{:?}", parts[part][row])).collect();
        return (0..column.len()).map(|row| Value::Text(text(row))).collect();
    }
    let column = cast(column, &DataType::Int64).expect("numbers, or truth as numbers");
    let numbers = column.as_primitive::<Int64Type>();
    (0..numbers.len())
        .map(|row| if numbers.is_null(row) { Value::Null } else { Value::Int(numbers.value(row)) })
        .collect()
}
