//! Expressions that Flink has and `sqlparser` lacks. Each becomes an ordinary call, so that planning needs no syntax of
//! its own, and prints as SQL that reads back as the same tree.
//!
//! | SQL | in the tree |
//! |---|---|
//! | `TABLE t PARTITION BY a, b ORDER BY c` | `__table(t, a, b ORDER BY c)` |
//! | `TABLE (SELECT …)` | `__table((SELECT …))` |
//! | `MAP[k, v, …]` | `map(k, v, …)` |
//! | `FLOOR(x TO DAY)`, `CEIL(x TO DAY)` | `FLOOR(x, 'DAY')`, `CEIL(x, 'DAY')` |
//! | `TIMESTAMPADD(DAY, n, t)`, `TIMESTAMPDIFF(DAY, a, b)` | the same: the unit is an identifier |
//! | `CAST(x AS type)`, `TRY_CAST` | a cast to the type's text, see `type_syntax` |
//! | `INTERVAL …` | an interval of one unit, see `interval` |
//! | `JSON_VALUE(x, '$' RETURNING …)` and the like | see `json` |
//! | `x IS JSON OBJECT`, `x IS NOT JSON` | `IS_JSON(x, 'OBJECT')`, `(NOT IS_JSON(x, 'VALUE'))` |
//! | `x BETWEEN SYMMETRIC a AND b` | `(x BETWEEN a AND b OR x BETWEEN b AND a)` |
//! | `U&'\263A'`, `E'\n'` | plain strings |
//! | `TUMBLE_START(t, …)` in old group windows | `TUMBLE_START(TUMBLE(t, …))`, see `rewrite` |

use sqlparser::ast::{
    CastKind, Expr, Function, FunctionArg, FunctionArgExpr, FunctionArgumentClause, FunctionArgumentList,
    FunctionArguments, Ident, ObjectName, TrimWhereField, UnaryOperator, Value,
};
use sqlparser::dialect::{Dialect, Precedence};
use sqlparser::keywords::Keyword;
use sqlparser::parser::Parser;
use sqlparser::tokenizer::{Span, Token};

use super::cursor::{Parse, accept, list, name, object_name, require, require_token, token_at, word_at};
use super::diagnose::{expected, refuse};
use super::dialect::FlinkDialect;
use super::type_syntax::{as_data_type, parse_type};
use super::{interval, json};
use crate::types::SqlType;

/// The name of the call that stands for a `TABLE t` argument.
pub(crate) const TABLE_ARGUMENT: &str = "__table";

/// Our own prefix expressions; `None` leaves the tokens to `sqlparser`.
pub(super) fn parse_prefix(parser: &mut Parser) -> Parse<Option<Expr>> {
    match &parser.peek_token_ref().token {
        Token::Number(..) | Token::SingleQuotedString(_) | Token::HexStringLiteral(_) => {
            return parser.parse_value().map(|value| Some(Expr::Value(value)));
        }
        Token::UnicodeStringLiteral(text) | Token::EscapedStringLiteral(text) => {
            let value = Value::SingleQuotedString(text.clone());
            let span = parser.next_token().span;
            return Ok(Some(Expr::Value(value.with_span(span))));
        }
        Token::Word(word) if word.quote_style.is_some() => return quoted_name(parser).map(Some),
        // The common case; `sqlparser` would first try it as the type of a literal.
        Token::Word(word) if word.keyword == Keyword::NoKeyword && ends_name(&parser.peek_nth_token_ref(1).token) => {
            return parser.parse_identifier().map(|name| Some(Expr::Identifier(name)));
        }
        Token::Word(_) => {}
        Token::Minus => return minus(parser).map(Some),
        Token::LParen if word_at(parser, 1).is_some_and(starts_query) => return subquery(parser).map(Some),
        _ => return Ok(None),
    }
    let Some(word) = word_at(parser, 0) else { return Ok(None) };
    let called = token_at(parser, 1, &Token::LParen);
    match word.to_ascii_uppercase().as_str() {
        "TABLE" => table_argument(parser).map(Some),
        "MAP" if token_at(parser, 1, &Token::LBracket) => map(parser).map(Some),
        "INTERVAL" => interval::parse(parser).map(Some),
        "CAST" if called => cast(parser, CastKind::Cast).map(Some),
        "TRY_CAST" if called => cast(parser, CastKind::TryCast).map(Some),
        "TRIM" if called => trim(parser),
        "POSITION" if called => position(parser).map(Some),
        "FLOOR" | "CEIL" | "CEILING" if called => round_to_unit(parser).map(Some),
        name if called && name.starts_with("JSON_") => json::parse_call(parser),
        _ => Ok(None),
    }
}

/// `-x`. A minus in a minus is put in parentheses: printed, `--x` would be a comment.
fn minus(parser: &mut Parser) -> Parse<Expr> {
    parser.advance_token();
    let mut operand = parser.parse_subexpr(FlinkDialect.prec_value(Precedence::MulDivModOp))?;
    if matches!(operand, Expr::UnaryOp { op: UnaryOperator::Minus, .. }) {
        operand = Expr::Nested(Box::new(operand));
    }
    Ok(Expr::UnaryOp { op: UnaryOperator::Minus, expr: Box::new(operand) })
}

