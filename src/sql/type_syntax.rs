//! Flink's types in SQL text. Promises that the text of a type, as [`SqlType`] prints it, reads back as the same type.
//!
//! The type of a `CAST` travels through the syntax tree as `DataType::Custom`, whose name is the whole text of the type:
//! it prints as it was written, and [`sql_type_of`] reads it back.

use sqlparser::ast::{DataType, Ident, ObjectName, ObjectNamePart};
use sqlparser::parser::Parser;
use sqlparser::tokenizer::Token;

use super::cursor::{Parse, accept, at, name, number, require_token, string, token_at, word_at};
use super::diagnose::{expected, refuse};
use crate::error::{Result, nearest};
use crate::limits;
use crate::types::{RowField, SqlType};

/// Names of the types, for guessing what a mistyped one was meant to be.
const NAMES: &[&str] = &[
    "CHAR",
    "VARCHAR",
    "STRING",
    "BOOLEAN",
    "BINARY",
    "VARBINARY",
    "BYTES",
    "DECIMAL",
    "NUMERIC",
    "TINYINT",
    "SMALLINT",
    "INT",
    "INTEGER",
    "BIGINT",
    "FLOAT",
    "DOUBLE",
    "DATE",
    "TIME",
    "TIMESTAMP",
    "TIMESTAMP_LTZ",
    "INTERVAL",
    "ARRAY",
    "BITMAP",
    "VARIANT",
    "MULTISET",
    "MAP",
    "ROW",
];

/// The SQL type that a type of the syntax tree stands for, and whether NULL is allowed.
///
/// # Errors
/// If Flink has no such type.
pub(crate) fn sql_type_of(data_type: &DataType) -> Result<(SqlType, bool)> {
    match data_type {
        DataType::Custom(name, modifiers) if modifiers.is_empty() => match name.0.as_slice() {
            [ObjectNamePart::Identifier(whole)] if whole.quote_style.is_none() => super::parse_sql_type(&whole.value),
            _ => super::parse_sql_type(&name.to_string()),
        },
        other => super::parse_sql_type(&other.to_string()),
    }
}

/// The form in which a type travels through the syntax tree.
pub(super) fn as_data_type(sql_type: &SqlType) -> DataType {
    DataType::Custom(ObjectName::from(vec![Ident::new(sql_type.to_string())]), vec![])
}

/// A type, and whether NULL is allowed.
pub(super) fn parse_type(parser: &mut Parser) -> Parse<(SqlType, bool)> {
    parse_nested(parser, 0)
}

fn parse_nested(parser: &mut Parser, depth: usize) -> Parse<(SqlType, bool)> {
    if depth > limits::SQL_DEPTH {
        return Err(refuse(parser.peek_token_ref(), "the type nests too deeply", ""));
    }
    let mut sql_type = parse_base(parser, depth)?;
    let mut nullable = nullability(parser);
    // `INT ARRAY MULTISET`: the standard's postfix form.
    for level in depth.. {
        let element = |sql_type, nullable| Box::new(RowField::unnamed(sql_type, nullable));
        if accept(parser, &["ARRAY"]) {
            sql_type = SqlType::Array(element(sql_type, nullable));
        } else if accept(parser, &["MULTISET"]) {
            sql_type = SqlType::Multiset(element(sql_type, nullable));
        } else {
            break;
        }
        if level > limits::SQL_DEPTH {
            return Err(refuse(parser.get_current_token(), "the type nests too deeply", ""));
        }
        nullable = nullability(parser);
    }
    Ok((sql_type, nullable))
}

/// `NOT NULL` or `NULL`, or neither.
fn nullability(parser: &mut Parser) -> bool {
    if accept(parser, &["NOT", "NULL"]) {
        return false;
    }
    // In `RETURNING INT NULL ON EMPTY` the NULL is not the type's.
    if !at(parser, &["NULL", "ON"]) {
        accept(parser, &["NULL"]);
    }
    true
}

/// Whether an unquoted word is the name of a type.
pub(super) fn is_type_name(word: &str) -> bool {
    NAMES.iter().any(|name| name.eq_ignore_ascii_case(word))
}

