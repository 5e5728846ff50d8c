//! How fast text files are read: JSON and CSV, 7 fields and about 210 bytes a row as JSON, on one core (parallelism 1).
//! Prints MB of input a second, by the clock and by core time.
//!
//! `cargo bench --bench decode [-- FILTER] [--rows N]`. With `EBBFLOW_BENCH_DUCKDB=1`, and DuckDB for Python installed,
//! the same query over the same file is also run by DuckDB on one thread.

#[allow(dead_code, reason = "each bench uses a part")]
mod common;

use std::io::Write;
use std::path::Path;
use std::process::Command;

use common::{Arguments, Folder, Random, execute};
use ebbflow::{Engine, Result, Session};

const ROWS: usize = 2_000_000;

const COLUMNS: &str =
    "auction BIGINT, bidder BIGINT, price BIGINT, channel STRING, url STRING, ts TIMESTAMP(3), extra STRING";

/// What is run over each file; the sink's columns are two numbers in any case.
const QUERIES: [(&str, &str); 3] = [
    ("two of seven fields, filtered", "SELECT auction, price FROM bids WHERE price > 9900"),
    (
        "all fields read, one row of result",
        "SELECT COUNT(channel) + COUNT(url) + COUNT(ts), COUNT(extra) + SUM(bidder) FROM bids",
    ),
    ("group by", "SELECT auction, SUM(price) FROM bids GROUP BY auction"),
];

fn main() -> Result<()> {
    let arguments = Arguments::read(ROWS);
    let engine = Engine::builder().parallelism(1).build()?;
    let folder = Folder::new("decode");
    write_files(&folder.0, arguments.rows).unwrap_or_else(|error| panic!("{}: {error}", folder.0.display()));
    let duckdb = std::env::var("EBBFLOW_BENCH_DUCKDB").is_ok_and(|value| value == "1");
    for format in ["json", "csv"] {
        let path = folder.0.join(format!("bids.{format}"));
        let megabytes = std::fs::metadata(&path).map_or(0.0, |metadata| metadata.len() as f64 / 1e6);
        for (what, sql) in QUERIES {
            let name = format!("{format}, {what}");
            if !arguments.wants(&name) {
                continue;
            }
            let session = session(&engine, &path, format)?;
            let (time, _) = arguments.best(|| execute(&engine, &session, &format!("INSERT INTO nowhere {sql}")))?;
            println!("{name:<45} {}", time.rates(megabytes, "MB"));
            if duckdb && let Some(seconds) = duckdb_seconds(&path, format, sql) {
                let ratio = seconds / time.wall.as_secs_f64();
                println!("{:<45} {:>8.2} MB/s: ebbflow is {ratio:.2} times as fast", "  DuckDB", megabytes / seconds);
            }
        }
    }
    Ok(())
}

fn session(engine: &Engine, path: &Path, format: &str) -> Result<Session> {
    let session = engine.session();
    let path = path.display();
    let table = format!("WITH ('connector' = 'filesystem', 'path' = '{path}', 'format' = '{format}')");
    execute(engine, &session, &format!("CREATE TABLE bids ({COLUMNS}) {table}"))?;
    execute(engine, &session, "CREATE TABLE nowhere (a BIGINT, b BIGINT) WITH ('connector' = 'blackhole')")?;
    Ok(session)
}

fn write_files(folder: &Path, rows: usize) -> std::io::Result<()> {
    let mut random = Random(7);
    let mut json = std::io::BufWriter::new(std::fs::File::create(folder.join("bids.json"))?);
    let mut csv = std::io::BufWriter::new(std::fs::File::create(folder.join("bids.csv"))?);
    for row in 0..rows {
        let (auction, bidder, price) = (random.next() % 1_000, random.next() % 100_000, random.next() % 10_000);
        let (minute, second) = (row / 60_000 % 60, row / 1_000 % 60);
        let time = format!("2026-01-01 00:{minute:02}:{second:02}.{:03}", row % 1_000);
        let url = format!("https://www.example.com/item/{:x}/query", random.next());
        let extra = format!("{:016x}{:016x}", random.next(), random.next());
        writeln!(
            json,
            r#"{{"auction":{auction},"bidder":{bidder},"price":{price},"channel":"channel-{}","url":"{url}","ts":"{time}","extra":"{extra}"}}"#,
            row % 100
        )?;
        writeln!(csv, "{auction},{bidder},{price},channel-{},{url},{time},{extra}", row % 100)?;
    }
    json.flush()?;
    csv.flush()
}

/// The best of three runs of DuckDB over the same file; `None` if it is not there.
fn duckdb_seconds(path: &Path, format: &str, sql: &str) -> Option<f64> {
    let types = COLUMNS.replace("STRING", "VARCHAR").replace("TIMESTAMP(3)", "TIMESTAMP");
    let columns: Vec<String> = types
        .split(", ")
        .filter_map(|column| column.split_once(' '))
        .map(|(name, kind)| format!("'{name}': '{kind}'"))
        .collect();
    let columns = columns.join(", ");
    let file = match format {
        "json" => format!("read_json('{}', format = 'newline_delimited', columns = {{{columns}}})", path.display()),
        _ => format!("read_csv('{}', header = false, columns = {{{columns}}})", path.display()),
    };
    let script = format!(
        "import duckdb, time\n\
         db = duckdb.connect()\n\
         db.execute('SET threads = 1')\n\
         def run():\n\
         \x20   start = time.perf_counter()\n\
         \x20   db.execute(\"\"\"{sql}\"\"\".replace('FROM bids', \"\"\"FROM {file}\"\"\")).fetchall()\n\
         \x20   return time.perf_counter() - start\n\
         print(min(run() for _ in range(3)))"
    );
    let output = Command::new("python3").args(["-c", &script]).output().ok()?;
    if !output.status.success() {
        eprintln!("DuckDB: {}", String::from_utf8_lossy(&output.stderr).trim());
    }
    String::from_utf8_lossy(&output.stdout).trim().parse().ok()
}
