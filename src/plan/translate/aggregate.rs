//! `GROUP BY`: over everything, or over windows of event time.

use std::sync::Arc;

use arrow::datatypes::{Field, Schema, SchemaRef};
use datafusion_common::{Column, DFSchema, DFSchemaRef, ScalarValue};
use datafusion_expr::expr::{AggregateFunction as AggregateExpression, NullTreatment, Sort as SortExpr};
use datafusion_expr::{Aggregate, Expr, ExprSchemable, LogicalPlan};

use super::calc::column_index;
use super::percentile::percentile;
use super::windows::{Grouping, passes};
use super::{Facts, Translation, Windows, is_instant};
use crate::changelog::{ChangelogMode, Kind};
use crate::error::{Error, Result};
use crate::functions;
use crate::plan::beyond_flink;
use crate::plan::error::{span_in, unwrap};
use crate::plan::expressions::call;
use crate::plan::relations::constant_interval;
use crate::plan::state_ttl::of_input;
use crate::plan::stream::{Distribution, Edge, NodeId, NodeKind, NodeParallelism, StateBound};
use crate::types::{
    AggregateCall, AggregateFunction, ProgramAggregate, SortColumn, WindowColumn, WindowSpec, WindowTime,
};

/// The columns an aggregation reads, computed once each before it.
pub(super) struct Arguments<'a> {
    pub(super) schema: &'a DFSchema,
    pub(super) expressions: Vec<Expr>,
}

impl<'a> Arguments<'a> {
    /// Those of functions whose results stand beside the columns of `schema`.
    pub(super) fn beside_columns(schema: &'a DFSchemaRef) -> Arguments<'a> {
        Arguments { schema, expressions: schema.columns().into_iter().map(Expr::Column).collect() }
    }

    /// The column that will hold `expression`.
    pub(super) fn column(&mut self, expression: &Expr) -> usize {
        let expression = expression.clone().unalias_nested().data;
        match self.expressions.iter().position(|present| *present == expression) {
            Some(index) => index,
            None => {
                self.expressions.push(expression);
                self.expressions.len() - 1
            }
        }
    }

    pub(super) fn fields(&self) -> Result<SchemaRef> {
        let fields = self.expressions.iter().map(|e| {
            let (_, field) = e.to_field(self.schema).map_err(unwrap)?;
            Ok(field)
        });
        Ok(Arc::new(Schema::new(fields.collect::<Result<Vec<_>>>()?)))
    }
}

/// How a group expression takes part.
enum GroupPart {
    /// A key: column of the arguments.
    Key(usize),
    /// A column of the window the rows are in.
    Window(WindowColumn),
    /// A legacy group window, as a row of its three columns.
    Packed,
}

impl GroupPart {
    fn key(&self) -> Option<usize> {
        match self {
            GroupPart::Key(key) => Some(*key),
            _ => None,
        }
    }
}

fn without_gaps(window: &WindowSpec) -> Result<()> {
    match window {
        WindowSpec::Hop { slide, size, .. } if slide > size => {
            let error = beyond_flink("aggregates over HOP leave out rows, because it slides further than its size");
            Err(error.more("; HOP takes the slide before the size"))
        }
        _ => Ok(()),
    }
}

/// The window of a window aggregation.
struct WindowOf {
    /// Column of the arguments that holds the time (for attached windows, the start).
    time: usize,
    spec: WindowSpec,
    /// The silence that ends it, if it is a session.
    session_gap: Option<i64>,
    /// Whether it is cut along local time.
    local: bool,
    /// Whether the rows' time counts, or that of the machine.
    moment: WindowTime,
}

impl Translation<'_> {
    pub(super) fn distinct(&mut self, input: &LogicalPlan) -> Result<NodeId> {
        let node = self.relation(input)?;
        if self.node(node).upsert_key.is_some() {
            // Rows that are told apart by a key are distinct already.
            return Ok(node);
        }
        let keys = (0..input.schema().fields().len()).collect();
        let ttl_ms = self.ttl_of(input.schema());
        self.group(node, keys, Vec::new(), Arc::clone(input.schema().inner()), ttl_ms)
    }

