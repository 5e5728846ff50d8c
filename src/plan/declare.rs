//! `CREATE TABLE` and `CREATE VIEW`: declarations to definitions.

use std::collections::HashSet;
use std::sync::Arc;

use datafusion_expr::LogicalPlan;
use sqlparser::ast::{Ident, Query, Spanned};

use super::expand::expand;
use super::like::Inherited;
use super::name::name_parts;
use super::provider::Names;
use super::rewrite::{repeated_column, tell_apart};
use super::settle::{Declared, known, settle};
use crate::catalog::{Catalog, Column, ColumnKind, Options, TableDefinition, ViewDefinition, WatermarkDefinition};
use crate::error::{Error, Result, Span, nearest};
use crate::functions::FunctionSet;
use crate::sql::{ColumnDeclaration, CreateTable, CreateView, DeclaredColumn, quoted_text};
use crate::types::SqlType;

/// The definition of a table, with the types of its computed columns. With `AS query`, the query's columns are its own.
///
/// # Errors
/// On a column that is declared twice, an unknown column in the key or the watermark, an expression that does not bind,
/// an option given twice, a part that the table it is `LIKE` has already.
pub fn table(create: &CreateTable, catalog: &Catalog, functions: &Arc<FunctionSet>) -> Result<TableDefinition> {
    let names = Names::new(catalog, Arc::clone(functions));
    let mut definition = TableDefinition {
        name: name_parts(&create.name).last().map(ToString::to_string).unwrap_or_default(),
        columns: Vec::new(),
        watermark: None,
        primary_key: Vec::new(),
        primary_key_name: None,
        partitioned_by: Vec::new(),
        options: Options::default(),
        comment: create.comment.clone(),
        temporary: create.temporary,
        span: Span::from_ast(create.name.span()),
    };
    let inherited = match &create.like {
        Some(like) => Inherited::take(like, catalog, &mut definition)?,
        None => Inherited::default(),
    };
    for declared in &create.columns {
        add_column(declared, &inherited, &mut definition)?;
    }
    if let Some(query) = &create.query {
        add_query_columns(&names.bind(query)?, &create.column_order, &mut definition)?;
    }
    add_constraints(create, &inherited, &mut definition)?;
    add_options(create, &inherited, &mut definition)?;
    settle(&names, &Declared::of_table(create), &mut definition)?;
    Ok(definition)
}

/// The definition of a view; its query is bound once, so that a mistake shows now.
///
/// # Errors
/// If the query does not bind, or column names are given and are not as many as its columns, or one is given twice.
pub fn view(create: &CreateView, catalog: &Catalog, functions: &Arc<FunctionSet>) -> Result<ViewDefinition> {
    // Columns that the view names may have one name in its query.
    let told_apart =
        (!create.columns.is_empty()).then(|| tell_apart(&create.query)).filter(|query| *query != *create.query);
    let query = told_apart.as_ref().unwrap_or(&create.query);
    let columns = query_columns(query, catalog, functions)?;
    let span = Span::from_ast(create.name.span());
    if !create.columns.is_empty() && create.columns.len() != columns.len() {
        return Err(Error::sql(format!(
            "the view names {} columns, and its query has {}",
            create.columns.len(),
            columns.len()
        ))
        .at(span));
    }
    if let (true, Some(repeated)) = (create.columns.is_empty(), repeated_column(&create.query)) {
        return Err(Error::sql(format!("the view would have two columns '{}'", repeated.value))
            .at(Span::from_ast(repeated.span))
            .hint("give one of them another name with AS, or name the view's columns"));
    }
    let mut seen = HashSet::new();
    for column in &create.columns {
        if !seen.insert(&column.value) {
            let span = Span::from_ast(column.span);
            return Err(Error::sql(format!("column '{}' is named twice", column.value)).at(span));
        }
    }
    Ok(ViewDefinition {
        name: name_parts(&create.name).last().map(ToString::to_string).unwrap_or_default(),
        columns: create.columns.iter().map(|column| column.value.clone()).collect(),
        query: match &told_apart {
            Some(query) => view_query(query, &query.to_string(), catalog, functions),
            None => view_query(&create.query, &create.query_text, catalog, functions),
        },
        home: catalog.current().clone(),
        comment: create.comment.clone(),
        temporary: create.temporary,
    })
}

/// The text under which a view keeps its query, which binds.
pub fn view_query(query: &Query, text: &str, catalog: &Catalog, functions: &Arc<FunctionSet>) -> String {
    expand(query, catalog, functions).unwrap_or_else(|| text.to_string())
}

/// The columns that a query gives, as those of a table.
///
/// # Errors
/// If the query does not bind.
pub fn query_columns(query: &Query, catalog: &Catalog, functions: &Arc<FunctionSet>) -> Result<Vec<Column>> {
    let plan = Names::new(catalog, Arc::clone(functions)).bind(query)?;
    Ok(columns_of(&plan).collect())
}

fn columns_of(plan: &LogicalPlan) -> impl Iterator<Item = Column> + '_ {
    plan.schema().fields().iter().map(|field| Column {
        name: field.name().clone(),
        sql_type: SqlType::of_field(field),
        nullable: field.is_nullable(),
        kind: ColumnKind::Physical,
        comment: None,
    })
}

