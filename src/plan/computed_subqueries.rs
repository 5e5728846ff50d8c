//! Subqueries where the binding library's rules do not look for them.
//!
//! | where | what becomes of it |
//! |---|---|
//! | in `ON` of an inner join | a condition above the join |
//! | in `ON` of an outer join | a column of the one side that it asks about |
//! | in the argument or `FILTER` of an aggregate | a column below the aggregate |
//! | `EXISTS` as a value, by more than equal columns | a mark join, which adds whether there is a row |

use std::collections::BTreeSet;
use std::sync::Arc;

use datafusion_common::tree_node::{Transformed, TreeNode, TreeNodeRecursion, TreeNodeRewriter};
use datafusion_common::{Column, DFSchema, JoinType, Result as BindResult};
use datafusion_expr::expr::Exists;
use datafusion_expr::expr_rewriter::NamePreserver;
use datafusion_expr::utils::{conjunction, split_conjunction_owned};
use datafusion_expr::{Aggregate, Expr, Join, LogicalPlan, LogicalPlanBuilder, Projection, lit};
use datafusion_optimizer::decorrelate::PullUpCorrelatedExpr;

use super::error::wrap;
use crate::error::Error;

/// Whether a subquery stands in the expression.
pub(super) fn asks(expression: &Expr) -> bool {
    let found =
        expression.exists(|part| Ok(matches!(part, Expr::ScalarSubquery(_) | Expr::InSubquery(_) | Expr::Exists(_))));
    found.unwrap_or(false)
}

/// A join without subqueries in its condition.
pub(super) fn in_join(mut join: Join) -> BindResult<LogicalPlan> {
    let Some(filter) = join.filter.take_if(|filter| asks(filter)) else { return Ok(LogicalPlan::Join(join)) };
    let (asking, plain): (Vec<Expr>, Vec<Expr>) = split_conjunction_owned(filter).into_iter().partition(asks);
    if join.join_type == JoinType::Inner {
        join.filter = conjunction(plain);
        let above = LogicalPlanBuilder::from(LogicalPlan::Join(join));
        return match conjunction(asking) {
            Some(condition) => above.filter(condition)?.build(),
            None => above.build(),
        };
    }
    let columns: Vec<Expr> = join.schema.columns().into_iter().map(Expr::Column).collect();
    let mut condition = plain;
    for (number, asked) in asking.into_iter().enumerate() {
        let (left, right) = (reads(&asked, join.left.schema()), reads(&asked, join.right.schema()));
        let name = format!("__asked{number}");
        let side = match (left, right) {
            (_, false) => &mut join.left,
            (false, true) => &mut join.right,
            (true, true) => {
                let error = Error::sql("a subquery in the ON of an outer join asks about both sides");
                return Err(wrap(error.hint("compute it in a subquery of one side, or put it into WHERE")));
            }
        };
        let beside = side.schema().columns().into_iter().map(Expr::Column).chain([asked.alias(&name)]);
        *side = Arc::new(LogicalPlanBuilder::from(side.as_ref().clone()).project(beside)?.build()?);
        condition.push(Expr::Column(Column::new_unqualified(name)));
    }
    let builder = LogicalPlanBuilder::from(Arc::unwrap_or_clone(join.left));
    let condition = conjunction(join.on.into_iter().map(|(left, right)| left.eq(right)).chain(condition));
    builder.join_on(Arc::unwrap_or_clone(join.right), join.join_type, condition)?.project(columns)?.build()
}

/// Whether the expression, or a subquery in it from outside, reads a column of the schema.
fn reads(expression: &Expr, schema: &DFSchema) -> bool {
    let of_schema = |column: &Column| schema.maybe_index_of_column(column).is_some();
    let read = expression.exists(|part| {
        let outer = |subquery: &datafusion_expr::Subquery| {
            subquery.outer_ref_columns.iter().any(|outer| match outer {
                Expr::OuterReferenceColumn(_, column) => of_schema(column),
                _ => false,
            })
        };
        Ok(match part {
            Expr::Column(column) => of_schema(column),
            Expr::ScalarSubquery(subquery) => outer(subquery),
            Expr::InSubquery(member) => outer(&member.subquery),
            Expr::Exists(exists) => outer(&exists.subquery),
            _ => false,
        })
    });
    read.unwrap_or(false)
}

