//! Text to statements: the Flink dialect on top of `sqlparser`.

mod statement;

pub use statement::*;
pub const TABLE_MARKER: &str = "__table";
pub fn parse_expression(_t: &str) -> crate::error::Result<sqlparser::ast::Expr> { todo!() }
pub fn parse_query(_t: &str) -> crate::error::Result<sqlparser::ast::Query> { todo!() }
pub fn to_sql_type(_t: &sqlparser::ast::DataType) -> crate::error::Result<crate::types::SqlType> { todo!() }
