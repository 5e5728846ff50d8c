//! Flink's operators and types, where the binding library would choose its own.

use std::sync::Arc;

use arrow::datatypes::{DataType, Field, FieldRef};
use datafusion_common::{DFSchema, Result as BindResult, ScalarValue};
use datafusion_expr::expr::{Cast, ScalarFunction};
use datafusion_expr::planner::{ExprPlanner, PlannerResult, RawBinaryExpr, RawFieldAccessExpr, TypePlanner};
use datafusion_expr::{Expr, ExprSchemable, GetFieldAccess, ScalarUDF};
use sqlparser::ast::BinaryOperator;

use super::error::{span_in, wrap};
use crate::error::Error;
use crate::functions::{self, FunctionSet};
use crate::sql;
use crate::types::SqlType;

/// Plans operators and special call syntax as Flink's functions.
#[derive(Debug)]
pub(super) struct FlinkExpressions {
    pub functions: Arc<FunctionSet>,
}

impl FlinkExpressions {
    /// A call of a function of ours; `Original` if there is none of this name.
    fn call(&self, name: &str, arguments: Vec<Expr>) -> BindResult<PlannerResult<Vec<Expr>>> {
        Ok(match self.functions.scalar(name) {
            Some(function) => PlannerResult::Planned(call(function, arguments)),
            None => PlannerResult::Original(arguments),
        })
    }
}

impl ExprPlanner for FlinkExpressions {
    fn plan_binary_op(&self, raw: RawBinaryExpr, schema: &DFSchema) -> BindResult<PlannerResult<RawBinaryExpr>> {
        let RawBinaryExpr { op, left, right } = raw;
        let (left, right) = (narrow_literal(left), narrow_literal(right));
        let (left_field, right_field) = (field_of(&left, schema)?, field_of(&right, schema)?);
        if is_comparison(&op) {
            let equality = matches!(op, BinaryOperator::Eq | BinaryOperator::NotEq);
            let (left, right) = comparable(left, &left_field, right, &right_field, equality)?;
            return Ok(PlannerResult::Original(RawBinaryExpr { op, left, right }));
        }
        if op == BinaryOperator::StringConcat
            && let Some(concat) = self.functions.scalar("||")
        {
            return Ok(PlannerResult::Planned(call(concat, vec![left, right])));
        }
        let Some(arithmetic) = arithmetic_operator(&op) else {
            return Ok(PlannerResult::Original(RawBinaryExpr { op, left, right }));
        };
        let types = (SqlType::of_field(&left_field), SqlType::of_field(&right_field));
        functions::arithmetic_type(arithmetic, &types.0, &types.1)
            .map_err(|error| wrap(error.at(span_in(&left).or_else(|| span_in(&right)))))?;
        Ok(match functions::arithmetic(arithmetic, &left_field, &right_field) {
            Some(function) => PlannerResult::Planned(call(function, vec![left, right])),
            None => PlannerResult::Original(RawBinaryExpr { op, left, right }),
        })
    }

    fn plan_field_access(
        &self,
        raw: RawFieldAccessExpr,
        _schema: &DFSchema,
    ) -> BindResult<PlannerResult<RawFieldAccessExpr>> {
        let RawFieldAccessExpr { field_access, expr } = raw;
        if let GetFieldAccess::ListIndex { key } = field_access {
            let key = narrow_literal(*key);
            return Ok(match self.functions.scalar("item") {
                Some(item) => PlannerResult::Planned(call(item, vec![expr, key])),
                None => PlannerResult::Original(RawFieldAccessExpr {
                    field_access: GetFieldAccess::ListIndex { key: Box::new(key) },
                    expr,
                }),
            });
        }
        Ok(PlannerResult::Original(RawFieldAccessExpr { field_access, expr }))
    }

    fn plan_array_literal(&self, elements: Vec<Expr>, schema: &DFSchema) -> BindResult<PlannerResult<Vec<Expr>>> {
        let elements: Vec<Expr> = elements.into_iter().map(narrow_literal).collect();
        let elements = super::typing::to_common_type(elements, schema, "the elements of an array")?;
        self.call("array", elements)
    }

    fn plan_position(&self, mut arguments: Vec<Expr>) -> BindResult<PlannerResult<Vec<Expr>>> {
        // The library names the text first; the function takes what is looked for first, as `POSITION(a IN text)` does.
        arguments.reverse();
        self.call("position", arguments)
    }

    fn plan_extract(&self, arguments: Vec<Expr>) -> BindResult<PlannerResult<Vec<Expr>>> {
        self.call("extract", arguments)
    }

