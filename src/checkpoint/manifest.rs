//! The manifest of a checkpoint: the decision record. A checkpoint exists when its manifest does.
//!
//! It is JSON with a last line `#xxh3 <checksum> <length>` over everything before, and names every byte the checkpoint
//! consists of: state files with checksums, source positions, what sinks have prepared. It can be read by people.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use xxhash_rust::xxh3::{Xxh3Default, xxh3_64};

use crate::error::{Error, Result};
use crate::state::Scope;

/// What the first field says.
const MAGIC: &str = "ebbflow checkpoint";

/// The version of the format; another one is refused.
pub const FORMAT: u32 = 1;

/// Everything a checkpoint consists of.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Manifest {
    /// Marks the file as ours.
    pub magic: String,
    /// [`FORMAT`].
    pub format: u32,
    /// Version of the engine that wrote it.
    pub engine: String,
    /// The job's name.
    pub job: String,
    /// Which start of the job wrote it.
    pub incarnation: u64,
    /// Its number.
    pub checkpoint: u64,
    /// The checkpoint before it; `None` for a job's first.
    pub parent: Option<u64>,
    /// When it was taken: milliseconds since the epoch.
    pub time_ms: i64,
    /// Whether it stands by itself and is kept until a person deletes it.
    pub savepoint: bool,
    /// Whether the job had read all its input: nothing is left to do.
    pub finished: bool,
    /// The job's parallelism.
    pub parallelism: usize,
    /// Number of key groups of keyed state.
    pub key_groups: u16,
    /// Every operator of the plan, by uid.
    pub operators: BTreeMap<String, OperatorEntry>,
    /// Positions by uid of the source; a source without splits has an empty list.
    pub sources: BTreeMap<String, Vec<SavedSplit>>,
    /// What each sink has prepared, in the sink's own form; an explicit empty list if nothing.
    pub sinks: BTreeMap<String, Vec<Value>>,
    /// State tables, each as a base and the deltas after it.
    pub state: Vec<Chain>,
}

/// An operator of the plan.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OperatorEntry {
    /// What it is, for people.
    pub description: String,
    /// Equal if saved state fits; empty for operators without state.
    pub fingerprint: String,
}

/// A split and its position, in the connector's own form.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SavedSplit {
    /// The split's name.
    pub split: String,
    /// Where to go on.
    pub position: Value,
}

/// One state table of one operator subtask: a base, then deltas, oldest first.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Chain {
    /// The operator's uid.
    pub operator: String,
    /// Which of its subtasks wrote it.
    pub subtask: usize,
    /// The table's name.
    pub table: String,
    /// Who gets the rows back.
    pub scope: Scope,
    /// The pieces, oldest first.
    pub pieces: Vec<Piece>,
}

/// What one checkpoint added to a table.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Piece {
    /// The checkpoint that wrote it.
    pub checkpoint: u64,
    /// Whether it replaces everything before.
    pub base: bool,
    /// Rows written.
    pub upserts: Option<Section>,
    /// Keys removed.
    pub deletes: Option<Section>,
}

/// An Arrow IPC stream within a state file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Section {
    /// Path of the file below the job's directory.
    pub file: String,
    /// First byte.
    pub offset: u64,
    /// Number of bytes.
    pub length: u64,
    /// Checksum of the bytes, in hexadecimal.
    pub xxh3: String,
    /// Number of rows.
    pub rows: u64,
}

impl Piece {
    /// The sections there are.
    pub fn sections(&self) -> impl Iterator<Item = &Section> {
        self.upserts.iter().chain(&self.deletes)
    }

    /// The sections there are, to be moved elsewhere.
    pub fn sections_mut(&mut self) -> impl Iterator<Item = &mut Section> {
        self.upserts.iter_mut().chain(&mut self.deletes)
    }

    /// Bytes on disk.
    pub fn bytes(&self) -> u64 {
        self.sections().map(|section| section.length).sum()
    }
}

