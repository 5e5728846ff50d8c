//! The `raw` format: each line is the one column's value, as it stands.

use std::sync::Arc;

use arrow::array::{ArrayRef, BinaryBuilder, StringBuilder};
use arrow::datatypes::{DataType, SchemaRef};

use super::fault::Fault;
use super::lines::{LineDecoder, LineReader, Lines};
use super::view::{Cells, View};
use super::{Decoder, Encoder, Format, FormatModes, MakeDecoder, Wanted};
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
    decoder: MakeDecoder::OfRecords(RawReader::open),
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

struct RawReader {
    wanted: Wanted,
    schema: SchemaRef,
    column: Column,
    rows: usize,
}

impl RawReader {
    fn open(options: &Options, wanted: Wanted) -> Result<Box<dyn Decoder>> {
        check(options, &wanted.schema)?;
        let schema = wanted.projected()?;
        let column = match schema.fields().first().map(|field| field.data_type()) {
            None => Column::None,
            Some(DataType::Utf8) => Column::Text(StringBuilder::new()),
            Some(_) => Column::Bytes(BinaryBuilder::new()),
        };
        Ok(Box::new(LineDecoder::new(RawReader { wanted, schema, column, rows: 0 })))
    }
}

impl LineReader for RawReader {
    fn line(&mut self, line: &[u8], lines: &mut Lines) -> Result<()> {
        match &mut self.column {
            Column::Text(builder) => match std::str::from_utf8(line) {
                Ok(text) => builder.append_value(text),
                Err(error) => {
                    let fault = Fault::value(error.valid_up_to(), line.len(), "is not valid UTF-8");
                    return Err(fault.to_error("raw", lines.count(), line, None));
                }
            },
            Column::Bytes(builder) => builder.append_value(line),
            Column::None => {}
        }
        self.rows += 1;
        Ok(())
    }

    fn rows(&self) -> usize {
        self.rows
    }

    fn take(&mut self) -> Result<ChangeBatch> {
        let rows = std::mem::take(&mut self.rows);
        let columns: Vec<ArrayRef> = match &mut self.column {
            Column::Text(builder) => vec![Arc::new(builder.finish())],
            Column::Bytes(builder) => vec![Arc::new(builder.finish())],
            Column::None => Vec::new(),
        };
        Ok(ChangeBatch::inserts(self.wanted.batch(&self.schema, columns, rows)?))
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

#[cfg(test)]
mod tests {
    use crate::formats::testing::{batch, decode, encode, rows};
    use crate::types::SqlType;

    #[test]
    fn lines_as_they_stand() {
        let column = [("line", SqlType::STRING)];
        assert_eq!(rows("raw", &column, &[], "x\n\n y \"z\n"), ["+I[x]", "+I[]", "+I[ y \"z]"]);
        assert_eq!(encode("raw", &[], &batch("raw", &column, &[], "x\n\ny")).unwrap(), "x\n\ny\n");
        assert_eq!(rows("raw", &[("line", SqlType::BYTES)], &[], "a\n"), ["+I[[97]]"]);
        assert!(decode("raw", &column, &[], b"\xff\n").is_err());
        assert!(decode("raw", &[("n", SqlType::Int)], &[], b"").is_err());
    }
}
