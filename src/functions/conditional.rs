//! Choices: IF, COALESCE, IFNULL, NULLIF, GREATEST, LEAST, IS_ALPHA and its kin, TYPEOF.
//!
//! IF and COALESCE become CASE where an argument that is not asked for might fail or cost; the bodies here take columns
//! that are there.

use arrow::array::{Array, ArrayRef, AsArray, BooleanArray};
use arrow::compute::kernels::{cmp, zip::zip};
use arrow::compute::{is_null, nullif, prep_null_mask_filter};
use arrow::datatypes::DataType;

use datafusion_common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion_expr::Expr;
use datafusion_expr::expr::Case;
use datafusion_expr::simplify::ExprSimplifyResult;

use super::cast::cast_column;
use super::column::{booleans, texts};
use super::function::{Arguments, Call, Entry, Typing};
use super::parameter::Parameter::{self, Any, Boolean, Many, Text};
use super::typing::{common_type, comparison_type};
use crate::error::{Error, Result};
use crate::types::SqlType;

/// The entries of this file.
pub(super) fn entries() -> Vec<Entry> {
    const TEXT: &[&[Parameter]] = &[&[Text]];
    const SOME: &[&[Parameter]] = &[&[Any, Many(&Any)]];
    let test = |names, body| Entry::new(names, TEXT, Typing::NotNull(SqlType::Boolean), body);
    vec![
        Entry::new(&["if"], &[&[Boolean, Any, Any]], Typing::By(if_type), choose).rewritten(if_case),
        Entry::new(&["coalesce"], SOME, Typing::By(coalesce_type), coalesce).rewritten(coalesce_case),
        Entry::new(&["ifnull"], &[&[Any, Any]], Typing::By(coalesce_type), coalesce).rewritten(coalesce_case),
        Entry::new(&["nullif"], &[&[Any, Any]], Typing::By(nullif_type), null_if),
        Entry::new(&["greatest"], SOME, Typing::By(extreme_type), |call| extreme(call, true)),
        Entry::new(&["least"], SOME, Typing::By(extreme_type), |call| extreme(call, false)),
        test(&["is_alpha"], |call| all_characters(call, char::is_alphabetic)),
        test(&["is_digit"], |call| all_characters(call, |c| c.is_ascii_digit())),
        test(&["is_decimal"], is_decimal),
        Entry::new(&["typeof"], &[&[Any], &[Any, Boolean], &[Any, Text]], Typing::NotNull(SqlType::STRING), type_of),
    ]
}

/// Parts of a COALESCE that is written as CASE, where each argument but the last stands twice; nested, longer ones would
/// grow without bound.
const COALESCE_PARTS: usize = 24;

fn if_case(args: Vec<Expr>) -> ExprSimplifyResult {
    match <[Expr; 3]>::try_from(args) {
        Ok([when, then, otherwise]) => {
            let cases = vec![(Box::new(when), Box::new(then))];
            ExprSimplifyResult::Simplified(Expr::Case(Case::new(None, cases, Some(Box::new(otherwise)))))
        }
        Err(args) => ExprSimplifyResult::Original(args),
    }
}

fn coalesce_case(mut args: Vec<Expr>) -> ExprSimplifyResult {
    let cheap = |arg: &Expr| matches!(arg, Expr::Literal(..) | Expr::Column(_));
    let parts = args.iter().map(count).sum::<usize>();
    if args.iter().skip(1).all(cheap) || parts > COALESCE_PARTS {
        return ExprSimplifyResult::Original(args);
    }
    let Some(last) = args.pop() else { return ExprSimplifyResult::Original(args) };
    let cases = args.into_iter().map(|arg| (Box::new(arg.clone().is_not_null()), Box::new(arg))).collect();
    ExprSimplifyResult::Simplified(Expr::Case(Case::new(None, cases, Some(Box::new(last)))))
}

/// The parts that an expression consists of.
fn count(expression: &Expr) -> usize {
    let mut parts = 0;
    // Counting never fails.
    let _ = expression.apply(|_| {
        parts += 1;
        Ok(TreeNodeRecursion::Continue)
    });
    parts
}

fn types(arguments: &Arguments<'_>, from: usize) -> Vec<SqlType> {
    (from..arguments.fields.len()).map(|index| arguments.sql_type(index)).collect()
}

fn common(arguments: &Arguments<'_>, from: usize) -> Result<SqlType> {
    let types = types(arguments, from);
    let common = common_type(&types).filter(|common| *common != SqlType::Null);
    common.ok_or_else(|| {
        let listed: Vec<String> = types.iter().map(SqlType::to_string).collect();
        Error::sql(format!("the arguments of {} have no common type: {}", arguments.name, listed.join(", ")))
            .hint("CAST them to one type")
    })
}

fn if_type(arguments: &Arguments<'_>) -> Result<(SqlType, bool)> {
    Ok((common(arguments, 1)?, arguments.fields[1..].iter().any(|f| f.is_nullable())))
}

fn coalesce_type(arguments: &Arguments<'_>) -> Result<(SqlType, bool)> {
    Ok((common(arguments, 0)?, arguments.fields.iter().all(|f| f.is_nullable())))
}

