//! `WATERMARK FOR ts AS expression`: derives watermarks from the rows.
//!
//! The rule is Flink's, row by row: the candidate is the greatest value of the expression so far, and it becomes the
//! watermark, right after the row, once it is more than an interval ahead of the last one. A watermark matters to later
//! operators only through rows that it makes late, so batches are not cut at every watermark: a batch is cut only
//! before a row whose own time the watermark has passed. At the end of the batch the watermark is sent in any case.
//! Where more depends on watermarks (`CURRENT_WATERMARK`, windows of a computed time) each is sent right behind its row.

use std::sync::Arc;

use arrow::array::{Array, BooleanArray};
use arrow::compute::max;
use datafusion_physical_expr::PhysicalExpr;

use super::event_time::{milliseconds, restore_watermark, row_times, save_watermark};
use super::expression::evaluate;
use super::{Operator, Output, Port, ProcessingTime, TimeReport};
use crate::changelog::{ChangeBatch, CheckpointId, Watermark};
use crate::error::Result;
use crate::state::{Restored, Snapshot};
use crate::types::WatermarkPolicy;

/// Processing time after which a candidate is sent even if it is less than an interval ahead.
const CLOCK_MS: i64 = 200;

/// Where event time starts, as in Flink: rows up to 1970 do not move it, so none of them is ever late.
const START: i64 = 0;

/// Derives watermarks from the rows.
pub struct WatermarkAssigner {
    column: usize,
    expression: Arc<dyn PhysicalExpr>,
    interval_ms: i64,
    row_by_row: bool,
    /// Whether rows without a time are dropped, and how far ahead of the clock times may be.
    drop_null: bool,
    max_ahead_ms: Option<i64>,
    /// The greatest value of the expression so far.
    candidate: i64,
    /// The watermark by Flink's rule; it may be ahead of what was sent.
    announced: i64,
    last_clock: ProcessingTime,
    now: ProcessingTime,
    /// The greatest event time of a row.
    newest: Option<i64>,
    /// How far a row was ahead of the clock at most; 0 if none was.
    ahead_ms: u64,
    null_rows: u64,
    future_rows: u64,
}

impl WatermarkAssigner {
    /// `column` is the event time, `expression` gives a row's watermark, `interval_ms` is `pipeline.auto-watermark-interval`.
    pub fn new(column: usize, expression: Arc<dyn PhysicalExpr>, interval_ms: i64) -> WatermarkAssigner {
        WatermarkAssigner {
            column,
            expression,
            interval_ms,
            row_by_row: false,
            drop_null: false,
            max_ahead_ms: None,
            candidate: START,
            announced: START,
            last_clock: i64::MIN,
            now: i64::MIN,
            newest: None,
            ahead_ms: 0,
            null_rows: 0,
            future_rows: 0,
        }
    }

    /// Drops, and counts, rows without an event time or with one too far ahead of the clock, as the policy says.
    pub fn with_policy(mut self, policy: &WatermarkPolicy) -> WatermarkAssigner {
        self.drop_null = policy.drop_null;
        self.max_ahead_ms = policy.max_ahead_ms.map(|ahead| i64::try_from(ahead).unwrap_or(i64::MAX));
        if policy.each_event {
            self.interval_ms = 0;
        }
        self
    }

    /// Cuts batches behind every row that moves the watermark.
    pub fn row_by_row(self) -> WatermarkAssigner {
        WatermarkAssigner { row_by_row: true, ..self }
    }

    /// The rows whose event time may count.
    fn admitted(&mut self, batch: ChangeBatch) -> Result<ChangeBatch> {
        let times = milliseconds(batch.rows().column(self.column))?;
        let nulls = if self.drop_null { times.null_count() } else { 0 };
        // Before the clock is known nothing is ahead of it.
        let clock = Some(self.now).filter(|now| *now != i64::MIN);
        let newest = max(&times);
        if let (Some(now), Some(newest)) = (clock, newest) {
            self.ahead_ms = self.ahead_ms.max(u64::try_from(newest.saturating_sub(now)).unwrap_or(0));
        }
        let limit = clock.zip(self.max_ahead_ms).map_or(i64::MAX, |(now, ahead)| now.saturating_add(ahead));
        if nulls == 0 && newest.is_none_or(|newest| newest <= limit) {
            self.newest = self.newest.max(newest);
            return Ok(batch);
        }
        let admitted = |time: Option<i64>| time.map_or(!self.drop_null, |time| time <= limit);
        let admitted: BooleanArray = times.iter().map(|time| Some(admitted(time))).collect();
        self.null_rows += nulls as u64;
        self.future_rows += (batch.len() - admitted.true_count() - nulls) as u64;
        let batch = batch.filter(&admitted)?;
        self.newest = self.newest.max(max(&milliseconds(batch.rows().column(self.column))?));
        Ok(batch)
    }

