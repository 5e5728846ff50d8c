//! `OVER`: functions over the rows before each row, in order of time.

use std::sync::Arc;

use arrow::datatypes::FieldRef;
use datafusion_common::{DFSchema, DFSchemaRef, ScalarValue};
use datafusion_expr::expr::{AggregateFunction as AggregateExpression, WindowFunction};
use datafusion_expr::{Expr, Window, WindowFrame, WindowFrameBound, WindowFrameUnits, WindowFunctionDefinition};

use super::aggregate::{Arguments, aggregate_call};
use super::calc::column_index;
use super::{Facts, Translation};
use crate::error::{Error, Result};
use crate::plan::error::unwrap;
use crate::plan::relations::constant_interval;
use crate::plan::stream::{NodeId, NodeKind};
use crate::types::{AggregateCall, AggregateFunction, OverCall, OverFrame};

/// Functions over one partitioning, order and frame, by their places in the relation.
struct Stage<'a> {
    functions: Vec<(usize, &'a WindowFunction)>,
}

impl Translation<'_> {
    /// `OVER`: the functions of one window after those of another. Over time, rows go out once, when time has passed
    /// them; in any other order, or over rows that change, results are told anew as they change.
    pub(super) fn over(&mut self, window: &Window) -> Result<NodeId> {
        let mut input = self.relation(&window.input)?;
        let functions = window.window_expr.iter().map(function).collect::<Result<Vec<_>>>()?;
        let inner = window.input.schema();
        let own = inner.fields().len();
        let fields: Vec<_> = window.schema.iter().map(|(name, field)| (name.cloned(), Arc::clone(field))).collect();
        let mut schema = Arc::clone(inner);
        let mut places: Vec<usize> = Vec::new();
        let by_time = |function: &WindowFunction| self.order_by_time(input, function, inner).is_some();
        let stages = stages(&functions, by_time);
        if stages.len() > 1 && !self.settings.any_window {
            return Err(beyond_flink("the functions of one SELECT are OVER several windows"));
        }
        for stage in stages {
            let results: Vec<usize> = stage.functions.iter().map(|(place, _)| *place).collect();
            let more = results.iter().map(|place| fields[own + place].clone());
            let known = schema.iter().map(|(name, field)| (name.cloned(), Arc::clone(field)));
            let all = known.chain(more).collect();
            let next = DFSchema::new_with_metadata(all, inner.metadata().clone()).map_err(unwrap)?;
            let next = Arc::new(next);
            input = self.stage(input, &schema, &next, &stage)?;
            schema = next;
            places.extend(results);
        }
        if places.is_sorted() {
            return Ok(input);
        }
        let columns = window.schema.columns().into_iter().map(Expr::Column).collect();
        self.project(input, schema, None, columns, Arc::clone(window.schema.inner()))
    }

    /// The columns that the functions read.
    pub(super) fn read_by(&mut self, input: NodeId, schema: &DFSchemaRef, arguments: Arguments<'_>) -> Result<NodeId> {
        let fields = arguments.fields()?;
        self.project(input, Arc::clone(schema), None, arguments.expressions, fields)
    }

    fn stage(
        &mut self,
        input: NodeId,
        schema: &DFSchemaRef,
        output: &DFSchemaRef,
        stage: &Stage<'_>,
    ) -> Result<NodeId> {
        let functions: Vec<&WindowFunction> = stage.functions.iter().map(|(_, function)| *function).collect();
        let Some(first) = functions.first() else { return Err(Error::bug("a window without functions")) };
        let Some(time) = self.order_by_time(input, first, schema) else {
            return self.over_table(input, schema, output, &functions);
        };
        let streamed = functions.iter().all(|function| is_streamed(function.fun.name()));
        let Some(frame) = frame(&first.params.window_frame)?.filter(|_| streamed) else {
            return self.over_table(input, schema, output, &functions);
        };
        if frame == OverFrame::Range(Some(0)) && !self.settings.any_window && starts_at_row(&first.params.window_frame)
        {
            return Err(beyond_flink("a frame by RANGE begins at CURRENT ROW"));
        }
        let shown = schema.fields().len();
        let mut arguments = Arguments::beside_columns(schema);
        let partition = first.params.partition_by.iter().map(|key| arguments.column(key)).collect::<Vec<_>>();
        let results = output.fields().iter().skip(shown);
        let calls = functions.iter().zip(results).map(|(function, field)| call(function, field, &mut arguments));
        let calls = calls.collect::<Result<Vec<_>>>()?;
        let prepared = self.read_by(input, schema, arguments)?;
        let mut facts = Facts::like(self.node(prepared));
        facts.schema = Arc::clone(output.inner());
        facts.rowtime.retain(|column| *column < shown);
        facts.proctime.retain(|column| *column < shown);
        facts.upsert_key = None;
        facts.state = self.bound_by_idleness("one entry a partition", "partitions");
        let edge = self.keyed_edge(prepared, &partition, &mut facts);
        let windows = self.windows.get(&input).cloned();
        let id = self.add(
            NodeKind::Over { partition, time, frame, calls, shown, ttl_ms: self.settings.ttl_ms },
            vec![edge],
            facts,
        );
        if let Some(windows) = windows {
            self.windows.insert(id, windows);
        }
        Ok(id)
    }

    /// If the order is one of time over rows that only come: the event-time column, or `None` for processing time.
    fn order_by_time(&self, input: NodeId, function: &WindowFunction, schema: &DFSchema) -> Option<Option<usize>> {
        let node = self.node(input);
        let [only] = function.params.order_by.as_slice() else { return None };
        if !only.asc || !node.mode.is_append_only() {
            return None;
        }
        match column_index(&only.expr, schema) {
            Some(column) if node.rowtime.contains(&column) => Some(Some(column)),
            Some(column) if node.proctime.contains(&column) => Some(None),
            _ => None,
        }
    }
}

