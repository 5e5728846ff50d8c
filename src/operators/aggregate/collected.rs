//! Functions that keep every value of a group: MIN and MAX under retraction, COLLECT and JSON_OBJECTAGG, and in order of
//! arrival LISTAGG, ARRAY_AGG, JSON_ARRAYAGG, FIRST_VALUE and LAST_VALUE under retraction.

use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray, Int32Array, ListArray, MapArray, StringBuilder, StructArray};
use arrow::buffer::{NullBuffer, OffsetBuffer};
use arrow::compute::cast;
use arrow::datatypes::{DataType, FieldRef};
use arrow::row::Rows;

use super::kernel::{Fold, Kernel};
use crate::error::{Error, Result};
use crate::state::{Arrivals, Codec, CodecKey, KeyTable, Multisets, Restored, TableDelta};

/// MIN or MAX over changes.
pub(super) struct Extreme<K: CodecKey> {
    values: Multisets<K>,
    greatest: bool,
}

impl<K: CodecKey> Extreme<K> {
    /// Over values of this type.
    pub fn new(data_type: &DataType, greatest: bool) -> Result<Extreme<K>> {
        Ok(Extreme { values: Multisets::new(data_type)?, greatest })
    }
}

pub(super) struct ExtremeFold<'a, K: CodecKey> {
    values: &'a mut Multisets<K>,
    greatest: bool,
    column: K::Column,
}

fn extreme<K: CodecKey>(values: &Multisets<K>, slot: u32, greatest: bool) -> Option<K> {
    if greatest { values.last(slot) } else { values.first(slot) }.cloned()
}

impl<K: CodecKey> Fold for ExtremeFold<'_, K> {
    type Value = Option<K>;

    fn add(&mut self, slot: u32, row: usize) {
        self.values.add(slot, K::view(&self.column, row), 1);
    }

    fn retract(&mut self, slot: u32, row: usize) {
        self.values.add(slot, K::view(&self.column, row), -1);
    }

    fn clear(&mut self, slot: u32) {
        self.values.clear(slot);
    }

    fn value(&self, slot: u32) -> Option<K> {
        extreme(self.values, slot, self.greatest)
    }
}

impl<K: CodecKey> Kernel for Extreme<K> {
    type Value = Option<K>;
    type Fold<'a> = ExtremeFold<'a, K>;

    fn bind<'a>(&'a mut self, arguments: &'a [ArrayRef]) -> Result<ExtremeFold<'a, K>> {
        let column = self.values.codec().encode(&arguments[0])?;
        Ok(ExtremeFold { values: &mut self.values, greatest: self.greatest, column })
    }

    fn grow(&mut self, slots: usize) {
        self.values.grow(slots);
    }

    fn clear(&mut self, slot: u32) {
        self.values.clear(slot);
    }

    fn merge(&mut self, into: u32, from: u32) {
        self.values.merge(into, from);
    }

    fn value(&self, slot: u32) -> Option<K> {
        extreme(&self.values, slot, self.greatest)
    }

    fn bytes(&self) -> usize {
        self.values.bytes()
    }

    fn build(&self, values: Vec<Option<K>>) -> Result<ArrayRef> {
        self.values.codec().decode(&values)
    }

    fn snapshot(&mut self, table: &str, keys: &KeyTable, base: bool) -> Result<Option<TableDelta>> {
        self.values.snapshot(table, keys, base).map(Some)
    }

    fn restore(&mut self, table: &str, keys: &mut KeyTable, from: &Restored) -> Result<()> {
        self.values.restore(table, keys, from)
    }
}

/// What becomes of a group's values and their counts.
pub(super) enum Counted {
    /// COLLECT, as a map of this type from the values to their counts
    Map(DataType),
    /// JSON_OBJECTAGG, of rows of a key and a member
    Object,
}

/// A function of the group's values and how often each came.
pub(super) struct Collect<K: CodecKey> {
    values: Multisets<K>,
    counted: Counted,
}

impl<K: CodecKey> Collect<K> {
    /// Over values of this type.
    pub fn new(data_type: &DataType, counted: Counted) -> Result<Collect<K>> {
        Ok(Collect { values: Multisets::new(data_type)?, counted })
    }

    fn map(&self, values: Vec<Vec<(K, i64)>>, output: &DataType) -> Result<ArrayRef> {
        let DataType::Map(entries, sorted) = output else {
            return Err(Error::bug(format!("COLLECT gives a map, not {output}")));
        };
        let DataType::Struct(pair) = entries.data_type() else {
            return Err(Error::bug("a map's entries are a struct"));
        };
        let offsets = OffsetBuffer::from_lengths(values.iter().map(Vec::len));
        let counts: Int32Array =
            values.iter().flatten().map(|(_, count)| i32::try_from(*count).unwrap_or(i32::MAX)).map(Some).collect();
        let keys: Vec<Option<K>> = values.into_iter().flatten().map(|(value, _)| Some(value)).collect();
        let keys = cast(&self.values.codec().decode(&keys)?, pair[0].data_type())?;
        let pairs = StructArray::try_new(pair.clone(), vec![keys, Arc::new(counts)], None)?;
        Ok(Arc::new(MapArray::try_new(Arc::clone(entries), offsets, pairs, None, *sorted)?))
    }

