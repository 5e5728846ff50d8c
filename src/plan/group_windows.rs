//! A wall above `GROUP BY TUMBLE(…)`, HOP and SESSION: conditions on their windows stay above it.
//!
//! Pushed below the aggregation, `HAVING SESSION_START(…) > x` would be asked of rows, which have no session yet.

use datafusion_common::Result;
use datafusion_common::tree_node::Transformed;
use datafusion_expr::{Expr, LogicalPlan};

use super::marks::Mark;

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
        Ok(Transformed::yes(Mark::GroupWindows.on(plan)))
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
