//! Holds a result back until it is that of a prefix of the input, then tells what has become different.
//!
//! Rows take several ways through a plan, and come out of a join of two aggregates once for each: between the two,
//! the result is one that no input ever had. A barrier comes on all ways behind the same rows, so what has come before it
//! is consistent. Only that is told, and only the difference to the last barrier:
//!
//! ```text
//! total  -U 0   +U -5   -U -5   +U 0   ── barrier ──▶   nothing
//! ```
//!
//! Nothing is saved: before a checkpoint's barrier passes, everything has been told.

use std::collections::HashMap;
use std::sync::Arc;

use arrow::array::{ArrayRef, RecordBatch};
use arrow::datatypes::SchemaRef;
use arrow::row::{RowConverter, SortField};

use super::{Operator, Output, Port};
use crate::changelog::{ChangeBatch, ChangelogMode, Kind, Watermark};
use crate::error::{Error, Result};
use crate::limits::BATCH_ROWS;

/// What is told of a row.
type Told<'a> = (Kind, &'a [u8]);

/// Holds changes until a barrier, and then emits their net effect.
pub struct ConsistentOutput {
    schema: SchemaRef,
    mode: ChangelogMode,
    held: Held,
    waiting: Option<Watermark>,
}

/// What has come since the last barrier.
enum Held {
    /// Only new rows: as they came.
    Rows(Vec<ChangeBatch>),
    /// New and old rows: how often each, net.
    Counts {
        rows: RowConverter,
        /// The columns that identify a row, if there are such.
        key: Option<Key>,
        counts: HashMap<Box<[u8]>, Count>,
    },
    /// New images by key.
    Images { rows: RowConverter, key: Key, images: HashMap<Box<[u8]>, Image> },
}

struct Count {
    net: i64,
    /// The place of the row's first change.
    order: usize,
    key: Option<Box<[u8]>>,
}

struct Image {
    /// Whether the key had a row at the last barrier.
    existed: bool,
    exists: bool,
    row: Box<[u8]>,
    order: usize,
}

/// Columns that identify a row.
struct Key {
    columns: Vec<usize>,
    converter: RowConverter,
}

impl Key {
    fn new(schema: &SchemaRef, columns: Vec<usize>) -> Result<Key> {
        let converter = converter(schema, columns.iter().copied())?;
        Ok(Key { columns, converter })
    }

    /// The key of each row; of a table of one row it has no columns and no bytes.
    fn of(&self, batch: &RecordBatch) -> Result<Vec<Box<[u8]>>> {
        if self.columns.is_empty() {
            return Ok(vec![Box::default(); batch.num_rows()]);
        }
        let columns: Vec<ArrayRef> = self.columns.iter().map(|column| Arc::clone(batch.column(*column))).collect();
        Ok(self.converter.convert_columns(&columns)?.iter().map(|key| key.data().into()).collect())
    }
}

fn converter(schema: &SchemaRef, columns: impl Iterator<Item = usize>) -> Result<RowConverter> {
    let fields = columns.map(|column| SortField::new(schema.field(column).data_type().clone())).collect();
    RowConverter::new(fields).map_err(|error| Error::sql(format!("rows cannot be compared: {error}")))
}

impl ConsistentOutput {
    /// For changes of `mode`; those without old images are told apart by `key`.
    ///
    /// # Errors
    /// If a column's type has no byte form.
    pub fn new(schema: SchemaRef, mode: ChangelogMode, key: Option<Vec<usize>>) -> Result<ConsistentOutput> {
        let all = || converter(&schema, 0..schema.fields().len());
        let key = key.map(|columns| Key::new(&schema, columns)).transpose()?;
        let held = if mode.is_append_only() {
            Held::Rows(Vec::new())
        } else if mode.is_upsert() {
            let key = key.ok_or_else(|| Error::bug("changes without old images have a key"))?;
            Held::Images { rows: all()?, key, images: HashMap::new() }
        } else {
            Held::Counts { rows: all()?, key, counts: HashMap::new() }
        };
        Ok(ConsistentOutput { schema, mode, held, waiting: None })
    }

    fn release(&mut self, out: &mut Output) -> Result<()> {
        match &mut self.held {
            Held::Rows(batches) => batches.drain(..).for_each(|batch| out.changes(batch)),
            Held::Counts { rows, counts, .. } => {
                let counts = std::mem::take(counts);
                tell(&self.schema, rows, &net_changes(&counts, self.mode), out)?;
            }
            Held::Images { rows, images, .. } => {
                let images = std::mem::take(images);
                tell(&self.schema, rows, &last_images(&images), out)?;
            }
        }
        if let Some(mark) = self.waiting.take() {
            out.watermark(mark);
        }
        Ok(())
    }
}

