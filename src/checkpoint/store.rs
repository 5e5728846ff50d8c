//! The checkpoint directory of a job: what is written, in which order, and what is deleted when.
//!
//! ```text
//! <directory>/<job>/LOCK                       the lease; names the process
//!                  /incarnation                names the directory; counts starts; reserves checkpoint ids
//!                  /state/<id>-<n>.arrow       state: Arrow IPC streams, one or several small ones a file
//!                  /manifest-<id>.json         the decision: the checkpoint exists
//!                  /manifest-<id>.copy         the same again, against a bad sector
//!                  /confirmed-<id>             every sink has committed it
//! ```
//!
//! State files are written and read back before the manifest, the manifest before any sink commits. A file goes only
//! after every manifest that names it is gone.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::disk::{Disk, WritePoints};
use super::lease::Lease;
use super::manifest::{Chain, Manifest, Piece, RunningChecksum, Section, checksum};
use super::recovery::{self, Found};
use super::state_file::{EncodedDelta, EncodedRows, decode_rows, encode_snapshot, merge};
use crate::crash::crash_point;
use crate::error::{Error, Result};
use crate::state::{Scope, Snapshot, TableDelta};

/// Streams smaller than this share a file: one sync for many small tables.
const SHARED_BYTES: usize = 64 << 10;
/// A table is merged into a new base when it has more deltas than this, or when they outweigh its base.
const MERGED_DELTAS: usize = 8;

const STATE_POINTS: WritePoints = WritePoints { half: "state_file_half_written", unsynced: "state_file_unsynced" };
const MANIFEST_POINTS: WritePoints = WritePoints { half: "manifest_half_written", unsynced: "manifest_unsynced" };
const NOTE_POINTS: WritePoints = WritePoints { half: "note_half_written", unsynced: "note_unsynced" };

/// A table of an operator subtask: uid, subtask, table.
type ChainKey = (String, usize, String);

/// The open checkpoint directory of a running job.
pub struct Store {
    disk: Arc<dyn Disk>,
    directory: PathBuf,
    lease: Lease,
    chains: BTreeMap<ChainKey, Chain>,
    manifests: BTreeMap<u64, Manifest>,
    confirmed: BTreeSet<u64>,
    files: BTreeSet<String>,
    next_file: u64,
}

impl Store {
    /// Opens the directory of `job` below `directory` and takes its lease.
    ///
    /// # Errors
    /// If another process holds it or the disk fails.
    pub fn open(disk: Arc<dyn Disk>, directory: &Path, job: &str) -> Result<Store> {
        let directory = job_directory(directory, job);
        let state = directory.join("state");
        disk.create_directory(&state).map_err(|error| Error::io("create", &state, &error))?;
        let names = list(&*disk, &directory)?;
        let files: BTreeSet<String> = list(&*disk, &state)?.into_iter().map(|name| format!("state/{name}")).collect();
        let highest = names.iter().filter_map(|name| Some(parse_name(name)?.1)).max().unwrap_or(0);
        let lease = Lease::acquire(Arc::clone(&disk), &directory, highest)?;
        Ok(Store {
            disk,
            directory,
            lease,
            chains: BTreeMap::new(),
            manifests: BTreeMap::new(),
            confirmed: BTreeSet::new(),
            files,
            next_file: 0,
        })
    }

    /// Which start of the job this is, from 1.
    pub fn incarnation(&self) -> u64 {
        self.lease.incarnation()
    }

    /// A name that no other checkpoint directory has.
    pub fn lineage(&self) -> &str {
        self.lease.lineage()
    }

    /// The job's own directory.
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// A checkpoint id that was never used.
    ///
    /// # Errors
    /// If it cannot be reserved.
    pub fn next_id(&mut self) -> Result<u64> {
        self.lease.next_id()
    }

    /// From now on ids are greater than `id`: it belongs to the checkpoint of another directory from which the job goes on.
    pub fn raise_ids(&mut self, id: u64) {
        self.lease.raise_ids(id);
    }

