//! Ten situations in which nothing comes out, and whether the true cause is named.

use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use arrow::array::{ArrayRef, Int64Array, RecordBatch, TimestampMillisecondArray};
use futures::future::BoxFuture;
use tokio::sync::mpsc;

use super::SetClock;
use crate::changelog::{ChangeBatch, ChangelogMode};
use crate::connectors::{Source, SourceEvent, SourceReader, SplitPosition};
use crate::error::Result;
use crate::runtime::{Cause, Clock, Diagnosis};
use crate::session::{Changes, Engine, Job, Outcome, ProgramTable, Session};

/// What the clock shows at the beginning.
const NOW: i64 = 1_000_000;

type Rows = mpsc::UnboundedReceiver<ChangeBatch>;

/// A table of so many splits, each fed by the test.
struct Fed(Vec<Arc<Mutex<Option<Rows>>>>);

struct FedReader {
    split: usize,
    rows: Rows,
}

impl Source for Fed {
    fn mode(&self) -> ChangelogMode {
        ChangelogMode::APPEND
    }

    fn bounded(&self) -> bool {
        false
    }

    fn open(
        &self,
        subtask: usize,
        _parallelism: usize,
        projection: &[usize],
        _restored: Option<&[SplitPosition]>,
    ) -> Result<Box<dyn SourceReader>> {
        assert_eq!(projection, [0, 1], "the tests read both columns");
        let rows = self.0[subtask].lock().unwrap().take().expect("a split is read once");
        Ok(Box::new(FedReader { split: subtask, rows }))
    }
}

impl SourceReader for FedReader {
    fn next(&mut self) -> BoxFuture<'_, Result<SourceEvent>> {
        Box::pin(async { Ok(self.rows.recv().await.map_or(SourceEvent::End, SourceEvent::Changes)) })
    }

    fn positions(&self) -> Vec<SplitPosition> {
        vec![SplitPosition { split: format!("part-{}", self.split), position: 0.into() }]
    }
}

/// Rows of the columns `ts` and `v`.
fn rows(times: &[Option<i64>]) -> ChangeBatch {
    let values: ArrayRef = Arc::new(Int64Array::from_iter_values(0..times.len() as i64));
    let times: ArrayRef = Arc::new(TimestampMillisecondArray::from(times.to_vec()));
    ChangeBatch::inserts(RecordBatch::try_from_iter_with_nullable([("ts", times, true), ("v", values, false)]).unwrap())
}

/// A session with tables that are fed by hand.
struct Bench {
    engine: Engine,
    session: Session,
    clock: Arc<SetClock>,
}

impl Bench {
    fn new(parallelism: usize) -> Bench {
        let clock = Arc::new(SetClock(AtomicI64::new(NOW)));
        let shown = Arc::clone(&clock) as Arc<dyn Clock>;
        let engine = Engine::builder().parallelism(parallelism).clock(shown).build().unwrap();
        let session = engine.session();
        Bench { engine, session, clock }
    }

    /// A table of so many splits, with a watermark if one is given.
    fn table(&self, name: &str, splits: usize, watermark: Option<&str>) -> Vec<mpsc::UnboundedSender<ChangeBatch>> {
        let (senders, receivers): (Vec<_>, Vec<_>) = (0..splits).map(|_| mpsc::unbounded_channel()).unzip();
        let receivers = receivers.into_iter().map(|receiver| Arc::new(Mutex::new(Some(receiver)))).collect();
        let table = ProgramTable::source(rows(&[]).schema(), Arc::new(Fed(receivers)));
        let table = match watermark {
            Some(expression) => table.watermark("ts", expression),
            None => table,
        };
        self.session.register(name, table).unwrap();
        senders
    }

    fn execute(&self, sql: &str) -> Outcome {
        self.engine.block_on(self.session.execute(sql)).unwrap()
    }

    fn query(&self, sql: &str) -> Changes {
        self.engine.block_on(self.session.query(sql)).unwrap()
    }

    /// Waits until the job gives this cause, and gives all that it says.
    fn expect(&self, job: &Job, cause: Cause) -> Diagnosis {
        let mut found = job.diagnose();
        for _ in 0..100 {
            if found.cause == cause {
                return found;
            }
            std::thread::sleep(Duration::from_millis(50));
            found = job.diagnose();
        }
        panic!("{cause:?} was expected:\n{found}");
    }
}

fn check(found: &Diagnosis, words: &[&str]) {
    let text = found.to_string();
    for word in words {
        assert!(text.contains(word), "'{word}' is not in\n{text}");
    }
}

const WINDOWS: &str = "SELECT window_start, COUNT(*), SUM(v) FROM TABLE(TUMBLE(TABLE t, DESCRIPTOR(ts), \
    INTERVAL '10' SECOND)) GROUP BY window_start, window_end";

