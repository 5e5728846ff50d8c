//! The SQL/JSON calls, whose clauses become further arguments.
//!
//! | SQL | in the tree |
//! |---|---|
//! | `JSON_VALUE(x, path)` | the same |
//! | … with clauses | `JSON_VALUE(x, path, type, on_empty, default, on_error, default)`: the type's text; `'NULL'`, `'ERROR'` or `'DEFAULT'`; the default, else `NULL` |
//! | `JSON_QUERY(x, path)` | the same |
//! | … with clauses | `JSON_QUERY(x, path, type, wrapper, on_empty, on_error)`: `'WITHOUT'`, `'CONDITIONAL'` or `'UNCONDITIONAL'`; `'NULL'`, `'ERROR'`, `'EMPTY ARRAY'` or `'EMPTY OBJECT'` |
//! | `JSON_EXISTS(x, path [b ON ERROR])` | `JSON_EXISTS(x, path[, b])`: `'TRUE'`, `'FALSE'`, `'UNKNOWN'` or `'ERROR'` |
//! | `JSON_OBJECT([KEY] k VALUE v, k: v, …)` | `JSON_OBJECT(k, v, …)`, NULL on NULL; with ABSENT ON NULL: `JSON_OBJECT_ABSENT_ON_NULL(k, v, …)` |
//! | `JSON_OBJECTAGG([KEY] k VALUE v)` | `JSON_OBJECTAGG(k, v[, 'ABSENT'])` |
//! | `JSON_ARRAY(v, …)`, ABSENT ON NULL | the same; with NULL ON NULL: `JSON_ARRAY_NULL_ON_NULL(v, …)` |
//! | `JSON_ARRAYAGG(v [ORDER BY o])`, ABSENT ON NULL | the same; with NULL ON NULL: `JSON_ARRAYAGG(v, 'NULL' [ORDER BY o])` |

use sqlparser::ast::{Expr, FunctionArgumentClause, Ident, Value};
use sqlparser::dialect::{Dialect, Precedence};
use sqlparser::parser::Parser;
use sqlparser::tokenizer::Token;

use super::cursor::{Parse, accept, accept_one, require, require_token, token_at, word_at};
use super::diagnose::expected;
use super::dialect::FlinkDialect;
use super::expression::{function, text};
use super::type_syntax::parse_type;

/// A call of one of the functions above; `None` for any other.
pub(super) fn parse_call(parser: &mut Parser) -> Parse<Option<Expr>> {
    let name = word_at(parser, 0).map(str::to_ascii_uppercase).unwrap_or_default();
    let parse: fn(&mut Parser, &mut Ident) -> Parse<Vec<Expr>> = match name.as_str() {
        "JSON_VALUE" => json_value,
        "JSON_QUERY" => json_query,
        "JSON_EXISTS" => json_exists,
        "JSON_OBJECT" | "JSON_OBJECTAGG" => json_object,
        "JSON_ARRAY" => json_array,
        "JSON_ARRAYAGG" => return json_array_aggregate(parser).map(Some),
        _ => return Ok(None),
    };
    let mut name = parser.parse_identifier()?;
    parser.advance_token();
    let arguments = parse(parser, &mut name)?;
    require_token(parser, &Token::RParen)?;
    Ok(Some(Expr::Function(function(name, arguments, vec![]))))
}

/// `input, path`, and whether clauses follow (not: the encoded arguments).
fn input_and_path(parser: &mut Parser) -> Parse<(Vec<Expr>, bool)> {
    let mut arguments = vec![parser.parse_expr()?];
    while parser.consume_token(&Token::Comma) {
        arguments.push(parser.parse_expr()?);
    }
    let clauses = arguments.len() == 2 && !token_at(parser, 0, &Token::RParen);
    Ok((arguments, clauses))
}

/// `RETURNING type`, as text.
fn returning(parser: &mut Parser) -> Parse<Expr> {
    Ok(text(if accept(parser, &["RETURNING"]) { parse_type(parser)?.0.to_string() } else { "STRING".to_string() }))
}

fn json_value(parser: &mut Parser, _: &mut Ident) -> Parse<Vec<Expr>> {
    let (mut arguments, clauses) = input_and_path(parser)?;
    if !clauses {
        return Ok(arguments);
    }
    arguments.push(returning(parser)?);
    let null = || Expr::Value(Value::Null.with_empty_span());
    let mut behaviours = [("NULL", null()), ("NULL", null())];
    while let Some(behaviour) = accept_one(parser, &["NULL", "ERROR", "DEFAULT"]) {
        let default = if behaviour == "DEFAULT" { parser.parse_expr()? } else { null() };
        behaviours[on_empty_or_error(parser)?] = (behaviour, default);
    }
    for (behaviour, default) in behaviours {
        arguments.extend([text(behaviour), default]);
    }
    Ok(arguments)
}

