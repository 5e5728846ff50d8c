//! Finding the checkpoint to go on from, and handing its state to the subtasks of the new run.
//!
//! The newest checkpoint counts. When it is damaged, what may be done depends on its note: before any sink has committed
//! it, the one before it gives the same result, and the job goes on from there and says so. After, going back would
//! write rows twice, and the job stops. Trouble in *reading* (a missing permission, a disk error) is never taken for
//! damage.

use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use super::disk::Disk;
use super::manifest::{Chain, Damage, Manifest, OperatorEntry, Section, checksum};
use super::state_file::decode_rows;
use super::store::{list, parse_name};
use crate::error::{Error, Result};
use crate::limits::KEY_GROUPS;
use crate::state::{KeyGroupRange, Restored, TableDelta};

/// A checkpoint to go on from.
pub struct Found {
    /// What it consists of.
    pub manifest: Manifest,
    /// Whether every sink has committed it.
    pub confirmed: bool,
    /// Said to people when a newer checkpoint was damaged.
    pub warning: Option<String>,
    /// The state of all operators.
    pub state: SavedState,
}

/// The state of all operators, read and verified.
#[derive(Default)]
pub struct SavedState {
    deltas: BTreeMap<String, Vec<TableDelta>>,
}

impl SavedState {
    /// What the subtask that owns `range` gets: for each table the deltas, oldest first; of several former subtasks one
    /// after the other, since their keys differ. Only the first delta of a table is marked as its base.
    ///
    /// # Errors
    /// If the state does not have the form it should.
    pub fn restored(&self, uid: &str, range: KeyGroupRange) -> Result<Restored> {
        let deltas = self.deltas.get(uid).cloned().unwrap_or_default();
        Restored { deltas }.restrict(range)
    }

    fn load(disk: &dyn Disk, directory: &Path, manifest: &Manifest) -> Result<SavedState, LoadError> {
        let mut state = SavedState::default();
        for chain in &manifest.state {
            let deltas = state.deltas.entry(chain.operator.clone()).or_default();
            let first = !deltas.iter().any(|delta: &TableDelta| delta.table == chain.table);
            load_chain(disk, directory, chain, first, deltas)?;
        }
        Ok(state)
    }
}

fn load_chain(
    disk: &dyn Disk,
    directory: &Path,
    chain: &Chain,
    first: bool,
    deltas: &mut Vec<TableDelta>,
) -> Result<(), LoadError> {
    for (index, piece) in chain.pieces.iter().enumerate() {
        let read = |section: &Option<Section>| -> Result<_, LoadError> {
            let Some(section) = section else { return Ok(None) };
            let bytes = load_section(disk, directory, section)?;
            decode_rows(bytes).map(Some).map_err(|error| LoadError::Damaged(error.to_string()))
        };
        let (upserts, deletes) = (read(&piece.upserts)?, read(&piece.deletes)?);
        deltas.push(TableDelta {
            table: chain.table.clone(),
            scope: chain.scope,
            base: first && index == 0,
            upserts,
            deletes,
        });
    }
    Ok(())
}

enum LoadError {
    /// The bytes are not as written.
    Damaged(String),
    /// They could not be read.
    Failed(Error),
}

fn load_section(disk: &dyn Disk, directory: &Path, section: &Section) -> Result<Vec<u8>, LoadError> {
    let path = directory.join(&section.file);
    let damaged = |why: &str| LoadError::Damaged(format!("the state file '{}' {why}", path.display()));
    let bytes = disk.read_range(&path, section.offset, section.length).map_err(|error| match error.kind() {
        ErrorKind::NotFound => damaged("is missing"),
        ErrorKind::UnexpectedEof => damaged("is too short"),
        _ => LoadError::Failed(Error::io("read", &path, &error)),
    })?;
    if checksum(&bytes) != section.xxh3 {
        return Err(damaged("is damaged: its checksum does not match"));
    }
    Ok(bytes)
}

/// Reads and verifies one section of a state file.
///
/// # Errors
/// If it cannot be read or is damaged.
pub fn read_section(disk: &dyn Disk, directory: &Path, section: &Section) -> Result<Vec<u8>> {
    load_section(disk, directory, section).map_err(|error| match error {
        LoadError::Damaged(why) => Error::state(why),
        LoadError::Failed(error) => error,
    })
}

