//! Writes rows as JSON lines.

use crate::catalog::Options;
use crate::changelog::ChangeBatch;
use crate::error::{Error, Result};
use crate::formats::view::{Cells, View, range};
use crate::formats::{Encoder, write};

use super::options::{JsonOptions, NullKey};

/// The encoder of `json`.
pub(super) struct JsonEncoder {
    options: JsonOptions,
}

impl JsonEncoder {
    pub(super) fn open(options: &Options) -> Result<Box<dyn Encoder>> {
        Ok(Box::new(JsonEncoder { options: JsonOptions::read("json", options)? }))
    }
}

impl Encoder for JsonEncoder {
    fn encode(&mut self, batch: &ChangeBatch, to: &mut Vec<u8>) -> Result<()> {
        let writer = RowWriter::new(batch, &self.options)?;
        for row in 0..batch.len() {
            writer.write(row, to)?;
            to.push(b'\n');
        }
        Ok(())
    }

    fn extension(&self) -> &'static str {
        "json"
    }
}

/// Writes the rows of one batch as objects.
pub(in crate::formats) struct RowWriter<'a> {
    /// Each column with its key, quoted and followed by a colon.
    columns: Vec<(Vec<u8>, View<'a>)>,
    options: &'a JsonOptions,
}

impl<'a> RowWriter<'a> {
    /// # Errors
    /// If a column's type has no JSON form.
    pub(in crate::formats) fn new(batch: &'a ChangeBatch, options: &'a JsonOptions) -> Result<RowWriter<'a>> {
        let rows = batch.rows();
        let columns = rows.schema_ref().fields().iter().zip(rows.columns());
        Ok(RowWriter {
            columns: columns
                .map(|(field, column)| {
                    let mut key = Vec::new();
                    string(field.name().as_bytes(), &mut key);
                    key.push(b':');
                    Ok((key, View::new(field, column)?))
                })
                .collect::<Result<_>>()?,
            options,
        })
    }

    /// Appends row `row`.
    ///
    /// # Errors
    /// If a map has a NULL key and `map-null-key.mode` is `FAIL`.
    pub(in crate::formats) fn write(&self, row: usize, to: &mut Vec<u8>) -> Result<()> {
        to.push(b'{');
        let mut first = true;
        for (key, view) in &self.columns {
            if self.options.ignore_null_fields && view.is_null(row) {
                continue;
            }
            if !first {
                to.push(b',');
            }
            first = false;
            to.extend_from_slice(key);
            value(view, row, self.options, to)?;
        }
        to.push(b'}');
        Ok(())
    }
}

fn value(view: &View<'_>, row: usize, options: &JsonOptions, to: &mut Vec<u8>) -> Result<()> {
    if view.is_null(row) {
        to.extend_from_slice(b"null");
        return Ok(());
    }
    match &view.cells {
        Cells::Decimal(cells, scale) if options.plain_decimals => write::decimal_plain(cells.value(row), *scale, to),
        Cells::Float(cells) if !cells.value(row).is_finite() => quoted(view, row, options, to),
        Cells::Double(cells) if !cells.value(row).is_finite() => quoted(view, row, options, to),
        Cells::Text(cells) => string(cells.value(row).as_bytes(), to),
        Cells::List(list, elements) => {
            to.push(b'[');
            let range = range(list.value_offsets(), row);
            for index in range.clone() {
                if index > range.start {
                    to.push(b',');
                }
                value(elements, index, options, to)?;
            }
            to.push(b']');
        }
        Cells::Map(map, keys, values) => entries(range(map.value_offsets(), row), keys, values, options, to)?,
        Cells::Row(fields) => {
            to.push(b'{');
            let mut first = true;
            for (name, field) in fields {
                if options.ignore_null_fields && field.is_null(row) {
                    continue;
                }
                if !first {
                    to.push(b',');
                }
                first = false;
                string(name.as_bytes(), to);
                to.push(b':');
                value(field, row, options, to)?;
            }
            to.push(b'}');
        }
        _ if view.is_bare() => view.write_scalar(row, options.timestamps, to),
        _ => quoted(view, row, options, to),
    }
    Ok(())
}

/// Dates, times and bytes: text that needs quotes and no escapes. Also `"NaN"`, which JSON has no number for.
fn quoted(view: &View<'_>, row: usize, options: &JsonOptions, to: &mut Vec<u8>) {
    to.push(b'"');
    view.write_scalar(row, options.timestamps, to);
    to.push(b'"');
}

fn entries(
    range: std::ops::Range<usize>,
    keys: &View<'_>,
    values: &View<'_>,
    options: &JsonOptions,
    to: &mut Vec<u8>,
) -> Result<()> {
    to.push(b'{');
    let mut first = true;
    for index in range {
        let is_null = keys.is_null(index);
        if is_null && options.null_key == NullKey::Drop {
            continue;
        }
        if !first {
            to.push(b',');
        }
        first = false;
        match (&keys.cells, &options.null_key) {
            (_, NullKey::Literal(literal)) if is_null => string(literal.as_bytes(), to),
            _ if is_null => {
                return Err(Error::data("a MAP with a NULL key cannot be written as JSON")
                    .hint("set 'json.map-null-key.mode' to DROP or LITERAL"));
            }
            (Cells::Text(cells), _) => string(cells.value(index).as_bytes(), to),
            _ => quoted(keys, index, options, to),
        }
        to.push(b':');
        value(values, index, options, to)?;
    }
    to.push(b'}');
    Ok(())
}

/// Appends a JSON string with its quotes.
pub(super) fn string(text: &[u8], to: &mut Vec<u8>) {
    to.push(b'"');
    let mut from = 0;
    for (at, byte) in text.iter().enumerate() {
        let escape: &[u8] = match byte {
            b'"' => b"\\\"",
            b'\\' => b"\\\\",
            b'\n' => b"\\n",
            b'\r' => b"\\r",
            b'\t' => b"\\t",
            8 => b"\\b",
            12 => b"\\f",
            0..=31 => b"\\u00",
            _ => continue,
        };
        to.extend_from_slice(&text[from..at]);
        to.extend_from_slice(escape);
        if escape.len() == 4 {
            let digit = |value: u8| b"0123456789ABCDEF"[usize::from(value)];
            to.extend([digit(byte >> 4), digit(byte & 15)]);
        }
        from = at + 1;
    }
    to.extend_from_slice(&text[from..]);
    to.push(b'"');
}
