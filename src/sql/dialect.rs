//! Which of `sqlparser`'s many dialects' features Flink SQL has, and where our own routines step in.

use sqlparser::ast::Expr;
use sqlparser::dialect::Dialect;
use sqlparser::keywords::Keyword;
use sqlparser::parser::{Parser, ParserError};
use sqlparser::tokenizer::Token;

use super::keywords::is_reserved;
use super::{expression, infix};

/// Flink SQL: names in backticks, strings in single quotes, names case-sensitive, keywords not.
#[derive(Debug)]
pub(super) struct FlinkDialect;

impl Dialect for FlinkDialect {
    fn is_delimited_identifier_start(&self, character: char) -> bool {
        character == '`'
    }

    fn identifier_quote_style(&self, _identifier: &str) -> Option<char> {
        Some('`')
    }

    fn is_identifier_start(&self, character: char) -> bool {
        character.is_alphabetic() || character == '_'
    }

    fn is_identifier_part(&self, character: char) -> bool {
        character.is_alphanumeric() || character == '_' || character == '$'
    }

    /// `E'\n'`.
    fn supports_string_escape_constant(&self) -> bool {
        true
    }

    fn supports_filter_during_aggregation(&self) -> bool {
        true
    }

    /// `GROUPING SETS`, `ROLLUP`, `CUBE`.
    fn supports_group_by_expr(&self) -> bool {
        true
    }

    /// `FIRST_VALUE(x IGNORE NULLS)`.
    fn supports_window_function_null_treatment_arg(&self) -> bool {
        true
    }

    /// `FOR SYSTEM_TIME AS OF`.
    fn supports_table_versioning(&self) -> bool {
        true
    }

    /// `SELECT /*+ STATE_TTL('a' = '1d') */ …`.
    fn supports_comment_optimizer_hint(&self) -> bool {
        true
    }

    /// `AS word`: reserved words need backticks there too. The word has just been stepped over.
    fn is_select_item_alias(&self, explicit: bool, keyword: &Keyword, parser: &mut Parser) -> bool {
        match &parser.get_current_token().token {
            Token::Word(word) if explicit => word.quote_style.is_some() || !is_reserved(&word.value),
            _ => self.is_column_alias(keyword, parser),
        }
    }

    /// Words with a grammar of their own. When that grammar does not fit, they are not tried again as plain names:
    /// nested, two attempts each would make exponentially many.
    fn is_reserved_for_identifier(&self, keyword: Keyword) -> bool {
        use Keyword::*;
        matches!(
            keyword,
            ARRAY
                | CASE
                | CAST
                | CEIL
                | CONVERT
                | EXISTS
                | EXTRACT
                | FLOOR
                | INTERVAL
                | LAMBDA
                | MAP
                | MATCH
                | NOT
                | NULL
        ) || matches!(
            keyword,
            OVERLAY | POSITION | SAFE_CAST | STRUCT | SUBSTR | SUBSTRING | TRIM | TRY_CAST | TRY_CONVERT
        )
    }

    fn parse_prefix(&self, parser: &mut Parser) -> Option<Result<Expr, ParserError>> {
        expression::parse_prefix(parser).transpose()
    }

    fn parse_infix(&self, parser: &mut Parser, left: &Expr, precedence: u8) -> Option<Result<Expr, ParserError>> {
        infix::parse_infix(parser, left, precedence).transpose()
    }
}
