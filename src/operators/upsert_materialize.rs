//! Before a sink that knows rows by their primary key: one row a key, whatever the query tells rows apart by.
//!
//! Two rows of a query may have one primary key, `(1, a)` and `(2, a)` for the key `a` say. If both went out as they come,
//! the delete of the second would take the first from the table too. So all rows that are there are kept by primary key,
//! in order of arrival, and the clause of the `INSERT` says which of them the table shows:
//!
//! | `ON CONFLICT DO` | the table shows |
//! |---|---|
//! | `DEDUPLICATE` | the row that came last; when it goes, the one before it |
//! | `NOTHING` | the row that came first |
//! | `ERROR` | the only row; several are an error |
//!
//! An update that moves a row to another key comes as a retraction here and an insert there, and one may arrive long
//! before the other. The last row is right at every moment; whether there are several is asked when the watermark moves.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, RecordBatch, StructArray};
use arrow::datatypes::{DataType, Field, SchemaRef};

use super::images::Images;
use super::lifetimes::Lifetimes;
use super::{Operator, Output, Port, ProcessingTime, StateSize};
use crate::changelog::{ChangeBatch, CheckpointId, Watermark};
use crate::error::{Error, Result};
use crate::state::{Arrivals, CodecKey, KeyGroupRange, KeyTable, Restored, Snapshot};
use crate::types::OnConflict;

/// The table of keys in a snapshot, with the row that is shown.
const KEYS: &str = "keys";

/// The table of rows in a snapshot.
const ROWS: &str = "rows";

/// A whole row in Arrow's row form.
type Row = Option<Arc<[u8]>>;

/// What an [`UpsertMaterialize`] is made of.
#[derive(Debug, Clone)]
pub struct UpsertMaterializeParameters {
    /// The columns of the rows.
    pub schema: SchemaRef,
    /// The columns of the sink's primary key.
    pub key: Vec<usize>,
    /// Which of several rows is shown.
    pub conflict: OnConflict,
    /// Whether rows only come: then the first of a key is all that need be kept.
    pub append_only_input: bool,
    /// Whether the sink needs `-U`.
    pub emit_update_before: bool,
    /// Keys not written for so many milliseconds of processing time are forgotten; 0: never.
    pub ttl_ms: u64,
    /// The keys that are here.
    pub key_groups: KeyGroupRange,
}

/// One row a primary key.
pub struct UpsertMaterialize {
    parameters: UpsertMaterializeParameters,
    keys: KeyTable,
    /// By slot: the rows that are there.
    rows: Arrivals,
    /// By slot: the row that the table shows, where that waits for the watermark.
    shown: Vec<Row>,
    /// Slots whose rows have changed since the watermark moved, in order, and whether a slot is among them.
    pending: Vec<u32>,
    is_pending: Vec<bool>,
    lifetimes: Lifetimes,
    saved: bool,
    unmatched: u64,
}

impl UpsertMaterialize {
    /// An operator of these parameters.
    ///
    /// # Errors
    /// If a column's type cannot be kept.
    pub fn new(parameters: UpsertMaterializeParameters) -> Result<UpsertMaterialize> {
        let columns = parameters.schema.fields();
        let fields = parameters.key.iter().map(|column| Arc::clone(&columns[*column])).collect();
        Ok(UpsertMaterialize {
            keys: KeyTable::new(fields)?,
            rows: Arrivals::new(&DataType::Struct(columns.clone()), !parameters.append_only_input)?,
            lifetimes: Lifetimes::new("lifetimes", parameters.ttl_ms),
            parameters,
            shown: Vec::new(),
            pending: Vec::new(),
            is_pending: Vec::new(),
            saved: false,
            unmatched: 0,
        })
    }

    fn waits(&self) -> bool {
        self.parameters.conflict != OnConflict::Deduplicate
    }

    fn grow(&mut self) {
        let capacity = self.keys.capacity().max(self.shown.len());
        self.rows.grow(capacity);
        self.shown.resize(capacity, None);
        self.is_pending.resize(capacity, false);
    }

    fn whole_rows(&self, batch: &RecordBatch) -> Result<ArrayRef> {
        let columns = batch.columns().to_vec();
        Ok(Arc::new(StructArray::try_new_with_length(
            self.parameters.schema.fields().clone(),
            columns,
            None,
            batch.num_rows(),
        )?))
    }

