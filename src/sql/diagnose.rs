//! The parser's complaints in plain words, each with its place in the text and, for frequent mistakes, what would be
//! right.
//!
//! The parser carries errors as plain text. Our own routines put hint and place behind the message, parted by
//! [`PART`]; what `sqlparser` itself says ends in ` at Line: 3, Column: 7` and is reworded here.

use sqlparser::parser::{Parser, ParserError};
use sqlparser::tokenizer::{Location, Span as TokenSpan, Token, TokenWithSpan, TokenizerError};

use super::keywords::{CLAUSES, STATEMENTS, is_reserved};
use crate::error::{Error, Span, nearest};
use crate::limits;

/// Parts message, hint and place of our own errors; does not occur in SQL that people write.
const PART: char = '\u{1f}';

/// From the start of one token to the end of another.
pub(super) fn span_between(first: TokenSpan, last: TokenSpan) -> Span {
    Span {
        line: first.start.line,
        column: first.start.column,
        end_line: last.end.line,
        end_column: last.end.column.max(if first == last { first.start.column + 1 } else { 1 }),
    }
}

/// An error at a token, with what would be right (or nothing).
pub(super) fn refuse(token: &TokenWithSpan, message: impl Into<String>, hint: &str) -> ParserError {
    refuse_span(token.span, message, hint)
}

/// An error at a place.
pub(super) fn refuse_span(span: TokenSpan, message: impl Into<String>, hint: &str) -> ParserError {
    let (from, to) = (span.start, span.end);
    let place = format!("{} {} {} {}", from.line, from.column, to.line, to.column);
    ParserError::ParserError(format!("{}{PART}{hint}{PART}{place}", message.into()))
}

/// "expected …, found …" at the next token.
pub(super) fn expected(parser: &Parser, what: &str) -> ParserError {
    let token = parser.peek_token_ref();
    ParserError::ParserError(format!("Expected: {what}, found: {token}{}", token.span.start))
}

/// What the parser says about `tokens`, in plain words.
pub(super) fn parser_error(error: ParserError, tokens: &[TokenWithSpan]) -> Error {
    let text = match error {
        ParserError::RecursionLimitExceeded => {
            return Error::sql("the SQL nests too deeply").hint("use WITH or views");
        }
        ParserError::ParserError(text) | ParserError::TokenizerError(text) => text,
    };
    let mut parts = text.split(PART);
    if let (Some(message), Some(hint), Some(place)) = (parts.next(), parts.next(), parts.next()) {
        let numbers: Vec<u64> = place.split(' ').filter_map(|number| number.parse().ok()).collect();
        let span = match numbers[..] {
            [line, column, end_line, end_column] if line > 0 => Some(span_between(
                TokenSpan::new(Location::new(line, column), Location::new(line, column)),
                TokenSpan::new(Location::new(end_line, end_column), Location::new(end_line, end_column)),
            )),
            _ => end_of(tokens),
        };
        let error = Error::sql(message).at(span);
        return if hint.is_empty() { error } else { error.hint(hint) };
    }
    let (message, place) = match text.rsplit_once(" at Line: ") {
        Some((message, place)) => (message, place.split_once(", Column: ")),
        None => (text.as_str(), None),
    };
    let place = place.and_then(|(line, column)| Some((line.parse().ok()?, column.parse().ok()?)));
    foreign_error(message, place, tokens)
}

/// Rewords `Expected: X, found: Y`.
fn foreign_error(message: &str, place: Option<(u64, u64)>, tokens: &[TokenWithSpan]) -> Error {
    let at = place.and_then(|(line, column)| {
        let location = Location::new(line, column);
        let index = tokens.partition_point(|token| token.span.start < location);
        tokens.get(index).filter(|token| token.span.start == location).map(|_| index)
    });
    let span = at.map(|index| span_between(tokens[index].span, tokens[index].span)).or_else(|| end_of(tokens));
    let Some((wanted, found)) = message.strip_prefix("Expected: ").and_then(|rest| rest.split_once(", found: ")) else {
        let message = message.strip_prefix("sql parser error: ").unwrap_or(message);
        return Error::sql(lower_first(message)).at(span);
    };
    let wanted = match wanted {
        "end of statement" => "the statement to end",
        "an expression" => "an expression",
        other => other,
    };
    let found = match at {
        Some(_) => format!("'{}'", cut(found)),
        None => "the end of the statement".to_string(),
    };
    let error = Error::sql(format!("expected {wanted}, found {found}")).at(span);
    match hint_for(at, tokens) {
        Some(hint) => error.hint(hint),
        None => error,
    }
}

