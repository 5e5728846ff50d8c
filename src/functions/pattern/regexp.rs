//! REGEXP and the REGEXP_… functions. An invalid expression has no result (REGEXP: FALSE), as in Flink.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, ListBuilder, StringBuilder};
use arrow::datatypes::{DataType, Int32Type};

use super::java::{Compiled, matches};
use crate::error::{Error, Result};
use crate::functions::column::{booleans, texts, try_primitives, try_texts};
use crate::functions::function::{Call, Entry, Typing};
use crate::functions::parameter::Parameter::{self, Int, Text};
use crate::types::{RowField, SqlType};

/// The entries of this file.
pub(super) fn entries() -> Vec<Entry> {
    const TWO: &[&[Parameter]] = &[&[Text, Text]];
    const GROUP: &[&[Parameter]] = &[&[Text, Text], &[Text, Text, Int]];
    let list = || SqlType::Array(Box::new(RowField::unnamed(SqlType::STRING, true)));
    vec![
        Entry::new(&["regexp"], TWO, Typing::Fixed(SqlType::Boolean), regexp),
        Entry::new(&["regexp_replace"], &[&[Text, Text, Text]], Typing::Fixed(SqlType::STRING), replace),
        Entry::new(&["regexp_extract"], GROUP, Typing::Nullable(SqlType::STRING), extract),
        Entry::new(&["regexp_extract_all"], GROUP, Typing::Nullable(list()), extract_all),
        Entry::new(&["regexp_count"], TWO, Typing::Nullable(SqlType::Int), count),
        Entry::new(&["regexp_instr"], TWO, Typing::Nullable(SqlType::Int), position),
        Entry::new(&["regexp_substr"], TWO, Typing::Nullable(SqlType::STRING), substring),
    ]
}

fn regexp(call: &Call<'_>) -> Result<ArrayRef> {
    let (text, pattern) = (call.text(0)?, call.text(1)?);
    let mut compiled = Compiled::default();
    let mut failure = None;
    let result = booleans(call, |row| {
        let (text, pattern) = (text.get(row)?, pattern.get(row)?);
        match compiled.get(pattern) {
            // The empty expression matches nothing here.
            Ok(regex) => Some(!pattern.is_empty() && regex.is_some_and(|regex| regex.is_match(text))),
            Err(error) => {
                failure.get_or_insert(error);
                None
            }
        }
    })?;
    failure.map_or(Ok(result), Err)
}

/// The replacement is plain text: `$1` means itself.
fn replace(call: &Call<'_>) -> Result<ArrayRef> {
    let (text, pattern, new) = (call.text(0)?, call.text(1)?, call.text(2)?);
    let mut compiled = Compiled::default();
    try_texts(call, |row, to| {
        let (Some(text), Some(pattern), Some(new)) = (text.get(row), pattern.get(row), new.get(row)) else {
            return Ok(None);
        };
        let Some(regex) = compiled.get(pattern)? else { return Ok(None) };
        let mut last = 0;
        matches(regex, text, |captures| {
            if let Some(found) = captures.get(0) {
                to.push_str(&text[last..found.start()]);
                to.push_str(new);
                last = found.end();
            }
        });
        to.push_str(&text[last..]);
        Ok(Some(()))
    })
}

fn extract(call: &Call<'_>) -> Result<ArrayRef> {
    let (text, pattern) = (call.text(0)?, call.text(1)?);
    let group = call.has(2).then(|| call.int(2)).transpose()?;
    let mut compiled = Compiled::default();
    try_texts(call, |row, to| {
        let group = match &group {
            Some(group) => group.get(row),
            None => Some(0),
        };
        let (Some(text), Some(pattern), Some(group)) = (text.get(row), pattern.get(row), group) else {
            return Ok(None);
        };
        let Some(regex) = compiled.get(pattern)? else { return Ok(None) };
        let found = usize::try_from(group).ok().and_then(|group| regex.captures(text)?.get(group));
        Ok(found.map(|found| to.push_str(found.as_str())))
    })
}

/// All matches' texts of a group, by default the first.
fn extract_all(call: &Call<'_>) -> Result<ArrayRef> {
    let (text, pattern) = (call.text(0)?, call.text(1)?);
    let group = call.has(2).then(|| call.int(2)).transpose()?;
    let DataType::List(item) = call.result.data_type() else {
        return Err(Error::bug(format!("REGEXP_EXTRACT_ALL as {}", call.result.data_type())));
    };
    let mut compiled = Compiled::default();
    let mut builder = ListBuilder::with_capacity(StringBuilder::new(), call.rows).with_field(item.clone());
    for row in 0..call.rows {
        let group = match &group {
            Some(group) => group.get(row),
            None => Some(1),
        };
        let (Some(text), Some(pattern), Some(group)) = (text.get(row), pattern.get(row), group) else {
            builder.append(false);
            continue;
        };
        match (compiled.get(pattern)?, usize::try_from(group)) {
            (Some(regex), Ok(group)) if group < regex.captures_len() => {
                matches(regex, text, |captures| {
                    builder.values().append_option(captures.get(group).map(|found| found.as_str()));
                });
                builder.append(true);
            }
            _ => builder.append(false),
        }
    }
    Ok(Arc::new(builder.finish()) as Arc<dyn Array>)
}

fn count(call: &Call<'_>) -> Result<ArrayRef> {
    let (text, pattern) = (call.text(0)?, call.text(1)?);
    let mut compiled = Compiled::default();
    try_primitives::<Int32Type>(call, |row| {
        let (Some(text), Some(pattern)) = (text.get(row), pattern.get(row)) else { return Ok(None) };
        let Some(regex) = compiled.get(pattern)? else { return Ok(None) };
        let mut count = 0;
        matches(regex, text, |captures| {
            count += 1;
            // Java also finds an empty match between the two halves of a character beyond the basic plane.
            let empty = captures.get(0).filter(|found| found.is_empty());
            let wide = empty.and_then(|found| text[found.end()..].chars().next()).is_some_and(|c| c.len_utf16() == 2);
            count += i32::from(wide);
        });
        Ok(Some(count))
    })
}

fn position(call: &Call<'_>) -> Result<ArrayRef> {
    let (text, pattern) = (call.text(0)?, call.text(1)?);
    let mut compiled = Compiled::default();
    try_primitives::<Int32Type>(call, |row| {
        let (Some(text), Some(pattern)) = (text.get(row), pattern.get(row)) else { return Ok(None) };
        let Some(regex) = compiled.get(pattern)? else { return Ok(None) };
        let found = regex.find(text).map(|found| text[..found.start()].encode_utf16().count() as i32 + 1);
        Ok(Some(found.unwrap_or(0)))
    })
}

fn substring(call: &Call<'_>) -> Result<ArrayRef> {
    let (text, pattern) = (call.text(0)?, call.text(1)?);
    let mut compiled = Compiled::default();
    let mut failure = None;
    let result = texts(call, |row, to| {
        let (text, pattern) = (text.get(row)?, pattern.get(row)?);
        let regex = compiled.get(pattern).map_err(|error| failure.get_or_insert(error).clone()).ok()??;
        regex.find(text).map(|found| to.push_str(found.as_str()))
    })?;
    failure.map_or(Ok(result), Err)
}