fn nullif_type(arguments: &Arguments<'_>) -> Result<(SqlType, bool)> {
    comparison_type(&arguments.sql_type(0), &arguments.sql_type(1), true)?;
    // Two different constants are never equal.
    let different = match (arguments.scalars.first(), arguments.scalars.get(1)) {
        (Some(Some(left)), Some(Some(right))) => {
            !left.is_null() && !right.is_null() && left.data_type() == right.data_type() && left != right
        }
        _ => false,
    };
    Ok((arguments.sql_type(0), !different || arguments.fields[0].is_nullable()))
}

fn extreme_type(arguments: &Arguments<'_>) -> Result<(SqlType, bool)> {
    let sql_type = common(arguments, 0)?;
    comparison_type(&sql_type, &sql_type, false)?;
    Ok((sql_type, arguments.nullable()))
}

/// Argument `index` in the type of the result, one value a row.
fn branch(call: &Call<'_>, index: usize, to: &SqlType) -> Result<ArrayRef> {
    let column = call.column(index)?;
    let from = source_type(call, index);
    cast_column(&column, &from, to, call.context.zone)
}

/// The SQL type of an argument, as long as its field still describes it.
fn source_type(call: &Call<'_>, index: usize) -> SqlType {
    let declared = SqlType::of_field(&call.fields[index]);
    let data_type = call.arguments[index].data_type();
    if declared.to_arrow() == *data_type { declared } else { SqlType::from_arrow(data_type) }
}

/// A condition in which NULL is FALSE.
fn known(condition: &BooleanArray) -> BooleanArray {
    if condition.null_count() > 0 { prep_null_mask_filter(condition) } else { condition.clone() }
}

fn choose(call: &Call<'_>) -> Result<ArrayRef> {
    let to = SqlType::of_field(call.result);
    let condition = call.column(0)?;
    // NULL chooses as FALSE does.
    Ok(zip(&known(condition.as_boolean()), &branch(call, 1, &to)?, &branch(call, 2, &to)?)?)
}

fn coalesce(call: &Call<'_>) -> Result<ArrayRef> {
    let to = SqlType::of_field(call.result);
    let mut result = branch(call, 0, &to)?;
    for index in 1..call.arguments.len() {
        if result.null_count() == 0 {
            break;
        }
        result = zip(&is_null(&result)?, &branch(call, index, &to)?, &result)?;
    }
    Ok(result)
}

fn null_if(call: &Call<'_>) -> Result<ArrayRef> {
    let (left, right) = (source_type(call, 0), source_type(call, 1));
    let compared = comparison_type(&left, &right, true)?;
    if left == SqlType::Null || right == SqlType::Null {
        return call.column(0);
    }
    let equal = cmp::eq(&branch(call, 0, &compared)?, &branch(call, 1, &compared)?)?;
    Ok(nullif(&call.column(0)?, &equal)?)
}

/// The greatest or least; NULL if any argument is NULL.
fn extreme(call: &Call<'_>, greatest: bool) -> Result<ArrayRef> {
    let to = SqlType::of_field(call.result);
    let mut result = branch(call, 0, &to)?;
    for index in 1..call.arguments.len() {
        let next = branch(call, index, &to)?;
        let better = if greatest { cmp::gt(&next, &result)? } else { cmp::lt(&next, &result)? };
        let missing: BooleanArray = is_null(&next)?;
        // A NULL wins over everything: where it comes next it is taken, and once there nothing is better.
        let taken = arrow::compute::or_kleene(&better, &missing)?;
        result = zip(&known(&taken), &next, &result)?;
    }
    Ok(result)
}

/// NULL and the empty text pass no test.
fn all_characters(call: &Call<'_>, test: fn(char) -> bool) -> Result<ArrayRef> {
    let text = call.text(0)?;
    booleans(call, |row| Some(text.get(row).is_some_and(|text| !text.is_empty() && text.chars().all(test))))
}

fn is_decimal(call: &Call<'_>) -> Result<ArrayRef> {
    let text = call.text(0)?;
    booleans(call, |row| {
        let number = |text: &str| {
            let digits = text.strip_prefix(['-', '+']).unwrap_or(text);
            let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
            let all = |part: &str| part.bytes().all(|b| b.is_ascii_digit());
            !(whole.is_empty() && fraction.is_empty()) && all(whole) && all(fraction)
        };
        Some(text.get(row).is_some_and(number))
    })
}

fn type_of(call: &Call<'_>) -> Result<ArrayRef> {
    // The planner adds the answer, which it knows better: a constant that was folded has forgotten that it might be NULL.
    let known = call.fields.get(1).filter(|field| field.data_type() == &DataType::Utf8);
    let known = known.and_then(|_| call.arguments[1].as_string_opt::<i32>()).filter(|text| !text.is_empty());
    let field = &call.fields[0];
    let text = match known {
        Some(text) => text.value(0).to_string(),
        None => format!("{}{}", SqlType::of_field(field), if field.is_nullable() { "" } else { " NOT NULL" }),
    };
    texts(call, |_, to| {
        to.push_str(&text);
        Some(())
    })
}
