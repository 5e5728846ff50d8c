//! Looking into a checkpoint directory without running a job.

use std::path::Path;

use crate::changelog::CheckpointId;
use crate::error::Result;

/// One checkpoint of a directory.
#[derive(Debug, Clone)]
pub struct CheckpointSummary {
    /// Its number.
    pub id: CheckpointId,
    /// The job it belongs to.
    pub job: String,
    /// When it completed, in milliseconds since the epoch.
    pub completed: i64,
    /// Bytes of state it refers to.
    pub bytes: u64,
    /// Whether its sinks have committed.
    pub confirmed: bool,
    /// What is wrong with it, if it cannot be restored.
    pub damage: Option<String>,
}

/// The checkpoints of a directory, oldest first.
///
/// # Errors
/// If the directory cannot be read or holds no checkpoints.
pub fn list(_directory: &Path) -> Result<Vec<CheckpointSummary>> {
    todo!()
}

/// What a checkpoint holds, as text: its files, source positions, operators and committables. Without `id`, the newest.
///
/// # Errors
/// If there is no such checkpoint, or it is damaged.
pub fn show(_directory: &Path, _id: Option<CheckpointId>) -> Result<String> {
    todo!()
}
