//! Reading: the footer once, then the row groups of a range one after another.

use std::io::Read;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use ::parquet::arrow::ProjectionMask;
use ::parquet::arrow::arrow_reader::{
    ArrowReaderMetadata, ArrowReaderOptions, ParquetRecordBatchReader, ParquetRecordBatchReaderBuilder,
};
use ::parquet::basic::{Compression, Type as PhysicalType};
use ::parquet::errors::ParquetError;
use ::parquet::file::metadata::{ParquetMetaData, RowGroupMetaData};
use ::parquet::file::reader::{ChunkReader, Length};
use arrow::array::{ArrayRef, RecordBatch, new_null_array};
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use bytes::Bytes;

use super::fit::Fit;
use super::options::ParquetOptions;
use crate::changelog::ChangeBatch;
use crate::error::{Error, Result};
use crate::formats::Wanted;
use crate::formats::files::{BlockPosition, BlockReader, FileBytes, FileToRead, bytes_at, missing, unfit};
use crate::limits::BATCH_BYTES;
use crate::types::SqlType;

/// Reads a file's row groups.
pub(super) struct ParquetReader {
    file: File,
    metadata: ArrowReaderMetadata,
    wanted: Wanted,
    schema: SchemaRef,
    /// The columns of the file to decode.
    mask: ProjectionMask,
    /// For each wanted column its place among the decoded ones and its way into the table's type.
    columns: Vec<Option<(usize, Fit)>>,
    batch_rows: usize,
    /// Row groups of the range, by number and offset of their first byte, that are not read to their end.
    groups: std::collections::VecDeque<(usize, u64)>,
    /// Rows of the first of them that have been delivered.
    rows: u64,
    /// Its reader, if it has been opened.
    open: Option<ParquetRecordBatchReader>,
    /// Where to go on when all have been read.
    end: u64,
}

impl ParquetReader {
    /// # Errors
    /// If an option is not valid, the file is damaged, or its columns do not fit.
    pub(super) fn open(to_read: FileToRead<'_>) -> Result<Box<dyn BlockReader>> {
        let options = ParquetOptions::read(to_read.options)?;
        let file = File(to_read.bytes);
        let wanted = to_read.wanted;
        let schema = wanted.projected()?;
        let metadata = load(&file, &wanted)?;
        check(metadata.metadata(), file.len())?;
        let roots = metadata.parquet_schema().root_schema().get_fields();
        let mut places: Vec<usize> = Vec::new();
        for field in schema.fields() {
            if let Some(root) = roots.iter().position(|root| root.name() == field.name()) {
                places.push(root);
            }
        }
        places.sort_unstable();
        let columns = schema
            .fields()
            .iter()
            .map(|field| {
                let Some(root) = roots.iter().position(|root| root.name() == field.name()) else {
                    return if field.is_nullable() { Ok(None) } else { Err(missing(field.name())) };
                };
                let in_file = metadata.schema().field(root);
                // Local times stand in 96-bit timestamps as instants.
                let local = is_96_bit(&roots[root]) && !options.utc;
                let fit = Fit::new(in_file, field, local.then_some(to_read.zone)).ok_or_else(|| {
                    unfit(field.name(), &SqlType::from_arrow(in_file.data_type()), &SqlType::of_field(field))
                })?;
                let place = places.iter().position(|place| *place == root);
                Ok(Some((place.ok_or_else(|| Error::bug("a column that is not decoded"))?, fit)))
            })
            .collect::<Result<Vec<_>>>()?;
        let mask = ProjectionMask::roots(metadata.parquet_schema(), places);
        check_codecs(metadata.metadata(), &mask)?;
        let groups = metadata
            .metadata()
            .row_groups()
            .iter()
            .enumerate()
            .map(|(number, group)| (number, first_byte(group)))
            .filter(|(_, offset)| to_read.range.contains(offset) && *offset >= to_read.at.offset)
            .collect();
        Ok(Box::new(ParquetReader {
            mask,
            file,
            metadata,
            wanted,
            schema,
            columns,
            batch_rows: options.batch_rows,
            groups,
            rows: to_read.at.rows,
            open: None,
            end: to_read.range.end,
        }))
    }

    /// The reader of a row group, from the first row that has not been delivered.
    fn open_group(&self, number: usize) -> Result<ParquetRecordBatchReader> {
        let group = self.metadata.metadata().row_group(number);
        let rows = u64::try_from(group.num_rows()).unwrap_or_default();
        // Not more bytes at once than any other format's batch has.
        let bytes = (0..group.num_columns())
            .filter(|column| self.mask.leaf_included(*column))
            .map(|column| {
                let column = group.column(column);
                // A text that is kept in a dictionary takes its length again in every row.
                let texts = column.unencoded_byte_array_data_bytes().unwrap_or_default();
                u64::try_from(column.uncompressed_size().max(texts)).unwrap_or_default()
            })
            .fold(0, u64::saturating_add);
        let per_row = (bytes / rows.max(1)).max(1);
        let batch_rows = usize::try_from(BATCH_BYTES as u64 / per_row).unwrap_or(1).clamp(1, self.batch_rows);
        guarded(|| {
            ParquetRecordBatchReaderBuilder::new_with_metadata(self.file.clone(), self.metadata.clone())
                .with_row_groups(vec![number])
                .with_projection(self.mask.clone())
                .with_batch_size(batch_rows)
                .with_offset(usize::try_from(self.rows).unwrap_or(usize::MAX))
                .build()
        })
    }

