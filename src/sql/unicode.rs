//! `U&'\263A'` and `U&'!263A' UESCAPE '!'`, put together from the tokens that the tokenizer makes of them.

use sqlparser::tokenizer::{Token, TokenWithSpan};

use super::diagnose::span_between;
use crate::error::{Error, Result};

/// Makes one token of each such literal. A wrong one ends the tokens, as a string without an end does.
pub(super) fn join(tokens: Vec<TokenWithSpan>) -> (Vec<TokenWithSpan>, Option<Error>) {
    let mut joined = Vec::with_capacity(tokens.len());
    let mut at = 0;
    while at < tokens.len() {
        let Some(text) = literal(&tokens[at..]) else {
            joined.push(tokens[at].clone());
            at += 1;
            continue;
        };
        let (escape, length) = escape(&tokens[at..]).unwrap_or(('\\', 3));
        let span = tokens[at].span.union(&tokens[at + length - 1].span);
        match decode(text, escape) {
            Ok(text) => joined.push(TokenWithSpan { token: Token::UnicodeStringLiteral(text), span }),
            Err(error) => return (joined, Some(error.at(Some(span_between(span, span))))),
        }
        at += length;
    }
    (joined, None)
}

/// The text between the quotes, if such a literal begins here: nothing may stand between its three tokens.
fn literal(tokens: &[TokenWithSpan]) -> Option<&str> {
    let [prefix, and, text, ..] = tokens else { return None };
    let Token::Word(word) = &prefix.token else { return None };
    let close = prefix.span.end == and.span.start && and.span.end == text.span.start;
    match &text.token {
        Token::SingleQuotedString(text)
            if close
                && and.token == Token::Ampersand
                && word.quote_style.is_none()
                && word.value.eq_ignore_ascii_case("U") =>
        {
            Some(text)
        }
        _ => None,
    }
}

/// The character after UESCAPE, and how many tokens the literal has with it.
fn escape(tokens: &[TokenWithSpan]) -> Option<(char, usize)> {
    let white = |token: &&TokenWithSpan| matches!(token.token, Token::Whitespace(_));
    let before = tokens[3..].iter().take_while(white).count();
    match &tokens.get(3 + before)?.token {
        Token::Word(word) if word.value.eq_ignore_ascii_case("UESCAPE") => {}
        _ => return None,
    }
    let after = tokens[4 + before..].iter().take_while(white).count();
    let Token::SingleQuotedString(escape) = &tokens.get(4 + before + after)?.token else { return None };
    let mut characters = escape.chars();
    let only = characters.next().filter(|_| characters.next().is_none())?;
    Some((only, 5 + before + after))
}

/// Replaces `\263A` and `\+01F600`; two halves of a surrogate pair are one character.
fn decode(text: &str, escape: char) -> Result<String> {
    let mut result = String::with_capacity(text.len());
    let mut rest = text;
    let mut high: Option<u32> = None;
    let wrong = |what: &str| {
        Error::sql(format!("'{what}' is no Unicode character"))
            .hint(format!("write {escape} and four digits, as in {escape}263A, or {escape}{escape} for the character"))
    };
    while let Some(found) = rest.find(escape) {
        let (before, after) = (&rest[..found], &rest[found + escape.len_utf8()..]);
        if high.is_some() && !before.is_empty() {
            return Err(wrong(text));
        }
        result.push_str(before);
        if let Some(after) = after.strip_prefix(escape) {
            result.push(escape);
            rest = after;
            continue;
        }
        let (digits, width) = match after.strip_prefix('+') {
            Some(digits) => (digits, 6),
            None => (after, 4),
        };
        let digits = digits.get(..width).filter(|digits| digits.bytes().all(|digit| digit.is_ascii_hexdigit()));
        let code = digits.and_then(|digits| u32::from_str_radix(digits, 16).ok()).ok_or_else(|| wrong(text))?;
        rest = &after[width + usize::from(width == 6)..];
        match (high.take(), code) {
            (None, 0xD800..=0xDBFF) => high = Some(code),
            (Some(high), 0xDC00..=0xDFFF) => {
                let whole = 0x1_0000 + ((high - 0xD800) << 10) + (code - 0xDC00);
                result.push(char::from_u32(whole).ok_or_else(|| wrong(text))?);
            }
            (None, code) => result.push(char::from_u32(code).ok_or_else(|| wrong(text))?),
            (Some(_), _) => return Err(wrong(text)),
        }
    }
    if high.is_some() {
        return Err(wrong(text));
    }
    result.push_str(rest);
    Ok(result)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escapes_are_characters_and_pairs_are_one() {
        assert_eq!(decode(r"\263A x \\", '\\').unwrap(), r"☺ x \");
        assert_eq!(decode(r"\D83D\DE00\+01F600", '\\').unwrap(), "😀😀");
        assert_eq!(decode("!263A", '!').unwrap(), "☺");
        for wrong in [r"\D83D", r"\D83Dx\DE00", r"\DE00", r"\26", r"\26é", r"\+110000", r"\D83D\D83D"] {
            assert!(decode(wrong, '\\').is_err(), "{wrong}");
        }
    }
}
