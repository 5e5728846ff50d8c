//! Planning: statements to a stream graph.
//!
//! ```text
//! SELECT `user`, COUNT(*) FROM clicks GROUP BY `user`
//!   hints, inline  OPTIONS hints, functions in SQL    (rewritten before binding)
//!   provider   names → tables, views, functions       (binding is the library's, over our catalog)
//!   typing     literals, CAST, CASE, UNION, VALUES    (Flink's types)
//!   correlate  UNNEST and what else is computed from the row at its left
//!   ranking    conditions on ranks, LIMIT              (Top-N)
//!   versions   FOR SYSTEM_TIME AS OF                  (temporal joins)
//!   grouping_sets  GROUPING SETS, ROLLUP, CUBE         (rows repeated for each set)
//!   optimize   subqueries to joins, push filters,     (the rules that are sound for streams)
//!              prune columns
//!   translate  relations → nodes                      Source → GroupAggregate → Collect
//!   modes      who needs -U                           [I,UB,UA]
//! ```
//!
//! A statement set is planned as one graph: equal relations become one node, a table is scanned once.
//!
//! To add a relation: a node in `stream.rs`, an arm in `translate/mod.rs`, a line in `explain.rs`, and its operator.

mod aliases;
mod alter;
mod arrival_order;
mod columns_first;
mod computed_subqueries;
mod correlate;
mod declare;
mod display;
mod error;
mod expand;
mod explain;
mod expressions;
mod fingerprint;
mod forms;
mod group_windows;
mod grouping_sets;
mod hints;
mod inline;
mod late;
mod lateral;
mod lateral_top;
mod like;
mod marks;
mod missing;
mod modes;
mod name;
mod named_windows;
mod nodes;
mod optimize;
mod pinned;
mod provider;
mod rank_node;
mod ranking;
mod relations;
mod rewrite;
mod sets;
mod settle;
mod simplify;
mod state_ttl;
pub mod stream;
mod strict;
mod subqueries;
mod translate;
mod typing;
mod unnest;
mod using;
mod values;
mod versions;

#[cfg(test)]
mod tests;

use std::sync::Arc;

pub use alter::alter_table;
pub use declare::{query_columns, table as declare_table, view as declare_view, view_query};
pub use explain::{explain, explain_measured};
pub use inline::declare_function;
pub use name::{name_parts, qualify, qualify_database};
pub use strict::beyond_flink;

use crate::catalog::{Catalog, Relation, TableDefinition};
use crate::changelog::ChangelogMode;
use crate::error::{Error, Result, Span};
use crate::functions::FunctionSet;
use crate::sql::Insert;
use crate::types::{MiniBatch, OnConflict, WatermarkPolicy};
use datafusion_expr::LogicalPlan;
use provider::Names;
use sqlparser::ast::{Query, Spanned};
use stream::{NodeKind, StreamGraph};
use translate::{StaticPartition, Target, Translation};

/// Options of a session that change plans.
#[derive(Debug, Clone, Default)]
pub struct PlanSettings {
    /// `execution.runtime-mode = batch`: inputs are read to their end, only final rows come out.
    pub batch: bool,
    /// `table.exec.mini-batch.*`, if enabled.
    pub mini_batch: Option<MiniBatch>,
    /// `table.optimizer.agg-phase-strategy`
    pub phases: AggregatePhases,
    /// `table.optimizer.distinct-agg.split.*`: into how many parts different values are split, if they are.
    pub distinct_buckets: Option<i32>,
    /// `table.exec.state.ttl` in milliseconds; 0: never.
    pub ttl_ms: u64,
    /// `table.exec.source.idle-timeout`, `table.exec.event-time.*`: for tables that say nothing of their own.
    pub watermarks: WatermarkPolicy,
    /// `table.exec.source.cdc-events-duplicate`: sources of changes may say the same twice.
    pub duplicate_changes: bool,
    /// `table.sql.extensions`: SQL that Flink refuses is answered.
    pub extensions: bool,
    /// `table.exec.over.any-window`: `OVER` also where Flink refuses it.
    pub any_window: bool,
    /// `table.exec.consistent-results`: only results of a prefix of every input become visible.
    pub consistent_results: bool,
    /// `table.exec.emit.*`.
    pub emit: EmitSettings,
    /// `table.exec.late-data.table`: the table into which late rows of window table functions go.
    pub late_table: Option<String>,
    /// `table.exec.sink.not-null-enforcer = DROP`: rows with NULL in a `NOT NULL` column of a sink are passed over.
    pub drop_null_rows: bool,
}

