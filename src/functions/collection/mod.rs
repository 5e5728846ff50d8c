//! Arrays, maps and rows: construction, access, and the ARRAY_… and MAP_… functions.
//!
//! Elements are compared by their row form (Arrow's `RowConverter`), in which NULL equals NULL, so one piece of code
//! serves every element type; results are gathered from the arguments' elements by index.

mod access;
mod construct;
mod gather;
mod order;
mod set;

pub(super) use gather::comparable;

use super::function::Entry;

/// The entries of this folder.
pub(super) fn entries() -> Vec<Entry> {
    let mut all = access::entries();
    all.extend(construct::entries());
    all.extend(order::entries());
    all.extend(set::entries());
    all
}
