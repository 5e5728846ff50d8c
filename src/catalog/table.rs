//! A table as declared: columns, watermark, key, options.

use std::sync::Arc;

use arrow::datatypes::{Schema, SchemaRef};

use super::{DatabaseName, Options};
use crate::error::Span;
use crate::types::SqlType;

/// Where a column's values come from.
#[derive(Debug, Clone, PartialEq)]
pub enum ColumnKind {
    /// A field of the connector's rows.
    Physical,
    /// A field the connector or format knows beside the row, under `key`.
    Metadata {
        /// The connector's name for it; the column's own name if none was given.
        key: String,
        /// Whether it is read only.
        is_virtual: bool,
    },
    /// An expression over the other columns, as SQL text; evaluated after the scan.
    Computed {
        /// The text.
        expression: String,
    },
}

/// A column of a table.
#[derive(Debug, Clone, PartialEq)]
pub struct Column {
    /// The name, as written.
    pub name: String,
    /// The type; of a computed column, the type of its expression, found when the table is created.
    pub sql_type: SqlType,
    /// Whether NULL is allowed.
    pub nullable: bool,
    /// Where the values come from.
    pub kind: ColumnKind,
    /// `COMMENT`.
    pub comment: Option<String>,
}

/// `WATERMARK FOR column AS expression`.
#[derive(Debug, Clone, PartialEq)]
pub struct WatermarkDefinition {
    /// The event-time column.
    pub column: String,
    /// The expression, as SQL text.
    pub expression: String,
}

/// A table as declared.
#[derive(Debug, Clone, PartialEq)]
pub struct TableDefinition {
    /// The name alone, without catalog and database.
    pub name: String,
    /// The columns in order.
    pub columns: Vec<Column>,
    /// The watermark, if event time is declared.
    pub watermark: Option<WatermarkDefinition>,
    /// The columns of the primary key; empty if none.
    pub primary_key: Vec<String>,
    /// `CONSTRAINT name PRIMARY KEY …`, if it was named.
    pub primary_key_name: Option<String>,
    /// `PARTITIONED BY`.
    pub partitioned_by: Vec<String>,
    /// `WITH`.
    pub options: Options,
    /// `COMMENT`.
    pub comment: Option<String>,
    /// Whether it was declared `TEMPORARY`.
    pub temporary: bool,
    /// Where it was declared, for messages.
    pub span: Option<Span>,
}

/// A view as declared: a query under a name.
#[derive(Debug, Clone, PartialEq)]
pub struct ViewDefinition {
    /// The name alone.
    pub name: String,
    /// Column names given in the declaration; empty if none.
    pub columns: Vec<String>,
    /// The query's text.
    pub query: String,
    /// The database that was current when it was declared: its names are completed with it.
    pub home: DatabaseName,
    /// `COMMENT`.
    pub comment: Option<String>,
    /// Whether it was declared `TEMPORARY`.
    pub temporary: bool,
}

/// A function as declared in SQL: an expression over its parameters.
#[derive(Debug, Clone, PartialEq)]
pub struct FunctionDefinition {
    /// The name alone.
    pub name: String,
    /// Names and types of the parameters.
    pub parameters: Vec<(String, SqlType)>,
    /// `RETURNS type`.
    pub returns: Option<SqlType>,
    /// The expression's text.
    pub body: String,
    /// Whether it was declared `TEMPORARY`.
    pub temporary: bool,
}

impl TableDefinition {
    /// The physical columns: what the connector and its format read and write.
    pub fn physical_schema(&self) -> SchemaRef {
        self.schema_of(|kind| matches!(kind, ColumnKind::Physical))
    }

    /// Physical and metadata columns, in the order of declaration: what a source can deliver.
    pub fn scan_schema(&self) -> SchemaRef {
        self.schema_of(|kind| !matches!(kind, ColumnKind::Computed { .. }))
    }

    /// As [`TableDefinition::scan_schema`], but NULL is allowed in the columns of the primary key: that the key is there is
    /// the writer's promise, which is not checked in rows that nobody asks for.
    pub fn read_schema(&self) -> SchemaRef {
        self.schema_with(|kind| !matches!(kind, ColumnKind::Computed { .. }), |column| self.reads_null(column))
    }

    /// Whether a source may give NULL for a column.
    pub fn reads_null(&self, column: &Column) -> bool {
        column.nullable || self.primary_key.contains(&column.name)
    }

    /// Physical columns and metadata columns that are not virtual: what a sink takes.
    pub fn sink_schema(&self) -> SchemaRef {
        self.schema_of(|kind| match kind {
            ColumnKind::Physical => true,
            ColumnKind::Metadata { is_virtual, .. } => !is_virtual,
            ColumnKind::Computed { .. } => false,
        })
    }

    /// All columns, as a query sees them.
    pub fn schema(&self) -> SchemaRef {
        self.schema_of(|_| true)
    }

    /// The column of this name.
    pub fn column(&self, name: &str) -> Option<&Column> {
        self.columns.iter().find(|column| column.name == name)
    }

    /// The name of the primary key: as given, or as Flink makes one up.
    pub fn primary_key_name(&self) -> String {
        self.primary_key_name.clone().unwrap_or_else(|| format!("PK_{}", self.primary_key.join("_")))
    }

    fn schema_of(&self, keep: impl Fn(&ColumnKind) -> bool) -> SchemaRef {
        self.schema_with(keep, |column| column.nullable)
    }

    fn schema_with(&self, keep: impl Fn(&ColumnKind) -> bool, nullable: impl Fn(&Column) -> bool) -> SchemaRef {
        let fields = self.columns.iter().filter(|column| keep(&column.kind));
        Arc::new(Schema::new(
            fields.map(|column| column.sql_type.to_field(&column.name, nullable(column))).collect::<Vec<_>>(),
        ))
    }
}
