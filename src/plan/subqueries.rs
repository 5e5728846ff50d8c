//! Subqueries in expressions, brought into the forms that the library's rules turn into joins without losing a NULL or
//! a second row.
//!
//! | written | becomes |
//! |---|---|
//! | `x IN (SELECT y …)` | the same with both sides in the type in which they are compared |
//! | `x NOT IN (…)` as a condition | the same; as a join, it asks for `(x = y) IS NOT FALSE` |
//! | `x NOT IN (…)` under `OR` | `NOT EXISTS (SELECT … WHERE (x = y) IS NOT FALSE)` |
//! | `x IN (…)` as a value | true if one equals, unknown if NULLs leave it open, else false |
//! | `EXISTS (…)` outside of conditions | `(SELECT COUNT(*) …) > 0`, or a mark join |
//! | `(SELECT y …)` of perhaps several rows | `(SELECT SINGLE_VALUE(y) …)`, which fails on the second |

use std::sync::Arc;

use datafusion_common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion_common::{Column, DFSchema, Result as BindResult, ScalarValue};
use datafusion_expr::expr::{AggregateFunction, Exists, InSubquery};
use datafusion_expr::expr_rewriter::NamePreserver;
use datafusion_expr::utils::{conjunction, merge_schema, split_conjunction_owned};
use datafusion_expr::{BinaryExpr, Expr, LogicalPlan, LogicalPlanBuilder, Operator, Subquery, lit, when};
use datafusion_optimizer::{ApplyOrder, OptimizerConfig, OptimizerRule};

use super::computed_subqueries::{in_aggregate, in_join, in_projection, joins_by_equality};
use super::error::{span_in, wrap};
use super::expressions::{comparable, field_of};
use crate::error::Error;
use crate::functions::FunctionSet;

/// The relation and the column that the subquery of `NOT IN` becomes.
const MEMBERS: &str = "__members";
const MEMBER: &str = "__member";

/// What has been rewritten is not looked into again.
const JUMP: TreeNodeRecursion = TreeNodeRecursion::Jump;

/// The plan with its subqueries in those forms.
pub(super) fn prepare(plan: LogicalPlan, functions: &FunctionSet) -> BindResult<LogicalPlan> {
    let plan = plan.transform_up_with_subqueries(|node| match node {
        LogicalPlan::Join(join) => Ok(Transformed::yes(in_join(join)?)),
        other => Ok(Transformed::no(other)),
    })?;
    let plan = plan.data.transform_up_with_subqueries(|node| {
        let schema = merge_schema(&node.inputs());
        let names = NamePreserver::new(&node);
        let filters = matches!(node, LogicalPlan::Filter(_));
        let rewriting = Rewriting { schema: &schema, functions, filters };
        node.map_expressions(|expression| {
            let name = names.save(&expression);
            let rewritten =
                if filters { rewriting.condition(expression, true)? } else { rewriting.value(expression)? };
            Ok(Transformed::yes(name.restore(rewritten)))
        })?
        .map_data(LogicalPlan::recompute_schema)
    })?;
    let placed = plan.data.transform_up_with_subqueries(|node| match node {
        LogicalPlan::Aggregate(aggregate) => Ok(Transformed::yes(in_aggregate(aggregate)?)),
        LogicalPlan::Projection(projection) => Ok(Transformed::yes(in_projection(projection)?)),
        other => Ok(Transformed::no(other)),
    })?;
    Ok(placed.data)
}

/// Rewrites the expressions of one relation.
struct Rewriting<'a> {
    /// The columns they are written over.
    schema: &'a DFSchema,
    functions: &'a FunctionSet,
    /// Whether they are conditions of a filter, the only place where `EXISTS` itself becomes a join.
    filters: bool,
}

