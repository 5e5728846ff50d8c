//! What the formats of whole files share: files made of blocks, with a header or footer that says how to read them.
//!
//! A record format is fed bytes from anywhere. These are not: a Parquet file's schema stands at its end, and an Avro
//! file's at its beginning, so a reader gets the file itself, read at any place through [`FileBytes`], since only
//! connectors touch the disk.
//!
//! A file is shared out by ranges of bytes: a block belongs to the range that holds its first byte. A position within a
//! file is a block and a number of its rows, so that a restart goes on right after the last row delivered.

#[cfg(test)]
mod tests;

use std::ops::Range;
use std::sync::Arc;

use crate::catalog::Options;
use crate::changelog::ChangeBatch;
use crate::error::{Error, Result};
use crate::types::TimeZone;

use super::Wanted;

/// A file's bytes, read at any place.
pub(crate) trait FileBytes: Send + Sync {
    /// How many there are.
    fn length(&self) -> u64;

    /// Fills `to` with the bytes from `offset` on.
    ///
    /// # Errors
    /// If they cannot be read, or the file ends before.
    fn read_at(&self, offset: u64, to: &mut [u8]) -> std::io::Result<()>;
}

/// Reads `length` bytes, which the file must have: a damaged length never asks for more memory than the file is long.
///
/// # Errors
/// If the file ends before, or cannot be read.
pub(super) fn bytes_at(file: &dyn FileBytes, offset: u64, length: u64) -> std::io::Result<Vec<u8>> {
    let end = offset.checked_add(length).filter(|end| *end <= file.length());
    let (Some(_), Ok(length)) = (end, usize::try_from(length)) else {
        let message = format!("{length} bytes at offset {offset} are beyond the file's end at {}", file.length());
        return Err(std::io::Error::new(std::io::ErrorKind::UnexpectedEof, message));
    };
    let mut bytes = vec![0; length];
    file.read_at(offset, &mut bytes)?;
    Ok(bytes)
}

/// Which rows come next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct BlockPosition {
    /// The first block that begins here or after.
    pub offset: u64,
    /// How many of its rows have been delivered.
    pub rows: u64,
}

/// A file to be read.
pub(crate) struct FileToRead<'a> {
    /// The format's options of the table.
    pub options: &'a Options,
    /// The columns to deliver.
    pub wanted: Wanted,
    /// The file.
    pub bytes: Arc<dyn FileBytes>,
    /// Where the blocks to be read begin.
    pub range: Range<u64>,
    /// Where to go on.
    pub at: BlockPosition,
    /// The session's time zone, for timestamps whose meaning depends on it.
    pub zone: TimeZone,
}

/// Reads the blocks of one file.
pub(crate) trait BlockReader: Send {
    /// The next rows; `None` when all blocks of the range have been read.
    ///
    /// # Errors
    /// If the file is damaged, or does not fit the table: names the block.
    fn read(&mut self) -> Result<Option<ChangeBatch>>;

    /// Where to go on after what has been delivered.
    fn position(&self) -> BlockPosition;
}

/// A column of the file does not fit the table's column of this name.
pub(super) fn unfit(column: &str, in_file: &dyn std::fmt::Display, in_table: &dyn std::fmt::Display) -> Error {
    Error::data(format!("column '{column}' is {in_file} in the file, and {in_table} in the table"))
        .hint("declare the column with a type that holds the file's values, and CAST it in the query")
}

/// A column the file does not have, and that may not be NULL.
pub(super) fn missing(column: &str) -> Error {
    Error::data(format!("the file has no column '{column}', and the column is NOT NULL"))
        .hint("declare the column without NOT NULL: what a file does not have is read as NULL")
}

#[cfg(test)]
impl FileBytes for Vec<u8> {
    fn length(&self) -> u64 {
        self.len() as u64
    }

    fn read_at(&self, offset: u64, to: &mut [u8]) -> std::io::Result<()> {
        let from = offset as usize;
        match self.get(from..from.saturating_add(to.len())) {
            Some(bytes) => to.copy_from_slice(bytes),
            None => return Err(std::io::ErrorKind::UnexpectedEof.into()),
        }
        Ok(())
    }
}
