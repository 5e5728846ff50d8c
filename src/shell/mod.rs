//! The command line: the shell, `run`, `-e`, `test` and `checkpoint`.
//!
//! `ebbflow -e "SELECT …"` passes through like this: [`arguments`] reads the command line, [`script`] splits the text
//! into statements and executes one after the other, a query's changes go to [`output`], which draws them as a table,
//! as CSV, JSON or changelog lines. Jobs (`INSERT`) run beside each other; [`jobs`] waits for them, shows how far they
//! are, and says at the end what they did. [`interactive`] is the same with a person typing. [`slt`] runs SQL tests.
//!
//! Exit codes: 0 all is well, 1 something is wrong with SQL or data, 2 with the command line or the setup, 130 stopped
//! by Ctrl-C.

mod arguments;
mod checkpoints;
mod completion;
mod console;
mod ending;
mod fold;
mod input;
mod interactive;
mod interrupt;
mod jobs;
mod json;
mod output;
mod script;
mod slt;
mod table;
mod variables;

use std::process::ExitCode;

use clap::Parser;

use arguments::{Arguments, Command};
use ending::Ending;

/// Reads the command line and does what it says.
pub fn main() -> ExitCode {
    let arguments = Arguments::parse();
    keep_decoder_quiet();
    let ending = match arguments.command {
        Some(Command::Run { file, options }) => script::run_file(&file, &options),
        Some(Command::Test(test)) => slt::main(&test),
        Some(Command::Checkpoint { command }) => checkpoints::main(&command),
        None => match &arguments.execute {
            Some(sql) => script::run_text("-e", sql, &arguments.options),
            None => interactive::main(&arguments.options, arguments.history.as_deref()),
        },
    };
    match ending {
        Ok(()) => ExitCode::SUCCESS,
        Err(ending) => ending.report(),
    }
}

/// The decoder of Parquet gives up on some damaged files by a panic, which is caught and told as the job's error: telling
/// it once is enough.
fn keep_decoder_quiet() {
    let usual = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        if !panic.location().is_some_and(|place| place.file().contains("/parquet-")) {
            usual(panic);
        }
    }));
}

type Flow<T = ()> = Result<T, Ending>;