    pub(super) fn aggregate(&mut self, aggregate: &Aggregate) -> Result<NodeId> {
        // A key that is named twice is one column of the result.
        let mut unique: Vec<Expr> = Vec::with_capacity(aggregate.group_expr.len());
        for expression in &aggregate.group_expr {
            if !unique.contains(expression) {
                unique.push(expression.clone());
            }
        }
        if unique.len() < aggregate.group_expr.len() {
            let mut aggregate = aggregate.clone();
            aggregate.group_expr = unique;
            return self.aggregate(&aggregate);
        }
        let (input, grouping) = self.window_input(aggregate)?;
        let schema = aggregate.input.schema();
        let mut arguments = Arguments { schema, expressions: Vec::new() };
        let (parts, window) = self.group_parts(aggregate, input, grouping, &mut arguments)?;
        let calls = aggregate
            .aggr_expr
            .iter()
            .zip(&aggregate.schema.fields()[aggregate.group_expr.len()..])
            .map(|(expression, field)| aggregate_call(expression, field, &mut arguments))
            .collect::<Result<Vec<_>>>()?;
        let fields = arguments.fields()?;
        let prepared = self.project(input, Arc::clone(schema), None, arguments.expressions, fields)?;
        match window {
            None => {
                let keys = parts.iter().filter_map(GroupPart::key).collect();
                let times = self.extreme_times(prepared, parts.len(), &calls);
                let ttl_ms = self.ttl_of(schema);
                let node = self.group(prepared, keys, calls, Arc::clone(aggregate.schema.inner()), ttl_ms)?;
                self.windows.entry(node).or_default().derived = times;
                Ok(node)
            }
            Some(window) => self.windowed(prepared, &parts, window, calls, &aggregate.schema),
        }
    }

    /// Sorts the group expressions into keys and window columns, and finds the window.
    fn group_parts(
        &mut self,
        aggregate: &Aggregate,
        input: NodeId,
        grouping: Grouping,
        arguments: &mut Arguments,
    ) -> Result<(Vec<GroupPart>, Option<WindowOf>)> {
        let schema = aggregate.input.schema();
        let windows = self.windows.get(&input).cloned().unwrap_or_default();
        let attached = |expression: &Expr| {
            let column = column_index(expression, schema)?;
            windows.columns.iter().find(|(index, _)| *index == column).map(|(_, which)| *which)
        };
        let has = |which| aggregate.group_expr.iter().any(|e| attached(e) == Some(which));
        let over_windows = grouping != Grouping::Plain && has(WindowColumn::Start) && has(WindowColumn::End);
        let mut window = None;
        let mut parts = Vec::new();
        for expression in &aggregate.group_expr {
            if let Some((time, spec)) = legacy_window(expression)? {
                if window.is_some() {
                    return Err(Error::sql("only one window may stand in GROUP BY"));
                }
                let moment = self.moment_of_group_window(time, input, schema)?;
                let local = time.to_field(schema).is_ok_and(|(_, field)| is_instant(&field));
                let session_gap = if let WindowSpec::Session { gap } = spec { Some(gap) } else { None };
                window = Some(WindowOf { time: arguments.column(time), spec, session_gap, local, moment });
                parts.push(GroupPart::Packed);
                continue;
            }
            match attached(expression).filter(|_| over_windows) {
                Some(which) => parts.push(GroupPart::Window(which)),
                None => parts.push(GroupPart::Key(arguments.column(expression))),
            }
        }
        if over_windows {
            let padded = |expression: &Expr| {
                column_index(expression, schema).is_some_and(|column| windows.padded.contains(&column))
            };
            if let Some(expression) = aggregate.group_expr.iter().find(|expression| padded(expression)) {
                return Err(Error::sql(format!(
                    "rows are grouped by '{expression}', which is NULL where an outer window join found no match"
                ))
                .at(span_in(expression))
                .hint("group by the window of a side whose rows are all kept, or by COALESCE of both"));
            }
            let column = |which| {
                let index = windows.columns.iter().find(|(_, w)| *w == which).map(|(index, _)| *index);
                index.map(|index| Expr::Column(Column::from(schema.qualified_field(index))))
            };
            let (Some(start), Some(end)) = (column(WindowColumn::Start), column(WindowColumn::End)) else {
                return Err(Error::bug("a window lost its start or end"));
            };
            let (start, end) = (arguments.column(&start), arguments.column(&end));
            let carried = WindowSpec::Attached { start, end };
            let (spec, session_gap, moment) = match grouping {
                Grouping::Merged(gap) => (carried, Some(gap), WindowTime::Event),
                Grouping::OfTheMoment(spec @ WindowSpec::Session { gap }) => (spec, Some(gap), WindowTime::Processing),
                Grouping::OfTheMoment(spec) => (spec, None, WindowTime::Processing),
                Grouping::Sliced(spec) => (spec, None, WindowTime::Event),
                Grouping::Carried | Grouping::Plain => (carried, None, WindowTime::Event),
            };
            window = Some(WindowOf { time: start, spec, session_gap, local: windows.local, moment });
        }
        Ok((parts, window))
    }

