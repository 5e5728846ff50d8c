//! Flink's typing, as a pass over a bound plan.
//!
//! The binding library types literals, `CAST`, `CASE`, `IN`, `BETWEEN`, `UNION` and `VALUES` in its own way. This pass
//! gives them Flink's types and casts; what is left then (a function's argument that is narrower than its signature)
//! the library's own coercion widens.

use std::sync::Arc;

use arrow::datatypes::{DataType, Field};
use datafusion_common::config::ConfigOptions;
use datafusion_common::tree_node::{Transformed, TreeNode};
use datafusion_common::{DFSchema, DFSchemaRef, Result as BindResult};
use datafusion_expr::expr::{Between, Case, Cast, InList, TryCast};
use datafusion_expr::expr_rewriter::NamePreserver;
use datafusion_expr::utils::merge_schema;
use datafusion_expr::{BinaryExpr, Expr, LogicalPlan, Operator, Union, Values};
use datafusion_optimizer::analyzer::AnalyzerRule;
use datafusion_optimizer::analyzer::type_coercion::{TypeCoercion, TypeCoercionRewriter};

use super::error::wrap;
use super::expressions::{call, comparable, field_of, mismatch, narrow_literal, widen};
use super::lateral::group_lateral;
use super::sets::{cast_columns, common_set, is_set_operation};
use super::subqueries;
use crate::functions::{self, FunctionSet};
use crate::types::SqlType;

/// The plan with Flink's types.
pub(super) fn apply(plan: LogicalPlan, functions: &FunctionSet) -> BindResult<LogicalPlan> {
    let plan = subqueries::prepare(plan, functions)?;
    let plan = plan.transform_up_with_subqueries(|node| retype(node, functions))?.data;
    TypeCoercion::new().analyze(plan, &ConfigOptions::default())
}

/// One expression over `schema` with Flink's types.
pub(super) fn apply_to_expression(expression: Expr, schema: &DFSchema, functions: &FunctionSet) -> BindResult<Expr> {
    let typed = expression.transform_up(|part| rewrite(part, schema, functions))?.data;
    typed.rewrite(&mut TypeCoercionRewriter::new(schema)).map(|done| done.data)
}

/// The expressions, each cast to the type that all have in common.
pub(super) fn to_common_type(expressions: Vec<Expr>, schema: &DFSchema, what: &str) -> BindResult<Vec<Expr>> {
    let fields = expressions.iter().map(|e| field_of(e, schema)).collect::<BindResult<Vec<_>>>()?;
    let types: Vec<SqlType> = fields.iter().map(|field| SqlType::of_field(field)).collect();
    let common = functions::common_type(&types).ok_or_else(|| wrap(mismatch(what, &types)))?;
    Ok(expressions.into_iter().zip(&fields).map(|(e, field)| widen(e, field.data_type(), &common)).collect())
}

fn retype(node: LogicalPlan, functions: &FunctionSet) -> BindResult<Transformed<LogicalPlan>> {
    let node = match node {
        LogicalPlan::Union(union) => LogicalPlan::Union(common_union(union)?),
        LogicalPlan::Values(values) => LogicalPlan::Values(common_values(values, functions)?),
        LogicalPlan::Join(join) if is_set_operation(&join) => common_set(join)?,
        LogicalPlan::Join(join) => LogicalPlan::Join(group_lateral(join)?),
        other => other,
    };
    let schema = merge_schema(&node.inputs());
    let names = NamePreserver::new(&node);
    node.map_expressions(|expression| {
        let name = names.save(&expression);
        let rewritten = expression.transform_up(|part| rewrite(part, &schema, functions))?;
        Ok(rewritten.update_data(|expression| name.restore(expression)))
    })?
    .map_data(LogicalPlan::recompute_schema)
}

fn rewrite(part: Expr, schema: &DFSchema, functions: &FunctionSet) -> BindResult<Transformed<Expr>> {
    Ok(match part {
        Expr::Cast(Cast { expr, field }) => Transformed::yes(cast(*expr, &field, false, schema, functions)?),
        Expr::TryCast(TryCast { expr, field }) => Transformed::yes(cast(*expr, &field, true, schema, functions)?),
        Expr::Between(between) => Transformed::yes(spelled_out(between, schema)?),
        Expr::InList(InList { expr, list, negated }) => {
            let all = std::iter::once(*expr).chain(list).map(narrow_literal).collect();
            let mut all = to_common_type(all, schema, "the values of IN")?.into_iter();
            match all.next() {
                Some(expr) => Transformed::yes(Expr::InList(InList::new(Box::new(expr), all.collect(), negated))),
                None => return datafusion_common::internal_err!("IN lost its operand"),
            }
        }
        Expr::Case(case) => Transformed::yes(common_case(case, schema)?),
        literal @ (Expr::Literal(..) | Expr::Negative(_)) => Transformed::yes(narrow_literal(literal)),
        other => Transformed::no(other),
    })
}

