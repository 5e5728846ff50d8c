//! The few things a checkpoint store does to a disk, behind a trait, so that tests can lose what was not synced.

use std::any::Any;
use std::fs::{self, File};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::Path;

use crate::crash::crash_point;

/// Bytes of a file that are read at a time: they stay in the processor's cache.
const PIECE: usize = 128 << 10;

/// Crash points inside one write: half written, and written but not synced.
#[derive(Debug, Clone, Copy)]
pub struct WritePoints {
    /// Passed when half of the bytes are written.
    pub half: &'static str,
    /// Passed when all bytes are written and none is synced.
    pub unsynced: &'static str,
}

/// A disk. Contents are durable when [`Disk::write`] returns; names only after [`Disk::sync_directory`].
pub trait Disk: Send + Sync {
    /// Makes a directory and its parents, durably. One that exists is fine.
    ///
    /// # Errors
    /// If it cannot be made.
    fn create_directory(&self, path: &Path) -> io::Result<()>;

    /// Writes a new file (or replaces its contents) and syncs the contents. An error is final for this file.
    ///
    /// # Errors
    /// If it cannot be written or synced.
    fn write(&self, path: &Path, bytes: &[u8], points: WritePoints) -> io::Result<()>;

    /// Makes the names in a directory durable.
    ///
    /// # Errors
    /// If the directory cannot be synced.
    fn sync_directory(&self, path: &Path) -> io::Result<()>;

    /// Moves a file over another name.
    ///
    /// # Errors
    /// If it cannot be moved.
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()>;

    /// The whole contents.
    ///
    /// # Errors
    /// If it cannot be read.
    fn read(&self, path: &Path) -> io::Result<Vec<u8>>;

    /// The whole contents, piece by piece: for files that need not be held.
    ///
    /// # Errors
    /// If it cannot be read.
    fn read_pieces(&self, path: &Path, see: &mut dyn FnMut(&[u8])) -> io::Result<()> {
        see(&self.read(path)?);
        Ok(())
    }

    /// `length` bytes from `offset`.
    ///
    /// # Errors
    /// If it cannot be read, or ends before (`UnexpectedEof`).
    fn read_range(&self, path: &Path, offset: u64, length: u64) -> io::Result<Vec<u8>>;

    /// Names of the entries of a directory, in any order.
    ///
    /// # Errors
    /// If it cannot be read.
    fn list(&self, path: &Path) -> io::Result<Vec<String>>;

    /// Removes a file. One that is gone already is fine.
    ///
    /// # Errors
    /// If it cannot be removed.
    fn remove(&self, path: &Path) -> io::Result<()>;

    /// Takes the lock file `path` for this process; `None` if another one holds it. Held until the guard is dropped.
    ///
    /// # Errors
    /// If the file cannot be opened.
    fn lock(&self, path: &Path) -> io::Result<Option<Box<dyn Any + Send + Sync>>>;
}

/// The file system of this machine.
#[derive(Debug, Clone, Copy, Default)]
pub struct LocalDisk;

impl Disk for LocalDisk {
    fn create_directory(&self, path: &Path) -> io::Result<()> {
        if path.is_dir() {
            return Ok(());
        }
        if let Some(parent) = path.parent().filter(|parent| !parent.as_os_str().is_empty()) {
            self.create_directory(parent)?;
        }
        match fs::create_dir(path) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
            _ => {}
        }
        match path.parent().filter(|parent| !parent.as_os_str().is_empty()) {
            Some(parent) => self.sync_directory(parent),
            None => self.sync_directory(Path::new(".")),
        }
    }

    fn write(&self, path: &Path, bytes: &[u8], points: WritePoints) -> io::Result<()> {
        // Written and synced through one handle: a write-back error is reported to handles that were open at the time.
        let mut file = File::create(path)?;
        let (front, back) = bytes.split_at(bytes.len() / 2);
        file.write_all(front)?;
        crash_point(points.half);
        file.write_all(back)?;
        crash_point(points.unsynced);
        file.sync_all()
    }

    fn sync_directory(&self, path: &Path) -> io::Result<()> {
        File::open(path)?.sync_all()
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        fs::rename(from, to)
    }

    fn read(&self, path: &Path) -> io::Result<Vec<u8>> {
        fs::read(path)
    }

    fn read_pieces(&self, path: &Path, see: &mut dyn FnMut(&[u8])) -> io::Result<()> {
        let mut file = File::open(path)?;
        let mut piece = vec![0; PIECE];
        loop {
            match file.read(&mut piece) {
                Ok(0) => return Ok(()),
                Ok(length) => see(&piece[..length]),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }

    fn read_range(&self, path: &Path, offset: u64, length: u64) -> io::Result<Vec<u8>> {
        let mut file = File::open(path)?;
        let size = file.metadata()?.len();
        // Checked first, so that a damaged length asks for no memory.
        if offset.checked_add(length).is_none_or(|end| end > size) {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        file.seek(SeekFrom::Start(offset))?;
        let mut bytes = Vec::new();
        file.take(length).read_to_end(&mut bytes)?;
        if bytes.len() as u64 != length {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        Ok(bytes)
    }

    fn list(&self, path: &Path) -> io::Result<Vec<String>> {
        fs::read_dir(path)?.map(|entry| Ok(entry?.file_name().to_string_lossy().into_owned())).collect()
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        match fs::remove_file(path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        }
    }

    fn lock(&self, path: &Path) -> io::Result<Option<Box<dyn Any + Send + Sync>>> {
        let mut file = File::options().read(true).write(true).create(true).truncate(false).open(path)?;
        match file.try_lock() {
            Ok(()) => {}
            Err(fs::TryLockError::WouldBlock) => return Ok(None),
            Err(fs::TryLockError::Error(error)) => return Err(error),
        }
        file.set_len(0)?;
        writeln!(file, "{}", std::process::id())?;
        Ok(Some(Box::new(file)))
    }
}
