//! Whether a plan's results depend on the order in which the rows of a source come.

use super::stream::{NodeKind, StreamGraph};
use crate::types::{AggregateCall, AggregateFunction, FrameFunction, OverCall};

impl StreamGraph {
    /// Whether a source's rows must come in their own order: then one reader reads a file from its beginning to its end,
    /// and never several of them parts of it.
    pub fn depends_on_arrival(&self) -> bool {
        self.nodes.iter().any(|node| match &node.kind {
            NodeKind::GroupAggregate { aggregates, .. } | NodeKind::WindowAggregate { aggregates, .. } => {
                aggregates.iter().any(tells_first_from_last)
            }
            NodeKind::Rank { order, newest_first, .. } => order.is_empty() || *newest_first,
            NodeKind::WindowRank { newest_first, .. } => *newest_first,
            NodeKind::Over { time, calls, .. } => {
                let told = |call: &OverCall| !matches!(call, OverCall::Aggregate(call) if !tells_first_from_last(call));
                time.is_none() || calls.iter().any(told)
            }
            NodeKind::OverTable { order, calls, .. } => {
                let told = |call: &AggregateCall| tells_first_from_last(call);
                order.is_empty()
                    || calls.iter().any(|call| matches!(&call.function, FrameFunction::Aggregate(call) if told(call)))
            }
            NodeKind::Sink { table, .. } => !table.primary_key.is_empty(),
            NodeKind::TemporalJoin { .. }
            | NodeKind::UpsertMaterialize { .. }
            | NodeKind::ChangelogNormalize { .. }
            | NodeKind::CurrentWatermark => true,
            _ => false,
        })
    }
}

/// Whether an aggregate depends on the order of its rows.
fn tells_first_from_last(call: &AggregateCall) -> bool {
    use AggregateFunction::{
        ApproximateCountDistinct, Avg, Count, Max, Min, Percentile, SingleValue, StandardDeviation, Sum, SumZero,
        Variance,
    };
    !matches!(
        call.function,
        Count
            | Sum
            | SumZero
            | Avg
            | Min
            | Max
            | Variance { .. }
            | StandardDeviation { .. }
            | Percentile { .. }
            | ApproximateCountDistinct
            | SingleValue
    )
}
