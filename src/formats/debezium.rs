//! The `debezium-json` format: a change a line, as Debezium's connectors send them.
//!
//! `{"before":null,"after":{…},"op":"c"}` (or `r`, a row of the snapshot) is an insert, `d` a delete of `before`, and
//! `u` an update from `before` to `after`. With `schema-include` the change stands under `payload`. Written are inserts
//! (`c`) and deletes (`d`) only: an update is a delete and an insert. An empty line stands for a tombstone and is passed
//! over.

use std::sync::Arc;

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;

use super::fault::Fault;
use super::json::{JsonOptions, OPTIONS as JSON_OPTIONS, RowReader, RowWriter, Scanner, at_end};
use super::lines::Lines;
use super::{Decoder, Encoder, Format, FormatModes, Wanted};
use crate::catalog::{DeclaredOption, OptionKind, Options};
use crate::changelog::{ChangeBatch, ChangelogMode, Kind};
use crate::error::{Error, Result};

const NAME: &str = "debezium-json";

const OPTIONS: &[DeclaredOption] = &[
    DeclaredOption {
        name: "schema-include",
        kind: OptionKind::Boolean,
        default: Some("false"),
        required: false,
        help: "Whether each line carries a schema, with the change under 'payload'. Read only.",
    },
    JSON_OPTIONS[1],
    JSON_OPTIONS[2],
    JSON_OPTIONS[3],
    JSON_OPTIONS[4],
    JSON_OPTIONS[5],
    JSON_OPTIONS[6],
];

/// Its line in the list.
pub(super) const FORMAT: Format = Format {
    name: NAME,
    options: OPTIONS,
    modes: FormatModes { reads: ChangelogMode::RETRACT, writes: ChangelogMode::RETRACT },
    decoder: DebeziumDecoder::open,
    encoder: |options, _| DebeziumEncoder::open(options),
};

struct DebeziumDecoder {
    schema: SchemaRef,
    wanted: Wanted,
    reader: RowReader,
    kinds: Vec<Kind>,
    ignore_parse_errors: bool,
    schema_include: bool,
    lines: Lines,
}

/// Where the parts of a change stand.
#[derive(Default)]
struct Envelope {
    before: Option<(usize, usize)>,
    after: Option<(usize, usize)>,
    operation: Option<(usize, usize)>,
}

impl DebeziumDecoder {
    fn open(options: &Options, wanted: Wanted) -> Result<Box<dyn Decoder>> {
        let schema_include = options.boolean("schema-include", false)?;
        let options = JsonOptions::read(NAME, options)?;
        let schema = wanted.projected()?;
        Ok(Box::new(DebeziumDecoder {
            ignore_parse_errors: options.ignore_parse_errors,
            schema_include,
            reader: RowReader::new(&schema, options)?,
            kinds: Vec::new(),
            schema,
            wanted,
            lines: Lines::default(),
        }))
    }

    fn line(&mut self, line: &[u8]) -> Result<()> {
        if line.trim_ascii().is_empty() {
            return Ok(());
        }
        match self.change(line) {
            Ok(()) => Ok(()),
            Err(Trouble::Line(_)) if self.ignore_parse_errors => {
                self.lines.skip();
                Ok(())
            }
            Err(Trouble::Line(fault)) => Err(fault.to_error(NAME, self.lines.count(), line, None)),
            Err(Trouble::Field(column, fault)) => {
                Err(fault.to_error(NAME, self.lines.count(), line, Some(self.schema.field(column).name())))
            }
        }
    }

    fn change(&mut self, line: &[u8]) -> Result<(), Trouble> {
        let envelope = self.envelope(line)?;
        let Some((from, to)) = envelope.operation else {
            return Err(Fault::value(0, line.len(), "has no 'op': it is no Debezium change").into());
        };
        let whole = (0, line.len());
        match &line[from..to] {
            b"\"c\"" | b"\"r\"" => {
                let after = envelope.after.ok_or(missing(whole, "is an insert without 'after'"))?;
                self.check(line, after)?;
                self.row(line, Kind::Insert)
            }
            b"\"u\"" => {
                let before = envelope.before.ok_or(missing(
                    whole,
                    "is an update without 'before' (PostgreSQL sends it with REPLICA IDENTITY FULL)",
                ))?;
                let after = envelope.after.ok_or(missing(whole, "is an update without 'after'"))?;
                // Both images are checked before either is appended: a pair is never torn.
                self.check(line, after)?;
                self.check(line, before)?;
                self.row(line, Kind::UpdateBefore)?;
                self.check(line, after)?;
                self.row(line, Kind::UpdateAfter)
            }
            b"\"d\"" => {
                let before = envelope.before.ok_or(missing(
                    whole,
                    "is a delete without 'before' (PostgreSQL sends it with REPLICA IDENTITY FULL)",
                ))?;
                self.check(line, before)?;
                self.row(line, Kind::Delete)
            }
            _ => Err(Fault::value(from, to, "is no known 'op' (c, r, u, d)").into()),
        }
    }

