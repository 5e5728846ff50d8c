//! Orders and ranks: the vocabulary that planner and operators share.

/// One column of an order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct SortColumn {
    /// The column.
    pub column: usize,
    /// Whether the greatest value comes first.
    pub descending: bool,
    /// Whether NULL comes before every value.
    pub nulls_first: bool,
}

/// How rows that stand equal in the order are counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum RankFunction {
    /// Each row has a number of its own; of equal rows the one that came first stands first.
    RowNumber,
    /// Equal rows share a rank; the next one has as many ranks less as there are rows before it.
    Rank,
    /// Equal rows share a rank; the next one has the next rank.
    DenseRank,
}

/// How the changes of a Top-N are told, where there is a choice.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum RankInput {
    /// Only `+I` comes: rows beyond the last rank are forgotten.
    Append,
    /// Updates only ever lift a row (a count that grows, ordered descending): an update within the Top-N is told as an
    /// update, and rows beyond the last rank are forgotten.
    Rising,
    /// Anything comes: all rows are kept.
    Retract,
}
