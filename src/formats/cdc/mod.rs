//! The formats of changes: `debezium-json`, `canal-json`, `maxwell-json` and `ogg-json`, a message of changes a line.
//!
//! Each is the way one tool writes down what happened to a database. They differ in where the row before and the row
//! after a change stand, and are alike in all else. Canal's
//! `{"data":[{"id":"1","qty":"7"}],"old":[{"qty":"10"}],"type":"UPDATE"}` tells of row 1, whose `qty` was 10: its
//! [`Dialect`] says "the row before is `data[0]` with `old[0]` over it, the row after is `data[0]`", and what is shared
//! (`decode`) checks both and appends them as `-U` and `+U`.
//!
//! All of a message is checked before anything of it is appended, so a damaged one leaves nothing behind. An empty line
//! stands for a tombstone and is passed over. Written are inserts and deletes only: an update is a delete and an insert.

mod canal;
mod debezium;
mod decode;
mod encode;
mod maxwell;
mod message;
mod ogg;
#[cfg(test)]
mod tests;

use super::FormatModes;
use super::json::OPTIONS as JSON_OPTIONS;
use crate::catalog::DeclaredOption;
use crate::changelog::ChangelogMode;

pub(super) use canal::FORMAT as CANAL;
pub(super) use debezium::FORMAT as DEBEZIUM;
pub(super) use maxwell::FORMAT as MAXWELL;
pub(super) use ogg::FORMAT as OGG;

/// All changes come whole, with the row before an update.
const MODES: FormatModes = FormatModes { reads: ChangelogMode::RETRACT, writes: ChangelogMode::RETRACT };

/// The options all four have: those of `json` but for `fail-on-missing-field`, since a part of a row is no fault here.
const SHARED_OPTIONS: &[DeclaredOption] =
    &[JSON_OPTIONS[1], JSON_OPTIONS[2], JSON_OPTIONS[3], JSON_OPTIONS[4], JSON_OPTIONS[5], JSON_OPTIONS[6]];
