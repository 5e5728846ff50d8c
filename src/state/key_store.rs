//! The keys of a table by slot, with the index that finds them: one form for whole numbers, one for bytes.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, Float32Array, Float64Array, Int64Array, StringBuilder};
use arrow::compute::cast;
use arrow::datatypes::{DataType, FieldRef, Float32Type, Float64Type, Int64Type};
use arrow::row::{RowConverter, SortField};
use hashbrown::HashTable;

use super::hash::hash_bytes;
use super::integer_index::IntegerIndex;
use super::narrow::{SavedColumn, is_number};
use crate::error::{Error, Result};

/// Bytes of forgotten keys that an arena may keep before it is packed anew.
const ARENA_SLACK: usize = 1 << 20;

/// Whether a column of this type goes over to 64-bit whole numbers and back without loss.
pub(super) fn is_integer_like(data_type: &DataType) -> bool {
    matches!(
        data_type,
        DataType::Boolean
            | DataType::Int8
            | DataType::Int16
            | DataType::Int32
            | DataType::Int64
            | DataType::Date32
            | DataType::Time32(_)
            | DataType::Time64(_)
            | DataType::Timestamp(_, _)
    )
}

/// The values of a column for which [`is_integer_like`] holds.
pub(super) fn to_integers(array: &dyn Array) -> Result<Int64Array> {
    Ok(cast(array, &DataType::Int64)?.as_primitive::<Int64Type>().clone())
}

/// The inverse of [`to_integers`].
pub(super) fn from_integers(integers: Int64Array, data_type: &DataType) -> Result<ArrayRef> {
    if data_type == &DataType::Int64 {
        return Ok(Arc::new(integers));
    }
    if matches!(data_type, DataType::Time32(_)) {
        return Ok(cast(&cast(&integers, &DataType::Int32)?, data_type)?);
    }
    Ok(cast(&integers, data_type)?)
}

/// Makes `-0.0` `0.0` and all NaNs one, so that equal keys have equal bytes.
pub fn normalise(array: &ArrayRef) -> ArrayRef {
    match array.data_type() {
        DataType::Float32 => {
            let floats = array.as_primitive::<Float32Type>();
            let normal: Float32Array = floats.unary(|x| if x.is_nan() { f32::NAN } else { x + 0.0 });
            Arc::new(normal)
        }
        DataType::Float64 => {
            let floats = array.as_primitive::<Float64Type>();
            let normal: Float64Array = floats.unary(|x| if x.is_nan() { f64::NAN } else { x + 0.0 });
            Arc::new(normal)
        }
        _ => Arc::clone(array),
    }
}

/// Keys by slot.
pub(super) enum KeyStore {
    /// No key columns: every row has the same key.
    Single(Option<u32>),
    /// One column of whole numbers, dates or times.
    Integer(IntegerKeys),
    /// One text column.
    Text(ByteKeys),
    /// Anything else, in Arrow's row form.
    Rows(ByteKeys, Box<RowConverter>),
}

impl KeyStore {
    /// A store for keys of these columns.
    pub fn new(fields: &[FieldRef]) -> Result<KeyStore> {
        Ok(match fields {
            [] => KeyStore::Single(None),
            [field] if is_integer_like(field.data_type()) => KeyStore::Integer(IntegerKeys::default()),
            [field] if field.data_type() == &DataType::Utf8 => KeyStore::Text(ByteKeys::default()),
            several => {
                let sorted: Vec<SortField> = several.iter().map(|f| SortField::new(f.data_type().clone())).collect();
                if !RowConverter::supports_fields(&sorted) {
                    let names: Vec<String> =
                        several.iter().map(|f| format!("{} {}", f.name(), f.data_type())).collect();
                    return Err(Error::sql(format!(
                        "columns of these types cannot be compared as keys: {}",
                        names.join(", ")
                    )));
                }
                KeyStore::Rows(ByteKeys::default(), Box::new(RowConverter::new(sorted)?))
            }
        })
    }