    /// The columns that are the least or greatest of a time attribute.
    fn extreme_times(&self, input: NodeId, keys: usize, calls: &[AggregateCall]) -> Vec<usize> {
        let extreme = |call: &AggregateCall| {
            matches!(call.function, AggregateFunction::Min | AggregateFunction::Max)
                && call.arguments.first().is_some_and(|argument| self.node(input).rowtime.contains(argument))
        };
        calls.iter().enumerate().filter(|(_, call)| extreme(call)).map(|(index, _)| keys + index).collect()
    }

    /// An aggregation without windows.
    fn group(
        &mut self,
        input: NodeId,
        keys: Vec<usize>,
        mut aggregates: Vec<AggregateCall>,
        schema: SchemaRef,
        ttl_ms: u64,
    ) -> Result<NodeId> {
        let motions = self.judge_calls(input, &keys, &mut aggregates);
        let (input, keys, aggregates) = self.in_steps(input, keys, aggregates, ttl_ms)?;
        let node = self.one_step(input, keys, aggregates, schema, ttl_ms)?;
        self.motions.insert(node, motions);
        Ok(node)
    }

    /// A grouping as one node.
    pub(super) fn one_step(
        &mut self,
        input: NodeId,
        keys: Vec<usize>,
        aggregates: Vec<AggregateCall>,
        schema: SchemaRef,
        ttl_ms: u64,
    ) -> Result<NodeId> {
        let append_only_input = self.node(input).mode.is_append_only();
        let mut facts = Facts::plain(schema);
        facts.mode = match (append_only_input, aggregates.is_empty()) {
            (true, true) => ChangelogMode::APPEND,
            (true, false) => ChangelogMode::RETRACT.without(Kind::Delete),
            (false, _) => ChangelogMode::RETRACT,
        };
        facts.upsert_key = Some((0..keys.len()).collect());
        facts.state = match keys.is_empty() {
            true => StateBound::Bounded("one row".into()),
            false => bound_by_idleness("one entry a key", "keys", ttl_ms),
        };
        let edge = self.keyed_edge(input, &keys, &mut facts);
        let kind = NodeKind::GroupAggregate {
            keys,
            aggregates,
            append_only_input,
            emit_update_before: true,
            mini_batch: self.settings.mini_batch,
            ttl_ms,
        };
        Ok(self.add(kind, vec![edge], facts))
    }

    /// # Errors
    /// If there is time between the windows that the rows carry: more likely their lengths are given in the wrong order.
    fn refuse_gaps(&self, from: NodeId) -> Result<()> {
        let node = self.node(from);
        match &node.kind {
            NodeKind::WindowAssign { window, .. } => without_gaps(window),
            NodeKind::WindowAggregate { .. } => Ok(()),
            _ => node.inputs.first().map_or(Ok(()), |edge| self.refuse_gaps(edge.from)),
        }
    }

