//! Where rows go: a table, or whoever runs the query.

use std::sync::Arc;

use datafusion_expr::{Expr, LogicalPlan};

use super::{Facts, Translation, forward};
use crate::catalog::TableDefinition;
use crate::changelog::{ChangelogMode, Kind};
use crate::error::{Error, Result, Span, nearest};
use crate::functions::{self, FunctionSet};
use crate::plan::error::unwrap;
use crate::plan::expressions::{call, convert};
use crate::plan::stream::{NodeId, NodeKind};
use crate::types::SqlType;

/// The target of an `INSERT`.
pub(in crate::plan) struct Target<'a> {
    pub table: &'a Arc<TableDefinition>,
    /// The columns named after the table; empty: all.
    pub columns: Vec<(String, Option<Span>)>,
    /// Constant columns of `PARTITION (…)`.
    pub partition: Vec<(String, Expr)>,
}

impl Translation<'_> {
    /// A query whose rows are handed out.
    pub(in crate::plan) fn collect(&mut self, plan: &LogicalPlan) -> Result<NodeId> {
        let input = self.relation(plan)?;
        let mut facts = Facts::like(self.node(input));
        // The names the query gives, whatever node they come from.
        facts.schema = Arc::clone(plan.schema().inner());
        Ok(self.add(NodeKind::Collect, vec![forward(input)], facts))
    }

    /// A query whose rows are written to a table.
    pub(in crate::plan) fn insert(
        &mut self,
        plan: &LogicalPlan,
        target: &Target<'_>,
        functions: &FunctionSet,
    ) -> Result<NodeId> {
        let input = self.relation(plan)?;
        let sink_schema = target.table.sink_schema();
        let assigned = assign(plan, target, functions)?;
        let prepared = self.project(input, Arc::clone(plan.schema()), None, assigned, Arc::clone(&sink_schema))?;
        let accepts = self.facts.sink_accepts(target.table)?;
        self.check_mode(prepared, target.table, accepts)?;
        let same_table = self
            .graph
            .nodes
            .iter()
            .filter(|node| matches!(&node.kind, NodeKind::Sink { table, .. } if table.name == target.table.name));
        let ordinal = same_table.count();
        let name = match ordinal {
            0 => target.table.name.clone(),
            more => format!("{}-{more}", target.table.name),
        };
        let mut facts = Facts::like(self.node(prepared));
        facts.schema = sink_schema;
        let kind = NodeKind::Sink { table: Arc::clone(target.table), name };
        Ok(self.add(kind, vec![forward(prepared)], facts))
    }

    /// # Errors
    /// If the query emits kinds that the sink cannot take: names the cause and two ways out.
    fn check_mode(&self, input: NodeId, table: &TableDefinition, accepts: ChangelogMode) -> Result<()> {
        let mode = self.node(input).mode;
        let wanted = if accepts.is_upsert() { mode.without(Kind::UpdateBefore) } else { mode };
        let refused: Vec<&str> = [Kind::UpdateAfter, Kind::Delete]
            .into_iter()
            .filter(|kind| wanted.contains(*kind) && !accepts.contains(*kind))
            .map(|kind| if kind == Kind::Delete { "deletes" } else { "updates" })
            .collect();
        if refused.is_empty() {
            return Ok(());
        }
        let cause = self.updating_cause(input);
        Err(Error::sql(format!(
            "table '{}' takes only new rows, and this query also emits {} (because of {cause})",
            table.name,
            refused.join(" and ")
        ))
        .hint(
            "either make the query append-only, for example by aggregating over windows (TUMBLE); or write to a table \
             that takes updates, for example 'format' = 'debezium-json' or a connector with a PRIMARY KEY",
        ))
    }

    /// In words, the lowest operator that turns appends into updates.
    fn updating_cause(&self, from: NodeId) -> String {
        let node = self.node(from);
        let updating = node.inputs.iter().find(|edge| !self.node(edge.from).mode.is_append_only());
        if let Some(edge) = updating {
            return self.updating_cause(edge.from);
        }
        match &node.kind {
            NodeKind::GroupAggregate { keys, aggregates, .. } => {
                let names: Vec<String> = keys
                    .iter()
                    .enumerate()
                    .map(|(index, _)| format!("'{}'", node.schema.field(index).name()))
                    .collect();
                match (names.is_empty(), aggregates.is_empty()) {
                    (_, true) => "SELECT DISTINCT".to_string(),
                    (true, _) => "an aggregate over all rows".to_string(),
                    (false, _) => format!("GROUP BY {}", names.join(", ")),
                }
            }
            NodeKind::Source { table, .. } => format!("the changelog in table '{}'", table.name),
            other => other.name().to_string(),
        }
    }
}

