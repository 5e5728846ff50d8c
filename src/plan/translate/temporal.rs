//! Temporal joins: which time is asked for, which key and which time say what a version is.

use std::sync::Arc;

use arrow::datatypes::{DataType, Field, Schema};
use datafusion_common::{Column, DFSchema, DFSchemaRef};
use datafusion_expr::utils::{conjunction, split_conjunction_owned};
use datafusion_expr::{BinaryExpr, Expr, LogicalPlan, Operator, UserDefinedLogicalNodeCore};

use super::calc::column_index;
use super::join::same_type;
use super::{Facts, Translation};
use crate::changelog::ChangelogMode;
use crate::error::{Error, Result};
use crate::plan::error::{span_in, unwrap};
use crate::plan::stream::{Distribution, Edge, JoinSide, NodeId, NodeKind, StateBound};
use crate::plan::versions::TemporalNode;
use crate::types::{SqlType, Versions};

/// The column of a versioned table that says whether a version passes the table's filter.
const PASSES: &str = "__passes";

/// A versioned table as the join reads it.
struct Table {
    node: NodeId,
    /// Its columns, and the filter's verdict behind them if there is a filter.
    schema: DFSchemaRef,
    filtered: bool,
}

/// Which version a left row meets.
struct Which {
    times: Option<[usize; 2]>,
    versions: Versions,
    table_first: bool,
}