/// The rows that have gone and come, each old one before the new one of its key.
fn net_changes(counts: &HashMap<Box<[u8]>, Count>, mode: ChangelogMode) -> Vec<Told<'_>> {
    let mut changed: Vec<(&[u8], &Count)> =
        counts.iter().filter(|(_, count)| count.net != 0).map(|(row, count)| (&row[..], count)).collect();
    changed.sort_unstable_by_key(|(_, count)| count.order);
    let copies = |sign: i64| {
        let of_sign = changed.iter().filter(move |(_, count)| count.net.signum() == sign);
        of_sign.flat_map(|(row, count)| {
            let times = usize::try_from(count.net.unsigned_abs()).unwrap_or(usize::MAX);
            std::iter::repeat_n((*row, count.key.as_deref()), times)
        })
    };
    let mut old: Vec<(&[u8], Option<&[u8]>)> = copies(-1).collect();
    let new: Vec<(&[u8], Option<&[u8]>)> = copies(1).collect();
    let mut told = Vec::with_capacity(old.len() + new.len());
    if !mode.contains(Kind::UpdateAfter) {
        told.extend(old.into_iter().map(|(row, _)| (Kind::Delete, row)));
        told.extend(new.into_iter().map(|(row, _)| (Kind::Insert, row)));
        return told;
    }
    if !mode.contains(Kind::Delete) {
        // No row ever goes without another in its place.
        let mut old = old.into_iter();
        for (row, _) in new {
            match old.next() {
                Some((before, _)) => told.extend([(Kind::UpdateBefore, before), (Kind::UpdateAfter, row)]),
                None => told.push((Kind::Insert, row)),
            }
        }
        told.extend(old.map(|(row, _)| (Kind::UpdateBefore, row)));
        return told;
    }
    let mut by_key: HashMap<&[u8], &[u8]> = HashMap::new();
    old.retain(|(row, key)| match key {
        // Of two old rows under one key, only one has a successor.
        Some(key) if !by_key.contains_key(key) => by_key.insert(key, row).is_some(),
        _ => true,
    });
    let mut rest = Vec::new();
    for (row, key) in new {
        match key.and_then(|key| by_key.remove(key)) {
            Some(before) => rest.extend([(Kind::UpdateBefore, before), (Kind::UpdateAfter, row)]),
            None => rest.push((Kind::Insert, row)),
        }
    }
    let mut gone: Vec<&[u8]> = old.into_iter().map(|(row, _)| row).chain(by_key.into_values()).collect();
    gone.sort_unstable_by_key(|row| counts.get(*row).map_or(usize::MAX, |count| count.order));
    told.extend(gone.into_iter().map(|row| (Kind::Delete, row)));
    told.extend(rest);
    told
}

/// What has become of each key.
fn last_images(images: &HashMap<Box<[u8]>, Image>) -> Vec<Told<'_>> {
    let mut images: Vec<&Image> = images.values().collect();
    images.sort_unstable_by_key(|image| image.order);
    let told = |image: &&Image| match (image.existed, image.exists) {
        (false, true) => Some(Kind::Insert),
        (true, true) => Some(Kind::UpdateAfter),
        (true, false) => Some(Kind::Delete),
        (false, false) => None,
    };
    images.iter().filter_map(|image| Some((told(image)?, &image.row[..]))).collect()
}

