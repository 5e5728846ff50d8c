//! Interval joins: joins whose condition bounds the time between two rows from both sides.
//!
//! `b.ts BETWEEN a.ts AND a.ts + INTERVAL '1' HOUR` says that the right time less the left one lies between 0 and
//! 3,600,000 ms. Each comparison of the two sides' time attributes, with constants added to either, narrows the interval;
//! the rest of the condition is judged pair by pair.

use std::sync::Arc;

use arrow::datatypes::{DataType, Field, TimeUnit};
use datafusion_common::{DFSchema, ScalarValue};
use datafusion_expr::utils::{conjunction, split_conjunction};
use datafusion_expr::{BinaryExpr, Expr, Join, Operator};

use super::calc::column_index;
use super::join::{KeyedInputs, Sides};
use super::{Facts, Translation};
use crate::error::{Error, Result};
use crate::plan::error::unwrap;
use crate::plan::relations::constant_interval;
use crate::plan::stream::{JoinSide, Node, NodeId, NodeKind, NodeParallelism, StateBound};

/// What a condition says about the time between two rows.
pub(super) struct Interval {
    /// The time columns, left and right; `None`: processing time.
    times: Option<[usize; 2]>,
    /// The least and the greatest milliseconds from a left row to a right row.
    bounds: (i64, i64),
    /// What the bounds do not say.
    rest: Option<Expr>,
}

/// Which clock a time attribute follows.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Clock {
    Event,
    Processing,
}

/// The two time attributes that a comparison is about.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Attributes {
    clock: Clock,
    columns: [usize; 2],
}

/// A time attribute plus a constant between `least` and `greatest` milliseconds: a month has 28 to 31 days.
struct Moment {
    port: usize,
    clock: Clock,
    column: usize,
    least: i64,
    greatest: i64,
}

/// A comparison as bounds.
struct Comparison {
    attributes: Attributes,
    least: Option<i64>,
    greatest: Option<i64>,
    /// Whether the bounds say all of it.
    exact: bool,
}