/// One expression for each column of the sink: the query's column in its place, cast where Flink would, else NULL.
fn assign(plan: &LogicalPlan, target: &Target<'_>, functions: &FunctionSet) -> Result<Vec<Expr>> {
    let schema = target.table.sink_schema();
    let constant = |name: &str| target.partition.iter().find(|(column, _)| column == name).map(|(_, e)| e.clone());
    let given: Vec<usize> = if target.columns.is_empty() {
        (0..schema.fields().len()).filter(|index| constant(schema.field(*index).name()).is_none()).collect()
    } else {
        target.columns.iter().map(|(name, span)| sink_column(target.table, name, *span)).collect::<Result<_>>()?
    };
    let query = plan.schema();
    if given.len() != query.fields().len() {
        return Err(Error::sql(format!(
            "table '{}' takes {} columns here, and the query gives {}",
            target.table.name,
            given.len(),
            query.fields().len()
        ))
        .hint(format!("the columns are: {}", describe(&schema))));
    }
    let mut assigned = Vec::with_capacity(schema.fields().len());
    for (index, field) in schema.fields().iter().enumerate() {
        let (value, from) = match given.iter().position(|column| *column == index) {
            Some(position) => {
                let (qualifier, field) = query.qualified_field(position);
                (Expr::Column((qualifier, field).into()), Arc::clone(field))
            }
            None => {
                let value =
                    constant(field.name()).unwrap_or_else(|| Expr::Literal(datafusion_common::ScalarValue::Null, None));
                let from = datafusion_expr::ExprSchemable::to_field(&value, query.as_ref()).map_err(unwrap)?.1;
                (value, from)
            }
        };
        if matches!(value, Expr::Literal(datafusion_common::ScalarValue::Null, _)) && !field.is_nullable() {
            return Err(Error::sql(format!(
                "column '{}' of '{}' is NOT NULL and is given no value",
                field.name(),
                target.table.name
            )));
        }
        let (from_type, to_type) = (SqlType::of_field(&from), SqlType::of_field(field));
        // PARTITION (day = '2024-01-01') writes values of every type as text.
        let partition = constant(field.name()).is_some() && from_type.is_text();
        if !partition && !functions::assignable(&from_type, &to_type) {
            return Err(Error::sql(format!(
                "column '{}' of '{}' is {to_type}, and the query gives {from_type}",
                field.name(),
                target.table.name
            ))
            .hint(format!("CAST(… AS {to_type})")));
        }
        assigned.push(match functions.cast(&from, &to_type, false)? {
            Some(function) if from_type != to_type => call(function, vec![value]),
            _ => convert(value, &from, &to_type, functions).map_err(unwrap)?,
        });
    }
    Ok(assigned)
}

fn sink_column(table: &TableDefinition, name: &str, span: Option<Span>) -> Result<usize> {
    let schema = table.sink_schema();
    schema.index_of(name).map_err(|_| {
        let error = Error::sql(format!("table '{}' has no column '{name}' that can be written", table.name)).at(span);
        match nearest(name, schema.fields().iter().map(|field| field.name().as_str())) {
            Some(near) => error.hint(format!("did you mean '{near}'?")),
            None => error.hint(format!("the columns are: {}", describe(&schema))),
        }
    })
}

fn describe(schema: &arrow::datatypes::Schema) -> String {
    let columns = schema.fields().iter().map(|field| format!("{} {}", field.name(), SqlType::of_field(field)));
    columns.collect::<Vec<_>>().join(", ")
}
