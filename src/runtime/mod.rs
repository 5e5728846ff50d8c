//! The runtime: a stream graph as tasks, and their checkpoints.
//!
//! [`start`] lays a graph out ([`layout`]): nodes between two exchanges share a task, and each task runs as so many
//! subtasks. Tasks are joined by bounded channels ([`channel`]); a task ([`task`]) pushes each event through its chain
//! of operators ([`chain`]) and sends what comes out. How checkpoint 7 goes through a job with a hash exchange:
//!
//! ```text
//! coordinator ─ request 7 ─▶ sources: note positions, snapshot, ack, send barrier 7
//! barrier 7 on all inputs of a count task: snapshot, ack (its sink prepares)
//! all acks ─▶ state files, manifest 7 (the decision) ─▶ sinks commit ─▶ confirmed
//! ```
//!
//! The rows before the barrier are in the checkpoint, those behind it are not, and nothing stops meanwhile. After a
//! failure everything begins again from the last manifest: sources at their positions, operators with their state,
//! sinks without what was not committed.
//!
//! [`build`] is the bridge from plan to operators: to add an operator, add an arm there.

mod attempt;
mod build;
mod chain;
mod channel;
mod checked;
mod config;
mod coordinator;
mod declared;
mod diagnosis;
mod exchange;
mod inputs;
mod job;
mod layout;
mod metrics;
mod recover;
mod split_alignment;
mod task;
mod time_metrics;
mod values;
mod warnings;
mod watermarks;

#[cfg(test)]
mod tests;

pub use config::{CheckpointConfig, Clock, Connectors, JobConfig, RestartStrategy, SystemClock};
pub use diagnosis::{Cause, Diagnosis, OperatorDiagnosis};
pub use job::{JobHandle, RunReport, RunningJob, start};
pub use metrics::OperatorMetrics;
