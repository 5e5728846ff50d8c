//! A test file read into its records.

use xxhash_rust::xxh3::xxh3_64;

/// One record: a statement or query and what should come of it.
#[derive(Debug, Clone, PartialEq)]
pub struct Record {
    /// The line of its first word, from 1.
    pub line: usize,
    /// The SQL, as written.
    pub sql: String,
    /// What should come of it.
    pub kind: Kind,
    /// Whether `skipif ebbflow` stands above it.
    pub skipped: bool,
    /// Names the record within its file, however its lines move: a hash of the SQL, and a count if it comes again.
    pub key: String,
}

/// What should come of a record.
#[derive(Debug, Clone, PartialEq)]
pub enum Kind {
    /// `statement ok`
    Ok,
    /// `statement error`, `query error`
    Error,
    /// `query …` with the lines below `----`
    Lines {
        /// `rowsort`
        sorted: bool,
        /// The lines.
        expected: Vec<String>,
    },
    /// It cannot be read; why.
    Unreadable(String),
}

/// Reads all records of a file. Records are separated by blank lines; lines that start with `#` are comments.
pub fn records(text: &str) -> Vec<Record> {
    let mut records: Vec<Record> = Vec::new();
    let mut lines = text.lines().enumerate().map(|(index, line)| (index + 1, line)).peekable();
    while lines.peek().is_some() {
        let block: Vec<(usize, &str)> = lines.by_ref().take_while(|(_, line)| !line.trim().is_empty()).collect();
        if let Some(mut record) = record(&block) {
            let hash = format!("{:08x}", xxh3_64(record.sql.as_bytes()) >> 32);
            let again = records.iter().filter(|earlier| earlier.key.split('.').next() == Some(&hash)).count();
            record.key = if again == 0 { hash } else { format!("{hash}.{}", again + 1) };
            records.push(record);
        }
    }
    records
}

fn record(block: &[(usize, &str)]) -> Option<Record> {
    let mut lines = block.iter().filter(|(_, line)| !line.starts_with('#')).peekable();
    let mut skipped = false;
    while let Some((_, line)) = lines.next_if(|(_, line)| line.starts_with("skipif ") || line.starts_with("onlyif ")) {
        let ours = line.split_whitespace().nth(1) == Some("ebbflow");
        skipped |= ours == line.starts_with("skipif ");
    }
    let &(line, head) = lines.next()?;
    let sql: Vec<&str> = lines.by_ref().map(|(_, line)| *line).take_while(|line| *line != "----").collect();
    let sql = sql.join("\n").trim().trim_end_matches(';').to_string();
    // Below the rule everything is a row, whatever it starts with.
    let rule = block.iter().position(|(_, line)| *line == "----");
    let expected = rule.map_or(&[][..], |at| &block[at + 1..]).iter().map(|(_, line)| line.to_string()).collect();
    let words: Vec<&str> = head.split_whitespace().collect();
    let kind = match words.as_slice() {
        _ if sql.is_empty() => Kind::Unreadable("the record has no SQL".into()),
        ["statement", "ok"] => Kind::Ok,
        ["statement" | "query", "error", ..] => Kind::Error,
        ["query", _] if rule.is_some() => Kind::Lines { sorted: false, expected },
        ["query", _, "rowsort"] if rule.is_some() => Kind::Lines { sorted: true, expected },
        ["query", _] | ["query", _, "rowsort"] => Kind::Unreadable("the query has no '----' line".into()),
        _ => Kind::Unreadable(format!("'{head}' is not the start of a record")),
    };
    Some(Record { line, sql, kind, skipped, key: String::new() })
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "\
# a comment

# another
statement ok
CREATE TABLE t (a INT)

query TT rowsort
SELECT a,
  b FROM t;
----
+I 1 | x
# not a comment

skipif ebbflow
query error
SELECT nope
# Flink: no such column

query T
SELECT nope
----

query T
SELECT 1

hello";

    #[test]
    fn records_of_every_form() {
        let records = records(TEXT);
        let seen: Vec<(usize, &str, bool, &Kind)> =
            records.iter().map(|r| (r.line, r.sql.as_str(), r.skipped, &r.kind)).collect();
        let rows = vec!["+I 1 | x".to_string(), "# not a comment".to_string()];
        assert_eq!(seen[0], (4, "CREATE TABLE t (a INT)", false, &Kind::Ok));
        assert_eq!(seen[1], (7, "SELECT a,\n  b FROM t", false, &Kind::Lines { sorted: true, expected: rows }));
        assert_eq!(seen[2], (15, "SELECT nope", true, &Kind::Error));
        assert_eq!(seen[3], (19, "SELECT nope", false, &Kind::Lines { sorted: false, expected: vec![] }));
        assert!(matches!(seen[4].3, Kind::Unreadable(_)));
        assert!(matches!(seen[5].3, Kind::Unreadable(_)));
        assert_eq!(records[3].key, format!("{}.2", records[2].key));
    }
}
