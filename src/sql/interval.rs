//! Interval literals in all of Flink's forms, checked and brought to one unit: `'1:30' MINUTE TO SECOND` becomes
//! `INTERVAL '90' SECOND`, `'1-2' YEAR TO MONTH` becomes `INTERVAL '14' MONTH`.

use sqlparser::ast::{DateTimeField, Expr, Interval, Value};
use sqlparser::parser::Parser;
use sqlparser::tokenizer::{Token, TokenWithSpan};

use super::cursor::{Parse, accept, number, require_token, token_at, word_at};
use super::diagnose::{expected, refuse};

/// Units, largest first, with how many of the smallest of their kind they hold: months, or seconds.
const UNITS: &[(&str, bool, i128)] = &[
    ("YEAR", true, 12),
    ("QUARTER", true, 3),
    ("MONTH", true, 1),
    ("WEEK", false, 7 * 86_400),
    ("DAY", false, 86_400),
    ("HOUR", false, 3_600),
    ("MINUTE", false, 60),
    ("SECOND", false, 1),
];

/// The index of SECOND.
const SECOND: usize = 7;

/// `INTERVAL [-] 'value' unit[(p)] [TO unit[(p)]]`.
pub(super) fn parse(parser: &mut Parser) -> Parse<Expr> {
    let signed = matches!(parser.peek_nth_token_ref(1).token, Token::Minus | Token::Plus);
    let literal = parser.peek_nth_token_ref(if signed { 2 } else { 1 }).clone();
    let value = match &literal.token {
        Token::SingleQuotedString(value) => value.trim().to_string(),
        // Quotes may be left out around a number.
        Token::Number(value, _) => value.clone(),
        _ => {
            let hint = "write INTERVAL '1' DAY; as a name it stands in backticks: `INTERVAL`";
            return Err(refuse(parser.peek_token_ref(), "INTERVAL needs a value in quotes and a unit", hint));
        }
    };
    parser.advance_token();
    let negative = signed && parser.next_token().token == Token::Minus;
    parser.advance_token();
    let first = unit(parser)?;
    let last = if accept(parser, &["TO"]) { unit(parser)? } else { first };
    let wrong = || {
        let [first, last] = [first, last].map(|unit| UNITS[unit].0);
        let form = if first == last { first.to_string() } else { format!("{first} TO {last}") };
        refuse(&literal, format!("'{value}' is no interval {form}"), &example(first, last))
    };
    if UNITS[first].1 != UNITS[last].1 || last < first {
        return Err(refuse(
            parser.get_current_token(),
            "these units do not go together",
            "YEAR TO MONTH or DAY TO SECOND",
        ));
    }
    let (digits, minus) = match value.strip_prefix('-') {
        Some(digits) => (digits, !negative),
        None => (value.strip_prefix('+').unwrap_or(&value), negative),
    };
    let (amount, field) = if first == last {
        (single(digits, first).ok_or_else(wrong)?, first)
    } else {
        let field = if UNITS[first].1 { 2 } else { SECOND };
        (compound(digits, first, last).ok_or_else(wrong)?, field)
    };
    let amount = if minus { format!("-{amount}") } else { amount };
    Ok(interval(&literal, amount, field))
}

fn interval(literal: &TokenWithSpan, amount: String, unit: usize) -> Expr {
    let field = match UNITS[unit].0 {
        "YEAR" => DateTimeField::Year,
        "QUARTER" => DateTimeField::Quarter,
        "MONTH" => DateTimeField::Month,
        "WEEK" => DateTimeField::Week(None),
        "DAY" => DateTimeField::Day,
        "HOUR" => DateTimeField::Hour,
        "MINUTE" => DateTimeField::Minute,
        _ => DateTimeField::Second,
    };
    Expr::Interval(Interval {
        value: Box::new(Expr::Value(Value::SingleQuotedString(amount).with_span(literal.span))),
        leading_field: Some(field),
        leading_precision: None,
        last_field: None,
        fractional_seconds_precision: None,
    })
}

