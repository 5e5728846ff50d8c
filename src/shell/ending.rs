//! How a command ends when it does not end well, and the exit code that says so.

use std::process::ExitCode;

use ebbflow::{Error, ErrorKind};

/// Why a command stopped.
#[derive(Debug)]
pub enum Ending {
    /// Something is wrong; the text is what the person reads.
    Failed {
        /// Decides the exit code.
        kind: ErrorKind,
        /// The rendered error.
        text: String,
    },
    /// It has failed, and what there is to say has been said.
    Reported,
    /// Ctrl-C.
    Interrupted,
    /// Whoever read the output has seen enough (`| head`).
    OutputClosed,
    /// `QUIT`.
    Quit,
}

impl Ending {
    /// Says what is wrong on standard error and gives the exit code.
    pub fn report(self) -> ExitCode {
        match self {
            Ending::Failed { kind, text } => {
                eprintln!("{text}");
                ExitCode::from(exit_code(kind))
            }
            Ending::Reported => ExitCode::from(1),
            Ending::Interrupted => ExitCode::from(130),
            Ending::OutputClosed | Ending::Quit => ExitCode::SUCCESS,
        }
    }

    /// An error in a statement that stands at `line` of `script`, shown with its place there.
    pub fn of_statement(error: &Error, script: &Source<'_>, line: u64, statement: &str) -> Ending {
        if error.kind() == ErrorKind::Cancelled {
            return Ending::Interrupted;
        }
        Ending::Failed { kind: error.kind(), text: script.render(error, line, statement) }
    }

    /// An error of the setup.
    pub fn setup(message: impl Into<String>) -> Ending {
        Ending::from(Error::setup(message))
    }
}

impl From<Error> for Ending {
    fn from(error: Error) -> Ending {
        if error.kind() == ErrorKind::Cancelled {
            return Ending::Interrupted;
        }
        Ending::Failed { kind: error.kind(), text: error.render("") }
    }
}

impl From<std::io::Error> for Ending {
    /// Writing to standard output failed: there is no other unlabelled input or output here.
    fn from(error: std::io::Error) -> Ending {
        match error.kind() {
            std::io::ErrorKind::BrokenPipe => Ending::OutputClosed,
            _ => Ending::setup(format!("cannot write to standard output: {error}")),
        }
    }
}

fn exit_code(kind: ErrorKind) -> u8 {
    match kind {
        ErrorKind::Setup => 2,
        ErrorKind::Cancelled => 130,
        _ => 1,
    }
}

/// A script's text and its name (none if it was typed), for errors.
pub struct Source<'a> {
    /// A file's name, `-e` or `stdin`.
    pub name: Option<&'a str>,
    /// The whole text.
    pub text: &'a str,
}

impl Source<'_> {
    /// As [`Source::render`], of something that is only likely to go wrong.
    pub fn warning(&self, fault: &Error, line: u64, statement: &str) -> String {
        self.render(fault, line, statement).replacen("error: ", "warning: ", 1)
    }

    /// Renders an error whose place is relative to a statement as one relative to the script.
    pub fn render(&self, error: &Error, line: u64, statement: &str) -> String {
        let Some(name) = self.name else { return error.render(statement) };
        let Some(mut span) = error.span() else {
            return format!("{name}:{line}: {}", error.render(statement));
        };
        // A statement may begin in the middle of a line, behind another one.
        let before = self.text.lines().nth(line.saturating_sub(1) as usize);
        let shift = before
            .and_then(|text| text.find(statement.lines().next().unwrap_or_default()).map(|at| &text[..at]))
            .map_or(0, |lead| lead.chars().count() as u64);
        span.column += if span.line == 1 { shift } else { 0 };
        span.end_column += if span.end_line == 1 { shift } else { 0 };
        span.line += line - 1;
        span.end_line += line - 1;
        let mut moved = Error::new(error.kind(), error.message()).at(Some(span));
        if let Some(hint) = error.hint_text() {
            moved = moved.hint(hint);
        }
        let mut text = format!("{name}:{}:{}: {}", span.line, span.column, moved.render(self.text));
        for other in error.others() {
            text.push('\n');
            text += &self.render(other, line, statement);
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ebbflow::Span;

    #[test]
    fn an_error_points_into_the_script_and_not_into_the_statement() {
        let text = "SET 'a' = 'b'; SELECT usr\nFROM t";
        let source = Source { name: Some("job.sql"), text };
        let span = Span { line: 1, column: 8, end_line: 1, end_column: 11 };
        let error = Error::sql("no column 'usr'").at(Some(span)).hint("did you mean 'user'?");
        let expected = "job.sql:1:23: error: no column 'usr'\n   |\n 1 | SET 'a' = 'b'; SELECT usr\n   |                       ^^^\n  \
                        hint: did you mean 'user'?";
        assert_eq!(source.render(&error, 1, "SELECT usr\nFROM t"), expected);
    }

    #[test]
    fn later_lines_keep_their_columns() {
        let text = "-- first\nSELECT 1;\nSELECT a\nFROM nowhere";
        let source = Source { name: Some("x"), text };
        let span = Span { line: 2, column: 6, end_line: 2, end_column: 13 };
        let rendered = source.render(&Error::sql("no table").at(Some(span)), 3, "SELECT a\nFROM nowhere");
        assert!(
            rendered.starts_with("x:4:6: error: no table\n   |\n 4 | FROM nowhere\n   |      ^^^^^^^"),
            "{rendered}"
        );
    }
}
