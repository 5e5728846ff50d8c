//! Partition directories: `region=north/day=2026-01-02` for the values of the partition columns, escaped as Hive and
//! Flink do.

use crate::error::{Error, Result};

/// The directory name of a NULL or an empty text, unless `partition.default-name` says otherwise.
pub(super) const DEFAULT_NAME: &str = "__DEFAULT_PARTITION__";

/// Appends `column=value` with everything escaped that a path or the notation itself gives a meaning.
pub(super) fn write_directory(column: &str, value: &[u8], to: &mut Vec<u8>) {
    escape(column.as_bytes(), to);
    to.push(b'=');
    escape(value, to);
}

fn escape(text: &[u8], to: &mut Vec<u8>) {
    for byte in text {
        match byte {
            0..=31
            | 127
            | b'"'
            | b'#'
            | b'%'
            | b'\''
            | b'*'
            | b'/'
            | b':'
            | b'='
            | b'?'
            | b'\\'
            | b'{'
            | b'}'
            | b'['
            | b']'
            | b'^' => {
                let digit = |value: u8| b"0123456789ABCDEF"[usize::from(value)];
                to.extend([b'%', digit(byte >> 4), digit(byte & 15)]);
            }
            _ => to.push(*byte),
        }
    }
}

/// The way back.
fn unescape(text: &str) -> Vec<u8> {
    let bytes = text.as_bytes();
    let mut plain = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while at < bytes.len() {
        let escaped = (bytes[at] == b'%')
            .then(|| text.get(at + 1..at + 3).and_then(|digits| u8::from_str_radix(digits, 16).ok()))
            .flatten();
        plain.push(escaped.unwrap_or(bytes[at]));
        at += if escaped.is_some() { 3 } else { 1 };
    }
    plain
}

/// The values of `columns` in the directories of `path`, `None` for NULL.
///
/// # Errors
/// If a column has no directory.
pub(super) fn values(path: &str, columns: &[String], default_name: &str) -> Result<Vec<Option<Vec<u8>>>> {
    let parts: Vec<(Vec<u8>, &str)> =
        path.split('/').filter_map(|part| part.split_once('=')).map(|(name, value)| (unescape(name), value)).collect();
    columns
        .iter()
        .map(|column| match parts.iter().rev().find(|(name, _)| name == column.as_bytes()) {
            Some((_, value)) if *value == default_name => Ok(None),
            Some((_, value)) => Ok(Some(unescape(value))),
            None => Err(Error::data(format!("file '{path}' lies in no directory for partition column '{column}'"))
                .hint(format!("expected a directory such as '{column}=value' on its path"))),
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn directories_go_there_and_back() {
        for value in ["a b", "c/d", "e=f", "é", "100%", "*?\"{}[]^#\\'", "%41"] {
            let mut directory = Vec::new();
            write_directory("k", value.as_bytes(), &mut directory);
            let path = format!("/x/{}/part-0", String::from_utf8(directory).unwrap());
            let back = values(&path, &["k".to_string()], DEFAULT_NAME).unwrap();
            assert_eq!(back, vec![Some(value.as_bytes().to_vec())]);
        }
        let path = format!("/x/k={DEFAULT_NAME}/f");
        assert_eq!(values(&path, &["k".to_string()], DEFAULT_NAME).unwrap(), vec![None]);
        assert!(values("/x/f", &["k".to_string()], DEFAULT_NAME).unwrap_err().message().contains("'k'"));
    }
}
