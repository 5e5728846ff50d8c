//! Tests through the front door that a script cannot make: time stands still, and moves when the test says so.

mod consistency;
mod why;

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use arrow::array::{ArrayRef, AsArray, Int64Array, RecordBatch};
use futures::FutureExt;

use super::{Engine, ProgramTable};
use crate::changelog::{ChangeBatch, ChangelogMode};
use crate::error::Result;
use crate::runtime::Clock;

/// Enough for a row to go from the source to the aggregation, also on a busy machine.
const WAIT: Duration = Duration::from_millis(300);

/// A clock that shows what it was set to.
struct SetClock(AtomicI64);

impl Clock for SetClock {
    fn now_ms(&self) -> i64 {
        self.0.load(Ordering::SeqCst)
    }
}

/// Runs `sql` over a table `t` of one column `v` and a view `p` with its processing time. Each step sets the clock and
/// then sends rows, or none; what comes out after it is compared.
fn check(options: &[(&str, &str)], sql: &str, steps: &[(i64, &[i64], &[&str])]) {
    let clock = Arc::new(SetClock(AtomicI64::new(0)));
    let engine = Engine::builder().parallelism(1).clock(Arc::clone(&clock) as Arc<dyn Clock>).build().unwrap();
    let session = engine.session();
    let rows = |values: &[i64]| {
        let column: ArrayRef = Arc::new(Int64Array::from(values.to_vec()));
        RecordBatch::try_from_iter([("v", column)]).unwrap()
    };
    let (send, receive) = tokio::sync::mpsc::unbounded_channel::<Result<ChangeBatch>>();
    let stream = futures::stream::unfold(receive, |mut receive| async { Some((receive.recv().await?, receive)) });
    let table = ProgramTable::stream(rows(&[]).schema(), ChangelogMode::APPEND, stream);
    session.register("t", table).unwrap();
    engine.block_on(async {
        for (key, value) in options {
            session.execute(&format!("SET '{key}' = '{value}'")).await.unwrap();
        }
        session.execute("CREATE VIEW p AS SELECT v, PROCTIME() AS now FROM t").await.unwrap();
        let mut changes = session.query(sql).await.unwrap();
        for (now, values, expected) in steps {
            clock.0.store(*now, Ordering::SeqCst);
            if !values.is_empty() {
                send.send(Ok(ChangeBatch::inserts(rows(values)))).unwrap();
            }
            let mut lines: Vec<String> = Vec::new();
            while lines.len() < expected.len() {
                let batch = changes.next().await.expect("the query goes on").unwrap();
                lines.extend(changes.lines(&batch).unwrap());
            }
            assert_eq!(lines, *expected, "at {now}");
            if expected.is_empty() {
                // The rows must have gone in before the clock moves on; nothing may come of them yet.
                let early = tokio::time::timeout(WAIT, changes.next()).await;
                assert!(early.is_err(), "something came at {now}");
            }
        }
    });
}

#[test]
fn the_clock_closes_windows_of_processing_time_although_no_row_comes() {
    let steps: [(i64, &[i64], &[&str]); 4] = [
        (1_000, &[1, 2], &[]),
        (9_000, &[4], &[]),
        (9_999, &[], &["+I[1970-01-01 00:00:00.000, 3, 7]"]),
        (35_000, &[8], &[]),
    ];
    let function = "SELECT window_start, COUNT(*), SUM(v) FROM TABLE(TUMBLE(TABLE p, DESCRIPTOR(now), \
        INTERVAL '10' SECOND)) GROUP BY window_start, window_end";
    let group = "SELECT TUMBLE_START(now, INTERVAL '10' SECOND), COUNT(*), SUM(v) FROM p \
        GROUP BY TUMBLE(now, INTERVAL '10' SECOND)";
    check(&[], function, &steps);
    check(&[], group, &steps);
}

#[test]
fn the_clock_closes_sessions_of_processing_time_although_no_row_comes() {
    let session = "SELECT window_start, window_end, SUM(v) FROM TABLE(SESSION(TABLE p, DESCRIPTOR(now), \
        INTERVAL '5' SECOND)) GROUP BY window_start, window_end";
    check(
        &[],
        session,
        &[
            (1_000, &[1, 2], &[]),
            (4_000, &[4], &[]),
            (8_999, &[], &["+I[1970-01-01 00:00:01.000, 1970-01-01 00:00:09.000, 7]"]),
            (20_000, &[8], &[]),
            (25_000, &[16], &["+I[1970-01-01 00:00:20.000, 1970-01-01 00:00:25.000, 8]"]),
        ],
    );
}

#[test]
fn early_results_come_when_their_delay_is_over() {
    let options = [("table.exec.emit.early-fire.enabled", "true"), ("table.exec.emit.early-fire.delay", "3 s")];
    let group = "SELECT COUNT(*), SUM(v) FROM p GROUP BY TUMBLE(now, INTERVAL '10' SECOND)";
    let steps: [(i64, &[i64], &[&str]); 4] = [
        (1_000, &[1, 2], &[]),
        (4_000, &[], &["+I[2, 3]"]),
        (5_000, &[4], &[]),
        (9_999, &[], &["-U[2, 3]", "+U[3, 7]"]),
    ];
    check(&options, group, &steps);
}

