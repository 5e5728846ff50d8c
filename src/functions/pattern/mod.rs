//! Text against patterns: LIKE and SIMILAR TO, and Java's regular expressions.

mod java;
mod like;
mod regexp;

use super::function::Entry;

/// The entries of this folder.
pub(super) fn entries() -> Vec<Entry> {
    let mut all = like::entries();
    all.extend(regexp::entries());
    all
}
