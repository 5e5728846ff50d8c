//! Late rows that go to a table: the whole row must come as far as the window.

use std::sync::Arc;

use datafusion_common::Result;
use datafusion_common::tree_node::Transformed;
use datafusion_expr::{Extension, LogicalPlan};

use super::nodes::WindowNode;

/// Lets every window table function keep all columns of its input.
///
/// # Errors
/// Only by a bug.
pub(super) fn keep_columns(plan: LogicalPlan) -> Result<LogicalPlan> {
    let kept = plan.transform_down_with_subqueries(|plan| {
        let LogicalPlan::Extension(extension) = &plan else { return Ok(Transformed::no(plan)) };
        match extension.node.as_any().downcast_ref::<WindowNode>() {
            Some(window) if !window.keeps_all => {
                let node = Arc::new(window.keeping_all());
                Ok(Transformed::yes(LogicalPlan::Extension(Extension { node })))
            }
            _ => Ok(Transformed::no(plan)),
        }
    })?;
    Ok(kept.data)
}
