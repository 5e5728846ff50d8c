//! Where rows go: a table, or whoever runs the query.

use std::sync::Arc;

use arrow::datatypes::SchemaRef;
use datafusion_expr::{Expr, ExprSchemable, LogicalPlan};

use super::calc::column_index;
use super::{Facts, Translation, forward};
use crate::catalog::TableDefinition;
use crate::changelog::{ChangelogMode, Kind};
use crate::error::{Error, Result, Span, nearest};
use crate::functions::{self, FunctionSet, NOT_NULL};
use crate::plan::beyond_flink;
use crate::plan::error::unwrap;
use crate::plan::expressions::{call, convert};
use crate::plan::stream::{Distribution, Edge, NodeId, NodeKind, NodeParallelism, StateBound};
use crate::types::{OnConflict, SqlType};

/// The target of an `INSERT`.
pub(in crate::plan) struct Target<'a> {
    pub table: &'a Arc<TableDefinition>,
    /// The columns named after the table; empty: all.
    pub columns: Vec<(String, Option<Span>)>,
    /// Constant columns of `PARTITION (…)`.
    pub partition: Vec<StaticPartition>,
    /// What becomes of several rows of one primary key, if the statement says so.
    pub on_conflict: Option<OnConflict>,
}

/// `column = value` of `PARTITION (…)`.
pub(in crate::plan) struct StaticPartition {
    pub column: String,
    pub value: Expr,
    pub span: Option<Span>,
}

impl Translation<'_> {
    /// A query whose rows are handed out.
    pub(in crate::plan) fn collect(&mut self, plan: &LogicalPlan) -> Result<NodeId> {
        let input = self.relation(plan)?;
        let window = self.windows.get(&input).is_some_and(|windows| !windows.packed.is_empty());
        if window && !self.settings.extensions {
            return Err(beyond_flink("a group window itself is selected")
                .more(", or select its bounds: TUMBLE_START, TUMBLE_END and the like"));
        }
        let input = self.keep_promises(input, plan)?;
        let input = self.consistent(input);
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
        let prepared = self.prepare(input, plan, assigned.clone(), &sink_schema)?;
        let accepts = self.facts.sink_accepts(target.table)?;
        self.check_mode(prepared, target.table, accepts)?;
        let prepared = self.one_row_a_key(input, prepared, plan, &assigned, target, accepts)?;
        let prepared = self.consistent(prepared);
        Ok(self.sink(prepared, target.table))
    }

    /// Writes rows of a table's columns to it.
    pub(super) fn sink(&mut self, rows: NodeId, table: &Arc<TableDefinition>) -> NodeId {
        let same_table = self
            .graph
            .nodes
            .iter()
            .filter(|node| matches!(&node.kind, NodeKind::Sink { table: other, .. } if other.name == table.name));
        let name = match same_table.count() {
            0 => table.name.clone(),
            more => format!("{}-{more}", table.name),
        };
        let mut facts = Facts::like(self.node(rows));
        facts.schema = table.sink_schema();
        let kind = NodeKind::Sink { table: Arc::clone(table), name };
        self.add(kind, vec![forward(rows)], facts)
    }

    /// What is told only where it is consistent, if the session asks for that. In batch mode only final rows are told.
    fn consistent(&mut self, input: NodeId) -> NodeId {
        if !self.settings.consistent_results || self.settings.batch {
            return input;
        }
        let mut facts = Facts::like(self.node(input));
        // One task: several would tell their parts one after the other.
        facts.parallelism = NodeParallelism::Single;
        facts.state = StateBound::Bounded("what changes between two barriers".into());
        let edge = Edge { from: input, distribution: Distribution::Single };
        self.add(NodeKind::ConsistentOutput, vec![edge], facts)
    }

    /// A source does not check that its key is there; who shows the rows does.
    fn keep_promises(&mut self, input: NodeId, plan: &LogicalPlan) -> Result<NodeId> {
        let promised = plan.schema();
        let kept = |index: usize| promised.field(index).is_nullable() || !self.may_be_null(input, index);
        let columns = 0..promised.fields().len();
        if columns.clone().all(kept) {
            return Ok(input);
        }
        let checked = columns.map(|index| {
            let column = Expr::Column(promised.qualified_field(index).into());
            if kept(index) { column } else { call(functions::not_null(promised.field(index).name()), vec![column]) }
        });
        let checked = checked.collect();
        self.add_calc(input, Arc::clone(promised), None, checked, Arc::clone(promised.inner()))
    }

    /// Whether rows of the node may have NULL in a column, whatever was promised.
    fn may_be_null(&self, node: NodeId, column: usize) -> bool {
        self.node(node).schema.fields().get(column).is_none_or(|field| field.is_nullable())
    }

    /// The rows as the sink wants them: its columns under its names, and no NULL where it has none.
    fn prepare(
        &mut self,
        input: NodeId,
        plan: &LogicalPlan,
        mut assigned: Vec<Expr>,
        sink_schema: &SchemaRef,
    ) -> Result<NodeId> {
        let mut condition: Option<Expr> = None;
        for (value, field) in assigned.iter_mut().zip(sink_schema.fields()) {
            let promised = !value.to_field(plan.schema().as_ref()).map_err(unwrap)?.1.is_nullable();
            let column = column_index(value, plan.schema());
            let given = promised && !column.is_some_and(|column| self.may_be_null(input, column));
            if field.is_nullable() || given {
                continue;
            }
            let plain = value.clone();
            if self.settings.drop_null_rows {
                let present = plain.is_not_null();
                condition = Some(condition.map_or(present.clone(), |others| others.and(present)));
            } else {
                *value = call(functions::not_null(field.name()), vec![plain]);
            }
        }
        let names = plan.schema().fields().iter().map(|field| field.name());
        let same_names = names.eq(sink_schema.fields().iter().map(|field| field.name()));
        let enforced = assigned.iter().any(|value| matches!(value, Expr::ScalarFunction(f) if f.name() == NOT_NULL));
        let input_schema = Arc::clone(plan.schema());
        if same_names && !enforced {
            return self.project(input, input_schema, condition, assigned, Arc::clone(sink_schema));
        }
        self.add_calc(input, input_schema, condition, assigned, Arc::clone(sink_schema))
    }

    /// # Errors
    /// If the query emits kinds that the sink cannot take: names the cause and two ways out.
    fn check_mode(&self, input: NodeId, table: &TableDefinition, accepts: ChangelogMode) -> Result<()> {
        if self.settings.batch {
            // What goes out is folded first: only final rows leave.
            return Ok(());
        }
        let mode = self.node(input).mode;
        let wanted = if accepts.is_upsert() { mode.without(Kind::UpdateBefore) } else { mode };
        let refused: Vec<&str> = [Kind::UpdateAfter, Kind::Delete]
            .into_iter()
            .filter(|kind| wanted.contains(*kind) && !accepts.contains(*kind))
            .map(|kind| if kind == Kind::Delete { "deletes" } else { "updates" })
            .collect();
        if refused.is_empty() {
            let updates = accepts.contains(Kind::UpdateAfter) || self.settings.extensions;
            return match !updates && self.tells_apart(input) {
                false => Ok(()),
                true => Err(beyond_flink(&format!(
                    "table '{}' takes only new rows, and DISTINCT gives updates",
                    table.name
                ))),
            };
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

    /// Whether rows come out of a `DISTINCT`, be it of an append-only input, that no window has closed over.
    fn tells_apart(&self, from: NodeId) -> bool {
        let node = self.node(from);
        match &node.kind {
            NodeKind::GroupAggregate { aggregates, .. } if aggregates.is_empty() => true,
            NodeKind::WindowAggregate { .. } => false,
            _ => node.inputs.iter().any(|edge| self.tells_apart(edge.from)),
        }
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
            NodeKind::Rank { order, .. } if order.is_empty() => "LIMIT".to_string(),
            NodeKind::Rank { .. } => "a Top-N: rows leave it as better ones come".to_string(),
            NodeKind::Source { table, .. } => format!("the changelog in table '{}'", table.name),
            other => other.name().to_string(),
        }
    }
}

