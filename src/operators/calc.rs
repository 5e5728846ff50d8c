//! `WHERE` and the select list: filters, then projects; kinds stay.
//!
//! A filter may drop one image of an update and keep the other: the lone `-U` then takes a row away, the lone `+U`
//! brings one, and users downstream read them so.

use std::sync::Arc;

use arrow::array::{AsArray, RecordBatch, RecordBatchOptions};
use arrow::datatypes::SchemaRef;
use datafusion_physical_expr::PhysicalExpr;

use super::expression::evaluate;
use super::{Operator, Output, Port};
use crate::changelog::ChangeBatch;
use crate::error::{Error, Result};

/// Filters and projects.
pub struct Calc {
    condition: Option<Arc<dyn PhysicalExpr>>,
    projection: Vec<Arc<dyn PhysicalExpr>>,
    schema: SchemaRef,
}

impl Calc {
    /// Keeps rows for which `condition` is true and emits one column for each expression, as `schema` names them.
    pub fn new(
        condition: Option<Arc<dyn PhysicalExpr>>,
        projection: Vec<Arc<dyn PhysicalExpr>>,
        schema: SchemaRef,
    ) -> Calc {
        Calc { condition, projection, schema }
    }
}

impl Operator for Calc {
    fn on_changes(&mut self, _port: Port, mut batch: ChangeBatch, out: &mut Output) -> Result<()> {
        if let Some(condition) = &self.condition {
            let mask = evaluate(condition, batch.rows())?;
            let mask = mask.as_boolean_opt().ok_or_else(|| Error::bug("a condition is not a Boolean"))?;
            batch = batch.filter(mask)?;
        }
        if batch.is_empty() {
            return Ok(());
        }
        let columns = self.projection.iter().map(|expression| evaluate(expression, batch.rows()));
        let columns = columns.collect::<Result<Vec<_>>>()?;
        let options = RecordBatchOptions::new().with_row_count(Some(batch.len()));
        let rows = RecordBatch::try_new_with_options(Arc::clone(&self.schema), columns, &options)?;
        out.changes(batch.with_rows(rows)?);
        Ok(())
    }
}
