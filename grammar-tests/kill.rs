//! Exactly once under `kill -9`: a job over a growing directory is killed at random times and started again, and what it
//! committed is in the end what a run without a crash commits.
//!
//! `EBBFLOW_KILL_RUNS` says how many kills (10 if not set), `EBBFLOW_KILL_ROWS` how many rows flow (200,000).

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

const FILES: usize = 20;

/// Source and sinks of the job; the folder and the source's monitor interval are filled in.
const JOB: &str = "
CREATE TABLE clicks (k INT, v BIGINT, ts TIMESTAMP(3), WATERMARK FOR ts AS ts - INTERVAL '1' SECOND)
  WITH ('connector' = 'filesystem', 'path' = '{folder}/in', 'format' = 'csv'{monitor});
CREATE TABLE by_key (k INT, n BIGINT, total BIGINT)
  WITH ('connector' = 'filesystem', 'path' = '{folder}/by_key', 'format' = 'debezium-json');
CREATE TABLE by_window (k INT, window_start TIMESTAMP(3), n BIGINT, total BIGINT)
  WITH ('connector' = 'filesystem', 'path' = '{folder}/by_window', 'format' = 'csv');
EXECUTE STATEMENT SET BEGIN
  INSERT INTO by_key SELECT k, COUNT(*), SUM(v) FROM clicks GROUP BY k;
  INSERT INTO by_window SELECT k, window_start, COUNT(*), SUM(v)
    FROM TABLE(TUMBLE(TABLE clicks, DESCRIPTOR(ts), INTERVAL '1' SECOND)) GROUP BY k, window_start, window_end;
END;
";

#[test]
fn killed_at_any_time_nothing_is_lost_and_nothing_doubled() {
    let rows: usize = setting("EBBFLOW_KILL_ROWS", 200_000);
    let runs: usize = setting("EBBFLOW_KILL_RUNS", 10);
    let folder = tempfile::tempdir().expect("a temporary folder");
    let folder = folder.path();
    fs::create_dir(folder.join("in")).expect("the input's folder");
    write_jobs(folder);
    let fed = AtomicBool::new(false);
    let mut kills = 0;
    std::thread::scope(|scope| {
        scope.spawn(|| {
            feed(&folder.join("in"), rows, Duration::from_millis(400 * runs as u64));
            fed.store(true, Ordering::Release);
        });
        let mut random = Random(0xebbf_1099);
        while kills < runs || !fed.load(Ordering::Acquire) {
            // Another parallelism every third time: state moves between subtasks.
            let parallelism = [1, 2, 1, 2, 2, 4][kills % 6];
            let mut child = start(folder, "growing.sql", parallelism);
            let alive = Duration::from_millis(50 + random.next() % 700);
            let begun = Instant::now();
            while begun.elapsed() < alive {
                if let Some(status) = child.try_wait().expect("the job's status") {
                    let errors = fs::read_to_string(folder.join("stderr")).unwrap_or_default();
                    panic!(
                        "the job over a growing folder ended by itself with {status} after {kills} kills:\n{errors}"
                    );
                }
                std::thread::sleep(Duration::from_millis(5));
            }
            child.kill().expect("SIGKILL");
            child.wait().expect("the killed job");
            kills += 1;
        }
    });
    let status = start(folder, "bounded.sql", 2).wait().expect("the last run");
    let errors = fs::read_to_string(folder.join("stderr")).unwrap_or_default();
    assert!(status.success(), "the last run failed with {status}:\n{errors}");
    check(folder, rows);
}

fn write_jobs(folder: &Path) {
    let job = JOB.replace("{folder}", &folder.display().to_string());
    let growing = job.replace("{monitor}", ", 'source.monitor-interval' = '20 ms'");
    fs::write(folder.join("growing.sql"), growing).expect("the script");
    fs::write(folder.join("bounded.sql"), job.replace("{monitor}", "")).expect("the script");
}

fn start(folder: &Path, script: &str, parallelism: usize) -> Child {
    let checkpoints = folder.join("checkpoints");
    Command::new(env!("CARGO_BIN_EXE_ebbflow"))
        .arg("run")
        .arg(folder.join(script))
        .args(["--set", &format!("parallelism.default={parallelism}")])
        .args(["--set", "execution.checkpointing.interval=100 ms"])
        .args(["--set", &format!("execution.checkpointing.dir={}", checkpoints.display())])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(File::create(folder.join("stderr")).expect("a file for errors"))
        .spawn()
        .expect("the program starts")
}

/// Row `row` of the input: key, value, and milliseconds of event time.
fn row_of(row: usize) -> (usize, u64, usize) {
    let mut random = Random(row as u64);
    (random.next() as usize % 97, random.next() % 1_000, row)
}

