//! The container around the rows: the header, and blocks with a marker after each.

use std::borrow::Cow;
use std::io::{Read, Write};

use super::cursor::{Cursor, EMPTY_ELEMENTS, Fault};
use super::schema::Schema;
use crate::error::{Error, Result};
use crate::formats::files::{FileBytes, bytes_at};
use crate::limits::{READ_BYTES, RECORD_BYTES};

/// What a file begins with.
pub(super) const MAGIC: &[u8; 4] = b"Obj\x01";

/// Bytes of the marker between blocks.
pub(super) const MARKER: usize = 16;

/// Bytes read at once of a header, which is mostly the schema.
const HEADER_BYTES: u64 = 64 << 10;

/// The longest header.
const LONGEST_HEADER: u64 = 16 << 20;

/// How blocks are compressed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Codec {
    Null,
    Deflate,
    Snappy,
    Zstandard,
}

impl Codec {
    pub(super) fn named(name: &[u8]) -> Option<Codec> {
        Some(match name {
            b"null" => Codec::Null,
            b"deflate" => Codec::Deflate,
            b"snappy" => Codec::Snappy,
            b"zstandard" => Codec::Zstandard,
            _ => return None,
        })
    }

    pub(super) fn name(self) -> &'static str {
        match self {
            Codec::Null => "null",
            Codec::Deflate => "deflate",
            Codec::Snappy => "snappy",
            Codec::Zstandard => "zstandard",
        }
    }

    /// # Errors
    /// If the codec fails, which it does not in memory.
    pub(super) fn compress(self, plain: &[u8]) -> Result<Cow<'_, [u8]>> {
        let failed = |error: &dyn std::fmt::Display| Error::bug(format!("a block cannot be compressed: {error}"));
        Ok(Cow::Owned(match self {
            Codec::Null => return Ok(Cow::Borrowed(plain)),
            Codec::Deflate => {
                let mut encoder = flate2::write::DeflateEncoder::new(Vec::new(), flate2::Compression::default());
                encoder.write_all(plain).and_then(|()| encoder.finish()).map_err(|error| failed(&error))?
            }
            Codec::Snappy => {
                let mut bytes = snap::raw::Encoder::new().compress_vec(plain).map_err(|error| failed(&error))?;
                bytes.extend_from_slice(&crc32fast::hash(plain).to_be_bytes());
                bytes
            }
            Codec::Zstandard => zstd::stream::encode_all(plain, 0).map_err(|error| failed(&error))?,
        }))
    }

    /// The plain bytes, which are not more than a record may have: a damaged block does not ask for any amount.
    fn decompress(self, bytes: Vec<u8>) -> Result<Vec<u8>, Fault> {
        match self {
            Codec::Null => Ok(bytes),
            Codec::Deflate => limited(flate2::read::DeflateDecoder::new(&bytes[..])),
            Codec::Zstandard => {
                limited(zstd::stream::read::Decoder::new(&bytes[..]).map_err(|error| error.to_string())?)
            }
            Codec::Snappy => {
                let (bytes, checksum) = bytes.split_last_chunk::<4>().ok_or("it is too short for its checksum")?;
                let length = snap::raw::decompress_len(bytes).map_err(|error| error.to_string())?;
                if length > RECORD_BYTES {
                    return Err(TOO_LARGE.into());
                }
                let plain = snap::raw::Decoder::new().decompress_vec(bytes).map_err(|error| error.to_string())?;
                if crc32fast::hash(&plain) != u32::from_be_bytes(*checksum) {
                    return Err("its checksum does not agree".into());
                }
                Ok(plain)
            }
        }
    }
}

const TOO_LARGE: &str = "it is too large when decompressed";

fn limited(reader: impl Read) -> Result<Vec<u8>, Fault> {
    let mut plain = Vec::new();
    reader.take(RECORD_BYTES as u64 + 1).read_to_end(&mut plain).map_err(|error| error.to_string())?;
    if plain.len() > RECORD_BYTES { Err(TOO_LARGE.into()) } else { Ok(plain) }
}

/// What stands before the blocks.
#[derive(Debug)]
pub(super) struct Header {
    pub schema: Schema,
    pub codec: Codec,
    pub marker: [u8; MARKER],
    /// Where the first block begins.
    pub length: u64,
}

impl Header {
    /// Reads the header of a file.
    ///
    /// # Errors
    /// If it is not one.
    pub(super) fn read(file: &dyn FileBytes) -> Result<Header> {
        let mut length = HEADER_BYTES;
        loop {
            let bytes = read(file, 0, length.min(file.length()))?;
            if !bytes.starts_with(MAGIC) {
                return Err(Error::data("it is no Avro file: it does not begin with 'Obj' and the byte 1"));
            }
            match header(&bytes) {
                Ok((pairs, marker, length)) => return Header::new(&pairs, marker, length),
                Err(_) if length < file.length() && length < LONGEST_HEADER => length *= 4,
                Err(fault) => return Err(Error::data(format!("the file's header is damaged: {fault}"))),
            }
        }
    }

