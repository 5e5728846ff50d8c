//! One subtask's reading: splits one after another, a piece of a file at a time, each piece decoded into one batch.
//!
//! Everything a call of `next` decodes it also delivers, and it waits only while no row is pending: so a dropped future
//! loses nothing, and the positions always stand right after the last row delivered. Files are read synchronously
//! within the future; local disks answer faster than a task switch is worth.

use std::collections::HashSet;
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use arrow::datatypes::SchemaRef;
use futures::FutureExt;
use futures::future::BoxFuture;
use tokio::time::Instant;

use super::constants::Constants;
use super::local_file::LocalFile;
use super::source::{ReadPlan, owner};
use crate::changelog::ChangeBatch;
use crate::connectors::{Progress, SourceEvent, SourceReader, SplitPosition};
use crate::error::{Error, Result};
use crate::formats::{BlockPosition, BlockReader, Decoder};
use crate::limits::{READ_BYTES, RECORD_BYTES};

/// Bytes read beyond a range's end at once.
const BEYOND_RANGE: u64 = 16 << 10;

/// A file, or a range of one, and how far it has been read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Split {
    pub path: String,
    /// Where the range begins; a record belongs to the range that holds its first byte.
    pub start: u64,
    /// Where the range ends, if not with the file.
    end: Option<u64>,
    /// Everything before has been delivered. At `start > 0` the rest of the record before is still to be passed over.
    offset: u64,
    /// Lines before `offset`, counted from `start`; in a file of blocks, rows of the block at `offset` that have been
    /// delivered.
    line: u64,
    /// The file's size when it was last looked at.
    pub size: u64,
    /// Nothing comes any more.
    done: bool,
    /// A former run took the file's end for the end of its last record.
    reopened: bool,
}

impl Split {
    pub(super) fn whole(path: &str, size: u64) -> Split {
        Split { path: path.to_string(), start: 0, end: None, offset: 0, line: 0, size, done: false, reopened: false }
    }

    pub(super) fn range(path: &str, start: u64, end: Option<u64>, size: u64) -> Split {
        Split { start, end, offset: start, ..Split::whole(path, size) }
    }

    /// `path`, or `path#start` for a later range of a file.
    fn name(&self) -> String {
        if self.start == 0 { self.path.clone() } else { format!("{}#{}", self.path, self.start) }
    }

    fn position(&self) -> SplitPosition {
        let position = serde_json::json!({
            "path": self.path,
            "start": self.start,
            "end": self.end,
            "offset": self.offset,
            "line": self.line,
            "size": self.size,
            "done": self.done,
            "reopened": self.reopened,
        });
        SplitPosition { split: self.name(), position }
    }

    /// # Errors
    /// If the position is not one this connector has written.
    pub(super) fn restore(saved: &SplitPosition) -> Result<Split> {
        let damaged = || Error::state(format!("the checkpoint's position of split '{}' cannot be read", saved.split));
        let number = |key: &str| saved.position[key].as_u64().ok_or_else(damaged);
        Ok(Split {
            path: saved.position["path"].as_str().ok_or_else(damaged)?.to_string(),
            start: number("start")?,
            end: saved.position["end"].as_u64(),
            offset: number("offset")?,
            line: number("line")?,
            size: number("size")?,
            done: saved.position["done"].as_bool().ok_or_else(damaged)?,
            reopened: saved.position["reopened"].as_bool().unwrap_or(false),
        })
    }
}

impl Split {
    /// A former run has read the split to its end; the file has `size` bytes now, or is gone. If it is not what it was,
    /// or is `watched` from now on, the split is to be read on, or refused when it is opened. True if there is something
    /// to be read.
    pub(super) fn reopen(&mut self, size: Option<u64>, watched: bool) -> bool {
        if self.done && self.end.is_none() && (watched || size.is_some_and(|size| size != self.offset)) {
            self.done = false;
            self.reopened = true;
        }
        !self.done
    }

    /// A former run has read the file to its end, which may have been in the middle of a line. Then a line end may have
    /// come since, and is passed over; anything else may belong to a record that has been counted already.
    ///
    /// # Errors
    /// If something else has come.
    fn pass_over_line_end(&mut self) -> Result<()> {
        let path = Path::new(&self.path);
        let mut around = Vec::new();
        File::open(path)
            .and_then(|mut file| {
                file.seek(SeekFrom::Start(self.offset - 1))?;
                file.take(3).read_to_end(&mut around)
            })
            .map_err(|error| Error::io("read", path, &error))?;
        match around.as_slice() {
            [b'\n', ..] | [_] | [] => {}
            [_, b'\n', ..] => self.offset += 1,
            [_, b'\r', b'\n'] => self.offset += 2,
            _ => {
                let place = format!("file '{}', line {}", self.path, self.line);
                let what = "the file ended within this line when it was read as a row, and the line has grown since";
                return Err(Error::data(format!("{place}: {what}"))
                    .hint("write whole lines before a job over bounded input ends, or start anew with --fresh"));
            }
        }
        Ok(())
    }
}

