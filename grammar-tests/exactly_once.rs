//! A job whose every row must arrive once: over a growing folder, into a changelog and into closed windows, with the
//! checks on what it has committed. `kill` and `crash` run it.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use crate::ebbflow::files_below;

/// Source and sinks of the job; the folder and the source's monitor interval are filled in.
const JOB: &str = "
CREATE TABLE clicks (k INT, v BIGINT, ts TIMESTAMP(3), WATERMARK FOR ts AS ts - INTERVAL '1' SECOND)
  WITH ('connector' = 'filesystem', 'path' = '{folder}/in', 'format' = 'csv'{monitor});
CREATE TABLE by_key (k INT, n BIGINT, total BIGINT)
  WITH ('connector' = 'filesystem', 'path' = '{folder}/by_key', 'format' = 'debezium-json');
CREATE TABLE by_window (k INT, window_start TIMESTAMP(3), n BIGINT, total BIGINT)
  WITH ('connector' = 'filesystem', 'path' = '{folder}/by_window', 'format' = 'csv');
CREATE TABLE by_session (k INT, window_start TIMESTAMP(3), window_end TIMESTAMP(3), n BIGINT, total BIGINT)
  WITH ('connector' = 'filesystem', 'path' = '{folder}/by_session', 'format' = 'csv');
EXECUTE STATEMENT SET BEGIN
  INSERT INTO by_key SELECT k, COUNT(*), SUM(v) FROM clicks GROUP BY k;
  INSERT INTO by_window SELECT k, window_start, COUNT(*), SUM(v)
    FROM TABLE(TUMBLE(TABLE clicks, DESCRIPTOR(ts), INTERVAL '1' SECOND)) GROUP BY k, window_start, window_end;
  INSERT INTO by_session SELECT k, window_start, window_end, COUNT(*), SUM(v)
    FROM TABLE(SESSION(TABLE clicks PARTITION BY k, DESCRIPTOR(ts), INTERVAL '0.15' SECOND))
    GROUP BY k, window_start, window_end;
END;
";

/// The gap of the sessions in milliseconds.
const SESSION_GAP: usize = 150;

/// Writes `growing.sql` and `bounded.sql`, and makes the input's folder.
pub fn write_jobs(folder: &Path) {
    fs::create_dir_all(folder.join("in")).expect("the input's folder");
    let job = JOB.replace("{folder}", &folder.display().to_string());
    let growing = job.replace("{monitor}", ", 'source.monitor-interval' = '20 ms'");
    fs::write(folder.join("growing.sql"), growing).expect("the script");
    fs::write(folder.join("bounded.sql"), job.replace("{monitor}", "")).expect("the script");
}

/// Starts one of the scripts. `crash` is where it is to die, in the form of `EBBFLOW_CRASH`.
pub fn start(folder: &Path, script: &str, parallelism: usize, interval: &str, crash: &str) -> Child {
    let checkpoints = folder.join("checkpoints");
    Command::new(env!("CARGO_BIN_EXE_ebbflow"))
        .arg("run")
        .arg(folder.join(script))
        .args(["--set", &format!("parallelism.default={parallelism}")])
        .args(["--set", &format!("execution.checkpointing.interval={interval}")])
        .args(["--set", &format!("execution.checkpointing.dir={}", checkpoints.display())])
        .env("EBBFLOW_CRASH", crash)
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

/// Row `row` as a line of the input.
pub fn line_of(row: usize) -> String {
    let (key, value, millisecond) = row_of(row);
    let (minute, second) = (millisecond / 60_000 % 60, millisecond / 1_000 % 60);
    let hour = millisecond / 3_600_000;
    format!("{key},{value},2026-01-01 {hour:02}:{minute:02}:{second:02}.{:03}\n", millisecond % 1_000)
}

/// What went wrong in the last run, as it said itself.
pub fn errors(folder: &Path) -> String {
    fs::read_to_string(folder.join("stderr")).unwrap_or_default()
}

/// Nothing is left in staging, and the checkpoints' directory holds one checkpoint and not what all the runs wrote.
pub fn check_leftovers(folder: &Path) {
    for sink in ["by_key", "by_window", "by_session"] {
        assert_eq!(files_below(&folder.join(sink).join("_staging")), Vec::<PathBuf>::new());
    }
    let files = files_below(&folder.join("checkpoints"));
    let manifests = files.iter().filter(|path| path.to_string_lossy().ends_with(".json")).count();
    assert!(manifests == 1 && files.len() < 100, "the checkpoints' directory has grown: {files:?}");
}

/// Compares what was committed with what the input says.
pub fn check(folder: &Path, rows: usize) {
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
    check_sessions(folder, rows);
    check_changelog(folder, &by_key);
}

/// The committed sessions, each once, are those that the times of each key's rows make.
fn check_sessions(folder: &Path, rows: usize) {
    // By key: start, end, rows and total of each session.
    let mut expected: BTreeMap<usize, Vec<(usize, usize, u64, u64)>> = BTreeMap::new();
    for row in 0..rows {
        let (key, value, millisecond) = row_of(row);
        let sessions = expected.entry(key).or_default();
        match sessions.last_mut() {
            Some((_, end, count, total)) if millisecond <= *end => {
                (*end, *count, *total) = (millisecond + SESSION_GAP, *count + 1, *total + value);
            }
            _ => sessions.push((millisecond, millisecond + SESSION_GAP, 1, value)),
        }
    }
    let mut committed: BTreeMap<usize, Vec<(usize, usize, u64, u64)>> = BTreeMap::new();
    for line in committed_lines(&folder.join("by_session")) {
        let fields: Vec<&str> = line.split(',').collect();
        let [key, start, end, count, total] = fields[..] else { panic!("a committed line has other fields: {line}") };
        let number = |text: &str| text.parse::<u64>().unwrap_or_else(|_| panic!("not a number in {line}"));
        let session = (millisecond_of(start), millisecond_of(end), number(count), number(total));
        committed.entry(number(key) as usize).or_default().push(session);
    }
    committed.values_mut().for_each(|sessions| sessions.sort_unstable());
    for (key, sessions) in &expected {
        assert_eq!(committed.get(key), Some(sessions), "the sessions of key {key}");
    }
    assert_eq!(committed.len(), expected.len());
}

/// The millisecond of the day of `"2026-01-01 hh:mm:ss.mmm"`, of which zeros at the end may be missing.
fn millisecond_of(text: &str) -> usize {
    let text = text.trim_matches('"');
    let (time, fraction) = text[11..].split_once('.').unwrap_or((&text[11..], "0"));
    let parts: Vec<usize> = time.split(':').map(|part| part.parse().expect("a number")).collect();
    let seconds = parts.iter().fold(0, |sum, part| sum * 60 + part);
    seconds * 1_000 + format!("{fraction:0<3}").parse::<usize>().expect("a number")
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
pub fn committed_lines(folder: &Path) -> Vec<String> {
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

/// Numbers from a seed (SplitMix64).
pub struct Random(pub u64);

impl Random {
    /// The next number.
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }
}