    /// The next rows of the row group at hand; `None` at its end.
    fn next(&mut self, number: usize) -> Result<Option<ChangeBatch>> {
        if self.open.is_none() {
            self.open = Some(self.open_group(number)?);
        }
        let expected = self.metadata.metadata().row_group(number).num_rows();
        let Some(open) = &mut self.open else { return Ok(None) };
        let Some(batch) = guarded(|| open.next().transpose().map_err(ParquetError::from))? else {
            if i64::try_from(self.rows) != Ok(expected) {
                return Err(Error::data(format!("it has {} rows, and should have {expected}", self.rows)));
            }
            return Ok(None);
        };
        let count = batch.num_rows();
        let columns = self
            .columns
            .iter()
            .zip(self.schema.fields())
            .map(|(place, field)| fit_column(place.as_ref(), field, &batch, self.rows))
            .collect::<Result<Vec<_>>>()?;
        self.rows += count as u64;
        Ok(Some(ChangeBatch::inserts(self.wanted.batch(&self.schema, columns, count)?)))
    }
}

/// One column of a batch that begins with row `first` of its row group.
fn fit_column(place: Option<&(usize, Fit)>, field: &Field, batch: &RecordBatch, first: u64) -> Result<ArrayRef> {
    let Some((place, fit)) = place else { return Ok(new_null_array(field.data_type(), batch.num_rows())) };
    let column = batch.column(*place);
    let fault = |error: Error| error.context(format!("column '{}'", field.name()));
    if !field.is_nullable()
        && let Some(row) = (0..column.len()).find(|row| column.is_null(*row))
    {
        return Err(fault(Error::data(format!("row {} is NULL, and the column is NOT NULL", first + row as u64))));
    }
    fit.apply(column).map_err(fault)
}

impl BlockReader for ParquetReader {
    fn read(&mut self) -> Result<Option<ChangeBatch>> {
        while let Some((number, _)) = self.groups.front().copied() {
            match self.next(number).map_err(|error| error.context(format!("row group {number}")))? {
                Some(batch) => return Ok(Some(batch)),
                None => {
                    self.groups.pop_front();
                    self.rows = 0;
                    self.open = None;
                }
            }
        }
        Ok(None)
    }

    fn position(&self) -> BlockPosition {
        match self.groups.front() {
            Some((_, offset)) => BlockPosition { offset: *offset, rows: self.rows },
            None => BlockPosition { offset: self.end, rows: 0 },
        }
    }
}

/// Reads the footer. 96-bit timestamps are read in the unit of the table's column, since those of all years do not fit
/// nanoseconds.
fn load(file: &File, wanted: &Wanted) -> Result<ArrowReaderMetadata> {
    let options = ArrowReaderOptions::new().with_skip_arrow_metadata(true);
    let metadata = guarded(|| ArrowReaderMetadata::load(file, options))
        .map_err(|error| error.hint("a Parquet file ends with its footer: was it written to its end?"))?;
    let roots = metadata.parquet_schema().root_schema().get_fields();
    let mut any = false;
    let fields: Vec<Field> = metadata
        .schema()
        .fields()
        .iter()
        .enumerate()
        .map(|(index, field)| {
            let column = wanted.schema.field_with_name(field.name()).ok().map(Field::data_type);
            match column {
                Some(DataType::Timestamp(unit, _)) if roots.get(index).is_some_and(is_96_bit) => {
                    any = true;
                    field.as_ref().clone().with_data_type(DataType::Timestamp(*unit, None))
                }
                _ => field.as_ref().clone(),
            }
        })
        .collect();
    if !any {
        return Ok(metadata);
    }
    let schema = Schema::new_with_metadata(fields, metadata.schema().metadata().clone());
    let options = ArrowReaderOptions::new().with_schema(Arc::new(schema));
    guarded(|| ArrowReaderMetadata::try_new(Arc::clone(metadata.metadata()), options))
}

fn is_96_bit(field: &::parquet::schema::types::TypePtr) -> bool {
    field.is_primitive() && field.get_physical_type() == PhysicalType::INT96
}

/// The offset of a row group's first byte.
fn first_byte(group: &RowGroupMetaData) -> u64 {
    let offsets = group.columns().iter().map(|column| {
        let data = column.data_page_offset();
        column.dictionary_page_offset().map_or(data, |dictionary| dictionary.min(data))
    });
    u64::try_from(offsets.min().unwrap_or_default()).unwrap_or_default()
}

