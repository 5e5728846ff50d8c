//! What Flink adds to a query before it is bound, and what it does not take.

use std::ops::ControlFlow;

use sqlparser::ast::{
    Expr, Ident, Join, JoinConstraint, JoinOperator, Query, Select, SelectItem, SetExpr, Spanned, TableFactor,
    TableWithJoins, Visit, VisitMut, Visitor, VisitorMut,
};

use super::using::replace_merged_columns;
use crate::error::{Error, Result, Span};

/// A query as the binding library is to see it.
///
/// # Errors
/// If a join in it is not part of the dialect.
pub(super) fn prepare(query: &Query) -> Result<Query> {
    check_joins(query)?;
    let mut query = name_unnamed_columns(query);
    replace_merged_columns(&mut query)?;
    Ok(query)
}

/// Names unnamed columns `EXPR$0`, `EXPR$1`, … as Flink does.
fn name_unnamed_columns(query: &Query) -> Query {
    let mut query = query.clone();
    // Naming never stops early.
    let _ = VisitMut::visit(&mut query, &mut Namer);
    query
}

/// # Errors
/// If a join is written in a way that the parser takes and Flink's dialect does not have.
fn check_joins(query: &Query) -> Result<()> {
    match Visit::visit(query, &mut JoinChecker) {
        ControlFlow::Continue(()) => Ok(()),
        ControlFlow::Break(error) => Err(error),
    }
}

struct JoinChecker;

impl Visitor for JoinChecker {
    type Break = Error;

    fn pre_visit_select(&mut self, select: &Select) -> ControlFlow<Error> {
        select.from.iter().try_for_each(check_table)
    }

    fn pre_visit_table_factor(&mut self, factor: &TableFactor) -> ControlFlow<Error> {
        match factor {
            TableFactor::NestedJoin { table_with_joins, .. } => check_table(table_with_joins),
            _ => ControlFlow::Continue(()),
        }
    }
}

fn check_table(table: &TableWithJoins) -> ControlFlow<Error> {
    table.joins.iter().try_for_each(check_join)
}

fn check_join(join: &Join) -> ControlFlow<Error> {
    use JoinOperator::*;
    let refuse = |error: Error| ControlFlow::Break(error.at(Span::from_ast(join.relation.span())));
    match &join.join_operator {
        Join(constraint)
        | Inner(constraint)
        | Left(constraint)
        | LeftOuter(constraint)
        | Right(constraint)
        | RightOuter(constraint)
        | FullOuter(constraint) => match constraint {
            JoinConstraint::None => refuse(
                Error::sql(format!("the join with '{}' has no condition", join.relation))
                    .hint("write JOIN … ON condition, JOIN … USING (columns), or CROSS JOIN"),
            ),
            _ => ControlFlow::Continue(()),
        },
        CrossJoin(JoinConstraint::None) => ControlFlow::Continue(()),
        Semi(_) | LeftSemi(_) | RightSemi(_) => {
            refuse(Error::sql("there is no SEMI JOIN in this dialect").hint("write WHERE EXISTS (…) or WHERE … IN (…)"))
        }
        Anti(_) | LeftAnti(_) | RightAnti(_) => {
            refuse(Error::sql("there is no ANTI JOIN in this dialect").hint("write WHERE NOT EXISTS (…)"))
        }
        AsOf { .. } => refuse(Error::sql("ASOF JOIN is not supported yet")),
        _ => refuse(Error::sql("this kind of join is not part of the dialect")),
    }
}

struct Namer;

impl VisitorMut for Namer {
    type Break = ();

    fn pre_visit_query(&mut self, query: &mut Query) -> ControlFlow<()> {
        name_columns(&mut query.body);
        ControlFlow::Continue(())
    }
}

fn name_columns(body: &mut SetExpr) {
    match body {
        SetExpr::Select(select) => name_select(select),
        SetExpr::SetOperation { left, right, .. } => {
            name_columns(left);
            name_columns(right);
        }
        // A nested query is visited by itself.
        _ => {}
    }
}

fn name_select(select: &mut Select) {
    for (position, item) in select.projection.iter_mut().enumerate() {
        if let SelectItem::UnnamedExpr(expression) = item
            && !has_own_name(expression)
        {
            let expression = std::mem::replace(expression, Expr::Identifier(Ident::new("")));
            let alias = Ident::with_quote('`', format!("EXPR${position}"));
            *item = SelectItem::ExprWithAlias { expr: expression, alias };
        }
    }
}

fn has_own_name(expression: &Expr) -> bool {
    match expression {
        Expr::Identifier(_) | Expr::CompoundIdentifier(_) => true,
        Expr::Nested(inner) => has_own_name(inner),
        _ => false,
    }
}
