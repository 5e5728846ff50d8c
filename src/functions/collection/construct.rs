//! Building collections and taking maps apart: `ARRAY[…]`, `MAP[…]`, `ROW(…)` (as `flink_array`, `flink_map`,
//! `flink_row`), MAP_FROM_ARRAYS, MAP_UNION, MAP_KEYS, MAP_VALUES, MAP_ENTRIES.

use std::collections::HashMap;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, ListArray, MapArray, StructArray, new_empty_array, new_null_array};
use arrow::buffer::{NullBuffer, OffsetBuffer};
use arrow::compute::interleave;
use arrow::datatypes::{DataType, Field, Fields};

use super::gather::{Gather, Lists, Values, comparable, element_of, restored, result_element};
use crate::error::{Error, Result};
use crate::functions::cast::cast_column;
use crate::functions::function::{Arguments, Call, Entry, Typing};
use crate::functions::parameter::Parameter::{self, Any, Array as List, Many, Map};
use crate::functions::typing::common_type;
use crate::types::{RowField, SqlType};

/// The entries of this file.
pub(super) fn entries() -> Vec<Entry> {
    const ANY: &[&[Parameter]] = &[&[Many(&Any)]];
    const MAP: &[&[Parameter]] = &[&[Map]];
    vec![
        Entry::new(&["flink_array"], ANY, Typing::By(array_type), array),
        Entry::new(&["flink_map"], ANY, Typing::By(map_type), map),
        Entry::new(&["flink_row"], ANY, Typing::By(row_type), row),
        Entry::new(&["map_from_arrays"], &[&[List, List]], Typing::By(from_arrays_type), from_arrays),
        Entry::new(&["map_union"], &[&[Map, Many(&Map)]], Typing::By(union_type), union),
        Entry::new(&["map_keys"], MAP, Typing::By(|a| part_type(a, 0)), |call| part(call, 0)),
        Entry::new(&["map_values"], MAP, Typing::By(|a| part_type(a, 1)), |call| part(call, 1)),
        Entry::new(&["map_entries"], MAP, Typing::By(entries_type), map_entries),
    ]
}

/// The common type of arguments `from`, `from + step`, …
fn common(arguments: &Arguments<'_>, from: usize, step: usize, what: &str) -> Result<RowField> {
    let indexes = || (from..arguments.fields.len()).step_by(step);
    let types: Vec<SqlType> = indexes().map(|index| arguments.sql_type(index)).collect();
    let sql_type = common_type(&types).ok_or_else(|| {
        let listed: Vec<String> = types.iter().map(SqlType::to_string).collect();
        Error::sql(format!("the {what} have no common type: {}", listed.join(", "))).hint("CAST them to one type")
    })?;
    Ok(RowField::unnamed(sql_type, indexes().any(|index| arguments.fields[index].is_nullable())))
}

fn array_type(arguments: &Arguments<'_>) -> Result<(SqlType, bool)> {
    Ok((SqlType::Array(Box::new(common(arguments, 0, 1, "elements of an ARRAY")?)), false))
}

fn array(call: &Call<'_>) -> Result<ArrayRef> {
    let element = result_element(call);
    let values = (0..call.arguments.len()).map(|i| Values::argument(call, i, &element)).collect::<Result<Vec<_>>>()?;
    let mut gather = Gather::new(call.rows);
    for row in 0..call.rows {
        values.iter().enumerate().for_each(|(source, value)| gather.push(source, value.place(row)));
        gather.end(true);
    }
    let sources: Vec<&ArrayRef> = values.iter().map(|value| &value.array).collect();
    gather.finish(call, &sources)
}

fn row_type(arguments: &Arguments<'_>) -> Result<(SqlType, bool)> {
    let fields = (0..arguments.fields.len()).map(|index| RowField {
        name: format!("EXPR${index}"),
        sql_type: arguments.sql_type(index),
        nullable: arguments.fields[index].is_nullable(),
    });
    Ok((SqlType::Row(fields.collect()), false))
}

fn row(call: &Call<'_>) -> Result<ArrayRef> {
    let DataType::Struct(fields) = call.result.data_type() else {
        return Err(Error::bug(format!("a ROW as {}", call.result.data_type())));
    };
    let columns = (0..call.arguments.len()).map(|index| call.column(index)).collect::<Result<Vec<_>>>()?;
    let columns = columns.into_iter().zip(fields).map(|(column, field)| restored(column, field.data_type()));
    let columns = columns.collect::<Result<Vec<_>>>()?;
    Ok(Arc::new(StructArray::try_new_with_length(fields.clone(), columns, None, call.rows)?))
}

fn map_type(arguments: &Arguments<'_>) -> Result<(SqlType, bool)> {
    if arguments.fields.len() % 2 == 1 {
        return Err(Error::sql("MAP needs keys and values in pairs"));
    }
    let (key, value) = (common(arguments, 0, 2, "keys of a MAP")?, common(arguments, 1, 2, "values of a MAP")?);
    if key.sql_type == SqlType::Null {
        return Err(Error::sql("the keys of a MAP are NULL, which has no type").hint("CAST(NULL AS type)"));
    }
    Ok((SqlType::Map(Box::new(key), Box::new(value)), false))
}

