//! Longer text: LPAD, RPAD, REPEAT.

use arrow::array::ArrayRef;

use crate::error::Result;
use crate::functions::column::{texts, try_texts};
use crate::functions::function::{Call, Entry, Typing};
use crate::functions::parameter::Parameter::{self, Int, Text};
use crate::limits::RECORD_BYTES;
use crate::types::SqlType;

/// The entries of this file.
pub(super) fn entries() -> Vec<Entry> {
    const PAD: &[&[Parameter]] = &[&[Text, Int, Text]];
    let string = || Typing::Fixed(SqlType::STRING);
    vec![
        Entry::new(&["lpad"], PAD, string(), |call| pad(call, true)),
        Entry::new(&["rpad"], PAD, string(), |call| pad(call, false)),
        Entry::new(&["repeat"], &[&[Text, Int]], string(), repeat),
    ]
}

/// Appends at most `units` UTF-16 units of a text, whole characters only; gives how many.
fn push_units(text: &str, units: usize, to: &mut String) -> usize {
    if text.is_ascii() {
        let end = units.min(text.len());
        to.push_str(&text[..end]);
        return end;
    }
    let mut used = 0;
    for character in text.chars() {
        if used + character.len_utf16() > units {
            break;
        }
        used += character.len_utf16();
        to.push(character);
    }
    used
}

/// As in Flink, a negative length or an empty filling has no result.
fn pad(call: &Call<'_>, front: bool) -> Result<ArrayRef> {
    let (text, length, filling) = (call.text(0)?, call.int(1)?, call.text(2)?);
    texts(call, |row, to| {
        let (text, length, filling) = (text.get(row)?, length.get(row)?, filling.get(row)?);
        if length < 0 || filling.is_empty() || length as usize > RECORD_BYTES {
            return None;
        }
        let length = length as usize;
        let units = if text.is_ascii() { text.len() } else { text.encode_utf16().count() };
        if !front {
            push_units(text, length, to);
        }
        let mut missing = length.saturating_sub(units);
        while missing > 0 {
            match push_units(filling, missing, to) {
                0 => break,
                used => missing -= used,
            }
        }
        if front {
            push_units(text, length, to);
        }
        Some(())
    })
}

fn repeat(call: &Call<'_>) -> Result<ArrayRef> {
    let (text, count) = (call.text(0)?, call.int(1)?);
    try_texts(call, |row, to| {
        let (Some(text), Some(count)) = (text.get(row), count.get(row)) else { return Ok(None) };
        let count = count.max(0) as usize;
        if text.len().saturating_mul(count) > RECORD_BYTES {
            return Err(call.error(format!("a text of more than {RECORD_BYTES} bytes")));
        }
        (0..count).for_each(|_| to.push_str(text));
        Ok(Some(()))
    })
}
