//! Gives a sink's rows the names its table declares: a query's own names (`count(*)`) mean nothing to a file of JSON.

use std::sync::Arc;

use arrow::array::{RecordBatch, RecordBatchOptions};
use arrow::datatypes::{Schema, SchemaRef};

use crate::changelog::ChangeBatch;
use crate::error::Result;

/// The columns a table declares, for the batches that come by.
pub struct DeclaredColumns {
    declared: SchemaRef,
    /// The last batch's own schema and what it became: batches of one query share theirs.
    last: Option<(SchemaRef, SchemaRef)>,
}

impl DeclaredColumns {
    /// Of a table whose rows have the schema `declared`.
    pub fn new(declared: SchemaRef) -> DeclaredColumns {
        DeclaredColumns { declared, last: None }
    }

    /// The same rows under the declared names. No value is copied.
    ///
    /// # Errors
    /// If the columns are not as many as declared, which only a bug can cause.
    pub fn name(&mut self, batch: &ChangeBatch) -> Result<ChangeBatch> {
        let rows = batch.rows();
        let own = rows.schema_ref();
        let schema = match &self.last {
            Some((from, to)) if Arc::ptr_eq(from, own) => Arc::clone(to),
            _ => {
                let schema = self.schema(own);
                self.last = Some((Arc::clone(own), Arc::clone(&schema)));
                schema
            }
        };
        let options = RecordBatchOptions::new().with_row_count(Some(rows.num_rows()));
        batch.with_rows(RecordBatch::try_new_with_options(schema, rows.columns().to_vec(), &options)?)
    }

    /// The declared fields, as far as the values are concerned those of the batch: a query's column that may be NULL
    /// stays one that may be NULL.
    fn schema(&self, own: &Schema) -> SchemaRef {
        if own.fields().len() != self.declared.fields().len() {
            return Arc::clone(&self.declared);
        }
        let fields = self.declared.fields().iter().zip(own.fields());
        let field = |(declared, own): (&Arc<arrow::datatypes::Field>, &Arc<arrow::datatypes::Field>)| {
            declared.as_ref().clone().with_data_type(own.data_type().clone()).with_nullable(own.is_nullable())
        };
        Arc::new(Schema::new(fields.map(field).collect::<Vec<_>>()))
    }
}

#[cfg(test)]
mod tests {
    use arrow::array::Int64Array;
    use arrow::datatypes::{DataType, Field};

    use super::*;

    #[test]
    fn rows_get_the_names_of_the_table() {
        let schema = |name: &str, nullable| Arc::new(Schema::new(vec![Field::new(name, DataType::Int64, nullable)]));
        let mut columns = DeclaredColumns::new(schema("n", false));
        let rows =
            RecordBatch::try_new(schema("count(*)", true), vec![Arc::new(Int64Array::from(vec![None]))]).unwrap();
        for _ in 0..2 {
            let named = columns.name(&ChangeBatch::inserts(rows.clone())).unwrap();
            assert_eq!(named.schema().field(0), &Field::new("n", DataType::Int64, true));
        }
    }
}