#[test]
fn an_idle_split_is_named_with_the_time_of_its_last_row() {
    let bench = Bench::new(2);
    let splits = bench.table("t", 2, Some("ts - INTERVAL '1' SECOND"));
    let changes = bench.query(WINDOWS);
    splits[0].send(rows(&[Some(1_000), Some(25_000)])).unwrap();
    let found = bench.expect(changes.job(), Cause::IdleSplit);
    check(&found, &["split 'part-1' of table 't', which has brought no row yet", "table.exec.source.idle-timeout"]);
    // It has a row, and then none for a minute.
    splits[1].send(rows(&[Some(2_000)])).unwrap();
    std::thread::sleep(Duration::from_millis(300));
    bench.clock.0.store(NOW + 60_000, Ordering::SeqCst);
    let found = bench.expect(changes.job(), Cause::IdleSplit);
    check(&found, &["held at 1970-01-01 00:00:01.000 by split 'part-1'", "whose last row came 1 min 0 s ago"]);
    let window = found.operators.iter().find(|operator| operator.description == "WindowAggregate").unwrap();
    assert_eq!((window.rows_in, window.rows_out, window.next_close), (3, 0, Some(9_999)));
    assert!(window.held_back_by.as_ref().is_some_and(|split| split.contains("part-1")));
}

#[test]
fn a_table_without_a_watermark_is_named() {
    let bench = Bench::new(1);
    let timed = bench.table("timed", 1, Some("ts - INTERVAL '1' SECOND"));
    let plain = bench.table("plain", 1, None);
    bench.execute("CREATE VIEW t AS SELECT ts, v FROM timed UNION ALL SELECT ts, v FROM plain");
    let changes = bench.query(WINDOWS);
    timed[0].send(rows(&[Some(1_000), Some(99_000)])).unwrap();
    plain[0].send(rows(&[Some(1_000), Some(99_000)])).unwrap();
    let found = bench.expect(changes.job(), Cause::NoWatermark);
    check(&found, &["table 'plain' has no watermark", "WATERMARK FOR"]);
}

#[test]
fn a_condition_that_lets_nothing_pass_is_shown() {
    let bench = Bench::new(1);
    let splits = bench.table("t", 1, Some("ts"));
    let changes = bench.query("SELECT ts, v FROM t WHERE v > 100");
    splits[0].send(rows(&[Some(1_000), Some(2_000)])).unwrap();
    let found = bench.expect(changes.job(), Cause::Filtered);
    check(&found, &["t.v > ", "let none of 2 rows pass", "2 in, 0 out"]);
}

#[test]
fn a_watermark_that_waits_too_long_is_told_from_a_window_that_is_open() {
    let bench = Bench::new(1);
    let splits = bench.table("t", 1, Some("ts - INTERVAL '30' SECOND"));
    let changes = bench.query(WINDOWS);
    splits[0].send(rows(&[Some(1_000), Some(35_000)])).unwrap();
    let found = bench.expect(changes.job(), Cause::WatermarkDelay);
    check(
        &found,
        &["the newest row is of 1970-01-01 00:00:35.000", "30 s behind it", "closes at 1970-01-01 00:00:09.999"],
    );
}

#[test]
fn a_window_that_is_open_is_told_with_the_time_that_closes_it() {
    let bench = Bench::new(1);
    let splits = bench.table("t", 1, Some("ts - INTERVAL '1' SECOND"));
    let changes = bench.query(WINDOWS);
    splits[0].send(rows(&[Some(11_000), Some(15_500)])).unwrap();
    let found = bench.expect(changes.job(), Cause::OpenWindow);
    check(&found, &["passes 1970-01-01 00:00:19.999, and the newest row is of 1970-01-01 00:00:15.500"]);
}

#[test]
fn a_row_from_the_future_is_blamed_for_the_late_ones_and_a_guard_keeps_it_out() {
    let bench = Bench::new(1);
    let splits = bench.table("t", 1, Some("ts - INTERVAL '1' SECOND"));
    let mut changes = bench.query(WINDOWS);
    splits[0].send(rows(&[Some(990_000), Some(NOW + 7_200_000)])).unwrap();
    splits[0].send(rows(&[Some(991_000), Some(992_000)])).unwrap();
    let found = bench.expect(changes.job(), Cause::FutureTimestamp);
    check(&found, &["2 h 0 min ahead of the clock", "2 rows that came after it were late", "max-ahead"]);
    let first = bench.engine.block_on(changes.next()).unwrap().unwrap();
    assert_eq!(changes.lines(&first).unwrap(), ["+I[1970-01-01 00:16:30.000, 1, 0]"]);

    let guarded = Bench::new(1);
    let splits = guarded.table("t", 1, Some("ts - INTERVAL '1' SECOND"));
    guarded.session.set("table.exec.event-time.max-ahead", "1 h").unwrap();
    let mut changes = guarded.query(WINDOWS);
    splits[0].send(rows(&[Some(990_000), Some(NOW + 7_200_000)])).unwrap();
    splits[0].send(rows(&[Some(991_000), Some(992_000)])).unwrap();
    drop(splits);
    let first = guarded.engine.block_on(changes.next()).unwrap().unwrap();
    assert_eq!(changes.lines(&first).unwrap(), ["+I[1970-01-01 00:16:30.000, 3, 1]"]);
    let report = guarded.engine.block_on(changes.job().wait()).unwrap();
    assert_eq!((report.late_rows, report.rows_ahead, report.ahead), (0, 1, Duration::from_secs(7_200)));
}

