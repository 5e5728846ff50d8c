//! The binary's ways in: arguments, pipes, exit codes, and what errors look like.

use std::path::{Path, PathBuf};

use crate::ebbflow::{Ended, call, call_with_input, root};

const CLICKS: &str = "CREATE TABLE clicks (`user` STRING, url STRING, cTime TIMESTAMP(3)) WITH \
                      ('connector' = 'filesystem', 'path' = 'clicks.csv', 'format' = 'csv');";

fn folder() -> PathBuf {
    root().join("sql-examples/01-count-clicks")
}

/// Runs statements over the click file.
fn execute(sql: &str, arguments: &[&str]) -> Ended {
    let sql = format!("{CLICKS} {sql}");
    let mut all = vec!["-e", sql.as_str(), "--set", "parallelism.default=1", "--set", "table.local-time-zone=UTC"];
    all.extend(arguments);
    call(&folder(), &all)
}

#[track_caller]
fn check(ended: &Ended, code: i32, stdout: &str) {
    assert_eq!((ended.code, ended.stdout.as_str()), (Some(code), stdout), "{}", ended.stderr);
}

const LIZ: &str = "SELECT `user`, url, cTime FROM clicks WHERE `user` = 'Liz'";

#[test]
fn results_are_drawn_unless_another_form_is_asked_for() {
    let table = "\
+----+--------------------------------+--------------------------------+-------------------------+
| op |                           user |                            url |                   cTime |
+----+--------------------------------+--------------------------------+-------------------------+
| +I |                            Liz |                         ./home | 2026-01-01 13:30:00.000 |
+----+--------------------------------+--------------------------------+-------------------------+
Received a total of 1 row
";
    check(&execute(LIZ, &[]), 0, table);
    check(&execute(LIZ, &["--format", "changelog"]), 0, "+I Liz | ./home | 2026-01-01 13:30:00.000\n");
    check(&execute(LIZ, &["--format", "csv"]), 0, "op,user,url,cTime\n+I,Liz,./home,2026-01-01 13:30:00.000\n");
    let json = "{\"op\":\"+I\",\"user\":\"Liz\",\"url\":\"./home\",\"cTime\":\"2026-01-01 13:30:00.000\"}\n";
    check(&execute(LIZ, &["--format", "json"]), 0, json);
}

#[test]
fn a_table_result_is_what_the_changes_leave_behind() {
    let count = "SELECT `user`, COUNT(*) AS cnt FROM clicks GROUP BY `user`";
    let folded = execute(count, &["--set", "sql-client.execution.result-mode=table", "--format", "csv"]);
    check(&folded, 0, "user,cnt\nMary,3\nBob,2\nLiz,1\n");
    let batch = execute(count, &["--set", "execution.runtime-mode=batch", "--format", "csv"]);
    let mut lines: Vec<&str> = batch.stdout.lines().collect();
    lines.sort_unstable();
    assert_eq!(lines, ["Bob,2", "Liz,1", "Mary,3", "user,cnt"], "{}", batch.stderr);
}

#[test]
fn errors_point_at_the_place_and_set_the_exit_code() {
    let ended = call(&folder(), &["-e", "SELECT 1;\nSELEC 2", "--format", "changelog"]);
    check(&ended, 1, "+I 1\n");
    assert!(ended.stderr.contains("-e:2:1: error: ") && ended.stderr.contains(" 2 | SELEC 2\n"), "{}", ended.stderr);

    let ended = execute("SELECT usr FROM clicks", &[]);
    assert_eq!(ended.code, Some(1), "{}", ended.stderr);
    assert!(ended.stderr.contains("usr") && ended.stderr.contains("^^^"), "{}", ended.stderr);
}

#[test]
fn a_wrong_command_line_or_setup_is_exit_code_2() {
    let code = |arguments: &[&str]| call(&folder(), arguments).code;
    assert_eq!(code(&["--no-such-option"]), Some(2));
    assert_eq!(code(&["run"]), Some(2));
    assert_eq!(code(&["-e", "SELECT 1", "--set", "novalue"]), Some(2));
    assert_eq!(code(&["-e", "SELECT 1", "--set", "parallelism.default=many"]), Some(2));
    let ended = call(&folder(), &["run", "nowhere.sql"]);
    assert_eq!(ended.code, Some(2));
    assert!(ended.stderr.contains("cannot read 'nowhere.sql'"), "{}", ended.stderr);
    assert_eq!(code(&["test", "nowhere"]), Some(2));
}

