//! Conditions of joins with the constant behind the comparison: `5 = a.x` becomes `a.x = 5`.
//!
//! The rules carry such a condition over to the other side of a join, and take two equal ones with the constant in front
//! for a contradiction: no row would come through.

use datafusion_common::Result;
use datafusion_common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion_expr::{BinaryExpr, Expr, LogicalPlan};
use datafusion_optimizer::{ApplyOrder, OptimizerConfig, OptimizerRule};

/// Turns the conditions of joins.
#[derive(Debug)]
pub(super) struct ColumnsFirst;

impl OptimizerRule for ColumnsFirst {
    fn name(&self) -> &str {
        "columns_first"
    }

    fn apply_order(&self) -> Option<ApplyOrder> {
        Some(ApplyOrder::TopDown)
    }

    fn rewrite(&self, plan: LogicalPlan, _config: &dyn OptimizerConfig) -> Result<Transformed<LogicalPlan>> {
        let LogicalPlan::Join(_) = &plan else { return Ok(Transformed::no(plan)) };
        plan.map_expressions(|condition| condition.transform_up(|part| Ok(turned(part))))
            .map(|turned| Transformed::new(turned.data, turned.transformed, TreeNodeRecursion::Continue))
    }
}

fn turned(expression: Expr) -> Transformed<Expr> {
    match expression {
        Expr::BinaryExpr(BinaryExpr { left, op, right }) => {
            let constant_first = matches!(*left, Expr::Literal(..)) && !matches!(*right, Expr::Literal(..));
            match op.swap().filter(|_| constant_first) {
                Some(op) => Transformed::yes(Expr::BinaryExpr(BinaryExpr { left: right, op, right: left })),
                None => Transformed::no(Expr::BinaryExpr(BinaryExpr { left, op, right })),
            }
        }
        other => Transformed::no(other),
    }
}
