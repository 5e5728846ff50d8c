//! What an operator remembers, and how it is saved.
//!
//! State is kept as keyed tables addressed in batches: look up the slots of many keys at once, then read and write the
//! slots' columns. Keys belong to key groups ([`key_group`]); a subtask owns a range of them ([`KeyGroupRange`]), and
//! rescaling moves ranges. A snapshot holds, table by table, the rows whose keys changed since the last one
//! ([`TableDelta`]); a base delta replaces everything before it.

mod hash;
mod key_group;
mod snapshot;

pub use hash::hash_rows;
pub use key_group::{KeyGroupRange, key_group};
pub use snapshot::{KEY_COLUMNS, KEY_GROUP_COLUMN, Restored, Scope, Snapshot, TableDelta};