#[test]
fn variables_are_put_in_place_and_missing_ones_named() {
    let ended =
        execute("SELECT url FROM clicks WHERE `user` = '${WHO}'", &["--var", "WHO=Liz", "--format", "changelog"]);
    check(&ended, 0, "+I ./home\n");
    let ended = execute("SELECT '${WHO}'", &[]);
    assert_eq!(ended.code, Some(2));
    assert!(ended.stderr.contains("the variable 'WHO' has no value"), "{}", ended.stderr);
    assert!(ended.stderr.contains("--var WHO="), "{}", ended.stderr);
}

#[test]
fn sql_comes_through_a_pipe_too() {
    let script = format!("{CLICKS}\nSELECT url FROM clicks WHERE `user` = 'Liz';\nQUIT;\nSELECT nonsense;");
    let arguments = ["--format", "changelog", "--set", "parallelism.default=1"];
    check(&call_with_input(&folder(), &arguments, &script), 0, "+I ./home\n");
    let run = ["run", "-", "--format", "changelog", "--set", "parallelism.default=1"];
    check(&call_with_input(&folder(), &run, &script), 0, "+I ./home\n");
    assert_eq!(call_with_input(&folder(), &arguments, "SELECT nonsense;").code, Some(1));
}

#[test]
fn a_table_that_nothing_can_read_is_a_warning_until_it_is_read() {
    let declared = "CREATE TABLE far (n INT) WITH ('connector' = 'kaffka')";
    let ended = execute(&format!("{declared}; SELECT 1 AS one;"), &["--format", "changelog"]);
    check(&ended, 0, "+I 1\n");
    assert!(ended.stderr.contains("warning: table 'far': there is no connector 'kaffka'"), "{}", ended.stderr);
    let read = execute(&format!("{declared}; SELECT n FROM far;"), &[]);
    assert!(read.code == Some(1) && read.stderr.contains("error: table 'far'"), "{}", read.stderr);
    let filled = execute("CREATE TABLE far WITH ('connector' = 'kaffka') AS SELECT 1 AS n", &[]);
    assert_eq!(filled.code, Some(1), "a table that is written at once");
}

#[test]
fn jobs_are_waited_for_and_say_what_they_did() {
    let ended = execute(
        "CREATE TABLE gone (`user` STRING) WITH ('connector' = 'blackhole'); INSERT INTO gone SELECT `user` FROM clicks;",
        &[],
    );
    check(&ended, 0, "");
    assert!(ended.stderr.contains("6 rows read, 6 rows written in "), "{}", ended.stderr);
}

#[test]
fn bad_data_is_exit_code_1_and_names_the_place() {
    let scratch = tempfile::tempdir().expect("a temporary folder can be made");
    std::fs::write(scratch.path().join("bad.csv"), "1\nx\n").expect("the file can be written");
    let sql =
        "CREATE TABLE t (n INT) WITH ('connector'='filesystem','path'='bad.csv','format'='csv'); SELECT * FROM t;";
    let ended = call(scratch.path(), &["-e", sql]);
    assert_eq!(ended.code, Some(1), "{}", ended.stderr);
    assert!(ended.stderr.contains("bad.csv") && ended.stderr.contains('2'), "{}", ended.stderr);
}

fn test_file(folder: &Path, text: &str, arguments: &[&str]) -> Ended {
    std::fs::write(folder.join("case.slt"), text).expect("the file can be written");
    let mut all = vec!["test", "case.slt"];
    all.extend(arguments);
    call(folder, &all)
}

