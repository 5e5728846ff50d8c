//! One statement out of its tokens: everything but `CREATE`, which has its own file.

use sqlparser::ast::{Expr, Query};
use sqlparser::parser::{Parser, ParserError};
use sqlparser::tokenizer::{Span as TokenSpan, Token};

use super::alter::alter;
use super::create::{create, option_entry};
use super::cursor::{
    Parse, accept, accept_one, at, at_end, list, name, object_name, require, require_token, string, token_at, word_at,
};
use super::diagnose::{expected, refuse, refuse_span};
use super::lexer::Piece;
use super::statement::*;
use super::{rewrite, show};
use crate::error::Error;

/// Statements that are known but cannot be run, by their first words; the longest match names them.
const UNSUPPORTED: &[&[&str]] = &[
    &["REPLACE", "TABLE"],
    &["COMPILE", "AND", "EXECUTE", "PLAN"],
    &["COMPILE", "PLAN"],
    &["EXECUTE", "PLAN"],
    &["ANALYZE", "TABLE"],
    &["CALL"],
    &["DELETE"],
    &["UPDATE"],
    &["TRUNCATE", "TABLE"],
    &["LOAD", "MODULE"],
    &["UNLOAD", "MODULE"],
    &["USE", "MODULES"],
    &["ADD", "JAR"],
    &["REMOVE", "JAR"],
    &["MERGE"],
];

/// Whatever one statement can be.
pub(super) fn statement(parser: &mut Parser, piece: &Piece) -> Parse<Statement> {
    if let Some(words) = UNSUPPORTED.iter().find(|words| at(parser, words)) {
        return Ok(unsupported(parser, &words.join(" "), piece));
    }
    if token_at(parser, 0, &Token::LParen) {
        return Ok(Statement::Query(query(parser)?));
    }
    let Some(word) = word_at(parser, 0).map(str::to_ascii_uppercase) else {
        return Err(expected(parser, "a statement"));
    };
    match word.as_str() {
        "SELECT" | "WITH" | "VALUES" => Ok(Statement::Query(query(parser)?)),
        "INSERT" => Ok(Statement::Insert(Box::new(insert(parser)?))),
        _ => {
            parser.advance_token();
            match word.as_str() {
                "CREATE" => create(parser, piece),
                "ALTER" => alter(parser, piece),
                "DROP" => drop_object(parser, piece),
                "EXECUTE" if at(parser, &["INSERT"]) => Ok(Statement::Insert(Box::new(insert(parser)?))),
                "EXECUTE" => statement_set(parser),
                "BEGIN" => old_statement_set(parser),
                "EXPLAIN" => explain(parser),
                "SET" => set(parser, piece),
                "RESET" => reset(parser, piece),
                "STOP" => stop_job(parser),
                "SHOW" => show::show(parser, piece),
                "DESCRIBE" | "DESC" => show::describe(parser, piece),
                "USE" => {
                    let catalog = accept(parser, &["CATALOG"]);
                    let what = if catalog { "the name of a catalog" } else { "the name of a database" };
                    Ok(Statement::Use { catalog, name: object_name(parser, what)? })
                }
                "HELP" => Ok(Statement::Client(ClientCommand::Help)),
                "WHY" => Ok(Statement::Client(ClientCommand::Why)),
                "CLEAR" => Ok(Statement::Client(ClientCommand::Clear)),
                "QUIT" | "EXIT" => Ok(Statement::Client(ClientCommand::Quit)),
                _ => {
                    parser.prev_token();
                    Err(expected(parser, "a statement"))
                }
            }
        }
    }
}

/// `JOB 'name' [WITH SAVEPOINT] [WITH DRAIN]`; the word STOP is behind us.
fn stop_job(parser: &mut Parser) -> Parse<Statement> {
    if !accept(parser, &["JOB"]) {
        return Err(expected(parser, "JOB after STOP"));
    }
    let name = string(parser, "the name of the job in quotes")?;
    let savepoint = accept(parser, &["WITH", "SAVEPOINT"]);
    let drain = accept(parser, &["WITH", "DRAIN"]);
    Ok(Statement::StopJob(StopJob { name, savepoint, drain }))
}

/// Steps to the end; the statement is known by its name only.
pub(super) fn unsupported(parser: &mut Parser, what: &str, piece: &Piece) -> Statement {
    while !at_end(parser) {
        parser.advance_token();
    }
    Statement::Unsupported { what: what.to_string(), span: Some(piece.span) }
}

/// The index of the next token that is no white space.
pub(super) fn next_index(parser: &mut Parser) -> usize {
    parser.advance_token();
    let index = parser.get_current_index();
    parser.prev_token();
    index
}

