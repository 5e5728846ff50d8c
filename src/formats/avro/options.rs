//! The options of the Avro format.

use super::container::Codec;
use crate::catalog::{DeclaredOption, OptionKind, Options};
use crate::error::{Error, Result};

/// What `avro` can be told.
pub(super) const OPTIONS: &[DeclaredOption] = &[
    DeclaredOption {
        name: "codec",
        kind: OptionKind::Text,
        default: Some("snappy"),
        required: false,
        help: "How blocks are compressed when written: null, deflate, snappy or zstandard.",
    },
    DeclaredOption {
        name: "timestamp_mapping.legacy",
        kind: OptionKind::Boolean,
        default: Some("true"),
        required: false,
        help: "Whether TIMESTAMP is written as Avro's timestamp, like TIMESTAMP_LTZ; else as its local-timestamp.",
    },
    DeclaredOption {
        name: "encoding",
        kind: OptionKind::Text,
        default: Some("binary"),
        required: false,
        help: "The encoding of the rows: files hold binary ones.",
    },
];

/// The options as read.
#[derive(Debug, Clone, Copy)]
pub(super) struct AvroOptions {
    pub codec: Codec,
    pub legacy_timestamps: bool,
}

impl AvroOptions {
    /// Reads the options (names without `avro.`).
    ///
    /// # Errors
    /// If a value is not one of those allowed.
    pub(super) fn read(options: &Options) -> Result<AvroOptions> {
        let codec = options.get("codec").unwrap_or("snappy");
        let encoding = options.get("encoding").unwrap_or("binary");
        if encoding != "binary" {
            return Err(invalid("encoding", encoding, "binary: only messages can be JSON"));
        }
        Ok(AvroOptions {
            codec: Codec::named(codec.as_bytes())
                .ok_or_else(|| invalid("codec", codec, "null, deflate, snappy or zstandard"))?,
            legacy_timestamps: options.boolean("timestamp_mapping.legacy", true)?,
        })
    }
}

fn invalid(name: &str, text: &str, expected: &str) -> Error {
    Error::sql(format!("'{text}' is not a valid value for 'avro.{name}'")).hint(format!("expected {expected}"))
}