    fn envelope(&self, line: &[u8]) -> Result<Envelope, Trouble> {
        let mut scanner = Scanner::new(line, 0);
        scanner.space();
        let mut envelope = Envelope::default();
        let mut payload = None;
        members(&mut scanner, |key, place| match key {
            b"\"payload\"" => payload = Some(place),
            key => envelope.set(key, place),
        })?;
        at_end(&mut scanner)?;
        if !self.schema_include {
            return Ok(envelope);
        }
        let payload = payload.ok_or(missing((0, line.len()), "has no 'payload' ('schema-include' is true)"))?;
        let mut envelope = Envelope::default();
        members(&mut Scanner::new(line, payload.0), |key, place| envelope.set(key, place))?;
        Ok(envelope)
    }

    /// First pass over an image.
    fn check(&mut self, line: &[u8], image: (usize, usize)) -> Result<(), Trouble> {
        Ok(self.reader.scan(&mut Scanner::new(line, image.0))?)
    }

    /// Appends the image that was checked last.
    fn row(&mut self, line: &[u8], kind: Kind) -> Result<(), Trouble> {
        self.reader.append(line).map_err(|(column, fault)| Trouble::Field(column, fault))?;
        self.kinds.push(kind);
        Ok(())
    }
}

impl Envelope {
    fn set(&mut self, key: &[u8], place: (usize, usize)) {
        match key {
            b"\"before\"" => self.before = Some(place),
            b"\"after\"" => self.after = Some(place),
            b"\"op\"" => self.operation = Some(place),
            _ => {}
        }
    }
}

/// What is wrong with a line, and whether it can be passed over.
enum Trouble {
    /// The line as a whole.
    Line(Fault),
    /// A field that may not even become NULL; part of the row is appended, so there is no going on.
    Field(usize, Fault),
}

impl From<Fault> for Trouble {
    fn from(fault: Fault) -> Trouble {
        Trouble::Line(fault)
    }
}

fn missing(place: (usize, usize), what: &'static str) -> Trouble {
    Trouble::Line(Fault::value(place.0, place.1, what))
}

/// Walks over the members of an object; a member that is `null` is not given.
fn members(scanner: &mut Scanner<'_>, mut each: impl FnMut(&[u8], (usize, usize))) -> Result<(), Fault> {
    if scanner.peek() != b'{' {
        return Err(Fault::syntax(scanner.at, "expected a JSON object"));
    }
    scanner.at += 1;
    scanner.space();
    if scanner.peek() == b'}' {
        scanner.at += 1;
        return Ok(());
    }
    loop {
        let from = scanner.at;
        scanner.string()?;
        let key = &scanner.text[from..scanner.at];
        scanner.punctuation(b':', "expected ':'")?;
        let place = scanner.value(1)?;
        if scanner.text[place.0] != b'n' {
            each(key, place);
        }
        if !scanner.more(b'}', "expected ',' or '}'")? {
            return Ok(());
        }
    }
}

impl Decoder for DebeziumDecoder {
    fn decode(&mut self, bytes: &[u8], end: bool) -> Result<usize> {
        let mut at = self.lines.start(bytes);
        while !self.lines.full(self.kinds.len(), at)
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
        self.kinds.len()
    }

    fn flush(&mut self) -> Result<ChangeBatch> {
        self.lines.flushed();
        let columns = self.reader.finish()?;
        let kinds = std::mem::take(&mut self.kinds);
        let rows = if columns.is_empty() {
            self.wanted.columnless(kinds.len())?
        } else {
            RecordBatch::try_new(Arc::clone(&self.schema), columns)
                .map_err(|error| Error::bug(format!("decoded columns do not fit together: {error}")))?
        };
        ChangeBatch::new(rows, kinds)
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

struct DebeziumEncoder {
    options: JsonOptions,
}

impl DebeziumEncoder {
    fn open(options: &Options) -> Result<Box<dyn Encoder>> {
        if options.boolean("schema-include", false)? {
            return Err(Error::sql("debezium-json cannot write a schema")
                .hint("leave out 'debezium-json.schema-include' for a table that is written"));
        }
        Ok(Box::new(DebeziumEncoder { options: JsonOptions::read(NAME, options)? }))
    }
}

impl Encoder for DebeziumEncoder {
    fn encode(&mut self, batch: &ChangeBatch, to: &mut Vec<u8>) -> Result<()> {
        let writer = RowWriter::new(batch, &self.options)?;
        let ignore = self.options.ignore_null_fields;
        for row in 0..batch.len() {
            if batch.kind(row).is_retraction() {
                to.extend_from_slice(b"{\"before\":");
                writer.write(row, to)?;
                to.extend_from_slice(if ignore { b",\"op\":\"d\"}\n" } else { b",\"after\":null,\"op\":\"d\"}\n" });
            } else {
                to.extend_from_slice(if ignore { b"{\"after\":" } else { b"{\"before\":null,\"after\":" });
                writer.write(row, to)?;
                to.extend_from_slice(b",\"op\":\"c\"}\n");
            }
        }
        Ok(())
    }

    fn extension(&self) -> &'static str {
        "json"
    }
}
