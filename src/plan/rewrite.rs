//! What Flink adds to a query before it is bound.

use std::collections::HashSet;
use std::ops::ControlFlow;

use sqlparser::ast::{Expr, Ident, Query, Select, SelectItem, SetExpr, VisitMut, VisitorMut};

/// Names unnamed columns `EXPR$0`, `EXPR$1`, … as Flink does.
pub(super) fn name_unnamed_columns(query: &Query) -> Query {
    let mut query = query.clone();
    rename_repeated(&mut query.body);
    // Naming never stops early.
    let _ = VisitMut::visit(&mut query, &mut Namer);
    query
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

/// The first column of the query's list that has the name of one before it.
pub(super) fn repeated_column(query: &Query) -> Option<Ident> {
    let SetExpr::Select(select) = query.body.as_ref() else { return None };
    let names: Vec<&Ident> = select.projection.iter().filter_map(own_name).collect();
    let repeated = names.iter().enumerate().find(|(index, name)| names[..*index].iter().any(|n| n.value == name.value));
    repeated.map(|(_, name)| (*name).clone())
}

/// Gives columns of the outermost list that repeat a name another one: `id`, `id0`, `id1`, as Flink does. Further in,
/// such a column could be meant by its name, and is ambiguous.
fn rename_repeated(body: &mut SetExpr) {
    let SetExpr::Select(select) = body else { return };
    let mut taken: HashSet<String> = HashSet::new();
    for item in &mut select.projection {
        let Some(name) = own_name(item).map(|name| name.value.clone()) else { continue };
        if taken.insert(name.clone()) {
            continue;
        }
        let Some(free) = (0..).map(|number| format!("{name}{number}")).find(|free| taken.insert(free.clone())) else {
            continue;
        };
        let alias = Ident::with_quote('`', free);
        match item {
            SelectItem::UnnamedExpr(expression) => {
                let expr = std::mem::replace(expression, Expr::Identifier(Ident::new("")));
                *item = SelectItem::ExprWithAlias { expr, alias };
            }
            SelectItem::ExprWithAlias { alias: present, .. } => *present = alias,
            _ => {}
        }
    }
}

/// The name of a column in a list, if it has one of its own.
fn own_name(item: &SelectItem) -> Option<&Ident> {
    match item {
        SelectItem::ExprWithAlias { alias, .. } => Some(alias),
        SelectItem::UnnamedExpr(Expr::Identifier(name)) => Some(name),
        SelectItem::UnnamedExpr(Expr::CompoundIdentifier(names)) => names.last(),
        _ => None,
    }
}

fn has_own_name(expression: &Expr) -> bool {
    match expression {
        Expr::Identifier(_) | Expr::CompoundIdentifier(_) => true,
        Expr::Nested(inner) => has_own_name(inner),
        _ => false,
    }
}
