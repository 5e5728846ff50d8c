//! From a node of the plan to its operator: the one place where plan and operators meet.
//!
//! To add an operator: an arm here.

use std::sync::Arc;

use arrow::datatypes::{DataType, SchemaRef};
use datafusion_common::DFSchema;
use datafusion_expr::Expr;
use datafusion_expr::execution_props::ExecutionProps;
use datafusion_expr::physical_planning_context::PhysicalPlanningContext;
use datafusion_physical_expr::{PhysicalExpr, create_physical_expr};

use super::config::JobConfig;
use crate::changelog::ChangeBatch;
use crate::error::{Error, Result};
use crate::operators::{
    Calc, ChangelogNormalize, ConsistentOutput, CountedSet, CurrentWatermark, DropUpdateBefore, Expand, GroupAggregate,
    GroupAggregateParameters, IntervalJoin, IntervalJoinParameters, Join, JoinInput, JoinParameters, KeepFirst,
    LateMark, LocalAggregate, Operator, Output, Over, OverParameters, OverTable, OverTableParameters, Port, Rank,
    RankParameters, SessionAggregate, SessionAssign, SessionAssignParameters, SlicedWindowAggregate, Sort,
    TemporalJoin, TemporalJoinParameters, TemporalSort, Unnest, UnnestParameters, UpdatingWindowAggregate,
    UpsertMaterialize, UpsertMaterializeParameters, WatermarkAssigner, WindowAggregate, WindowAggregateParameters,
    WindowAssign, WindowJoin, WindowJoinParameters, WindowRank, WindowRankParameters,
};
use crate::plan::stream::{JoinSide, Node, NodeKind, StreamGraph};
use crate::state::KeyGroupRange;
use crate::types::LocalTime;

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
        NodeKind::ConsistentOutput => Box::new(ConsistentOutput::new(output, node.mode, node.upsert_key.clone())?),
        NodeKind::Union => Box::new(PassOn),
        NodeKind::DropUpdateBefore { key } => Box::new(DropUpdateBefore::new(&output, key.clone())?),
        NodeKind::ChangelogNormalize { key, emit_update_before, ttl_ms } => {
            Box::new(ChangelogNormalize::new(input()?, key.clone(), *emit_update_before, *ttl_ms, key_groups)?)
        }
        NodeKind::Calc { input, condition, projection } => {
            let condition = condition.as_ref().map(|condition| compile(condition, input)).transpose()?;
            let projection = projection.iter().map(|expression| compile(expression, input)).collect::<Result<_>>()?;
            Box::new(Calc::new(condition, projection, output))
        }
        NodeKind::WatermarkAssigner { input, column, expression, row_by_row, policy } => {
            let assigner = WatermarkAssigner::new(*column, compile(expression, input)?, config.watermark_interval_ms)
                .with_policy(policy);
            Box::new(if *row_by_row { assigner.row_by_row() } else { assigner })
        }
        NodeKind::CurrentWatermark => Box::new(CurrentWatermark::new(output)),
        NodeKind::GroupAggregate { keys, aggregates, append_only_input, emit_update_before, mini_batch, ttl_ms } => {
            let aggregate = GroupAggregate::new(GroupAggregateParameters {
                input: input()?,
                output,
                keys: keys.clone(),
                aggregates: aggregates.clone(),
                append_only_input: *append_only_input,
                emit_update_before: *emit_update_before,
                mini_batch: *mini_batch,
                ttl_ms: *ttl_ms,
                key_groups,
            })?;
            let global = config.batch && keys.is_empty();
            Box::new(if global { aggregate.answering_nothing() } else { aggregate })
        }
        NodeKind::LocalAggregate { keys, aggregates, mini_batch } => {
            Box::new(LocalAggregate::new(&input()?, output, keys, aggregates, *mini_batch)?)
        }
        NodeKind::WindowAggregate {
            keys,
            time,
            window,
            session_gap,
            local,
            moment,
            emission,
            window_columns,
            aggregates,
            append_only_input,
        } => {
            let parameters = WindowAggregateParameters {
                input: input()?,
                output,
                keys: keys.clone(),
                time: *time,
                window: *window,
                clock: local_time(*local, config),
                moment: *moment,
                window_columns: window_columns.clone(),
                aggregates: aggregates.clone(),
                append_only_input: *append_only_input,
                key_groups,
            };
            match (session_gap, emission) {
                (Some(_), _) => Box::new(SessionAggregate::new(parameters)?),
                (None, Some(emission)) => Box::new(UpdatingWindowAggregate::new(parameters, *emission)?),
                (None, None) if SlicedWindowAggregate::serves(&parameters) => {
                    Box::new(SlicedWindowAggregate::new(parameters)?)
                }
                (None, None) => Box::new(WindowAggregate::new(parameters)?),
            }
        }
        NodeKind::Join { kind, sides, condition, pairs, null_keys, ttl_ms } => Box::new(Join::new(JoinParameters {
            kind: *kind,
            inputs: join_inputs(graph, node, sides)?,
            condition: condition.as_ref().map(|condition| compile(condition, pairs)).transpose()?,
            null_keys: *null_keys,
            output,
            ttl_ms: *ttl_ms,
            key_groups,
        })?),
        NodeKind::IntervalJoin { kind, sides, times, bounds, condition, pairs, null_keys } => {
            Box::new(IntervalJoin::new(IntervalJoinParameters {
                kind: *kind,
                inputs: join_inputs(graph, node, sides)?,
                times: *times,
                bounds: *bounds,
                condition: condition.as_ref().map(|condition| compile(condition, pairs)).transpose()?,
                null_keys: *null_keys,
                output,
                key_groups,
            })?)
        }
        NodeKind::WindowJoin { kind, sides, ends, local, condition, pairs, null_keys } => {
            Box::new(WindowJoin::new(WindowJoinParameters {
                kind: *kind,
                inputs: join_inputs(graph, node, sides)?,
                ends: *ends,
                clock: local_time(*local, config),
                condition: condition.as_ref().map(|condition| compile(condition, pairs)).transpose()?,
                null_keys: *null_keys,
                output,
                key_groups,
            })?)
        }
        NodeKind::TemporalJoin { outer, sides, times, versions, table_first, ttl_ms, condition, pairs } => {
            let left = node.inputs.first().map(|edge| &graph.nodes[edge.from]);
            Box::new(TemporalJoin::new(TemporalJoinParameters {
                outer: *outer,
                inputs: join_inputs(graph, node, sides)?,
                times: *times,
                versions: *versions,
                table_first: *table_first,
                ttl_ms: *ttl_ms,
                append_only: left.is_some_and(|node| node.mode.is_append_only()),
                condition: condition.as_ref().map(|condition| compile(condition, pairs)).transpose()?,
                output,
                key_groups,
            })?)
        }
        NodeKind::CountedSet { operation, ttl_ms } => {
            Box::new(CountedSet::new(*operation, output, *ttl_ms, key_groups)?)
        }
        NodeKind::WindowAssign { time, window } => {
            let instants = matches!(output.field(*time).data_type(), DataType::Timestamp(_, Some(_)));
            Box::new(WindowAssign::new(*time, *window, local_time(instants, config), output)?)
        }
        NodeKind::LateMark { time, window } => {
            let instants = matches!(output.field(*time).data_type(), DataType::Timestamp(_, Some(_)));
            Box::new(LateMark::new(*time, *window, local_time(instants, config), output)?)
        }
        NodeKind::SessionAssign { partition, time, gap, moment } => {
            let instants = matches!(output.field(*time).data_type(), DataType::Timestamp(_, Some(_)));
            Box::new(SessionAssign::new(SessionAssignParameters {
                input: input()?,
                output,
                partition: partition.clone(),
                time: *time,
                gap: *gap,
                clock: local_time(instants, config),
                moment: *moment,
                key_groups,
            })?)
        }
        NodeKind::Expand { columns, sets } => Box::new(Expand::new(output, columns.clone(), sets.clone())?),
        NodeKind::Unnest { input, collection, counted, condition, pairs, outer, shown, .. } => {
            Box::new(Unnest::new(UnnestParameters {
                output,
                collection: compile(collection, input)?,
                counted: *counted,
                condition: condition.as_ref().map(|condition| compile(condition, pairs)).transpose()?,
                outer: *outer,
                shown: shown.clone(),
                pairs: Arc::clone(pairs.inner()),
            }))
        }
        NodeKind::UpsertMaterialize { key, conflict, append_only_input, emit_update_before, ttl_ms } => {
            Box::new(UpsertMaterialize::new(UpsertMaterializeParameters {
                schema: output,
                key: key.clone(),
                conflict: *conflict,
                append_only_input: *append_only_input,
                emit_update_before: *emit_update_before,
                ttl_ms: *ttl_ms,
                key_groups,
            })?)
        }
        NodeKind::KeepFirst { partition, time, ttl_ms } => {
            Box::new(KeepFirst::new(&input()?, output, partition, *time, *ttl_ms, key_groups)?)
        }
        NodeKind::TemporalSort { time, order } => Box::new(TemporalSort::new(output, *time, order)?),
        NodeKind::Sort { order, range } => Box::new(Sort::new(output, order, *range)?),
        ranking => top(ranking, input()?, output, config, key_groups)?,
    }))
}