/// What is likely meant, judged by the token that does not fit and the one before it.
fn hint_for(at: Option<usize>, tokens: &[TokenWithSpan]) -> Option<String> {
    let at = at?;
    let token = &tokens[at].token;
    if let Token::Char(character) = token {
        return match character {
            '“' | '”' | '„' => {
                Some("names stand in backticks (`name`), strings in single quotes ('text')".into())
            }
            '‘' | '’' | '´' => Some("strings stand in plain single quotes: 'text'".into()),
            _ => None,
        };
    }
    let solid: Vec<usize> =
        (0..=at).rev().filter(|i| !matches!(tokens[*i].token, Token::Whitespace(_))).take(3).collect();
    let is_first = solid.len() == 1;
    for index in &solid {
        let Token::Word(word) = &tokens[*index].token else { continue };
        if word.quote_style.is_some() || word.value.len() < 3 {
            continue;
        }
        let known: &[&str] = if is_first { STATEMENTS } else { CLAUSES };
        if known.iter().any(|keyword| keyword.eq_ignore_ascii_case(&word.value)) {
            continue;
        }
        if let Some(keyword) = nearest(&word.value, known.iter().copied()) {
            return Some(format!("did you mean {keyword} instead of {}?", word.value));
        }
    }
    if let Token::Word(word) = token
        && word.quote_style.is_none()
        && is_reserved(&word.value)
    {
        return Some(format!("{0} is a reserved word; as a name it stands in backticks: `{0}`", word.value));
    }
    // `SELECT a b c`: the alias is taken, so that the next word comes as a surprise.
    let before = solid.get(1).map(|index| &tokens[*index].token);
    let starts_value = matches!(token, Token::Word(_) | Token::SingleQuotedString(_) | Token::Number(..));
    let ends_value =
        matches!(before, Some(Token::Word(_) | Token::SingleQuotedString(_) | Token::Number(..) | Token::RParen));
    (starts_value && ends_value).then(|| "is a comma missing here?".to_string())
}

/// What the tokenizer says.
pub(super) fn tokenizer_error(error: &TokenizerError) -> Error {
    let at = error.location;
    let span = Span { line: at.line, column: at.column, end_line: at.line, end_column: at.column + 1 };
    let (message, hint) = match error.message.as_str() {
        m if m.contains("multi-line comment") => ("this comment does not end", "it ends with */"),
        m if m.contains("close delimiter") => ("this quoted name does not end", "it ends with a backtick"),
        m if m.contains("nterminated") => {
            ("this string does not end", "a quote inside a string is written twice: 'it''s'")
        }
        other => return Error::sql(lower_first(other)).at(Some(span)),
    };
    Error::sql(message).at(Some(span)).hint(hint)
}

/// Just behind the last token.
fn end_of(tokens: &[TokenWithSpan]) -> Option<Span> {
    let last = tokens.iter().rev().find(|token| !matches!(token.token, Token::Whitespace(_)))?;
    let Location { line, column } = last.span.end;
    Some(Span { line, column, end_line: line, end_column: column + 1 })
}

fn lower_first(text: &str) -> String {
    let mut characters = text.chars();
    let first = characters.next().map(|c| c.to_lowercase().collect::<String>()).unwrap_or_default();
    first + characters.as_str()
}

fn cut(text: &str) -> String {
    if text.chars().count() <= limits::QUOTED_CHARACTERS {
        return text.to_string();
    }
    text.chars().take(limits::QUOTED_CHARACTERS).chain(['…']).collect()
}