/// An aggregate without subqueries: what holds one is computed below it.
pub(super) fn in_aggregate(aggregate: Aggregate) -> BindResult<LogicalPlan> {
    let every = || aggregate.group_expr.iter().chain(&aggregate.aggr_expr);
    if !every().any(asks) {
        return Ok(LogicalPlan::Aggregate(aggregate));
    }
    let node = LogicalPlan::Aggregate(aggregate);
    let names = NamePreserver::new(&node);
    let LogicalPlan::Aggregate(aggregate) = node else { return datafusion_common::internal_err!("no aggregate") };
    let mut computed: Vec<Expr> = Vec::new();
    let mut column = |expression: Expr| {
        let name = format!("__asked{}", computed.len());
        computed.push(expression.alias(&name));
        Expr::Column(Column::new_unqualified(name))
    };
    let mut below = |expression: Expr, key: bool| -> BindResult<Expr> {
        let name = names.save(&expression);
        let replaced = expression.transform_down(|part| match part {
            Expr::AggregateFunction(mut call) => {
                let params = &mut call.params;
                for argument in params.args.iter_mut().chain(params.filter.as_deref_mut()).filter(|e| asks(e)) {
                    *argument = column(std::mem::take(argument));
                }
                Ok(Transformed::new(Expr::AggregateFunction(call), true, TreeNodeRecursion::Jump))
            }
            part if key && asks(&part) => Ok(Transformed::new(column(part), true, TreeNodeRecursion::Jump)),
            part => Ok(Transformed::no(part)),
        })?;
        Ok(name.restore(replaced.data))
    };
    let groups = aggregate.group_expr.into_iter().map(|e| below(e, true)).collect::<BindResult<Vec<_>>>()?;
    let calls = aggregate.aggr_expr.into_iter().map(|e| below(e, false)).collect::<BindResult<Vec<_>>>()?;
    let own = aggregate.input.schema().columns().into_iter().map(Expr::Column);
    let input = Projection::try_new(own.chain(computed).collect(), aggregate.input)?;
    let input = in_projection(input)?;
    Ok(LogicalPlan::Aggregate(Aggregate::try_new(Arc::new(input), groups, calls)?))
}

/// A projection in which `EXISTS` is a column of a mark join below it.
pub(super) fn in_projection(projection: Projection) -> BindResult<LogicalPlan> {
    let exists = |expression: &Expr| expression.exists(|part| Ok(matches!(part, Expr::Exists(_)))).unwrap_or(false);
    if !projection.expr.iter().any(exists) {
        return Ok(LogicalPlan::Projection(projection));
    }
    let node = LogicalPlan::Projection(projection);
    let names = NamePreserver::new(&node);
    let LogicalPlan::Projection(projection) = node else { return datafusion_common::internal_err!("no projection") };
    let mut input = Arc::unwrap_or_clone(projection.input);
    let mut expressions = Vec::with_capacity(projection.expr.len());
    for expression in projection.expr {
        let name = names.save(&expression);
        let marked = expression.transform_down(|part| match part {
            Expr::Exists(exists) => {
                let negated = exists.negated;
                let (joined, mark) = marked(std::mem::take(&mut input), exists)?;
                input = joined;
                let mark = if negated { Expr::Not(Box::new(mark)) } else { mark };
                Ok(Transformed::new(mark, true, TreeNodeRecursion::Jump))
            }
            part => Ok(Transformed::no(part)),
        })?;
        expressions.push(name.restore(marked.data));
    }
    Ok(LogicalPlan::Projection(Projection::try_new(expressions, Arc::new(input))?))
}

/// Whether a correlated subquery that aggregates can be joined by equal columns.
pub(super) fn joins_by_equality(plan: &LogicalPlan) -> bool {
    let mut pulled = PullUpCorrelatedExpr::new();
    plan.clone().rewrite(&mut pulled).is_ok() && pulled.can_pull_up
}

/// The relation with a further column that tells whether the subquery has a row, and that column.
fn marked(input: LogicalPlan, exists: Exists) -> BindResult<(LogicalPlan, Expr)> {
    let mut pulled = PullUpCorrelatedExpr::new().with_exists_sub_query(true);
    let subquery = Arc::unwrap_or_clone(exists.subquery.subquery);
    let subquery = rewritten(subquery, &mut pulled)?;
    if !pulled.can_pull_up {
        let error = Error::sql("this EXISTS in an expression cannot be turned into a join");
        return Err(wrap(error.hint("correlate it in the WHERE of the subquery itself")));
    }
    // A name that no other relation below has.
    let taken = |alias: &str| input.schema().iter().any(|(table, _)| table.is_some_and(|table| table.table() == alias));
    let alias = (0..).map(|number| format!("__exists{number}")).find(|alias| !taken(alias)).unwrap_or_default();
    let inner: BTreeSet<Column> = pulled.correlated_subquery_cols_map.values().flatten().cloned().collect();
    let filter = conjunction(std::mem::take(&mut pulled.join_filters)).unwrap_or_else(|| lit(true));
    let filter = filter.transform(|part| match part {
        Expr::Column(column) if inner.contains(&column) => {
            Ok(Transformed::yes(Expr::Column(Column::new(Some(alias.as_str()), column.name))))
        }
        part => Ok(Transformed::no(part)),
    })?;
    let right = LogicalPlanBuilder::from(subquery).alias(alias.as_str())?.build()?;
    let joined = LogicalPlanBuilder::from(input).join_on(right, JoinType::LeftMark, Some(filter.data))?.build()?;
    let mark = Expr::Column(joined.schema().qualified_field(joined.schema().fields().len() - 1).into());
    Ok((joined, mark))
}

fn rewritten(plan: LogicalPlan, pulled: &mut impl TreeNodeRewriter<Node = LogicalPlan>) -> BindResult<LogicalPlan> {
    Ok(plan.rewrite(pulled)?.data)
}
