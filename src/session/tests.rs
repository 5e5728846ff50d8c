//! Tests through the front door that a script cannot make: time stands still, and moves when the test says so.

mod consistency;
mod why;

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use arrow::array::{ArrayRef, Int64Array, RecordBatch};

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
