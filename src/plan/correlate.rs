//! Lateral relations that need no second table: each is computed from the row at its left.
//!
//! ```text
//! nest CROSS JOIN UNNEST(tags) AS u(t)          Join(nest, Subquery(Projection(Unnest(outer tags))))
//!                                     becomes   Projection(nest.*, u.t)(Unnest(nest, tags))
//! ```
//!
//! The right side is walked down to where it gets its one row from. There the left side takes that place: what the right
//! side read of it as outer columns are columns of its input now.

use std::sync::Arc;

use datafusion_common::tree_node::{Transformed, TreeNode};
use datafusion_common::{Column, DFSchema, Result as BindResult, TableReference};
use datafusion_expr::expr::Case;
use datafusion_expr::utils::conjunction;
use datafusion_expr::{Expr, Extension, Filter, Join, JoinType, LogicalPlan, Projection, lit};

use super::unnest::UnnestNode;

/// The join as rows computed from the left; `None` if its right side needs more than the row at hand. `typed` gives an
/// expression over a schema its types.
pub(super) fn correlate(
    join: &Join,
    typed: &dyn Fn(Expr, &DFSchema) -> BindResult<Expr>,
) -> BindResult<Option<LogicalPlan>> {
    if !matches!(join.join_type, JoinType::Inner | JoinType::Left) || !is_lateral(&join.right) {
        return Ok(None);
    }
    // As in Flink a subquery that only computes from the row, without UNNEST, is none of these.
    let Some(applied) = apply(&join.left, &join.right)?.filter(|applied| applied.unnests) else { return Ok(None) };
    let (left, right) = (join.left.schema(), join.right.schema());
    let on = join.on.iter().map(|(left, right)| left.clone().eq(right.clone()));
    let condition = on.chain(join.filter.clone()).map(|condition| applied.rewritten(condition, right, left));
    let condition = conjunction(condition.collect::<BindResult<Vec<_>>>()?).filter(|condition| *condition != lit(true));
    let conditions: Vec<Expr> = applied.conditions.iter().cloned().chain(condition).collect();
    let condition = conjunction(conditions).map(|condition| typed(condition, applied.plan.schema())).transpose()?;
    let (plan, columns) = match (join.join_type, condition) {
        (JoinType::Left, condition) => match outer(applied, condition)? {
            Some(padded) => padded,
            None => return Ok(None),
        },
        (_, Some(condition)) => {
            (LogicalPlan::Filter(Filter::try_new(condition, Arc::new(applied.plan))?), applied.columns)
        }
        (_, None) => (applied.plan, applied.columns),
    };
    let shown = right
        .iter()
        .zip(columns)
        .map(|((qualifier, field), column)| column.alias_qualified(qualifier.cloned(), field.name()));
    let all = left.columns().into_iter().map(Expr::Column).chain(shown).collect();
    Ok(Some(LogicalPlan::Projection(Projection::try_new(all, Arc::new(plan))?)))
}

/// Whether the right side of a join sees its left.
fn is_lateral(plan: &LogicalPlan) -> bool {
    match plan {
        LogicalPlan::Subquery(_) => true,
        LogicalPlan::SubqueryAlias(alias) => is_lateral(&alias.input),
        _ => false,
    }
}

/// A relation computed from the rows of another.
struct Applied {
    /// The other's columns first.
    plan: LogicalPlan,
    /// The relation's own columns, over `plan`.
    columns: Vec<Expr>,
    /// What must hold of its rows, over `plan`.
    conditions: Vec<Expr>,
    /// Whether there is an `UNNEST` in it.
    unnests: bool,
}

impl Applied {
    /// `expression` over the relation's columns (`schema`) and over outer ones (`outer`), as one over the plan.
    fn rewritten(&self, expression: Expr, schema: &DFSchema, outer: &DFSchema) -> BindResult<Expr> {
        let replaced = expression.transform(|part| {
            Ok(match &part {
                Expr::Column(column) => match schema.maybe_index_of_column(column) {
                    Some(index) => Transformed::yes(self.columns[index].clone()),
                    None => Transformed::no(part),
                },
                Expr::OuterReferenceColumn(_, column) if outer.has_column(column) => {
                    Transformed::yes(Expr::Column(column.clone()))
                }
                _ => Transformed::no(part),
            })
        })?;
        Ok(replaced.data)
    }
}

