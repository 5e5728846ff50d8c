//! `FOR SYSTEM_TIME AS OF`: joins with the version of a table that was valid at a row's time.
//!
//! ```text
//! orders o JOIN rates FOR SYSTEM_TIME AS OF o.ts AS r ON o.cur = r.cur
//!
//! rewrite    Join(orders, Versioned(rates), o.cur = r.cur AND as_of(o.ts))     bound as any other join
//! apply      TemporalJoin(orders, rates, time o.ts, condition o.cur = r.cur)   a node of its own
//! ```
//!
//! As a node of its own it is safe from rules that are made for joins of whole tables.

use std::cmp::Ordering;
use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, LazyLock};

use arrow::datatypes::DataType;
use datafusion_common::tree_node::{Transformed, TreeNodeRecursion};
use datafusion_common::{DFSchemaRef, JoinType, Result as BindResult, ScalarValue};
use datafusion_expr::logical_plan::builder::build_join_schema;
use datafusion_expr::utils::{conjunction, split_conjunction_owned};
use datafusion_expr::{
    ColumnarValue, Expr, Extension, Filter, Join, LogicalPlan, Projection, ScalarFunctionArgs, ScalarUDF,
    ScalarUDFImpl, Signature, SubqueryAlias, UserDefinedLogicalNodeCore, Volatility,
};

use sqlparser::ast::{Expr as SqlExpr, TableVersion, Value, ValueWithSpan};

use super::error::{span_in, wrap};
use super::marks::{Mark, MarkedNode, marked};
use crate::error::Error;

/// The name of the marker for the time in a condition.
const AS_OF: &str = "as_of";

/// The function that marks a time in a join's condition. It is never computed.
pub(super) fn as_of() -> Arc<ScalarUDF> {
    static FUNCTION: LazyLock<Arc<ScalarUDF>> = LazyLock::new(|| {
        // Volatile, so that no rule works it out.
        let signature = Signature::variadic_any(Volatility::Volatile);
        Arc::new(ScalarUDF::new_from_impl(AsOf { signature }))
    });
    Arc::clone(&FUNCTION)
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct AsOf {
    signature: Signature,
}

impl ScalarUDFImpl for AsOf {
    fn name(&self) -> &str {
        AS_OF
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _arguments: &[DataType]) -> BindResult<DataType> {
        Ok(DataType::Boolean)
    }

    fn invoke_with_args(&self, _arguments: ScalarFunctionArgs) -> BindResult<ColumnarValue> {
        datafusion_common::internal_err!("the time of a temporal join is not computed")
    }
}

/// The number of a time that stands in `WHERE`.
pub(super) fn number_of(version: &TableVersion) -> Option<String> {
    match version {
        TableVersion::ForSystemTimeAsOf(SqlExpr::Value(ValueWithSpan {
            value: Value::SingleQuotedString(number),
            ..
        })) => Some(number.clone()),
        _ => None,
    }
}

/// A join of each left row with the right table as it was at the row's time.
#[derive(Debug, Clone)]
pub(super) struct TemporalNode {
    pub left: LogicalPlan,
    pub right: LogicalPlan,
    /// Whether left rows without a match are kept.
    pub outer: bool,
    /// The time, over the left input.
    pub time: Expr,
    /// The join's condition.
    pub condition: Option<Expr>,
    schema: DFSchemaRef,
}

impl TemporalNode {
    fn new(
        left: LogicalPlan,
        right: LogicalPlan,
        outer: bool,
        time: Expr,
        condition: Option<Expr>,
    ) -> BindResult<TemporalNode> {
        let kind = if outer { JoinType::Left } else { JoinType::Inner };
        let schema = Arc::new(build_join_schema(left.schema(), right.schema(), &kind)?);
        Ok(TemporalNode { left, right, outer, time, condition, schema })
    }
}

impl PartialEq for TemporalNode {
    fn eq(&self, other: &TemporalNode) -> bool {
        (&self.left, &self.right, self.outer, &self.time, &self.condition)
            == (&other.left, &other.right, other.outer, &other.time, &other.condition)
    }
}

impl Eq for TemporalNode {}

impl std::hash::Hash for TemporalNode {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        (&self.left, &self.right, self.outer, &self.time, &self.condition).hash(state);
    }
}

impl PartialOrd for TemporalNode {
    fn partial_cmp(&self, other: &TemporalNode) -> Option<Ordering> {
        self.time.partial_cmp(&other.time)
    }
}

impl UserDefinedLogicalNodeCore for TemporalNode {
    fn name(&self) -> &str {
        "TemporalJoin"
    }

    fn inputs(&self) -> Vec<&LogicalPlan> {
        vec![&self.left, &self.right]
    }

    fn schema(&self) -> &DFSchemaRef {
        &self.schema
    }

    fn expressions(&self) -> Vec<Expr> {
        std::iter::once(&self.time).chain(&self.condition).cloned().collect()
    }

