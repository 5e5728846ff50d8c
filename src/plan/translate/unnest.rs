//! `UNNEST`: rows repeated for the elements of a collection.

use std::sync::Arc;

use datafusion_expr::UserDefinedLogicalNodeCore;

use super::{Facts, Translation, forward};
use crate::error::Result;
use crate::plan::stream::{NodeId, NodeKind};
use crate::plan::unnest::UnnestNode;

impl Translation<'_> {
    pub(super) fn unnest(&mut self, node: &UnnestNode) -> Result<NodeId> {
        let input = self.relation(&node.input)?;
        let schema = UserDefinedLogicalNodeCore::schema(node);
        let mut facts = Facts::like(self.node(input));
        facts.schema = Arc::clone(schema.inner());
        // Without its number an element may be there twice.
        let number = node.ordinality.then(|| facts.schema.fields().len() - 1);
        facts.upsert_key = facts.upsert_key.zip(number).map(|(key, number)| key.into_iter().chain([number]).collect());
        let kind = NodeKind::Unnest {
            input: Arc::clone(node.input.schema()),
            collection: node.collection.clone().unalias_nested().data,
            counted: node.counted,
            ordinality: node.ordinality,
            condition: node.condition.clone(),
            pairs: Arc::clone(schema),
            outer: node.outer,
            shown: (0..schema.fields().len()).collect(),
        };
        let id = self.add(kind, vec![forward(input)], facts);
        if let Some(windows) = self.windows.get(&input).cloned() {
            self.windows.insert(id, windows);
        }
        Ok(id)
    }
}
