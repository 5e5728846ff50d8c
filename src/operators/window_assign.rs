//! A window table function alone: each row once for each of its windows, with the window's columns behind it.
//!
//! For a session the window is the one that the row would have alone; an aggregation merges them.

use std::sync::Arc;

use arrow::array::{ArrayRef, RecordBatch, UInt32Array};
use arrow::compute::take_record_batch;
use arrow::datatypes::SchemaRef;

use super::event_time::timestamps;
use super::window::{Window, check, for_each_window, local_times};
use super::{Operator, Output, Port};
use crate::changelog::{ChangeBatch, Kinds};
use crate::error::{Error, Result};
use crate::types::{LocalTime, WindowSpec};

/// Appends `window_start`, `window_end` and `window_time`.
pub struct WindowAssign {
    time: usize,
    window: WindowSpec,
    clock: LocalTime,
    schema: SchemaRef,
}

impl WindowAssign {
    /// `time` is the event-time column; `clock` the one along which it is cut; `schema` is the input's and the three columns of the window.
    ///
    /// # Errors
    /// If the window's lengths make no sense.
    pub fn new(time: usize, window: WindowSpec, clock: LocalTime, schema: SchemaRef) -> Result<WindowAssign> {
        check(window)?;
        Ok(WindowAssign { time, window, clock, schema })
    }
}

impl WindowAssign {
    /// Rows with the columns of their windows.
    fn widen(&self, rows: &RecordBatch, starts: Vec<i64>, ends: Vec<i64>) -> Result<RecordBatch> {
        let times = ends.iter().map(|end| self.clock.instant(end - 1)).collect();
        let mut columns: Vec<ArrayRef> = rows.columns().to_vec();
        for values in [starts, ends, times] {
            let field = self.schema.fields().get(columns.len()).ok_or_else(|| Error::bug("no window columns"))?;
            columns.push(timestamps(values, field.data_type())?);
        }
        Ok(RecordBatch::try_new(Arc::clone(&self.schema), columns)?)
    }
}

impl Operator for WindowAssign {
    fn on_changes(&mut self, _port: Port, batch: ChangeBatch, out: &mut Output) -> Result<()> {
        let times = local_times(batch.rows(), self.time, self.clock)?;
        if let WindowSpec::Tumble { .. } = self.window {
            let (starts, ends) = tumble(self.window, times.values());
            let rows = self.widen(batch.rows(), starts, ends)?;
            out.changes(batch.with_rows(rows)?);
            return Ok(());
        }
        let (mut origins, mut starts, mut ends) = (Vec::new(), Vec::new(), Vec::new());
        for (row, time) in times.values().iter().enumerate() {
            for_each_window(self.window, *time, |window| {
                origins.push(row as u32);
                starts.push(window.start);
                ends.push(window.end);
            });
        }
        let kinds = match batch.kinds() {
            Kinds::AllInsert => None,
            Kinds::Each(kinds) => Some(origins.iter().map(|row| kinds[*row as usize]).collect()),
        };
        let rows = take_record_batch(batch.rows(), &UInt32Array::from(origins))?;
        let rows = self.widen(&rows, starts, ends)?;
        out.changes(match kinds {
            None => ChangeBatch::inserts(rows),
            Some(kinds) => ChangeBatch::new(rows, kinds)?,
        });
        Ok(())
    }
}

/// Starts and ends of the one window of each row. Rows come mostly in order, so most lie in the window of the row
/// before, which spares a division.
fn tumble(window: WindowSpec, times: &[i64]) -> (Vec<i64>, Vec<i64>) {
    let mut recent = Window { start: 0, end: 0 };
    let windows = times.iter().map(|time| {
        if !(recent.start..recent.end).contains(time) {
            for_each_window(window, *time, |around| recent = around);
        }
        (recent.start, recent.end)
    });
    windows.unzip()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::operators::testing::{changes, check, feed, schema};

    #[test]
    fn each_row_stands_in_each_of_its_windows_with_its_kind() {
        let input = schema("a TEXT, ts TS");
        let output = schema("a TEXT, ts TS, window_start TS, window_end TS, window_time TS");
        let rows = changes(&input, "+I x 7\n-U x 7\n+U x 12");
        let mut tumble =
            WindowAssign::new(1, WindowSpec::Tumble { size: 10, offset: 0 }, LocalTime::default(), output.clone())
                .unwrap();
        let found = feed(&mut tumble, &rows, 9, &mut Output::default());
        check(&found, "+I[x, 7, 0, 10, 9]\n-U[x, 7, 0, 10, 9]\n+U[x, 12, 10, 20, 19]");
        let mut hop =
            WindowAssign::new(1, WindowSpec::Hop { slide: 5, size: 10, offset: 0 }, LocalTime::default(), output)
                .unwrap();
        let found = feed(&mut hop, &rows.slice(0, 1), 9, &mut Output::default());
        check(&found, "+I[x, 7, 5, 15, 14]\n+I[x, 7, 0, 10, 9]");
    }
}