/// What Flink refuses of `OVER`, and how it is had here.
pub(super) fn beyond_flink(what: &str) -> Error {
    Error::sql(format!("{what}, which Flink refuses"))
        .hint("SET 'table.exec.over.any-window' = 'true' to have it answered")
}

/// The functions by window, in the order in which the windows are first named. What does not depend on the frame goes
/// with any frame of its window, but over time, where `RANK` is a count of the frame.
fn stages<'a>(functions: &[&'a WindowFunction], by_time: impl Fn(&WindowFunction) -> bool) -> Vec<Stage<'a>> {
    let mut stages: Vec<Stage> = Vec::new();
    for (place, function) in functions.iter().enumerate() {
        let same = |stage: &&mut Stage| {
            let one = |(_, other): &(usize, &WindowFunction)| {
                let (this, that) = (&function.params, &other.params);
                let framed = is_framed(function) && is_framed(other);
                let free = !(framed || by_time(function));
                this.partition_by == that.partition_by
                    && this.order_by == that.order_by
                    && (free || this.window_frame == that.window_frame)
            };
            stage.functions.iter().all(one)
        };
        match stages.iter_mut().find(same) {
            Some(stage) => stage.functions.push((place, function)),
            None => stages.push(Stage { functions: vec![(place, function)] }),
        }
    }
    stages
}

/// Whether a function's result depends on the frame.
pub(super) fn is_framed(function: &WindowFunction) -> bool {
    let name = function.fun.name();
    !matches!(name, "row_number" | "rank" | "dense_rank" | "ntile" | "percent_rank" | "cume_dist" | "lag" | "lead")
}

/// Whether a function looks only at rows that have come, so that over time its result is final at once.
fn is_streamed(name: &str) -> bool {
    !matches!(name, "lead" | "ntile" | "percent_rank" | "cume_dist" | "nth_value")
}

fn function(expression: &Expr) -> Result<&WindowFunction> {
    match expression {
        Expr::Alias(alias) => function(&alias.expr),
        Expr::WindowFunction(function) => Ok(function),
        other => Err(Error::bug(format!("'{other}' stands among window functions"))),
    }
}

/// The frame, if it ends with the row itself.
fn frame(frame: &WindowFrame) -> Result<Option<OverFrame>> {
    if !matches!(frame.end_bound, WindowFrameBound::CurrentRow) {
        return Ok(None);
    }
    Ok(Some(match (frame.units, &frame.start_bound) {
        (WindowFrameUnits::Rows, WindowFrameBound::CurrentRow) => OverFrame::Rows(Some(0)),
        (WindowFrameUnits::Range, WindowFrameBound::CurrentRow) => OverFrame::Range(Some(0)),
        (WindowFrameUnits::Rows, WindowFrameBound::Preceding(bound)) if bound.is_null() => OverFrame::Rows(None),
        (WindowFrameUnits::Range, WindowFrameBound::Preceding(bound)) if bound.is_null() => OverFrame::Range(None),
        (WindowFrameUnits::Rows, WindowFrameBound::Preceding(ScalarValue::UInt64(Some(rows)))) => {
            OverFrame::Rows(Some(*rows))
        }
        (WindowFrameUnits::Range, WindowFrameBound::Preceding(bound)) => {
            OverFrame::Range(Some(interval(bound).ok_or_else(not_a_length)?))
        }
        _ => return Ok(None),
    }))
}

