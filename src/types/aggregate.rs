//! What an aggregation computes: the vocabulary that planner and operators share.

use std::sync::Arc;

use arrow::datatypes::FieldRef;
use datafusion_expr::AggregateUDF;

use super::SortColumn;

/// Bundling of changes (`table.exec.mini-batch.*`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MiniBatch {
    /// A bundle closes after so many rows.
    pub size: u64,
    /// A bundle closes after so many milliseconds.
    pub latency_ms: u64,
}

/// One aggregate function applied to columns of the input.
#[derive(Debug, Clone, PartialEq)]
pub struct AggregateCall {
    /// Which.
    pub function: AggregateFunction,
    /// Argument columns of the input; empty for `COUNT(*)`.
    pub arguments: Vec<usize>,
    /// `DISTINCT`.
    pub distinct: bool,
    /// `ORDER BY` inside the call: in which order the values are taken; empty: as they come. Kept only for functions
    /// whose result depends on it.
    pub order: Vec<SortColumn>,
    /// A Boolean column of the input: rows where it is not true are left out.
    pub filter: Option<usize>,
    /// Whether the argument only moves towards the result when rows are updated (MAX over a count that grows), so that
    /// no value need ever be taken back.
    pub monotone: bool,
    /// Name, type and nullability of the result.
    pub output: FieldRef,
}

/// The aggregate functions the operators know.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum AggregateFunction {
    /// Rows, or rows whose argument is not NULL.
    Count,
    /// About how many different values there are; exactly where values may go again.
    ApproximateCountDistinct,
    /// In the argument's own type as Flink types it; whole numbers wrap.
    Sum,
    /// As `Sum`, but 0 over no rows (`SUM0`).
    SumZero,
    /// Whole numbers truncate.
    Avg,
    /// Least.
    Min,
    /// Greatest.
    Max,
    /// Value of the first row to come.
    FirstValue,
    /// Value of the last row to come.
    LastValue,
    /// Texts joined by a separator.
    ListAgg {
        /// The separator.
        separator: String,
    },
    /// Population or sample variance.
    Variance {
        /// Divide by n-1 instead of n.
        sample: bool,
    },
    /// Square root of the variance.
    StandardDeviation {
        /// Divide by n-1 instead of n.
        sample: bool,
    },
    /// All values, as a multiset.
    Collect,
    /// All values, as an array, NULLs included.
    ArrayAgg,
    /// Texts of JSON as a JSON array.
    JsonArray,
    /// Rows of a key and a member, a text of JSON, as a JSON object; a key that repeats is an error.
    JsonObject,
    /// Percentiles, between two values in proportion; a second argument says how often a value counts.
    Percentile {
        /// Which.
        fractions: Vec<Fraction>,
        /// Whether they are given as an array.
        list: bool,
    },
    /// The value of the only row; two rows are an error (scalar subqueries).
    SingleValue,
    /// A function of the program's own.
    Program(ProgramAggregate),
}

impl AggregateFunction {
    /// Whether the result depends on the order in which values are taken.
    pub fn heeds_order(&self) -> bool {
        use AggregateFunction::{ArrayAgg, FirstValue, JsonArray, LastValue, ListAgg};
        matches!(self, FirstValue | LastValue | ListAgg { .. } | ArrayAgg | JsonArray)
    }
}

/// An aggregate function that the program has registered. Shown by its name alone.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct ProgramAggregate(pub Arc<AggregateUDF>);

impl std::fmt::Debug for ProgramAggregate {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.0.name())
    }
}

/// A number from 0 to 1 that can be compared and hashed.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Fraction(u64);

impl Fraction {
    /// `None` if the number is not from 0 to 1.
    pub fn new(number: f64) -> Option<Fraction> {
        // Adding 0 makes -0 of one kind with 0.
        (0.0..=1.0).contains(&number).then(|| Fraction((number + 0.0).to_bits()))
    }

    /// The number.
    pub fn get(self) -> f64 {
        f64::from_bits(self.0)
    }
}

impl std::fmt::Debug for Fraction {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}", self.get())
    }
}
