//! Window table functions, and what an aggregation makes of the windows below it.
//!
//! Over TUMBLE of event time an aggregation groups by the windows that the rows carry. Over HOP and CUMULATE each row
//! comes once, with the slice of time that tells all of its windows, if nothing in between looks at the windows. Those of
//! sessions, and of processing time, an aggregation finds itself, if it is by the very keys of the table function and
//! nothing in between looks at the windows: then no row waits, filters in between hold before the sessions (as in
//! Flink), and the time at which a row arrives is that of the aggregation.

use std::sync::Arc;

use datafusion_common::DFSchema;
use datafusion_expr::{Aggregate, BinaryExpr, Expr, Extension, LogicalPlan, Operator, UserDefinedLogicalNodeCore};

use super::calc::column_index;
use super::{Facts, Translation, Windows, forward, is_instant};
use crate::error::{Error, Result};
use crate::plan::EmitSettings;
use crate::plan::error::unwrap;
use crate::plan::nodes::{WINDOW_COLUMNS, WindowNode};
use crate::plan::stream::{Node, NodeId, NodeKind, StateBound};
use crate::types::{Emission, Firing, WindowColumn, WindowSpec, WindowTime};

/// What an aggregation makes of the windows below it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Grouping {
    /// It groups by windows as the rows carry them, if its keys say so.
    Carried,
    /// It merges the windows that the rows carry, each its own, into sessions with this gap.
    Merged(i64),
    /// It finds the windows of each row itself, from the slice of time that the row carries.
    Sliced(WindowSpec),
    /// It finds the windows of the moment itself.
    OfTheMoment(WindowSpec),
    /// The windows' bounds are keys like others, and groups never end.
    Plain,
}

/// A window table function below an aggregation, with nothing but projections and filters in between.
struct Below<'a> {
    window: &'a WindowNode,
    /// For each column which of the table function's it is.
    columns: Vec<Option<usize>>,
    /// Whether something in between computes with the windows.
    looked_at: bool,
    /// Columns of the table function that a filter allows one value.
    pinned: Vec<usize>,
}

impl Below<'_> {
    fn is_window(&self, column: usize) -> bool {
        self.columns[column].is_some_and(|column| column >= self.window.input.schema().fields().len())
    }

    fn looks(&self, expression: &Expr, schema: &DFSchema) -> bool {
        let mut columns =
            expression.column_refs().into_iter().filter_map(|column| schema.maybe_index_of_column(column));
        columns.any(|column| self.is_window(column))
    }

    fn find(plan: &LogicalPlan) -> Option<Below<'_>> {
        match plan {
            LogicalPlan::Extension(extension) => {
                let window = extension.node.as_any().downcast_ref::<WindowNode>()?;
                let columns = (0..window.schema().fields().len()).map(Some).collect();
                Some(Below { window, columns, looked_at: false, pinned: Vec::new() })
            }
            LogicalPlan::SubqueryAlias(alias) => Below::find(&alias.input),
            LogicalPlan::Filter(filter) => {
                let mut below = Below::find(&filter.input)?;
                let schema = filter.input.schema();
                below.looked_at |= below.looks(&filter.predicate, schema);
                let pinned = pinned(&filter.predicate, schema).into_iter().filter_map(|column| below.columns[column]);
                below.pinned.extend(pinned.collect::<Vec<_>>());
                Some(below)
            }
            LogicalPlan::Projection(projection) => {
                let mut below = Below::find(&projection.input)?;
                let schema = projection.input.schema();
                let sources: Vec<Option<usize>> = projection.expr.iter().map(|e| column_index(e, schema)).collect();
                let computed = projection.expr.iter().zip(&sources).filter(|(_, source)| source.is_none());
                let looked_at = computed.into_iter().any(|(expression, _)| below.looks(expression, schema));
                below.looked_at |= looked_at;
                below.columns = sources.into_iter().map(|source| below.columns[source?]).collect();
                Some(below)
            }
            _ => None,
        }
    }
}

