//! What may surprise in a job without an end, said when it starts.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::build::describe;
use super::config::CheckpointConfig;
use crate::connectors::{Guarantee, Sink};
use crate::plan::stream::{StateBound, StreamGraph};

/// Rows would be held back for as long as the job runs, which may be for ever.
pub fn held_back(sinks: &BTreeMap<String, Arc<dyn Sink>>, checkpoint: Option<&CheckpointConfig>) -> Option<String> {
    if checkpoint.is_some_and(|checkpoint| checkpoint.interval.is_some()) {
        return None;
    }
    let waiting = sinks.iter().filter(|(_, sink)| sink.guarantee() == Guarantee::ExactlyOnce);
    let tables: Vec<String> = waiting.map(|(name, _)| format!("'{name}'")).collect();
    let missing = match checkpoint {
        Some(_) => "SET 'execution.checkpointing.interval' = '10 s'",
        None => "SET 'execution.checkpointing.dir' = '…' and 'execution.checkpointing.interval' = '10 s'",
    };
    (!tables.is_empty()).then(|| {
        let tables = tables.join(", ");
        format!(
            "rows of {tables} become visible with a checkpoint, and none is taken before the job is stopped; {missing}"
        )
    })
}

/// State would grow for as long as the job runs: where, and what would bound it.
pub fn unbounded_state(graph: &StreamGraph) -> Option<String> {
    let growing = graph.nodes.iter().filter_map(|node| match &node.state {
        StateBound::Unbounded(why) => Some(format!("{} [{}]: {why}", describe(&node.kind), node.uid)),
        StateBound::Stateless | StateBound::Bounded(_) => None,
    });
    let growing: Vec<String> = growing.collect();
    (!growing.is_empty())
        .then(|| format!("the input has no end, and state grows with it; in {}", growing.join("; in ")))
}