/// The inputs of a join, left and right.
fn join_inputs(graph: &StreamGraph, node: &Node, sides: &[JoinSide; 2]) -> Result<[JoinInput; 2]> {
    let [left, right] = node.inputs.as_slice() else { return Err(Error::bug("a join has two inputs")) };
    let input = |from: usize, side: &JoinSide| JoinInput {
        schema: graph.nodes[from].schema.clone(),
        keys: side.keys.clone(),
        width: side.width,
    };
    Ok([input(left.from, &sides[0]), input(right.from, &sides[1])])
}

/// An operator over rows in an order.
fn top(
    kind: &NodeKind,
    input: SchemaRef,
    output: SchemaRef,
    config: &JobConfig,
    key_groups: KeyGroupRange,
) -> Result<Box<dyn Operator>> {
    Ok(match kind {
        NodeKind::Rank {
            partition,
            order,
            function,
            range,
            by_rank,
            changes,
            newest_first,
            emit_update_before,
            ttl_ms,
        } => Box::new(Rank::new(RankParameters {
            input,
            output,
            partition: partition.clone(),
            order: order.clone(),
            function: *function,
            range: *range,
            by_rank: *by_rank,
            changes: *changes,
            newest_first: *newest_first,
            emit_update_before: *emit_update_before,
            ttl_ms: *ttl_ms,
            key_groups,
        })?),
        NodeKind::Over { partition, time, frame, calls, shown, ttl_ms } => Box::new(Over::new(OverParameters {
            input,
            output,
            partition: partition.clone(),
            time: *time,
            frame: *frame,
            calls: calls.clone(),
            shown: *shown,
            ttl_ms: *ttl_ms,
            key_groups,
        })?),
        NodeKind::OverTable { partition, order, frame, calls, shown, ttl_ms } => {
            Box::new(OverTable::new(OverTableParameters {
                input,
                output,
                partition: partition.clone(),
                order: order.clone(),
                frame: *frame,
                calls: calls.clone(),
                shown: *shown,
                ttl_ms: *ttl_ms,
                key_groups,
            })?)
        }
        NodeKind::WindowRank { partition, window_end, local, order, function, range, newest_first } => {
            Box::new(WindowRank::new(WindowRankParameters {
                input,
                output,
                partition: partition.clone(),
                window_end: *window_end,
                clock: local_time(*local, config),
                order: order.clone(),
                function: *function,
                range: *range,
                newest_first: *newest_first,
                key_groups,
            })?)
        }
        other => return Err(Error::bug(format!("no operator for {}", other.name()))),
    })
}

/// The clock along which windows are cut: the session's, or none.
fn local_time(local: bool, config: &JobConfig) -> LocalTime {
    if local { LocalTime::in_zone(config.zone) } else { LocalTime::default() }
}

fn compile(expression: &Expr, input: &DFSchema) -> Result<Arc<dyn PhysicalExpr>> {
    create_physical_expr(expression, input, &ExecutionProps::new(), &PhysicalPlanningContext::default())
        .map_err(|error| Error::sql(format!("cannot compile '{expression}': {}", error.strip_backtrace())))
}

/// A node in a word or two, for metrics and manifests.
pub fn describe(kind: &NodeKind) -> String {
    match kind {
        NodeKind::Source { table, .. } => format!("Source({})", table.name),
        NodeKind::Sink { name, .. } => format!("Sink({name})"),
        other => other.name().to_owned(),
    }
}

/// `UNION ALL`: the task's inputs are merged already.
struct PassOn;

impl Operator for PassOn {
    fn on_changes(&mut self, _port: Port, batch: ChangeBatch, out: &mut Output) -> Result<()> {
        out.changes(batch);
        Ok(())
    }
}
