//! Flink's typing, as a pass over a bound plan.
//!
//! The binding library types literals, `CAST`, `CASE`, `IN`, `BETWEEN`, `UNION` and `VALUES` in its own way. This pass
//! gives them Flink's types and casts; what is left then (a function's argument that is narrower than its signature)
//! the library's own coercion widens.

use std::sync::Arc;

use arrow::datatypes::Field;
use datafusion_common::config::ConfigOptions;
use datafusion_common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion_common::{DFSchema, Result as BindResult, ScalarValue};
use datafusion_expr::expr::{Between, Case, Cast, InList, ScalarFunction, TryCast, WindowFunction};
use datafusion_expr::expr_rewriter::NamePreserver;
use datafusion_expr::utils::merge_schema;
use datafusion_expr::{BinaryExpr, Expr, LogicalPlan, Operator, Union, WindowFrameBound, WindowFrameUnits};
use datafusion_optimizer::analyzer::AnalyzerRule;
use datafusion_optimizer::analyzer::type_coercion::{TypeCoercion, TypeCoercionRewriter};

use super::correlate::correlate;
use super::error::wrap;
use super::expressions::{call, comparable, compare, convert, declared, field_of, mismatch, typed_literal};
use super::lateral::group_lateral;
use super::lateral_top::top_of_each;
use super::sets::{cast_columns, common_set, is_set_operation};
use super::subqueries;
use crate::error::Error;
use crate::functions::{self, FunctionSet, declare_function};
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
pub(super) fn to_common_type(
    expressions: Vec<Expr>,
    schema: &DFSchema,
    functions: &FunctionSet,
    what: &str,
) -> BindResult<(Vec<Expr>, SqlType)> {
    let fields = expressions.iter().map(|e| field_of(e, schema)).collect::<BindResult<Vec<_>>>()?;
    let types: Vec<SqlType> = fields.iter().map(|field| SqlType::of_field(field)).collect();
    let common = functions::common_type(&types).ok_or_else(|| wrap(mismatch(what, &types)))?;
    let converted = expressions.into_iter().zip(&fields).map(|(e, field)| convert(e, field, &common, functions));
    Ok((converted.collect::<BindResult<Vec<_>>>()?, common))
}