/// A unit, singular or plural, with the precision that changes nothing.
fn unit(parser: &mut Parser) -> Parse<usize> {
    let word = word_at(parser, 0).map(str::to_ascii_uppercase).unwrap_or_default();
    let Some(unit) = UNITS.iter().position(|(name, ..)| word == *name || word.strip_suffix('S') == Some(*name)) else {
        return Err(expected(parser, "a unit of time (SECOND, MINUTE, HOUR, DAY, MONTH, YEAR)"));
    };
    parser.advance_token();
    if token_at(parser, 0, &Token::LParen) {
        parser.advance_token();
        number(parser, "the precision", 1, 10)?;
        if parser.consume_token(&Token::Comma) {
            number(parser, "the precision of fractions", 0, 9)?;
        }
        require_token(parser, &Token::RParen)?;
    }
    Ok(unit)
}

/// A number of one unit; seconds may have a fraction.
fn single(digits: &str, unit: usize) -> Option<String> {
    let (whole, fraction) = match digits.split_once('.') {
        Some((whole, fraction)) if unit == SECOND => (whole, Some(fraction)),
        Some(_) => return None,
        None => (digits, None),
    };
    all_digits(whole)?;
    let whole: i64 = whole.parse().ok()?;
    Some(match fraction {
        Some(fraction) if fraction.len() <= 9 => format!("{whole}.{}", all_digits(fraction)?),
        Some(_) => return None,
        None => whole.to_string(),
    })
}

/// `1-2`, `1 02:03:04.5`, `1:30`: one number for each unit from `first` to `last`.
fn compound(digits: &str, first: usize, last: usize) -> Option<String> {
    let mut rest = digits;
    let mut total: i128 = 0;
    let mut fraction = "";
    for (unit, (name, _, size)) in UNITS.iter().enumerate().take(last + 1).skip(first) {
        if matches!(*name, "QUARTER" | "WEEK") {
            if unit == first || unit == last {
                return None;
            }
            continue;
        }
        let part = if unit == last {
            std::mem::take(&mut rest)
        } else {
            let separator = if UNITS[first].1 {
                '-'
            } else if *name == "DAY" {
                ' '
            } else {
                ':'
            };
            let (part, after) = rest.split_once(separator)?;
            rest = after.trim_start();
            part
        };
        let whole = match part.split_once('.') {
            Some((whole, after)) if unit == SECOND && after.len() <= 9 => {
                fraction = all_digits(after)?;
                whole
            }
            Some(_) => return None,
            None => part,
        };
        let count: i64 = all_digits(whole)?.parse().ok()?;
        let bound = match *name {
            "MONTH" => 12,
            "HOUR" => 24,
            "MINUTE" | "SECOND" => 60,
            _ => i64::MAX,
        };
        if unit != first && count >= bound {
            return None;
        }
        total += i128::from(count) * size;
    }
    let total = i64::try_from(total).ok()?;
    Some(if fraction.is_empty() { total.to_string() } else { format!("{total}.{fraction}") })
}

fn all_digits(text: &str) -> Option<&str> {
    (!text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())).then_some(text)
}

fn example(first: &str, last: &str) -> String {
    match (first, last) {
        ("SECOND", "SECOND") => "write INTERVAL '1.5' SECOND".to_string(),
        ("YEAR", "MONTH") => "write INTERVAL '1-2' YEAR TO MONTH".to_string(),
        ("DAY", "SECOND") => "write INTERVAL '1 02:03:04.5' DAY TO SECOND".to_string(),
        ("MINUTE", "SECOND") => "write INTERVAL '1:30' MINUTE TO SECOND".to_string(),
        (first, last) if first == last => format!("write INTERVAL '1' {first}"),
        (first, last) => format!("give one number for each unit from {first} to {last}"),
    }
}
