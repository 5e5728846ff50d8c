//! What Flink adds to a query before it is bound.

use std::ops::ControlFlow;

use sqlparser::ast::{
    Expr, Fetch, GroupByExpr, Ident, LimitClause, Query, Select, SelectItem, SetExpr, VisitMut, VisitorMut,
};

use super::named_windows;

/// Lists in a `CUBE`: it makes a set of each choice of them.
const CUBE_LISTS: usize = 12;

/// Names unnamed columns `EXPR$0`, `EXPR$1`, … as Flink does.
pub(super) fn name_unnamed_columns(query: &Query) -> Query {
    let mut query = query.clone();
    // Naming never stops early.
    let _ = VisitMut::visit(&mut query, &mut Namer);
    query
}

struct Namer;

impl VisitorMut for Namer {
    type Break = ();

    fn pre_visit_query(&mut self, query: &mut Query) -> ControlFlow<()> {
        name_columns(&mut query.body);
        fetch_as_limit(query);
        ControlFlow::Continue(())
    }
}

/// `FETCH FIRST n ROWS ONLY` is another way to write `LIMIT n`.
fn fetch_as_limit(query: &mut Query) {
    let plain = |fetch: &Fetch| !fetch.with_ties && !fetch.percent && fetch.quantity.is_some();
    let Some(fetch) = query.fetch.take_if(|fetch| plain(fetch)) else { return };
    match &mut query.limit_clause {
        Some(LimitClause::LimitOffset { limit, .. }) if limit.is_none() => *limit = fetch.quantity,
        None => {
            let limit_by = Vec::new();
            query.limit_clause = Some(LimitClause::LimitOffset { limit: fetch.quantity, offset: None, limit_by });
        }
        // Both at once: left for the binding to refuse.
        Some(_) => query.fetch = Some(fetch),
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

/// `ROLLUP` and `CUBE` over lists of columns, spelled out as sets.
fn spell_out_sets(group: &mut GroupByExpr) {
    let GroupByExpr::Expressions(expressions, _) = group else { return };
    for expression in expressions {
        let several = |lists: &[Vec<Expr>]| lists.iter().any(|list| list.len() != 1) && lists.len() <= CUBE_LISTS;
        let sets = match expression {
            Expr::Rollup(lists) if several(lists) => (0..=lists.len()).rev().map(|n| lists[..n].concat()).collect(),
            Expr::Cube(lists) if several(lists) => (0..1_usize << lists.len())
                .map(|bits| {
                    let chosen = lists.iter().enumerate().filter(|(index, _)| bits >> index & 1 == 1);
                    chosen.flat_map(|(_, list)| list.iter().cloned()).collect()
                })
                .collect(),
            _ => continue,
        };
        *expression = Expr::GroupingSets(sets);
    }
}

fn name_select(select: &mut Select) {
    spell_out_sets(&mut select.group_by);
    named_windows::resolve(select);
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
