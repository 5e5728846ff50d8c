//! Text to statements: the Flink dialect on top of `sqlparser`.

mod statement;

pub use statement::*;