impl Rewriting<'_> {
    /// A condition, for which unknown is as good as false. `top`: it must hold by itself, no `OR` stands above it.
    fn condition(&self, expression: Expr, top: bool) -> BindResult<Expr> {
        match expression {
            Expr::BinaryExpr(BinaryExpr { left, op: op @ (Operator::And | Operator::Or), right }) => {
                let top = top && op == Operator::And;
                let (left, right) = (self.condition(*left, top)?, self.condition(*right, top)?);
                Ok(Expr::BinaryExpr(BinaryExpr::new(Box::new(left), op, Box::new(right))))
            }
            Expr::Not(inner) => match *inner {
                Expr::InSubquery(member) => self.member(negated(member), top),
                other => self.value(Expr::Not(Box::new(other))),
            },
            Expr::InSubquery(member) => self.member(member, top),
            other => self.value(other),
        }
    }

    /// `IN` or `NOT IN` as a condition.
    fn member(&self, member: InSubquery, top: bool) -> BindResult<Expr> {
        let member = self.comparable(member)?;
        // By itself the library knows what NULLs mean to NOT IN; under OR it does not.
        if top || !member.negated {
            return Ok(Expr::InSubquery(member));
        }
        self.exists(&member, true, true)
    }

    /// An expression whose every value counts.
    fn value(&self, expression: Expr) -> BindResult<Expr> {
        let rewritten = expression.transform_down(|part| match part {
            Expr::InSubquery(member) => self.three_valued(member).map(|e| Transformed::new(e, true, JUMP)),
            Expr::Exists(exists) if !self.filters => self.counted(exists).map(|e| Transformed::new(e, true, JUMP)),
            Expr::ScalarSubquery(subquery) => single(subquery, self.functions).map(Transformed::yes),
            other => Ok(Transformed::no(other)),
        });
        Ok(rewritten?.data)
    }

    /// True where a member equals the value, unknown where one might, else false.
    fn three_valued(&self, member: InSubquery) -> BindResult<Expr> {
        let member = self.comparable(member)?;
        let negated = member.negated;
        let found = self.known_value(self.exists(&member, false, false)?)?;
        let answer = if self.may_be_unknown(&member)? {
            let possible = self.unknown_possible(&member)?;
            let unknown = Expr::Literal(ScalarValue::Boolean(None), None);
            when(found, lit(true)).when(possible, unknown).otherwise(lit(false))?
        } else {
            found
        };
        Ok(if negated { Expr::Not(Box::new(answer)) } else { answer })
    }

    /// Whether a NULL stands in the way of an answer: among the members, or as the value where there are members.
    fn unknown_possible(&self, member: &InSubquery) -> BindResult<Expr> {
        let members = LogicalPlanBuilder::from(member.subquery.subquery.as_ref().clone());
        let column = only_column(&member.subquery, "the subquery of IN")?;
        let null_members = members.clone().filter(column.is_null())?.build()?;
        let exists = |plan: LogicalPlan| {
            let subquery = Subquery { subquery: Arc::new(plan), ..member.subquery.clone() };
            self.known_value(Expr::Exists(Exists { subquery, negated: false }))
        };
        let value_is_null = member.expr.as_ref().clone().is_null();
        Ok(exists(null_members)?.or(value_is_null.and(exists(members.build()?)?)))
    }

    fn known_value(&self, exists: Expr) -> BindResult<Expr> {
        match exists {
            Expr::Exists(exists) if !self.filters => self.counted(exists),
            other => Ok(other),
        }
    }

    /// `EXISTS (…)` as `(SELECT COUNT(*) …) > 0`.
    fn counted(&self, exists: Exists) -> BindResult<Expr> {
        let count = self.functions.aggregate("count").ok_or_else(|| wrap(Error::bug("there is no COUNT")))?;
        let count = AggregateFunction::new_udf(count, vec![lit(1)], false, None, Vec::new(), None);
        let count = Expr::AggregateFunction(count).alias(MEMBERS);
        let plan = LogicalPlanBuilder::from(exists.subquery.subquery.as_ref().clone());
        let plan = plan.aggregate(Vec::<Expr>::new(), [count])?.build()?;
        if !joins_by_equality(&plan) {
            return Ok(Expr::Exists(exists));
        }
        let subquery = Subquery { subquery: Arc::new(plan), ..exists.subquery };
        // A count of nothing has no row in a stream: unknown is no.
        let some = Expr::IsTrue(Box::new(Expr::ScalarSubquery(subquery).gt(lit(0_i64))));
        Ok(if exists.negated { Expr::Not(Box::new(some)) } else { some })
    }

    fn may_be_unknown(&self, member: &InSubquery) -> BindResult<bool> {
        let value = field_of(&member.expr, self.schema)?;
        Ok(value.is_nullable() || member.subquery.subquery.schema().field(0).is_nullable())
    }

    /// Both sides of `IN` in the type in which they are compared.
    fn comparable(&self, member: InSubquery) -> BindResult<InSubquery> {
        let InSubquery { expr, subquery, negated } = member;
        let value = self.value(*expr)?;
        let column = only_column(&subquery, "the subquery of IN")?;
        let (value_field, column_field) =
            (field_of(&value, self.schema)?, field_of(&column, subquery.subquery.schema())?);
        let (value, compared) = comparable(value, &value_field, column.clone(), &column_field, true, self.functions)?;
        let plan = if compared == column {
            subquery.subquery
        } else {
            let builder = LogicalPlanBuilder::from(Arc::unwrap_or_clone(subquery.subquery));
            Arc::new(builder.project([compared.alias(MEMBER)])?.build()?)
        };
        let subquery = Subquery { subquery: plan, ..subquery };
        Ok(InSubquery::new(Box::new(value), subquery, negated))
    }

    /// `[NOT] EXISTS (SELECT … WHERE value = member)`, or where the two are `possibly` equal.
    fn exists(&self, member: &InSubquery, possibly: bool, negated: bool) -> BindResult<Expr> {
        let (value, mut references) = as_outer((*member.expr).clone(), self.schema)?;
        references.extend(member.subquery.outer_ref_columns.iter().cloned());
        let column = only_column(&member.subquery, "the subquery of IN")?;
        // Both queries may read a table of the same name: a name of its own tells the member from the value.
        let members = LogicalPlanBuilder::from(member.subquery.subquery.as_ref().clone());
        let members = members.project([column.alias(MEMBER)])?.alias(MEMBERS)?;
        let member_column = Expr::Column(Column::new(Some(MEMBERS), MEMBER));
        let equal = Expr::BinaryExpr(BinaryExpr::new(Box::new(value), Operator::Eq, Box::new(member_column)));
        let condition = match possibly && self.may_be_unknown(member)? {
            true => Expr::IsNotFalse(Box::new(equal)),
            false => equal,
        };
        let subquery = Arc::new(members.filter(condition)?.build()?);
        let subquery = Subquery { subquery, outer_ref_columns: references, spans: member.subquery.spans.clone() };
        Ok(Expr::Exists(Exists { subquery, negated }))
    }
}

