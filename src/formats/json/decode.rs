//! Reads JSON lines: one object a line, or a line with an array of objects.

use arrow::datatypes::SchemaRef;

use super::options::JsonOptions;
use super::row::RowReader;
use super::scan::Scanner;
use crate::catalog::Options;
use crate::changelog::ChangeBatch;
use crate::error::Result;
use crate::formats::fault::Fault;
use crate::formats::lines::{LineDecoder, LineReader, Lines};
use crate::formats::{Decoder, Wanted};

/// What the decoder of `json` does with a line.
pub(super) struct JsonReader {
    schema: SchemaRef,
    wanted: Wanted,
    reader: RowReader,
    ignore_parse_errors: bool,
}

impl JsonReader {
    pub(super) fn open(options: &Options, wanted: Wanted) -> Result<Box<dyn Decoder>> {
        let options = JsonOptions::read("json", options)?;
        let schema = wanted.projected()?;
        Ok(Box::new(LineDecoder::new(JsonReader {
            ignore_parse_errors: options.ignore_parse_errors,
            reader: RowReader::new(&schema, options)?,
            schema,
            wanted,
        })))
    }

    /// An array of objects gives a row each. It is checked as a whole first: a damaged line gives no row.
    #[cold]
    fn array(&mut self, line: &[u8], from: usize, lines: &mut Lines) -> Result<()> {
        let mut scanner = Scanner::new(line, from);
        if let Err(fault) = scanner.value(0).and_then(|_| at_end(&mut scanner)) {
            return self.malformed(line, fault, lines);
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
                    self.append(line, lines)?;
                    scanner.more(b']', "expected ',' or ']'")
                }
                Err(fault) => {
                    self.malformed(line, fault, lines)?;
                    scanner.at = element;
                    scanner.value(1).and_then(|_| scanner.more(b']', "expected ',' or ']'"))
                }
            };
            match more {
                Ok(true) => {}
                Ok(false) => return Ok(()),
                Err(fault) => return self.malformed(line, fault, lines),
            }
        }
    }

    fn append(&mut self, line: &[u8], lines: &Lines) -> Result<()> {
        match self.reader.append(line) {
            Ok(()) => Ok(()),
            // Values that do not fit have become NULL where that is allowed: what is left is a NULL in a NOT NULL column.
            Err((column, fault)) => {
                Err(fault.to_error("json", lines.count(), line, Some(self.schema.field(column).name())))
            }
        }
    }

    fn malformed(&self, line: &[u8], fault: Fault, lines: &mut Lines) -> Result<()> {
        if self.ignore_parse_errors {
            lines.skip();
            return Ok(());
        }
        Err(fault.to_error("json", lines.count(), line, None))
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

impl LineReader for JsonReader {
    fn line(&mut self, line: &[u8], lines: &mut Lines) -> Result<()> {
        let mut scanner = Scanner::new(line, 0);
        scanner.space();
        if scanner.at == line.len() {
            return Ok(());
        }
        let scanned = match scanner.peek() {
            b'[' => return self.array(line, scanner.at, lines),
            _ => self.reader.scan(&mut scanner).and_then(|()| at_end(&mut scanner)),
        };
        match scanned {
            Ok(()) => self.append(line, lines),
            Err(fault) => self.malformed(line, fault, lines),
        }
    }

    fn rows(&self) -> usize {
        self.reader.rows()
    }

    fn take(&mut self) -> Result<ChangeBatch> {
        let rows = self.reader.rows();
        let columns = self.reader.finish()?;
        Ok(ChangeBatch::inserts(self.wanted.batch(&self.schema, columns, rows)?))
    }
}
