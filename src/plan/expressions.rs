//! Flink's operators and types, where the binding library would choose its own.

use std::sync::Arc;

use arrow::datatypes::{Field, FieldRef};
use datafusion_common::metadata::FieldMetadata;
use datafusion_common::{DFSchema, Result as BindResult, ScalarValue, internal_err};
use datafusion_expr::expr::{Case, Cast, ScalarFunction};
use datafusion_expr::planner::{ExprPlanner, PlannerResult, RawBinaryExpr, RawDictionaryExpr, TypePlanner};
use datafusion_expr::{BinaryExpr, Expr, ExprSchemable, Operator, ScalarUDF};
use sqlparser::ast::BinaryOperator;

use super::error::{span_in, unwrap, wrap};
use super::forms::{Form, Forms};
use super::typing;
use crate::error::Error;
use crate::functions::{self, FunctionSet, comparison, comparison_type};
use crate::sql;
use crate::types::SqlType;

/// Plans operators and special call syntax as Flink's functions.
#[derive(Debug)]
pub(super) struct FlinkExpressions {
    pub functions: Arc<FunctionSet>,
    pub forms: Arc<Forms>,
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

impl FlinkExpressions {
    /// Two spans of time overlap if each begins before the other ends; an end before its start is taken as the start.
    fn overlaps(&self, operands: Vec<Expr>, schema: &DFSchema) -> BindResult<Expr> {
        let named = |name: &str, arguments: Vec<Expr>| match self.functions.scalar(name) {
            Some(function) => Ok(call(function, arguments)),
            None => internal_err!("there is no function {name}"),
        };
        let Ok([start, end, other_start, other_end]) = <[Expr; 4]>::try_from(operands) else {
            return internal_err!("OVERLAPS without its operands");
        };
        let end_of = |start: &Expr, end: Expr| match SqlType::of_field(&*field_of(&end, schema)?) {
            SqlType::IntervalDayTime | SqlType::IntervalYearMonth => named("flink_plus", vec![start.clone(), end]),
            _ => Ok(end),
        };
        let (end, other_end) = (end_of(&start, end)?, end_of(&other_start, other_end)?);
        let side = |from: (Expr, Expr), to: (Expr, Expr)| {
            let last = named("greatest", vec![from.0, from.1])?;
            let first = named("least", vec![to.0, to.1])?;
            compare(Operator::GtEq, last, first, schema, &self.functions)
        };
        let (one, other) = ((start, end), (other_start, other_end));
        Ok(side(one.clone(), other.clone())?.and(side(other, one)?))
    }
}

impl ExprPlanner for FlinkExpressions {
    fn plan_binary_op(&self, raw: RawBinaryExpr, schema: &DFSchema) -> BindResult<PlannerResult<RawBinaryExpr>> {
        let RawBinaryExpr { op, left, right } = raw;
        if let Some(operator) = comparison_operator(&op) {
            return Ok(PlannerResult::Planned(compare(operator, left, right, schema, &self.functions)?));
        }
        if op == BinaryOperator::StringConcat
            && let Some(concat) = self.functions.scalar("flink_concat")
        {
            return Ok(PlannerResult::Planned(call(concat, vec![left, right])));
        }
        let Some(arithmetic) = arithmetic_operator(&op) else {
            return Ok(PlannerResult::Original(RawBinaryExpr { op, left, right }));
        };
        // Asked only where they matter: the type of a long chain is found by walking all of it.
        let (left_field, right_field) = (field_of(&left, schema)?, field_of(&right, schema)?);
        let types = (SqlType::of_field(&left_field), SqlType::of_field(&right_field));
        functions::arithmetic_type(arithmetic, &types.0, &types.1)
            .map_err(|error| wrap(error.at(span_in(&left).or_else(|| span_in(&right)))))?;
        Ok(match functions::arithmetic(arithmetic, &left_field, &right_field) {
            Some(function) => PlannerResult::Planned(call(function, vec![left, right])),
            None => PlannerResult::Original(RawBinaryExpr { op, left, right }),
        })
    }

