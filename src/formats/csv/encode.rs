//! Writes rows as CSV, quoted where Jackson (and so Flink) quotes: text that is long or holds a character up to the
//! delimiter, which is easier to judge than to need.

use super::options::CsvOptions;
use crate::catalog::Options;
use crate::changelog::ChangeBatch;
use crate::error::{Error, Result};
use crate::formats::text::TimestampStyle;
use crate::formats::view::{Cells, View, range};
use crate::formats::{Encoder, write};

/// Text beyond this length is quoted without looking.
const LOOKED_AT: usize = 24;

/// The encoder of `csv`.
pub(super) struct CsvEncoder {
    options: CsvOptions,
    /// Text with a byte below this is quoted.
    safe_from: u8,
    scratch: Vec<u8>,
}

impl CsvEncoder {
    pub(super) fn open(options: &Options) -> Result<Box<dyn Encoder>> {
        let options = CsvOptions::read(options)?;
        let safe_from = options.delimiter.max(options.quote.unwrap_or(0)).max(b'\r') + 1;
        Ok(Box::new(CsvEncoder { options, safe_from, scratch: Vec::new() }))
    }

    fn field(&mut self, view: &View<'_>, row: usize, to: &mut Vec<u8>) -> Result<()> {
        if view.is_null(row) {
            to.extend_from_slice(self.options.null_literal.as_deref().unwrap_or(b""));
            return Ok(());
        }
        if view.is_bare() {
            scalar(view, row, &self.options, to);
            return Ok(());
        }
        self.scratch.clear();
        let options = &self.options;
        let scratch = &mut self.scratch;
        match &view.cells {
            Cells::List(list, elements) => {
                let range = range(list.value_offsets(), row);
                for index in range.clone() {
                    if index > range.start {
                        scratch.extend_from_slice(&options.element_delimiter);
                    }
                    part(elements, index, options, scratch)?;
                }
            }
            Cells::Row(fields) => {
                for (index, (_, field)) in fields.iter().enumerate() {
                    if index > 0 {
                        scratch.extend_from_slice(&options.element_delimiter);
                    }
                    part(field, row, options, scratch)?;
                }
            }
            Cells::Map(..) => return Err(unsupported("a MAP")),
            _ => scalar(view, row, options, scratch),
        }
        self.text(to);
        Ok(())
    }

    /// Appends the scratch text, quoted if need be.
    fn text(&mut self, to: &mut Vec<u8>) {
        let text = &self.scratch;
        let Some(quote) = self.options.quote else {
            // Without quotes the escape character is the only protection.
            for byte in text {
                if self.options.escape.is_some_and(|escape| *byte == escape || *byte == self.options.delimiter) {
                    to.extend(self.options.escape);
                }
                to.push(*byte);
            }
            return;
        };
        let escape = self.options.escape;
        let safe = |byte: &u8| *byte >= self.safe_from && Some(*byte) != escape;
        if text.len() <= LOOKED_AT && text.iter().all(safe) {
            to.extend_from_slice(text);
            return;
        }
        to.push(quote);
        for byte in text {
            if *byte == quote {
                to.push(quote);
            } else if Some(*byte) == escape {
                to.push(*byte);
            }
            to.push(*byte);
        }
        to.push(quote);
    }
}

fn scalar(view: &View<'_>, row: usize, options: &CsvOptions, to: &mut Vec<u8>) {
    match &view.cells {
        Cells::Decimal(cells, scale) if !options.scientific => write::decimal_plain(cells.value(row), *scale, to),
        _ => view.write_scalar(row, TimestampStyle::Sql, to),
    }
}

/// An element of an array or a field of a row.
fn part(view: &View<'_>, row: usize, options: &CsvOptions, to: &mut Vec<u8>) -> Result<()> {
    if view.is_null(row) {
        to.extend_from_slice(options.null_literal.as_deref().unwrap_or(b""));
        return Ok(());
    }
    match &view.cells {
        Cells::List(..) | Cells::Map(..) | Cells::Row(_) => Err(unsupported("a collection within a collection")),
        _ => {
            scalar(view, row, options, to);
            Ok(())
        }
    }
}

fn unsupported(what: &str) -> Error {
    Error::sql(format!("{what} has no form in CSV")).hint("use the json format, or CAST it to STRING")
}

impl Encoder for CsvEncoder {
    fn encode(&mut self, batch: &ChangeBatch, to: &mut Vec<u8>) -> Result<()> {
        let rows = batch.rows();
        let schema = rows.schema_ref();
        let views: Vec<View<'_>> = schema
            .fields()
            .iter()
            .zip(rows.columns())
            .map(|(field, column)| View::new(field, column))
            .collect::<Result<_>>()?;
        for row in 0..batch.len() {
            for (index, view) in views.iter().enumerate() {
                if index > 0 {
                    to.push(self.options.delimiter);
                }
                self.field(view, row, to)?;
            }
            to.push(b'\n');
        }
        Ok(())
    }

    fn extension(&self) -> &'static str {
        "csv"
    }
}
