//! Rows kept as they came, column by column: what operators over append-only inputs remember.
//!
//! A row is known by its slot. The batches themselves are kept, not copies of single rows; a batch goes with its last
//! row, and batches of which little is left, or that were small from the start, are put together now and then. Each row
//! carries one mark for its operator's use ("has found a match").

use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, AsArray, BooleanArray, Int64Array, RecordBatch, RecordBatchOptions, UInt16Array, UInt32Array,
    new_null_array,
};
use arrow::compute::{interleave, take, take_record_batch};
use arrow::datatypes::{DataType, Field, FieldRef, Int64Type, Schema, SchemaRef, UInt16Type};

use super::hash::hash_rows;
use super::key_group::key_group;
use super::multiset::unfit;
use super::snapshot::{KEY_COLUMNS, KEY_GROUP_COLUMN, Restored, Scope, TableDelta};
use crate::error::{Error, Result};

/// No slot, no row.
const NONE: u32 = u32::MAX;

/// The slot holds a row.
const LIVE: u8 = 1;
/// Written since the last snapshot.
const DIRTY: u8 = 2;
/// Part of an earlier snapshot.
const SAVED: u8 = 4;
/// The operator's mark.
const MARKED: u8 = 8;

/// Batches with fewer rows than this are put together once there are [`MERGED_BATCHES`] of them.
const SMALL_ROWS: usize = 1_024;

/// How many small or sparse batches are put together at once.
const MERGED_BATCHES: usize = 16;

/// The columns of a saved row before its own: key group and number.
const SAVED_KEY: usize = 2;

struct Batch {
    rows: RecordBatch,
    /// By row: its slot; [`NONE`] once it has gone.
    slots: Vec<u32>,
    live: usize,
}

impl Batch {
    /// Whether it is better put together with others.
    fn wasteful(&self) -> bool {
        self.rows.num_rows() < SMALL_ROWS || self.live * 4 < self.rows.num_rows()
    }
}

/// Rows by slot.
pub struct RowStore {
    table: &'static str,
    schema: SchemaRef,
    /// The columns that decide the key group.
    key_columns: Vec<usize>,
    batches: Vec<Option<Batch>>,
    free_batches: Vec<u32>,
    /// How many batches are wasteful.
    wasteful: usize,
    /// By slot: batch and row.
    places: Vec<(u32, u32)>,
    /// By slot: the row's number, in order of arrival.
    sequences: Vec<i64>,
    groups: Vec<u16>,
    flags: Vec<u8>,
    free: Vec<u32>,
    live: usize,
    next: i64,
    /// Whether changes are recorded: from the first snapshot on.
    tracking: bool,
    dirty: Vec<u32>,
    /// Saved rows that have gone since the last snapshot.
    gone: Vec<(u16, i64)>,
}

impl RowStore {
    /// No rows yet; saved under the name `table`, by the key groups of `key_columns`.
    pub fn new(table: &'static str, schema: SchemaRef, key_columns: Vec<usize>) -> RowStore {
        let (batches, free_batches, wasteful, places, sequences, groups, flags, free) = Default::default();
        let (live, next, tracking, dirty, gone) = Default::default();
        RowStore {
            table,
            schema,
            key_columns,
            batches,
            free_batches,
            wasteful,
            places,
            sequences,
            groups,
            flags,
            free,
            live,
            next,
            tracking,
            dirty,
            gone,
        }
    }

    /// Number of rows.
    pub fn len(&self) -> usize {
        self.live
    }

    /// Bytes in use; what batches share with others counts in full.
    pub fn bytes(&self) -> usize {
        let batches = self.batches.iter().flatten();
        let rows = batches.map(|batch| batch.rows.get_array_memory_size() + batch.slots.capacity() * size_of::<u32>());
        let slot = size_of::<(u32, u32)>() + size_of::<i64>() + size_of::<u16>() + size_of::<u8>();
        rows.sum::<usize>() + self.places.capacity() * slot + self.free.capacity() * size_of::<u32>()
    }