/// What a declaration says about a column; the type of a computed one is found when the table is settled.
pub(super) fn column(declared: &ColumnDeclaration) -> Result<Column> {
    let name = declared.name.value.clone();
    let (sql_type, nullable, kind) = match &declared.kind {
        DeclaredColumn::Physical { sql_type, nullable } => (sql_type.clone(), *nullable, ColumnKind::Physical),
        DeclaredColumn::Metadata { sql_type, nullable, key, is_virtual } => {
            let key = key.clone().unwrap_or_else(|| name.clone());
            (sql_type.clone(), *nullable, ColumnKind::Metadata { key, is_virtual: *is_virtual })
        }
        DeclaredColumn::Computed { expression } => {
            (SqlType::Null, true, ColumnKind::Computed { expression: quoted_text(expression) })
        }
    };
    if matches!(sql_type, SqlType::IntervalDayTime | SqlType::IntervalYearMonth) {
        return Err(Error::sql(format!("column '{name}': no connector can store a {sql_type}"))
            .at(Span::from_ast(declared.name.span))
            .hint("store it as a BIGINT of milliseconds or months"));
    }
    Ok(Column { name, sql_type, nullable, kind, comment: declared.comment.clone() })
}

fn add_column(declared: &ColumnDeclaration, inherited: &Inherited, definition: &mut TableDefinition) -> Result<()> {
    let span = Span::from_ast(declared.name.span);
    let column = column(declared)?;
    match definition.columns.iter().position(|present| present.name == column.name) {
        None => definition.columns.push(column),
        Some(index) => {
            let present = &definition.columns[index];
            if !inherited.replaces(index, present, &column).map_err(|error| error.at(span))? {
                return Err(Error::sql(format!("column '{}' is declared twice", column.name)).at(span));
            }
            definition.columns[index] = column;
        }
    }
    Ok(())
}

/// Adds the columns of `AS query` after the declared ones. A physical column that is declared too keeps its declaration,
/// in the query's place. `order`, if not empty, lists all of them.
fn add_query_columns(plan: &LogicalPlan, order: &[Ident], definition: &mut TableDefinition) -> Result<()> {
    if definition.temporary {
        return Err(Error::sql("CREATE TEMPORARY TABLE … AS is not possible")
            .at(definition.span)
            .hint("leave out TEMPORARY, or CREATE the table and then INSERT INTO it"));
    }
    let mut own = std::mem::take(&mut definition.columns);
    let mut from_query = Vec::new();
    for column in columns_of(plan) {
        let declared = own.iter().position(|own| own.name == column.name && own.kind == ColumnKind::Physical);
        from_query.push(match declared {
            Some(index) => own.remove(index),
            None if own.iter().any(|own| own.name == column.name) => {
                return Err(Error::sql(format!("column '{}' is declared and comes from the query too", column.name))
                    .at(definition.span));
            }
            None if column.sql_type == SqlType::Null => {
                return Err(Error::sql(format!("column '{}' of the query is NULL, which has no type", column.name))
                    .at(definition.span)
                    .hint("give it one: CAST(NULL AS INT)"));
            }
            None => column,
        });
    }
    if !order.is_empty() {
        from_query = in_order(from_query, order)?;
    }
    own.append(&mut from_query);
    definition.columns = own;
    Ok(())
}

fn in_order(mut columns: Vec<Column>, order: &[Ident]) -> Result<Vec<Column>> {
    let mut ordered = Vec::with_capacity(columns.len());
    for name in order {
        let span = Span::from_ast(name.span);
        let Some(index) = columns.iter().position(|column| column.name == name.value) else {
            if ordered.iter().any(|column: &Column| column.name == name.value) {
                return Err(Error::sql(format!("column '{}' is named twice", name.value)).at(span));
            }
            let error = Error::sql(format!("the query has no column '{}'", name.value)).at(span);
            return Err(match nearest(&name.value, columns.iter().map(|column| column.name.as_str())) {
                Some(near) => error.hint(format!("did you mean '{near}'?")),
                None => error.hint("names here only order the query's columns; rename them with AS in the query"),
            });
        };
        ordered.push(columns.remove(index));
    }
    match columns.first() {
        None => Ok(ordered),
        Some(left) => Err(Error::sql(format!("column '{}' of the query is not in the list", left.name))
            .at(order.last().and_then(|name| Span::from_ast(name.span)))),
    }
}

fn add_constraints(create: &CreateTable, inherited: &Inherited, definition: &mut TableDefinition) -> Result<()> {
    if let Some(watermark) = &create.watermark {
        inherited.check_watermark().map_err(|error| error.at(Span::from_ast(watermark.column.span)))?;
        definition.watermark = Some(WatermarkDefinition {
            column: watermark.column.value.clone(),
            expression: quoted_text(&watermark.expression),
        });
    }
    if let Some(first) = create.primary_key.first() {
        inherited.check_primary_key().map_err(|error| error.at(Span::from_ast(first.span)))?;
        definition.primary_key = create.primary_key.iter().map(|column| column.value.clone()).collect();
        definition.primary_key_name = create.primary_key_name.as_ref().map(|name| name.value.clone());
    }
    if let Some(first) = create.partitioned_by.first() {
        inherited.check_partitions().map_err(|error| error.at(Span::from_ast(first.span)))?;
        definition.partitioned_by = create.partitioned_by.iter().map(|column| column.value.clone()).collect();
        for column in &create.partitioned_by {
            known(definition, &column.value, Span::from_ast(column.span), "PARTITIONED BY")?;
        }
    }
    Ok(())
}

fn add_options(create: &CreateTable, inherited: &Inherited, definition: &mut TableDefinition) -> Result<()> {
    let mut seen = HashSet::new();
    for entry in &create.options {
        if !seen.insert(entry.key.as_str()) {
            return Err(Error::sql(format!("option '{}' is given twice", entry.key)).at(entry.span));
        }
        inherited.check_option(definition, entry)?;
    }
    let entries = create.options.iter().map(|entry| (entry.key.clone(), entry.value.clone()));
    definition.options.0.extend(entries);
    Ok(())
}
