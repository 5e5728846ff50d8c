//! The parser's complaints in plain words, each with its place in the text and, for frequent mistakes, what would be
//! right.
//!
//! The parser carries errors as plain text. Our own routines put hint and place behind the message, parted by
//! [`PART`]; what `sqlparser` itself says ends in ` at Line: 3, Column: 7` and is reworded here.

use sqlparser::keywords::ALL_KEYWORDS;
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

/// What the parser says about `tokens` when it has come to the one at `reached`, in plain words.
pub(super) fn parser_error(error: ParserError, tokens: &[TokenWithSpan], reached: usize) -> Error {
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
    foreign_error(message, place, tokens, reached)
}

/// Rewords `Expected: X, found: Y`.
fn foreign_error(message: &str, place: Option<(u64, u64)>, tokens: &[TokenWithSpan], reached: usize) -> Error {
    let reworded = message.strip_prefix("Expected").map(|rest| rest.trim_start_matches([':', ' ']));
    let Some((wanted, found)) = reworded.and_then(|rest| rest.split_once(", found: ")) else {
        let place = place.and_then(|place| index_at(place, tokens)).map(|index| tokens[index].span);
        let span = place.map(|span| span_between(span, span)).or_else(|| end_of(tokens));
        return Error::sql(lower_first(message.strip_prefix("sql parser error: ").unwrap_or(message))).at(span);
    };
    // Some errors come without a place, or with that of the next token; theirs is the last one that reads the same.
    let reads = |index: &usize| tokens[*index].token.to_string() == found;
    let at = place.and_then(|place| index_at(place, tokens)).filter(reads).or_else(|| {
        let last = (reached + 1).min(tokens.len());
        (last.saturating_sub(4)..last).rev().find(reads)
    });
    let span = at.map(|index| span_between(tokens[index].span, tokens[index].span)).or_else(|| end_of(tokens));
    if found.eq_ignore_ascii_case("SYSTEM_TIME") {
        return Error::sql("FOR SYSTEM_TIME AS OF is out of place here")
            .at(span)
            .hint("it stands directly behind the name of a table or view, before the alias");
    }
    let wanted = match wanted {
        "end of statement" => "the statement to end".to_string(),
        symbol if !symbol.contains(char::is_alphanumeric) && !symbol.contains('\'') => format!("'{symbol}'"),
        other => other.to_string(),
    };
    let found = match at {
        Some(_) => format!("'{}'", cut(found)),
        None => "the end of the statement".to_string(),
    };
    let error = Error::sql(format!("expected {wanted}, found {found}")).at(span);
    match hint_for(&wanted, at, tokens) {
        Some(hint) => error.hint(hint),
        None => error,
    }
}

fn index_at((line, column): (u64, u64), tokens: &[TokenWithSpan]) -> Option<usize> {
    let location = Location::new(line, column);
    let index = tokens.partition_point(|token| token.span.start < location);
    tokens.get(index).filter(|token| token.span.start == location).map(|_| index)
}

/// What is likely meant, judged by the token that does not fit and those before it.
fn hint_for(wanted: &str, at: Option<usize>, tokens: &[TokenWithSpan]) -> Option<String> {
    let at = at?;
    let solid: Vec<&Token> = tokens[..=at]
        .iter()
        .rev()
        .map(|token| &token.token)
        .filter(|token| !matches!(token, Token::Whitespace(_)))
        .take(3)
        .collect();
    if let Token::Char(character) = solid[0] {
        return match character {
            '“' | '”' | '„' => {
                Some("names stand in backticks (`name`), strings in single quotes ('text')".into())
            }
            '‘' | '’' | '´' => Some("strings stand in plain single quotes: 'text'".into()),
            _ => None,
        };
    }
    if solid.get(1) == Some(&&Token::Comma) && wanted == "an expression" {
        return Some("is the comma before it one too many?".to_string());
    }
    let known = if solid.len() == 1 { STATEMENTS } else { CLAUSES };
    if let Some(hint) = solid.iter().find_map(|token| mistyped(plain_word(token)?, known)) {
        return Some(hint);
    }
    if let Some(word) = plain_word(solid[0]).filter(|word| is_reserved(word)) {
        return match word.to_ascii_uppercase().as_str() {
            "GROUP" | "ORDER" | "PARTITION" => Some(format!("write {word} BY …")),
            _ if ["name", "column", "identifier"].iter().any(|name| wanted.contains(name)) => {
                Some(format!("{word} is a reserved word; as a name it stands in backticks: `{word}`"))
            }
            _ => None,
        };
    }
    // `SELECT a b c`: the alias is taken, so that the next word comes as a surprise.
    let is_value = |token: &Token| match token {
        Token::Word(word) => word.quote_style.is_some() || !is_reserved(&word.value),
        Token::SingleQuotedString(_) | Token::Number(..) => true,
        _ => false,
    };
    let lists = wanted == "the statement to end" || wanted.contains("','") || wanted.contains("')'");
    let before = solid.get(1).is_some_and(|token| is_value(token) || **token == Token::RParen || is_type(token));
    (lists && is_value(solid[0]) && before).then(|| "is a comma missing here?".to_string())
}

fn plain_word(token: &Token) -> Option<&str> {
    match token {
        Token::Word(word) if word.quote_style.is_none() => Some(&word.value),
        _ => None,
    }
}

/// The end of a column's declaration.
fn is_type(token: &Token) -> bool {
    plain_word(token).is_some_and(super::type_syntax::is_type_name)
}

/// The keyword that a word, itself none, was meant to be.
fn mistyped(word: &str, known: &[&str]) -> Option<String> {
    let is_keyword = ALL_KEYWORDS.binary_search(&word.to_ascii_uppercase().as_str()).is_ok();
    if word.len() < 3
        || (is_keyword && known.iter().any(|keyword| keyword.eq_ignore_ascii_case(word)))
        || is_reserved(word)
    {
        return None;
    }
    let swapped = known.iter().copied().find(|keyword| is_swap(word, keyword));
    let keyword = swapped.or_else(|| nearest(word, known.iter().copied()).filter(|_| !is_keyword))?;
    (!keyword.eq_ignore_ascii_case(word)).then(|| format!("did you mean {keyword} instead of {word}?"))
}

/// Whether two neighbouring letters are the only difference: `FORM` for `FROM`.
fn is_swap(word: &str, keyword: &str) -> bool {
    let word: Vec<u8> = word.bytes().map(|byte| byte.to_ascii_uppercase()).collect();
    let keyword = keyword.as_bytes();
    let Some(first) = word.iter().zip(keyword).position(|(a, b)| a != b) else { return false };
    word.len() == keyword.len()
        && first + 1 < word.len()
        && word[first] == keyword[first + 1]
        && word[first + 1] == keyword[first]
        && word[first + 2..] == keyword[first + 2..]
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
