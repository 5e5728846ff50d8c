//! Which casts there are.

use crate::error::{Error, Result};
use crate::types::SqlType;

/// Whether values of `from` can be cast to `to`.
///
/// # Errors
/// Kind `Sql`, naming both types and what to write instead.
pub(super) fn check(from: &SqlType, to: &SqlType) -> Result<()> {
    if castable(from, to) {
        return Ok(());
    }
    let error = Error::sql(format!("cannot cast {from} to {to}"));
    let time = |sql_type: &SqlType| {
        matches!(sql_type, SqlType::Date | SqlType::Timestamp(_) | SqlType::TimestampLtz(_) | SqlType::Time(_))
    };
    Err(match (from, to) {
        (from, to) if time(from) && to.is_numeric() => {
            error.hint("UNIX_TIMESTAMP(CAST(… AS STRING)) gives seconds since the epoch, EXTRACT a part")
        }
        (from, to) if from.is_numeric() && time(to) => error.hint(
            "TO_TIMESTAMP_LTZ(number, 3) reads milliseconds since the epoch, TO_TIMESTAMP_LTZ(number, 0) seconds",
        ),
        (SqlType::Row(from), SqlType::Row(to)) if from.len() != to.len() => {
            error.hint(format!("a row of {} fields cannot become one of {}", from.len(), to.len()))
        }
        _ => error,
    })
}

fn castable(from: &SqlType, to: &SqlType) -> bool {
    use SqlType::*;
    match (from, to) {
        (Null, _) => true,
        (_, Null) => false,
        (Variant, to) | (to, Variant) => *to == Variant,
        (_, Bitmap) => *from == Bitmap,
        (_, Char(_) | Varchar(_)) => true,
        (Char(_) | Varchar(_), to) => {
            to.is_numeric()
                || matches!(to, Boolean | Date | Time(_) | Timestamp(_) | TimestampLtz(_) | Binary(_) | Varbinary(_))
        }
        (Boolean, to) => *to == Boolean || to.is_numeric(),
        (from, to) if from.is_numeric() => *to == Boolean || to.is_numeric(),
        (Binary(_) | Varbinary(_), Binary(_) | Varbinary(_)) => true,
        (Date, Date | Timestamp(_) | TimestampLtz(_)) => true,
        (Time(_), Time(_) | Timestamp(_) | TimestampLtz(_)) => true,
        (Timestamp(_) | TimestampLtz(_), Date | Time(_) | Timestamp(_) | TimestampLtz(_)) => true,
        (IntervalYearMonth, IntervalYearMonth) | (IntervalDayTime, IntervalDayTime) => true,
        (Array(from), Array(to)) | (Multiset(from), Multiset(to)) => castable(&from.sql_type, &to.sql_type),
        (Map(from_key, from_value), Map(to_key, to_value)) => {
            castable(&from_key.sql_type, &to_key.sql_type) && castable(&from_value.sql_type, &to_value.sql_type)
        }
        (Row(from), Row(to)) => {
            from.len() == to.len() && from.iter().zip(to).all(|(from, to)| castable(&from.sql_type, &to.sql_type))
        }
        _ => false,
    }
}