/// Reads the splits of one subtask.
pub(super) struct FileReader {
    plan: Arc<ReadPlan>,
    projection: Vec<usize>,
    schema: SchemaRef,
    splits: Vec<Split>,
    /// Paths of all files known, also those of other subtasks: they are not new when they are found again.
    known: HashSet<String>,
    /// The split that is read, or will be next.
    current: usize,
    open: Option<Open>,
    /// Of a format of records.
    decoder: Option<Box<dyn Decoder>>,
    monitor_interval: Option<Duration>,
    /// Which subtask this is, of how many.
    place: (usize, usize),
    /// Whether the last answer was `Idle`.
    idle: bool,
    /// When to look for new and grown files next. Kept here so that dropping the future does not start the wait anew.
    next_look: Option<Instant>,
    bytes: u64,
}

/// A file being read.
enum Open {
    Records(OpenRecords),
    Blocks(OpenBlocks),
}

/// A file of blocks being read.
struct OpenBlocks {
    blocks: Box<dyn BlockReader>,
    constants: Constants,
}

/// A file of records being read.
struct OpenRecords {
    file: File,
    buffer: Vec<u8>,
    /// What of the buffer is waiting to be decoded.
    from: usize,
    to: usize,
    /// The file has no more bytes at present, or the range's last record is in the buffer.
    ended: bool,
    constants: Constants,
}

impl FileReader {
    pub(super) fn new(
        plan: Arc<ReadPlan>,
        projection: Vec<usize>,
        splits: Vec<Split>,
        monitor_interval: Option<Duration>,
        place: (usize, usize),
    ) -> Result<FileReader> {
        Ok(FileReader {
            schema: Arc::new(plan.scan_schema.project(&projection)?),
            decoder: plan.decoder(&projection)?,
            known: splits.iter().map(|split| split.path.clone()).collect(),
            plan,
            projection,
            splits,
            current: 0,
            open: None,
            monitor_interval,
            place,
            idle: false,
            next_look: None,
            bytes: 0,
        })
    }

    async fn read(&mut self) -> Result<SourceEvent> {
        loop {
            if let Some(batch) = self.read_splits().await? {
                self.idle = false;
                return Ok(SourceEvent::Changes(batch));
            }
            let Some(interval) = self.monitor_interval else { return Ok(SourceEvent::End) };
            if !self.idle {
                self.idle = true;
                return Ok(SourceEvent::Idle);
            }
            let at = *self.next_look.get_or_insert_with(|| Instant::now() + interval);
            tokio::time::sleep_until(at).await;
            self.next_look = None;
            self.look()?;
        }
    }

    /// The next rows of this and the following splits; `None` when all have been read as far as they go.
    async fn read_splits(&mut self) -> Result<Option<ChangeBatch>> {
        while self.current < self.splits.len() {
            if self.splits[self.current].done || (self.open.is_none() && !self.open_current()?) {
                self.current += 1;
                continue;
            }
            let batch = match &self.open {
                Some(Open::Records(_)) => self.decode()?,
                Some(Open::Blocks(_)) => self.read_block()?,
                None => None,
            };
            if batch.is_some() {
                return Ok(batch);
            }
            match &self.open {
                None => {}
                Some(Open::Records(open)) if !open.ended => {
                    self.fill()?;
                    tokio::task::yield_now().await;
                }
                Some(_) => self.leave(),
            }
        }
        Ok(None)
    }

    /// Looks for new files and begins again with the first split.
    fn look(&mut self) -> Result<()> {
        for file in self.plan.listing.files()? {
            if self.known.insert(file.path.clone()) {
                let (subtask, parallelism) = self.place;
                let split = Split::whole(&file.path, file.size);
                if owner(&split, &self.plan, parallelism) == subtask {
                    self.splits.push(split);
                }
            }
        }
        self.current = 0;
        Ok(())
    }