/// Reads the manifest of `id`, from its copy if need be; the inner error says what is damaged.
///
/// # Errors
/// If a file cannot be read, or is of an unknown format.
pub fn load_manifest(disk: &dyn Disk, directory: &Path, id: u64) -> Result<Result<Manifest, String>> {
    let mut damage = String::new();
    for extension in ["json", "copy"] {
        let path = directory.join(format!("manifest-{id:012}.{extension}"));
        let bytes = match disk.read(&path) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == ErrorKind::NotFound => continue,
            Err(error) => return Err(Error::io("read", &path, &error)),
        };
        match Manifest::decode(&bytes) {
            Ok(manifest) if manifest.checkpoint == id => return Ok(Ok(manifest)),
            Ok(manifest) => damage = format!("'{}' is that of checkpoint {}", path.display(), manifest.checkpoint),
            Err(Damage::Corrupt(why)) => damage = format!("'{}' is damaged: {why}", path.display()),
            Err(Damage::Unknown(what)) => {
                return Err(Error::state(format!("'{}' is of another version ({what})", path.display()))
                    .hint("go on with the version of Ebbflow that wrote it, or start anew with --fresh"));
            }
        }
    }
    Ok(Err(damage))
}

/// All manifests of a directory by id; an inner error says what is damaged.
///
/// # Errors
/// As for [`load_manifest`].
pub fn load_all(disk: &dyn Disk, directory: &Path) -> Result<BTreeMap<u64, Result<Manifest, String>>> {
    let mut manifests = BTreeMap::new();
    for id in list(disk, directory)?.iter().filter_map(|name| parse_name(name)) {
        if let (b"manifest" | b"copy", id) = (id.0.as_bytes(), id.1)
            && !manifests.contains_key(&id)
        {
            manifests.insert(id, load_manifest(disk, directory, id)?);
        }
    }
    Ok(manifests)
}

/// The checkpoint to go on from, whole and verified; `None` if the directory holds none.
///
/// # Errors
/// If what is there is damaged and must not be passed over, or cannot be read.
pub fn load_newest(disk: &dyn Disk, directory: &Path) -> Result<Option<Found>> {
    let names = list(disk, directory)?;
    let noted = |id: u64| names.iter().any(|name| parse_name(name) == Some(("confirmed", id)));
    let newest_noted = names.iter().filter_map(|name| parse_name(name)).filter(|(what, _)| *what == "confirmed");
    let newest_noted = newest_noted.map(|(_, id)| id).max();
    let mut warning = None;
    for (id, manifest) in load_all(disk, directory)?.into_iter().rev() {
        let loaded = match manifest {
            Err(damage) => Err(damage),
            Ok(manifest) => match SavedState::load(disk, directory, &manifest) {
                Ok(state) => Ok((manifest, state)),
                Err(LoadError::Damaged(why)) => Err(why),
                Err(LoadError::Failed(error)) => return Err(error),
            },
        };
        match loaded {
            Ok((manifest, state)) => {
                // A note for a checkpoint whose manifest is gone: rows were committed that going back would double.
                refuse_lost(directory, newest_noted.filter(|noted| *noted > id))?;
                let confirmed = noted(id);
                return Ok(Some(Found { manifest, confirmed, warning, state }));
            }
            Err(why) if warning.is_none() && !noted(id) => {
                warning = Some(format!(
                    "checkpoint {id} was not complete and is passed over ({why}); going on from the one before it"
                ));
            }
            Err(why) => {
                return Err(Error::state(format!("checkpoint {id} cannot be used: {why}")).hint(
                    "its results are already published, so an older checkpoint would publish rows twice; \
                     restore the file from a backup, or start anew with --fresh",
                ));
            }
        }
    }
    refuse_lost(directory, newest_noted)?;
    match warning {
        // There was one checkpoint, nobody has committed it, and it is damaged: the beginning is the one before it.
        Some(_) | None => Ok(None),
    }
}

fn refuse_lost(directory: &Path, lost: Option<u64>) -> Result<()> {
    match lost {
        None => Ok(()),
        Some(id) => {
            let what = format!("the manifest of checkpoint {id} is missing from '{}'", directory.display());
            Err(Error::state(what).hint("restore it from a backup, or start anew with --fresh"))
        }
    }
}