/// `POSITION(a IN b)`, or a call. `sqlparser` tries one form after the other, which takes exponential time when nested.
fn position(parser: &mut Parser) -> Parse<Expr> {
    let name = parser.parse_identifier()?;
    parser.advance_token();
    let first = parser.parse_subexpr(FlinkDialect.prec_value(Precedence::Between))?;
    let position = if accept(parser, &["IN"]) {
        Expr::Position { expr: Box::new(first), r#in: Box::new(parser.parse_expr()?) }
    } else {
        let mut arguments = vec![first];
        while parser.consume_token(&Token::Comma) {
            arguments.push(parser.parse_expr()?);
        }
        Expr::Function(function(name, arguments, vec![]))
    };
    require_token(parser, &Token::RParen)?;
    Ok(position)
}

/// `TRIM(LEADING FROM s)`, which `sqlparser` reads only with the characters to trim.
fn trim(parser: &mut Parser) -> Parse<Option<Expr>> {
    let side = match word_at(parser, 2).map(str::to_ascii_uppercase).as_deref() {
        Some("BOTH") => TrimWhereField::Both,
        Some("LEADING") => TrimWhereField::Leading,
        Some("TRAILING") => TrimWhereField::Trailing,
        _ => return Ok(None),
    };
    if !word_at(parser, 3).is_some_and(|word| word.eq_ignore_ascii_case("FROM")) {
        return Ok(None);
    }
    (0..4).for_each(|_| parser.advance_token());
    let expr = Box::new(parser.parse_expr()?);
    require_token(parser, &Token::RParen)?;
    Ok(Some(Expr::Trim { expr, trim_where: Some(side), trim_what: None, trim_characters: None }))
}

/// Whether a word before this token is a plain name: neither a call nor the type of a literal.
fn ends_name(next: &Token) -> bool {
    !matches!(next, Token::LParen | Token::SingleQuotedString(_) | Token::HexStringLiteral(_))
}

/// A name in backticks is a name or a call, whatever the word is.
fn quoted_name(parser: &mut Parser) -> Parse<Expr> {
    let name = parser.parse_identifier()?;
    if token_at(parser, 0, &Token::LParen) {
        return parser.parse_function(ObjectName::from(vec![name]));
    }
    Ok(Expr::Identifier(name))
}

fn starts_query(word: &str) -> bool {
    word.eq_ignore_ascii_case("SELECT") || word.eq_ignore_ascii_case("WITH")
}

/// `(SELECT …)`, as the argument of a table function also with `PARTITION BY`.
fn subquery(parser: &mut Parser) -> Parse<Expr> {
    let span = parser.next_token().span;
    let query = Expr::Subquery(parser.parse_query()?);
    require_token(parser, &Token::RParen)?;
    let partitioned = ["PARTITION", "BY"].iter().enumerate();
    if partitioned.into_iter().all(|(at, word)| word_at(parser, at).is_some_and(|w| w.eq_ignore_ascii_case(word))) {
        return partitioned_table(parser, span, query);
    }
    Ok(query)
}

/// `TABLE t [PARTITION BY k, …] [ORDER BY o, …]`.
fn table_argument(parser: &mut Parser) -> Parse<Expr> {
    let span = parser.next_token().span;
    let table = if parser.consume_token(&Token::LParen) {
        let query = parser.parse_query()?;
        require_token(parser, &Token::RParen)?;
        Expr::Subquery(query)
    } else {
        let name = object_name(parser, "a table's name or a query in parentheses after TABLE")?;
        let mut parts: Vec<Ident> = name.0.iter().filter_map(|part| part.as_ident().cloned()).collect();
        match (parts.pop(), parts.is_empty()) {
            (Some(only), true) => Expr::Identifier(only),
            (last, _) => Expr::CompoundIdentifier(parts.into_iter().chain(last).collect()),
        }
    };
    if token_at(parser, 0, &Token::LParen) {
        let message = "hints on a TABLE argument are not supported";
        return Err(refuse(parser.peek_token_ref(), message, "put the hint into a view, and use the view here"));
    }
    partitioned_table(parser, span, table)
}

/// `[PARTITION BY k, …] [ORDER BY o, …]` behind a table.
fn partitioned_table(parser: &mut Parser, span: Span, table: Expr) -> Parse<Expr> {
    let mut arguments = vec![table];
    if accept(parser, &["PARTITION", "BY"]) {
        if token_at(parser, 0, &Token::LParen) {
            arguments.extend(list(parser, |parser| parser.parse_expr())?);
        } else {
            arguments.push(partition_key(parser)?);
            while token_at(parser, 0, &Token::Comma) && another_key(parser) {
                parser.advance_token();
                arguments.push(partition_key(parser)?);
            }
        }
    }
    let mut clauses = Vec::new();
    if accept(parser, &["ORDER", "BY"]) {
        let keys = if parser.consume_token(&Token::LParen) {
            let keys = parser.parse_comma_separated(Parser::parse_order_by_expr)?;
            require_token(parser, &Token::RParen)?;
            keys
        } else {
            vec![parser.parse_order_by_expr()?]
        };
        clauses.push(FunctionArgumentClause::OrderBy(keys));
    }
    Ok(Expr::Function(function(Ident::with_span(span, TABLE_ARGUMENT), arguments, clauses)))
}

fn partition_key(parser: &mut Parser) -> Parse<Expr> {
    let mut parts = vec![name(parser, "a column after PARTITION BY")?];
    while parser.consume_token(&Token::Period) {
        parts.push(name(parser, "a name after '.'")?);
    }
    Ok(if parts.len() == 1 { Expr::Identifier(parts.remove(0)) } else { Expr::CompoundIdentifier(parts) })
}

/// Whether the comma is followed by a plain name: a further key, not the next argument.
fn another_key(parser: &Parser) -> bool {
    let after = &parser.peek_nth_token_ref(2).token;
    matches!(parser.peek_nth_token_ref(1).token, Token::Word(_))
        && (matches!(after, Token::Comma | Token::RParen)
            || word_at(parser, 2).is_some_and(|word| word.eq_ignore_ascii_case("ORDER")))
}

/// `MAP[k, v, …]`.
fn map(parser: &mut Parser) -> Parse<Expr> {
    let start = parser.next_token();
    parser.advance_token();
    let mut arguments = Vec::new();
    if !parser.consume_token(&Token::RBracket) {
        arguments = parser.parse_comma_separated(Parser::parse_expr)?;
        require_token(parser, &Token::RBracket)?;
    }
    if arguments.len() % 2 != 0 {
        return Err(refuse(&start, "MAP needs a value for every key", "MAP['key', value, …]"));
    }
    Ok(call_at(start.span, "map", arguments))
}

/// `CAST(x AS type)`.
fn cast(parser: &mut Parser, kind: CastKind) -> Parse<Expr> {
    parser.advance_token();
    parser.advance_token();
    let expr = Box::new(parser.parse_expr()?);
    require(parser, &["AS"])?;
    // A column of type VARCHAR holds one character; a cast to it cuts nothing.
    let unbounded = token_at(parser, 1, &Token::RParen);
    let word = word_at(parser, 0).map(str::to_ascii_uppercase);
    let sql_type = match (word.as_deref(), parse_type(parser)?.0) {
        (Some("VARCHAR"), _) if unbounded => SqlType::STRING,
        (Some("VARBINARY"), _) if unbounded => SqlType::BYTES,
        (_, sql_type) => sql_type,
    };
    require_token(parser, &Token::RParen)?;
    Ok(Expr::Cast { kind, expr, data_type: as_data_type(&sql_type), array: false, format: None })
}

/// `FLOOR(x)`, `FLOOR(t TO unit)`, `FLOOR(t, 'unit')`.
fn round_to_unit(parser: &mut Parser) -> Parse<Expr> {
    let name = parser.parse_identifier()?;
    parser.advance_token();
    let mut arguments = parser.parse_comma_separated(Parser::parse_expr)?;
    if arguments.len() == 1 && accept(parser, &["TO"]) {
        let unit = match word_at(parser, 0) {
            Some(unit) => unit.to_ascii_uppercase(),
            None => return Err(expected(parser, "a unit of time after TO")),
        };
        let span = parser.next_token().span;
        arguments.push(Expr::Value(Value::SingleQuotedString(unit).with_span(span)));
    }
    require_token(parser, &Token::RParen)?;
    Ok(Expr::Function(function(name, arguments, vec![])))
}

/// A call at a place.
pub(super) fn call_at(span: Span, name: &str, arguments: Vec<Expr>) -> Expr {
    Expr::Function(function(Ident::with_span(span, name), arguments, vec![]))
}

/// A call of a function, at no place in the text.
pub(crate) fn call(name: &str, arguments: Vec<Expr>) -> Expr {
    Expr::Function(function(Ident::new(name), arguments, vec![]))
}

/// A string that our own encoding puts in.
pub(crate) fn text(text: impl Into<String>) -> Expr {
    Expr::Value(Value::SingleQuotedString(text.into()).with_empty_span())
}

pub(super) fn function(name: Ident, arguments: Vec<Expr>, clauses: Vec<FunctionArgumentClause>) -> Function {
    let args = arguments.into_iter().map(|argument| FunctionArg::Unnamed(FunctionArgExpr::Expr(argument))).collect();
    Function {
        name: ObjectName::from(vec![name]),
        uses_odbc_syntax: false,
        parameters: FunctionArguments::None,
        args: FunctionArguments::List(FunctionArgumentList { duplicate_treatment: None, args, clauses }),
        filter: None,
        null_treatment: None,
        over: None,
        within_group: vec![],
    }
}
