//! The front door: an engine, its sessions, and the jobs they start.
//!
//! ```text
//! Engine::builder().build()                 worker threads, clock, standard streams
//!   .session()                              a catalog and options
//!     .execute("CREATE TABLE clicks …")     → Outcome::Done
//!     .query("SELECT …")                    → Changes: a stream of ChangeBatch
//!     .execute("INSERT INTO …")             → Outcome::Job: wait, checkpoint, stop
//! ```
//!
//! With a catalog file (`kept`) what is declared outlives its session; `replay` reads it again.
//!
//! To add a statement: a variant in `sql/statement.rs`, an arm in `handle.rs`, and what it does in a file here: `tables`,
//! `databases` and `alter` change the catalog; `show`, `describe` and `recreate` answer with what is in it.

mod alter;
mod analyze;
pub mod checkpoints;
mod connectors;
mod databases;
mod describe;
mod engine;
mod handle;
mod job;
mod jobs;
mod kept;
mod options;
mod recreate;
mod replay;
mod show;
mod tables;
#[cfg(test)]
mod tests;

pub use connectors::ProgramTable;
pub use engine::{Engine, EngineBuilder};
pub use handle::{Outcome, ScriptStatement, Session};
pub use job::{Changes, Job, JobProgress, JobReport};
