//! Finds Top-N in a bound plan: a condition on a rank, and `LIMIT`.
//!
//! ```text
//! Filter(rn <= 2)                                         SubqueryAlias(t)
//!   SubqueryAlias(t)                             becomes    Projection(…, row_number() AS rn)
//!     Projection(…, row_number() AS rn)                       Rank(1 to 2)
//!       Window(row_number() …)
//! ```
//!
//! It comes before the library's own rules, which would move the condition or drop the window.

use std::sync::Arc;

use datafusion_common::tree_node::Transformed;
use datafusion_common::{Column, Result as BindResult, ScalarValue};
use datafusion_expr::expr::WindowFunctionParams;
use datafusion_expr::utils::{conjunction, split_conjunction_owned};
use datafusion_expr::{
    EmptyRelation, Expr, Extension, Filter, Limit, LogicalPlan, LogicalPlanBuilder, Operator, Projection, Sort,
    SortExpr, SubqueryAlias, Window, WindowFunctionDefinition,
};

use super::error::{span_in, wrap};
use super::rank_node::RankNode;
use super::translate::column_index;
use crate::error::Error;
use crate::types::RankFunction;

/// The plan with its Top-N as nodes of their own. `batch`: inputs end, so that a whole result can be sorted.
pub(super) fn apply(plan: LogicalPlan, batch: bool) -> BindResult<LogicalPlan> {
    let plan = plan.transform_down_with_subqueries(|node| match node {
        LogicalPlan::Filter(filter) => ranked(filter),
        // A bounded result is sorted and cut as a whole.
        LogicalPlan::Limit(limit) if !batch => limited(limit),
        other => Ok(Transformed::no(other)),
    })?;
    unsorted_below(plan.data)
}

/// Drops `ORDER BY` of subqueries: their rows have no order for whoever reads them, unless it is a `LIMIT`.
fn unsorted_below(plan: LogicalPlan) -> BindResult<LogicalPlan> {
    let mut in_order = true;
    let plan = plan.transform_down_with_subqueries(|node| match node {
        LogicalPlan::Sort(sort) if !in_order => Ok(Transformed::yes(Arc::unwrap_or_clone(sort.input))),
        LogicalPlan::Projection(_) => Ok(Transformed::no(node)),
        other => {
            in_order = matches!(other, LogicalPlan::Limit(_));
            Ok(Transformed::no(other))
        }
    })?;
    Ok(plan.data)
}

/// The bounds that a conjunction sets to a rank.
struct Bounds {
    first: i64,
    last: Option<i64>,
}

fn ranked(filter: Filter) -> BindResult<Transformed<LogicalPlan>> {
    let conditions = split_conjunction_owned(filter.predicate.clone());
    let bounds = |condition: &Expr| {
        let (column, operator, number) = comparison(condition)?;
        let index = filter.input.schema().maybe_index_of_column(column)?;
        Some((index, operator, number))
    };
    let is_rank = |index: usize| window_of(&filter.input, index).is_some();
    let Some(rank) = conditions.iter().filter_map(bounds).map(|(index, ..)| index).find(|index| is_rank(*index)) else {
        return Ok(Transformed::no(LogicalPlan::Filter(filter)));
    };
    let place = conditions.iter().find_map(span_in);
    let mut range = Bounds { first: 1, last: None };
    let mut rest = Vec::new();
    for condition in &conditions {
        match bounds(condition) {
            Some((index, operator, number)) if index == rank => range.narrow(operator, number),
            _ => rest.push(condition.clone()),
        }
    }
    let Some(last) = range.last else {
        return Err(wrap(
            Error::sql("a rank needs an upper bound: without one no row could ever be forgotten")
                .at(place)
                .hint("add a condition like rn <= 10"),
        ));
    };
    if last < 1 {
        return Err(wrap(Error::sql(format!("ranks start at 1, so none is at most {last}")).at(place)));
    }
    // A range without ranks keeps the node, for the names and types of its columns, and drops all rows.
    let bounded = if range.first > last { (1, 1) } else { (range.first as u64, last as u64) };
    let replaced = replace(&filter.input, rank, bounded)?;
    if range.first > last {
        rest.push(Expr::Literal(ScalarValue::Boolean(Some(false)), None));
    }
    Ok(Transformed::yes(match conjunction(rest) {
        Some(condition) => LogicalPlan::Filter(Filter::try_new(condition, Arc::new(replaced))?),
        None => replaced,
    }))
}

