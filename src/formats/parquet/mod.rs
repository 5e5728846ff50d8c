//! The `parquet` format: files of columns.
//!
//! A file is a sequence of row groups, each holding a part of every column, and ends with a footer that tells where
//! they are. Read, only the wanted columns are decoded; columns are found by name, and one that a file does not have is
//! NULL. A position is a row group and a number of its rows. Written, rows are gathered until `parquet.block.size` bytes
//! of them make a row group; a checkpoint ends the file, since a footer cannot be written twice.
//!
//! Types are laid down as Flink does it: `DECIMAL(p, s)` by its precision, `ARRAY`, `MAP` and `ROW` in the standard's
//! three-level form. Timestamps are written as 64-bit numbers (Flink's `parquet.write.int64.timestamp = true`); the
//! 96-bit ones that Flink and Hive write by default are read too. The number of a timestamp is never moved to another
//! time zone, but for 96-bit ones, which `parquet.utc-timezone` is about.

mod fit;
mod options;
mod read;
#[cfg(test)]
mod tests;
mod write;

use super::{Format, FormatModes, MakeDecoder};
use crate::changelog::ChangelogMode;

/// Its line in the list.
pub(super) const FORMAT: Format = Format {
    name: "parquet",
    options: options::OPTIONS,
    modes: FormatModes { reads: ChangelogMode::APPEND, writes: ChangelogMode::APPEND },
    decoder: MakeDecoder::OfFiles(read::ParquetReader::open),
    encoder: write::ParquetEncoder::open,
};
