//! Catalogs, databases, tables, views and functions: what SQL names stand for, and the options a connector declares.
//!
//! `CREATE TABLE clicks (…) WITH (…)` becomes a [`TableDefinition`] under a [`QualifiedName`] in the session's
//! [`Catalog`]. Its [`Options`] are checked once, against what connector and format declare ([`DeclaredOption`]).

mod database;
mod names;
mod options;
mod permanent;
mod table;

pub use names::{Catalog, DEFAULT_CATALOG, DatabaseName, Databases, QualifiedName, Relation, quoted};
pub use options::{DeclaredOption, OptionKind, Options, parse_duration};
pub use table::{Column, ColumnKind, FunctionDefinition, TableDefinition, ViewDefinition, WatermarkDefinition};