impl Bounds {
    fn narrow(&mut self, operator: Operator, number: i64) {
        let at_most = |last: Option<i64>, number: i64| Some(last.map_or(number, |last| last.min(number)));
        match operator {
            Operator::LtEq => self.last = at_most(self.last, number),
            Operator::Lt => self.last = at_most(self.last, number.saturating_sub(1)),
            Operator::GtEq => self.first = self.first.max(number),
            Operator::Gt => self.first = self.first.max(number.saturating_add(1)),
            _ => {
                self.first = self.first.max(number);
                self.last = at_most(self.last, number);
            }
        }
    }
}

/// `column <= 5` and its like, either way round.
fn comparison(condition: &Expr) -> Option<(&Column, Operator, i64)> {
    let Expr::BinaryExpr(binary) = condition else { return None };
    let (column, operator, number) = match (plain(&binary.left), plain(&binary.right)) {
        (Expr::Column(column), Expr::Literal(number, _)) => (column, binary.op, number),
        (Expr::Literal(number, _), Expr::Column(column)) => (column, binary.op.swap()?, number),
        _ => return None,
    };
    let known = matches!(operator, Operator::Lt | Operator::LtEq | Operator::Gt | Operator::GtEq | Operator::Eq);
    Some((column, operator, whole(number).filter(|_| known)?))
}

/// What an expression is below widening casts and other names.
fn plain(expression: &Expr) -> &Expr {
    match expression {
        Expr::Cast(cast) if cast.field.data_type().is_integer() => plain(&cast.expr),
        Expr::Alias(alias) => plain(&alias.expr),
        other => other,
    }
}

fn whole(number: &ScalarValue) -> Option<i64> {
    match number {
        ScalarValue::Int8(number) => number.map(i64::from),
        ScalarValue::Int16(number) => number.map(i64::from),
        ScalarValue::Int32(number) => number.map(i64::from),
        ScalarValue::Int64(number) => *number,
        _ => None,
    }
}

fn ranking(window: &Window) -> Option<(RankFunction, &WindowFunctionParams)> {
    let [expression] = window.window_expr.as_slice() else { return None };
    let Expr::WindowFunction(function) = plain(expression) else { return None };
    let WindowFunctionDefinition::WindowUDF(definition) = &function.fun else { return None };
    let ranks = match definition.name() {
        "row_number" => RankFunction::RowNumber,
        "rank" => RankFunction::Rank,
        "dense_rank" => RankFunction::DenseRank,
        _ => return None,
    };
    Some((ranks, &function.params))
}

/// The window that gives column `index` of `plan` as a rank.
fn window_of(plan: &LogicalPlan, index: usize) -> Option<&Window> {
    match plan {
        LogicalPlan::SubqueryAlias(alias) => window_of(&alias.input, index),
        LogicalPlan::Filter(filter) => window_of(&filter.input, index),
        LogicalPlan::Projection(projection) => {
            window_of(&projection.input, column_index(projection.expr.get(index)?, projection.input.schema())?)
        }
        LogicalPlan::Window(window) => {
            (ranking(window).is_some() && index == window.input.schema().fields().len()).then_some(window)
        }
        _ => None,
    }
}

/// `plan` with the window behind column `index` replaced by a Top-N.
fn replace(plan: &LogicalPlan, index: usize, range: (u64, u64)) -> BindResult<LogicalPlan> {
    Ok(match plan {
        LogicalPlan::SubqueryAlias(alias) => {
            let input = replace(&alias.input, index, range)?;
            LogicalPlan::SubqueryAlias(SubqueryAlias::try_new(Arc::new(input), alias.alias.clone())?)
        }
        LogicalPlan::Filter(filter) => {
            let input = replace(&filter.input, index, range)?;
            LogicalPlan::Filter(Filter::try_new(filter.predicate.clone(), Arc::new(input))?)
        }
        LogicalPlan::Projection(projection) => {
            let below = projection.expr.get(index).and_then(|e| column_index(e, projection.input.schema()));
            let Some(below) = below else { return lost() };
            let input = replace(&projection.input, below, range)?;
            LogicalPlan::Projection(Projection::try_new(projection.expr.clone(), Arc::new(input))?)
        }
        LogicalPlan::Window(window) => {
            let Some((function, parameters)) = ranking(window) else { return lost() };
            let name = window.window_expr[0].to_string();
            if parameters.order_by.iter().all(|sort| matches!(plain(&sort.expr), Expr::Literal(..))) {
                return Err(wrap(
                    Error::sql(format!("{name} needs an order to rank by")).hint("add ORDER BY a column to OVER (…)"),
                ));
            }
            let (qualifier, field) = window.schema.qualified_field(index);
            let rank = Some((qualifier.cloned(), Arc::clone(field)));
            top(&window.input, parameters.partition_by.clone(), parameters.order_by.clone(), function, range, rank)?
        }
        _ => return lost(),
    })
}

