//! The places in a query where a number is not a value: counts of rows, and columns by their position.

use sqlparser::ast::{Expr, GroupByExpr, LimitClause, OrderBy, OrderByKind, Query, Select};

/// Those of a query: `ORDER BY 1`, `LIMIT`, `OFFSET`, `FETCH`.
pub(super) fn of_query(query: &mut Query, visit: &mut dyn FnMut(&mut Expr)) {
    if let Some(OrderBy { kind: OrderByKind::Expressions(keys), .. }) = &mut query.order_by {
        keys.iter_mut().for_each(|key| visit(&mut key.expr));
    }
    match &mut query.limit_clause {
        Some(LimitClause::LimitOffset { limit, offset, .. }) => {
            if let Some(limit) = limit {
                visit(limit);
            }
            if let Some(offset) = offset {
                visit(&mut offset.value);
            }
        }
        Some(LimitClause::OffsetCommaLimit { offset, limit }) => {
            visit(offset);
            visit(limit);
        }
        None => {}
    }
    if let Some(quantity) = query.fetch.as_mut().and_then(|fetch| fetch.quantity.as_mut()) {
        visit(quantity);
    }
}

/// Those of a SELECT: `GROUP BY 1`.
pub(super) fn of_select(select: &mut Select, visit: &mut dyn FnMut(&mut Expr)) {
    if let GroupByExpr::Expressions(keys, _) = &mut select.group_by {
        keys.iter_mut().for_each(visit);
    }
}
