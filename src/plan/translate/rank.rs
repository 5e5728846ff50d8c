//! Top-N, `LIMIT` and deduplication: one relation, and the operator that suits what comes.

use std::sync::Arc;

use arrow::datatypes::{Schema, SchemaRef};
use datafusion_common::{DFSchema, DFSchemaRef};
use datafusion_expr::{Expr, LogicalPlan, SortExpr, UserDefinedLogicalNodeCore};

use super::calc::column_index;
use super::monotone::Motion;
use super::{Facts, Translation, Windows};
use crate::changelog::{ChangelogMode, Kind};
use crate::error::{Error, Result};
use crate::plan::error::unwrap;
use crate::plan::rank_node::RankNode;
use crate::plan::stream::{NodeId, NodeKind, StateBound};
use crate::types::{RankFunction, RankInput, SortColumn, WindowColumn};

/// A Top-N with its columns as indices.
struct Top {
    input: NodeId,
    partition: Vec<usize>,
    order: Vec<SortColumn>,
    function: RankFunction,
    range: (u64, u64),
    /// Whether the rank is shown.
    shown: bool,
    schema: SchemaRef,
}

impl Translation<'_> {
    /// A Top-N below a projection that does not read the rank: then it need not be told. Gives its node and columns.
    pub(super) fn unranked<'e>(
        &mut self,
        plan: &LogicalPlan,
        readers: impl Iterator<Item = &'e Expr>,
    ) -> Result<Option<(NodeId, DFSchemaRef)>> {
        let LogicalPlan::Extension(extension) = plan else { return Ok(None) };
        let Some(node) = extension.node.as_any().downcast_ref::<RankNode>() else { return Ok(None) };
        let schema = UserDefinedLogicalNodeCore::schema(node);
        let Some(rank) = schema.fields().len().checked_sub(1).filter(|_| node.rank.is_some()) else { return Ok(None) };
        if readers.flat_map(Expr::column_refs).any(|column| schema.maybe_index_of_column(column) == Some(rank)) {
            return Ok(None);
        }
        let without: Vec<_> = schema.iter().take(rank).map(|(q, field)| (q.cloned(), Arc::clone(field))).collect();
        let without = DFSchema::new_with_metadata(without, schema.metadata().clone()).map_err(unwrap)?;
        Ok(Some((self.rank(node, false)?, Arc::new(without))))
    }

    /// The rows of each partition whose rank is in the range, with the rank if it is `shown`.
    pub(super) fn rank(&mut self, node: &RankNode, shown: bool) -> Result<NodeId> {
        let input = self.relation(&node.input)?;
        let columns = node.input.schema();
        let partition = node.partition.iter().map(|expression| position(expression, columns));
        let shown = shown && node.rank.is_some();
        let schema = UserDefinedLogicalNodeCore::schema(node);
        let fields = schema.fields().iter().take(columns.fields().len() + usize::from(shown)).cloned();
        let top = Top {
            input,
            partition: partition.collect::<Result<_>>()?,
            order: order(&node.order, columns)?,
            function: node.function,
            range: node.range,
            shown,
            schema: Arc::new(Schema::new(fields.collect::<Vec<_>>())),
        };
        self.top(top)
    }

    fn top(&mut self, top: Top) -> Result<NodeId> {
        let node = self.node(top.input);
        let append = node.mode.is_append_only();
        let one = top.function == RankFunction::RowNumber && top.range == (1, 1);
        let by_arrival = match top.order.as_slice() {
            [] => true,
            [only] => node.proctime.contains(&only.column) && !node.rowtime.contains(&only.column),
            _ => false,
        };
        let by_time = matches!(top.order.as_slice(), [only] if node.rowtime.contains(&only.column));
        let latest = top.order.first().is_some_and(|only| only.descending);
        if !self.settings.batch && append {
            if self.over_windows(&top) {
                return self.window_rank(top, one && latest);
            }
            if one && by_time && !latest && self.settings.mini_batch.is_none() {
                return self.keep_first(top);
            }
        }
        let newest_first = one && append && latest && (by_time || by_arrival);
        let order = if by_arrival && append { Vec::new() } else { top.order.clone() };
        let changes = match (append, self.rises(&top)) {
            (true, _) => RankInput::Append,
            (false, true) => RankInput::Rising,
            (false, false) => RankInput::Retract,
        };
        self.general(top, order, changes, newest_first)
    }

    /// A Top-N that tells each change at once.
    fn general(&mut self, top: Top, order: Vec<SortColumn>, changes: RankInput, newest_first: bool) -> Result<NodeId> {
        let Top { input, partition, function, range, shown, schema, .. } = top;
        // A rank that cannot be another need not be told; one that enters from above must.
        let by_rank = (shown && range.0 < range.1) || range.0 > 1;
        let row_number = function == RankFunction::RowNumber;
        let mut facts = Facts::like(self.node(input));
        facts.schema = schema;
        let pushes_out = !(changes == RankInput::Append && order.is_empty() && !newest_first);
        facts.mode = match (changes, by_rank || range.1 == 1) {
            (RankInput::Append, _) if row_number && !pushes_out => ChangelogMode::APPEND,
            (RankInput::Append | RankInput::Rising, true) if row_number => ChangelogMode::RETRACT.without(Kind::Delete),
            (RankInput::Append, false) if row_number => ChangelogMode::APPEND.with(Kind::Delete),
            (RankInput::Retract, _) if !by_rank => ChangelogMode::APPEND.with(Kind::Delete),
            _ => ChangelogMode::RETRACT,
        };
        let rank = facts.schema.fields().len().saturating_sub(1);
        if row_number && range.0 == range.1 {
            facts.upsert_key = Some(partition.clone());
        } else if row_number && shown {
            facts.upsert_key = Some(partition.iter().copied().chain([rank]).collect());
        }
        let mut versions = Vec::new();
        if !facts.mode.is_append_only() {
            versions = std::mem::take(&mut facts.rowtime);
            facts.proctime.clear();
        }
        facts.state = self.rank_state(changes, range.1, partition.is_empty());
        let edge = self.keyed_edge(input, &partition, &mut facts);
        let kind = NodeKind::Rank {
            partition,
            order,
            function,
            range,
            by_rank,
            changes,
            newest_first,
            emit_update_before: true,
            ttl_ms: self.settings.ttl_ms,
        };
        let id = self.add(kind, vec![edge], facts);
        self.windows.insert(id, Windows { versions, ..Windows::default() });
        Ok(id)
    }

    fn rank_state(&self, changes: RankInput, last: u64, single: bool) -> StateBound {
        let rows = if changes == RankInput::Retract { "all rows".to_string() } else { format!("{last} rows") };
        match (self.settings.ttl_ms, changes) {
            (0, RankInput::Append | RankInput::Rising) if single => StateBound::Bounded(rows),
            (0, _) => StateBound::Unbounded(format!(
                "{rows} a partition, for ever; SET 'table.exec.state.ttl' would bound it"
            )),
            (ttl, _) => StateBound::Bounded(format!("{rows} a partition; partitions idle for {ttl} ms expire")),
        }
    }

    /// Whether an update of a row never moves it down or to another partition.
    fn rises(&self, top: &Top) -> bool {
        let key = self.node(top.input).upsert_key.as_deref().unwrap_or_default();
        let rises = |order: &SortColumn| match self.motion(top.input, order.column) {
            Motion::Constant => true,
            Motion::Increasing => order.descending,
            Motion::Decreasing => !order.descending,
            Motion::Any => false,
        };
        !top.order.is_empty()
            && top.function == RankFunction::RowNumber
            && top.partition.iter().all(|column| key.contains(column))
            && top.order.iter().all(rises)
    }

    /// Whether the partition holds the start and end of the windows that the rows are in.
    fn over_windows(&self, top: &Top) -> bool {
        let Some(windows) = self.windows.get(&top.input) else { return false };
        let has =
            |wanted| windows.columns.iter().any(|(column, which)| *which == wanted && top.partition.contains(column));
        has(WindowColumn::Start) && has(WindowColumn::End)
    }

    /// A Top-N of each window, told when the window has ended.
    fn window_rank(&mut self, top: Top, latest: bool) -> Result<NodeId> {
        let windows = self.windows.get(&top.input).cloned().unwrap_or_default();
        if windows.processing {
            return Err(Error::sql("a Top-N of windows of processing time is not supported")
                .hint("use windows of event time, or leave window_start and window_end out of PARTITION BY"));
        }
        let end = windows.columns.iter().find(|(_, which)| *which == WindowColumn::End).map(|(column, _)| *column);
        let end = end.ok_or_else(|| Error::bug("a window lost its end"))?;
        let time =
            |column: &usize| windows.times.contains(column) || windows.columns.contains(&(*column, WindowColumn::Time));
        let newest_first = latest && matches!(top.order.as_slice(), [only] if time(&only.column));
        let mut facts = Facts::like(self.node(top.input));
        facts.schema = top.schema;
        facts.mode = ChangelogMode::APPEND;
        facts.state = StateBound::Bounded("a window's rows go when the watermark passes its end".into());
        let edge = self.keyed_edge(top.input, &top.partition, &mut facts);
        let kind = NodeKind::WindowRank {
            partition: top.partition,
            window_end: end,
            local: windows.local,
            order: top.order,
            function: top.function,
            range: top.range,
            newest_first,
        };
        let id = self.add(kind, vec![edge], facts);
        self.windows.insert(id, windows);
        Ok(id)
    }

    /// The first row of each partition by event time, told once when no earlier one can come.
    fn keep_first(&mut self, top: Top) -> Result<NodeId> {
        let Some(time) = top.order.first().map(|order| order.column) else {
            return Err(Error::bug("a deduplication without an order"));
        };
        let mut facts = Facts::like(self.node(top.input));
        facts.schema = top.schema;
        facts.upsert_key = Some(top.partition.clone());
        facts.state = self.bound_by_idleness("one entry a key", "keys");
        let edge = self.keyed_edge(top.input, &top.partition, &mut facts);
        let kind = NodeKind::KeepFirst { partition: top.partition, time, ttl_ms: self.settings.ttl_ms };
        Ok(self.add(kind, vec![edge], facts))
    }
}

fn position(expression: &Expr, schema: &DFSchema) -> Result<usize> {
    column_index(expression, schema).ok_or_else(|| Error::bug(format!("'{expression}' is no column of a Top-N")))
}

/// An order by columns.
pub(super) fn order(sorts: &[SortExpr], schema: &DFSchema) -> Result<Vec<SortColumn>> {
    let one = |sort: &SortExpr| {
        let column = position(&sort.expr, schema)?;
        Ok(SortColumn { column, descending: !sort.asc, nulls_first: sort.nulls_first })
    };
    sorts.iter().map(one).collect()
}