fn json_query(parser: &mut Parser, _: &mut Ident) -> Parse<Vec<Expr>> {
    let (mut arguments, clauses) = input_and_path(parser)?;
    if !clauses {
        return Ok(arguments);
    }
    arguments.push(returning(parser)?);
    arguments.push(text(wrapper(parser)?));
    let mut behaviours = ["NULL", "NULL"];
    loop {
        let behaviour = if accept(parser, &["EMPTY", "ARRAY"]) {
            "EMPTY ARRAY"
        } else if accept(parser, &["EMPTY", "OBJECT"]) {
            "EMPTY OBJECT"
        } else if let Some(behaviour) = accept_one(parser, &["NULL", "ERROR"]) {
            behaviour
        } else {
            break;
        };
        behaviours[on_empty_or_error(parser)?] = behaviour;
    }
    arguments.extend(behaviours.map(text));
    Ok(arguments)
}

/// `{WITHOUT | WITH [CONDITIONAL | UNCONDITIONAL]} [ARRAY] WRAPPER`.
fn wrapper(parser: &mut Parser) -> Parse<&'static str> {
    let kind = if accept(parser, &["WITHOUT"]) {
        "WITHOUT"
    } else if accept(parser, &["WITH"]) {
        accept_one(parser, &["CONDITIONAL", "UNCONDITIONAL"]).unwrap_or("UNCONDITIONAL")
    } else {
        return Ok("WITHOUT");
    };
    accept(parser, &["ARRAY"]);
    require(parser, &["WRAPPER"])?;
    Ok(kind)
}

/// `ON EMPTY` is 0, `ON ERROR` is 1.
fn on_empty_or_error(parser: &mut Parser) -> Parse<usize> {
    require(parser, &["ON"])?;
    match accept_one(parser, &["EMPTY", "ERROR"]) {
        Some("EMPTY") => Ok(0),
        Some(_) => Ok(1),
        None => Err(expected(parser, "EMPTY or ERROR after ON")),
    }
}

fn json_exists(parser: &mut Parser, _: &mut Ident) -> Parse<Vec<Expr>> {
    let (mut arguments, clauses) = input_and_path(parser)?;
    if clauses {
        let Some(behaviour) = accept_one(parser, &["TRUE", "FALSE", "UNKNOWN", "ERROR"]) else {
            return Err(expected(parser, "TRUE, FALSE, UNKNOWN or ERROR"));
        };
        require(parser, &["ON", "ERROR"])?;
        arguments.push(text(behaviour));
    }
    Ok(arguments)
}

/// `NULL ON NULL` or `ABSENT ON NULL`, or neither.
fn on_null(parser: &mut Parser) -> Option<&'static str> {
    if accept(parser, &["NULL", "ON", "NULL"]) {
        Some("NULL")
    } else if accept(parser, &["ABSENT", "ON", "NULL"]) {
        Some("ABSENT")
    } else {
        None
    }
}

fn json_object(parser: &mut Parser, name: &mut Ident) -> Parse<Vec<Expr>> {
    let mut arguments = Vec::new();
    let mut on_null_clause = on_null(parser);
    if on_null_clause.is_none() && !token_at(parser, 0, &Token::RParen) {
        loop {
            // KEY may also be a column's name.
            if !matches!(
                parser.peek_nth_token_ref(1).token,
                Token::Comma | Token::Colon | Token::RParen | Token::Period
            ) {
                accept(parser, &["KEY"]);
            }
            // A key ends before ':', which elsewhere is an operator.
            arguments.push(parser.parse_subexpr(FlinkDialect.prec_value(Precedence::Colon))?);
            if accept(parser, &["VALUE"]) || parser.consume_token(&Token::Colon) {
                arguments.push(parser.parse_expr()?);
            }
            if !parser.consume_token(&Token::Comma) {
                break;
            }
        }
        on_null_clause = on_null(parser);
    }
    if on_null_clause == Some("ABSENT") {
        if name.value.eq_ignore_ascii_case("JSON_OBJECT") {
            name.value = "JSON_OBJECT_ABSENT_ON_NULL".to_string();
        } else {
            arguments.push(text("ABSENT"));
        }
    }
    Ok(arguments)
}

fn json_array(parser: &mut Parser, name: &mut Ident) -> Parse<Vec<Expr>> {
    let mut arguments = Vec::new();
    let mut clause = on_null(parser);
    if clause.is_none() && !token_at(parser, 0, &Token::RParen) {
        arguments = parser.parse_comma_separated(Parser::parse_expr)?;
        clause = on_null(parser);
    }
    if clause == Some("NULL") {
        name.value = "JSON_ARRAY_NULL_ON_NULL".to_string();
    }
    Ok(arguments)
}

fn json_array_aggregate(parser: &mut Parser) -> Parse<Expr> {
    let name = parser.parse_identifier()?;
    parser.advance_token();
    let mut arguments = parser.parse_comma_separated(Parser::parse_expr)?;
    let mut clauses = Vec::new();
    if accept(parser, &["ORDER", "BY"]) {
        let order = parser.parse_comma_separated(Parser::parse_order_by_expr)?;
        clauses.push(FunctionArgumentClause::OrderBy(order));
    }
    if on_null(parser) == Some("NULL") {
        arguments.push(text("NULL"));
    }
    require_token(parser, &Token::RParen)?;
    Ok(Expr::Function(function(name, arguments, clauses)))
}
