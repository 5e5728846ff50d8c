//! Expressions as text, as computed columns and watermarks are kept and shown: in Flink's spelling.
//!
//! | written | shown |
//! |---|---|
//! | `col`, `t.col` | `` `col` ``, `` `t`.`col` `` |
//! | `upper(s)`, `ifnull(s, 'x')` | `` UPPER(`s`) ``, `` `IFNULL`(`s`, 'x') `` |
//! | `YEAR(t)` | `` EXTRACT(YEAR FROM `t`) `` |
//! | `NULLIF(a, b)` | `` CASE WHEN `a` = `b` THEN NULL ELSE `a` END `` |
//! | `TRIM(s)` | `` TRIM(BOTH ' ' FROM `s`) `` |
//! | `(a + b)`, `NOT (a > b)`, `-x` | `` `a` + `b` ``, `` NOT `a` > `b` ``, `` - `x` `` |
//!
//! What is shown is bound again whenever the table is read, and means the same.

use std::ops::ControlFlow;

use sqlparser::ast::{
    Expr, Function, FunctionArg, FunctionArgExpr, FunctionArguments, Ident, ObjectNamePart, TrimWhereField,
    UnaryOperator, Value, VisitMut, VisitorMut,
};

/// Functions that Flink shows in backticks: those that are no operators of its parser.
const QUOTED: &[&str] = &[
    "ARRAY_APPEND",
    "ARRAY_CONCAT",
    "ARRAY_CONTAINS",
    "ARRAY_DISTINCT",
    "ARRAY_EXCEPT",
    "ARRAY_INTERSECT",
    "ARRAY_JOIN",
    "ARRAY_MAX",
    "ARRAY_MIN",
    "ARRAY_POSITION",
    "ARRAY_PREPEND",
    "ARRAY_REMOVE",
    "ARRAY_REVERSE",
    "ARRAY_SLICE",
    "ARRAY_SORT",
    "ARRAY_UNION",
    "BITMAP_AND",
    "BITMAP_ANDNOT",
    "BITMAP_BUILD",
    "BITMAP_CARDINALITY",
    "BITMAP_FROM_BYTES",
    "BITMAP_OR",
    "BITMAP_TO_ARRAY",
    "BITMAP_TO_BYTES",
    "BITMAP_TO_STRING",
    "BITMAP_XOR",
    "BTRIM",
    "ELT",
    "ENDSWITH",
    "GREATEST",
    "IFNULL",
    "INET_ATON",
    "INET_NTOA",
    "JSON_QUOTE",
    "JSON_STRING",
    "JSON_UNQUOTE",
    "LEAST",
    "MAP_ENTRIES",
    "MAP_FROM_ARRAYS",
    "MAP_KEYS",
    "MAP_UNION",
    "MAP_VALUES",
    "OBJECT_OF",
    "OBJECT_UPDATE",
    "PARSE_JSON",
    "PRINTF",
    "REGEXP_COUNT",
    "REGEXP_EXTRACT_ALL",
    "REGEXP_INSTR",
    "REGEXP_SUBSTR",
    "SOURCE_WATERMARK",
    "SPLIT",
    "STARTSWITH",
    "TO_TIMESTAMP_LTZ",
    "TRY_PARSE_JSON",
    "TYPEOF",
    "UNHEX",
    "URL_DECODE",
    "URL_ENCODE",
];

/// Functions of a time that are shown as `EXTRACT`, and the field.
const PARTS: &[(&str, &str)] = &[
    ("YEAR", "YEAR"),
    ("QUARTER", "QUARTER"),
    ("MONTH", "MONTH"),
    ("WEEK", "WEEK"),
    ("DAYOFYEAR", "DOY"),
    ("DAYOFMONTH", "DAY"),
    ("DAYOFWEEK", "DOW"),
    ("HOUR", "HOUR"),
    ("MINUTE", "MINUTE"),
    ("SECOND", "SECOND"),
];

/// The text of an expression with every column in backticks.
pub(crate) fn quoted_text(expression: &Expr) -> String {
    let mut expression = expression.clone();
    // Writing never stops early.
    let _ = expression.visit(&mut Unparse);
    bare(expression).to_string()
}

