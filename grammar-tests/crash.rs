//! The crash matrix: the process dies at each named place in the source, and what is committed in the end is what a run
//! without a crash commits.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::time::{Duration, Instant};

use crate::ebbflow::{files_below, root};
use crate::exactly_once::{check, check_leftovers, errors, line_of, start, write_jobs};

/// Places that are passed only by a start that finds what an earlier one has left, and the crash that leaves it.
const IN_RECOVERY: &[(&str, &str)] =
    &[("recovery_one_sink_committed", "file_linked:1"), ("leftover_removed", "file_synced:1")];

/// Places that a start passes once at most.
const ONCE: &[&str] = &["lease_taken", "recovered"];

/// The names of all places at which the source lets a test crash it.
fn places() -> BTreeSet<String> {
    let mut places = BTreeSet::new();
    for file in files_below(&root().join("src")) {
        let text = fs::read_to_string(&file).expect("the source can be read");
        for mark in ["crash_point(\"", "half: \"", "unsynced: \""] {
            let names = text.split(mark).skip(1).filter_map(|rest| rest.split('"').next());
            places.extend(names.map(str::to_string));
        }
    }
    places
}

#[test]
fn wherever_the_process_dies_nothing_is_lost_and_nothing_doubled() {
    let places = places();
    assert!(places.len() >= 26, "places are missing: {places:?}");
    let mut scenarios: Vec<Vec<String>> = Vec::new();
    for place in &places {
        match IN_RECOVERY.iter().find(|(name, _)| name == place) {
            Some((_, before)) => scenarios.push(vec![before.to_string(), format!("{place}:1")]),
            None => scenarios.push(vec![format!("{place}:1")]),
        }
        if !ONCE.contains(&place.as_str()) && IN_RECOVERY.iter().all(|(name, _)| name != place) {
            // Twice in a row: recovery itself is cut short, and the second time at another parallelism.
            scenarios.push(vec![format!("{place}:2"), format!("{place}:1")]);
        }
    }
    let next = std::sync::atomic::AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                while let Some(crashes) = scenarios.get(next.fetch_add(1, std::sync::atomic::Ordering::Relaxed)) {
                    survive(crashes);
                }
            });
        }
    });
}

/// Rows of the input, in files that come one after the other while the job runs: so that several checkpoints hold rows.
const ROWS: usize = 3_000;
const FILES: usize = 15;

/// Lets the job die at each of the places in turn, then run to its end.
fn survive(crashes: &[String]) {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let folder = folder.path();
    write_jobs(folder);
    let mut files = 0..FILES;
    write_input(folder, files.next().unwrap_or_default());
    for (run, crash) in crashes.iter().enumerate() {
        let mut child = start(folder, "growing.sql", run + 1, "20 ms", crash);
        let begun = Instant::now();
        let last = FILES * (run + 1) / (crashes.len() + 1);
        let mut seen = newest_checkpoint(folder);
        let status = loop {
            if let Some(status) = child.try_wait().expect("the job's status") {
                break status;
            }
            // The next file comes when the ones before are in a checkpoint, however slow the machine is.
            let newest = newest_checkpoint(folder);
            if newest != seen && files.start < last {
                seen = newest;
                files.next().into_iter().for_each(|file| write_input(folder, file));
            }
            if begun.elapsed() > Duration::from_secs(20) {
                child.kill().expect("SIGKILL");
                child.wait().expect("the killed job");
                panic!("{crashes:?}: the job never came by {crash}");
            }
            std::thread::sleep(Duration::from_millis(5));
        };
        assert_eq!(status.signal(), Some(9), "{crashes:?}: the job ended by itself: {}", errors(folder));
    }
    files.for_each(|file| write_input(folder, file));
    let status = start(folder, "bounded.sql", 2, "20 ms", "").wait().expect("the last run");
    assert!(status.success(), "{crashes:?}: {}", errors(folder));
    check(folder, ROWS);
    check_leftovers(folder);
}

/// The name of the newest manifest.
fn newest_checkpoint(folder: &Path) -> Option<String> {
    let jobs = fs::read_dir(folder.join("checkpoints")).ok()?.flatten();
    let files = jobs.filter_map(|job| fs::read_dir(job.path()).ok()).flat_map(|files| files.flatten());
    let names = files.map(|file| file.file_name().to_string_lossy().into_owned());
    names.filter(|name| name.starts_with("manifest-") && name.ends_with(".json")).max()
}

fn write_input(folder: &Path, file: usize) {
    let text: String = (ROWS * file / FILES..ROWS * (file + 1) / FILES).map(line_of).collect();
    fs::write(folder.join(format!("in/clicks-{file:02}.csv")), text).expect("input is written");
}
