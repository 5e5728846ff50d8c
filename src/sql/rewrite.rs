//! Brings every parsed query to one form, nested queries too:
//!
//! - `TUMBLE_START(t, size)` becomes `TUMBLE_START(TUMBLE(t, size))`, so that the inner call equals the one in
//!   `GROUP BY`; likewise `END`, `ROWTIME` and `PROCTIME`, `HOP` and `SESSION`;
//! - `LATERAL TABLE(f(x))` becomes `LATERAL f(x)`;
//! - `UNNEST(a)` becomes the table factor of that name;
//! - the hint `t /*+ OPTIONS('k' = 'v') */` becomes `t WITH (OPTIONS('k' = 'v'))`, to be read with [`table_hints`].

use std::ops::ControlFlow;

use sqlparser::ast::{
    BinaryOperator, Expr, Function, FunctionArg, FunctionArgExpr, FunctionArgumentList, FunctionArguments, Ident,
    ObjectName, Query, SetExpr, Spanned, TableFactor, TableFunctionArgs, Value, VisitMut, VisitorMut,
};

use super::diagnose::span_between;
use super::expression::function;
use crate::error::{Error, Result};

/// Brings a query to its one form.
///
/// # Errors
/// If something in it is no query.
pub(super) fn query(query: &mut Query) -> Result<()> {
    finish(query.visit(&mut Normalize))
}

/// Brings an expression to its one form.
///
/// # Errors
/// If a subquery in it is no query.
pub(super) fn expression(expression: &mut Expr) -> Result<()> {
    finish(expression.visit(&mut Normalize))
}

fn finish(flow: ControlFlow<Error>) -> Result<()> {
    match flow {
        ControlFlow::Continue(()) => Ok(()),
        ControlFlow::Break(error) => Err(error),
    }
}

struct Normalize;

impl VisitorMut for Normalize {
    type Break = Error;

    fn pre_visit_query(&mut self, query: &mut Query) -> ControlFlow<Error> {
        match query.body.as_ref() {
            SetExpr::Insert(_) | SetExpr::Update(_) | SetExpr::Delete(_) | SetExpr::Merge(_) => {
                let span = query.span();
                ControlFlow::Break(
                    Error::sql("a query is expected here, not a statement that changes a table")
                        .at((span.start.line > 0).then(|| span_between(span, span)))
                        .hint("INSERT INTO t WITH … SELECT … has the WITH inside"),
                )
            }
            _ => ControlFlow::Continue(()),
        }
    }

    fn pre_visit_table_factor(&mut self, factor: &mut TableFactor) -> ControlFlow<Error> {
        lateral_table(factor);
        options_hint(factor);
        unnest(factor);
        ControlFlow::Continue(())
    }

    fn post_visit_expr(&mut self, expression: &mut Expr) -> ControlFlow<Error> {
        if let Expr::Function(call) = expression {
            group_window_property(call);
            if counts_nothing(call) {
                let span = call.span();
                return ControlFlow::Break(
                    Error::sql("COUNT takes an argument")
                        .at((span.start.line > 0).then(|| span_between(span, span)))
                        .hint("COUNT(*) counts rows, COUNT(column) those in which it is not NULL"),
                );
            }
        }
        ControlFlow::Continue(())
    }
}

/// Whether the call is `COUNT()`.
fn counts_nothing(call: &Function) -> bool {
    is_named(&call.name, "COUNT") && matches!(&call.args, FunctionArguments::List(list) if list.args.is_empty())
}

/// `TUMBLE_START(args)` becomes `TUMBLE_START(TUMBLE(args))`.
fn group_window_property(call: &mut Function) {
    let Some(name) = simple_name(&call.name) else { return };
    let upper = name.value.to_ascii_uppercase();
    let Some((window, "START" | "END" | "ROWTIME" | "PROCTIME")) = upper.split_once('_') else { return };
    if !matches!(window, "TUMBLE" | "HOP" | "SESSION") {
        return;
    }
    let FunctionArguments::List(FunctionArgumentList { args, .. }) = &mut call.args else { return };
    let wrapped = matches!(&args[..], [FunctionArg::Unnamed(FunctionArgExpr::Expr(Expr::Function(inner)))]
        if simple_name(&inner.name).is_some_and(|name| name.value.eq_ignore_ascii_case(window)));
    if wrapped {
        return;
    }
    let mut inner = function(Ident::with_span(name.span, window), vec![], vec![]);
    if let FunctionArguments::List(list) = &mut inner.args {
        list.args = std::mem::take(args);
    }
    args.push(FunctionArg::Unnamed(FunctionArgExpr::Expr(Expr::Function(inner))));
}

