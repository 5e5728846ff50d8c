//! `CURRENT_WATERMARK(ts)` in expressions becomes a column that a node of its own appends.

use std::sync::Arc;

use arrow::datatypes::{DataType, Field, TimeUnit};
use datafusion_common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion_common::{Column, DFSchema, DFSchemaRef, DataFusionError};
use datafusion_expr::{Expr, ExprSchemable};

use super::calc::column_index;
use super::{Facts, Translation, forward};
use crate::error::{Error, Result};
use crate::plan::error::{unwrap, wrap};
use crate::plan::stream::{NodeId, NodeKind, StateBound};
use crate::types::SqlType;

const NAME: &str = "current_watermark";

/// The appended columns' names: no column of a query begins like this.
const COLUMN: &str = "#current_watermark";

impl Translation<'_> {
    /// The expressions with columns instead of calls, and the node that has these columns; as given without calls.
    pub(super) fn with_watermarks(
        &mut self,
        input: NodeId,
        schema: DFSchemaRef,
        expressions: Vec<Expr>,
    ) -> Result<(NodeId, DFSchemaRef, Vec<Expr>)> {
        let calls = |expression: &Expr| matches!(expression, Expr::ScalarFunction(call) if call.name() == NAME);
        let called = |expression: &Expr| expression.exists(|part| Ok(calls(part))).unwrap_or(false);
        if !expressions.iter().any(called) {
            return Ok((input, schema, expressions));
        }
        let mut fields: Vec<_> =
            schema.iter().map(|(qualifier, field)| (qualifier.cloned(), Arc::clone(field))).collect();
        let own = fields.len();
        let mut replace = |expression: Expr| -> Result<Expr, DataFusionError> {
            let replaced = expression.transform_down(|part| {
                let Expr::ScalarFunction(call) = &part else { return Ok(Transformed::no(part)) };
                let [argument] = call.args.as_slice() else { return Ok(Transformed::no(part)) };
                if call.name() != NAME {
                    return Ok(Transformed::no(part));
                }
                self.require_row_time(argument, input, &schema).map_err(wrap)?;
                let zone = match argument.get_type(&schema)? {
                    DataType::Timestamp(_, zone) => zone,
                    _ => None,
                };
                let data_type = DataType::Timestamp(TimeUnit::Millisecond, zone);
                let place = fields[own..].iter().position(|(_, field)| *field.data_type() == data_type);
                let place = place.unwrap_or_else(|| {
                    let name = format!("{COLUMN}_{}", fields.len() - own);
                    fields.push((None, Arc::new(Field::new(name, data_type, true))));
                    fields.len() - own - 1
                });
                let column = Expr::Column(Column::new_unqualified(format!("{COLUMN}_{place}")));
                Ok(Transformed::new(column, true, TreeNodeRecursion::Jump))
            })?;
            // The column keeps the name that the call had in the result.
            Ok(replaced.data)
        };
        let expressions = expressions.into_iter().map(&mut replace).collect::<Result<Vec<_>, _>>().map_err(unwrap)?;
        let widened = DFSchema::new_with_metadata(fields, schema.metadata().clone()).map_err(unwrap)?;
        let mut facts = Facts::like(self.node(input));
        facts.schema = Arc::clone(widened.inner());
        facts.state = StateBound::Bounded("one watermark a subtask".into());
        let node = self.add(NodeKind::CurrentWatermark, vec![forward(input)], facts);
        if let Some(windows) = self.windows.get(&input).cloned() {
            self.windows.insert(node, windows);
        }
        self.derive_watermarks_row_by_row(node);
        Ok((node, Arc::new(widened), expressions))
    }

    fn require_row_time(&self, argument: &Expr, input: NodeId, schema: &DFSchema) -> Result<()> {
        let node = self.node(input);
        let column = column_index(argument, schema);
        if column.is_some_and(|column| node.rowtime.contains(&column)) || self.is_derived_time(argument, input, schema)
        {
            return Ok(());
        }
        let (_, field) = argument.to_field(schema).map_err(unwrap)?;
        let what = match column.is_some_and(|column| node.proctime.contains(&column)) {
            true => "processing time".to_string(),
            false => format!("a plain {}", SqlType::of_field(&field)),
        };
        Err(Error::sql(format!("CURRENT_WATERMARK needs an event-time attribute, and '{argument}' is {what}"))
            .hint("declare WATERMARK FOR the column in CREATE TABLE"))
    }

    /// Notes that rows behind `node` must not come before the watermarks of the rows before them.
    pub(super) fn derive_watermarks_row_by_row(&mut self, node: NodeId) {
        if let NodeKind::WatermarkAssigner { row_by_row, .. } = &mut self.graph.nodes[node].kind {
            *row_by_row = true;
            return;
        }
        let inputs: Vec<NodeId> = self.node(node).inputs.iter().map(|edge| edge.from).collect();
        inputs.into_iter().for_each(|input| self.derive_watermarks_row_by_row(input));
    }
}
