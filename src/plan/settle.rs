//! Checks a table's definition as a whole, and finds the types of its computed columns. Creating and altering a table
//! both end here.

use std::collections::HashSet;
use std::sync::Arc;

use arrow::datatypes::{DataType, Schema};
use datafusion_common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion_common::{DFSchema, TableReference};
use datafusion_expr::{Expr, ExprSchemable};
use sqlparser::ast::{Expr as SqlExpr, Ident};

use super::error::unwrap;
use super::provider::Names;
use crate::catalog::{ColumnKind, TableDefinition};
use crate::error::{Error, Result, Span, nearest};
use crate::sql::{
    ColumnDeclaration, CreateTable, DeclaredColumn, TableElements, WatermarkDeclaration, parse_expression,
};
use crate::types::SqlType;

/// The parts of a definition that stand in the statement at hand, so that errors can point at them.
#[derive(Debug, Default)]
pub(super) struct Declared<'a> {
    columns: Vec<&'a ColumnDeclaration>,
    watermark: Option<&'a WatermarkDeclaration>,
    primary_key: &'a [Ident],
}

impl<'a> Declared<'a> {
    pub(super) fn of_table(create: &'a CreateTable) -> Declared<'a> {
        let columns = create.columns.iter().collect();
        Declared { columns, watermark: create.watermark.as_ref(), primary_key: &create.primary_key }
    }

    pub(super) fn of_elements(elements: &'a TableElements) -> Declared<'a> {
        let columns = elements.columns.iter().map(|(column, _)| column).collect();
        Declared { columns, watermark: elements.watermark.as_ref(), primary_key: &elements.primary_key }
    }

    fn column(&self, name: &str) -> Option<&'a ColumnDeclaration> {
        self.columns.iter().find(|column| column.name.value == name).copied()
    }
}

/// Checks columns, watermark, key and partitions against each other and fills in the types of computed columns.
///
/// # Errors
/// If an expression does not bind, or something names a column that is not there or not fit.
pub(super) fn settle(names: &Names<'_>, declared: &Declared<'_>, definition: &mut TableDefinition) -> Result<()> {
    // The key first: it makes its columns NOT NULL, and so what is computed from them.
    primary_key(declared, definition)?;
    computed_types(names, declared, definition)?;
    watermark(names, declared, definition)?;
    for column in &definition.partitioned_by {
        known(definition, column, definition.span, "PARTITIONED BY")?;
    }
    Ok(())
}

/// Computed columns see physical and metadata columns, not each other.
fn computed_types(names: &Names<'_>, declared: &Declared<'_>, definition: &mut TableDefinition) -> Result<()> {
    let schema = qualified(definition, &definition.scan_schema())?;
    let table_span = definition.span;
    for column in &mut definition.columns {
        let ColumnKind::Computed { expression } = &column.kind else { continue };
        let declaration = declared.column(&column.name);
        let parsed: SqlExpr = match declaration.map(|declaration| &declaration.kind) {
            Some(DeclaredColumn::Computed { expression }) => expression.clone(),
            _ => parse_expression(expression)?,
        };
        let span = declaration.and_then(|declaration| Span::from_ast(declaration.name.span));
        let bound = names.bind_parsed(parsed, &schema).and_then(|bound| refuse_relations(&bound).map(|()| bound));
        let bound = bound.map_err(|error| {
            let error = if declaration.is_some() { error } else { error.elsewhere() };
            error.context(format!("in computed column '{}'", column.name)).at(span.or(table_span))
        })?;
        let (_, field) = bound.to_field(&schema).map_err(unwrap)?;
        column.sql_type = SqlType::of_field(&field);
        column.nullable = field.is_nullable();
    }
    Ok(())
}

/// # Errors
/// If the expression needs more than the row at hand.
fn refuse_relations(expression: &Expr) -> Result<()> {
    let mut found = None;
    let walked = expression.apply(|part| {
        found = match part {
            Expr::ScalarSubquery(_) | Expr::InSubquery(_) | Expr::Exists(_) => Some("a subquery"),
            Expr::WindowFunction(_) => Some("OVER"),
            _ => return Ok(TreeNodeRecursion::Continue),
        };
        Ok(TreeNodeRecursion::Stop)
    });
    walked.map_err(unwrap)?;
    match found {
        None => Ok(()),
        Some(what) => Err(Error::sql(format!("{what} cannot stand here"))
            .hint("it is computed from one row alone; put this into a query or a view")),
    }
}

fn watermark(names: &Names<'_>, declared: &Declared<'_>, definition: &TableDefinition) -> Result<()> {
    let Some(watermark) = &definition.watermark else { return Ok(()) };
    let declared = declared.watermark.filter(|declared| declared.column.value == watermark.column);
    let span = declared.and_then(|declared| Span::from_ast(declared.column.span));
    let index = known(definition, &watermark.column, span, "WATERMARK FOR")?;
    let sql_type = &definition.columns[index].sql_type;
    if !matches!(sql_type, SqlType::Timestamp(0..=3) | SqlType::TimestampLtz(0..=3)) {
        return Err(Error::sql(format!(
            "WATERMARK FOR '{}' needs TIMESTAMP(3) or TIMESTAMP_LTZ(3), and it is {sql_type}",
            watermark.column
        ))
        .at(span)
        .hint("declare the column with that type, or a computed column such as ts AS TO_TIMESTAMP(text)"));
    }
    if let ColumnKind::Computed { expression } = &definition.columns[index].kind
        && matches!(parse_expression(expression)?, SqlExpr::Function(call) if call.name.to_string().eq_ignore_ascii_case("PROCTIME"))
    {
        return Err(Error::sql(format!("WATERMARK FOR '{}': processing time needs no watermark", watermark.column))
            .at(span)
            .hint("leave it out: the clock closes windows of processing time"));
    }
    let parsed = match declared {
        Some(declared) => declared.expression.clone(),
        None => parse_expression(&watermark.expression)?,
    };
    let schema = qualified(definition, &definition.schema())?;
    let bound = names.bind_parsed(parsed, &schema).and_then(|bound| refuse_relations(&bound).map(|()| bound));
    let bound = bound.map_err(|error| {
        let error = if declared.is_some() { error } else { error.elsewhere() };
        error.context("in WATERMARK").at(span.or(definition.span))
    })?;
    let (_, field) = bound.to_field(&schema).map_err(unwrap)?;
    let watermark_type = SqlType::of_field(&field);
    let instants = |sql_type: &SqlType| matches!(sql_type, SqlType::TimestampLtz(_));
    if matches!(field.data_type(), DataType::Timestamp(..)) && instants(&watermark_type) != instants(sql_type) {
        let message = format!("the watermark is {watermark_type}, and the column '{}' is {sql_type}", watermark.column);
        return Err(Error::sql(message)
            .at(span)
            .hint("both are local times, or both instants: do not cast between them"));
    }
    if !matches!(field.data_type(), DataType::Timestamp(..)) {
        return Err(Error::sql(format!("the watermark is {}, not a timestamp", SqlType::of_field(&field)))
            .at(span)
            .hint("for example WATERMARK FOR ts AS ts - INTERVAL '5' SECOND"));
    }
    Ok(())
}

fn primary_key(declared: &Declared<'_>, definition: &mut TableDefinition) -> Result<()> {
    let mut seen = HashSet::new();
    for name in definition.primary_key.clone() {
        let declared = declared.primary_key.iter().rev().find(|column| column.value == name);
        let span = declared.and_then(|column| Span::from_ast(column.span));
        let index = known(definition, &name, span, "PRIMARY KEY")?;
        if definition.columns[index].kind != ColumnKind::Physical {
            return Err(Error::sql(format!("PRIMARY KEY names column '{name}', which is not stored"))
                .at(span)
                .hint("a key is made of physical columns: neither computed nor METADATA"));
        }
        definition.columns[index].nullable = false;
        if !seen.insert(name.clone()) {
            return Err(Error::sql(format!("PRIMARY KEY names column '{name}' twice")).at(span));
        }
    }
    Ok(())
}

fn qualified(definition: &TableDefinition, schema: &Arc<Schema>) -> Result<DFSchema> {
    DFSchema::try_from_qualified_schema(TableReference::bare(definition.name.clone()), schema).map_err(unwrap)
}

/// The index of a column.
///
/// # Errors
/// If there is none of this name, with the nearest one there is.
pub(super) fn known(definition: &TableDefinition, name: &str, span: Option<Span>, place: &str) -> Result<usize> {
    definition.columns.iter().position(|column| column.name == name).ok_or_else(|| {
        let error = Error::sql(format!("{place} names column '{name}', which is not declared")).at(span);
        match nearest(name, definition.columns.iter().map(|column| column.name.as_str())) {
            Some(near) => error.hint(format!("did you mean '{near}'?")),
            None => error,
        }
    })
}
