//! `OVER` over rows in any order: frames in full, and what is computed over them.

use arrow::datatypes::FieldRef;

use super::AggregateCall;

/// How the distance of a frame's ends is measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum FrameUnits {
    /// In rows.
    Rows,
    /// In the order's value; rows of one value are in a frame together.
    Range,
}

/// An end of a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum FrameBound {
    /// The partition's first row.
    UnboundedPreceding,
    /// So many rows, or units of the order's value, before.
    Preceding(u64),
    /// The row itself; with `RANGE`, all rows of its value.
    CurrentRow,
    /// So many after.
    Following(u64),
    /// The partition's last row.
    UnboundedFollowing,
}

/// Which rows a row's results are over.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Frame {
    /// How distance is measured.
    pub units: FrameUnits,
    /// The first row.
    pub start: FrameBound,
    /// The last row.
    pub end: FrameBound,
}

/// One function over frames.
#[derive(Debug, Clone, PartialEq)]
pub struct FrameCall {
    /// What is computed.
    pub function: FrameFunction,
    /// Name and type of the result.
    pub output: FieldRef,
}

/// What a [`FrameCall`] computes.
#[derive(Debug, Clone, PartialEq)]
pub enum FrameFunction {
    /// An aggregate of the frame.
    Aggregate(AggregateCall),
    /// The row's number in the partition.
    RowNumber,
    /// The number of the first row of the same value.
    Rank,
    /// How many values there are up to the row's own.
    DenseRank,
    /// Which of so many parts of the partition, as equal as can be.
    Ntile(u64),
    /// Rows before those of the same value, as a share of all others.
    PercentRank,
    /// Rows up to the last of the same value, as a share of all.
    CumeDist,
    /// `LAG` and `LEAD`: the value so many rows after the row, or before it if negative.
    Shift {
        /// The column.
        column: usize,
        /// How many rows after.
        rows: i64,
        /// The column whose value stands in where there is no such row; `None`: NULL.
        default: Option<usize>,
    },
    /// The first value of the frame that is not NULL.
    First(usize),
    /// The last value of the frame that is not NULL.
    Last(usize),
    /// The value of the frame's row of this number, from 1.
    Nth(usize, u64),
}
