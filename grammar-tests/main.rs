//! The integration tests: SQL text in, what was understood and computed out.
//!
//! One binary, so that every case is linked once. `tidy` keeps the house in order, `conformance` runs the cases recorded
//! from Flink, `ours` our own, `command_line` the binary's ways in, `examples` every folder of `sql-examples/`.

mod command_line;
mod conformance;
mod ebbflow;
mod examples;
mod ours;
mod tidy;
