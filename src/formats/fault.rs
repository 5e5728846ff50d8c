//! What is wrong with a record, kept without allocating until somebody wants to read it: formats that skip bad records
//! meet many of them.

use crate::error::Error;
use crate::limits::QUOTED_CHARACTERS;

/// A fault at a place within a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Fault {
    /// Where the faulty piece begins, as an offset into the record.
    pub from: usize,
    /// Where it ends.
    pub to: usize,
    /// What is wrong.
    pub problem: Problem,
}

/// The kinds of fault, each with its half of the sentence.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Problem {
    /// The piece is a value, but …: "is not an INT".
    Value(&'static str),
    /// The record is not well formed: "expected ':'".
    Syntax(&'static str),
}

impl Fault {
    /// The record is not well formed at `at`.
    pub(crate) fn syntax(at: usize, expected: &'static str) -> Fault {
        Fault { from: at, to: usize::MAX, problem: Problem::Syntax(expected) }
    }

    /// The value at `from .. to` does not fit.
    pub(crate) fn value(from: usize, to: usize, what: &'static str) -> Fault {
        Fault { from, to, problem: Problem::Value(what) }
    }

    /// The error to show: `line` is the number of lines before the record, `record` its bytes.
    pub(crate) fn to_error(self, format: &str, line: u64, record: &[u8], field: Option<&str>) -> Error {
        let from = self.from.min(record.len());
        let before = &record[..from];
        let line = line + 1 + memchr::memchr_iter(b'\n', before).count() as u64;
        let column = from - memchr::memrchr(b'\n', before).map_or(0, |end| end + 1) + 1;
        let piece = quote(&record[from..self.to.clamp(from, record.len())]);
        let text = match self.problem {
            Problem::Value(what) => format!("'{piece}' {what}"),
            Problem::Syntax(expected) if piece.is_empty() => format!("{expected}, found the end of the record"),
            Problem::Syntax(expected) => format!("{expected}, found '{piece}'"),
        };
        let field = field.map(|name| format!(" in field '{name}'")).unwrap_or_default();
        Error::data(format!("line {line}, column {column}: malformed {format}{field}: {text}"))
            .hint(format!("'{format}.ignore-parse-errors' = 'true' passes over malformed data and counts it"))
    }
}

/// At most [`QUOTED_CHARACTERS`] characters of `bytes`, on one line.
pub(crate) fn quote(bytes: &[u8]) -> String {
    // Four bytes hold the longest character: no need to look at a record of megabytes.
    let head = &bytes[..bytes.len().min(4 * QUOTED_CHARACTERS + 4)];
    let text = String::from_utf8_lossy(head);
    let mut quoted: String = text
        .trim_end_matches(['\r', '\n'])
        .chars()
        .take(QUOTED_CHARACTERS)
        .map(|character| if character.is_control() { '\u{fffd}' } else { character })
        .collect();
    if text.trim_end_matches(['\r', '\n']).chars().nth(QUOTED_CHARACTERS).is_some() {
        quoted.push('…');
    }
    quoted
}
