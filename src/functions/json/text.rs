//! Texts as JSON strings and back: JSON_QUOTE, JSON_UNQUOTE.

use arrow::array::ArrayRef;

use crate::error::Result;
use crate::functions::column::texts;
use crate::functions::function::{Call, Entry, Typing};
use crate::functions::parameter::Parameter::{self, Text};
use crate::types::SqlType;

/// The entries of this file.
pub(super) fn entries() -> Vec<Entry> {
    const ONE: &[&[Parameter]] = &[&[Text]];
    let entry = |names, body| Entry::new(names, ONE, Typing::Fixed(SqlType::STRING), body);
    vec![entry(&["json_quote"], quote), entry(&["json_unquote"], unquote)]
}

/// Beyond ASCII every UTF-16 unit is escaped.
fn quote(call: &Call<'_>) -> Result<ArrayRef> {
    use std::fmt::Write;
    let text = call.text(0)?;
    let mut quoted = String::new();
    texts(call, |row, to| {
        quoted.clear();
        super::write::push_text(text.get(row)?, &mut quoted);
        for character in quoted.chars() {
            if character.is_ascii() {
                to.push(character);
                continue;
            }
            for unit in character.encode_utf16(&mut [0; 2]) {
                let _ = write!(to, "\\u{unit:04x}");
            }
        }
        Some(())
    })
}

/// What is no JSON string stays as it is.
fn unquote(call: &Call<'_>) -> Result<ArrayRef> {
    let text = call.text(0)?;
    texts(call, |row, to| {
        let text = text.get(row)?;
        match serde_json::from_str::<String>(text) {
            Ok(inner) => to.push_str(&inner),
            Err(_) => to.push_str(text),
        }
        Some(())
    })
}
