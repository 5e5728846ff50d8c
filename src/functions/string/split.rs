//! Text taken apart: SPLIT, SPLIT_INDEX, STR_TO_MAP.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, ListBuilder, MapBuilder, MapFieldNames, StringBuilder};
use arrow::datatypes::DataType;

use crate::error::{Error, Result};
use crate::functions::column::slices;
use crate::functions::function::{Call, Entry, Typing};
use crate::functions::parameter::Parameter::{self, Int, Text};
use crate::types::{RowField, SqlType};

/// The entries of this file.
pub(super) fn entries() -> Vec<Entry> {
    const INDEX: &[&[Parameter]] = &[&[Text, Text, Int], &[Text, Int, Int]];
    const MAP: &[&[Parameter]] = &[&[Text], &[Text, Text, Text]];
    let component = |nullable| Box::new(RowField::unnamed(SqlType::STRING, nullable));
    vec![
        Entry::new(&["split"], &[&[Text, Text]], Typing::Fixed(SqlType::Array(component(true))), split),
        Entry::new(&["split_index"], INDEX, Typing::Nullable(SqlType::STRING), split_index),
        Entry::new(&["str_to_map"], MAP, Typing::Fixed(SqlType::Map(component(true), component(true))), str_to_map),
    ]
}

/// The empty text has no parts; an empty separator splits into characters.
fn split(call: &Call<'_>) -> Result<ArrayRef> {
    let (text, separator) = (call.text(0)?, call.text(1)?);
    let DataType::List(item) = call.result.data_type() else {
        return Err(Error::bug(format!("SPLIT as {}", call.result.data_type())));
    };
    let mut builder = ListBuilder::with_capacity(StringBuilder::new(), call.rows).with_field(item.clone());
    for row in 0..call.rows {
        let (Some(text), Some(separator)) = (text.get(row), separator.get(row)) else {
            builder.append(false);
            continue;
        };
        let parts = builder.values();
        if separator.is_empty() {
            text.char_indices().for_each(|(at, c)| parts.append_value(&text[at..at + c.len_utf8()]));
        } else if !text.is_empty() {
            text.split(separator).for_each(|part| parts.append_value(part));
        }
        builder.append(true);
    }
    Ok(Arc::new(builder.finish()))
}

/// The separator may be the code of a character; an empty one stands for any blank.
fn split_index(call: &Call<'_>) -> Result<ArrayRef> {
    let (text, index) = (call.text(0)?, call.int(2)?);
    let find = |text: &'_ str, index: i32| usize::try_from(index).ok().filter(|_| !text.is_empty());
    if *call.arguments[1].data_type() == DataType::Int32 {
        let code = call.int(1)?;
        return slices(call, |row| {
            let (text, code) = (text.get(row)?, code.get(row)?);
            let separator = u32::try_from(code).ok().and_then(char::from_u32)?;
            text.split(separator).nth(find(text, index.get(row)?)?)
        });
    }
    let separator = call.text(1)?;
    slices(call, |row| {
        let (text, separator) = (text.get(row)?, separator.get(row)?);
        let index = find(text, index.get(row)?)?;
        if separator.is_empty() { text.split(char::is_whitespace).nth(index) } else { text.split(separator).nth(index) }
    })
}

/// Pairs between separators; the last of equal keys counts. A pair without its separator has the value NULL.
fn str_to_map(call: &Call<'_>) -> Result<ArrayRef> {
    let text = call.text(0)?;
    let separators = if call.has(1) { Some((call.text(1)?, call.text(2)?)) } else { None };
    let names = MapFieldNames { entry: "entries".into(), key: "key".into(), value: "value".into() };
    let mut builder = MapBuilder::new(Some(names), StringBuilder::new(), StringBuilder::new());
    let mut pairs: Vec<(&str, Option<&str>)> = Vec::new();
    for row in 0..call.rows {
        let separators = match &separators {
            Some((pair, value)) => pair.get(row).zip(value.get(row)),
            None => Some((",", "=")),
        };
        let (Some(text), Some((pair_separator, value_separator))) = (text.get(row), separators) else {
            builder.append(false)?;
            continue;
        };
        pairs.clear();
        for part in text.split(pair_separator).filter(|_| !text.is_empty()) {
            let (key, value) = match part.split_once(value_separator) {
                Some((key, value)) => (key, Some(value)),
                None => (part, None),
            };
            match pairs.iter_mut().find(|(known, _)| *known == key) {
                Some(known) => known.1 = value,
                None => pairs.push((key, value)),
            }
        }
        for (key, value) in &pairs {
            builder.keys().append_value(key);
            builder.values().append_option(*value);
        }
        builder.append(true)?;
    }
    let map = builder.finish();
    Ok(map
        .into_data()
        .into_builder()
        .data_type(call.result.data_type().clone())
        .build()
        .map(arrow::array::make_array)?)
}
