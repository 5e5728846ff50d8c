//! Formats: bytes to rows and rows to bytes.
//!
//! A format is a file with its declared options and one line in the list. A [`Decoder`] is fed whole records' bytes (the
//! connector finds where a split begins; the format finds where a record ends) and builds typed columns directly, only
//! those that are wanted. An [`Encoder`] writes rows. Formats of whole files (`files`) get the file itself instead.
//!
//! To add a format: a file with its declared options, its decoder and encoder, and a `FORMAT` constant; one line in
//! [`FORMATS`]; its tests. Values of all types are read and written by the shared parts below (`text`, `builder`,
//! `write`, `view`), so a format only has to find where they stand.

mod avro;
mod base64;
mod builder;
mod cdc;
mod csv;
mod fault;
mod files;
mod json;
mod lines;
#[cfg(test)]
mod mutation;
mod parquet;
mod raw;
#[cfg(test)]
mod testing;
mod text;
mod units;
mod view;
mod write;

pub(crate) use builder::ColumnBuilder;
pub(crate) use files::{BlockPosition, BlockReader, FileBytes, FileToRead};
pub(crate) use text::TimestampStyle;
pub(crate) use view::View;

use std::sync::Arc;

use arrow::array::{ArrayRef, RecordBatch, RecordBatchOptions};
use arrow::datatypes::SchemaRef;

use crate::catalog::{DeclaredOption, Options};
use crate::changelog::{ChangeBatch, ChangelogMode};
use crate::error::{Error, Result, nearest};

/// One line of the list of formats.
pub struct Format {
    /// The name in `'format' = '…'`.
    pub name: &'static str,
    /// Its options, named without the format's prefix (`field-delimiter` for `csv.field-delimiter`).
    pub options: &'static [DeclaredOption],
    /// The kinds of change it reads and writes.
    pub modes: FormatModes,
    /// Makes a decoder.
    pub decoder: MakeDecoder,
    /// Makes an encoder of one file, or one stream, of rows of the given schema; the options are those of
    /// [`Format::own_options`].
    pub encoder: fn(&Options, SchemaRef) -> Result<Box<dyn Encoder>>,
}

/// How a format is read; the options are those of [`Format::own_options`].
#[derive(Clone, Copy)]
pub enum MakeDecoder {
    /// Records one after another, which may come in pieces from anywhere.
    OfRecords(fn(&Options, Wanted) -> Result<Box<dyn Decoder>>),
    /// Whole files.
    OfFiles(fn(FileToRead<'_>) -> Result<Box<dyn BlockReader>>),
}

/// All formats.
pub static FORMATS: &[Format] = &[
    csv::FORMAT,
    json::FORMAT,
    cdc::DEBEZIUM,
    cdc::CANAL,
    cdc::MAXWELL,
    cdc::OGG,
    raw::FORMAT,
    parquet::FORMAT,
    avro::FORMAT,
];

/// The format of this name.
pub fn find(name: &str) -> Option<&'static Format> {
    FORMATS.iter().find(|format| format.name == name)
}

/// The format of this name, or an error that names the nearest.
///
/// # Errors
/// If there is none.
pub fn require(name: &str) -> Result<&'static Format> {
    find(name).ok_or_else(|| {
        let names = || FORMATS.iter().map(|format| format.name);
        Error::sql(format!("there is no format '{name}'")).hint(match nearest(name, names()) {
            Some(near) => format!("did you mean '{near}'?"),
            None => format!("the formats are: {}", names().collect::<Vec<_>>().join(", ")),
        })
    })
}

impl Format {
    /// The options of a table that begin with the format's prefix, without it.
    pub fn own_options(&self, options: &Options) -> Options {
        let own = options.0.iter().filter_map(|(name, value)| {
            let name = name.strip_prefix(self.name)?.strip_prefix('.')?;
            Some((name.to_string(), value.clone()))
        });
        Options(own.collect())
    }

    /// Makes the decoder of a stream of records.
    ///
    /// # Errors
    /// If the format is one of whole files, or refuses the columns or its options.
    pub fn record_decoder(&self, options: &Options, wanted: Wanted) -> Result<Box<dyn Decoder>> {
        match self.decoder {
            MakeDecoder::OfRecords(make) => make(options, wanted),
            MakeDecoder::OfFiles(_) => Err(self.only_in_files()),
        }
    }

