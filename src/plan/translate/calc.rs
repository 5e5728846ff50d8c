//! `SELECT` lists and `WHERE`: projections and filters become one `Calc`.

use std::sync::Arc;

use arrow::datatypes::{DataType, SchemaRef};
use datafusion_common::{DFSchema, DFSchemaRef};
use datafusion_expr::{Expr, ExprSchemable, LogicalPlan};

use super::{Facts, Translation, Windows, forward};
use crate::error::{Error, Result};
use crate::functions::NOT_NULL;
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
        let projection = match expressions {
            Some(expressions) => expressions.to_vec(),
            None => input_plan.schema().columns().into_iter().map(Expr::Column).collect(),
        };
        let (input, schema) = match self.unranked(input_plan, condition.iter().chain(&projection))? {
            Some(unranked) => unranked,
            None => (self.relation(input_plan)?, Arc::clone(input_plan.schema())),
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
        let sources = projection.iter().map(|expression| column_index(expression, &input_schema));
        let identity = sources.enumerate().all(|(index, source)| source == Some(index));
        if condition.is_none() && identity && projection.len() == input_schema.fields().len() {
            return Ok(input);
        }
        self.add_calc(input, input_schema, condition, projection, schema)
    }

    /// Adds a `Calc`, even if it changes but the columns' names.
    pub(super) fn add_calc(
        &mut self,
        input: NodeId,
        input_schema: DFSchemaRef,
        condition: Option<Expr>,
        projection: Vec<Expr>,
        schema: SchemaRef,
    ) -> Result<NodeId> {
        reject_subqueries(condition.iter().chain(&projection))?;
        let filtered = condition.is_some();
        let expressions = condition.into_iter().chain(projection).collect();
        let (input, input_schema, mut projection) = self.with_watermarks(input, input_schema, expressions)?;
        let condition = filtered.then(|| projection.remove(0));
        let sources: Vec<Option<usize>> = projection.iter().map(|e| column_index(e, &input_schema)).collect();
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
                        if windows.processing {
                            let name = name.to_uppercase();
                            return Err(Error::sql(format!("{name}: a window of processing time has no row time"))
                                .hint("TUMBLE_PROCTIME, HOP_PROCTIME and SESSION_PROCTIME give its processing time"));
                        }
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
            local: windows.local,
            packed: moved(&windows.packed),
            derived: (0..projection.len())
                .filter(|index| !facts.rowtime.contains(index))
                .filter(|index| self.is_derived_time(&projection[*index], input, &input_schema))
                .collect(),
            times: moved(&windows.times),
            processing: windows.processing,
            padded: moved(&windows.padded),
            versions: moved(&windows.versions),
        };
        let (schema, expressions, passed) = (Arc::clone(&input_schema), projection.clone(), condition.clone());
        let kind = NodeKind::Calc { input: input_schema, condition, projection };
        let id = self.add(kind, vec![forward(input)], facts);
        self.note_projection(id, input, &schema, &expressions, passed.as_ref());
        self.windows.insert(id, outgoing);
        Ok(id)
    }
}

impl Translation<'_> {
    /// Whether an expression is a timestamp computed from a time attribute of `input`; a CAST makes a plain one.
    pub(super) fn is_derived_time(&self, expression: &Expr, input: NodeId, schema: &DFSchema) -> bool {
        if !matches!(expression.get_type(schema), Ok(DataType::Timestamp(..))) {
            return false;
        }
        let derived = self.windows.get(&input).map(|windows| windows.derived.as_slice()).unwrap_or_default();
        self.comes_from_time(expression, &self.node(input).rowtime, derived, schema)
    }

    fn comes_from_time(&self, expression: &Expr, rowtime: &[usize], derived: &[usize], schema: &DFSchema) -> bool {
        let from = |inner: &Expr| self.comes_from_time(inner, rowtime, derived, schema);
        match expression {
            Expr::Alias(alias) => from(&alias.expr),
            Expr::Column(column) => schema
                .maybe_index_of_column(column)
                .is_some_and(|index| rowtime.contains(&index) || derived.contains(&index)),
            Expr::Case(case) => case.when_then_expr.iter().any(|(_, then)| from(then)),
            Expr::ScalarFunction(function) if !function.name().contains("cast") => function.args.iter().any(from),
            _ => false,
        }
    }
}

/// The column an expression passes through unchanged, under whatever name.
pub(in crate::plan) fn column_index(expression: &Expr, schema: &DFSchema) -> Option<usize> {
    match expression {
        Expr::ScalarFunction(call) if call.name() == NOT_NULL => column_index(call.args.first()?, schema),
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