fn retype(node: LogicalPlan, functions: &FunctionSet) -> BindResult<Transformed<LogicalPlan>> {
    let node = match node {
        LogicalPlan::Union(union) => LogicalPlan::Union(common_union(union, functions)?),
        // Already typed, and without columns to read.
        values @ LogicalPlan::Values(_) => return Ok(Transformed::no(values)),
        LogicalPlan::Join(join) if is_set_operation(&join) => common_set(join, functions)?,
        LogicalPlan::Join(join) => {
            let typed = |expression, schema: &DFSchema| apply_to_expression(expression, schema, functions);
            match correlate(&join, &typed)? {
                Some(correlated) => correlated,
                None => match top_of_each(&join)? {
                    Some(top) => top,
                    None => LogicalPlan::Join(group_lateral(join)?),
                },
            }
        }
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

pub(super) fn rewrite(part: Expr, schema: &DFSchema, functions: &FunctionSet) -> BindResult<Transformed<Expr>> {
    Ok(match part {
        Expr::Cast(Cast { expr, field }) => Transformed::yes(cast(*expr, &field, false, schema, functions)?),
        Expr::TryCast(TryCast { expr, field }) => Transformed::yes(cast(*expr, &field, true, schema, functions)?),
        Expr::BinaryExpr(binary) if matches!(binary.op, Operator::IsDistinctFrom | Operator::IsNotDistinctFrom) => {
            Transformed::yes(distinct(binary, schema, functions)?)
        }
        Expr::Between(between) => Transformed::yes(spelled_out(between, schema, functions)?),
        Expr::InList(InList { expr, list, negated }) => {
            let all = std::iter::once(*expr).chain(list).collect();
            Transformed::yes(one_of(all, negated, schema, functions)?)
        }
        Expr::Case(case) => {
            let case = common_case(case, schema, functions)?;
            Transformed::yes(declared_case(case, schema)?)
        }
        literal @ Expr::Literal(..) => Transformed::yes(typed_literal(literal)),
        Expr::ScalarFunction(call) if matches!(call.name(), "if" | "coalesce" | "ifnull") => {
            Transformed::yes(same_branches(call, schema, functions)?)
        }
        Expr::ScalarFunction(call) if call.name() == "typeof" && !call.args.is_empty() => {
            // Now, before constants are folded: a folded one has forgotten that it might have been NULL.
            let field = field_of(&call.args[0], schema)?;
            let not_null = if field.is_nullable() { "" } else { " NOT NULL" };
            let answer = ScalarValue::from(format!("{}{not_null}", SqlType::of_field(&field)));
            let answer = Expr::Literal(answer, None);
            let plain = matches!(call.args[0], Expr::Column(_)) || call.args[0].column_refs().is_empty();
            if call.args.len() > 1 || plain {
                return Ok(Transformed::yes(answer));
            }
            // As in Flink, the argument is computed for each row, and fails where it does.
            let ScalarFunction { func, mut args } = call;
            args.push(answer);
            Transformed::new(Expr::ScalarFunction(ScalarFunction { func, args }), true, TreeNodeRecursion::Jump)
        }
        Expr::ScalarFunction(call) if !functions.extensions() => {
            super::strict::check_call(&call, schema)?;
            Transformed::no(Expr::ScalarFunction(call))
        }
        Expr::WindowFunction(mut call) => {
            by_peers(&mut call, schema)?;
            Transformed::yes(Expr::WindowFunction(call))
        }
        Expr::AggregateFunction(call) => {
            if let Some(filter) = &call.params.filter {
                check_condition(filter, schema)?;
            }
            super::strict::check_aggregate(&call, schema, functions)?;
            Transformed::no(Expr::AggregateFunction(call))
        }
        other => Transformed::no(other),
    })
}

/// A frame by RANGE up to the row's own peers as one by GROUPS, which is the same, where the library has no RANGE over
/// values of the order's type.
fn by_peers(call: &mut WindowFunction, schema: &DFSchema) -> BindResult<()> {
    let plain = |bound: &WindowFrameBound| match bound {
        WindowFrameBound::CurrentRow => true,
        WindowFrameBound::Preceding(length) | WindowFrameBound::Following(length) => length.is_null(),
    };
    let frame = &mut call.params.window_frame;
    if frame.units != WindowFrameUnits::Range || !plain(&frame.start_bound) || !plain(&frame.end_bound) {
        return Ok(());
    }
    if let Some(order) = call.params.order_by.first() {
        let sql_type = SqlType::of_field(&*field_of(&order.expr, schema)?);
        let ranged = sql_type.is_numeric()
            || matches!(sql_type, SqlType::Date | SqlType::Timestamp(_) | SqlType::TimestampLtz(_))
            || matches!(sql_type, SqlType::Char(_) | SqlType::Varchar(_) | SqlType::Boolean);
        if !ranged {
            frame.units = WindowFrameUnits::Groups;
        }
    }
    Ok(())
}

/// # Errors
/// If the expression behind `FILTER (WHERE …)` is no condition.
fn check_condition(filter: &Expr, schema: &DFSchema) -> BindResult<()> {
    let field = field_of(filter, schema)?;
    match SqlType::of_field(&field) {
        SqlType::Boolean | SqlType::Null => Ok(()),
        other => Err(wrap(
            Error::sql(format!("FILTER needs a condition, and this is {other}"))
                .at(super::error::span_in(filter))
                .hint("compare it with something: FILTER (WHERE x > 0)"),
        )),
    }
}

/// `expression` cast by Flink's rules.
pub(super) fn cast(
    expression: Expr,
    to: &Arc<Field>,
    try_cast: bool,
    schema: &DFSchema,
    functions: &FunctionSet,
) -> BindResult<Expr> {
    let target = SqlType::of_field(to);
    let expression = exact_number(expression, &target);
    let from = field_of(&expression, schema)?;
    let place = super::error::span_in(&expression);
    match functions.cast(&from, &target, try_cast).map_err(|error| wrap(error.at(place)))? {
        Some(function) => Ok(call(function, vec![expression])),
        None if from.data_type() == to.data_type() && SqlType::of_field(&from) == target => Ok(expression),
        None => Ok(Expr::Cast(Cast::new_from_field(Box::new(expression), Arc::clone(to)))),
    }
}

/// The number in `CAST(1.1 AS FLOAT)`, where the cast is cast into `DOUBLE`: as in Flink, a literal keeps its digits.
fn exact_number(expression: Expr, target: &SqlType) -> Expr {
    if *target != SqlType::Double {
        return expression;
    }
    match &expression {
        Expr::ScalarFunction(call) if call.name() == "flink_cast" => match call.args.as_slice() {
            [number @ Expr::Literal(ScalarValue::Decimal128(..), _)]
                if call.func.return_type(&[]).is_ok_and(|t| t == arrow::datatypes::DataType::Float32) =>
            {
                number.clone()
            }
            _ => expression,
        },
        _ => expression,
    }
}

/// `IS [NOT] DISTINCT FROM` in the type in which the sides compare; where equality is ours, by that.
fn distinct(binary: BinaryExpr, schema: &DFSchema, functions: &FunctionSet) -> BindResult<Expr> {
    let BinaryExpr { left, op, right } = binary;
    let (left_field, right_field) = (field_of(&left, schema)?, field_of(&right, schema)?);
    let (left, right) = comparable(*left, &left_field, *right, &right_field, true, functions)?;
    let own = functions::comparison(Operator::Eq, field_of(&left, schema)?.data_type());
    let Some(equal) = own.filter(|_| left != right) else {
        return Ok(Expr::BinaryExpr(BinaryExpr::new(Box::new(left), op, Box::new(right))));
    };
    let missing = left.clone().is_null().and(right.clone().is_null());
    let same = missing.or(call(equal, vec![left, right]).is_true());
    Ok(if op == Operator::IsDistinctFrom { Expr::Not(Box::new(same)) } else { same })
}

/// `x BETWEEN a AND b` as `x >= a AND x <= b`: each side is compared in its own common type, as Flink does.
fn spelled_out(between: Between, schema: &DFSchema, functions: &FunctionSet) -> BindResult<Expr> {
    let Between { expr, negated, low, high } = between;
    let side = |bound: Expr, operator: Operator| compare(operator, (*expr).clone(), bound, schema, functions);
    let both = side(*low, Operator::GtEq)?.and(side(*high, Operator::LtEq)?);
    Ok(if negated { Expr::Not(Box::new(both)) } else { both })
}

/// A `CASE` whose results have one type.
pub(super) fn common_case(case: Case, schema: &DFSchema, functions: &FunctionSet) -> BindResult<Expr> {
    let Case { expr, when_then_expr, else_expr } = case;
    let (mut whens, thens): (Vec<Expr>, Vec<Expr>) =
        when_then_expr.into_iter().map(|(when, then)| (*when, *then)).unzip();
    let expr = match expr {
        None => {
            whens.iter().try_for_each(|when| condition(when, schema))?;
            None
        }
        Some(base) => {
            let all = std::iter::once(*base).chain(whens).collect();
            let mut all = to_common_type(all, schema, functions, "the values compared in CASE")?.0.into_iter();
            let base = all.next();
            whens = all.collect();
            base.map(Box::new)
        }
    };
    let branches = thens.len();
    let results = thens.into_iter().chain(else_expr.map(|e| *e)).collect();
    let (results, common) = to_common_type(results, schema, functions, "the results of CASE")?;
    if common == SqlType::Null {
        return Err(wrap(
            Error::sql("all results of CASE are NULL").hint("CAST one of them to the type that is meant"),
        ));
    }
    let mut results = results.into_iter();
    let thens: Vec<Expr> = results.by_ref().take(branches).collect();
    Ok(Expr::Case(Case {
        expr,
        when_then_expr: whens.into_iter().zip(thens).map(|(when, then)| (Box::new(when), Box::new(then))).collect(),
        else_expr: results.next().map(Box::new),
    }))
}

/// The branches of `IF` and `COALESCE` in the type of the result, so that the call may become a `CASE`.
fn same_branches(call: ScalarFunction, schema: &DFSchema, functions: &FunctionSet) -> BindResult<Expr> {
    let ScalarFunction { func, mut args } = call;
    let branches = args.split_off(usize::from(func.name() == "if").min(args.len()));
    let what = format!("the arguments of {}", func.name().to_uppercase());
    let fields = branches.iter().map(|branch| field_of(branch, schema)).collect::<BindResult<Vec<_>>>()?;
    let types: Vec<SqlType> = fields.iter().map(|field| SqlType::of_field(field)).collect();
    let common = functions::common_type(&types).ok_or_else(|| wrap(mismatch(&what, &types)))?;
    for (branch, field) in branches.into_iter().zip(fields) {
        args.push(declared(branch, &field, &common, functions)?);
    }
    Ok(Expr::ScalarFunction(ScalarFunction { func, args }))
}

/// `CASE` with the declared type of its results, which the library does not look for.
fn declared_case(case: Expr, schema: &DFSchema) -> BindResult<Expr> {
    let Expr::Case(Case { when_then_expr, else_expr, .. }) = &case else { return Ok(case) };
    let results = when_then_expr.iter().map(|(_, then)| then).chain(else_expr);
    let types = results.map(|then| Ok(SqlType::of_field(&*field_of(then, schema)?))).collect::<BindResult<Vec<_>>>()?;
    Ok(match functions::common_type(&types) {
        Some(common) if SqlType::from_arrow(&common.to_arrow()) != common => {
            call(declare_function(&common), vec![case])
        }
        _ => case,
    })
}

fn condition(when: &Expr, schema: &DFSchema) -> BindResult<()> {
    match SqlType::of_field(&*field_of(when, schema)?) {
        SqlType::Boolean | SqlType::Null => Ok(()),
        other => Err(wrap(
            Error::sql(format!("a condition of CASE is BOOLEAN, not {other}"))
                .at(super::error::span_in(when))
                .hint("write CASE x WHEN value THEN … to compare x with values"),
        )),
    }
}

/// `IN`, with one comparison for each value that is no plain constant: where the library merges lists, it takes members
/// that are written differently for different values, and forgets that a NULL among them makes the answer unknown. Over
/// FLOAT and DOUBLE the equality of zeros and NaN is ours.
fn one_of(all: Vec<Expr>, negated: bool, schema: &DFSchema, functions: &FunctionSet) -> BindResult<Expr> {
    let (all, _) = to_common_type(all, schema, functions, "the values of IN")?;
    let mut all = all.into_iter();
    let Some(expr) = all.next() else { return datafusion_common::internal_err!("IN lost its operand") };
    let plain = |value: &Expr| match value {
        // Numbers that are neither zero nor NaN equal as their bits do.
        Expr::Literal(ScalarValue::Float32(Some(value)), _) => *value != 0.0 && !value.is_nan(),
        Expr::Literal(ScalarValue::Float64(Some(value)), _) => *value != 0.0 && !value.is_nan(),
        Expr::Literal(value, _) => !value.is_null(),
        _ => false,
    };
    let (plain, others): (Vec<Expr>, Vec<Expr>) = all.partition(plain);
    if others.is_empty() {
        return Ok(Expr::InList(InList::new(Box::new(expr), plain, negated)));
    }
    let mut tests = others
        .into_iter()
        .map(|value| compare(Operator::Eq, expr.clone(), value, schema, functions))
        .collect::<BindResult<Vec<Expr>>>()?;
    if !plain.is_empty() {
        tests.push(Expr::InList(InList::new(Box::new(expr), plain, false)));
    }
    // In pairs, so that a long list makes no deep tree.
    while tests.len() > 1 {
        let mut rest = tests.into_iter();
        tests = Vec::with_capacity(rest.len().div_ceil(2));
        while let Some(one) = rest.next() {
            tests.push(match rest.next() {
                Some(other) => one.or(other),
                None => one,
            });
        }
    }
    let any = tests.pop().unwrap_or_else(|| Expr::Literal(ScalarValue::Boolean(Some(false)), None));
    Ok(if negated { Expr::Not(Box::new(any)) } else { any })
}

/// Every input cast to the columns' common types; the first input's names stay.
fn common_union(union: Union, functions: &FunctionSet) -> BindResult<Union> {
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
    let inputs = inputs.map(|input| Ok(Arc::new(cast_columns(Arc::unwrap_or_clone(input), &targets, functions)?)));
    Union::try_new_with_loose_types(inputs.collect::<BindResult<Vec<_>>>()?)
}
