//! The `json` format: one object a line.
//!
//! `{"user":"Mary","url":"/a","n":1}` read for the columns `user` and `n`: the scanner walks the line once, checks it and
//! notes where the values of the two keys stand; then each value is appended to its column. What is not wanted is
//! checked but never converted.

mod decode;
mod encode;
mod options;
mod row;
mod scan;
#[cfg(test)]
mod tests;
mod value;

use super::{Format, FormatModes, MakeDecoder};
use crate::changelog::ChangelogMode;

pub(super) use decode::at_end;
pub(super) use encode::RowWriter;
pub(super) use options::{IGNORE_PARSE_ERRORS, JsonOptions, OPTIONS};
pub(super) use row::RowReader;
pub(super) use scan::{Scanner, unescape};

/// Its line in the list.
pub(super) const FORMAT: Format = Format {
    name: "json",
    options: OPTIONS,
    modes: FormatModes { reads: ChangelogMode::APPEND, writes: ChangelogMode::APPEND },
    decoder: MakeDecoder::OfRecords(decode::JsonReader::open),
    encoder: |options, _| encode::JsonEncoder::open(options),
};