    fn plan_dictionary_literal(
        &self,
        raw: RawDictionaryExpr,
        schema: &DFSchema,
    ) -> BindResult<PlannerResult<RawDictionaryExpr>> {
        let form = match raw.keys.first() {
            Some(Expr::Literal(ScalarValue::Utf8(Some(name)), _)) => self.forms.get(name),
            _ => None,
        };
        let Some(form) = form else { return Ok(PlannerResult::Original(raw)) };
        let mut operands = raw.values.into_iter();
        let planned = match form {
            Form::Number { value, .. } | Form::Interval(value) => Expr::Literal(value, None),
            Form::Call { function, span } => {
                let planned = call(function, operands.collect());
                // Asked here, where the place is known.
                field_of(&planned, schema).map_err(|error| wrap(unwrap(error).at(span)))?;
                planned
            }
            Form::Overlaps { span } => {
                self.overlaps(operands.collect(), schema).map_err(|error| wrap(unwrap(error).at(span)))?
            }
            Form::Cast { to, nullable, try_cast, span } => {
                let Some(operand) = operands.next() else { return internal_err!("a cast without its operand") };
                let field = field_of(&operand, schema)?;
                let from = SqlType::of_field(&field);
                if from == to && matches!(to, SqlType::Timestamp(_) | SqlType::TimestampLtz(_)) && !try_cast {
                    // A time attribute that is cast is one no longer, even to its own type.
                    return Ok(PlannerResult::Planned(call(self.functions.plain_time(&to), vec![operand])));
                }
                let to = Arc::new(to.to_field("", nullable));
                typing::cast(operand, &to, try_cast, schema, &self.functions)
                    .map_err(|error| wrap(unwrap(error).at(span)))?
            }
            Form::Case { operand, otherwise, span } => {
                let case = case_of(operands.collect(), operand, otherwise);
                typing::common_case(case, schema, &self.functions).map_err(|error| wrap(unwrap(error).at(span)))?
            }
        };
        Ok(PlannerResult::Planned(planned))
    }

