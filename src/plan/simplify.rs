//! Neighbouring projections as one: translation adds them where it is easiest, and a row should pass through one.

use std::collections::HashMap;
use std::sync::Arc;

use datafusion_common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion_common::{DFSchema, Result as BindResult};
use datafusion_expr::Expr;

use super::error::unwrap;
use crate::error::Result;
use crate::plan::stream::{Distribution, NodeId, NodeKind, StreamGraph};

/// Merges each `Calc` into the `Calc` that is its only user, where no expression would be computed twice.
pub(super) fn merge_calcs(graph: &mut StreamGraph) -> Result<()> {
    let mut users = vec![0; graph.nodes.len()];
    for edge in graph.nodes.iter().flat_map(|node| &node.inputs) {
        users[edge.from] += 1;
    }
    let mut gone = vec![false; graph.nodes.len()];
    for id in 0..graph.nodes.len() {
        // What stands below has been merged already: inputs come first.
        while let Some(below) = mergeable(graph, id, &users) {
            let Some(merged) = merged(&graph.nodes[id].kind, &graph.nodes[below].kind).map_err(unwrap)? else { break };
            graph.nodes[id].kind = merged;
            graph.nodes[id].inputs = graph.nodes[below].inputs.clone();
            gone[below] = true;
        }
    }
    remove(graph, &gone);
    Ok(())
}

/// Takes from each `Unnest` the columns that the `Calc` above it, its only user, does not read: an array that stands
/// beside each of its own elements is copied as often as it has elements.
pub(super) fn narrow_unnests(graph: &mut StreamGraph) -> Result<()> {
    let mut users = vec![0; graph.nodes.len()];
    for edge in graph.nodes.iter().flat_map(|node| &node.inputs) {
        users[edge.from] += 1;
    }
    for id in 0..graph.nodes.len() {
        let Some(below) = graph.nodes[id].inputs.first().map(|edge| edge.from) else { continue };
        let unnest = matches!(graph.nodes[below].kind, NodeKind::Unnest { .. });
        let NodeKind::Calc { input, condition, projection } = &mut graph.nodes[id].kind else { continue };
        if !unnest || users[below] != 1 {
            continue;
        }
        let mut read = Vec::new();
        for column in condition.iter().chain(&*projection).flat_map(Expr::column_refs) {
            read.push(input.index_of_column(column).map_err(unwrap)?);
        }
        read.sort_unstable();
        read.dedup();
        let fields = read.iter().map(|column| {
            let (qualifier, field) = input.qualified_field(*column);
            (qualifier.cloned(), Arc::clone(field))
        });
        *input = Arc::new(DFSchema::new_with_metadata(fields.collect(), HashMap::new()).map_err(unwrap)?);
        let node = &mut graph.nodes[below];
        let moved = |columns: &[usize]| columns.iter().map(|column| read.binary_search(column).ok()).collect();
        node.upsert_key = node.upsert_key.as_deref().and_then(moved);
        for times in [&mut node.rowtime, &mut node.proctime] {
            *times = times.iter().filter_map(|column| read.binary_search(column).ok()).collect();
        }
        node.schema = Arc::new(node.schema.project(&read)?);
        if let NodeKind::Unnest { shown, .. } = &mut node.kind {
            *shown = read;
        }
    }
    Ok(())
}

/// The `Calc` below a `Calc`, if nobody else uses it.
fn mergeable(graph: &StreamGraph, id: NodeId, users: &[usize]) -> Option<NodeId> {
    let node = &graph.nodes[id];
    let edge = node.inputs.first().filter(|edge| edge.distribution == Distribution::Forward)?;
    let calc = |id: NodeId| matches!(graph.nodes[id].kind, NodeKind::Calc { .. });
    (calc(id) && calc(edge.from) && users[edge.from] == 1).then_some(edge.from)
}

/// `outer` over `inner` as one; `None` if that would compute something twice, or filter in another order.
fn merged(outer: &NodeKind, inner: &NodeKind) -> BindResult<Option<NodeKind>> {
    let (
        NodeKind::Calc { input: outer_input, condition: outer_condition, projection: outer_projection },
        NodeKind::Calc { input, condition, projection },
    ) = (outer, inner)
    else {
        return Ok(None);
    };
    // A condition may guard the expressions above it: WHERE x <> 0 below 1 / x. One `Calc` filters before it projects,
    // so that a condition above must not see what the one below has computed.
    let plain =
        projection.iter().all(|expression| matches!(unaliased(expression), Expr::Column(_) | Expr::Literal(..)));
    if outer_condition.is_some() && (condition.is_some() || !plain) {
        return Ok(None);
    }
    let mut uses = vec![0; projection.len()];
    for expression in outer_condition.iter().chain(outer_projection) {
        expression.apply(|part| {
            if let Expr::Column(column) = part {
                uses[outer_input.index_of_column(column)?] += 1;
            }
            Ok(TreeNodeRecursion::Continue)
        })?;
    }
    let twice = projection
        .iter()
        .zip(&uses)
        .any(|(expression, uses)| *uses > 1 && !matches!(unaliased(expression), Expr::Column(_) | Expr::Literal(..)));
    if twice {
        return Ok(None);
    }
    let through = |expression: &Expr| substitute(expression, outer_input, projection);
    Ok(Some(NodeKind::Calc {
        input: input.clone(),
        condition: match outer_condition {
            Some(above) => Some(through(above)?),
            None => condition.clone(),
        },
        projection: outer_projection.iter().map(through).collect::<BindResult<_>>()?,
    }))
}

fn unaliased(expression: &Expr) -> &Expr {
    match expression {
        Expr::Alias(alias) => unaliased(&alias.expr),
        other => other,
    }
}

/// `expression` with each column replaced by what the projection below puts there, under the same name.
fn substitute(expression: &Expr, schema: &DFSchema, below: &[Expr]) -> BindResult<Expr> {
    let name = expression.schema_name().to_string();
    let replaced = expression.clone().transform(|part| {
        Ok(match &part {
            Expr::Column(column) => Transformed::yes(unaliased(&below[schema.index_of_column(column)?]).clone()),
            _ => Transformed::no(part),
        })
    })?;
    let renamed = replaced.data.schema_name().to_string() != name && !matches!(replaced.data, Expr::Alias(_));
    Ok(if renamed { replaced.data.alias(name) } else { replaced.data })
}

/// Takes nodes out and renumbers the rest.
fn remove(graph: &mut StreamGraph, gone: &[bool]) {
    let mut renumbered = HashMap::new();
    let kept = graph.nodes.drain(..).enumerate().filter(|(id, _)| !gone[*id]);
    let mut nodes = Vec::new();
    for (id, node) in kept {
        renumbered.insert(id, nodes.len());
        nodes.push(node);
    }
    for edge in nodes.iter_mut().flat_map(|node| &mut node.inputs) {
        edge.from = renumbered.get(&edge.from).copied().unwrap_or(edge.from);
    }
    graph.nodes = nodes;
}