fn lost<T>() -> BindResult<T> {
    datafusion_common::internal_err!("a rank was lost on the way to its window")
}

/// A Top-N whose partition and order are made columns first; the columns of `input`, and the rank, come out.
pub(super) fn top(
    input: &LogicalPlan,
    partition: Vec<Expr>,
    order: Vec<SortExpr>,
    function: RankFunction,
    range: (u64, u64),
    rank: Option<super::rank_node::RankColumn>,
) -> BindResult<LogicalPlan> {
    let schema = input.schema();
    let mut computed: Vec<Expr> = Vec::new();
    let mut column = |expression: Expr| match column_index(&expression, schema) {
        Some(index) => Expr::Column(Column::from(schema.qualified_field(index))),
        None => {
            let name = format!("__order_{}", computed.len());
            computed.push(expression.alias(&name));
            Expr::Column(Column::new_unqualified(name))
        }
    };
    let partition: Vec<Expr> = partition.into_iter().map(&mut column).collect();
    let order: Vec<SortExpr> =
        order.into_iter().map(|sort| SortExpr { expr: column(sort.expr.clone()), ..sort }).collect();
    let prepared = if computed.is_empty() {
        input.clone()
    } else {
        let all = schema.columns().into_iter().map(Expr::Column).chain(computed.iter().cloned());
        LogicalPlan::Projection(Projection::try_new(all.collect(), Arc::new(input.clone()))?)
    };
    let node = RankNode::new(prepared, partition, order, function, range, rank)?;
    let plan = LogicalPlan::Extension(Extension { node: Arc::new(node) });
    if computed.is_empty() {
        return Ok(plan);
    }
    let mut shown = plan.schema().columns();
    shown.drain(schema.fields().len()..schema.fields().len() + computed.len());
    LogicalPlanBuilder::from(plan).project(shown.into_iter().map(Expr::Column))?.build()
}

/// `LIMIT`, with the `ORDER BY` below it.
fn limited(limit: Limit) -> BindResult<Transformed<LogicalPlan>> {
    let (skip, fetch) = skip_and_fetch(&limit)?;
    let Some(fetch) = fetch else {
        return Err(wrap(
            Error::sql("OFFSET needs a LIMIT over a stream: without one the rows that come never end")
                .hint("add LIMIT, or SET 'execution.runtime-mode' = 'batch'"),
        ));
    };
    if fetch == 0 {
        let schema = Arc::clone(limit.input.schema());
        let empty = LogicalPlan::EmptyRelation(EmptyRelation { produce_one_row: false, schema });
        return Ok(Transformed::yes(empty));
    }
    let range = (skip + 1, skip.saturating_add(fetch));
    Ok(Transformed::yes(limit_below(&limit.input, range)?))
}

/// The constants of `OFFSET` and `LIMIT`.
pub(super) fn skip_and_fetch(limit: &Limit) -> BindResult<(u64, Option<u64>)> {
    let number = |expression: Option<&Expr>| match expression.map(plain) {
        None => Ok(None),
        Some(Expr::Literal(number, _)) if number.is_null() => Ok(None),
        Some(Expr::Literal(number, _)) => {
            let number = whole(number).and_then(|number| u64::try_from(number).ok());
            number.map(Some).ok_or_else(|| wrap(Error::sql("LIMIT and OFFSET take whole numbers from 0 on")))
        }
        Some(other) => Err(wrap(Error::sql(format!("LIMIT and OFFSET take a number, not '{other}'")))),
    };
    Ok((number(limit.skip.as_deref())?.unwrap_or(0), number(limit.fetch.as_deref())?))
}

/// The Top-N of a `LIMIT`: projections between it and its `ORDER BY` stay above.
fn limit_below(plan: &LogicalPlan, range: (u64, u64)) -> BindResult<LogicalPlan> {
    match plan {
        LogicalPlan::Projection(projection) if sort_below(&projection.input).is_some() => {
            let input = limit_below(&projection.input, range)?;
            Ok(LogicalPlan::Projection(Projection::try_new(projection.expr.clone(), Arc::new(input))?))
        }
        LogicalPlan::Sort(Sort { expr, input, .. }) => {
            top(input, Vec::new(), expr.clone(), RankFunction::RowNumber, range, None)
        }
        other => top(other, Vec::new(), Vec::new(), RankFunction::RowNumber, range, None),
    }
}

fn sort_below(plan: &LogicalPlan) -> Option<&Sort> {
    match plan {
        LogicalPlan::Sort(sort) => Some(sort),
        LogicalPlan::Projection(projection) => sort_below(&projection.input),
        _ => None,
    }
}
