//! `GROUPING SETS`: each row once for each set, with NULL in the columns that the set does not group by.

use std::sync::Arc;

use arrow::array::{ArrayRef, Int64Array, RecordBatch, UInt32Array};
use arrow::compute::take;
use arrow::datatypes::SchemaRef;

use super::{Operator, Output, Port};
use crate::changelog::{ChangeBatch, Kinds};
use crate::error::{Error, Result};

/// Repeats rows by grouping set; behind the input's columns come the grouped ones, then the number of the set.
pub struct Expand {
    schema: SchemaRef,
    columns: Vec<usize>,
    sets: Vec<Vec<bool>>,
}

impl Expand {
    /// `columns` of the input are grouped by in the `sets` that say so, one flag a column.
    ///
    /// # Errors
    /// Only by a bug.
    pub fn new(schema: SchemaRef, columns: Vec<usize>, sets: Vec<Vec<bool>>) -> Result<Expand> {
        if sets.is_empty() || sets.iter().any(|set| set.len() != columns.len()) {
            return Err(Error::bug("a grouping set has a flag for each column"));
        }
        Ok(Expand { schema, columns, sets })
    }
}

impl Operator for Expand {
    fn on_changes(&mut self, _port: Port, batch: ChangeBatch, out: &mut Output) -> Result<()> {
        let copies = self.sets.len();
        let rows = 0..batch.len() as u32;
        let repeated = UInt32Array::from_iter_values(rows.clone().flat_map(|row| std::iter::repeat_n(row, copies)));
        let input = batch.rows().columns();
        let mut columns = input.iter().map(|column| take(column, &repeated, None)).collect::<Result<Vec<_>, _>>()?;
        for (place, column) in self.columns.iter().enumerate() {
            let of_row = |row| self.sets.iter().map(move |set| set[place].then_some(row));
            let present: UInt32Array = rows.clone().flat_map(of_row).collect();
            columns.push(take(&input[*column], &present, None)?);
        }
        let numbers: ArrayRef = Arc::new(Int64Array::from_iter_values(rows.clone().flat_map(|_| 0..copies as i64)));
        columns.push(numbers);
        let expanded = RecordBatch::try_new(Arc::clone(&self.schema), columns)?;
        out.changes(match batch.kinds() {
            Kinds::AllInsert => ChangeBatch::inserts(expanded),
            Kinds::Each(kinds) => {
                let repeated = kinds.iter().flat_map(|kind| std::iter::repeat_n(*kind, copies));
                ChangeBatch::new(expanded, repeated.collect())?
            }
        });
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::operators::testing::{changes, check, feed, schema};

    #[test]
    fn each_row_comes_once_for_each_set() {
        let output = schema("a TEXT, b BIGINT, ga TEXT, gb BIGINT, set BIGINT");
        let sets = vec![vec![true, false], vec![false, true], vec![false, false]];
        let mut expand = Expand::new(output, vec![0, 1], sets).unwrap();
        let rows = changes(&schema("a TEXT, b BIGINT"), "+I x 1\n-D _ 2");
        for size in [1, 9] {
            check(
                &feed(&mut expand, &rows, size, &mut Output::default()),
                "+I[x, 1, x, NULL, 0]
                +I[x, 1, NULL, 1, 1]
                +I[x, 1, NULL, NULL, 2]
                -D[NULL, 2, NULL, NULL, 0]
                -D[NULL, 2, NULL, 2, 1]
                -D[NULL, 2, NULL, NULL, 2]",
            );
        }
    }
}