    /// An aggregation over windows, with its columns put into the order of the `GROUP BY`.
    fn windowed(
        &mut self,
        input: NodeId,
        parts: &[GroupPart],
        window: WindowOf,
        aggregates: Vec<AggregateCall>,
        schema: &DFSchemaRef,
    ) -> Result<NodeId> {
        if window.session_gap.is_some() {
            refuse_arrival(&aggregates)?;
        }
        let legacy = parts.iter().any(|part| matches!(part, GroupPart::Packed));
        if !(legacy || self.settings.extensions) {
            without_gaps(&window.spec)?;
            self.refuse_gaps(input)?;
        }
        if legacy && self.late_table.is_some() && window.moment == WindowTime::Event {
            return Err(Error::sql("late rows can be set aside for windows of table functions, not for group windows")
                .hint("write TABLE(TUMBLE(TABLE t, DESCRIPTOR(ts), …)), or RESET 'table.exec.late-data.table'"));
        }
        let emission = self.emission(legacy, window.session_gap.is_some(), window.moment)?;
        let keys: Vec<usize> = parts.iter().filter_map(GroupPart::key).collect();
        let window_columns = vec![WindowColumn::Start, WindowColumn::End, WindowColumn::Time];
        let input_node = self.node(input);
        let append_only_input = input_node.mode.is_append_only();
        let mut fields: Vec<Arc<Field>> = keys.iter().map(|key| input_node.schema.fields()[*key].clone()).collect();
        fields.extend(window_fields(parts, schema, window.local));
        fields.extend(schema.fields().iter().skip(parts.len()).cloned());
        let first_window = keys.len();
        let mut facts = Facts::plain(Arc::new(Schema::new(fields)));
        match window.moment {
            WindowTime::Event => facts.rowtime = vec![first_window + 2],
            WindowTime::Processing => facts.proctime = vec![first_window + 2],
        }
        facts.upsert_key = Some((0..keys.len() + 2).collect());
        facts.state = StateBound::Bounded(match emission.map(|emission| emission.lateness_ms) {
            None | Some(0) => format!("a window's groups go when {}", passes(window.moment)),
            Some(lateness) => format!("a window's groups go {lateness} ms of event time after its end"),
        });
        facts.mode = match emission {
            None => ChangelogMode::APPEND,
            Some(_) if append_only_input => ChangelogMode::RETRACT.without(Kind::Delete),
            Some(_) => ChangelogMode::RETRACT,
        };
        let edge = self.keyed_edge(input, &keys, &mut facts);
        let kind = NodeKind::WindowAggregate {
            keys,
            time: window.time,
            window: window.spec,
            session_gap: window.session_gap,
            local: window.local,
            moment: window.moment,
            emission,
            window_columns: window_columns.clone(),
            aggregates,
            append_only_input,
        };
        let output = Arc::clone(&facts.schema);
        let node = self.add(kind, vec![edge], facts);
        let columns = window_columns.into_iter().enumerate().map(|(i, which)| (first_window + i, which)).collect();
        let processing = window.moment == WindowTime::Processing;
        self.windows.insert(node, Windows { columns, local: window.local, processing, ..Windows::default() });
        self.in_group_order(node, &output, parts, first_window, schema)
    }

    /// Puts keys, window columns and aggregates into the order in which the query names them.
    fn in_group_order(
        &mut self,
        node: NodeId,
        output: &SchemaRef,
        parts: &[GroupPart],
        first_window: usize,
        schema: &DFSchemaRef,
    ) -> Result<NodeId> {
        // Positions as names: the operator's columns may share names (a key called window_start).
        let positions = output.fields().iter().enumerate();
        let named: Vec<Field> =
            positions.map(|(index, field)| field.as_ref().clone().with_name(format!("#{index}"))).collect();
        let named = DFSchema::try_from(Schema::new(named)).map_err(unwrap)?;
        let column = |index: usize| Expr::Column(Column::from(named.qualified_field(index)));
        let mut next_key = 0;
        let mut packed = Vec::new();
        let mut projection = Vec::with_capacity(schema.fields().len());
        for (position, part) in parts.iter().enumerate() {
            projection.push(match part {
                GroupPart::Key(_) => {
                    next_key += 1;
                    column(next_key - 1)
                }
                GroupPart::Window(which) => column(first_window + *which as usize),
                GroupPart::Packed => {
                    packed.push(position);
                    let target = schema.field(position).data_type().clone();
                    call(functions::pack_window(target), (0..3).map(|i| column(first_window + i)).collect())
                }
            });
        }
        projection.extend((first_window + 3..output.fields().len()).map(column));
        let id = self.project(node, Arc::new(named), None, projection, Arc::clone(schema.inner()))?;
        self.windows.entry(id).or_default().packed.extend(packed);
        Ok(id)
    }