fn parse_base(parser: &mut Parser, depth: usize) -> Parse<SqlType> {
    let Some(word) = word_at(parser, 0).map(str::to_ascii_uppercase) else {
        return Err(expected(parser, "a type"));
    };
    let start = parser.next_token();
    Ok(match word.as_str() {
        "NULL" => SqlType::Null,
        "BOOLEAN" => SqlType::Boolean,
        "TINYINT" => SqlType::TinyInt,
        "SMALLINT" => SqlType::SmallInt,
        "INT" | "INTEGER" => SqlType::Int,
        "BIGINT" => SqlType::BigInt,
        "FLOAT" => SqlType::Float,
        "DATE" => SqlType::Date,
        "STRING" => SqlType::STRING,
        "BYTES" => SqlType::BYTES,
        "DOUBLE" => {
            accept(parser, &["PRECISION"]);
            SqlType::Double
        }
        "CHAR" | "CHARACTER" if accept(parser, &["VARYING"]) => SqlType::Varchar(length(parser)?),
        "CHAR" | "CHARACTER" => SqlType::Char(length(parser)?),
        "VARCHAR" => SqlType::Varchar(length(parser)?),
        "BINARY" if accept(parser, &["VARYING"]) => SqlType::Varbinary(length(parser)?),
        "BINARY" => SqlType::Binary(length(parser)?),
        "VARBINARY" => SqlType::Varbinary(length(parser)?),
        "DECIMAL" | "DEC" | "NUMERIC" => decimal(parser)?,
        "TIME" => {
            let precision = second_digits(parser, 0)?;
            accept(parser, &["WITHOUT", "TIME", "ZONE"]);
            SqlType::Time(precision)
        }
        "TIMESTAMP" => timestamp(parser)?,
        "TIMESTAMP_LTZ" => SqlType::TimestampLtz(second_digits(parser, 6)?),
        "INTERVAL" => interval(parser)?,
        "ARRAY" => SqlType::Array(Box::new(element(parser, depth)?)),
        "MULTISET" => SqlType::Multiset(Box::new(element(parser, depth)?)),
        "MAP" => {
            require_token(parser, &Token::Lt)?;
            let key = nested(parser, depth)?;
            require_token(parser, &Token::Comma)?;
            let value = nested(parser, depth)?;
            close(parser, &Token::Gt)?;
            SqlType::Map(Box::new(key), Box::new(value))
        }
        "ROW" => SqlType::Row(fields(parser, depth)?),
        "BITMAP" => SqlType::Bitmap,
        "VARIANT" => SqlType::Variant,
        "RAW" | "STRUCTURED" | "DESCRIPTOR" => {
            return Err(refuse(&start, format!("the type {word} is not supported"), ""));
        }
        _ => {
            let hint = nearest(&word, NAMES.iter().copied()).map(|near| format!("did you mean {near}?"));
            let hint = hint.unwrap_or_else(|| match word.as_str() {
                "TEXT" | "JSON" | "UUID" | "CLOB" => "use STRING".to_string(),
                "DATETIME" => "use TIMESTAMP(3)".to_string(),
                "REAL" => "use FLOAT".to_string(),
                "LONG" | "INT8" => "use BIGINT".to_string(),
                "BLOB" => "use BYTES".to_string(),
                "BOOL" => "use BOOLEAN".to_string(),
                _ => String::new(),
            });
            return Err(refuse(&start, format!("there is no type '{start}'"), &hint));
        }
    })
}

/// `(n)`; one if it is left out.
fn length(parser: &mut Parser) -> Parse<u32> {
    if !parser.consume_token(&Token::LParen) {
        return Ok(1);
    }
    let length = number(parser, "the length", 1, i32::MAX as u32)?;
    close(parser, &Token::RParen)?;
    Ok(length)
}

/// `(p)`: digits after the second's point.
fn second_digits(parser: &mut Parser, default: u8) -> Parse<u8> {
    if !parser.consume_token(&Token::LParen) {
        return Ok(default);
    }
    let digits = number(parser, "the precision", 0, 9)?;
    close(parser, &Token::RParen)?;
    Ok(digits as u8)
}

