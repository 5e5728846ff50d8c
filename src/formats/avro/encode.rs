//! Writing: a header, then blocks of rows.

use arrow::datatypes::{Field, SchemaRef};
use rand::RngExt;

use super::container::{MAGIC, MARKER};
use super::cursor::{write_bytes, write_long};
use super::derive::{Parts, Shape, schema};
use super::options::AvroOptions;
use crate::catalog::Options;
use crate::changelog::ChangeBatch;
use crate::error::{Error, Result};
use crate::formats::Encoder;
use crate::formats::view::{Cells, View, range};

/// The size at which a block ends, before compression: what Avro's own writers take.
const BLOCK_BYTES: usize = 64_000;

/// Writes one file.
pub(super) struct AvroEncoder {
    options: AvroOptions,
    /// The schema as the header has it.
    json: String,
    shapes: Vec<Shape>,
    marker: [u8; MARKER],
    begun: bool,
    block: Vec<u8>,
    rows: i64,
}

impl AvroEncoder {
    /// # Errors
    /// If an option is not valid, or a column has no form in Avro.
    pub(super) fn open(options: &Options, columns: SchemaRef) -> Result<Box<dyn Encoder>> {
        let options = AvroOptions::read(options)?;
        let fields: Vec<&Field> = columns.fields().iter().map(AsRef::as_ref).collect();
        let (json, shapes) = schema(&fields, options.legacy_timestamps)?;
        Ok(Box::new(AvroEncoder {
            options,
            json: json.to_string(),
            shapes,
            marker: rand::rng().random(),
            begun: false,
            block: Vec::with_capacity(BLOCK_BYTES),
            rows: 0,
        }))
    }

    fn begin(&mut self, to: &mut Vec<u8>) {
        if std::mem::replace(&mut self.begun, true) {
            return;
        }
        to.extend_from_slice(MAGIC);
        let pairs = [("avro.schema", self.json.as_str()), ("avro.codec", self.options.codec.name())];
        write_long(pairs.len() as i64, to);
        for (key, value) in pairs {
            write_bytes(key.as_bytes(), to);
            write_bytes(value.as_bytes(), to);
        }
        write_long(0, to);
        to.extend_from_slice(&self.marker);
    }

    fn end_block(&mut self, to: &mut Vec<u8>) -> Result<()> {
        if self.rows == 0 {
            return Ok(());
        }
        write_long(std::mem::take(&mut self.rows), to);
        write_bytes(&self.options.codec.compress(&self.block)?, to);
        to.extend_from_slice(&self.marker);
        self.block.clear();
        Ok(())
    }
}

impl Encoder for AvroEncoder {
    fn encode(&mut self, batch: &ChangeBatch, to: &mut Vec<u8>) -> Result<()> {
        self.begin(to);
        let rows = batch.rows();
        let views = rows
            .schema_ref()
            .fields()
            .iter()
            .zip(rows.columns())
            .map(|(field, column)| View::new(field, column))
            .collect::<Result<Vec<_>>>()?;
        for row in 0..batch.len() {
            for (view, shape) in views.iter().zip(&self.shapes) {
                write(view, shape, row, &mut self.block)?;
            }
            self.rows += 1;
            if self.block.len() >= BLOCK_BYTES {
                self.end_block(to)?;
            }
        }
        Ok(())
    }

    fn finish(&mut self, to: &mut Vec<u8>) -> Result<()> {
        self.begin(to);
        self.end_block(to)
    }

    fn buffered(&self) -> usize {
        self.block.len()
    }

    fn extension(&self) -> &'static str {
        "avro"
    }
}

/// Writes one value.
fn write(view: &View<'_>, shape: &Shape, row: usize, to: &mut Vec<u8>) -> Result<()> {
    if shape.nullable {
        let null = view.is_null(row);
        write_long(i64::from(!null), to);
        if null {
            return Ok(());
        }
    }
    match (&view.cells, &shape.parts) {
        (Cells::Boolean(cells), _) => to.push(u8::from(cells.value(row))),
        (Cells::TinyInt(cells), _) => write_long(i64::from(cells.value(row)), to),
        (Cells::SmallInt(cells), _) => write_long(i64::from(cells.value(row)), to),
        (Cells::Int(cells), _) => write_long(i64::from(cells.value(row)), to),
        (Cells::BigInt(cells), _) => write_long(cells.value(row), to),
        (Cells::Float(cells), _) => to.extend_from_slice(&cells.value(row).to_le_bytes()),
        (Cells::Double(cells), _) => to.extend_from_slice(&cells.value(row).to_le_bytes()),
        (Cells::Text(cells), _) => write_bytes(cells.value(row).as_bytes(), to),
        (Cells::Bytes(cells), _) => write_bytes(cells.value(row), to),
        (Cells::Date(cells), _) => write_long(i64::from(cells.value(row)), to),
        (Cells::Decimal(cells, _), _) => {
            let bytes = cells.value(row).to_be_bytes();
            write_bytes(shortest(&bytes), to);
        }
        // Seconds have no form of their own.
        (Cells::Time { units, digits: 0 } | Cells::Timestamp { units, digits: 0, .. }, _) => {
            write_long(units[row].saturating_mul(1_000), to);
        }
        (Cells::Time { units, .. } | Cells::Timestamp { units, .. }, _) => write_long(units[row], to),
        (Cells::List(list, elements), Parts::Each(shape)) => {
            each(range(list.value_offsets(), row), to, |index, to| write(elements, shape, index, to))?;
        }
        (Cells::Map(map, keys, values), Parts::Each(shape)) => {
            each(range(map.value_offsets(), row), to, |index, to| {
                let Cells::Text(keys) = &keys.cells else { return Err(Error::bug("a map whose keys are no text")) };
                write_bytes(keys.value(index).as_bytes(), to);
                write(values, shape, index, to)
            })?;
        }
        (Cells::Row(fields), Parts::Fields(shapes)) => {
            for ((_, field), shape) in fields.iter().zip(shapes) {
                write(field, shape, row, to)?;
            }
        }
        _ => return Err(Error::bug("a value of another shape than its schema")),
    }
    Ok(())
}

/// Elements are one part, and a part of none ends them.
fn each(
    range: std::ops::Range<usize>,
    to: &mut Vec<u8>,
    mut write: impl FnMut(usize, &mut Vec<u8>) -> Result<()>,
) -> Result<()> {
    if !range.is_empty() {
        write_long(range.len() as i64, to);
        for index in range {
            write(index, to)?;
        }
    }
    write_long(0, to);
    Ok(())
}

/// A number without the leading bytes that only repeat its sign.
fn shortest(bytes: &[u8; 16]) -> &[u8] {
    let negative = bytes[0] >= 0x80;
    let sign = if negative { 0xff } else { 0 };
    let lead = bytes.iter().take_while(|byte| **byte == sign).count().min(15);
    // The first byte that is kept must still say the sign.
    let from = if (bytes[lead] >= 0x80) == negative { lead } else { lead - 1 };
    &bytes[from..]
}
