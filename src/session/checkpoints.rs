//! Looking into a checkpoint directory without running a job.

use std::fmt::Write;
use std::path::Path;

use crate::changelog::CheckpointId;
use crate::checkpoint::inspect::{self, CheckpointDetail};
use crate::error::Result;

/// One checkpoint of a directory.
#[derive(Debug, Clone)]
pub struct CheckpointSummary {
    /// Its number.
    pub id: CheckpointId,
    /// The job it belongs to.
    pub job: String,
    /// When it was taken, in milliseconds since the epoch.
    pub completed: i64,
    /// Bytes of state it refers to.
    pub bytes: u64,
    /// Whether its sinks have committed.
    pub confirmed: bool,
    /// What is wrong with it, if it cannot be restored.
    pub damage: Option<String>,
}

/// The checkpoints below a directory, job by job, oldest first.
///
/// # Errors
/// If the directory cannot be read.
pub fn list(directory: &Path) -> Result<Vec<CheckpointSummary>> {
    let summaries = inspect::list(directory)?.into_iter();
    Ok(summaries.map(summary).collect())
}

/// What a checkpoint holds, as text: its files, source positions, operators and committables. Without `id`, the newest.
///
/// # Errors
/// If there is no such checkpoint, or it is damaged.
pub fn show(directory: &Path, id: Option<CheckpointId>) -> Result<String> {
    inspect::show(directory, id).map(|detail| describe(&detail))
}

fn summary(from: inspect::CheckpointSummary) -> CheckpointSummary {
    CheckpointSummary {
        id: from.id,
        job: from.job,
        completed: from.time_ms,
        bytes: from.bytes,
        confirmed: from.confirmed,
        damage: from.damage,
    }
}

fn describe(detail: &CheckpointDetail) -> String {
    let summary = &detail.summary;
    let mut text = format!(
        "checkpoint {} of job '{}', written by Ebbflow {} at parallelism {}\n",
        summary.id, summary.job, detail.engine, detail.parallelism
    );
    let state = match (summary.confirmed, summary.finished) {
        (true, true) => "every sink has committed it; the job has read all its input",
        (true, false) => "every sink has committed it",
        (false, _) => "not all sinks are known to have committed it; the next run commits again",
    };
    // Writing to a text cannot fail.
    let _ = writeln!(text, "{state}\n{} bytes of state in {} files", summary.bytes, summary.files);
    for operator in &detail.operators {
        let tables = operator.tables.join(", ");
        let _ = writeln!(
            text,
            "operator {} ({}): {} rows, {} bytes{}",
            operator.uid,
            operator.description,
            operator.rows,
            operator.bytes,
            if tables.is_empty() { String::new() } else { format!(", tables {tables}") }
        );
    }
    for (source, splits) in &detail.sources {
        for split in splits {
            let _ = writeln!(text, "source {source}: {split:?}");
        }
    }
    for (sink, committables) in &detail.sinks {
        let _ = writeln!(text, "sink {sink}: {committables} committables");
    }
    text.truncate(text.trim_end().len());
    text
}
