//! Names that a column list gives twice.

use std::collections::HashSet;

use sqlparser::ast::{Expr, Ident, Query, SelectItem, SetExpr};

/// The first column of the query's list that has the name of one before it.
pub(in crate::plan) fn repeated_column(query: &Query) -> Option<Ident> {
    let SetExpr::Select(select) = query.body.as_ref() else { return None };
    let names: Vec<&Ident> = select.projection.iter().filter_map(own_name).collect();
    let repeated = names.iter().enumerate().find(|(index, name)| names[..*index].iter().any(|n| n.value == name.value));
    repeated.map(|(_, name)| (*name).clone())
}

/// Gives columns of the outermost list that repeat a name another one: `id`, `id0`, `id1`, as Flink does. Further in,
/// such a column could be meant by its name, and is ambiguous.
pub(super) fn rename_repeated(body: &mut SetExpr) {
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
