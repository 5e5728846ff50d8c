//! `DESCRIBE t` and `SHOW COLUMNS FROM t`: a line for each column of a table or view.

use sqlparser::ast::{ObjectName, Spanned};

use super::handle::{Outcome, State};
use super::show::rows;
use crate::catalog::{Column, ColumnKind, QualifiedName, Relation, TableDefinition};
use crate::error::{Result, Span};
use crate::plan::qualify;

/// The columns of a view, and which of them are time attributes.
pub(super) struct ViewColumns {
    pub columns: Vec<Column>,
    pub rowtime: Vec<usize>,
    pub proctime: Vec<usize>,
}

/// What a name stands for.
///
/// # Errors
/// If it stands for nothing.
pub(super) fn find<'a>(state: &'a State, name: &ObjectName) -> Result<(QualifiedName, &'a Relation)> {
    let qualified = qualify(&state.catalog, name)?;
    match state.catalog.get(&qualified) {
        Some(relation) => Ok((qualified, relation)),
        None => Err(state.catalog.not_found(&qualified).at(Span::from_ast(name.span()))),
    }
}

pub(super) fn describe(
    state: &State,
    name: &ObjectName,
    view_columns: &dyn Fn(&QualifiedName) -> Result<ViewColumns>,
) -> Result<Outcome> {
    let (qualified, relation) = find(state, name)?;
    described(&qualified, relation, &|_| true, view_columns)
}

pub(super) fn described(
    name: &QualifiedName,
    relation: &Relation,
    keep: &dyn Fn(&str) -> bool,
    view_columns: &dyn Fn(&QualifiedName) -> Result<ViewColumns>,
) -> Result<Outcome> {
    let lines = match relation {
        Relation::Table(table) => table.columns.iter().map(|column| table_line(table, column)).collect(),
        Relation::View(_) => view_lines(&view_columns(name)?),
    };
    // The comments have a column of their own if there are any.
    let commented = lines.iter().any(|line: &Line| line.comment.is_some());
    let kept = lines.into_iter().filter(|line| keep(&line.name));
    let names = ["name", "type", "null", "key", "extras", "watermark", "comment"];
    rows(&names[..if commented { 7 } else { 6 }], kept.map(|line| line.cells(commented)).collect())
}

/// A column as it is shown.
struct Line {
    name: String,
    sql_type: String,
    nullable: bool,
    key: Option<String>,
    extras: Option<String>,
    watermark: Option<String>,
    comment: Option<String>,
}

impl Line {
    fn cells(self, commented: bool) -> Vec<Option<String>> {
        let nullable = if self.nullable { "TRUE" } else { "FALSE" };
        let mut cells = vec![
            Some(self.name),
            Some(self.sql_type),
            Some(nullable.to_string()),
            self.key,
            self.extras,
            self.watermark,
        ];
        if commented {
            cells.push(self.comment);
        }
        cells
    }
}

fn table_line(table: &TableDefinition, column: &Column) -> Line {
    let watermark = table.watermark.as_ref().filter(|watermark| watermark.column == column.name);
    let processing_time = matches!(&column.kind, ColumnKind::Computed { expression }
        if expression.eq_ignore_ascii_case("PROCTIME()"));
    let attribute = match (watermark.is_some(), processing_time) {
        (true, _) => " *ROWTIME*",
        (false, true) => " *PROCTIME*",
        (false, false) => "",
    };
    let extras = match &column.kind {
        ColumnKind::Physical => None,
        ColumnKind::Computed { expression } => Some(format!("AS {expression}")),
        ColumnKind::Metadata { key, is_virtual } => {
            let from = if *key == column.name { String::new() } else { format!(" FROM '{key}'") };
            Some(format!("METADATA{from}{}", if *is_virtual { " VIRTUAL" } else { "" }))
        }
    };
    let key = table.primary_key.contains(&column.name).then(|| format!("PRI({})", table.primary_key.join(", ")));
    Line {
        name: column.name.clone(),
        sql_type: format!("{}{attribute}", column.sql_type),
        nullable: column.nullable,
        key,
        extras,
        watermark: watermark.map(|watermark| watermark.expression.clone()),
        comment: column.comment.clone(),
    }
}

fn view_lines(view: &ViewColumns) -> Vec<Line> {
    let line = |(index, column): (usize, &Column)| {
        let attribute = match (view.rowtime.contains(&index), view.proctime.contains(&index)) {
            (true, _) => " *ROWTIME*",
            (false, true) => " *PROCTIME*",
            (false, false) => "",
        };
        Line {
            name: column.name.clone(),
            sql_type: format!("{}{attribute}", column.sql_type),
            nullable: column.nullable,
            key: None,
            extras: None,
            watermark: None,
            comment: None,
        }
    };
    view.columns.iter().enumerate().map(line).collect()
}
