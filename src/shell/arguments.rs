//! The command line as declared: what `--help` shows.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};

/// A streaming SQL engine: Flink SQL over dynamic tables.
///
/// Without a command it is a shell; with SQL on standard input it runs that.
#[derive(Debug, Parser)]
#[command(name = "ebbflow", version, args_conflicts_with_subcommands = true)]
pub struct Arguments {
    /// What to do instead of opening the shell.
    #[command(subcommand)]
    pub command: Option<Command>,
    /// Run these statements and leave.
    #[arg(short = 'e', long = "execute", value_name = "SQL")]
    pub execute: Option<String>,
    /// Where the shell keeps its history; ~/.ebbflow_history by default.
    #[arg(long, value_name = "FILE")]
    pub history: Option<PathBuf>,
    #[command(flatten)]
    pub options: RunOptions,
}

#[derive(Debug, Subcommand)]
pub enum Command {
    /// Run a file of SQL statements, and wait for its jobs.
    Run {
        /// The file; `-` is standard input.
        file: PathBuf,
        #[command(flatten)]
        options: RunOptions,
    },
    /// Run SQL tests: .slt files, or all of them in a directory.
    Test(TestOptions),
    /// Look into a checkpoint directory.
    Checkpoint {
        #[command(subcommand)]
        command: CheckpointCommand,
    },
}

/// How SQL is run.
#[derive(Debug, Clone, Default, Args)]
pub struct RunOptions {
    /// Set an option, as SET does; may be given several times.
    #[arg(long = "set", value_name = "KEY=VALUE", value_parser = key_value)]
    pub set: Vec<(String, String)>,
    /// Give ${NAME} in the SQL a value; may be given several times.
    #[arg(long = "var", value_name = "NAME=VALUE", value_parser = key_value)]
    pub variables: Vec<(String, String)>,
    /// Start anew, even if the checkpoint directory has a checkpoint to go on from.
    #[arg(long)]
    pub fresh: bool,
    /// Go on from a checkpoint although a part of its state has no place in the changed SQL.
    #[arg(long)]
    pub allow_non_restored_state: bool,
    /// Where checkpoints go (execution.checkpointing.dir).
    #[arg(long, value_name = "DIR")]
    pub checkpoint_dir: Option<String>,
    /// Keep databases, tables, views and functions in this file between runs, except TEMPORARY ones.
    #[arg(long, value_name = "FILE")]
    pub catalog: Option<PathBuf>,
    /// How results of queries are written.
    #[arg(long, value_enum, value_name = "FORMAT")]
    pub format: Option<ResultFormat>,
}

/// How results are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum ResultFormat {
    /// Drawn, as rows come.
    Table,
    /// Comma-separated, with a header.
    Csv,
    /// One JSON object a line.
    Json,
    /// One change a line: `+I Mary | 1`.
    Changelog,
}

/// How SQL tests are run.
#[derive(Debug, Clone, Args)]
pub struct TestOptions {
    /// Files and directories.
    #[arg(required = true, value_name = "PATH")]
    pub paths: Vec<PathBuf>,
    /// Files that run at the same time; the number of cores by default.
    #[arg(long, value_name = "N")]
    pub jobs: Option<usize>,
    /// Seconds after which a record fails.
    #[arg(long, default_value_t = 20.0, value_name = "SECONDS", value_parser = seconds)]
    pub timeout: f64,
    /// Parallelism of the jobs; with more than 1 the order of rows is free and not compared.
    #[arg(long, default_value_t = 1, value_name = "N")]
    pub parallelism: usize,
    /// Set an option before each file, as SET does.
    #[arg(long = "set", value_name = "KEY=VALUE", value_parser = key_value)]
    pub set: Vec<(String, String)>,
    /// Print passed and failed for each directory and file.
    #[arg(long)]
    pub summary: bool,
    /// How the outcome is printed.
    #[arg(long, value_enum, default_value_t = ReportFormat::Text, value_name = "FORMAT")]
    pub report: ReportFormat,
}

/// How the outcome of tests is printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum ReportFormat {
    /// Each failure with its difference.
    Text,
    /// One JSON object a record.
    Json,
}

#[derive(Debug, Subcommand)]
pub enum CheckpointCommand {
    /// List the checkpoints of a directory.
    Ls {
        /// The checkpoint directory of one or more jobs.
        directory: PathBuf,
    },
    /// Show what a checkpoint holds.
    Show {
        /// The checkpoint directory.
        directory: PathBuf,
        /// Its number; the newest by default.
        id: Option<u64>,
    },
}

fn key_value(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((key, value)) if !key.trim().is_empty() => Ok((key.trim().to_string(), value.trim().to_string())),
        _ => Err("expected KEY=VALUE".to_string()),
    }
}

fn seconds(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        // The upper bound keeps it within what a Duration and a clock can hold.
        Ok(seconds) if seconds > 0.0 && seconds <= 1e9 => Ok(seconds),
        _ => Err("expected a number of seconds greater than 0".to_string()),
    }
}
