//! Joins: equal keys decide which rows meet, the rest of the condition judges pairs.

use std::sync::Arc;

use arrow::datatypes::{Field, Schema};
use datafusion_common::{DFSchema, DFSchemaRef, JoinType, NullEquality};
use datafusion_expr::expr::Cast;
use datafusion_expr::utils::{conjunction, split_conjunction};
use datafusion_expr::{BinaryExpr, Expr, ExprSchemable, Join, LogicalPlan, Operator};

use super::calc::column_index;
use super::{Facts, Translation};
use crate::changelog::{ChangelogMode, Kind};
use crate::error::Result;
use crate::functions;
use crate::plan::error::unwrap;
use crate::plan::sets::CountedSetNode;
use crate::plan::stream::{Distribution, Edge, JoinSide, NodeId, NodeKind, NodeParallelism, StateBound};
use crate::types::{JoinKind, NullKeys, SetOperation, SqlType};

/// A join with its inputs in the order in which the operator wants them.
pub(super) struct Sides<'a> {
    pub(super) kind: JoinKind,
    pub(super) inputs: [&'a LogicalPlan; 2],
    /// Pairs of equal expressions, over the inputs in this order.
    pub(super) on: Vec<(Expr, Expr)>,
    pub(super) null_keys: NullKeys,
    /// The rest of the condition.
    pub(super) filter: Option<Expr>,
}

/// The inputs of a join with their keys as columns.
pub(super) struct KeyedInputs {
    pub(super) nodes: [NodeId; 2],
    pub(super) sides: [JoinSide; 2],
    pub(super) edges: Vec<Edge>,
    /// Whether all rows must meet in one subtask.
    pub(super) single: bool,
}

impl<'a> Sides<'a> {
    /// Joins that emit only right rows are turned around.
    fn of(join: &'a Join) -> Sides<'a> {
        let (kind, turned) = match join.join_type {
            JoinType::Inner => (JoinKind::Inner, false),
            JoinType::Left => (JoinKind::Left, false),
            JoinType::Right => (JoinKind::Right, false),
            JoinType::Full => (JoinKind::Full, false),
            JoinType::LeftSemi => (JoinKind::Semi, false),
            JoinType::RightSemi => (JoinKind::Semi, true),
            JoinType::LeftAnti => (JoinKind::Anti, false),
            JoinType::RightAnti => (JoinKind::Anti, true),
            JoinType::LeftMark => (JoinKind::Mark, false),
            JoinType::RightMark => (JoinKind::Mark, true),
        };
        let null_keys = match join.null_equality {
            NullEquality::NullEqualsNull => NullKeys::Null,
            NullEquality::NullEqualsNothing => NullKeys::Nothing,
        };
        let mut sides = Sides {
            kind,
            inputs: [join.left.as_ref(), join.right.as_ref()],
            on: join.on.clone(),
            null_keys,
            filter: join.filter.clone(),
        };
        if turned {
            sides.inputs.reverse();
            sides.on.iter_mut().for_each(|(left, right)| std::mem::swap(left, right));
        }
        if sides.on.is_empty() {
            sides.take_possible_equality();
        }
        sides
    }

    /// Makes `(a = b) IS NOT FALSE` the key of a join that has no other.
    fn take_possible_equality(&mut self) {
        let over = |port: usize, expression: &Expr| {
            let columns = expression.column_refs();
            !columns.is_empty() && columns.into_iter().all(|column| self.inputs[port].schema().has_column(column))
        };
        let parts: Vec<Expr> = self.filter.iter().flat_map(split_conjunction).cloned().collect();
        let found = parts.iter().enumerate().find_map(|(place, part)| {
            let Expr::IsNotFalse(inner) = part else { return None };
            let Expr::BinaryExpr(BinaryExpr { left, op: Operator::Eq, right }) = inner.as_ref() else { return None };
            match (left.as_ref().clone(), right.as_ref().clone()) {
                (a, b) if over(0, &a) && over(1, &b) => Some((place, (a, b))),
                (a, b) if over(1, &a) && over(0, &b) => Some((place, (b, a))),
                _ => None,
            }
        });
        if let Some((place, key)) = found {
            self.on.push(key);
            self.null_keys = NullKeys::Anything;
            let rest = parts.into_iter().enumerate().filter(|(other, _)| *other != place);
            self.filter = conjunction(rest.map(|(_, part)| part));
        }
    }
}

impl Translation<'_> {
    pub(super) fn join(&mut self, join: &Join) -> Result<NodeId> {
        let sides = Sides::of(join);
        let inputs = [self.relation(sides.inputs[0])?, self.relation(sides.inputs[1])?];
        // Over bounded inputs a regular join gives the same final rows.
        if !self.settings.batch {
            if let Some(interval) = self.interval(&sides, inputs) {
                return self.interval_join(join, sides, inputs, interval);
            }
            if let Some(windows) = self.joined_windows(&sides, inputs) {
                return self.window_join(join, sides, inputs, windows);
            }
        }
        let (kind, null_keys, filter) = (sides.kind, sides.null_keys, sides.filter.clone());
        let [left_schema, right_schema] = sides.inputs.map(|input| Arc::clone(input.schema()));
        let ttl_ms = [&left_schema, &right_schema].map(|schema| self.ttl_of(schema));
        let KeyedInputs { nodes, sides: keyed, edges, single } = self.keyed_inputs(sides, inputs)?;
        let mut facts = Facts::plain(Arc::clone(join.schema.inner()));
        let append = nodes.into_iter().all(|input| self.node(input).mode.is_append_only());
        facts.mode = emitted_mode(kind, append);
        facts.upsert_key = self.joined_key(kind, nodes, [&keyed[0], &keyed[1]]);
        facts.state = match ttl_ms {
            [0, 0] => StateBound::Unbounded(
                "the rows of both inputs are kept; join over windows, or on an interval of time, to bound it".into(),
            ),
            [left, 0] => StateBound::Unbounded(format!("the right rows are kept; left rows idle for {left} ms expire")),
            [0, right] => {
                StateBound::Unbounded(format!("the left rows are kept; right rows idle for {right} ms expire"))
            }
            [left, right] if left == right => StateBound::Bounded(format!("rows idle for {left} ms expire")),
            [left, right] => {
                StateBound::Bounded(format!("left rows idle for {left} ms and right rows for {right} ms expire"))
            }
        };
        if single {
            facts.parallelism = NodeParallelism::Single;
        }
        let pairs = match &filter {
            Some(_) => Arc::new(left_schema.join(&right_schema).map_err(unwrap)?),
            None => Arc::new(DFSchema::empty()),
        };
        let node = NodeKind::Join { kind, sides: keyed, condition: filter, pairs, null_keys, ttl_ms };
        Ok(self.add(node, edges, facts))
    }