impl Manifest {
    /// An empty manifest of the current format.
    pub fn new(job: &str, incarnation: u64, checkpoint: u64) -> Manifest {
        Manifest {
            magic: MAGIC.to_owned(),
            format: FORMAT,
            engine: env!("CARGO_PKG_VERSION").to_owned(),
            job: job.to_owned(),
            incarnation,
            checkpoint,
            parent: None,
            time_ms: 0,
            savepoint: false,
            finished: false,
            parallelism: 1,
            key_groups: crate::limits::KEY_GROUPS,
            operators: BTreeMap::new(),
            sources: BTreeMap::new(),
            sinks: BTreeMap::new(),
            state: Vec::new(),
        }
    }

    /// Every section it refers to.
    pub fn sections(&self) -> impl Iterator<Item = &Section> {
        self.state.iter().flat_map(|chain| &chain.pieces).flat_map(Piece::sections)
    }

    /// The file's bytes.
    ///
    /// # Errors
    /// Never for values that a checkpoint holds.
    pub fn encode(&self) -> Result<Vec<u8>> {
        let mut bytes = serde_json::to_vec_pretty(self).map_err(|error| Error::bug(format!("a manifest: {error}")))?;
        bytes.push(b'\n');
        let trailer = format!("#xxh3 {} {}\n", checksum(&bytes), bytes.len());
        bytes.extend_from_slice(trailer.as_bytes());
        Ok(bytes)
    }

    /// Reads a file's bytes back.
    ///
    /// # Errors
    /// [`Damage::Corrupt`] if a byte is not as written, [`Damage::Unknown`] if another version wrote it.
    pub fn decode(bytes: &[u8]) -> Result<Manifest, Damage> {
        let corrupt = |why: &str| Damage::Corrupt(why.to_owned());
        let text = bytes.strip_suffix(b"\n").ok_or_else(|| corrupt("its end is missing"))?;
        let cut = text.iter().rposition(|byte| *byte == b'\n').ok_or_else(|| corrupt("it has no checksum line"))? + 1;
        let (body, trailer) = (&bytes[..cut], &text[cut..]);
        if trailer != format!("#xxh3 {} {}", checksum(body), body.len()).as_bytes() {
            return Err(corrupt("its checksum does not match"));
        }
        #[derive(Deserialize)]
        struct Header {
            magic: String,
            format: u32,
        }
        let header: Header = serde_json::from_slice(body).map_err(|error| Damage::Corrupt(error.to_string()))?;
        if header.magic != MAGIC || header.format != FORMAT {
            return Err(Damage::Unknown(format!("'{}', format version {}", header.magic, header.format)));
        }
        serde_json::from_slice(body).map_err(|error| Damage::Corrupt(error.to_string()))
    }
}

/// Why a manifest cannot be used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Damage {
    /// Bytes are missing or changed; says what.
    Corrupt(String),
    /// It is whole, but of a format this version does not know; says which.
    Unknown(String),
}

/// The checksum of bytes as it stands in manifests.
pub fn checksum(bytes: &[u8]) -> String {
    format!("{:016x}", xxh3_64(bytes))
}

/// The [`checksum`] of bytes that come in pieces.
#[derive(Default)]
pub struct RunningChecksum(Xxh3Default);

impl RunningChecksum {
    /// The next piece.
    pub fn add(&mut self, piece: &[u8]) {
        self.0.update(piece);
    }

    /// The checksum of all pieces.
    pub fn finish(&self) -> String {
        format!("{:016x}", self.0.digest())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_manifest_is_read_back_as_written_and_every_changed_byte_is_seen() {
        let mut manifest = Manifest::new("job", 2, 7);
        manifest.sinks.insert("out".into(), vec![serde_json::json!({"file": "a"})]);
        let bytes = manifest.encode().unwrap();
        assert_eq!(Manifest::decode(&bytes).unwrap(), manifest);
        for at in 0..bytes.len() {
            let mut changed = bytes.clone();
            changed[at] ^= 0x20;
            assert!(Manifest::decode(&changed).is_err(), "byte {at}");
            assert!(Manifest::decode(&bytes[..at]).is_err(), "cut at {at}");
        }
    }

    #[test]
    fn another_version_is_refused_and_not_taken_for_damage() {
        let mut manifest = Manifest::new("job", 1, 1);
        manifest.format = FORMAT + 1;
        assert!(matches!(Manifest::decode(&manifest.encode().unwrap()), Err(Damage::Unknown(_))));
    }
}
