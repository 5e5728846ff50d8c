//! The columns that are the same for a whole file: partition columns, which stand in its path, and metadata.

use std::sync::Arc;

use arrow::array::{ArrayRef, RecordBatch, RecordBatchOptions, UInt32Array};
use arrow::datatypes::SchemaRef;

use super::partition;
use super::source::{Origin, ReadPlan};
use crate::changelog::ChangeBatch;
use crate::error::{Error, Result};
use crate::formats::{ColumnBuilder, TimestampStyle};
use crate::types::SqlType;

/// What a reader puts beside the columns of a file.
pub(super) struct Constants {
    /// The columns delivered.
    schema: SchemaRef,
    /// Single values of the columns that are the same for the whole file, in the order of the projection.
    values: Vec<Option<ArrayRef>>,
}

impl Constants {
    /// Of the file at `path`.
    ///
    /// # Errors
    /// If a value does not fit its column, or the path has none.
    pub(super) fn new(
        plan: &ReadPlan,
        projection: &[usize],
        schema: &SchemaRef,
        path: &str,
        metadata: &std::fs::Metadata,
    ) -> Result<Constants> {
        let wants_partitions = projection.iter().any(|index| matches!(plan.origins[*index], Origin::Partition(_)));
        let partitions = if wants_partitions {
            partition::values(path, &plan.partition_columns, &plan.default_name)?
        } else {
            Vec::new()
        };
        let values = projection
            .iter()
            .zip(schema.fields())
            .map(|(index, field)| {
                let text = match plan.origins[*index] {
                    Origin::File(_) => return Ok(None),
                    Origin::Partition(column) => partitions[column].clone(),
                    Origin::Metadata(key) => {
                        let sql_type = SqlType::of_field(field);
                        Some(metadata_text(key, path, metadata, &sql_type, plan.zone).into_bytes())
                    }
                };
                let mut builder = ColumnBuilder::new(field)?;
                match &text {
                    None => builder.append_null(),
                    Some(text) => builder
                        .append_text(text, TimestampStyle::Sql)
                        .or_else(|_| builder.append_text(text, TimestampStyle::Iso)),
                }
                .map_err(|refused| {
                    let shown = text.as_deref().map_or("NULL".into(), String::from_utf8_lossy);
                    Error::data(format!("file '{path}': column '{}': '{shown}' {refused}", field.name()))
                })?;
                Ok(Some(builder.finish()?))
            })
            .collect::<Result<_>>()?;
        Ok(Constants { schema: Arc::clone(schema), values })
    }

    /// Puts the file's columns and the constant ones side by side.
    ///
    /// # Errors
    /// If they do not fit together, which only a bug can cause.
    pub(super) fn assemble(&self, decoded: ChangeBatch) -> Result<ChangeBatch> {
        if self.values.iter().all(Option::is_none) {
            return Ok(decoded);
        }
        let mut file_columns = decoded.rows().columns().iter();
        let zeros = UInt32Array::from(vec![0; decoded.len()]);
        let columns = self
            .values
            .iter()
            .map(|constant| match constant {
                Some(value) => Ok(arrow::compute::take(value, &zeros, None)?),
                None => file_columns.next().cloned().ok_or_else(|| Error::bug("a file column is missing")),
            })
            .collect::<Result<Vec<_>>>()?;
        let options = RecordBatchOptions::new().with_row_count(Some(decoded.len()));
        decoded.with_rows(RecordBatch::try_new_with_options(Arc::clone(&self.schema), columns, &options)?)
    }
}

/// A metadata value as text that a column of `sql_type` can be read from, cut to the length of a `CHAR` or `VARCHAR`.
fn metadata_text(
    key: usize,
    path: &str,
    metadata: &std::fs::Metadata,
    sql_type: &SqlType,
    zone: crate::types::TimeZone,
) -> String {
    let text = match key {
        0 => path.to_string(),
        1 => path.rsplit('/').next().unwrap_or(path).to_string(),
        2 => metadata.len().to_string(),
        _ => {
            let modified = metadata.modified().unwrap_or(std::time::UNIX_EPOCH);
            let instant = chrono::DateTime::<chrono::Utc>::from(modified);
            match sql_type {
                SqlType::TimestampLtz(_) => instant.format("%Y-%m-%d %H:%M:%S%.3fZ").to_string(),
                _ => {
                    let local = instant + chrono::Duration::seconds(zone.offset_at(instant.timestamp()));
                    local.format("%Y-%m-%d %H:%M:%S%.3f").to_string()
                }
            }
        }
    };
    match sql_type {
        SqlType::Char(length) => {
            let cut: String = text.chars().take(*length as usize).collect();
            format!("{cut:width$}", width = *length as usize)
        }
        SqlType::Varchar(length) => text.chars().take(*length as usize).collect(),
        _ => text,
    }
}
