//! The `raw` format: each line is the one column's value, as it stands.

use std::sync::Arc;

use arrow::array::{ArrayRef, BinaryBuilder, RecordBatch, StringBuilder};
use arrow::datatypes::{DataType, SchemaRef};

use super::fault::Fault;
use super::lines::Lines;
use super::view::{Cells, View};
use super::{Decoder, Encoder, Format, FormatModes, Wanted};
use crate::catalog::{DeclaredOption, OptionKind, Options};
use crate::changelog::{ChangeBatch, ChangelogMode};
use crate::error::{Error, Result};

const OPTIONS: &[DeclaredOption] = &[
    DeclaredOption {
        name: "charset",
        kind: OptionKind::Text,
        default: Some("UTF-8"),
        required: false,
        help: "The encoding of the text; only UTF-8.",
    },
    DeclaredOption {
        name: "endianness",
        kind: OptionKind::Text,
        default: Some("big-endian"),
        required: false,
        help: "Taken for compatibility: numbers are not read from raw bytes.",
    },
];

/// Its line in the list.
pub(super) const FORMAT: Format = Format {
    name: "raw",
    options: OPTIONS,
    modes: FormatModes { reads: ChangelogMode::APPEND, writes: ChangelogMode::APPEND },
    decoder: RawDecoder::open,
    encoder: RawEncoder::open,
};

/// Checks that the table has one column of text or bytes.
fn check(options: &Options, schema: &SchemaRef) -> Result<()> {
    let charset = options.get("charset").unwrap_or("UTF-8");
    if !charset.eq_ignore_ascii_case("UTF-8") {
        return Err(Error::sql(format!("'{charset}' is not a valid value for 'raw.charset'")).hint("expected UTF-8"));
    }
    match schema.fields().as_ref() {
        [field] if matches!(field.data_type(), DataType::Utf8 | DataType::Binary) => Ok(()),
        _ => Err(Error::sql(format!(
            "the raw format needs a table with exactly one physical column, of type STRING or BYTES; here there are {}",
            schema.fields().len()
        ))
        .hint("declare one column such as `line STRING`")),
    }
}

enum Column {
    Text(StringBuilder),
    Bytes(BinaryBuilder),
    /// The column is not wanted, only the number of rows.
    None,
}

struct RawDecoder {
    wanted: Wanted,
    schema: SchemaRef,
    column: Column,
    rows: usize,
    lines: Lines,
}

impl RawDecoder {
    fn open(options: &Options, wanted: Wanted) -> Result<Box<dyn Decoder>> {
        check(options, &wanted.schema)?;
        let schema = wanted.projected()?;
        let column = match schema.fields().first().map(|field| field.data_type()) {
            None => Column::None,
            Some(DataType::Utf8) => Column::Text(StringBuilder::new()),
            Some(_) => Column::Bytes(BinaryBuilder::new()),
        };
        Ok(Box::new(RawDecoder { wanted, schema, column, rows: 0, lines: Lines::default() }))
    }
}

impl Decoder for RawDecoder {
    fn decode(&mut self, bytes: &[u8], end: bool) -> Result<usize> {
        let mut at = self.lines.start(bytes);
        while !self.lines.full(self.rows, at)
            && let Some((line, next)) = Lines::next(bytes, at, end)
        {
            match &mut self.column {
                Column::Text(builder) => match std::str::from_utf8(line) {
                    Ok(text) => builder.append_value(text),
                    Err(error) => {
                        let fault = Fault::value(error.valid_up_to(), line.len(), "is not valid UTF-8");
                        return Err(fault.to_error("raw", self.lines.count(), line, None));
                    }
                },
                Column::Bytes(builder) => builder.append_value(line),
                Column::None => {}
            }
            self.rows += 1;
            self.lines.passed(1);
            at = next;
        }
        self.lines.consumed(at);
        Ok(at)
    }

    fn pending_rows(&self) -> usize {
        self.rows
    }

    fn flush(&mut self) -> Result<ChangeBatch> {
        self.lines.flushed();
        let rows = std::mem::take(&mut self.rows);
        let column: ArrayRef = match &mut self.column {
            Column::Text(builder) => Arc::new(builder.finish()),
            Column::Bytes(builder) => Arc::new(builder.finish()),
            Column::None => return Ok(ChangeBatch::inserts(self.wanted.columnless(rows)?)),
        };
        Ok(ChangeBatch::inserts(RecordBatch::try_new(Arc::clone(&self.schema), vec![column])?))
    }

    fn set_line(&mut self, line: u64) {
        self.lines.set(line);
    }

    fn line(&self) -> u64 {
        self.lines.count()
    }

    fn skipped(&self) -> u64 {
        self.lines.skipped()
    }
}

struct RawEncoder;

impl RawEncoder {
    fn open(options: &Options, schema: SchemaRef) -> Result<Box<dyn Encoder>> {
        check(options, &schema)?;
        Ok(Box::new(RawEncoder))
    }
}

impl Encoder for RawEncoder {
    fn encode(&mut self, batch: &ChangeBatch, to: &mut Vec<u8>) -> Result<()> {
        let rows = batch.rows();
        let view = View::new(rows.schema_ref().field(0), rows.column(0))?;
        for row in 0..batch.len() {
            match &view.cells {
                _ if view.is_null(row) => {}
                Cells::Text(cells) => to.extend_from_slice(cells.value(row).as_bytes()),
                Cells::Bytes(cells) => to.extend_from_slice(cells.value(row)),
                _ => return Err(Error::bug("a raw column that is neither text nor bytes")),
            }
            to.push(b'\n');
        }
        Ok(())
    }

    fn extension(&self) -> &'static str {
        "txt"
    }
}
