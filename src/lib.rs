//! Ebbflow: a streaming SQL engine over dynamic tables.

pub(crate) mod catalog;
pub(crate) mod changelog;
pub(crate) mod checkpoint;
pub(crate) mod connectors;
pub(crate) mod error;
pub(crate) mod formats;
pub(crate) mod functions;
pub(crate) mod limits;
pub(crate) mod operators;
pub(crate) mod plan;
pub(crate) mod runtime;
pub(crate) mod session;
pub(crate) mod sql;
pub(crate) mod state;
pub(crate) mod types;

pub use changelog::{ChangeBatch, ChangelogMode, Kind, Kinds};
pub use connectors::Console;
pub use error::{Error, ErrorKind, Result, Span};
pub use session::checkpoints;
pub use session::{Changes, Engine, EngineBuilder, Job, JobProgress, JobReport, Outcome, ScriptStatement, Session};
pub use types::{CellFormat, RowFormat, SqlType};
