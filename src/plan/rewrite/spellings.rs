//! Clauses with two spellings, of which the binding library knows one.

use sqlparser::ast::{Expr, Fetch, GroupByExpr, LimitClause, Query};

/// Lists in a `CUBE`: it makes a set of each choice of them.
const CUBE_LISTS: usize = 12;

/// `FETCH FIRST n ROWS ONLY` is another way to write `LIMIT n`.
pub(super) fn fetch_as_limit(query: &mut Query) {
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

/// `ROLLUP` and `CUBE` over lists of columns, spelled out as sets.
pub(super) fn spell_out_sets(group: &mut GroupByExpr) {
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
