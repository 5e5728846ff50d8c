//! Comparisons with all rows of a subquery, as `EXISTS`.
//!
//! | written | becomes |
//! |---|---|
//! | `x = ANY (q)`, `x <> ALL (q)` | `x IN (q)`, `x NOT IN (q)` |
//! | a condition `(a, b) IN (q)` | `EXISTS (SELECT 1 FROM (q) AS m (c, d) WHERE a = c AND b = d)` |
//! | a condition `(a, b) NOT IN (q)` | `NOT EXISTS (… WHERE (a = c AND b = d) IS NOT FALSE)` |
//! | a condition `x > ANY (q)` | `EXISTS (… WHERE x > c)` |
//! | a condition `x > ALL (q)` | `NOT EXISTS (… WHERE (x > c) IS NOT TRUE)` |
//! | any of them as a value | `CASE`, which tells false from unknown |

use sqlparser::ast::helpers::attached_token::AttachedToken;
use sqlparser::ast::{BinaryOperator, CaseWhen, Expr, Ident, Query, SetExpr, TableAlias, TableFactor, UnaryOperator};
use sqlparser::tokenizer::{Token, TokenWithSpan};

use crate::error::{Error, Result};
use crate::sql;

/// The relation that stands for the subquery's rows.
const MEMBERS: &str = "__rows";

/// A comparison with the rows of a subquery.
struct Members {
    /// The comparison with one row, whose columns have names of their own.
    comparison: Expr,
    /// The subquery.
    query: Box<Query>,
    /// How many columns it is read with.
    width: usize,
    /// Whether it must hold for all rows, not for one.
    all: bool,
    /// `NOT IN`.
    negated: bool,
}

/// Rewrites the comparisons in a condition, for which unknown is as good as false.
///
/// # Errors
/// Only by a bug.
pub(super) fn in_condition(condition: &mut Expr) -> Result<()> {
    match condition {
        Expr::Nested(inner) => in_condition(inner),
        Expr::BinaryOp { left, op: BinaryOperator::And | BinaryOperator::Or, right } => {
            in_condition(left)?;
            in_condition(right)
        }
        other => match members(other) {
            Some(found) => {
                *other = found.holds()?;
                Ok(())
            }
            None => Ok(()),
        },
    }
}

/// Rewrites a comparison whose every value counts.
///
/// # Errors
/// Only by a bug.
pub(super) fn as_value(expression: &mut Expr) -> Result<()> {
    if let Some(found) = members(expression) {
        *expression = found.value()?;
    }
    Ok(())
}

/// Takes the comparison out of the expression, if it is one; `= ANY` and `<> ALL` become `IN` in place.
fn members(expression: &mut Expr) -> Option<Members> {
    let (left, operator, right, all) = match expression {
        Expr::InSubquery { expr, subquery, negated } => {
            let Expr::Tuple(parts) = expr.as_mut() else { return None };
            let equal = parts.drain(..).enumerate().map(|(index, part)| compare(part, BinaryOperator::Eq, index));
            let pairs: Vec<Expr> = equal.collect();
            let width = pairs.len();
            let comparison = pairs.into_iter().reduce(|left, right| binary(left, BinaryOperator::And, right))?;
            let query = std::mem::replace(subquery, Box::new(empty()?));
            return Some(Members { comparison, query, width, all: false, negated: *negated });
        }
        Expr::AnyOp { left, compare_op, right, .. } => (left, compare_op, right, false),
        Expr::AllOp { left, compare_op, right } => (left, compare_op, right, true),
        _ => return None,
    };
    let Expr::Subquery(query) = right.as_mut() else { return None };
    let query = std::mem::replace(query, Box::new(empty()?));
    let value = std::mem::replace(left.as_mut(), Expr::Identifier(Ident::new("")));
    match (&*operator, all) {
        (BinaryOperator::Eq, false) | (BinaryOperator::NotEq, true) => {
            *expression = Expr::InSubquery { expr: Box::new(value), subquery: query, negated: all };
            None
        }
        (operator, all) => {
            let comparison = compare(value, operator.clone(), 0);
            Some(Members { comparison, query, width: 1, all, negated: false })
        }
    }
}

impl Members {
    /// Whether it is true.
    fn holds(self) -> Result<Expr> {
        let test = Box::new(Expr::Nested(Box::new(self.comparison.clone())));
        match (self.all, self.negated) {
            (false, false) => self.exists(self.comparison.clone(), false),
            (false, true) => self.exists(Expr::IsNotFalse(test), true),
            (true, _) => self.exists(Expr::IsNotTrue(test), true),
        }
    }

    /// True, false or unknown.
    fn value(self) -> Result<Expr> {
        let test = || Box::new(Expr::Nested(Box::new(self.comparison.clone())));
        // One row that decides, and what it decides; else a row that leaves it open.
        let deciding = if self.all { Expr::IsFalse(test()) } else { self.comparison.clone() };
        let decides = self.exists(deciding, false)?;
        let open = self.exists(Expr::IsUnknown(test()), false)?;
        let answer = |truth: bool| sql::parse_expression(if truth { "TRUE" } else { "FALSE" });
        let no_place = || AttachedToken(TokenWithSpan::wrap(Token::EOF));
        let case = Expr::Case {
            case_token: no_place(),
            end_token: no_place(),
            operand: None,
            conditions: vec![
                CaseWhen { condition: decides, result: answer(!self.all)? },
                CaseWhen { condition: open, result: sql::parse_expression("CAST(NULL AS BOOLEAN)")? },
            ],
            else_result: Some(Box::new(answer(self.all)?)),
        };
        Ok(match self.negated {
            true => Expr::UnaryOp { op: UnaryOperator::Not, expr: Box::new(Expr::Nested(Box::new(case))) },
            false => case,
        })
    }

    /// `[NOT] EXISTS (SELECT 1 FROM (query) AS members WHERE condition)`.
    fn exists(&self, condition: Expr, negated: bool) -> Result<Expr> {
        let columns: Vec<String> = (0..self.width).map(|index| format!("`{}`", column(index))).collect();
        let text = format!("SELECT 1 FROM (SELECT 1) AS `{MEMBERS}` ({})", columns.join(", "));
        let mut subquery = sql::parse_query(&text)?;
        if let SetExpr::Select(select) = subquery.body.as_mut()
            && let Some(TableFactor::Derived { subquery: rows, alias: Some(TableAlias { .. }), .. }) =
                select.from.first_mut().map(|from| &mut from.relation)
        {
            *rows = self.query.clone();
            select.selection = Some(condition);
            return Ok(Expr::Exists { subquery, negated });
        }
        Err(Error::bug("a subquery lost its place"))
    }
}

fn column(index: usize) -> String {
    format!("__value{index}")
}

fn compare(value: Expr, operator: BinaryOperator, index: usize) -> Expr {
    let member = Expr::CompoundIdentifier(vec![Ident::with_quote('`', MEMBERS), Ident::with_quote('`', column(index))]);
    binary(Expr::Nested(Box::new(value)), operator, member)
}

fn binary(left: Expr, op: BinaryOperator, right: Expr) -> Expr {
    Expr::BinaryOp { left: Box::new(left), op, right: Box::new(right) }
}

fn empty() -> Option<Query> {
    sql::parse_query("SELECT 1").ok().map(|query| *query)
}