    /// Gives back the memory of slots if none holds a row and there is nothing to write about them.
    pub fn shrink(&mut self) {
        if self.live > 0 || !self.dirty.is_empty() || !self.gone.is_empty() {
            return;
        }
        (self.batches, self.free_batches, self.wasteful) = Default::default();
        (self.places, self.sequences, self.groups, self.flags, self.free) = Default::default();
    }

    /// One more than the greatest slot ever given.
    pub fn capacity(&self) -> usize {
        self.places.len()
    }

    /// Keeps the rows `kept` (ascending) of a batch and writes their slots into `slots`.
    ///
    /// # Errors
    /// If a key has no hash, or there are too many rows.
    pub fn insert(&mut self, rows: &RecordBatch, kept: &[u32], slots: &mut Vec<u32>) -> Result<()> {
        slots.clear();
        if kept.is_empty() {
            return Ok(());
        }
        let rows = match kept.len() == rows.num_rows() {
            true => rows.clone(),
            false => take_record_batch(rows, &UInt32Array::from(kept.to_vec()))?,
        };
        let groups = self.key_groups(&rows)?;
        let first = self.next;
        self.next += rows.num_rows() as i64;
        let sequences: Vec<i64> = (first..self.next).collect();
        self.add(rows, &sequences, &groups, slots)
    }

    fn key_groups(&self, rows: &RecordBatch) -> Result<Vec<u16>> {
        let keys: Vec<ArrayRef> = self.key_columns.iter().map(|column| Arc::clone(rows.column(*column))).collect();
        let mut hashes = Vec::with_capacity(rows.num_rows());
        hash_rows(&keys, &mut hashes)?;
        // Rows without key columns belong to one subtask: the one that owns the first key group.
        hashes.resize(rows.num_rows(), 0);
        Ok(hashes.into_iter().map(key_group).collect())
    }

    fn add(&mut self, rows: RecordBatch, sequences: &[i64], groups: &[u16], slots: &mut Vec<u32>) -> Result<()> {
        if self.places.len() + rows.num_rows() >= NONE as usize {
            return Err(Error::data("more than 4 billion rows in one table"));
        }
        let batch = self.free_batch();
        for row in 0..rows.num_rows() {
            let (place, sequence, group) = ((batch, row as u32), sequences[row], groups[row]);
            let flags = if self.tracking { LIVE | DIRTY } else { LIVE };
            let slot = match self.free.pop() {
                Some(slot) => {
                    self.places[slot as usize] = place;
                    self.sequences[slot as usize] = sequence;
                    self.groups[slot as usize] = group;
                    self.flags[slot as usize] = flags;
                    slot
                }
                None => {
                    self.places.push(place);
                    self.sequences.push(sequence);
                    self.groups.push(group);
                    self.flags.push(flags);
                    self.places.len() as u32 - 1
                }
            };
            slots.push(slot);
        }
        if self.tracking {
            self.dirty.extend_from_slice(slots);
        }
        self.live += slots.len();
        self.put(batch, Batch { live: slots.len(), slots: slots.clone(), rows });
        Ok(())
    }

    fn free_batch(&mut self) -> u32 {
        self.free_batches.pop().unwrap_or_else(|| {
            self.batches.push(None);
            self.batches.len() as u32 - 1
        })
    }

    fn put(&mut self, place: u32, batch: Batch) {
        self.wasteful += usize::from(batch.wasteful());
        self.batches[place as usize] = Some(batch);
    }

