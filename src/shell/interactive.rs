//! The shell: a person types statements, results come as they are computed.

use std::io::IsTerminal;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use ebbflow::{Engine, Job, Outcome, ScriptStatement, Session};
use futures::FutureExt;
use rustyline::error::ReadlineError;
use rustyline::history::DefaultHistory;
use rustyline::{CompletionType, Config, Editor};

use super::arguments::RunOptions;
use super::completion::Completion;
use super::console::Terminal;
use super::ending::{Ending, Source};
use super::interrupt::Interrupts;
use super::output::{self, View};
use super::{Flow, input, jobs, script};

const PROMPT: &str = "ebbflow> ";
const CONTINUED: &str = "      -> ";

const HELP: &str = "\
Statements end with a semicolon and may span lines.

  CREATE TABLE t (…) WITH ('connector' = '…', …);   declare a table
  SELECT …;                                         run a query; Ctrl-C stops it
  INSERT INTO t SELECT …;                           start a job in the background
  EXPLAIN CHANGELOG_MODE SELECT …;                  show how a query will be computed
  SHOW TABLES;  DESCRIBE t;                         what there is
  SET;  SET 'key' = 'value';  RESET 'key';          options
  SET 'sql-client.execution.result-mode' = 'tableau' | 'changelog' | 'table';
  WHY                                               why no rows come out of the jobs that run
  CLEAR   clear the screen          QUIT or Ctrl-D   leave
";

/// Runs the shell; without a terminal, runs the script on standard input.
///
/// # Errors
/// If the terminal cannot be used or the history file is a path that cannot be.
pub fn main(options: &RunOptions, history: Option<&Path>) -> Flow {
    if !std::io::stdin().is_terminal() {
        return script::run_input(options);
    }
    let terminal = Arc::new(Terminal::default());
    let engine = script::engine(&terminal, options)?;
    let session = script::prepared(&engine, options)?;
    let config = Config::builder().completion_type(CompletionType::List).auto_add_history(false).build();
    let mut editor = Editor::<Completion, DefaultHistory>::with_config(config).map_err(broken_terminal)?;
    editor.set_helper(Some(Completion::new(session.clone())));
    let history = history.map(Path::to_path_buf).or_else(default_history);
    if let Some(path) = &history {
        // The first time there is none.
        let _ = editor.load_history(path);
    }
    let mut shell = Shell { engine, session, terminal, options, jobs: Vec::new() };
    println!("Ebbflow {} — HELP for help, QUIT or Ctrl-D to leave", env!("CARGO_PKG_VERSION"));
    let ending = shell.read_all(&mut editor);
    if let Some(path) = &history
        && let Err(error) = editor.save_history(path)
    {
        eprintln!("cannot save the history to '{}': {error}", path.display());
    }
    shell.leave()?;
    ending
}

fn default_history() -> Option<PathBuf> {
    std::env::var_os("HOME").map(|home| Path::new(&home).join(".ebbflow_history"))
}

fn broken_terminal(error: ReadlineError) -> Ending {
    Ending::setup(format!("cannot use the terminal: {error}"))
}

struct Shell<'a> {
    engine: Engine,
    session: Session,
    terminal: Arc<Terminal>,
    options: &'a RunOptions,
    jobs: Vec<Job>,
}

