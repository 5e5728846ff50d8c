//! `JOIN t FOR SYSTEM_TIME AS OF time ON condition`: the time joins the condition, where the left table is in sight.

use sqlparser::ast::{
    BinaryOperator, Expr, Join, JoinConstraint, JoinOperator, Select, Spanned, TableFactor, TableVersion,
};

use super::Rewrite;
use crate::error::{Error, Result, Span};
use crate::plan::forms::Form;
use crate::plan::versions::as_of;

impl Rewrite<'_> {
    /// Moves the time of every versioned table in `FROM` into the condition of its join.
    pub(super) fn join_versions(&self, select: &mut Select) -> Result<()> {
        for table in &mut select.from {
            if let Some((_, span)) = version(&table.relation) {
                return Err(Error::sql("FOR SYSTEM_TIME AS OF stands behind a table that is joined to another")
                    .at(span)
                    .hint("write FROM a JOIN t FOR SYSTEM_TIME AS OF a.time AS t ON a.key = t.key"));
            }
            table.joins.iter_mut().try_for_each(|join| self.join_version(join))?;
        }
        Ok(())
    }

    fn join_version(&self, join: &mut Join) -> Result<()> {
        let Some((time, span)) = version(&join.relation) else { return Ok(()) };
        use JoinOperator::*;
        let constraint = match &mut join.join_operator {
            Join(constraint) | Inner(constraint) | Left(constraint) | LeftOuter(constraint) => constraint,
            Right(_) | RightOuter(_) | FullOuter(_) => {
                return Err(Error::sql("a temporal join is an inner join or a LEFT JOIN: versions alone give no rows")
                    .at(span)
                    .hint("write LEFT JOIN … FOR SYSTEM_TIME AS OF … ON …"));
            }
            _ => return Err(Error::sql("a temporal join needs a condition").at(span).hint("write JOIN … ON")),
        };
        let JoinConstraint::On(condition) = constraint else {
            return Err(Error::sql("a temporal join takes its condition from ON")
                .at(span)
                .hint("write ON a.key = t.key instead of USING"));
        };
        let time = self.marker(Form::Call { function: as_of(), span }, vec![time]);
        let condition = Box::new(Expr::Nested(Box::new(condition.clone())));
        *constraint =
            JoinConstraint::On(Expr::BinaryOp { left: condition, op: BinaryOperator::And, right: Box::new(time) });
        Ok(())
    }
}

/// The time as of which a table is read, and its place.
fn version(relation: &TableFactor) -> Option<(Expr, Option<Span>)> {
    match relation {
        TableFactor::Table { version: Some(TableVersion::ForSystemTimeAsOf(time)), .. } => {
            Some((time.clone(), Span::from_ast(time.span())))
        }
        _ => None,
    }
}