    /// Appends the slot of each row's key to `slots`; `new_slot` gives one to a key that has none.
    pub fn get_or_insert(
        &mut self,
        keys: &[ArrayRef],
        rows: usize,
        slots: &mut Vec<u32>,
        mut new_slot: impl FnMut() -> u32,
    ) -> Result<()> {
        match self {
            KeyStore::Single(slot) => {
                if rows > 0 {
                    let slot = *slot.get_or_insert_with(new_slot);
                    slots.resize(slots.len() + rows, slot);
                }
            }
            KeyStore::Integer(store) => store.get_or_insert(&to_integers(&keys[0])?, slots, new_slot),
            KeyStore::Text(store) => {
                let texts = keys[0].as_string::<i32>();
                match texts.nulls() {
                    None => slots
                        .extend((0..rows).map(|row| store.get_or_insert(texts.value(row).as_bytes(), &mut new_slot))),
                    Some(nulls) => slots.extend((0..rows).map(|row| {
                        if nulls.is_null(row) {
                            store.null_slot(&mut new_slot)
                        } else {
                            store.get_or_insert(texts.value(row).as_bytes(), &mut new_slot)
                        }
                    })),
                }
            }
            KeyStore::Rows(store, converter) => {
                let normal: Vec<ArrayRef> = keys.iter().map(normalise).collect();
                let rows = converter.convert_columns(&normal)?;
                slots.extend(rows.iter().map(|row| store.get_or_insert(row.data(), &mut new_slot)));
            }
        }
        Ok(())
    }

    /// Forgets the key of `slot`; what it was can still be read until the slot is given to another key.
    pub fn unlink(&mut self, slot: u32) {
        match self {
            KeyStore::Single(known) => *known = None,
            KeyStore::Integer(store) => {
                if store.null == Some(slot) {
                    store.null = None;
                } else {
                    store.index.remove(store.values[slot as usize]);
                }
            }
            KeyStore::Text(store) | KeyStore::Rows(store, _) => store.unlink(slot),
        }
    }

    /// Says that the key of an unlinked slot is read no more.
    pub fn release(&mut self, slot: u32) {
        if let KeyStore::Text(store) | KeyStore::Rows(store, _) = self {
            store.release(slot);
        }
    }

    /// The key columns of these slots, for a snapshot.
    pub fn saved(&self, slots: &[u32], fields: &[FieldRef]) -> Result<Vec<SavedColumn>> {
        match self {
            KeyStore::Integer(store) if is_number(fields[0].data_type()) && !store.has_null() => {
                Ok(vec![SavedColumn::numbers(slots, fields[0].data_type(), |slot| store.values[slot])?])
            }
            _ => Ok(self.take(slots, fields)?.into_iter().map(SavedColumn::from).collect()),
        }
    }

    /// Bytes in use.
    pub fn bytes(&self) -> usize {
        match self {
            KeyStore::Single(_) => 0,
            KeyStore::Integer(store) => store.index.bytes() + store.values.capacity() * size_of::<i64>(),
            KeyStore::Text(store) | KeyStore::Rows(store, _) => {
                let index = store.index.capacity() * (size_of::<u32>() + 1);
                let spans = store.spans.capacity() * size_of::<(usize, u32)>();
                index + store.hashes.capacity() * size_of::<u64>() + spans + store.arena.capacity()
            }
        }
    }

    /// The key columns of these slots.
    pub fn take(&self, slots: &[u32], fields: &[FieldRef]) -> Result<Vec<ArrayRef>> {
        match self {
            KeyStore::Single(_) => Ok(Vec::new()),
            KeyStore::Integer(store) => {
                let value = |slot: &u32| store.values[*slot as usize];
                let integers = if store.has_null() {
                    slots.iter().map(|slot| (!store.is_null(*slot)).then(|| value(slot))).collect()
                } else {
                    Int64Array::from_iter_values(slots.iter().map(value))
                };
                Ok(vec![from_integers(integers, fields[0].data_type())?])
            }
            KeyStore::Text(store) => {
                let bytes = slots.iter().map(|slot| store.spans[*slot as usize].1 as usize).sum();
                let mut texts = StringBuilder::with_capacity(slots.len(), bytes);
                for slot in slots {
                    if store.null_slots.contains(slot) {
                        texts.append_null();
                    } else {
                        let text = std::str::from_utf8(store.bytes(*slot))
                            .map_err(|_| Error::bug("a text key is not UTF-8"))?;
                        texts.append_value(text);
                    }
                }
                Ok(vec![Arc::new(texts.finish())])
            }
            KeyStore::Rows(store, converter) => {
                let parser = converter.parser();
                Ok(converter.convert_rows(slots.iter().map(|slot| parser.parse(store.bytes(*slot))))?)
            }
        }
    }
}

/// Whole-number keys.
#[derive(Default)]
pub(super) struct IntegerKeys {
    index: IntegerIndex,
    values: Vec<i64>,
    /// The slot of NULL.
    null: Option<u32>,
    /// Slots that stand, or stood until they are given away, for NULL.
    null_slots: Vec<u32>,
}

