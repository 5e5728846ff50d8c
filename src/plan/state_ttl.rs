//! `SELECT /*+ STATE_TTL('a' = '1d', 'b' = '2h') */ …`: how long the state of a table's rows is kept, in place of
//! `table.exec.state.ttl`.
//!
//! The hint is about joins whose input is the table, and about the aggregation of a table. It names a table by the name
//! that the query has for it, and that name must stand for one relation in the whole statement: what the hint is about is
//! found by name once the query has become a plan.

use std::collections::HashMap;
use std::ops::ControlFlow;

use datafusion_common::DFSchema;
use sqlparser::ast::{
    BinaryOperator, Expr, FunctionArg, FunctionArgExpr, FunctionArguments, Query, Select, TableFactor, Value, Visit,
    Visitor,
};

use super::name::name_parts;
use crate::catalog::parse_duration;
use crate::error::{Error, Result, Span};
use crate::sql::parse_expression;

const HINT: &str = "STATE_TTL";

/// Milliseconds by the name of a relation; 0: for ever.
pub(super) type StateTtl = HashMap<String, u64>;

/// What the hints of a query say.
///
/// # Errors
/// If a hint cannot be read, or names no relation of its query, or one of several.
pub(super) fn state_ttl(query: &Query) -> Result<StateTtl> {
    let mut found = Found::default();
    if let ControlFlow::Break(error) = query.visit(&mut found) {
        return Err(error);
    }
    for (name, (_, span)) in &found.hinted {
        let of = found.relations.get(name).copied().unwrap_or_default();
        if of != 1 {
            let what = if of == 0 { "no table of the query" } else { "more than one table of the statement" };
            return Err(Error::sql(format!("'{name}' in {HINT} is the name of {what}"))
                .at(*span)
                .hint("name a table as FROM does: by its alias, if it has one, which must be its own"));
        }
    }
    Ok(found.hinted.into_iter().map(|(name, (ttl, _))| (name, ttl)).collect())
}

/// What a hint says of an input: all of its columns are of one relation, whose name is given.
pub(super) fn of_input(hints: &StateTtl, schema: &DFSchema) -> Option<u64> {
    if hints.is_empty() {
        return None;
    }
    let mut names = schema.iter().map(|(qualifier, _)| qualifier.map(|name| name.table()));
    let first = names.next().flatten()?;
    if names.any(|name| name != Some(first)) {
        return None;
    }
    hints.get(first).copied()
}

#[derive(Default)]
struct Found {
    hinted: HashMap<String, (u64, Option<Span>)>,
    /// How many relations have a name.
    relations: HashMap<String, usize>,
}

impl Visitor for Found {
    type Break = Error;

    fn pre_visit_select(&mut self, select: &Select) -> ControlFlow<Error> {
        let span = Span::from_ast(select.select_token.0.span);
        for hint in &select.optimizer_hints {
            if !hint.prefix.is_empty() || !hint.text.to_ascii_uppercase().contains(HINT) {
                continue;
            }
            match read(&hint.text) {
                Ok(hinted) => self.hinted.extend(hinted.into_iter().map(|(name, ttl)| (name, (ttl, span)))),
                Err(error) => return ControlFlow::Break(error.at(span)),
            }
        }
        ControlFlow::Continue(())
    }

    fn pre_visit_table_factor(&mut self, factor: &TableFactor) -> ControlFlow<Error> {
        let alias = match factor {
            TableFactor::Table { alias, .. }
            | TableFactor::Derived { alias, .. }
            | TableFactor::TableFunction { alias, .. }
            | TableFactor::Function { alias, .. }
            | TableFactor::UNNEST { alias, .. } => alias.as_ref(),
            _ => None,
        };
        let name = match (alias, factor) {
            (Some(alias), _) => Some(alias.name.value.clone()),
            (None, TableFactor::Table { name, .. }) => name_parts(name).last().map(ToString::to_string),
            _ => None,
        };
        if let Some(name) = name {
            *self.relations.entry(name).or_default() += 1;
        }
        ControlFlow::Continue(())
    }
}

/// The `STATE_TTL`s among the hints of a comment.
fn read(text: &str) -> Result<Vec<(String, u64)>> {
    let wrong = || {
        Error::sql(format!("the hint '{}' cannot be read", text.trim()))
            .hint("/*+ STATE_TTL('a' = '1d', 'b' = '2h') */: tables and how long their rows are kept")
    };
    // Several hints are read as the arguments of one call.
    let all = parse_expression(&format!("HINTS({text})")).map_err(|_| wrong())?;
    let mut hinted = Vec::new();
    for hint in arguments(&all).ok_or_else(wrong)? {
        let Expr::Function(call) = hint else { continue };
        if !call.name.to_string().eq_ignore_ascii_case(HINT) {
            continue;
        }
        for entry in arguments(hint).ok_or_else(wrong)? {
            let Expr::BinaryOp { left, op: BinaryOperator::Eq, right } = entry else { return Err(wrong()) };
            let (Some(name), Some(ttl)) = (text_of(left), text_of(right)) else { return Err(wrong()) };
            let ttl = parse_duration(ttl).ok_or_else(|| {
                Error::sql(format!("'{ttl}' is no length of time")).hint("for example '1d', '12 h' or '30 min'")
            })?;
            hinted.push((name.to_string(), u64::try_from(ttl.as_millis()).unwrap_or(u64::MAX)));
        }
    }
    Ok(hinted)
}

fn arguments(call: &Expr) -> Option<Vec<&Expr>> {
    let Expr::Function(call) = call else { return None };
    let FunctionArguments::List(list) = &call.args else { return None };
    let one = |argument| match argument {
        &FunctionArg::Unnamed(FunctionArgExpr::Expr(ref expression)) => Some(expression),
        _ => None,
    };
    list.args.iter().map(one).collect()
}

fn text_of(expression: &Expr) -> Option<&str> {
    match expression {
        Expr::Value(value) => match &value.value {
            Value::SingleQuotedString(text) => Some(text),
            _ => None,
        },
        _ => None,
    }
}
