//! Text to tokens, and a script to its statements. Promises that whatever reaches the parser is of bounded size and
//! depth, and that every token knows its place in the whole text.

use std::ops::Range;

use sqlparser::tokenizer::{Location, Span as TokenSpan, Token, TokenWithSpan, Tokenizer, Whitespace};

use super::depth;
use super::diagnose::{span_between, tokenizer_error};
use super::dialect::FlinkDialect;
use super::{unicode, values};
use crate::error::{Error, Result, Span};
use crate::limits;

/// Tokens of one statement (or expression, or type), ready for the parser.
pub(super) struct Piece<'a> {
    /// The text of the whole script.
    script: &'a str,
    /// The bytes of the statement in the script, without the semicolon.
    bytes: Range<usize>,
    /// Where it stands.
    pub span: Span,
    /// Its tokens, white space included.
    pub tokens: Vec<TokenWithSpan>,
    /// The bytes of each token in the script.
    ranges: Vec<Range<usize>>,
    /// Why the text after the last token is no SQL (a string that never ends).
    failure: Option<Error>,
}

/// The statements of a script, one after another; white space and comments between them are skipped.
pub(super) struct Script<'a> {
    script: &'a str,
    tokens: std::vec::IntoIter<TokenWithSpan>,
    ranges: std::vec::IntoIter<Range<usize>>,
    failure: Option<Error>,
}

impl<'a> Script<'a> {
    /// Cuts a text into tokens.
    ///
    /// # Errors
    /// If the text is too large or binary. A string or comment that never ends is the error of its statement only.
    pub fn new(script: &'a str) -> Result<Script<'a>> {
        if script.len() > limits::SQL_BYTES {
            let (size, limit) = (script.len(), limits::SQL_BYTES);
            return Err(Error::sql(format!("the SQL text has {size} bytes; at most {limit} are allowed"))
                .hint("load data through a table, not through VALUES"));
        }
        if let Some(offset) = script.find('\0') {
            let (line, column) = position(&script[..offset]);
            let span = Span { line, column, end_line: line, end_column: column + 1 };
            return Err(Error::sql("the text contains a NUL character: it is not SQL text").at(Some(span)));
        }
        let mut tokens = Vec::new();
        let failure = Tokenizer::new(&FlinkDialect, script)
            .tokenize_with_location_into_buf(&mut tokens)
            .err()
            .map(|error| tokenizer_error(&error));
        let (tokens, wrong) = unicode::join(tokens);
        let tokens = values::parenthesize(tokens);
        let failure = wrong.or(failure);
        let ranges = byte_ranges(script, &tokens);
        Ok(Script { script, tokens: tokens.into_iter(), ranges: ranges.into_iter(), failure })
    }

    /// The rest of the text, which starts with something that never ends.
    fn broken_rest(&mut self, from: Option<(usize, Location)>, tokens: Vec<TokenWithSpan>) -> Option<Piece<'a>> {
        let failure = self.failure.take()?;
        let span = failure.span()?;
        let start = from.map_or_else(|| byte_of(self.script, span.line, span.column), |(offset, _)| offset);
        let (line, column) = from.map_or((span.line, span.column), |(_, at)| (at.line, at.column));
        Some(Piece {
            script: self.script,
            bytes: start..self.script.trim_end().len().max(start),
            span: Span { line, column, ..span },
            ranges: vec![0..0; tokens.len()],
            tokens,
            failure: Some(failure),
        })
    }
}

impl<'a> Iterator for Script<'a> {
    type Item = Piece<'a>;