fn key_and_value(call: &Call<'_>) -> Result<(RowField, RowField)> {
    match SqlType::of_field(call.result) {
        SqlType::Map(key, value) => Ok((*key, *value)),
        other => Err(Error::bug(format!("{} as {other}", call.name))),
    }
}

fn map(call: &Call<'_>) -> Result<ArrayRef> {
    let (key, value) = key_and_value(call)?;
    let half = |from: usize, to: &SqlType| {
        (from..call.arguments.len()).step_by(2).map(|i| Values::argument(call, i, to)).collect::<Result<Vec<_>>>()
    };
    let (keys, values) = (half(0, &key.sql_type)?, half(1, &value.sql_type)?);
    let key_columns: Vec<&ArrayRef> = keys.iter().map(|key| &key.array).collect();
    let value_columns: Vec<&ArrayRef> = values.iter().map(|value| &value.array).collect();
    let mut pairs = Pairs::new(call, &key_columns)?;
    for row in 0..call.rows {
        for (source, (key, value)) in keys.iter().zip(&values).enumerate() {
            pairs.push((source, key.place(row)), (source, value.place(row)));
        }
        pairs.end(true);
    }
    pairs.finish(call, &key_columns, &value_columns)
}

/// Pairs of keys and values under way to maps: the last value of equal keys counts, at the place of the first.
struct Pairs {
    rows: Vec<arrow::row::Rows>,
    keys: Vec<(usize, usize)>,
    values: Vec<(usize, usize)>,
    offsets: Vec<i32>,
    valid: Vec<bool>,
    known: HashMap<Vec<u8>, usize>,
}

impl Pairs {
    fn new(call: &Call<'_>, keys: &[&ArrayRef]) -> Result<Pairs> {
        Ok(Pairs {
            rows: comparable(keys)?,
            keys: Vec::with_capacity(call.rows),
            values: Vec::with_capacity(call.rows),
            offsets: vec![0],
            valid: Vec::with_capacity(call.rows),
            known: HashMap::new(),
        })
    }

    fn push(&mut self, key: (usize, usize), value: (usize, usize)) {
        let row = self.rows[key.0].row(key.1);
        if let Some(place) = self.known.get(row.data()) {
            self.values[*place] = value;
            return;
        }
        self.known.insert(row.data().to_vec(), self.keys.len());
        self.keys.push(key);
        self.values.push(value);
    }

    fn end(&mut self, valid: bool) {
        self.known.clear();
        if !valid {
            let start = self.offsets.last().map_or(0, |offset| *offset as usize);
            self.keys.truncate(start);
            self.values.truncate(start);
        }
        self.offsets.push(self.keys.len() as i32);
        self.valid.push(valid);
    }

    fn finish(self, call: &Call<'_>, keys: &[&ArrayRef], values: &[&ArrayRef]) -> Result<ArrayRef> {
        let DataType::Map(entries, ordered) = call.result.data_type() else {
            return Err(Error::bug(format!("{} as {}", call.name, call.result.data_type())));
        };
        let DataType::Struct(pair) = entries.data_type() else {
            return Err(Error::bug(format!("the entries of a MAP as {}", entries.data_type())));
        };
        let gathered = |columns: &[&ArrayRef], picks: &[(usize, usize)], field: &Field| {
            let arrays: Vec<&dyn Array> = columns.iter().map(|column| column.as_ref()).collect();
            let array = if picks.is_empty() { new_empty_array(field.data_type()) } else { interleave(&arrays, picks)? };
            restored(array, field.data_type())
        };
        let keys = gathered(keys, &self.keys, &pair[0])?;
        if keys.null_count() > 0 {
            return Err(call.error("a key of a MAP is NULL"));
        }
        let values = gathered(values, &self.values, &pair[1])?;
        let rows = StructArray::try_new(pair.clone(), vec![keys, values], None)?;
        let offsets = OffsetBuffer::new(self.offsets.into());
        let nulls = Some(NullBuffer::from(self.valid));
        Ok(Arc::new(MapArray::try_new(entries.clone(), offsets, rows, nulls, *ordered)?))
    }
}

fn from_arrays_type(arguments: &Arguments<'_>) -> Result<(SqlType, bool)> {
    let (key, value) = (element_of(arguments, 0)?, element_of(arguments, 1)?);
    Ok((SqlType::Map(Box::new(key), Box::new(value)), arguments.nullable()))
}

