//! From upserts by key to a full changelog: the last row of each key is kept, so that its old image can be given.

use std::sync::Arc;

use arrow::array::{ArrayRef, RecordBatch};
use arrow::datatypes::{Field, FieldRef, SchemaRef};
use arrow::row::{RowConverter, SortField};

use super::bytes_of_all;
use super::images::Images;
use super::lifetimes::Lifetimes;
use super::{Operator, Output, Port, ProcessingTime, StateSize};
use crate::changelog::{ChangeBatch, CheckpointId, Kind};
use crate::error::{Error, Result};
use crate::state::{KeyGroupRange, KeyTable, Restored, Snapshot};

/// The table of last rows in a snapshot.
const ROWS: &str = "rows";

/// A whole row in Arrow's row form.
type Row = Option<Arc<[u8]>>;

/// Turns `+I`, `+U` and `-D` by key into `+I`, `-U`, `+U` and `-D` with whole rows.
///
/// A row equal to the one before it gives nothing, a delete without its row neither. A `-U` on the input says nothing
/// that the `+U` after it does not say, and is passed over.
pub struct ChangelogNormalize {
    schema: SchemaRef,
    key: Vec<usize>,
    emit_update_before: bool,
    keys: KeyTable,
    /// By slot: the last row of the key.
    rows: Vec<Row>,
    converter: RowConverter,
    lifetimes: Lifetimes,
    saved: bool,
    unmatched: u64,
    key_groups: KeyGroupRange,
}

impl ChangelogNormalize {
    /// `key` identifies a row of `input`; the same columns are emitted.
    ///
    /// # Errors
    /// If a column's type cannot be kept.
    pub fn new(
        input: SchemaRef,
        key: Vec<usize>,
        emit_update_before: bool,
        ttl_ms: u64,
        key_groups: KeyGroupRange,
    ) -> Result<ChangelogNormalize> {
        let fields = key.iter().map(|column| Arc::clone(&input.fields()[*column])).collect();
        let sorted = input.fields().iter().map(|field| SortField::new(field.data_type().clone())).collect();
        Ok(ChangelogNormalize {
            keys: KeyTable::new(fields)?,
            converter: RowConverter::new(sorted)?,
            schema: input,
            key,
            emit_update_before,
            rows: Vec::new(),
            lifetimes: Lifetimes::new("lifetimes", ttl_ms),
            saved: false,
            unmatched: 0,
            key_groups,
        })
    }

    fn key_arrays(&self, rows: &RecordBatch) -> Vec<ArrayRef> {
        self.key.iter().map(|column| Arc::clone(rows.column(*column))).collect()
    }

    /// Rows as columns; there is no row where an image means nothing, and any will do.
    fn decode(&self, images: &[Row], any: &Row) -> Result<Vec<ArrayRef>> {
        let parser = self.converter.parser();
        let Some(any) = any else { return Ok(Vec::new()) };
        let rows = images.iter().map(|image| parser.parse(image.as_ref().unwrap_or(any)));
        Ok(self.converter.convert_rows(rows)?)
    }

    /// The columns of whole rows in a snapshot; names may repeat in the query, so they are numbered.
    fn row_fields(&self) -> Vec<FieldRef> {
        let fields = self.schema.fields().iter().enumerate();
        fields
            .map(|(index, field)| Arc::new(Field::new(format!("row_{index}"), field.data_type().clone(), true)))
            .collect()
    }
}

impl Operator for ChangelogNormalize {
    fn on_changes(&mut self, _port: Port, batch: ChangeBatch, out: &mut Output) -> Result<()> {
        let mut slots = Vec::new();
        self.keys.slots_of(&self.key_arrays(batch.rows()), batch.len(), &mut slots)?;
        self.keys.touch(&slots);
        self.rows.resize(self.keys.capacity().max(self.rows.len()), None);
        for slot in &slots {
            if self.lifetimes.is_expired(*slot) {
                self.rows[*slot as usize] = None;
            }
            self.lifetimes.write(*slot);
        }
        let encoded = self.converter.convert_columns(batch.rows().columns())?;
        let mut images = Images::with_capacity(batch.len());
        let mut values: Vec<Row> = Vec::with_capacity(batch.len() * 2);
        for (row, slot) in slots.iter().enumerate() {
            let last = &mut self.rows[*slot as usize];
            let before = last.clone();
            match batch.kind(row) {
                Kind::Insert | Kind::UpdateAfter => {
                    let bytes = encoded.row(row);
                    match &before {
                        None => images.insert(row),
                        Some(old) if **old == *bytes.data() => {}
                        Some(_) => images.update(row, self.emit_update_before),
                    }
                    *last = Some(bytes.data().into());
                }
                Kind::UpdateBefore => {}
                Kind::Delete if before.is_some() => {
                    images.delete(row);
                    *last = None;
                }
                Kind::Delete => self.unmatched += 1,
            }
            values.push(before);
            values.push(last.clone());
        }
        let any = values.iter().flatten().next().cloned();
        let columns = self.decode(&values, &any)?;
        if !columns.is_empty() {
            out.changes(images.emit(&self.schema, &[], &columns)?);
        }
        for slot in &slots {
            if self.rows[*slot as usize].is_none() {
                self.keys.remove(*slot);
            }
        }
        Ok(())
    }