    /// Forgets a row.
    pub fn release(&mut self, slot: u32) {
        let flags = std::mem::take(&mut self.flags[slot as usize]);
        if flags & LIVE == 0 {
            return;
        }
        self.live -= 1;
        if flags & SAVED != 0 {
            self.gone.push((self.groups[slot as usize], self.sequences[slot as usize]));
        }
        self.free.push(slot);
        let (place, row) = self.places[slot as usize];
        let Some(batch) = self.batches[place as usize].as_mut() else { return };
        let before = batch.wasteful();
        batch.slots[row as usize] = NONE;
        batch.live -= 1;
        if batch.live == 0 {
            self.batches[place as usize] = None;
            self.free_batches.push(place);
            self.wasteful -= usize::from(before);
        } else if !before && batch.wasteful() {
            self.wasteful += 1;
        }
    }

    /// Sets the operator's mark on a row.
    #[inline]
    pub fn mark(&mut self, slot: u32) {
        let flags = &mut self.flags[slot as usize];
        if *flags & MARKED != 0 {
            return;
        }
        *flags |= MARKED;
        if self.tracking && *flags & DIRTY == 0 {
            *flags |= DIRTY;
            self.dirty.push(slot);
        }
    }

    /// Whether the row has the operator's mark.
    #[inline]
    pub fn is_marked(&self, slot: u32) -> bool {
        self.flags[slot as usize] & MARKED != 0
    }

    /// The row's number: rows that came later have greater ones.
    #[inline]
    pub fn sequence(&self, slot: u32) -> i64 {
        self.sequences[slot as usize]
    }

    /// The slots that hold rows, in order of arrival.
    pub fn live_slots(&self) -> Vec<u32> {
        let live = |slot: &u32| self.flags[*slot as usize] & LIVE != 0;
        let mut slots: Vec<u32> = (0..self.places.len() as u32).filter(live).collect();
        slots.sort_unstable_by_key(|slot| self.sequences[*slot as usize]);
        slots
    }

    /// The first `width` columns of these rows; the slot `u32::MAX` stands for a row of NULLs.
    ///
    /// # Errors
    /// Only by a bug.
    pub fn take(&self, slots: &[u32], width: usize) -> Result<Vec<ArrayRef>> {
        let columns: Vec<usize> = (0..width).collect();
        self.take_columns(slots, &columns)
    }

    /// Some columns of these rows; the slot `u32::MAX` stands for a row of NULLs.
    ///
    /// # Errors
    /// Only by a bug.
    pub fn take_columns(&self, slots: &[u32], columns: &[usize]) -> Result<Vec<ArrayRef>> {
        // Where each batch stands among those that are read.
        let mut among: Vec<u32> = vec![NONE; self.batches.len()];
        let mut read: Vec<&RecordBatch> = Vec::new();
        let mut nulls = false;
        let mut indices: Vec<(usize, usize)> = Vec::with_capacity(slots.len());
        for slot in slots {
            if *slot == NONE {
                nulls = true;
                indices.push((usize::MAX, 0));
                continue;
            }
            let (place, row) = self.places[*slot as usize];
            if among[place as usize] == NONE {
                let batch = self.batches[place as usize].as_ref();
                among[place as usize] = read.len() as u32;
                read.push(&batch.ok_or_else(|| Error::bug("a kept row has lost its batch"))?.rows);
            }
            indices.push((among[place as usize] as usize, row as usize));
        }
        if let ([only], false) = (read.as_slice(), nulls) {
            let rows = UInt32Array::from_iter_values(indices.iter().map(|(_, row)| *row as u32));
            return columns.iter().map(|column| Ok(take(only.column(*column), &rows, None)?)).collect();
        }
        if nulls {
            indices.iter_mut().filter(|index| index.0 == usize::MAX).for_each(|index| index.0 = read.len());
        }
        let of = |column: &usize| {
            let data_type = self.schema.field(*column).data_type();
            if read.is_empty() {
                return Ok(new_null_array(data_type, slots.len()));
            }
            let null = nulls.then(|| new_null_array(data_type, 1));
            let mut arrays: Vec<&dyn Array> = read.iter().map(|rows| rows.column(*column).as_ref()).collect();
            arrays.extend(null.as_deref());
            Ok(interleave(&arrays, &indices)?)
        };
        columns.iter().map(of).collect()
    }