/// One expression for each column of the sink: the query's column in its place, cast where Flink would, else NULL.
fn assign(plan: &LogicalPlan, target: &Target<'_>, functions: &FunctionSet) -> Result<Vec<Expr>> {
    let schema = target.table.sink_schema();
    check_target(target)?;
    let constant = |name: &str| target.partition.iter().find(|part| part.column == name).map(|part| part.value.clone());
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
        let position = given.iter().position(|column| *column == index);
        let (value, from) = match position {
            Some(position) => {
                let (qualifier, field) = query.qualified_field(position);
                (Expr::Column((qualifier, field).into()), Arc::clone(field))
            }
            None => {
                let value =
                    constant(field.name()).unwrap_or_else(|| Expr::Literal(datafusion_common::ScalarValue::Null, None));
                let from = value.to_field(query.as_ref()).map_err(unwrap)?.1;
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
        // The value of a partition is written as text in many a script, whatever the column's type.
        let is_partition = target.partition.iter().any(|part| part.column == *field.name());
        let is_constant = is_partition || position.is_some_and(|position| is_literal(plan, position));
        let from_type = match from_type {
            // A text literal is as long as it looks.
            SqlType::Varchar(length) if is_constant && matches!(to_type, SqlType::Char(_)) => SqlType::Char(length),
            other => other,
        };
        if !is_partition && !functions::assignable(&from_type, &to_type) {
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

/// Whether a column of the query is literals only.
fn is_literal(plan: &LogicalPlan, column: usize) -> bool {
    let literal = |expression: Option<&Expr>| match expression {
        Some(Expr::Alias(alias)) => matches!(*alias.expr, Expr::Literal(..)),
        other => matches!(other, Some(Expr::Literal(..))),
    };
    match plan {
        LogicalPlan::Values(values) => values.values.iter().all(|row| literal(row.get(column))),
        LogicalPlan::SubqueryAlias(alias) => is_literal(&alias.input, column),
        LogicalPlan::Projection(projection) => match projection.expr.get(column) {
            Some(Expr::Column(inner)) => {
                let below = projection.input.schema().maybe_index_of_column(inner);
                below.is_some_and(|column| is_literal(&projection.input, column))
            }
            other => literal(other),
        },
        _ => false,
    }
}

/// # Errors
/// If a column is named twice, or a static partition is none of the table's.
fn check_target(target: &Target<'_>) -> Result<()> {
    let name = &target.table.name;
    for (index, (column, span)) in target.columns.iter().enumerate() {
        if target.columns[..index].iter().any(|(earlier, _)| earlier == column) {
            return Err(Error::sql(format!("column '{column}' of '{name}' is named twice")).at(*span));
        }
    }
    for part in &target.partition {
        sink_column(target.table, &part.column, part.span)?;
        if target.table.partitioned_by.contains(&part.column) {
            continue;
        }
        let error = Error::sql(format!("column '{}' is no partition column of '{name}'", part.column)).at(part.span);
        return Err(match target.table.partitioned_by.as_slice() {
            [] => error.hint("the table is not PARTITIONED BY anything"),
            columns => error.hint(format!("it is PARTITIONED BY ({})", columns.join(", "))),
        });
    }
    Ok(())
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
