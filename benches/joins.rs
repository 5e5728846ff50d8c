//! Joins: throughput, what a change costs as the sides grow, one key that is half of the input, and how many impossible
//! totals a bank shows.

use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray, Int64Array, RecordBatch, TimestampMillisecondArray};
use arrow::datatypes::Int64Type;
use ebbflow::{ChangeBatch, ChangelogMode, Engine, Kind, ProgramTable, Result, Session};

use crate::common::{Arguments, Random, drain};

const BATCH: usize = 8_192;
/// Keys of the large joins.
const KEYS: u64 = 1_000_000;

const INNER: &str = "SELECT l.k, l.v, r.v FROM l JOIN r ON l.k = r.k";
const LEFT: &str = "SELECT l.k, l.v, r.v FROM l LEFT JOIN r ON l.k = r.k";
const INTERVAL: &str = "SELECT l.k, l.v, r.v FROM l JOIN r ON l.k = r.k \
                        AND r.ts BETWEEN l.ts - INTERVAL '1' SECOND AND l.ts + INTERVAL '1' SECOND";

/// Rows of a table of `k`, a key; `v`, their number; `ts`, a millisecond further every hundred rows.
struct Input {
    mode: ChangelogMode,
    changes: Vec<ChangeBatch>,
}

impl Input {
    /// New rows with these keys.
    fn rows(rows: usize, mut key: impl FnMut(usize) -> i64) -> Result<Input> {
        let mut changes = Vec::new();
        for from in (0..rows).step_by(BATCH) {
            let of = from..rows.min(from + BATCH);
            let keys = of.clone().map(&mut key).collect();
            changes.push(ChangeBatch::inserts(batch(keys, of.clone().map(|row| row as i64).collect(), from)?));
        }
        Ok(Input { mode: ChangelogMode::APPEND, changes })
    }

    /// New rows with random keys of so many.
    fn random(rows: usize, seed: u64, keys: u64) -> Result<Input> {
        let mut random = Random(seed);
        Input::rows(rows, |_| (random.next() % keys) as i64)
    }

    /// A row for each of these keys, and then updates of them in random order, until there are `rows` changes.
    fn updates(keys: usize, rows: usize) -> Result<Input> {
        let mut input = Input::rows(keys, |row| row as i64)?;
        input.mode = ChangelogMode::RETRACT;
        let (mut random, mut values) = (Random(3), (0..keys as i64).collect::<Vec<_>>());
        let mut left = rows.saturating_sub(keys) / 2;
        while left > 0 {
            let pairs = left.min(BATCH / 2);
            let (mut key, mut value) = (Vec::with_capacity(pairs * 2), Vec::with_capacity(pairs * 2));
            for _ in 0..pairs {
                let at = (random.next() % keys as u64) as usize;
                key.extend([at as i64; 2]);
                value.extend([values[at], values[at] + 1]);
                values[at] += 1;
            }
            let kinds = [Kind::UpdateBefore, Kind::UpdateAfter].repeat(pairs);
            input.changes.push(ChangeBatch::new(batch(key.into(), value.into(), rows)?, kinds)?);
            left -= pairs;
        }
        Ok(input)
    }

    fn len(&self) -> usize {
        self.changes.iter().map(ChangeBatch::len).sum()
    }

    /// A table of them, for one run.
    fn register(&self, session: &Session, name: &str) -> Result<()> {
        let rows = self.changes.first().map_or_else(
            || batch(Int64Array::from(vec![0; 0]), Int64Array::from(vec![0; 0]), 0),
            |batch| Ok(batch.rows().clone()),
        )?;
        let table = if self.mode.is_append_only() {
            ProgramTable::batches(rows.schema(), self.changes.iter().map(|batch| batch.rows().clone()).collect())
        } else {
            let changes: Vec<Result<ChangeBatch>> = self.changes.iter().cloned().map(Ok).collect();
            ProgramTable::stream(rows.schema(), self.mode, futures::stream::iter(changes))
        };
        session.register(name, table.watermark("ts", "ts - INTERVAL '1' SECOND"))
    }
}

fn batch(keys: Int64Array, values: Int64Array, from: usize) -> Result<RecordBatch> {
    let times: TimestampMillisecondArray = (from..from + keys.len()).map(|row| Some((row / 100) as i64)).collect();
    let columns: [(&str, ArrayRef); 3] = [("k", Arc::new(keys)), ("v", Arc::new(values)), ("ts", Arc::new(times))];
    Ok(RecordBatch::try_from_iter(columns)?)
}