    /// Puts batches together of which little is left, or that were small from the start, if there are many. Small ones
    /// go together with small ones, so that a row is copied a few times in its life, however few come at once.
    ///
    /// # Errors
    /// Only by a bug.
    pub fn compact(&mut self) -> Result<()> {
        if self.wasteful < MERGED_BATCHES {
            return Ok(());
        }
        let wasteful = |batch: &Option<Batch>| batch.as_ref().is_some_and(Batch::wasteful);
        let live = |place: &usize| self.batches[*place].as_ref().map_or(0, |batch| batch.live);
        let mut places: Vec<usize> = (0..self.batches.len()).filter(|place| wasteful(&self.batches[*place])).collect();
        places.sort_by_key(live);
        let mut rows = 0;
        let alike = |(place, batch): (usize, &usize)| {
            let fits = place < 2 || live(batch) <= 2 * rows;
            rows += live(batch);
            fits
        };
        let merged = places.iter().enumerate().map(alike).take_while(|fits| *fits).count();
        places.truncate(merged);
        let slots: Vec<u32> = places
            .iter()
            .filter_map(|place| self.batches[*place].as_ref())
            .flat_map(|batch| batch.slots.iter().copied().filter(|slot| *slot != NONE))
            .collect();
        let columns = self.take(&slots, self.schema.fields().len())?;
        let rows = self.rows_of(columns, slots.len())?;
        self.wasteful -= places.len();
        for place in places {
            self.batches[place] = None;
            self.free_batches.push(place as u32);
        }
        let batch = self.free_batch();
        for (row, slot) in slots.iter().enumerate() {
            self.places[*slot as usize] = (batch, row as u32);
        }
        self.put(batch, Batch { rows, live: slots.len(), slots });
        Ok(())
    }

    fn rows_of(&self, columns: Vec<ArrayRef>, rows: usize) -> Result<RecordBatch> {
        let options = RecordBatchOptions::new().with_row_count(Some(rows));
        Ok(RecordBatch::try_new_with_options(Arc::clone(&self.schema), columns, &options)?)
    }

    /// What changed since the last snapshot (everything for a base).
    ///
    /// # Errors
    /// Only by a bug.
    pub fn snapshot(&mut self, base: bool) -> Result<TableDelta> {
        let everything = base || !self.tracking;
        let mut upserts = if everything { self.live_slots() } else { std::mem::take(&mut self.dirty) };
        // A slot may have been given away and be noted twice.
        upserts.retain(|slot| {
            let flags = &mut self.flags[*slot as usize];
            let wanted = *flags & LIVE != 0 && (everything || *flags & DIRTY != 0);
            *flags = (*flags & !DIRTY) | if wanted { SAVED } else { 0 };
            wanted
        });
        self.dirty.clear();
        self.tracking = true;
        let gone = std::mem::take(&mut self.gone);
        let deletes = if everything { Vec::new() } else { gone };
        let upserts = if upserts.is_empty() { None } else { Some(self.saved_rows(&upserts)?) };
        let deletes = if deletes.is_empty() { None } else { Some(saved_keys(deletes.into_iter())?) };
        Ok(TableDelta { table: self.table.to_owned(), scope: Scope::Keyed, base: everything, upserts, deletes })
    }

