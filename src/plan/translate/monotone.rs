//! Which columns only ever move one way while rows are updated.
//!
//! `SELECT MAX(n) FROM (SELECT who, COUNT(*) AS n FROM clicks GROUP BY who)`: a count over new rows only grows, so its
//! greatest value never has to be taken back, and MAX need not remember every count there is. A column that is the same
//! in the old and the new image of every update (a grouping key) is constant in this sense. A sum of
//! new numbers that a condition keeps from being negative grows as a count does.

use datafusion_common::{DFSchema, ScalarValue};
use datafusion_expr::utils::split_conjunction;
use datafusion_expr::{BinaryExpr, Expr, Operator};

use super::Translation;
use super::calc::column_index;
use crate::changelog::Kind;
use crate::plan::stream::NodeId;
use crate::types::{AggregateCall, AggregateFunction};

/// How a column's value changes from the old image of an update to the new.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Motion {
    /// Not at all.
    Constant,
    /// Never down.
    Increasing,
    /// Never up.
    Decreasing,
    /// Anyhow.
    Any,
}

impl Translation<'_> {
    /// How column `column` of a node moves.
    pub(super) fn motion(&self, node: NodeId, column: usize) -> Motion {
        let mode = self.node(node).mode;
        if mode.is_append_only() {
            return Motion::Constant;
        }
        // Rows that go take what they were with them.
        if mode.contains(Kind::Delete) {
            return Motion::Any;
        }
        self.motions.get(&node).and_then(|motions| motions.get(column)).copied().unwrap_or(Motion::Any)
    }

    /// Notes how the columns of a projection move. A filter lets one image of an update pass without the other, which
    /// is a row that comes or goes: then nothing is known.
    pub(super) fn note_projection(
        &mut self,
        node: NodeId,
        input: NodeId,
        schema: &DFSchema,
        projection: &[Expr],
        condition: Option<&Expr>,
    ) {
        let known = self.not_negative.get(&input).cloned().unwrap_or_default();
        let asked: Vec<usize> = condition.map(|condition| not_negative(condition, schema)).unwrap_or_default();
        let source = |expression: &Expr| column_index(expression, schema);
        let sure = |column: usize| known.contains(&column) || asked.contains(&column);
        let columns = projection.iter().enumerate().filter(|(_, e)| source(e).is_some_and(sure));
        let columns: Vec<usize> = columns.map(|(index, _)| index).collect();
        if !columns.is_empty() {
            self.not_negative.insert(node, columns);
        }
        if condition.is_some() || self.node(input).mode.is_append_only() {
            return;
        }
        let of = |expression: &Expr| match column_index(expression, schema) {
            Some(column) => self.motion(input, column),
            None => {
                let columns = expression.column_refs();
                let constant = |column: &&datafusion_common::Column| {
                    schema
                        .maybe_index_of_column(column)
                        .is_some_and(|index| self.motion(input, index) == Motion::Constant)
                };
                if columns.iter().all(constant) { Motion::Constant } else { Motion::Any }
            }
        };
        let motions = projection.iter().map(of).collect();
        self.motions.insert(node, motions);
    }

    /// Marks the calls whose argument moves only towards their result, and gives the motion of the grouped columns.
    pub(super) fn judge_calls(&self, input: NodeId, keys: &[usize], calls: &mut [AggregateCall]) -> Vec<Motion> {
        let node = self.node(input);
        // A global aggregate has no key that could move, and rows may still go.
        let steady = !node.mode.contains(Kind::Delete);
        if !steady || keys.iter().any(|key| self.motion(input, *key) != Motion::Constant) {
            return Vec::new();
        }
        let append_only = node.mode.is_append_only();
        let mut motions = vec![Motion::Constant; keys.len()];
        for call in calls {
            let argument = call.arguments.first().map(|column| self.motion(input, *column));
            let plain = call.filter.is_none();
            motions.push(match (&call.function, argument) {
                (AggregateFunction::Count, _) if append_only => Motion::Increasing,
                // What is added is never below zero.
                (AggregateFunction::Sum, _) if append_only && self.adds_up(input, call) => Motion::Increasing,
                (AggregateFunction::Max, Some(Motion::Constant | Motion::Increasing)) if plain => {
                    call.monotone = true;
                    Motion::Increasing
                }
                (AggregateFunction::Min, Some(Motion::Constant | Motion::Decreasing)) if plain => {
                    call.monotone = true;
                    Motion::Decreasing
                }
                _ => Motion::Any,
            });
        }
        motions
    }

    /// Whether the call's argument is never below zero, by the conditions that its rows passed.
    fn adds_up(&self, input: NodeId, call: &AggregateCall) -> bool {
        let columns = self.not_negative.get(&input);
        call.arguments.first().is_some_and(|column| columns.is_some_and(|columns| columns.contains(column)))
    }
}

/// The columns that a condition keeps from being below zero: `x > 0`, `60 <= x`.
fn not_negative(condition: &Expr, schema: &DFSchema) -> Vec<usize> {
    let column = |part: &Expr| {
        let Expr::BinaryExpr(BinaryExpr { left, op, right }) = part else { return None };
        let (column, bound) = match op {
            Operator::Gt | Operator::GtEq => (left, right),
            Operator::Lt | Operator::LtEq => (right, left),
            Operator::Eq if matches!(left.as_ref(), Expr::Literal(..)) => (right, left),
            Operator::Eq => (left, right),
            _ => return None,
        };
        match bound.as_ref() {
            Expr::Literal(bound, _) if is_not_negative(bound) => column_index(column, schema),
            _ => None,
        }
    };
    split_conjunction(condition).into_iter().filter_map(column).collect()
}

fn is_not_negative(value: &ScalarValue) -> bool {
    match value {
        ScalarValue::Int8(Some(value)) => *value >= 0,
        ScalarValue::Int16(Some(value)) => *value >= 0,
        ScalarValue::Int32(Some(value)) => *value >= 0,
        ScalarValue::Int64(Some(value)) => *value >= 0,
        ScalarValue::Decimal128(Some(value), ..) => *value >= 0,
        _ => false,
    }
}
