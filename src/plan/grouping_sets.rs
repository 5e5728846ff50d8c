//! `GROUPING SETS`, `ROLLUP` and `CUBE` as one grouping over rows that are repeated for each set.
//!
//! ```text
//! GROUP BY GROUPING SETS ((a), (b))    becomes    Expand   a b  →  a b | a NULL 0  and  a b | NULL b 1
//!                                                 GROUP BY the two columns and the set's number
//! ```
//!
//! Aggregates read the original columns, which are not emptied. Columns of every set, those of a window among them, are
//! grouped by as they are. `GROUPING` is a constant of the set's number.

use std::cmp::{Ordering, Reverse};
use std::fmt;
use std::sync::Arc;

use arrow::datatypes::{DataType, Field};
use datafusion_common::tree_node::Transformed;
use datafusion_common::{Column, DFSchema, DFSchemaRef, Result as BindResult, ScalarValue};
use datafusion_expr::expr::{AggregateFunction, Case, GroupingSet};
use datafusion_expr::utils::grouping_set_to_exprlist;
use datafusion_expr::{
    Aggregate, Expr, Extension, LogicalPlan, LogicalPlanBuilder, Projection, UserDefinedLogicalNodeCore, lit,
};

use super::error::{span_in, wrap};
use super::translate::column_index;
use crate::error::Error;

/// Rows repeated by grouping set.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct ExpandNode {
    pub input: LogicalPlan,
    /// Columns of the input.
    pub columns: Vec<Expr>,
    /// Which of them each set groups by.
    pub sets: Vec<Vec<bool>>,
    schema: DFSchemaRef,
}

/// The column of the set's number.
const SET: &str = "__grouping_set";

impl ExpandNode {
    fn new(input: LogicalPlan, columns: Vec<Expr>, sets: Vec<Vec<bool>>) -> BindResult<ExpandNode> {
        let mut fields: Vec<_> = input.schema().iter().map(|(q, field)| (q.cloned(), Arc::clone(field))).collect();
        for (index, column) in columns.iter().enumerate() {
            let field = match column_index(column, input.schema()) {
                Some(column) => input.schema().field(column),
                None => return datafusion_common::internal_err!("'{column}' is no column of a grouping set"),
            };
            fields.push((None, Arc::new(field.as_ref().clone().with_name(grouped(index)).with_nullable(true))));
        }
        fields.push((None, Arc::new(Field::new(SET, DataType::Int64, false))));
        let schema = DFSchema::new_with_metadata(fields, input.schema().metadata().clone())?;
        Ok(ExpandNode { input, columns, sets, schema: Arc::new(schema) })
    }
}

fn grouped(index: usize) -> String {
    format!("__grouped_{index}")
}

impl PartialOrd for ExpandNode {
    fn partial_cmp(&self, other: &ExpandNode) -> Option<Ordering> {
        self.sets.partial_cmp(&other.sets)
    }
}

impl UserDefinedLogicalNodeCore for ExpandNode {
    fn name(&self) -> &str {
        "Expand"
    }

    fn inputs(&self) -> Vec<&LogicalPlan> {
        vec![&self.input]
    }

    fn schema(&self) -> &DFSchemaRef {
        &self.schema
    }

    fn expressions(&self) -> Vec<Expr> {
        self.columns.clone()
    }

    fn fmt_for_explain(&self, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "Expand: {:?} {:?}", self.columns, self.sets)
    }

    fn with_exprs_and_inputs(&self, exprs: Vec<Expr>, mut inputs: Vec<LogicalPlan>) -> BindResult<ExpandNode> {
        match inputs.pop() {
            Some(input) => ExpandNode::new(input, exprs, self.sets.clone()),
            None => datafusion_common::internal_err!("grouping sets were rebuilt without an input"),
        }
    }

    fn necessary_children_exprs(&self, output_columns: &[usize]) -> Option<Vec<Vec<usize>>> {
        let schema = self.input.schema();
        let own = schema.fields().len();
        let mut needed: Vec<usize> = output_columns.iter().copied().filter(|column| *column < own).collect();
        for column in &self.columns {
            needed.push(column_index(column, schema)?);
        }
        needed.sort_unstable();
        needed.dedup();
        Some(vec![needed])
    }
}

