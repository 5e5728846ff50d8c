//! `ALTER TABLE` and `ALTER VIEW`: a declaration in the catalog is exchanged for another.

use std::sync::Arc;

use sqlparser::ast::{ObjectName, Spanned};

use super::handle::State;
use crate::catalog::{QualifiedName, Relation, ViewDefinition};
use crate::connectors;
use crate::error::{Error, Result, Span};
use crate::functions::FunctionSet;
use crate::plan::{self, name_parts, qualify};
use crate::sql::{AlterTable, OptionEntry, TableChange, ViewChange};

pub(super) fn alter_table(state: &mut State, functions: &Arc<FunctionSet>, alter: &AlterTable) -> Result<&'static str> {
    let Some((name, relation)) = find(state, &alter.name, alter.if_exists)? else { return Ok("No such table") };
    let Relation::Table(table) = relation else { return Err(wrong_kind(&name, "view", "ALTER VIEW", &alter.name)) };
    if let TableChange::Rename(to) = &alter.change {
        let to = new_name(state, &name, to)?;
        let mut renamed = table.as_ref().clone();
        renamed.name.clone_from(&to);
        rename(state, &alter.name, &name, &to, Relation::Table(Arc::new(renamed)))?;
        if let Some(own) = state.program_tables.remove(&name.object) {
            state.program_tables.insert(to, own);
        }
        return Ok("Table renamed");
    }
    let definition = plan::alter_table(&table, alter, &state.catalog, functions)?;
    // Other changes leave the options as they were.
    let entries: &[OptionEntry] = match &alter.change {
        TableChange::Set(entries) => entries,
        _ => &[],
    };
    if matches!(alter.change, TableChange::Set(_) | TableChange::Reset(_)) {
        connectors::check_options(&definition).map_err(|error| {
            let place = quoted_entry(entries, error.message());
            error.at(place.or(definition.span))
        })?;
    }
    state.catalog.replace(&name, Relation::Table(Arc::new(definition)))?;
    Ok("Table altered")
}

pub(super) fn alter_view(
    state: &mut State,
    functions: &Arc<FunctionSet>,
    view: &ObjectName,
    if_exists: bool,
    change: &ViewChange,
) -> Result<&'static str> {
    let Some((name, relation)) = find(state, view, if_exists)? else { return Ok("No such view") };
    let Relation::View(present) = relation else { return Err(wrong_kind(&name, "table", "ALTER TABLE", view)) };
    match change {
        ViewChange::Rename(to) => {
            let to = new_name(state, &name, to)?;
            let renamed = ViewDefinition { name: to.clone(), ..present.as_ref().clone() };
            rename(state, view, &name, &to, Relation::View(Arc::new(renamed)))?;
            Ok("View renamed")
        }
        ViewChange::Query(query, text) => {
            // Bound now, so that a mistake shows now; the columns are those of the new query.
            plan::query_columns(query, &state.catalog, functions)?;
            let altered = ViewDefinition {
                query: plan::view_query(query, text, &state.catalog, functions),
                columns: Vec::new(),
                home: state.catalog.current().clone(),
                ..present.as_ref().clone()
            };
            state.catalog.replace(&name, Relation::View(Arc::new(altered)))?;
            Ok("View altered")
        }
    }
}

/// The relation to be altered; `None` if there is none and that is allowed.
fn find(state: &State, name: &ObjectName, if_exists: bool) -> Result<Option<(QualifiedName, Relation)>> {
    let qualified = qualify(&state.catalog, name)?;
    match state.catalog.get(&qualified) {
        Some(relation) => Ok(Some((qualified, relation.clone()))),
        None if if_exists => Ok(None),
        None => Err(state.catalog.not_found(&qualified).at(Span::from_ast(name.span()))),
    }
}

fn wrong_kind(name: &QualifiedName, noun: &str, statement: &str, place: &ObjectName) -> Error {
    Error::sql(format!("'{}' is a {noun}", name.object))
        .at(Span::from_ast(place.span()))
        .hint(format!("use {statement}"))
}

/// The new name in the same database.
fn new_name(state: &State, from: &QualifiedName, to: &ObjectName) -> Result<String> {
    let object = name_parts(to).last().map(ToString::to_string).unwrap_or_default();
    let alone = name_parts(to).len() == 1;
    if !alone && qualify(&state.catalog, to)?.database != from.database {
        return Err(Error::sql("a rename cannot move to another database").at(Span::from_ast(to.span())));
    }
    Ok(object)
}

fn rename(state: &mut State, place: &ObjectName, from: &QualifiedName, to: &str, renamed: Relation) -> Result<()> {
    state.catalog.rename(from, to, renamed).map_err(|error| error.at(Span::from_ast(place.span())))
}

/// The place of the option that an error quotes.
pub(super) fn quoted_entry(entries: &[OptionEntry], message: &str) -> Option<Span> {
    let quoted: Vec<&str> = message.split('\'').skip(1).step_by(2).collect();
    let key = |entry: &&OptionEntry| quoted.iter().any(|name| is_option(&entry.key, name));
    let value = |entry: &&OptionEntry| quoted.contains(&entry.value.as_str());
    let entry = entries.iter().find(key).or_else(|| entries.iter().find(value));
    entry.and_then(|entry| entry.span)
}

/// Whether `key` is the option called `name`: formats call theirs without the format's name in front.
fn is_option(key: &str, name: &str) -> bool {
    key == name || key.strip_suffix(name).is_some_and(|format| format.ends_with('.'))
}