    fn on_clock(&mut self, now: ProcessingTime, _out: &mut Output) -> Result<()> {
        if self.lifetimes.advance(now) {
            for slot in self.lifetimes.expired(&self.keys) {
                self.rows[slot as usize] = None;
                self.keys.remove(slot);
            }
        }
        Ok(())
    }

    fn snapshot(&mut self, _at: CheckpointId) -> Result<Snapshot> {
        let base = !std::mem::replace(&mut self.saved, true);
        let lifetimes = self.lifetimes.snapshot(&mut self.keys, base)?;
        let changed = self.keys.changed(base);
        let rows: Vec<Row> = changed.upserts.iter().map(|slot| self.rows[*slot as usize].clone()).collect();
        let any = rows.first().cloned().flatten();
        let columns = self.row_fields().into_iter().zip(self.decode(&rows, &any)?).collect();
        let upserts = self.keys.rows(&changed.upserts, columns)?;
        let deletes = self.keys.rows(&changed.deletes, Vec::new())?;
        self.keys.finish_snapshot();
        let rows = self.keys.delta(ROWS, base, 0, upserts, deletes)?;
        Ok(Snapshot { tables: std::iter::once(rows).chain(lifetimes).collect() })
    }

    fn restore(&mut self, from: Restored) -> Result<()> {
        let from = from.restrict(self.key_groups)?;
        let mut slots = Vec::new();
        for delta in from.table(ROWS) {
            if let Some(rows) = &delta.deletes {
                let (keys, _) = self.keys.split_saved(ROWS, rows)?;
                self.keys.slots_of(&keys, rows.num_rows(), &mut slots)?;
                self.rows.resize(self.keys.capacity().max(self.rows.len()), None);
                for slot in &slots {
                    self.rows[*slot as usize] = None;
                    self.keys.remove(*slot);
                }
            }
            if let Some(rows) = &delta.upserts {
                let (keys, columns) = self.keys.split_saved(ROWS, rows)?;
                let types = columns.iter().map(|column| column.data_type());
                if !types.eq(self.schema.fields().iter().map(|field| field.data_type())) {
                    return Err(Error::state("saved rows do not have the columns of this table"));
                }
                let encoded = self.converter.convert_columns(&columns)?;
                self.keys.slots_of(&keys, rows.num_rows(), &mut slots)?;
                self.rows.resize(self.keys.capacity().max(self.rows.len()), None);
                for (row, slot) in slots.iter().enumerate() {
                    self.rows[*slot as usize] = Some(encoded.row(row).data().into());
                }
            }
        }
        self.lifetimes.restore(&mut self.keys, &from)
    }

    fn state_size(&self) -> Option<StateSize> {
        // Asked now and then while the job runs: some rows stand for all.
        let rows = bytes_of_all(self.rows.iter().flatten().map(|row| row.len() + 16), self.keys.len());
        let bytes = self.keys.bytes() + self.rows.capacity() * size_of::<Row>() + rows;
        Some(StateSize::new(self.keys.len(), bytes))
    }

    fn shrink(&mut self) -> Result<()> {
        if self.keys.shrink()? {
            self.rows = Vec::new();
            self.lifetimes.shrink();
        }
        Ok(())
    }

    fn counters(&self) -> Vec<(&'static str, u64)> {
        vec![("keys", self.keys.len() as u64), ("unmatched_retractions", self.unmatched)]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::operators::testing::{changes, check, feed, saved, schema};

    #[test]
    fn upserts_become_full_changes_and_go_on_after_a_restart() {
        let input = schema("id BIGINT, v TEXT");
        let new = || ChangelogNormalize::new(Arc::clone(&input), vec![0], true, 0, KeyGroupRange::ALL).unwrap();
        let mut operator = new();
        let text = "
            +I 1 a
            +I 1 a
            +U 1 b
            -D 2 _
            +I 2 x
            -U 2 x
            +U 2 _
            -D 1 zz";
        for size in [1, 3, 100] {
            let found = feed(&mut new(), &changes(&input, text), size, &mut Output::default());
            check(&found, "+I[1, a]\n-U[1, a]\n+U[1, b]\n+I[2, x]\n-U[2, x]\n+U[2, NULL]\n-D[1, b]");
        }
        let mut out = Output::default();
        feed(&mut operator, &changes(&input, "+I 1 a\n+I 2 b\n+I 3 c"), 9, &mut out);
        let first = operator.snapshot(1).unwrap();
        feed(&mut operator, &changes(&input, "-D 1 _\n+U 2 bb"), 9, &mut out);
        let second = operator.snapshot(2).unwrap();
        let mut again = new();
        again.restore(saved(&[first, second])).unwrap();
        let found = feed(&mut again, &changes(&input, "-D 1 _\n-D 2 _\n+U 3 d"), 9, &mut out);
        check(&found, "-D[2, bb]\n-U[3, c]\n+U[3, d]");
    }
}
