//! A file of the local disk, read at any place.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;

use crate::error::{Error, Result};
use crate::formats::FileBytes;

/// An open file of a length that is not expected to change.
pub(super) struct LocalFile {
    file: File,
    length: u64,
}

impl LocalFile {
    /// Opens the file at `path`, of which `length` bytes count.
    ///
    /// # Errors
    /// If it cannot be opened.
    pub(super) fn open(path: &Path, length: u64) -> Result<LocalFile> {
        let file = File::open(path).map_err(|error| Error::io("read", path, &error))?;
        Ok(LocalFile { file, length })
    }
}

impl FileBytes for LocalFile {
    fn length(&self) -> u64 {
        self.length
    }

    fn read_at(&self, offset: u64, to: &mut [u8]) -> std::io::Result<()> {
        self.file.read_exact_at(to, offset)
    }
}
