//! `CREATE TABLE` and `CREATE VIEW`: declarations to definitions, checked.

use std::collections::HashSet;
use std::sync::Arc;

use arrow::datatypes::{DataType, Schema};
use datafusion_common::{DFSchema, TableReference};
use datafusion_expr::ExprSchemable;
use sqlparser::ast::Spanned;

use super::error::unwrap;
use super::provider::Names;
use crate::catalog::{Catalog, Column, ColumnKind, Options, TableDefinition, ViewDefinition, WatermarkDefinition};
use crate::error::{Error, Result, Span, nearest};
use crate::functions::FunctionSet;
use crate::sql::{quoted_text, CreateTable, CreateView, DeclaredColumn};
use crate::types::SqlType;

/// The definition of a table, with the types of its computed columns.
///
/// # Errors
/// On a column that is declared twice, an unknown column in the key or the watermark, an expression that does not bind,
/// an option given twice.
pub fn table(create: &CreateTable, catalog: &Catalog, functions: &Arc<FunctionSet>) -> Result<TableDefinition> {
    if create.query.is_some() {
        return Err(Error::sql("CREATE TABLE … AS is not supported yet").hint("create the table, then INSERT INTO it"));
    }
    let name = create.name.0.last().map(ToString::to_string).unwrap_or_default();
    let mut definition = TableDefinition {
        name: unquoted(&name),
        columns: Vec::new(),
        watermark: None,
        primary_key: create.primary_key.iter().map(|column| column.value.clone()).collect(),
        partitioned_by: create.partitioned_by.iter().map(|column| column.value.clone()).collect(),
        options: options(create)?,
        comment: create.comment.clone(),
        temporary: create.temporary,
        span: Span::from_ast(create.name.span()),
    };
    columns(create, &mut definition)?;
    let names = Names::new(catalog, Arc::clone(functions));
    computed_types(&names, &mut definition)?;
    watermark(create, &names, &mut definition)?;
    for column in &create.primary_key {
        let found = known(&definition, &column.value, Span::from_ast(column.span), "PRIMARY KEY")?;
        definition.columns[found].nullable = false;
    }
    for column in &create.partitioned_by {
        known(&definition, &column.value, Span::from_ast(column.span), "PARTITIONED BY")?;
    }
    Ok(definition)
}

/// The definition of a view; its query is bound once, so that a mistake shows now.
///
/// # Errors
/// If the query does not bind, or column names are given and are not as many as its columns.
pub fn view(create: &CreateView, catalog: &Catalog, functions: &Arc<FunctionSet>) -> Result<ViewDefinition> {
    let plan = Names::new(catalog, Arc::clone(functions)).bind(&create.query)?;
    if !create.columns.is_empty() && create.columns.len() != plan.schema().fields().len() {
        return Err(Error::sql(format!(
            "the view names {} columns, and its query has {}",
            create.columns.len(),
            plan.schema().fields().len()
        )));
    }
    Ok(ViewDefinition {
        name: create.name.0.last().map(|part| unquoted(&part.to_string())).unwrap_or_default(),
        columns: create.columns.iter().map(|column| column.value.clone()).collect(),
        query: create.query_text.clone(),
        comment: create.comment.clone(),
        temporary: create.temporary,
    })
}

fn unquoted(name: &str) -> String {
    name.trim_matches('`').replace("``", "`")
}

fn options(create: &CreateTable) -> Result<Options> {
    let mut options = Options::default();
    for entry in &create.options {
        if options.0.insert(entry.key.clone(), entry.value.clone()).is_some() {
            return Err(Error::sql(format!("option '{}' is given twice", entry.key)).at(entry.span));
        }
    }
    Ok(options)
}

fn columns(create: &CreateTable, definition: &mut TableDefinition) -> Result<()> {
    let mut seen = HashSet::new();
    for declared in &create.columns {
        let name = declared.name.value.clone();
        if !seen.insert(name.clone()) {
            return Err(Error::sql(format!("column '{name}' is declared twice")).at(Span::from_ast(declared.name.span)));
        }
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
        definition.columns.push(Column { name, sql_type, nullable, kind, comment: declared.comment.clone() });
    }
    Ok(())
}

/// Computed columns see physical and metadata columns, not each other.
fn computed_types(names: &Names<'_>, definition: &mut TableDefinition) -> Result<()> {
    let scan = definition.scan_schema();
    let schema = qualified(definition, &scan)?;
    for index in 0..definition.columns.len() {
        let ColumnKind::Computed { expression } = &definition.columns[index].kind else { continue };
        let bound = names
            .bind_expression(expression, &schema)
            .map_err(|error| error.context(format!("in computed column '{}'", definition.columns[index].name)))?;
        let (_, field) = bound.to_field(&schema).map_err(unwrap)?;
        let column = &mut definition.columns[index];
        column.sql_type = SqlType::of_field(&field);
        column.nullable = field.is_nullable();
    }
    Ok(())
}

fn watermark(create: &CreateTable, names: &Names<'_>, definition: &mut TableDefinition) -> Result<()> {
    let Some(declared) = &create.watermark else { return Ok(()) };
    let span = Span::from_ast(declared.column.span);
    let column = known(definition, &declared.column.value, span, "WATERMARK FOR")?;
    let sql_type = definition.columns[column].sql_type.clone();
    if !matches!(sql_type, SqlType::Timestamp(0..=3) | SqlType::TimestampLtz(0..=3)) {
        return Err(Error::sql(format!(
            "WATERMARK FOR '{}' needs TIMESTAMP(3) or TIMESTAMP_LTZ(3), and it is {sql_type}",
            declared.column.value
        ))
        .at(span)
        .hint("declare the column with that type, or a computed column such as ts AS TO_TIMESTAMP(text)"));
    }
    let expression = quoted_text(&declared.expression);
    let schema = qualified(definition, &definition.schema())?;
    let bound = names.bind_expression(&expression, &schema).map_err(|error| error.context("in WATERMARK"))?;
    let (_, field) = bound.to_field(&schema).map_err(unwrap)?;
    if !matches!(field.data_type(), DataType::Timestamp(..)) {
        return Err(Error::sql(format!("the watermark is {}, not a timestamp", SqlType::of_field(&field)))
            .at(span)
            .hint("for example WATERMARK FOR ts AS ts - INTERVAL '5' SECOND"));
    }
    definition.watermark = Some(WatermarkDefinition { column: declared.column.value.clone(), expression });
    Ok(())
}

fn qualified(definition: &TableDefinition, schema: &Arc<Schema>) -> Result<DFSchema> {
    DFSchema::try_from_qualified_schema(TableReference::bare(definition.name.clone()), schema).map_err(unwrap)
}

fn known(definition: &TableDefinition, name: &str, span: Option<Span>, place: &str) -> Result<usize> {
    definition.columns.iter().position(|column| column.name == name).ok_or_else(|| {
        let error = Error::sql(format!("{place} names column '{name}', which is not declared")).at(span);
        match nearest(name, definition.columns.iter().map(|column| column.name.as_str())) {
            Some(near) => error.hint(format!("did you mean '{near}'?")),
            None => error,
        }
    })
}
