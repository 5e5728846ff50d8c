//! Makes staging files visible, once, whatever crashed before.
//!
//! The final name of a file is fixed by its committable, and so are its length and hash. Publishing links the staging
//! file to the final name without replacing anything, syncs the directory, and only then removes the staging name. So at
//! any moment the file has at least one of the two names, and publishing again can tell what is left to do.

use std::collections::BTreeSet;
use std::fs::{File, TryLockError};
use std::io::{ErrorKind, Read};
use std::path::{Path, PathBuf};

use xxhash_rust::xxh3::Xxh3;

use crate::connectors::Committable;
use crate::crash::crash_point;
use crate::error::{Error, Result};

/// The directory of files that are not visible yet; readers pass over names that begin with `_`.
pub(super) const STAGING: &str = "_staging";

/// The incarnation of a job without checkpoints: when it is killed, nothing it has staged is ever published.
pub(super) const NO_CHECKPOINTS: u64 = 0;

/// A file to be made visible. Paths are below the table's directory.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub(super) struct Published {
    pub staging: String,
    #[serde(rename = "final")]
    pub target: String,
    pub length: u64,
    pub hash: u64,
}

/// The committable of `files`.
///
/// # Errors
/// If it cannot be written as JSON, which only a bug can cause.
pub(super) fn committable(files: &[Published]) -> Result<Committable> {
    let files = serde_json::to_value(files).map_err(|error| Error::bug(format!("a committable: {error}")))?;
    Ok(Committable(serde_json::json!({ "files": files })))
}

/// `part-<sink>-`, with everything in the sink's name escaped that could be taken for another part of a file name.
pub(super) fn file_prefix(sink: &str) -> String {
    let mut prefix = "part-".to_string();
    for byte in sink.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'_' => prefix.push(char::from(byte)),
            _ => prefix += &format!("%{byte:02X}"),
        }
    }
    prefix.push('-');
    prefix
}

/// Publishes the files of all committables. Doing it again changes nothing.
///
/// # Errors
/// If a file is neither in staging nor published, or another file has its name: then it cannot be known whether its
/// rows are visible.
pub(super) fn commit(directory: &Path, committables: &[Committable]) -> Result<()> {
    let mut changed = BTreeSet::new();
    let mut linked = Vec::new();
    for committable in committables {
        let files: Vec<Published> = serde_json::from_value(committable.0["files"].clone())
            .map_err(|error| Error::state(format!("the files to be published cannot be read: {error}")))?;
        for file in files {
            if let Some(staging) = link(directory, &file, &mut changed)? {
                linked.push(staging);
            }
            crash_point("file_linked");
        }
    }
    for directory in &changed {
        sync_directory(directory)?;
    }
    crash_point("files_linked");
    let staged = !linked.is_empty();
    for staging in linked {
        remove(&staging)?;
        crash_point("staging_removed");
    }
    if staged {
        sync_directory(&directory.join(STAGING))?;
    }
    Ok(())
}

/// Gives a file its final name. Returns the staging path if that name is still to be removed.
fn link(directory: &Path, file: &Published, changed: &mut BTreeSet<PathBuf>) -> Result<Option<PathBuf>> {
    let staging = directory.join(&file.staging);
    let target = directory.join(&file.target);
    let staged = match std::fs::metadata(&staging) {
        Ok(metadata) => Some(metadata.len()),
        Err(error) if error.kind() == ErrorKind::NotFound => None,
        Err(error) => return Err(Error::io("look at", &staging, &error)),
    };
    let Some(length) = staged else {
        if same_content(&target, file)? {
            return Ok(None);
        }
        return Err(Error::state(format!(
            "FILE_LOST: '{}' belongs to a completed checkpoint, but is neither published nor in '{STAGING}'",
            target.display()
        ))
        .hint("its rows may be missing: restore the file, or start the job anew into another directory"));
    };
    if length != file.length {
        return Err(Error::state(format!(
            "FILE_LOST: '{}' has {length} bytes, but {} belong to its checkpoint",
            staging.display(),
            file.length
        )));
    }
    if let Some(parent) = target.parent() {
        create_directories(parent, changed)?;
        changed.insert(parent.to_path_buf());
    }
    match std::fs::hard_link(&staging, &target) {
        Ok(()) => Ok(Some(staging)),
        Err(error) if error.kind() == ErrorKind::AlreadyExists => {
            if same_content(&target, file)? {
                return Ok(Some(staging));
            }
            Err(Error::state(format!("cannot publish '{}': another file has this name", target.display()))
                .hint("two jobs must not write the same directory under the same sink name"))
        }
        // A file system without hard links: nobody else writes this name, so looking first is enough.
        Err(error) if matches!(error.kind(), ErrorKind::Unsupported | ErrorKind::PermissionDenied) => {
            std::fs::rename(&staging, &target).map_err(|error| Error::io("publish", &target, &error))?;
            changed.insert(directory.join(STAGING));
            Ok(None)
        }
        Err(error) => Err(Error::io("publish", &target, &error)),
    }
}

