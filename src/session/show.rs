//! `SHOW` and other statements that answer with a few rows of text.

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow::array::{ArrayRef, RecordBatch, StringArray};
use arrow::datatypes::{DataType, Field, Schema};
use sqlparser::ast::{ObjectName, Spanned};

use super::describe::{self, ViewColumns};
use super::handle::{Outcome, State};
use super::jobs;
use super::options::KNOWN;
use super::recreate::{create_catalog, create_table, create_view};
use crate::catalog::{QualifiedName, Relation};
use crate::error::{Error, Result, Span, nearest};
use crate::functions::FunctionSet;
use crate::plan::{name_parts, qualify_database};
use crate::sql::{Pattern, Show};

/// One column of text.
pub(super) fn text(name: &str, lines: impl Iterator<Item = String>) -> Result<Outcome> {
    rows(&[name], lines.map(|line| vec![Some(line)]).collect())
}

pub(super) fn rows(names: &[&str], rows: Vec<Vec<Option<String>>>) -> Result<Outcome> {
    let fields: Vec<Field> = names.iter().map(|name| Field::new(*name, DataType::Utf8, true)).collect();
    let column =
        |index: usize| Arc::new(rows.iter().map(|row| row[index].as_deref()).collect::<StringArray>()) as ArrayRef;
    let columns = (0..names.len()).map(column).collect();
    Ok(Outcome::Rows(RecordBatch::try_new(Arc::new(Schema::new(fields)), columns)?))
}

pub(super) fn options(state: &State) -> Result<Outcome> {
    let set = state.options.entries().map(|(key, value)| vec![Some(key.to_string()), Some(value.to_string())]);
    let unset = KNOWN
        .iter()
        .filter(|(key, value, _)| !value.is_empty() && !state.options.entries().any(|(set, _)| set == *key));
    let unset = unset.map(|(key, value, _)| vec![Some((*key).to_string()), Some((*value).to_string())]);
    let mut all: Vec<_> = set.chain(unset).collect();
    all.sort();
    rows(&["key", "value"], all)
}

pub(super) fn show(
    state: &State,
    functions: &FunctionSet,
    show: &Show,
    view_columns: &dyn Fn(&QualifiedName) -> Result<ViewColumns>,
) -> Result<Outcome> {
    let catalog = &state.catalog;
    let keep = |name: &str| show.pattern.as_ref().is_none_or(|pattern| matches(pattern, name));
    let listed = |heading: &str, names: Vec<String>| text(heading, names.into_iter().filter(|name| keep(name)));
    let one = |heading: &str, name: &str| text(heading, std::iter::once(name.to_string()));
    match show.what.as_str() {
        "TABLES" => listed("table name", relations(state, show)?.keys().map(ToString::to_string).collect()),
        "VIEWS" => {
            let views = relations(state, show)?.into_iter().filter(|(_, r)| matches!(r, Relation::View(_)));
            listed("view name", views.map(|(name, _)| name.to_string()).collect())
        }
        "DATABASES" => {
            let place = show.name.as_ref().and_then(|name| Span::from_ast(name.span()));
            let of = show.name.as_ref().and_then(|name| name_parts(name).last().copied());
            let databases = catalog.databases(of.unwrap_or(&catalog.current().catalog));
            let databases = databases.map_err(|error| error.at(place))?;
            listed("database name", databases.map(str::to_string).collect())
        }
        "CATALOGS" => listed("catalog name", catalog.catalogs().map(str::to_string).collect()),
        "CURRENT DATABASE" => one("current database name", &catalog.current().database),
        "CURRENT CATALOG" => one("current catalog name", &catalog.current().catalog),
        "FUNCTIONS" => {
            let built_in = functions.names().into_iter().map(|name| name.to_uppercase());
            listed("function name", built_in.chain(catalog.functions().map(|own| own.name.clone())).collect())
        }
        "USER FUNCTIONS" => {
            let in_sql = catalog.functions().map(|own| own.name.clone());
            listed("function name", in_sql.chain(functions.program_names().iter().cloned()).collect())
        }
        "MODULES" => listed("module name", vec!["core".into()]),
        "FULL MODULES" => rows(&["module name", "used"], vec![vec![Some("core".into()), Some("TRUE".into())]]),
        "JOBS" => jobs::show(state),
        "COLUMNS" | "PARTITIONS" | "CREATE TABLE" | "CREATE VIEW" | "CREATE CATALOG" => {
            let Some(name) = &show.name else { return Err(Error::sql(format!("SHOW {} needs a name", show.what))) };
            about(state, &show.what, name, &keep, view_columns)
        }
        other => {
            let known = ["TABLES", "VIEWS", "DATABASES", "CATALOGS", "FUNCTIONS", "JOBS", "COLUMNS"];
            let error = Error::sql(format!("SHOW {other} is not supported yet"));
            Err(match nearest(other, known) {
                Some(near) => error.hint(format!("did you mean SHOW {near}?")),
                None => error,
            })
        }
    }
}