/// Columns that a condition compares with a constant: `column = 5 AND …`.
fn pinned(condition: &Expr, schema: &DFSchema) -> Vec<usize> {
    match condition {
        Expr::BinaryExpr(BinaryExpr { left, op: Operator::And, right }) => {
            let mut columns = pinned(left, schema);
            columns.extend(pinned(right, schema));
            columns
        }
        Expr::BinaryExpr(BinaryExpr { left, op: Operator::Eq, right }) => match (left.as_ref(), right.as_ref()) {
            (column, Expr::Literal(..)) | (Expr::Literal(..), column) => {
                column_index(column, schema).into_iter().collect()
            }
            _ => Vec::new(),
        },
        _ => Vec::new(),
    }
}

/// The plan with the rows of its window table function coming at once.
fn provisional(plan: &LogicalPlan) -> Result<LogicalPlan> {
    if let LogicalPlan::Extension(extension) = plan
        && let Some(window) = extension.node.as_any().downcast_ref::<WindowNode>()
    {
        let node = Arc::new(window.provisional());
        return Ok(LogicalPlan::Extension(Extension { node }));
    }
    let inputs = plan.inputs().into_iter().map(provisional).collect::<Result<Vec<_>>>()?;
    plan.with_new_exprs(plan.expressions(), inputs).map_err(unwrap)
}

