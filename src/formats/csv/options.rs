//! The options of the CSV format.

use crate::catalog::{DeclaredOption, OptionKind, Options};
use crate::error::{Error, Result};
use crate::formats::json::IGNORE_PARSE_ERRORS;

const fn text(name: &'static str, default: Option<&'static str>, help: &'static str) -> DeclaredOption {
    DeclaredOption { name, kind: OptionKind::Text, default, required: false, help }
}

const fn switch(name: &'static str, default: &'static str, help: &'static str) -> DeclaredOption {
    DeclaredOption { name, kind: OptionKind::Boolean, default: Some(default), required: false, help }
}

/// What `csv` can be told.
pub(super) const OPTIONS: &[DeclaredOption] = &[
    text("field-delimiter", Some(","), "The character between fields; \\t and \\u0001 are understood."),
    text("quote-character", Some("\""), "The character around a field that holds a delimiter or a line end."),
    switch("disable-quote-character", "false", "Whether no character quotes."),
    switch("allow-comments", "false", "Whether lines that begin with # are passed over."),
    IGNORE_PARSE_ERRORS,
    text("array-element-delimiter", Some(";"), "The text between the elements of an ARRAY or ROW."),
    text("escape-character", None, "The character that takes the meaning from the one after it."),
    text("null-literal", None, "The text that stands for NULL; without it no text does."),
    switch("ignore-trailing-unmappable", "false", "Whether fields beyond the last column are passed over."),
    switch("allow-trailing-comma", "true", "Whether one empty field beyond the last column is passed over."),
    switch("write-bigdecimal-in-scientific-notation", "true", "Whether decimals may be written as 1.2E+2."),
    switch("header", "false", "Whether the first line of each file holds names and is passed over."),
];

/// The options as read.
#[derive(Debug, Clone)]
pub(super) struct CsvOptions {
    pub delimiter: u8,
    pub quote: Option<u8>,
    pub escape: Option<u8>,
    pub comments: bool,
    pub ignore_parse_errors: bool,
    pub element_delimiter: Vec<u8>,
    pub null_literal: Option<Vec<u8>>,
    pub ignore_trailing: bool,
    pub trailing_comma: bool,
    pub scientific: bool,
    pub header: bool,
}

impl CsvOptions {
    /// Reads the options (names without `csv.`).
    ///
    /// # Errors
    /// If a value is not allowed, or two options exclude each other.
    pub(super) fn read(options: &Options) -> Result<CsvOptions> {
        let no_quotes = options.boolean("disable-quote-character", false)?;
        if no_quotes && options.get("quote-character").is_some() {
            return Err(Error::sql("'csv.quote-character' and 'csv.disable-quote-character' exclude each other"));
        }
        let quote = character(options, "quote-character")?.unwrap_or(b'"');
        let delimiter = character(options, "field-delimiter")?.unwrap_or(b',');
        let read = CsvOptions {
            delimiter,
            quote: (!no_quotes).then_some(quote),
            escape: character(options, "escape-character")?,
            comments: options.boolean("allow-comments", false)?,
            ignore_parse_errors: options.boolean("ignore-parse-errors", false)?,
            element_delimiter: options.get("array-element-delimiter").unwrap_or(";").as_bytes().to_vec(),
            null_literal: options.get("null-literal").map(|literal| literal.as_bytes().to_vec()),
            ignore_trailing: options.boolean("ignore-trailing-unmappable", false)?,
            trailing_comma: options.boolean("allow-trailing-comma", true)?,
            scientific: options.boolean("write-bigdecimal-in-scientific-notation", true)?,
            header: options.boolean("header", false)?,
        };
        if read.element_delimiter.is_empty() {
            return Err(Error::sql("'csv.array-element-delimiter' must not be empty"));
        }
        if read.quote == Some(read.delimiter) || read.escape == Some(read.delimiter) {
            return Err(Error::sql("'csv.field-delimiter' must differ from the quote and escape characters"));
        }
        Ok(read)
    }
}

/// One character of ASCII, or an escape that stands for one: `\t`, `\u0001`.
fn character(options: &Options, name: &str) -> Result<Option<u8>> {
    let Some(given) = options.get(name) else { return Ok(None) };
    let one = match given {
        "\\t" => Some(b'\t'),
        "\\\\" => Some(b'\\'),
        _ if given.len() == 6 && given.starts_with("\\u") => u8::from_str_radix(&given[2..], 16).ok(),
        _ if given.len() == 1 => Some(given.as_bytes()[0]),
        _ => None,
    };
    match one {
        Some(byte) if byte.is_ascii() && !matches!(byte, b'\n' | b'\r') => Ok(Some(byte)),
        _ => Err(Error::sql(format!("'{given}' is not a valid value for 'csv.{name}'"))
            .hint("expected one ASCII character that is no line end, or an escape such as \\t or \\u0001")),
    }
}