    /// The watermark that holds; none before the first row after 1970.
    fn mark(&self) -> Watermark {
        if self.announced > START { Watermark(self.announced) } else { Watermark::MIN }
    }
}

impl Operator for WatermarkAssigner {
    fn on_changes(&mut self, _port: Port, batch: ChangeBatch, out: &mut Output) -> Result<()> {
        let batch = self.admitted(batch)?;
        let times = row_times(batch.rows(), self.column)?;
        let candidates = milliseconds(&evaluate(&self.expression, batch.rows())?)?;
        let mut from = 0;
        for (row, time) in times.values().iter().enumerate() {
            if (self.row_by_row || *time <= self.announced) && self.mark() > out.current_watermark() {
                out.changes(batch.slice(from, row - from));
                out.watermark(self.mark());
                from = row;
            }
            if candidates.is_valid(row) && candidates.value(row) > self.candidate {
                self.candidate = candidates.value(row);
                if self.candidate.saturating_sub(self.announced) > self.interval_ms {
                    self.announced = self.candidate;
                }
            }
        }
        out.changes(if from == 0 { batch } else { batch.slice(from, batch.len() - from) });
        out.watermark(self.mark());
        Ok(())
    }

    /// Watermarks from before count for nothing here, except that the input has ended.
    fn on_watermark(&mut self, mark: Watermark, out: &mut Output) -> Result<()> {
        if mark == Watermark::MAX {
            self.announced = self.announced.max(self.candidate);
            out.watermark(mark);
        }
        Ok(())
    }

    fn on_clock(&mut self, now: ProcessingTime, out: &mut Output) -> Result<()> {
        self.now = self.now.max(now);
        if self.last_clock == i64::MIN {
            self.last_clock = now;
        }
        if now.saturating_sub(self.last_clock) >= CLOCK_MS {
            self.last_clock = now;
            self.announced = self.announced.max(self.candidate);
            out.watermark(self.mark());
        }
        Ok(())
    }

    fn snapshot(&mut self, _at: CheckpointId) -> Result<Snapshot> {
        Ok(Snapshot { tables: vec![save_watermark(self.mark())?] })
    }

    fn restore(&mut self, from: Restored) -> Result<()> {
        self.announced = restore_watermark(&from)?.0.max(START);
        self.candidate = self.announced;
        Ok(())
    }

    fn counters(&self) -> Vec<(&'static str, u64)> {
        vec![("null_event_times", self.null_rows), ("rows_ahead_of_the_clock", self.future_rows)]
    }

    fn time_report(&self) -> TimeReport {
        TimeReport { newest: self.newest, ahead_ms: self.ahead_ms, ..TimeReport::default() }
    }
}

#[cfg(test)]
mod tests {
    use datafusion_physical_expr::expressions::Column;

    use super::*;
    use crate::operators::testing::{changes, check, emitted, feed, saved, schema};

    fn operator() -> WatermarkAssigner {
        WatermarkAssigner::new(0, Arc::new(Column::new("ts", 0)), 200)
    }

    #[test]
    fn batches_are_cut_only_before_rows_that_are_late() {
        let input = schema("ts TS");
        let rows = changes(&input, "+I 1000\n+I 2000\n+I 2100\n+I 2000\n+I 1900\n+I 5000");
        let mut out = Output::default();
        operator().on_changes(0, rows.clone(), &mut out).unwrap();
        let expected = "+I[1000]\n+I[2000]\n+I[2100]\nW 2000\n+I[2000]\n+I[1900]\n+I[5000]\nW 5000";
        check(&emitted(&mut out), expected);
        // Row by row the watermark comes at once; what is late stays the same.
        let mut out = Output::default();
        check(
            &feed(&mut operator(), &rows, 1, &mut out),
            "+I[1000]\nW 1000\n+I[2000]\nW 2000\n+I[2100]\n+I[2000]\n+I[1900]\n+I[5000]\nW 5000",
        );
    }