    /// `[key group, number, columns…, mark]` of these rows.
    fn saved_rows(&self, slots: &[u32]) -> Result<RecordBatch> {
        let keys = slots.iter().map(|slot| (self.groups[*slot as usize], self.sequences[*slot as usize]));
        let keys = saved_keys(keys)?;
        let mut fields: Vec<FieldRef> = keys.schema().fields().iter().cloned().collect();
        let mut columns = keys.columns().to_vec();
        // Names may repeat in the query; saved tables number them.
        let numbered = self.schema.fields().iter().enumerate();
        fields.extend(
            numbered.map(|(i, field)| Arc::new(Field::new(format!("row_{i}"), field.data_type().clone(), true))),
        );
        columns.extend(self.take(slots, self.schema.fields().len())?);
        fields.push(Arc::new(Field::new("mark", DataType::Boolean, false)));
        columns.push(Arc::new(slots.iter().map(|slot| Some(self.is_marked(*slot))).collect::<BooleanArray>()));
        let metadata = [(KEY_COLUMNS.to_owned(), SAVED_KEY.to_string())].into();
        Ok(RecordBatch::try_new(Arc::new(Schema::new_with_metadata(fields, metadata)), columns)?)
    }

    /// Takes back what snapshots held.
    ///
    /// # Errors
    /// If the saved rows do not fit.
    pub fn restore(&mut self, from: &Restored) -> Result<()> {
        let mut by_key = std::collections::HashMap::new();
        let mut slots = Vec::new();
        for delta in from.table(self.table) {
            for rows in [&delta.deletes, &delta.upserts].into_iter().flatten() {
                let (groups, sequences) = self.split_keys(rows)?;
                for key in groups.values().iter().copied().zip(sequences.values().iter().copied()) {
                    self.next = self.next.max(key.1 + 1);
                    if let Some(slot) = by_key.remove(&key) {
                        self.release(slot);
                    }
                }
            }
            let Some(rows) = &delta.upserts else { continue };
            let (groups, sequences) = self.split_keys(rows)?;
            let (columns, mark) = self.split_rows(rows)?;
            slots.clear();
            let kept = self.rows_of(columns, rows.num_rows())?;
            self.add(kept, sequences.values(), groups.values(), &mut slots)?;
            for (row, slot) in slots.iter().enumerate() {
                by_key.insert((groups.value(row), sequences.value(row)), *slot);
                if mark.value(row) {
                    self.mark(*slot);
                }
            }
        }
        Ok(())
    }

    fn split_keys(&self, rows: &RecordBatch) -> Result<(UInt16Array, Int64Array)> {
        let groups = rows.columns().first().and_then(|column| column.as_primitive_opt::<UInt16Type>());
        let sequences = rows.columns().get(1).and_then(|column| column.as_primitive_opt::<Int64Type>());
        match (groups, sequences) {
            (Some(groups), Some(sequences)) => Ok((groups.clone(), sequences.clone())),
            _ => Err(unfit(self.table)),
        }
    }

    fn split_rows(&self, rows: &RecordBatch) -> Result<(Vec<ArrayRef>, BooleanArray)> {
        let columns = &rows.columns()[SAVED_KEY..];
        let Some((mark, columns)) = columns.split_last() else { return Err(unfit(self.table)) };
        let wanted = self.schema.fields().iter().map(|field| field.data_type());
        if !columns.iter().map(|column| column.data_type()).eq(wanted) {
            return Err(unfit(self.table));
        }
        let mark = mark.as_boolean_opt().ok_or_else(|| unfit(self.table))?;
        Ok((columns.to_vec(), mark.clone()))
    }
}