/// `NOT IN` that became an anti join: a member that might equal the value takes the row away as one that does.
#[derive(Debug, Default)]
pub(super) struct NullAwareAntiJoin;

impl OptimizerRule for NullAwareAntiJoin {
    fn name(&self) -> &str {
        "null_aware_anti_join"
    }

    fn apply_order(&self) -> Option<ApplyOrder> {
        Some(ApplyOrder::TopDown)
    }

    fn supports_rewrite(&self) -> bool {
        true
    }

    fn rewrite(&self, plan: LogicalPlan, _: &dyn OptimizerConfig) -> BindResult<Transformed<LogicalPlan>> {
        let LogicalPlan::Join(mut join) = plan else { return Ok(Transformed::no(plan)) };
        let filter = if join.null_aware { join.filter.take() } else { None };
        let Some(filter) = filter else { return Ok(Transformed::no(LogicalPlan::Join(join))) };
        // The equality of value and member stands first, what correlates the subquery behind it.
        let mut parts = split_conjunction_owned(filter).into_iter();
        let equal = parts.next().map(|equal| Expr::IsNotFalse(Box::new(equal)));
        join.filter = conjunction(equal.into_iter().chain(parts));
        join.null_aware = false;
        Ok(Transformed::yes(LogicalPlan::Join(join)))
    }
}

