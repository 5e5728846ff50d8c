//! What Flink refuses and Ebbflow could answer: refused as well, so that what runs here runs there, unless the session
//! says `SET 'table.sql.extensions' = 'true'`.

use std::ops::ControlFlow;

use datafusion_common::tree_node::TreeNodeRecursion;
use datafusion_common::{DFSchema, Result as BindResult};
use datafusion_expr::LogicalPlan;
use datafusion_expr::expr::{AggregateFunction, ScalarFunction};
use sqlparser::ast::{
    BinaryOperator, DuplicateTreatment, Expr, Function, FunctionArguments, NamedWindowDefinition, Query, Select,
    SelectItem, SetExpr, Spanned, UnaryOperator, Value, Visit, Visitor,
};

use super::error::wrap;
use super::expressions::field_of;
use crate::error::{Error, Result, Span};
use crate::functions::FunctionSet;
use crate::types::SqlType;

/// What Flink refuses, and how it is had here.
pub fn beyond_flink(what: &str) -> Error {
    Error::sql(format!("{what}, which Flink refuses"))
        .hint("SET 'table.sql.extensions' = 'true' to have such things answered")
}

/// # Errors
/// If the query or expression has something that Flink's grammar, or the checks of its names, refuse.
pub(super) fn check(tree: &impl Visit) -> Result<()> {
    match tree.visit(&mut Check::default()) {
        ControlFlow::Continue(()) => Ok(()),
        ControlFlow::Break(error) => Err(error),
    }
}

/// # Errors
/// If a `SELECT` has functions over windows of different partitions or orders.
pub(super) fn check_windows(plan: &LogicalPlan) -> Result<()> {
    let mut several = false;
    // Looking never fails.
    let _ = plan.apply_with_subqueries(|node| {
        if let LogicalPlan::Window(window) = node
            && matches!(window.input.as_ref(), LogicalPlan::Window(_))
        {
            several = true;
        }
        Ok(if several { TreeNodeRecursion::Stop } else { TreeNodeRecursion::Continue })
    });
    match several {
        true => Err(beyond_flink("the functions of one SELECT are OVER several windows")),
        false => Ok(()),
    }
}

/// # Errors
/// If a function does not take values of this type; or Flink does not aggregate them, not over a stream, or has no order in
/// this function.
pub(super) fn check_aggregate(call: &AggregateFunction, schema: &DFSchema, functions: &FunctionSet) -> BindResult<()> {
    let Some(argument) = call.params.args.first() else { return Ok(()) };
    let sql_type = SqlType::of_field(&*field_of(argument, schema)?);
    let name = call.func.name().to_uppercase();
    if matches!(sql_type, SqlType::Bitmap | SqlType::Variant) && matches!(name.as_str(), "MIN" | "MAX") {
        let error = Error::sql(format!("{name} compares values, and those of type {sql_type} have no order"));
        return Err(wrap(error.at(super::error::span_in(argument))));
    }
    if functions.extensions() {
        return Ok(());
    }
    if let Some(sort) = call.params.order_by.first()
        && !matches!(name.as_str(), "ARRAY_AGG" | "JSON_ARRAYAGG")
    {
        let place = super::error::span_in(&sort.expr);
        return Err(wrap(beyond_flink(&format!("ORDER BY stands inside {name}")).at(place)));
    }
    let unordered = matches!(
        sql_type,
        SqlType::IntervalDayTime | SqlType::IntervalYearMonth | SqlType::Binary(_) | SqlType::Varbinary(_)
    );
    let refused = match name.as_str() {
        "APPROX_COUNT_DISTINCT" if !functions.is_batch() => format!("{name} is over a stream"),
        "MIN" | "MAX" if unordered => format!("{name} compares values of type {sql_type}"),
        _ if call.params.distinct && matches!(sql_type, SqlType::Row(_)) => {
            format!("{name}(DISTINCT …) is of a ROW")
        }
        _ => return Ok(()),
    };
    Err(wrap(beyond_flink(&refused).at(super::error::span_in(argument))))
}

/// # Errors
/// If Flink does not call the function with a value of this type.
pub(super) fn check_call(call: &ScalarFunction, schema: &DFSchema) -> BindResult<()> {
    let [argument] = call.args.as_slice() else { return Ok(()) };
    if call.name() != "cardinality" || !matches!(SqlType::of_field(&*field_of(argument, schema)?), SqlType::Multiset(_))
    {
        return Ok(());
    }
    Err(wrap(beyond_flink("CARDINALITY is of a MULTISET").at(super::error::span_in(argument))))
}

/// Looks for what is refused; keeps how deep it is inside of calls in which more is allowed.
#[derive(Default)]
struct Check {
    /// The calls of JSON functions around the expression.
    json: usize,
}

