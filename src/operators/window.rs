//! Which windows a moment of event time lies in.

use arrow::array::{Int64Array, RecordBatch};
use arrow::datatypes::DataType;

use super::event_time::{FAR, row_times};
use crate::error::{Error, Result};
use crate::types::{LocalTime, WindowSpec};

/// Windows that one row may lie in; more would be a typing error in the query.
const WINDOWS_PER_ROW: i64 = 100_000;

/// A window: milliseconds from `start` to before `end`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Window {
    /// First, so that windows order by it.
    pub end: i64,
    pub start: i64,
}

/// Checks the lengths of a window.
///
/// # Errors
/// If a length is not positive or a row would lie in too many windows.
pub(super) fn check(spec: WindowSpec) -> Result<()> {
    let (step, size) = match spec {
        WindowSpec::Tumble { size, .. } => (size, size),
        WindowSpec::Hop { slide, size, .. } => (slide, size),
        WindowSpec::Cumulate { step, size, .. } => (step, size),
        WindowSpec::Session { gap } => (gap, gap),
        WindowSpec::Attached { .. } => return Ok(()),
    };
    if step <= 0 || size <= 0 {
        return Err(Error::sql("the lengths of a window must be greater than zero"));
    }
    if step.max(size) > FAR {
        return Err(Error::sql("a window cannot be longer than 70 million years"));
    }
    if size / step > WINDOWS_PER_ROW {
        let hint = "take a greater step or a smaller window";
        return Err(Error::sql(format!("each row would lie in {} windows", size / step)).hint(hint));
    }
    Ok(())
}

/// The start of the window of length `size` around `time`, aligned to `offset`.
#[inline]
pub(super) fn start_of(time: i64, size: i64, offset: i64) -> i64 {
    // Wrapping only with an offset of millions of years.
    time.wrapping_sub(time.wrapping_sub(offset).rem_euclid(size))
}

/// Calls `each` with every window that `time` lies in, in Flink's order: for HOP the latest first.
#[inline]
pub(super) fn for_each_window(spec: WindowSpec, time: i64, mut each: impl FnMut(Window)) {
    match spec {
        WindowSpec::Tumble { size, offset } => {
            let start = start_of(time, size, offset);
            each(Window { start, end: start.wrapping_add(size) });
        }
        WindowSpec::Hop { slide, size, offset } => {
            let mut start = start_of(time, slide, offset);
            while start > time.saturating_sub(size) {
                each(Window { start, end: start.wrapping_add(size) });
                start = start.wrapping_sub(slide);
            }
        }
        WindowSpec::Cumulate { step, size, offset } => {
            let start = start_of(time, size, offset);
            let last = start.wrapping_add(size);
            let mut end = start_of(time, step, offset).wrapping_add(step);
            while end <= last {
                each(Window { start, end });
                end = end.wrapping_add(step);
            }
        }
        WindowSpec::Session { gap } => each(Window { start: time, end: time.saturating_add(gap) }),
        // Time alone does not tell: [`Placement`] reads them from the row.
        WindowSpec::Attached { .. } => {}
    }
}

/// The times of rows by a clock; times without a zone are local already.
///
/// # Errors
/// If a time is NULL or no timestamp.
pub(super) fn local_times(rows: &RecordBatch, column: usize, clock: LocalTime) -> Result<Int64Array> {
    let times = row_times(rows, column)?;
    let instants = matches!(rows.column(column).data_type(), DataType::Timestamp(_, Some(_)));
    if !instants || clock == LocalTime::default() {
        return Ok(times);
    }
    let mut times = times.values().to_vec();
    clock.all_local(&mut times);
    Ok(Int64Array::from(times))
}

/// The windows of a batch's rows: computed from each row's time, or as the rows carry them.
pub(super) enum Placement {
    /// Times in milliseconds, and the window of the last row asked for.
    Computed { spec: WindowSpec, times: Int64Array, recent: Window },
    /// The windows around the present moment, which all rows of the batch share.
    Now { windows: Vec<Window> },
    /// Starts and ends in milliseconds.
    Attached { starts: Int64Array, ends: Int64Array },
}

impl Placement {
    /// Reads what is needed out of `rows`; `time` is the event-time column, `clock` makes its instants local times.
    ///
    /// # Errors
    /// If a time is NULL or no timestamp.
    pub(super) fn of(spec: WindowSpec, time: usize, clock: LocalTime, rows: &RecordBatch) -> Result<Placement> {
        match spec {
            WindowSpec::Attached { start, end } => {
                Ok(Placement::Attached { starts: row_times(rows, start)?, ends: row_times(rows, end)? })
            }
            spec => {
                let recent = Window { start: 0, end: 0 };
                Ok(Placement::Computed { spec, times: local_times(rows, time, clock)?, recent })
            }
        }
    }

    /// The windows around the local time `time`, for every row.
    pub(super) fn now(spec: WindowSpec, time: i64) -> Placement {
        let mut windows = Vec::new();
        for_each_window(spec, time, |window| windows.push(window));
        Placement::Now { windows }
    }

    /// Calls `each` with every window of row `row`.
    #[inline]
    pub(super) fn for_each(&mut self, row: usize, mut each: impl FnMut(Window)) {
        match self {
            Placement::Computed { spec: spec @ WindowSpec::Tumble { .. }, times, recent } => {
                // Rows come mostly in order: the window of the row before spares a division.
                if !(recent.start..recent.end).contains(&times.value(row)) {
                    for_each_window(*spec, times.value(row), |window| *recent = window);
                }
                each(*recent);
            }
            Placement::Computed { spec, times, .. } => for_each_window(*spec, times.value(row), each),
            Placement::Now { windows } => windows.iter().copied().for_each(each),
            Placement::Attached { starts, ends } => each(Window { start: starts.value(row), end: ends.value(row) }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn windows(spec: WindowSpec, time: i64) -> Vec<(i64, i64)> {
        let mut found = Vec::new();
        for_each_window(spec, time, |window| found.push((window.start, window.end)));
        found
    }

    #[test]
    fn windows_align_to_the_epoch_and_the_offset_on_both_sides_of_it() {
        assert_eq!(windows(WindowSpec::Tumble { size: 10, offset: 0 }, 19), [(10, 20)]);
        assert_eq!(windows(WindowSpec::Tumble { size: 10, offset: 0 }, -1), [(-10, 0)]);
        assert_eq!(windows(WindowSpec::Tumble { size: 24, offset: 6 }, 1), [(-18, 6)]);
        assert_eq!(windows(WindowSpec::Tumble { size: 10, offset: -3 }, 7), [(7, 17)]);
        assert_eq!(windows(WindowSpec::Hop { slide: 10, size: 30, offset: 0 }, 25), [(20, 50), (10, 40), (0, 30)]);
        assert_eq!(windows(WindowSpec::Hop { slide: 10, size: 5, offset: 0 }, 27), []);
        assert_eq!(windows(WindowSpec::Cumulate { step: 2, size: 6, offset: 0 }, 8), [(6, 10), (6, 12)]);
    }
}
