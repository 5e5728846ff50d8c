//! `JOIN t FOR SYSTEM_TIME AS OF time ON condition`: the time joins the condition, where the left table is in sight.

use sqlparser::ast::{
    BinaryOperator, Expr, Join, JoinConstraint, JoinOperator, Select, Spanned, TableFactor, TableVersion, Value,
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
            for join in &mut table.joins {
                if let Some(time) = self.join_version(join)? {
                    let before = select.selection.take();
                    select.selection = Some(before.map_or(time.clone(), |before| and(before, time)));
                }
            }
        }
        Ok(())
    }

    /// Moves the time into the join's condition; one that must stand in `WHERE`, since `USING` leaves no place for it, is
    /// given back.
    fn join_version(&self, join: &mut Join) -> Result<Option<Expr>> {
        let Some((time, span)) = version(&join.relation) else { return Ok(None) };
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
        match constraint {
            JoinConstraint::On(condition) => {
                let time = self.marker(Form::Call { function: as_of(), span }, vec![time]);
                *constraint = JoinConstraint::On(and(condition.clone(), time));
                Ok(None)
            }
            JoinConstraint::Using(_) => {
                // The table and its time find each other by a number.
                let number = Expr::value(Value::SingleQuotedString(self.0.forms.number().to_string()));
                if let TableFactor::Table { version, .. } = &mut join.relation {
                    *version = Some(TableVersion::ForSystemTimeAsOf(number.clone()));
                }
                Ok(Some(self.marker(Form::Call { function: as_of(), span }, vec![time, number])))
            }
            _ => Err(Error::sql("a temporal join needs a condition").at(span).hint("write JOIN … ON")),
        }
    }
}

fn and(left: Expr, right: Expr) -> Expr {
    Expr::BinaryOp { left: Box::new(Expr::Nested(Box::new(left))), op: BinaryOperator::And, right: Box::new(right) }
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
