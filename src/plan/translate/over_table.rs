//! `OVER` in any order and over rows that change.

use std::sync::Arc;

use arrow::datatypes::{DataType, FieldRef, TimeUnit};
use datafusion_common::{DFSchema, DFSchemaRef, ScalarValue};
use datafusion_expr::expr::WindowFunction;
use datafusion_expr::{Expr, SortExpr, WindowFrame, WindowFrameBound, WindowFrameUnits, WindowFunctionDefinition};

use super::aggregate::Arguments;
use super::calc::column_index;
use super::over::{beyond_flink, interval, is_framed, not_a_length, offset, refuse_null_treatment, windowed_aggregate};
use super::{Facts, Translation};
use crate::changelog::ChangelogMode;
use crate::error::{Error, Result};
use crate::plan::error::span_in;
use crate::plan::stream::{NodeId, NodeKind};
use crate::types::{Frame, FrameBound, FrameCall, FrameFunction, FrameUnits, SortColumn};

impl Translation<'_> {
    /// Functions over one window; `output` are the columns of the input, then the results.
    pub(super) fn over_table(
        &mut self,
        input: NodeId,
        schema: &DFSchemaRef,
        output: &DFSchemaRef,
        functions: &[&WindowFunction],
    ) -> Result<NodeId> {
        let Some(first) = functions.first() else { return Err(Error::bug("a window without functions")) };
        let parameters = &first.params;
        let shown = schema.fields().len();
        let mut arguments = Arguments::beside_columns(schema);
        let partition = parameters.partition_by.iter().map(|key| arguments.column(key)).collect::<Vec<_>>();
        let order = self.order(input, &parameters.order_by, schema, &mut arguments);
        let of = parameters.order_by.first().map(|sort| sort.expr.clone());
        let framed = functions.iter().find(|function| is_framed(function)).unwrap_or(first);
        let frame = frame(&framed.params.window_frame, of.as_ref(), schema)?;
        let by_time = |sort: &SortExpr| {
            let node = self.node(input);
            let column = column_index(&sort.expr, schema).filter(|_| node.mode.is_append_only());
            column.is_some_and(|column| node.rowtime.contains(&column) || node.proctime.contains(&column))
        };
        let plain_order = matches!(parameters.order_by.as_slice(), [only] if only.asc && !by_time(only));
        let plain_frame = frame.start == FrameBound::UnboundedPreceding && frame.end == FrameBound::CurrentRow;
        let plain = |function: &&WindowFunction| {
            let aggregate = matches!(function.fun, WindowFunctionDefinition::AggregateUDF(_));
            aggregate || matches!(function.fun.name(), "row_number" | "rank" | "dense_rank")
        };
        if !(self.settings.any_window || plain_order && plain_frame && functions.iter().all(plain)) {
            let name = first.fun.name().to_uppercase();
            let place = parameters.order_by.first().and_then(|sort| span_in(&sort.expr));
            let what = format!("{name} is not OVER the rows up to its own in one ascending order");
            return Err(beyond_flink(&what).at(place));
        }
        let results = output.fields().iter().skip(shown);
        let calls = functions.iter().zip(results).map(|(function, field)| call(function, field, &mut arguments));
        let calls = calls.collect::<Result<Vec<_>>>()?;
        let prepared = self.read_by(input, schema, arguments)?;
        let mut facts = Facts::like(self.node(prepared));
        facts.schema = Arc::clone(output.inner());
        facts.mode = ChangelogMode::RETRACT;
        facts.rowtime.clear();
        facts.proctime.clear();
        facts.upsert_key = facts.upsert_key.filter(|key| key.iter().all(|column| *column < shown));
        facts.state = self.bound_by_idleness("all rows of each partition", "partitions");
        let edge = self.keyed_edge(prepared, &partition, &mut facts);
        let kind = NodeKind::OverTable { partition, order, frame, calls, shown, ttl_ms: self.settings.ttl_ms };
        Ok(self.add(kind, vec![edge], facts))
    }

    /// The order by columns; that of arrival needs none.
    fn order(
        &self,
        input: NodeId,
        order: &[SortExpr],
        schema: &DFSchema,
        arguments: &mut Arguments<'_>,
    ) -> Vec<SortColumn> {
        let node = self.node(input);
        let by_arrival = |sort: &&SortExpr| {
            let column = column_index(&sort.expr, schema);
            sort.asc && node.mode.is_append_only() && column.is_some_and(|column| node.proctime.contains(&column))
        };
        let sorts = order.iter().take_while(|sort| !by_arrival(sort));
        let column = |sort: &SortExpr| SortColumn {
            column: arguments.column(&sort.expr),
            descending: !sort.asc,
            nulls_first: sort.nulls_first,
        };
        sorts.map(column).collect()
    }
}

