//! Reads JSON lines: one object a line, or a line with an array of objects.

use std::sync::Arc;

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;

use super::options::JsonOptions;
use super::row::RowReader;
use super::scan::Scanner;
use crate::catalog::Options;
use crate::changelog::ChangeBatch;
use crate::error::{Error, Result};
use crate::formats::fault::Fault;
use crate::formats::lines::Lines;
use crate::formats::{Decoder, Wanted};

/// The decoder of `json`.
pub(super) struct JsonDecoder {
    schema: SchemaRef,
    wanted: Wanted,
    reader: RowReader,
    ignore_parse_errors: bool,
    lines: Lines,
}

impl JsonDecoder {
    pub(super) fn open(options: &Options, wanted: Wanted) -> Result<Box<dyn Decoder>> {
        let options = JsonOptions::read("json", options)?;
        let schema = wanted.projected()?;
        Ok(Box::new(JsonDecoder {
            ignore_parse_errors: options.ignore_parse_errors,
            reader: RowReader::new(&schema, options)?,
            schema,
            wanted,
            lines: Lines::default(),
        }))
    }

    fn line(&mut self, line: &[u8]) -> Result<()> {
        let mut scanner = Scanner::new(line, 0);
        scanner.space();
        if scanner.at == line.len() {
            return Ok(());
        }
        let scanned = match scanner.peek() {
            b'[' => return self.array(line, scanner.at),
            _ => self.reader.scan(&mut scanner).and_then(|()| at_end(&mut scanner)),
        };
        match scanned {
            Ok(()) => self.append(line),
            Err(fault) => self.malformed(line, fault, None),
        }
    }

    /// An array of objects gives a row each. It is checked as a whole first: a damaged line gives no row.
    #[cold]
    fn array(&mut self, line: &[u8], from: usize) -> Result<()> {
        let mut scanner = Scanner::new(line, from);
        if let Err(fault) = scanner.value(0).and_then(|_| at_end(&mut scanner)) {
            return self.malformed(line, fault, None);
        }
        let mut scanner = Scanner::new(line, from + 1);
        scanner.space();
        if scanner.peek() == b']' {
            return Ok(());
        }
        loop {
            let element = scanner.at;
            let more = match self.reader.scan(&mut scanner) {
                Ok(()) => {
                    self.append(line)?;
                    scanner.more(b']', "expected ',' or ']'")
                }
                Err(fault) => {
                    self.malformed(line, fault, None)?;
                    scanner.at = element;
                    scanner.value(1).and_then(|_| scanner.more(b']', "expected ',' or ']'"))
                }
            };
            match more {
                Ok(true) => {}
                Ok(false) => return Ok(()),
                Err(fault) => return self.malformed(line, fault, None),
            }
        }
    }

    fn append(&mut self, line: &[u8]) -> Result<()> {
        match self.reader.append(line) {
            Ok(()) => Ok(()),
            // Values that do not fit have become NULL where that is allowed: what is left is a NULL in a NOT NULL column.
            Err((column, fault)) => {
                Err(fault.to_error("json", self.lines.count(), line, Some(self.schema.field(column).name())))
            }
        }
    }

    fn malformed(&mut self, line: &[u8], fault: Fault, field: Option<&str>) -> Result<()> {
        if self.ignore_parse_errors {
            self.lines.skip();
            return Ok(());
        }
        Err(fault.to_error("json", self.lines.count(), line, field))
    }
}

/// Nothing but white space may follow.
pub(in crate::formats) fn at_end(scanner: &mut Scanner<'_>) -> Result<(), Fault> {
    scanner.space();
    if scanner.at < scanner.text.len() {
        return Err(Fault::syntax(scanner.at, "expected the end of the line"));
    }
    Ok(())
}

impl Decoder for JsonDecoder {
    fn decode(&mut self, bytes: &[u8], end: bool) -> Result<usize> {
        let mut at = self.lines.start(bytes);
        while !self.lines.full(self.reader.rows(), at)
            && let Some((line, next)) = Lines::next(bytes, at, end)
        {
            self.line(line)?;
            self.lines.passed(1);
            at = next;
        }
        self.lines.consumed(at);
        Ok(at)
    }

    fn pending_rows(&self) -> usize {
        self.reader.rows()
    }

    fn flush(&mut self) -> Result<ChangeBatch> {
        self.lines.flushed();
        let rows = self.reader.rows();
        let columns = self.reader.finish()?;
        if columns.is_empty() {
            return Ok(ChangeBatch::inserts(self.wanted.columnless(rows)?));
        }
        let batch = RecordBatch::try_new(Arc::clone(&self.schema), columns)
            .map_err(|error| Error::bug(format!("decoded columns do not fit together: {error}")))?;
        Ok(ChangeBatch::inserts(batch))
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