    /// The newest checkpoint, if there is one, with its state. Afterwards the tables start with the bases that the
    /// restored operators hand over. Leftovers of a crash are removed.
    ///
    /// # Errors
    /// If what is there is damaged and going back would lose or double rows, or is of an unknown format.
    pub fn recover(&mut self) -> Result<Option<Found>> {
        let found = recovery::load_newest(&*self.disk, &self.directory)?;
        self.chains.clear();
        self.manifests.clear();
        self.confirmed.clear();
        let mut all_readable = true;
        for (id, manifest) in recovery::load_all(&*self.disk, &self.directory)? {
            match manifest {
                Ok(manifest) => drop(self.manifests.insert(id, manifest)),
                Err(_) => all_readable = false,
            }
        }
        for name in list(&*self.disk, &self.directory)? {
            match parse_name(&name) {
                Some(("confirmed", id)) => drop(self.confirmed.insert(id)),
                None if name.ends_with(".tmp") => self.remove(&name)?,
                _ => {}
            }
        }
        // What a damaged manifest names is not known, so nothing is collected beside one.
        if all_readable {
            self.collect_files()?;
        }
        Ok(found)
    }

    /// Forgets every checkpoint in the directory (`--fresh`). Ids keep growing.
    ///
    /// # Errors
    /// If files cannot be removed.
    pub fn forget(&mut self) -> Result<()> {
        let mut names: Vec<(u64, String)> = list(&*self.disk, &self.directory)?
            .into_iter()
            .filter_map(|name| Some((parse_name(&name)?.1, name)))
            .collect();
        // From the oldest on: after a crash in between, what is left is still the newest.
        names.sort_by_key(|(id, name)| (*id, name.starts_with("confirmed")));
        for (_, name) in names {
            self.remove(&name)?;
        }
        self.sync(&self.directory.clone())?;
        (self.chains, self.manifests, self.confirmed) = Default::default();
        self.collect_files()
    }

    /// Writes state that belongs to checkpoint `id` and adds it to the tables. Durable and verified on return.
    ///
    /// # Errors
    /// If it cannot be written, or is read back otherwise than written.
    pub fn append(&mut self, id: u64, deltas: Vec<EncodedDelta>) -> Result<()> {
        self.lease.check()?;
        let mut shared = Vec::new();
        let mut shared_pieces = Vec::new();
        for delta in deltas {
            let key = (delta.operator.clone(), delta.subtask, delta.table.clone());
            let mut piece = Piece { checkpoint: id, base: delta.base, upserts: None, deletes: None };
            for (rows, section) in [(delta.upserts, &mut piece.upserts), (delta.deletes, &mut piece.deletes)] {
                *section = match rows {
                    Some(rows) if rows.bytes.len() >= SHARED_BYTES => Some(self.write_own(id, &rows)?),
                    Some(rows) => Some(share(&mut shared, &rows)),
                    None => None,
                };
            }
            let chain = Chain {
                operator: key.0.clone(),
                subtask: key.1,
                table: key.2.clone(),
                scope: delta.scope,
                pieces: Vec::new(),
            };
            shared_pieces.push((key, chain, piece));
        }
        if !shared.is_empty() {
            let (file, _) = self.write_file(id, &shared)?;
            for (_, _, piece) in &mut shared_pieces {
                piece.sections_mut().filter(|section| section.file.is_empty()).for_each(|s| s.file.clone_from(&file));
            }
        }
        let state = self.directory.join("state");
        if !shared_pieces.is_empty() {
            self.sync(&state)?;
        }
        for (key, chain, piece) in shared_pieces {
            let chain = self.chains.entry(key).or_insert(chain);
            if piece.base {
                chain.pieces.clear();
            }
            chain.pieces.push(piece);
        }
        Ok(())
    }

    /// Makes the checkpoint exist. `manifest` comes without state and parent, which are filled in from the tables.
    /// When this returns, the checkpoint is durable and verified: it is the decision that sinks may commit.
    ///
    /// # Errors
    /// If it cannot be written, or is read back otherwise than written.
    pub fn publish(&mut self, mut manifest: Manifest) -> Result<()> {
        self.lease.check()?;
        manifest.state = self.chains.values().cloned().collect();
        manifest.parent = self.manifests.last_key_value().map(|(id, _)| *id);
        let id = manifest.checkpoint;
        let bytes = manifest.encode()?;
        self.place(&format!("manifest-{id:012}.json"), &bytes)?;
        crash_point("manifest_durable");
        self.place(&format!("manifest-{id:012}.copy"), &bytes)?;
        self.manifests.insert(id, manifest);
        Ok(())
    }