    fn fmt_for_explain(&self, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "TemporalJoin: as of {}", self.time)
    }

    fn with_exprs_and_inputs(&self, exprs: Vec<Expr>, inputs: Vec<LogicalPlan>) -> BindResult<TemporalNode> {
        let (mut exprs, mut inputs) = (exprs.into_iter(), inputs.into_iter());
        match (exprs.next(), inputs.next(), inputs.next()) {
            (Some(time), Some(left), Some(right)) => TemporalNode::new(left, right, self.outer, time, exprs.next()),
            _ => datafusion_common::internal_err!("a temporal join was rebuilt with other parts"),
        }
    }

    fn necessary_children_exprs(&self, output_columns: &[usize]) -> Option<Vec<Vec<usize>>> {
        let (left, right) = (self.left.schema(), self.right.schema());
        let width = left.fields().len();
        let mut needed: [Vec<usize>; 2] = Default::default();
        for column in output_columns {
            if *column < width { needed[0].push(*column) } else { needed[1].push(*column - width) }
        }
        for column in self.expressions().iter().flat_map(Expr::column_refs) {
            needed[0].extend(left.maybe_index_of_column(column));
            needed[1].extend(right.maybe_index_of_column(column));
        }
        // From when on a version is valid: one of these says it.
        let times = right.fields().iter().enumerate();
        let times = times.filter(|(_, field)| matches!(field.data_type(), DataType::Timestamp(..)));
        needed[1].extend(times.map(|(column, _)| column));
        for columns in &mut needed {
            columns.sort_unstable();
            columns.dedup();
        }
        Some(needed.into())
    }
}

/// The plan with its temporal joins as nodes of their own.
pub(super) fn apply(plan: LogicalPlan) -> BindResult<LogicalPlan> {
    let mut times = HashMap::new();
    let plan = plan.transform_down_with_subqueries(|node| match node {
        LogicalPlan::Filter(filter) => without_times(filter, &mut times),
        other => Ok(Transformed::no(other)),
    })?;
    let plan = plan.data.transform_up_with_subqueries(|node| match node {
        LogicalPlan::Join(join) => temporal(join, &times),
        other => Ok(Transformed::no(other)),
    })?;
    plan.data.apply_with_subqueries(|node| match node {
        node if is_versioned(node) => Err(wrap(
            Error::sql("FOR SYSTEM_TIME AS OF stands behind a table that is joined to another")
                .hint("write FROM a JOIN t FOR SYSTEM_TIME AS OF a.time AS t ON a.key = t.key"),
        )),
        _ => Ok(TreeNodeRecursion::Continue),
    })?;
    Ok(plan.data)
}

/// Takes times out of a `WHERE`, by their numbers.
fn without_times(filter: Filter, times: &mut HashMap<String, Expr>) -> BindResult<Transformed<LogicalPlan>> {
    let is_time = |part: &Expr| matches!(part, Expr::ScalarFunction(call) if call.name() == AS_OF);
    let (found, rest): (Vec<Expr>, Vec<Expr>) =
        split_conjunction_owned(filter.predicate.clone()).into_iter().partition(is_time);
    if found.is_empty() {
        return Ok(Transformed::no(LogicalPlan::Filter(filter)));
    }
    for part in found {
        if let Expr::ScalarFunction(call) = part
            && let [time, Expr::Literal(ScalarValue::Utf8(Some(number)), _)] = call.args.as_slice()
        {
            times.insert(number.clone(), time.clone());
        }
    }
    let input = Arc::unwrap_or_clone(filter.input);
    Ok(Transformed::yes(match conjunction(rest) {
        Some(rest) => LogicalPlan::Filter(Filter::try_new(rest, Arc::new(input))?),
        None => input,
    }))
}

fn temporal(join: Join, times: &HashMap<String, Expr>) -> BindResult<Transformed<LogicalPlan>> {
    let Some((right, number)) = unversioned(&join.right)? else {
        return Ok(Transformed::no(LogicalPlan::Join(join)));
    };
    let equal = join.on.into_iter().map(|(left, right)| left.eq(right));
    let parts = equal.chain(join.filter.into_iter().flat_map(split_conjunction_owned));
    let (mut found, mut rest) = (Vec::new(), Vec::new());
    for part in parts {
        match part {
            Expr::ScalarFunction(call) if call.name() == AS_OF => found.extend(call.args),
            other => rest.push(other),
        }
    }
    found.extend(number.and_then(|number| times.get(&number).cloned()));
    let ([time], false) = (found.as_slice(), rest.is_empty()) else {
        return datafusion_common::internal_err!("a temporal join without a time or a condition");
    };
    if let Some(constant) = rest.iter().find(|part| part.column_refs().is_empty()) {
        return Err(wrap(
            Error::sql(format!("the condition of the temporal join has a part that compares nothing: {constant}"))
                .at(span_in(time))
                .hint("compare the versioned table's primary key: ON a.key = t.key"),
        ));
    }
    let left = Arc::unwrap_or_clone(join.left);
    let outer = join.join_type == JoinType::Left;
    let node = TemporalNode::new(left, right, outer, time.clone(), conjunction(rest))?;
    Ok(Transformed::yes(LogicalPlan::Extension(Extension { node: Arc::new(node) })))
}

/// The table whose versions are asked for, and the number of its time, if it is one.
fn unversioned(plan: &LogicalPlan) -> BindResult<Option<(LogicalPlan, Option<String>)>> {
    Ok(match plan {
        LogicalPlan::SubqueryAlias(alias) => match unversioned(&alias.input)? {
            Some((input, number)) => {
                let alias = SubqueryAlias::try_new(Arc::new(input), alias.alias.clone())?;
                Some((LogicalPlan::SubqueryAlias(alias), number))
            }
            None => None,
        },
        // The columns were given other names.
        LogicalPlan::Projection(projection) => match unversioned(&projection.input)? {
            Some((input, number)) => {
                let projection = Projection::try_new(projection.expr.clone(), Arc::new(input))?;
                Some((LogicalPlan::Projection(projection), number))
            }
            None => None,
        },
        other => match marked(other) {
            Some(MarkedNode { input, mark: Mark::Versions(number) }) => Some((input.clone(), number.clone())),
            _ => None,
        },
    })
}

fn is_versioned(plan: &LogicalPlan) -> bool {
    marked(plan).is_some_and(|node| matches!(node.mark, Mark::Versions(_)))
}
