//! The plan, as far as the search for missing rows needs it.

use crate::plan::stream::{NodeKind, StreamGraph};
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
        let place = |node: &crate::plan::stream::Node| Place {
            uid: node.uid.clone(),
            part: part(&node.kind),
            inputs: node.inputs.iter().map(|edge| edge.from).collect(),
        };
        Places(graph.nodes.iter().map(place).collect())
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
