//! `SHOW CREATE …`: the statement that would create a thing again, in Flink's form.

use std::collections::BTreeMap;

use crate::catalog::{
    Column, ColumnKind, DatabaseName, Databases, Options, QualifiedName, TableDefinition, ViewDefinition, quoted,
};
use crate::types::{RowField, SqlType};

/// `CREATE TABLE`.
pub(super) fn create_table(name: &QualifiedName, table: &TableDefinition) -> String {
    let mut parts: Vec<String> = table.columns.iter().map(column).collect();
    if let Some(watermark) = &table.watermark {
        parts.push(format!("WATERMARK FOR {} AS {}", quoted(&watermark.column), watermark.expression));
    }
    if !table.primary_key.is_empty() {
        let constraint = quoted(&table.primary_key_name());
        parts.push(format!("CONSTRAINT {constraint} PRIMARY KEY ({}) NOT ENFORCED", list(&table.primary_key)));
    }
    let temporary = if table.temporary { "TEMPORARY " } else { "" };
    let mut statement = format!("CREATE {temporary}TABLE {name} (\n  {}\n)\n", parts.join(",\n  "));
    statement += &comment(table.comment.as_deref());
    if !table.partitioned_by.is_empty() {
        statement += &format!("PARTITIONED BY ({})\n", list(&table.partitioned_by));
    }
    statement + &options(&table.options)
}

/// `CREATE VIEW`, with the query as it was written.
pub(super) fn create_view(name: &QualifiedName, view: &ViewDefinition, columns: &[Column]) -> String {
    let names: Vec<String> = columns.iter().map(|column| quoted(&column.name)).collect();
    let temporary = if view.temporary { "TEMPORARY " } else { "" };
    let comment = comment(view.comment.as_deref());
    format!("CREATE {temporary}VIEW {name} (\n  {}\n)\n{comment}AS {}\n", names.join(",\n  "), view.query)
}

/// `CREATE CATALOG`.
pub(super) fn create_catalog(name: &str, catalog: &Databases) -> String {
    format!("CREATE CATALOG {}\n{}{}", quoted(name), comment(catalog.comment.as_deref()), options(&catalog.options))
}

/// `CREATE DATABASE`, and what sets the options of one that comes with its catalog; nothing if it has none.
pub(super) fn create_database(
    name: &DatabaseName,
    comes_with_catalog: bool,
    text: Option<&str>,
    given: &BTreeMap<String, String>,
) -> Option<String> {
    let given = Options(given.clone());
    match comes_with_catalog {
        false => Some(format!("CREATE DATABASE {name}\n{}{}", comment(text), options(&given))),
        true if given.0.is_empty() => None,
        true => Some(format!("ALTER DATABASE {name} SET {}", options(&given).trim_start_matches("WITH "))),
    }
}

/// `CREATE VIEW` as it was declared: columns only if it named some.
pub(super) fn declare_view(name: &QualifiedName, view: &ViewDefinition) -> String {
    let columns = if view.columns.is_empty() { String::new() } else { format!(" ({})", list(&view.columns)) };
    format!("CREATE VIEW {name}{columns}\n{}AS {}\n", comment(view.comment.as_deref()), view.query)
}

fn list(names: &[String]) -> String {
    names.iter().map(|name| quoted(name)).collect::<Vec<_>>().join(", ")
}

fn comment(comment: Option<&str>) -> String {
    comment.map_or(String::new(), |comment| format!("COMMENT {}\n", literal(comment)))
}

fn options(options: &Options) -> String {
    if options.0.is_empty() {
        return String::new();
    }
    let entries: Vec<String> =
        options.0.iter().map(|(key, value)| format!("  {} = {}", literal(key), literal(value))).collect();
    format!("WITH (\n{}\n)\n", entries.join(",\n"))
}

fn column(column: &Column) -> String {
    let not_null = if column.nullable { "" } else { " NOT NULL" };
    let typed = |sql_type: &SqlType| format!("{} {}{not_null}", quoted(&column.name), full(sql_type));
    let mut text = match &column.kind {
        ColumnKind::Physical => typed(&column.sql_type),
        ColumnKind::Computed { expression } => format!("{} AS {expression}", quoted(&column.name)),
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

/// A type without the short forms, as Flink writes it into catalogs.
pub(super) fn full(sql_type: &SqlType) -> String {
    let part =
        |sql_type: &SqlType, nullable: bool| format!("{}{}", full(sql_type), if nullable { "" } else { " NOT NULL" });
    match sql_type {
        SqlType::Varchar(length) => format!("VARCHAR({length})"),
        SqlType::Varbinary(length) => format!("VARBINARY({length})"),
        SqlType::TimestampLtz(precision) => format!("TIMESTAMP({precision}) WITH LOCAL TIME ZONE"),
        SqlType::Array(element) => format!("ARRAY<{}>", part(&element.sql_type, element.nullable)),
        SqlType::Multiset(element) => format!("MULTISET<{}>", part(&element.sql_type, element.nullable)),
        SqlType::Map(key, value) => {
            format!("MAP<{}, {}>", part(&key.sql_type, key.nullable), part(&value.sql_type, value.nullable))
        }
        SqlType::Row(fields) => {
            let field = |field: &RowField| format!("{} {}", quoted(&field.name), part(&field.sql_type, field.nullable));
            format!("ROW<{}>", fields.iter().map(field).collect::<Vec<_>>().join(", "))
        }
        other => other.to_string(),
    }
}

fn literal(text: &str) -> String {
    format!("'{}'", text.replace('\'', "''"))
}
