//! What is shared in reading messages of changes: a dialect says which rows of a message are which changes, here they are
//! checked and appended.

use arrow::datatypes::SchemaRef;

use super::message::Place;
use crate::catalog::Options;
use crate::changelog::{ChangeBatch, Kind};
use crate::error::Result;
use crate::formats::fault::Fault;
use crate::formats::json::{JsonOptions, RowReader, Scanner};
use crate::formats::lines::{LineDecoder, LineReader, Lines};
use crate::formats::{Decoder, Wanted};

/// How one tool writes its messages.
pub(super) trait Dialect: Send + 'static {
    /// The format's name.
    const NAME: &'static str;

    /// Finds the changes of a message, in order; none if the message is of something else.
    fn changes(&mut self, line: &[u8], to: &mut Vec<Change>) -> Result<(), Fault>;
}

/// One change of a message.
#[derive(Debug, Clone, Copy)]
pub(super) struct Change {
    kind: Kind,
    /// The row, an object.
    row: Place,
    /// An object with those of its columns that were different.
    over: Option<Place>,
}

impl Change {
    pub(super) fn new(kind: Kind, row: Place) -> Change {
        Change { kind, row, over: None }
    }

    /// The row before an update of which only `old`, the columns that were different, is given.
    pub(super) fn before(after: Place, old: Place) -> Change {
        Change { kind: Kind::UpdateBefore, row: after, over: Some(old) }
    }
}

/// Reads messages into rows.
struct ChangeReader<D> {
    dialect: D,
    schema: SchemaRef,
    wanted: Wanted,
    reader: RowReader,
    kinds: Vec<Kind>,
    ignore_parse_errors: bool,
    /// The changes of the message at hand.
    changes: Vec<Change>,
}

/// The decoder of a dialect.
pub(super) fn open<D: Dialect>(dialect: D, options: &Options, wanted: Wanted) -> Result<Box<dyn Decoder>> {
    let options = JsonOptions::read(D::NAME, options)?;
    let schema = wanted.projected()?;
    Ok(Box::new(LineDecoder::new(ChangeReader {
        dialect,
        ignore_parse_errors: options.ignore_parse_errors,
        reader: RowReader::new(&schema, options)?,
        kinds: Vec::new(),
        changes: Vec::new(),
        schema,
        wanted,
    })))
}

impl<D: Dialect> ChangeReader<D> {
    /// Finds and checks all changes, the first last: it can then be appended without looking at it again, and most
    /// messages have no other.
    fn check(&mut self, line: &[u8]) -> Result<(), Fault> {
        self.changes.clear();
        self.dialect.changes(line, &mut self.changes)?;
        for index in (0..self.changes.len()).rev() {
            self.scan(line, self.changes[index])?;
        }
        Ok(())
    }

    /// First pass over one row.
    fn scan(&mut self, line: &[u8], change: Change) -> Result<(), Fault> {
        self.reader.scan(&mut Scanner::new(line, change.row.0))?;
        match change.over {
            Some(over) => self.reader.scan_over(&mut Scanner::new(line, over.0)),
            None => Ok(()),
        }
    }

    /// Appends the changes that were checked. A fault here is a field that may not even become NULL; part of the row is
    /// appended, so there is no going on.
    fn append(&mut self, line: &[u8]) -> Result<(), (Option<usize>, Fault)> {
        for index in 0..self.changes.len() {
            let change = self.changes[index];
            if index > 0 {
                self.scan(line, change).map_err(|fault| (None, fault))?;
            }
            self.reader.append(line).map_err(|(column, fault)| (Some(column), fault))?;
            self.kinds.push(change.kind);
        }
        Ok(())
    }
}

impl<D: Dialect> LineReader for ChangeReader<D> {
    fn line(&mut self, line: &[u8], lines: &mut Lines) -> Result<()> {
        if line.trim_ascii().is_empty() {
            return Ok(());
        }
        if let Err(fault) = self.check(line) {
            if self.ignore_parse_errors {
                lines.skip();
                return Ok(());
            }
            return Err(fault.to_error(D::NAME, lines.count(), line, None));
        }
        self.append(line).map_err(|(column, fault)| {
            let field = column.map(|column| self.schema.field(column).name().as_str());
            fault.to_error(D::NAME, lines.count(), line, field)
        })
    }

    fn rows(&self) -> usize {
        self.kinds.len()
    }

    fn take(&mut self) -> Result<ChangeBatch> {
        let columns = self.reader.finish()?;
        let kinds = std::mem::take(&mut self.kinds);
        ChangeBatch::new(self.wanted.batch(&self.schema, columns, kinds.len())?, kinds)
    }
}
