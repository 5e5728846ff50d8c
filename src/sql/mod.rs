//! Text to statements: the Flink dialect on top of `sqlparser`.
//!
//! How `SELECT TUMBLE_START(ts, INTERVAL '1:30' MINUTE TO SECOND) FROM t GROUP BY …; …` passes through:
//!
//! 1. `lexer` cuts the script into tokens and finds the semicolon that ends the statement; statements after it may be
//!    wrong without harm to this one. `depth` refuses what would make too deep a tree.
//! 2. `statements` sees from the first word that it is a query, and hands it to `sqlparser` with the `dialect`;
//!    `CREATE` has its own file, `show` too.
//! 3. `sqlparser` calls back for expressions: `expression` and `infix` know Flink's, `interval` makes the interval
//!    `INTERVAL '90' SECOND`, `type_syntax` reads the types, `json` the SQL/JSON calls.
//! 4. `rewrite` wraps the call: `TUMBLE_START(TUMBLE(ts, INTERVAL '90' SECOND))`.
//! 5. If something does not fit, `diagnose` says in plain words what was expected, where, and what may be meant.
//!
//! A statement is a variant of [`Statement`], an arm in `statements`, and a case in `tests`. Everything printed from a
//! tree reads back as the same tree; computed columns and watermarks are kept as such text. (One exception: `sqlparser`
//! prints the alias of a versioned table before `FOR SYSTEM_TIME AS OF`; views keep their query as it was written.)

mod alter;
mod create;
mod cursor;
mod depth;
mod diagnose;
mod dialect;
mod expression;
mod infix;
mod interval;
mod json;
mod keywords;
mod lexer;
mod rewrite;
mod show;
mod statement;
mod statements;
mod type_syntax;
mod unicode;
mod unparse;
mod values;

#[cfg(test)]
mod tests;

use sqlparser::ast::{Expr, Query};
use sqlparser::parser::Parser;
use sqlparser::tokenizer::{Token, TokenWithSpan};

pub(crate) use expression::{TABLE_ARGUMENT, call, text as text_literal};
pub(crate) use rewrite::table_hints;
pub use statement::*;
pub(crate) use type_syntax::sql_type_of;
pub(crate) use unparse::quoted_text;

use crate::error::{Error, Result};
use crate::limits;
use crate::types::SqlType;
use cursor::{Parse, at_end};
use dialect::FlinkDialect;
use lexer::{Piece, Script};

/// Subqueries that are parsed once more to find the one that is wrong, and tokens of a statement for which that is done.
const SUBQUERIES_TRIED: usize = 32;
const TOKENS_TRIED: usize = 50_000;

/// All statements of a script; spans are places in the script. For tests: a session runs statement by statement.
///
/// # Errors
/// If any of them is wrong, with its place; use [`split_script`] to run those before it.
#[cfg(test)]
pub fn parse_script(text: &str) -> Result<Vec<Parsed>> {
    Script::new(text)?.map(parse_piece).collect()
}

/// The texts of a script's statements, without semicolons, each with the line on which it begins. They need not be
/// right: a string that never ends is the last statement, and parsing that says so.
///
/// # Errors
/// If the script is too large, or binary.
pub fn split_script(text: &str) -> Result<Vec<(String, u64)>> {
    Ok(Script::new(text)?.map(|piece| (piece.text().to_string(), piece.span.line)).collect())
}

/// The one statement of a text; a semicolon may end it.
///
/// # Errors
/// If there is none, more than one, or a wrong one.
pub fn parse_statement(text: &str) -> Result<Parsed> {
    parse_piece(Piece::only(text, "statement")?)
}

/// The query that makes up the whole text.
///
/// # Errors
/// If it is no query.
pub fn parse_query(text: &str) -> Result<Box<Query>> {
    parse_whole(Piece::only(text, "query")?, |parser, _| statements::query(parser))
}

/// The expression that makes up the whole text.
///
/// # Errors
/// If it is no expression.
pub fn parse_expression(text: &str) -> Result<Expr> {
    parse_whole(Piece::only(text, "expression")?, |parser, _| statements::expression(parser))
}

