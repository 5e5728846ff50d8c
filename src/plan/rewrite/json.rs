//! The SQL/JSON calls as `sql` encodes them, in the form in which `functions` takes them.
//!
//! | from `sql` | to `functions` |
//! |---|---|
//! | `JSON_VALUE(x, path, type, on empty, default, on error, default)` | `CAST(json_value(x, path, …) AS type)` |
//! | `JSON_QUERY(x, path, type, wrapper, on empty, on error)` | `CAST(json_query(x, path, …) AS type)` |
//! | … of type `ARRAY<STRING>` | `flink_json_elements(json_query(x, path, …))` |
//! | `JSON_OBJECT(k, v, …)`, `JSON_OBJECT_ABSENT_ON_NULL(k, v, …)` | `json_object('NULL' or 'ABSENT', k, v, …)` |
//! | `JSON_ARRAYAGG(v[, 'NULL'])` | `JSON_ARRAYAGG(flink_json_text('ABSENT' or 'NULL', v))` |
//! | `JSON_OBJECTAGG(k, v[, 'ABSENT'])` | `JSON_OBJECTAGG(flink_json_member('NULL' or 'ABSENT', k, v))` |
//! | `JSON_ARRAY(v, …)`, `JSON_ARRAY_NULL_ON_NULL(v, …)` | `json_array('ABSENT' or 'NULL', v, …)` |

use sqlparser::ast::{Expr, Function, FunctionArg, FunctionArgExpr, FunctionArguments, ObjectNamePart, Value};

use crate::error::Result;
use crate::sql;
use crate::types::SqlType;

/// A call whose name begins with `JSON_`; `cast` makes a cast of a value.
///
/// # Errors
/// If the type after RETURNING is none.
pub(super) fn call(mut call: Function, cast: &dyn Fn(SqlType, Expr) -> Expr) -> Result<Expr> {
    let Some(ObjectNamePart::Identifier(ident)) = call.name.0.first_mut() else { return Ok(Expr::Function(call)) };
    let name = ident.value.to_ascii_uppercase();
    let FunctionArguments::List(list) = &mut call.args else { return Ok(Expr::Function(call)) };
    let value = |argument: Expr| FunctionArg::Unnamed(FunctionArgExpr::Expr(argument));
    match name.as_str() {
        "JSON_OBJECT" | "JSON_ARRAY_NULL_ON_NULL" => list.args.insert(0, value(sql::text_literal("NULL"))),
        "JSON_OBJECT_ABSENT_ON_NULL" | "JSON_ARRAY" => list.args.insert(0, value(sql::text_literal("ABSENT"))),
        "JSON_VALUE" if list.args.len() == 7 => {
            for default in [4, 6] {
                if let FunctionArg::Unnamed(FunctionArgExpr::Expr(argument)) = &mut list.args[default]
                    && !matches!(argument, Expr::Value(literal) if literal.value == Value::Null)
                {
                    let plain = std::mem::replace(argument, sql::text_literal(""));
                    *argument = cast(SqlType::STRING, plain);
                }
            }
        }
        "JSON_ARRAYAGG" | "JSON_OBJECTAGG" => {
            aggregate(&name, &mut list.args);
            return Ok(Expr::Function(call));
        }
        _ => {}
    }
    let short = match name.as_str() {
        "JSON_OBJECT_ABSENT_ON_NULL" => "json_object",
        "JSON_ARRAY_NULL_ON_NULL" => "json_array",
        _ => "",
    };
    if !short.is_empty() {
        ident.value = short.to_string();
    }
    let clauses = matches!((name.as_str(), list.args.len()), ("JSON_VALUE", 7) | ("JSON_QUERY", 6));
    if !clauses {
        return Ok(Expr::Function(call));
    }
    let returning = match list.args.remove(2) {
        FunctionArg::Unnamed(FunctionArgExpr::Expr(Expr::Value(text))) => text.value.into_string().unwrap_or_default(),
        _ => return Ok(Expr::Function(call)),
    };
    let (to, _) = sql::parse_sql_type(&returning)?;
    let call = Expr::Function(call);
    Ok(match to {
        SqlType::STRING => call,
        SqlType::Array(element) if name == "JSON_QUERY" && element.sql_type == SqlType::STRING => {
            sql::call("flink_json_elements", vec![call])
        }
        to => cast(to, call),
    })
}

/// What an aggregate of JSON puts together is written as JSON before: it only has to join texts.
fn aggregate(name: &str, arguments: &mut Vec<FunctionArg>) {
    let (function, values, default) = match name {
        "JSON_ARRAYAGG" => ("flink_json_text", 1, "ABSENT"),
        _ => ("flink_json_member", 2, "NULL"),
    };
    if !(values..=values + 1).contains(&arguments.len()) {
        return;
    }
    let mut operands: Vec<Expr> = Vec::with_capacity(values + 1);
    for argument in arguments.iter() {
        let FunctionArg::Unnamed(FunctionArgExpr::Expr(operand)) = argument else { return };
        operands.push(operand.clone());
    }
    let on_null = operands.drain(values..).next().unwrap_or_else(|| sql::text_literal(default));
    operands.insert(0, on_null);
    *arguments = vec![FunctionArg::Unnamed(FunctionArgExpr::Expr(sql::call(function, operands)))];
}
