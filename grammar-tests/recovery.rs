//! A script run again: after it was finished, over input that has grown, with another plan, over damaged files. It goes
//! on or says why not, and what is committed is never lost or doubled.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::ebbflow::{Ended, call, files_below};

/// Tables of a job over the folder `in`; each test folder has its own.
const TABLES: &str = "
CREATE TABLE t (k INT, ts TIMESTAMP(3), WATERMARK FOR ts AS ts)
  WITH ('connector' = 'filesystem', 'path' = 'in', 'format' = 'csv');
CREATE TABLE counts (k INT, n BIGINT)
  WITH ('connector' = 'filesystem', 'path' = 'counts', 'format' = 'debezium-json');
CREATE TABLE windows (start_ts TIMESTAMP(3), n BIGINT)
  WITH ('connector' = 'filesystem', 'path' = 'windows', 'format' = 'json');
CREATE TABLE copies (k INT, ts TIMESTAMP(3))
  WITH ('connector' = 'filesystem', 'path' = 'copies', 'format' = 'json');
";
const COUNT: &str = "INSERT INTO counts SELECT k, COUNT(*) FROM t GROUP BY k;";
const WINDOWS: &str = "INSERT INTO windows SELECT window_start, COUNT(*)
  FROM TABLE(TUMBLE(TABLE t, DESCRIPTOR(ts), INTERVAL '10' SECOND)) GROUP BY window_start, window_end;";
const COPY: &str = "INSERT INTO copies SELECT k, ts FROM t;";

struct Job {
    folder: tempfile::TempDir,
}

