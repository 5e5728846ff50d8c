//! Joins that the parser takes and Flink's dialect does not have.

use std::ops::ControlFlow;

use sqlparser::ast::{
    Join, JoinConstraint, JoinOperator, Query, Select, Spanned, TableFactor, TableWithJoins, Visit, Visitor,
};

use crate::error::{Error, Result, Span};

/// # Errors
/// If a join is written in a way that the parser takes and Flink's dialect does not have.
pub(super) fn check_joins(query: &Query) -> Result<()> {
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
