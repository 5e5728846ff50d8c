//! Flink's own forms of expressions on their way through the binding library.
//!
//! The library binds the operands of an expression and types it at once, by its own rules. Where Flink's differ,
//! [`super::rewrite`] puts a marker in its place: a dictionary literal, which Flink's SQL does not have, whose key names
//! a [`Form`]. The library binds the operands and asks our planner what the dictionary is, and the planner, which sees
//! the schema, answers with the expression that is meant.

use std::sync::{Arc, Mutex, PoisonError};

use datafusion_common::ScalarValue;
use datafusion_expr::ScalarUDF;

use crate::error::{Error, Result, Span};
use crate::types::SqlType;

/// What stands behind a marker.
#[derive(Debug, Clone)]
pub(super) enum Form {
    /// A number with Flink's type.
    Number {
        /// Its value.
        value: ScalarValue,
        /// As it was written.
        text: String,
    },
    /// A call of a function.
    Call {
        /// The function.
        function: Arc<ScalarUDF>,
        /// Where it is written.
        span: Option<Span>,
    },
    /// `(start, end) OVERLAPS (start, end)`; an end may be an interval.
    Overlaps {
        /// Where it is written.
        span: Option<Span>,
    },
    /// An interval of months.
    Interval(ScalarValue),
    /// `CAST(x AS t)`, `TRY_CAST`, and literals such as `DATE '2024-01-01'`.
    Cast {
        /// The type it becomes.
        to: SqlType,
        /// Whether that type allows NULL.
        nullable: bool,
        /// Whether NULL is the answer to what cannot be cast.
        try_cast: bool,
        /// Where it is written.
        span: Option<Span>,
    },
    /// `CASE`: its operands are the value compared, if any; conditions and results in turn; the result of ELSE, if any.
    Case {
        /// Whether a value is compared.
        operand: bool,
        /// Whether there is an ELSE.
        otherwise: bool,
        /// Where it is written.
        span: Option<Span>,
    },
}

/// The forms of the statements being bound, by the names of their markers.
#[derive(Debug, Default)]
pub(super) struct Forms {
    // The planner's traits ask for something that threads may share; binding itself is single-threaded.
    known: Mutex<Vec<Form>>,
}

impl Forms {
    /// Keeps a form and names it.
    pub fn add(&self, form: Form) -> String {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        known.push(form);
        (known.len() - 1).to_string()
    }

    /// A number that no form has: for markers that belong together.
    pub fn number(&self) -> usize {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        known.push(Form::Interval(ScalarValue::Null));
        known.len() - 1
    }

    /// The form of this name.
    pub fn get(&self, name: &str) -> Option<Form> {
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        known.get(name.parse::<usize>().ok()?).cloned()
    }
}

/// A number as Flink types it: with an exponent `DOUBLE`, with a point `DECIMAL` of as many digits as are written,
/// else `INT` or `BIGINT`.
///
/// # Errors
/// Kind `Sql` if no such type holds it.
pub(super) fn number(text: &str, negative: bool) -> Result<ScalarValue> {
    let out_of_range = |what: &str| Error::sql(format!("the number {text} is out of the range of {what}"));
    if text.contains(['e', 'E']) {
        let value: f64 = text.parse().map_err(|_| Error::sql(format!("'{text}' is no number")))?;
        if value.is_infinite() {
            return Err(out_of_range("DOUBLE"));
        }
        // As in Flink, there is no negative zero among literals.
        let value = if negative && value != 0.0 { -value } else { value };
        return Ok(ScalarValue::Float64(Some(value)));
    }
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    let digits = format!("{}{whole}{fraction}", if negative { "-" } else { "" });
    if fraction.is_empty() {
        let value: i64 = digits.parse().map_err(|_| {
            out_of_range("BIGINT").hint("write it with a point, as DECIMAL, or with an exponent, as DOUBLE")
        })?;
        return Ok(match i32::try_from(value) {
            Ok(value) => ScalarValue::Int32(Some(value)),
            Err(_) => ScalarValue::Int64(Some(value)),
        });
    }
    let precision = u8::try_from(whole.len() + fraction.len()).unwrap_or(u8::MAX);
    if precision > 38 {
        return Err(out_of_range("DECIMAL, which has 38 digits at most"));
    }
    let value: i128 = digits.parse().map_err(|_| Error::sql(format!("'{text}' is no number")))?;
    Ok(ScalarValue::Decimal128(Some(value), precision, fraction.len() as i8))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_the_types_of_flink() {
        assert_eq!(number("1", false).unwrap(), ScalarValue::Int32(Some(1)));
        assert_eq!(number("2147483648", true).unwrap(), ScalarValue::Int32(Some(i32::MIN)));
        assert_eq!(number("2147483648", false).unwrap(), ScalarValue::Int64(Some(2_147_483_648)));
        assert_eq!(number("9223372036854775808", true).unwrap(), ScalarValue::Int64(Some(i64::MIN)));
        assert!(number("9223372036854775808", false).is_err());
        assert_eq!(number("0.1", false).unwrap(), ScalarValue::Decimal128(Some(1), 2, 1));
        assert_eq!(number("1.10", true).unwrap(), ScalarValue::Decimal128(Some(-110), 3, 2));
        assert_eq!(number("1E-320", false).unwrap(), ScalarValue::Float64(Some(1E-320)));
        assert!(number("1E400", false).is_err());
        assert!(number(&format!("0.{}", "1".repeat(38)), false).is_err());
    }
}