struct Unparse;

impl VisitorMut for Unparse {
    type Break = ();

    fn pre_visit_expr(&mut self, expression: &mut Expr) -> ControlFlow<()> {
        match expression {
            Expr::Identifier(name) => name.quote_style = Some('`'),
            Expr::CompoundIdentifier(names) => names.iter_mut().for_each(|name| name.quote_style = Some('`')),
            _ => {}
        }
        ControlFlow::Continue(())
    }

    fn post_visit_expr(&mut self, expression: &mut Expr) -> ControlFlow<()> {
        if let Some(shown) = shown(expression) {
            *expression = shown;
        }
        ControlFlow::Continue(())
    }
}

/// The expression, whose operands are done, in another form, if it has one.
fn shown(expression: &mut Expr) -> Option<Expr> {
    match expression {
        Expr::Value(value) => match &value.value {
            Value::Boolean(truth) => Some(text(if *truth { "TRUE" } else { "FALSE" })),
            Value::HexStringLiteral(digits) => Some(text(&format!("X'{}'", digits.to_uppercase()))),
            _ => None,
        },
        Expr::UnaryOp { op: UnaryOperator::Not, expr } => {
            // AND and OR bind less than NOT, and keep their parentheses.
            if let Expr::Nested(inner) = expr.as_mut()
                && matches!(inner.as_ref(), Expr::BinaryOp { op, .. } if is_comparison(op))
            {
                **expr = std::mem::replace(inner.as_mut(), text(""));
            }
            None
        }
        Expr::UnaryOp { op: op @ (UnaryOperator::Minus | UnaryOperator::Plus), expr }
            if !matches!(expr.as_ref(), Expr::Value(_)) =>
        {
            Some(text(&format!("{op} {expr}")))
        }
        Expr::Trim { trim_where: None, trim_what: None, expr, .. } => {
            let what = Box::new(Expr::Value(Value::SingleQuotedString(" ".to_string()).into()));
            let expr = Box::new(std::mem::replace(expr.as_mut(), text("")));
            let trim_where = Some(TrimWhereField::Both);
            Some(Expr::Trim { expr, trim_where, trim_what: Some(what), trim_characters: None })
        }
        Expr::Substring { expr, substring_from: Some(from), substring_for, .. } => {
            let length = substring_for.as_ref().map(|length| format!(", {length}")).unwrap_or_default();
            Some(text(&format!("SUBSTRING({expr}, {from}{length})")))
        }
        Expr::Between { expr, negated, low, high } => {
            let not = if *negated { "NOT " } else { "" };
            Some(text(&format!("{expr} {not}BETWEEN ASYMMETRIC {low} AND {high}")))
        }
        Expr::Cast { kind, expr, data_type, .. } => {
            let word = if matches!(kind, sqlparser::ast::CastKind::Cast) { "CAST" } else { "TRY_CAST" };
            Some(text(&format!("{word}({expr} AS {})", type_text(&data_type.to_string()))))
        }
        Expr::Case { operand, conditions, else_result, .. } => {
            let operand = operand.as_ref().map(|operand| format!("{operand} = ")).unwrap_or_default();
            let mut case = String::from("CASE");
            for when in conditions {
                case.push_str(&format!(" WHEN {operand}{} THEN {}", when.condition, when.result));
            }
            match else_result {
                Some(result) => case.push_str(&format!(" ELSE {result} END")),
                None => case.push_str(" ELSE NULL END"),
            }
            Some(text(&case))
        }
        Expr::Tuple(parts) => {
            let parts: Vec<String> = parts.iter().map(ToString::to_string).collect();
            Some(text(&format!("ROW({})", parts.join(", "))))
        }
        Expr::Function(call) => function(call),
        _ => None,
    }
}

