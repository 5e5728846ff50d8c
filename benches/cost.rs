//! What one change costs by how many rows its group has: the logarithm, whatever the function.
//!
//! `cargo bench --bench cost [-- FILTER] [--rows N]`. A line is one query over one group of so many rows, of which one
//! after the other is replaced at random: nanoseconds a replacement (a row goes, a row comes), the time of filling the
//! group aside. Groups have 10², 10³, … rows, up to N.

#[allow(dead_code, reason = "the benches share it, and each uses a part")]
mod common;

use std::sync::Arc;

use arrow::array::{ArrayRef, Int64Array, RecordBatch};
use common::{Arguments, Random, drain};
use ebbflow::{ChangeBatch, ChangelogMode, Engine, Kind, ProgramTable, Result};

const ROWS: usize = 1_000_000;
const BATCH: usize = 8_192;

/// A replacement and the row it replaces are this far apart at most: a frame of 1,000 holds some twenty rows.
const STEP: i64 = 100;

const QUERIES: &[(&str, &str)] = &[
    ("MIN and MAX", "SELECT MIN(v), MAX(v) FROM t"),
    ("COUNT DISTINCT", "SELECT COUNT(DISTINCT v) FROM t"),
    ("PERCENTILE", "SELECT PERCENTILE(v, ARRAY[0.5, 0.99]) FROM t"),
    ("FIRST_VALUE in an order", "SELECT FIRST_VALUE(id ORDER BY v) FROM t"),
    ("Top-10", "SELECT v FROM (SELECT *, ROW_NUMBER() OVER (ORDER BY v DESC) AS rn FROM t) WHERE rn <= 10"),
    ("RANGE frame", "SELECT v, SUM(id) OVER (ORDER BY v RANGE BETWEEN 1000 PRECEDING AND CURRENT ROW) FROM t"),
];

fn main() -> Result<()> {
    let arguments = Arguments::read(ROWS);
    let engine = Engine::builder().parallelism(1).build()?;
    for (what, sql) in QUERIES {
        for rows in (2..=6).map(|power| 10_usize.pow(power)).take_while(|rows| *rows <= arguments.rows) {
            let name = format!("{what}, {rows} rows");
            if arguments.wants(&name) {
                measure(&engine, &arguments, &name, rows, sql)?;
            }
        }
    }
    Ok(())
}

/// `id`, from 0 on, and `v`, about `id * STEP`; after `rows` rows so many of them are replaced, one after the other.
fn changes(rows: usize, replaced: usize) -> Result<Vec<ChangeBatch>> {
    let mut random = Random(7);
    let fresh = |id: usize, random: &mut Random| id as i64 * STEP + (random.next() % STEP as u64) as i64;
    let mut values: Vec<i64> = (0..rows).map(|id| fresh(id, &mut random)).collect();
    let mut changes: Vec<(Kind, i64, i64)> =
        values.iter().enumerate().map(|(id, value)| (Kind::Insert, id as i64, *value)).collect();
    for _ in 0..replaced {
        let id = (random.next() % rows as u64) as usize;
        changes.push((Kind::Delete, id as i64, values[id]));
        values[id] = fresh(id, &mut random);
        changes.push((Kind::Insert, id as i64, values[id]));
    }
    let batch = |changes: &[(Kind, i64, i64)]| {
        let ids = Int64Array::from_iter_values(changes.iter().map(|change| change.1));
        let values = Int64Array::from_iter_values(changes.iter().map(|change| change.2));
        let columns: [(&str, ArrayRef); 2] = [("id", Arc::new(ids)), ("v", Arc::new(values))];
        ChangeBatch::new(RecordBatch::try_from_iter(columns)?, changes.iter().map(|change| change.0).collect())
    };
    changes.chunks(BATCH).map(batch).collect()
}

fn measure(engine: &Engine, arguments: &Arguments, name: &str, rows: usize, sql: &str) -> Result<()> {
    let replaced = arguments.rows.clamp(1_000, 100_000);
    let (filling, replacing) = (changes(rows, 0)?, changes(rows, replaced)?);
    let schema = filling[0].rows().schema();
    let run = |batches: &[ChangeBatch]| {
        let session = engine.session();
        session.set("table.sql.extensions", "true")?;
        let rows = futures::stream::iter(batches.iter().cloned().map(Ok).collect::<Vec<_>>());
        session.register("t", ProgramTable::stream(Arc::clone(&schema), ChangelogMode::RETRACT, rows))?;
        drain(engine, &session, sql)
    };
    let (filled, with) = arguments.alternating(|| run(&filling), || run(&replacing))?;
    let cost = with.wall.saturating_sub(filled.wall).as_nanos() / replaced as u128;
    println!("{name:<45} {cost:>8} ns a replacement");
    Ok(())
}