    /// Opens the current split where it was left. False if there is nothing to read at present.
    fn open_current(&mut self) -> Result<bool> {
        let split = &mut self.splits[self.current];
        let path = Path::new(&split.path);
        let metadata = match std::fs::metadata(path) {
            Ok(metadata) => metadata,
            // Whoever tidies up may take away what has been read to its end.
            Err(error) if error.kind() == std::io::ErrorKind::NotFound && split.offset >= split.size => {
                return Ok(false);
            }
            Err(error) => return Err(Error::io("read", path, &error)),
        };
        if self.decoder.is_none() {
            return self.open_blocks(&metadata);
        }
        if metadata.len() < split.offset {
            return Err(Error::data(format!(
                "file '{}' has {} bytes, but {} of it have been read: it was cut or replaced",
                split.path,
                metadata.len(),
                split.offset
            ))
            .hint("files of a table may only grow; write new rows to a new file"));
        }
        if self.monitor_interval.is_some() && metadata.len() == split.offset {
            split.size = metadata.len();
            return Ok(false);
        }
        split.size = metadata.len();
        if std::mem::take(&mut split.reopened) && split.offset > 0 {
            split.pass_over_line_end()?;
        }
        let path = Path::new(&split.path);
        let mut file = File::open(path).map_err(|error| Error::io("read", path, &error))?;
        // One byte before the range: if it is a line end, the range's first record begins at its first byte.
        let pass_over = split.start > 0 && split.offset == split.start;
        let from = if pass_over { split.offset - 1 } else { split.offset };
        file.seek(SeekFrom::Start(from)).map_err(|error| Error::io("read", path, &error))?;
        let constants = Constants::new(&self.plan, &self.projection, &self.schema, &split.path, &metadata)?;
        // A later range has no header and no byte order mark: its lines count from 1.
        let split = &self.splits[self.current];
        if let Some(decoder) = &mut self.decoder {
            decoder.set_line(if split.start > 0 { split.line.max(1) } else { split.line });
        }
        self.open =
            Some(Open::Records(OpenRecords { file, buffer: Vec::new(), from: 0, to: 0, ended: false, constants }));
        if pass_over {
            self.pass_over_first_record()?;
        }
        Ok(true)
    }

    /// Opens the current split, a file of blocks, where it was left. False if there is nothing to read at present.
    fn open_blocks(&mut self, metadata: &std::fs::Metadata) -> Result<bool> {
        let split = &mut self.splits[self.current];
        let begun = split.offset > split.start || split.line > 0;
        if begun && metadata.len() != split.size {
            return Err(Error::data(format!(
                "file '{}' has {} bytes, and had {} when it was read: it was replaced",
                split.path,
                metadata.len(),
                split.size
            ))
            .hint("files of this format are whole; write new rows to a new file"));
        }
        if begun && split.end.is_none() && split.offset == split.size {
            split.done = self.monitor_interval.is_none();
            return Ok(false);
        }
        split.size = metadata.len();
        let range = split.start..split.end.unwrap_or(split.size);
        let at = BlockPosition { offset: split.offset, rows: split.line };
        let in_file = |error: Error| error.context(format!("file '{}'", split.path));
        let bytes = LocalFile::open(Path::new(&split.path), split.size)?;
        let blocks = self.plan.blocks(&self.projection, Arc::new(bytes), range, at).map_err(in_file)?;
        let constants = Constants::new(&self.plan, &self.projection, &self.schema, &split.path, metadata)?;
        self.open = Some(Open::Blocks(OpenBlocks { blocks, constants }));
        Ok(true)
    }

    /// The next rows of an open file of blocks; `None` at the end of its range.
    fn read_block(&mut self) -> Result<Option<ChangeBatch>> {
        let Some(Open::Blocks(open)) = &mut self.open else { return Ok(None) };
        let split = &mut self.splits[self.current];
        let batch = open.blocks.read().map_err(|error| error.context(format!("file '{}'", split.path)))?;
        let position = open.blocks.position();
        self.bytes += position.offset.saturating_sub(split.offset);
        (split.offset, split.line) = (position.offset, position.rows);
        match batch {
            Some(batch) => open.constants.assemble(batch).map(Some),
            None => {
                split.offset = split.end.unwrap_or(split.size);
                split.line = 0;
                split.done = split.end.is_some();
                Ok(None)
            }
        }
    }

    /// Passes over the rest of the record that began before the range.
    fn pass_over_first_record(&mut self) -> Result<()> {
        loop {
            self.fill()?;
            let Some(Open::Records(open)) = &mut self.open else { return Ok(()) };
            let split = &mut self.splits[self.current];
            if let Some(length) = memchr::memchr(b'\n', &open.buffer[open.from..open.to]) {
                open.from += length + 1;
                split.offset += length as u64;
                break;
            }
            split.offset += (open.to - open.from) as u64;
            open.from = open.to;
            if open.ended {
                break;
            }
        }
        self.check_range_end();
        Ok(())
    }

    /// A range ends with the first record that begins at or after its end.
    fn check_range_end(&mut self) {
        let split = &mut self.splits[self.current];
        if split.end.is_some_and(|end| split.offset >= end) {
            split.done = true;
            self.open = None;
        }
    }