    fn plan_position(&self, arguments: Vec<Expr>) -> BindResult<PlannerResult<Vec<Expr>>> {
        // The text comes first here.
        self.call("strpos", arguments)
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

/// The operands of a `CASE`, as [`Form::Case`] lists them, in their places.
fn case_of(operands: Vec<Expr>, operand: bool, otherwise: bool) -> Case {
    let mut operands = operands.into_iter();
    let expr = if operand { operands.next().map(Box::new) } else { None };
    let else_expr = if otherwise { operands.next_back().map(Box::new) } else { None };
    let mut when_then_expr = Vec::new();
    while let (Some(when), Some(then)) = (operands.next(), operands.next()) {
        when_then_expr.push((Box::new(when), Box::new(then)));
    }
    Case { expr, when_then_expr, else_expr }
}

pub(super) fn field_of(expression: &Expr, schema: &DFSchema) -> BindResult<FieldRef> {
    Ok(expression.to_field(schema)?.1)
}

/// `expression`, whose type is that of `from`, as `target`: the values, not the declared length.
pub(super) fn convert(expression: Expr, from: &Field, target: &SqlType, functions: &FunctionSet) -> BindResult<Expr> {
    let arrow = target.to_arrow();
    let source = SqlType::of_field(from);
    if *from.data_type() == arrow {
        return Ok(expression);
    }
    // Widenings of numbers and of NULL need no rule of ours.
    if source == SqlType::Null || source.is_numeric() && target.is_numeric() {
        if let Expr::Literal(value, _) = &expression
            && let Ok(value) = value.cast_to(&arrow)
        {
            return Ok(Expr::Literal(value, None));
        }
        return Ok(Expr::Cast(Cast::new_from_field(Box::new(expression), Arc::new(Field::new("", arrow, true)))));
    }
    Ok(match functions.cast(from, target, false).map_err(|error| wrap(error.at(span_in(&expression))))? {
        Some(function) => call(function, vec![expression]),
        None => Expr::Cast(Cast::new_from_field(Box::new(expression), Arc::new(Field::new("", arrow, true)))),
    })
}

/// `expression` as `target`, declared to be of that type.
pub(super) fn declared(expression: Expr, from: &Field, target: &SqlType, functions: &FunctionSet) -> BindResult<Expr> {
    let same = SqlType::of_field(from) == *target;
    let converted = convert(expression, from, target, functions)?;
    if same || SqlType::from_arrow(&target.to_arrow()) == *target && from.metadata().is_empty() {
        return Ok(converted);
    }
    Ok(call(functions::declare_function(target), vec![converted]))
}

/// A text or byte literal with Flink's type for it: as long as it is written.
pub(super) fn typed_literal(literal: Expr) -> Expr {
    let sql_type = match &literal {
        Expr::Literal(ScalarValue::Utf8(Some(text)), None) => {
            SqlType::Char(u32::try_from(text.chars().count()).unwrap_or(u32::MAX))
        }
        Expr::Literal(ScalarValue::Binary(Some(bytes)), None) => {
            SqlType::Binary(u32::try_from(bytes.len()).unwrap_or(u32::MAX))
        }
        _ => return literal,
    };
    match literal {
        Expr::Literal(value, _) => {
            let metadata = FieldMetadata::from(sql_type.to_field("", false).metadata());
            Expr::Literal(value, Some(metadata))
        }
        other => other,
    }
}

fn comparison_operator(op: &BinaryOperator) -> Option<Operator> {
    Some(match op {
        BinaryOperator::Eq => Operator::Eq,
        BinaryOperator::NotEq => Operator::NotEq,
        BinaryOperator::Lt => Operator::Lt,
        BinaryOperator::LtEq => Operator::LtEq,
        BinaryOperator::Gt => Operator::Gt,
        BinaryOperator::GtEq => Operator::GtEq,
        _ => return None,
    })
}

/// `left operator right` as Flink compares them.
pub(super) fn compare(
    operator: Operator,
    left: Expr,
    right: Expr,
    schema: &DFSchema,
    functions: &FunctionSet,
) -> BindResult<Expr> {
    let (left_field, right_field) = (field_of(&left, schema)?, field_of(&right, schema)?);
    let equality = matches!(operator, Operator::Eq | Operator::NotEq);
    let (left, right) = comparable(left, &left_field, right, &right_field, equality, functions)?;
    // Columns of two relations are left to joins, which look for plain equalities.
    let joins = matches!((&left, &right), (Expr::Column(left), Expr::Column(right)) if left.relation != right.relation);
    // As in Flink, what is compared with itself is only asked whether it is NULL.
    let itself = left == right;
    if !joins
        && !itself
        && let Some(function) = comparison(operator, field_of(&left, schema)?.data_type())
    {
        return Ok(call(function, vec![left, right]));
    }
    Ok(Expr::BinaryExpr(BinaryExpr::new(Box::new(left), operator, Box::new(right))))
}

/// Both sides in the type in which Flink compares them.
pub(super) fn comparable(
    left: Expr,
    left_field: &Field,
    right: Expr,
    right_field: &Field,
    equality: bool,
    functions: &FunctionSet,
) -> BindResult<(Expr, Expr)> {
    let (left_type, right_type) = (SqlType::of_field(left_field), SqlType::of_field(right_field));
    let common = comparison_type(&left_type, &right_type, equality)
        .map_err(|error| wrap(error.at(span_in(&left).or_else(|| span_in(&right)))))?;
    Ok((convert(left, left_field, &common, functions)?, convert(right, right_field, &common, functions)?))
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