    /// Members in the order of their keys.
    fn objects(&self, values: Vec<Vec<(K, i64)>>) -> Result<ArrayRef> {
        let lengths: Vec<usize> = values.iter().map(Vec::len).collect();
        let more = values.iter().flatten().position(|(_, count)| *count > 1);
        let all: Vec<Option<K>> = values.into_iter().flatten().map(|(value, _)| Some(value)).collect();
        let all = self.values.codec().decode(&all)?;
        let [keys, members] = all.as_struct_opt().map(StructArray::columns).unwrap_or_default() else {
            return Err(Error::bug("JSON_OBJECTAGG reads rows of a key and a member"));
        };
        let (keys, members) = (keys.as_string::<i32>(), members.as_string::<i32>());
        let mut objects = StringBuilder::with_capacity(lengths.len(), members.values().len());
        let (mut from, mut line) = (0, String::new());
        for length in lengths {
            line.clear();
            for row in from..from + length {
                if more == Some(row) || row > from && keys.value(row - 1) == keys.value(row) {
                    return Err(Error::data(format!(
                        "the key '{}' comes twice in one JSON_OBJECTAGG",
                        keys.value(row)
                    ))
                    .hint("the keys of a group must be unique: group by the key first"));
                }
                line.push(if row > from { ',' } else { '{' });
                line.push_str(members.value(row));
            }
            line.push_str(if length == 0 { "{}" } else { "}" });
            objects.append_value(&line);
            from += length;
        }
        Ok(Arc::new(objects.finish()))
    }
}

pub(super) struct CollectFold<'a, K: CodecKey> {
    values: &'a mut Multisets<K>,
    column: K::Column,
}

fn multiset<K: CodecKey>(values: &Multisets<K>, slot: u32) -> Vec<(K, i64)> {
    values.values(slot).map(|(value, count)| (value.clone(), count)).collect()
}

impl<K: CodecKey> Fold for CollectFold<'_, K> {
    type Value = Vec<(K, i64)>;

    fn add(&mut self, slot: u32, row: usize) {
        self.values.add(slot, K::view(&self.column, row), 1);
    }

    fn retract(&mut self, slot: u32, row: usize) {
        self.values.add(slot, K::view(&self.column, row), -1);
    }

    fn clear(&mut self, slot: u32) {
        self.values.clear(slot);
    }

    fn value(&self, slot: u32) -> Vec<(K, i64)> {
        multiset(self.values, slot)
    }
}

impl<K: CodecKey> Kernel for Collect<K> {
    type Value = Vec<(K, i64)>;
    type Fold<'a> = CollectFold<'a, K>;

    fn bind<'a>(&'a mut self, arguments: &'a [ArrayRef]) -> Result<CollectFold<'a, K>> {
        let column = self.values.codec().encode(&arguments[0])?;
        Ok(CollectFold { values: &mut self.values, column })
    }

    fn grow(&mut self, slots: usize) {
        self.values.grow(slots);
    }

    fn clear(&mut self, slot: u32) {
        self.values.clear(slot);
    }

    fn merge(&mut self, into: u32, from: u32) {
        self.values.merge(into, from);
    }

    fn value(&self, slot: u32) -> Vec<(K, i64)> {
        multiset(&self.values, slot)
    }

    fn bytes(&self) -> usize {
        self.values.bytes()
    }

    fn build(&self, values: Vec<Vec<(K, i64)>>) -> Result<ArrayRef> {
        match &self.counted {
            Counted::Map(output) => self.map(values, output),
            Counted::Object => self.objects(values),
        }
    }

    fn snapshot(&mut self, table: &str, keys: &KeyTable, base: bool) -> Result<Option<TableDelta>> {
        self.values.snapshot(table, keys, base).map(Some)
    }

    fn restore(&mut self, table: &str, keys: &mut KeyTable, from: &Restored) -> Result<()> {
        self.values.restore(table, keys, from)
    }
}

/// What is made of the values in order of arrival.
#[derive(Debug, Clone)]
pub(super) enum Arranged {
    /// FIRST_VALUE
    First,
    /// LAST_VALUE
    Last,
    /// LISTAGG
    Joined(String),
    /// JSON_ARRAYAGG, of texts of JSON
    JsonArray,
    /// ARRAY_AGG, as a list of this item
    Listed(FieldRef),
}

/// A function of the group's values in order of arrival.
pub(super) struct Arrived {
    values: Arrivals,
    arranged: Arranged,
}

impl Arrived {
    /// Over values of this type.
    pub fn new(data_type: &DataType, arranged: Arranged, retractable: bool) -> Result<Arrived> {
        Ok(Arrived { values: Arrivals::new(data_type, retractable)?, arranged })
    }
}

pub(super) struct ArrivedFold<'a> {
    values: &'a mut Arrivals,
    arranged: &'a Arranged,
    column: Rows,
}