impl Translation<'_> {
    /// The interval of a join whose condition bounds the time between rows from below and above.
    pub(super) fn interval(&self, sides: &Sides<'_>, inputs: [NodeId; 2]) -> Option<Interval> {
        if !sides.kind.emits_pairs() {
            return None;
        }
        let parts: Vec<&Expr> = sides.filter.iter().flat_map(split_conjunction).collect();
        let in_filter: Vec<Option<Comparison>> =
            parts.iter().map(|part| self.comparison(part, sides, inputs)).collect();
        let among_keys = sides.on.iter().filter_map(|(left, right)| {
            self.compared(left, Operator::Eq, right, sides, inputs).map(|mut equal| {
                // It stays a key, whatever the bounds say.
                equal.exact = true;
                equal
            })
        });
        let among_keys: Vec<Comparison> = among_keys.collect();
        let all = || in_filter.iter().flatten().chain(&among_keys);
        // Processing time is told by the clock, so nothing can be left to the rows' own columns.
        let usable = |comparison: &Comparison| comparison.exact || comparison.attributes.clock == Clock::Event;
        let attributes = all().filter(|comparison| usable(comparison)).map(|comparison| comparison.attributes);
        let (attributes, bounds) = attributes.into_iter().find_map(|attributes| {
            let same = || all().filter(|comparison| comparison.attributes == attributes && usable(comparison));
            let least = same().filter_map(|comparison| comparison.least).max()?;
            let greatest = same().filter_map(|comparison| comparison.greatest).min()?;
            Some((attributes, (least, greatest)))
        })?;
        let said = |comparison: &Option<Comparison>| {
            comparison.as_ref().is_some_and(|found| found.exact && found.attributes == attributes)
        };
        let rest = parts.into_iter().zip(&in_filter).filter(|(_, found)| !said(found)).map(|(part, _)| part.clone());
        Some(Interval {
            times: (attributes.clock == Clock::Event).then_some(attributes.columns),
            bounds,
            rest: conjunction(rest),
        })
    }

    /// The node of an interval join.
    pub(super) fn interval_join(
        &mut self,
        join: &Join,
        sides: Sides<'_>,
        inputs: [NodeId; 2],
        interval: Interval,
    ) -> Result<NodeId> {
        self.require_inserts(inputs, "an interval join")?;
        let (kind, null_keys) = (sides.kind, sides.null_keys);
        let schemas = sides.inputs.map(|input| Arc::clone(input.schema()));
        let KeyedInputs { nodes, sides: keyed, edges, single } = self.keyed_inputs(sides, inputs)?;
        let mut facts = Facts::plain(Arc::clone(join.schema.inner()));
        facts.upsert_key = self.joined_key(kind, nodes, [&keyed[0], &keyed[1]]);
        facts.proctime = self.both(nodes, &keyed, |node| &node.proctime);
        if interval.times.is_some() {
            facts.rowtime = self.both(nodes, &keyed, |node| &node.rowtime);
        }
        facts.state = bound(&interval);
        if single {
            facts.parallelism = NodeParallelism::Single;
        }
        let pairs = match &interval.rest {
            Some(_) => Arc::new(schemas[0].join(&schemas[1]).map_err(unwrap)?),
            None => Arc::new(DFSchema::empty()),
        };
        let node = NodeKind::IntervalJoin {
            kind,
            sides: keyed,
            times: interval.times,
            bounds: interval.bounds,
            condition: interval.rest,
            pairs,
            null_keys,
        };
        Ok(self.add(node, edges, facts))
    }

    /// Columns of both inputs as columns of the joined rows.
    pub(super) fn both(
        &self,
        nodes: [NodeId; 2],
        sides: &[JoinSide; 2],
        columns: impl Fn(&Node) -> &Vec<usize>,
    ) -> Vec<usize> {
        let of =
            |port: usize| columns(self.node(nodes[port])).iter().filter(move |column| **column < sides[port].width);
        of(0).copied().chain(of(1).map(|column| column + sides[0].width)).collect()
    }

    /// # Errors
    /// If an input of a join that only takes rows also changes or deletes them.
    pub(super) fn require_inserts(&self, inputs: [NodeId; 2], what: &str) -> Result<()> {
        for (input, name) in inputs.into_iter().zip(["left", "right"]) {
            let node = self.node(input);
            if !node.mode.is_append_only() {
                return Err(Error::sql(format!(
                    "{what} takes rows that only come, and its {name} input ({}) also brings changes of rows: {}",
                    node.kind.name(),
                    node.mode
                ))
                .hint(
                    "CAST the time column to a plain timestamp: that makes it a regular join, which keeps all rows",
                ));
            }
        }
        Ok(())
    }

    fn comparison(&self, part: &Expr, sides: &Sides<'_>, inputs: [NodeId; 2]) -> Option<Comparison> {
        let Expr::BinaryExpr(BinaryExpr { left, op, right }) = part else { return None };
        self.compared(left, *op, right, sides, inputs)
    }

    fn compared(
        &self,
        left: &Expr,
        operator: Operator,
        right: &Expr,
        sides: &Sides<'_>,
        inputs: [NodeId; 2],
    ) -> Option<Comparison> {
        let moment = |expression: &Expr| self.moment(expression, sides, inputs);
        let (left, right) = (moment(left)?, moment(right)?);
        if left.port == right.port || left.clock != right.clock {
            return None;
        }
        // As `right row's time - left row's time <operator> constant`.
        let (operator, of_left, of_right) =
            if left.port == 0 { (operator.swap()?, left, right) } else { (operator, right, left) };
        let least = of_left.least.checked_sub(of_right.greatest)?;
        let greatest = of_left.greatest.checked_sub(of_right.least)?;
        // What is more than a month's worth of constants away is exact only by its own words.
        let exact = least == greatest;
        let past = |bound: i64, step: i64| if exact { bound + step } else { bound };
        let (least, greatest) = match operator {
            Operator::Eq => (Some(least), Some(greatest)),
            Operator::Gt => (Some(past(least, 1)), None),
            Operator::GtEq => (Some(least), None),
            Operator::Lt => (None, Some(past(greatest, -1))),
            Operator::LtEq => (None, Some(greatest)),
            _ => return None,
        };
        let attributes = Attributes { clock: of_left.clock, columns: [of_left.column, of_right.column] };
        Some(Comparison { attributes, least, greatest, exact })
    }

    /// A time attribute of one side plus or minus a constant.
    fn moment(&self, expression: &Expr, sides: &Sides<'_>, inputs: [NodeId; 2]) -> Option<Moment> {
        if let Expr::ScalarFunction(call) = expression {
            let (inner, (least, greatest)) = match (call.name(), call.args.as_slice()) {
                ("flink_plus", [left, right]) => match duration(right) {
                    Some(length) => (left, length),
                    None => (right, duration(left)?),
                },
                ("flink_minus", [left, right]) => {
                    let (least, greatest) = duration(right)?;
                    (left, (-greatest, -least))
                }
                ("timestampadd", [unit, count, inner]) => (inner, counted_duration(unit, count)?),
                _ => return None,
            };
            let moment = self.moment(inner, sides, inputs)?;
            return Some(Moment {
                least: moment.least.checked_add(least)?,
                greatest: moment.greatest.checked_add(greatest)?,
                ..moment
            });
        }
        let at = |port: usize| Some((port, column_index(expression, sides.inputs[port].schema())?));
        let (port, column) = at(0).or_else(|| at(1))?;
        let node = self.node(inputs[port]);
        let versions = self.windows.get(&inputs[port]).is_some_and(|windows| windows.versions.contains(&column));
        let clock = if node.rowtime.contains(&column) || versions {
            Clock::Event
        } else if node.proctime.contains(&column) {
            Clock::Processing
        } else {
            return None;
        };
        // The operator reckons in milliseconds: what is finer is left to the condition's own words.
        let finer = |field: &Field| {
            matches!(field.data_type(), DataType::Timestamp(TimeUnit::Microsecond | TimeUnit::Nanosecond, _))
        };
        let slack = i64::from(finer(node.schema.field(column)));
        Some(Moment { port, clock, column, least: -slack, greatest: slack })
    }
}