    /// What bounds state that only time to live bounds: `kept` for ever, unless idle `entries` expire.
    pub(super) fn bound_by_idleness(&self, kept: &str, entries: &str) -> StateBound {
        bound_by_idleness(kept, entries, self.settings.ttl_ms)
    }

    /// How long the state of an input's rows is kept.
    pub(super) fn ttl_of(&self, input: &DFSchema) -> u64 {
        of_input(&self.state_ttl, input).unwrap_or(self.settings.ttl_ms)
    }

    pub(super) fn keyed_edge(&self, input: NodeId, keys: &[usize], facts: &mut Facts) -> Edge {
        if keys.is_empty() {
            facts.parallelism = NodeParallelism::Single;
            return Edge { from: input, distribution: Distribution::Single };
        }
        Edge { from: input, distribution: Distribution::Hash(keys.to_vec()) }
    }
}

fn bound_by_idleness(kept: &str, entries: &str, ttl_ms: u64) -> StateBound {
    match ttl_ms {
        0 => StateBound::Unbounded(format!("{kept}, for ever; SET 'table.exec.state.ttl' would bound it")),
        ttl => StateBound::Bounded(format!("{kept}; {entries} idle for {ttl} ms expire")),
    }
}

/// Sessions merge, and then it is not known any more which of two values came first.
fn refuse_arrival(aggregates: &[AggregateCall]) -> Result<()> {
    let by_arrival = aggregates.iter().filter(|call| call.order.is_empty());
    let name = by_arrival.into_iter().find_map(|call| match call.function {
        AggregateFunction::FirstValue => Some("FIRST_VALUE"),
        AggregateFunction::LastValue => Some("LAST_VALUE"),
        _ => None,
    });
    match name {
        None => Ok(()),
        Some(name) => Err(Error::sql(format!("{name} cannot be computed over sessions, whose values merge"))
            .hint("take MIN or MAX of the time, or ARRAY_AGG, which keeps the order of arrival")),
    }
}

/// Types of `window_start`, `window_end`, `window_time`, as the query sees them.
fn window_fields(parts: &[GroupPart], schema: &DFSchemaRef, local: bool) -> Vec<Arc<Field>> {
    use arrow::datatypes::{DataType, TimeUnit};
    let of = |which: WindowColumn, name: &str| {
        let named = parts.iter().position(|part| matches!(part, GroupPart::Window(w) if *w == which));
        if let Some(position) = named {
            return Arc::clone(&schema.fields()[position]);
        }
        let packed = parts.iter().position(|part| matches!(part, GroupPart::Packed));
        if let Some(DataType::Struct(fields)) = packed.map(|position| schema.field(position).data_type()) {
            return Arc::clone(&fields[which as usize]);
        }
        // The bounds are local times; the window's own time is an instant where the attribute is one.
        let zone = (local && which == WindowColumn::Time).then(|| "UTC".into());
        Arc::new(Field::new(name, DataType::Timestamp(TimeUnit::Millisecond, zone), false))
    };
    vec![
        of(WindowColumn::Start, "window_start"),
        of(WindowColumn::End, "window_end"),
        of(WindowColumn::Time, "window_time"),
    ]
}

/// `TUMBLE(ts, size)`, `HOP(ts, slide, size)` or `SESSION(ts, gap)` in `GROUP BY`.
fn legacy_window(expression: &Expr) -> Result<Option<(&Expr, WindowSpec)>> {
    let expression = match expression {
        Expr::Alias(alias) => alias.expr.as_ref(),
        other => other,
    };
    let Expr::ScalarFunction(function) = expression else { return Ok(None) };
    let spec = match (function.name(), function.args.as_slice()) {
        ("tumble", [_, size]) => WindowSpec::Tumble { size: constant_interval(size)?, offset: 0 },
        ("hop", [_, slide, size]) => {
            WindowSpec::Hop { slide: constant_interval(slide)?, size: constant_interval(size)?, offset: 0 }
        }
        ("session", [_, gap]) => WindowSpec::Session { gap: constant_interval(gap)? },
        ("tumble" | "hop" | "session", _) => {
            return Err(Error::sql(format!("{} in GROUP BY has other arguments", function.name().to_uppercase()))
                .hint("TUMBLE(time, size), HOP(time, slide, size) or SESSION(time, gap); alignment is not supported"));
        }
        _ => return Ok(None),
    };
    Ok(Some((&function.args[0], spec)))
}

