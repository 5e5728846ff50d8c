//! `INTERSECT` and `EXCEPT`: common types, and an own relation where copies are counted (`ALL`).

use std::cmp::Ordering;
use std::fmt;
use std::sync::Arc;

use datafusion_common::{DFSchemaRef, JoinType, NullEquality, Result as BindResult};
use datafusion_expr::{Distinct, Expr, Extension, Join, LogicalPlan, LogicalPlanBuilder, UserDefinedLogicalNodeCore};

use super::error::wrap;
use super::expressions::{declared, mismatch};
use crate::functions::{self, FunctionSet};
use crate::types::{SetOperation, SqlType};

/// `INTERSECT ALL` or `EXCEPT ALL`.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct CountedSetNode {
    pub operation: SetOperation,
    pub left: LogicalPlan,
    pub right: LogicalPlan,
}

impl PartialOrd for CountedSetNode {
    fn partial_cmp(&self, other: &CountedSetNode) -> Option<Ordering> {
        self.left.partial_cmp(&other.left)
    }
}

impl UserDefinedLogicalNodeCore for CountedSetNode {
    fn name(&self) -> &str {
        self.operation.name()
    }

    fn inputs(&self) -> Vec<&LogicalPlan> {
        vec![&self.left, &self.right]
    }

    fn schema(&self) -> &DFSchemaRef {
        self.left.schema()
    }

    fn expressions(&self) -> Vec<Expr> {
        Vec::new()
    }

    fn fmt_for_explain(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str(self.operation.name())
    }

    fn with_exprs_and_inputs(&self, _exprs: Vec<Expr>, inputs: Vec<LogicalPlan>) -> BindResult<CountedSetNode> {
        match <[LogicalPlan; 2]>::try_from(inputs) {
            Ok([left, right]) => Ok(CountedSetNode { operation: self.operation, left, right }),
            Err(_) => datafusion_common::internal_err!("a set operation was rebuilt without its two inputs"),
        }
    }
}

/// Whether a bound join stands for `INTERSECT` or `EXCEPT`: no other syntax gives such joins before subqueries are
/// turned into joins.
pub(super) fn is_set_operation(join: &Join) -> bool {
    matches!(join.join_type, JoinType::LeftSemi | JoinType::LeftAnti)
        && join.null_equality == NullEquality::NullEqualsNull
        && join.filter.is_none()
}

/// `INTERSECT` or `EXCEPT` over common types. The binding library plans both, with `ALL` too, as a join that asks
/// whether the other side has the row; of copies it knows nothing, so they get a relation that counts.
pub(super) fn common_set(join: Join, functions: &FunctionSet) -> BindResult<LogicalPlan> {
    let intersects = join.join_type == JoinType::LeftSemi;
    let (distinct, left) = match Arc::unwrap_or_clone(join.left) {
        LogicalPlan::Distinct(Distinct::All(input)) => (true, Arc::unwrap_or_clone(input)),
        other => (false, other),
    };
    let (left, right) = to_common_types(left, Arc::unwrap_or_clone(join.right), intersects, functions)?;
    if !distinct {
        let operation = if intersects { SetOperation::IntersectAll } else { SetOperation::ExceptAll };
        let node = CountedSetNode { operation, left, right };
        return Ok(LogicalPlan::Extension(Extension { node: Arc::new(node) }));
    }
    let on = left.schema().columns().into_iter().map(Expr::Column);
    let on = on.zip(right.schema().columns().into_iter().map(Expr::Column)).collect();
    let left = LogicalPlanBuilder::from(left).distinct()?.build()?;
    Ok(LogicalPlan::Join(Join::try_new(
        Arc::new(left),
        Arc::new(right),
        on,
        None,
        join.join_type,
        join.join_constraint,
        join.null_equality,
        false,
    )?))
}

fn to_common_types(
    left: LogicalPlan,
    right: LogicalPlan,
    intersects: bool,
    functions: &FunctionSet,
) -> BindResult<(LogicalPlan, LogicalPlan)> {
    let name = if intersects { "INTERSECT" } else { "EXCEPT" };
    let mut targets = Vec::new();
    for (left_field, right_field) in left.schema().fields().iter().zip(right.schema().fields()) {
        let types = [SqlType::of_field(left_field), SqlType::of_field(right_field)];
        let common = functions::common_type(&types)
            .ok_or_else(|| wrap(mismatch(&format!("the inputs of {name}, column '{}',", left_field.name()), &types)))?;
        targets.push(common);
    }
    Ok((cast_columns(left, &targets, functions)?, cast_columns(right, &targets, functions)?))
}

/// The relation with each column cast to its target, under its name.
pub(super) fn cast_columns(plan: LogicalPlan, targets: &[SqlType], functions: &FunctionSet) -> BindResult<LogicalPlan> {
    let schema = plan.schema();
    if schema.fields().iter().zip(targets).all(|(field, target)| SqlType::of_field(field) == *target) {
        return Ok(plan);
    }
    let columns = schema.columns().into_iter().zip(schema.fields()).zip(targets);
    let columns: Vec<Expr> = columns
        .map(|((column, field), target)| {
            let name = column.name.clone();
            Ok(declared(Expr::Column(column), field, target, functions)?.alias(name))
        })
        .collect::<BindResult<_>>()?;
    LogicalPlanBuilder::from(plan).project(columns)?.build()
}