fn function(call: &mut Function) -> Option<Expr> {
    let name = name_of(call)?;
    let given: Vec<String> = arguments(call)?.iter().map(ToString::to_string).collect();
    let word = |text: &String| text.trim_matches('\'').to_string();
    Some(text(&match (name.as_str(), given.as_slice()) {
        ("NULLIF", [value, other]) => format!("CASE WHEN {value} = {other} THEN NULL ELSE {value} END"),
        ("TRIM", [value]) => format!("TRIM(BOTH ' ' FROM {value})"),
        ("FLOOR" | "CEIL" | "CEILING", [time, unit]) if unit.starts_with('\'') => {
            format!("{}({time} TO {})", if name == "FLOOR" { "FLOOR" } else { "CEIL" }, word(unit))
        }
        // A unit of time is no column.
        ("TIMESTAMPADD" | "TIMESTAMPDIFF", [unit, rest @ ..]) => {
            format!("{name}({}, {})", unit.trim_matches('`').to_uppercase(), rest.join(", "))
        }
        ("CEILING", [value]) => format!("CEIL({value})"),
        ("MAP", entries) => format!("MAP[{}]", entries.join(", ")),
        ("IS_JSON", [value, kind]) => format!("{value} IS JSON {}", word(kind)),
        ("JSON_QUERY", [value, path]) => {
            format!("JSON_QUERY({value}, {path} WITHOUT ARRAY WRAPPER NULL ON EMPTY NULL ON ERROR)")
        }
        ("JSON_OBJECT" | "JSON_OBJECT_ABSENT_ON_NULL", members) => {
            let pairs: Vec<String> = members.chunks(2).map(|pair| format!("KEY {}", pair.join(" VALUE "))).collect();
            let nulls = if name == "JSON_OBJECT" { "NULL" } else { "ABSENT" };
            format!("JSON_OBJECT({} {nulls} ON NULL)", pairs.join(", "))
        }
        ("JSON_ARRAY", values) if !values.is_empty() => format!("JSON_ARRAY({} ABSENT ON NULL)", values.join(", ")),
        ("JSON_ARRAY_NULL_ON_NULL", values) => format!("JSON_ARRAY({} NULL ON NULL)", values.join(", ")),
        (_, [value]) if PARTS.iter().any(|(function, _)| *function == name) => {
            let field = PARTS.iter().find(|(function, _)| *function == name).map(|(_, field)| *field)?;
            format!("EXTRACT({field} FROM {value})")
        }
        (_, values) if QUOTED.contains(&name.as_str()) => format!("`{name}`({})", values.join(", ")),
        _ => {
            if let Some(ObjectNamePart::Identifier(ident)) = call.name.0.first_mut() {
                ident.value = if ident.quote_style.is_none() { name } else { ident.value.clone() };
            }
            return None;
        }
    }))
}

/// The expression without parentheses around all of it.
fn bare(expression: Expr) -> Expr {
    match expression {
        Expr::Nested(inner) => bare(*inner),
        other => other,
    }
}

/// Text that is shown as it is.
fn text(text: &str) -> Expr {
    Expr::Identifier(Ident::new(text))
}

/// A type with Flink's names and spaces.
fn type_text(written: &str) -> String {
    let spaced = written.replace(", ", ",").replace(',', ", ");
    match spaced.as_str() {
        "INT" => "INTEGER".to_string(),
        _ => spaced,
    }
}

fn is_comparison(operator: &sqlparser::ast::BinaryOperator) -> bool {
    use sqlparser::ast::BinaryOperator::*;
    matches!(operator, Eq | NotEq | Lt | LtEq | Gt | GtEq)
}

/// The function's name, upper case, if it is one word.
fn name_of(call: &Function) -> Option<String> {
    match call.name.0.as_slice() {
        [only] => only.as_ident().map(|name| name.value.to_ascii_uppercase()),
        _ => None,
    }
}

/// The arguments of a plain call.
fn arguments(call: &mut Function) -> Option<Vec<&mut Expr>> {
    if call.over.is_some() || call.filter.is_some() || !call.within_group.is_empty() {
        return None;
    }
    let FunctionArguments::List(list) = &mut call.args else { return None };
    if !list.clauses.is_empty() || list.duplicate_treatment.is_some() {
        return None;
    }
    list.args
        .iter_mut()
        .map(|argument| match argument {
            FunctionArg::Unnamed(FunctionArgExpr::Expr(value)) => Some(value),
            _ => None,
        })
        .collect()
}