impl Job {
    /// With the rows `(key, second)` in the file `a`.
    fn new(rows: &[(u32, u32)]) -> Job {
        let job = Job { folder: tempfile::tempdir().expect("a temporary folder") };
        fs::create_dir(job.path("in")).expect("the input's folder");
        job.append("a", rows);
        job
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn append(&self, file: &str, rows: &[(u32, u32)]) {
        let path = self.path("in").join(file);
        let mut text = fs::read_to_string(&path).unwrap_or_default();
        rows.iter().for_each(|(k, second)| text += &format!("{k},2026-01-01 00:00:{second:02}\n"));
        fs::write(path, text).expect("input is written");
    }

    fn run(&self, statement: &str, arguments: &[&str]) -> Ended {
        let sql = format!("{TABLES}{statement}");
        let fixed = ["-e", &sql, "--set", "parallelism.default=2"];
        call(self.folder.path(), &[&fixed, arguments].concat())
    }

    /// With the checkpoint directory `checkpoints`.
    #[track_caller]
    fn succeeds(&self, statement: &str, arguments: &[&str]) -> String {
        let ended = self.run(statement, &[&["--checkpoint-dir", "checkpoints"], arguments].concat());
        assert_eq!(ended.code, Some(0), "{}", ended.stderr);
        ended.stderr
    }

    #[track_caller]
    fn fails(&self, statement: &str, arguments: &[&str], code: i32, says: &[&str]) {
        let ended = self.run(statement, &[&["--checkpoint-dir", "checkpoints"], arguments].concat());
        assert_eq!(ended.code, Some(code), "{}", ended.stderr);
        says.iter().for_each(|text| assert!(ended.stderr.contains(text), "'{text}' is not said: {}", ended.stderr));
    }

    /// The lines of a sink's visible files, sorted.
    fn lines(&self, sink: &str) -> Vec<String> {
        let is_visible = |path: &PathBuf| !path.to_string_lossy().contains("/_staging/");
        let files = files_below(&self.path(sink)).into_iter().filter(is_visible);
        let mut lines: Vec<String> =
            files.flat_map(|file| read(&file).lines().map(str::to_string).collect::<Vec<_>>()).collect();
        lines.sort();
        lines
    }

    /// The one file of the checkpoints whose name begins so.
    fn saved(&self, name: &str) -> PathBuf {
        let mut files = files_below(&self.path("checkpoints"));
        files.retain(|file| file.file_name().is_some_and(|own| own.to_string_lossy().starts_with(name)));
        files.into_iter().next().expect("the checkpoint has such a file")
    }
}

fn read(path: &Path) -> String {
    fs::read_to_string(path).expect("the file can be read")
}

fn damage(path: &Path) {
    let mut bytes = fs::read(path).expect("the file can be read");
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    fs::write(path, bytes).expect("the file can be written");
}

#[test]
fn a_finished_job_is_complete_until_its_input_grows() {
    let job = Job::new(&[(1, 1), (1, 2)]);
    job.succeeds(COUNT, &[]);
    let after_first = job.lines("counts");
    assert!(job.succeeds(COUNT, &[]).contains("complete since an earlier run (checkpoint 1)"));
    assert_eq!(job.lines("counts"), after_first);
    // Rows at the end of a file that was read, and a new file; at another parallelism.
    job.append("a", &[(1, 3)]);
    job.append("b", &[(2, 3)]);
    assert!(job.succeeds(COUNT, &["--set", "parallelism.default=3"]).contains("2 rows read, 3 rows written"));
    let mut expected = after_first;
    expected.extend([
        r#"{"before":{"k":1,"n":2},"after":null,"op":"d"}"#.to_string(),
        r#"{"before":null,"after":{"k":1,"n":3},"op":"c"}"#.to_string(),
        r#"{"before":null,"after":{"k":2,"n":1},"op":"c"}"#.to_string(),
    ]);
    expected.sort();
    assert_eq!(job.lines("counts"), expected);
}

#[test]
fn final_rows_are_not_added_to() {
    let job = Job::new(&[(1, 1), (1, 2)]);
    let batch = ["--set", "execution.runtime-mode=batch"];
    job.succeeds(COUNT, &batch);
    assert!(job.succeeds(COUNT, &batch).contains("nothing to do"));
    job.append("a", &[(1, 3)]);
    job.fails(COUNT, &batch, 2, &["Source(t) has grown since", "--fresh"]);
    assert_eq!(job.lines("counts"), [r#"{"before":null,"after":{"k":1,"n":2},"op":"c"}"#]);
}

#[test]
fn windows_fired_at_the_end_of_the_input_are_final() {
    let job = Job::new(&[(1, 1), (1, 12)]);
    job.succeeds(WINDOWS, &[]);
    job.append("a", &[(1, 15), (1, 21), (1, 22)]);
    assert!(job.succeeds(WINDOWS, &[]).contains("1 row came after its window had closed"));
    let expected = [
        r#"{"start_ts":"2026-01-01 00:00:00","n":1}"#,
        r#"{"start_ts":"2026-01-01 00:00:10","n":1}"#,
        r#"{"start_ts":"2026-01-01 00:00:20","n":2}"#,
    ];
    assert_eq!(job.lines("windows"), expected);
}

#[test]
fn files_that_were_cut_replaced_or_ended_within_a_line_are_not_guessed_at() {
    let job = Job::new(&[(1, 1), (1, 2)]);
    let file = job.path("in/a");
    let whole = read(&file);
    fs::write(&file, whole.trim_end()).expect("input is written");
    job.succeeds(COPY, &[]);
    fs::write(&file, format!("{}.5\n", whole.trim_end())).expect("input is written");
    job.fails(COPY, &[], 1, &["in/a", "line 2", "within this line", "--fresh"]);
    fs::write(&file, "1").expect("input is written");
    job.fails(COPY, &[], 1, &["in/a", "was cut or replaced"]);
    // Whoever tidies up may take away what was read, and the last line may get its line end.
    fs::write(&file, &whole).expect("input is written");
    job.succeeds(COPY, &[]);
    fs::remove_file(&file).expect("input is removed");
    job.append("b", &[(3, 3)]);
    job.succeeds(COPY, &[]);
    assert_eq!(job.lines("copies").len(), 3);
}

#[test]
fn another_plan_says_whose_state_it_would_lose() {
    let job = Job::new(&[(1, 1), (1, 2)]);
    job.succeeds(COUNT, &[]);
    let sum = "INSERT INTO counts SELECT k, SUM(CAST(k AS BIGINT)) FROM t GROUP BY k;";
    let says = ["would lose the state of: GroupAggregate", "it keeps that of: ", "Source(t)"];
    job.fails(sum, &[], 1, &[&says[..], &["--allow-non-restored-state", "--fresh"]].concat());
    assert_eq!(job.lines("counts").len(), 3, "nothing is written before that is settled");
    job.append("a", &[(5, 3)]);
    job.succeeds(sum, &["--allow-non-restored-state"]);
    assert_eq!(
        job.lines("counts").last().map(String::as_str),
        Some(r#"{"before":{"k":1,"n":1},"after":null,"op":"d"}"#)
    );
    assert_eq!(job.lines("counts").len(), 4);
    job.succeeds(COUNT, &["--fresh"]);
    assert_eq!(job.lines("counts").len(), 8);
    // The same table over other files is other data, and so is what was counted of it.
    let path = job.path("in").display().to_string();
    let table = "k INT, ts TIMESTAMP(3), WATERMARK FOR ts AS ts";
    let options = format!("'connector' = 'filesystem', 'path' = '{path}', 'format' = 'csv'");
    let moved = format!("DROP TABLE t; CREATE TABLE t ({table}) WITH ({options}); {COUNT}");
    job.fails(&moved, &[], 1, &["would lose the state of: GroupAggregate", "Source(t)", "it keeps that of: none"]);
}

#[test]
fn an_unchanged_operator_over_other_rows_is_not_given_the_old_state() {
    let job = Job::new(&[(1, 1), (1, 2)]);
    let sum = |of: &str, filter: &str| format!("INSERT INTO counts SELECT k, SUM({of}) FROM t {filter} GROUP BY k;");
    let bigint = "CAST(k AS BIGINT)";
    job.succeeds(&sum(bigint, ""), &[]);
    let says = ["would lose the state of: GroupAggregate", "it keeps that of: ", "Source(t)"];
    job.fails(&sum(&format!("{bigint} * 2"), ""), &[], 1, &says);
    job.fails(&sum(bigint, "WHERE k > 1"), &[], 1, &says);
    // The same words in another form are the same rows.
    assert!(job.succeeds(&sum("CAST(k AS BIGINT)", "AS t"), &[]).contains("nothing to do"));
}

#[test]
fn damaged_checkpoints_stop_the_job_or_are_repaired_from_their_copy() {
    let job = Job::new(&[(1, 1)]);
    job.succeeds(COUNT, &[]);
    damage(&job.saved("manifest-000000000001.json"));
    assert!(job.succeeds(COUNT, &[]).contains("nothing to do"));
    damage(&job.saved("manifest-000000000001.copy"));
    job.fails(COUNT, &[], 1, &["checkpoint 1 cannot be used", "manifest-000000000001", "damaged", "--fresh"]);
    job.succeeds(COUNT, &["--fresh"]);
    damage(&job.saved("000000000002-"));
    job.append("a", &[(1, 2)]);
    job.fails(COUNT, &[], 1, &["checkpoint 2 cannot be used", "state/000000000002", "damaged", "--fresh"]);
    fs::write(job.saved("incarnation"), "?").expect("the file can be written");
    job.fails(COUNT, &["--fresh"], 1, &["incarnation' is damaged", "another checkpoint directory"]);
    assert_eq!(job.lines("counts").len(), 2);
}

#[test]
fn runs_with_other_checkpoints_or_none_add_to_what_is_there() {
    let job = Job::new(&[(1, 1)]);
    for _ in 0..2 {
        assert_eq!(job.run(COPY, &[]).code, Some(0));
    }
    job.succeeds(COPY, &[]);
    fs::remove_dir_all(job.path("checkpoints")).expect("the checkpoints are removed");
    job.succeeds(COPY, &[]);
    assert_eq!(job.lines("copies"), [r#"{"k":1,"ts":"2026-01-01 00:00:01"}"#; 4]);
}

#[test]
fn a_failed_or_killed_run_leaves_nothing_half_visible() {
    let job = Job::new(&[(1, 1), (1, 2)]);
    job.append("b", &[]);
    fs::write(job.path("in/b"), "1,2026-01-01 00:00:01\nx,2026-01-01 00:00:02\n").expect("input is written");
    let ended = job.run(COPY, &[]);
    assert_eq!(ended.code, Some(1), "{}", ended.stderr);
    assert!(ended.stderr.contains("in/b': line 2, column 1: malformed csv in field 'k'"), "{}", ended.stderr);
    assert_eq!(job.lines("copies"), Vec::<String>::new());
    job.append("b", &[]);
    fs::remove_file(job.path("in/b")).expect("input is removed");
    assert_eq!(job.run(COPY, &[]).code, Some(0));
    assert_eq!(job.lines("copies").len(), 2);
    assert_eq!(files_below(&job.path("copies/_staging")), Vec::<PathBuf>::new(), "leftovers are cleared away");
}

#[test]
fn without_checkpoints_a_killed_run_publishes_nothing_and_the_next_one_clears_up() {
    let job = Job::new(&[(1, 1), (1, 2)]);
    let endless = "'source.monitor-interval' = '10 ms'";
    let sql = format!("{TABLES}{COPY}").replacen("'format'", &format!("{endless}, 'format'"), 1);
    let mut child = Command::new(env!("CARGO_BIN_EXE_ebbflow"))
        .args(["-e", &sql])
        .current_dir(job.folder.path())
        .stdin(Stdio::null())
        .stderr(fs::File::create(job.path("stderr")).expect("a file for errors"))
        .spawn()
        .expect("the program starts");
    let staged = || fs::read_dir(job.path("copies/_staging")).map_or(0, Iterator::count);
    let begun = Instant::now();
    while staged() == 0 && begun.elapsed() < Duration::from_secs(20) {
        std::thread::sleep(Duration::from_millis(5));
    }
    // A second job leaves alone what the first is still writing.
    assert_eq!(job.run(COPY, &[]).code, Some(0));
    assert!(staged() > 0 && job.lines("copies").len() == 2);
    child.kill().expect("SIGKILL");
    child.wait().expect("the killed job");
    assert!(read(&job.path("stderr")).contains("none is taken before the job is stopped"));
    assert_eq!((job.lines("copies").len(), job.run(COPY, &[]).code), (2, Some(0)));
    assert_eq!((job.lines("copies").len(), staged()), (4, 0));
}

#[test]
fn restarts_are_told_with_their_cause() {
    let job = Job::new(&[(1, 1)]);
    fs::write(job.path("in/b"), "x,2026-01-01 00:00:02\n").expect("input is written");
    let settings = ["restart-strategy.type=fixed-delay", "restart-strategy.fixed-delay.delay=10 ms"];
    let arguments = ["--set", settings[0], "--set", settings[1]];
    job.fails(COPY, &arguments, 1, &["warning: restart 1 after: file 'in/b': line 1", "error: file 'in/b': line 1"]);
}

#[test]
fn places_that_cannot_be_used_are_named() {
    let job = Job::new(&[(1, 1)]);
    fs::write(job.path("copies"), "").expect("a file in the way");
    job.fails(COPY, &[], 2, &["table 'copies' cannot be written: 'copies' is a file", "directory"]);
    fs::remove_file(job.path("copies")).expect("it can be removed");
    let ended = job.run(COPY, &["--checkpoint-dir", "in/a"]);
    assert!(ended.code == Some(2) && ended.stderr.contains("in/a"), "{}", ended.stderr);
    fs::remove_dir_all(job.path("in")).expect("the input is removed");
    job.fails(COPY, &[], 2, &["there is no file at 'in'", "'path'"]);
    std::os::unix::fs::symlink("in", job.path("in")).expect("a link to itself");
    job.fails(COPY, &[], 2, &["'in'"]);
}

#[test]
fn a_malformed_row_has_its_line_in_the_whole_file_whoever_reads_it() {
    let job = Job::new(&[(1, 1)]);
    // Large enough to be read in ranges by several subtasks.
    let mut text = format!("{{\"k\":1,\"padding\":\"{}\"}}\n", "x".repeat(200)).repeat(100_000);
    text.push_str("{\"k\":1}\n{\"k\":true}\n{\"k\":1}\n");
    fs::write(job.path("large"), text).expect("input is written");
    let table = "CREATE TABLE large (k INT) WITH ('connector' = 'filesystem', 'path' = 'large', 'format' = 'json');";
    let ended = job.run(&format!("{table} SELECT SUM(k) FROM large;"), &["--set", "parallelism.default=3"]);
    assert_eq!(ended.code, Some(1));
    assert!(ended.stderr.contains("file 'large': line 100002, column 6: malformed json"), "{}", ended.stderr);
}

#[test]
fn rows_that_are_skipped_are_counted() {
    let job = Job::new(&[(1, 1)]);
    fs::write(job.path("bad"), "{\"k\":1}\n{oops\n[2]\n").expect("input is written");
    let table = "CREATE TABLE bad (k INT) WITH ('connector' = 'filesystem', 'path' = 'bad', 'format' = 'json',
        'json.ignore-parse-errors' = 'true');";
    let ended = job.run(&format!("{table} SELECT * FROM bad;"), &["--format", "changelog"]);
    assert_eq!((ended.code, ended.stdout.as_str()), (Some(0), "+I 1\n"));
    assert!(ended.stderr.contains("2 rows could not be parsed and were skipped"), "{}", ended.stderr);
    let ended = job.run(&format!("{table} INSERT INTO copies (k) SELECT k FROM bad;"), &[]);
    assert!(ended.stderr.contains("2 rows could not be parsed and were skipped"), "{}", ended.stderr);
}
