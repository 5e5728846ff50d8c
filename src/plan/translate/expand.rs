//! `GROUPING SETS`: rows repeated for each set.

use std::sync::Arc;

use datafusion_expr::UserDefinedLogicalNodeCore;

use super::{Facts, Translation, column_index, forward};
use crate::error::{Error, Result};
use crate::plan::grouping_sets::ExpandNode;
use crate::plan::stream::{NodeId, NodeKind};

impl Translation<'_> {
    pub(super) fn expand(&mut self, node: &ExpandNode) -> Result<NodeId> {
        let input = self.relation(&node.input)?;
        let schema = node.input.schema();
        let column = |expression| {
            column_index(expression, schema).ok_or_else(|| Error::bug("a grouping set lost one of its columns"))
        };
        let columns = node.columns.iter().map(column).collect::<Result<Vec<_>>>()?;
        let mut facts = Facts::like(self.node(input));
        facts.schema = Arc::clone(UserDefinedLogicalNodeCore::schema(node).inner());
        let set = facts.schema.fields().len() - 1;
        facts.upsert_key = facts.upsert_key.map(|key| key.into_iter().chain([set]).collect());
        let id = self.add(NodeKind::Expand { columns, sets: node.sets.clone() }, vec![forward(input)], facts);
        if let Some(windows) = self.windows.get(&input).cloned() {
            self.windows.insert(id, windows);
        }
        Ok(id)
    }
}
