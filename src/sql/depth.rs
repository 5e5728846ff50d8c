//! Bounds the depth of the syntax tree before it is built. Promises that no tree is so deep that walking, printing or
//! dropping it overflows a thread's stack, and that the parser's attempts at a doubled parenthesis stay few.
//!
//! `a + b + c + …` makes a tree as deep as it is long, because each sum is the left side of the next. The depth is known
//! from the tokens alone: per pair of parentheses, the number of ORs, plus the longest run of ANDs, plus the longest run
//! of other operators, plus the deepest pair inside.

use sqlparser::keywords::Keyword;
use sqlparser::tokenizer::{Token, TokenWithSpan};

use super::diagnose::span_between;
use crate::error::{Error, Result};
use crate::limits;

/// How many ways the parser may try to read nested `((SELECT …`: each doubled parenthesis is read as a query, then as a
/// join.
const ATTEMPTS: usize = 4_096;

/// What is known of one pair of parentheses, or of one `CASE … END`.
#[derive(Default, Clone, Copy)]
struct Level {
    is_case: bool,
    set_operations: usize,
    ors: usize,
    ands: usize,
    longest_ands: usize,
    others: usize,
    longest_others: usize,
    /// The deepest pair inside the current list item.
    inner: usize,
    /// The deepest list item so far.
    deepest: usize,
    /// Attempts that this pair multiplies.
    attempts: usize,
}

impl Level {
    fn new(is_case: bool) -> Level {
        Level { is_case, attempts: 1, ..Level::default() }
    }

    fn depth(&self) -> usize {
        self.set_operations + self.deepest.max(self.item_depth())
    }

    fn item_depth(&self) -> usize {
        self.ors + self.longest_ands + self.longest_others + self.inner
    }

    /// A list item ends; the next one starts its own tree.
    fn next_item(&mut self) {
        let Level { is_case, attempts, set_operations, .. } = *self;
        let deepest = self.deepest.max(self.item_depth());
        *self = Level { is_case, attempts, set_operations, deepest, ..Level::default() };
    }

    fn operator(&mut self, keyword: Keyword) {
        match keyword {
            Keyword::UNION | Keyword::INTERSECT | Keyword::EXCEPT | Keyword::MINUS => {
                self.next_item();
                self.set_operations += 1;
            }
            Keyword::OR => (self.ors, self.ands, self.others) = (self.ors + 1, 0, 0),
            Keyword::AND => (self.ands, self.others) = (self.ands + 1, 0),
            _ => self.others += 1,
        }
        self.longest_ands = self.longest_ands.max(self.ands);
        self.longest_others = self.longest_others.max(self.others);
    }
}

/// Refuses tokens whose tree would be deeper than the limits allow.
///
/// # Errors
/// With the place where the limit is passed.
pub(super) fn check(tokens: &[TokenWithSpan]) -> Result<()> {
    let mut levels = vec![Level::new(false)];
    let mut opened_in_a_row = 0;
    for token in tokens {
        if matches!(token.token, Token::Whitespace(_)) {
            continue;
        }
        let top = levels.len() - 1;
        match &token.token {
            Token::LParen | Token::LBracket => levels.push(Level::new(false)),
            Token::RParen | Token::RBracket => close(&mut levels, false),
            Token::Comma => levels[top].next_item(),
            Token::Word(word) => match word.keyword {
                Keyword::CASE => levels.push(Level::new(true)),
                Keyword::END => close(&mut levels, true),
                Keyword::WHEN | Keyword::THEN | Keyword::ELSE if levels[top].is_case => levels[top].next_item(),
                Keyword::SELECT | Keyword::WITH if opened_in_a_row > 1 => levels[top].attempts = opened_in_a_row,
                keyword if is_operator(keyword) => levels[top].operator(keyword),
                _ => {}
            },
            symbol if is_symbol_operator(symbol) => levels[top].operator(Keyword::NoKeyword),
            Token::SemiColon => levels = vec![Level::new(false)],
            _ => {}
        }
        opened_in_a_row = if token.token == Token::LParen { opened_in_a_row + 1 } else { 0 };
        let attempts = levels.iter().fold(1_usize, |product, level| product.saturating_mul(level.attempts));
        let place = || Some(span_between(token.span, token.span));
        if levels.len() > limits::SQL_DEPTH || attempts > ATTEMPTS {
            return Err(Error::sql("the SQL nests too deeply here").at(place()).hint("use WITH or views"));
        }
        if levels[levels.len() - 1].longest_others > limits::SQL_CHAIN {
            let limit = limits::SQL_CHAIN;
            return Err(Error::sql(format!("one expression chains more than {limit} operators"))
                .at(place())
                .hint("compute parts of it in a subquery"));
        }
        if levels[levels.len() - 1].depth() + levels.len() > limits::SQL_OPERATORS {
            let limit = limits::SQL_OPERATORS;
            return Err(Error::sql(format!("one expression has more than {limit} operators in a row"))
                .at(place())
                .hint("use IN (…), a join with a table, or parts in parentheses"));
        }
    }
    Ok(())
}

/// Closes the innermost pair, if it is of the kind that ends here; anything else is for the parser to refuse.
fn close(levels: &mut Vec<Level>, is_case: bool) {
    if levels.len() > 1 && levels[levels.len() - 1].is_case == is_case {
        let inner = levels.pop().map_or(0, |level| level.depth() + 1);
        let top = levels.len() - 1;
        levels[top].inner = levels[top].inner.max(inner);
    }
}

fn is_operator(keyword: Keyword) -> bool {
    use Keyword::*;
    matches!(
        keyword,
        OR | AND | XOR | NOT | IS | LIKE | ILIKE | RLIKE | REGEXP | SIMILAR | IN | BETWEEN | OVERLAPS | AT | MEMBER
    ) || matches!(keyword, UNION | INTERSECT | EXCEPT | MINUS | DIV | OPERATOR | COLLATE | NOTNULL | ARRAY | MULTISET)
}

fn is_symbol_operator(token: &Token) -> bool {
    !matches!(
        token,
        Token::Number(..)
            | Token::SingleQuotedString(_)
            | Token::Period
            | Token::EOF
            | Token::Word(_)
            | Token::HexStringLiteral(_)
            | Token::UnicodeStringLiteral(_)
            | Token::EscapedStringLiteral(_)
    )
}