#[test]
fn an_input_without_rows_is_named_and_so_is_one_that_has_ended() {
    let bench = Bench::new(1);
    let splits = bench.table("t", 1, Some("ts"));
    let changes = bench.query(WINDOWS);
    check(&bench.expect(changes.job(), Cause::NoInput), &["no row has come from table 't' yet"]);
    drop(splits);
    bench.engine.block_on(changes.job().wait()).unwrap();
    check(&bench.expect(changes.job(), Cause::NoInput), &["table 't' has been read to its end, and no row was in it"]);
}

#[test]
fn who_does_not_read_the_result_is_told_so() {
    let bench = Bench::new(1);
    let splits = bench.table("t", 1, Some("ts"));
    let changes = bench.query("SELECT ts, v FROM t");
    for _ in 0..50 {
        splits[0].send(rows(&[Some(1_000), Some(2_000)])).unwrap();
    }
    std::thread::sleep(Duration::from_millis(300));
    bench.clock.0.store(NOW + 5_000, Ordering::SeqCst);
    let found = bench.expect(changes.job(), Cause::BackPressure);
    check(&found, &["whoever reads the result has taken no rows for 5 s"]);
}

#[test]
fn rows_without_an_event_time_are_counted_and_named() {
    let bench = Bench::new(1);
    let splits = bench.table("t", 1, Some("ts"));
    bench.session.set("table.exec.event-time.null-policy", "DROP").unwrap();
    let changes = bench.query(WINDOWS);
    splits[0].send(rows(&[None, None])).unwrap();
    check(&bench.expect(changes.job(), Cause::NullEventTime), &["2 rows had NULL as event time"]);
    drop(splits);
    let report = bench.engine.block_on(changes.job().wait()).unwrap();
    assert_eq!((report.null_event_times, report.late_rows), (2, 0));
}

#[test]
fn rows_that_wait_for_a_checkpoint_are_told_apart_from_rows_that_are_visible() {
    let bench = Bench::new(1);
    let splits = bench.table("t", 1, Some("ts"));
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("out").display().to_string();
    let checkpoints = folder.path().join("checkpoints").display().to_string();
    bench.session.set("execution.checkpointing.dir", &checkpoints).unwrap();
    bench.execute(&format!(
        "CREATE TABLE out_table (ts TIMESTAMP(3), v BIGINT) \
         WITH ('connector' = 'filesystem', 'path' = '{path}', 'format' = 'csv')"
    ));
    let Outcome::Job(job) = bench.execute("INSERT INTO out_table SELECT ts, v FROM t") else { panic!("no job") };
    splits[0].send(rows(&[Some(1_000), Some(2_000)])).unwrap();
    let found = bench.expect(&job, Cause::Checkpoint);
    check(&found, &["2 rows are written to table 'out_table' and become visible with a checkpoint"]);
    bench.engine.block_on(job.checkpoint()).unwrap();
    check(&bench.expect(&job, Cause::None), &["2 rows came out so far"]);
    job.cancel();
}

#[test]
fn a_query_whose_rows_all_came_late_says_so() {
    let bench = Bench::new(1);
    let splits = bench.table("t", 1, Some("ts"));
    let mut changes = bench.query(WINDOWS);
    splits[0].send(rows(&[Some(100_000)])).unwrap();
    splits[0].send(rows(&[Some(5_000), Some(6_000)])).unwrap();
    drop(splits);
    while bench.engine.block_on(changes.next()).is_some() {}
    let report = bench.engine.block_on(changes.job().wait()).unwrap();
    // The watermark is at 100 s, and [0, 10) was over at 9.999 s.
    assert_eq!((report.late_rows, report.latest_row), (2, Duration::from_millis(90_002)));
}

#[test]
fn aligned_splits_wait_for_the_last_of_their_group() {
    let bench = Bench::new(2);
    let splits = bench.table("fed", 2, Some("ts"));
    bench.execute(
        "CREATE VIEW t AS SELECT ts, v FROM fed /*+ OPTIONS('scan.watermark.alignment.group' = 'g', \
         'scan.watermark.alignment.max-drift' = '5 s') */",
    );
    let mut changes = bench.query("SELECT ts, v FROM t");
    splits[1].send(rows(&[Some(1_000)])).unwrap();
    std::thread::sleep(Duration::from_millis(300));
    for time in [1_000, 20_000, 40_000] {
        splits[0].send(rows(&[Some(time)])).unwrap();
    }
    // Those of the first split up to the one that is too far ahead, and that of the other.
    let mut received = 0;
    while received < 3 {
        received += bench.engine.block_on(changes.next()).unwrap().unwrap().len();
    }
    let more = bench.engine.block_on(async { tokio::time::timeout(Duration::from_millis(700), changes.next()).await });
    assert!(more.is_err(), "a split that is ahead went on");
    splits[1].send(rows(&[Some(19_000)])).unwrap();
    while received < 5 {
        received += bench.engine.block_on(changes.next()).unwrap().unwrap().len();
    }
}
