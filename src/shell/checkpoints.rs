//! `ebbflow checkpoint`: what a checkpoint directory holds.

use std::fmt::Write;

use chrono::DateTime;
use ebbflow::checkpoints::{self, CheckpointDetail, CheckpointSummary};

use super::Flow;
use super::arguments::CheckpointCommand;
use super::console::Terminal;
use super::table::Tableau;

/// Lists or shows.
///
/// # Errors
/// If the directory has no checkpoints, or the one asked for is damaged.
pub fn main(command: &CheckpointCommand) -> Flow {
    let text = match command {
        CheckpointCommand::Ls { directory } => listing(&checkpoints::list(directory)?),
        CheckpointCommand::Show { directory, id } => details(&checkpoints::show(directory, *id)?),
    };
    Ok(Terminal::default().print(&text)?)
}

fn listing(checkpoints: &[CheckpointSummary]) -> String {
    let names = ["id", "job", "completed", "bytes", "files", "kind", "note"].map(String::from).to_vec();
    let rows: Vec<Vec<String>> = checkpoints
        .iter()
        .map(|checkpoint| {
            vec![
                checkpoint.id.to_string(),
                checkpoint.job.clone(),
                time(checkpoint.time_ms),
                checkpoint.bytes.to_string(),
                checkpoint.files.to_string(),
                kind(checkpoint).into(),
                note(checkpoint),
            ]
        })
        .collect();
    let mut text = String::new();
    let tableau = Tableau::for_rows(names, &rows, usize::MAX);
    tableau.header(&mut text);
    rows.iter().for_each(|row| tableau.row(row.iter().map(String::as_str), &mut text));
    tableau.rule(&mut text);
    text
}

fn details(detail: &CheckpointDetail) -> String {
    let summary = &detail.summary;
    let mut text = format!("{} {} of job {}\n", kind(summary), summary.id, summary.job);
    let mut line = |name: &str, value: String| text.push_str(&format!("  {name:<14}{value}\n"));
    line("completed", time(summary.time_ms));
    line("directory", summary.directory.display().to_string());
    line("written by", format!("Ebbflow {} at parallelism {}", detail.engine, detail.parallelism));
    line("state", format!("{} bytes in {} files", summary.bytes, summary.files));
    line("sinks", if summary.confirmed { "all have committed".into() } else { "not known to have committed".into() });
    if !note(summary).is_empty() {
        line("note", note(summary));
    }
    for operator in &detail.operators {
        // Writing into a String does not fail, here and below.
        let tables = operator.tables.join(", ");
        let _ = writeln!(text, "operator {}: {}", operator.uid, operator.description);
        let _ = writeln!(text, "  {} rows, {} bytes; tables: {tables}", operator.rows, operator.bytes);
    }
    for (source, splits) in &detail.sources {
        let _ = writeln!(text, "source {source}");
        for split in splits {
            let _ = writeln!(text, "  {}: {}", split.split, split.position);
        }
    }
    for (sink, committables) in &detail.sinks {
        let done = if summary.confirmed { "committed" } else { "to commit" };
        let _ = writeln!(text, "sink {sink}: {committables} {done}");
    }
    text
}

fn time(milliseconds: i64) -> String {
    let time = DateTime::from_timestamp_millis(milliseconds);
    time.map(|time| time.format("%Y-%m-%d %H:%M:%S%.3f UTC").to_string()).unwrap_or_default()
}

fn kind(checkpoint: &CheckpointSummary) -> &'static str {
    if checkpoint.savepoint { "savepoint" } else { "checkpoint" }
}

fn note(checkpoint: &CheckpointSummary) -> String {
    match (&checkpoint.damage, checkpoint.finished, checkpoint.confirmed) {
        (Some(damage), ..) => format!("damaged: {damage}"),
        (None, true, _) => "the input was read to its end".into(),
        (None, false, true) => String::new(),
        (None, false, false) => "unconfirmed".into(),
    }
}