    /// Reads one more piece of the open file.
    fn fill(&mut self) -> Result<()> {
        let Some(Open::Records(open)) = &mut self.open else { return Ok(()) };
        let split = &self.splits[self.current];
        open.buffer.copy_within(open.from..open.to, 0);
        open.to -= open.from;
        open.from = 0;
        if open.to > RECORD_BYTES {
            return Err(Error::data(format!(
                "file '{}', line {}: a record is longer than {RECORD_BYTES} bytes",
                split.path,
                split.line + 1
            )));
        }
        // Twice what is waiting, so that a long record is not looked at again for every piece.
        let mut wanted = READ_BYTES.max(open.to);
        if let Some(end) = split.end {
            // Not much more than the record that crosses the range's end: the next range reads it anyway.
            let left = end.saturating_sub(split.offset + open.to as u64) + BEYOND_RANGE;
            wanted = wanted.min(usize::try_from(left).unwrap_or(wanted));
        }
        open.buffer.resize(open.to + wanted, 0);
        loop {
            match open.file.read(&mut open.buffer[open.to..]) {
                Ok(length) => {
                    open.to += length;
                    self.bytes += length as u64;
                    open.ended = length == 0;
                    return Ok(());
                }
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                Err(error) => return Err(Error::io("read", Path::new(&split.path), &error)),
            }
        }
    }

    /// Decodes what is in the buffer. `None` if there is no whole record.
    fn decode(&mut self) -> Result<Option<ChangeBatch>> {
        let (Some(Open::Records(open)), Some(decoder)) = (&mut self.open, &mut self.decoder) else { return Ok(None) };
        let split = &mut self.splits[self.current];
        let end = open.ended && self.monitor_interval.is_none();
        let mut piece = &open.buffer[open.from..open.to];
        if let Some(range_end) = split.end {
            // Whole records that begin before the range's end: up to the line end at or after its last byte.
            let last = usize::try_from(range_end - 1 - split.offset).unwrap_or(usize::MAX);
            if last < piece.len()
                && let Some(length) = memchr::memchr(b'\n', &piece[last..])
            {
                piece = &piece[..last + length + 1];
            }
        }
        let used = match decoder.decode(piece, end) {
            Ok(used) => used,
            Err(error) => {
                let error = if split.start > 0 {
                    in_file(&self.plan, &self.projection, split, (piece, end), error)?
                } else {
                    error
                };
                return Err(error.context(format!("file '{}'", split.path)));
            }
        };
        open.from += used;
        split.offset += used as u64;
        split.line = decoder.line();
        let batch = match decoder.pending_rows() {
            0 => None,
            _ => Some(open.constants.assemble(decoder.flush()?)?),
        };
        self.check_range_end();
        Ok(batch)
    }

    /// The current file has no more bytes at present.
    fn leave(&mut self) {
        let split = &mut self.splits[self.current];
        split.done |= self.monitor_interval.is_none();
        split.size = split.size.max(split.offset);
        self.open = None;
        self.current += 1;
    }
}

/// The error of a later range with the line it has in the whole file: what comes before is only now counted.
///
/// # Errors
/// If the file cannot be read again.
fn in_file(
    plan: &ReadPlan,
    projection: &[usize],
    split: &Split,
    (piece, end): (&[u8], bool),
    error: Error,
) -> Result<Error> {
    let path = Path::new(&split.path);
    let failed = |error: std::io::Error| Error::io("read", path, &error);
    let mut before = File::open(path).map_err(failed)?.take(split.offset);
    let mut buffer = vec![0; READ_BYTES];
    let mut lines = 0;
    loop {
        match before.read(&mut buffer) {
            Ok(0) => break,
            Ok(length) => lines += memchr::memchr_iter(b'\n', &buffer[..length]).count() as u64,
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
            Err(error) => return Err(failed(error)),
        }
    }
    let Some(mut decoder) = plan.decoder(projection)? else { return Ok(error) };
    decoder.set_line(lines);
    Ok(decoder.decode(piece, end).err().unwrap_or(error))
}

impl SourceReader for FileReader {
    fn next(&mut self) -> BoxFuture<'_, Result<SourceEvent>> {
        self.read().boxed()
    }

    fn positions(&self) -> Vec<SplitPosition> {
        self.splits.iter().map(Split::position).collect()
    }

    fn progress(&self) -> Progress {
        let total = self.splits.iter().map(|split| match split.end {
            Some(end) => end - split.start,
            None => split.size.saturating_sub(split.start),
        });
        Progress {
            bytes: self.bytes,
            total_bytes: self.monitor_interval.is_none().then(|| total.sum()),
            skipped_rows: self.decoder.as_ref().map_or(0, |decoder| decoder.skipped()),
        }
    }
}
