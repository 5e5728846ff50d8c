//! The `avro` format: object container files.
//!
//! A file begins with its schema; then come blocks of rows, each with its number of rows and its length, compressed or
//! not, and a marker of 16 bytes between them. Rows are read as the file's own schema says, column by column of the
//! table: fields are found by name, what the table does not ask for is passed over, and what the file does not have is
//! NULL. A position is a block and a number of its rows; a reader that begins in the middle of a file looks for the
//! next marker.
//!
//! The decoder is our own, since it must append to the columns of a batch from any row of any block on, pass over what is
//! not wanted, and never believe a damaged length.
//!
//! Written, the schema is the one Flink derives from a table: a column that may be NULL is a union of null and its type,
//! `DECIMAL` is bytes, `TIMESTAMP(3)` counts milliseconds.

mod container;
mod cursor;
mod decode;
mod derive;
mod encode;
mod options;
mod read;
mod resolve;
mod schema;
#[cfg(test)]
mod tests;

use super::{Format, FormatModes, MakeDecoder};
use crate::changelog::ChangelogMode;

/// Its line in the list.
pub(super) const FORMAT: Format = Format {
    name: "avro",
    options: options::OPTIONS,
    modes: FormatModes { reads: ChangelogMode::APPEND, writes: ChangelogMode::APPEND },
    decoder: MakeDecoder::OfFiles(read::AvroReader::open),
    encoder: encode::AvroEncoder::open,
};
