//! The one error type: few kinds, each answering "what should I do now?", with the place in the SQL text where there is one.

use std::fmt;

/// The result of everything that can fail here.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// What the reader of an error should do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// Fix the SQL text.
    Sql,
    /// Fix the setup: a path, an option, a permission, a full disk.
    Setup,
    /// Fix or skip the data: a malformed row, a delete without its insert.
    Data,
    /// An external system failed; `retryable` says whether trying again may help.
    External {
        /// Whether the same call may succeed later.
        retryable: bool,
    },
    /// Saved state is damaged or does not fit.
    State,
    /// The work was stopped on request.
    Cancelled,
    /// Report a bug in Ebbflow.
    Bug,
}

/// A place in SQL text: lines and columns count from 1, columns in characters; `end` is exclusive.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Span {
    /// First line.
    pub line: u64,
    /// First column.
    pub column: u64,
    /// Last line.
    pub end_line: u64,
    /// Column after the last character.
    pub end_column: u64,
}

impl Span {
    /// The place of a piece of the syntax tree; `None` for a piece that has none (it was made, not written).
    pub fn from_ast(span: sqlparser::tokenizer::Span) -> Option<Span> {
        let known = span.start.line > 0;
        known.then_some(Span {
            line: span.start.line,
            column: span.start.column,
            end_line: span.end.line,
            end_column: span.end.column,
        })
    }
}

/// An error with its kind, its place in the SQL text and what to do about it.
#[derive(Clone)]
pub struct Error(Box<Inner>);

#[derive(Clone)]
struct Inner {
    kind: ErrorKind,
    message: String,
    span: Option<Span>,
    hint: Option<String>,
    /// What else is wrong with the same statement.
    others: Vec<Error>,
}

impl Error {
    /// An error of the given kind.
    pub fn new(kind: ErrorKind, message: impl Into<String>) -> Error {
        Error(Box::new(Inner { kind, message: message.into(), span: None, hint: None, others: Vec::new() }))
    }

    /// The SQL text must change.
    pub fn sql(message: impl Into<String>) -> Error {
        Error::new(ErrorKind::Sql, message)
    }

    /// The setup must change.
    pub fn setup(message: impl Into<String>) -> Error {
        Error::new(ErrorKind::Setup, message)
    }

    /// The data must change, or an option must allow skipping it.
    pub fn data(message: impl Into<String>) -> Error {
        Error::new(ErrorKind::Data, message)
    }

    /// An external system failed.
    pub fn external(retryable: bool, message: impl Into<String>) -> Error {
        Error::new(ErrorKind::External { retryable }, message)
    }

    /// Saved state is damaged or does not fit.
    pub fn state(message: impl Into<String>) -> Error {
        Error::new(ErrorKind::State, message)
    }

    /// The work was stopped on request.
    pub fn cancelled() -> Error {
        Error::new(ErrorKind::Cancelled, "cancelled")
    }

    /// Something that only a bug in Ebbflow can cause.
    pub fn bug(message: impl Into<String>) -> Error {
        Error::new(ErrorKind::Bug, message)
    }

    /// An input/output error at `path`, worded with what was being done.
    pub fn io(doing: &str, path: &std::path::Path, error: &std::io::Error) -> Error {
        Error::setup(format!("cannot {doing} '{}': {error}", path.display()))
    }

    /// Adds the place in the SQL text; a place that is already known stays.
    #[must_use]
    pub fn at(mut self, span: Option<Span>) -> Error {
        self.0.span = self.0.span.or(span);
        self
    }

    /// Adds what else is wrong with the statement, to be shown with it.
    #[must_use]
    pub fn beside(mut self, others: Vec<Error>) -> Error {
        self.0.others.extend(others);
        self
    }

    /// What else is wrong with the statement.
    pub fn others(&self) -> &[Error] {
        &self.0.others
    }

    /// Takes the place away: it is one in another text than the statement at hand.
    #[must_use]
    pub fn elsewhere(mut self) -> Error {
        self.0.span = None;
        self.0.others.clear();
        self
    }

