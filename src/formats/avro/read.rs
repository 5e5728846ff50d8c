//! Reading: the header once, then the blocks of a range one after another.

use std::sync::Arc;

use arrow::datatypes::{Field, SchemaRef};

use super::container::{Block, Header, find_block};
use super::cursor::Cursor;
use super::decode::{record, skip};
use super::options::AvroOptions;
use super::resolve::{Step, rows};
use crate::changelog::ChangeBatch;
use crate::error::{Error, Result};
use crate::formats::Wanted;
use crate::formats::builder::ColumnBuilder;
use crate::formats::files::{BlockPosition, BlockReader, FileBytes, FileToRead};
use crate::limits::{BATCH_BYTES, BATCH_ROWS};

/// Reads a file's blocks.
pub(super) struct AvroReader {
    file: Arc<dyn FileBytes>,
    header: Header,
    steps: Vec<Step>,
    wanted: Wanted,
    schema: SchemaRef,
    columns: Vec<ColumnBuilder>,
    /// Where blocks to be read end.
    end: u64,
    /// The block at hand, or the next.
    at: BlockPosition,
    open: Option<OpenBlock>,
}

/// A block being read.
struct OpenBlock {
    block: Block,
    /// Where the next row begins.
    position: usize,
    /// See [`Cursor::elements_left`].
    elements: u64,
}

impl AvroReader {
    /// # Errors
    /// If an option is not valid, the file is damaged, or its schema does not fit.
    pub(super) fn open(to_read: FileToRead<'_>) -> Result<Box<dyn BlockReader>> {
        AvroOptions::read(to_read.options)?;
        let header = Header::read(&*to_read.bytes)?;
        let schema = to_read.wanted.projected()?;
        let fields: Vec<Field> = schema.fields().iter().map(|field| field.as_ref().clone()).collect();
        let (range, mut at) = (to_read.range, to_read.at);
        if at.offset == range.start {
            let first = find_block(&*to_read.bytes, &header, range.start, range.end)?;
            at = BlockPosition { offset: first.unwrap_or(range.end), rows: at.rows };
        }
        Ok(Box::new(AvroReader {
            steps: rows(&header.schema, &fields)?,
            columns: fields.iter().map(ColumnBuilder::new).collect::<Result<_>>()?,
            file: to_read.bytes,
            header,
            wanted: to_read.wanted,
            schema,
            end: range.end,
            at,
            open: None,
        }))
    }

    /// Decodes rows of the block at hand, as many as a batch takes. Gives their number.
    fn decode(&mut self) -> Result<usize> {
        let fault = |row: u64, fault: super::cursor::Fault| Error::data(format!("row {row}: {fault}"));
        let open = match &mut self.open {
            Some(open) => open,
            None => {
                let block = Block::read(&*self.file, &self.header, self.at.offset)?;
                let mut cursor = Cursor::new(&block.bytes);
                for row in 0..self.at.rows {
                    skip(&self.header.schema, self.header.schema.root, &mut cursor, 0)
                        .map_err(|error| fault(row, error))?;
                }
                let (position, elements) = (cursor.position(), cursor.elements_left());
                self.open.insert(OpenBlock { block, position, elements })
            }
        };
        let mut cursor = Cursor::resume(&open.block.bytes, open.position, open.elements);
        let mut count = 0;
        while self.at.rows < open.block.rows
            && count < BATCH_ROWS
            && (cursor.position() - open.position < BATCH_BYTES || count == 0)
        {
            record(&self.header.schema, &self.steps, &mut cursor, &mut self.columns)
                .map_err(|error| fault(self.at.rows, error))?;
            count += 1;
            self.at.rows += 1;
            for column in &mut self.columns {
                if column.len() < count {
                    // The file has no such field; that it may be NULL has been checked.
                    column.append_null().map_err(|refused| fault(self.at.rows, refused.into()))?;
                }
            }
        }
        if self.at.rows == open.block.rows && !cursor.is_at_end() {
            return Err(Error::data("bytes are left over after its last row"));
        }
        (open.position, open.elements) = (cursor.position(), cursor.elements_left());
        Ok(count)
    }
}

impl BlockReader for AvroReader {
    fn read(&mut self) -> Result<Option<ChangeBatch>> {
        while self.at.offset < self.end.min(self.file.length()) {
            let offset = self.at.offset;
            let count = self.decode().map_err(|error| error.context(format!("block at offset {offset}")))?;
            if let Some(open) = self.open.take_if(|open| self.at.rows >= open.block.rows) {
                self.at = BlockPosition { offset: open.block.end, rows: 0 };
            }
            if count > 0 {
                let columns = self.columns.iter_mut().map(ColumnBuilder::finish).collect::<Result<Vec<_>>>()?;
                return self.wanted.batch(&self.schema, columns, count).map(|rows| Some(ChangeBatch::inserts(rows)));
            }
        }
        Ok(None)
    }

    fn position(&self) -> BlockPosition {
        self.at
    }
}
