//! The aggregates that give a `BITMAP`, as functions of an `ARRAY_AGG`, which takes back what it was given.
//!
//! | SQL | becomes |
//! |---|---|
//! | `BITMAP_BUILD_AGG(n)` | `BITMAP_BUILD(ARRAY_AGG(DISTINCT n) FILTER (WHERE n IS NOT NULL))` |
//! | `BITMAP_OR_AGG(b)` | `flink_bitmap_fold('OR', ARRAY_AGG(b))`, likewise AND and XOR |
//! | `BITMAP_BUILD_CARDINALITY_AGG(n)` and the like | `BITMAP_CARDINALITY` of it |

use sqlparser::ast::{
    DuplicateTreatment, Expr, Function, FunctionArg, FunctionArgExpr, FunctionArguments, ObjectNamePart,
};

use crate::sql;

/// The call as a function of `ARRAY_AGG`, if `name` is one of these aggregates.
pub(super) fn aggregate(call: &mut Function, name: &str) -> Option<Expr> {
    let kind = name.strip_prefix("BITMAP_")?.strip_suffix("_AGG")?;
    let (kind, counted) = match kind.strip_suffix("_CARDINALITY") {
        Some(kind) => (kind, true),
        None => (kind, false),
    };
    if !matches!(kind, "BUILD" | "AND" | "OR" | "XOR") {
        return None;
    }
    let mut gathered = call.clone();
    if let Some(ObjectNamePart::Identifier(name)) = gathered.name.0.first_mut() {
        name.value = "ARRAY_AGG".to_string();
    }
    let FunctionArguments::List(list) = &mut gathered.args else { return None };
    let [FunctionArg::Unnamed(FunctionArgExpr::Expr(argument))] = list.args.as_slice() else { return None };
    if kind == "BUILD" {
        list.duplicate_treatment = Some(DuplicateTreatment::Distinct);
        let present = Expr::IsNotNull(Box::new(Expr::Nested(Box::new(argument.clone()))));
        gathered.filter = Some(Box::new(match gathered.filter.take() {
            Some(filter) => Expr::BinaryOp {
                left: Box::new(Expr::Nested(filter)),
                op: sqlparser::ast::BinaryOperator::And,
                right: Box::new(present),
            },
            None => present,
        }));
    }
    let gathered = Expr::Function(gathered);
    let bitmap = match kind {
        "BUILD" => sql::call("bitmap_build", vec![gathered]),
        kind => sql::call("flink_bitmap_fold", vec![sql::text_literal(kind), gathered]),
    };
    Some(if counted { sql::call("bitmap_cardinality", vec![bitmap]) } else { bitmap })
}
