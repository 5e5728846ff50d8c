//! Drops `-U`: for users that need only the new image of an updated row.

use arrow::array::BooleanArray;

use super::{Operator, Output, Port};
use crate::changelog::{ChangeBatch, Kind, Kinds};
use crate::error::Result;

/// Drops `-U`.
#[derive(Debug, Default)]
pub struct DropUpdateBefore {}

impl DropUpdateBefore {
    /// The operator; it remembers nothing.
    pub fn new() -> DropUpdateBefore {
        DropUpdateBefore::default()
    }
}

impl Operator for DropUpdateBefore {
    fn on_changes(&mut self, _port: Port, batch: ChangeBatch, out: &mut Output) -> Result<()> {
        let kept = match batch.kinds() {
            Kinds::AllInsert => batch,
            Kinds::Each(kinds) => {
                let mask: BooleanArray = kinds.iter().map(|kind| Some(*kind != Kind::UpdateBefore)).collect();
                batch.filter(&mask)?
            }
        };
        out.changes(kept);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::operators::testing::{changes, check, feed, schema};

    #[test]
    fn only_old_images_go() {
        let rows = changes(&schema("a TEXT"), "+I x\n-U x\n+U y\n-D y");
        let found = feed(&mut DropUpdateBefore::new(), &rows, 9, &mut Output::default());
        check(&found, "+I[x]\n+U[y]\n-D[y]");
    }
}