/// The frame; distances of time are in the units of the order's column.
fn frame(frame: &WindowFrame, order: Option<&Expr>, schema: &DFSchema) -> Result<Frame> {
    let column = order.and_then(|order| column_index(order, schema)).map(|column| schema.field(column).data_type());
    let place = order.and_then(span_in);
    let units = match frame.units {
        WindowFrameUnits::Rows => FrameUnits::Rows,
        WindowFrameUnits::Range => FrameUnits::Range,
        // Without a number of groups, it is RANGE.
        WindowFrameUnits::Groups if [&frame.start_bound, &frame.end_bound].into_iter().all(is_plain) => {
            FrameUnits::Range
        }
        WindowFrameUnits::Groups => {
            return Err(Error::sql("a frame of GROUPS is not supported").hint("use ROWS or RANGE").at(place));
        }
    };
    let distance = |bound: &ScalarValue| match units {
        FrameUnits::Rows => match bound {
            ScalarValue::UInt64(Some(rows)) => Ok(*rows),
            other => Err(Error::sql(format!("a frame of ROWS goes by a whole number of rows, not by {other}"))),
        },
        FrameUnits::Range => match column {
            Some(DataType::Timestamp(unit, _)) => {
                let length = interval(bound).ok_or_else(not_a_length)?;
                Ok(match unit {
                    TimeUnit::Second => length / 1_000,
                    TimeUnit::Millisecond => length,
                    TimeUnit::Microsecond => length.saturating_mul(1_000),
                    TimeUnit::Nanosecond => length.saturating_mul(1_000_000),
                })
            }
            Some(other) if other.is_integer() => match bound.cast_to(&DataType::UInt64) {
                Ok(ScalarValue::UInt64(Some(distance))) => Ok(distance),
                _ => Err(Error::sql(format!("the length of a RANGE over {other} is a whole number, not {bound}"))),
            },
            _ => Err(Error::sql("a RANGE of so much before or after needs ORDER BY one whole number or timestamp")
                .hint("use ROWS, or RANGE with UNBOUNDED and CURRENT ROW")),
        },
    };
    let bound = |bound: &WindowFrameBound| {
        Ok(match bound {
            WindowFrameBound::Preceding(length) if length.is_null() => FrameBound::UnboundedPreceding,
            WindowFrameBound::Preceding(length) => FrameBound::Preceding(distance(length)?),
            WindowFrameBound::CurrentRow => FrameBound::CurrentRow,
            WindowFrameBound::Following(length) if length.is_null() => FrameBound::UnboundedFollowing,
            WindowFrameBound::Following(length) => FrameBound::Following(distance(length)?),
        })
    };
    let (start, end) = (bound(&frame.start_bound), bound(&frame.end_bound));
    let at = |error: Error| error.at(place);
    let frame = Frame { units, start: start.map_err(at)?, end: end.map_err(at)? };
    let backwards = match (frame.start, frame.end) {
        (FrameBound::Preceding(start), FrameBound::Preceding(end)) => start < end,
        (FrameBound::Following(start), FrameBound::Following(end)) => start > end,
        _ => false,
    };
    match backwards {
        true => Err(Error::sql("a frame ends before it begins").at(place)),
        false => Ok(frame),
    }
}

fn is_plain(bound: &WindowFrameBound) -> bool {
    match bound {
        WindowFrameBound::CurrentRow => true,
        WindowFrameBound::Preceding(length) | WindowFrameBound::Following(length) => length.is_null(),
    }
}

fn call(function: &WindowFunction, field: &FieldRef, arguments: &mut Arguments<'_>) -> Result<FrameCall> {
    let name = function.fun.name();
    let parameters = &function.params;
    refuse_null_treatment(function)?;
    let ordered = || match parameters.order_by.is_empty() {
        true => Err(Error::sql(format!("{} OVER needs ORDER BY", name.to_uppercase()))),
        false => Ok(()),
    };
    let count = |position: usize| match parameters.args.get(position) {
        Some(Expr::Literal(literal, _)) => match literal.cast_to(&DataType::Int64) {
            Ok(ScalarValue::Int64(Some(count))) if count > 0 => Ok(count.unsigned_abs()),
            _ => Err(Error::sql(format!("{} takes a whole number from 1, not {literal}", name.to_uppercase()))),
        },
        _ => Err(Error::sql(format!("{} takes a constant whole number from 1", name.to_uppercase()))),
    };
    let function = match name {
        _ if let Some(aggregate) = windowed_aggregate(function, field, arguments)? => {
            FrameFunction::Aggregate(aggregate)
        }
        "row_number" => FrameFunction::RowNumber,
        "rank" => ordered().map(|()| FrameFunction::Rank)?,
        "dense_rank" => ordered().map(|()| FrameFunction::DenseRank)?,
        "percent_rank" => ordered().map(|()| FrameFunction::PercentRank)?,
        "cume_dist" => ordered().map(|()| FrameFunction::CumeDist)?,
        "ntile" => FrameFunction::Ntile(count(0)?),
        "lag" | "lead" => {
            ordered()?;
            let offset = i64::try_from(offset(function)?).unwrap_or(i64::MAX);
            FrameFunction::Shift {
                column: arguments.column(&parameters.args[0]),
                rows: if name == "lag" { -offset } else { offset },
                default: parameters.args.get(2).map(|default| arguments.column(default)),
            }
        }
        "first_value" => FrameFunction::First(arguments.column(&parameters.args[0])),
        "last_value" => FrameFunction::Last(arguments.column(&parameters.args[0])),
        "nth_value" => FrameFunction::Nth(arguments.column(&parameters.args[0]), count(1)?),
        other => return Err(Error::sql(format!("{} OVER is not supported", other.to_uppercase()))),
    };
    Ok(FrameCall { function, output: Arc::clone(field) })
}
