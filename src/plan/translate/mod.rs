//! Logical plan to stream graph: one function a relation.
//!
//! `SELECT user, COUNT(*) FROM clicks GROUP BY user` arrives as `Aggregate(TableScan)` and leaves as
//!
//! ```text
//! Source(clicks: user)  →  GroupAggregate(keys [0], COUNT)  →  Collect
//! ```
//!
//! Nodes are added inputs first, with the kinds they can emit; `modes` then settles which `-U` anybody needs.

mod aggregate;
mod calc;
mod conflict;
mod current_watermark;
mod expand;
mod interval;
mod join;
mod late;
mod leaf;
mod monotone;
mod over;
mod over_table;
mod percentile;
mod phases;
mod rank;
mod sink;
mod sort;
mod temporal;
mod unnest;
mod watermark;
mod window_join;
mod windows;

pub(super) use calc::column_index;
pub(super) use sink::{StaticPartition, Target};

use std::collections::HashMap;
use std::sync::Arc;

use arrow::datatypes::SchemaRef;
use datafusion_expr::{Distinct, LogicalPlan};

use super::grouping_sets::ExpandNode;
use super::nodes::{WatermarkNode, WindowNode};
use super::rank_node::RankNode;
use super::sets::CountedSetNode;
use super::state_ttl::StateTtl;
use super::stream::{Distribution, Edge, Node, NodeId, NodeKind, NodeParallelism, StateBound, StreamGraph};
use super::unnest::UnnestNode;
use super::versions::TemporalNode;
use super::{PlanSettings, TableFacts};
use crate::catalog::TableDefinition;
use crate::changelog::ChangelogMode;
use crate::error::{Error, Result};
use crate::types::{WindowColumn, WindowSpec};

/// Builds a stream graph out of logical plans.
pub(super) struct Translation<'a> {
    pub(super) graph: StreamGraph,
    settings: &'a PlanSettings,
    facts: &'a dyn TableFacts,
    /// Into which late rows go.
    late_table: Option<Arc<TableDefinition>>,
    /// What is left of a node's rows without those that are late for a window.
    on_time: Vec<(NodeId, WindowSpec, NodeId)>,
    /// What the windows of a node's rows are, by node.
    windows: HashMap<NodeId, Windows>,
    /// How the columns of nodes with updates move, where something is known.
    motions: HashMap<NodeId, Vec<monotone::Motion>>,
    /// The columns of each node whose numbers are never below zero.
    not_negative: HashMap<NodeId, Vec<usize>>,
    /// Equal relations become one node: a statement set reads a shared source once.
    done: HashMap<LogicalPlan, NodeId>,
    /// How long the rows of some relations are kept, by their name.
    pub(super) state_ttl: StateTtl,
    /// For each table that is scanned more than once, the columns that any scan needs.
    wanted: leaf::WantedColumns,
}

/// Which emitted columns are a window's, and of what kind of window.
#[derive(Debug, Clone, Default)]
struct Windows {
    /// `(column, which)` for columns that window table functions appended.
    columns: Vec<(usize, WindowColumn)>,
    /// Whether the bounds are local times of the session's zone.
    local: bool,
    /// Columns that hold a legacy group window as a row of its three columns.
    packed: Vec<usize>,
    /// Timestamps computed from a time attribute (`ts + INTERVAL '1' SECOND`, `COALESCE(ts, …)`): good enough for a
    /// legacy group window, which cuts by their values, while lateness follows the attribute's watermark.
    derived: Vec<usize>,
    /// Columns that were the time attribute which the windows cut.
    times: Vec<usize>,
    /// Whether the windows are of processing time.
    processing: bool,
    /// Columns of windows that may be NULL: those of the side of an outer window join that is not preserved.
    padded: Vec<usize>,
    /// Time attributes of rows that are replaced by later ones: they say from when on each version of a row is valid.
    versions: Vec<usize>,
}

/// Whether a time column holds instants, whose windows are cut along local time.
fn is_instant(field: &arrow::datatypes::Field) -> bool {
    matches!(field.data_type(), arrow::datatypes::DataType::Timestamp(_, Some(_)))
}

/// What [`Translation::add`] needs to know about a node beside its kind.
struct Facts {
    schema: SchemaRef,
    mode: ChangelogMode,
    upsert_key: Option<Vec<usize>>,
    rowtime: Vec<usize>,
    proctime: Vec<usize>,
    state: StateBound,
    parallelism: NodeParallelism,
}

impl Facts {
    /// A stateless node whose rows are its input's, with another schema perhaps.
    fn like(node: &Node) -> Facts {
        Facts {
            schema: Arc::clone(&node.schema),
            mode: node.mode,
            upsert_key: node.upsert_key.clone(),
            rowtime: node.rowtime.clone(),
            proctime: node.proctime.clone(),
            state: StateBound::Stateless,
            parallelism: NodeParallelism::Any,
        }
    }

    /// An append-only node without time attributes.
    fn plain(schema: SchemaRef) -> Facts {
        Facts {
            schema,
            mode: ChangelogMode::APPEND,
            upsert_key: None,
            rowtime: Vec::new(),
            proctime: Vec::new(),
            state: StateBound::Stateless,
            parallelism: NodeParallelism::Any,
        }
    }
}

