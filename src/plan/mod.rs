//! Planning: statements to a stream graph.

pub mod stream;
