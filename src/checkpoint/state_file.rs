//! State tables as bytes: Arrow IPC streams, numbers narrowed and texts compressed, and the merging of deltas into a
//! base.

use std::io::Cursor;

use arrow::array::{ArrayRef, BooleanArray, RecordBatch};
use arrow::compute::{concat_batches, filter_record_batch};
use arrow::ipc::CompressionType;
use arrow::ipc::reader::StreamReader;
use arrow::ipc::writer::{IpcWriteOptions, StreamWriter};
use arrow::row::{RowConverter, SortField};
use foldhash::fast::FixedState;
use hashbrown::HashSet;

use crate::error::{Error, Result};
use crate::state::{Scope, Snapshot, TableDelta, narrow, widen};

/// Room for what stands around the columns of a stream.
const ENVELOPE: usize = 4 << 10;

/// A table's changes as bytes, ready to be written.
#[derive(Debug)]
pub struct EncodedDelta {
    /// The operator's uid.
    pub operator: String,
    /// Which of its subtasks.
    pub subtask: usize,
    /// The table's name.
    pub table: String,
    /// Who gets the rows back.
    pub scope: Scope,
    /// Whether it replaces everything before.
    pub base: bool,
    /// Rows written.
    pub upserts: Option<EncodedRows>,
    /// Keys removed.
    pub deletes: Option<EncodedRows>,
}

/// Rows as an Arrow IPC stream.
#[derive(Debug)]
pub struct EncodedRows {
    /// The stream.
    pub bytes: Vec<u8>,
    /// Number of rows in it.
    pub rows: u64,
}

/// Encodes what an operator subtask handed over; takes time, so it runs beside the job. Tables without a change are
/// left out, unless they are a base: an empty base says that everything before is gone.
///
/// # Errors
/// If a column has a type that Arrow IPC cannot write.
pub fn encode_snapshot(operator: &str, subtask: usize, snapshot: Snapshot) -> Result<Vec<EncodedDelta>> {
    let mut encoded = Vec::new();
    for delta in snapshot.tables {
        // An empty batch still tells the schema of the keys, which merging needs; only a delta can do without.
        let keep = |rows: &Option<RecordBatch>| rows.as_ref().is_some_and(|rows| delta.base || rows.num_rows() > 0);
        let upserts = if keep(&delta.upserts) { delta.upserts.as_ref().map(encode_rows).transpose()? } else { None };
        let deletes = if keep(&delta.deletes) { delta.deletes.as_ref().map(encode_rows).transpose()? } else { None };
        if delta.base || upserts.is_some() || deletes.is_some() {
            let operator = operator.to_owned();
            let (table, scope, base) = (delta.table, delta.scope, delta.base);
            encoded.push(EncodedDelta { operator, subtask, table, scope, base, upserts, deletes });
        }
    }
    Ok(encoded)
}

fn encode_rows(rows: &RecordBatch) -> Result<EncodedRows> {
    let rows = narrow(rows)?;
    // Not zstd, which makes texts smaller, but with work that is taken from the job's own cores; nor anything for
    // numbers alone, which are narrow already.
    let texts = rows.columns().iter().any(|column| !column.data_type().is_primitive());
    let compression = texts.then_some(CompressionType::LZ4_FRAME);
    let options = IpcWriteOptions::default().try_with_compression(compression)?;
    let buffer = Vec::with_capacity(rows.get_array_memory_size() + ENVELOPE);
    let mut writer = StreamWriter::try_new_with_options(buffer, &rows.schema(), options)?;
    writer.write(&rows)?;
    let bytes = writer.into_inner()?;
    Ok(EncodedRows { bytes, rows: rows.num_rows() as u64 })
}

/// Reads rows back.
///
/// # Errors
/// If the bytes are not a stream of [`encode_snapshot`].
pub fn decode_rows(bytes: Vec<u8>) -> Result<RecordBatch> {
    let damaged = |error: arrow::error::ArrowError| Error::state(format!("saved rows cannot be read: {error}"));
    let reader = StreamReader::try_new(Cursor::new(bytes), None).map_err(damaged)?;
    let schema = reader.schema();
    let batches = reader.collect::<Result<Vec<_>, _>>().map_err(damaged)?;
    match <[RecordBatch; 1]>::try_from(batches) {
        Ok([rows]) => widen(&rows),
        Err(batches) => widen(&concat_batches(&schema, &batches).map_err(damaged)?),
    }
}

/// One base that stands for a base and the deltas after it (`deltas`, oldest first); `None` if the keys cannot be told
/// from the values, which is so while no delta has named its key columns.
///
/// # Errors
/// If the deltas do not fit each other.
pub fn merge(deltas: &[TableDelta]) -> Result<Option<TableDelta>> {
    let Some(last) = deltas.last() else { return Ok(None) };
    let Some(keys) = deltas.iter().rev().find_map(TableDelta::key_columns) else { return Ok(None) };
    let Some(schema) = deltas.iter().rev().find_map(|delta| Some(delta.upserts.as_ref()?.schema())) else {
        return Ok(None);
    };
    let fields = schema.fields()[..keys].iter().map(|field| SortField::new(field.data_type().clone())).collect();
    let Ok(converter) = RowConverter::new(fields) else { return Ok(None) };
    // From the newest to the oldest, the first word about a key is the last one that counts.
    let mut known = KnownKeys { converter, keys, seen: HashSet::default() };
    let mut kept = Vec::new();
    for delta in deltas.iter().rev() {
        if let Some(rows) = &delta.upserts {
            kept.push(known.keep_unknown(rows)?);
        }
        if let Some(rows) = &delta.deletes {
            known.keep_unknown(rows)?;
        }
        if delta.base {
            break;
        }
    }
    kept.reverse();
    let upserts = Some(concat_batches(&schema, &kept)?);
    let deletes = deltas.iter().rev().find_map(|delta| Some(delta.deletes.as_ref()?.slice(0, 0)));
    Ok(Some(TableDelta { table: last.table.clone(), scope: last.scope, base: true, upserts, deletes }))
}

struct KnownKeys {
    converter: RowConverter,
    keys: usize,
    seen: HashSet<Box<[u8]>, FixedState>,
}

impl KnownKeys {
    /// The rows whose keys were not known; they are from now on.
    fn keep_unknown(&mut self, rows: &RecordBatch) -> Result<RecordBatch> {
        let columns: &[ArrayRef] =
            rows.columns().get(..self.keys).ok_or_else(|| Error::state("saved rows lack key columns"))?;
        let keys = self.converter.convert_columns(columns)?;
        let mut keep = vec![false; rows.num_rows()];
        for (row, keep) in keep.iter_mut().enumerate().rev() {
            let key = keys.row(row);
            *keep = !self.seen.contains(key.data()) && self.seen.insert(key.data().into());
        }
        Ok(filter_record_batch(rows, &BooleanArray::from(keep))?)
    }
}
