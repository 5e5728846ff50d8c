//! The functions a session knows, by name.

use std::collections::BTreeMap;
use std::sync::Arc;

use datafusion_expr::{AggregateUDF, ScalarUDF};

/// Scalar and aggregate functions by name; names do not heed case.
#[derive(Debug, Default)]
pub struct FunctionSet {
    scalar: BTreeMap<String, Arc<ScalarUDF>>,
    aggregate: BTreeMap<String, Arc<AggregateUDF>>,
}

impl FunctionSet {
    /// The scalar function of this name.
    pub fn scalar(&self, name: &str) -> Option<Arc<ScalarUDF>> {
        self.scalar.get(&name.to_lowercase()).cloned()
    }

    /// The aggregate function of this name.
    pub fn aggregate(&self, name: &str) -> Option<Arc<AggregateUDF>> {
        self.aggregate.get(&name.to_lowercase()).cloned()
    }

    /// Names of the scalar functions, sorted.
    pub fn scalar_names(&self) -> Vec<String> {
        self.scalar.keys().cloned().collect()
    }

    /// Names of the aggregate functions, sorted.
    pub fn aggregate_names(&self) -> Vec<String> {
        self.aggregate.keys().cloned().collect()
    }
}