/// The plan without grouping sets and `GROUPING`.
pub(super) fn apply(plan: LogicalPlan) -> BindResult<LogicalPlan> {
    let plan = plan.transform_up_with_subqueries(|node| match node {
        LogicalPlan::Aggregate(aggregate) => {
            let sets = matches!(aggregate.group_expr.as_slice(), [Expr::GroupingSet(_)]);
            let asks = aggregate.aggr_expr.iter().any(|expression| grouping(expression).is_some());
            if !sets && !asks { Ok(Transformed::no(LogicalPlan::Aggregate(aggregate))) } else { rewrite(aggregate) }
        }
        other => Ok(Transformed::no(other)),
    })?;
    Ok(plan.data)
}

/// The call of `GROUPING` or `GROUPING_ID` that an aggregate is.
fn grouping(expression: &Expr) -> Option<&AggregateFunction> {
    match expression {
        Expr::Alias(alias) => grouping(&alias.expr),
        Expr::AggregateFunction(call) if matches!(call.func.name(), "grouping" | "grouping_id") => Some(call),
        _ => None,
    }
}

fn rewrite(aggregate: Aggregate) -> BindResult<Transformed<LogicalPlan>> {
    let all: Vec<Expr> = grouping_set_to_exprlist(&aggregate.group_expr)?.into_iter().cloned().collect();
    let sets = sets(&aggregate.group_expr, &all);
    let everywhere = |index: usize| sets.iter().all(|set| set[index]);
    let emptied: Vec<usize> = (0..all.len()).filter(|index| !everywhere(*index)).collect();
    let (calls, kept): (Vec<&Expr>, Vec<&Expr>) =
        aggregate.aggr_expr.iter().partition(|expression| grouping(expression).is_some());
    let kept: Vec<Expr> = kept.into_iter().cloned().collect();
    let is_set = matches!(aggregate.group_expr.as_slice(), [Expr::GroupingSet(_)]);
    let grouping_calls = calls.iter().filter_map(|expression| grouping(expression));
    let values = grouping_calls.map(|call| value_by_set(call, &all, &sets)).collect::<BindResult<Vec<_>>>()?;

    let mut keys = all.clone();
    let input = if is_set {
        let columns = emptied.iter().map(|index| all[*index].clone()).collect();
        let by_set = sets.iter().map(|set| emptied.iter().map(|index| set[*index]).collect()).collect();
        for (place, index) in emptied.iter().enumerate() {
            keys[*index] = Expr::Column(Column::new_unqualified(grouped(place)));
        }
        keys.push(Expr::Column(Column::new_unqualified(SET)));
        expand(&aggregate.input, columns, by_set)?
    } else {
        aggregate.input.as_ref().clone()
    };
    let groups = keys.len();
    let plan = LogicalPlan::Aggregate(Aggregate::try_new(Arc::new(input), keys, kept)?);

    // The names the query knows, in the order of the original.
    let computed = plan.schema().columns();
    let mut shown: Vec<Expr> = (0..all.len())
        .map(|index| {
            let (qualifier, field) = aggregate.schema.qualified_field(index);
            Expr::Column(computed[index].clone()).alias_qualified(qualifier.cloned(), field.name())
        })
        .collect();
    let (mut kept, mut values) = (computed[groups..].iter(), values.into_iter());
    let first = aggregate.schema.fields().len() - aggregate.aggr_expr.len();
    for (place, expression) in aggregate.aggr_expr.iter().enumerate() {
        let (qualifier, field) = aggregate.schema.qualified_field(first + place);
        let value = if grouping(expression).is_some() { values.next() } else { kept.next().cloned().map(Expr::Column) };
        let Some(value) = value else { return datafusion_common::internal_err!("an aggregate was lost") };
        shown.push(value.alias_qualified(qualifier.cloned(), field.name()));
    }
    Ok(Transformed::yes(LogicalPlan::Projection(Projection::try_new(shown, Arc::new(plan))?)))
}