/// `right` with the rows of `left` where it had one row without columns.
fn apply(left: &LogicalPlan, right: &LogicalPlan) -> BindResult<Option<Applied>> {
    let outer = left.schema();
    match right {
        LogicalPlan::Subquery(subquery) => apply(left, &subquery.subquery),
        LogicalPlan::SubqueryAlias(alias) => apply(left, &alias.input),
        LogicalPlan::EmptyRelation(empty) if empty.produce_one_row && empty.schema.fields().is_empty() => {
            Ok(Some(Applied { plan: left.clone(), columns: Vec::new(), conditions: Vec::new(), unnests: false }))
        }
        LogicalPlan::Projection(projection) => {
            let Some(below) = apply(left, &projection.input)? else { return Ok(None) };
            let schema = projection.input.schema();
            let rewritten = |expression: &Expr| below.rewritten(unaliased(expression).clone(), schema, outer);
            let columns = projection.expr.iter().map(rewritten).collect::<BindResult<Vec<_>>>()?;
            Ok(Some(Applied { columns, ..below }))
        }
        LogicalPlan::Filter(filter) => {
            let Some(mut below) = apply(left, &filter.input)? else { return Ok(None) };
            below.conditions.push(below.rewritten(filter.predicate.clone(), filter.input.schema(), outer)?);
            Ok(Some(below))
        }
        LogicalPlan::Extension(extension) => {
            let Some(node) = extension.node.as_any().downcast_ref::<UnnestNode>() else { return Ok(None) };
            let Some(below) = apply(left, &node.input)? else { return Ok(None) };
            let collection = below.rewritten(node.collection.clone(), node.input.schema(), outer)?;
            let input = node.input.schema().fields().len();
            // Unlike any other name in the plan below: that has fewer columns.
            let qualifier = TableReference::bare(format!("__unnest_{}", below.plan.schema().fields().len()));
            let node = node.over(below.plan, collection, &qualifier)?;
            let added = node.added.iter().map(|(qualifier, field)| Column::new(qualifier.clone(), field.name()));
            let columns = below.columns.into_iter().take(input).chain(added.map(Expr::Column)).collect();
            let plan = LogicalPlan::Extension(Extension { node: Arc::new(node) });
            Ok(Some(Applied { plan, columns, conditions: below.conditions, unnests: true }))
        }
        _ => Ok(None),
    }
}

fn unaliased(expression: &Expr) -> &Expr {
    match expression {
        Expr::Alias(alias) => unaliased(&alias.expr),
        other => other,
    }
}

/// As the right side of a `LEFT JOIN`: a row to which nothing is joined comes once, with NULL for all that was computed.
/// One `UNNEST` can do that, several cannot: the row that comes once would be opened again.
fn outer(applied: Applied, condition: Option<Expr>) -> BindResult<Option<(LogicalPlan, Vec<Expr>)>> {
    let Applied { plan: LogicalPlan::Extension(extension), columns, .. } = applied else { return Ok(None) };
    let Some(node) = extension.node.as_any().downcast_ref::<UnnestNode>() else { return Ok(None) };
    if is_unnest(&node.input) {
        return Ok(None);
    }
    let is_added = |expression: &Expr| match expression {
        Expr::Column(column) => {
            node.added.iter().any(|(of, field)| *of == column.relation && *field.name() == column.name)
        }
        _ => false,
    };
    if columns.iter().all(is_added) {
        let plan = LogicalPlan::Extension(Extension { node: Arc::new(node.clone().outer(condition)?) });
        return Ok(Some((plan, columns)));
    }
    // What is computed might not be NULL for such a row by itself; that its element has no number tells.
    let node = node.numbered()?;
    let number = node.added.last().map(|(qualifier, field)| Column::new(qualifier.clone(), field.name()));
    let Some(number) = number else { return datafusion_common::internal_err!("an element has no number") };
    let matched = |column: Expr| {
        let when_then_expr = vec![(Box::new(Expr::Column(number.clone()).is_not_null()), Box::new(column))];
        Expr::Case(Case { expr: None, when_then_expr, else_expr: None })
    };
    let plan = LogicalPlan::Extension(Extension { node: Arc::new(node.outer(condition)?) });
    Ok(Some((plan, columns.into_iter().map(matched).collect())))
}

fn is_unnest(plan: &LogicalPlan) -> bool {
    matches!(plan, LogicalPlan::Extension(extension) if extension.node.as_any().is::<UnnestNode>())
}