/// `table.optimizer.agg-phase-strategy`: in how many phases rows are added up in bundles.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum AggregatePhases {
    /// In two without keys, otherwise in one.
    #[default]
    Auto,
    /// By key only.
    One,
    /// Where they are, then by key.
    Two,
}

/// `table.exec.emit.*`: whether group windows are told before they end, or take late rows.
#[derive(Debug, Clone, Default)]
pub struct EmitSettings {
    /// `early-fire.enabled`
    pub early_fire: bool,
    /// `early-fire.delay` in milliseconds, if it is set; 0: at every row.
    pub early_delay_ms: Option<u64>,
    /// `late-fire.enabled`
    pub late_fire: bool,
    /// `late-fire.delay` in milliseconds, if it is set; 0: at every row.
    pub late_delay_ms: Option<u64>,
    /// `allow-lateness` in milliseconds, if it is set.
    pub lateness_ms: Option<u64>,
    /// `any-window`: windows of table functions too, where Flink refuses it.
    pub any_window: bool,
}

/// What a source is, as far as plans depend on it.
#[derive(Debug, Clone, Copy)]
pub struct SourceFacts {
    /// The kinds it delivers.
    pub mode: ChangelogMode,
    /// Whether it ends.
    pub bounded: bool,
}

/// Answers for the connectors, which planning does not know.
pub trait TableFacts {
    /// # Errors
    /// If the table cannot be read.
    fn source(&self, table: &Arc<TableDefinition>) -> Result<SourceFacts>;

    /// The kinds a sink takes.
    ///
    /// # Errors
    /// If the table cannot be written.
    fn sink_accepts(&self, table: &Arc<TableDefinition>) -> Result<ChangelogMode>;
}

/// Plans statements against a catalog.
pub struct Planner<'a> {
    /// What names stand for.
    pub catalog: &'a Catalog,
    /// Built-in and user functions.
    pub functions: Arc<FunctionSet>,
    /// Options.
    pub settings: PlanSettings,
    /// The connectors' side.
    pub facts: &'a dyn TableFacts,
}

