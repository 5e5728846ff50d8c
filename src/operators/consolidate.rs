//! Folds a changelog into the rows that are left at its end: the last stage of a batch query whose plan updates rows.
//!
//! Without an upsert key, equal rows are counted; with one, the last image of a key counts. Rows come out in the order
//! in which they first came to stay. Nothing is saved: batch jobs take a checkpoint only at their end.

use std::collections::HashMap;

use arrow::array::{ArrayRef, RecordBatch};
use arrow::datatypes::SchemaRef;
use arrow::row::{RowConverter, SortField};

use crate::changelog::{ChangeBatch, Watermark};
use crate::error::{Error, Result};
use crate::limits::BATCH_ROWS;
use crate::operators::{Operator, Output, Port};

/// Collects changes and emits what is left when the input ends.
pub struct Consolidate {
    schema: SchemaRef,
    rows: RowConverter,
    key: Option<(Vec<usize>, RowConverter)>,
    entries: HashMap<Box<[u8]>, Entry>,
    next: u64,
}

struct Entry {
    /// The whole row, where it is not the key itself.
    row: Option<Box<[u8]>>,
    /// How often the row stands in the table; below zero while a retraction has overtaken its row.
    count: i64,
    /// Its place in the output.
    order: u64,
}

impl Consolidate {
    /// For rows of `schema`. With `upsert_key`, changes replace and delete by that key; without, by the whole row.
    ///
    /// # Errors
    /// If a column's type has no order-independent byte form.
    pub fn new(schema: SchemaRef, upsert_key: Option<Vec<usize>>) -> Result<Consolidate> {
        let converter = |columns: &mut dyn Iterator<Item = usize>| {
            let fields = columns.map(|column| SortField::new(schema.field(column).data_type().clone())).collect();
            RowConverter::new(fields).map_err(|error| Error::sql(format!("rows cannot be compared: {error}")))
        };
        let rows = converter(&mut (0..schema.fields().len()))?;
        let key = match upsert_key {
            None => None,
            Some(columns) => {
                let converter = converter(&mut columns.iter().copied())?;
                Some((columns, converter))
            }
        };
        Ok(Consolidate { schema, rows, key, entries: HashMap::new(), next: 0 })
    }

    fn upsert(&mut self, batch: &ChangeBatch) -> Result<()> {
        let rows = self.rows.convert_columns(batch.rows().columns())?;
        let Some((columns, converter)) = &self.key else { return Ok(()) };
        let columns: Vec<ArrayRef> = columns.iter().map(|column| batch.rows().column(*column).clone()).collect();
        // A table of one row has a key without columns.
        let keys = if columns.is_empty() { None } else { Some(converter.convert_columns(&columns)?) };
        for row in 0..batch.len() {
            let key = keys.as_ref().map_or(&[][..], |keys| keys.row(row).data());
            if batch.kind(row).is_retraction() {
                self.entries.remove(key);
                continue;
            }
            let image = Some(rows.row(row).data().into());
            match self.entries.get_mut(key) {
                Some(entry) => entry.row = image,
                None => {
                    self.entries.insert(key.into(), Entry { row: image, count: 1, order: self.next });
                    self.next += 1;
                }
            }
        }
        Ok(())
    }

    fn count(&mut self, batch: &ChangeBatch) -> Result<()> {
        let rows = self.rows.convert_columns(batch.rows().columns())?;
        for row in 0..batch.len() {
            let (image, sign) = (rows.row(row), batch.kind(row).sign());
            match self.entries.get_mut(image.data()) {
                Some(entry) => {
                    entry.count += sign;
                    if entry.count == 0 {
                        self.entries.remove(image.data());
                    }
                }
                None => {
                    self.entries.insert(image.data().into(), Entry { row: None, count: sign, order: self.next });
                    self.next += 1;
                }
            }
        }
        Ok(())
    }

