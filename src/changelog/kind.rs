//! The four kinds of change.

use std::fmt;

/// What one row of a changelog does to the table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
pub enum Kind {
    /// `+I`: the row comes.
    Insert = 0,
    /// `-U`: the old image of a row that is being replaced.
    UpdateBefore = 1,
    /// `+U`: the new image of a row that is being replaced.
    UpdateAfter = 2,
    /// `-D`: the row leaves.
    Delete = 3,
}

impl Kind {
    /// All kinds, in the order of their codes.
    pub const ALL: [Kind; 4] = [Kind::Insert, Kind::UpdateBefore, Kind::UpdateAfter, Kind::Delete];

    /// +1 for a row that comes (`+I`, `+U`), -1 for one that goes (`-U`, `-D`).
    #[inline]
    pub fn sign(self) -> i64 {
        match self {
            Kind::Insert | Kind::UpdateAfter => 1,
            Kind::UpdateBefore | Kind::Delete => -1,
        }
    }

    /// Whether the row goes away (`-U`, `-D`).
    #[inline]
    pub fn is_retraction(self) -> bool {
        matches!(self, Kind::UpdateBefore | Kind::Delete)
    }

    /// The kind that undoes this one.
    pub fn inverse(self) -> Kind {
        match self {
            Kind::Insert => Kind::Delete,
            Kind::UpdateBefore => Kind::UpdateAfter,
            Kind::UpdateAfter => Kind::UpdateBefore,
            Kind::Delete => Kind::Insert,
        }
    }

    /// `+I`, `-U`, `+U` or `-D`.
    pub fn symbol(self) -> &'static str {
        match self {
            Kind::Insert => "+I",
            Kind::UpdateBefore => "-U",
            Kind::UpdateAfter => "+U",
            Kind::Delete => "-D",
        }
    }

    /// The kind whose code is `code`.
    pub fn from_code(code: u8) -> Option<Kind> {
        Kind::ALL.get(usize::from(code)).copied()
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.symbol())
    }
}
