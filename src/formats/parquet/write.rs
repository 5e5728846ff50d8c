//! Writing: rows are gathered into row groups, and the footer ends the file.

use std::sync::Arc;

use ::parquet::arrow::ArrowWriter;
use ::parquet::arrow::arrow_writer::ArrowWriterOptions;
use ::parquet::errors::ParquetError;
use ::parquet::file::properties::WriterProperties;
use arrow::array::RecordBatch;
use arrow::datatypes::{DataType, Field, FieldRef, Fields, Schema, SchemaRef, TimeUnit};

use super::fit::Fit;
use super::options::ParquetOptions;
use crate::catalog::Options;
use crate::changelog::ChangeBatch;
use crate::error::{Error, Result};
use crate::formats::Encoder;
use crate::formats::units::with_unit;
use crate::types::SqlType;

/// Writes one file.
pub(super) struct ParquetEncoder {
    /// Writes into memory, from where what is complete is taken.
    writer: ArrowWriter<Vec<u8>>,
    schema: SchemaRef,
    columns: Vec<Fit>,
}

impl ParquetEncoder {
    /// # Errors
    /// If an option is not valid, or a column's type has no form in Parquet.
    pub(super) fn open(options: &Options, schema: SchemaRef) -> Result<Box<dyn Encoder>> {
        let options = ParquetOptions::read(options)?;
        let mut fields = Vec::new();
        let mut columns = Vec::new();
        for field in schema.fields() {
            let no_form = || {
                Error::sql(format!(
                    "column '{}' of type {} has no form in Parquet",
                    field.name(),
                    SqlType::of_field(field)
                ))
                .hint("CAST it to a type that has one, such as STRING")
            };
            let in_file = file_field(field, options.unit).ok_or_else(no_form)?;
            columns.push(Fit::new(field, &in_file, None).ok_or_else(no_form)?);
            fields.push(in_file);
        }
        let schema = Arc::new(Schema::new(fields));
        let properties = WriterProperties::builder()
            .set_created_by(concat!("ebbflow version ", env!("CARGO_PKG_VERSION")).to_string())
            .set_compression(options.compression)
            .set_max_row_group_row_count(None)
            .set_max_row_group_bytes(Some(options.block_bytes))
            .set_data_page_size_limit(options.page_bytes)
            .set_dictionary_page_size_limit(options.dictionary_bytes)
            .set_dictionary_enabled(options.dictionary)
            .set_writer_version(options.version)
            // `element` and `key_value` rather than Arrow's names for the parts of lists and maps.
            .set_coerce_types(true)
            .build();
        let given = ArrowWriterOptions::new().with_properties(properties).with_skip_arrow_metadata(true);
        let writer = ArrowWriter::try_new_with_options(Vec::new(), Arc::clone(&schema), given).map_err(failed)?;
        Ok(Box::new(ParquetEncoder { writer, schema, columns }))
    }

    fn take(&mut self, to: &mut Vec<u8>) {
        to.append(self.writer.inner_mut());
    }
}

impl Encoder for ParquetEncoder {
    fn encode(&mut self, batch: &ChangeBatch, to: &mut Vec<u8>) -> Result<()> {
        let columns = self
            .columns
            .iter()
            .zip(batch.rows().columns())
            .zip(self.schema.fields())
            .map(|((fit, column), field)| {
                fit.apply(column).map_err(|error| error.context(format!("column '{}'", field.name())))
            })
            .collect::<Result<Vec<_>>>()?;
        let rows = RecordBatch::try_new(Arc::clone(&self.schema), columns)
            .map_err(|error| Error::bug(format!("the columns of a file do not fit together: {error}")))?;
        self.writer.write(&rows).map_err(failed)?;
        self.take(to);
        Ok(())
    }

    fn finish(&mut self, to: &mut Vec<u8>) -> Result<()> {
        self.writer.finish().map_err(failed)?;
        self.take(to);
        Ok(())
    }

    fn buffered(&self) -> usize {
        self.writer.in_progress_size()
    }

    fn extension(&self) -> &'static str {
        "parquet"
    }
}

fn failed(error: ParquetError) -> Error {
    Error::data(format!("the rows cannot be written as Parquet: {error}"))
}

/// The field as it stands in a file; `None` for what Parquet has no type for.
fn file_field(field: &Field, unit: Option<TimeUnit>) -> Option<Field> {
    Some(Field::new(field.name(), file_type(field.data_type(), unit)?, field.is_nullable()))
}

fn file_type(data_type: &DataType, unit: Option<TimeUnit>) -> Option<DataType> {
    let inside = |field: &FieldRef| file_field(field, unit).map(Arc::new);
    Some(match data_type {
        DataType::Timestamp(own, _) => {
            let lossless = if *own == TimeUnit::Nanosecond { TimeUnit::Nanosecond } else { TimeUnit::Microsecond };
            with_unit(data_type, unit.unwrap_or(lossless))
        }
        DataType::Time32(_) => with_unit(data_type, TimeUnit::Millisecond),
        DataType::List(element) => DataType::List(inside(element)?),
        DataType::Map(entries, sorted) => DataType::Map(inside(entries)?, *sorted),
        DataType::Struct(fields) => DataType::Struct(fields.iter().map(inside).collect::<Option<Fields>>()?),
        DataType::Interval(_) | DataType::Duration(_) | DataType::Null => return None,
        other => other.clone(),
    })
}
