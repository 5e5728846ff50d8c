//! The merged columns of `JOIN … USING`.
//!
//! The binding library reads such a column from the left table, where it is NULL beside rows that only the right one
//! has; and in a subquery it takes an outer table's column of that name before the merged one. Before binding, the name
//! is replaced by what it stands for:
//!
//! ```text
//! SELECT k, x FROM a FULL JOIN b USING (k)   →   SELECT COALESCE(a.k, b.k) AS k, x FROM a FULL JOIN b USING (k)
//! ```

use std::collections::BTreeMap;
use std::ops::ControlFlow;

use sqlparser::ast::{
    Expr, Function, FunctionArg, FunctionArgExpr, FunctionArgumentList, FunctionArguments, Ident, JoinConstraint,
    JoinOperator, ObjectName, ObjectNamePart, Query, Select, SelectItem, Spanned, TableFactor, TableWithJoins,
    VisitMut, VisitorMut,
};

use crate::error::{Error, Result, Span};

/// What each merged column of a `FROM` stands for, by name.
type Merged = BTreeMap<String, Expr>;

/// Replaces the merged columns of every `SELECT` in the query.
///
/// # Errors
/// If a merged column cannot be told, or `*` asks for it.
pub(super) fn replace_merged_columns(query: &mut Query) -> Result<()> {
    match VisitMut::visit(query, &mut Merger) {
        ControlFlow::Continue(()) => Ok(()),
        ControlFlow::Break(error) => Err(error),
    }
}

struct Merger;

impl VisitorMut for Merger {
    type Break = Error;

    fn pre_visit_select(&mut self, select: &mut Select) -> ControlFlow<Error> {
        match replace_in_select(select) {
            Ok(()) => ControlFlow::Continue(()),
            Err(error) => ControlFlow::Break(error),
        }
    }
}

fn replace_in_select(select: &mut Select) -> Result<()> {
    let mut merged = Merged::new();
    for table in &select.from {
        merged.append(&mut merged_by(table)?);
    }
    let outer = select.from.iter().flat_map(|table| &table.joins).any(keeps_right_rows);
    if merged.is_empty() {
        return Ok(());
    }
    for item in &mut select.projection {
        match item {
            SelectItem::UnnamedExpr(Expr::Identifier(name)) if merged.contains_key(&name.value) => {
                *item = SelectItem::ExprWithAlias { expr: merged[&name.value].clone(), alias: name.clone() };
            }
            SelectItem::Wildcard(_) if outer => {
                return Err(Error::sql("'*' over RIGHT or FULL JOIN with USING is not supported yet")
                    .at(Span::from_ast(item.span()))
                    .hint("name the columns"));
            }
            SelectItem::UnnamedExpr(expression) | SelectItem::ExprWithAlias { expr: expression, .. } => {
                replace(expression, &merged);
            }
            _ => {}
        }
    }
    select.selection.iter_mut().chain(&mut select.having).for_each(|expression| replace(expression, &merged));
    if let sqlparser::ast::GroupByExpr::Expressions(groups, _) = &mut select.group_by {
        groups.iter_mut().for_each(|expression| replace(expression, &merged));
    }
    Ok(())
}

fn replace(expression: &mut Expr, merged: &Merged) {
    // Replacing never stops early.
    let _ = VisitMut::visit(expression, &mut Replacer { merged, depth: 0 });
}

struct Replacer<'a> {
    merged: &'a Merged,
    /// How many subqueries deep: there a name means the subquery's own column first.
    depth: usize,
}

impl VisitorMut for Replacer<'_> {
    type Break = ();

    fn pre_visit_query(&mut self, _: &mut Query) -> ControlFlow<()> {
        self.depth += 1;
        ControlFlow::Continue(())
    }

    fn post_visit_query(&mut self, _: &mut Query) -> ControlFlow<()> {
        self.depth -= 1;
        ControlFlow::Continue(())
    }

    // After the parts: what was put in is not looked at again.
    fn post_visit_expr(&mut self, expression: &mut Expr) -> ControlFlow<()> {
        if self.depth == 0
            && let Expr::Identifier(name) = expression
            && let Some(meaning) = self.merged.get(&name.value)
        {
            *expression = meaning.clone();
        }
        ControlFlow::Continue(())
    }
}

