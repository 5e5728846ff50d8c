//! The text of a view's query with every name in full, as Flink keeps it: `SELECT * FROM orders` becomes
//! ``SELECT `orders`.`id`, … FROM `default_catalog`.`default_database`.`orders` AS `orders` ``. What is added to a table
//! later then does not change the view.
//!
//! This is done for a plain `SELECT` over tables and their joins. Any other query is kept as it was written.

use std::ops::ControlFlow;
use std::sync::Arc;

use sqlparser::ast::{
    Distinct, Expr, GroupByExpr, Ident, Join, JoinConstraint, JoinOperator, ObjectName, Query, Select, SelectItem,
    SelectItemQualifiedWildcardKind, SetExpr, TableFactor, Visit, VisitMut, Visitor, VisitorMut,
};

use super::declare::query_columns;
use super::name::{name_parts, qualify};
use crate::catalog::{Catalog, Relation, quoted};
use crate::functions::FunctionSet;
use crate::sql::parse_query;

/// The text with full names; `None` if the query is not of a shape that is expanded.
pub(super) fn expand(query: &Query, catalog: &Catalog, functions: &Arc<FunctionSet>) -> Option<String> {
    let plain = query.with.is_none()
        && query.order_by.is_none()
        && query.limit_clause.is_none()
        && query.fetch.is_none()
        && Visit::visit(query, &mut Subqueries { depth: 0 }).is_continue();
    let SetExpr::Select(select) = query.body.as_ref() else { return None };
    if !plain || !is_plain(select) {
        return None;
    }
    let mut scope = Scope { tables: Vec::new() };
    let from = scope.from(select, catalog, functions)?;
    let distinct = if select.distinct.is_some() { "DISTINCT " } else { "" };
    let mut text = format!("SELECT {distinct}{}\n{from}", scope.list(&select.projection)?);
    if let Some(condition) = &select.selection {
        text += &format!("\nWHERE {}", scope.expression(condition)?);
    }
    if let GroupByExpr::Expressions(keys, _) = &select.group_by
        && !keys.is_empty()
    {
        let keys: Option<Vec<String>> = keys.iter().map(|key| scope.expression(key)).collect();
        text += &format!("\nGROUP BY {}", keys?.join(", "));
    }
    if let Some(condition) = &select.having {
        text += &format!("\nHAVING {}", scope.expression(condition)?);
    }
    Some(text)
}

/// Whether the query has no clause beyond those that [`expand`] prints.
fn is_plain(select: &Select) -> bool {
    let groups = match &select.group_by {
        GroupByExpr::Expressions(_, modifiers) => modifiers.is_empty(),
        GroupByExpr::All(_) => false,
    };
    groups
        && matches!(select.distinct, None | Some(Distinct::Distinct))
        && select.from.len() == 1
        && select.qualify.is_none()
        && select.named_window.is_empty()
        && select.lateral_views.is_empty()
        && select.optimizer_hints.is_empty()
}

/// Stops at a query within the query.
struct Subqueries {
    depth: usize,
}

impl Visitor for Subqueries {
    type Break = ();

    fn pre_visit_query(&mut self, _query: &Query) -> ControlFlow<()> {
        self.depth += 1;
        if self.depth > 1 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }
}

/// The tables of `FROM`: the name each goes by, and its columns.
struct Scope {
    tables: Vec<(String, Vec<String>)>,
}

impl Scope {
    fn from(&mut self, select: &Select, catalog: &Catalog, functions: &Arc<FunctionSet>) -> Option<String> {
        let from = select.from.first()?;
        let mut text = format!("FROM {}", self.table(&from.relation, catalog, functions)?);
        for Join { relation, join_operator, .. } in &from.joins {
            let (words, constraint) = match join_operator {
                JoinOperator::Join(constraint) | JoinOperator::Inner(constraint) => ("INNER JOIN", constraint),
                JoinOperator::Left(constraint) | JoinOperator::LeftOuter(constraint) => ("LEFT JOIN", constraint),
                JoinOperator::Right(constraint) | JoinOperator::RightOuter(constraint) => ("RIGHT JOIN", constraint),
                JoinOperator::FullOuter(constraint) => ("FULL JOIN", constraint),
                _ => return None,
            };
            let JoinConstraint::On(condition) = constraint else { return None };
            let table = self.table(relation, catalog, functions)?;
            text += &format!("\n{words} {table} ON {}", self.expression(condition)?);
        }
        Some(text)
    }

