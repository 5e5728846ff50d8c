//! Casts of ARRAY, MAP, MULTISET and ROW, component by component.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, ListArray, MapArray, StructArray};
use arrow::datatypes::DataType;

use super::{Conversion, Failures};
use crate::error::{Error, Result};
use crate::types::{RowField, SqlType};

/// Casts a column of nested values; a component that fails under TRY_CAST fails its whole value.
pub(super) fn convert(
    array: &ArrayRef,
    from: &SqlType,
    to: &SqlType,
    conversion: Conversion,
    failures: &mut Failures,
) -> Result<ArrayRef> {
    if from == to && *array.data_type() == to.to_arrow() {
        return Ok(array.clone());
    }
    match (from, to, to.to_arrow()) {
        (SqlType::Array(from), SqlType::Array(to), DataType::List(item)) => {
            let list = array.as_list::<i32>();
            let mut inner = Failures::new();
            let values = conversion.column(list.values(), &from.sql_type, &to.sql_type, &mut inner)?;
            owners(list.value_offsets(), &inner, failures);
            let item = nullable_if(item, &values);
            Ok(Arc::new(ListArray::try_new(item, list.offsets().clone(), values, list.nulls().cloned())?))
        }
        (SqlType::Map(from_key, from_value), SqlType::Map(to_key, to_value), target) => {
            map(array, [from_key, from_value], [to_key, to_value], &target, conversion, failures)
        }
        (SqlType::Multiset(from), SqlType::Multiset(to), target) => {
            let count = RowField::unnamed(SqlType::Int, false);
            map(array, [from, &count], [to, &count], &target, conversion, failures)
        }
        (SqlType::Row(from), SqlType::Row(to), DataType::Struct(fields)) => {
            let row = array.as_struct();
            let mut columns = Vec::with_capacity(fields.len());
            for ((column, from), to) in row.columns().iter().zip(from).zip(to) {
                let mut inner = Failures::new();
                columns.push(conversion.column(column, &from.sql_type, &to.sql_type, &mut inner)?);
                failures.extend(inner);
            }
            let fields =
                fields.iter().zip(&columns).map(|(field, column)| nullable_if(field.clone(), column)).collect();
            Ok(Arc::new(StructArray::try_new(fields, columns, row.nulls().cloned())?))
        }
        _ => Err(Error::bug(format!("a cast from {from} to {to} went through planning"))),
    }
}

fn map(
    array: &ArrayRef,
    from: [&RowField; 2],
    to: [&RowField; 2],
    target: &DataType,
    conversion: Conversion,
    failures: &mut Failures,
) -> Result<ArrayRef> {
    let DataType::Map(entries, ordered) = target else {
        return Err(Error::bug(format!("a MAP as {target}")));
    };
    let DataType::Struct(pair) = entries.data_type() else {
        return Err(Error::bug(format!("the entries of a MAP as {}", entries.data_type())));
    };
    let map = array.as_map();
    let mut inner = Failures::new();
    let keys = conversion.column(map.keys(), &from[0].sql_type, &to[0].sql_type, &mut inner)?;
    let values = conversion.column(map.values(), &from[1].sql_type, &to[1].sql_type, &mut inner)?;
    owners(map.value_offsets(), &inner, failures);
    let fields = [nullable_if(pair[0].clone(), &keys), nullable_if(pair[1].clone(), &values)].into_iter().collect();
    let rows = StructArray::try_new(fields, vec![keys, values], None)?;
    let entries = Arc::new(entries.as_ref().clone().with_data_type(rows.data_type().clone()));
    Ok(Arc::new(MapArray::try_new(entries, map.offsets().clone(), rows, map.nulls().cloned(), *ordered)?))
}

/// A failed component stands as NULL until its owner becomes NULL, so the field must allow that.
fn nullable_if(field: Arc<arrow::datatypes::Field>, column: &ArrayRef) -> Arc<arrow::datatypes::Field> {
    if field.is_nullable() || column.null_count() == 0 {
        field
    } else {
        Arc::new(field.as_ref().clone().with_nullable(true))
    }
}

/// Lists the rows that own failed components.
fn owners(offsets: &[i32], inner: &[usize], failures: &mut Failures) {
    for index in inner {
        // The owner is the last row that starts at or before the component.
        let row = offsets.partition_point(|offset| *offset as usize <= *index);
        failures.extend(row.checked_sub(1));
    }
}