pub(super) fn aggregate_call(
    expression: &Expr,
    field: &Arc<Field>,
    arguments: &mut Arguments,
) -> Result<AggregateCall> {
    let AggregateExpression { func, params } = match expression {
        Expr::AggregateFunction(function) => function,
        Expr::Alias(alias) => return aggregate_call(&alias.expr, field, arguments),
        other => return Err(Error::bug(format!("'{other}' stands among the aggregates"))),
    };
    let function = match functions::is_program_aggregate(func) {
        true => AggregateFunction::Program(ProgramAggregate(Arc::clone(func))),
        false => aggregate_function(func.name(), &params.args)?,
    };
    if !params.order_by.is_empty() && matches!(function, AggregateFunction::Program(_)) {
        return Err(Error::sql(format!("{} takes no ORDER BY", func.name().to_uppercase()))
            .at(span_in(&params.order_by[0].expr))
            .hint("leave it out: a function of the program's own sees rows in the order in which they come"));
    }
    let read: Vec<&Expr> = match &function {
        AggregateFunction::ListAgg { .. } => params.args.iter().take(1).collect(),
        // The percentages are constants.
        AggregateFunction::Percentile { .. } => params.args.iter().take(1).chain(params.args.get(2)).collect(),
        _ => params.args.iter().collect(),
    };
    let mut filter = params.filter.as_deref().cloned();
    if params.null_treatment == Some(NullTreatment::IgnoreNulls) {
        let present = params.args[0].clone().is_not_null();
        filter = Some(filter.map_or(present.clone(), |filter| filter.and(present)));
    }
    let counts_rows = function == AggregateFunction::Count
        && !params.distinct
        && params.args.iter().all(|argument| !argument.nullable(arguments.schema).unwrap_or(true));
    let columns =
        if counts_rows { Vec::new() } else { read.into_iter().map(|argument| arguments.column(argument)).collect() };
    let ordered = params.order_by.iter().filter(|_| function.heeds_order());
    let column = |sort: &SortExpr| SortColumn {
        column: arguments.column(&sort.expr),
        descending: !sort.asc,
        nulls_first: sort.nulls_first,
    };
    let order = ordered.map(column).collect();
    Ok(AggregateCall {
        function,
        arguments: columns,
        distinct: params.distinct,
        order,
        filter: filter.map(|filter| arguments.column(&filter)),
        monotone: false,
        output: Arc::clone(field),
    })
}

fn aggregate_function(name: &str, arguments: &[Expr]) -> Result<AggregateFunction> {
    Ok(match name {
        "count" => AggregateFunction::Count,
        "approx_count_distinct" => AggregateFunction::ApproximateCountDistinct,
        "sum" => AggregateFunction::Sum,
        "sum0" => AggregateFunction::SumZero,
        "avg" => AggregateFunction::Avg,
        "min" => AggregateFunction::Min,
        "max" => AggregateFunction::Max,
        "first_value" => AggregateFunction::FirstValue,
        "last_value" => AggregateFunction::LastValue,
        "collect" => AggregateFunction::Collect,
        "array_agg" => AggregateFunction::ArrayAgg,
        "single_value" => AggregateFunction::SingleValue,
        "var_pop" => AggregateFunction::Variance { sample: false },
        "var_samp" | "variance" => AggregateFunction::Variance { sample: true },
        "stddev_pop" => AggregateFunction::StandardDeviation { sample: false },
        "stddev_samp" | "stddev" => AggregateFunction::StandardDeviation { sample: true },
        "json_arrayagg" => AggregateFunction::JsonArray,
        "json_objectagg" => AggregateFunction::JsonObject,
        "percentile" => percentile(&arguments[1])?,
        "listagg" => {
            let separator = match arguments.get(1) {
                None => ",".to_string(),
                Some(Expr::Literal(ScalarValue::Utf8(Some(text)), _)) => text.clone(),
                Some(_) => return Err(Error::sql("the separator of LISTAGG must be a text literal")),
            };
            AggregateFunction::ListAgg { separator }
        }
        other => return Err(Error::sql(format!("{} is not supported yet", other.to_uppercase()))),
    })
}
