//! Completion of keywords and of the session's names while typing.

use ebbflow::Session;
use rustyline::completion::{Completer, Pair};
use rustyline::highlight::Highlighter;
use rustyline::hint::Hinter;
use rustyline::validate::Validator;
use rustyline::{Context, Helper};

const KEYWORDS: &[&str] = &[
    "ALL",
    "AND",
    "ARRAY",
    "AS",
    "BEGIN",
    "BETWEEN",
    "BIGINT",
    "BOOLEAN",
    "BY",
    "BYTES",
    "CASE",
    "CAST",
    "CHANGELOG_MODE",
    "CLEAR",
    "COUNT",
    "CREATE",
    "CROSS",
    "CUMULATE",
    "DATABASE",
    "DATE",
    "DECIMAL",
    "DESCRIBE",
    "DESCRIPTOR",
    "DISTINCT",
    "DOUBLE",
    "DROP",
    "ELSE",
    "END",
    "ENFORCED",
    "EXECUTE",
    "EXISTS",
    "EXIT",
    "EXPLAIN",
    "FILTER",
    "FLOAT",
    "FROM",
    "FULL",
    "GROUP",
    "HAVING",
    "HELP",
    "HOP",
    "IF",
    "IN",
    "INNER",
    "INSERT",
    "INT",
    "INTERVAL",
    "INTO",
    "IS",
    "JOIN",
    "KEY",
    "LEFT",
    "LIKE",
    "LIMIT",
    "MAP",
    "METADATA",
    "NOT",
    "NULL",
    "ON",
    "OR",
    "ORDER",
    "OVER",
    "PARTITION",
    "PARTITIONED",
    "PRIMARY",
    "QUIT",
    "RESET",
    "RIGHT",
    "ROW",
    "SELECT",
    "SESSION",
    "SET",
    "SHOW",
    "SMALLINT",
    "STATEMENT",
    "STRING",
    "TABLE",
    "TABLES",
    "TEMPORARY",
    "THEN",
    "TIME",
    "TIMESTAMP",
    "TIMESTAMP_LTZ",
    "TINYINT",
    "TUMBLE",
    "UNION",
    "USE",
    "VALUES",
    "VARCHAR",
    "VIEW",
    "VIEWS",
    "WATERMARK",
    "WHEN",
    "WHERE",
    "WITH",
];

/// Completes the word before the cursor.
pub struct Completion {
    session: Session,
}

impl Completion {
    /// Completes keywords and this session's tables, columns and functions.
    pub fn new(session: Session) -> Completion {
        Completion { session }
    }
}

impl Completer for Completion {
    type Candidate = Pair;

    fn complete(&self, line: &str, at: usize, _: &Context<'_>) -> rustyline::Result<(usize, Vec<Pair>)> {
        let start = line[..at]
            .rfind(|c: char| !c.is_alphanumeric() && c != '_')
            .map_or(0, |before| before + line[before..].chars().next().map_or(1, char::len_utf8));
        let typed = &line[start..at];
        if typed.is_empty() {
            return Ok((at, Vec::new()));
        }
        Ok((start, candidates(typed, &self.session.names())))
    }
}

/// Names come as they are; a keyword takes the case in which it was begun.
fn candidates(typed: &str, names: &[String]) -> Vec<Pair> {
    let begins = |name: &str| name.get(..typed.len()).is_some_and(|head| head.eq_ignore_ascii_case(typed));
    let lower = typed.chars().all(char::is_lowercase);
    let keywords = KEYWORDS.iter().filter(|keyword| begins(keyword));
    let keywords = keywords.map(|keyword| if lower { keyword.to_lowercase() } else { (*keyword).to_string() });
    let mut found: Vec<String> = names.iter().filter(|name| begins(name)).cloned().chain(keywords).collect();
    found.sort();
    found.dedup();
    found.into_iter().map(|text| Pair { display: text.clone(), replacement: text }).collect()
}

impl Hinter for Completion {
    type Hint = String;
}
impl Highlighter for Completion {}
impl Validator for Completion {}
impl Helper for Completion {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keywords_follow_the_case_and_names_keep_theirs() {
        let texts = |typed: &str| -> Vec<String> {
            candidates(typed, &["Selected".to_string()]).into_iter().map(|pair| pair.replacement).collect()
        };
        assert_eq!(texts("sel"), ["Selected", "select"]);
        assert_eq!(texts("SEL"), ["SELECT", "Selected"]);
        assert!(texts("é").is_empty());
    }
}
