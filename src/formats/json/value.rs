//! One JSON value to one cell, with Flink's conversions: text for numbers, numbers for text, fractions cut from whole
//! numbers, any value as STRING.

use super::options::JsonOptions;
use super::scan::{Scanner, compact, unescape};
use crate::formats::builder::{ColumnBuilder, Refused, Values};
use crate::formats::fault::Fault;
use crate::formats::text;

/// Appends the value at `place` in `text`, which has been scanned. When parse errors are ignored, what does not fit
/// becomes NULL, at the innermost place possible.
pub(super) fn append_value(
    column: &mut ColumnBuilder,
    text: &[u8],
    place: (usize, usize),
    options: &JsonOptions,
    scratch: &mut Vec<u8>,
) -> Result<(), Fault> {
    let (from, to) = place;
    let value = &text[from..to];
    let appended = match value[0] {
        b'n' => column.append_null().map_err(|refused| Fault::value(from, to, refused)),
        b'[' if matches!(column.values, Values::List { .. }) => append_list(column, text, from, options, scratch),
        b'{' if matches!(column.values, Values::Map(_)) => append_map(column, text, from, options, scratch),
        b'{' if matches!(column.values, Values::Row(_)) => append_row(column, text, from, options, scratch),
        _ => append_scalar(column, value, options, scratch).map_err(|refused| Fault::value(from, to, refused)),
    };
    match appended {
        Err(_) if options.ignore_parse_errors => {
            column.append_null().map_err(|refused| Fault::value(from, to, refused))
        }
        other => other,
    }
}

#[inline]
fn append_scalar(
    column: &mut ColumnBuilder,
    value: &[u8],
    options: &JsonOptions,
    scratch: &mut Vec<u8>,
) -> Result<(), Refused> {
    match value[0] {
        b'"' => {
            let inside = &value[1..value.len() - 1];
            if memchr::memchr(b'\\', inside).is_none() {
                return column.append_text(inside, options.timestamps);
            }
            scratch.clear();
            unescape(inside, scratch);
            column.append_text(scratch, options.timestamps)
        }
        b'{' | b'[' => {
            match column.values {
                Values::Text(_) => {}
                // These take an empty text.
                Values::Boolean(_) => return Err("is not a BOOLEAN"),
                Values::Bytes { .. } => return Err("is not Base64 text"),
                // Nothing else does: this is the type's own wording of what was expected.
                _ => return column.append_text(b"", options.timestamps),
            }
            scratch.clear();
            compact(value, scratch);
            column.append_text(scratch, options.timestamps)
        }
        b't' | b'f' => match column.values {
            Values::Boolean(_) | Values::Text(_) => column.append_text(value, options.timestamps),
            _ => Err("is a BOOLEAN"),
        },
        _ => match column.values {
            Values::Int(_) | Values::BigInt(_) if memchr::memchr3(b'.', b'e', b'E', value).is_some() => {
                column.append_integer(text::truncated_integer(value).ok_or("is not a BIGINT")?)
            }
            Values::Bytes { .. } => Err("is not Base64 text"),
            _ => column.append_text(value, options.timestamps),
        },
    }
}

fn append_list(
    column: &mut ColumnBuilder,
    text: &[u8],
    from: usize,
    options: &JsonOptions,
    scratch: &mut Vec<u8>,
) -> Result<(), Fault> {
    let mut scanner = Scanner::new(text, from + 1);
    scanner.space();
    if scanner.peek() != b']' {
        loop {
            let place = scanner.value(1)?;
            let Values::List { element, .. } = &mut column.values else { break };
            append_value(element, text, place, options, scratch)?;
            if !scanner.more(b']', "expected ',' or ']'")? {
                break;
            }
        }
    }
    column.end_collection().map_err(|refused| Fault::value(from, scanner.at, refused))
}

fn append_map(
    column: &mut ColumnBuilder,
    text: &[u8],
    from: usize,
    options: &JsonOptions,
    scratch: &mut Vec<u8>,
) -> Result<(), Fault> {
    let mut scanner = Scanner::new(text, from + 1);
    scanner.space();
    if scanner.peek() != b'}' {
        loop {
            let key_from = scanner.at;
            scanner.string()?;
            let key_place = (key_from, scanner.at);
            scanner.punctuation(b':', "expected ':'")?;
            let place = scanner.value(1)?;
            let Values::Map(map) = &mut column.values else { break };
            append_scalar(&mut map.key, &text[key_place.0..key_place.1], options, scratch)
                .map_err(|refused| Fault::value(key_place.0, key_place.1, refused))?;
            append_value(&mut map.value, text, place, options, scratch)?;
            if !scanner.more(b'}', "expected ',' or '}'")? {
                break;
            }
        }
    }
    column.end_collection().map_err(|refused| Fault::value(from, scanner.at, refused))
}

fn append_row(
    column: &mut ColumnBuilder,
    text: &[u8],
    from: usize,
    options: &JsonOptions,
    scratch: &mut Vec<u8>,
) -> Result<(), Fault> {
    let Values::Row(row) = &mut column.values else { return Ok(()) };
    row.places.fill(None);
    let mut scanner = Scanner::new(text, from + 1);
    scanner.space();
    if scanner.peek() != b'}' {
        loop {
            let key_from = scanner.at;
            scanner.string()?;
            scratch.clear();
            unescape(&text[key_from + 1..scanner.at - 1], scratch);
            scanner.punctuation(b':', "expected ':'")?;
            let place = scanner.value(1)?;
            if let Some(index) = row.names.iter().position(|name| name == scratch) {
                row.places[index] = Some(place);
            }
            if !scanner.more(b'}', "expected ',' or '}'")? {
                break;
            }
        }
    }
    if options.fail_on_missing_field && row.places.iter().any(Option::is_none) && !options.ignore_parse_errors {
        return Err(Fault::value(from, scanner.at, "has no value for a declared field"));
    }
    // Nested rows use their own places, but a row within a list within this row does not disturb these: each value is
    // appended through its own builder.
    for index in 0..row.columns.len() {
        match row.places[index] {
            Some(place) => append_value(&mut row.columns[index], text, place, options, scratch)?,
            None => {
                row.columns[index].append_null().map_err(|refused| Fault::value(from, scanner.at, refused))?;
            }
        }
    }
    row.end(true);
    Ok(())
}
