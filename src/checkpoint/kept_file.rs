//! A small file that is replaced as a whole and held by one process: after a crash it has its old contents or its new
//! ones, never something between.

use std::any::Any;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::disk::{Disk, LocalDisk, WritePoints};
use crate::error::{Error, Result};

/// Where a test can make the process die while the file is written.
const HALF_WRITTEN: &str = "kept_file_half_written";
const UNSYNCED: &str = "kept_file_unsynced";

/// A file that this process holds.
pub struct KeptFile {
    disk: Arc<dyn Disk>,
    path: PathBuf,
    _lock: Box<dyn Any + Send + Sync>,
}

impl KeptFile {
    /// Takes the file at `path` for this process and gives its contents; `None` if there is no file yet.
    ///
    /// # Errors
    /// If another process holds it, its directory is missing, or it cannot be read.
    pub fn open(path: &Path) -> Result<(KeptFile, Option<Vec<u8>>)> {
        KeptFile::open_on(Arc::new(LocalDisk), path)
    }

    pub(super) fn open_on(disk: Arc<dyn Disk>, path: &Path) -> Result<(KeptFile, Option<Vec<u8>>)> {
        let beside = with_ending(path, ".lock");
        let lock = disk.lock(&beside).map_err(|error| Error::io("lock", &beside, &error))?.ok_or_else(|| {
            let holder = disk.read(&beside).ok().and_then(|bytes| String::from_utf8(bytes).ok()).unwrap_or_default();
            let holder = match holder.trim() {
                "" => "another process".to_owned(),
                pid => format!("process {pid}"),
            };
            Error::setup(format!("'{}' is in use by {holder}", path.display()))
                .hint("end that process first, or use another file")
        })?;
        let contents = match disk.read(path) {
            Ok(bytes) => Some(bytes),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => None,
            Err(error) => return Err(Error::io("read", path, &error)),
        };
        Ok((KeptFile { disk, path: path.to_owned(), _lock: lock }, contents))
    }

    /// Puts `contents` in the place of what is there. When this returns they are durable.
    ///
    /// # Errors
    /// If they cannot be written: then the old contents are still there, unless only the last step failed.
    pub fn replace(&self, contents: &[u8]) -> Result<()> {
        let temporary = with_ending(&self.path, ".new");
        let directory = match self.path.parent() {
            Some(parent) if !parent.as_os_str().is_empty() => parent,
            _ => Path::new("."),
        };
        self.disk
            .write(&temporary, contents, WritePoints { half: HALF_WRITTEN, unsynced: UNSYNCED })
            .and_then(|()| self.disk.rename(&temporary, &self.path))
            .and_then(|()| self.disk.sync_directory(directory))
            .map_err(|error| Error::io("write", &self.path, &error))
    }
}

fn with_ending(path: &Path, ending: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(ending);
    name.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_process_at_a_time_and_contents_that_stay() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("names.sql");
        let (file, contents) = KeptFile::open(&path).unwrap();
        assert_eq!(contents, None);
        file.replace(b"one").unwrap();
        file.replace(b"two").unwrap();
        let error = KeptFile::open(&path).err().unwrap();
        assert!(error.message().contains("names.sql' is in use by process "), "{error}");
        drop(file);
        let (_file, contents) = KeptFile::open(&path).unwrap();
        assert_eq!(contents.as_deref(), Some(&b"two"[..]));
        assert!(KeptFile::open(&folder.path().join("missing/names.sql")).is_err());
    }
}