/// Creates missing directories and notes those whose entries changed.
///
/// # Errors
/// If one cannot be created.
pub(super) fn create_directories(path: &Path, changed: &mut BTreeSet<PathBuf>) -> Result<()> {
    // The parent of a name alone has no name: it is the current directory.
    if path.is_dir() || path.as_os_str().is_empty() {
        return Ok(());
    }
    if let Some(parent) = path.parent() {
        create_directories(parent, changed)?;
        changed.insert(parent.to_path_buf());
    }
    match std::fs::create_dir(path) {
        Ok(()) => Ok(()),
        Err(error) if error.kind() == ErrorKind::AlreadyExists => Ok(()),
        Err(error) => Err(Error::io("create directory", path, &error)),
    }
}

/// Whether the file at `path` is the one that was to be published.
fn same_content(path: &Path, file: &Published) -> Result<bool> {
    let mut content = match File::open(path) {
        Ok(content) => content,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(false),
        Err(error) => return Err(Error::io("read", path, &error)),
    };
    let metadata = content.metadata().map_err(|error| Error::io("read", path, &error))?;
    if metadata.len() != file.length {
        return Ok(false);
    }
    let mut hash = Xxh3::new();
    let mut piece = vec![0; 256 << 10];
    loop {
        match content.read(&mut piece) {
            Ok(0) => return Ok(hash.digest() == file.hash),
            Ok(length) => hash.update(&piece[..length]),
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(Error::io("read", path, &error)),
        }
    }
}

/// Removes the sink's staging files of incarnations before `incarnation`, those of the running one never; and those of
/// jobs without checkpoints, whichever they are, unless their process still holds them.
///
/// # Errors
/// If one cannot be removed.
pub(super) fn clean(directory: &Path, sink: &str, incarnation: u64) -> Result<()> {
    let staging = directory.join(STAGING);
    let entries = match std::fs::read_dir(&staging) {
        Ok(entries) => entries,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(Error::io("list", &staging, &error)),
    };
    let prefix = file_prefix(sink);
    let mut removed = false;
    for entry in entries {
        let name = entry.map_err(|error| Error::io("list", &staging, &error))?.file_name();
        let Some(name) = name.to_str() else { continue };
        let written_by = name.rsplit('.').next().and_then(|number| number.parse::<u64>().ok());
        let left_over = match written_by {
            Some(NO_CHECKPOINTS) => !is_held(&staging.join(name))?,
            Some(number) => number < incarnation && name.starts_with(&prefix),
            None => false,
        };
        if left_over {
            remove(&staging.join(name))?;
            removed = true;
            crash_point("leftover_removed");
        }
    }
    if removed { sync_directory(&staging) } else { Ok(()) }
}

/// Begins a staging file that nobody shares; `None` if there is one of this name. Without checkpoints it is held by a
/// lock for as long as the handle lives: that tells it from what a killed process has left.
///
/// # Errors
/// If it cannot be created or locked.
pub(super) fn begin(path: &Path, incarnation: u64) -> Result<Option<File>> {
    loop {
        let file = match File::create_new(path) {
            Ok(file) => file,
            Err(error) if error.kind() == ErrorKind::AlreadyExists => return Ok(None),
            Err(error) => return Err(Error::io("create", path, &error)),
        };
        if incarnation != NO_CHECKPOINTS {
            return Ok(Some(file));
        }
        file.lock().map_err(|error| Error::io("lock", path, &error))?;
        // Between the two steps another process may have taken it for a leftover.
        if path.exists() {
            return Ok(Some(file));
        }
    }
}

/// Whether a process writes the file, or has yet to publish it.
fn is_held(path: &Path) -> Result<bool> {
    let file = match File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(true),
        Err(error) => return Err(Error::io("open", path, &error)),
    };
    match file.try_lock() {
        Ok(()) => Ok(false),
        Err(TryLockError::WouldBlock) => Ok(true),
        Err(TryLockError::Error(error)) => Err(Error::io("lock", path, &error)),
    }
}

fn remove(path: &Path) -> Result<()> {
    match std::fs::remove_file(path) {
        Ok(()) => Ok(()),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
        Err(error) => Err(Error::io("remove", path, &error)),
    }
}

/// Makes a directory's names durable.
///
/// # Errors
/// If the disk refuses.
pub(super) fn sync_directory(path: &Path) -> Result<()> {
    let path = if path.as_os_str().is_empty() { Path::new(".") } else { path };
    File::open(path).and_then(|directory| directory.sync_all()).map_err(|error| Error::io("sync", path, &error))
}