impl IntegerKeys {
    fn get_or_insert(&mut self, keys: &Int64Array, slots: &mut Vec<u32>, mut new_slot: impl FnMut() -> u32) {
        let IntegerKeys { index, values, null, null_slots } = self;
        let mut fresh = |key: i64, null_slots: &mut Vec<u32>| {
            let slot = new_slot();
            if slot as usize >= values.len() {
                values.resize(slot as usize + 1, 0);
            }
            values[slot as usize] = key;
            if !null_slots.is_empty() {
                null_slots.retain(|known| *known != slot);
            }
            slot
        };
        match keys.nulls().filter(|nulls| nulls.null_count() > 0) {
            None => {
                let from = slots.len();
                index.look_home(keys.values(), slots);
                for (key, slot) in keys.values().iter().zip(&mut slots[from..]) {
                    if *slot == IntegerIndex::UNKNOWN {
                        *slot = index.get_or_insert(*key, || fresh(*key, null_slots));
                    }
                }
            }
            Some(nulls) => slots.extend(keys.values().iter().enumerate().map(|(row, key)| {
                if nulls.is_valid(row) {
                    return index.get_or_insert(*key, || fresh(*key, null_slots));
                }
                *null.get_or_insert_with(|| {
                    let slot = fresh(0, null_slots);
                    null_slots.push(slot);
                    slot
                })
            })),
        }
    }

    fn has_null(&self) -> bool {
        !self.null_slots.is_empty()
    }

    fn is_null(&self, slot: u32) -> bool {
        self.null_slots.contains(&slot)
    }
}

/// Keys that are runs of bytes.
#[derive(Default)]
pub(super) struct ByteKeys {
    index: HashTable<u32>,
    hashes: Vec<u64>,
    /// Where each slot's bytes lie in the arena.
    spans: Vec<(usize, u32)>,
    arena: Vec<u8>,
    /// Bytes of the arena that belong to released slots.
    garbage: usize,
    /// The slot of NULL; only for text.
    null: Option<u32>,
    null_slots: Vec<u32>,
}

impl ByteKeys {
    fn bytes(&self, slot: u32) -> &[u8] {
        let (from, length) = self.spans[slot as usize];
        &self.arena[from..from + length as usize]
    }

    #[inline]
    fn get_or_insert(&mut self, key: &[u8], new_slot: &mut impl FnMut() -> u32) -> u32 {
        let hash = hash_bytes(key);
        let found = self.index.find(hash, |slot| self.hashes[*slot as usize] == hash && self.bytes(*slot) == key);
        match found {
            Some(slot) => *slot,
            None => self.insert(hash, key, new_slot()),
        }
    }

    fn null_slot(&mut self, new_slot: &mut impl FnMut() -> u32) -> u32 {
        if let Some(slot) = self.null {
            return slot;
        }
        let slot = new_slot();
        self.reserve(slot);
        self.null = Some(slot);
        self.null_slots.push(slot);
        slot
    }

    fn insert(&mut self, hash: u64, key: &[u8], slot: u32) -> u32 {
        self.reserve(slot);
        let place = slot as usize;
        self.hashes[place] = hash;
        self.spans[place] = (self.arena.len(), key.len() as u32);
        self.arena.extend_from_slice(key);
        let hashes = &self.hashes;
        self.index.insert_unique(hash, slot, |slot| hashes[*slot as usize]);
        slot
    }

    fn reserve(&mut self, slot: u32) {
        if slot as usize >= self.spans.len() {
            self.spans.resize(slot as usize + 1, (0, 0));
            self.hashes.resize(slot as usize + 1, 0);
        }
    }

    fn unlink(&mut self, slot: u32) {
        if self.null == Some(slot) {
            self.null = None;
        } else if let Ok(entry) = self.index.find_entry(self.hashes[slot as usize], |known| *known == slot) {
            entry.remove();
        }
    }

    fn release(&mut self, slot: u32) {
        self.null_slots.retain(|known| *known != slot);
        let Some(span) = self.spans.get_mut(slot as usize) else { return };
        self.garbage += std::mem::take(span).1 as usize;
        if self.garbage > ARENA_SLACK && self.garbage * 2 > self.arena.len() {
            self.pack();
        }
    }

    /// Copies the bytes that are still read into a new arena.
    fn pack(&mut self) {
        let mut arena = Vec::with_capacity(self.arena.len() - self.garbage);
        for (from, length) in &mut self.spans {
            let start = arena.len();
            arena.extend_from_slice(&self.arena[*from..*from + *length as usize]);
            *from = start;
        }
        self.arena = arena;
        self.garbage = 0;
    }
}