/// Which of the expressions each set groups by, greater sets first.
fn sets(group: &[Expr], all: &[Expr]) -> Vec<Vec<bool>> {
    let has = |set: &[Expr]| all.iter().map(|expression| set.contains(expression)).collect::<Vec<bool>>();
    let mut sets: Vec<Vec<bool>> = match group {
        [Expr::GroupingSet(GroupingSet::GroupingSets(sets))] => sets.iter().map(|set| has(set)).collect(),
        [Expr::GroupingSet(GroupingSet::Rollup(columns))] => {
            (0..=columns.len()).map(|length| has(&columns[..length])).collect()
        }
        [Expr::GroupingSet(GroupingSet::Cube(columns))] => (0..1_u64 << columns.len().min(16))
            .map(|bits| {
                let set = columns.iter().enumerate().filter(|(index, _)| bits >> index & 1 == 1);
                has(&set.map(|(_, column)| column.clone()).collect::<Vec<_>>())
            })
            .collect(),
        _ => vec![vec![true; all.len()]],
    };
    sets.sort_by_key(|set| (set.iter().filter(|present| !**present).count(), Reverse(set.clone())));
    sets
}

/// `GROUPING(a, b)` as a constant of the set's number: a bit for each argument, set if the set does not group by it.
fn value_by_set(call: &AggregateFunction, all: &[Expr], sets: &[Vec<bool>]) -> BindResult<Expr> {
    let mut places = Vec::new();
    for argument in &call.params.args {
        let Some(place) = all.iter().position(|expression| expression == argument) else {
            return Err(wrap(
                Error::sql(format!(
                    "{} asks for '{argument}', which is not grouped by",
                    call.func.name().to_uppercase()
                ))
                .at(span_in(argument))
                .hint("its arguments are expressions of GROUP BY"),
            ));
        };
        places.push(place);
    }
    if places.len() > 62 {
        return Err(wrap(Error::sql("GROUPING takes at most 62 arguments")));
    }
    let value = |set: &Vec<bool>| places.iter().fold(0_i64, |bits, place| bits << 1 | i64::from(!set[*place]));
    if sets.len() == 1 {
        return Ok(lit(value(&sets[0])));
    }
    let number = |number: i64| Box::new(Expr::Literal(ScalarValue::Int64(Some(number)), None));
    let mut branches: Vec<_> =
        sets.iter().enumerate().map(|(set, flags)| (number(set as i64), number(value(flags)))).collect();
    let last = branches.pop().map(|(_, value)| value);
    let set = Box::new(Expr::Column(Column::new_unqualified(SET)));
    Ok(Expr::Case(Case { expr: Some(set), when_then_expr: branches, else_expr: last }))
}

/// The rows of `input`, once for each set; expressions are made columns first.
fn expand(input: &LogicalPlan, expressions: Vec<Expr>, sets: Vec<Vec<bool>>) -> BindResult<LogicalPlan> {
    let schema = input.schema();
    let mut all: Vec<Expr> = schema.columns().into_iter().map(Expr::Column).collect();
    let own = all.len();
    let columns = expressions.into_iter().enumerate().map(|(index, expression)| {
        if let Some(index) = column_index(&expression, schema) {
            return Expr::Column(Column::from(schema.qualified_field(index)));
        }
        let name = format!("__group_{index}");
        all.push(expression.alias(&name));
        Expr::Column(Column::new_unqualified(name))
    });
    let columns: Vec<Expr> = columns.collect();
    let prepared = match all.len() == own {
        true => input.clone(),
        false => LogicalPlanBuilder::from(input.clone()).project(all)?.build()?,
    };
    Ok(LogicalPlan::Extension(Extension { node: Arc::new(ExpandNode::new(prepared, columns, sets)?) }))
}
