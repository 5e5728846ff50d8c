//! Whether what came is what was expected.

use ebbflow::ErrorKind;

use super::difference::difference;
use super::execute::Ran;
use super::read::{Kind, Record};

/// What came of a record.
#[derive(Debug, Clone, PartialEq)]
pub enum Verdict {
    /// As expected.
    Passed,
    /// `skipif ebbflow`.
    Skipped,
    /// Not as expected; how.
    Failed(String),
}

impl Verdict {
    /// Whether it is a failure.
    pub fn is_failure(&self) -> bool {
        matches!(self, Verdict::Failed(_))
    }

    /// Adds to a failure what the record's jobs printed.
    pub fn with_printed(self, printed: &str) -> Verdict {
        match self {
            Verdict::Failed(how) if !printed.is_empty() => Verdict::Failed(format!(
                "{how}
printed:\n{printed}"
            )),
            other => other,
        }
    }
}

/// Judges a record by what came. With `any_order` rows are compared as if the record said `rowsort`.
pub fn judge(record: &Record, ran: Ran, any_order: bool) -> Verdict {
    match (&record.kind, ran) {
        (_, Ran::Broken(how)) => Verdict::Failed(how),
        // An error that is our own fault is nobody's expectation.
        (Kind::Error, Ran::Error(error)) if error.kind() != ErrorKind::Bug => Verdict::Passed,
        (Kind::Error, Ran::Lines(lines)) => Verdict::Failed(match lines.len() {
            0 => "an error was expected, but there was none".into(),
            count => format!("an error was expected, but there were {count} rows:\n{}", difference(&[], &lines)),
        }),
        (_, Ran::Error(error)) => Verdict::Failed(error.render(&record.sql)),
        (Kind::Lines { sorted, expected }, Ran::Lines(mut lines)) => {
            let mut expected = expected.clone();
            if *sorted || any_order {
                // Both sides: another tool's sort order (UTF-16 units, a locale) need not be ours.
                expected.sort();
                lines.sort();
            }
            if lines == expected { Verdict::Passed } else { Verdict::Failed(difference(&expected, &lines)) }
        }
        (Kind::Ok | Kind::Unreadable(_), Ran::Lines(_)) => Verdict::Passed,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ebbflow::Error;

    fn record(kind: Kind) -> Record {
        Record { line: 1, sql: "SELECT 1".into(), kind, skipped: false, key: String::new() }
    }

    fn lines(texts: &[&str]) -> Vec<String> {
        texts.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn order_matters_unless_it_is_said_not_to() {
        let kind = |sorted| record(Kind::Lines { sorted, expected: lines(&["+I a", "+I b"]) });
        let came = || Ran::Lines(lines(&["+I b", "+I a"]));
        assert_eq!(judge(&kind(true), came(), false), Verdict::Passed);
        assert_eq!(judge(&kind(false), came(), true), Verdict::Passed);
        assert_eq!(judge(&kind(false), came(), false), Verdict::Failed("- +I a\n  +I b\n+ +I a".into()));
    }

    #[test]
    fn a_bug_is_never_the_expected_error() {
        let expected = record(Kind::Error);
        assert_eq!(judge(&expected, Ran::Error(Error::sql("no")), false), Verdict::Passed);
        assert!(judge(&expected, Ran::Error(Error::bug("oh")), false).is_failure());
        assert!(judge(&expected, Ran::Lines(vec![]), false).is_failure());
        assert!(judge(&expected, Ran::Broken("panic".into()), false).is_failure());
    }
}