fn from_arrays(call: &Call<'_>) -> Result<ArrayRef> {
    let (key, value) = key_and_value(call)?;
    let (keys, values) = (Lists::argument(call, 0, &key.sql_type)?, Lists::argument(call, 1, &value.sql_type)?);
    let mut pairs = Pairs::new(call, &[keys.values()])?;
    for row in 0..call.rows {
        let (Some(key), Some(value)) = (keys.range(row), values.range(row)) else {
            pairs.end(false);
            continue;
        };
        if key.len() != value.len() {
            return Err(call.error(format!("{} keys do not go with {} values", key.len(), value.len())));
        }
        key.zip(value).for_each(|(key, value)| pairs.push((0, key), (0, value)));
        pairs.end(true);
    }
    pairs.finish(call, &[keys.values()], &[values.values()])
}

fn pair_of(arguments: &Arguments<'_>, index: usize) -> Result<(RowField, RowField)> {
    match arguments.sql_type(index) {
        SqlType::Map(key, value) => Ok((*key, *value)),
        SqlType::Multiset(element) => Ok((*element, RowField::unnamed(SqlType::Int, false))),
        SqlType::Null => Ok((RowField::unnamed(SqlType::STRING, true), RowField::unnamed(SqlType::STRING, true))),
        other => Err(Error::sql(format!("{} needs a MAP, not {other}", arguments.name))),
    }
}

fn union_type(arguments: &Arguments<'_>) -> Result<(SqlType, bool)> {
    let types: Vec<SqlType> = (0..arguments.fields.len()).map(|index| arguments.sql_type(index)).collect();
    match common_type(&types) {
        Some(common @ SqlType::Map(..)) => Ok((common, arguments.nullable())),
        _ => Err(Error::sql("the arguments of MAP_UNION have no common type")),
    }
}

fn union(call: &Call<'_>) -> Result<ArrayRef> {
    let to = SqlType::of_field(call.result);
    let columns = (0..call.arguments.len()).map(|index| {
        let column = call.column(index)?;
        let declared = SqlType::of_field(&call.fields[index]);
        let from =
            if declared.to_arrow() == *column.data_type() { declared } else { SqlType::from_arrow(column.data_type()) };
        cast_column(&column, &from, &to, call.context.zone)
    });
    let columns = columns.collect::<Result<Vec<_>>>()?;
    let maps: Vec<&MapArray> = columns.iter().map(|column| column.as_map()).collect();
    let keys: Vec<&ArrayRef> = maps.iter().map(|map| map.keys()).collect();
    let values: Vec<&ArrayRef> = maps.iter().map(|map| map.values()).collect();
    let mut pairs = Pairs::new(call, &keys)?;
    for row in 0..call.rows {
        for (source, map) in maps.iter().enumerate().filter(|(_, map)| map.is_valid(row)) {
            let range = map.value_offsets()[row] as usize..map.value_offsets()[row + 1] as usize;
            range.for_each(|index| pairs.push((source, index), (source, index)));
        }
        pairs.end(maps.iter().all(|map| map.is_valid(row)));
    }
    pairs.finish(call, &keys, &values)
}

fn part_type(arguments: &Arguments<'_>, part: usize) -> Result<(SqlType, bool)> {
    let (key, value) = pair_of(arguments, 0)?;
    Ok((SqlType::Array(Box::new(if part == 0 { key } else { value })), arguments.nullable()))
}

/// The list type of the result and the map of the argument; nothing for a bare NULL.
fn parts(call: &Call<'_>) -> Result<Option<(Arc<Field>, MapArray)>> {
    let DataType::List(item) = call.result.data_type() else {
        return Err(Error::bug(format!("{} as {}", call.name, call.result.data_type())));
    };
    Ok(call.column(0)?.as_map_opt().map(|map| (item.clone(), map.clone())))
}

fn part(call: &Call<'_>, part: usize) -> Result<ArrayRef> {
    let Some((item, map)) = parts(call)? else { return Ok(new_null_array(call.result.data_type(), call.rows)) };
    let values = restored(map.entries().column(part).clone(), item.data_type())?;
    Ok(Arc::new(ListArray::try_new(item, map.offsets().clone(), values, map.nulls().cloned())?))
}

fn entries_type(arguments: &Arguments<'_>) -> Result<(SqlType, bool)> {
    let (key, value) = pair_of(arguments, 0)?;
    let named = |field: RowField, name: &str| RowField { name: name.to_string(), ..field };
    let row = SqlType::Row(vec![named(key, "key"), named(value, "value")]);
    Ok((SqlType::Array(Box::new(RowField::unnamed(row, true))), arguments.nullable()))
}

fn map_entries(call: &Call<'_>) -> Result<ArrayRef> {
    let Some((item, map)) = parts(call)? else { return Ok(new_null_array(call.result.data_type(), call.rows)) };
    let DataType::Struct(fields) = item.data_type() else {
        return Err(Error::bug(format!("entries as {}", item.data_type())));
    };
    let fields: Fields = fields.clone();
    let rows = StructArray::try_new(fields, map.entries().columns().to_vec(), None)?;
    Ok(Arc::new(ListArray::try_new(item, map.offsets().clone(), Arc::new(rows), map.nulls().cloned())?))
}