/// Loads what `execution.state-recovery.path` names: a savepoint, a job's checkpoint directory, or one manifest.
///
/// # Errors
/// If there is no checkpoint, or more than one job's, or it is damaged.
pub fn load_path(disk: &dyn Disk, path: &Path) -> Result<Found> {
    let name = path.file_name().and_then(|name| name.to_str());
    if let Some((_, id)) = name.and_then(parse_name) {
        let directory = path.parent().unwrap_or(Path::new("."));
        let manifest = load_manifest(disk, directory, id)?.map_err(Error::state)?;
        let state = SavedState::load(disk, directory, &manifest).map_err(|error| match error {
            LoadError::Damaged(why) => Error::state(why),
            LoadError::Failed(error) => error,
        })?;
        let note = format!("confirmed-{id:012}");
        let confirmed = list(disk, directory)?.contains(&note);
        return Ok(Found { manifest, confirmed, warning: None, state });
    }
    let directory = match &checkpoint_directories(disk, path)?[..] {
        [directory] => directory.clone(),
        [] => return Err(Error::setup(format!("there is no checkpoint in '{}'", path.display()))),
        several => {
            let names: Vec<String> = several.iter().map(|directory| format!("'{}'", directory.display())).collect();
            return Err(Error::setup(format!("'{}' holds checkpoints of several jobs", path.display()))
                .hint(format!("name one of {}", names.join(", "))));
        }
    };
    load_newest(disk, &directory)?
        .ok_or_else(|| Error::setup(format!("there is no usable checkpoint in '{}'", directory.display())))
}

/// The directories that hold manifests: `path` itself, or those directly below it.
///
/// # Errors
/// If a directory cannot be read.
pub fn checkpoint_directories(disk: &dyn Disk, path: &Path) -> Result<Vec<PathBuf>> {
    let names = disk.list(path).map_err(|error| Error::io("list", path, &error))?;
    let has_manifest = |names: &[String]| names.iter().any(|name| parse_name(name).is_some());
    if has_manifest(&names) {
        return Ok(vec![path.to_owned()]);
    }
    let mut found: Vec<PathBuf> = names
        .iter()
        .map(|name| path.join(name))
        .filter(|directory| disk.list(directory).is_ok_and(|names| has_manifest(&names)))
        .collect();
    found.sort();
    Ok(found)
}

/// How a new plan fits saved state.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Comparison {
    /// Operators that keep their state.
    pub kept: Vec<String>,
    /// Operators whose saved state has no place in the new plan.
    pub lost: Vec<String>,
    /// Operators that start empty.
    pub new: Vec<String>,
}

/// Compares the saved operators with those of the new plan.
pub fn compare(manifest: &Manifest, operators: &BTreeMap<String, OperatorEntry>) -> Comparison {
    let mut comparison = Comparison::default();
    for (uid, saved) in &manifest.operators {
        let fits = operators.get(uid).is_some_and(|operator| operator.fingerprint == saved.fingerprint);
        let stateful = manifest.state.iter().any(|chain| chain.operator == *uid)
            || manifest.sources.get(uid).is_some_and(|splits| !splits.is_empty());
        // Operators without state are nobody's concern.
        if !stateful {
            continue;
        }
        let list = if fits { &mut comparison.kept } else { &mut comparison.lost };
        list.push(format!("{} ({uid})", saved.description));
    }
    for (uid, operator) in operators.iter().filter(|(uid, _)| !manifest.operators.contains_key(*uid)) {
        comparison.new.push(format!("{} ({uid})", operator.description));
    }
    comparison
}

/// Refuses state that does not fit the new plan; with `allow_lost`, only what can never fit.
///
/// # Errors
/// If operators would lose their state and that is not allowed, or the key groups differ.
pub fn check_plan(
    manifest: &Manifest,
    operators: &BTreeMap<String, OperatorEntry>,
    allow_lost: bool,
) -> Result<Comparison> {
    if manifest.key_groups != KEY_GROUPS {
        return Err(Error::state(format!(
            "checkpoint {} divides keys into {} groups, this version into {KEY_GROUPS}",
            manifest.checkpoint, manifest.key_groups
        )));
    }
    let comparison = compare(manifest, operators);
    if comparison.lost.is_empty() || allow_lost {
        return Ok(comparison);
    }
    let or_none = |names: &[String]| if names.is_empty() { "none".to_owned() } else { names.join(", ") };
    Err(Error::state(format!(
        "the plan has changed since checkpoint {}; it would lose the state of: {}; it keeps that of: {}",
        manifest.checkpoint,
        or_none(&comparison.lost),
        or_none(&comparison.kept)
    ))
    .hint("give up that state with --allow-non-restored-state, or start anew with --fresh"))
}
