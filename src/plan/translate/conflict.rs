//! Rows of one primary key before a sink that has one: whether they must be told apart, and how.

use datafusion_expr::{Expr, LogicalPlan};

use super::calc::column_index;
use super::sink::Target;
use super::{Facts, Translation};
use crate::catalog::TableDefinition;
use crate::changelog::ChangelogMode;
use crate::error::{Error, Result};
use crate::plan::stream::{Distribution, Edge, NodeId, NodeKind};
use crate::types::{OnConflict, SqlType};

impl Translation<'_> {
    /// The rows of `prepared`, which go into `target`, with one row a primary key. Nothing is added where the query tells
    /// its rows apart by that key already, or where nobody asks for it: the table has no key, or takes the rows that go as
    /// well as those that come.
    ///
    /// `assigned` are the columns of `prepared` over those of `plan`, which is `input`.
    pub(super) fn one_row_a_key(
        &mut self,
        input: NodeId,
        prepared: NodeId,
        plan: &LogicalPlan,
        assigned: &[Expr],
        target: &Target<'_>,
        accepts: ChangelogMode,
    ) -> Result<NodeId> {
        let table = target.table;
        let schema = table.sink_schema();
        let key: Vec<usize> = table.primary_key.iter().filter_map(|name| schema.index_of(name).ok()).collect();
        let append_only_input = self.node(prepared).mode.is_append_only();
        let conflict = match target.on_conflict {
            _ if key.is_empty() || self.settings.batch => return Ok(prepared),
            // The last of rows that only come is what the table shows anyway.
            None | Some(OnConflict::Deduplicate) if append_only_input => return Ok(prepared),
            Some(conflict) => conflict,
            None if accepts.is_upsert() => OnConflict::Deduplicate,
            None => return Ok(prepared),
        };
        if let Some(told_apart) = &self.node(input).upsert_key {
            let same = |column: &usize| {
                told_apart.iter().any(|of| self.carries(plan, &assigned[*column], *of, table, *column))
            };
            if told_apart.len() == key.len() && key.iter().all(same) {
                return Ok(prepared);
            }
        }
        if conflict != OnConflict::Deduplicate {
            self.require_watermarks(prepared, conflict)?;
        }
        let mut facts = Facts::like(self.node(prepared));
        // What came first stays the first.
        facts.mode = if append_only_input { ChangelogMode::APPEND } else { ChangelogMode::RETRACT };
        facts.upsert_key = Some(key.clone());
        facts.rowtime = Vec::new();
        facts.proctime = Vec::new();
        facts.state = self.bound_by_idleness("every row that is there, by the table's primary key", "keys");
        let edge = Edge { from: prepared, distribution: Distribution::Hash(key.clone()) };
        let ttl_ms = self.settings.ttl_ms;
        let kind = NodeKind::UpsertMaterialize { key, conflict, append_only_input, emit_update_before: true, ttl_ms };
        Ok(self.add(kind, vec![edge], facts))
    }

    /// Whether a column of the table holds column `of` of the query: as it is, or in a type in which different values stay
    /// different.
    fn carries(&self, plan: &LogicalPlan, value: &Expr, of: usize, table: &TableDefinition, column: usize) -> bool {
        let mut inner = value;
        while let Expr::ScalarFunction(function) = inner
            && let [argument] = function.args.as_slice()
        {
            inner = argument;
        }
        let from = SqlType::of_field(plan.schema().field(of));
        let to = SqlType::of_field(table.sink_schema().field(column));
        column_index(inner, plan.schema()) == Some(of) && keeps_apart(&from, &to)
    }

    /// # Errors
    /// If a table that is read has no watermark: there would be no moment at which to ask for conflicts.
    fn require_watermarks(&self, from: NodeId, conflict: OnConflict) -> Result<()> {
        let node = self.node(from);
        if let NodeKind::Source { table, .. } = &node.kind
            && table.watermark.is_none()
        {
            return Err(Error::sql(format!(
                "ON CONFLICT DO {} needs a watermark on every table that is read, and '{}' has none",
                conflict.word(),
                table.name
            ))
            .hint("declare WATERMARK FOR a column in it, or write ON CONFLICT DO DEDUPLICATE"));
        }
        node.inputs.iter().try_for_each(|edge| self.require_watermarks(edge.from, conflict))
    }
}

/// Whether no two values of one type become one in the other.
fn keeps_apart(from: &SqlType, to: &SqlType) -> bool {
    let whole = |sql_type: &SqlType| {
        let all = [SqlType::TinyInt, SqlType::SmallInt, SqlType::Int, SqlType::BigInt];
        all.iter().position(|known| known == sql_type)
    };
    match (from, to) {
        (SqlType::Varchar(from), SqlType::Varchar(to)) => from <= to,
        _ => from == to || whole(from).zip(whole(to)).is_some_and(|(from, to)| from <= to),
    }
}
