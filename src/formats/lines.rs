//! What all line formats share: where lines end, how many there were, when a batch is full; and the loop over lines.

use super::Decoder;
use crate::changelog::ChangeBatch;
use crate::error::Result;
use crate::limits::{BATCH_BYTES, BATCH_ROWS};

/// The byte order mark some editors put before UTF-8.
const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// A decoder's place in its split and its counters.
#[derive(Debug, Default)]
pub(super) struct Lines {
    count: u64,
    skipped: u64,
    /// Bytes that went into the rows waiting.
    pending_bytes: usize,
}

impl Lines {
    /// Where in `bytes` the first record begins: after a byte order mark if this is the beginning of a file.
    pub(super) fn start(&self, bytes: &[u8]) -> usize {
        if self.count == 0 && bytes.starts_with(BYTE_ORDER_MARK) { BYTE_ORDER_MARK.len() } else { 0 }
    }

    /// The line that begins at `at`, without its end, and where the next begins. `None` if it is not whole.
    #[inline]
    pub(super) fn next(bytes: &[u8], at: usize, end: bool) -> Option<(&[u8], usize)> {
        let rest = &bytes[at..];
        let (line, next) = match memchr::memchr(b'\n', rest) {
            Some(length) => (&rest[..length], at + length + 1),
            None if end && !rest.is_empty() => (rest, bytes.len()),
            None => return None,
        };
        Some((line.strip_suffix(b"\r").unwrap_or(line), next))
    }

    /// Whether `rows` rows made of `bytes` more bytes are as much as one batch should hold.
    #[inline]
    pub(super) fn full(&self, rows: usize, bytes: usize) -> bool {
        rows >= BATCH_ROWS || self.pending_bytes + bytes >= BATCH_BYTES
    }

    /// `count` lines have been passed.
    #[inline]
    pub(super) fn passed(&mut self, count: u64) {
        self.count += count;
    }

    /// A record was malformed.
    pub(super) fn skip(&mut self) {
        self.skipped += 1;
    }

    /// A call used `bytes` bytes.
    pub(super) fn consumed(&mut self, bytes: usize) {
        self.pending_bytes += bytes;
    }

    /// The waiting rows have gone.
    pub(super) fn flushed(&mut self) {
        self.pending_bytes = 0;
    }

    pub(super) fn set(&mut self, line: u64) {
        self.count = line;
    }

    pub(super) fn count(&self) -> u64 {
        self.count
    }

    pub(super) fn skipped(&self) -> u64 {
        self.skipped
    }
}

/// What a format does with a line: all that differs between the formats whose records are lines.
pub(super) trait LineReader: Send {
    /// Reads one line without its end into rows. `lines` knows the number of lines before it and counts what is skipped.
    ///
    /// # Errors
    /// On a malformed line that may not be skipped.
    fn line(&mut self, line: &[u8], lines: &mut Lines) -> Result<()>;

    /// Rows waiting.
    fn rows(&self) -> usize;

    /// Takes the rows.
    ///
    /// # Errors
    /// If columns cannot be built.
    fn take(&mut self) -> Result<ChangeBatch>;
}

/// The decoder of a format whose records are lines.
pub(super) struct LineDecoder<R> {
    reader: R,
    lines: Lines,
}

impl<R> LineDecoder<R> {
    pub(super) fn new(reader: R) -> LineDecoder<R> {
        LineDecoder { reader, lines: Lines::default() }
    }
}

impl<R: LineReader> Decoder for LineDecoder<R> {
    fn decode(&mut self, bytes: &[u8], end: bool) -> Result<usize> {
        let mut at = self.lines.start(bytes);
        while !self.lines.full(self.reader.rows(), at)
            && let Some((line, next)) = Lines::next(bytes, at, end)
        {
            self.reader.line(line, &mut self.lines)?;
            self.lines.passed(1);
            at = next;
        }
        self.lines.consumed(at);
        Ok(at)
    }

    fn pending_rows(&self) -> usize {
        self.reader.rows()
    }

    fn flush(&mut self) -> Result<ChangeBatch> {
        self.lines.flushed();
        self.reader.take()
    }

    fn set_line(&mut self, line: u64) {
        self.lines.set(line);
    }

    fn line(&self) -> u64 {
        self.lines.count()
    }

    fn skipped(&self) -> u64 {
        self.lines.skipped()
    }
}
