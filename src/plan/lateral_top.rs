//! The Top-N of each key written with `LATERAL`, the form that Flink knows of it.
//!
//! ```text
//! (SELECT DISTINCT dept FROM emp) d, LATERAL (SELECT name FROM emp WHERE dept = d.dept ORDER BY sal DESC LIMIT 2)
//!     becomes    Top-N of emp, partitioned by dept
//! ```
//!
//! The left side has each key once and the right side reads the table that the keys come from, so that each row on the
//! right has its key on the left: no join is needed. As in Flink, rows without a key count as one more key.

use std::sync::Arc;

use datafusion_common::{Column, Result as BindResult};
use datafusion_expr::utils::{conjunction, split_conjunction};
use datafusion_expr::{Distinct, Expr, Filter, Join, JoinType, Limit, LogicalPlan, Operator, Projection, Sort};

use super::ranking::{skip_and_fetch, top};
use super::translate::column_index;
use crate::types::RankFunction;

/// The join as a Top-N; `None` if it is none of this form.
pub(super) fn top_of_each(join: &Join) -> BindResult<Option<LogicalPlan>> {
    if join.join_type != JoinType::Inner || join.filter.is_some() || !join.on.is_empty() {
        return Ok(None);
    }
    let (Some((table, keys)), Some(body)) = (distinct(&join.left), lateral(&join.right)) else { return Ok(None) };
    let Some(Body { limit, sort, columns, filter }) = Body::of(body) else { return Ok(None) };
    if unnamed(&filter.input) != unnamed(&table) {
        return Ok(None);
    }
    let (Some(partition), rest) = partition(filter, join, &keys)? else { return Ok(None) };
    let (skip, Some(fetch)) = skip_and_fetch(limit)? else { return Ok(None) };
    if fetch == 0 {
        return Ok(None);
    }
    let input = match conjunction(rest) {
        Some(rest) => LogicalPlan::Filter(Filter::try_new(rest, Arc::clone(&filter.input))?),
        None => filter.input.as_ref().clone(),
    };
    // What is shown, with the keys behind it.
    let mut all = columns.to_vec();
    let names: Vec<String> = (0..partition.len()).map(|index| format!("__key_{index}")).collect();
    all.extend(partition.iter().zip(&names).map(|(key, name)| key.clone().alias(name)));
    let input = LogicalPlan::Projection(Projection::try_new(all, Arc::new(input))?);
    let key = |name: &String| Expr::Column(Column::new_unqualified(name));
    let range = (skip + 1, skip.saturating_add(fetch));
    let by = names.iter().map(key).collect();
    let plan = top(&input, by, sort.expr.clone(), RankFunction::RowNumber, range, None)?;
    let left = join.left.schema().iter().zip(&names);
    let left = left.map(|((qualifier, field), name)| key(name).alias_qualified(qualifier.cloned(), field.name()));
    let right = join
        .right
        .schema()
        .iter()
        .zip(sort.input.schema().columns())
        .map(|((qualifier, field), column)| Expr::Column(column).alias_qualified(qualifier.cloned(), field.name()));
    let result = Projection::try_new(left.chain(right).collect(), Arc::new(plan))?;
    Ok(Some(LogicalPlan::Projection(result)))
}

/// The query below `LATERAL`.
fn lateral(plan: &LogicalPlan) -> Option<&LogicalPlan> {
    match plan {
        LogicalPlan::SubqueryAlias(alias) => lateral(&alias.input),
        LogicalPlan::Subquery(subquery) => Some(&subquery.subquery),
        _ => None,
    }
}

/// The table whose distinct rows these are, and the columns of it.
fn distinct(plan: &LogicalPlan) -> Option<(LogicalPlan, Vec<usize>)> {
    match plan {
        LogicalPlan::SubqueryAlias(alias) => distinct(&alias.input),
        LogicalPlan::Distinct(Distinct::All(input)) => match input.as_ref() {
            LogicalPlan::Projection(projection) => columns_of(&projection.expr, &projection.input),
            _ => None,
        },
        LogicalPlan::Projection(projection) => match projection.input.as_ref() {
            LogicalPlan::Aggregate(aggregate) if aggregate.aggr_expr.is_empty() => {
                let (table, grouped) = columns_of(&aggregate.group_expr, &aggregate.input)?;
                let shown = projection.expr.iter().map(|expression| {
                    let index = column_index(expression, projection.input.schema())?;
                    grouped.get(index).copied()
                });
                let shown: Vec<usize> = shown.collect::<Option<_>>()?;
                // A key that is not shown would make the others repeat.
                let all = grouped.iter().all(|column| shown.contains(column));
                all.then_some((table, shown))
            }
            _ => None,
        },
        _ => None,
    }
}

fn columns_of(expressions: &[Expr], input: &LogicalPlan) -> Option<(LogicalPlan, Vec<usize>)> {
    let columns = expressions.iter().map(|expression| column_index(expression, input.schema()));
    Some((input.clone(), columns.collect::<Option<_>>()?))
}

/// A relation without the name it goes by here.
fn unnamed(plan: &LogicalPlan) -> &LogicalPlan {
    match plan {
        LogicalPlan::SubqueryAlias(alias) => unnamed(&alias.input),
        other => other,
    }
}

/// The parts of `SELECT columns FROM … WHERE … ORDER BY … LIMIT …`.
struct Body<'a> {
    limit: &'a Limit,
    sort: &'a Sort,
    columns: &'a [Expr],
    filter: &'a Filter,
}

impl Body<'_> {
    fn of(plan: &LogicalPlan) -> Option<Body<'_>> {
        let LogicalPlan::Limit(limit) = plan else { return None };
        // An order by columns that are not shown has a projection here: that is beyond the form.
        let LogicalPlan::Sort(sort) = limit.input.as_ref() else { return None };
        let LogicalPlan::Projection(projection) = sort.input.as_ref() else { return None };
        let LogicalPlan::Filter(filter) = projection.input.as_ref() else { return None };
        Some(Body { limit, sort, columns: &projection.expr, filter })
    }
}

/// The columns that must equal the left side's, in its order, and what else must hold. There are none if a key is missing,
/// or anything else is asked of the left side.
fn partition(filter: &Filter, join: &Join, keys: &[usize]) -> BindResult<(Option<Vec<Expr>>, Vec<Expr>)> {
    let (left, schema) = (join.left.schema(), filter.input.schema());
    let mut partition: Vec<Option<Expr>> = vec![None; keys.len()];
    let mut rest = Vec::new();
    for condition in split_conjunction(&filter.predicate) {
        if !condition.contains_outer() {
            rest.push(condition.clone());
            continue;
        }
        let Expr::BinaryExpr(binary) = condition else { return Ok((None, rest)) };
        let (inner, outer) = match (binary.left.as_ref(), binary.right.as_ref()) {
            (inner, Expr::OuterReferenceColumn(_, outer)) | (Expr::OuterReferenceColumn(_, outer), inner) => {
                (inner, outer)
            }
            _ => return Ok((None, rest)),
        };
        let (Some(place), Some(column)) = (left.maybe_index_of_column(outer), column_index(inner, schema)) else {
            return Ok((None, rest));
        };
        // The same column on both sides: only then has each row its key.
        if binary.op != Operator::Eq || keys[place] != column || partition[place].is_some() {
            return Ok((None, rest));
        }
        partition[place] = Some(inner.clone());
    }
    Ok((partition.into_iter().collect(), rest))
}