    fn next(&mut self) -> Option<Piece<'a>> {
        let mut tokens: Vec<TokenWithSpan> = Vec::new();
        let mut ranges: Vec<Range<usize>> = Vec::new();
        let mut set = StatementSetEnd::default();
        let mut ended = false;
        for (token, range) in self.tokens.by_ref().zip(self.ranges.by_ref()) {
            let white = matches!(token.token, Token::Whitespace(_));
            if tokens.is_empty() && (white || token.token == Token::SemiColon) {
                continue;
            }
            if token.token == Token::SemiColon && !set.inside() {
                ended = true;
                break;
            }
            if !white {
                set.see(&token.token);
            }
            tokens.push(token);
            ranges.push(range);
        }
        let first = tokens.first().zip(ranges.first()).map(|(token, range)| (range.start, token.span.start));
        if !ended && self.failure.is_some() {
            return self.broken_rest(first, tokens);
        }
        while tokens.last().is_some_and(|token| is_white(&token.token)) {
            tokens.pop();
            ranges.pop();
        }
        let (start, _) = first?;
        let span = span_between(tokens.first()?.span, tokens.last()?.span);
        let bytes = start..ranges.last()?.end;
        Some(Piece { script: self.script, bytes, span, tokens, ranges, failure: None })
    }
}

impl<'a> Piece<'a> {
    /// The one statement of a text.
    ///
    /// # Errors
    /// If there is none, or a second one.
    pub fn only(text: &'a str, what: &str) -> Result<Piece<'a>> {
        let mut script = Script::new(text)?;
        let Some(piece) = script.next() else { return Err(Error::sql(format!("there is no {what} in the text"))) };
        match script.next() {
            None => Ok(piece),
            Some(second) => Err(Error::sql(format!("expected one {what}, but a second one follows"))
                .at(Some(second.span))
                .hint("run them one after another, as a script")),
        }
    }

    /// Its text, without the semicolon.
    pub fn text(&self) -> &'a str {
        &self.script[self.bytes.clone()]
    }

    /// The first `!=`, which has the token of `<>`.
    pub fn bang(&self) -> Option<Span> {
        let mut tokens = self.tokens.iter().zip(&self.ranges);
        let bang = |range: &Range<usize>| self.script.get(range.clone()).is_some_and(|text| text.starts_with('!'));
        let found = tokens.find(|(token, range)| token.token == Token::Neq && bang(range));
        found.map(|(token, _)| span_between(token.span, token.span))
    }

    /// The text from one token up to but not including another, without white space at its ends.
    pub fn text_between(&self, from: usize, to: usize) -> &'a str {
        let start = self.ranges.get(from).map_or(self.bytes.end, |range| range.start);
        let end = if to == 0 { start } else { self.ranges.get(to - 1).map_or(self.bytes.end, |range| range.end) };
        self.script[start..end.max(start)].trim()
    }

    /// Makes the tokens ready for the parser: hints become clauses, `>>` becomes two brackets.
    ///
    /// # Errors
    /// If the text has no end, nests too deeply or quotes with double quotes.
    pub fn prepare(&mut self) -> Result<()> {
        if let Some(error) = &self.failure {
            return Err(error.clone());
        }
        if let Some(token) = self.tokens.iter().find(|t| matches!(t.token, Token::DoubleQuotedString(_))) {
            return Err(Error::sql(format!("double quotes have no meaning here: {}", token.token))
                .at(Some(span_between(token.span, token.span)))
                .hint("names stand in backticks (`name`), strings in single quotes ('text')"));
        }
        depth::check(&self.tokens)?;
        let tokens = std::mem::take(&mut self.tokens);
        let ranges = std::mem::take(&mut self.ranges);
        for (token, range) in tokens.into_iter().zip(ranges) {
            match &token.token {
                // Flink has no shift operators, but nested types end in `>>`.
                Token::ShiftRight => {
                    let middle = Location::new(token.span.start.line, token.span.start.column + 1);
                    self.push(Token::Gt, TokenSpan::new(token.span.start, middle), range.start..range.start + 1);
                    self.push(Token::Gt, TokenSpan::new(middle, token.span.end), range.start + 1..range.end);
                }
                Token::Whitespace(Whitespace::MultiLineComment(comment)) if self.after_table_name(comment) => {
                    self.push_hint(&comment[1..], token.span, &range);
                }
                _ => self.push(token.token, token.span, range),
            }
        }
        Ok(())
    }

    fn push(&mut self, token: Token, span: TokenSpan, range: Range<usize>) {
        self.tokens.push(TokenWithSpan::new(token, span));
        self.ranges.push(range);
    }

    /// Whether a comment is an `OPTIONS` hint that stands directly after the name of a table.
    fn after_table_name(&self, comment: &str) -> bool {
        let Some(hint) = comment.strip_prefix('+') else { return false };
        if !hint.trim_start().get(..7).is_some_and(|word| word.eq_ignore_ascii_case("OPTIONS")) {
            return false;
        }
        let mut before = self.tokens.iter().rev().filter(|token| !matches!(token.token, Token::Whitespace(_)));
        let mut name = before.next();
        loop {
            if !matches!(name.map(|t| &t.token), Some(Token::Word(_))) {
                return false;
            }
            match before.next().map(|t| &t.token) {
                Some(Token::Period) => name = before.next(),
                Some(Token::Comma) => return true,
                Some(Token::Word(word)) => {
                    let introduces = ["FROM", "JOIN", "INTO", "OVERWRITE", "TABLE"];
                    return word.quote_style.is_none() && introduces.iter().any(|w| word.value.eq_ignore_ascii_case(w));
                }
                _ => return false,
            }
        }
    }

    /// `/*+ OPTIONS('k'='v') */` becomes `(OPTIONS('k'='v'))`, the arguments of the table; `rewrite` makes it a hint.
    fn push_hint(&mut self, hint: &str, span: TokenSpan, range: &Range<usize>) {
        let inner = Tokenizer::new(&FlinkDialect, hint).tokenize().unwrap_or_default();
        let ends = |token| std::iter::once(token);
        for token in ends(Token::LParen).chain(inner).chain(ends(Token::RParen)) {
            self.push(token, span, range.clone());
        }
    }
}