    /// Both inputs with their keys as columns of one type, and how their rows meet.
    pub(super) fn keyed_inputs(&mut self, sides: Sides<'_>, inputs: [NodeId; 2]) -> Result<KeyedInputs> {
        let Sides { inputs: plans, on, null_keys, .. } = sides;
        let (left_schema, right_schema) = (plans[0].schema(), plans[1].schema());
        let mut keys: [Vec<Expr>; 2] = Default::default();
        for (left, right) in on {
            let (left, right) = same_type(left, left_schema, right, right_schema)?;
            keys[0].push(left);
            keys[1].push(right);
        }
        let [left_keys, right_keys] = keys;
        let (left, left_side) = self.join_input(inputs[0], left_schema, left_keys)?;
        let (right, right_side) = self.join_input(inputs[1], right_schema, right_keys)?;
        // A NULL that matches anything must meet the rows of every key.
        let single = left_side.keys.is_empty() || null_keys == NullKeys::Anything;
        let edge = |from: NodeId, side: &JoinSide| Edge {
            from,
            distribution: if single { Distribution::Single } else { Distribution::Hash(side.keys.clone()) },
        };
        let edges = vec![edge(left, &left_side), edge(right, &right_side)];
        Ok(KeyedInputs { nodes: [left, right], sides: [left_side, right_side], edges, single })
    }

