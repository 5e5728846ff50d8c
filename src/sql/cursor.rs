//! Small steps over tokens by their text, for words that `sqlparser` does not know as keywords.

use sqlparser::ast::{Ident, ObjectName};
use sqlparser::parser::{Parser, ParserError};
use sqlparser::tokenizer::Token;

use super::diagnose::{expected, refuse};
use super::keywords::is_reserved;

/// What our own routines give: errors stay the parser's until the statement is done.
pub(super) type Parse<T> = Result<T, ParserError>;

/// Whether the next words are these (upper case), unquoted.
pub(super) fn at(parser: &Parser, words: &[&str]) -> bool {
    words.iter().enumerate().all(|(n, word)| word_at(parser, n).is_some_and(|text| text.eq_ignore_ascii_case(word)))
}

/// The unquoted word `n` tokens ahead.
pub(super) fn word_at<'p>(parser: &'p Parser, n: usize) -> Option<&'p str> {
    match &parser.peek_nth_token_ref(n).token {
        Token::Word(word) if word.quote_style.is_none() => Some(&word.value),
        _ => None,
    }
}

/// Whether the token `n` ahead is this one.
pub(super) fn token_at(parser: &Parser, n: usize, token: &Token) -> bool {
    parser.peek_nth_token_ref(n).token == *token
}

/// Steps over these words, if they are next.
pub(super) fn accept(parser: &mut Parser, words: &[&str]) -> bool {
    let found = at(parser, words);
    if found {
        words.iter().for_each(|_| parser.advance_token());
    }
    found
}

/// The first of these words, if one is next.
pub(super) fn accept_one<'w>(parser: &mut Parser, words: &[&'w str]) -> Option<&'w str> {
    words.iter().find(|word| accept(parser, &[word])).copied()
}

/// Steps over these words.
pub(super) fn require(parser: &mut Parser, words: &[&str]) -> Parse<()> {
    for word in words {
        if !accept(parser, &[word]) {
            return Err(expected(parser, word));
        }
    }
    Ok(())
}

/// Steps over this token.
pub(super) fn require_token(parser: &mut Parser, token: &Token) -> Parse<()> {
    if parser.consume_token(token) { Ok(()) } else { Err(expected(parser, &format!("'{token}'"))) }
}

/// Whether nothing follows.
pub(super) fn at_end(parser: &Parser) -> bool {
    token_at(parser, 0, &Token::EOF)
}

/// A name that is not qualified.
pub(super) fn name(parser: &mut Parser, what: &str) -> Parse<Ident> {
    match parser.peek_token_ref().token {
        Token::Word(_) => parser.parse_identifier(),
        _ => Err(expected(parser, what)),
    }
}

/// A name that is being given to something, where reserved words need backticks.
pub(super) fn new_name(parser: &mut Parser, what: &str) -> Parse<Ident> {
    if let Some(word) = word_at(parser, 0)
        && is_reserved(word)
    {
        let message = format!("{word} is a reserved word and cannot be {what} as it stands");
        return Err(refuse(parser.peek_token_ref(), message, &format!("put it in backticks: `{word}`")));
    }
    name(parser, what)
}

/// `[catalog.][database.]name`.
pub(super) fn object_name(parser: &mut Parser, what: &str) -> Parse<ObjectName> {
    let mut parts = vec![name(parser, what)?];
    while parser.consume_token(&Token::Period) {
        parts.push(name(parser, "a name after '.'")?);
    }
    if parts.len() > 3 {
        let message = format!("'{}' has too many parts", ObjectName::from(parts));
        return Err(refuse(parser.get_current_token(), message, "a full name is `catalog`.`database`.`name`"));
    }
    Ok(ObjectName::from(parts))
}

/// `'text'`.
pub(super) fn string(parser: &mut Parser, what: &str) -> Parse<String> {
    let token = parser.next_token();
    match token.token {
        Token::SingleQuotedString(text) | Token::UnicodeStringLiteral(text) | Token::EscapedStringLiteral(text) => {
            Ok(text)
        }
        _ => {
            parser.prev_token();
            Err(expected(parser, what))
        }
    }
}

/// A whole number, at least `minimum` and at most `maximum`.
pub(super) fn number(parser: &mut Parser, what: &str, minimum: u32, maximum: u32) -> Parse<u32> {
    let token = parser.next_token();
    let Token::Number(digits, _) = &token.token else {
        parser.prev_token();
        return Err(expected(parser, what));
    };
    match digits.parse::<u32>() {
        Ok(number) if (minimum..=maximum).contains(&number) => Ok(number),
        _ => Err(refuse(&token, format!("{what} must be from {minimum} to {maximum}, not {digits}"), "")),
    }
}

/// `(item, …)`, at least one.
pub(super) fn list<T>(parser: &mut Parser, mut item: impl FnMut(&mut Parser) -> Parse<T>) -> Parse<Vec<T>> {
    require_token(parser, &Token::LParen)?;
    let mut items = vec![item(parser)?];
    while parser.consume_token(&Token::Comma) {
        items.push(item(parser)?);
    }
    if !parser.consume_token(&Token::RParen) {
        return Err(expected(parser, "',' or ')'"));
    }
    Ok(items)
}
