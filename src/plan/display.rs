//! Expressions as a person would write them, for `EXPLAIN`.

use arrow::datatypes::IntervalMonthDayNano;
use datafusion_common::{DFSchema, ScalarValue};
use datafusion_expr::expr::{BinaryExpr, Case, InList, ScalarFunction};
use datafusion_expr::{Expr, ExprSchemable};

use crate::types::SqlType;

/// The expression over columns of `schema`, as SQL; columns by their own names.
pub(super) fn expression(expression: &Expr, schema: &DFSchema) -> String {
    let text = |inner: &Expr| self::expression(inner, schema);
    match expression {
        Expr::Alias(alias) => {
            let inner = text(&alias.expr);
            if inner == alias.name { inner } else { format!("{inner} AS {}", alias.name) }
        }
        Expr::Column(column) => column.name.clone(),
        Expr::Literal(value, _) => literal(value),
        Expr::BinaryExpr(BinaryExpr { left, op, right }) => {
            format!("{} {op} {}", operand(left, schema), operand(right, schema))
        }
        Expr::Not(inner) => format!("NOT {}", operand(inner, schema)),
        Expr::Negative(inner) => format!("-{}", operand(inner, schema)),
        Expr::IsNull(inner) => format!("{} IS NULL", operand(inner, schema)),
        Expr::IsNotNull(inner) => format!("{} IS NOT NULL", operand(inner, schema)),
        Expr::IsTrue(inner) => format!("{} IS TRUE", operand(inner, schema)),
        Expr::Cast(cast) => format!("CAST({} AS {})", text(&cast.expr), SqlType::of_field(&cast.field)),
        Expr::InList(InList { expr, list, negated }) => {
            let list: Vec<String> = list.iter().map(text).collect();
            let not = if *negated { "NOT " } else { "" };
            format!("{} {not}IN ({})", operand(expr, schema), list.join(", "))
        }
        Expr::Case(case) => case_text(case, schema),
        Expr::ScalarFunction(function) => call(function, expression, schema),
        other => other.human_display().to_string(),
    }
}

/// In parentheses where it is not a single thing.
fn operand(expression: &Expr, schema: &DFSchema) -> String {
    let text = self::expression(expression, schema);
    let compound = match expression {
        Expr::BinaryExpr(_) | Expr::Not(_) | Expr::InList(_) => true,
        Expr::ScalarFunction(function) => infix(function.name()).is_some(),
        _ => false,
    };
    if compound { format!("({text})") } else { text }
}

/// The operator that a function of ours stands for.
fn infix(function: &str) -> Option<&'static str> {
    Some(match function {
        "flink_plus" => "+",
        "flink_minus" => "-",
        "flink_multiply" => "*",
        "flink_divide" => "/",
        "flink_modulo" => "%",
        "flink_concat" => "||",
        _ => return None,
    })
}

fn call(function: &ScalarFunction, whole: &Expr, schema: &DFSchema) -> String {
    let arguments: Vec<String> = function.args.iter().map(|argument| expression(argument, schema)).collect();
    match (function.name(), function.args.as_slice()) {
        (name, [left, right]) if let Some(operator) = infix(name) => {
            format!("{} {operator} {}", operand(left, schema), operand(right, schema))
        }
        (name @ ("flink_cast" | "flink_try_cast"), [_]) => {
            let target = whole.to_field(schema).map_or(SqlType::Null, |(_, field)| SqlType::of_field(&field));
            let verb = if name == "flink_cast" { "CAST" } else { "TRY_CAST" };
            format!("{verb}({} AS {target})", arguments[0])
        }
        (name, _) => format!("{}({})", name.trim_start_matches("flink_").to_uppercase(), arguments.join(", ")),
    }
}

fn case_text(case: &Case, schema: &DFSchema) -> String {
    let text = |inner: &Expr| expression(inner, schema);
    let mut words = "CASE".to_string();
    if let Some(base) = &case.expr {
        words += &format!(" {}", text(base));
    }
    for (when, then) in &case.when_then_expr {
        words += &format!(" WHEN {} THEN {}", text(when), text(then));
    }
    if let Some(otherwise) = &case.else_expr {
        words += &format!(" ELSE {}", text(otherwise));
    }
    words + " END"
}

fn literal(value: &ScalarValue) -> String {
    match value {
        value if value.is_null() => "NULL".to_string(),
        ScalarValue::Boolean(Some(truth)) => truth.to_string().to_uppercase(),
        ScalarValue::Utf8(Some(text)) | ScalarValue::LargeUtf8(Some(text)) | ScalarValue::Utf8View(Some(text)) => {
            format!("'{}'", text.replace('\'', "''"))
        }
        ScalarValue::IntervalMonthDayNano(Some(interval)) => interval_text(*interval),
        ScalarValue::IntervalYearMonth(Some(months)) => format!("INTERVAL '{months}' MONTH"),
        other => other.to_string(),
    }
}

/// In the largest unit that needs no fraction.
fn interval_text(interval: IntervalMonthDayNano) -> String {
    let nanoseconds = i128::from(interval.days) * 86_400_000_000_000 + i128::from(interval.nanoseconds);
    if interval.months != 0 && nanoseconds == 0 {
        return format!("INTERVAL '{}' MONTH", interval.months);
    }
    let units = [
        ("DAY", 86_400_000_000_000),
        ("HOUR", 3_600_000_000_000),
        ("MINUTE", 60_000_000_000),
        ("SECOND", 1_000_000_000),
    ];
    let whole = units.iter().find(|(_, length)| interval.months == 0 && nanoseconds != 0 && nanoseconds % length == 0);
    match whole {
        Some((unit, length)) => format!("INTERVAL '{}' {unit}", nanoseconds / length),
        None if interval.months == 0 => format!("INTERVAL '{}' SECOND", nanoseconds as f64 / 1e9),
        None => format!("INTERVAL '{}' MONTH + INTERVAL '{}' SECOND", interval.months, nanoseconds as f64 / 1e9),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn intervals_stand_in_their_largest_whole_unit() {
        let interval = |months, days, nanoseconds| interval_text(IntervalMonthDayNano { months, days, nanoseconds });
        assert_eq!(interval(0, 0, 5_000_000_000), "INTERVAL '5' SECOND");
        assert_eq!(interval(0, 0, 90_000_000_000), "INTERVAL '90' SECOND");
        assert_eq!(interval(0, 0, 500_000_000), "INTERVAL '0.5' SECOND");
        assert_eq!(interval(0, 2, 0), "INTERVAL '2' DAY");
        assert_eq!(interval(14, 0, 0), "INTERVAL '14' MONTH");
        assert_eq!(interval(0, 0, 0), "INTERVAL '0' SECOND");
    }
}
