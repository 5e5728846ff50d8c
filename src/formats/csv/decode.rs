//! Reads CSV.

use arrow::datatypes::SchemaRef;

use super::options::CsvOptions;
use super::split::{Fields, Record, is_comment};
use crate::catalog::Options;
use crate::changelog::ChangeBatch;
use crate::error::{Error, Result};
use crate::formats::builder::{ColumnBuilder, Refused, Values};
use crate::formats::fault::Fault;
use crate::formats::lines::Lines;
use crate::formats::text::TimestampStyle;
use crate::formats::{Decoder, Wanted};

/// The decoder of `csv`.
pub(super) struct CsvDecoder {
    schema: SchemaRef,
    wanted: Wanted,
    columns: Vec<ColumnBuilder>,
    rows: usize,
    /// Number of columns a record should have.
    width: usize,
    fields: Fields,
    options: CsvOptions,
    lines: Lines,
}

impl CsvDecoder {
    pub(super) fn open(options: &Options, wanted: Wanted) -> Result<Box<dyn Decoder>> {
        let options = CsvOptions::read(options)?;
        let schema = wanted.projected()?;
        if let Some(field) = wanted.schema.fields().iter().find(|field| field.data_type().is_nested() && is_map(field))
        {
            return Err(Error::sql(format!("column '{}' is a MAP, which CSV cannot hold", field.name()))
                .hint("use the json format, or a STRING column"));
        }
        Ok(Box::new(CsvDecoder {
            columns: schema.fields().iter().map(|field| ColumnBuilder::new(field)).collect::<Result<_>>()?,
            rows: 0,
            width: wanted.schema.fields().len(),
            schema,
            wanted,
            fields: Fields::default(),
            options,
            lines: Lines::default(),
        }))
    }

    fn record(&mut self, record: &[u8], fault: Option<Fault>) -> Result<()> {
        if let Err(fault) = fault.map_or_else(|| self.check_width(record), Err) {
            if self.options.ignore_parse_errors {
                self.lines.skip();
                return Ok(());
            }
            return Err(fault.to_error("csv", self.lines.count(), record, None));
        }
        for (index, column) in self.columns.iter_mut().enumerate() {
            let field = self.fields.get(record, self.wanted.projection[index]);
            if let Err(fault) = append(column, field, &self.options) {
                let line = self.lines.count();
                return Err(fault.to_error("csv", line, record, Some(self.schema.field(index).name())));
            }
        }
        self.rows += 1;
        Ok(())
    }

    fn check_width(&self, record: &[u8]) -> Result<(), Fault> {
        let found = self.fields.len();
        if found == self.width {
            return Ok(());
        }
        if found < self.width {
            // As in Flink, columns that are not there are NULL; one that is NOT NULL refuses that.
            return Ok(());
        }
        let (text, from) = self.fields.get(record, self.width).unwrap_or((b"", record.len()));
        let trailing_comma = self.options.trailing_comma && found == self.width + 1 && text.is_empty();
        if trailing_comma || self.options.ignore_trailing {
            return Ok(());
        }
        Err(Fault::value(from, record.len(), "stands beyond the table's last column"))
    }
}

fn is_map(field: &arrow::datatypes::Field) -> bool {
    matches!(field.data_type(), arrow::datatypes::DataType::Map(..))
}

/// Appends a field's value. `None` is a field that is not there.
#[inline]
fn append(column: &mut ColumnBuilder, field: Option<(&[u8], usize)>, options: &CsvOptions) -> Result<(), Fault> {
    let Some((text, origin)) = field else {
        return column.append_null().map_err(|refused| Fault::value(0, 0, refused));
    };
    let appended = if options.null_literal.as_deref() == Some(text) {
        column.append_null()
    } else {
        append_value(column, text, options)
    };
    match appended {
        Ok(()) => Ok(()),
        Err(_) if options.ignore_parse_errors => {
            column.append_null().map_err(|refused| Fault::value(origin, origin + text.len(), refused))
        }
        Err(refused) => Err(Fault::value(origin, origin + text.len(), refused)),
    }
}

#[inline]
fn append_value(column: &mut ColumnBuilder, text: &[u8], options: &CsvOptions) -> Result<(), Refused> {
    match &mut column.values {
        Values::List { element, .. } => {
            if !text.is_empty() {
                for part in parts(text, &options.element_delimiter) {
                    append_part(element, part, options)?;
                }
            }
            column.end_collection()
        }
        Values::Row(row) => {
            let mut parts = parts(text, &options.element_delimiter);
            for column in &mut row.columns {
                match parts.next() {
                    Some(part) => append_part(column, part, options)?,
                    None if options.ignore_parse_errors => column.append_null()?,
                    None => return Err("has fewer parts than the ROW has fields"),
                }
            }
            if parts.next().is_some() && !options.ignore_parse_errors {
                return Err("has more parts than the ROW has fields");
            }
            row.end(true);
            Ok(())
        }
        _ => column.append_text(text, TimestampStyle::Sql),
    }
}

fn append_part(column: &mut ColumnBuilder, part: &[u8], options: &CsvOptions) -> Result<(), Refused> {
    if options.null_literal.as_deref() == Some(part) {
        return column.append_null();
    }
    match column.append_text(part, TimestampStyle::Sql) {
        Err(_) if options.ignore_parse_errors => column.append_null(),
        other => other,
    }
}

/// The parts of `text` between delimiters; one part at least.
fn parts<'a>(text: &'a [u8], delimiter: &'a [u8]) -> impl Iterator<Item = &'a [u8]> {
    let mut rest = Some(text);
    std::iter::from_fn(move || {
        let text = rest?;
        match memchr::memmem::find(text, delimiter) {
            Some(at) => {
                rest = Some(&text[at + delimiter.len()..]);
                Some(&text[..at])
            }
            None => rest.take(),
        }
    })
}

impl Decoder for CsvDecoder {
    fn decode(&mut self, bytes: &[u8], end: bool) -> Result<usize> {
        let mut at = self.lines.start(bytes);
        while !self.lines.full(self.rows, at) {
            let Some(Record { next, to, lines, fault }) = self.fields.split(bytes, at, end, &self.options) else {
                break;
            };
            let record = &bytes[at..to];
            let header = self.options.header && self.lines.count() == 0;
            let comment = self.options.comments && is_comment(record);
            if !header && !comment {
                self.record(record, fault)?;
            }
            // A last line without its line end counts too.
            self.lines.passed(lines.max(1));
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
        let columns = self.columns.iter_mut().map(ColumnBuilder::finish).collect::<Result<_>>()?;
        Ok(ChangeBatch::inserts(self.wanted.batch(&self.schema, columns, rows)?))
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
