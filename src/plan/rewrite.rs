//! Small rewrites of the syntax tree before binding: what Flink means, in words the binding library knows.

use std::ops::ControlFlow;

use sqlparser::ast::{
    DateTimeField, Expr, Ident, Interval, Query, Select, SelectItem, SetExpr, Value, ValueWithSpan, VisitMut, VisitorMut,
};

use crate::error::{Error, Result};

/// Names unnamed columns `EXPR$0`, `EXPR$1`, … as Flink does, and spells intervals of several fields in one unit.
pub(super) fn query(query: &Query) -> Result<Query> {
    let mut query = query.clone();
    let mut rewriter = Rewriter { error: None };
    let _ = VisitMut::visit(&mut query, &mut rewriter);
    match rewriter.error {
        Some(error) => Err(error),
        None => Ok(query),
    }
}

/// The same for an expression by itself.
pub(super) fn expression(mut expression: Expr) -> Result<Expr> {
    let mut rewriter = Rewriter { error: None };
    let _ = VisitMut::visit(&mut expression, &mut rewriter);
    match rewriter.error {
        Some(error) => Err(error),
        None => Ok(expression),
    }
}

struct Rewriter {
    error: Option<Error>,
}

impl VisitorMut for Rewriter {
    type Break = ();

    fn pre_visit_query(&mut self, query: &mut Query) -> ControlFlow<()> {
        name_columns(&mut query.body);
        ControlFlow::Continue(())
    }

    fn post_visit_expr(&mut self, expression: &mut Expr) -> ControlFlow<()> {
        let rewritten = match expression {
            Expr::Interval(interval) => in_one_unit(interval),
            _ => Ok(()),
        };
        match rewritten {
            Ok(()) => ControlFlow::Continue(()),
            Err(error) => {
                self.error = Some(error);
                ControlFlow::Break(())
            }
        }
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

/// `INTERVAL '1:30' MINUTE TO SECOND` as `INTERVAL '90' SECOND`; a single field stays, without its precision.
fn in_one_unit(interval: &mut Interval) -> Result<()> {
    let precise = interval.leading_precision.take().is_some() | interval.fractional_seconds_precision.take().is_some();
    let Some(last) = interval.last_field.take() else {
        debug_assert!(!precise || interval.leading_field.is_some(), "a precision belongs to a field");
        return Ok(());
    };
    let text = match interval.value.as_ref() {
        Expr::Value(ValueWithSpan { value: Value::SingleQuotedString(text), .. }) => text.clone(),
        other => return Err(Error::sql(format!("an interval of several fields needs a literal, not '{other}'"))),
    };
    let first = interval.leading_field.clone().unwrap_or(DateTimeField::Second);
    let wrong = || {
        Error::sql(format!("'{text}' is not an interval of {first} TO {last}"))
            .hint("for example INTERVAL '1 02:03:04.5' DAY TO SECOND or INTERVAL '1-6' YEAR TO MONTH")
    };
    let (number, unit) = match rank(&first).zip(rank(&last)) {
        Some((0, 1)) => (months(&text).ok_or_else(wrong)?.to_string(), DateTimeField::Month),
        Some((from @ 2.., to)) if from < to => (seconds(&text, from, to).ok_or_else(wrong)?, DateTimeField::Second),
        _ => return Err(wrong()),
    };
    interval.value = Box::new(Expr::Value(Value::SingleQuotedString(number).into()));
    interval.leading_field = Some(unit);
    Ok(())
}

/// Fields from the coarsest to the finest.
fn rank(field: &DateTimeField) -> Option<usize> {
    Some(match field {
        DateTimeField::Year | DateTimeField::Years => 0,
        DateTimeField::Month | DateTimeField::Months => 1,
        DateTimeField::Day | DateTimeField::Days => 2,
        DateTimeField::Hour | DateTimeField::Hours => 3,
        DateTimeField::Minute | DateTimeField::Minutes => 4,
        DateTimeField::Second | DateTimeField::Seconds => 5,
        _ => return None,
    })
}

fn sign(text: &str) -> (i64, &str) {
    match text.trim().strip_prefix('-') {
        Some(rest) => (-1, rest),
        None => (1, text.trim().trim_start_matches('+')),
    }
}

/// `years-months`.
fn months(text: &str) -> Option<i64> {
    let (sign, text) = sign(text);
    let (years, months) = text.split_once('-')?;
    let (years, months): (i64, i64) = (years.parse().ok()?, months.parse().ok()?);
    (months < 12).then(|| years.checked_mul(12)?.checked_add(months)).flatten().map(|months| sign * months)
}

/// `days hours:minutes:seconds.fraction`, or the part of it from one field to another, as seconds.
fn seconds(text: &str, from: usize, to: usize) -> Option<String> {
    const LENGTH: [i64; 4] = [86_400, 3_600, 60, 1];
    const LIMIT: [i64; 4] = [i64::MAX, 24, 60, 60];
    let (sign, text) = sign(text);
    let (text, fraction) = match text.split_once('.') {
        Some((whole, fraction)) if to == 5 && fraction.bytes().all(|b| b.is_ascii_digit()) => (whole, Some(fraction)),
        Some(_) => return None,
        None => (text, None),
    };
    let parts: Vec<&str> = if from == 2 {
        let (days, rest) = text.split_once(' ')?;
        std::iter::once(days).chain(rest.trim().split(':')).collect()
    } else {
        text.split(':').collect()
    };
    if parts.len() != to - from + 1 {
        return None;
    }
    let mut total: i64 = 0;
    for (index, part) in parts.iter().enumerate() {
        let field = from - 2 + index;
        let value: i64 = part.parse().ok().filter(|value| *value >= 0)?;
        if index > 0 && value >= LIMIT[field] {
            return None;
        }
        total = total.checked_add(value.checked_mul(LENGTH[field])?)?;
    }
    let sign = if sign < 0 { "-" } else { "" };
    Some(match fraction {
        Some(fraction) if !fraction.is_empty() => format!("{sign}{total}.{fraction}"),
        _ => format!("{sign}{total}"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn intervals_of_several_fields_become_one_unit() {
        assert_eq!(seconds("1 02:03:04.5", 2, 5).as_deref(), Some("93784.5"));
        assert_eq!(seconds("1:30", 4, 5).as_deref(), Some("90"));
        assert_eq!(seconds("-1:30", 3, 4).as_deref(), Some("-5400"));
        assert_eq!(seconds("1:61", 4, 5), None);
        assert_eq!(months("1-6"), Some(18));
        assert_eq!(months("1-12"), None);
    }
}
