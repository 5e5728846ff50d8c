//! Marks rows that come after all of their windows have closed, so that they can go elsewhere than the others.
//!
//! ```text
//! windows of 10      in                out
//! watermark 12       05 a              05 a, late
//!                    11 b              11 b
//! ```
//!
//! The mark goes with the row, so of a row's two ways exactly one is taken, whatever happens later. A row is late by the
//! watermark of its own split; windows further on see no later one, so what is not marked is not late there either.

use std::sync::Arc;

use arrow::array::{ArrayRef, BooleanArray, RecordBatch};
use arrow::datatypes::SchemaRef;

use super::progress::Progress;
use super::window::{check, for_each_window, local_times};
use super::{Operator, Output, Port};
use crate::changelog::{ChangeBatch, CheckpointId, Watermark};
use crate::error::Result;
use crate::state::{Restored, Snapshot};
use crate::types::{LocalTime, WindowSpec};

/// Appends whether a row is late.
pub struct LateMark {
    time: usize,
    window: WindowSpec,
    clock: LocalTime,
    schema: SchemaRef,
    progress: Progress,
    /// The last moment of any window that a row was in.
    last_moment: Option<i64>,
    marked: u64,
}

impl LateMark {
    /// `time` is the event-time column, `clock` the one along which windows are cut; `schema` is the input's and the mark.
    ///
    /// # Errors
    /// If the window's lengths make no sense.
    pub fn new(time: usize, window: WindowSpec, clock: LocalTime, schema: SchemaRef) -> Result<LateMark> {
        check(window)?;
        Ok(LateMark { time, window, clock, schema, progress: Progress::default(), last_moment: None, marked: 0 })
    }
}

impl Operator for LateMark {
    fn on_changes(&mut self, _port: Port, batch: ChangeBatch, out: &mut Output) -> Result<()> {
        let times = local_times(batch.rows(), self.time, self.clock)?;
        let passed = self.progress.passed(0);
        let late: BooleanArray = times
            .values()
            .iter()
            .map(|time| {
                let mut last = None;
                for_each_window(self.window, *time, |window| last = last.max(Some(window.end - 1)));
                let late = last.is_some_and(|last| last <= passed);
                if !late {
                    self.last_moment = self.last_moment.max(last);
                }
                Some(late)
            })
            .collect();
        self.marked += late.true_count() as u64;
        let mut columns: Vec<ArrayRef> = batch.rows().columns().to_vec();
        columns.push(Arc::new(late));
        out.changes(batch.with_rows(RecordBatch::try_new(Arc::clone(&self.schema), columns)?)?);
        Ok(())
    }

    fn on_watermark(&mut self, mark: Watermark, out: &mut Output) -> Result<()> {
        self.progress.advance(mark, self.clock.complete(mark.0), self.last_moment);
        out.watermark(mark);
        Ok(())
    }

    fn snapshot(&mut self, _at: CheckpointId) -> Result<Snapshot> {
        Ok(Snapshot { tables: self.progress.save()? })
    }

    fn restore(&mut self, from: Restored) -> Result<()> {
        self.progress = Progress::restore(&from)?;
        Ok(())
    }

    fn counters(&self) -> Vec<(&'static str, u64)> {
        vec![("late_rows_set_aside", self.marked)]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::operators::testing::{changes, check, feed, saved, schema};

    fn operator() -> LateMark {
        let window = WindowSpec::Hop { slide: 5, size: 10, offset: 0 };
        LateMark::new(1, window, LocalTime::default(), schema("a TEXT, ts TS, late BOOL")).unwrap()
    }

    #[test]
    fn a_row_is_late_once_all_of_its_windows_have_closed() {
        let input = schema("a TEXT, ts TS");
        let (mut first, mut out) = (operator(), Output::default());
        check(&feed(&mut first, &changes(&input, "+I x 3"), 9, &mut out), "+I[x, 3, false]");
        first.on_watermark(Watermark(9), &mut out).unwrap();
        let found = feed(&mut first, &changes(&input, "+I x 7\n+I y 4\n+I z 10"), 9, &mut out);
        check(&found, "W 9\n+I[x, 7, false]\n+I[y, 4, true]\n+I[z, 10, false]");
        // After a restart it is as late, and so is what the end of the input has closed.
        let snapshot = first.snapshot(1).unwrap();
        let (mut second, mut out) = (operator(), Output::default());
        second.restore(saved(&[snapshot])).unwrap();
        let found = feed(&mut second, &changes(&input, "+I y 4\n+I x 5\n+I x 12"), 9, &mut out);
        check(&found, "+I[y, 4, true]\n+I[x, 5, false]\n+I[x, 12, false]");
        second.on_watermark(Watermark::MAX, &mut out).unwrap();
        let (mut third, mut more) = (operator(), Output::default());
        third.restore(saved(&[second.snapshot(2).unwrap()])).unwrap();
        check(
            &feed(&mut third, &changes(&input, "+I x 14\n+I x 15"), 9, &mut more),
            "+I[x, 14, true]\n+I[x, 15, false]",
        );
    }
}