fn tell(schema: &SchemaRef, rows: &RowConverter, told: &[Told<'_>], out: &mut Output) -> Result<()> {
    let parser = rows.parser();
    // A pair may be cut by the end of a batch, as anywhere else.
    for part in told.chunks(BATCH_ROWS) {
        let columns = rows.convert_rows(part.iter().map(|(_, row)| parser.parse(row)))?;
        let kinds = part.iter().map(|(kind, _)| *kind).collect();
        out.changes(ChangeBatch::new(RecordBatch::try_new(Arc::clone(schema), columns)?, kinds)?);
    }
    Ok(())
}

impl Operator for ConsistentOutput {
    fn on_changes(&mut self, _port: Port, batch: ChangeBatch, _out: &mut Output) -> Result<()> {
        match &mut self.held {
            Held::Rows(batches) => batches.push(batch),
            Held::Counts { rows, key, counts } => {
                let images = rows.convert_columns(batch.rows().columns())?;
                let mut keys = key.as_ref().map(|key| key.of(batch.rows())).transpose()?.map(Vec::into_iter);
                for row in 0..batch.len() {
                    let key = keys.as_mut().and_then(Iterator::next);
                    let (image, sign, order) = (images.row(row), batch.kind(row).sign(), counts.len());
                    match counts.get_mut(image.data()) {
                        Some(count) => count.net += sign,
                        None => drop(counts.insert(image.data().into(), Count { net: sign, order, key })),
                    }
                }
            }
            Held::Images { rows, key, images } => {
                let data = rows.convert_columns(batch.rows().columns())?;
                for (row, key) in key.of(batch.rows())?.into_iter().enumerate() {
                    let (kind, order) = (batch.kind(row), images.len());
                    let image = images.entry(key).or_insert_with(|| Image {
                        existed: kind != Kind::Insert,
                        exists: false,
                        row: Box::default(),
                        order,
                    });
                    image.exists = !kind.is_retraction();
                    image.row = data.row(row).data().into();
                }
            }
        }
        Ok(())
    }

    /// It waits with the rows before it.
    fn on_watermark(&mut self, mark: Watermark, _out: &mut Output) -> Result<()> {
        self.waiting = Some(mark);
        Ok(())
    }

    fn before_barrier(&mut self, out: &mut Output) -> Result<()> {
        self.release(out)
    }

    fn on_end(&mut self, _port: Port, out: &mut Output) -> Result<()> {
        self.release(out)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::operators::testing::{changes, check, emitted, schema};

    fn run(mode: ChangelogMode, key: Option<Vec<usize>>, parts: &[&str]) -> Vec<Vec<String>> {
        let mut operator = ConsistentOutput::new(schema("k TEXT, v BIGINT"), mode, key).unwrap();
        let mut out = Output::default();
        let mut told = Vec::new();
        for part in parts {
            operator.on_changes(0, changes(&schema("k TEXT, v BIGINT"), part), &mut out).unwrap();
            assert!(emitted(&mut out).is_empty(), "nothing is told before the barrier");
            operator.before_barrier(&mut out).unwrap();
            told.push(emitted(&mut out));
        }
        told
    }

    const PARTS: [&str; 3] = [
        "+I a 1\n+I b 1\n-U a 1\n+U a 2\n+I c 1\n-D c 1",
        "-U a 2\n+U a 3\n-U a 3\n+U a 2\n-D b 1",
        "-U a 2\n+U a 5\n+I b 7\n-U b 7\n+U b 8",
    ];

    #[test]
    fn what_comes_and_goes_between_barriers_is_never_told() {
        let told = run(ChangelogMode::RETRACT, Some(vec![0]), &PARTS);
        check(&told[0], "+I[b, 1]\n+I[a, 2]");
        check(&told[1], "-D[b, 1]");
        check(&told[2], "-U[a, 2]\n+U[a, 5]\n+I[b, 8]");
    }

    #[test]
    fn without_a_key_old_rows_go_before_new_ones_come() {
        let told =
            run(ChangelogMode::RETRACT, None, &["+I a 1\n+I a 1\n+I b 2", "-U a 1\n+U c 3\n-D b 2\n-U a 1\n+U c 3"]);
        check(&told[0], "+I[a, 1]\n+I[a, 1]\n+I[b, 2]");
        check(&told[1], "-D[a, 1]\n-D[a, 1]\n-D[b, 2]\n+I[c, 3]\n+I[c, 3]");
        let updates = ChangelogMode::RETRACT.without(Kind::Delete);
        let told = run(updates, None, &["+I a 1\n+I b 2", "-U a 1\n+U c 3\n+I d 4"]);
        check(&told[1], "-U[a, 1]\n+U[c, 3]\n+I[d, 4]");
    }

    #[test]
    fn of_changes_without_old_images_the_last_of_each_key_counts() {
        let upserts =
            PARTS.map(|part| part.lines().filter(|line| !line.starts_with("-U")).collect::<Vec<_>>().join("\n"));
        let told = run(ChangelogMode::UPSERT, Some(vec![0]), &upserts.each_ref().map(String::as_str));
        check(&told[0], "+I[a, 2]\n+I[b, 1]");
        check(&told[1], "+U[a, 2]\n-D[b, 1]");
        check(&told[2], "+U[a, 5]\n+I[b, 8]");
    }

    #[test]
    fn new_rows_come_in_their_order_and_watermarks_behind_them() {
        let schema = schema("k TEXT, v BIGINT");
        let mut operator = ConsistentOutput::new(Arc::clone(&schema), ChangelogMode::APPEND, None).unwrap();
        let mut out = Output::default();
        operator.on_changes(0, changes(&schema, "+I b 1\n+I a 1\n+I b 1"), &mut out).unwrap();
        operator.on_watermark(Watermark(5), &mut out).unwrap();
        assert!(emitted(&mut out).is_empty());
        operator.on_end(0, &mut out).unwrap();
        check(&emitted(&mut out), "+I[b, 1]\n+I[a, 1]\n+I[b, 1]\nW 5");
    }
}
