//! The percentages of `PERCENTILE`, which must be known before the query runs.

use arrow::array::{Array, ArrayRef, AsArray};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Float64Type};
use datafusion_common::ScalarValue;
use datafusion_expr::Expr;

use crate::error::{Error, Result};
use crate::plan::error::span_in;
use crate::types::{AggregateFunction, Fraction};

/// `PERCENTILE` of a constant percentage, or of an array of them.
///
/// # Errors
/// If they are no constants, or not from 0 to 1.
pub(super) fn percentile(percentage: &Expr) -> Result<AggregateFunction> {
    let wrong = || {
        Error::sql("the percentage of PERCENTILE is a constant from 0 to 1, or an array of such")
            .at(span_in(percentage))
            .hint("for example PERCENTILE(x, 0.99) or PERCENTILE(x, ARRAY[0.5, 0.99])")
    };
    let constants = constants(percentage).ok_or_else(wrong)?;
    let fractions = constants.values.into_iter().map(|number| number.and_then(Fraction::new));
    let fractions = fractions.collect::<Option<Vec<_>>>().ok_or_else(wrong)?;
    Ok(AggregateFunction::Percentile { fractions, list: constants.list })
}

/// Numbers known before the query runs.
struct Constants {
    values: Vec<Option<f64>>,
    list: bool,
}

fn constants(expression: &Expr) -> Option<Constants> {
    let numbers = |array: &ArrayRef| {
        let wide = cast(array, &DataType::Float64).ok()?;
        Some(wide.as_primitive::<Float64Type>().iter().collect())
    };
    match expression {
        Expr::Alias(alias) => constants(&alias.expr),
        Expr::Cast(cast) => constants(&cast.expr),
        Expr::Literal(ScalarValue::List(list), _) if list.is_valid(0) => {
            Some(Constants { values: numbers(&list.value(0))?, list: true })
        }
        Expr::Literal(number, _) => Some(Constants { values: numbers(&number.to_array().ok()?)?, list: false }),
        Expr::ScalarFunction(function) if function.name() == "flink_array" => {
            let elements = function.args.iter().map(|element| constants(element).filter(|element| !element.list));
            let elements = elements.collect::<Option<Vec<_>>>()?;
            Some(Constants { values: elements.into_iter().flat_map(|element| element.values).collect(), list: true })
        }
        // A conversion of a constant, of a DECIMAL to a DOUBLE say.
        Expr::ScalarFunction(function) if function.args.len() == 1 => constants(&function.args[0]),
        _ => None,
    }
}
