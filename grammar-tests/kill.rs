//! Exactly once under `kill -9`: a job over a growing directory is killed at random times and started again, and what it
//! committed is in the end what a run without a crash commits.
//!
//! `EBBFLOW_KILL_RUNS` says how many kills (10 if not set), `EBBFLOW_KILL_ROWS` how many rows flow (200,000).

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use crate::ebbflow::files_below;
use crate::exactly_once::{Random, check, check_leftovers, committed_lines, errors, line_of, start, write_jobs};

const FILES: usize = 20;

#[test]
fn killed_at_any_time_nothing_is_lost_and_nothing_doubled() {
    let rows: usize = setting("EBBFLOW_KILL_ROWS", 200_000);
    let runs: usize = setting("EBBFLOW_KILL_RUNS", 10);
    let folder = tempfile::tempdir().expect("a temporary folder");
    let folder = folder.path();
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
            let mut child = start(folder, "growing.sql", parallelism, "100 ms", "");
            let alive = Duration::from_millis(50 + random.next() % 700);
            let begun = Instant::now();
            while begun.elapsed() < alive {
                if let Some(status) = child.try_wait().expect("the job's status") {
                    let errors = errors(folder);
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
    let status = start(folder, "bounded.sql", 2, "100 ms", "").wait().expect("the last run");
    let errors = errors(folder);
    assert!(status.success(), "the last run failed with {status}:\n{errors}");
    check(folder, rows);
    check_leftovers(folder);
    let published = files_below(&folder.join("by_key")).len();
    assert!(published >= runs / 2, "the job was killed too early to commit anything: {published} files in {runs} runs");
}

/// One large file, read in ranges by several subtasks: the ranges move when the parallelism changes.
#[test]
fn killed_within_the_ranges_of_a_large_file_every_row_is_copied_once() {
    const ROWS: usize = 120_000;
    let folder = tempfile::tempdir().expect("a temporary folder");
    let folder = folder.path();
    // Wide rows: a file is cut into ranges of 8 MB.
    let padding = "x".repeat(150);
    let rows: String = (0..ROWS).map(|id| format!("{{\"id\":{id},\"padding\":\"{padding}\"}}\n")).collect();
    std::fs::write(folder.join("large.json"), rows).expect("the input");
    let path = folder.display();
    let job = format!(
        "CREATE TABLE large (id INT, padding STRING)
           WITH ('connector' = 'filesystem', 'path' = '{path}/large.json', 'format' = 'json');
         CREATE TABLE copies (id INT) WITH ('connector' = 'filesystem', 'path' = '{path}/copies', 'format' = 'csv');
         INSERT INTO copies SELECT id FROM large;"
    );
    std::fs::write(folder.join("copy.sql"), job).expect("the script");
    let mut random = Random(0xebbf_4117);
    for parallelism in [3, 1, 4, 2, 3] {
        let mut child = start(folder, "copy.sql", parallelism, "20 ms", "");
        std::thread::sleep(Duration::from_millis(100 + random.next() % 250));
        // It may have come to its end before.
        child.kill().expect("SIGKILL");
        child.wait().expect("the killed job");
    }
    let status = start(folder, "copy.sql", 2, "20 ms", "").wait().expect("the last run");
    assert!(status.success(), "{}", errors(folder));
    let mut ids: Vec<usize> =
        committed_lines(&folder.join("copies")).iter().map(|line| line.parse().expect("an id")).collect();
    ids.sort_unstable();
    assert!(ids.iter().copied().eq(0..ROWS), "{} rows were copied of {ROWS}", ids.len());
}

/// Joins over time keep rows, windows and versions: all of it moves when the parallelism changes.
#[test]
fn killed_with_rows_waiting_in_joins_over_time_each_is_joined_once() {
    const ROWS: usize = 80_000;
    let script = "
        CREATE TABLE a (id INT, k INT, ts TIMESTAMP(3), WATERMARK FOR ts AS ts - INTERVAL '2' SECOND)
          WITH ('connector' = 'filesystem', 'path' = '{path}/a.csv', 'format' = 'csv');
        CREATE TABLE b (id INT, k INT, ts TIMESTAMP(3), PRIMARY KEY (k) NOT ENFORCED, WATERMARK FOR ts AS ts)
          WITH ('connector' = 'filesystem', 'path' = '{path}/b.csv', 'format' = 'csv');
        CREATE TABLE near (a INT, b INT) WITH ('connector' = 'filesystem', 'path' = '{path}/near', 'format' = 'csv');
        CREATE TABLE together (a INT, b INT)
          WITH ('connector' = 'filesystem', 'path' = '{path}/together', 'format' = 'csv');
        CREATE TABLE valid (a INT, b INT) WITH ('connector' = 'filesystem', 'path' = '{path}/valid', 'format' = 'csv');
        EXECUTE STATEMENT SET BEGIN
        INSERT INTO near SELECT a.id, b.id FROM a FULL JOIN b
          ON a.k = b.k AND b.ts BETWEEN a.ts - INTERVAL '3' SECOND AND a.ts + INTERVAL '5' SECOND;
        INSERT INTO together SELECT a.id, b.id FROM TABLE(TUMBLE(TABLE a, DESCRIPTOR(ts), INTERVAL '10' SECOND)) a
          FULL JOIN TABLE(TUMBLE(TABLE b, DESCRIPTOR(ts), INTERVAL '10' SECOND)) b
          ON a.k = b.k AND a.window_start = b.window_start AND a.window_end = b.window_end;
        INSERT INTO valid SELECT a.id, v.id FROM a LEFT JOIN b FOR SYSTEM_TIME AS OF a.ts AS v ON a.k = v.k;
        END;";
    let prepare = |folder: &Path| {
        for (name, step) in [("a", 1), ("b", 7)] {
            let rows = (0..ROWS).map(|id| {
                let (second, rest) = (id / 100, id % 100 * 10 + step);
                let time = format!("2026-01-01 00:{:02}:{:02}.{rest:03}", second / 60, second % 60);
                format!("{id},{},{time}\n", id * step % 997)
            });
            std::fs::write(folder.join(format!("{name}.csv")), rows.collect::<String>()).expect("the input");
        }
        let script = script.replace("{path}", &folder.display().to_string());
        std::fs::write(folder.join("joins.sql"), script).expect("the script");
    };
    let results = |folder: &Path| {
        ["near", "together", "valid"].map(|table| {
            let mut lines = committed_lines(&folder.join(table));
            lines.sort();
            lines
        })
    };
    let undisturbed = tempfile::tempdir().expect("a temporary folder");
    prepare(undisturbed.path());
    let status = start(undisturbed.path(), "joins.sql", 1, "1 h", "").wait().expect("the undisturbed run");
    assert!(status.success(), "{}", errors(undisturbed.path()));
    let expected = results(undisturbed.path());
    assert!(expected.iter().all(|table| table.len() >= ROWS), "a join without rows proves nothing");
    let folder = tempfile::tempdir().expect("a temporary folder");
    let folder = folder.path();
    prepare(folder);
    let mut random = Random(0xebbf_3011);
    for parallelism in [2, 1, 4, 3, 2, 1] {
        let mut child = start(folder, "joins.sql", parallelism, "20 ms", "");
        std::thread::sleep(Duration::from_millis(150 + random.next() % 350));
        // It may have come to its end before.
        child.kill().expect("SIGKILL");
        child.wait().expect("the killed job");
    }
    let status = start(folder, "joins.sql", 3, "20 ms", "").wait().expect("the last run");
    assert!(status.success(), "{}", errors(folder));
    for (table, (got, expected)) in results(folder).iter().zip(&expected).enumerate() {
        assert_eq!(got.len(), expected.len(), "rows of table {table}");
        assert!(got == expected, "other rows in table {table}");
    }
}

/// Writes the rows over time: files in order, each growing in pieces that end anywhere within a line.
fn feed(folder: &Path, rows: usize, over: Duration) {
    let begun = Instant::now();
    for file in 0..FILES {
        let path = folder.join(format!("clicks-{file:03}.csv"));
        let mut out = BufWriter::with_capacity(7_919, File::create(path).expect("an input file"));
        for row in rows * file / FILES..rows * (file + 1) / FILES {
            out.write_all(line_of(row).as_bytes()).expect("input is written");
            if row % 1_000 == 0 {
                let due = over.mul_f64(row as f64 / rows as f64);
                std::thread::sleep(due.saturating_sub(begun.elapsed()));
            }
        }
        out.flush().expect("input is written");
    }
}

fn setting(name: &str, default: usize) -> usize {
    std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(default)
}
