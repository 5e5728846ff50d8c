//! Throughput of whole queries: rows a second from memory, megabytes a second from files.
//!
//! `cargo bench --bench throughput [-- FILTER] [--rows N]`. Every line is one query over one input, the best of three
//! runs, on one core (parallelism 1). The input is made once, from a fixed seed.

use std::io::Write;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use arrow::array::{ArrayRef, Int64Array, RecordBatch, TimestampMillisecondArray};
use ebbflow::{Engine, ProgramTable, Result, Session};

/// Rows of the inputs in memory, unless `--rows` says otherwise.
const ROWS: usize = 10_000_000;
const BATCH: usize = 8_192;
const RUNS: usize = 3;

fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).filter(|argument| argument != "--bench").collect();
    let mut rows = ROWS;
    let mut filter = String::new();
    let mut iterator = arguments.into_iter();
    while let Some(argument) = iterator.next() {
        match argument.as_str() {
            "--rows" => rows = iterator.next().and_then(|text| text.parse().ok()).unwrap_or(ROWS),
            // `cargo test` runs benches with this flag: once, small, so that they cannot rot.
            "--test" => rows = 10_000,
            other => filter = other.to_string(),
        }
    }
    let engine = Engine::builder().parallelism(1).build()?;
    from_memory(&engine, rows, &filter)?;
    from_files(&engine, rows / 5, &filter)
}

fn from_memory(engine: &Engine, rows: usize, filter: &str) -> Result<()> {
    for keys in [10, 100_000, 5_000_000] {
        let table = clicks(rows, keys);
        for (emission, options) in [("every change", EVERY_CHANGE), ("mini-batch", MINI_BATCH)] {
            let name = format!("group by, {keys} keys, {emission}");
            let sql = "SELECT k, COUNT(*), SUM(v) FROM clicks GROUP BY k";
            measure(engine, &name, filter, rows, &table, options, sql)?;
        }
    }
    let table = clicks(rows, 1_000);
    let tumble = "SELECT k, window_start, COUNT(*), SUM(v) \
                  FROM TABLE(TUMBLE(TABLE clicks, DESCRIPTOR(ts), INTERVAL '10' SECOND)) \
                  GROUP BY k, window_start, window_end";
    measure(engine, "tumble, 1000 keys", filter, rows, &table, EVERY_CHANGE, tumble)?;
    let calc = "SELECT k, v * 2 FROM clicks WHERE v > 500";
    measure(engine, "filter and project", filter, rows, &table, EVERY_CHANGE, calc)
}

const EVERY_CHANGE: &[(&str, &str)] = &[];
const MINI_BATCH: &[(&str, &str)] = &[
    ("table.exec.mini-batch.enabled", "true"),
    ("table.exec.mini-batch.allow-latency", "2 s"),
    ("table.exec.mini-batch.size", "50000"),
];

/// `k`, a key; `v`, 0 to 999; `ts`, a millisecond further every ten rows.
fn clicks(rows: usize, keys: u64) -> ProgramTable {
    let mut random = Random(42);
    let mut batches = Vec::new();
    for from in (0..rows).step_by(BATCH) {
        let length = BATCH.min(rows - from);
        let key: Int64Array = (0..length).map(|_| (random.next() % keys) as i64).collect();
        let value: Int64Array = (0..length).map(|_| (random.next() % 1_000) as i64).collect();
        let time: TimestampMillisecondArray = (from..from + length).map(|row| Some((row / 10) as i64)).collect();
        let columns: [(&str, ArrayRef); 3] = [("k", Arc::new(key)), ("v", Arc::new(value)), ("ts", Arc::new(time))];
        batches.push(RecordBatch::try_from_iter(columns).expect("columns of one length"));
    }
    let schema = batches[0].schema();
    ProgramTable::batches(schema, batches).watermark("ts", "ts - INTERVAL '1' SECOND")
}

fn measure(
    engine: &Engine,
    name: &str,
    filter: &str,
    rows: usize,
    table: &ProgramTable,
    options: &[(&str, &str)],
    sql: &str,
) -> Result<()> {
    if !name.contains(filter) {
        return Ok(());
    }
    let session = engine.session();
    for (key, value) in options {
        session.set(key, value)?;
    }
    session.register("clicks", table.clone())?;
    let (best, emitted) = best_of(engine, &session, sql)?;
    let rate = rows as f64 / best.as_secs_f64() / 1e6;
    println!("{name:<45} {rate:>8.2} million rows/s   {emitted:>10} changes");
    Ok(())
}

fn from_files(engine: &Engine, rows: usize, filter: &str) -> Result<()> {
    let folder = std::env::temp_dir().join(format!("ebbflow-bench-{}", std::process::id()));
    let made = std::fs::create_dir_all(&folder).and_then(|()| write_files(&folder, rows));
    made.unwrap_or_else(|error| panic!("cannot write to {}: {error}", folder.display()));
    for format in ["json", "csv"] {
        let path = folder.join(format!("bids.{format}"));
        let bytes = std::fs::metadata(&path).map_or(0, |metadata| metadata.len());
        let session = engine.session();
        let create = format!(
            "CREATE TABLE bids (auction BIGINT, bidder BIGINT, price BIGINT, channel STRING, url STRING, \
             ts TIMESTAMP(3), extra STRING) \
             WITH ('connector' = 'filesystem', 'path' = '{}', 'format' = '{format}')",
            path.display()
        );
        engine.block_on(session.execute(&create))?;
        for (what, sql) in [
            ("two of seven fields, filtered", "SELECT auction, price FROM bids WHERE price > 9900"),
            ("group by", "SELECT auction, COUNT(*), SUM(price) FROM bids GROUP BY auction"),
        ] {
            let name = format!("{format}, {what}");
            if name.contains(filter) {
                let (best, emitted) = best_of(engine, &session, sql)?;
                let rate = bytes as f64 / best.as_secs_f64() / 1e6;
                println!("{name:<45} {rate:>8.2} MB/s   {emitted:>10} changes");
            }
        }
    }
    std::fs::remove_dir_all(&folder).unwrap_or_else(|error| eprintln!("{} stays: {error}", folder.display()));
    Ok(())
}

/// Bids of about 210 bytes as JSON.
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

/// The best time of several runs, and how many changes came.
fn best_of(engine: &Engine, session: &Session, sql: &str) -> Result<(Duration, usize)> {
    let mut best = Duration::MAX;
    let mut emitted = 0;
    for _ in 0..RUNS {
        let start = Instant::now();
        emitted = engine.block_on(async {
            let mut changes = session.query(sql).await?;
            let mut count = 0;
            while let Some(batch) = changes.next().await {
                count += batch?.len();
            }
            Ok::<_, ebbflow::Error>(count)
        })?;
        best = best.min(start.elapsed());
    }
    Ok((best, emitted))
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