#[test]
fn a_failing_test_shows_the_difference() {
    let scratch = tempfile::tempdir().expect("a temporary folder can be made");
    let text = "query T\nSELECT 1\n----\n+I 1\n\nquery T\nSELECT 2\n----\n+I 3\n\nquery error\nSELECT nope\n";
    let ended = test_file(scratch.path(), text, &[]);
    assert_eq!(ended.code, Some(1), "{}", ended.stderr);
    assert!(ended.stdout.starts_with("case.slt:6 ("), "{}", ended.stdout);
    assert!(ended.stdout.ends_with("    SELECT 2\n  - +I 3\n  + +I 2\n\n2 passed, 1 failed\n"), "{}", ended.stdout);
}

#[test]
fn a_record_that_takes_too_long_fails_and_the_next_one_runs() {
    let scratch = tempfile::tempdir().expect("a temporary folder can be made");
    let text = "statement ok\nCREATE TABLE g (a INT) WITH ('connector' = 'datagen', 'rows-per-second' = '10')\n\n\
                query T\nSELECT * FROM g\n----\n\nquery T\nSELECT 1\n----\n+I 1\n";
    let ended = test_file(scratch.path(), text, &["--timeout", "0.5"]);
    assert_eq!(ended.code, Some(1), "{}", ended.stderr);
    assert!(
        ended.stdout.contains("longer than 0.5 s") && ended.stdout.ends_with("2 passed, 1 failed\n"),
        "{}",
        ended.stdout
    );
}

#[test]
fn a_catalog_file_keeps_what_is_declared() {
    let scratch = tempfile::tempdir().expect("a temporary folder can be made");
    let file = scratch.path().join("names.sql").display().to_string();
    let run = |sql: &str| call(&folder(), &["-e", sql, "--catalog", &file, "--format", "changelog"]);
    check(&run(&format!("{CLICKS} CREATE VIEW liz AS {LIZ}; CREATE TEMPORARY VIEW mine AS SELECT 1 AS x")), 0, "");
    check(&run("SELECT url FROM liz"), 0, "+I ./home\n");
    let ended = run("SELECT * FROM mine");
    assert_eq!(ended.code, Some(1), "{}", ended.stderr);
    let text = std::fs::read_to_string(&file).expect("the catalog is a file");
    std::fs::write(&file, &text[..text.len() / 2]).expect("it can be damaged");
    let ended = run("SELECT 1");
    assert_eq!(ended.code, Some(1), "{}", ended.stderr);
    assert!(ended.stderr.contains("names.sql': it is damaged: its end is missing"), "{}", ended.stderr);
}

#[test]
fn a_catalog_file_survives_a_crash_while_it_is_written() {
    let scratch = tempfile::tempdir().expect("a temporary folder can be made");
    let file = scratch.path().join("names.sql").display().to_string();
    let run = |sql: &str| call(&folder(), &["-e", sql, "--catalog", &file, "--format", "csv"]);
    check(&run("CREATE VIEW kept AS SELECT 1 AS x"), 0, "");
    for place in ["kept_file_half_written", "kept_file_unsynced"] {
        let status = std::process::Command::new(env!("CARGO_BIN_EXE_ebbflow"))
            .args(["-e", "CREATE VIEW lost AS SELECT 2 AS x", "--catalog", &file])
            .env("EBBFLOW_CRASH", place)
            .status()
            .expect("the binary was built for this test");
        assert_eq!(status.code(), None, "it does not die at {place}");
        check(&run("SHOW VIEWS"), 0, "view name\nkept\n");
    }
}

#[test]
fn several_columns_that_there_are_not_are_told_at_once() {
    let sql =
        "CREATE TABLE t (k INT) WITH ('connector' = 'blackhole');\nSELECT nope, k, other + 1 FROM t WHERE third > 1";
    let ended = call(root(), &["-e", sql]);
    assert_eq!(ended.code, Some(1));
    for (name, at) in [("nope", 8), ("other", 17), ("third", 40)] {
        let lines = format!("there is no column '{name}'");
        let carets = format!("|{}{}\n", " ".repeat(at), "^".repeat(name.len()));
        assert!(ended.stderr.contains(&lines) && ended.stderr.contains(&carets), "{name}:\n{}", ended.stderr);
    }
}