    /// Notes that every sink has committed the checkpoint.
    ///
    /// # Errors
    /// If the note cannot be written.
    pub fn confirm(&mut self, id: u64) -> Result<()> {
        if self.confirmed.insert(id) {
            let name = format!("confirmed-{id:012}");
            self.write(&name, id.to_string().as_bytes(), NOTE_POINTS)?;
            self.sync(&self.directory.clone())?;
        }
        crash_point("all_confirmed");
        Ok(())
    }

    /// Deletes confirmed checkpoints older than the newest `retained` ones, and files that nothing refers to any more.
    ///
    /// # Errors
    /// If files cannot be deleted.
    pub fn retain(&mut self, retained: usize) -> Result<()> {
        let Some(bound) = self.confirmed.iter().rev().nth(retained.max(1) - 1).copied() else { return Ok(()) };
        let names: Vec<String> = list(&*self.disk, &self.directory)?
            .into_iter()
            .filter(|name| parse_name(name).is_some_and(|(_, id)| id < bound))
            .collect();
        if names.is_empty() {
            return Ok(());
        }
        // Manifests before their notes: a manifest without its note would count as not confirmed.
        for name in names.iter().filter(|name| name.starts_with("manifest")) {
            self.remove(name)?;
        }
        self.sync(&self.directory.clone())?;
        crash_point("mid_collection");
        for name in names.iter().filter(|name| !name.starts_with("manifest")) {
            self.remove(name)?;
        }
        self.manifests.retain(|id, _| *id >= bound);
        self.confirmed.retain(|id| *id >= bound);
        self.collect_files()
    }

    /// Bytes of state by operator uid, as the tables stand now.
    pub fn state_bytes(&self) -> HashMap<String, u64> {
        let mut bytes = HashMap::new();
        for chain in self.chains.values() {
            *bytes.entry(chain.operator.clone()).or_default() += chain.pieces.iter().map(Piece::bytes).sum::<u64>();
        }
        bytes
    }

    /// A table whose deltas have outgrown its base, to be merged beside the running job: the one with the most deltas, so
    /// that one that is due again at once never keeps the others waiting.
    pub fn merge_candidate(&mut self) -> Option<Merge> {
        let outgrown = |chain: &Chain| {
            let deltas = chain.pieces.len().saturating_sub(1);
            let bytes: u64 = chain.pieces.iter().skip(1).map(Piece::bytes).sum();
            let base = chain.pieces.first().map_or(0, Piece::bytes);
            deltas >= MERGED_DELTAS || (deltas > 1 && bytes > base.max(SHARED_BYTES as u64))
        };
        let candidates = self.chains.iter().filter(|(_, chain)| outgrown(chain));
        let (key, chain) = candidates.max_by_key(|(_, chain)| chain.pieces.len())?;
        let (disk, directory) = (Arc::clone(&self.disk), self.directory.clone());
        Some(Merge { disk, directory, key: key.clone(), scope: chain.scope, pieces: chain.pieces.clone() })
    }

