//! `VALUES 1, 2`: rows of one column may stand without parentheses. The parser wants them, so it is given them.

use sqlparser::tokenizer::{Location, Span, Token, TokenWithSpan};

/// Words that end the rows of VALUES.
const ENDS: &[&str] = &["UNION", "INTERSECT", "EXCEPT", "MINUS", "ORDER", "LIMIT", "OFFSET", "FETCH", "ON"];

/// The tokens with parentheses around rows that stand without.
pub(super) fn parenthesize(tokens: Vec<TokenWithSpan>) -> Vec<TokenWithSpan> {
    if !(0..tokens.len()).any(|at| bare_rows(&tokens, at).is_some()) {
        return tokens;
    }
    let mut done = Vec::with_capacity(tokens.len() + 8);
    let mut at = 0;
    while at < tokens.len() {
        let Some(first) = bare_rows(&tokens, at) else {
            done.push(tokens[at].clone());
            at += 1;
            continue;
        };
        done.extend_from_slice(&tokens[at..first]);
        let end = end_of_rows(&tokens[first..]) + first;
        let mut from = first;
        for comma in commas(&tokens[first..end]).into_iter().map(|comma| comma + first).chain([end]) {
            row(&tokens[from..comma], &mut done);
            done.extend(tokens.get(comma).filter(|_| comma < end).cloned());
            from = comma + 1;
        }
        at = end;
    }
    done
}

/// Where the rows begin, if a VALUES at `at` has a first row without parentheses.
fn bare_rows(tokens: &[TokenWithSpan], at: usize) -> Option<usize> {
    if !is_word(&tokens[at], "VALUES") {
        return None;
    }
    let next = |from: usize| (from..tokens.len()).find(|at| !is_white(&tokens[*at]));
    let first = next(at + 1)?;
    let row = is_word(&tokens[first], "ROW") && next(first + 1).is_some_and(|at| tokens[at].token == Token::LParen);
    // What is no value either is left for the parser to complain of.
    let value = !matches!(tokens[first].token, Token::LParen | Token::RParen | Token::Comma | Token::SemiColon);
    (value && !row).then_some(first)
}

fn end_of_rows(tokens: &[TokenWithSpan]) -> usize {
    let mut depth = 0_usize;
    for (at, token) in tokens.iter().enumerate() {
        match &token.token {
            Token::SemiColon if depth == 0 => return at,
            Token::RParen if depth == 0 => return at,
            Token::Word(_) if depth == 0 && ENDS.iter().any(|word| is_word(token, word)) => return at,
            other => depth = deeper(depth, other),
        }
    }
    tokens.len()
}

fn commas(tokens: &[TokenWithSpan]) -> Vec<usize> {
    let mut depth = 0;
    let mut found = Vec::new();
    for (at, token) in tokens.iter().enumerate() {
        if depth == 0 && token.token == Token::Comma {
            found.push(at);
        }
        depth = deeper(depth, &token.token);
    }
    found
}

fn deeper(depth: usize, token: &Token) -> usize {
    match token {
        Token::LParen | Token::LBracket | Token::LBrace => depth + 1,
        Token::RParen | Token::RBracket | Token::RBrace => depth.saturating_sub(1),
        _ => depth,
    }
}

/// One row, in parentheses unless it has them.
fn row(tokens: &[TokenWithSpan], to: &mut Vec<TokenWithSpan>) {
    let filled = |token: &TokenWithSpan| !is_white(token);
    let (Some(first), Some(last)) = (tokens.iter().position(filled), tokens.iter().rposition(filled)) else {
        to.extend_from_slice(tokens);
        return;
    };
    let inside = &tokens[first..=last];
    if is_parenthesized(inside) {
        to.extend(parenthesize(tokens.to_vec()));
        return;
    }
    let at = |token: Token, place: Location| TokenWithSpan { token, span: Span { start: place, end: place } };
    to.extend_from_slice(&tokens[..first]);
    to.push(at(Token::LParen, tokens[first].span.start));
    to.extend(parenthesize(inside.to_vec()));
    to.push(at(Token::RParen, tokens[last].span.end));
    to.extend_from_slice(&tokens[last + 1..]);
}

/// Whether the first parenthesis is closed by the last token.
fn is_parenthesized(tokens: &[TokenWithSpan]) -> bool {
    let mut depth = 0;
    for (at, token) in tokens.iter().enumerate() {
        depth = deeper(depth, &token.token);
        if depth == 0 {
            return at > 0 && at + 1 == tokens.len() && tokens[0].token == Token::LParen;
        }
    }
    false
}

fn is_white(token: &TokenWithSpan) -> bool {
    matches!(token.token, Token::Whitespace(_))
}

fn is_word(token: &TokenWithSpan, word: &str) -> bool {
    matches!(&token.token, Token::Word(given) if given.quote_style.is_none() && given.value.eq_ignore_ascii_case(word))
}