    fn plan_substring(&self, arguments: Vec<Expr>) -> BindResult<PlannerResult<Vec<Expr>>> {
        self.call("substring", arguments)
    }

    fn plan_overlay(&self, arguments: Vec<Expr>) -> BindResult<PlannerResult<Vec<Expr>>> {
        self.call("overlay", arguments)
    }

    fn plan_struct_literal(&self, arguments: Vec<Expr>, is_named_struct: bool) -> BindResult<PlannerResult<Vec<Expr>>> {
        if is_named_struct {
            return Ok(PlannerResult::Original(arguments));
        }
        self.call("row", arguments.into_iter().map(narrow_literal).collect())
    }
}

/// Plans the types of `CAST`.
#[derive(Debug)]
pub(super) struct FlinkTypes;

impl TypePlanner for FlinkTypes {
    fn plan_type_field(&self, sql_type: &sqlparser::ast::DataType) -> BindResult<Option<FieldRef>> {
        let (sql_type, nullable) = sql::sql_type_of(sql_type).map_err(wrap)?;
        Ok(Some(Arc::new(sql_type.to_field("", nullable))))
    }
}

pub(super) fn call(function: Arc<ScalarUDF>, arguments: Vec<Expr>) -> Expr {
    Expr::ScalarFunction(ScalarFunction::new_udf(function, arguments))
}

/// The binding library reads every whole number as `BIGINT`; in Flink one that fits is `INT`. At binding time a
/// literal `BIGINT` can only have come from such a number: nothing has been folded yet.
pub(super) fn narrow_literal(expression: Expr) -> Expr {
    match expression {
        Expr::Literal(ScalarValue::Int64(Some(value)), metadata) => match i32::try_from(value) {
            Ok(value) => Expr::Literal(ScalarValue::Int32(Some(value)), metadata),
            Err(_) => Expr::Literal(ScalarValue::Int64(Some(value)), metadata),
        },
        Expr::Negative(inner) => match narrow_literal(*inner) {
            Expr::Literal(ScalarValue::Int32(Some(value)), metadata) => {
                Expr::Literal(ScalarValue::Int32(Some(value.wrapping_neg())), metadata)
            }
            other => Expr::Negative(Box::new(other)),
        },
        other => other,
    }
}

pub(super) fn field_of(expression: &Expr, schema: &DFSchema) -> BindResult<FieldRef> {
    Ok(expression.to_field(schema)?.1)
}

/// `expression` as `target`, by Arrow's own cast: for widenings, which need no rule of ours.
pub(super) fn widen(expression: Expr, from: &DataType, target: &SqlType) -> Expr {
    let arrow = target.to_arrow();
    if *from == arrow {
        return expression;
    }
    if let Expr::Literal(value, metadata) = &expression
        && let Ok(value) = value.cast_to(&arrow)
    {
        return Expr::Literal(value, metadata.clone());
    }
    Expr::Cast(Cast::new_from_field(Box::new(expression), Arc::new(Field::new("", arrow, true))))
}

fn is_comparison(op: &BinaryOperator) -> bool {
    use BinaryOperator::*;
    matches!(op, Eq | NotEq | Lt | LtEq | Gt | GtEq)
}

/// Both sides in the type in which Flink compares them.
pub(super) fn comparable(
    left: Expr,
    left_field: &Field,
    right: Expr,
    right_field: &Field,
    equality: bool,
) -> BindResult<(Expr, Expr)> {
    let (left_type, right_type) = (SqlType::of_field(left_field), SqlType::of_field(right_field));
    let common = functions::comparison_type(&left_type, &right_type, equality)
        .map_err(|error| wrap(error.at(span_in(&left).or_else(|| span_in(&right)))))?;
    Ok((widen(left, left_field.data_type(), &common), widen(right, right_field.data_type(), &common)))
}

fn arithmetic_operator(op: &BinaryOperator) -> Option<functions::ArithmeticOperator> {
    use functions::ArithmeticOperator::*;
    Some(match op {
        BinaryOperator::Plus => Plus,
        BinaryOperator::Minus => Minus,
        BinaryOperator::Multiply => Multiply,
        BinaryOperator::Divide => Divide,
        BinaryOperator::Modulo => Modulo,
        _ => return None,
    })
}

/// The error for a type that a place does not take.
pub(super) fn mismatch(what: &str, types: &[SqlType]) -> Error {
    let names: Vec<String> = types.iter().map(ToString::to_string).collect();
    Error::sql(format!("{what} have types without a common one: {}", names.join(", "))).hint("CAST them to one type")
}