/// The SQL type that makes up the whole text, and whether NULL is allowed.
///
/// # Errors
/// If it is no type.
pub fn parse_sql_type(text: &str) -> Result<(SqlType, bool)> {
    parse_whole(Piece::only(text, "type")?, |parser, _| type_syntax::parse_type(parser))
}

fn parse_piece(piece: Piece) -> Result<Parsed> {
    let (span, bang) = (piece.span, piece.bang());
    let statement = match match_recognize(&piece.tokens) {
        Some(token) => {
            let span = Some(diagnose::span_between(token.span, token.span));
            Statement::Unsupported { what: "MATCH_RECOGNIZE".to_string(), span }
        }
        None => parse_whole(piece, statements::statement)?,
    };
    Ok(Parsed { statement, span, bang })
}

/// Runs `parse` over all tokens of the piece.
fn parse_whole<T>(mut piece: Piece, parse: impl FnOnce(&mut Parser, &Piece) -> Parse<T>) -> Result<T> {
    piece.prepare()?;
    let mut parser = parser_of(std::mem::take(&mut piece.tokens));
    let parsed = parse(&mut parser, &piece).and_then(|parsed| match at_end(&parser) {
        true => Ok(parsed),
        false => Err(diagnose::expected(&parser, "end of statement")),
    });
    parsed.map_err(|error| {
        let tokens: Vec<TokenWithSpan> =
            (0..).map(|index| parser.token_at(index)).take_while(|token| token.token != Token::EOF).cloned().collect();
        let error = diagnose::parser_error(error, &tokens, parser.get_current_index());
        subquery_error(&tokens).unwrap_or(error)
    })
}

fn parser_of(tokens: Vec<TokenWithSpan>) -> Parser<'static> {
    Parser::new(&FlinkDialect).with_recursion_limit(limits::SQL_DEPTH).with_tokens_with_locations(tokens)
}

/// The error inside the last subquery that is wrong by itself. Where a parenthesis may open a query or a join,
/// `sqlparser` tries both, and complains about the second: that would point at the wrong place.
fn subquery_error(tokens: &[TokenWithSpan]) -> Option<Error> {
    if tokens.len() > TOKENS_TRIED {
        return None;
    }
    let mut open: Vec<usize> = Vec::new();
    let mut subqueries: Vec<std::ops::Range<usize>> = Vec::new();
    let mut after_open = false;
    for (index, token) in tokens.iter().enumerate() {
        match &token.token {
            Token::Whitespace(_) => continue,
            Token::LParen => open.push(index + 1),
            Token::RParen => {
                let start = open.pop()?;
                subqueries.iter_mut().filter(|subquery| subquery.start == start).for_each(|found| found.end = index);
            }
            Token::Word(word) if after_open && word.quote_style.is_none() => {
                if let (Some(start), "SELECT") = (open.last(), word.value.to_ascii_uppercase().as_str()) {
                    subqueries.push(*start..tokens.len());
                }
            }
            _ => {}
        }
        after_open = token.token == Token::LParen;
        if subqueries.len() > SUBQUERIES_TRIED {
            return None;
        }
    }
    subqueries.into_iter().rev().find_map(|range| {
        let closed = range.end < tokens.len();
        let inner = &tokens[range];
        let mut parser = parser_of(inner.to_vec());
        let wrong = match parser.parse_query() {
            Err(error) => Some(error),
            Ok(_) if closed && !at_end(&parser) => Some(diagnose::expected(&parser, "')'")),
            Ok(_) => None,
        };
        wrong.map(|error| diagnose::parser_error(error, inner, parser.get_current_index()))
    })
}

/// Pattern matching is a sublanguage of its own; it is found by its word, so that the message can say so.
fn match_recognize(tokens: &[TokenWithSpan]) -> Option<&TokenWithSpan> {
    let mut solid = tokens.iter().filter(|token| !matches!(token.token, Token::Whitespace(_))).peekable();
    while let Some(token) = solid.next() {
        if let Token::Word(word) = &token.token
            && word.quote_style.is_none()
            && word.value.eq_ignore_ascii_case("MATCH_RECOGNIZE")
            && solid.peek().is_some_and(|next| next.token == Token::LParen)
        {
            return Some(token);
        }
    }
    None
}
