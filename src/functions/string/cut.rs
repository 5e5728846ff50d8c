//! Parts of text: SUBSTRING, LEFT, RIGHT, TRIM and its kin, OVERLAY, REPLACE.

use arrow::array::ArrayRef;

use crate::error::Result;
use crate::functions::column::{slices, texts};
use crate::functions::function::{Arguments, Call, Entry, Typing};
use crate::functions::parameter::Parameter::{self, Int, Text};
use crate::types::SqlType;

/// The entries of this file.
pub(super) fn entries() -> Vec<Entry> {
    const SUBSTRING: &[&[Parameter]] = &[&[Text, Int], &[Text, Int, Int]];
    const SIDE: &[&[Parameter]] = &[&[Text, Int]];
    const TRIM: &[&[Parameter]] = &[&[Text], &[Text, Text]];
    const OVERLAY: &[&[Parameter]] = &[&[Text, Text, Int], &[Text, Text, Int, Int]];
    let string = || Typing::Fixed(SqlType::STRING);
    vec![
        Entry::new(&["substring", "substr"], SUBSTRING, Typing::By(substring_type), substring),
        Entry::new(&["left"], SIDE, string(), left),
        Entry::new(&["right"], SIDE, string(), right),
        Entry::new(&["trim", "btrim"], TRIM, Typing::By(varying), |call| trimmed(call, true, true)),
        Entry::new(&["ltrim"], TRIM, Typing::By(varying), |call| trimmed(call, true, false)),
        Entry::new(&["rtrim"], TRIM, Typing::By(varying), |call| trimmed(call, false, true)),
        Entry::new(&["overlay"], OVERLAY, string(), overlay),
        Entry::new(&["replace"], &[&[Text, Text, Text]], string(), replace),
    ]
}

/// The argument's text type with any length up to its own.
fn varying(arguments: &Arguments<'_>) -> Result<(SqlType, bool)> {
    let sql_type = match arguments.sql_type(0) {
        SqlType::Char(length) | SqlType::Varchar(length) => SqlType::Varchar(length),
        _ => SqlType::STRING,
    };
    Ok((sql_type, arguments.nullable()))
}

/// A negative length has no result.
fn substring_type(arguments: &Arguments<'_>) -> Result<(SqlType, bool)> {
    let (sql_type, nullable) = varying(arguments)?;
    let negative = arguments.fields.len() > 2 && arguments.constant_integer(2).is_none_or(|length| length < 0);
    Ok((sql_type, nullable || negative))
}

/// The byte at which character `index` starts; the end if there are fewer.
fn place(text: &str, index: usize) -> usize {
    if text.is_ascii() {
        return index.min(text.len());
    }
    text.char_indices().nth(index).map_or(text.len(), |(at, _)| at)
}

fn substring(call: &Call<'_>) -> Result<ArrayRef> {
    let (text, start) = (call.text(0)?, call.int(1)?);
    let length = call.has(2).then(|| call.int(2)).transpose()?;
    slices(call, |row| {
        let (text, start) = (text.get(row)?, start.get(row)?);
        let length = match &length {
            Some(length) => length.get(row)?,
            None => i32::MAX,
        };
        part(text, start, length)
    })
}

/// Positions count from 1, negative ones from the end; 0 is the start.
fn part(text: &str, start: i32, length: i32) -> Option<&str> {
    if length < 0 {
        return None;
    }
    let first = if start > 0 {
        start as usize - 1
    } else if start < 0 {
        match text.chars().count().checked_sub(start.unsigned_abs() as usize) {
            Some(first) => first,
            None => return Some(""),
        }
    } else {
        0
    };
    let rest = &text[place(text, first)..];
    Some(&rest[..place(rest, length as usize)])
}

fn left(call: &Call<'_>) -> Result<ArrayRef> {
    let (text, length) = (call.text(0)?, call.int(1)?);
    slices(call, |row| {
        let (text, length) = (text.get(row)?, length.get(row)?);
        Some(&text[..place(text, length.max(0) as usize)])
    })
}

fn right(call: &Call<'_>) -> Result<ArrayRef> {
    let (text, length) = (call.text(0)?, call.int(1)?);
    slices(call, |row| {
        let (text, length) = (text.get(row)?, length.get(row)?.max(0) as usize);
        let first = text.chars().count().saturating_sub(length);
        Some(&text[place(text, first)..])
    })
}

/// Blanks, or any characters of the second argument, are taken off the ends.
fn trimmed(call: &Call<'_>, front: bool, back: bool) -> Result<ArrayRef> {
    let text = call.text(0)?;
    let set = call.has(1).then(|| call.text(1)).transpose()?;
    slices(call, |row| {
        let mut text = text.get(row)?;
        let set = match &set {
            Some(set) => set.get(row)?,
            None => " ",
        };
        let trimmed = |c: char| set.contains(c);
        if front {
            text = text.trim_start_matches(trimmed);
        }
        if back {
            text = text.trim_end_matches(trimmed);
        }
        Some(text)
    })
}

/// The byte at which the UTF-16 unit `index` starts; inside a pair, that of its character. Nothing beyond the end.
fn unit_place(text: &str, index: usize) -> Option<usize> {
    let mut units = 0;
    for (at, character) in text.char_indices() {
        if units + character.len_utf16() > index {
            return Some(at);
        }
        units += character.len_utf16();
    }
    (units == index).then_some(text.len())
}

/// As in Flink: a start outside the text changes nothing, a length of 0 or beyond the end drops the rest.
fn overlay(call: &Call<'_>) -> Result<ArrayRef> {
    let (text, new, start) = (call.text(0)?, call.text(1)?, call.int(2)?);
    let length = call.has(3).then(|| call.int(3)).transpose()?;
    texts(call, |row, to| {
        let (text, new, start) = (text.get(row)?, new.get(row)?, start.get(row)?);
        let length = match &length {
            Some(length) => i64::from(length.get(row)?),
            None => new.encode_utf16().count() as i64,
        };
        let units = text.encode_utf16().count() as i64;
        if start <= 0 || i64::from(start) > units {
            to.push_str(text);
            return Some(());
        }
        let start = i64::from(start) - 1;
        to.push_str(&text[..unit_place(text, start as usize)?]);
        to.push_str(new);
        if length > 0
            && start + length <= units
            && let Some(end) = unit_place(text, (start + length) as usize)
        {
            to.push_str(&text[end..]);
        }
        Some(())
    })
}

fn replace(call: &Call<'_>) -> Result<ArrayRef> {
    let (text, from, into) = (call.text(0)?, call.text(1)?, call.text(2)?);
    texts(call, |row, to| {
        let (text, from, into) = (text.get(row)?, from.get(row)?, into.get(row)?);
        let mut last = 0;
        for (at, found) in text.match_indices(from) {
            to.push_str(&text[last..at]);
            to.push_str(into);
            last = at + found.len();
        }
        to.push_str(&text[last..]);
        Some(())
    })
}
