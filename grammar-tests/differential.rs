//! Generated data, the same queries several ways, one answer: one file or many tiny ones, parallelism 1 or 4, every change
//! or mini-batches, streaming or batch.
//!
//! `EBBFLOW_SEEDS` says how many sets of data are generated (2 if not set).

use std::fs;
use std::path::Path;

use crate::ebbflow::call;
use crate::exactly_once::Random;

const ROWS: u64 = 2_000;

/// No sums of DOUBLE: they depend on the order of the rows.
const QUERIES: &[&str] = &[
    "SELECT k, COUNT(*) AS a, COUNT(v) AS b, SUM(v) AS c, MIN(v) AS d, MAX(v) AS e, AVG(v) AS f FROM t GROUP BY k",
    "SELECT s, b, COUNT(DISTINCT v) AS a, SUM(DISTINCT v) AS c, MAX(s) AS d, MIN(d) AS e FROM t GROUP BY s, b",
    "SELECT COUNT(*) AS a, SUM(m) AS b, MIN(s) AS c, COUNT(*) FILTER (WHERE b) AS d FROM t",
    "SELECT DISTINCT k, b FROM t WHERE v > 10 OR s LIKE 'a%'",
    "SELECT a, COUNT(*) AS n, SUM(c) AS s FROM (SELECT k, COUNT(*) AS a, SUM(v) AS c FROM t GROUP BY k) GROUP BY a",
    "SELECT MAX(c) AS a, MIN(c) AS b, COUNT(DISTINCT c) AS n FROM (SELECT s, SUM(v) AS c FROM t GROUP BY s)",
    "SELECT k, SUM(m) AS a FROM t GROUP BY k HAVING COUNT(*) > 40 AND MIN(v) < 0",
    "SELECT s, COUNT(*) AS n FROM (SELECT s, k FROM t WHERE b UNION ALL SELECT s, k + 1 FROM t WHERE v < 0) GROUP BY s",
    "SELECT k, window_start, window_end, COUNT(*) AS n, SUM(v) AS a, MAX(s) AS b
     FROM TABLE(TUMBLE(TABLE t, DESCRIPTOR(ts), INTERVAL '5' SECOND)) GROUP BY k, window_start, window_end",
    "SELECT TUMBLE_START(ts, INTERVAL '7' SECOND) AS a, COUNT(DISTINCT k) AS n, SUM(m) AS b
     FROM t GROUP BY TUMBLE(ts, INTERVAL '7' SECOND)",
    "SELECT window_start, COUNT(*) AS n, MIN(d) AS a
     FROM TABLE(HOP(TABLE t, DESCRIPTOR(ts), INTERVAL '2' SECOND, INTERVAL '6' SECOND)) GROUP BY window_start, window_end",
    "SELECT k, window_start, window_end, COUNT(*) AS n, SUM(v) AS a, MAX(s) AS c, COUNT(DISTINCT b) AS e
     FROM TABLE(SESSION(TABLE t PARTITION BY k, DESCRIPTOR(ts), INTERVAL '0.8' SECOND)) GROUP BY k, window_start, window_end",
    "SELECT s, SESSION_START(ts, INTERVAL '0.5' SECOND) AS a, SESSION_END(ts, INTERVAL '0.5' SECOND) AS c, SUM(m) AS e
     FROM t GROUP BY s, SESSION(ts, INTERVAL '0.5' SECOND)",
    "SELECT k, d, v, window_end FROM TABLE(SESSION(TABLE t PARTITION BY k, DESCRIPTOR(ts), INTERVAL '1' SECOND)) WHERE b",
    "SELECT n, COUNT(*) AS windows FROM (SELECT window_end, k, COUNT(*) AS n
     FROM TABLE(TUMBLE(TABLE t, DESCRIPTOR(ts), INTERVAL '3' SECOND)) GROUP BY k, window_start, window_end) GROUP BY n",
    "SELECT a.k, COUNT(*) AS n, COUNT(b.v) AS m, SUM(b.v) AS s FROM t a LEFT JOIN t b
     ON a.k = b.k AND b.ts > a.ts AND b.ts <= a.ts + INTERVAL '1' SECOND AND a.v < b.v GROUP BY a.k",
    "SELECT a.s, b.b, COUNT(*) AS n, SUM(a.v - b.v) AS s FROM t a FULL JOIN t b
     ON a.s = b.s AND b.ts BETWEEN a.ts - INTERVAL '2' SECOND AND a.ts + INTERVAL '1' SECOND AND a.b GROUP BY a.s, b.b",
    "SELECT x.window_start, COUNT(*) AS n, SUM(y.n) AS m FROM TABLE(TUMBLE(TABLE t, DESCRIPTOR(ts), INTERVAL '4' SECOND)) x
     LEFT JOIN (SELECT k, window_start, window_end, COUNT(*) AS n
     FROM TABLE(TUMBLE(TABLE t, DESCRIPTOR(ts), INTERVAL '4' SECOND)) WHERE b GROUP BY k, window_start, window_end) y
     ON x.k = y.k + 1 AND x.window_start = y.window_start AND x.window_end = y.window_end GROUP BY x.window_start, x.window_end",
    "SELECT a.k, COUNT(*) AS n, COUNT(r.ts) AS m, MAX(r.ts) AS s FROM t a
     LEFT JOIN r FOR SYSTEM_TIME AS OF a.ts ON a.k + 1 = r.k GROUP BY a.k",
];

