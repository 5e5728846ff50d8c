//! A wall above `GROUP BY TUMBLE(…)`, HOP and SESSION: conditions on their windows stay above it.
//!
//! Pushed below the aggregation, `HAVING SESSION_START(…) > x` would be asked of rows, which have no session yet.

use std::cmp::Ordering;
use std::fmt;
use std::sync::Arc;

use datafusion_common::tree_node::Transformed;
use datafusion_common::{DFSchemaRef, Result};
use datafusion_expr::{Expr, Extension, LogicalPlan, UserDefinedLogicalNodeCore};

/// Passes the groups of an aggregation over group windows.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct GroupWindowNode {
    pub input: LogicalPlan,
}

impl PartialOrd for GroupWindowNode {
    fn partial_cmp(&self, other: &GroupWindowNode) -> Option<Ordering> {
        self.input.partial_cmp(&other.input)
    }
}

impl UserDefinedLogicalNodeCore for GroupWindowNode {
    fn name(&self) -> &str {
        "GroupWindow"
    }

    fn inputs(&self) -> Vec<&LogicalPlan> {
        vec![&self.input]
    }

    fn schema(&self) -> &DFSchemaRef {
        self.input.schema()
    }

    fn expressions(&self) -> Vec<Expr> {
        Vec::new()
    }

    fn fmt_for_explain(&self, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "GroupWindow")
    }

    fn with_exprs_and_inputs(&self, _exprs: Vec<Expr>, mut inputs: Vec<LogicalPlan>) -> Result<GroupWindowNode> {
        match inputs.pop() {
            Some(input) => Ok(GroupWindowNode { input }),
            None => datafusion_common::internal_err!("an aggregation over windows lost its input"),
        }
    }

    fn necessary_children_exprs(&self, output_columns: &[usize]) -> Option<Vec<Vec<usize>>> {
        Some(vec![output_columns.to_vec()])
    }
}

/// Puts the wall above every aggregation over group windows.
///
/// # Errors
/// Only by a bug.
pub(super) fn wall_off(plan: LogicalPlan) -> Result<LogicalPlan> {
    let walled = plan.transform_up_with_subqueries(|plan| {
        let LogicalPlan::Aggregate(aggregate) = &plan else { return Ok(Transformed::no(plan)) };
        if !aggregate.group_expr.iter().any(is_group_window) {
            return Ok(Transformed::no(plan));
        }
        Ok(Transformed::yes(LogicalPlan::Extension(Extension { node: Arc::new(GroupWindowNode { input: plan }) })))
    })?;
    Ok(walled.data)
}

fn is_group_window(expression: &Expr) -> bool {
    match expression {
        Expr::Alias(alias) => is_group_window(&alias.expr),
        Expr::ScalarFunction(call) => matches!(call.name(), "tumble" | "hop" | "session"),
        _ => false,
    }
}