/// `(p[, s])`.
fn decimal(parser: &mut Parser) -> Parse<SqlType> {
    if !parser.consume_token(&Token::LParen) {
        return Ok(SqlType::Decimal(10, 0));
    }
    // As in Flink, more digits than there can be are cut to those.
    let precision = number(parser, "the precision of DECIMAL", 1, u32::MAX)?.min(38);
    let mut scale = 0;
    if parser.consume_token(&Token::Comma) {
        scale = number(parser, "the scale of DECIMAL", 0, precision)?;
    }
    close(parser, &Token::RParen)?;
    Ok(SqlType::Decimal(precision as u8, scale as i8))
}

fn timestamp(parser: &mut Parser) -> Parse<SqlType> {
    let precision = second_digits(parser, 6)?;
    if accept(parser, &["WITH", "LOCAL", "TIME", "ZONE"]) {
        return Ok(SqlType::TimestampLtz(precision));
    }
    if at(parser, &["WITH", "TIME", "ZONE"]) {
        let message = "TIMESTAMP WITH TIME ZONE is not supported";
        return Err(refuse(
            parser.peek_token_ref(),
            message,
            "use TIMESTAMP_LTZ: an instant, shown in the session's zone",
        ));
    }
    accept(parser, &["WITHOUT", "TIME", "ZONE"]);
    Ok(SqlType::Timestamp(precision))
}

/// `YEAR [TO MONTH]`, `DAY TO SECOND(3)`, ….
fn interval(parser: &mut Parser) -> Parse<SqlType> {
    let unit = |parser: &mut Parser| -> Parse<bool> {
        let Some(unit) = word_at(parser, 0).map(str::to_ascii_uppercase) else {
            return Err(expected(parser, "a unit of time"));
        };
        let months = match unit.as_str() {
            "YEAR" | "QUARTER" | "MONTH" => true,
            "WEEK" | "DAY" | "HOUR" | "MINUTE" | "SECOND" => false,
            _ => return Err(expected(parser, "a unit of time")),
        };
        parser.advance_token();
        second_digits(parser, 0)?;
        Ok(months)
    };
    let months = unit(parser)?;
    if accept(parser, &["TO"]) && unit(parser)? != months {
        return Err(refuse(parser.get_current_token(), "an interval is YEAR TO MONTH or DAY TO SECOND", ""));
    }
    Ok(if months { SqlType::IntervalYearMonth } else { SqlType::IntervalDayTime })
}

/// `<T>`.
fn element(parser: &mut Parser, depth: usize) -> Parse<RowField> {
    require_token(parser, &Token::Lt)?;
    let element = nested(parser, depth)?;
    close(parser, &Token::Gt)?;
    Ok(element)
}

fn nested(parser: &mut Parser, depth: usize) -> Parse<RowField> {
    let (sql_type, nullable) = parse_nested(parser, depth + 1)?;
    Ok(RowField::unnamed(sql_type, nullable))
}

/// `<a T ['comment'], …>` or `(a T, …)`.
fn fields(parser: &mut Parser, depth: usize) -> Parse<Vec<RowField>> {
    if parser.consume_token(&Token::Neq) {
        return Ok(vec![]);
    }
    let end = match parser.next_token().token {
        Token::Lt => Token::Gt,
        Token::LParen => Token::RParen,
        _ => {
            parser.prev_token();
            return Err(expected(parser, "'<' after ROW"));
        }
    };
    let mut fields = Vec::new();
    loop {
        let name = name(parser, "the name of a field")?.value;
        let (sql_type, nullable) = parse_nested(parser, depth + 1)?;
        fields.push(RowField { name, sql_type, nullable });
        if matches!(parser.peek_token_ref().token, Token::SingleQuotedString(_)) {
            string(parser, "a comment")?;
        }
        if !parser.consume_token(&Token::Comma) {
            break;
        }
    }
    close(parser, &end)?;
    Ok(fields)
}

fn close(parser: &mut Parser, end: &Token) -> Parse<()> {
    if token_at(parser, 0, end) {
        require_token(parser, end)
    } else {
        Err(expected(parser, &format!("',' or '{end}'")))
    }
}
