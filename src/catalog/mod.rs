//! Databases, tables and views: what SQL names stand for, and the options a connector declares.

mod options;
mod table;

pub use options::{DeclaredOption, OptionKind, Options};
pub use table::{Column, ColumnKind, TableDefinition, ViewDefinition, WatermarkDefinition};