    fn emit(&mut self, out: &mut Output) -> Result<()> {
        let mut left: Vec<(Box<[u8]>, Entry)> = self.entries.drain().collect();
        left.sort_unstable_by_key(|(_, entry)| entry.order);
        if let Some((_, entry)) = left.iter().find(|(_, entry)| entry.count < 0) {
            let count = -entry.count;
            return Err(Error::data(format!("a row was deleted {count} times more often than it came")));
        }
        let images = left.iter().flat_map(|(key, entry)| {
            std::iter::repeat_n(entry.row.as_deref().unwrap_or(key), usize::try_from(entry.count).unwrap_or(0))
        });
        let images: Vec<&[u8]> = images.collect();
        let parser = self.rows.parser();
        for part in images.chunks(BATCH_ROWS) {
            let columns = self.rows.convert_rows(part.iter().map(|image| parser.parse(image)))?;
            out.changes(ChangeBatch::inserts(RecordBatch::try_new(self.schema.clone(), columns)?));
        }
        Ok(())
    }
}

impl Operator for Consolidate {
    fn on_changes(&mut self, _port: Port, batch: ChangeBatch, _out: &mut Output) -> Result<()> {
        if self.key.is_some() { self.upsert(&batch) } else { self.count(&batch) }
    }

    /// The rows come after all time has passed.
    fn on_watermark(&mut self, _mark: Watermark, _out: &mut Output) -> Result<()> {
        Ok(())
    }

    fn on_end(&mut self, _port: Port, out: &mut Output) -> Result<()> {
        self.emit(out)?;
        out.watermark(Watermark::MAX);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow::array::{AsArray, Int64Array, StringArray};
    use arrow::datatypes::Int64Type;

    use super::*;
    use crate::changelog::{Event, Kind};

    fn run(key: Option<Vec<usize>>, changes: &[(Kind, &str, i64)]) -> Vec<(String, i64)> {
        let names: ArrayRef = Arc::new(StringArray::from_iter_values(changes.iter().map(|(_, name, _)| name)));
        let counts: ArrayRef = Arc::new(Int64Array::from_iter_values(changes.iter().map(|(_, _, count)| *count)));
        let rows = RecordBatch::try_from_iter([("name", names), ("count", counts)]).unwrap();
        let mut operator = Consolidate::new(rows.schema(), key).unwrap();
        let mut out = Output::default();
        let batch = ChangeBatch::new(rows, changes.iter().map(|(kind, ..)| *kind).collect()).unwrap();
        operator.on_changes(0, batch, &mut out).unwrap();
        operator.on_end(0, &mut out).unwrap();
        let mut left = Vec::new();
        for event in out.drain() {
            if let Event::Changes(batch) = event {
                let (names, counts) = (batch.rows().column(0), batch.rows().column(1));
                let (names, counts) = (names.as_string::<i32>(), counts.as_primitive::<Int64Type>());
                left.extend((0..batch.len()).map(|row| (names.value(row).to_owned(), counts.value(row))));
            }
        }
        left
    }

    #[test]
    fn only_the_rows_that_are_left_come_out() {
        use Kind::*;
        let retract = [(Insert, "Mary", 1), (Insert, "Bob", 1), (UpdateBefore, "Mary", 1), (UpdateAfter, "Mary", 2)];
        assert_eq!(run(None, &retract), [("Bob".into(), 1), ("Mary".into(), 2)]);
        let upsert = [(Insert, "Mary", 1), (UpdateAfter, "Mary", 2), (Insert, "Bob", 1), (Delete, "Bob", 1)];
        assert_eq!(run(Some(vec![0]), &upsert), [("Mary".into(), 2)]);
        assert_eq!(run(Some(vec![]), &upsert[..3]), [("Bob".into(), 1)]);
        assert_eq!(run(None, &[(Insert, "Liz", 1), (Insert, "Liz", 1)]).len(), 2);
    }
}
