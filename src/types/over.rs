//! What `OVER` computes: the vocabulary that planner and operators share.

use arrow::datatypes::FieldRef;

use super::AggregateCall;

/// The rows before a row, itself included, that its aggregates are over.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum OverFrame {
    /// So many rows before it; `None`: all.
    Rows(Option<u64>),
    /// Rows up to so many milliseconds before it, and all of its own time; `None`: all.
    Range(Option<u64>),
}

/// One function with `OVER`.
#[derive(Debug, Clone, PartialEq)]
pub enum OverCall {
    /// An aggregate over the frame.
    Aggregate(AggregateCall),
    /// A count of the rows up to and with the row, whatever the frame.
    RowNumber(AggregateCall),
    /// The value of a row before.
    Lag {
        /// The column.
        column: usize,
        /// How many rows before.
        offset: u64,
        /// The column whose value stands in where there is no such row; `None`: NULL.
        default: Option<usize>,
        /// Name and type of the result.
        output: FieldRef,
    },
}
