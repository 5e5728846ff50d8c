//! Which columns only ever move one way while rows are updated.
//!
//! `SELECT MAX(n) FROM (SELECT who, COUNT(*) AS n FROM clicks GROUP BY who)`: a count over new rows only grows, so its
//! greatest value never has to be taken back, and MAX need not remember every count there is. A column that is the same
//! in the old and the new image of every update (a grouping key) is constant in this sense.

use datafusion_common::DFSchema;
use datafusion_expr::Expr;

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
        filtered: bool,
    ) {
        if filtered || self.node(input).mode.is_append_only() {
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
}
