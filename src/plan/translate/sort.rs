//! `ORDER BY`: by event time over a stream, by anything over what ends.

use datafusion_expr::{Limit, Sort};

use super::{Facts, Translation, rank};
use crate::changelog::ChangelogMode;
use crate::error::{Error, Result};
use crate::plan::error::{span_in, unwrap};
use crate::plan::ranking::skip_and_fetch;
use crate::plan::stream::{Distribution, Edge, NodeId, NodeKind, NodeParallelism, StateBound};
use crate::types::SortColumn;

impl Translation<'_> {
    /// `ORDER BY` without `LIMIT`.
    pub(super) fn sort(&mut self, sort: &Sort) -> Result<NodeId> {
        let input = self.relation(&sort.input)?;
        if self.settings.batch {
            return self.sort_by_columns(input, sort);
        }
        let node = self.node(input);
        let first = sort.expr.first().filter(|first| first.asc);
        let time = first.and_then(|first| super::column_index(&first.expr, sort.input.schema()));
        let by_arrival = sort.expr.len() == 1 && time.is_some_and(|time| node.proctime.contains(&time));
        let rowtime = time.filter(|time| node.rowtime.contains(time));
        if by_arrival && rowtime.is_none() {
            return Ok(input);
        }
        let Some(time) = rowtime else {
            let place = sort.expr.first().and_then(|first| span_in(&first.expr));
            return Err(Error::sql("ORDER BY over a stream must begin with an event-time attribute, ascending")
                .at(place)
                .hint("add LIMIT for the first rows by any order; or SET 'execution.runtime-mode' = 'batch'"));
        };
        if !node.mode.is_append_only() {
            return Err(Error::sql("ORDER BY event time needs rows that only come, and here rows are also updated")
                .hint("add LIMIT, or order before the rows are aggregated"));
        }
        let order = rank::order(&sort.expr, sort.input.schema())?;
        let mut facts = Facts::like(node);
        facts.state = StateBound::Bounded("rows that the watermark has not passed".into());
        facts.parallelism = NodeParallelism::Single;
        let edge = Edge { from: input, distribution: Distribution::Single };
        let id = self.add(NodeKind::TemporalSort { time, order }, vec![edge], facts);
        if let Some(windows) = self.windows.get(&input).cloned() {
            self.windows.insert(id, windows);
        }
        Ok(id)
    }

    /// `ORDER BY` over a bounded input; expressions are computed before it and dropped after it.
    fn sort_by_columns(&mut self, input: NodeId, sort: &Sort) -> Result<NodeId> {
        let schema = sort.input.schema();
        let columns = schema.columns();
        let mut all: Vec<_> = columns.iter().cloned().map(datafusion_expr::Expr::Column).collect();
        let mut order = Vec::with_capacity(sort.expr.len());
        for (index, key) in sort.expr.iter().enumerate() {
            let column = super::column_index(&key.expr, schema).unwrap_or(all.len());
            if column == all.len() {
                all.push(key.expr.clone().alias(format!("__order_{index}")));
            }
            order.push(SortColumn { column, descending: !key.asc, nulls_first: key.nulls_first });
        }
        let plan = datafusion_expr::LogicalPlanBuilder::from(sort.input.as_ref().clone());
        let prepared = plan.project(all.clone()).and_then(|plan| plan.build()).map_err(unwrap)?;
        let computed = std::sync::Arc::clone(prepared.schema());
        let wide = self.project(input, schema.clone(), None, all, computed.inner().clone())?;
        let last = sort.fetch.map_or(u64::MAX, |fetch| fetch as u64);
        let sorted = self.whole(wide, order, (1, last))?;
        let shown = computed.columns().into_iter().take(columns.len()).map(datafusion_expr::Expr::Column).collect();
        self.project(sorted, computed, None, shown, schema.inner().clone())
    }

    /// `LIMIT` over a bounded input.
    pub(super) fn cut(&mut self, limit: &Limit) -> Result<NodeId> {
        let input = self.relation(&limit.input)?;
        let (skip, fetch) = skip_and_fetch(limit).map_err(unwrap)?;
        self.whole(input, Vec::new(), (skip + 1, fetch.map_or(u64::MAX, |fetch| skip.saturating_add(fetch))))
    }

    /// A node that has all of a bounded input before it answers.
    fn whole(&mut self, input: NodeId, order: Vec<SortColumn>, range: (u64, u64)) -> Result<NodeId> {
        let mut facts = Facts::like(self.node(input));
        facts.mode = ChangelogMode::APPEND;
        facts.state = StateBound::Bounded("all rows, until the input ends".into());
        facts.parallelism = NodeParallelism::Single;
        let edge = Edge { from: input, distribution: Distribution::Single };
        Ok(self.add(NodeKind::Sort { order, range }, vec![edge], facts))
    }
}
