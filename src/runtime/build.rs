//! From a node of the plan to its operator: the one place where plan and operators meet.
//!
//! To add an operator: an arm here.

use std::sync::Arc;

use datafusion_common::DFSchema;
use datafusion_expr::Expr;
use datafusion_expr::execution_props::ExecutionProps;
use datafusion_expr::physical_planning_context::PhysicalPlanningContext;
use datafusion_physical_expr::{PhysicalExpr, create_physical_expr};

use super::config::JobConfig;
use crate::changelog::ChangeBatch;
use crate::error::{Error, Result};
use crate::operators::{
    Calc, CountedSet, DropUpdateBefore, GroupAggregate, GroupAggregateParameters, Join, JoinInput, JoinParameters,
    Operator, Output, Port, WatermarkAssigner, WindowAggregate, WindowAggregateParameters, WindowAssign,
};
use crate::plan::stream::{Node, NodeKind, StreamGraph};
use crate::state::KeyGroupRange;

/// Makes the operator of one subtask of `node`; `None` for nodes at the edge of the graph, which are no operators.
///
/// # Errors
/// If an expression cannot be compiled.
pub fn operator(
    graph: &StreamGraph,
    node: &Node,
    config: &JobConfig,
    key_groups: KeyGroupRange,
) -> Result<Option<Box<dyn Operator>>> {
    let input = || {
        let edge = node.inputs.first().ok_or_else(|| Error::bug(format!("{} has no input", describe(&node.kind))))?;
        Ok::<_, Error>(graph.nodes[edge.from].schema.clone())
    };
    let output = node.schema.clone();
    Ok(Some(match &node.kind {
        NodeKind::Source { .. } | NodeKind::Values { .. } | NodeKind::Sink { .. } | NodeKind::Collect => {
            return Ok(None);
        }
        NodeKind::Union => Box::new(PassOn),
        NodeKind::DropUpdateBefore => Box::new(DropUpdateBefore::new()),
        NodeKind::Calc { input, condition, projection } => {
            let condition = condition.as_ref().map(|condition| compile(condition, input)).transpose()?;
            let projection = projection.iter().map(|expression| compile(expression, input)).collect::<Result<_>>()?;
            Box::new(Calc::new(condition, projection, output))
        }
        NodeKind::WatermarkAssigner { input, column, expression, .. } => {
            Box::new(WatermarkAssigner::new(*column, compile(expression, input)?, config.watermark_interval_ms))
        }
        NodeKind::GroupAggregate { keys, aggregates, append_only_input, emit_update_before, mini_batch, ttl_ms } => {
            Box::new(GroupAggregate::new(GroupAggregateParameters {
                input: input()?,
                output,
                keys: keys.clone(),
                aggregates: aggregates.clone(),
                append_only_input: *append_only_input,
                emit_update_before: *emit_update_before,
                mini_batch: *mini_batch,
                ttl_ms: *ttl_ms,
                key_groups,
            })?)
        }
        NodeKind::WindowAggregate { keys, time, window, window_columns, aggregates, append_only_input } => {
            Box::new(WindowAggregate::new(WindowAggregateParameters {
                input: input()?,
                output,
                keys: keys.clone(),
                time: *time,
                window: *window,
                window_columns: window_columns.clone(),
                aggregates: aggregates.clone(),
                append_only_input: *append_only_input,
                key_groups,
            })?)
        }
        NodeKind::Join { kind, sides, condition, pairs, null_keys } => {
            let side = |port: usize| {
                let edge = node.inputs.get(port).ok_or_else(|| Error::bug("a join lacks an input"))?;
                let schema = graph.nodes[edge.from].schema.clone();
                Ok::<_, Error>(JoinInput { schema, keys: sides[port].keys.clone(), width: sides[port].width })
            };
            Box::new(Join::new(JoinParameters {
                kind: *kind,
                inputs: [side(0)?, side(1)?],
                condition: condition.as_ref().map(|condition| compile(condition, pairs)).transpose()?,
                null_keys: *null_keys,
                output,
                key_groups,
            })?)
        }
        NodeKind::CountedSet { operation } => Box::new(CountedSet::new(*operation, output, key_groups)?),
        NodeKind::WindowAssign { time, window } => Box::new(WindowAssign::new(*time, *window, output)?),
    }))
}

fn compile(expression: &Expr, input: &DFSchema) -> Result<Arc<dyn PhysicalExpr>> {
    create_physical_expr(expression, input, &ExecutionProps::new(), &PhysicalPlanningContext::default())
        .map_err(|error| Error::sql(format!("cannot compile '{expression}': {}", error.strip_backtrace())))
}

/// A node in a word or two, for metrics and manifests.
pub fn describe(kind: &NodeKind) -> String {
    match kind {
        NodeKind::Source { table, .. } => format!("Source({})", table.name),
        NodeKind::Values { .. } => "Values".to_owned(),
        NodeKind::Calc { .. } => "Calc".to_owned(),
        NodeKind::WatermarkAssigner { .. } => "WatermarkAssigner".to_owned(),
        NodeKind::GroupAggregate { .. } => "GroupAggregate".to_owned(),
        NodeKind::WindowAggregate { .. } => "WindowAggregate".to_owned(),
        NodeKind::WindowAssign { .. } => "WindowAssign".to_owned(),
        NodeKind::Join { kind, .. } => kind.name().to_owned(),
        NodeKind::CountedSet { operation } => operation.name().to_owned(),
        NodeKind::Union => "Union".to_owned(),
        NodeKind::DropUpdateBefore => "DropUpdateBefore".to_owned(),
        NodeKind::Sink { name, .. } => format!("Sink({name})"),
        NodeKind::Collect => "Collect".to_owned(),
    }
}

/// What must be equal for saved state to fit; empty for operators without any.
pub fn fingerprint(graph: &StreamGraph, node: &Node) -> String {
    let parameters = match &node.kind {
        NodeKind::GroupAggregate { keys, aggregates, append_only_input, .. } => {
            format!("{keys:?} {aggregates:?} {append_only_input}")
        }
        NodeKind::WindowAggregate { keys, time, window, aggregates, append_only_input, .. } => {
            format!("{keys:?} {time} {window:?} {aggregates:?} {append_only_input}")
        }
        NodeKind::Join { kind, sides, condition, null_keys, .. } => {
            // In words: places in the text are no part of it.
            let condition = condition.as_ref().map(ToString::to_string).unwrap_or_default();
            format!("{kind:?} {sides:?} {condition} {null_keys:?}")
        }
        NodeKind::CountedSet { operation } => operation.name().to_owned(),
        _ => return String::new(),
    };
    // Keys and arguments are column indices: their meaning is the input's types.
    let inputs: Vec<_> = node.inputs.iter().map(|edge| &graph.nodes[edge.from].schema).collect();
    let types: Vec<_> = inputs.iter().flat_map(|schema| schema.fields()).map(|field| field.data_type()).collect();
    crate::checkpoint::manifest::checksum(format!("{parameters} {types:?}").as_bytes())
}

/// `UNION ALL`: the task's inputs are merged already.
struct PassOn;

impl Operator for PassOn {
    fn on_changes(&mut self, _port: Port, batch: ChangeBatch, out: &mut Output) -> Result<()> {
        out.changes(batch);
        Ok(())
    }
}
