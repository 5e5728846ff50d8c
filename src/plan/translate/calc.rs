//! `SELECT` lists and `WHERE`: projections and filters become one `Calc`.

use std::sync::Arc;

use arrow::datatypes::SchemaRef;
use datafusion_common::{DFSchema, DFSchemaRef};
use datafusion_expr::{Expr, LogicalPlan};

use super::{Facts, Translation, Windows, forward};
use crate::error::{Error, Result};
use crate::plan::stream::{NodeId, NodeKind};
use crate::types::WindowColumn;

impl Translation<'_> {
    /// A projection, a filter, or a projection over a filter.
    pub(super) fn calc(&mut self, plan: &LogicalPlan) -> Result<NodeId> {
        let (expressions, below) = match plan {
            LogicalPlan::Projection(projection) => (Some(projection.expr.as_slice()), projection.input.as_ref()),
            other => (None, other),
        };
        let (condition, input_plan) = match below {
            LogicalPlan::Filter(filter) => (Some(filter.predicate.clone()), filter.input.as_ref()),
            other => (None, other),
        };
        let input = self.relation(input_plan)?;
        let schema = Arc::clone(input_plan.schema());
        let projection = match expressions {
            Some(expressions) => expressions.to_vec(),
            None => schema.columns().into_iter().map(Expr::Column).collect(),
        };
        self.project(input, schema, condition, projection, Arc::clone(plan.schema().inner()))
    }

    /// Adds a `Calc`, unless it would change nothing.
    pub(super) fn project(
        &mut self,
        input: NodeId,
        input_schema: DFSchemaRef,
        condition: Option<Expr>,
        projection: Vec<Expr>,
        schema: SchemaRef,
    ) -> Result<NodeId> {
        reject_subqueries(condition.iter().chain(&projection))?;
        let sources: Vec<Option<usize>> = projection.iter().map(|e| column_index(e, &input_schema)).collect();
        let identity = sources.iter().enumerate().all(|(index, source)| *source == Some(index));
        if condition.is_none() && identity && sources.len() == input_schema.fields().len() {
            return Ok(input);
        }
        let node = self.node(input);
        let moved = |columns: &[usize]| -> Vec<usize> {
            let from_input = |source: &Option<usize>| source.is_some_and(|source| columns.contains(&source));
            sources.iter().enumerate().filter(|(_, source)| from_input(source)).map(|(index, _)| index).collect()
        };
        let mut facts = Facts::like(node);
        facts.schema = schema;
        facts.rowtime = moved(&node.rowtime);
        facts.proctime = moved(&node.proctime);
        facts.upsert_key = node.upsert_key.as_ref().and_then(|key| {
            key.iter().map(|column| sources.iter().position(|source| *source == Some(*column))).collect()
        });
        let windows = self.windows.get(&input).cloned().unwrap_or_default();
        for (index, expression) in projection.iter().enumerate() {
            match time_function(expression) {
                Some(("proctime", _)) => facts.proctime.push(index),
                Some((name, argument)) if is_window_time(name) => {
                    let packed = argument.and_then(|argument| column_index(argument, &input_schema));
                    if packed.is_some_and(|column| windows.packed.contains(&column)) {
                        facts.rowtime.push(index);
                    }
                }
                _ => {}
            }
        }
        let outgoing = Windows {
            columns: sources
                .iter()
                .enumerate()
                .filter_map(|(index, source)| {
                    let which = windows.columns.iter().find(|(column, _)| Some(*column) == *source)?.1;
                    Some((index, which))
                })
                .collect::<Vec<(usize, WindowColumn)>>(),
            packed: moved(&windows.packed),
        };
        let kind = NodeKind::Calc { input: input_schema, condition, projection };
        let id = self.add(kind, vec![forward(input)], facts);
        self.windows.insert(id, outgoing);
        Ok(id)
    }
}

/// The column an expression passes through unchanged, under whatever name.
pub(super) fn column_index(expression: &Expr, schema: &DFSchema) -> Option<usize> {
    match expression {
        Expr::Alias(alias) => column_index(&alias.expr, schema),
        Expr::Column(column) => schema.maybe_index_of_column(column),
        _ => None,
    }
}

/// The name and first argument of a function call, lower case.
fn time_function(expression: &Expr) -> Option<(&str, Option<&Expr>)> {
    match expression {
        Expr::Alias(alias) => time_function(&alias.expr),
        Expr::ScalarFunction(call) => Some((call.name(), call.args.first())),
        _ => None,
    }
}

fn is_window_time(name: &str) -> bool {
    matches!(name, "tumble_rowtime" | "hop_rowtime" | "session_rowtime")
}

fn reject_subqueries<'a>(expressions: impl Iterator<Item = &'a Expr>) -> Result<()> {
    use datafusion_common::tree_node::TreeNode;
    for expression in expressions {
        let found = expression
            .exists(|part| {
                Ok(matches!(
                    part,
                    Expr::ScalarSubquery(_) | Expr::InSubquery(_) | Expr::Exists(_) | Expr::SetComparison(_)
                ))
            })
            .unwrap_or(false);
        if found {
            return Err(Error::sql("this subquery in an expression cannot be turned into a join")
                .hint("correlate it by equal columns in its WHERE, or join it in FROM"));
        }
    }
    Ok(())
}