impl Translation<'_> {
    pub(super) fn temporal_join(&mut self, join: &TemporalNode) -> Result<NodeId> {
        let left = self.relation(&join.left)?;
        let left_schema = Arc::clone(join.left.schema());
        let table = self.versioned(&join.right)?;
        let place = |error: Error| error.at(span_in(&join.time));
        let (equal, mut rest) = equalities(join.condition.clone(), &left_schema, &table.schema);
        let which = self.which(join, left, &table, &equal).map_err(place)?;
        let key = match which.versions {
            Versions::All => None,
            _ => Some(self.primary_key(&table, &equal).map_err(place)?),
        };
        let (mut left_keys, mut right_keys) = (Vec::new(), Vec::new());
        for (of_left, of_right) in equal {
            let (of_left, of_right) = same_type(of_left, &left_schema, of_right, &table.schema)?;
            let column = column_index(&of_right, &table.schema);
            // What is no part of the key may differ from version to version: it is asked of the version found.
            if key.as_ref().is_none_or(|key| column.is_some_and(|column| key.contains(&column))) {
                left_keys.push(of_left);
                right_keys.push(of_right);
            } else {
                rest.push(Expr::BinaryExpr(BinaryExpr::new(Box::new(of_left), Operator::Eq, Box::new(of_right))));
            }
        }
        if table.filtered {
            rest.push(Expr::Column(Column::from_name(PASSES)));
        }
        let (left_node, left_side) = self.join_input(left, &left_schema, left_keys)?;
        let (right_node, right_side) = self.join_input(table.node, &table.schema, right_keys)?;
        let edge = |from: NodeId, side: &JoinSide| Edge { from, distribution: Distribution::Hash(side.keys.clone()) };
        let edges = vec![edge(left_node, &left_side), edge(right_node, &right_side)];
        let facts = self.temporal_facts(join, [left, table.node], &left_side, &which);
        let condition = conjunction(rest);
        let pairs = match &condition {
            Some(_) => Arc::new(left_schema.join(&table.schema).map_err(unwrap)?),
            None => Arc::new(DFSchema::empty()),
        };
        let fields = UserDefinedLogicalNodeCore::schema(join).inner();
        let Which { times, versions, table_first } = which;
        let sides = [left_side, right_side];
        let (outer, ttl_ms) = (join.outer, self.settings.ttl_ms);
        let node = NodeKind::TemporalJoin { outer, sides, times, versions, table_first, ttl_ms, condition, pairs };
        let mut facts = facts;
        facts.schema = Arc::clone(fields);
        if !table.filtered {
            return Ok(self.add(node, edges, facts));
        }
        // The verdict comes out too, and is dropped.
        let wide: Vec<_> = fields.fields().iter().chain(table.schema.fields().last()).cloned().collect();
        facts.schema = Arc::new(Schema::new(wide));
        let id = self.add(node, edges, facts);
        let shown = left_schema.columns().into_iter().chain(table.schema.columns()).take(fields.fields().len());
        let shown = shown.map(Expr::Column).collect();
        let wide = Arc::new(left_schema.join(&table.schema).map_err(unwrap)?);
        self.project(id, wide, None, shown, Arc::clone(fields))
    }

    fn temporal_facts(&self, join: &TemporalNode, inputs: [NodeId; 2], left_side: &JoinSide, which: &Which) -> Facts {
        let left = self.node(inputs[0]);
        let mut facts = Facts::plain(Arc::clone(UserDefinedLogicalNodeCore::schema(join).inner()));
        if left.mode.is_append_only() {
            facts.rowtime = left.rowtime.clone();
            facts.proctime = left.proctime.clone();
        } else {
            facts.mode = ChangelogMode::RETRACT;
        }
        if which.versions != Versions::All {
            let own = |key: &Vec<usize>| key.iter().all(|column| *column < left_side.width);
            facts.upsert_key = left.upsert_key.clone().filter(own);
        }
        let kept = match which {
            Which { versions: Versions::ByTime, .. } => {
                "the version of each key that is valid at the watermark, and later ones; left rows wait for the watermark"
            }
            Which { versions: Versions::Latest, .. } => "the current row of each key of the table",
            Which { versions: Versions::All, .. } => "all rows of the table",
        };
        facts.state = match (which.table_first, self.settings.ttl_ms) {
            (true, _) => StateBound::Bounded(format!("{kept}; the table ends")),
            (false, 0) => StateBound::Unbounded(kept.into()),
            (false, ttl) => StateBound::Bounded(format!("{kept}; keys of the table idle for {ttl} ms expire")),
        };
        facts
    }

    /// The table whose versions are asked for. Its filter is not applied to the changes, which would leave an old version
    /// standing where a new one does not pass: it is asked of the version that is found.
    fn versioned(&mut self, plan: &LogicalPlan) -> Result<Table> {
        let input = match plan {
            LogicalPlan::SubqueryAlias(alias) => alias.input.as_ref(),
            LogicalPlan::Projection(projection) => projection.input.as_ref(),
            LogicalPlan::Filter(filter) => filter.input.as_ref(),
            other => other,
        };
        if !has_filter(plan) {
            return Ok(Table { node: self.relation(plan)?, schema: Arc::clone(plan.schema()), filtered: false });
        }
        let inner = match has_filter(input) {
            true => self.versioned(input)?,
            false => Table { node: self.relation(input)?, schema: Arc::clone(input.schema()), filtered: false },
        };
        let own = plan.schema().iter().map(|(qualifier, field)| (qualifier.cloned(), Arc::clone(field)));
        let verdict = (None, Arc::new(Field::new(PASSES, DataType::Boolean, true)));
        let schema = DFSchema::new_with_metadata(own.chain([verdict]).collect(), Default::default());
        let schema = Arc::new(schema.map_err(unwrap)?);
        let passes = || Expr::Column(Column::from_name(PASSES));
        let columns = || input.schema().columns().into_iter().map(Expr::Column);
        let shown: Vec<Expr> = match plan {
            LogicalPlan::Projection(projection) => projection.expr.iter().cloned().chain([passes()]).collect(),
            LogicalPlan::Filter(filter) => {
                let before = inner.filtered.then(passes);
                let verdict = before.into_iter().fold(filter.predicate.clone(), Expr::and);
                columns().chain([verdict.alias(PASSES)]).collect()
            }
            _ => return Ok(Table { node: inner.node, schema, filtered: true }),
        };
        let node = self.project(inner.node, inner.schema, None, shown, Arc::clone(schema.inner()))?;
        Ok(Table { node, schema, filtered: true })
    }

    /// By which clock versions are told apart.
    fn which(&self, join: &TemporalNode, left: NodeId, table: &Table, equal: &[(Expr, Expr)]) -> Result<Which> {
        if equal.is_empty() {
            return Err(Error::sql("the temporal join has no key")
                .hint("compare the versioned table's primary key: ON a.key = t.key"));
        }
        let column = column_index(&join.time, join.left.schema());
        let of = |columns: &[usize]| column.filter(|column| columns.contains(column));
        let (node, right) = (self.node(left), self.node(table.node));
        let versions =
            |id: NodeId| self.windows.get(&id).map(|windows| windows.versions.as_slice()).unwrap_or_default();
        if let Some(time) = of(&node.rowtime).or_else(|| of(versions(left))) {
            let Some(from) = right.rowtime.iter().chain(versions(table.node)).copied().min() else {
                return Err(Error::sql(
                    "the versioned table has no time attribute: nothing says from when on a version is valid",
                )
                .hint("declare WATERMARK FOR a column in its CREATE TABLE, and select that column in a view"));
            };
            let types = [node.schema.field(time), right.schema.field(from)].map(SqlType::of_field);
            if types[0] != types[1] {
                return Err(Error::sql(format!(
                    "the left row's time is {}, and the versions' time '{}' is {}",
                    types[0],
                    right.schema.field(from).name(),
                    types[1]
                ))
                .hint("both must be time attributes of one type"));
            }
            return Ok(Which { times: Some([time, from]), versions: Versions::ByTime, table_first: false });
        }
        if of(&node.proctime).is_none() {
            return Err(Error::sql("FOR SYSTEM_TIME AS OF takes a time attribute of the left table").hint(
                "name a column with a WATERMARK, or PROCTIME(); an expression or a CAST of one is a plain timestamp",
            ));
        }
        let table_first = self.ends(table.node)?;
        let keyed = self.primary_key(table, equal).is_ok();
        let versions = if keyed { Versions::Latest } else { Versions::All };
        let all_rows_stay = table_first && right.mode.is_append_only();
        if versions == Versions::All && !all_rows_stay {
            self.primary_key(table, equal)?;
        }
        Ok(Which { times: None, versions, table_first })
    }

    /// Whether all that a node reads ends.
    fn ends(&self, id: NodeId) -> Result<bool> {
        if let NodeKind::Source { table, .. } = &self.node(id).kind {
            return Ok(self.facts.source(table)?.bounded);
        }
        self.node(id).inputs.iter().try_fold(true, |all, edge| Ok(all && self.ends(edge.from)?))
    }

    /// The columns of the table's primary key, all of which the condition compares.
    fn primary_key(&self, table: &Table, equal: &[(Expr, Expr)]) -> Result<Vec<usize>> {
        let node = self.node(table.node);
        let Some(key) = node.upsert_key.clone().filter(|key| !key.is_empty()) else {
            return Err(Error::sql("the temporal join compares no primary key of the versioned table: nothing says which rows are versions of one")
                .hint("declare PRIMARY KEY (…) NOT ENFORCED, or keep the last row of each key with ROW_NUMBER() … = 1; compare all of the key"));
        };
        let compared: Vec<usize> = equal.iter().filter_map(|(_, right)| column_index(right, &table.schema)).collect();
        if let Some(missing) = key.iter().find(|column| !compared.contains(column)) {
            let name = |column: &usize| node.schema.field(*column).name().clone();
            let all = key.iter().map(name).collect::<Vec<_>>().join(", ");
            return Err(Error::sql(format!(
                "the temporal join does not compare '{}' of the versioned table's primary key ({all})",
                name(missing)
            ))
            .hint("every column of the key must equal a column of the left table"));
        }
        Ok(key)
    }
}

