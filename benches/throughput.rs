//! Throughput of whole queries over rows in memory, and what checkpoints cost of it.
//!
//! `cargo bench --bench throughput [-- FILTER] [--rows N]`. A line is one query over one input, on one core (parallelism
//! 1): rows a second by the clock, and a second of core time of all threads, the reading of the result included. The
//! input is made once, from a fixed seed.

mod common;
mod joins;

use std::sync::Arc;

use arrow::array::{ArrayRef, Int64Array, RecordBatch, TimestampMillisecondArray};
use common::{Arguments, Folder, Random, drain, execute};
use ebbflow::{Engine, ProgramTable, Result};

const ROWS: usize = 10_000_000;
const BATCH: usize = 8_192;

const COUNT_AND_SUM: &str = "SELECT k, COUNT(*), SUM(v) FROM clicks GROUP BY k";

const EVERY_CHANGE: &[(&str, &str)] = &[];
const EXTENSIONS: &[(&str, &str)] = &[("table.sql.extensions", "true")];
const MINI_BATCH: &[(&str, &str)] = &[
    ("table.exec.mini-batch.enabled", "true"),
    ("table.exec.mini-batch.allow-latency", "2 s"),
    ("table.exec.mini-batch.size", "50000"),
];

fn main() -> Result<()> {
    let arguments = Arguments::read(ROWS);
    let engine = Engine::builder().parallelism(1).build()?;
    for keys in [10, 100_000, 5_000_000] {
        for (emission, options) in [("every change", EVERY_CHANGE), ("mini-batch", MINI_BATCH)] {
            let name = format!("group by, {keys} keys, {emission}");
            measure(&engine, &arguments, &name, keys, options, COUNT_AND_SUM)?;
        }
    }
    let tumble = "SELECT k, window_start, COUNT(*), SUM(v) \
                  FROM TABLE(TUMBLE(TABLE clicks, DESCRIPTOR(ts), INTERVAL '10' SECOND)) \
                  GROUP BY k, window_start, window_end";
    measure(&engine, &arguments, "tumble, 1000 keys", 1_000, EVERY_CHANGE, tumble)?;
    let million = tumble.replace("'10' SECOND", "'1' HOUR");
    measure(&engine, &arguments, "tumble, 1000000 open windows", 1_000_000, EVERY_CHANGE, &million)?;
    for (name, cut) in [
        ("hop, 2 windows a row", "HOP(TABLE clicks, DESCRIPTOR(ts), INTERVAL '30' SECOND, INTERVAL '60' SECOND)"),
        ("hop, 60 windows a row", "HOP(TABLE clicks, DESCRIPTOR(ts), INTERVAL '1' SECOND, INTERVAL '60' SECOND)"),
        ("cumulate, 60 windows", "CUMULATE(TABLE clicks, DESCRIPTOR(ts), INTERVAL '1' SECOND, INTERVAL '60' SECOND)"),
    ] {
        let sql =
            format!("SELECT k, window_start, COUNT(*), SUM(v) FROM TABLE({cut}) GROUP BY k, window_start, window_end");
        measure(&engine, &arguments, name, 1_000, EVERY_CHANGE, &sql)?;
    }
    let session = "SELECT k, window_start, COUNT(*), SUM(v) \
                   FROM TABLE(SESSION(TABLE clicks PARTITION BY k, DESCRIPTOR(ts), INTERVAL '0.2' SECOND)) \
                   GROUP BY k, window_start, window_end";
    measure(&engine, &arguments, "session, 1000 keys", 1_000, EVERY_CHANGE, session)?;
    let top = "SELECT k, v FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY k ORDER BY v DESC) AS rn FROM clicks) \
               WHERE rn <= 10";
    measure(&engine, &arguments, "top 10 of each key, 1000000 keys", 1_000_000, EVERY_CHANGE, top)?;
    let distinct = "SELECT k, COUNT(DISTINCT MOD(v, 100)) FROM clicks GROUP BY k";
    measure(&engine, &arguments, "count distinct, 100 values a key, 10000 keys", 10_000, EVERY_CHANGE, distinct)?;
    let about = "SELECT k, APPROX_COUNT_DISTINCT(v) FROM clicks GROUP BY k";
    measure(&engine, &arguments, "about how many distinct, 10000 keys", 10_000, EXTENSIONS, about)?;
    let calc = "SELECT k, v * 2 FROM clicks WHERE v > 500";
    measure(&engine, &arguments, "filter and project", 1_000, EVERY_CHANGE, calc)?;
    for (emission, options) in [("every change", EVERY_CHANGE), ("mini-batch", MINI_BATCH)] {
        checkpoints(&engine, &arguments, emission, options)?;
    }
    joins::measure(&engine, &arguments)
}

