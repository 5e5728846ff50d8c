//! Operators that `sqlparser` lacks or reads differently from Flink.

use sqlparser::ast::{BinaryOperator, Expr, UnaryOperator};
use sqlparser::dialect::{Dialect, Precedence};
use sqlparser::parser::Parser;
use sqlparser::tokenizer::Token;

use super::cursor::{Parse, accept, accept_one, at, require};
use super::diagnose::refuse;
use super::dialect::FlinkDialect;
use super::expression::{call_at, text};

/// Operands of `BETWEEN SYMMETRIC` are written out twice; nested, longer ones would grow without bound.
const SYMMETRIC_OPERAND_BYTES: usize = 4_096;

/// Our own infix operators after `left`; `None` leaves the tokens to `sqlparser`.
pub(super) fn parse_infix(parser: &mut Parser, left: &Expr, precedence: u8) -> Parse<Option<Expr>> {
    match parser.peek_token_ref().token {
        Token::DoubleColon => Err(refuse(parser.peek_token_ref(), "'::' is no operator here", "write CAST(x AS type)")),
        Token::Colon => Err(refuse(parser.peek_token_ref(), "unexpected ':'", "")),
        Token::DoubleEq => Err(refuse(parser.peek_token_ref(), "'==' is no operator here", "equality is a single =")),
        Token::Word(_) if at(parser, &["IS"]) => is(parser, left, precedence),
        Token::Word(_) => between(parser, left),
        _ => Ok(None),
    }
}

/// `IS [NOT] JSON [kind]` and `IS [NOT] DISTINCT FROM`.
fn is(parser: &mut Parser, left: &Expr, precedence: u8) -> Parse<Option<Expr>> {
    let span = parser.peek_token_ref().span;
    for negated in [false, true] {
        let not: &[&str] = if negated { &["NOT"] } else { &[] };
        let with = |last: &'static [&'static str]| [&["IS"], not, last].concat();
        if accept(parser, &with(&["JSON"])) {
            let kind = accept_one(parser, &["VALUE", "OBJECT", "ARRAY", "SCALAR"]).unwrap_or("VALUE");
            let test = call_at(span, "IS_JSON", vec![left.clone(), text(kind)]);
            return Ok(Some(if negated { negate(test) } else { test }));
        }
        // `sqlparser` reads everything that follows, ANDs included, as the right side.
        if accept(parser, &with(&["DISTINCT", "FROM"])) {
            let sides = (Box::new(left.clone()), Box::new(parser.parse_subexpr(precedence)?));
            return Ok(Some(if negated {
                Expr::IsNotDistinctFrom(sides.0, sides.1)
            } else {
                Expr::IsDistinctFrom(sides.0, sides.1)
            }));
        }
    }
    Ok(None)
}

/// `[NOT] BETWEEN SYMMETRIC low AND high`; `ASYMMETRIC` is the default.
fn between(parser: &mut Parser, left: &Expr) -> Parse<Option<Expr>> {
    let negated = at(parser, &["NOT", "BETWEEN"]);
    let not: &[&str] = if negated { &["NOT"] } else { &[] };
    let symmetric = accept(parser, &[not, &["BETWEEN", "SYMMETRIC"]].concat());
    if !symmetric && !accept(parser, &[not, &["BETWEEN", "ASYMMETRIC"]].concat()) {
        return Ok(None);
    }
    let start = parser.get_current_token().clone();
    let bound = FlinkDialect.prec_value(Precedence::Between);
    let low = parser.parse_subexpr(bound)?;
    require(parser, &["AND"])?;
    let high = parser.parse_subexpr(bound)?;
    let between = |low: &Expr, high: &Expr, negated| Expr::Between {
        expr: Box::new(left.clone()),
        negated,
        low: Box::new(low.clone()),
        high: Box::new(high.clone()),
    };
    if !symmetric {
        return Ok(Some(between(&low, &high, negated)));
    }
    if [left, &low, &high].iter().any(|operand| operand.to_string().len() > SYMMETRIC_OPERAND_BYTES) {
        return Err(refuse(
            &start,
            "the operands of BETWEEN SYMMETRIC are too long",
            "compute them in a subquery first",
        ));
    }
    let either = Expr::Nested(Box::new(Expr::BinaryOp {
        left: Box::new(between(&low, &high, false)),
        op: BinaryOperator::Or,
        right: Box::new(between(&high, &low, false)),
    }));
    Ok(Some(if negated { negate(either) } else { either }))
}

/// In parentheses, so that it prints as it was read whatever stands around it.
fn negate(test: Expr) -> Expr {
    Expr::Nested(Box::new(Expr::UnaryOp { op: UnaryOperator::Not, expr: Box::new(test) }))
}
