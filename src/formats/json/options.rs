//! The options of the JSON formats.

use crate::catalog::{DeclaredOption, OptionKind, Options};
use crate::error::{Error, Result};
use crate::formats::text::TimestampStyle;

/// What `json` can be told; the formats of changes take some of it.
pub(in crate::formats) const OPTIONS: &[DeclaredOption] = &[
    DeclaredOption {
        name: "fail-on-missing-field",
        kind: OptionKind::Boolean,
        default: Some("false"),
        required: false,
        help: "Whether a row without one of the read columns is an error; else the column is NULL.",
    },
    IGNORE_PARSE_ERRORS,
    DeclaredOption {
        name: "timestamp-format.standard",
        kind: OptionKind::Text,
        default: Some("SQL"),
        required: false,
        help: "How timestamps are written: SQL (2026-01-02 10:11:12.5) or ISO-8601 (2026-01-02T10:11:12.5).",
    },
    DeclaredOption {
        name: "map-null-key.mode",
        kind: OptionKind::Text,
        default: Some("FAIL"),
        required: false,
        help: "What becomes of a NULL key of a MAP that is written: FAIL, DROP, or LITERAL (see map-null-key.literal).",
    },
    DeclaredOption {
        name: "map-null-key.literal",
        kind: OptionKind::Text,
        default: Some("null"),
        required: false,
        help: "The key written for a NULL key in mode LITERAL.",
    },
    DeclaredOption {
        name: "encode.decimal-as-plain-number",
        kind: OptionKind::Boolean,
        default: Some("false"),
        required: false,
        help: "Whether decimals are written with all their digits (1.50, not 1.5; 0.0000000015, not 1.5E-9).",
    },
    DeclaredOption {
        name: "encode.ignore-null-fields",
        kind: OptionKind::Boolean,
        default: Some("false"),
        required: false,
        help: "Whether fields that are NULL are left out when written.",
    },
    DeclaredOption {
        name: "decode.json-parser.enabled",
        kind: OptionKind::Boolean,
        default: Some("true"),
        required: false,
        help: "Taken for compatibility; there is one parser.",
    },
];

/// Shared with CSV.
pub(in crate::formats) const IGNORE_PARSE_ERRORS: DeclaredOption = DeclaredOption {
    name: "ignore-parse-errors",
    kind: OptionKind::Boolean,
    default: Some("false"),
    required: false,
    help: "Whether a malformed field becomes NULL and a malformed row is skipped and counted; else they are errors.",
};

/// The options as read.
#[derive(Debug, Clone)]
pub(in crate::formats) struct JsonOptions {
    pub fail_on_missing_field: bool,
    pub ignore_parse_errors: bool,
    pub timestamps: TimestampStyle,
    pub null_key: NullKey,
    pub plain_decimals: bool,
    pub ignore_null_fields: bool,
}

/// What becomes of a NULL key of a map that is written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::formats) enum NullKey {
    Fail,
    Drop,
    Literal(String),
}

impl JsonOptions {
    /// Reads the options of `format` (names without the format's prefix).
    ///
    /// # Errors
    /// If a value is not one of those allowed, or two options exclude each other.
    pub(in crate::formats) fn read(format: &str, options: &Options) -> Result<JsonOptions> {
        let timestamps = match options.get("timestamp-format.standard").unwrap_or("SQL") {
            "SQL" => TimestampStyle::Sql,
            "ISO-8601" => TimestampStyle::Iso,
            other => {
                return Err(Error::sql(format!(
                    "'{other}' is not a valid value for '{format}.timestamp-format.standard'"
                ))
                .hint("expected SQL or ISO-8601"));
            }
        };
        let null_key = match options.get("map-null-key.mode").unwrap_or("FAIL") {
            mode if mode.eq_ignore_ascii_case("FAIL") => NullKey::Fail,
            mode if mode.eq_ignore_ascii_case("DROP") => NullKey::Drop,
            mode if mode.eq_ignore_ascii_case("LITERAL") => {
                NullKey::Literal(options.get("map-null-key.literal").unwrap_or("null").to_string())
            }
            other => {
                return Err(Error::sql(format!("'{other}' is not a valid value for '{format}.map-null-key.mode'"))
                    .hint("expected FAIL, DROP or LITERAL"));
            }
        };
        let read = JsonOptions {
            fail_on_missing_field: options.boolean("fail-on-missing-field", false)?,
            ignore_parse_errors: options.boolean("ignore-parse-errors", false)?,
            timestamps,
            null_key,
            plain_decimals: options.boolean("encode.decimal-as-plain-number", false)?,
            ignore_null_fields: options.boolean("encode.ignore-null-fields", false)?,
        };
        if read.fail_on_missing_field && read.ignore_parse_errors {
            return Err(Error::sql(format!(
                "'{format}.fail-on-missing-field' and '{format}.ignore-parse-errors' cannot both be true"
            )));
        }
        Ok(read)
    }
}