fn cast(
    expression: Expr,
    to: &Arc<Field>,
    try_cast: bool,
    schema: &DFSchema,
    functions: &FunctionSet,
) -> BindResult<Expr> {
    let from = field_of(&expression, schema)?;
    let target = SqlType::of_field(to);
    let place = super::error::span_in(&expression);
    match functions.cast(&from, &target, try_cast).map_err(|error| wrap(error.at(place)))? {
        Some(function) => Ok(call(function, vec![expression])),
        None if from.data_type() == to.data_type() && SqlType::of_field(&from) == target => Ok(expression),
        None => Ok(Expr::Cast(Cast::new_from_field(Box::new(expression), Arc::clone(to)))),
    }
}

/// `x BETWEEN a AND b` as `x >= a AND x <= b`: each side is compared in its own common type, as Flink does.
fn spelled_out(between: Between, schema: &DFSchema) -> BindResult<Expr> {
    let Between { expr, negated, low, high } = between;
    let side = |bound: Expr, operator: Operator| -> BindResult<Expr> {
        let (left, right) = (narrow_literal((*expr).clone()), narrow_literal(bound));
        let (left_field, right_field) = (field_of(&left, schema)?, field_of(&right, schema)?);
        let (left, right) = comparable(left, &left_field, right, &right_field, false)?;
        Ok(Expr::BinaryExpr(BinaryExpr::new(Box::new(left), operator, Box::new(right))))
    };
    let both = side(*low, Operator::GtEq)?.and(side(*high, Operator::LtEq)?);
    Ok(if negated { Expr::Not(Box::new(both)) } else { both })
}

fn common_case(case: Case, schema: &DFSchema) -> BindResult<Expr> {
    let Case { expr, when_then_expr, else_expr } = case;
    let (mut whens, thens): (Vec<Expr>, Vec<Expr>) =
        when_then_expr.into_iter().map(|(when, then)| (narrow_literal(*when), narrow_literal(*then))).unzip();
    let expr = match expr {
        None => None,
        Some(base) => {
            let all = std::iter::once(narrow_literal(*base)).chain(whens).collect();
            let mut all = to_common_type(all, schema, "the values compared in CASE")?.into_iter();
            let base = all.next();
            whens = all.collect();
            base.map(Box::new)
        }
    };
    let branches = thens.len();
    let results = thens.into_iter().chain(else_expr.map(|e| narrow_literal(*e))).collect();
    let mut results = to_common_type(results, schema, "the results of CASE")?.into_iter();
    let thens: Vec<Expr> = results.by_ref().take(branches).collect();
    Ok(Expr::Case(Case {
        expr,
        when_then_expr: whens.into_iter().zip(thens).map(|(when, then)| (Box::new(when), Box::new(then))).collect(),
        else_expr: results.next().map(Box::new),
    }))
}

/// Every input cast to the columns' common types; the first input's names stay.
fn common_union(union: Union) -> BindResult<Union> {
    let columns = union.schema.fields().len();
    let mut targets = Vec::with_capacity(columns);
    for column in 0..columns {
        let types: Vec<SqlType> =
            union.inputs.iter().map(|input| SqlType::of_field(input.schema().field(column))).collect();
        let common = functions::common_type(&types).ok_or_else(|| {
            wrap(mismatch(&format!("the inputs of UNION, column '{}',", union.schema.field(column).name()), &types))
        })?;
        targets.push(common);
    }
    let inputs = union.inputs.into_iter();
    let inputs = inputs.map(|input| Ok(Arc::new(cast_columns(Arc::unwrap_or_clone(input), &targets)?)));
    Union::try_new_with_loose_types(inputs.collect::<BindResult<Vec<_>>>()?)
}

/// Rows of constants with one type a column.
fn common_values(values: Values, functions: &FunctionSet) -> BindResult<Values> {
    let empty = DFSchema::empty();
    let mut rows = Vec::with_capacity(values.values.len());
    for row in values.values {
        let typed = row.into_iter().map(|e| Ok(e.transform_up(|part| rewrite(part, &empty, functions))?.data));
        rows.push(typed.collect::<BindResult<Vec<Expr>>>()?);
    }
    let mut fields = Vec::new();
    for column in 0..values.schema.fields().len() {
        let of_column: Vec<Expr> = rows.iter().map(|row| row[column].clone()).collect();
        let typed = to_common_type(of_column, &empty, "the rows of VALUES")?;
        let nullable = typed.iter().map(|e| field_of(e, &empty)).collect::<BindResult<Vec<_>>>()?;
        let data_type = nullable.first().map_or(DataType::Null, |field| field.data_type().clone());
        let nullable = nullable.iter().any(|field| field.is_nullable());
        fields.push(Field::new(values.schema.field(column).name(), data_type, nullable));
        for (row, expression) in rows.iter_mut().zip(typed) {
            row[column] = expression;
        }
    }
    let schema: DFSchemaRef = Arc::new(DFSchema::from_unqualified_fields(fields.into(), Default::default())?);
    Ok(Values { schema, values: rows })
}
