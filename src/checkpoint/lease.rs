//! The lease on a checkpoint directory: one process at a time, and a durable count of the job's starts.
//!
//! The lock dies with its process, so a crash leaves nothing to clean up. The incarnation only grows: leftovers of a
//! sink's earlier starts are told apart by it. Beside it stands the highest checkpoint id that may be in use; ids are
//! reserved in small blocks *before* they are used, so that an id is never given out twice, not even one whose
//! checkpoint was given up and left no manifest.
//!
//! Ids begin anew in another directory, and two directories may serve jobs that write the same table. So every directory
//! has a lineage, a name that no other one has, for sinks to put into the names of what they write.

use std::any::Any;
use std::hash::{BuildHasher, RandomState};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use super::disk::{Disk, WritePoints};
use crate::error::{Error, Result};

/// Checkpoint ids reserved by one write.
const RESERVED_IDS: u64 = 10;

/// The right to write to a checkpoint directory.
pub struct Lease {
    disk: Arc<dyn Disk>,
    directory: PathBuf,
    record: Record,
    next: u64,
    _lock: Box<dyn Any + Send + Sync>,
}

#[derive(Debug, Clone, PartialEq, serde::Serialize, serde::Deserialize)]
struct Record {
    lineage: String,
    incarnation: u64,
    reserved_through: u64,
}

impl Lease {
    /// Takes the directory, which exists, and counts a new incarnation. `highest` is the highest id in any file there.
    ///
    /// # Errors
    /// If another process holds it (the message names it), or the record cannot be read or written.
    pub fn acquire(disk: Arc<dyn Disk>, directory: &Path, highest: u64) -> Result<Lease> {
        let path = directory.join("LOCK");
        let lock = disk.lock(&path).map_err(|error| Error::io("lock", &path, &error))?.ok_or_else(|| {
            let holder = disk.read(&path).ok().and_then(|bytes| String::from_utf8(bytes).ok()).unwrap_or_default();
            let holder = match holder.trim() {
                "" => "another process".to_owned(),
                pid => format!("process {pid}"),
            };
            Error::setup(format!("the checkpoint directory '{}' is in use by {holder}", directory.display()))
                .hint("stop that job first, or give this one another directory")
        })?;
        let before = read_record(&*disk, directory)?;
        let reserved = before.reserved_through.max(highest);
        let (lineage, incarnation) = (before.lineage, before.incarnation + 1);
        let record = Record { lineage, incarnation, reserved_through: reserved };
        let lease = Lease { disk, directory: directory.to_owned(), record, next: reserved + 1, _lock: lock };
        lease.write_record()?;
        crate::crash::crash_point("lease_taken");
        Ok(lease)
    }

    /// Which start of the job this is, from 1.
    pub fn incarnation(&self) -> u64 {
        self.record.incarnation
    }

    /// The directory's lineage.
    pub fn lineage(&self) -> &str {
        &self.record.lineage
    }

    /// A checkpoint id that was never used before.
    ///
    /// # Errors
    /// If the reservation cannot be written.
    pub fn next_id(&mut self) -> Result<u64> {
        if self.next > self.record.reserved_through {
            self.check()?;
            self.record.reserved_through = self.next + RESERVED_IDS - 1;
            self.write_record()?;
        }
        self.next += 1;
        Ok(self.next - 1)
    }

    /// Refuses to go on once another start has taken the directory: somebody removed it under the running job, lock and
    /// all, and what this one would write no longer belongs there.
    ///
    /// # Errors
    /// If it has, or that cannot be found out.
    pub fn check(&self) -> Result<()> {
        let found = read_record(&*self.disk, &self.directory)?;
        if found.incarnation == self.record.incarnation && found.lineage == self.record.lineage {
            return Ok(());
        }
        let directory = self.directory.display();
        Err(Error::state(format!(
            "the checkpoint directory '{directory}' has been removed or taken over by another job"
        ))
        .hint("the next run begins with the first row again, beside what has been committed"))
    }

    /// From now on ids are greater than `id`, which another directory's checkpoint has.
    pub fn raise_ids(&mut self, id: u64) {
        self.next = self.next.max(id + 1);
    }

    fn write_record(&self) -> Result<()> {
        let path = self.directory.join("incarnation");
        let temporary = self.directory.join("incarnation.tmp");
        let text = serde_json::to_vec(&self.record).map_err(|error| Error::bug(error.to_string()))?;
        let points = WritePoints { half: "lease_half_written", unsynced: "lease_unsynced" };
        self.disk
            .write(&temporary, &text, points)
            .and_then(|()| self.disk.rename(&temporary, &path))
            .and_then(|()| self.disk.sync_directory(&self.directory))
            .map_err(|error| Error::io("write", &path, &error))
    }
}

impl Drop for Lease {
    /// A clean end gives back the ids that were reserved and not used, so that the next start goes on without a gap.
    fn drop(&mut self) {
        if self.next <= self.record.reserved_through && self.check().is_ok() {
            self.record.reserved_through = self.next - 1;
            // Failing leaves a gap in the ids, which harms nothing.
            drop(self.write_record());
        }
    }
}

/// A name that no other directory has: the time in milliseconds, so that names sort by it, and a random end.
pub fn new_lineage() -> String {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    // The standard library's random state is seeded by the system.
    let random = RandomState::new().hash_one((std::process::id(), now)) & 0xffff;
    format!("{:011x}{random:04x}", now.as_millis())
}

fn read_record(disk: &dyn Disk, directory: &Path) -> Result<Record> {
    let path = directory.join("incarnation");
    match disk.read(&path) {
        Ok(bytes) => serde_json::from_slice(&bytes).map_err(|error| {
            Error::state(format!("'{}' is damaged: {error}", path.display()))
                .hint("restore it from a backup, or start anew with another checkpoint directory")
        }),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            Ok(Record { lineage: new_lineage(), incarnation: 0, reserved_through: 0 })
        }
        Err(error) => Err(Error::io("read", &path, &error)),
    }
}