/// `LATERAL TABLE(f(x))` becomes `LATERAL f(x)`.
fn lateral_table(factor: &mut TableFactor) {
    let TableFactor::Function { name, args, .. } = factor else { return };
    if !is_named(name, "TABLE") {
        return;
    }
    if let [FunctionArg::Unnamed(FunctionArgExpr::Expr(Expr::Function(inner)))] = args.as_mut_slice()
        && let FunctionArguments::List(list) = &mut inner.args
    {
        let arguments = std::mem::take(&mut list.args);
        *name = inner.name.clone();
        *args = arguments;
    }
}

/// Moves the hint from the arguments, where `lexer` put it, to the hints.
fn options_hint(factor: &mut TableFactor) {
    let TableFactor::Table { args: table_args @ Some(TableFunctionArgs { .. }), with_hints, .. } = factor else {
        return;
    };
    let only = table_args.as_ref().and_then(|arguments| match arguments.args.as_slice() {
        [FunctionArg::Unnamed(FunctionArgExpr::Expr(hint @ Expr::Function(call)))]
            if is_named(&call.name, "OPTIONS") =>
        {
            Some(hint.clone())
        }
        _ => None,
    });
    if let Some(hint) = only {
        *table_args = None;
        with_hints.push(hint);
    }
}

fn unnest(factor: &mut TableFactor) {
    let (name, arguments, alias, with_ordinality) = match factor {
        TableFactor::Table { name, args: Some(arguments), alias, with_ordinality, .. } => {
            (&*name, &mut arguments.args, alias, *with_ordinality)
        }
        TableFactor::Function { name, args, alias, with_ordinality, .. } => (&*name, args, alias, *with_ordinality),
        _ => return,
    };
    if !is_named(name, "UNNEST") {
        return;
    }
    let array_exprs: Option<Vec<Expr>> = arguments
        .iter()
        .map(|argument| match argument {
            FunctionArg::Unnamed(FunctionArgExpr::Expr(array)) => Some(array.clone()),
            _ => None,
        })
        .collect();
    let Some(array_exprs) = array_exprs else { return };
    let alias = alias.take();
    *factor = TableFactor::UNNEST { alias, array_exprs, with_offset: false, with_offset_alias: None, with_ordinality };
}

/// The options that `OPTIONS` hints on a table give, in order.
///
/// # Errors
/// If a hint is none of `OPTIONS('key' = 'value', …)`.
pub(crate) fn table_hints(hints: &[Expr]) -> Result<Vec<(String, String)>> {
    let mut options = Vec::new();
    for hint in hints {
        let wrong = || {
            let span = hint.span();
            Error::sql("this hint cannot be read")
                .at((span.start.line > 0).then(|| span_between(span, span)))
                .hint("/*+ OPTIONS('key' = 'value') */")
        };
        let Expr::Function(Function { name, args: FunctionArguments::List(list), .. }) = hint else {
            return Err(wrong());
        };
        if !is_named(name, "OPTIONS") {
            return Err(wrong());
        }
        for argument in &list.args {
            let FunctionArg::Unnamed(FunctionArgExpr::Expr(Expr::BinaryOp { left, op: BinaryOperator::Eq, right })) =
                argument
            else {
                return Err(wrong());
            };
            options.push((literal(left).ok_or_else(wrong)?, literal(right).ok_or_else(wrong)?));
        }
    }
    Ok(options)
}

fn literal(expression: &Expr) -> Option<String> {
    match expression {
        Expr::Value(value) => match &value.value {
            Value::SingleQuotedString(text) => Some(text.clone()),
            _ => None,
        },
        _ => None,
    }
}

fn simple_name(name: &ObjectName) -> Option<&Ident> {
    match name.0.as_slice() {
        [only] => only.as_ident().filter(|name| name.quote_style.is_none()),
        _ => None,
    }
}

fn is_named(name: &ObjectName, expected: &str) -> bool {
    simple_name(name).is_some_and(|name| name.value.eq_ignore_ascii_case(expected))
}
