//! `OVER`: functions over the rows before each row, in order of time.

use std::sync::Arc;

use arrow::datatypes::FieldRef;
use datafusion_common::ScalarValue;
use datafusion_expr::expr::{AggregateFunction as AggregateExpression, WindowFunction};
use datafusion_expr::{Expr, Window, WindowFrame, WindowFrameBound, WindowFrameUnits, WindowFunctionDefinition};

use super::aggregate::{Arguments, aggregate_call};
use super::calc::column_index;
use super::{Facts, Translation};
use crate::error::{Error, Result};
use crate::plan::error::span_in;
use crate::plan::relations::constant_interval;
use crate::plan::stream::{NodeId, NodeKind, StateBound};
use crate::types::{AggregateCall, AggregateFunction, OverCall, OverFrame};

impl Translation<'_> {
    pub(super) fn over(&mut self, window: &Window) -> Result<NodeId> {
        let input = self.relation(&window.input)?;
        let schema = window.input.schema();
        let shown = schema.fields().len();
        let functions = window.window_expr.iter().map(function).collect::<Result<Vec<_>>>()?;
        let Some(first) = functions.first() else { return Err(Error::bug("a window without functions")) };
        let one = |other: &&WindowFunction| {
            let (this, other) = (&first.params, &other.params);
            this.partition_by == other.partition_by && this.order_by == other.order_by
        };
        let frame = frame(&first.params.window_frame)?;
        let same_frame = |other: &&WindowFunction| self::frame(&other.params.window_frame).is_ok_and(|f| f == frame);
        if !functions.iter().all(|function| one(function) && same_frame(function)) {
            return Err(several_windows());
        }
        let time = self.order_of(input, first, window)?;
        self.check_over_input(input, first)?;

        let mut arguments = Arguments { schema, expressions: schema.columns().into_iter().map(Expr::Column).collect() };
        let partition = first.params.partition_by.iter().map(|key| arguments.column(key)).collect::<Vec<_>>();
        let results = window.schema.fields().iter().skip(shown);
        let calls = functions.iter().zip(results).map(|(function, field)| call(function, field, &mut arguments));
        let calls = calls.collect::<Result<Vec<_>>>()?;
        let fields = arguments.fields()?;
        let prepared = self.project(input, Arc::clone(schema), None, arguments.expressions, fields)?;
        let mut facts = Facts::like(self.node(prepared));
        facts.schema = Arc::clone(window.schema.inner());
        facts.rowtime.retain(|column| *column < shown);
        facts.proctime.retain(|column| *column < shown);
        facts.upsert_key = None;
        facts.state = StateBound::Unbounded("one entry a partition, for ever".into());
        let edge = self.keyed_edge(prepared, &partition, &mut facts);
        let windows = self.windows.get(&input).cloned();
        let id = self.add(NodeKind::Over { partition, time, frame, calls, shown }, vec![edge], facts);
        if let Some(windows) = windows {
            self.windows.insert(id, windows);
        }
        Ok(id)
    }

    /// The event-time column of the order; `None` for processing time.
    fn order_of(&self, input: NodeId, function: &WindowFunction, window: &Window) -> Result<Option<usize>> {
        let node = self.node(input);
        let name = function.fun.name().to_uppercase();
        let [only] = function.params.order_by.as_slice() else {
            return Err(Error::sql(format!("{name} OVER needs ORDER BY one time attribute")).hint(
                "over other orders a stream has only Top-N: put the rank into a subquery and a condition like rn <= 10 \
                 around it",
            ));
        };
        let column = column_index(&only.expr, window.input.schema());
        let place = span_in(&only.expr);
        if !only.asc {
            return Err(Error::sql(format!("{name} OVER can be ordered by time ascending only")).at(place));
        }
        match column {
            Some(column) if node.rowtime.contains(&column) => Ok(Some(column)),
            Some(column) if node.proctime.contains(&column) => Ok(None),
            _ => Err(Error::sql(format!("{name} OVER is ordered by '{}', which is no time attribute", only.expr))
                .at(place)
                .hint("order by a column with a WATERMARK or PROCTIME(); for a Top-N add a condition like rn <= 10")),
        }
    }

    fn check_over_input(&self, input: NodeId, function: &WindowFunction) -> Result<()> {
        if self.node(input).mode.is_append_only() {
            return Ok(());
        }
        let name = function.fun.name().to_uppercase();
        Err(Error::sql(format!("{name} OVER needs rows that only come, and here rows are also updated"))
            .hint("apply OVER before the rows are aggregated, or aggregate over windows"))
    }
}

