//! `ebbflow test`: SQL tests as text, in the sqllogictest form of `grammar-tests/conformance/README.md`.
//!
//! ```text
//! statement ok
//! CREATE TABLE clicks (`user` STRING) WITH ('connector' = 'filesystem', 'path' = '{{DATA}}/clicks.csv', 'format' = 'csv')
//!
//! query TT
//! SELECT `user`, COUNT(*) FROM clicks GROUP BY `user`
//! ----
//! +I Mary | 1
//! +I Bob | 1
//! -U Mary | 1
//! +U Mary | 2
//! ```
//!
//! [`read`] turns a file into records, [`execute`] runs one record and gives its lines, [`judge`] compares them with what
//! was expected, [`report`] tells of it. Every file has a session of its own; files run beside each other.

mod difference;
mod execute;
mod judge;
mod read;
mod report;

use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::Flow;
use super::arguments::TestOptions;
use super::ending::Ending;

pub use judge::Verdict;

/// A record and what came of it.
pub struct Judged {
    pub record: read::Record,
    pub verdict: Verdict,
}

/// A file and what came of its records.
pub struct JudgedFile {
    /// Its path below the directory that was asked for, or its name.
    pub name: String,
    pub records: Vec<Judged>,
}

/// Runs the tests and reports.
///
/// # Errors
/// If a file cannot be read, or a record fails.
pub fn main(options: &TestOptions) -> Flow {
    let mut files = Vec::new();
    for path in &options.paths {
        find(path, path, &mut files)?;
    }
    if files.is_empty() {
        return Err(Ending::setup("there is no .slt file in the given paths"));
    }
    execute::keep_panics_quiet();
    let judged = run_all(&files, options)?;
    report::print(&judged, options)?;
    let failed = judged.iter().flat_map(|file| &file.records).any(|judged| judged.verdict.is_failure());
    if failed { Err(Ending::Reported) } else { Ok(()) }
}

/// A file to run and its name in reports.
struct Found {
    path: PathBuf,
    name: String,
}

fn find(root: &Path, path: &Path, files: &mut Vec<Found>) -> Flow {
    let broken = |error| Ending::setup(format!("cannot read '{}': {error}", path.display()));
    if !std::fs::metadata(path).map_err(broken)?.is_dir() {
        let below = path.strip_prefix(root).ok().filter(|name| !name.as_os_str().is_empty());
        files.push(Found { path: path.to_path_buf(), name: below.unwrap_or(path).display().to_string() });
        return Ok(());
    }
    let entries = std::fs::read_dir(path).and_then(Iterator::collect::<std::io::Result<Vec<_>>>);
    let mut entries: Vec<PathBuf> = entries.map_err(broken)?.into_iter().map(|entry| entry.path()).collect();
    entries.sort();
    for entry in entries {
        if entry.is_dir() || entry.extension().is_some_and(|extension| extension == "slt") {
            find(root, &entry, files)?;
        }
    }
    Ok(())
}

fn run_all(files: &[Found], options: &TestOptions) -> Flow<Vec<JudgedFile>> {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let workers = options.jobs.unwrap_or(cores).clamp(1, files.len());
    let next = AtomicUsize::new(0);
    let done: Vec<Mutex<Option<Flow<JudgedFile>>>> = files.iter().map(|_| Mutex::new(None)).collect();
    std::thread::scope(|scope| {
        for _ in 0..workers {
            scope.spawn(|| {
                loop {
                    let index = next.fetch_add(1, Ordering::Relaxed);
                    let Some(found) = files.get(index) else { break };
                    let result = run_file(found, options);
                    *done[index].lock().unwrap_or_else(std::sync::PoisonError::into_inner) = Some(result);
                }
            });
        }
    });
    let results = done.into_iter().map(|slot| slot.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner));
    results.map(|result| result.unwrap_or(Err(Ending::Reported))).collect()
}

fn run_file(found: &Found, options: &TestOptions) -> Flow<JudgedFile> {
    let text = std::fs::read_to_string(&found.path)
        .map_err(|error| Ending::setup(format!("cannot read '{}': {error}", found.path.display())))?;
    let mut place = execute::Place::of(&found.path, options)?;
    let records = read::records(&text).into_iter().map(|record| {
        let verdict = match &record.kind {
            _ if record.skipped => Verdict::Skipped,
            read::Kind::Unreadable(problem) => Verdict::Failed(problem.clone()),
            _ => {
                let ran = place.execute(&record.sql);
                let verdict = judge::judge(&record, ran, options.parallelism > 1);
                verdict.with_printed(&place.printed())
            }
        };
        Judged { record, verdict }
    });
    Ok(JudgedFile { name: found.name.clone(), records: records.collect() })
}
