//! Subqueries in expressions, brought into the forms that the library's rules turn into joins without losing a NULL or
//! a second row.
//!
//! | written | becomes |
//! |---|---|
//! | `x NOT IN (SELECT y …)` | `NOT EXISTS (SELECT … WHERE (x = y) IS NOT FALSE)`: unknown is no reason to keep a row |
//! | `x IN (SELECT y …)` | the same with both sides in the type in which they are compared |
//! | `(SELECT y …)` of perhaps several rows | `(SELECT SINGLE_VALUE(y) …)`, which fails on the second |

use std::sync::Arc;

use datafusion_common::tree_node::{Transformed, TreeNode};
use datafusion_common::{Column, DFSchema, Result as BindResult};
use datafusion_expr::expr::{AggregateFunction, Exists, InSubquery};
use datafusion_expr::expr_rewriter::NamePreserver;
use datafusion_expr::utils::merge_schema;
use datafusion_expr::{BinaryExpr, Expr, LogicalPlan, LogicalPlanBuilder, Operator, Subquery};

use super::error::{span_in, wrap};
use super::expressions::{comparable, field_of, narrow_literal};
use crate::error::Error;
use crate::functions::FunctionSet;

/// The plan with its subqueries in those forms.
pub(super) fn prepare(plan: LogicalPlan, functions: &FunctionSet) -> BindResult<LogicalPlan> {
    plan.transform_up_with_subqueries(|node| {
        let schema = merge_schema(&node.inputs());
        let names = NamePreserver::new(&node);
        node.map_expressions(|expression| {
            let name = names.save(&expression);
            // From the top, so that NOT is seen before what it negates.
            let rewritten = expression.transform_down(|part| rewrite(part, &schema, functions))?;
            Ok(rewritten.update_data(|expression| name.restore(expression)))
        })?
        .map_data(LogicalPlan::recompute_schema)
    })
    .map(|done| done.data)
}

fn rewrite(part: Expr, schema: &DFSchema, functions: &FunctionSet) -> BindResult<Transformed<Expr>> {
    match part {
        Expr::Not(inner) => match *inner {
            Expr::InSubquery(member) => rewrite(Expr::InSubquery(negated(member)), schema, functions),
            other => Ok(Transformed::no(Expr::Not(Box::new(other)))),
        },
        Expr::InSubquery(member) => membership(member, schema).map(Transformed::yes),
        Expr::ScalarSubquery(subquery) => single(subquery, functions).map(Transformed::yes),
        other => Ok(Transformed::no(other)),
    }
}

fn negated(member: InSubquery) -> InSubquery {
    InSubquery { negated: !member.negated, ..member }
}

/// The one column of a subquery.
fn only_column(subquery: &Subquery, what: &str) -> BindResult<Expr> {
    let schema = subquery.subquery.schema();
    match schema.fields().len() {
        1 => Ok(Expr::Column(Column::from(schema.qualified_field(0)))),
        columns => {
            let error = Error::sql(format!("{what} must have one column, and this one has {columns}"));
            Err(wrap(error.hint("name one column in its SELECT")))
        }
    }
}

fn membership(member: InSubquery, schema: &DFSchema) -> BindResult<Expr> {
    let InSubquery { expr, subquery, negated } = member;
    let value = narrow_literal(*expr);
    let column = only_column(&subquery, "the subquery of IN")?;
    let (value_field, column_field) = (field_of(&value, schema)?, field_of(&column, subquery.subquery.schema())?);
    let (value, compared) = comparable(value, &value_field, column.clone(), &column_field, true)?;
    let outer_columns = subquery.outer_ref_columns.clone();
    let builder = LogicalPlanBuilder::from(Arc::unwrap_or_clone(subquery.subquery));
    if !negated {
        if compared == column {
            let subquery = Subquery {
                subquery: Arc::new(builder.build()?),
                outer_ref_columns: outer_columns,
                spans: subquery.spans,
            };
            return Ok(Expr::InSubquery(InSubquery::new(Box::new(value), subquery, false)));
        }
        let plan = builder.project([compared.alias("value")])?.build()?;
        let subquery = Subquery { subquery: Arc::new(plan), outer_ref_columns: outer_columns, spans: subquery.spans };
        return Ok(Expr::InSubquery(InSubquery::new(Box::new(value), subquery, false)));
    }
    let (value, mut references) = as_outer(value, schema)?;
    references.extend(outer_columns);
    let equal = Expr::BinaryExpr(BinaryExpr::new(Box::new(value), Operator::Eq, Box::new(compared)));
    let known = !value_field.is_nullable() && !column_field.is_nullable();
    let condition = if known { equal } else { Expr::IsNotFalse(Box::new(equal)) };
    let plan = builder.filter(condition)?.build()?;
    let subquery = Subquery { subquery: Arc::new(plan), outer_ref_columns: references, spans: subquery.spans };
    Ok(Expr::Exists(Exists { subquery, negated: true }))
}

/// An expression of the outer query as seen from inside the subquery, and the columns it refers to.
fn as_outer(expression: Expr, schema: &DFSchema) -> BindResult<(Expr, Vec<Expr>)> {
    let mut references = Vec::new();
    let outer = expression.transform_up(|part| match part {
        Expr::Column(column) => {
            let (_, field) = schema.qualified_field_from_column(&column)?;
            let reference = Expr::OuterReferenceColumn(Arc::clone(field), column);
            references.push(reference.clone());
            Ok(Transformed::yes(reference))
        }
        other => Ok(Transformed::no(other)),
    })?;
    Ok((outer.data, references))
}

fn single(subquery: Subquery, functions: &FunctionSet) -> BindResult<Expr> {
    let column = only_column(&subquery, "a subquery used as a value")?;
    if subquery.subquery.max_rows().is_some_and(|rows| rows <= 1) {
        return Ok(Expr::ScalarSubquery(subquery));
    }
    let place = span_in(&column);
    let single_value =
        functions.aggregate("single_value").ok_or_else(|| wrap(Error::bug("there is no SINGLE_VALUE").at(place)))?;
    let name = subquery.subquery.schema().field(0).name().clone();
    let value = AggregateFunction::new_udf(single_value, vec![column], false, None, Vec::new(), None);
    let value = Expr::AggregateFunction(value).alias(name);
    let plan = LogicalPlanBuilder::from(Arc::unwrap_or_clone(subquery.subquery));
    let plan = plan.aggregate(Vec::<Expr>::new(), [value])?.build()?;
    Ok(Expr::ScalarSubquery(Subquery { subquery: Arc::new(plan), ..subquery }))
}