/// A query in its one form.
pub(super) fn query(parser: &mut Parser) -> Parse<Box<Query>> {
    let mut query = parser.parse_query()?;
    rewrite::query(&mut query).map_err(as_parser_error)?;
    Ok(query)
}

/// An expression in its one form.
pub(super) fn expression(parser: &mut Parser) -> Parse<Expr> {
    let mut expression = parser.parse_expr()?;
    rewrite::expression(&mut expression).map_err(as_parser_error)?;
    Ok(expression)
}

fn as_parser_error(error: Error) -> ParserError {
    let span = error.span().map_or_else(TokenSpan::empty, |span| {
        use sqlparser::tokenizer::Location;
        TokenSpan::new(Location::new(span.line, span.column), Location::new(span.end_line, span.end_column))
    });
    refuse_span(span, error.message(), error.hint_text().unwrap_or_default())
}

/// `INSERT {INTO | OVERWRITE} t [hint] [PARTITION (…)] [(columns)] query [ON CONFLICT DO …]`.
fn insert(parser: &mut Parser) -> Parse<Insert> {
    require(parser, &["INSERT"])?;
    let Some(mode) = accept_one(parser, &["INTO", "OVERWRITE"]) else {
        return Err(expected(parser, "INTO or OVERWRITE after INSERT"));
    };
    let target = object_name(parser, "the table to write")?;
    let hints = target_hints(parser)?;
    let mut partition = Vec::new();
    if accept(parser, &["PARTITION"]) {
        partition = list(parser, |parser| {
            let key = name(parser, "a partition column")?;
            require_token(parser, &Token::Eq)?;
            Ok((key, expression(parser)?))
        })?;
    }
    let mut columns = Vec::new();
    if token_at(parser, 0, &Token::LParen) && !query_in_parentheses(parser) {
        columns = list(parser, |parser| name(parser, "a column"))?;
    }
    if !token_at(parser, 0, &Token::LParen)
        && !["SELECT", "VALUES", "WITH", "TABLE"].iter().any(|word| at(parser, &[word]))
    {
        return Err(expected(parser, "SELECT or VALUES"));
    }
    let source = query(parser)?;
    let mut on_conflict = None;
    if accept(parser, &["ON", "CONFLICT"]) {
        require(parser, &["DO"])?;
        let Some(action) = accept_one(parser, &["DEDUPLICATE", "ERROR", "NOTHING"]) else {
            return Err(expected(parser, "DEDUPLICATE, ERROR or NOTHING"));
        };
        on_conflict = Some(action.to_string());
    }
    Ok(Insert { target, columns, partition, overwrite: mode == "OVERWRITE", source, on_conflict, hints })
}

/// `(OPTIONS('k' = 'v'))`, which the hint has become.
fn target_hints(parser: &mut Parser) -> Parse<Vec<OptionEntry>> {
    let is_hint = token_at(parser, 0, &Token::LParen)
        && word_at(parser, 1).is_some_and(|word| word.eq_ignore_ascii_case("OPTIONS"))
        && token_at(parser, 2, &Token::LParen);
    if !is_hint {
        return Ok(vec![]);
    }
    parser.advance_token();
    parser.advance_token();
    let hints = list(parser, option_entry)?;
    require_token(parser, &Token::RParen)?;
    Ok(hints)
}

/// Whether the parenthesis ahead opens a query, not a list of columns.
fn query_in_parentheses(parser: &Parser) -> bool {
    let mut ahead = 0;
    while token_at(parser, ahead, &Token::LParen) {
        ahead += 1;
    }
    word_at(parser, ahead).is_some_and(|word| ["SELECT", "WITH", "VALUES"].iter().any(|w| word.eq_ignore_ascii_case(w)))
}

/// `STATEMENT SET BEGIN … END`; `EXECUTE` is behind us.
fn statement_set(parser: &mut Parser) -> Parse<Statement> {
    if !accept(parser, &["STATEMENT", "SET"]) {
        return Err(expected(parser, "INSERT or STATEMENT SET after EXECUTE"));
    }
    require(parser, &["BEGIN"])?;
    inserts(parser)
}

/// `STATEMENT SET; … END`, the deprecated form; `BEGIN` is behind us.
fn old_statement_set(parser: &mut Parser) -> Parse<Statement> {
    require(parser, &["STATEMENT", "SET"])?;
    require_token(parser, &Token::SemiColon)?;
    inserts(parser)
}

