//! Marks on relations: nodes of the logical plan that pass what comes, and tell a rule something about it.

use std::cmp::Ordering;
use std::fmt;
use std::sync::Arc;

use datafusion_common::tree_node::{Transformed, TreeNode};
use datafusion_common::{DFSchemaRef, Result};
use datafusion_expr::{Expr, Extension, LogicalPlan, UserDefinedLogicalNodeCore};

/// What is told of a relation.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd)]
pub(super) enum Mark {
    /// It is a global aggregate, which keeps one of its columns also when nobody reads any.
    GlobalAggregate,
    /// It is `OVER`, whose first column is this one, and which drops late rows also when their number alone is asked for.
    Over(usize),
    /// It groups by windows, which conditions on them must stay above.
    GroupWindows,
    /// It is a table whose versions are asked for; the number of the time it is read as of, if that stands in `WHERE`.
    Versions(Option<String>),
}

/// A relation with a mark.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct MarkedNode {
    pub input: LogicalPlan,
    pub mark: Mark,
}

impl Mark {
    /// The relation with this mark.
    pub(super) fn on(self, input: LogicalPlan) -> LogicalPlan {
        LogicalPlan::Extension(Extension { node: Arc::new(MarkedNode { input, mark: self }) })
    }
}

/// The mark that a relation carries, with the relation below it.
pub(super) fn marked(plan: &LogicalPlan) -> Option<&MarkedNode> {
    match plan {
        LogicalPlan::Extension(extension) => extension.node.as_any().downcast_ref::<MarkedNode>(),
        _ => None,
    }
}

/// The plan without marks.
///
/// # Errors
/// Only by a bug.
pub(super) fn unmarked(plan: LogicalPlan) -> Result<LogicalPlan> {
    let unmarked = plan.transform_up(|plan| match marked(&plan) {
        Some(node) => Ok(Transformed::yes(node.input.clone())),
        None => Ok(Transformed::no(plan)),
    });
    unmarked.map(|unmarked| unmarked.data)
}

impl PartialOrd for MarkedNode {
    fn partial_cmp(&self, other: &MarkedNode) -> Option<Ordering> {
        self.mark.partial_cmp(&other.mark)
    }
}

impl UserDefinedLogicalNodeCore for MarkedNode {
    fn name(&self) -> &str {
        "Marked"
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
        write!(f, "Marked: {:?}", self.mark)
    }

    fn with_exprs_and_inputs(&self, _exprs: Vec<Expr>, mut inputs: Vec<LogicalPlan>) -> Result<MarkedNode> {
        match inputs.pop() {
            Some(input) => Ok(MarkedNode { input, mark: self.mark.clone() }),
            None => datafusion_common::internal_err!("a mark was rebuilt without its relation"),
        }
    }

    fn necessary_children_exprs(&self, output_columns: &[usize]) -> Option<Vec<Vec<usize>>> {
        match self.mark {
            Mark::GlobalAggregate if output_columns.is_empty() => Some(vec![vec![0]]),
            // As in Flink, where a count of all rows leaves OVER in place, and a list of other columns does not.
            Mark::Over(first) if output_columns.is_empty() => Some(vec![vec![first]]),
            _ => Some(vec![output_columns.to_vec()]),
        }
    }
}
