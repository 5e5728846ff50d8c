//! The versions of a table's rows by key, each valid from its time until the next.

use arrow::array::Int64Array;
use arrow::datatypes::SchemaRef;

use crate::changelog::{ChangeBatch, Kind};
use crate::error::Result;
use crate::operators::deadlines::Deadlines;
use crate::operators::event_time::{milliseconds, row_times};
use crate::operators::join_keys::NONE;
use crate::state::{KeyTable, Restored, RowStore};
use crate::types::Versions;

/// From when on which row is valid. The row of a deletion is marked in the store: from then on there is none.
type Version = (i64, u32);

/// The rows of the versioned table.
pub(super) struct VersionTable {
    pub rows: RowStore,
    versions: Versions,
    keys: Vec<usize>,
    /// The column of the versions' time, where they have one.
    time: Option<usize>,
    /// By key: its versions in order of time.
    lists: Vec<Vec<Version>>,
    /// When which key has got another version: then older ones may go.
    replaced: Deadlines,
}

impl VersionTable {
    /// No rows yet.
    pub fn new(schema: SchemaRef, versions: Versions, keys: &[usize], time: Option<usize>) -> VersionTable {
        VersionTable {
            rows: RowStore::new("versions", schema, keys.to_vec()),
            versions,
            keys: keys.to_vec(),
            time,
            lists: Vec::new(),
            replaced: Deadlines::new(i64::MAX),
        }
    }

    /// Makes room for key slots below `keys`.
    pub fn grow_keys(&mut self, keys: usize) {
        if self.lists.len() < keys {
            self.lists.resize_with(keys, Vec::new);
        }
    }

    /// Whether the key has no versions.
    pub fn is_empty(&self, key: u32) -> bool {
        self.lists[key as usize].is_empty()
    }

    /// Appends the rows that a key has at `time` to `found`.
    pub fn at(&self, key: u32, time: i64, found: &mut Vec<u32>) {
        let list = &self.lists[key as usize];
        match self.versions {
            Versions::ByTime => {
                let valid = list.partition_point(|(from, _)| *from <= time);
                let valid = valid.checked_sub(1).map(|place| list[place].1);
                found.extend(valid.filter(|slot| !self.rows.is_marked(*slot)));
            }
            Versions::Latest | Versions::All => found.extend(list.iter().map(|(_, slot)| *slot)),
        }
    }

    /// Takes in changes of the table, whose keys are given by row; [`NONE`]: a key that equals nothing.
    ///
    /// # Errors
    /// If a version has no time.
    pub fn change(&mut self, batch: &ChangeBatch, keys: &[u32]) -> Result<()> {
        let times = match self.time {
            Some(time) => row_times(batch.rows(), time)?,
            None => Int64Array::from(vec![0; batch.len()]),
        };
        let deleted = |row: usize| match batch.kind(row) {
            Kind::Delete => true,
            // The old image of an update says nothing: its new one comes next.
            Kind::UpdateBefore => row + 1 == batch.len() || batch.kind(row + 1) != Kind::UpdateAfter,
            Kind::Insert | Kind::UpdateAfter => false,
        };
        let told = |row: &usize| keys[*row] != NONE && (batch.kind(*row) != Kind::UpdateBefore || deleted(*row));
        let kept: Vec<u32> = (0..batch.len()).filter(told).map(|row| row as u32).collect();
        let mut slots = Vec::new();
        self.rows.insert(batch.rows(), &kept, &mut slots)?;
        for (row, slot) in kept.into_iter().map(|row| row as usize).zip(slots) {
            let (key, time, deleted) = (keys[row], times.value(row), deleted(row));
            if deleted {
                self.rows.mark(slot);
            }
            match self.versions {
                Versions::ByTime => self.put(key, time, slot),
                Versions::Latest => self.replace(key, slot, deleted),
                Versions::All => self.lists[key as usize].push((0, slot)),
            }
        }
        self.rows.compact()
    }

    /// A version from `time` on; of two from one time the later arrival counts.
    fn put(&mut self, key: u32, time: i64, slot: u32) {
        self.replaced.note(std::iter::once((time, key)));
        let list = &mut self.lists[key as usize];
        let place = list.partition_point(|(from, _)| *from <= time);
        match place.checked_sub(1).filter(|before| list[*before].0 == time) {
            Some(before) => {
                let (_, old) = std::mem::replace(&mut list[before], (time, slot));
                self.rows.release(old);
            }
            None => list.insert(place, (time, slot)),
        }
    }

    /// Forgets the versions of a key.
    pub fn forget(&mut self, key: u32) {
        for (_, slot) in std::mem::take(&mut self.lists[key as usize]) {
            self.rows.release(slot);
        }
    }

    fn replace(&mut self, key: u32, slot: u32, deleted: bool) {
        let list = &mut self.lists[key as usize];
        list.drain(..).for_each(|(_, old)| self.rows.release(old));
        if deleted {
            self.rows.release(slot);
        } else {
            list.push((0, slot));
        }
    }

    /// Forgets versions that were replaced at or before `time`; gives the keys that may have none any more.
    ///
    /// # Errors
    /// Only by a bug.
    pub fn prune(&mut self, time: i64) -> Result<Vec<u32>> {
        let mut emptied = Vec::new();
        for (_, key) in self.replaced.before(time.saturating_add(1)) {
            let list = &mut self.lists[key as usize];
            let valid = list.partition_point(|(from, _)| *from <= time);
            let Some(current) = valid.checked_sub(1) else { continue };
            // A deletion is remembered by nothing being there.
            let gone = if self.rows.is_marked(list[current].1) { valid } else { current };
            list.drain(..gone).for_each(|(_, old)| self.rows.release(old));
            if list.is_empty() {
                emptied.push(key);
            }
        }
        self.rows.compact()?;
        Ok(emptied)
    }

    /// Takes back what snapshots held; keys get their slots from `keys`.
    ///
    /// # Errors
    /// If the saved rows do not fit.
    pub fn restore(&mut self, keys: &mut KeyTable, from: &Restored) -> Result<()> {
        self.rows.restore(from)?;
        let live = self.rows.live_slots();
        let mut key_slots = Vec::new();
        keys.slots_of(&self.rows.take_columns(&live, &self.keys)?, live.len(), &mut key_slots)?;
        self.grow_keys(keys.capacity());
        let times = match self.time {
            Some(time) => milliseconds(&self.rows.take_columns(&live, &[time])?.remove(0))?,
            None => Int64Array::from(vec![0; live.len()]),
        };
        for ((slot, key), time) in live.into_iter().zip(key_slots).zip(times.values()) {
            match self.versions {
                Versions::ByTime => self.put(key, *time, slot),
                Versions::Latest | Versions::All => self.lists[key as usize].push((0, slot)),
            }
        }
        Ok(())
    }
}