impl Visitor for Check {
    type Break = Error;

    fn pre_visit_query(&mut self, query: &Query) -> ControlFlow<Error> {
        refused(body(&query.body))
    }

    fn pre_visit_select(&mut self, select: &Select) -> ControlFlow<Error> {
        let windows = &select.named_window;
        let same =
            |one: &NamedWindowDefinition, other: &NamedWindowDefinition| one.1.to_string() == other.1.to_string();
        let repeated = windows.iter().enumerate().find(|(place, one)| windows[..*place].iter().any(|w| same(w, one)));
        match repeated {
            Some((_, NamedWindowDefinition(name, _))) => {
                let what = format!("window '{}' is another name of a window of the same clause", name.value);
                ControlFlow::Break(beyond_flink(&what).at(Span::from_ast(name.span)))
            }
            None => ControlFlow::Continue(()),
        }
    }

    fn pre_visit_expr(&mut self, expression: &Expr) -> ControlFlow<Error> {
        let place = || Span::from_ast(expression.span());
        let bits = |operator: &dyn std::fmt::Display| {
            ControlFlow::Break(beyond_flink(&format!("'{operator}' is an operator on bits")).at(place()))
        };
        match expression {
            Expr::BinaryOp { op, .. } => match op {
                BinaryOperator::BitwiseAnd
                | BinaryOperator::BitwiseOr
                | BinaryOperator::BitwiseXor
                | BinaryOperator::PGBitwiseXor
                | BinaryOperator::PGBitwiseShiftLeft
                | BinaryOperator::PGBitwiseShiftRight => bits(op),
                _ => ControlFlow::Continue(()),
            },
            Expr::UnaryOp { op: op @ UnaryOperator::BitwiseNot, .. } => bits(op),
            Expr::Function(call) => {
                let done = refused(self.call(call));
                self.json += usize::from(builds_json(call));
                done
            }
            _ => ControlFlow::Continue(()),
        }
    }

    fn post_visit_expr(&mut self, expression: &Expr) -> ControlFlow<Error> {
        if let Expr::Function(call) = expression {
            self.json -= usize::from(builds_json(call));
        }
        ControlFlow::Continue(())
    }
}

impl Check {
    fn call(&self, call: &Function) -> Result<()> {
        let place = Span::from_ast(call.span());
        if call.over.is_some() && call.filter.is_some() {
            return Err(beyond_flink("FILTER stands before OVER").at(place));
        }
        if call.name.to_string().eq_ignore_ascii_case("JSON") && self.json == 0 {
            return Err(beyond_flink("JSON() stands outside of JSON_OBJECT and JSON_ARRAY").at(place));
        }
        let FunctionArguments::List(list) = &call.args else { return Ok(()) };
        if list.duplicate_treatment == Some(DuplicateTreatment::Distinct) && list.args.len() > 1 {
            let name = call.name.to_string().to_uppercase();
            if name == "COUNT" {
                return Err(beyond_flink("COUNT(DISTINCT …) is of several columns").at(place));
            }
        }
        Ok(())
    }
}

/// # Errors
/// If a column of the body is a NULL without a type.
fn body(body: &SetExpr) -> Result<()> {
    match body {
        SetExpr::Select(select) => {
            let of = |item: &SelectItem| match item {
                SelectItem::UnnamedExpr(value) | SelectItem::ExprWithAlias { expr: value, .. } => untyped_null(value),
                _ => Ok(()),
            };
            select.projection.iter().try_for_each(of)
        }
        SetExpr::Values(values) => values.rows.iter().flat_map(|row| row.iter()).try_for_each(untyped_null),
        SetExpr::SetOperation { left, right, .. } => {
            self::body(left)?;
            self::body(right)
        }
        // A nested query is visited by itself.
        _ => Ok(()),
    }
}

fn untyped_null(value: &Expr) -> Result<()> {
    match value {
        Expr::Nested(inner) => untyped_null(inner),
        Expr::Value(value) if value.value == Value::Null => {
            let error = beyond_flink("NULL has no type here").more(", or give it one: CAST(NULL AS type)");
            Err(error.at(Span::from_ast(value.span)))
        }
        _ => Ok(()),
    }
}

/// Whether the values of the call may be JSON.
fn builds_json(call: &Function) -> bool {
    let name = call.name.to_string().to_uppercase();
    name.starts_with("JSON_OBJECT") || name.starts_with("JSON_ARRAY")
}

fn refused(result: Result<()>) -> ControlFlow<Error> {
    match result {
        Ok(()) => ControlFlow::Continue(()),
        Err(error) => ControlFlow::Break(error),
    }
}