impl Shell<'_> {
    fn read_all(&mut self, editor: &mut Editor<Completion, DefaultHistory>) -> Flow {
        let mut typed = String::new();
        loop {
            self.tell_of_ended_jobs();
            match editor.readline(if typed.is_empty() { PROMPT } else { CONTINUED }) {
                Ok(line) => {
                    typed.push_str(&line);
                    typed.push('\n');
                }
                // What was typed is thrown away, the shell stays.
                Err(ReadlineError::Interrupted) => {
                    typed.clear();
                    continue;
                }
                Err(ReadlineError::Eof) => return Ok(()),
                Err(error) => return Err(broken_terminal(error)),
            }
            if input::is_blank(&typed) {
                typed.clear();
                continue;
            }
            if !input::is_complete(&typed) {
                continue;
            }
            let text = std::mem::take(&mut typed);
            // A line too long for the history is still a statement.
            let _ = editor.add_history_entry(text.trim_end());
            match self.run(&text) {
                Err(Ending::Quit) => return Ok(()),
                Err(Ending::Interrupted) => println!("stopped"),
                Err(Ending::Failed { text, .. }) => eprintln!("{text}"),
                Err(Ending::OutputClosed) => return Err(Ending::OutputClosed),
                Ok(()) | Err(Ending::Reported) => {}
            }
        }
    }

    fn run(&mut self, text: &str) -> Flow {
        let place = Source { name: None, text };
        let statements = self.session.split(text).map_err(|error| Ending::of_statement(&error, &place, 1, text))?;
        statements.iter().try_for_each(|statement| self.statement(statement, &place))
    }

    fn statement(&mut self, statement: &ScriptStatement, place: &Source<'_>) -> Flow {
        match statement.client.as_deref() {
            Some("QUIT") => return Err(Ending::Quit),
            Some("CLEAR") => return Ok(self.terminal.print("\x1b[H\x1b[2J")?),
            Some("WHY") => return self.why(),
            Some(_) => return Ok(self.terminal.print(HELP)?),
            None => {}
        }
        let engine = self.engine.clone();
        engine.block_on(async {
            let mut interrupts = Interrupts::listen()?;
            let outcome = tokio::select! {
                outcome = self.session.execute(&statement.text) => outcome,
                () = interrupts.next() => return Err(Ending::Interrupted),
            };
            let outcome =
                outcome.map_err(|error| Ending::of_statement(&error, place, statement.line, &statement.text))?;
            if let Outcome::Warned(_, fault) = &outcome {
                eprintln!("{}", place.warning(fault, statement.line, &statement.text));
            }
            self.show(outcome, &mut interrupts).await
        })
    }

    async fn show(&mut self, outcome: Outcome, interrupts: &mut Interrupts) -> Flow {
        let view = View::of(&self.session, self.options.format, std::io::stdout().is_terminal())?;
        match outcome {
            Outcome::Done(word) | Outcome::Warned(word, _) => Ok(self.terminal.print(&format!("{word}\n"))?),
            Outcome::Rows(rows) => output::print_rows(&rows, view, self.session.zone(), &self.terminal),
            Outcome::Query(changes) => {
                output::print_changes(changes, view, self.session.zone(), &self.terminal, interrupts).await
            }
            Outcome::Job(job) if self.session.option("table.dml-sync").as_deref() == Some("true") => {
                jobs::wait(vec![job], &self.terminal, interrupts).await
            }
            Outcome::Job(job) => {
                self.terminal.print(&format!("Job started: {}\n", job.name()))?;
                self.jobs.push(job);
                Ok(())
            }
        }
    }

    /// Says of each running job what it is doing and why nothing comes out of it.
    fn why(&self) -> Flow {
        let mut text = String::new();
        for job in &self.jobs {
            text.push_str(&format!("{}\n{}\n", job.name(), job.diagnose()));
        }
        if self.jobs.is_empty() {
            text.push_str(
                "No job is running. A query without rows says why when it ends, or is stopped with Ctrl-C.\n",
            );
        }
        Ok(self.terminal.print(&text)?)
    }

    /// Says what jobs did that have ended since the last statement.
    fn tell_of_ended_jobs(&mut self) {
        let engine = self.engine.clone();
        self.jobs.retain(|job| match engine.block_on(async { job.wait().now_or_never() }) {
            None => true,
            Some(result) => {
                // A failure has been told; the shell goes on.
                let _ = jobs::report(job, result);
                false
            }
        });
    }

    /// Stops what still runs, with a last checkpoint.
    fn leave(self) -> Flow {
        let Shell { engine, terminal, jobs, .. } = self;
        if jobs.is_empty() {
            return Ok(());
        }
        eprintln!("stopping {} with a last checkpoint; press Ctrl-C to stop at once", counted(jobs.len()));
        engine.block_on(async {
            let mut interrupts = Interrupts::listen()?;
            let stopping = futures::future::join_all(jobs.iter().map(Job::stop));
            tokio::select! {
                _ = stopping => jobs::wait(jobs, &terminal, &mut interrupts).await,
                () = interrupts.next() => Err(Ending::Interrupted),
            }
        })
    }
}

fn counted(jobs: usize) -> String {
    if jobs == 1 { "1 job".into() } else { format!("{jobs} jobs") }
}
