//! How event time is cut: the vocabulary that planner and operators share.

/// How event time is cut into windows. All lengths are milliseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WindowSpec {
    /// Windows of `size`, side by side, aligned to `offset` after the epoch.
    Tumble {
        /// Length.
        size: i64,
        /// Shift of the alignment.
        offset: i64,
    },
    /// Windows of `size` that start every `slide`.
    Hop {
        /// Distance of starts.
        slide: i64,
        /// Length.
        size: i64,
        /// Shift of the alignment.
        offset: i64,
    },
    /// Windows that start together every `size` and end every `step` within it.
    Cumulate {
        /// Distance of ends.
        step: i64,
        /// Greatest length.
        size: i64,
        /// Shift of the alignment.
        offset: i64,
    },
    /// Windows that end after `gap` without a row.
    Session {
        /// The silence that ends a window.
        gap: i64,
    },
    /// Windows that the rows already carry, as a window table function gave them.
    Attached {
        /// The column of the window's start.
        start: usize,
        /// The column of the window's end.
        end: usize,
    },
}

/// By which time rows fall into windows and windows close.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WindowTime {
    /// The rows' own time; the watermark closes windows.
    Event,
    /// The time of the machine at which a row arrives; the clock closes windows.
    Processing,
}

/// When windows tell results beside at their end: `table.exec.emit.*`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Emission {
    /// Before the window's end.
    pub early: Option<Firing>,
    /// After it, while late rows are taken.
    pub late: Option<Firing>,
    /// For how long after its end a window takes late rows, in milliseconds of event time.
    pub lateness_ms: i64,
}

/// How often results are told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Firing {
    /// At every row that changes one.
    EachRow,
    /// So many milliseconds of processing time after the first change.
    Every(i64),
}

/// A column that a window gives to its rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WindowColumn {
    /// `window_start`
    Start,
    /// `window_end`
    End,
    /// `window_time`: the end less 1 ms; an event-time attribute.
    Time,
}
