//! The `filesystem` connector: tables that are files.
//!
//! Read, a table is all files at its `path`, each a split whose position is a byte offset. With
//! `source.monitor-interval` it never ends: new files are found, and files that grow are read on; a last line is taken
//! when its line end is there. Written, rows go to files in `_staging`, which become visible under their final names
//! when their checkpoint commits:
//!
//! ```text
//! write            _staging/part-sink-0-0.csv.1           grows
//! prepare(7)       the same, synced; Committable { its name, part-sink-0-7-0.csv, length, hash }
//! commit           part-sink-0-7-0.csv                    linked, directory synced, staging name removed
//! ```
//!
//! Here `sink` is the table's name with the lineage of the job's checkpoint directory, so that jobs that write one table
//! never meet in a name.
//!
//! Without `source.monitor-interval` the table ends with its files. When a job that has come to that end is run again, it
//! goes on with new files and with what was appended to the old ones. A file that was cut, or had ended within a line that
//! has grown since, is an error: what was read of it has been counted.
//!
//! Formats of whole files (Parquet, Avro) are read block by block: a split's position is a block and a number of its rows.
//! Such a file does not grow; one that has changed since it was read is an error.
//!
//! A crash between any two steps leaves either the staging file or the final file with the same length and hash, so
//! committing again always finds out what is left to do.

mod constants;
mod listing;
mod local_file;
mod partition;
mod publish;
mod reader;
mod sink;
mod source;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use super::Connector;
use crate::catalog::{DeclaredOption, OptionKind, TableDefinition};
use crate::error::{Error, Result};

const fn option(
    name: &'static str,
    kind: OptionKind,
    default: Option<&'static str>,
    help: &'static str,
) -> DeclaredOption {
    DeclaredOption { name, kind, default, required: false, help }
}

/// Its line in the list.
pub(super) const CONNECTOR: Connector = Connector {
    name: "filesystem",
    options: &[
        DeclaredOption {
            name: "path",
            kind: OptionKind::Text,
            default: None,
            required: true,
            help: "A file, a directory (everything below it), or a pattern with *, ? and **.",
        },
        option("source.monitor-interval", OptionKind::Duration, None, "How often to look for new and grown files."),
        option("source.path.regex-pattern", OptionKind::Text, None, "What the whole path of a file must match."),
        option(
            "partition.default-name",
            OptionKind::Text,
            Some(partition::DEFAULT_NAME),
            "The directory name for a partition value that is NULL or empty.",
        ),
        option(
            "sink.rolling-policy.file-size",
            OptionKind::Size,
            Some("128 MB"),
            "The size at which a new file is begun before the checkpoint does.",
        ),
        option(
            "sink.rolling-policy.rollover-interval",
            OptionKind::Duration,
            None,
            "Taken for compatibility: every checkpoint ends its files.",
        ),
        option(
            "sink.rolling-policy.inactivity-interval",
            OptionKind::Duration,
            None,
            "Taken for compatibility: every checkpoint ends its files.",
        ),
        option(
            "sink.rolling-policy.check-interval",
            OptionKind::Duration,
            None,
            "Taken for compatibility: every checkpoint ends its files.",
        ),
    ],
    takes_format: true,
    source: Some(|context| Ok(Arc::new(source::FileSource::new(context)?))),
    sink: Some(|context| Ok(Arc::new(sink::FileSink::new(context)?))),
};

/// The table's path.
///
/// # Errors
/// If it has none.
fn path_of(table: &TableDefinition) -> Result<&str> {
    match table.options.get("path") {
        Some(path) if !path.is_empty() => Ok(path),
        _ => Err(Error::sql("connector 'filesystem' needs the option 'path'")),
    }
}