    /// Adds what would be right; a hint that is already there stays.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Error {
        self.0.hint.get_or_insert_with(|| hint.into());
        self
    }

    /// Adds to the hint, if there is one.
    #[must_use]
    pub fn more(mut self, text: impl AsRef<str>) -> Error {
        if let Some(hint) = &mut self.0.hint {
            hint.push_str(text.as_ref());
        }
        self
    }

    /// Puts the words of the outer level in front of the message.
    #[must_use]
    pub fn context(mut self, prefix: impl fmt::Display) -> Error {
        self.0.message = format!("{prefix}: {}", self.0.message);
        self
    }

    /// The kind.
    pub fn kind(&self) -> ErrorKind {
        self.0.kind
    }

    /// The message alone, without place and hint.
    pub fn message(&self) -> &str {
        &self.0.message
    }

    /// The place in the SQL text.
    pub fn span(&self) -> Option<Span> {
        self.0.span
    }

    /// What would be right.
    pub fn hint_text(&self) -> Option<&str> {
        self.0.hint.as_deref()
    }

    /// The message, the line of `sql` with carets under the place, and the hint.
    pub fn render(&self, sql: &str) -> String {
        let mut text = format!("error: {}", self.0.message);
        if let Some(span) = self.0.span
            && let Some(line) = sql.lines().nth(span.line.saturating_sub(1) as usize)
        {
            let number = span.line.to_string();
            let margin = " ".repeat(number.len());
            let from = (span.column.max(1) - 1) as usize;
            let length = line.chars().count();
            let to = if span.end_line > span.line { length } else { span.end_column.saturating_sub(1) as usize };
            // A tab keeps its width under itself, so that the caret stands where the reader looks.
            let lead: String = line.chars().take(from).map(|c| if c == '\t' { '\t' } else { ' ' }).collect();
            let carets = "^".repeat(to.min(length).saturating_sub(from).max(1));
            text += &format!("\n {margin} |\n {number} | {line}\n {margin} | {lead}{carets}");
        }
        if let Some(hint) = &self.0.hint {
            text += &format!("\n  hint: {hint}");
        }
        for other in &self.0.others {
            text += "\n";
            text += &other.render(sql);
        }
        text
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.message)?;
        if let Some(span) = self.0.span {
            write!(f, " (line {}, column {})", span.line, span.column)?;
        }
        if let Some(hint) = &self.0.hint {
            write!(f, "; {hint}")?;
        }
        for other in &self.0.others {
            write!(f, "; {other}")?;
        }
        Ok(())
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}: {self}", self.0.kind)
    }
}

impl std::error::Error for Error {}

impl From<arrow::error::ArrowError> for Error {
    /// Arrow fails on data (overflow, a cast that does not fit, division by zero); its wording is kept.
    fn from(error: arrow::error::ArrowError) -> Error {
        use arrow::error::ArrowError::*;
        match error {
            DivideByZero => Error::data("division by zero"),
            CastError(m) | ParseError(m) | ComputeError(m) | ArithmeticOverflow(m) | InvalidArgumentError(m) => {
                Error::data(m)
            }
            other => Error::bug(other.to_string()),
        }
    }
}

/// The name out of `candidates` nearest to `name`, if one is near enough to be a likely typo.
pub fn nearest<'a>(name: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let lower = name.to_lowercase();
    let limit = (name.chars().count() / 3).clamp(1, 3);
    candidates
        .into_iter()
        .map(|candidate| (edit_distance(&lower, &candidate.to_lowercase()), candidate))
        .filter(|(distance, _)| *distance <= limit)
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate)
}

/// Levenshtein distance over characters.
fn edit_distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut previous: Vec<usize> = (0..=b.len()).collect();
    for (i, from) in a.chars().enumerate() {
        let mut current = vec![i + 1];
        for (j, to) in b.iter().enumerate() {
            let swap = previous[j] + usize::from(from != *to);
            current.push(swap.min(previous[j + 1] + 1).min(current[j] + 1));
        }
        previous = current;
    }
    previous[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_name_is_a_likely_typo_or_nothing() {
        assert_eq!(nearest("filesytem", ["filesystem", "datagen"]), Some("filesystem"));
        assert_eq!(nearest("USERS", ["users"]), Some("users"));
        assert_eq!(nearest("zebra", ["users"]), None);
    }

    #[test]
    fn carets_stand_under_the_place() {
        let span = Span { line: 2, column: 8, end_line: 2, end_column: 11 };
        let error = Error::sql("no column 'usr'").at(Some(span)).hint("did you mean 'user'?");
        assert_eq!(
            error.render("-- x\nSELECT usr FROM t"),
            "error: no column 'usr'\n   |\n 2 | SELECT usr FROM t\n   |        ^^^\n  hint: did you mean 'user'?"
        );
    }
}
