//! Running one record: its SQL in the file's session, its result as lines.

use std::cell::RefCell;
use std::panic::AssertUnwindSafe;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, mpsc};
use std::time::Duration;

use ebbflow::{Changes, Engine, Error, Outcome, Result, RowFormat, Session};

use super::super::Flow;
use super::super::arguments::TestOptions;
use super::super::console::Captured;
use super::super::ending::Ending;
use super::super::fold::Folded;
use super::super::output::{RESULT_MODE, changelog_line};

/// Stack of the thread that runs a record: as large as a main thread's.
const STACK_BYTES: usize = 8 << 20;

/// How long a record that is past its time may take to give up before its thread is left alone.
const GRACE: Duration = Duration::from_secs(2);

/// What came of running SQL.
pub enum Ran {
    /// Lines, as a record expects them; none for a statement.
    Lines(Vec<String>),
    /// The error an engine gives.
    Error(Error),
    /// It took too long, or panicked: a failure whatever was expected.
    Broken(String),
}

/// Where a file's records run: a fresh session, its data folder and an empty folder of its own.
pub struct Place {
    engine: Option<Engine>,
    session: Session,
    console: Arc<Captured>,
    data: PathBuf,
    scratch: Scratch,
    timeout: Duration,
    stuck: bool,
}

impl Place {
    /// For the records of this file.
    ///
    /// # Errors
    /// If a session cannot be made.
    pub fn of(file: &Path, options: &TestOptions) -> Flow<Place> {
        let console = Arc::new(Captured::default());
        let engine = Engine::builder().parallelism(options.parallelism).console(console.clone()).build()?;
        let session = engine.session();
        session.set(RESULT_MODE, "changelog")?;
        session.set("table.local-time-zone", "UTC")?;
        for (key, value) in &options.set {
            session.set(key, value)?;
        }
        let file = std::path::absolute(file).unwrap_or_else(|_| file.to_path_buf());
        let timeout = Duration::from_secs_f64(options.timeout);
        let (data, scratch) = (data_folder(&file), Scratch::new()?);
        Ok(Place { engine: Some(engine), session, console, data, scratch, timeout, stuck: false })
    }

    /// Runs SQL to its end and gives its lines.
    pub fn execute(&mut self, sql: &str) -> Ran {
        let Some(engine) = self.engine.clone().filter(|_| !self.stuck) else {
            return Ran::Broken("not run: an earlier record of this file did not come back".into());
        };
        let data = self.data.to_string_lossy();
        let sql = sql.replace("{{DATA}}", &data).replace("{{TMP}}", &self.scratch.0.to_string_lossy());
        let (session, limit) = (self.session.clone(), self.timeout);
        let (sender, receiver) = mpsc::channel();
        let run = move || {
            let run = || engine.block_on(async { tokio::time::timeout(limit, lines(&session, &sql)).await });
            let ran = match std::panic::catch_unwind(AssertUnwindSafe(run)) {
                Ok(Ok(Ok(lines))) => Ran::Lines(lines),
                Ok(Ok(Err(error))) => Ran::Error(error),
                Ok(Err(_)) => Ran::Broken(format!("it took longer than {} s", limit.as_secs_f64())),
                Err(_) => Ran::Broken(format!("it panicked: {}", last_panic())),
            };
            // If nobody waits any more, nobody needs it.
            let _ = sender.send(ran);
        };
        if let Err(error) = std::thread::Builder::new().stack_size(STACK_BYTES).spawn(run) {
            return Ran::Broken(format!("a thread could not be started: {error}"));
        }
        receiver.recv_timeout(self.timeout.saturating_add(GRACE)).unwrap_or_else(|_| {
            self.stuck = true;
            Ran::Broken(format!("it did not come back within {} s", self.timeout.as_secs_f64()))
        })
    }

    /// What `print` tables wrote since the last call.
    pub fn printed(&self) -> String {
        self.console.take()
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        // An engine waits for its threads; one that is stuck would hold the whole run.
        if self.stuck {
            std::mem::forget(self.engine.take());
        }
    }
}

async fn lines(session: &Session, sql: &str) -> Result<Vec<String>> {
    match session.execute(sql).await? {
        Outcome::Done(_) | Outcome::Warned(..) => Ok(Vec::new()),
        Outcome::Rows(rows) => {
            let format = RowFormat::new(&rows.schema(), session.zone());
            (0..rows.num_rows()).map(|row| Ok(line("", &format.cells(&rows, row)?))).collect()
        }
        Outcome::Query(changes) => {
            let folded = session.option(RESULT_MODE).is_some_and(|mode| mode.eq_ignore_ascii_case("table"));
            query_lines(changes, folded, session.zone()).await
        }
        Outcome::Job(job) => {
            let _stopped = CancelOnDrop(&job);
            job.wait().await.map(|_| Vec::new())
        }
    }
}

/// Without this, a record past its time would leave its job running beside the next record.
struct CancelOnDrop<'a>(&'a ebbflow::Job);

impl Drop for CancelOnDrop<'_> {
    fn drop(&mut self) {
        self.0.cancel();
    }
}

async fn query_lines(mut changes: Changes, folded: bool, zone: ebbflow::TimeZone) -> Result<Vec<String>> {
    let format = RowFormat::new(&changes.schema(), zone);
    let mut lines = Vec::new();
    let mut table = Folded::default();
    while let Some(batch) = changes.next().await {
        let batch = batch?;
        let cells = format.bind(batch.rows())?;
        for row in 0..batch.len() {
            if folded {
                table.apply(batch.kind(row), cells.cells(row)?);
            } else {
                lines.push(line(batch.kind(row).symbol(), &cells.cells(row)?));
            }
        }
    }
    lines.extend(table.rows().map(|cells| line("", cells)));
    Ok(lines)
}

fn line(op: &str, cells: &[String]) -> String {
    let mut line = String::from(op);
    line.push_str(if op.is_empty() { "" } else { " " });
    changelog_line(cells, &mut line);
    line
}

/// The nearest folder named `data` beside the file or beside one of its parents.
fn data_folder(file: &Path) -> PathBuf {
    let beside = file.parent().unwrap_or(Path::new(""));
    let mut candidates = beside.ancestors().map(|folder| folder.join("data"));
    candidates.find(|folder| folder.is_dir()).unwrap_or_else(|| beside.join("data"))
}

/// An empty folder that goes away with its owner.
struct Scratch(PathBuf);

impl Scratch {
    fn new() -> Flow<Scratch> {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let path = std::env::temp_dir().join(format!("ebbflow-test-{}-{number}", std::process::id()));
        std::fs::create_dir_all(&path)
            .map_err(|error| Ending::setup(format!("cannot create '{}': {error}", path.display())))?;
        Ok(Scratch(path))
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // A leftover in the temporary folder harms nobody.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

thread_local! {
    static LAST_PANIC: RefCell<String> = const { RefCell::new(String::new()) };
}

/// Keeps a panic's message and place for the record that caused it instead of printing it.
pub fn keep_panics_quiet() {
    std::panic::set_hook(Box::new(|panic| LAST_PANIC.with(|last| *last.borrow_mut() = panic.to_string())));
}

fn last_panic() -> String {
    LAST_PANIC.with(|last| last.take())
}