    fn table(&mut self, factor: &TableFactor, catalog: &Catalog, functions: &Arc<FunctionSet>) -> Option<String> {
        let TableFactor::Table { name, alias, args: None, with_hints, version: None, sample: None, .. } = factor else {
            return None;
        };
        if !with_hints.is_empty() || alias.as_ref().is_some_and(|alias| !alias.columns.is_empty()) {
            return None;
        }
        let full = qualify(catalog, name).ok()?;
        let columns = match catalog.get(&full)? {
            Relation::Table(table) => table.columns.iter().map(|column| column.name.clone()).collect(),
            Relation::View(_) => {
                let all = parse_query(&format!("SELECT * FROM {full}")).ok()?;
                let columns = query_columns(&all, catalog, functions).ok()?;
                columns.into_iter().map(|column| column.name).collect()
            }
        };
        let alias = alias.as_ref().map_or(full.object.clone(), |alias| alias.name.value.clone());
        let text = format!("{full} AS {}", quoted(&alias));
        self.tables.push((alias, columns));
        Some(text)
    }

    fn list(&self, items: &[SelectItem]) -> Option<String> {
        let mut parts = Vec::new();
        let all = |(alias, columns): &(String, Vec<String>)| {
            columns.iter().map(|column| format!("{}.{}", quoted(alias), quoted(column))).collect::<Vec<_>>()
        };
        for item in items {
            match item {
                SelectItem::UnnamedExpr(expression) => parts.push(self.expression(expression)?),
                SelectItem::ExprWithAlias { expr, alias } => {
                    parts.push(format!("{} AS {}", self.expression(expr)?, quoted(&alias.value)));
                }
                SelectItem::Wildcard(_) => parts.extend(self.tables.iter().flat_map(all)),
                SelectItem::QualifiedWildcard(SelectItemQualifiedWildcardKind::ObjectName(name), _) => {
                    let name = name_parts(name);
                    let [alias] = name.as_slice() else { return None };
                    parts.extend(all(self.tables.iter().find(|(table, _)| table == alias)?));
                }
                _ => return None,
            }
        }
        Some(parts.join(", "))
    }

    fn expression(&self, expression: &Expr) -> Option<String> {
        let mut expression = expression.clone();
        match VisitMut::visit(&mut expression, &mut Qualifier { scope: self }) {
            ControlFlow::Continue(()) => Some(expression.to_string()),
            ControlFlow::Break(()) => None,
        }
    }
}

/// Puts the table before every column; stops where it is not sure.
struct Qualifier<'a> {
    scope: &'a Scope,
}

impl VisitorMut for Qualifier<'_> {
    type Break = ();

    fn post_visit_expr(&mut self, expression: &mut Expr) -> ControlFlow<()> {
        match expression {
            Expr::Identifier(name) => {
                let mut having = self.scope.tables.iter().filter(|(_, columns)| columns.contains(&name.value));
                let (Some((alias, _)), None) = (having.next(), having.next()) else { return ControlFlow::Break(()) };
                let column = Ident::with_quote('`', name.value.clone());
                *expression = Expr::CompoundIdentifier(vec![Ident::with_quote('`', alias.clone()), column]);
            }
            Expr::CompoundIdentifier(names) => {
                let [table, column] = names.as_mut_slice() else { return ControlFlow::Break(()) };
                let known =
                    |(alias, columns): &(String, Vec<String>)| *alias == table.value && columns.contains(&column.value);
                if !self.scope.tables.iter().any(known) {
                    return ControlFlow::Break(());
                }
                table.quote_style = Some('`');
                column.quote_style = Some('`');
            }
            Expr::Function(call) => {
                if let [name] = name_parts(&call.name).as_slice() {
                    call.name = ObjectName::from(vec![Ident::new(name.to_uppercase())]);
                }
            }
            _ => {}
        }
        ControlFlow::Continue(())
    }
}