fn arranged_values(values: &Arrivals, arranged: &Arranged, slot: u32) -> Vec<Arc<[u8]>> {
    match arranged {
        Arranged::First => values.first(slot).cloned().into_iter().collect(),
        Arranged::Last => values.last(slot).cloned().into_iter().collect(),
        Arranged::Joined(_) | Arranged::JsonArray | Arranged::Listed(_) => values.values(slot).cloned().collect(),
    }
}

impl Fold for ArrivedFold<'_> {
    type Value = Vec<Arc<[u8]>>;

    fn add(&mut self, slot: u32, row: usize) {
        self.values.push(slot, self.column.row(row).data());
    }

    fn retract(&mut self, slot: u32, row: usize) {
        self.values.retract(slot, self.column.row(row).data());
    }

    fn clear(&mut self, slot: u32) {
        self.values.clear(slot);
    }

    fn value(&self, slot: u32) -> Vec<Arc<[u8]>> {
        arranged_values(self.values, self.arranged, slot)
    }
}

impl Kernel for Arrived {
    type Value = Vec<Arc<[u8]>>;
    type Fold<'a> = ArrivedFold<'a>;

    fn bind<'a>(&'a mut self, arguments: &'a [ArrayRef]) -> Result<ArrivedFold<'a>> {
        let column = self.values.encode(&arguments[0])?;
        Ok(ArrivedFold { values: &mut self.values, arranged: &self.arranged, column })
    }

    fn grow(&mut self, slots: usize) {
        self.values.grow(slots);
    }

    fn clear(&mut self, slot: u32) {
        self.values.clear(slot);
    }

    fn merge(&mut self, into: u32, from: u32) {
        self.values.merge(into, from);
    }

    fn value(&self, slot: u32) -> Vec<Arc<[u8]>> {
        arranged_values(&self.values, &self.arranged, slot)
    }

    fn bytes(&self) -> usize {
        self.values.bytes()
    }

    fn build(&self, values: Vec<Vec<Arc<[u8]>>>) -> Result<ArrayRef> {
        arrange(values, &self.arranged, self.values.codec())
    }

    fn snapshot(&mut self, table: &str, keys: &KeyTable, base: bool) -> Result<Option<TableDelta>> {
        self.values.snapshot(table, keys, base).map(Some)
    }

    fn restore(&mut self, table: &str, keys: &mut KeyTable, from: &Restored) -> Result<()> {
        self.values.restore(table, keys, from)
    }
}

/// What is made of each group's values.
pub(super) fn arrange(values: Vec<Vec<Arc<[u8]>>>, arranged: &Arranged, codec: &Codec<Arc<[u8]>>) -> Result<ArrayRef> {
    let lengths: Vec<usize> = values.iter().map(Vec::len).collect();
    if matches!(arranged, Arranged::First | Arranged::Last) {
        let values: Vec<Option<Arc<[u8]>>> = values.into_iter().map(|mut value| value.pop()).collect();
        return codec.decode(&values);
    }
    let all: Vec<Option<Arc<[u8]>>> = values.into_iter().flatten().map(Some).collect();
    let all = codec.decode(&all)?;
    match arranged {
        Arranged::Joined(separator) => join(&cast(&all, &DataType::Utf8)?, &lengths, separator),
        Arranged::JsonArray => json_arrays(&all, &lengths),
        Arranged::Listed(item) => {
            let nulls: NullBuffer = lengths.iter().map(|length| *length > 0).collect::<Vec<bool>>().into();
            let offsets = OffsetBuffer::from_lengths(lengths);
            Ok(Arc::new(ListArray::try_new(Arc::clone(item), offsets, cast(&all, item.data_type())?, Some(nulls))?))
        }
        Arranged::First | Arranged::Last => Err(Error::bug("one value is no list")),
    }
}

/// Joins runs of texts; a run without texts is NULL.
fn join(texts: &ArrayRef, lengths: &[usize], separator: &str) -> Result<ArrayRef> {
    let texts = texts.as_string::<i32>();
    let mut joined = StringBuilder::with_capacity(lengths.len(), texts.values().len());
    let (mut from, mut line) = (0, String::new());
    for length in lengths {
        if *length == 0 {
            joined.append_null();
            continue;
        }
        line.clear();
        for row in from..from + length {
            if row > from {
                line.push_str(separator);
            }
            line.push_str(texts.value(row));
        }
        joined.append_value(&line);
        from += length;
    }
    Ok(Arc::new(joined.finish()))
}

/// Puts runs of texts of JSON into arrays.
fn json_arrays(elements: &ArrayRef, lengths: &[usize]) -> Result<ArrayRef> {
    let elements = elements.as_string::<i32>();
    let mut arrays = StringBuilder::with_capacity(lengths.len(), elements.values().len());
    let (mut from, mut line) = (0, String::new());
    for length in lengths {
        line.clear();
        line.push('[');
        for row in from..from + length {
            if row > from {
                line.push(',');
            }
            line.push_str(elements.value(row));
        }
        line.push(']');
        arrays.append_value(&line);
        from += length;
    }
    Ok(Arc::new(arrays.finish()))
}
