//! Finding text in text: POSITION, LOCATE, INSTR, STARTSWITH, ENDSWITH. Positions count characters from 1; 0 is "not
//! there".

use arrow::array::ArrayRef;
use arrow::datatypes::{DataType, Int32Type};

use crate::error::Result;
use crate::functions::column::{booleans, primitives, try_primitives};
use crate::functions::function::{Call, Entry, Typing};
use crate::functions::parameter::Parameter::{self, Bytes, Int, Text};
use crate::types::SqlType;

/// The entries of this file. `strpos(text, part)` is POSITION as the parser names it.
pub(super) fn entries() -> Vec<Entry> {
    const LOCATE: &[&[Parameter]] = &[&[Text, Text], &[Text, Text, Int]];
    const INSTR: &[&[Parameter]] = &[&[Text, Text], &[Text, Text, Int], &[Text, Text, Int, Int]];
    const ENDS: &[&[Parameter]] = &[&[Text, Text], &[Bytes, Bytes]];
    let int = || Typing::Fixed(SqlType::Int);
    let boolean = || Typing::Fixed(SqlType::Boolean);
    vec![
        Entry::new(&["locate", "position"], LOCATE, int(), |call| locate(call, 1, 0)),
        Entry::new(&["strpos"], &[&[Text, Text]], int(), |call| locate(call, 0, 1)),
        Entry::new(&["instr"], INSTR, int(), instr),
        Entry::new(&["startswith"], ENDS, boolean(), |call| {
            ends(call, |text, part| text.starts_with(part), |bytes, part| bytes.starts_with(part))
        }),
        Entry::new(&["endswith"], ENDS, boolean(), |call| {
            ends(call, |text, part| text.ends_with(part), |bytes, part| bytes.ends_with(part))
        }),
    ]
}

/// Characters before a byte.
fn characters(text: &str, byte: usize) -> usize {
    if text.is_ascii() { byte } else { text[..byte].chars().count() }
}

fn locate(call: &Call<'_>, text: usize, part: usize) -> Result<ArrayRef> {
    let (text, part) = (call.text(text)?, call.text(part)?);
    let start = call.has(2).then(|| call.int(2)).transpose()?;
    primitives::<Int32Type>(call, |row| {
        let (text, part) = (text.get(row)?, part.get(row)?);
        let skip = match &start {
            Some(start) => (start.get(row)? - 1).max(0) as usize,
            None => 0,
        };
        let from = if skip == 0 { Some(0) } else { text.char_indices().nth(skip).map(|(at, _)| at) };
        let found = from.and_then(|from| text[from..].find(part).map(|at| from + at));
        Some(found.map_or(0, |at| characters(text, at) as i32 + 1))
    })
}

/// The `nth` place of a part, from `start` on; a negative start searches backwards from the end.
fn instr(call: &Call<'_>) -> Result<ArrayRef> {
    let (text, part) = (call.text(0)?, call.text(1)?);
    let start = call.has(2).then(|| call.int(2)).transpose()?;
    let nth = call.has(3).then(|| call.int(3)).transpose()?;
    try_primitives::<Int32Type>(call, |row| {
        let (Some(text), Some(part)) = (text.get(row), part.get(row)) else { return Ok(None) };
        let start = match &start {
            Some(start) => start.get(row),
            None => Some(1),
        };
        let nth = match &nth {
            Some(nth) => nth.get(row),
            None => Some(1),
        };
        let (Some(start), Some(nth)) = (start, nth) else { return Ok(None) };
        if nth <= 0 {
            return Err(call.error(format!("the occurrence must be positive, not {nth}")));
        }
        Ok(Some(occurrence(text, part, start, nth as usize)))
    })
}

fn occurrence(text: &str, part: &str, start: i32, nth: usize) -> i32 {
    if start == 0 {
        return 0;
    }
    if part.is_empty() {
        return 1;
    }
    // Occurrences may overlap, so every character is a candidate.
    let starts = |at: &usize| text[*at..].starts_with(part);
    let found = if start > 0 {
        let from = text.char_indices().skip(start as usize - 1).map(|(at, _)| at);
        from.filter(starts).nth(nth - 1)
    } else {
        let back = text.char_indices().rev().skip(start.unsigned_abs() as usize - 1).map(|(at, _)| at);
        back.filter(starts).nth(nth - 1)
    };
    found.map_or(0, |at| characters(text, at) as i32 + 1)
}

fn ends(call: &Call<'_>, text: fn(&str, &str) -> bool, bytes: fn(&[u8], &[u8]) -> bool) -> Result<ArrayRef> {
    if *call.arguments[0].data_type() == DataType::Binary {
        let (whole, part) = (call.bytes(0)?, call.bytes(1)?);
        return booleans(call, |row| Some(bytes(whole.get(row)?, part.get(row)?)));
    }
    let (whole, part) = (call.text(0)?, call.text(1)?);
    booleans(call, |row| Some(text(whole.get(row)?, part.get(row)?)))
}
