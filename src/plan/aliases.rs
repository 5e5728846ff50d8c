//! Names in `GROUP BY`, `HAVING` and subqueries, where the binding library reads more into them than Flink does.
//!
//! | the library | Flink, and so here |
//! |---|---|
//! | `GROUP BY a`: the column `a` of FROM, or else the SELECT's own `AS a` | the column; an error without one |
//! | `HAVING a > 1`: the SELECT's own `AS a` | the column; an error without one |
//! | a name that two tables of a subquery have, and one outside | ambiguous; the library takes the outer one |
//!
//! Which columns there are is asked by binding the `FROM` alone, and only where it matters.

use std::ops::ControlFlow;

use datafusion_common::{DFSchemaRef, TableReference};
use sqlparser::ast::{
    Cte, Expr, GroupByExpr, Ident, Query, Select, SelectItem, SetExpr, Visit, VisitMut, Visitor, VisitorMut,
    WildcardAdditionalOptions, With,
};

use super::strict::beyond_flink;
use crate::error::{Error, Result, Span};
use crate::sql;

/// Sees to the names of every `SELECT` in the query. `columns` binds a query and gives its columns, if it can be bound.
///
/// # Errors
/// If a name stands for a column of the SELECT list where Flink does not look there and the session keeps to Flink, or
/// for several columns of a subquery.
pub(super) fn settle(
    query: &mut Query,
    extensions: bool,
    columns: &dyn Fn(Query) -> Option<DFSchemaRef>,
) -> Result<()> {
    match VisitMut::visit(query, &mut Settle { extensions, columns, with: Vec::new(), inside: 0 }) {
        ControlFlow::Continue(()) => Ok(()),
        ControlFlow::Break(error) => Err(error),
    }
}

struct Settle<'a> {
    extensions: bool,
    columns: &'a dyn Fn(Query) -> Option<DFSchemaRef>,
    /// The `WITH` of each query around, outermost first.
    with: Vec<Option<With>>,
    /// The expressions around that hold subqueries.
    inside: usize,
}

impl VisitorMut for Settle<'_> {
    type Break = Error;

    fn pre_visit_query(&mut self, query: &mut Query) -> ControlFlow<Error> {
        self.with.push(query.with.clone());
        ControlFlow::Continue(())
    }

    fn post_visit_query(&mut self, _: &mut Query) -> ControlFlow<Error> {
        self.with.pop();
        ControlFlow::Continue(())
    }

    fn pre_visit_expr(&mut self, expression: &mut Expr) -> ControlFlow<Error> {
        self.inside += usize::from(holds_subquery(expression));
        ControlFlow::Continue(())
    }

    fn post_visit_expr(&mut self, expression: &mut Expr) -> ControlFlow<Error> {
        self.inside -= usize::from(holds_subquery(expression));
        ControlFlow::Continue(())
    }

    fn pre_visit_select(&mut self, select: &mut Select) -> ControlFlow<Error> {
        match self.select(select) {
            Ok(()) => ControlFlow::Continue(()),
            Err(error) => ControlFlow::Break(error),
        }
    }
}

impl Settle<'_> {
    fn select(&self, select: &mut Select) -> Result<()> {
        let aliases: Vec<&Ident> = select.projection.iter().filter_map(alias).collect();
        let mut named = names_in(&select.having);
        if let GroupByExpr::Expressions(groups, _) = &select.group_by {
            named.extend(groups.iter().flat_map(names_in));
        }
        named.retain(|name| aliases.iter().any(|alias| alias.value == name.value));
        let joined = select.from.len() + select.from.iter().map(|from| from.joins.len()).sum::<usize>() > 1;
        if select.from.is_empty() || named.is_empty() && !(joined && self.inside > 0) {
            return Ok(());
        }
        let Some(schema) = self.columns_of(select) else { return Ok(()) };
        let fields = |name: &str| schema.qualified_fields_with_unqualified_name(name);
        for name in &named {
            if !self.extensions && fields(&name.value).is_empty() {
                let what = format!("'{}' is a name of the SELECT list and no column of FROM", name.value);
                let error = beyond_flink(&what).more(", or write the expression again");
                return Err(error.at(Span::from_ast(name.span)));
            }
        }
        if joined && self.inside > 0 {
            let several = |name: &Ident| fields(&name.value).len() > 1;
            if let Some(name) = names_of(select).into_iter().find(several) {
                return Err(Error::sql(format!("column '{}' is ambiguous", name.value))
                    .at(Span::from_ast(name.span))
                    .hint("put the table's name before it"));
            }
        }
        if let Some(having) = &mut select.having {
            let table = |name: &str| match fields(name).as_slice() {
                [(Some(table), _)] => Some((*table).clone()),
                _ => None,
            };
            let named: Vec<(Ident, TableReference)> =
                named.into_iter().filter_map(|name| table(&name.value).map(|table| (name, table))).collect();
            qualify(having, &named);
        }
        Ok(())
    }

    /// The columns of the SELECT's `FROM`.
    fn columns_of(&self, select: &Select) -> Option<DFSchemaRef> {
        let mut query = *sql::parse_query("SELECT 1").ok()?;
        let SetExpr::Select(all) = query.body.as_mut() else { return None };
        all.projection = vec![SelectItem::Wildcard(WildcardAdditionalOptions::default())];
        all.from = select.from.clone();
        let tables: Vec<Cte> = self.with.iter().flatten().flat_map(|with| with.cte_tables.clone()).collect();
        let with = self.with.iter().flatten().next_back();
        query.with = with.map(|with| With { cte_tables: tables, ..with.clone() });
        (self.columns)(query)
    }
}