#[test]
fn idle_keys_expire_by_the_clock_that_the_program_sets() {
    let steps: [(i64, &[i64], &[&str]); 3] =
        [(1_000, &[1], &["+I[1, 1]"]), (5_000, &[1], &["-U[1, 1]", "+U[1, 2]"]), (10_000, &[1], &["+I[1, 1]"])];
    check(&[("table.exec.state.ttl", "5 s")], "SELECT v, COUNT(*) FROM t GROUP BY v", &steps);
    let over = "SELECT v, COUNT(*) OVER (PARTITION BY v ORDER BY now) FROM p";
    let steps: [(i64, &[i64], &[&str]); 3] =
        [(1_000, &[1], &["+I[1, 1]"]), (5_000, &[1], &["+I[1, 2]"]), (10_000, &[1], &["+I[1, 1]"])];
    check(&[("table.exec.state.ttl", "5 s")], over, &steps);
}

/// The lines of a statement's answer.
fn answer(session: &super::Session, engine: &Engine, sql: &str) -> Vec<String> {
    let rows = match engine.block_on(session.execute(sql)).unwrap() {
        super::Outcome::Rows(rows) => rows,
        _ => panic!("{sql} has no rows to show"),
    };
    rows.column(0).as_string::<i32>().iter().flatten().flat_map(str::lines).map(str::to_string).collect()
}

#[test]
fn explain_analyze_shows_what_every_operator_did() {
    let engine = Engine::builder().parallelism(2).build().unwrap();
    let session = engine.session();
    let keys: ArrayRef = Arc::new(Int64Array::from_iter_values((0..5_000).map(|row| row % 100)));
    let rows = RecordBatch::try_from_iter([("k", keys)]).unwrap();
    session.register("t", ProgramTable::batches(rows.schema(), vec![rows])).unwrap();
    let lines = answer(&session, &engine, "EXPLAIN ANALYZE SELECT k, COUNT(*) FROM t GROUP BY k");
    let measured = |operator: &str| {
        let at = lines.iter().position(|line| line.contains(operator)).unwrap();
        lines[at..].iter().find(|line| line.contains("measured: ")).unwrap().trim().to_string()
    };
    assert!(measured("GroupAggregate").contains("rows in=5000, out=9900, state keys=100, memory="), "{lines:#?}");
    assert!(measured("GroupAggregate").contains("busy="), "{lines:#?}");
    assert!(measured("Source").contains("out=5000"), "{lines:#?}");
    assert!(measured("Collect").contains("in=9900"), "{lines:#?}");
    assert!(lines.last().unwrap().starts_with("ran for "), "{lines:#?}");
    let (_send, receive) = tokio::sync::mpsc::unbounded_channel::<Result<ChangeBatch>>();
    let endless = futures::stream::unfold(receive, |mut receive| async { Some((receive.recv().await?, receive)) });
    let schema = Arc::new(arrow::datatypes::Schema::new(vec![arrow::datatypes::Field::new(
        "k",
        arrow::datatypes::DataType::Int64,
        true,
    )]));
    session.register("endless", ProgramTable::stream(schema, ChangelogMode::APPEND, endless)).unwrap();
    let error = engine.block_on(session.execute("EXPLAIN ANALYZE SELECT * FROM endless")).err().unwrap();
    assert_eq!(error.message(), "EXPLAIN ANALYZE runs to the end, and table 'endless' has none");
}

#[test]
fn functions_of_the_program_have_names_of_their_own() {
    use crate::function::{ColumnarValue, Volatility, create_udf};
    let engine = Engine::builder().parallelism(1).build().unwrap();
    let session = engine.session();
    let function = |name: &str| {
        let body = Arc::new(|arguments: &[ColumnarValue]| Ok(arguments[0].clone()));
        let int = arrow::datatypes::DataType::Int64;
        create_udf(name, vec![int.clone()], int, Volatility::Immutable, body)
    };
    session.register_function(function("same_of")).unwrap();
    let taken = session.register_function(function("Same_Of")).unwrap_err();
    assert_eq!(taken.message(), "function 'Same_Of' is registered already");
    let built_in = session.register_function(function("UPPER")).unwrap_err();
    assert_eq!(built_in.message(), "function 'UPPER' is built in");
    assert!(session.register_table_function(function("sum")).is_err());
    assert!(answer(&session, &engine, "SHOW USER FUNCTIONS").contains(&"same_of".to_string()));
    assert!(engine.session().execute("SELECT same_of(1)").now_or_never().unwrap().is_err());
    let created = engine.block_on(session.execute("CREATE FUNCTION same_of(x INT) AS x"));
    assert!(created.is_err(), "a name has one meaning");
}
