//! `ALTER TABLE`: one definition to the next, which is checked like a new one.

use std::sync::Arc;

use sqlparser::ast::{Ident, Spanned};

use super::declare::column;
use super::provider::Names;
use super::settle::{Declared, known, settle};
use crate::catalog::{Catalog, TableDefinition, WatermarkDefinition};
use crate::error::{Error, Result, Span};
use crate::functions::FunctionSet;
use crate::sql::{AlterTable, ColumnPlace, TableChange, TableElements, quoted_text};

/// The definition after the change. Renaming the table itself is the catalog's business.
///
/// # Errors
/// If the change adds what is there or touches what is not, or the definition does not hold together afterwards.
pub fn alter_table(
    table: &TableDefinition,
    alter: &AlterTable,
    catalog: &Catalog,
    functions: &Arc<FunctionSet>,
) -> Result<TableDefinition> {
    let mut definition = table.clone();
    let mut declared = Declared::default();
    definition.span = Span::from_ast(alter.name.span());
    match &alter.change {
        TableChange::Add(elements) => {
            add(elements, &mut definition)?;
            declared = Declared::of_elements(elements);
        }
        TableChange::Modify(elements) => {
            modify(elements, &mut definition)?;
            declared = Declared::of_elements(elements);
        }
        TableChange::DropColumns(columns) => drop_columns(columns, &mut definition)?,
        TableChange::DropPrimaryKey(name) => drop_primary_key(name.as_ref(), &mut definition)?,
        TableChange::DropWatermark => {
            if definition.watermark.take().is_none() {
                return Err(missing(&definition, "watermark"));
            }
        }
        TableChange::RenameColumn(from, to) => rename_column(from, to, &mut definition)?,
        TableChange::Set(entries) => {
            let entries = entries.iter().map(|entry| (entry.key.clone(), entry.value.clone()));
            definition.options.0.extend(entries);
        }
        TableChange::Reset(keys) => {
            if keys.iter().any(|key| key == "connector") {
                return Err(Error::sql("the option 'connector' cannot be reset")
                    .at(definition.span)
                    .hint("SET another one, or DROP the table"));
            }
            definition.options.0.retain(|key, _| !keys.contains(key));
        }
        TableChange::Rename(_) => {}
    }
    settle(&Names::new(catalog, Arc::clone(functions)), &declared, &mut definition)?;
    Ok(definition)
}

fn missing(definition: &TableDefinition, what: &str) -> Error {
    Error::sql(format!("table '{}' has no {what}", definition.name)).at(definition.span)
}

fn present(definition: &TableDefinition, what: &str) -> Error {
    Error::sql(format!("table '{}' has a {what} already", definition.name)).at(definition.span).hint("use MODIFY")
}

fn add(elements: &TableElements, definition: &mut TableDefinition) -> Result<()> {
    for (declared, place) in &elements.columns {
        let span = Span::from_ast(declared.name.span);
        if definition.column(&declared.name.value).is_some() {
            let message = format!("table '{}' has a column '{}' already", definition.name, declared.name.value);
            return Err(Error::sql(message).at(span).hint("use MODIFY"));
        }
        let index = place_of(place.as_ref(), definition)?.unwrap_or(definition.columns.len());
        definition.columns.insert(index, column(declared)?);
    }
    if elements.watermark.is_some() && definition.watermark.is_some() {
        return Err(present(definition, "watermark"));
    }
    if !elements.primary_key.is_empty() && !definition.primary_key.is_empty() {
        return Err(present(definition, "primary key"));
    }
    constraints(elements, definition);
    Ok(())
}

fn modify(elements: &TableElements, definition: &mut TableDefinition) -> Result<()> {
    for (declared, place) in &elements.columns {
        let span = Span::from_ast(declared.name.span);
        let index = known(definition, &declared.name.value, span, "MODIFY")?;
        let mut changed = column(declared)?;
        if changed.comment.is_none() {
            changed.comment.clone_from(&definition.columns[index].comment);
        }
        definition.columns[index] = changed;
        if place.is_some() {
            let moved = definition.columns.remove(index);
            let index = place_of(place.as_ref(), definition)?.unwrap_or(index);
            definition.columns.insert(index, moved);
        }
    }
    if elements.watermark.is_some() && definition.watermark.is_none() {
        return Err(missing(definition, "watermark").hint("use ADD"));
    }
    if !elements.primary_key.is_empty() && definition.primary_key.is_empty() {
        return Err(missing(definition, "primary key").hint("use ADD"));
    }
    constraints(elements, definition);
    Ok(())
}

fn constraints(elements: &TableElements, definition: &mut TableDefinition) {
    if let Some(watermark) = &elements.watermark {
        let expression = quoted_text(&watermark.expression);
        definition.watermark = Some(WatermarkDefinition { column: watermark.column.value.clone(), expression });
    }
    if !elements.primary_key.is_empty() {
        definition.primary_key = elements.primary_key.iter().map(|column| column.value.clone()).collect();
        definition.primary_key_name = elements.primary_key_name.as_ref().map(|name| name.value.clone());
    }
}

fn place_of(place: Option<&ColumnPlace>, definition: &TableDefinition) -> Result<Option<usize>> {
    match place {
        None => Ok(None),
        Some(ColumnPlace::First) => Ok(Some(0)),
        Some(ColumnPlace::After(column)) => {
            known(definition, &column.value, Span::from_ast(column.span), "AFTER").map(|index| Some(index + 1))
        }
    }
}

fn drop_columns(columns: &[Ident], definition: &mut TableDefinition) -> Result<()> {
    for column in columns {
        let span = Span::from_ast(column.span);
        let index = known(definition, &column.value, span, "DROP")?;
        let used = if definition.primary_key.contains(&column.value) {
            Some("in the primary key")
        } else if definition.partitioned_by.contains(&column.value) {
            Some("in PARTITIONED BY")
        } else if definition.watermark.as_ref().is_some_and(|watermark| watermark.column == column.value) {
            Some("by the watermark")
        } else {
            None
        };
        if let Some(place) = used {
            return Err(Error::sql(format!("column '{}' is used {place}", column.value)).at(span));
        }
        definition.columns.remove(index);
    }
    if definition.columns.is_empty() {
        return Err(Error::sql("a table needs a column, and this would drop the last one").at(definition.span));
    }
    Ok(())
}

fn drop_primary_key(name: Option<&Ident>, definition: &mut TableDefinition) -> Result<()> {
    if definition.primary_key.is_empty() {
        return Err(missing(definition, "primary key"));
    }
    let present = definition.primary_key_name();
    if let Some(name) = name.filter(|name| name.value != present) {
        return Err(Error::sql(format!("table '{}' has no constraint '{}'", definition.name, name.value))
            .at(Span::from_ast(name.span))
            .hint(format!("its constraint is '{present}'")));
    }
    definition.primary_key.clear();
    definition.primary_key_name = None;
    Ok(())
}

fn rename_column(from: &Ident, to: &Ident, definition: &mut TableDefinition) -> Result<()> {
    let index = known(definition, &from.value, Span::from_ast(from.span), "RENAME")?;
    if definition.column(&to.value).is_some() {
        return Err(Error::sql(format!("table '{}' has a column '{}' already", definition.name, to.value))
            .at(Span::from_ast(to.span)));
    }
    definition.columns[index].name.clone_from(&to.value);
    let used = definition.primary_key.iter_mut().chain(&mut definition.partitioned_by);
    for column in used.filter(|column| **column == from.value) {
        column.clone_from(&to.value);
    }
    Ok(())
}