    /// Emits the changes between images, which are rows before and after, interleaved.
    fn emit(&self, images: Images, values: &[Row], out: &mut Output) -> Result<()> {
        // Where an image means nothing, any row will do.
        let Some(any) = values.iter().flatten().next() else { return Ok(()) };
        let values: Vec<Row> = values.iter().map(|row| Some(Arc::clone(row.as_ref().unwrap_or(any)))).collect();
        let decoded = self.rows.codec().decode(&values)?;
        out.changes(images.emit(&self.parameters.schema, &[], decoded.as_struct().columns())?);
        Ok(())
    }

    /// The row to show of a key, for all of its rows.
    fn chosen(&self, slot: u32) -> Result<Row> {
        let first = self.rows.first(slot).cloned();
        if self.parameters.conflict == OnConflict::Error
            && self.rows.values(slot).any(|row| Some(row) != first.as_ref())
        {
            let key = self.keys.take(&[slot])?;
            let named = self.parameters.key.iter().zip(&key).map(|(column, value)| {
                let text = arrow::util::display::array_value_to_string(value, 0).unwrap_or_default();
                format!("{} = {text}", self.parameters.schema.field(*column).name())
            });
            return Err(Error::data(format!(
                "the query gives several rows for one primary key: {}",
                named.collect::<Vec<_>>().join(", ")
            ))
            .hint("ON CONFLICT DO NOTHING keeps the first of them, ON CONFLICT DO DEDUPLICATE the last"));
        }
        Ok(first)
    }

    fn settle_pending(&mut self, out: &mut Output) -> Result<()> {
        let pending = std::mem::take(&mut self.pending);
        let mut images = Images::with_capacity(pending.len());
        let mut values: Vec<Row> = Vec::with_capacity(pending.len() * 2);
        self.keys.touch(&pending);
        for (change, slot) in pending.iter().enumerate() {
            self.is_pending[*slot as usize] = false;
            let after = self.chosen(*slot)?;
            let before = std::mem::replace(&mut self.shown[*slot as usize], after.clone());
            match (&before, &after) {
                (None, Some(_)) => images.insert(change),
                (Some(_), None) => images.delete(change),
                (Some(old), Some(new)) if old != new => images.update(change, self.parameters.emit_update_before),
                _ => {}
            }
            values.push(before);
            values.push(after);
        }
        self.emit(images, &values, out)?;
        self.remove_empty(&pending);
        Ok(())
    }

    /// Whether a key has been idle for too long; not while its rows wait for the watermark.
    fn is_expired(&self, slot: u32) -> bool {
        self.lifetimes.is_expired(slot) && !self.is_pending[slot as usize]
    }

    fn start_afresh(&mut self, slot: u32) {
        self.rows.clear(slot);
        self.shown[slot as usize] = None;
    }

    fn remove_empty(&mut self, slots: &[u32]) {
        for slot in slots {
            let index = *slot as usize;
            if self.rows.first(*slot).is_none() && self.shown[index].is_none() && !self.is_pending[index] {
                self.keys.remove(*slot);
            }
        }
    }
}

impl Operator for UpsertMaterialize {
    fn on_changes(&mut self, _port: Port, batch: ChangeBatch, out: &mut Output) -> Result<()> {
        let key: Vec<ArrayRef> =
            self.parameters.key.iter().map(|column| Arc::clone(batch.rows().column(*column))).collect();
        let mut slots = Vec::new();
        self.keys.slots_of(&key, batch.len(), &mut slots)?;
        self.keys.touch(&slots);
        self.grow();
        for slot in &slots {
            if self.is_expired(*slot) {
                self.start_afresh(*slot);
            }
            self.lifetimes.write(*slot);
        }
        let encoded = self.rows.encode(&self.whole_rows(batch.rows())?)?;
        let mut images = Images::with_capacity(batch.len());
        let mut values: Vec<Row> = Vec::with_capacity(batch.len() * 2);
        for (row, slot) in slots.iter().enumerate() {
            let before = if self.waits() { None } else { self.rows.last(*slot).cloned() };
            if self.parameters.conflict == OnConflict::Nothing
                && self.parameters.append_only_input
                && self.rows.first(*slot).is_some()
            {
                continue;
            }
            if !batch.kind(row).is_retraction() {
                self.rows.push(*slot, encoded.row(row).data());
            } else if !self.rows.retract(*slot, encoded.row(row).data()) {
                self.unmatched += 1;
            }
            if self.waits() {
                if !std::mem::replace(&mut self.is_pending[*slot as usize], true) {
                    self.pending.push(*slot);
                }
                continue;
            }
            let after = self.rows.last(*slot).cloned();
            match (&before, &after) {
                (None, Some(_)) => images.insert(row),
                (Some(_), None) => images.delete(row),
                (Some(old), Some(new)) if old != new => images.update(row, self.parameters.emit_update_before),
                _ => {}
            }
            values.push(before);
            values.push(after);
        }
        self.emit(images, &values, out)?;
        self.remove_empty(&slots);
        Ok(())
    }