/// `k`, a key; `v`, 0 to 999; `ts`, a millisecond further every ten rows. The rows come `times` times.
fn clicks(rows: usize, keys: u64, times: usize) -> Result<ProgramTable> {
    let mut random = Random(42);
    let mut batches = Vec::new();
    for from in (0..rows).step_by(BATCH) {
        let length = BATCH.min(rows - from);
        let key: Int64Array = (0..length).map(|_| (random.next() % keys) as i64).collect();
        let value: Int64Array = (0..length).map(|_| (random.next() % 1_000) as i64).collect();
        let time: TimestampMillisecondArray = (from..from + length).map(|row| Some((row / 10) as i64)).collect();
        let columns: [(&str, ArrayRef); 3] = [("k", Arc::new(key)), ("v", Arc::new(value)), ("ts", Arc::new(time))];
        batches.push(RecordBatch::try_from_iter(columns)?);
    }
    let schema = batches[0].schema();
    let batches = std::iter::repeat_n(batches, times).flatten().collect();
    Ok(ProgramTable::batches(schema, batches).watermark("ts", "ts - INTERVAL '1' SECOND"))
}

fn measure(
    engine: &Engine,
    arguments: &Arguments,
    name: &str,
    keys: u64,
    options: &[(&str, &str)],
    sql: &str,
) -> Result<()> {
    if !arguments.wants(name) {
        return Ok(());
    }
    let session = engine.session();
    for (key, value) in options {
        session.set(key, value)?;
    }
    session.register("clicks", clicks(arguments.rows, keys, 1)?)?;
    let (time, emitted) = arguments.best(|| drain(engine, &session, sql))?;
    println!("{name:<45} {} {emitted:>10} changes", time.rates(arguments.rows as f64 / 1e6, "M rows"));
    Ok(())
}

/// The same job without and with a checkpoint every second, over a million keys; the runs alternate, so that both see
/// the same machine.
fn checkpoints(engine: &Engine, arguments: &Arguments, emission: &str, options: &[(&str, &str)]) -> Result<()> {
    let name = format!("checkpoints, 1000000 keys, {emission}");
    if !arguments.wants(&name) {
        return Ok(());
    }
    const TIMES: usize = 6;
    let table = clicks(arguments.rows, 1_000_000, TIMES)?;
    let run = |directory: Option<&str>| {
        let session = engine.session();
        for (key, value) in options {
            session.set(key, value)?;
        }
        if let Some(directory) = directory {
            session.set("execution.checkpointing.dir", directory)?;
            session.set("execution.checkpointing.interval", "1 s")?;
            session.set("execution.state-recovery.fresh", "true")?;
        }
        session.register("clicks", table.clone())?;
        let sink = "CREATE TABLE totals (k BIGINT, n BIGINT, s BIGINT) WITH ('connector' = 'blackhole')";
        execute(engine, &session, sink)?;
        execute(engine, &session, &format!("INSERT INTO totals {COUNT_AND_SUM}"))
    };
    let folder = Folder::new("checkpoints");
    let directory = folder.0.display().to_string();
    let rows = (arguments.rows * TIMES) as f64;
    let (without, with) = arguments.alternating(|| run(None), || run(Some(&directory)))?;
    println!("{:<45} {}", format!("{name}: none"), without.rates(rows / 1e6, "M rows"));
    let cost = (with.wall.as_secs_f64() / without.wall.as_secs_f64() - 1.0) * 100.0;
    println!("{:<45} {} {cost:>9.1} % longer", format!("{name}: each second"), with.rates(rows / 1e6, "M rows"));
    Ok(())
}
