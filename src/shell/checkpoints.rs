//! `ebbflow checkpoint`: what a checkpoint directory holds.

use std::fmt::Write;

use chrono::DateTime;
use ebbflow::checkpoints::{self, CheckpointSummary};

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
        CheckpointCommand::Show { directory, id } => {
            let mut text = checkpoints::show(directory, *id)?;
            if !text.ends_with('\n') {
                text.push('\n');
            }
            text
        }
    };
    Ok(Terminal::default().print(&text)?)
}

fn listing(checkpoints: &[CheckpointSummary]) -> String {
    let names = ["id", "job", "completed", "bytes", "confirmed", "note"].map(String::from).to_vec();
    let rows: Vec<Vec<String>> = checkpoints
        .iter()
        .map(|checkpoint| {
            let completed = DateTime::from_timestamp_millis(checkpoint.completed);
            vec![
                checkpoint.id.to_string(),
                checkpoint.job.clone(),
                completed.map(|time| time.format("%Y-%m-%d %H:%M:%S%.3f UTC").to_string()).unwrap_or_default(),
                checkpoint.bytes.to_string(),
                if checkpoint.confirmed { "yes" } else { "no" }.into(),
                checkpoint.damage.clone().unwrap_or_default(),
            ]
        })
        .collect();
    let mut text = String::new();
    let tableau = Tableau::for_rows(names, &rows, usize::MAX);
    tableau.header(&mut text);
    rows.iter().for_each(|row| tableau.row(row.iter().map(String::as_str), &mut text));
    tableau.rule(&mut text);
    // Writing into a String does not fail.
    let _ = writeln!(text, "{} in all", checkpoints.len());
    text
}