/// Writes the rows over time: files in order, each growing in pieces that end anywhere within a line.
fn feed(folder: &Path, rows: usize, over: Duration) {
    let begun = Instant::now();
    for file in 0..FILES {
        let path = folder.join(format!("clicks-{file:03}.csv"));
        let mut out = BufWriter::with_capacity(7_919, File::create(path).expect("an input file"));
        for row in rows * file / FILES..rows * (file + 1) / FILES {
            let (key, value, millisecond) = row_of(row);
            let (minute, second) = (millisecond / 60_000 % 60, millisecond / 1_000 % 60);
            let hour = millisecond / 3_600_000;
            writeln!(out, "{key},{value},2026-01-01 {hour:02}:{minute:02}:{second:02}.{:03}", millisecond % 1_000)
                .expect("input is written");
            if row % 1_000 == 0 {
                let due = over.mul_f64(row as f64 / rows as f64);
                std::thread::sleep(due.saturating_sub(begun.elapsed()));
            }
        }
        out.flush().expect("input is written");
    }
}

/// Compares what was committed with what the input says.
fn check(folder: &Path, rows: usize) {
    let mut by_key: BTreeMap<usize, (u64, u64)> = BTreeMap::new();
    let mut by_window: BTreeMap<(usize, usize), (u64, u64)> = BTreeMap::new();
    for row in 0..rows {
        let (key, value, millisecond) = row_of(row);
        for entry in [by_key.entry(key).or_default(), by_window.entry((millisecond / 1_000, key)).or_default()] {
            *entry = (entry.0 + 1, entry.1 + value);
        }
    }
    let mut windows: BTreeMap<(usize, usize), (u64, u64)> = BTreeMap::new();
    for line in committed_lines(&folder.join("by_window")) {
        let fields: Vec<&str> = line.split(',').collect();
        let [key, start, count, total] = fields[..] else { panic!("a committed line has other fields: {line}") };
        let number = |text: &str| text.parse::<u64>().unwrap_or_else(|_| panic!("not a number in {line}"));
        let at = |from: usize| number(&start.trim_matches('"')[from..from + 2]) as usize;
        let second = at(11) * 3_600 + at(14) * 60 + at(17);
        let twice = windows.insert((second, number(key) as usize), (number(count), number(total)));
        assert!(twice.is_none(), "the window of key {key} at {start} was committed twice");
    }
    assert!(windows == by_window, "windows differ: {} committed, {} expected", windows.len(), by_window.len());
    check_changelog(folder, &by_key);
}

/// The committed changelog, folded: every old image must be there when it is taken back, and the rest is the answer.
fn check_changelog(folder: &Path, expected: &BTreeMap<usize, (u64, u64)>) {
    let mut counts: BTreeMap<(u64, u64, u64), i64> = BTreeMap::new();
    let mut changes_of_key: BTreeMap<u64, u64> = BTreeMap::new();
    for line in committed_lines(&folder.join("by_key")) {
        let change: serde_json::Value = serde_json::from_str(&line).unwrap_or_else(|e| panic!("{e} in {line}"));
        let image = |side: &str| {
            let row = &change[side];
            let field = |name: &str| row[name].as_u64();
            Some((field("k")?, field("n")?, field("total")?))
        };
        if let Some(row) = image("before") {
            *counts.entry(row).or_default() -= 1;
        }
        if let Some(row) = image("after") {
            *counts.entry(row).or_default() += 1;
            *changes_of_key.entry(row.0).or_default() += 1;
        }
    }
    counts.retain(|_, count| *count != 0);
    let final_rows: BTreeMap<(u64, u64, u64), i64> =
        expected.iter().map(|(key, (count, total))| ((*key as u64, *count, *total), 1)).collect();
    assert!(counts == final_rows, "the folded changelog differs: {} rows, {} expected", counts.len(), final_rows.len());
    for (key, (count, _)) in expected {
        assert_eq!(changes_of_key.get(&(*key as u64)), Some(count), "one new image a click of key {key}");
    }
}

/// Lines of all published files: not of those that are staged or hidden.
fn committed_lines(folder: &Path) -> Vec<String> {
    let mut files: Vec<PathBuf> =
        fs::read_dir(folder).expect("the sink's folder").map(|e| e.expect("an entry").path()).collect();
    files.retain(|path| {
        path.is_file() && path.file_name().is_some_and(|n| !n.to_string_lossy().starts_with(['_', '.']))
    });
    files.sort();
    files
        .iter()
        .flat_map(|path| {
            fs::read_to_string(path).expect("a committed file").lines().map(str::to_string).collect::<Vec<_>>()
        })
        .collect()
}

fn setting(name: &str, default: usize) -> usize {
    std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(default)
}

/// Numbers from a seed (SplitMix64).
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }
}
