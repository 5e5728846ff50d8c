//! Letters and characters: UPPER, LOWER, INITCAP, REVERSE, CHAR_LENGTH, ASCII, CHR, TRANSLATE.

use arrow::array::ArrayRef;
use arrow::datatypes::Int32Type;

use crate::error::Result;
use crate::functions::column::{primitives, texts};
use crate::functions::function::{Arguments, Call, Entry, Typing};
use crate::functions::parameter::Parameter::{self, Long, Text};
use crate::types::SqlType;

const ONE: &[&[Parameter]] = &[&[Text]];

/// The entries of this file.
pub(super) fn entries() -> Vec<Entry> {
    let string = || Typing::Fixed(SqlType::STRING);
    vec![
        Entry::new(&["upper"], ONE, Typing::By(same_text), |call| cased(call, true)),
        Entry::new(&["lower"], ONE, Typing::By(same_text), |call| cased(call, false)),
        Entry::new(&["initcap"], ONE, Typing::By(same_text), initcap),
        Entry::new(&["reverse"], ONE, string(), reverse),
        Entry::new(&["char_length", "character_length", "length"], ONE, Typing::Fixed(SqlType::Int), char_length),
        Entry::new(&["octet_length"], ONE, Typing::Fixed(SqlType::Int), octet_length),
        Entry::new(&["ascii"], ONE, Typing::Fixed(SqlType::Int), ascii),
        Entry::new(&["chr"], &[&[Long]], string(), chr),
        Entry::new(&["translate"], &[&[Text, Text, Text]], Typing::By(as_first), translate),
    ]
}

/// The argument's own text type.
fn same_text(arguments: &Arguments<'_>) -> Result<(SqlType, bool)> {
    let sql_type = arguments.sql_type(0);
    Ok((if sql_type.is_text() { sql_type } else { SqlType::STRING }, arguments.nullable()))
}

/// STRING, NULL where the first argument is.
fn as_first(arguments: &Arguments<'_>) -> Result<(SqlType, bool)> {
    Ok((SqlType::STRING, arguments.fields[0].is_nullable()))
}

fn cased(call: &Call<'_>, upper: bool) -> Result<ArrayRef> {
    let text = call.text(0)?;
    // The result has the argument's type, so letters that grow (ß to SS) may not make it longer than that allows.
    let most = match SqlType::of_field(call.result) {
        SqlType::Char(length) => length as usize,
        _ => usize::MAX,
    };
    texts(call, |row, to| {
        let text = text.get(row)?;
        if text.is_ascii() {
            to.push_str(text);
            if upper {
                to.make_ascii_uppercase()
            } else {
                to.make_ascii_lowercase()
            }
            return Some(());
        }
        let changed = if upper { text.to_uppercase() } else { text.to_lowercase() };
        let end = changed.char_indices().nth(most).map_or(changed.len(), |(at, _)| at);
        to.push_str(&changed[..end]);
        Some(())
    })
}

/// As in Flink, only ASCII letters and digits make words.
fn initcap(call: &Call<'_>) -> Result<ArrayRef> {
    let text = call.text(0)?;
    texts(call, |row, to| {
        let mut inside = false;
        for character in text.get(row)?.chars() {
            to.push(if inside { character.to_ascii_lowercase() } else { character.to_ascii_uppercase() });
            inside = character.is_ascii_alphanumeric();
        }
        Some(())
    })
}

fn reverse(call: &Call<'_>) -> Result<ArrayRef> {
    let text = call.text(0)?;
    texts(call, |row, to| {
        to.extend(text.get(row)?.chars().rev());
        Some(())
    })
}

fn char_length(call: &Call<'_>) -> Result<ArrayRef> {
    let text = call.text(0)?;
    primitives::<Int32Type>(call, |row| text.get(row).map(|t| t.chars().count() as i32))
}

fn octet_length(call: &Call<'_>) -> Result<ArrayRef> {
    let text = call.text(0)?;
    primitives::<Int32Type>(call, |row| text.get(row).map(|t| t.len() as i32))
}

/// As in Flink, the first byte of the UTF-8 form, signed; 0 for the empty text.
fn ascii(call: &Call<'_>) -> Result<ArrayRef> {
    let text = call.text(0)?;
    primitives::<Int32Type>(call, |row| text.get(row).map(|t| t.bytes().next().map_or(0, |b| i32::from(b as i8))))
}

/// The character of the lowest byte; nothing for a negative number.
fn chr(call: &Call<'_>) -> Result<ArrayRef> {
    let code = call.long(0)?;
    texts(call, |row, to| {
        let code = code.get(row)?;
        if code >= 0 {
            to.push(char::from((code & 0xff) as u8));
        }
        Some(())
    })
}

/// Characters of `from` become those of `to` at the same place, or vanish where there is none.
fn translate(call: &Call<'_>) -> Result<ArrayRef> {
    let (text, from, into) = (call.text(0)?, call.text(1)?, call.text(2)?);
    texts(call, |row, to| {
        let text = text.get(row)?;
        let Some(from) = from.get(row).filter(|f| !f.is_empty()) else {
            to.push_str(text);
            return Some(());
        };
        let into = into.get(row).unwrap_or("");
        for character in text.chars() {
            match from.chars().position(|c| c == character) {
                None => to.push(character),
                Some(place) => to.extend(into.chars().nth(place)),
            }
        }
        Some(())
    })
}
