//! Statements about catalogs and databases: `CREATE`, `ALTER`, `DROP`, `USE`, `DESCRIBE`.

use std::collections::BTreeMap;

use sqlparser::ast::{ObjectName, Spanned};

use super::handle::{Outcome, State};
use super::show;
use crate::catalog::Options;
use crate::error::{Error, Result, Span};
use crate::plan::{name_parts, qualify_database};
use crate::sql::OptionEntry;

/// `key = value` of `WITH` or `SET`.
///
/// # Errors
/// If a key is given twice.
fn options(entries: &[OptionEntry]) -> Result<BTreeMap<String, String>> {
    let mut options = BTreeMap::new();
    for entry in entries {
        if options.insert(entry.key.clone(), entry.value.clone()).is_some() {
            return Err(Error::sql(format!("option '{}' is given twice", entry.key)).at(entry.span));
        }
    }
    Ok(options)
}

/// The name of a catalog: one part.
fn catalog_name(name: &ObjectName) -> Result<&str> {
    match name_parts(name).as_slice() {
        [only] => Ok(only),
        _ => Err(Error::sql(format!("'{name}' has too many parts for a catalog")).at(Span::from_ast(name.span()))),
    }
}

pub(super) fn create_database(
    state: &mut State,
    name: &ObjectName,
    if_not_exists: bool,
    comment: Option<String>,
    entries: &[OptionEntry],
) -> Result<Outcome> {
    let qualified = qualify_database(&state.catalog, name)?;
    let created = state.catalog.create_database(&qualified, options(entries)?, comment, if_not_exists);
    let created = created.map_err(|error| error.at(Span::from_ast(name.span())))?;
    Ok(Outcome::Done(if created { "Database created" } else { "Database exists already" }.into()))
}

pub(super) fn alter_database(state: &mut State, name: &ObjectName, entries: &[OptionEntry]) -> Result<Outcome> {
    let qualified = qualify_database(&state.catalog, name)?;
    let altered = state.catalog.alter_database(&qualified, options(entries)?);
    altered.map_err(|error| error.at(Span::from_ast(name.span())))?;
    Ok(Outcome::Done("Database altered".into()))
}

pub(super) fn drop_database(state: &mut State, name: &ObjectName, if_exists: bool, cascade: bool) -> Result<Outcome> {
    let qualified = qualify_database(&state.catalog, name)?;
    let dropped = state.catalog.drop_database(&qualified, if_exists, cascade);
    dropped.map_err(|error| error.at(Span::from_ast(name.span())))?;
    Ok(Outcome::Done("Database dropped".into()))
}

pub(super) fn create_catalog(
    state: &mut State,
    name: &ObjectName,
    if_not_exists: bool,
    comment: Option<String>,
    entries: &[OptionEntry],
) -> Result<Outcome> {
    let place = Span::from_ast(name.span());
    let created = state.catalog.create_catalog(catalog_name(name)?, Options(options(entries)?), comment, if_not_exists);
    let created = created.map_err(|error| error.at(place))?;
    Ok(Outcome::Done(if created { "Catalog created" } else { "Catalog exists already" }.into()))
}

pub(super) fn drop_catalog(state: &mut State, name: &ObjectName, if_exists: bool) -> Result<Outcome> {
    let dropped = state.catalog.drop_catalog(catalog_name(name)?, if_exists);
    dropped.map_err(|error| error.at(Span::from_ast(name.span())))?;
    Ok(Outcome::Done("Catalog dropped".into()))
}

/// `USE name` or `USE CATALOG name`.
pub(super) fn make_current(state: &mut State, catalog: bool, name: &ObjectName) -> Result<Outcome> {
    let place = Span::from_ast(name.span());
    if catalog {
        state.catalog.use_catalog(catalog_name(name)?).map_err(|error| error.at(place))?;
        return Ok(Outcome::Done("Catalog changed".into()));
    }
    let qualified = qualify_database(&state.catalog, name)?;
    state.catalog.use_database(qualified).map_err(|error| error.at(place))?;
    Ok(Outcome::Done("Database changed".into()))
}

/// `DESCRIBE {CATALOG | DATABASE} [EXTENDED] name`.
pub(super) fn describe(state: &State, catalog: bool, name: &ObjectName, extended: bool) -> Result<Outcome> {
    let place = Span::from_ast(name.span());
    let line = |key: &str, value: Option<&str>| vec![Some(key.to_string()), value.map(str::to_string)];
    let mut lines = Vec::new();
    if catalog {
        let name = catalog_name(name)?;
        let described = state.catalog.catalog(name).map_err(|error| error.at(place))?;
        lines.push(line("name", Some(name)));
        lines.push(line("type", described.options.get("type")));
        lines.push(line("comment", described.comment.as_deref()));
        let own = described.options.0.iter().filter(|(key, _)| extended && *key != "type");
        lines.extend(own.map(|(key, value)| line(&format!("option:{key}"), Some(value))));
        return show::rows(&["info name", "info value"], lines);
    }
    let qualified = qualify_database(&state.catalog, name)?;
    let (comment, options) = state.catalog.database_facts(&qualified).map_err(|error| error.at(place))?;
    lines.push(line("catalog", Some(&qualified.catalog)));
    lines.push(line("database", Some(&qualified.database)));
    lines.push(line("comment", comment));
    if extended {
        lines.extend(options.iter().map(|(key, value)| line(&format!("option:{key}"), Some(value))));
    }
    show::rows(&["info name", "info value"], lines)
}