    /// `INTERSECT ALL` and `EXCEPT ALL`: rows meet by all their columns.
    pub(super) fn counted_set(&mut self, set: &CountedSetNode) -> Result<NodeId> {
        let inputs = [self.relation(&set.left)?, self.relation(&set.right)?];
        let mut facts = Facts::plain(Arc::clone(set.left.schema().inner()));
        let append = inputs.iter().all(|input| self.node(*input).mode.is_append_only());
        facts.mode = match set.operation {
            SetOperation::IntersectAll if append => ChangelogMode::APPEND,
            _ => ChangelogMode::APPEND.with(Kind::Delete),
        };
        facts.state = self.bound_by_idleness("every different row of both inputs is counted", "rows");
        let columns: Vec<usize> = (0..facts.schema.fields().len()).collect();
        let edges = inputs.map(|from| Edge { from, distribution: Distribution::Hash(columns.clone()) });
        let kind = NodeKind::CountedSet { operation: set.operation, ttl_ms: self.settings.ttl_ms };
        Ok(self.add(kind, edges.to_vec(), facts))
    }

    /// An input with its keys as columns: those that are computed stand behind the input's own.
    pub(super) fn join_input(
        &mut self,
        input: NodeId,
        schema: &DFSchemaRef,
        keys: Vec<Expr>,
    ) -> Result<(NodeId, JoinSide)> {
        let width = schema.fields().len();
        let mut columns: Vec<Expr> = schema.columns().into_iter().map(Expr::Column).collect();
        let mut fields: Vec<_> = schema.fields().iter().cloned().collect();
        let mut places = Vec::with_capacity(keys.len());
        for key in keys {
            if let Some(column) = column_index(&key, schema) {
                places.push(column);
                continue;
            }
            let (_, field) = key.to_field(schema).map_err(unwrap)?;
            places.push(columns.len());
            columns.push(key);
            fields.push(field);
        }
        let side = JoinSide { keys: places, width };
        if columns.len() == width {
            return Ok((input, side));
        }
        let node = self.project(input, Arc::clone(schema), None, columns, Arc::new(Schema::new(fields)))?;
        Ok((node, side))
    }

    /// The columns that identify an emitted row, if the inputs have such.
    pub(super) fn joined_key(&self, kind: JoinKind, inputs: [NodeId; 2], sides: [&JoinSide; 2]) -> Option<Vec<usize>> {
        let key = |port: usize| {
            let key = self.node(inputs[port]).upsert_key.clone()?;
            key.iter().all(|column| *column < sides[port].width).then_some(key)
        };
        if !kind.emits_pairs() {
            return key(0);
        }
        // A side whose key is among the join's keys gives at most one match.
        let at_most_one =
            |port: usize| key(port).is_some_and(|key| key.iter().all(|column| sides[port].keys.contains(column)));
        let behind = |key: Vec<usize>| key.into_iter().map(|column| column + sides[0].width);
        match kind {
            JoinKind::Inner | JoinKind::Left if at_most_one(1) && key(0).is_some() => key(0),
            JoinKind::Inner | JoinKind::Right if at_most_one(0) && key(1).is_some() => {
                key(1).map(|key| behind(key).collect())
            }
            _ => Some(key(0)?.into_iter().chain(behind(key(1)?)).collect()),
        }
    }
}

/// What a join emits: only pairs and rows that have found a match can do without deletes.
fn emitted_mode(kind: JoinKind, append: bool) -> ChangelogMode {
    match kind {
        JoinKind::Inner | JoinKind::Semi if append => ChangelogMode::APPEND,
        JoinKind::Left | JoinKind::Right | JoinKind::Full => ChangelogMode::APPEND.with(Kind::Delete),
        JoinKind::Anti if append => ChangelogMode::APPEND.with(Kind::Delete),
        _ => ChangelogMode::RETRACT,
    }
}

/// Both keys in the type in which they are compared.
pub(super) fn same_type(
    left: Expr,
    left_schema: &DFSchema,
    right: Expr,
    right_schema: &DFSchema,
) -> Result<(Expr, Expr)> {
    let (_, left_field) = left.to_field(left_schema).map_err(unwrap)?;
    let (_, right_field) = right.to_field(right_schema).map_err(unwrap)?;
    if left_field.data_type() == right_field.data_type() {
        return Ok((left, right));
    }
    let (left_type, right_type) = (SqlType::of_field(&left_field), SqlType::of_field(&right_field));
    let common = functions::comparison_type(&left_type, &right_type, true)?.to_arrow();
    let cast = |side: Expr, field: &Field| match *field.data_type() == common {
        true => side,
        false => Expr::Cast(Cast::new(Box::new(side), common.clone())),
    };
    Ok((cast(left, &left_field), cast(right, &right_field)))
}