fn several_windows() -> Error {
    Error::sql("the functions of one SELECT are OVER several windows, which is not supported yet")
        .hint("compute one window in a subquery and the other around it")
}

fn function(expression: &Expr) -> Result<&WindowFunction> {
    match expression {
        Expr::Alias(alias) => function(&alias.expr),
        Expr::WindowFunction(function) => Ok(function),
        other => Err(Error::bug(format!("'{other}' stands among window functions"))),
    }
}

fn frame(frame: &WindowFrame) -> Result<OverFrame> {
    if !matches!(frame.end_bound, WindowFrameBound::CurrentRow) {
        return Err(Error::sql("a frame must end with CURRENT ROW: rows that follow are not known yet"));
    }
    let refused = || Error::sql("a frame begins with UNBOUNDED PRECEDING, n PRECEDING or CURRENT ROW");
    Ok(match (frame.units, &frame.start_bound) {
        (WindowFrameUnits::Rows, WindowFrameBound::CurrentRow) => OverFrame::Rows(Some(0)),
        (WindowFrameUnits::Range, WindowFrameBound::CurrentRow) => OverFrame::Range(Some(0)),
        (WindowFrameUnits::Rows, WindowFrameBound::Preceding(bound)) if bound.is_null() => OverFrame::Rows(None),
        (WindowFrameUnits::Range, WindowFrameBound::Preceding(bound)) if bound.is_null() => OverFrame::Range(None),
        (WindowFrameUnits::Rows, WindowFrameBound::Preceding(ScalarValue::UInt64(Some(rows)))) => {
            OverFrame::Rows(Some(*rows))
        }
        (WindowFrameUnits::Range, WindowFrameBound::Preceding(bound)) => {
            let length = constant_interval(&Expr::Literal(bound.clone(), None));
            let length = length.ok().and_then(|length| u64::try_from(length).ok());
            let hint = "for example RANGE BETWEEN INTERVAL '10' SECOND PRECEDING AND CURRENT ROW";
            let wrong = || Error::sql("the length of a RANGE over time is an INTERVAL of days or less").hint(hint);
            OverFrame::Range(Some(length.ok_or_else(wrong)?))
        }
        _ => return Err(refused()),
    })
}

fn call(function: &WindowFunction, field: &FieldRef, arguments: &mut Arguments<'_>) -> Result<OverCall> {
    let name = function.fun.name();
    let parameters = &function.params;
    if parameters.null_treatment.is_some() {
        return Err(Error::sql(format!("{} takes no IGNORE NULLS or RESPECT NULLS", name.to_uppercase())));
    }
    if let WindowFunctionDefinition::AggregateUDF(definition) = &function.fun {
        let expression = Expr::AggregateFunction(AggregateExpression::new_udf(
            Arc::clone(definition),
            parameters.args.clone(),
            parameters.distinct,
            parameters.filter.clone(),
            Vec::new(),
            None,
        ));
        return aggregate_call(&expression, field, arguments).map(OverCall::Aggregate);
    }
    let output = Arc::clone(field);
    let mut aggregate = |function: AggregateFunction, columns: &[Expr]| {
        let columns = columns.iter().map(|argument| arguments.column(argument)).collect();
        AggregateCall {
            function,
            arguments: columns,
            distinct: false,
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
        "lag" => {
            let offset = match parameters.args.get(1) {
                None => 1,
                Some(Expr::Literal(ScalarValue::Int32(Some(offset)), _)) if *offset >= 0 => {
                    u64::from(offset.unsigned_abs())
                }
                Some(other) => {
                    return Err(Error::sql(format!("LAG looks back by a whole number of rows, not by '{other}'")));
                }
            };
            OverCall::Lag {
                column: arguments.column(&parameters.args[0]),
                offset,
                default: parameters.args.get(2).map(|default| arguments.column(default)),
                output,
            }
        }
        other => {
            return Err(Error::sql(format!("{} OVER is not supported over a stream", other.to_uppercase()))
                .hint("it would need rows that have not come yet, or all rows again for each one"));
        }
    })
}