fn inserts(parser: &mut Parser) -> Parse<Statement> {
    let mut inserts = Vec::new();
    loop {
        if accept(parser, &["END"]) {
            break;
        }
        if !at(parser, &["INSERT"]) {
            return Err(expected(parser, "INSERT or END in a statement set"));
        }
        inserts.push(insert(parser)?);
        if !parser.consume_token(&Token::SemiColon) {
            return Err(expected(parser, "';' after an INSERT of a statement set"));
        }
    }
    if inserts.is_empty() {
        return Err(refuse(
            parser.get_current_token(),
            "the statement set is empty",
            "put INSERT statements before END",
        ));
    }
    Ok(Statement::StatementSet(inserts))
}

/// `[detail, … | PLAN FOR] statement`.
fn explain(parser: &mut Parser) -> Parse<Statement> {
    let mut details = Vec::new();
    if !accept(parser, &["PLAN", "FOR"]) {
        let known = ["ANALYZE", "ESTIMATED_COST", "CHANGELOG_MODE", "JSON_EXECUTION_PLAN", "PLAN_ADVICE"];
        while let Some(detail) = accept_one(parser, &known) {
            details.push(detail.to_string());
            if !parser.consume_token(&Token::Comma) {
                break;
            }
        }
    }
    accept(parser, &["EXECUTE"]);
    let explained = if at(parser, &["INSERT"]) {
        Statement::Insert(Box::new(insert(parser)?))
    } else if at(parser, &["STATEMENT", "SET"]) {
        statement_set(parser)?
    } else if token_at(parser, 0, &Token::LParen) || ["SELECT", "WITH", "VALUES"].iter().any(|word| at(parser, &[word]))
    {
        Statement::Query(query(parser)?)
    } else {
        return Err(expected(parser, "a query, an INSERT or a STATEMENT SET to explain"));
    };
    Ok(Statement::Explain { details, statement: Box::new(explained) })
}

/// `DROP [TEMPORARY] kind [IF EXISTS] name [RESTRICT | CASCADE]`.
fn drop_object(parser: &mut Parser, piece: &Piece) -> Parse<Statement> {
    let temporary = accept(parser, &["TEMPORARY"]);
    accept(parser, &["SYSTEM"]);
    let kinds = ["TABLE", "VIEW", "DATABASE", "FUNCTION", "CATALOG", "MODEL", "MATERIALIZED", "CONNECTION"];
    let object = match accept_one(parser, &kinds) {
        Some("TABLE") => ObjectKind::Table,
        Some("VIEW") => ObjectKind::View,
        Some("DATABASE") => ObjectKind::Database,
        Some("FUNCTION") => ObjectKind::Function,
        Some("CATALOG") => ObjectKind::Catalog,
        Some("MATERIALIZED") => return Ok(unsupported(parser, "DROP MATERIALIZED TABLE", piece)),
        Some(kind) => return Ok(unsupported(parser, &format!("DROP {kind}"), piece)),
        None => return Err(expected(parser, "TABLE, VIEW, DATABASE, FUNCTION or CATALOG after DROP")),
    };
    let if_exists = accept(parser, &["IF", "EXISTS"]);
    let name = object_name(parser, "what to drop")?;
    let mut cascade = false;
    if object == ObjectKind::Database {
        cascade = accept_one(parser, &["CASCADE", "RESTRICT"]) == Some("CASCADE");
    }
    Ok(Statement::Drop { object, name, if_exists, temporary, cascade })
}

/// `SET`, `SET 'key' = 'value'`, or as Flink's client takes it: `SET key = value`.
fn set(parser: &mut Parser, piece: &Piece) -> Parse<Statement> {
    if at_end(parser) {
        return Ok(Statement::Set { entry: None });
    }
    let key = bare_or_quoted(parser, piece, Some(&Token::Eq), "the key")?;
    if !parser.consume_token(&Token::Eq) {
        return Err(expected(parser, "'=' after the key: SET 'key' = 'value'"));
    }
    let value = bare_or_quoted(parser, piece, None, "the value")?;
    Ok(Statement::Set { entry: Some((key, value)) })
}

fn reset(parser: &mut Parser, piece: &Piece) -> Parse<Statement> {
    if at_end(parser) {
        return Ok(Statement::Reset { key: None });
    }
    Ok(Statement::Reset { key: Some(bare_or_quoted(parser, piece, None, "the key")?) })
}

/// A string, or the text as it stands up to `end`.
fn bare_or_quoted(parser: &mut Parser, piece: &Piece, end: Option<&Token>, what: &str) -> Parse<String> {
    if matches!(parser.peek_token_ref().token, Token::SingleQuotedString(_)) {
        return string(parser, what);
    }
    let start = next_index(parser);
    while !at_end(parser) && end.is_none_or(|end| !token_at(parser, 0, end)) {
        parser.advance_token();
    }
    let text = piece.text_between(start, parser.get_current_index() + 1);
    if text.is_empty() { Err(expected(parser, what)) } else { Ok(text.to_string()) }
}