fn holds_subquery(expression: &Expr) -> bool {
    matches!(expression, Expr::Subquery(_) | Expr::Exists { .. } | Expr::InSubquery { .. })
}

/// A name that the SELECT list gives to something else than the column of that name.
fn alias(item: &SelectItem) -> Option<&Ident> {
    match item {
        SelectItem::ExprWithAlias { expr: Expr::Identifier(column), alias } if column.value == alias.value => None,
        SelectItem::ExprWithAlias { alias, .. } => Some(alias),
        _ => None,
    }
}

/// The names without a table that stand in the tree itself, not in its subqueries.
fn names_in(tree: &impl Visit) -> Vec<Ident> {
    struct Names {
        found: Vec<Ident>,
        deep: usize,
    }
    impl Visitor for Names {
        type Break = ();

        fn pre_visit_query(&mut self, _: &Query) -> ControlFlow<()> {
            self.deep += 1;
            ControlFlow::Continue(())
        }

        fn post_visit_query(&mut self, _: &Query) -> ControlFlow<()> {
            self.deep -= 1;
            ControlFlow::Continue(())
        }

        fn pre_visit_expr(&mut self, expression: &Expr) -> ControlFlow<()> {
            if let (Expr::Identifier(name), 0) = (expression, self.deep) {
                self.found.push(name.clone());
            }
            ControlFlow::Continue(())
        }
    }
    let mut names = Names { found: Vec::new(), deep: 0 };
    // Looking never stops early.
    let _ = tree.visit(&mut names);
    names.found
}

/// The names without a table in the parts of a SELECT that look into its `FROM`.
fn names_of(select: &Select) -> Vec<Ident> {
    let mut names: Vec<Ident> = select.projection.iter().flat_map(names_in).collect();
    names.extend(names_in(&select.selection));
    names.extend(names_in(&select.having));
    if let GroupByExpr::Expressions(groups, _) = &select.group_by {
        names.extend(groups.iter().flat_map(names_in));
    }
    names
}

/// Puts the tables before the names.
fn qualify(having: &mut Expr, named: &[(Ident, TableReference)]) {
    struct Qualify<'a> {
        named: &'a [(Ident, TableReference)],
        deep: usize,
    }
    impl VisitorMut for Qualify<'_> {
        type Break = ();

        fn pre_visit_query(&mut self, _: &mut Query) -> ControlFlow<()> {
            self.deep += 1;
            ControlFlow::Continue(())
        }

        fn post_visit_query(&mut self, _: &mut Query) -> ControlFlow<()> {
            self.deep -= 1;
            ControlFlow::Continue(())
        }

        fn post_visit_expr(&mut self, expression: &mut Expr) -> ControlFlow<()> {
            if let (Expr::Identifier(name), 0) = (&*expression, self.deep)
                && let Some((_, table)) = self.named.iter().find(|(other, _)| other.value == name.value)
            {
                let parts = table.to_vec().into_iter().map(|part| Ident { value: part, ..name.clone() });
                *expression = Expr::CompoundIdentifier(parts.chain([name.clone()]).collect());
            }
            ControlFlow::Continue(())
        }
    }
    // Writing never stops early.
    let _ = VisitMut::visit(having, &mut Qualify { named, deep: 0 });
}
