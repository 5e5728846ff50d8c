//! Several columns that there are not, told at once, and where each is written.
//!
//! The binding library stops at the first. That one is taken for NULL and the rest bound again, as long as what is wrong
//! then is another column that there is not.

use std::ops::ControlFlow;

use datafusion_common::{Column, DataFusionError};
use sqlparser::ast::{Expr, Ident, Query, Spanned, Value, visit_expressions_mut};

use super::error::{missing_column, unwrap};
use crate::error::{Error, Span};

/// Errors that are told beside the first.
const OTHERS: usize = 4;

/// The error of a query, and with it what else is wrong in the same way; `bind` gives the error of a query, if it has one.
pub(super) fn all(first: DataFusionError, mut query: Query, bind: &dyn Fn(&Query) -> Option<DataFusionError>) -> Error {
    let mut found = Vec::new();
    let mut next = Some(first);
    while let Some(error) = next.take() {
        let column = missing_column(&error);
        if column.is_none() && !found.is_empty() {
            // It may be wrong only because NULL stands in it.
            break;
        }
        let error = unwrap(error);
        let place = column.and_then(|column| take_for_null(&mut query, &column, error.span()));
        next = place.filter(|_| found.len() < OTHERS).and_then(|_| bind(&query));
        found.push(error.at(place));
    }
    let mut found = found.into_iter();
    match found.next() {
        Some(first) => first.beside(found.collect()),
        None => Error::bug("a query failed without an error"),
    }
}

/// Puts NULL in the place of the column's name: at `place`, or where it is first written.
fn take_for_null(query: &mut Query, column: &Column, place: Option<Span>) -> Option<Span> {
    let is_column = |names: &[Ident]| {
        let table = column.relation.as_ref().map(|relation| relation.table());
        let named = names.last().is_some_and(|name| name.value == column.name);
        let of = names.len().checked_sub(2).map(|table| names[table].value.as_str());
        named && (table == of || table.is_none())
    };
    let found = visit_expressions_mut(query, |expression| {
        let named = match &*expression {
            Expr::Identifier(name) => is_column(std::slice::from_ref(name)),
            Expr::CompoundIdentifier(names) => is_column(names),
            _ => false,
        };
        let at = Span::from_ast(expression.span());
        if named && (place.is_none() || at == place) {
            *expression = Expr::Value(Value::Null.with_span(expression.span()));
            return ControlFlow::Break(at);
        }
        ControlFlow::Continue(())
    });
    match found {
        ControlFlow::Break(at) => at,
        ControlFlow::Continue(()) => None,
    }
}
