//! The integration tests: SQL text in, what was understood and computed out.
//!
//! One binary, so that every case is linked once. `tidy` keeps the house in order, `conformance` runs the cases recorded
//! from Flink, `ours` our own, `command_line` the binary's ways in, `examples` every folder of `sql-examples/`,
//! `differential` generated data in several ways, `fuzz` what nobody would write, `large` what few would, `kill`, `crash` and `recovery` what is left when the process dies.

mod command_line;
mod conformance;
mod crash;
mod differential;
mod ebbflow;
mod exactly_once;
mod examples;
mod fuzz;
mod kill;
mod large;
mod ours;
mod recovery;
mod tidy;
