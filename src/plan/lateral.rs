//! `LATERAL` subqueries that aggregate: a table without rows gives no row, as everywhere in a stream.
//!
//! Standard SQL would give one (`COUNT(*)` of nothing is 0), and the library's rules make it up after the join. Grouped
//! by a constant, the aggregate has a row only where it has input.

use std::sync::Arc;

use datafusion_common::Result as BindResult;
use datafusion_common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion_expr::logical_plan::SubqueryAlias;
use datafusion_expr::{Aggregate, Expr, Join, LogicalPlan, LogicalPlanBuilder, Subquery, lit};

/// The constant that an aggregate over everything is grouped by.
const EVERYTHING: &str = "__everything";

/// The join, with the aggregate of its lateral subquery grouped.
pub(super) fn group_lateral(mut join: Join) -> BindResult<Join> {
    if let Some(right) = grouped(&join.right)? {
        join.right = Arc::new(right);
    }
    Ok(join)
}

fn grouped(plan: &LogicalPlan) -> BindResult<Option<LogicalPlan>> {
    Ok(match plan {
        LogicalPlan::SubqueryAlias(alias) => match grouped(&alias.input)? {
            Some(input) if matches!(*alias.input, LogicalPlan::Subquery(_)) => {
                Some(LogicalPlan::SubqueryAlias(SubqueryAlias::try_new(Arc::new(input), alias.alias.clone())?))
            }
            _ => None,
        },
        LogicalPlan::Subquery(subquery) => {
            let changed = subquery.subquery.as_ref().clone().transform_down(group_first)?;
            let subquery = Subquery { subquery: Arc::new(changed.data), ..subquery.clone() };
            changed.transformed.then_some(LogicalPlan::Subquery(subquery))
        }
        _ => None,
    })
}

/// Groups the aggregate that gives the subquery's rows, if one does.
fn group_first(plan: LogicalPlan) -> BindResult<Transformed<LogicalPlan>> {
    match plan {
        LogicalPlan::Aggregate(aggregate) if aggregate.group_expr.is_empty() => {
            let columns: Vec<Expr> = aggregate.schema.columns().into_iter().map(Expr::Column).collect();
            let by = vec![lit(true).alias(EVERYTHING)];
            let grouped = LogicalPlan::Aggregate(Aggregate::try_new(aggregate.input, by, aggregate.aggr_expr)?);
            let plan = LogicalPlanBuilder::from(grouped).project(columns)?.build()?;
            Ok(Transformed::new(plan, true, TreeNodeRecursion::Stop))
        }
        LogicalPlan::Projection(_) | LogicalPlan::SubqueryAlias(_) | LogicalPlan::Filter(_) => {
            Ok(Transformed::no(plan))
        }
        other => Ok(Transformed::new(other, false, TreeNodeRecursion::Stop)),
    }
}