/// Each way: the folder of the input, and the settings.
const WAYS: &[(&str, &[&str])] = &[
    ("one", &["parallelism.default=1"]),
    ("many", &["parallelism.default=4"]),
    ("one", &["parallelism.default=4", MINI_BATCH[0], MINI_BATCH[1], MINI_BATCH[2]]),
    ("many", &["parallelism.default=1", MINI_BATCH[0], MINI_BATCH[1], MINI_BATCH[2]]),
    ("many", &["parallelism.default=4", "execution.runtime-mode=batch"]),
];
const MINI_BATCH: [&str; 3] =
    ["table.exec.mini-batch.enabled=true", "table.exec.mini-batch.allow-latency=1 s", "table.exec.mini-batch.size=150"];

#[test]
fn every_way_of_running_a_query_gives_the_same_table() {
    let seeds = std::env::var("EBBFLOW_SEEDS").ok().and_then(|text| text.parse().ok()).unwrap_or(2);
    for seed in 0..seeds {
        let folder = tempfile::tempdir().expect("a temporary folder");
        write_input(folder.path(), seed);
        let expected = run(folder.path(), WAYS[0]);
        assert_eq!(expected.len(), QUERIES.len());
        assert!(expected.iter().all(|table| table.len() > 1), "a query without rows proves nothing");
        for way in &WAYS[1..] {
            for ((query, expected), got) in QUERIES.iter().zip(&expected).zip(run(folder.path(), *way)) {
                assert!(got == *expected, "seed {seed}, {way:?}: {query}\n{}", difference(expected, &got));
            }
        }
    }
}

/// Large enough that the file of rows without changes would be read in parts.
const LARGE: u64 = 9 << 20;

#[test]
fn what_depends_on_the_order_of_rows_is_the_same_at_any_parallelism() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let (mut plain, mut changes): (String, Vec<String>) = (String::new(), vec![String::new(); 3]);
    let mut number = 0;
    while (plain.len() as u64) < LARGE {
        let row = |number: u64| format!("{{\"k\":{},\"v\":{number},\"pad\":\"{}\"}}", number % 50, "x".repeat(800));
        plain += &(row(number) + "\n");
        if number < 3_000 {
            // The log goes on from file to file.
            let before = if number < 50 { "null".to_string() } else { row(number - 50) };
            let (op, file) = (if number < 50 { "c" } else { "u" }, (number / 1_000) as usize);
            changes[file] += &format!("{{\"before\":{before},\"after\":{},\"op\":\"{op}\"}}\n", row(number));
        }
        number += 1;
    }
    fs::write(folder.path().join("plain.json"), plain).expect("input is written");
    fs::create_dir(folder.path().join("log")).expect("the log's folder");
    for (file, changes) in changes.iter().enumerate() {
        fs::write(folder.path().join(format!("log/{file}.json")), changes).expect("input is written");
    }
    let sql = "CREATE TABLE plain (k BIGINT, v BIGINT) WITH ('connector' = 'filesystem', 'path' = 'plain.json', 'format' = 'json');
      CREATE TABLE log (k BIGINT, v BIGINT) WITH ('connector' = 'filesystem', 'path' = 'log', 'format' = 'debezium-json');
      SELECT COUNT(*), SUM(v) FROM (SELECT k, LAST_VALUE(v) AS v FROM plain GROUP BY k);
      SELECT COUNT(*), SUM(v), MIN(v) FROM log;";
    let last: u64 = (number - 50..number).sum();
    let logged: u64 = (2_950..3_000).sum();
    for parallelism in ["1", "2", "4"] {
        let (parallelism, batch) = (format!("parallelism.default={parallelism}"), "execution.runtime-mode=batch");
        let ended = call(folder.path(), &["-e", sql, "--format", "csv", "--set", &parallelism, "--set", batch]);
        let rows: Vec<&str> = ended.stdout.lines().filter(|line| !line.starts_with("EXPR")).collect();
        assert_eq!(rows, [format!("50,{last}"), format!("50,{logged},2950")], "{parallelism}: {}", ended.stderr);
    }
}

