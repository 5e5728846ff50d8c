//! A global aggregate keeps at least one of its columns, also when nobody reads any.
//!
//! Over a stream it has no row before the first row of its input. The optimizer takes one without columns for a relation
//! that always has a row, as it would be over a table at rest; a mark above the aggregate reads a column meanwhile. Likewise `OVER`, which over time drops the rows that come late.

use datafusion_common::Result;
use datafusion_common::tree_node::{Transformed, TreeNode};
use datafusion_expr::LogicalPlan;
use datafusion_optimizer::{OptimizerConfig, OptimizerRule};

use super::marks::{Mark, MarkedNode, marked};

/// Marks every global aggregate, for the rules after this one.
#[derive(Debug)]
pub(super) struct PinGlobalAggregates;

impl OptimizerRule for PinGlobalAggregates {
    fn name(&self) -> &str {
        "pin_global_aggregates"
    }

    fn rewrite(&self, plan: LogicalPlan, _config: &dyn OptimizerConfig) -> Result<Transformed<LogicalPlan>> {
        // From the leaves up, so that aggregates below aggregates are met; one with a mark already gets a second one,
        // of which the first is taken away.
        plan.transform_up(|plan| match &plan {
            LogicalPlan::Aggregate(aggregate) if aggregate.group_expr.is_empty() => {
                Ok(Transformed::yes(Mark::GlobalAggregate.on(plan)))
            }
            LogicalPlan::Window(window) => {
                let first = window.input.schema().fields().len();
                Ok(Transformed::yes(Mark::Over(first).on(plan)))
            }
            _ => match marked(&plan) {
                Some(MarkedNode { input, mark: Mark::GlobalAggregate | Mark::Over(_) }) if is_pinned(input) => {
                    Ok(Transformed::no(input.clone()))
                }
                _ => Ok(Transformed::no(plan)),
            },
        })
    }
}

fn is_pinned(plan: &LogicalPlan) -> bool {
    marked(plan).is_some_and(|node| matches!(node.mark, Mark::GlobalAggregate | Mark::Over(_)))
}
