//! Pairs of a left and a right row: whether the rest of a join's condition holds of them.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, BooleanArray, RecordBatch, RecordBatchOptions};
use arrow::datatypes::{Schema, SchemaRef};
use datafusion_physical_expr::PhysicalExpr;

use super::expression::evaluate;
use super::join::JoinInput;
use crate::error::{Error, Result};

/// The rest of a join's condition, over the left input's own columns and then the right's.
pub(super) struct PairCondition {
    expression: Arc<dyn PhysicalExpr>,
    schema: SchemaRef,
}

impl PairCondition {
    /// The condition `expression` over pairs of these inputs' rows.
    pub fn new(expression: Arc<dyn PhysicalExpr>, inputs: &[JoinInput; 2]) -> PairCondition {
        let own = |input: &JoinInput| input.schema.fields()[..input.width].to_vec();
        // NULLs in a condition are no violation: the fields only name columns.
        let fields = inputs.iter().flat_map(own).map(|field| field.as_ref().clone().with_nullable(true));
        PairCondition { expression, schema: Arc::new(Schema::new(fields.collect::<Vec<_>>())) }
    }

    /// Whether it is true of each of `rows` pairs, which these columns make.
    ///
    /// # Errors
    /// If it fails on the data.
    pub fn judge(&self, left: Vec<ArrayRef>, right: Vec<ArrayRef>, rows: usize) -> Result<BooleanArray> {
        let options = RecordBatchOptions::new().with_row_count(Some(rows));
        let columns = [left, right].concat();
        let pairs = RecordBatch::try_new_with_options(Arc::clone(&self.schema), columns, &options)?;
        let verdict = evaluate(&self.expression, &pairs)?;
        let verdict = verdict.as_boolean_opt().ok_or_else(|| Error::bug("a join's condition is not a Boolean"))?;
        match verdict.nulls() {
            None => Ok(verdict.clone()),
            // What is not known does not hold.
            Some(nulls) => Ok(BooleanArray::new(verdict.values() & nulls.inner(), None)),
        }
    }
}
