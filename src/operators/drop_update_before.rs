//! Drops `-U`: for users that know rows by a key and need only the new image of an updated row.
//!
//! A filter may have kept the old image of an update and dropped the new one, and a collection may have had more elements
//! before than after: a `-U` that no `+U` of its key follows takes a row away, and goes out as `-D`.

use arrow::array::{ArrayRef, BooleanArray};
use arrow::datatypes::SchemaRef;
use arrow::row::{RowConverter, SortField};

use super::{Operator, Output, Port};
use crate::changelog::{ChangeBatch, Kind, Kinds};
use crate::error::Result;

/// Drops `-U`, or makes it `-D`.
#[derive(Debug)]
pub struct DropUpdateBefore {
    key: Vec<usize>,
    converter: RowConverter,
}

impl DropUpdateBefore {
    /// `key` are the columns by which the user knows rows; it remembers nothing.
    ///
    /// # Errors
    /// If a column's type cannot be compared.
    pub fn new(schema: &SchemaRef, key: Vec<usize>) -> Result<DropUpdateBefore> {
        let fields = key.iter().map(|column| SortField::new(schema.field(*column).data_type().clone()));
        Ok(DropUpdateBefore { converter: RowConverter::new(fields.collect())?, key })
    }
}

impl Operator for DropUpdateBefore {
    fn on_changes(&mut self, _port: Port, batch: ChangeBatch, out: &mut Output) -> Result<()> {
        let kinds = match batch.kinds() {
            Kinds::Each(kinds) if kinds.contains(&Kind::UpdateBefore) => kinds,
            _ => {
                out.changes(batch);
                return Ok(());
            }
        };
        let columns: Vec<ArrayRef> = self.key.iter().map(|column| batch.rows().column(*column).clone()).collect();
        let keys = self.converter.convert_columns(&columns)?;
        let replaced =
            |row: usize| kinds.get(row + 1) == Some(&Kind::UpdateAfter) && keys.row(row) == keys.row(row + 1);
        let mask: BooleanArray =
            kinds.iter().enumerate().map(|(row, kind)| Some(*kind != Kind::UpdateBefore || !replaced(row))).collect();
        let plain = |kind: &Kind| if *kind == Kind::UpdateBefore { Kind::Delete } else { *kind };
        let changes = ChangeBatch::new(batch.rows().clone(), kinds.iter().map(plain).collect())?;
        out.changes(changes.filter(&mask)?);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::operators::testing::{changes, check, feed, schema};

    #[test]
    fn old_images_go_unless_nothing_comes_for_them() {
        let schema = schema("k TEXT, n BIGINT");
        let rows = changes(
            &schema,
            "+I x 1
            -U x 1
            +U x 2
            -U x 2
            +U y 7
            -U y 7
            -U z 1
            +U z 2
            -D z 2
            -U x 3",
        );
        let found = feed(&mut DropUpdateBefore::new(&schema, vec![0]).unwrap(), &rows, 99, &mut Output::default());
        check(&found, "+I[x, 1]\n+U[x, 2]\n-D[x, 2]\n+U[y, 7]\n-D[y, 7]\n+U[z, 2]\n-D[z, 2]\n-D[x, 3]");
    }
}