impl Translation<'_> {
    /// How an aggregation groups over the windows below it, and the node that it reads.
    pub(super) fn window_input(&mut self, aggregate: &Aggregate) -> Result<(NodeId, Grouping)> {
        let grouping = self.grouping(aggregate)?;
        let input = match grouping {
            Grouping::Merged(_) | Grouping::Sliced(_) | Grouping::OfTheMoment(_) => {
                self.relation(&provisional(&aggregate.input)?)?
            }
            Grouping::Carried | Grouping::Plain => self.relation(&aggregate.input)?,
        };
        Ok((input, grouping))
    }

    fn grouping(&mut self, aggregate: &Aggregate) -> Result<Grouping> {
        let Some(mut below) = Below::find(&aggregate.input) else { return Ok(Grouping::Carried) };
        let schema = aggregate.input.schema();
        let own = below.window.input.schema();
        let groups: Vec<Option<usize>> = aggregate
            .group_expr
            .iter()
            .filter(|expression| !matches!(expression, Expr::Literal(..)))
            .map(|expression| column_index(expression, schema).and_then(|column| below.columns[column]))
            .collect();
        let over_windows = (0..2).all(|bound| groups.contains(&Some(own.fields().len() + bound)));
        let computed = aggregate.group_expr.iter().filter(|e| column_index(e, schema).is_none());
        let looked_at = computed.chain(&aggregate.aggr_expr).any(|expression| below.looks(expression, schema));
        below.looked_at |= looked_at;
        let moment = self.moment_of(below.window)?;
        if let WindowSpec::Session { gap } = below.window.window {
            let keys = |column: &Option<usize>| column.is_none_or(|column| column < own.fields().len());
            let mut keys: Vec<Option<usize>> = groups.iter().copied().filter(keys).collect();
            let mut partition: Vec<Option<usize>> =
                below.window.partition.iter().map(|key| column_index(key, own)).collect();
            let pinned = partition.iter().flatten().any(|column| below.pinned.contains(column));
            for columns in [&mut keys, &mut partition] {
                columns.sort_unstable();
                columns.dedup();
            }
            return Ok(match (over_windows && keys == partition && !pinned, below.looked_at, moment) {
                (false, ..) => Grouping::Plain,
                (true, true, _) => Grouping::Carried,
                (true, false, WindowTime::Event) => Grouping::Merged(gap),
                (true, false, WindowTime::Processing) => Grouping::OfTheMoment(below.window.window),
            });
        }
        let overlapping = matches!(below.window.window, WindowSpec::Hop { .. } | WindowSpec::Cumulate { .. });
        Ok(match (moment, over_windows, below.looked_at) {
            (WindowTime::Event, true, false) if overlapping => Grouping::Sliced(below.window.window),
            (WindowTime::Event, ..) => Grouping::Carried,
            (WindowTime::Processing, false, _) => Grouping::Plain,
            (WindowTime::Processing, true, false) => Grouping::OfTheMoment(below.window.window),
            (WindowTime::Processing, true, true) => {
                return Err(Error::sql(
                    "below an aggregation over windows of processing time, their bounds are not known yet",
                )
                .hint("filter and compute with window_start and window_end behind the aggregation"));
            }
        })
    }

    /// Whether a window table function cuts processing time.
    fn moment_of(&mut self, window: &WindowNode) -> Result<WindowTime> {
        let input = self.relation(&window.input)?;
        let time = column_index(&window.time, window.input.schema());
        let node = self.node(input);
        let processing = time.is_some_and(|time| node.proctime.contains(&time) && !node.rowtime.contains(&time));
        Ok(if processing { WindowTime::Processing } else { WindowTime::Event })
    }

    /// By which time a window of `GROUP BY TUMBLE(time, …)` is cut.
    pub(super) fn moment_of_group_window(
        &mut self,
        time: &Expr,
        input: NodeId,
        schema: &DFSchema,
    ) -> Result<WindowTime> {
        let column = column_index(time, schema);
        if column.is_some_and(|column| self.node(input).rowtime.contains(&column)) {
            return Ok(WindowTime::Event);
        }
        if self.is_derived_time(time, input, schema) {
            // Late is what the attribute's watermark has passed, although the rows' own times are on time.
            self.derive_watermarks_row_by_row(input);
            return Ok(WindowTime::Event);
        }
        let column =
            column.ok_or_else(|| Error::sql("the first argument of a group window must be a time attribute"))?;
        let node = self.node(input);
        self.require_time_attribute(node, column)?;
        Ok(if node.proctime.contains(&column) { WindowTime::Processing } else { WindowTime::Event })
    }

    /// When the windows of an aggregation are told beside at their end.
    pub(super) fn emission(&self, legacy: bool, session: bool, moment: WindowTime) -> Result<Option<Emission>> {
        let EmitSettings { early_fire, early_delay_ms, late_fire, late_delay_ms, lateness_ms, any_window } =
            self.settings.emit;
        // Processing time has no late rows. A bounded table is there before the first window is told.
        let late_fire = late_fire && moment == WindowTime::Event;
        if self.settings.batch || !(early_fire || late_fire) {
            return Ok(None);
        }
        if !(legacy || any_window) {
            return Err(Error::sql("windows of table functions are told once: early and late fire are for group windows")
                .hint("SET 'table.exec.emit.any-window' = 'true' to have them told early and late too, or write GROUP BY TUMBLE(ts, …)"));
        }
        if session {
            return Err(Error::sql("sessions are told once: early and late fire are for TUMBLE and HOP")
                .hint("SET 'table.exec.emit.early-fire.enabled' and 'table.exec.emit.late-fire.enabled' = 'false'"));
        }
        let firing = |enabled: bool, delay: Option<u64>, which: &str| match (enabled, delay) {
            (false, _) => Ok(None),
            (true, Some(0)) => Ok(Some(Firing::EachRow)),
            (true, Some(delay)) => Ok(Some(Firing::Every(i64::try_from(delay).unwrap_or(i64::MAX)))),
            (true, None) => Err(Error::sql(format!("{which} fire is enabled, and its delay is not set"))
                .hint(format!("SET 'table.exec.emit.{which}-fire.delay' = '10 s'; '0 s' fires at every row"))),
        };
        let early = firing(early_fire, early_delay_ms, "early")?;
        let late = firing(late_fire, late_delay_ms, "late")?;
        // As in Flink, the time to live of state stands in for an allowance that is not set.
        let lateness = if late_fire { lateness_ms.unwrap_or(self.settings.ttl_ms) } else { 0 };
        if late_fire && lateness == 0 {
            return Err(Error::sql("late fire is enabled, and no lateness is allowed")
                .hint("SET 'table.exec.emit.allow-lateness' = '1 h'"));
        }
        Ok(Some(Emission { early, late, lateness_ms: i64::try_from(lateness).unwrap_or(i64::MAX) }))
    }

    pub(super) fn window(&mut self, window: &WindowNode) -> Result<NodeId> {
        let input = self.relation(&window.input)?;
        let own = window.input.schema();
        let columns = own.fields().len();
        let time =
            column_index(&window.time, own).ok_or_else(|| Error::bug("a window's time column is not a column"))?;
        self.require_time_attribute(self.node(input), time)?;
        let moment = self.moment_of(window)?;
        let input = self.without_late_rows(input, time, window.window, moment, own)?;
        let node = self.node(input);
        let mut facts = Facts::like(node);
        facts.schema = Arc::clone(window.schema().inner());
        let last = columns + WINDOW_COLUMNS.len() - 1;
        match moment {
            WindowTime::Event => facts.rowtime.push(last),
            WindowTime::Processing => facts.proctime.push(last),
        }
        let local = is_instant(facts.schema.field(time));
        let (kind, edge) = match (window.window, window.provisional) {
            (WindowSpec::Session { gap }, false) => {
                let partition = window.partition.iter().map(|key| column_index(key, own));
                let partition: Option<Vec<usize>> = partition.collect();
                let partition = partition.ok_or_else(|| Error::bug("a session's key is not a column"))?;
                if !facts.mode.is_append_only() {
                    // The images of an update may come with different sessions, and not in their order.
                    facts.upsert_key = None;
                }
                facts.state = StateBound::Bounded(format!("a session's rows go when {}", passes(moment)));
                let edge = self.keyed_edge(input, &partition, &mut facts);
                (NodeKind::SessionAssign { partition, time, gap, moment }, edge)
            }
            (spec, _) => (NodeKind::WindowAssign { time, window: if_alone(spec, window.provisional) }, forward(input)),
        };
        let id = self.add(kind, vec![edge], facts);
        let which = [WindowColumn::Start, WindowColumn::End, WindowColumn::Time];
        let columns = which.into_iter().enumerate().map(|(index, which)| (columns + index, which)).collect();
        let processing = moment == WindowTime::Processing;
        self.windows.insert(id, Windows { columns, local, times: vec![time], processing, ..Windows::default() });
        Ok(id)
    }

    /// # Errors
    /// If the column is a plain timestamp (in batch mode a plain timestamp does).
    pub(super) fn require_time_attribute(&self, node: &Node, column: usize) -> Result<()> {
        if self.settings.batch || node.rowtime.contains(&column) || node.proctime.contains(&column) {
            return Ok(());
        }
        let field = node.schema.field(column);
        Err(Error::sql(format!("a window needs a time attribute, and column '{}' is a plain timestamp", field.name()))
            .hint("declare WATERMARK FOR it in CREATE TABLE; a join, an aggregate or arithmetic on it loses the attribute"))
    }
}

/// One window a row, for rows whose windows the aggregation finds: the slice of time whose rows are in the same ones.
fn if_alone(spec: WindowSpec, provisional: bool) -> WindowSpec {
    match spec {
        WindowSpec::Hop { slide: step, size, offset } | WindowSpec::Cumulate { step, size, offset } if provisional => {
            WindowSpec::Tumble { size: common_divisor(step, size), offset }
        }
        spec => spec,
    }
}

fn common_divisor(a: i64, b: i64) -> i64 {
    if b == 0 { a } else { common_divisor(b, a % b) }
}

/// What ends a window, in words.
pub(super) fn passes(moment: WindowTime) -> &'static str {
    match moment {
        WindowTime::Event => "the watermark passes its end",
        WindowTime::Processing => "the clock passes its end",
    }
}
