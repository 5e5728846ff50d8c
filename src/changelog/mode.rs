//! Which kinds of change may stand on an edge.

use std::fmt;

use super::Kind;

/// A set of kinds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct ChangelogMode(u8);

impl ChangelogMode {
    /// `+I` only.
    pub const APPEND: ChangelogMode = ChangelogMode(0b0001);
    /// All four kinds.
    pub const RETRACT: ChangelogMode = ChangelogMode(0b1111);
    /// `+I`, `+U`, `-D`: needs a key.
    pub const UPSERT: ChangelogMode = ChangelogMode(0b1101);
    /// No kind: the start of a union.
    pub const NONE: ChangelogMode = ChangelogMode(0);

    /// Whether `kind` may occur.
    #[inline]
    pub fn contains(self, kind: Kind) -> bool {
        self.0 & (1 << kind as u8) != 0
    }

    /// This set and `kind`.
    #[must_use]
    pub fn with(self, kind: Kind) -> ChangelogMode {
        ChangelogMode(self.0 | 1 << kind as u8)
    }

    /// This set without `kind`.
    #[must_use]
    pub fn without(self, kind: Kind) -> ChangelogMode {
        ChangelogMode(self.0 & !(1 << kind as u8))
    }

    /// The kinds in either set.
    #[must_use]
    pub fn union(self, other: ChangelogMode) -> ChangelogMode {
        ChangelogMode(self.0 | other.0)
    }

    /// Whether only `+I` occurs.
    pub fn is_append_only(self) -> bool {
        self.0 & !Self::APPEND.0 == 0
    }

    /// Whether an updated row is announced by its new image alone.
    pub fn is_upsert(self) -> bool {
        self.contains(Kind::UpdateAfter) && !self.contains(Kind::UpdateBefore)
    }
}

impl fmt::Display for ChangelogMode {
    /// `[I,UB,UA,D]`, as Flink's `EXPLAIN CHANGELOG_MODE` writes it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = ["I", "UB", "UA", "D"];
        let present: Vec<&str> =
            Kind::ALL.iter().zip(names).filter(|(kind, _)| self.contains(**kind)).map(|(_, name)| name).collect();
        write!(f, "[{}]", present.join(","))
    }
}
