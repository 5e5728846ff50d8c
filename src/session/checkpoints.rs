//! Looking into a checkpoint directory without running a job.

pub use crate::checkpoint::inspect::{CheckpointDetail, CheckpointSummary, OperatorDetail, list, show};
