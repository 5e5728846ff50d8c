//! Which `-U` anybody needs: the second pass of changelog-mode inference, from the sinks up.
//!
//! Translation gave every node all the kinds it can emit. Whoever shows a changelog, folds it into state by value, or
//! filters it needs the old image of an update; a sink with a key, and a grouping that only counts keys, does not. A node whose
//! `-U` nobody needs does not make it.

use crate::changelog::{ChangelogMode, Kind};
use crate::plan::stream::{Distribution, Edge, Node, NodeId, NodeKind, NodeParallelism, StateBound, StreamGraph};

/// What sinks take, by node.
pub(super) fn settle(graph: &mut StreamGraph, accepts: &dyn Fn(&NodeKind) -> ChangelogMode) {
    let mut needed = vec![false; graph.nodes.len()];
    // Users stand after their inputs, so going backwards sees every user first.
    for id in (0..graph.nodes.len()).rev() {
        let needs = match &graph.nodes[id].kind {
            NodeKind::Collect => true,
            sink @ NodeKind::Sink { .. } => accepts(sink).contains(Kind::UpdateBefore),
            NodeKind::Calc { condition, .. } => condition.is_some() || needed[id],
            NodeKind::GroupAggregate { .. }
            | NodeKind::WindowAggregate { .. }
            | NodeKind::SessionAssign { .. }
            | NodeKind::Join { .. }
            | NodeKind::IntervalJoin { .. }
            | NodeKind::WindowJoin { .. }
            | NodeKind::TemporalJoin { .. }
            | NodeKind::CountedSet { .. }
            | NodeKind::Rank { .. }
            | NodeKind::OverTable { .. }
            // What the old row gave may be more rows than the new one replaces.
            | NodeKind::Unnest { .. }
            | NodeKind::UpsertMaterialize { .. }
            | NodeKind::Sort { .. } => true,
            NodeKind::DropUpdateBefore { .. } | NodeKind::ChangelogNormalize { .. } => false,
            _ => needed[id],
        };
        let updating = |from: NodeId| graph.nodes[from].mode.contains(Kind::UpdateBefore);
        let inputs: Vec<NodeId> = graph.nodes[id].inputs.iter().map(|edge| edge.from).collect();
        // New images alone say from when on which version is valid.
        let versions = matches!(graph.nodes[id].kind, NodeKind::TemporalJoin { .. });
        for (port, from) in inputs.into_iter().enumerate() {
            if needs && updating(from) && !(versions && port == 1) {
                needed[from] = true;
            }
        }
    }
    for (id, needed) in needed.into_iter().enumerate() {
        let inherited = inherited_mode(graph, id);
        let node = &mut graph.nodes[id];
        if let NodeKind::GroupAggregate { emit_update_before, .. }
        | NodeKind::Rank { emit_update_before, .. }
        | NodeKind::ChangelogNormalize { emit_update_before, .. }
        | NodeKind::UpsertMaterialize { emit_update_before, .. } = &mut node.kind
        {
            *emit_update_before = needed;
            if !needed {
                node.mode = node.mode.without(Kind::UpdateBefore);
            }
        } else if let Some(mode) = inherited {
            node.mode = mode;
        }
    }
    drop_for_sinks(graph, accepts);
}

/// The mode of a node that passes its inputs' kinds on.
fn inherited_mode(graph: &StreamGraph, id: NodeId) -> Option<ChangelogMode> {
    let node = &graph.nodes[id];
    let passes = matches!(
        node.kind,
        NodeKind::Calc { .. }
            | NodeKind::Expand { .. }
            | NodeKind::Unnest { .. }
            | NodeKind::Union
            | NodeKind::WatermarkAssigner { .. }
            | NodeKind::CurrentWatermark
            | NodeKind::WindowAssign { .. }
            | NodeKind::LateMark { .. }
            | NodeKind::SessionAssign { .. }
            | NodeKind::ConsistentOutput
            | NodeKind::Sink { .. }
            | NodeKind::Collect
    );
    passes.then(|| node.inputs.iter().fold(ChangelogMode::NONE, |mode, edge| mode.union(graph.nodes[edge.from].mode)))
}

/// Puts a `DropUpdateBefore` before a sink that takes no `-U` where its input still has them (a source that always
/// sends them, or a node that another user needs them from).
fn drop_for_sinks(graph: &mut StreamGraph, accepts: &dyn Fn(&NodeKind) -> ChangelogMode) {
    let mut id = 0;
    while id < graph.nodes.len() {
        let node = &graph.nodes[id];
        let surplus = matches!(node.kind, NodeKind::Sink { .. })
            && node.mode.contains(Kind::UpdateBefore)
            && !accepts(&node.kind).contains(Kind::UpdateBefore);
        if surplus {
            insert_before(graph, id);
            id += 1;
        }
        id += 1;
    }
}

/// Inserts the node at the sink's place and moves everything behind it one place on.
fn insert_before(graph: &mut StreamGraph, sink: NodeId) {
    let edge = graph.nodes[sink].inputs[0].clone();
    let input = &graph.nodes[edge.from];
    let key = match &graph.nodes[sink].kind {
        NodeKind::Sink { table, .. } => table.primary_key.as_slice(),
        _ => &[],
    };
    let names = |column: &usize| key.contains(graph.nodes[sink].schema.field(*column).name());
    let mut key: Vec<usize> = (0..input.schema.fields().len()).filter(names).collect();
    if key.is_empty() {
        key = (0..input.schema.fields().len()).collect();
    }
    let dropping = Node {
        kind: NodeKind::DropUpdateBefore { key },
        inputs: vec![edge],
        schema: input.schema.clone(),
        // An old image that no new one follows is a delete.
        mode: input.mode.without(Kind::UpdateBefore).with(Kind::Delete),
        upsert_key: input.upsert_key.clone(),
        rowtime: input.rowtime.clone(),
        proctime: input.proctime.clone(),
        state: StateBound::Stateless,
        parallelism: NodeParallelism::Any,
        uid: format!("dropupdatebefore-{sink}"),
    };
    for node in &mut graph.nodes[sink..] {
        for edge in &mut node.inputs {
            if edge.from >= sink {
                edge.from += 1;
            }
        }
    }
    let mode = dropping.mode;
    graph.nodes.insert(sink, dropping);
    graph.nodes[sink + 1].inputs = vec![Edge { from: sink, distribution: Distribution::Forward }];
    graph.nodes[sink + 1].mode = mode;
}