    /// Makes the encoder of a stream of records.
    ///
    /// # Errors
    /// If the format is one of whole files, or refuses the columns or its options.
    pub fn record_encoder(&self, options: &Options, schema: SchemaRef) -> Result<Box<dyn Encoder>> {
        match self.decoder {
            MakeDecoder::OfRecords(_) => (self.encoder)(options, schema),
            MakeDecoder::OfFiles(_) => Err(self.only_in_files()),
        }
    }

    fn only_in_files(&self) -> Error {
        Error::sql(format!("format '{}' stands in whole files, not in a stream of rows", self.name))
            .hint("use it with connector 'filesystem'; csv and json can be streamed")
    }

    /// Checks the format's options of a table: names, forms and values.
    ///
    /// # Errors
    /// On the first fault, with the nearest valid name.
    pub fn check(&self, options: &Options) -> Result<()> {
        let own = self.own_options(options);
        own.check(&format!("format '{}'", self.name), self.options)
    }
}

/// Turns bytes into rows. A decoder is fed a split's bytes in order from a record's start.
pub trait Decoder: Send {
    /// Decodes records from the front of `bytes`, until the batch is full or no whole record is left. Returns how many
    /// bytes were consumed, always whole records. With `end`, the bytes are the split's last: a last record without a
    /// line end is whole too.
    ///
    /// # Errors
    /// On a malformed record that may not be skipped: names line and column; the connector adds the file.
    fn decode(&mut self, bytes: &[u8], end: bool) -> Result<usize>;

    /// Rows waiting in the decoder.
    fn pending_rows(&self) -> usize;

    /// Takes the rows decoded so far, with the projected columns.
    ///
    /// # Errors
    /// If columns cannot be built.
    fn flush(&mut self) -> Result<ChangeBatch>;

    /// Tells the number of lines before the bytes that come next, for messages (after a restart).
    fn set_line(&mut self, line: u64);

    /// The number of lines consumed so far.
    fn line(&self) -> u64;

    /// Records skipped because they were malformed.
    fn skipped(&self) -> u64;
}

/// Turns rows into bytes.
pub trait Encoder: Send {
    /// Appends the rows to `to`. Kinds are given only to formats that can write them.
    ///
    /// # Errors
    /// If a value has no form in this format.
    fn encode(&mut self, batch: &ChangeBatch, to: &mut Vec<u8>) -> Result<()>;

    /// Appends what ends a file. Nothing is encoded after it.
    ///
    /// # Errors
    /// If rows that were gathered cannot be written.
    fn finish(&mut self, _to: &mut Vec<u8>) -> Result<()> {
        Ok(())
    }

    /// Bytes, about, that the rows gathered so far will take when they are written.
    fn buffered(&self) -> usize {
        0
    }

    /// File name extension without the dot.
    fn extension(&self) -> &'static str;
}

/// The kinds a format reads or writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FormatModes {
    /// Kinds it delivers when read.
    pub reads: ChangelogMode,
    /// Kinds it takes when written.
    pub writes: ChangelogMode,
}

/// What a decoder builds: the columns of `schema` picked by `projection` (indices into `schema`, ascending).
#[derive(Debug, Clone)]
pub struct Wanted {
    /// All physical columns of the table, in order.
    pub schema: SchemaRef,
    /// Which to deliver.
    pub projection: Vec<usize>,
}

impl Wanted {
    /// The schema of the delivered columns.
    ///
    /// # Errors
    /// If the projection does not fit the schema.
    pub fn projected(&self) -> Result<SchemaRef> {
        Ok(Arc::new(self.schema.project(&self.projection)?))
    }

    /// The batch of `count` rows that was decoded into `columns`, whose schema is [`Wanted::projected`]. There may be no
    /// columns at all: a count needs none.
    ///
    /// # Errors
    /// If the columns do not fit the schema.
    pub fn batch(&self, schema: &SchemaRef, columns: Vec<ArrayRef>, count: usize) -> Result<RecordBatch> {
        let options = RecordBatchOptions::new().with_row_count(Some(count));
        RecordBatch::try_new_with_options(Arc::clone(schema), columns, &options)
            .map_err(|error| Error::bug(format!("decoded columns do not fit together: {error}")))
    }
}