impl Planner<'_> {
    /// The plan of a query whose rows are handed out.
    ///
    /// # Errors
    /// Whatever is wrong with the query.
    pub fn query(&self, query: &Query) -> Result<StreamGraph> {
        let plan = self.bind(query)?;
        let mut translation = Translation::new(&self.settings, self.facts, self.late_table()?);
        translation.state_ttl = state_ttl::state_ttl(query)?;
        translation.announce(&plan)?;
        translation.collect(&plan)?;
        self.settle(translation.graph)
    }

    /// The plan of one or several inserts, as one job.
    ///
    /// # Errors
    /// Whatever is wrong with them.
    pub fn inserts(&self, inserts: &[Insert]) -> Result<StreamGraph> {
        let mut bound = Vec::with_capacity(inserts.len());
        let mut translation = Translation::new(&self.settings, self.facts, self.late_table()?);
        for insert in inserts {
            let table = self.target(insert)?;
            if insert.overwrite {
                return Err(
                    Error::sql("INSERT OVERWRITE is not supported yet").at(Span::from_ast(insert.target.span()))
                );
            }
            let plan = self.bind(&insert.source)?;
            translation.announce(&plan)?;
            bound.push((insert, table, plan));
        }
        for (insert, table, plan) in &bound {
            translation.state_ttl = state_ttl::state_ttl(&insert.source)?;
            let column = |name: &sqlparser::ast::Ident| (name.value.clone(), Span::from_ast(name.span));
            let names = Names::new(self.catalog, Arc::clone(&self.functions));
            let partition = insert.partition.iter().map(|(name, value)| {
                let empty = datafusion_common::DFSchema::empty();
                let value = names.bind_expression(&value.to_string(), &empty)?;
                Ok(StaticPartition { column: name.value.clone(), value, span: Span::from_ast(name.span) })
            });
            let target = Target {
                table,
                columns: insert.columns.iter().map(column).collect(),
                partition: partition.collect::<Result<Vec<_>>>()?,
                on_conflict: insert.on_conflict.as_deref().and_then(OnConflict::from_word),
            };
            translation
                .insert(plan, &target, &self.functions)
                .map_err(|error| error.at(Span::from_ast(insert.target.span())))?;
        }
        self.settle(translation.graph)
    }

    fn bind(&self, query: &Query) -> Result<LogicalPlan> {
        let plan = Names::new(self.catalog, Arc::clone(&self.functions)).bind_result(query)?;
        if !self.settings.any_window {
            strict::check_windows(&plan)?;
        }
        let plan = versions::apply(plan)
            .and_then(|plan| ranking::apply(plan, self.settings.batch))
            .and_then(grouping_sets::apply)
            .and_then(|plan| if self.settings.late_table.is_some() { late::keep_columns(plan) } else { Ok(plan) })
            .map_err(error::unwrap)?;
        optimize::optimize(plan)
    }

    /// The table into which late rows go, if the session names one.
    fn late_table(&self) -> Result<Option<Arc<TableDefinition>>> {
        let Some(name) = self.settings.late_table.as_ref().filter(|_| !self.settings.batch) else { return Ok(None) };
        let parts: Vec<&str> = name.split('.').map(|part| part.trim_matches('`')).collect();
        let found = self.catalog.qualify(&parts).map(|name| self.catalog.get(&name).cloned());
        match found {
            Ok(Some(Relation::Table(table))) => Ok(Some(table)),
            _ => Err(Error::sql(format!("there is no table '{name}' for late rows"))
                .hint("CREATE it, or RESET 'table.exec.late-data.table'")),
        }
    }

    fn settle(&self, mut graph: StreamGraph) -> Result<StreamGraph> {
        simplify::merge_calcs(&mut graph)?;
        simplify::narrow_unnests(&mut graph)?;
        let mut accepted = Vec::new();
        for node in &graph.nodes {
            if let NodeKind::Sink { table, .. } = &node.kind {
                accepted.push((Arc::clone(table), self.facts.sink_accepts(table)?));
            }
        }
        modes::settle(&mut graph, &|kind| match kind {
            NodeKind::Sink { table, .. } => accepted
                .iter()
                .find(|(other, _)| Arc::ptr_eq(other, table))
                .map_or(ChangelogMode::APPEND, |(_, mode)| *mode),
            _ => ChangelogMode::RETRACT,
        });
        Ok(graph)
    }

    fn target(&self, insert: &Insert) -> Result<Arc<TableDefinition>> {
        let span = Span::from_ast(insert.target.span());
        let name = qualify(self.catalog, &insert.target)?;
        match self.catalog.get(&name) {
            Some(Relation::Table(table)) if insert.hints.is_empty() => Ok(Arc::clone(table)),
            Some(Relation::Table(table)) => {
                let options = insert.hints.iter().map(|entry| (entry.key.clone(), entry.value.clone()));
                Ok(hints::with_options(table, &options.collect::<Vec<_>>()))
            }
            Some(Relation::View(_)) => Err(Error::sql(format!("'{}' is a view and cannot be written", name.object))
                .at(span)
                .hint("INSERT INTO a table")),
            None => Err(self.catalog.not_found(&name).at(span)),
        }
    }
}