/// `[key group, number]` as rows.
fn saved_keys(keys: impl Iterator<Item = (u16, i64)>) -> Result<RecordBatch> {
    let (groups, sequences): (Vec<u16>, Vec<i64>) = keys.unzip();
    let fields = [Field::new(KEY_GROUP_COLUMN, DataType::UInt16, false), Field::new("key_0", DataType::Int64, false)];
    let columns: Vec<ArrayRef> = vec![Arc::new(UInt16Array::from(groups)), Arc::new(Int64Array::from(sequences))];
    Ok(RecordBatch::try_new(Arc::new(Schema::new(fields.to_vec())), columns)?)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use rand::rngs::StdRng;
    use rand::{RngExt, SeedableRng};

    use super::*;

    fn store() -> RowStore {
        let schema = Schema::new(vec![Field::new("k", DataType::Int64, true), Field::new("v", DataType::Int64, true)]);
        RowStore::new("rows", Arc::new(schema), vec![0])
    }

    fn batch(store: &RowStore, values: &[i64]) -> RecordBatch {
        let keys: Int64Array = values.iter().map(|value| (value % 3 != 0).then_some(value % 5)).collect();
        let values = Int64Array::from(values.to_vec());
        RecordBatch::try_new(Arc::clone(&store.schema), vec![Arc::new(keys), Arc::new(values)]).unwrap()
    }

    /// The values of the rows, each with its mark, in order of arrival.
    fn content(store: &RowStore) -> Vec<(i64, bool)> {
        let slots = store.live_slots();
        let columns = store.take(&slots, 2).unwrap();
        let values = columns[1].as_primitive::<Int64Type>().values().to_vec();
        values.into_iter().zip(slots.iter().map(|slot| store.is_marked(*slot))).collect()
    }

    #[test]
    fn rows_stay_what_they_are_through_compaction_and_restarts() {
        for seed in 0..20 {
            let mut random = StdRng::seed_from_u64(seed);
            let mut rows = store();
            let mut model: BTreeMap<i64, (u32, bool)> = BTreeMap::new();
            let (mut next, mut deltas, mut slots): (i64, Vec<TableDelta>, _) = (0, Vec::new(), Vec::new());
            for step in 0..400 {
                let size = if random.random_range(0..20) == 0 { 2_000 } else { random.random_range(0..6) };
                let values: Vec<i64> = (next..next + size).collect();
                next += size;
                let kept: Vec<u32> = (0..size as u32).filter(|_| random.random_range(0..4) > 0).collect();
                rows.insert(&batch(&rows, &values), &kept, &mut slots).unwrap();
                model.extend(kept.iter().zip(&slots).map(|(row, slot)| (values[*row as usize], (*slot, false))));
                let all: Vec<i64> = model.keys().copied().collect();
                for value in all.iter().filter(|_| random.random_range(0..10) == 0) {
                    rows.mark(model[value].0);
                    model.entry(*value).and_modify(|entry| entry.1 = true);
                }
                for value in all.iter().filter(|_| random.random_range(0..3) == 0) {
                    rows.release(model.remove(value).unwrap().0);
                }
                rows.compact().unwrap();
                assert!(rows.wasteful < MERGED_BATCHES);
                let expected: Vec<(i64, bool)> = model.iter().map(|(value, (_, mark))| (*value, *mark)).collect();
                assert_eq!(content(&rows), expected, "seed {seed}, step {step}");
                if random.random_range(0..10) == 0 {
                    deltas.push(rows.snapshot(deltas.is_empty()).unwrap());
                    if random.random() {
                        rows = store();
                        rows.restore(&Restored { deltas: deltas.clone() }).unwrap();
                        assert_eq!(content(&rows), expected, "seed {seed}, restored at {step}");
                        deltas.clear();
                        let places = rows.live_slots().into_iter().zip(model.values_mut());
                        places.for_each(|(slot, entry)| entry.0 = slot);
                    }
                }
            }
            let live: Vec<u32> = rows.live_slots();
            live.into_iter().for_each(|slot| rows.release(slot));
            assert!(rows.len() == 0 && rows.batches.iter().all(Option::is_none), "nothing is kept of nothing");
        }
    }

    #[test]
    fn a_missing_row_is_taken_as_nulls() {
        let mut rows = store();
        let mut slots = Vec::new();
        rows.insert(&batch(&rows, &[1, 2]), &[0, 1], &mut slots).unwrap();
        let values = rows.take(&[NONE, slots[1], NONE], 2).unwrap();
        assert_eq!(*values[1].as_primitive::<Int64Type>(), Int64Array::from(vec![None, Some(2), None]));
        assert_eq!(rows.take(&[NONE], 1).unwrap()[0].null_count(), 1);
    }
}
