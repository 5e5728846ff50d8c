//! Aggregate functions over changelogs: typed vectors indexed by group slot.
//!
//! Take `SELECT user, COUNT(*), SUM(DISTINCT x) FROM t GROUP BY user` and the changes `+I[a, 5] +I[a, 5] -D[a, 5]`.
//! [`GroupTable`] finds the slot of each row's key and, from the group's row count, what each row does to the group:
//! an [`Action`] (add, retract, clear when the last row goes, skip a retraction that has no row). Per aggregate the
//! actions are then narrowed: rows whose FILTER is not true or whose argument is NULL are skipped, and for DISTINCT
//! only the first copy of a value is added and only the last one retracted. What is left goes to an [`Accumulator`],
//! which knows nothing of all that.
//! With `ORDER BY` inside the call the columns of the order go there too, behind the arguments.
//!
//! To add a function: a [`kernel::Kernel`] and an arm in [`factory::accumulator`].

mod call;
mod cardinality;
mod collected;
mod extremes;
mod factory;
mod group_table;
mod kernel;
mod numeric;
mod ordered;
mod percentile;
mod program;
mod variance;

#[cfg(test)]
mod tests;

pub(super) use group_table::GroupTable;
pub(super) use kernel::Action;
