//! The `canal-json` format: changes as Canal sends them, several rows a message.
//!
//! `{"data":[{…},{…}],"type":"INSERT"}` inserts the rows of `data`, `DELETE` deletes them, and `UPDATE` makes `data[n]` of
//! what it was before: itself with the columns of `old[n]`, which are those that were different. A column that `old[n]`
//! does not name has not changed, whatever the other rows of the message name. `CREATE` is passed over, and so are
//! messages of databases and tables that are not included.

use regex::bytes::Regex;

use super::decode::{self, Change, Dialect};
use super::encode::{self, Frame, Frames};
use super::message::{Place, elements, missing, parts};
use super::{MODES, SHARED_OPTIONS};
use crate::catalog::{DeclaredOption, OptionKind, Options};
use crate::changelog::Kind;
use crate::error::{Error, Result};
use crate::formats::fault::Fault;
use crate::formats::json::unescape;
use crate::formats::{Format, MakeDecoder};

const OPTIONS: &[DeclaredOption] = &[
    DeclaredOption {
        name: "database.include",
        kind: OptionKind::Text,
        default: None,
        required: false,
        help: "Reads only changes of databases whose whole name matches this regular expression.",
    },
    DeclaredOption {
        name: "table.include",
        kind: OptionKind::Text,
        default: None,
        required: false,
        help: "Reads only changes of tables whose whole name matches this regular expression.",
    },
    SHARED_OPTIONS[0],
    SHARED_OPTIONS[1],
    SHARED_OPTIONS[2],
    SHARED_OPTIONS[3],
    SHARED_OPTIONS[4],
    SHARED_OPTIONS[5],
];

/// Its line in the list.
pub(in crate::formats) const FORMAT: Format = Format {
    name: Canal::NAME,
    options: OPTIONS,
    modes: MODES,
    decoder: MakeDecoder::OfRecords(|options, wanted| decode::open(Canal::new(options)?, options, wanted)),
    encoder: |options, _| encode::open(Canal::NAME, &FRAMES, options),
};

struct Canal {
    database: Option<Regex>,
    table: Option<Regex>,
    /// The elements of `data` and `old` of the message at hand.
    rows: Vec<Place>,
    old: Vec<Place>,
    scratch: Vec<u8>,
}

impl Canal {
    fn new(options: &Options) -> Result<Canal> {
        let (database, table) = (pattern(options, "database.include")?, pattern(options, "table.include")?);
        Ok(Canal { database, table, rows: Vec::new(), old: Vec::new(), scratch: Vec::new() })
    }

    /// Whether the name at `place` is included.
    fn included(
        included: Option<&Regex>,
        line: &[u8],
        place: Option<Place>,
        scratch: &mut Vec<u8>,
        what: &'static str,
    ) -> Result<bool, Fault> {
        let Some(included) = included else { return Ok(true) };
        let (from, to) = place.ok_or(missing(line, what))?;
        if line[from] != b'"' {
            return Err(Fault::value(from, to, "is no name"));
        }
        scratch.clear();
        unescape(&line[from + 1..to - 1], scratch);
        Ok(included.is_match(scratch))
    }
}

/// The regular expression of an option, which must match a whole name.
fn pattern(options: &Options, name: &str) -> Result<Option<Regex>> {
    let Some(text) = options.get(name) else { return Ok(None) };
    match Regex::new(&format!("^(?:{text})$")) {
        Ok(pattern) => Ok(Some(pattern)),
        Err(error) => Err(Error::sql(format!("'{text}' is not a valid value for '{}.{name}'", Canal::NAME))
            .hint(format!("expected a regular expression: {error}"))),
    }
}

impl Dialect for Canal {
    const NAME: &'static str = "canal-json";

    fn changes(&mut self, line: &[u8], to: &mut Vec<Change>) -> Result<(), Fault> {
        let names: [&[u8]; 5] = [b"\"database\"", b"\"table\"", b"\"data\"", b"\"old\"", b"\"type\""];
        let [database, table, data, old, operation] = parts(line, names)?;
        let Canal { database: databases, table: tables, rows, old: partial, scratch } = self;
        if !Canal::included(databases.as_ref(), line, database, scratch, "has no 'database'")?
            || !Canal::included(tables.as_ref(), line, table, scratch, "has no 'table'")?
        {
            return Ok(());
        }
        let (from, end) = operation.ok_or(missing(line, "has no 'type': it is no Canal change"))?;
        let kind = match &line[from..end] {
            b"\"INSERT\"" => Kind::Insert,
            b"\"UPDATE\"" => Kind::UpdateAfter,
            b"\"DELETE\"" => Kind::Delete,
            b"\"CREATE\"" => return Ok(()),
            _ => return Err(Fault::value(from, end, "is no known 'type' (INSERT, UPDATE, DELETE, CREATE)")),
        };
        elements(line, data.ok_or(missing(line, "has no 'data'"))?, rows)?;
        if kind != Kind::UpdateAfter {
            to.extend(rows.iter().map(|row| Change::new(kind, *row)));
            return Ok(());
        }
        elements(line, old.ok_or(missing(line, "is an update without 'old'"))?, partial)?;
        if partial.len() < rows.len() {
            return Err(missing(line, "has fewer rows in 'old' than in 'data'"));
        }
        for (row, old) in rows.iter().zip(partial.iter()) {
            to.push(Change::before(*row, *old));
            to.push(Change::new(kind, *row));
        }
        Ok(())
    }
}

static FRAMES: Frames = Frames {
    insert: Frame { before: "{\"data\":[", after: "],\"type\":\"INSERT\"}" },
    delete: Frame { before: "{\"data\":[", after: "],\"type\":\"DELETE\"}" },
    bare_insert: Frame { before: "{\"data\":[", after: "],\"type\":\"INSERT\"}" },
    bare_delete: Frame { before: "{\"data\":[", after: "],\"type\":\"DELETE\"}" },
};