    fn on_clock(&mut self, now: ProcessingTime, _out: &mut Output) -> Result<()> {
        if self.lifetimes.advance(now) {
            for slot in self.lifetimes.expired(&self.keys) {
                if self.is_expired(slot) {
                    self.start_afresh(slot);
                    self.keys.remove(slot);
                }
            }
        }
        Ok(())
    }

    fn on_watermark(&mut self, mark: Watermark, out: &mut Output) -> Result<()> {
        self.settle_pending(out)?;
        out.watermark(mark);
        Ok(())
    }

    fn snapshot(&mut self, _at: CheckpointId) -> Result<Snapshot> {
        let base = !std::mem::replace(&mut self.saved, true);
        let lifetimes = self.lifetimes.snapshot(&mut self.keys, base)?;
        let changed = self.keys.changed(base);
        let shown: Vec<Row> = changed.upserts.iter().map(|slot| self.shown[*slot as usize].clone()).collect();
        let shown = self.rows.codec().decode(&shown)?;
        let field = Arc::new(Field::new("shown", shown.data_type().clone(), true));
        let upserts = self.keys.rows(&changed.upserts, vec![(field, shown)])?;
        let deletes = self.keys.rows(&changed.deletes, Vec::new())?;
        let keys = self.keys.delta(KEYS, base, 0, upserts, deletes)?;
        let rows = self.rows.snapshot(ROWS, &self.keys, base)?;
        self.keys.finish_snapshot();
        Ok(Snapshot { tables: [keys, rows].into_iter().chain(lifetimes).collect() })
    }

    fn restore(&mut self, from: Restored) -> Result<()> {
        let from = from.restrict(self.parameters.key_groups)?;
        let mut slots = Vec::new();
        for delta in from.table(KEYS) {
            if let Some(rows) = &delta.deletes {
                let (keys, _) = self.keys.split_saved(KEYS, rows)?;
                self.keys.slots_of(&keys, rows.num_rows(), &mut slots)?;
                self.grow();
                for slot in &slots {
                    self.shown[*slot as usize] = None;
                    self.keys.remove(*slot);
                }
            }
            if let Some(rows) = &delta.upserts {
                let (keys, columns) = self.keys.split_saved(KEYS, rows)?;
                let [shown] = columns.as_slice() else {
                    return Err(Error::state("saved keys have no row beside them"));
                };
                self.keys.slots_of(&keys, rows.num_rows(), &mut slots)?;
                self.grow();
                let encoded = self.rows.encode(shown)?;
                for (row, slot) in slots.iter().enumerate() {
                    let there = shown.is_valid(row).then(|| <Arc<[u8]>>::own(encoded.row(row).data()));
                    self.shown[*slot as usize] = there;
                }
            }
        }
        self.rows.restore(ROWS, &mut self.keys, &from)?;
        self.grow();
        let live = self.keys.live_slots();
        self.remove_empty(&live);
        self.lifetimes.restore(&mut self.keys, &from)?;
        if self.waits() {
            // What had not been settled is not saved: it comes out of looking at all keys once.
            self.pending = self.keys.live_slots();
            self.pending.iter().for_each(|slot| self.is_pending[*slot as usize] = true);
        }
        Ok(())
    }

    fn state_size(&self) -> Option<StateSize> {
        let slots = self.shown.capacity() * (size_of::<Row>() + 1) + self.pending.capacity() * size_of::<u32>();
        Some(StateSize::new(self.keys.len(), self.keys.bytes() + self.rows.bytes() + slots))
    }

