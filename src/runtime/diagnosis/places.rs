//! The plan, as far as the search for missing rows needs it.

use crate::plan::stream::{Node, NodeKind, StreamGraph};
use crate::runtime::build::describe;
use crate::types::{JoinKind, WindowTime};

/// The operators of a job, inputs before users.
#[derive(Debug, Clone, Default)]
pub struct Places(pub(super) Vec<Place>);

/// One operator.
#[derive(Debug, Clone)]
pub(super) struct Place {
    pub uid: String,
    pub part: Part,
    /// Indices of its inputs.
    pub inputs: Vec<usize>,
}

/// What an operator does to rows that are missed.
#[derive(Debug, Clone)]
pub(super) enum Part {
    /// Brings them.
    Source { table: String },
    /// Drops those for which a condition does not hold.
    Filter { condition: String },
    /// Derives watermarks.
    Watermarks,
    /// Keeps them until the watermark has passed something.
    Waits,
    /// Tells nothing without rows on all of its inputs.
    NeedsBoth,
    /// Writes them.
    Sink { table: String },
    /// Hands them to whoever reads the query.
    Collect,
    /// Something else.
    Other,
}

impl Places {
    /// Those of a plan.
    pub fn of(graph: &StreamGraph) -> Places {
        let place = |node: &Node| Place {
            uid: node.uid.clone(),
            part: if takes_late_rows(graph, node) { Part::Other } else { part(&node.kind) },
            inputs: node.inputs.iter().map(|edge| edge.from).collect(),
        };
        Places(graph.nodes.iter().map(place).collect())
    }
}

/// Whether it is on the way of late rows into their table, where nobody misses any.
fn takes_late_rows(graph: &StreamGraph, node: &Node) -> bool {
    let below = |node: &Node| node.inputs.first().map(|edge| &graph.nodes[edge.from]);
    let marks = |node: &Node| matches!(node.kind, NodeKind::LateMark { .. });
    match node.kind {
        NodeKind::Calc { .. } => below(node).is_some_and(marks),
        NodeKind::Sink { .. } => below(node).and_then(below).is_some_and(marks),
        _ => false,
    }
}

fn part(kind: &NodeKind) -> Part {
    match kind {
        NodeKind::Source { table, .. } => Part::Source { table: table.name.clone() },
        NodeKind::Values { .. } => Part::Source { table: describe(kind) },
        NodeKind::Calc { condition: Some(condition), .. } => Part::Filter { condition: condition.to_string() },
        NodeKind::WatermarkAssigner { .. } => Part::Watermarks,
        NodeKind::WindowAggregate { moment: WindowTime::Event, .. }
        | NodeKind::SessionAssign { moment: WindowTime::Event, .. }
        | NodeKind::WindowRank { .. }
        | NodeKind::WindowJoin { .. }
        | NodeKind::KeepFirst { .. }
        | NodeKind::TemporalSort { .. }
        | NodeKind::Over { time: Some(_), .. }
        | NodeKind::TemporalJoin { times: Some(_), .. } => Part::Waits,
        NodeKind::Join { kind: JoinKind::Inner, .. } | NodeKind::IntervalJoin { kind: JoinKind::Inner, .. } => {
            Part::NeedsBoth
        }
        NodeKind::Sink { table, .. } => Part::Sink { table: table.name.clone() },
        NodeKind::Collect => Part::Collect,
        _ => Part::Other,
    }
}
