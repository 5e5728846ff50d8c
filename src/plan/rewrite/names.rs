//! The names of columns that have none, or that of another: `EXPR$0`, `EXPR$1`, and `id0` for the second `id`.

use std::collections::HashSet;

use sqlparser::ast::{Expr, Ident, Query, Select, SelectItem, SetExpr};

use super::spellings;
use crate::error::{Error, Result};
use crate::plan::{named_windows, values};
use crate::sql;

/// Names the unnamed columns of every SELECT, as Flink does.
pub(super) fn name_columns(body: &mut SetExpr) {
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
    spellings::spell_out_sets(&mut select.group_by);
    named_windows::resolve(select);
    for (position, item) in select.projection.iter_mut().enumerate() {
        if matches!(item, SelectItem::UnnamedExpr(expression) if own_name(expression).is_none()) {
            rename(item, format!("EXPR${position}"));
        }
    }
}

/// Tells the columns of a result apart: those of a query may have one name, those of a subquery may not.
pub(super) fn tell_apart(body: &mut SetExpr) {
    let select = match body {
        SetExpr::Select(select) => select,
        SetExpr::SetOperation { left, .. } => return tell_apart(left),
        _ => return,
    };
    let mut taken: HashSet<String> = HashSet::with_capacity(select.projection.len());
    for item in &mut select.projection {
        let name = match &*item {
            SelectItem::UnnamedExpr(expression) => own_name(expression),
            SelectItem::ExprWithAlias { alias, .. } => Some(alias.value.clone()),
            // The names behind a * are not known here.
            _ => None,
        };
        if let Some(name) = name
            && !taken.insert(name.clone())
        {
            let name = another(&name, &mut taken);
            rename(item, name);
        }
    }
}

fn rename(item: &mut SelectItem, name: String) {
    let alias = Ident::with_quote('`', name);
    let nothing = SelectItem::UnnamedExpr(Expr::Identifier(Ident::new("")));
    *item = match std::mem::replace(item, nothing) {
        SelectItem::UnnamedExpr(expr) | SelectItem::ExprWithAlias { expr, .. } => {
            SelectItem::ExprWithAlias { expr, alias }
        }
        other => other,
    };
}

/// The name with the first number behind it that makes it a new one.
fn another(name: &str, taken: &mut HashSet<String>) -> String {
    let mut count: usize = 0;
    loop {
        let candidate = format!("{name}{count}");
        if taken.insert(candidate.clone()) {
            return candidate;
        }
        count += 1;
    }
}

fn own_name(expression: &Expr) -> Option<String> {
    match expression {
        Expr::Identifier(name) => Some(name.value.clone()),
        Expr::CompoundIdentifier(names) => names.last().map(|name| name.value.clone()),
        Expr::Nested(inner) => own_name(inner),
        _ => None,
    }
}

/// Names the columns of VALUES, which the binding library calls `column1`, `column2`, ….
///
/// # Errors
/// Only by a bug.
pub(super) fn name_values(body: &mut SetExpr) -> Result<()> {
    match body {
        SetExpr::SetOperation { left, right, .. } => {
            name_values(left)?;
            name_values(right)
        }
        SetExpr::Values(values) => {
            let width = values.rows.first().map_or(0, |row| row.len());
            let columns: Vec<String> =
                (0..width).map(|column| format!("`column{}` AS `EXPR${column}`", column + 1)).collect();
            let named = *sql::parse_query(&format!("SELECT {} FROM (VALUES (1))", columns.join(", ")))?.body;
            let values = std::mem::replace(body, named);
            match (body, values) {
                (SetExpr::Select(select), SetExpr::Values(values)) if !select.from.is_empty() => {
                    select.from[0].relation = values::relation(values);
                    Ok(())
                }
                _ => Err(Error::bug("VALUES lost its place")),
            }
        }
        _ => Ok(()),
    }
}

/// The first column of the query's list that has the name of one before it.
pub(in crate::plan) fn repeated_column(query: &Query) -> Option<Ident> {
    let SetExpr::Select(select) = query.body.as_ref() else { return None };
    let mut seen = HashSet::new();
    let repeated = select.projection.iter().filter_map(name_of).find(|name| !seen.insert(&name.value));
    repeated.cloned()
}

/// The name of a column in a list, if it has one of its own.
fn name_of(item: &SelectItem) -> Option<&Ident> {
    match item {
        SelectItem::ExprWithAlias { alias, .. } => Some(alias),
        SelectItem::UnnamedExpr(Expr::Identifier(name)) => Some(name),
        SelectItem::UnnamedExpr(Expr::CompoundIdentifier(names)) => names.last(),
        _ => None,
    }
}