fn starts_at_row(frame: &WindowFrame) -> bool {
    matches!(frame.start_bound, WindowFrameBound::CurrentRow)
}

/// A length of time in milliseconds.
pub(super) fn interval(bound: &ScalarValue) -> Option<u64> {
    constant_interval(&Expr::Literal(bound.clone(), None)).ok().and_then(|length| u64::try_from(length).ok())
}

pub(super) fn not_a_length() -> Error {
    Error::sql("the length of a RANGE over time is an INTERVAL of days or less")
        .hint("for example RANGE BETWEEN INTERVAL '10' SECOND PRECEDING AND CURRENT ROW")
}

/// An aggregate of a window.
pub(super) fn windowed_aggregate(
    function: &WindowFunction,
    field: &FieldRef,
    arguments: &mut Arguments<'_>,
) -> Result<Option<AggregateCall>> {
    let WindowFunctionDefinition::AggregateUDF(definition) = &function.fun else { return Ok(None) };
    let parameters = &function.params;
    let expression = Expr::AggregateFunction(AggregateExpression::new_udf(
        Arc::clone(definition),
        parameters.args.clone(),
        parameters.distinct,
        parameters.filter.clone(),
        Vec::new(),
        None,
    ));
    aggregate_call(&expression, field, arguments).map(Some)
}

/// By how many rows `LAG` and `LEAD` look away.
pub(super) fn offset(function: &WindowFunction) -> Result<u64> {
    match function.params.args.get(1) {
        None => Ok(1),
        Some(Expr::Literal(ScalarValue::Int32(Some(offset)), _)) if *offset >= 0 => {
            Ok(u64::from(offset.unsigned_abs()))
        }
        Some(other) => {
            let (name, way) = (function.fun.name(), if function.fun.name() == "lag" { "back" } else { "ahead" });
            Err(Error::sql(format!("{} looks {way} by a whole number of rows, not by '{other}'", name.to_uppercase())))
        }
    }
}

pub(super) fn refuse_null_treatment(function: &WindowFunction) -> Result<()> {
    match function.params.null_treatment {
        None => Ok(()),
        Some(_) => {
            let name = function.fun.name().to_uppercase();
            Err(Error::sql(format!("{name} takes no IGNORE NULLS or RESPECT NULLS")))
        }
    }
}

fn call(function: &WindowFunction, field: &FieldRef, arguments: &mut Arguments<'_>) -> Result<OverCall> {
    let name = function.fun.name();
    let parameters = &function.params;
    refuse_null_treatment(function)?;
    if let Some(aggregate) = windowed_aggregate(function, field, arguments)? {
        return Ok(OverCall::Aggregate(aggregate));
    }
    let output = Arc::clone(field);
    let mut aggregate = |function: AggregateFunction, columns: &[Expr]| {
        let columns = columns.iter().map(|argument| arguments.column(argument)).collect();
        AggregateCall {
            function,
            arguments: columns,
            distinct: false,
            order: Vec::new(),
            filter: None,
            monotone: false,
            output: Arc::clone(&output),
        }
    };
    Ok(match name {
        // Rows of one time share the frame's end, and so their rank: as Flink has it.
        "rank" | "dense_rank" => OverCall::Aggregate(aggregate(AggregateFunction::Count, &[])),
        "row_number" => OverCall::RowNumber(aggregate(AggregateFunction::Count, &[])),
        "first_value" => OverCall::Aggregate(aggregate(AggregateFunction::FirstValue, &parameters.args)),
        "last_value" => OverCall::Aggregate(aggregate(AggregateFunction::LastValue, &parameters.args)),
        "lag" => OverCall::Lag {
            column: arguments.column(&parameters.args[0]),
            offset: offset(function)?,
            default: parameters.args.get(2).map(|default| arguments.column(default)),
            output,
        },
        other => return Err(Error::bug(format!("{other} OVER time is not final at once"))),
    })
}
