//! `WHERE` and the select list: filters, then projects; kinds stay.
//!
//! A filter may drop one image of an update and keep the other: the lone `-U` then takes a row away, the lone `+U`
//! brings one, and users downstream read them so.

use std::sync::Arc;

use arrow::array::{AsArray, RecordBatch, RecordBatchOptions};
use arrow::datatypes::SchemaRef;
use arrow::error::ArrowError;
use datafusion_common::tree_node::{Transformed, TreeNode};
use datafusion_physical_expr::PhysicalExpr;
use datafusion_physical_expr::expressions::Column;
use datafusion_physical_expr::utils::collect_columns;

use super::expression::evaluate;
use super::{Operator, Output, Port};
use crate::changelog::ChangeBatch;
use crate::error::{Error, ErrorKind, Result};

/// Filters and projects.
pub struct Calc {
    condition: Option<Arc<dyn PhysicalExpr>>,
    /// Columns of the input that `projection` reads, ascending: the others need not be filtered.
    read: Vec<usize>,
    /// Over the columns `read`.
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
        let mut read: Vec<usize> = projection.iter().flat_map(collect_columns).map(|column| column.index()).collect();
        read.sort_unstable();
        read.dedup();
        let projection = projection.into_iter().map(|expression| over(expression, &read)).collect();
        Calc { condition, read, projection, schema }
    }
}

/// The expression with its columns counted among `read`.
fn over(expression: Arc<dyn PhysicalExpr>, read: &[usize]) -> Arc<dyn PhysicalExpr> {
    let original = Arc::clone(&expression);
    let moved = expression.transform_up(|part| match part.downcast_ref::<Column>() {
        Some(column) => {
            let place = read.binary_search(&column.index()).unwrap_or(column.index());
            let moved: Arc<dyn PhysicalExpr> = Arc::new(Column::new(column.name(), place));
            Ok(Transformed::yes(moved))
        }
        None => Ok(Transformed::no(part)),
    });
    // Exchanging a column for a column cannot fail.
    moved.map_or(original, |moved| moved.data)
}

impl Operator for Calc {
    fn on_changes(&mut self, _port: Port, mut batch: ChangeBatch, out: &mut Output) -> Result<()> {
        let mask = self.condition.as_ref().map(|condition| evaluate(condition, batch.rows())).transpose()?;
        batch = batch.with_rows(batch.rows().project(&self.read)?)?;
        if let Some(mask) = mask {
            let mask = mask.as_boolean_opt().ok_or_else(|| Error::bug("a condition is not a Boolean"))?;
            batch = batch.filter(mask)?;
        }
        if batch.is_empty() {
            return Ok(());
        }
        let columns = self.projection.iter().map(|expression| evaluate(expression, batch.rows()));
        let columns = columns.collect::<Result<Vec<_>>>()?;
        let options = RecordBatchOptions::new().with_row_count(Some(batch.len()));
        let rows = RecordBatch::try_new_with_options(Arc::clone(&self.schema), columns, &options);
        let rows = rows.map_err(|error| missing(&error))?;
        out.changes(batch.with_rows(rows)?);
        Ok(())
    }
}

/// NULL in a column that has none: a source gave it, which was not asked to check its promise.
fn missing(error: &ArrowError) -> Error {
    let text = error.to_string();
    match text.split_once("Column '").and_then(|(_, rest)| rest.split_once("' is declared as non-nullable")) {
        Some((column, _)) => {
            Error::new(ErrorKind::Data, format!("column '{column}' is NOT NULL, and a row has NULL in it"))
        }
        None => Error::bug(text),
    }
}

#[cfg(test)]
mod tests {
    use datafusion_common::ScalarValue;
    use datafusion_expr::Operator as Binary;
    use datafusion_physical_expr::expressions::{BinaryExpr, Column, Literal};

    use super::*;
    use crate::operators::testing::{changes, check, feed, schema};

    fn column(name: &str, index: usize) -> Arc<dyn PhysicalExpr> {
        Arc::new(Column::new(name, index))
    }

    fn number(value: i64) -> Arc<dyn PhysicalExpr> {
        Arc::new(Literal::new(ScalarValue::Int64(Some(value))))
    }

    #[test]
    fn a_filter_may_leave_one_image_of_an_update() {
        let input = schema("a TEXT, b BIGINT");
        let condition: Arc<dyn PhysicalExpr> = Arc::new(BinaryExpr::new(column("b", 1), Binary::Gt, number(1)));
        let sum: Arc<dyn PhysicalExpr> = Arc::new(BinaryExpr::new(column("b", 1), Binary::Plus, number(1)));
        let mut calc = Calc::new(Some(condition), vec![sum, column("a", 0)], schema("c BIGINT, a TEXT"));
        let rows = changes(&input, "+I x 2\n+I y _\n-U x 2\n+U x 1\n-U x 1\n+U x 5\n-D x 5");
        for size in [1, 2, 9] {
            let found = feed(&mut calc, &rows, size, &mut Output::default());
            check(&found, "+I[3, x]\n-U[3, x]\n+U[6, x]\n-D[6, x]");
        }
    }

    #[test]
    fn a_projection_may_have_no_columns_and_a_failing_one_says_why() {
        let input = schema("b BIGINT");
        let mut counted = Calc::new(None, Vec::new(), schema(""));
        check(&feed(&mut counted, &changes(&input, "+I 1\n+I 2"), 9, &mut Output::default()), "+I[]\n+I[]");
        let division: Arc<dyn PhysicalExpr> = Arc::new(BinaryExpr::new(number(1), Binary::Divide, column("b", 0)));
        let mut failing = Calc::new(None, vec![division], schema("c BIGINT"));
        let error = failing.on_changes(0, changes(&input, "+I 0"), &mut Output::default()).unwrap_err();
        assert_eq!((error.kind(), error.message()), (crate::error::ErrorKind::Data, "division by zero"));
    }
}