    #[test]
    fn row_by_row_every_watermark_stands_right_behind_its_row() {
        let rows = changes(&schema("ts TS"), "+I 1000\n+I 2000\n+I 2100\n+I 5000");
        let mut out = Output::default();
        let expected = "+I[1000]\nW 1000\n+I[2000]\nW 2000\n+I[2100]\n+I[5000]\nW 5000";
        check(&feed(&mut operator().row_by_row(), &rows, 9, &mut out), expected);
    }

    #[test]
    fn rows_up_to_1970_do_not_move_event_time() {
        let rows = changes(&schema("ts TS"), "+I -5000\n+I -9000\n+I 100\n+I 300\n+I -1");
        for size in [1, 9] {
            let mut out = Output::default();
            let expected = "+I[-5000]\n+I[-9000]\n+I[100]\n+I[300]\nW 300\n+I[-1]";
            check(&feed(&mut operator(), &rows, size, &mut out), expected);
        }
    }

    #[test]
    fn the_clock_sends_what_the_interval_holds_back_and_a_restart_remembers() {
        let input = schema("ts TS");
        let (mut first, mut out) = (operator(), Output::default());
        first.on_clock(0, &mut out).unwrap();
        feed(&mut first, &changes(&input, "+I 1000\n+I 1100"), 9, &mut out);
        first.on_clock(199, &mut out).unwrap();
        check(&emitted(&mut out), "");
        first.on_clock(200, &mut out).unwrap();
        check(&emitted(&mut out), "W 1100");
        let (mut second, mut out) = (operator(), Output::default());
        second.restore(saved(&[first.snapshot(1).unwrap()])).unwrap();
        check(&feed(&mut second, &changes(&input, "+I 1050"), 9, &mut out), "W 1100\n+I[1050]");
    }

    #[test]
    fn rows_that_cannot_count_are_dropped_and_counted_where_the_policy_says_so() {
        let policy = WatermarkPolicy { drop_null: true, max_ahead_ms: Some(50), ..WatermarkPolicy::default() };
        let (mut guarded, mut out) = (operator().with_policy(&policy), Output::default());
        let rows = changes(&schema("ts TS"), "+I 1000\n+I _\n+I 1051\n+I 1050\n+I 7200000\n+I 900");
        guarded.on_clock(1_000, &mut out).unwrap();
        check(&feed(&mut guarded, &rows, 9, &mut out), "+I[1000]\n+I[1050]\nW 1000\n+I[900]");
        assert_eq!(guarded.counters(), [("null_event_times", 1), ("rows_ahead_of_the_clock", 2)]);
        let report = guarded.time_report();
        assert_eq!((report.newest, report.ahead_ms), (Some(1_050), 7_199_000), "a warning comes in any case");
        // Without a guard the row from the future counts, and makes later ones late.
        let (mut open, mut out) = (operator(), Output::default());
        open.on_clock(1_000, &mut out).unwrap();
        let found = feed(&mut open, &changes(&schema("ts TS"), "+I 1000\n+I 7200000\n+I 900"), 9, &mut out);
        check(&found, "+I[1000]\n+I[7200000]\nW 7200000\n+I[900]");
        assert_eq!(open.time_report().ahead_ms, 7_199_000);
    }

    #[test]
    fn on_event_every_row_that_raises_the_watermark_sends_it() {
        let policy = WatermarkPolicy { each_event: true, ..WatermarkPolicy::default() };
        let rows = changes(&schema("ts TS"), "+I 1000\n+I 1001\n+I 1000\n+I 1002");
        let mut out = Output::default();
        let found = feed(&mut operator().with_policy(&policy), &rows, 1, &mut out);
        check(&found, "+I[1000]\nW 1000\n+I[1001]\nW 1001\n+I[1000]\n+I[1002]\nW 1002");
    }

    #[test]
    fn a_null_event_time_is_an_error_that_names_the_column() {
        let rows = changes(&schema("ts TS"), "+I _");
        let error = operator().on_changes(0, rows, &mut Output::default()).unwrap_err();
        assert_eq!(error.message(), "the event time 'ts' is NULL in a row");
    }
}