/// What there is in the database that is named, or in the current one.
fn relations<'a>(state: &'a State, show: &Show) -> Result<BTreeMap<&'a str, &'a Relation>> {
    match &show.name {
        None => state.catalog.relations(state.catalog.current()),
        Some(name) => {
            let database = qualify_database(&state.catalog, name)?;
            state.catalog.relations(&database).map_err(|error| error.at(Span::from_ast(name.span())))
        }
    }
}

/// `SHOW what name`.
fn about(
    state: &State,
    what: &str,
    name: &ObjectName,
    keep: &dyn Fn(&str) -> bool,
    view_columns: &dyn Fn(&QualifiedName) -> Result<ViewColumns>,
) -> Result<Outcome> {
    let place = Span::from_ast(name.span());
    if what == "CREATE CATALOG" {
        let alone = name_parts(name).last().copied().unwrap_or_default();
        let described = state.catalog.catalog(alone).map_err(|error| error.at(place))?;
        return text("result", std::iter::once(create_catalog(alone, described)));
    }
    let (qualified, relation) = describe::find(state, name)?;
    match (what, relation) {
        ("COLUMNS", relation) => describe::described(&qualified, relation, keep, view_columns),
        ("PARTITIONS", Relation::Table(table)) if table.partitioned_by.is_empty() => {
            Err(Error::sql(format!("table '{}' is not partitioned", table.name)).at(place))
        }
        // As in Flink, where a catalog in memory keeps none: they are found when the table is read.
        ("PARTITIONS", Relation::Table(_)) => text("partition name", std::iter::empty()),
        ("CREATE TABLE", Relation::Table(table)) => text("result", std::iter::once(create_table(&qualified, table))),
        ("CREATE VIEW", Relation::View(view)) => {
            let columns = view_columns(&qualified)?.columns;
            text("result", std::iter::once(create_view(&qualified, view, &columns)))
        }
        (what, relation) => Err(Error::sql(format!("SHOW {what}: '{name}' is a {}", relation.noun())).at(place)),
    }
}

/// Whether a name fits `[NOT] {LIKE|ILIKE} 'pattern'`.
fn matches(pattern: &Pattern, name: &str) -> bool {
    let (pattern_text, name) = match pattern.ignore_case {
        true => (pattern.pattern.to_lowercase(), name.to_lowercase()),
        false => (pattern.pattern.clone(), name.to_string()),
    };
    let pattern_characters: Vec<char> = pattern_text.chars().collect();
    let name: Vec<char> = name.chars().collect();
    // Which prefixes of the pattern fit the name so far: linear in both, whatever the pattern.
    let mut fits = vec![false; pattern_characters.len() + 1];
    fits[0] = true;
    let spread = |fits: &mut Vec<bool>| {
        for (index, character) in pattern_characters.iter().enumerate() {
            if *character == '%' && fits[index] {
                fits[index + 1] = true;
            }
        }
    };
    spread(&mut fits);
    for character in name {
        let mut next = vec![false; fits.len()];
        for (index, wanted) in pattern_characters.iter().enumerate() {
            if fits[index] && *wanted == '%' {
                next[index] = true;
            } else if fits[index] && (*wanted == '_' || *wanted == character) {
                next[index + 1] = true;
            }
        }
        spread(&mut next);
        fits = next;
    }
    fits.last().copied().unwrap_or(false) != pattern.negated
}