    fn shrink(&mut self) -> Result<()> {
        if self.pending.is_empty() && self.keys.shrink()? {
            self.rows.shrink();
            (self.shown, self.pending, self.is_pending) = Default::default();
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
    use crate::operators::testing::{changes, check, emitted, feed, saved, schema};

    fn operator(conflict: OnConflict, with_before: bool) -> (SchemaRef, UpsertMaterialize) {
        let input = schema("k TEXT, n BIGINT");
        let operator = UpsertMaterialize::new(UpsertMaterializeParameters {
            schema: Arc::clone(&input),
            key: vec![0],
            conflict,
            append_only_input: false,
            emit_update_before: with_before,
            ttl_ms: 0,
            key_groups: KeyGroupRange::ALL,
        });
        (input, operator.unwrap())
    }

    const LOG: &str = "
        +I a 1
        +I a 2
        +I b 5
        -U a 1
        +U b 1
        -D a 2
        +I a 3
        +I a 3
        -D a 3
        -D b 1
        -D c 9";

    #[test]
    fn the_last_row_is_shown_and_the_one_before_it_comes_back() {
        for size in [1, 4, 100] {
            let (input, mut operator) = operator(OnConflict::Deduplicate, false);
            let found = feed(&mut operator, &changes(&input, LOG), size, &mut Output::default());
            check(
                &found,
                "+I[a, 1]
                +U[a, 2]
                +I[b, 5]
                +U[b, 1]
                -D[a, 2]
                +I[a, 3]
                +U[b, 5]",
            );
            assert_eq!(operator.counters(), [("keys", 2), ("unmatched_retractions", 1)]);
        }
        let (input, mut operator) = operator(OnConflict::Deduplicate, true);
        let found = feed(&mut operator, &changes(&input, "+I a 1\n+I a 2"), 9, &mut Output::default());
        check(&found, "+I[a, 1]\n-U[a, 1]\n+U[a, 2]");
    }

    #[test]
    fn the_first_row_is_shown_when_the_watermark_moves() {
        let (input, mut operator) = operator(OnConflict::Nothing, true);
        let mut out = Output::default();
        check(&feed(&mut operator, &changes(&input, "+I a 1\n+I a 2\n+I b 1\n-D b 1"), 2, &mut out), "");
        operator.on_watermark(Watermark(1), &mut out).unwrap();
        check(&emitted(&mut out), "+I[a, 1]\nW 1");
        feed(&mut operator, &changes(&input, "-U a 1\n+U c 1"), 2, &mut out);
        operator.on_watermark(Watermark(2), &mut out).unwrap();
        check(&emitted(&mut out), "-U[a, 1]\n+U[a, 2]\n+I[c, 1]\nW 2");
        feed(&mut operator, &changes(&input, "-D a 2\n-D c 1\n+I c 1"), 2, &mut out);
        operator.on_watermark(Watermark(3), &mut out).unwrap();
        check(&emitted(&mut out), "-D[a, 2]\nW 3");
        assert_eq!(operator.counters()[0], ("keys", 1));
    }

    #[test]
    fn several_rows_of_a_key_are_an_error_only_if_they_are_still_there() {
        let (input, mut operator) = operator(OnConflict::Error, false);
        let mut out = Output::default();
        feed(&mut operator, &changes(&input, "+I a 1\n+I a 2\n-D a 1\n+I b 7\n+I b 7"), 9, &mut out);
        operator.on_watermark(Watermark(1), &mut out).unwrap();
        check(&emitted(&mut out), "+I[a, 2]\n+I[b, 7]\nW 1");
        feed(&mut operator, &changes(&input, "+I b 8"), 9, &mut out);
        let error = operator.on_watermark(Watermark(2), &mut out).unwrap_err();
        assert_eq!(error.message(), "the query gives several rows for one primary key: k = b");
    }

    #[test]
    fn a_restart_goes_on_where_it_stopped() {
        for conflict in [OnConflict::Deduplicate, OnConflict::Nothing] {
            let (input, mut through) = operator(conflict, true);
            let parts = ["+I a 1\n+I a 2\n+I b 1", "-D a 2\n+I c 5\n-D b 1", "-D a 1\n+I b 2\n+I c 6\n-D c 5"];
            let mut snapshots = Vec::new();
            let (mut expected, mut found) = (Vec::new(), Vec::new());
            for (number, part) in parts.iter().enumerate() {
                let (_, mut restored) = operator(conflict, true);
                restored.restore(saved(&snapshots)).unwrap();
                for (one, lines) in [(&mut through, &mut expected), (&mut restored, &mut found)] {
                    let mut out = Output::default();
                    one.on_changes(0, changes(&input, part), &mut out).unwrap();
                    one.on_watermark(Watermark(number as i64), &mut out).unwrap();
                    // After a restart all keys are looked at, so the order of the keys is another.
                    let mut emitted = emitted(&mut out);
                    emitted.sort();
                    lines.extend(emitted);
                }
                snapshots.push(through.snapshot(number as u64 + 1).unwrap());
            }
            assert_eq!(found, expected);
            assert!(found.len() > 8, "{found:?}");
        }
    }
}