/// Milliseconds of a day.
const DAY: i64 = 86_400_000;

/// The least and greatest milliseconds of a constant interval.
fn duration(expression: &Expr) -> Option<(i64, i64)> {
    match expression {
        Expr::Negative(inner) => duration(inner).map(|(least, greatest)| (-greatest, -least)),
        Expr::Literal(ScalarValue::IntervalYearMonth(Some(months)), _) => Some(months_and(i64::from(*months), 0)),
        Expr::Literal(ScalarValue::IntervalMonthDayNano(Some(value)), _) => {
            let exact = i64::from(value.days) * DAY + value.nanoseconds / 1_000_000;
            (value.nanoseconds % 1_000_000 == 0).then(|| months_and(i64::from(value.months), exact))
        }
        other => constant_interval(other).ok().map(|exact| (exact, exact)),
    }
}

/// The least and greatest milliseconds of `TIMESTAMPADD(unit, count, …)`.
fn counted_duration(unit: &Expr, count: &Expr) -> Option<(i64, i64)> {
    let Expr::Literal(ScalarValue::Utf8(Some(unit)), _) = unit else { return None };
    let count = match count {
        Expr::Literal(ScalarValue::Int32(Some(count)), _) => i64::from(*count),
        Expr::Literal(ScalarValue::Int64(Some(count)), _) => i64::from(i32::try_from(*count).ok()?),
        _ => return None,
    };
    let exact = |length: i64| Some((count * length, count * length));
    match unit.to_ascii_uppercase().as_str() {
        "SECOND" => exact(1_000),
        "MINUTE" => exact(60_000),
        "HOUR" => exact(3_600_000),
        "DAY" => exact(DAY),
        "WEEK" => exact(7 * DAY),
        "MONTH" => Some(months_and(count, 0)),
        "QUARTER" => Some(months_and(count * 3, 0)),
        "YEAR" => Some(months_and(count * 12, 0)),
        _ => None,
    }
}

/// So many months, each of 28 to 31 days, and milliseconds.
fn months_and(months: i64, exact: i64) -> (i64, i64) {
    let (shortest, longest) = if months < 0 { (31, 28) } else { (28, 31) };
    (months * shortest * DAY + exact, months * longest * DAY + exact)
}

/// What bounds the state of an interval join.
fn bound(interval: &Interval) -> StateBound {
    let (least, greatest) = interval.bounds;
    if least > greatest {
        return StateBound::Bounded("no row can match, so none is kept".into());
    }
    let clock = if interval.times.is_some() { "the watermark" } else { "processing time" };
    StateBound::Bounded(format!(
        "rows go when {clock} has passed their last possible match: left rows after {} ms, right rows after {} ms",
        greatest.max(0),
        least.saturating_neg().max(0)
    ))
}
