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
use std::fmt;
use std::sync::{Arc, LazyLock};

use arrow::datatypes::DataType;
use datafusion_common::tree_node::Transformed;
use datafusion_common::{DFSchemaRef, JoinType, Result as BindResult};
use datafusion_expr::logical_plan::builder::build_join_schema;
use datafusion_expr::utils::{conjunction, split_conjunction_owned};
use datafusion_expr::{
    ColumnarValue, Expr, Extension, Join, LogicalPlan, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature,
    SubqueryAlias, UserDefinedLogicalNodeCore, Volatility,
};

use super::error::{span_in, wrap};
use crate::error::Error;

/// The name of the marker for the time in a condition.
const AS_OF: &str = "as_of";

/// The function that marks a time in a join's condition. It is never computed.
pub(super) fn as_of() -> Arc<ScalarUDF> {
    static FUNCTION: LazyLock<Arc<ScalarUDF>> = LazyLock::new(|| {
        // Volatile, so that no rule works it out.
        let signature = Signature::any(1, Volatility::Volatile);
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

/// A table whose versions are asked for, until its join has been found.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd)]
pub(super) struct VersionedNode {
    pub input: LogicalPlan,
}

impl UserDefinedLogicalNodeCore for VersionedNode {
    fn name(&self) -> &str {
        "Versioned"
    }

    fn inputs(&self) -> Vec<&LogicalPlan> {
        vec![&self.input]
    }

    fn schema(&self) -> &DFSchemaRef {
        self.input.schema()
    }

    fn expressions(&self) -> Vec<Expr> {
        Vec::new()
    }

    fn fmt_for_explain(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str("Versioned")
    }

    fn with_exprs_and_inputs(&self, _: Vec<Expr>, mut inputs: Vec<LogicalPlan>) -> BindResult<VersionedNode> {
        match inputs.pop() {
            Some(input) => Ok(VersionedNode { input }),
            None => datafusion_common::internal_err!("a versioned table lost its table"),
        }
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
    let plan = plan.transform_up_with_subqueries(|node| match node {
        LogicalPlan::Join(join) => temporal(join),
        other => Ok(Transformed::no(other)),
    })?;
    Ok(plan.data)
}

fn temporal(join: Join) -> BindResult<Transformed<LogicalPlan>> {
    let Some(right) = unversioned(&join.right)? else { return Ok(Transformed::no(LogicalPlan::Join(join))) };
    let parts = join.filter.into_iter().flat_map(split_conjunction_owned);
    let (mut times, mut rest) = (Vec::new(), Vec::new());
    for part in parts {
        match part {
            Expr::ScalarFunction(call) if call.name() == AS_OF => times.extend(call.args),
            other => rest.push(other),
        }
    }
    let ([time], false) = (times.as_slice(), rest.is_empty()) else {
        return datafusion_common::internal_err!("a temporal join without a time or a condition");
    };
    if let Some(constant) = rest.iter().find(|part| part.column_refs().is_empty()) {
        let whole_table = matches!(constant, Expr::Literal(..)) && rest.len() == 1;
        let told = if whole_table { "no key" } else { "a constant condition" };
        return Err(wrap(
            Error::sql(format!("the temporal join has {told}: '{constant}'"))
                .at(span_in(time))
                .hint("compare the versioned table's primary key: ON a.key = t.key"),
        ));
    }
    let left = Arc::unwrap_or_clone(join.left);
    let outer = join.join_type == JoinType::Left;
    let node = TemporalNode::new(left, right, outer, time.clone(), conjunction(rest))?;
    Ok(Transformed::yes(LogicalPlan::Extension(Extension { node: Arc::new(node) })))
}

/// The table whose versions are asked for, if it is one.
fn unversioned(plan: &LogicalPlan) -> BindResult<Option<LogicalPlan>> {
    Ok(match plan {
        LogicalPlan::SubqueryAlias(alias) => match unversioned(&alias.input)? {
            Some(input) => {
                Some(LogicalPlan::SubqueryAlias(SubqueryAlias::try_new(Arc::new(input), alias.alias.clone())?))
            }
            None => None,
        },
        LogicalPlan::Extension(extension) => {
            extension.node.as_any().downcast_ref::<VersionedNode>().map(|node| node.input.clone())
        }
        _ => None,
    })
}
