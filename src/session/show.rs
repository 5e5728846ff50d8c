//! `SHOW`, `DESCRIBE` and other statements that answer with a few rows of text.

use std::sync::Arc;

use arrow::array::{ArrayRef, RecordBatch, StringArray};
use arrow::datatypes::{DataType, Field, Schema};
use sqlparser::ast::{ObjectName, Spanned};

use super::options::KNOWN;
use super::session::{Outcome, State};
use super::tables::qualify;
use crate::catalog::{ColumnKind, DEFAULT_CATALOG, Relation, TableDefinition};
use crate::error::{Error, Result, Span, nearest};
use crate::functions::FunctionSet;
use crate::sql::{Pattern, Show};
use crate::types::SqlType;

/// One column of text.
pub(super) fn text(name: &str, lines: impl Iterator<Item = String>) -> Result<Outcome> {
    rows(&[name], lines.map(|line| vec![Some(line)]).collect())
}

fn rows(names: &[&str], rows: Vec<Vec<Option<String>>>) -> Result<Outcome> {
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

pub(super) fn show(state: &State, functions: &FunctionSet, show: &Show) -> Result<Outcome> {
    let catalog = &state.catalog;
    let keep = |name: &str| show.pattern.as_ref().is_none_or(|pattern| matches(pattern, name));
    let listed = |heading: &str, names: Vec<String>| text(heading, names.into_iter().filter(|name| keep(name)));
    let database = match &show.name {
        Some(name) => super::tables::last_name(name),
        None => catalog.current_database().to_string(),
    };
    match show.what.as_str() {
        "TABLES" => listed("table name", catalog.relations(&database).keys().map(ToString::to_string).collect()),
        "VIEWS" => {
            let views = catalog.relations(&database).into_iter().filter(|(_, r)| matches!(r, Relation::View(_)));
            listed("view name", views.map(|(name, _)| name.to_string()).collect())
        }
        "DATABASES" => listed("database name", catalog.databases().map(str::to_string).collect()),
        "CATALOGS" => listed("catalog name", vec![DEFAULT_CATALOG.into()]),
        "CURRENT DATABASE" => listed("current database name", vec![catalog.current_database().into()]),
        "CURRENT CATALOG" => listed("current catalog name", vec![DEFAULT_CATALOG.into()]),
        "FUNCTIONS" => listed("function name", functions.names()),
        "JOBS" => {
            let jobs = state.jobs.iter().map(|job| vec![Some(job.name().to_string()), Some(job.status().to_string())]);
            rows(&["job name", "status"], jobs.collect())
        }
        "COLUMNS" | "CREATE TABLE" | "CREATE VIEW" => {
            let Some(name) = &show.name else { return Err(Error::sql(format!("SHOW {} needs a name", show.what))) };
            match (show.what.as_str(), find(state, name)?) {
                ("COLUMNS", relation) => described(state, relation, &keep),
                ("CREATE TABLE", Relation::Table(table)) => text("result", std::iter::once(create_table(table))),
                ("CREATE VIEW", Relation::View(view)) => {
                    let statement = format!("CREATE VIEW `{}` AS {}", view.name, view.query);
                    text("result", std::iter::once(statement))
                }
                (what, relation) => Err(Error::sql(format!("SHOW {what}: '{name}' is a {}", relation.noun()))
                    .at(Span::from_ast(name.span()))),
            }
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

pub(super) fn describe(state: &State, name: &ObjectName) -> Result<Outcome> {
    described(state, find(state, name)?, &|_| true)
}

fn find<'a>(state: &'a State, name: &ObjectName) -> Result<&'a Relation> {
    let qualified = qualify(state, name)?;
    state.catalog.get(&qualified).ok_or_else(|| state.catalog.not_found(&qualified).at(Span::from_ast(name.span())))
}

fn described(_state: &State, relation: &Relation, keep: &dyn Fn(&str) -> bool) -> Result<Outcome> {
    let Relation::Table(table) = relation else {
        return Err(Error::sql("DESCRIBE of a view is not supported yet").hint("DESCRIBE the tables it reads"));
    };
    let key = format!("PRI({})", table.primary_key.join(", "));
    let mut lines = Vec::new();
    let commented = table.columns.iter().any(|column| column.comment.is_some());
    for column in table.columns.iter().filter(|column| keep(&column.name)) {
        let watermark = table.watermark.as_ref().filter(|watermark| watermark.column == column.name);
        let shown = if watermark.is_some() { " *ROWTIME*" } else { "" };
        let extras = match &column.kind {
            ColumnKind::Physical => None,
            ColumnKind::Computed { expression } => Some(format!("AS {expression}")),
            ColumnKind::Metadata { key, is_virtual } => {
                let from = if *key == column.name { String::new() } else { format!(" FROM '{key}'") };
                Some(format!("METADATA{from}{}", if *is_virtual { " VIRTUAL" } else { "" }))
            }
        };
        let mut line = vec![
            Some(column.name.clone()),
            Some(format!("{}{shown}", column.sql_type)),
            Some(if column.nullable { "TRUE" } else { "FALSE" }.to_string()),
            table.primary_key.contains(&column.name).then(|| key.clone()),
            extras,
            watermark.map(|watermark| watermark.expression.clone()),
        ];
        if commented {
            line.push(column.comment.clone());
        }
        lines.push(line);
    }
    let names = ["name", "type", "null", "key", "extras", "watermark", "comment"];
    rows(&names[..if commented { 7 } else { 6 }], lines)
}

/// The statement that would create the table again.
fn create_table(table: &TableDefinition) -> String {
    let mut parts: Vec<String> = table.columns.iter().map(column).collect();
    if let Some(watermark) = &table.watermark {
        parts.push(format!("WATERMARK FOR `{}` AS {}", watermark.column, watermark.expression));
    }
    let quoted = |names: &[String]| names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ");
    if !table.primary_key.is_empty() {
        parts.push(format!("PRIMARY KEY ({}) NOT ENFORCED", quoted(&table.primary_key)));
    }
    let temporary = if table.temporary { "TEMPORARY " } else { "" };
    let mut statement = format!("CREATE {temporary}TABLE `{}` (\n  {}\n)", table.name, parts.join(",\n  "));
    if let Some(comment) = &table.comment {
        statement += &format!(" COMMENT {}", literal(comment));
    }
    if !table.partitioned_by.is_empty() {
        statement += &format!("\nPARTITIONED BY ({})", quoted(&table.partitioned_by));
    }
    let options: Vec<String> =
        table.options.0.iter().map(|(key, value)| format!("  {} = {}", literal(key), literal(value))).collect();
    statement + &format!("\nWITH (\n{}\n)", options.join(",\n"))
}

fn column(column: &crate::catalog::Column) -> String {
    let not_null = if column.nullable { "" } else { " NOT NULL" };
    let typed = |sql_type: &SqlType| format!("`{}` {sql_type}{not_null}", column.name);
    let mut text = match &column.kind {
        ColumnKind::Physical => typed(&column.sql_type),
        ColumnKind::Computed { expression } => format!("`{}` AS {expression}", column.name),
        ColumnKind::Metadata { key, is_virtual } => {
            let from = if *key == column.name { String::new() } else { format!(" FROM {}", literal(key)) };
            format!("{} METADATA{from}{}", typed(&column.sql_type), if *is_virtual { " VIRTUAL" } else { "" })
        }
    };
    if let Some(comment) = &column.comment {
        text += &format!(" COMMENT {}", literal(comment));
    }
    text
}

fn literal(text: &str) -> String {
    format!("'{}'", text.replace('\'', "''"))
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
