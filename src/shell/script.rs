//! Running SQL text that is all there: a file, `-e`, or standard input.

use std::io::{IsTerminal, Read};
use std::path::Path;
use std::sync::Arc;

use ebbflow::{Engine, ErrorKind, Outcome, ScriptStatement, Session};

use super::Flow;
use super::arguments::{ResultFormat, RunOptions};
use super::console::Terminal;
use super::ending::{Ending, Source};
use super::interrupt::Interrupts;
use super::output::{self, View};
use super::{jobs, variables};

/// Runs a file; `-` is standard input.
///
/// # Errors
/// If the file cannot be read, or as [`run_text`].
pub fn run_file(file: &Path, options: &RunOptions) -> Flow {
    if file.as_os_str() == "-" {
        return run_input(options);
    }
    let name = file.display().to_string();
    let bytes = std::fs::read(file).map_err(|error| Ending::setup(format!("cannot read '{name}': {error}")))?;
    run_text(&name, &text_of(&name, bytes)?, options)
}

/// Runs what comes on standard input.
///
/// # Errors
/// As [`run_text`].
pub fn run_input(options: &RunOptions) -> Flow {
    let mut bytes = Vec::new();
    std::io::stdin()
        .read_to_end(&mut bytes)
        .map_err(|error| Ending::setup(format!("cannot read standard input: {error}")))?;
    run_text("stdin", &text_of("stdin", bytes)?, options)
}

fn text_of(name: &str, bytes: Vec<u8>) -> Flow<String> {
    String::from_utf8(bytes).map_err(|error| {
        let at = error.utf8_error().valid_up_to();
        Ending::setup(format!("'{name}' is not text: byte {at} is not valid UTF-8"))
    })
}

/// Runs a script to the end of its last job.
///
/// # Errors
/// The first statement that fails; a job that fails.
pub fn run_text(name: &str, text: &str, options: &RunOptions) -> Flow {
    let text = variables::substitute(text, &options.variables).map_err(|error| {
        let place = Source { name: Some(name), text };
        Ending::Failed { kind: error.kind(), text: place.render(&error, 1, text) }
    })?;
    let terminal = Arc::new(Terminal::default());
    let engine = engine(&terminal, options)?;
    let session = prepared(&engine, options)?;
    let place = Source { name: Some(name), text: &text };
    let statements = session.split(&text).map_err(|error| Ending::of_statement(&error, &place, 1, &text))?;
    engine.block_on(async {
        let mut interrupts = Interrupts::listen()?;
        let mut runner = Runner { session, terminal: &terminal, format: options.format, jobs: Vec::new() };
        let mut ending = Ok(());
        for statement in &statements {
            ending = runner.statement(statement, &place, &mut interrupts).await;
            if ending.is_err() {
                break;
            }
        }
        match ending {
            // Leaving is not failing: what was started runs to its end.
            Ok(()) | Err(Ending::OutputClosed | Ending::Quit) => {
                jobs::wait(runner.jobs, &terminal, &mut interrupts).await.and(ending)
            }
            Err(Ending::Interrupted) => {
                stop_all(&runner.jobs).await;
                jobs::wait(runner.jobs, &terminal, &mut interrupts).await.and(ending)
            }
            // A script that is wrong stops as a whole: what it started would wait for nobody.
            Err(failure) => {
                runner.jobs.iter().for_each(ebbflow::Job::cancel);
                Err(failure)
            }
        }
    })
}

/// An engine with the command line's options.
///
/// # Errors
/// If the catalog's file cannot be used.
pub fn engine(terminal: &Arc<Terminal>, options: &RunOptions) -> Flow<Engine> {
    let builder = Engine::builder().console(terminal.clone());
    let builder = match &options.catalog {
        Some(file) => builder.catalog(file),
        None => builder,
    };
    Ok(builder.build()?)
}

/// A session with the command line's options.
///
/// # Errors
/// If an option's value is not valid.
pub fn prepared(engine: &Engine, options: &RunOptions) -> Flow<Session> {
    let session = engine.session();
    if let Some(directory) = &options.checkpoint_dir {
        session.set("execution.checkpointing.dir", directory)?;
    }
    if options.fresh {
        session.set("execution.state-recovery.fresh", "true")?;
    }
    if options.allow_non_restored_state {
        session.set("execution.state-recovery.ignore-unclaimed-state", "true")?;
    }
    for (key, value) in &options.set {
        let wrong = |error: ebbflow::Error| Ending::Failed {
            kind: ErrorKind::Setup,
            text: error.context(format!("--set {key}={value}")).render(""),
        };
        session.set(key, value).map_err(wrong)?;
    }
    Ok(session)
}

async fn stop_all(jobs: &[ebbflow::Job]) {
    for job in jobs {
        if job.stop().await.is_err() {
            job.cancel();
        }
    }
}

struct Runner<'a> {
    session: Session,
    terminal: &'a Terminal,
    format: Option<ResultFormat>,
    jobs: Vec<ebbflow::Job>,
}

impl Runner<'_> {
    async fn statement(
        &mut self,
        statement: &ScriptStatement,
        place: &Source<'_>,
        interrupts: &mut Interrupts,
    ) -> Flow {
        match statement.client.as_deref() {
            Some("QUIT") => return Err(Ending::Quit),
            Some(_) => return Ok(()),
            None => {}
        }
        let outcome = tokio::select! {
            outcome = self.session.execute(&statement.text) => outcome,
            () = interrupts.next() => return Err(Ending::Interrupted),
        };
        let outcome = outcome.map_err(|error| Ending::of_statement(&error, place, statement.line, &statement.text))?;
        let view = View::of(&self.session, self.format, std::io::stdout().is_terminal())?;
        match outcome {
            Outcome::Done(_) => Ok(()),
            Outcome::Warned(_, fault) => {
                eprintln!("{}", place.warning(&fault, statement.line, &statement.text));
                Ok(())
            }
            Outcome::Rows(rows) => output::print_rows(&rows, view, self.session.zone(), self.terminal),
            Outcome::Query(changes) => {
                output::print_changes(changes, view, self.session.zone(), self.terminal, interrupts).await
            }
            Outcome::Job(job) => {
                if self.session.option("table.dml-sync").as_deref() == Some("true") {
                    return jobs::wait(vec![job], self.terminal, interrupts).await;
                }
                self.jobs.push(job);
                Ok(())
            }
        }
    }
}
