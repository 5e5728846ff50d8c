//! One JSON object to one row: a first pass finds where the wanted values stand and checks the whole object, a second
//! one appends them to the columns. So a damaged line leaves no half a row behind.

use arrow::array::ArrayRef;
use arrow::datatypes::SchemaRef;

use super::options::JsonOptions;
use super::scan::{Scanner, unescape};
use super::value::append_value;
use crate::error::Result;
use crate::formats::builder::ColumnBuilder;
use crate::formats::fault::Fault;

/// Reads objects into columns.
pub(in crate::formats) struct RowReader {
    names: Vec<Vec<u8>>,
    columns: Vec<ColumnBuilder>,
    /// Where the wanted values of the object at hand stand.
    places: Vec<Option<(usize, usize)>>,
    /// What stood at each position of the last object: fields mostly come in the same order, so comparing with the key
    /// that stood here before replaces a search.
    expected: Vec<ExpectedKey>,
    options: JsonOptions,
    scratch: Vec<u8>,
    rows: usize,
}

struct ExpectedKey {
    /// The key as it stands in the text, with quotes.
    quoted: Vec<u8>,
    /// The column it fills.
    column: Option<usize>,
}

impl RowReader {
    /// A reader of the columns of `schema`.
    ///
    /// # Errors
    /// If a column's type has no JSON form.
    pub(in crate::formats) fn new(schema: &SchemaRef, options: JsonOptions) -> Result<RowReader> {
        Ok(RowReader {
            names: schema.fields().iter().map(|field| field.name().as_bytes().to_vec()).collect(),
            columns: schema.fields().iter().map(|field| ColumnBuilder::new(field)).collect::<Result<_>>()?,
            places: vec![None; schema.fields().len()],
            expected: Vec::new(),
            options,
            scratch: Vec::new(),
            rows: 0,
        })
    }

    /// Rows appended since the last [`RowReader::finish`].
    pub(in crate::formats) fn rows(&self) -> usize {
        self.rows
    }

    /// First pass: checks the object at the scanner's place and finds the wanted values. The last of several values
    /// under one key counts.
    pub(in crate::formats) fn scan(&mut self, scanner: &mut Scanner<'_>) -> Result<(), Fault> {
        self.places.fill(None);
        self.scan_over(scanner)
    }

    /// As [`RowReader::scan`], but columns that this object does not name keep the value found in the object scanned
    /// before it: a row of which only what is different is given.
    pub(in crate::formats) fn scan_over(&mut self, scanner: &mut Scanner<'_>) -> Result<(), Fault> {
        let from = scanner.at;
        if scanner.peek() != b'{' {
            return Err(Fault::syntax(from, "expected a JSON object"));
        }
        scanner.at += 1;
        scanner.space();
        if scanner.peek() == b'}' {
            scanner.at += 1;
        } else {
            let mut position = 0;
            loop {
                let column = self.key(scanner, position)?;
                scanner.punctuation(b':', "expected ':'")?;
                let place = scanner.value(1)?;
                if let Some(column) = column {
                    self.places[column] = Some(place);
                }
                position += 1;
                if !scanner.more(b'}', "expected ',' or '}'")? {
                    break;
                }
            }
        }
        if self.options.fail_on_missing_field && self.places.iter().any(Option::is_none) {
            return Err(Fault::value(from, scanner.at, "has no value for a declared column"));
        }
        Ok(())
    }

    /// Passes over the key at `position` of the object; gives the column it fills.
    #[inline]
    fn key(&mut self, scanner: &mut Scanner<'_>, position: usize) -> Result<Option<usize>, Fault> {
        if let Some(expected) = self.expected.get(position)
            && scanner.text[scanner.at..].starts_with(&expected.quoted)
        {
            scanner.at += expected.quoted.len();
            return Ok(expected.column);
        }
        self.unexpected_key(scanner, position)
    }

    #[cold]
    fn unexpected_key(&mut self, scanner: &mut Scanner<'_>, position: usize) -> Result<Option<usize>, Fault> {
        let from = scanner.at;
        scanner.string()?;
        let quoted = &scanner.text[from..scanner.at];
        self.scratch.clear();
        unescape(&quoted[1..quoted.len() - 1], &mut self.scratch);
        let column = self.names.iter().position(|name| *name == self.scratch);
        // Keys that are data (a map written as an object) must not be remembered without bound.
        if position < 1_024 && quoted.len() < 256 {
            if let Some(key) = self.expected.get_mut(position) {
                key.quoted.clear();
                key.quoted.extend_from_slice(quoted);
                key.column = column;
            } else if position == self.expected.len() {
                self.expected.push(ExpectedKey { quoted: quoted.to_vec(), column });
            }
        }
        Ok(column)
    }

    /// Second pass: appends the values found in `text`. On a fault gives the column too; the row is then unfinished
    /// and the reader must not be used further.
    pub(in crate::formats) fn append(&mut self, text: &[u8]) -> Result<(), (usize, Fault)> {
        let RowReader { columns, places, options, scratch, .. } = self;
        for (index, (column, place)) in columns.iter_mut().zip(places.iter()).enumerate() {
            let appended = match place {
                Some(place) => append_value(column, text, *place, options, scratch),
                None => column
                    .append_null()
                    .map_err(|_| Fault::value(0, text.len(), "has no value for a column that is NOT NULL")),
            };
            appended.map_err(|fault| (index, fault))?;
        }
        self.rows += 1;
        Ok(())
    }

    /// Takes the columns.
    pub(in crate::formats) fn finish(&mut self) -> Result<Vec<ArrayRef>> {
        self.rows = 0;
        self.columns.iter_mut().map(ColumnBuilder::finish).collect()
    }
}