    /// Puts a merged base in the place of the pieces it stands for. Deltas that came since stay behind it.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn replace(&mut self, merge: &Merge, merged: EncodedDelta) -> Result<()> {
        let unchanged = |chain: &Chain| chain.pieces.starts_with(&merge.pieces);
        if !self.chains.get(&merge.key).is_some_and(unchanged) {
            return Ok(());
        }
        let id = merge.pieces.last().map_or(0, |piece| piece.checkpoint);
        let mut piece = Piece { checkpoint: id, base: true, upserts: None, deletes: None };
        piece.upserts = merged.upserts.map(|rows| self.write_own(id, &rows)).transpose()?;
        piece.deletes = merged.deletes.map(|rows| self.write_own(id, &rows)).transpose()?;
        self.sync(&self.directory.join("state"))?;
        if let Some(chain) = self.chains.get_mut(&merge.key) {
            chain.pieces.splice(..merge.pieces.len(), [piece]);
        }
        Ok(())
    }

    /// Copies the newest checkpoint, which is confirmed, to a directory of its own below `target`, whole. Returns it.
    ///
    /// # Errors
    /// If a file cannot be copied.
    pub fn savepoint(&mut self, target: &Path) -> Result<PathBuf> {
        let Some(mut manifest) = self.manifests.last_key_value().map(|(_, manifest)| manifest.clone()) else {
            return Err(Error::bug("a savepoint was asked for before any checkpoint"));
        };
        let id = manifest.checkpoint;
        let directory = target.join(format!("savepoint-{}-{id}", directory_name(&manifest.job)));
        let state = directory.join("state");
        self.disk.create_directory(&state).map_err(|error| Error::io("create", &state, &error))?;
        let files: BTreeSet<&str> = manifest.sections().map(|section| section.file.as_str()).collect();
        for file in files {
            let (from, to) = (self.directory.join(file), directory.join(file));
            let bytes = self.disk.read(&from).map_err(|error| Error::io("read", &from, &error))?;
            self.disk.write(&to, &bytes, STATE_POINTS).map_err(|error| Error::io("write", &to, &error))?;
        }
        self.sync(&state)?;
        manifest.savepoint = true;
        manifest.parent = None;
        // Its sinks have committed: a savepoint must never publish rows again.
        manifest.sinks.values_mut().for_each(Vec::clear);
        let note = directory.join(format!("confirmed-{id:012}"));
        let path = directory.join(format!("manifest-{id:012}.json"));
        self.disk.write(&note, b"", NOTE_POINTS).map_err(|error| Error::io("write", &note, &error))?;
        let bytes = manifest.encode()?;
        self.disk.write(&path, &bytes, MANIFEST_POINTS).map_err(|error| Error::io("write", &path, &error))?;
        self.sync(&directory)?;
        Ok(directory)
    }

    fn write_own(&mut self, id: u64, rows: &EncodedRows) -> Result<Section> {
        let (file, xxh3) = self.write_file(id, &rows.bytes)?;
        Ok(Section { file, offset: 0, length: rows.bytes.len() as u64, xxh3, rows: rows.rows })
    }

    /// Writes a new state file under a name that was never used, and reads it back. Gives its name and checksum.
    fn write_file(&mut self, id: u64, bytes: &[u8]) -> Result<(String, String)> {
        let file = loop {
            self.next_file += 1;
            let file = format!("state/{id:012}-{}-{}.arrow", self.lease.incarnation(), self.next_file);
            if self.files.insert(file.clone()) {
                break file;
            }
        };
        self.write(&file, bytes, STATE_POINTS)?;
        let written = checksum(bytes);
        self.verify(&file, &written)?;
        Ok((file, written))
    }

    /// Writes a file under a temporary name, verifies it and moves it to its own name, durably.
    fn place(&self, name: &str, bytes: &[u8]) -> Result<()> {
        let temporary = format!("{name}.tmp");
        self.write(&temporary, bytes, MANIFEST_POINTS)?;
        crash_point("manifest_temporary_synced");
        self.verify(&temporary, &checksum(bytes))?;
        let (from, to) = (self.directory.join(&temporary), self.directory.join(name));
        self.disk.rename(&from, &to).map_err(|error| Error::io("rename", &from, &error))?;
        crash_point("manifest_renamed");
        self.sync(&self.directory)
    }

    fn verify(&self, name: &str, written: &str) -> Result<()> {
        let path = self.directory.join(name);
        let mut read = RunningChecksum::default();
        let pieces = self.disk.read_pieces(&path, &mut |piece| read.add(piece));
        pieces.map_err(|error| Error::io("read back", &path, &error))?;
        if read.finish() != written {
            let what = format!("'{}' was read back otherwise than written", path.display());
            return Err(Error::setup(what).hint("the disk or the memory is failing"));
        }
        Ok(())
    }

    fn write(&self, name: &str, bytes: &[u8], points: WritePoints) -> Result<()> {
        let path = self.directory.join(name);
        self.disk.write(&path, bytes, points).map_err(|error| Error::io("write", &path, &error))
    }

    fn sync(&self, directory: &Path) -> Result<()> {
        self.disk.sync_directory(directory).map_err(|error| Error::io("sync", directory, &error))
    }

    fn remove(&self, name: &str) -> Result<()> {
        let path = self.directory.join(name);
        self.disk.remove(&path).map_err(|error| Error::io("remove", &path, &error))
    }

    /// Removes state files that neither a manifest nor a table refers to.
    fn collect_files(&mut self) -> Result<()> {
        let pieces = self.chains.values().flat_map(|chain| &chain.pieces);
        let of_tables = pieces.flat_map(Piece::sections);
        let of_manifests = self.manifests.values().flat_map(Manifest::sections);
        let used: BTreeSet<&str> = of_tables.chain(of_manifests).map(|section| section.file.as_str()).collect();
        let unused: Vec<String> = self.files.iter().filter(|file| !used.contains(file.as_str())).cloned().collect();
        for file in unused {
            self.remove(&file)?;
            self.files.remove(&file);
        }
        Ok(())
    }
}

