//! `VARIANT`: JSON values, kept as text without blanks and with the members of objects in order.

use arrow::array::{Array, ArrayRef, AsArray};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Int64Type};
use serde_json::Value;

use super::column::{texts, try_texts};
use super::function::{Call, Entry, Typing};
use super::parameter::Parameter::{self, Boolean, Text};
use crate::error::{Error, Result};
use crate::types::SqlType;

/// The entries of this file.
pub(super) fn entries() -> Vec<Entry> {
    const JSON: &[&[Parameter]] = &[&[Text], &[Text, Boolean]];
    vec![
        Entry::new(&["parse_json"], JSON, Typing::Fixed(SqlType::Variant), parse),
        Entry::new(&["try_parse_json"], JSON, Typing::Nullable(SqlType::Variant), try_parse),
    ]
}

fn parse(call: &Call<'_>) -> Result<ArrayRef> {
    let text = call.text(0)?;
    try_texts(call, |row, to| {
        let Some(text) = text.get(row) else { return Ok(None) };
        let value: Value =
            serde_json::from_str(text).map_err(|error| call.error(format!("'{text}' is no JSON ({error})")))?;
        to.push_str(&value.to_string());
        Ok(Some(()))
    })
}

fn try_parse(call: &Call<'_>) -> Result<ArrayRef> {
    let text = call.text(0)?;
    texts(call, |row, to| {
        let value: Value = serde_json::from_str(text.get(row)?).ok()?;
        to.push_str(&value.to_string());
        Some(())
    })
}

/// `v['a']` and `v[1]`: a member of an object, or an element of an array; NULL where there is none.
pub(super) fn item(call: &Call<'_>) -> Result<ArrayRef> {
    let variants = call.text(0)?;
    let key = &call.arguments[1];
    let names = key.as_string_opt::<i32>();
    let indexes = match names {
        Some(_) => None,
        None => Some(cast(key, &DataType::Int64)?.as_primitive::<Int64Type>().clone()),
    };
    if names.is_none() && indexes.is_none() {
        return Err(Error::bug(format!("a VARIANT is accessed by {}", key.data_type())));
    }
    texts(call, |row, to| {
        let at = if call.constant[1] { 0 } else { row };
        let value: Value = serde_json::from_str(variants.get(row)?).ok()?;
        let found = match (names, &indexes) {
            (Some(names), _) if !names.is_null(at) => value.get(names.value(at)),
            (_, Some(indexes)) if !indexes.is_null(at) => {
                usize::try_from(indexes.value(at) - 1).ok().and_then(|index| value.get(index))
            }
            _ => None,
        }?;
        to.push_str(&found.to_string());
        Some(())
    })
}
