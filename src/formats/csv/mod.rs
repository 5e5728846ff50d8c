//! The `csv` format.
//!
//! `1,"a, b",2.5` becomes three fields: the splitter finds where each stands (and rewrites those with quotes or
//! escapes), then the wanted ones are appended to their columns. As in Flink there is no header unless
//! `csv.header` says so (ours), an empty field is the empty string, and NULL needs a `csv.null-literal`.

mod decode;
mod encode;
mod options;
mod split;
#[cfg(test)]
mod tests;

use super::{Format, FormatModes, MakeDecoder};
use crate::changelog::ChangelogMode;

/// Its line in the list.
pub(super) const FORMAT: Format = Format {
    name: "csv",
    options: options::OPTIONS,
    modes: FormatModes { reads: ChangelogMode::APPEND, writes: ChangelogMode::APPEND },
    decoder: MakeDecoder::OfRecords(decode::CsvDecoder::open),
    encoder: |options, _| encode::CsvEncoder::open(options),
};
