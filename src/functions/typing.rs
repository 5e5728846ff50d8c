//! Which types meet: the common type of several values (CASE, COALESCE, VALUES, UNION, IN) and the type in which two
//! values are compared. What Flink converts by itself is converted; what it refuses is refused by name.

use super::decimal::{as_decimal, common_decimal};
use crate::error::{Error, Result};
use crate::types::{RowField, SqlType};

/// The narrowest type that holds values of all `types`; none if they do not mix. A bare NULL takes any type.
pub fn common_type(types: &[SqlType]) -> Option<SqlType> {
    let mut common = SqlType::Null;
    for sql_type in types {
        common = common_of_two(&common, sql_type)?;
    }
    Some(common)
}

fn common_of_two(left: &SqlType, right: &SqlType) -> Option<SqlType> {
    use SqlType::*;
    if left == right {
        return Some(left.clone());
    }
    Some(match (left, right) {
        (Null, other) | (other, Null) => other.clone(),
        (l, r) if l.is_numeric() && r.is_numeric() => common_number(l, r),
        (Char(l) | Varchar(l), Char(r) | Varchar(r)) => Varchar(*l.max(r)),
        (Binary(l) | Varbinary(l), Binary(r) | Varbinary(r)) => Varbinary(*l.max(r)),
        (Time(l), Time(r)) => Time(*l.max(r)),
        (Timestamp(l), Timestamp(r)) => Timestamp(*l.max(r)),
        (TimestampLtz(l), TimestampLtz(r) | Timestamp(r)) | (Timestamp(l), TimestampLtz(r)) => TimestampLtz(*l.max(r)),
        (Date, moment @ (Timestamp(_) | TimestampLtz(_))) | (moment @ (Timestamp(_) | TimestampLtz(_)), Date) => {
            moment.clone()
        }
        (Array(l), Array(r)) => Array(Box::new(common_component(l, r)?)),
        (Multiset(l), Multiset(r)) => Multiset(Box::new(common_component(l, r)?)),
        (Map(lk, lv), Map(rk, rv)) => Map(Box::new(common_component(lk, rk)?), Box::new(common_component(lv, rv)?)),
        (Row(l), Row(r)) if l.len() == r.len() => {
            Row(l.iter().zip(r).map(|(l, r)| common_component(l, r)).collect::<Option<_>>()?)
        }
        _ => return None,
    })
}

fn common_component(left: &RowField, right: &RowField) -> Option<RowField> {
    let null = left.sql_type == SqlType::Null || right.sql_type == SqlType::Null;
    Some(RowField {
        name: left.name.clone(),
        sql_type: common_of_two(&left.sql_type, &right.sql_type)?,
        nullable: left.nullable || right.nullable || null,
    })
}

/// Of two different number types: FLOAT holds whole numbers, but with a DECIMAL or DOUBLE it becomes DOUBLE.
pub(super) fn common_number(left: &SqlType, right: &SqlType) -> SqlType {
    use SqlType::*;
    match (left, right) {
        (Double, _) | (_, Double) => Double,
        (Float, Decimal(..)) | (Decimal(..), Float) => Double,
        (Float, _) | (_, Float) => Float,
        _ => {
            if let (true, true) = (left.is_integer(), right.is_integer()) {
                return wider_integer(left, right).clone();
            }
            match (as_decimal(left), as_decimal(right)) {
                (Some(l), Some(r)) => {
                    let (precision, scale) = common_decimal(l, r);
                    Decimal(precision, scale)
                }
                _ => Double,
            }
        }
    }
}

/// The wider of two whole-number types.
pub(super) fn wider_integer<'a>(left: &'a SqlType, right: &'a SqlType) -> &'a SqlType {
    if as_decimal(left) >= as_decimal(right) { left } else { right }
}