    fn new(pairs: &[(&[u8], &[u8])], marker: [u8; MARKER], length: u64) -> Result<Header> {
        let get = |key: &[u8]| pairs.iter().find(|(name, _)| *name == key).map(|(_, value)| *value);
        let schema = get(b"avro.schema").ok_or_else(|| Error::data("the file's header has no schema"))?;
        let codec = get(b"avro.codec").unwrap_or(b"null");
        Ok(Header {
            schema: Schema::parse(schema)?,
            codec: Codec::named(codec).ok_or_else(|| {
                Error::data(format!("its blocks are compressed with '{}'", String::from_utf8_lossy(codec)))
                    .hint("write the file with the codec null, deflate, snappy or zstandard")
            })?,
            marker,
            length,
        })
    }
}

type Pairs<'a> = Vec<(&'a [u8], &'a [u8])>;

fn header(bytes: &[u8]) -> Result<(Pairs<'_>, [u8; MARKER], u64), Fault> {
    let mut cursor = Cursor::new(bytes);
    cursor.take(MAGIC.len())?;
    let mut pairs = Vec::new();
    loop {
        let (count, _) = cursor.part()?;
        if count == 0 {
            let marker = cursor.array()?;
            return Ok((pairs, marker, cursor.position() as u64));
        }
        for _ in 0..count {
            pairs.push((cursor.bytes()?, cursor.bytes()?));
        }
    }
}

/// A block's rows as bytes.
#[derive(Debug)]
pub(super) struct Block {
    pub rows: u64,
    pub bytes: Vec<u8>,
    /// Where the next one begins.
    pub end: u64,
}

impl Block {
    /// Reads the block that begins at `offset`.
    ///
    /// # Errors
    /// If there is no whole block.
    pub(super) fn read(file: &dyn FileBytes, header: &Header, offset: u64) -> Result<Block> {
        let fault = |fault: Fault| Error::data(fault.into_owned());
        // The two numbers take at most ten bytes each.
        let numbers = read(file, offset, file.length().saturating_sub(offset).min(20))?;
        let mut cursor = Cursor::new(&numbers);
        let (rows, size) = (cursor.long().map_err(fault)?, cursor.long().map_err(fault)?);
        let (Ok(rows), Ok(size)) = (u64::try_from(rows), u64::try_from(size)) else {
            return Err(Error::data(format!("it has {rows} rows and {size} bytes")));
        };
        let begin = offset + cursor.position() as u64;
        if size > RECORD_BYTES as u64 {
            return Err(Error::data(format!("it has {size} bytes, and may have {RECORD_BYTES}")));
        }
        let mut bytes = read(file, begin, size + MARKER as u64)?;
        if bytes[size as usize..] != header.marker {
            return Err(Error::data("the marker after it is not the file's"));
        }
        bytes.truncate(size as usize);
        let bytes = header.codec.decompress(bytes).map_err(fault)?;
        if rows > bytes.len() as u64 + EMPTY_ELEMENTS {
            return Err(Error::data(format!("{rows} rows do not fit its {} bytes", bytes.len())));
        }
        Ok(Block { rows, bytes, end: begin + size + MARKER as u64 })
    }
}

/// Where the first block begins that begins at `from` or after and before `to`; `None` if none does.
///
/// # Errors
/// If the file cannot be read.
pub(super) fn find_block(file: &dyn FileBytes, header: &Header, from: u64, to: u64) -> Result<Option<u64>> {
    if from <= header.length {
        return Ok((header.length < to && header.length < file.length()).then_some(header.length));
    }
    let finder = memchr::memmem::Finder::new(&header.marker);
    let mut at = from - MARKER as u64;
    while at + (MARKER as u64) < to.min(file.length()) {
        let piece = read(file, at, (READ_BYTES as u64).min(file.length() - at))?;
        if let Some(found) = finder.find(&piece) {
            let block = at + (found + MARKER) as u64;
            return Ok((block < to && block < file.length()).then_some(block));
        }
        // A marker may begin in the last bytes of the piece.
        at += (piece.len() - (MARKER - 1)) as u64;
    }
    Ok(None)
}

fn read(file: &dyn FileBytes, offset: u64, length: u64) -> Result<Vec<u8>> {
    bytes_at(file, offset, length).map_err(|error| Error::data(format!("it cannot be read to its end: {error}")))
}