/// Finds the `END` of a statement set, so that the semicolons inside do not end the statement.
#[derive(Default)]
struct StatementSetEnd {
    /// The first words, upper case; empty for anything that is no word.
    first: Vec<String>,
    inside: bool,
    open_cases: usize,
}

impl StatementSetEnd {
    fn inside(&self) -> bool {
        self.inside
    }

    fn see(&mut self, token: &Token) {
        let word = match token {
            Token::Word(word) if word.quote_style.is_none() => word.value.as_str(),
            _ => "",
        };
        if self.inside {
            if word.eq_ignore_ascii_case("CASE") {
                self.open_cases += 1;
            } else if word.eq_ignore_ascii_case("END") {
                self.inside = self.open_cases > 0;
                self.open_cases = self.open_cases.saturating_sub(1);
            }
        } else if self.first.len() < 12 {
            self.first.push(word.to_ascii_uppercase());
            self.inside = self.first.ends_with(&["STATEMENT", "SET", "BEGIN"].map(String::from))
                || self.first == ["BEGIN", "STATEMENT", "SET"];
        }
    }
}

/// White space and comments, but not hints.
fn is_white(token: &Token) -> bool {
    match token {
        Token::Whitespace(Whitespace::MultiLineComment(comment)) => !comment.starts_with('+'),
        Token::Whitespace(_) => true,
        _ => false,
    }
}

/// The bytes of every token, found in one walk over the text.
fn byte_ranges(text: &str, tokens: &[TokenWithSpan]) -> Vec<Range<usize>> {
    let (mut line, mut column, mut offset) = (1, 1, 0);
    let mut characters = text.chars();
    let mut reach = |to: Location| {
        while (line, column) < (to.line, to.column) {
            let Some(character) = characters.next() else { break };
            offset += character.len_utf8();
            (line, column) = if character == '\n' { (line + 1, 1) } else { (line, column + 1) };
        }
        offset
    };
    tokens.iter().map(|token| reach(token.span.start)..reach(token.span.end)).collect()
}

fn byte_of(text: &str, line: u64, column: u64) -> usize {
    let start: usize = text.split_inclusive('\n').take(line.saturating_sub(1) as usize).map(str::len).sum();
    let characters = text[start..].chars().take(column.saturating_sub(1) as usize);
    start + characters.map(char::len_utf8).sum::<usize>()
}

/// Line and column of the character that follows `before`.
fn position(before: &str) -> (u64, u64) {
    let line = before.matches('\n').count() as u64 + 1;
    let column = before.rsplit('\n').next().unwrap_or("").chars().count() as u64 + 1;
    (line, column)
}