fn negated(member: InSubquery) -> InSubquery {
    InSubquery { negated: !member.negated, ..member }
}

/// The one column of a subquery.
fn only_column(subquery: &Subquery, what: &str) -> BindResult<Expr> {
    let schema = subquery.subquery.schema();
    match schema.fields().len() {
        1 => Ok(Expr::Column(Column::from(schema.qualified_field(0)))),
        columns => {
            let error = Error::sql(format!("{what} must have one column, and this one has {columns}"));
            Err(wrap(error.hint("name one column in its SELECT")))
        }
    }
}

/// An expression of the outer query as seen from inside the subquery, and the columns it refers to.
fn as_outer(expression: Expr, schema: &DFSchema) -> BindResult<(Expr, Vec<Expr>)> {
    let mut references = Vec::new();
    let outer = expression.transform_up(|part| match part {
        Expr::Column(column) => {
            let (_, field) = schema.qualified_field_from_column(&column)?;
            let reference = Expr::OuterReferenceColumn(Arc::clone(field), column);
            references.push(reference.clone());
            Ok(Transformed::yes(reference))
        }
        other => Ok(Transformed::no(other)),
    })?;
    Ok((outer.data, references))
}

fn single(subquery: Subquery, functions: &FunctionSet) -> BindResult<Expr> {
    let column = only_column(&subquery, "a subquery used as a value")?;
    // Of a correlated subquery the library believes it only of an aggregate. An aggregate over nothing has no row while
    // the query runs, and so its value may be NULL, even if it is a COUNT.
    let may_be_null = subquery.subquery.schema().field(0).is_nullable();
    let proven = match subquery.outer_ref_columns.is_empty() {
        true => may_be_null && subquery.subquery.max_rows().is_some_and(|rows| rows <= 1),
        false => aggregates_everything(&subquery.subquery),
    };
    let joinable = |plan: &LogicalPlan| match subquery.outer_ref_columns.is_empty() || joins_by_equality(plan) {
        true => Ok(()),
        false => Err(wrap(
            Error::sql("a subquery used as a value goes by more than equal columns")
                .at(span_in(&column))
                .hint("correlate it by '=' alone, or join and group in FROM"),
        )),
    };
    if proven {
        joinable(&subquery.subquery)?;
        return Ok(Expr::ScalarSubquery(subquery));
    }
    let place = span_in(&column);
    let single_value =
        functions.aggregate("single_value").ok_or_else(|| wrap(Error::bug("there is no SINGLE_VALUE").at(place)))?;
    let name = subquery.subquery.schema().field(0).name().clone();
    let value = AggregateFunction::new_udf(single_value, vec![column.clone()], false, None, Vec::new(), None);
    let value = Expr::AggregateFunction(value).alias(name);
    let plan = LogicalPlanBuilder::from(subquery.subquery.as_ref().clone());
    let plan = plan.aggregate(Vec::<Expr>::new(), [value])?.build()?;
    joinable(&plan)?;
    Ok(Expr::ScalarSubquery(Subquery { subquery: Arc::new(plan), ..subquery }))
}

fn aggregates_everything(plan: &LogicalPlan) -> bool {
    match plan {
        LogicalPlan::Aggregate(aggregate) => aggregate.group_expr.is_empty(),
        LogicalPlan::Projection(projection) => aggregates_everything(&projection.input),
        LogicalPlan::SubqueryAlias(alias) => aggregates_everything(&alias.input),
        LogicalPlan::Filter(filter) => {
            matches!(*filter.input, LogicalPlan::Aggregate(_)) && aggregates_everything(&filter.input)
        }
        _ => false,
    }
}
