//! A window table function alone: each row once for each of its windows, with the window's columns behind it.

use std::sync::Arc;

use arrow::array::{ArrayRef, RecordBatch, UInt32Array};
use arrow::compute::take_record_batch;
use arrow::datatypes::SchemaRef;

use super::event_time::timestamps;
use super::window::{check, for_each_window, local_times};
use super::{Operator, Output, Port};
use crate::changelog::{ChangeBatch, Kind, Kinds};
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
    /// If the window's lengths make no sense, or it is a session, which only exists among several rows.
    pub fn new(time: usize, window: WindowSpec, clock: LocalTime, schema: SchemaRef) -> Result<WindowAssign> {
        check(window)?;
        if matches!(window, WindowSpec::Session { .. }) {
            return Err(Error::sql("SESSION windows need an aggregation over them")
                .hint("group by window_start, window_end and the PARTITION BY columns"));
        }
        Ok(WindowAssign { time, window, clock, schema })
    }
}

impl Operator for WindowAssign {
    fn on_changes(&mut self, _port: Port, batch: ChangeBatch, out: &mut Output) -> Result<()> {
        let times = local_times(batch.rows(), self.time, self.clock)?;
        let rows = times.len();
        let (mut origins, mut starts, mut ends) =
            (Vec::with_capacity(rows), Vec::with_capacity(rows), Vec::with_capacity(rows));
        for (row, time) in times.values().iter().enumerate() {
            for_each_window(self.window, *time, |window| {
                origins.push(row as u32);
                starts.push(window.start);
                ends.push(window.end);
            });
        }
        let kinds = match batch.kinds() {
            Kinds::AllInsert => vec![Kind::Insert; origins.len()],
            Kinds::Each(kinds) => origins.iter().map(|row| kinds[*row as usize]).collect(),
        };
        let rows = match self.window {
            WindowSpec::Tumble { .. } => batch.rows().clone(),
            _ => take_record_batch(batch.rows(), &UInt32Array::from(origins))?,
        };
        let times = ends.iter().map(|end| self.clock.instant(end - 1)).collect();
        let mut columns: Vec<ArrayRef> = rows.columns().to_vec();
        for values in [starts, ends, times] {
            let field = self.schema.fields().get(columns.len()).ok_or_else(|| Error::bug("no window columns"))?;
            columns.push(timestamps(values, field.data_type())?);
        }
        out.changes(ChangeBatch::new(RecordBatch::try_new(Arc::clone(&self.schema), columns)?, kinds)?);
        Ok(())
    }
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