/// The type in which `left` and `right` are compared; `equality` for `=`, `<>`, `IN` and the like.
///
/// # Errors
/// Kind `Sql`, naming both types, if Flink does not compare them.
pub fn comparison_type(left: &SqlType, right: &SqlType, equality: bool) -> Result<SqlType> {
    use SqlType::*;
    let refused = || {
        let how = if equality { "compare" } else { "order" };
        Error::sql(format!("cannot {how} {left} with {right}"))
    };
    let ordered = |sql_type: &SqlType| match sql_type {
        Array(_) | Multiset(_) | Map(..) | Row(_) if !equality => {
            Err(refused().hint("collections and rows have no order, only = and <> apply"))
        }
        Bitmap | Variant if !equality => Err(refused().hint("they have no order, only = and <> apply")),
        _ => Ok(sql_type.clone()),
    };
    if left == right {
        return ordered(left);
    }
    match (left, right) {
        (Null, other) | (other, Null) => ordered(other),
        // As in Flink, the first operand decides.
        (Float, Double) | (Double, Float) => Ok(left.clone()),
        (l, r) if l.is_numeric() && r.is_numeric() => Ok(common_number(l, r)),
        (l, r) if l.is_text() && r.is_text() => Ok(SqlType::STRING),
        (Binary(_) | Varbinary(_), Binary(_) | Varbinary(_)) => Ok(SqlType::BYTES),
        (number, text) | (text, number) if number.is_numeric() && text.is_text() => {
            if equality {
                return Err(refused().hint(format!("write CAST(… AS {number}) around the text")));
            }
            Ok(number.clone())
        }
        (moment @ (Date | Time(_) | Timestamp(_) | TimestampLtz(_)), text)
        | (text, moment @ (Date | Time(_) | Timestamp(_) | TimestampLtz(_)))
            if text.is_text() =>
        {
            Ok(moment.clone())
        }
        (Boolean, text) | (text, Boolean) if text.is_text() => Ok(SqlType::STRING),
        (Date, Timestamp(_) | TimestampLtz(_)) | (Timestamp(_) | TimestampLtz(_), Date) => {
            Err(refused().hint("write CAST(… AS DATE) or CAST(… AS TIMESTAMP(3)) around one of them"))
        }
        _ => ordered(&common_of_two(left, right).ok_or_else(refused)?),
    }
}

#[cfg(test)]
mod tests {
    use super::SqlType::*;
    use super::*;

    #[test]
    fn values_meet_in_the_narrowest_type_that_holds_them() {
        assert_eq!(common_type(&[Decimal(10, 2), Decimal(8, 5)]), Some(Decimal(13, 5)));
        assert_eq!(common_type(&[Int, Decimal(3, 2)]), Some(Decimal(12, 2)));
        assert_eq!(common_type(&[Decimal(3, 2), Double]), Some(Double));
        assert_eq!(common_type(&[Float, Double]), Some(Double));
        assert_eq!(common_type(&[Float, BigInt]), Some(Float));
        assert_eq!(common_type(&[Int, BigInt, Null]), Some(BigInt));
        assert_eq!(common_type(&[Char(1), Char(3)]), Some(Varchar(3)));
        assert_eq!(common_type(&[Char(1), SqlType::STRING]), Some(SqlType::STRING));
        assert_eq!(common_type(&[Timestamp(0), Timestamp(3)]), Some(Timestamp(3)));
        assert_eq!(common_type(&[Int, Char(1)]), None);
        assert_eq!(common_type(&[Null, Null]), Some(Null));
    }

    #[test]
    fn what_flink_compares_is_compared_and_the_rest_refused() {
        assert_eq!(comparison_type(&Float, &Double, true).unwrap(), Float);
        assert_eq!(comparison_type(&Double, &Float, true).unwrap(), Double);
        assert_eq!(comparison_type(&Date, &Char(10), true).unwrap(), Date);
        assert_eq!(comparison_type(&Char(4), &Boolean, true).unwrap(), SqlType::STRING);
        assert_eq!(comparison_type(&Int, &Char(1), false).unwrap(), Int);
        let refused = comparison_type(&Int, &Char(1), true).unwrap_err();
        assert_eq!(refused.to_string(), "cannot compare INT with CHAR(1); write CAST(… AS INT) around the text");
        assert!(comparison_type(&Date, &Timestamp(0), true).is_err());
        assert!(comparison_type(&Boolean, &Int, false).is_err());
        let array = Array(Box::new(RowField::unnamed(Int, true)));
        assert!(comparison_type(&array, &array, false).is_err());
        assert_eq!(comparison_type(&array, &array, true).unwrap(), array);
    }
}