/// Every line about joins.
///
/// # Errors
/// The first error of a query.
pub fn measure(engine: &Engine, arguments: &Arguments) -> Result<()> {
    let half = arguments.rows / 2;
    let many = |seed| move || Input::random(half, seed, KEYS);
    line(engine, arguments, "inner join, 1000000 keys", INNER, many(1), many(2))?;
    line(engine, arguments, "left join with updates, 1000000 keys", LEFT, many(1), || Input::updates(half / 5, half))?;
    line(engine, arguments, "interval join, 1000000 keys", INTERVAL, many(1), many(2))?;
    let each = || Input::rows(half, |row| row as i64);
    line(engine, arguments, "inner join with a row a key", INNER, || Input::random(half, 1, half as u64), each)?;
    let hot = || {
        let mut random = Random(1);
        Input::rows(half, |_| if random.next().is_multiple_of(2) { 0 } else { (random.next() % half as u64) as i64 })
    };
    line(engine, arguments, "inner join with a row a key, half of one key", INNER, hot, each)?;
    for (rows, matches) in [(100, 1), (10_000, 1), (1_000_000, 1), (1_000_000, 10), (1_000_000, 100)] {
        let name = format!("a change, {rows} rows a side, {matches} matches");
        let (keys, rows) = (rows / matches, rows.min(arguments.rows));
        let sided = move || Input::rows(rows, |row| (row % keys) as i64);
        line(engine, arguments, &name, INNER, sided, || Input::updates(keys, arguments.rows / 5))?;
    }
    bank(engine, arguments)
}

/// One join of `l` and `r`; the rate is in changes of both.
fn line(
    engine: &Engine,
    arguments: &Arguments,
    name: &str,
    sql: &str,
    left: impl Fn() -> Result<Input>,
    right: impl Fn() -> Result<Input>,
) -> Result<()> {
    if !arguments.wants(name) {
        return Ok(());
    }
    let (left, right) = (left()?, right()?);
    let changes = left.len() + right.len();
    let (time, emitted) = arguments.best(|| {
        let session = engine.session();
        left.register(&session, "l")?;
        right.register(&session, "r")?;
        drain(engine, &session, sql)
    })?;
    println!("{name:<45} {} {emitted:>10} changes", time.rates(changes as f64 / 1e6, "M rows"));
    Ok(())
}

/// Money is moved between a thousand accounts; the sum of all balances is 0 after every transfer. Counts the results that
/// are shown and the impossible ones among them.
fn bank(engine: &Engine, arguments: &Arguments) -> Result<()> {
    const TOTAL: &str = "SELECT SUM(balance), SUM(credits) FROM (
        SELECT COALESCE(credits, 0) - COALESCE(debits, 0) AS balance, credits
        FROM (SELECT receiver, SUM(amount) AS credits FROM transfers GROUP BY receiver)
        FULL JOIN (SELECT sender, SUM(amount) AS debits FROM transfers GROUP BY sender) ON receiver = sender)";
    let rows = arguments.rows / 10;
    let mut random = Random(9);
    let mut column = |values: u64| -> ArrayRef {
        Arc::new((0..rows).map(|_| (random.next() % values) as i64).collect::<Int64Array>())
    };
    let transfers = [("sender", column(1_000)), ("receiver", column(1_000)), ("amount", column(100))];
    let transfers = RecordBatch::try_from_iter(transfers)?;
    let parts: Vec<RecordBatch> =
        (0..rows).step_by(BATCH).map(|from| transfers.slice(from, BATCH.min(rows - from))).collect();
    for (name, consistent) in [("a bank, results as they come", "false"), ("a bank, consistent results", "true")] {
        if !arguments.wants(name) {
            continue;
        }
        let (time, (shown, impossible)) = arguments.best(|| {
            let session = engine.session();
            session.register("transfers", ProgramTable::batches(transfers.schema(), parts.clone()))?;
            session.set("table.exec.consistent-results", consistent)?;
            engine.block_on(async {
                let (mut shown, mut impossible) = (0, 0);
                let mut changes = session.query(TOTAL).await?;
                while let Some(batch) = changes.next().await {
                    let batch = batch?;
                    let totals = batch.rows().column(0).as_primitive::<Int64Type>();
                    let images = (0..batch.len()).filter(|row| !batch.kind(*row).is_retraction());
                    images.clone().for_each(|_| shown += 1);
                    impossible += images.filter(|row| totals.value(*row) != 0).count();
                }
                Ok((shown, impossible))
            })
        })?;
        let rates = time.rates(rows as f64 / 1e6, "M rows");
        println!("{name:<45} {rates} {shown:>10} results, {impossible} of them impossible");
    }
    Ok(())
}
