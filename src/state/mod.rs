//! What an operator remembers, and how it is saved.
//!
//! State is kept as keyed tables addressed in batches: look up the slots of many keys at once ([`KeyTable`]), then read
//! and write vectors indexed by slot. Keys belong to key groups ([`key_group`]); a subtask owns a range of them
//! ([`KeyGroupRange`]), and rescaling moves ranges. A snapshot holds, table by table, the rows whose keys changed since
//! the last one ([`TableDelta`]); a base delta replaces everything before it.
//!
//! Values under a key that can be many (the distinct values of a group, the rows behind a MIN) live in tables of their
//! own ([`Multisets`], [`Arrivals`], [`SortedRows`]), so that a hot key with a million values writes only those that changed.
//! Rows that are never retracted are kept in the batches in which they came ([`RowStore`]).

mod arrivals;
mod codec;
pub mod hash;
mod integer_index;
mod key_group;
mod key_store;
mod key_table;
mod multiset;
mod narrow;
mod ordered_values;
mod row_store;
mod snapshot;
mod sorted_rows;

pub use arrivals::Arrivals;
pub(crate) use codec::with_codec;
pub use codec::{Codec, CodecKey, float_of};
pub use hash::hash_rows;
pub use key_group::{KeyGroupRange, key_group};
pub use key_store::normalise;
pub use key_table::KeyTable;
pub use multiset::Multisets;
pub use narrow::{SavedColumn, narrow, widen};
pub use ordered_values::{OrderedColumn, OrderedValues};
pub use row_store::RowStore;
#[cfg(test)]
pub use snapshot::KEY_GROUP_COLUMN;
pub use snapshot::{Restored, Scope, Snapshot, TableDelta};
pub use sorted_rows::{Encoded, Position, Row, SortedRows};