/// The rows of each query's final table, sorted.
fn run(folder: &Path, (input, settings): (&str, &[&str])) -> Vec<Vec<String>> {
    let mut sql = format!(
        "CREATE TABLE t (k INT, v BIGINT, m DECIMAL(12, 3), s STRING, b BOOLEAN, d DATE, ts TIMESTAMP(3),
           WATERMARK FOR ts AS ts - INTERVAL '2' SECOND)
         WITH ('connector' = 'filesystem', 'path' = '{input}', 'format' = 'json');
         CREATE TABLE r (k INT, ts TIMESTAMP(3), PRIMARY KEY (k) NOT ENFORCED,
           WATERMARK FOR ts AS ts - INTERVAL '2' SECOND)
         WITH ('connector' = 'filesystem', 'path' = '{input}', 'format' = 'json');"
    );
    for query in QUERIES {
        sql += &format!("SELECT 'next query'; {query};");
    }
    let mut arguments = vec!["-e", &sql, "--format", "csv", "--set", "sql-client.execution.result-mode=table"];
    settings.iter().for_each(|setting| arguments.extend(["--set", setting]));
    let ended = call(folder, &arguments);
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    assert_eq!(ended.stderr, "", "no row is late");
    let mark = |line: &str| line == "next query";
    let mut tables: Vec<Vec<String>> = Vec::new();
    for line in ended.stdout.lines() {
        match tables.last_mut() {
            _ if mark(line) => tables.push(Vec::new()),
            Some(table) => table.push(line.to_string()),
            None => {}
        }
    }
    tables.iter_mut().for_each(|table| {
        // The next marker's header, the names, then the rows.
        table.retain(|line| line != "EXPR$0" && line != "'next query'");
        table.sort();
    });
    tables
}

/// The first rows that only one of the two has.
fn difference(expected: &[String], got: &[String]) -> String {
    let only = |these: &[String], those: &[String], sign: &str| -> String {
        these.iter().filter(|row| !those.contains(row)).take(5).map(|row| format!("{sign} {row}\n")).collect()
    };
    only(expected, got, "-") + &only(got, expected, "+")
}

/// Rows with NULLs, negative numbers, few and many keys, a little out of order in time.
fn write_input(folder: &Path, seed: u64) {
    let mut random = Random(seed << 32);
    let rows: Vec<String> = (0..ROWS)
        .map(|row| {
            let mut draw = |bound: u64| random.next() % bound;
            let millisecond = row * 20 + draw(1_500);
            let mut fields = vec![format!("\"k\":{}", draw(40))];
            if draw(10) > 0 {
                fields.push(format!("\"v\":{}", draw(200) as i64 - 60));
            }
            if draw(10) > 0 {
                fields.push(format!("\"m\":{}.{:03}", draw(90_000) as i64 - 30_000, draw(1_000)));
            }
            if draw(15) > 0 {
                fields.push(format!("\"s\":\"{}{}\"", ["a", "é", "", "ab\\\\", "z"][draw(5) as usize], draw(9)));
            }
            fields.push(format!("\"b\":{}", draw(3) > 0));
            fields.push(format!("\"d\":\"2026-{:02}-{:02}\"", 1 + draw(12), 1 + draw(28)));
            let (second, rest) = (millisecond / 1_000, millisecond % 1_000);
            fields.push(format!("\"ts\":\"2026-01-01 00:{:02}:{:02}.{rest:03}\"", second / 60, second % 60));
            format!("{{{}}}\n", fields.join(","))
        })
        .collect();
    for (name, files) in [("one", 1), ("many", 60)] {
        let directory = folder.join(name);
        fs::create_dir(&directory).expect("the input's folder");
        for (file, rows) in rows.chunks(rows.len().div_ceil(files)).enumerate() {
            fs::write(directory.join(format!("{file:03}.json")), rows.concat()).expect("input is written");
        }
    }
}