/// Whether rows of the right table come without one of the left.
fn keeps_right_rows(join: &sqlparser::ast::Join) -> bool {
    use JoinOperator::*;
    matches!(join.join_operator, Right(_) | RightOuter(_) | FullOuter(_))
}

/// What merged columns stand for, where that can be told.
fn merged_by(table: &TableWithJoins) -> Result<Merged> {
    use JoinOperator::*;
    let mut merged = Merged::new();
    for (place, join) in table.joins.iter().enumerate() {
        let (constraint, full) = match &join.join_operator {
            Right(constraint) | RightOuter(constraint) => (constraint, false),
            FullOuter(constraint) => (constraint, true),
            Join(JoinConstraint::Using(columns))
            | Inner(JoinConstraint::Using(columns))
            | Left(JoinConstraint::Using(columns))
            | LeftOuter(JoinConstraint::Using(columns)) => {
                let again = columns.iter().any(|column| merged.contains_key(&last_part(column).value));
                if again {
                    let left_only = table.joins[..place].iter().all(|join| !keeps_right_rows(join));
                    match left_only {
                        true => continue,
                        false => return Err(untold(&join.relation, "its column was merged by an outer join before")),
                    }
                }
                if let Some(left) = table_name(&table.relation).filter(|_| place == 0) {
                    for column in columns.iter().map(last_part) {
                        let of_left = Expr::CompoundIdentifier(vec![left.clone(), column.clone()]);
                        merged.insert(column.value.clone(), of_left);
                    }
                }
                continue;
            }
            _ => continue,
        };
        let columns = match constraint {
            JoinConstraint::Using(columns) => columns,
            JoinConstraint::Natural => return Err(untold(&join.relation, "NATURAL does not name the columns")),
            _ => continue,
        };
        let right = table_name(&join.relation).ok_or_else(|| untold(&join.relation, "it has no name"))?;
        for column in columns {
            let column = last_part(column);
            let of_right = Expr::CompoundIdentifier(vec![right.clone(), column.clone()]);
            if !full {
                merged.insert(column.value.clone(), of_right);
                continue;
            }
            let of_left = match (merged.get(&column.value), table_name(&table.relation)) {
                (Some(earlier), _) => earlier.clone(),
                (None, Some(left)) if place == 0 => Expr::CompoundIdentifier(vec![left, column.clone()]),
                _ => return Err(untold(&join.relation, "the tables before it are several")),
            };
            merged.insert(column.value.clone(), coalesce(of_left, of_right));
        }
    }
    Ok(merged)
}

fn untold(relation: &TableFactor, why: &str) -> Error {
    Error::sql(format!("the merged columns of the outer join with '{relation}' cannot be told: {why}"))
        .at(Span::from_ast(relation.span()))
        .hint("write ON, and COALESCE of both columns")
}

fn last_part(name: &ObjectName) -> Ident {
    match name.0.last() {
        Some(ObjectNamePart::Identifier(identifier)) => identifier.clone(),
        _ => Ident::new(name.to_string()),
    }
}

/// What the columns of a table are called by.
fn table_name(factor: &TableFactor) -> Option<Ident> {
    let (alias, name) = match factor {
        TableFactor::Table { name, alias, .. } => (alias, Some(last_part(name))),
        TableFactor::Derived { alias, .. } => (alias, None),
        _ => return None,
    };
    alias.as_ref().map(|alias| alias.name.clone()).or(name)
}

fn coalesce(left: Expr, right: Expr) -> Expr {
    let argument = |expression| FunctionArg::Unnamed(FunctionArgExpr::Expr(expression));
    Expr::Function(Function {
        name: ObjectName(vec![ObjectNamePart::Identifier(Ident::new("COALESCE"))]),
        uses_odbc_syntax: false,
        parameters: FunctionArguments::None,
        args: FunctionArguments::List(FunctionArgumentList {
            duplicate_treatment: None,
            args: vec![argument(left), argument(right)],
            clauses: Vec::new(),
        }),
        filter: None,
        null_treatment: None,
        over: None,
        within_group: Vec::new(),
    })
}