impl<'a> Translation<'a> {
    pub(super) fn new(
        settings: &'a PlanSettings,
        facts: &'a dyn TableFacts,
        late_table: Option<Arc<TableDefinition>>,
    ) -> Translation<'a> {
        Translation {
            graph: StreamGraph::default(),
            settings,
            facts,
            late_table,
            on_time: Vec::new(),
            windows: HashMap::new(),
            motions: HashMap::new(),
            not_negative: HashMap::new(),
            state_ttl: StateTtl::new(),
            done: HashMap::new(),
            wanted: leaf::WantedColumns::default(),
        }
    }

    /// Notes what each scan of `plan` needs, so that scans of one table can be shared. Call it for every plan of the
    /// job before the first is translated.
    pub(super) fn announce(&mut self, plan: &LogicalPlan) -> Result<()> {
        self.wanted.note(plan)
    }

    /// The node that emits the rows of `plan`.
    pub(super) fn relation(&mut self, plan: &LogicalPlan) -> Result<NodeId> {
        if let Some(node) = self.done.get(plan) {
            return Ok(*node);
        }
        let node = match plan {
            LogicalPlan::TableScan(scan) => self.scan(scan)?,
            LogicalPlan::Values(values) => self.values(values)?,
            LogicalPlan::EmptyRelation(empty) => self.empty(empty)?,
            LogicalPlan::Projection(_) | LogicalPlan::Filter(_) => self.calc(plan)?,
            LogicalPlan::SubqueryAlias(alias) => self.relation(&alias.input)?,
            LogicalPlan::Aggregate(aggregate) => self.aggregate(aggregate)?,
            LogicalPlan::Distinct(Distinct::All(input)) => self.distinct(input)?,
            LogicalPlan::Union(union) => self.union(union)?,
            LogicalPlan::Sort(sort) => self.sort(sort)?,
            LogicalPlan::Window(window) => self.over(window)?,
            LogicalPlan::Limit(limit) if self.settings.batch => self.cut(limit)?,
            LogicalPlan::Join(join) => self.join(join)?,
            LogicalPlan::Extension(extension) => {
                if let Some(node) = extension.node.as_any().downcast_ref::<WatermarkNode>() {
                    self.watermark(node)?
                } else if let Some(node) = extension.node.as_any().downcast_ref::<WindowNode>() {
                    self.window(node)?
                } else if let Some(node) = extension.node.as_any().downcast_ref::<RankNode>() {
                    self.rank(node, true)?
                } else if let Some(node) = extension.node.as_any().downcast_ref::<ExpandNode>() {
                    self.expand(node)?
                } else if let Some(node) = extension.node.as_any().downcast_ref::<TemporalNode>() {
                    self.temporal_join(node)?
                } else if let Some(node) = extension.node.as_any().downcast_ref::<UnnestNode>() {
                    self.unnest(node)?
                } else if let Some(node) = extension.node.as_any().downcast_ref::<CountedSetNode>() {
                    self.counted_set(node)?
                } else {
                    return Err(Error::bug(format!("no operator for {}", extension.node.name())));
                }
            }
            other => return Err(unsupported(other)),
        };
        self.done.insert(plan.clone(), node);
        Ok(node)
    }

    fn node(&self, id: NodeId) -> &Node {
        &self.graph.nodes[id]
    }

    /// Adds a node. Its name for saved state is its kind, with the table's name for those that have one, and a number
    /// from the second of that name on.
    fn add(&mut self, kind: NodeKind, inputs: Vec<Edge>, facts: Facts) -> NodeId {
        let name = match &kind {
            NodeKind::Source { table, .. } => format!("source-{}", table.name),
            NodeKind::Sink { name, .. } => format!("sink-{name}"),
            other => other.name().to_lowercase(),
        };
        let numbered = format!("{name}-");
        let same = |uid: &str| uid.strip_prefix(&numbered).map_or(uid == name, |rest| rest.parse::<u32>().is_ok());
        let uid = match self.graph.nodes.iter().filter(|node| same(&node.uid)).count() {
            0 => name,
            present => format!("{name}-{}", present + 1),
        };
        self.graph.nodes.push(Node {
            kind,
            inputs,
            schema: facts.schema,
            mode: facts.mode,
            upsert_key: facts.upsert_key,
            rowtime: facts.rowtime,
            proctime: facts.proctime,
            state: facts.state,
            parallelism: facts.parallelism,
            uid,
        });
        self.graph.nodes.len() - 1
    }

    fn union(&mut self, union: &datafusion_expr::Union) -> Result<NodeId> {
        let inputs = union.inputs.iter().map(|input| self.relation(input)).collect::<Result<Vec<_>>>()?;
        let schema = Arc::clone(union.schema.inner());
        let mut facts = Facts::plain(schema);
        facts.mode = inputs.iter().fold(ChangelogMode::NONE, |mode, input| mode.union(self.node(*input).mode));
        // A branch whose times are plain has no watermarks: until it ends it holds those of the union back.
        let rowtime = |column: &usize| inputs.iter().any(|input| self.node(*input).rowtime.contains(column));
        let proctime = |column: &usize| inputs.iter().all(|input| self.node(*input).proctime.contains(column));
        facts.rowtime = (0..facts.schema.fields().len()).filter(rowtime).collect();
        facts.proctime = (0..facts.schema.fields().len()).filter(proctime).collect();
        let edges = inputs.iter().map(|from| Edge { from: *from, distribution: Distribution::Forward }).collect();
        Ok(self.add(NodeKind::Union, edges, facts))
    }
}

fn forward(from: NodeId) -> Edge {
    Edge { from, distribution: Distribution::Forward }
}

/// The error for a relation that parses and binds, and has no operator.
fn unsupported(plan: &LogicalPlan) -> Error {
    let what = match plan {
        LogicalPlan::Limit(_) => "LIMIT",
        LogicalPlan::Unnest(_) => "UNNEST",
        LogicalPlan::Distinct(_) => "SELECT DISTINCT ON",
        LogicalPlan::Subquery(_) => "a LATERAL subquery of this form",
        LogicalPlan::RecursiveQuery(_) => "WITH RECURSIVE",
        _ => "this statement",
    };
    Error::sql(format!("{what} is not supported yet"))
}
