//! Which rows a join gives: the vocabulary that planner and operators share.

/// What becomes of rows with and without a match. Port 0 is the left input, port 1 the right one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum JoinKind {
    /// Pairs that match.
    Inner,
    /// Pairs, and left rows without a match beside NULLs.
    Left,
    /// Pairs, and right rows without a match beside NULLs.
    Right,
    /// Pairs, and rows of either side without a match beside NULLs.
    Full,
    /// Left rows that have a match (`IN`, `EXISTS`).
    Semi,
    /// Left rows that have none (`NOT EXISTS`).
    Anti,
    /// All left rows, with a column that says whether they have a match (`EXISTS` under an `OR`).
    Mark,
}

impl JoinKind {
    /// Whether rows of `port` without a match are emitted beside NULLs.
    pub fn pads(self, port: usize) -> bool {
        match self {
            JoinKind::Left => port == 0,
            JoinKind::Right => port == 1,
            JoinKind::Full => true,
            JoinKind::Inner | JoinKind::Semi | JoinKind::Anti | JoinKind::Mark => false,
        }
    }

    /// Whether pairs are emitted; if not, left rows are.
    pub fn emits_pairs(self) -> bool {
        !matches!(self, JoinKind::Semi | JoinKind::Anti | JoinKind::Mark)
    }

    /// Whether it depends on the number of matches what becomes of a row of `port`.
    pub fn counts_matches(self, port: usize) -> bool {
        self.pads(port) || (!self.emits_pairs() && port == 0)
    }

    /// The name, as `EXPLAIN` shows it.
    pub fn name(self) -> &'static str {
        match self {
            JoinKind::Inner => "InnerJoin",
            JoinKind::Left => "LeftOuterJoin",
            JoinKind::Right => "RightOuterJoin",
            JoinKind::Full => "FullOuterJoin",
            JoinKind::Semi => "LeftSemiJoin",
            JoinKind::Anti => "LeftAntiJoin",
            JoinKind::Mark => "LeftMarkJoin",
        }
    }
}

/// What a NULL in a join's key equals.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum NullKeys {
    /// Nothing (`=`).
    Nothing,
    /// NULL (`IS NOT DISTINCT FROM`).
    Null,
    /// Everything: it might (`(a = b) IS NOT FALSE`, what `NOT IN` asks). Only for a key of one column.
    Anything,
}

/// What a key has of the table in a temporal join.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Versions {
    /// One row at a time, valid from a point in event time on.
    ByTime,
    /// The row that came last.
    Latest,
    /// All rows that have come.
    All,
}

/// A set operation that counts copies.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum SetOperation {
    /// Each row as often as both inputs have it.
    IntersectAll,
    /// Each row as often as the left input has more of it.
    ExceptAll,
}

impl SetOperation {
    /// How often a row is in the result.
    pub fn copies(self, left: i64, right: i64) -> i64 {
        match self {
            SetOperation::IntersectAll => left.min(right),
            SetOperation::ExceptAll => (left - right).max(0),
        }
    }

    /// The name, as `EXPLAIN` shows it.
    pub fn name(self) -> &'static str {
        match self {
            SetOperation::IntersectAll => "IntersectAll",
            SetOperation::ExceptAll => "ExceptAll",
        }
    }
}