/// Appends a small stream to the file that several share; the file's name follows when it is written.
fn share(shared: &mut Vec<u8>, rows: &EncodedRows) -> Section {
    let offset = shared.len() as u64;
    shared.extend_from_slice(&rows.bytes);
    let length = rows.bytes.len() as u64;
    Section { file: String::new(), offset, length, xxh3: checksum(&rows.bytes), rows: rows.rows }
}

/// A table to be merged: read and computed without the store, then handed to [`Store::replace`].
pub struct Merge {
    disk: Arc<dyn Disk>,
    directory: PathBuf,
    key: ChainKey,
    scope: Scope,
    pieces: Vec<Piece>,
}

impl Merge {
    /// Reads the pieces and makes one base of them; `None` if the table's keys are not known.
    ///
    /// # Errors
    /// If a piece cannot be read.
    pub fn run(&self) -> Result<Option<EncodedDelta>> {
        let (operator, subtask, table) = &self.key;
        let mut deltas = Vec::new();
        for piece in &self.pieces {
            let read = |section: &Option<Section>| -> Result<_> {
                let Some(section) = section else { return Ok(None) };
                let bytes = recovery::read_section(&*self.disk, &self.directory, section)?;
                decode_rows(bytes).map(Some)
            };
            let (upserts, deletes) = (read(&piece.upserts)?, read(&piece.deletes)?);
            deltas.push(TableDelta { table: table.clone(), scope: self.scope, base: piece.base, upserts, deletes });
        }
        let Some(merged) = merge(&deltas)? else { return Ok(None) };
        let snapshot = Snapshot { tables: vec![merged] };
        Ok(encode_snapshot(operator, *subtask, snapshot)?.pop())
    }
}

/// The directory of one job: several jobs of a script may share a checkpoint directory.
pub fn job_directory(directory: &Path, job: &str) -> PathBuf {
    directory.join(directory_name(job))
}

/// A job's name as a directory's: readable, and different for different names.
fn directory_name(job: &str) -> String {
    let keep = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    let name: String = job.chars().map(|c| if keep(c) { c } else { '_' }).take(80).collect();
    if name == job && !name.is_empty() && !name.starts_with('.') {
        name
    } else {
        format!("{}-{}", name.trim_start_matches('.'), &checksum(job.as_bytes())[..8])
    }
}

/// `manifest-000000000007.json` is a manifest of 7; also copies and confirmed notes.
pub fn parse_name(name: &str) -> Option<(&'static str, u64)> {
    if let Some(id) = name.strip_prefix("confirmed-") {
        return Some(("confirmed", id.parse().ok()?));
    }
    let id = name.strip_prefix("manifest-")?;
    if let Some(id) = id.strip_suffix(".json") {
        return Some(("manifest", id.parse().ok()?));
    }
    Some(("copy", id.strip_suffix(".copy")?.parse().ok()?))
}

/// The names in a directory; none if it does not exist.
///
/// # Errors
/// If it cannot be read.
pub fn list(disk: &dyn Disk, directory: &Path) -> Result<Vec<String>> {
    match disk.list(directory) {
        Ok(names) => Ok(names),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(Vec::new()),
        Err(error) => Err(Error::io("list", directory, &error)),
    }
}
