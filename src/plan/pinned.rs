//! A global aggregate keeps at least one of its columns, also when nobody reads any.
//!
//! Over a stream it has no row before the first row of its input. The optimizer takes one without columns for a relation
//! that always has a row, as it would be over a table at rest; a node above the aggregate reads a column meanwhile.

use std::cmp::Ordering;
use std::fmt;
use std::sync::Arc;

use datafusion_common::tree_node::{Transformed, TreeNode};
use datafusion_common::{DFSchemaRef, Result};
use datafusion_expr::{Expr, Extension, LogicalPlan, UserDefinedLogicalNodeCore};
use datafusion_optimizer::{OptimizerConfig, OptimizerRule};

/// Reads the first column of a global aggregate.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Pinned {
    input: LogicalPlan,
}

impl PartialOrd for Pinned {
    fn partial_cmp(&self, other: &Pinned) -> Option<Ordering> {
        self.input.partial_cmp(&other.input)
    }
}

impl UserDefinedLogicalNodeCore for Pinned {
    fn name(&self) -> &str {
        "Pinned"
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
        write!(f, "Pinned")
    }

    fn with_exprs_and_inputs(&self, _exprs: Vec<Expr>, mut inputs: Vec<LogicalPlan>) -> Result<Pinned> {
        match inputs.pop() {
            Some(input) => Ok(Pinned { input }),
            None => datafusion_common::internal_err!("an aggregate was rebuilt without its input"),
        }
    }

    fn necessary_children_exprs(&self, output_columns: &[usize]) -> Option<Vec<Vec<usize>>> {
        Some(vec![if output_columns.is_empty() { vec![0] } else { output_columns.to_vec() }])
    }
}

/// Puts the node above every global aggregate, for the rules after this one.
#[derive(Debug)]
pub(super) struct PinGlobalAggregates;

impl OptimizerRule for PinGlobalAggregates {
    fn name(&self) -> &str {
        "pin_global_aggregates"
    }

    fn rewrite(&self, plan: LogicalPlan, _config: &dyn OptimizerConfig) -> Result<Transformed<LogicalPlan>> {
        // From the leaves up, so that aggregates below aggregates are met; a pinned one is met before its pin.
        plan.transform_up(|plan| match &plan {
            LogicalPlan::Extension(extension) => match extension.node.as_any().downcast_ref::<Pinned>() {
                Some(Pinned { input: LogicalPlan::Extension(inner) }) if inner.node.as_any().is::<Pinned>() => {
                    Ok(Transformed::no(LogicalPlan::Extension(inner.clone())))
                }
                _ => Ok(Transformed::no(plan)),
            },
            LogicalPlan::Aggregate(aggregate) if aggregate.group_expr.is_empty() => {
                Ok(Transformed::yes(LogicalPlan::Extension(Extension { node: Arc::new(Pinned { input: plan }) })))
            }
            _ => Ok(Transformed::no(plan)),
        })
    }
}

/// Takes the nodes away again.
pub(super) fn unpin(plan: LogicalPlan) -> Result<LogicalPlan> {
    plan.transform_up(|plan| match &plan {
        LogicalPlan::Extension(extension) => match extension.node.as_any().downcast_ref::<Pinned>() {
            Some(pinned) => Ok(Transformed::yes(pinned.input.clone())),
            None => Ok(Transformed::no(plan)),
        },
        _ => Ok(Transformed::no(plan)),
    })
    .map(|unpinned| unpinned.data)
}