/// Whether a relation is a filtered one, perhaps projected.
fn has_filter(plan: &LogicalPlan) -> bool {
    match plan {
        LogicalPlan::SubqueryAlias(alias) => has_filter(&alias.input),
        LogicalPlan::Projection(projection) => has_filter(&projection.input),
        LogicalPlan::Filter(_) => true,
        _ => false,
    }
}

/// The equalities between both sides in a condition, left side first; and the rest.
fn equalities(condition: Option<Expr>, left: &DFSchema, right: &DFSchema) -> (Vec<(Expr, Expr)>, Vec<Expr>) {
    let over = |schema: &DFSchema, expression: &Expr| {
        let columns = expression.column_refs();
        !columns.is_empty() && columns.into_iter().all(|column| schema.has_column(column))
    };
    let (mut equal, mut rest) = (Vec::new(), Vec::new());
    for part in condition.into_iter().flat_map(split_conjunction_owned) {
        match part {
            Expr::BinaryExpr(BinaryExpr { left: a, op: Operator::Eq, right: b })
                if over(left, &a) && over(right, &b) =>
            {
                equal.push((*a, *b));
            }
            Expr::BinaryExpr(BinaryExpr { left: a, op: Operator::Eq, right: b })
                if over(right, &a) && over(left, &b) =>
            {
                equal.push((*b, *a));
            }
            other => rest.push(other),
        }
    }
    (equal, rest)
}