/// What a footer says must not contradict itself: a damaged number of rows would otherwise be believed.
fn check(metadata: &ParquetMetaData, length: u64) -> Result<()> {
    let fault = |what: String| Err(Error::data(format!("the footer is damaged: {what}")));
    let mut rows = 0i64;
    let mut before = None;
    for (number, group) in metadata.row_groups().iter().enumerate() {
        if group.num_rows() < 0 {
            return fault(format!("row group {number} has {} rows", group.num_rows()));
        }
        rows = rows.saturating_add(group.num_rows());
        let start = first_byte(group);
        if before.is_some_and(|before| start <= before) && group.num_columns() > 0 {
            return fault(format!("row group {number} begins before the one before it"));
        }
        before = Some(start);
        for column in group.columns() {
            // A dictionary comes before the pages that use it.
            let data = column.data_page_offset();
            let begin = column.dictionary_page_offset().map_or(data, |dictionary| dictionary.min(data));
            let end = begin.checked_add(column.compressed_size()).and_then(|end| u64::try_from(end).ok());
            let inside = begin >= 0 && column.compressed_size() >= 0 && end.is_some_and(|end| end <= length);
            if !inside {
                let path = column.column_path().string();
                return fault(format!("column '{path}' of row group {number} does not lie in the file"));
            }
            let repeated = column.column_descr().max_rep_level() > 0;
            if !repeated && column.num_values() != group.num_rows() {
                let (path, values) = (column.column_path().string(), column.num_values());
                return fault(format!(
                    "column '{path}' has {values} values in row group {number} of {} rows",
                    group.num_rows()
                ));
            }
        }
    }
    if rows != metadata.file_metadata().num_rows() {
        return fault(format!("its row groups have {rows} rows, and it says {}", metadata.file_metadata().num_rows()));
    }
    Ok(())
}

/// Checks that what is to be read is compressed in a way that can be undone here.
fn check_codecs(metadata: &ParquetMetaData, mask: &ProjectionMask) -> Result<()> {
    for (number, group) in metadata.row_groups().iter().enumerate() {
        for (index, column) in group.columns().iter().enumerate() {
            if mask.leaf_included(index) && matches!(column.compression(), Compression::BROTLI(_) | Compression::LZO) {
                let (path, codec) = (column.column_path().string(), column.compression());
                let what =
                    format!("row group {number}: column '{path}' is compressed with {codec}, which is not supported");
                return Err(Error::data(what).hint("write the file with SNAPPY, GZIP, ZSTD or LZ4_RAW"));
            }
        }
    }
    Ok(())
}

/// Runs a step of the decoder, which gives up on some damaged files by a panic.
fn guarded<T>(step: impl FnOnce() -> ::parquet::errors::Result<T>) -> Result<T> {
    match catch_unwind(AssertUnwindSafe(step)) {
        Ok(done) => done.map_err(damaged),
        Err(panic) => {
            let text = panic.downcast_ref::<String>().map(String::as_str).or_else(|| panic.downcast_ref().copied());
            Err(Error::data(format!("it is damaged: {}", text.unwrap_or("it cannot be decoded"))))
        }
    }
}

/// What the decoder says of a file, without the names of the layers it came through.
fn damaged(error: ParquetError) -> Error {
    let text = error.to_string();
    let mut rest = text.as_str();
    while let Some(inner) = ["External: ", "Parquet argument error: ", "Parquet error: ", "EOF: ", "Arrow: "]
        .iter()
        .find_map(|layer| rest.strip_prefix(layer))
    {
        rest = inner;
    }
    Error::data(rest)
}

/// The file as the decoder wants it.
#[derive(Clone)]
struct File(Arc<dyn FileBytes>);

impl Length for File {
    fn len(&self) -> u64 {
        self.0.length()
    }
}

impl ChunkReader for File {
    type T = From;

    fn get_read(&self, start: u64) -> ::parquet::errors::Result<From> {
        Ok(From { file: Arc::clone(&self.0), offset: start, buffer: Vec::new(), at: 0 })
    }

    fn get_bytes(&self, start: u64, length: usize) -> ::parquet::errors::Result<Bytes> {
        bytes_at(&*self.0, start, length as u64).map(Bytes::from).map_err(|error| ParquetError::EOF(error.to_string()))
    }
}

/// Bytes read at once where a page header is looked for.
const PIECE_BYTES: u64 = 4 << 10;

/// Reads on from a place of the file.
struct From {
    file: Arc<dyn FileBytes>,
    offset: u64,
    buffer: Vec<u8>,
    at: usize,
}

impl Read for From {
    fn read(&mut self, to: &mut [u8]) -> std::io::Result<usize> {
        if self.at == self.buffer.len() {
            let left = self.file.length().saturating_sub(self.offset).min(PIECE_BYTES);
            self.buffer = bytes_at(&*self.file, self.offset, left)?;
            self.offset += left;
            self.at = 0;
        }
        let length = to.len().min(self.buffer.len() - self.at);
        to[..length].copy_from_slice(&self.buffer[self.at..self.at + length]);
        self.at += length;
        Ok(length)
    }
}
