//! What an operator hands over at a checkpoint, and gets back after a restart.

use arrow::array::{Array, RecordBatch, UInt16Array};

use super::KeyGroupRange;
use super::narrow::widen;
use crate::error::{Error, Result};

/// Name of the leading `UInt16` column of every keyed table's rows.
pub const KEY_GROUP_COLUMN: &str = "__key_group";

/// Metadata key of an `upserts` schema: how many leading columns are the key, the key group included. Lets deltas be
/// merged before the first key has been deleted.
pub const KEY_COLUMNS: &str = "key_columns";

/// Who gets a table's rows after a restart.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Scope {
    /// The subtask that owns the row's key group; the first column is [`KEY_GROUP_COLUMN`].
    Keyed,
    /// Every subtask gets the rows of all former subtasks (small: watermarks, counters).
    Broadcast,
}

/// The changes of one state table since the last snapshot.
#[derive(Debug, Clone)]
pub struct TableDelta {
    /// The table's name within its operator.
    pub table: String,
    /// Who gets the rows back.
    pub scope: Scope,
    /// Whether this replaces everything saved before (a base), or adds to it (a delta).
    pub base: bool,
    /// Rows written: `[key group,] key columns…, value columns…`; `None` if none.
    pub upserts: Option<RecordBatch>,
    /// Keys removed: `[key group,] key columns…`; `None` if none. Apply them before `upserts`.
    pub deletes: Option<RecordBatch>,
}

impl TableDelta {
    /// How many leading columns of `upserts` are the key, the key group included: as `deletes` shows, or as the schema
    /// of `upserts` says under [`KEY_COLUMNS`]; `None` if neither is there.
    pub fn key_columns(&self) -> Option<usize> {
        let told = || self.upserts.as_ref()?.schema_ref().metadata().get(KEY_COLUMNS)?.parse().ok();
        self.deletes.as_ref().map(RecordBatch::num_columns).or_else(told)
    }

    /// The delta with its numbers in their own types, as it is read back: only then do rows of several deltas go
    /// together.
    ///
    /// # Errors
    /// Only by a bug.
    pub fn widened(mut self) -> Result<TableDelta> {
        for rows in [&mut self.upserts, &mut self.deletes].into_iter().flatten() {
            *rows = widen(rows)?;
        }
        Ok(self)
    }
}

/// All that one operator subtask remembers, as changes since its last snapshot.
#[derive(Debug, Clone, Default)]
pub struct Snapshot {
    /// One entry for each table that exists; a table without changes may be left out unless it is a base.
    pub tables: Vec<TableDelta>,
}

impl Snapshot {
    /// Nothing is remembered.
    pub fn empty() -> Snapshot {
        Snapshot::default()
    }
}

/// What a restarted subtask gets back: for each table the deltas in the order in which they were taken, from the
/// newest base on, already reduced to the key groups it owns.
#[derive(Debug, Clone, Default)]
pub struct Restored {
    /// The deltas, oldest first; of one table or several.
    pub deltas: Vec<TableDelta>,
}

impl Restored {
    /// The deltas of one table, oldest first.
    pub fn table<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a TableDelta> {
        self.deltas.iter().filter(move |delta| delta.table == name)
    }

    /// For operators without state.
    ///
    /// # Errors
    /// If something was saved for this operator after all.
    pub fn expect_empty(&self) -> Result<()> {
        match self.deltas.first() {
            None => Ok(()),
            Some(delta) => {
                Err(Error::state(format!("saved state '{}' belongs to no operator of this plan", delta.table)))
            }
        }
    }

    /// The part that the owner of `range` needs.
    ///
    /// # Errors
    /// If a keyed table lacks its key-group column.
    pub fn restrict(mut self, range: KeyGroupRange) -> Result<Restored> {
        for delta in self.deltas.iter_mut().filter(|delta| delta.scope == Scope::Keyed) {
            for rows in [&mut delta.upserts, &mut delta.deletes].into_iter().flatten() {
                let groups =
                    rows.column(0).as_any().downcast_ref::<UInt16Array>().ok_or_else(|| {
                        Error::state(format!("state table '{}' has no key group column", delta.table))
                    })?;
                let owned = groups.iter().map(|group| Some(group.is_some_and(|g| range.contains(g)))).collect();
                *rows = arrow::compute::filter_record_batch(rows, &owned)?;
            }
        }
        Ok(self)
    }
}
