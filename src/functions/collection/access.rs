//! Looking into collections: CARDINALITY, ELEMENT, `a[i]` (as `flink_item`), ARRAY_CONTAINS, ARRAY_POSITION, ARRAY_JOIN.

use arrow::array::{Array, ArrayRef, AsArray, UInt32Array};
use arrow::compute::{cast, take};
use arrow::datatypes::{DataType, Int32Type, Int64Type};

use super::gather::{Lists, Values, comparable, element_of};
use crate::error::{Error, Result};
use crate::functions::column::{booleans, primitives, texts};
use crate::functions::function::{Arguments, Call, Entry, Typing};
use crate::functions::parameter::Parameter::{self, Any, Array as List, Map, Text};
use crate::functions::typing::common_type;
use crate::functions::variant;
use crate::types::SqlType;

/// The entries of this file.
pub(super) fn entries() -> Vec<Entry> {
    const ONE: &[&[Parameter]] = &[&[List], &[Map]];
    const ITEM: &[&[Parameter]] = &[&[List, Any], &[Map, Any], &[Parameter::Row, Any], &[Text, Any]];
    const JOIN: &[&[Parameter]] = &[&[List, Text], &[List, Text, Text]];
    vec![
        Entry::new(&["cardinality"], ONE, Typing::Fixed(SqlType::Int), cardinality),
        Entry::new(&["element"], &[&[List]], Typing::By(element_type), element),
        Entry::new(&["flink_item"], ITEM, Typing::By(item_type), item),
        Entry::new(&["array_contains"], &[&[List, Any]], Typing::By(contains_type), contains),
        Entry::new(&["array_position"], &[&[List, Any]], Typing::By(position_type), position),
        Entry::new(&["array_join"], JOIN, Typing::By(join_type), join),
    ]
}

fn offsets(array: &ArrayRef) -> Option<&[i32]> {
    match array.data_type() {
        DataType::List(_) => Some(array.as_list::<i32>().value_offsets()),
        DataType::Map(..) => Some(array.as_map().value_offsets()),
        _ => None,
    }
}

fn cardinality(call: &Call<'_>) -> Result<ArrayRef> {
    let array = &call.arguments[0];
    let Some(offsets) = offsets(array) else { return primitives::<Int32Type>(call, |_| None) };
    // A multiset counts its elements, not its entries.
    let multiset = matches!(SqlType::of_field(&call.fields[0]), SqlType::Multiset(_));
    let counts = if multiset { array.as_map_opt().map(|map| map.values().as_primitive::<Int32Type>()) } else { None };
    primitives::<Int32Type>(call, |row| {
        let row = if call.constant[0] { 0 } else { row };
        let range = offsets[row] as usize..offsets[row + 1] as usize;
        match counts {
            _ if array.is_null(row) => None,
            Some(counts) => Some(range.map(|index| counts.value(index)).sum()),
            None => Some(range.len() as i32),
        }
    })
}

fn element_type(arguments: &Arguments<'_>) -> Result<(SqlType, bool)> {
    Ok((element_of(arguments, 0)?.sql_type, true))
}

/// Takes from a column the values at the given places.
fn taken(values: &ArrayRef, places: Vec<Option<u32>>) -> Result<ArrayRef> {
    Ok(take(values, &UInt32Array::from(places), None)?)
}

fn element(call: &Call<'_>) -> Result<ArrayRef> {
    let lists = Lists::argument(call, 0, &SqlType::of_field(call.result))?;
    let mut places = Vec::with_capacity(call.rows);
    for row in 0..call.rows {
        let range = lists.range(row).unwrap_or(0..0);
        if range.len() > 1 {
            return Err(call.error(format!("the array has {} elements, and not one at most", range.len())));
        }
        places.push(range.clone().next().map(|index| index as u32));
    }
    taken(lists.values(), places)
}

fn item_type(arguments: &Arguments<'_>) -> Result<(SqlType, bool)> {
    let index = arguments.sql_type(1);
    match arguments.sql_type(0) {
        SqlType::Array(element) => {
            if !index.is_integer() && index != SqlType::Null {
                return Err(Error::sql(format!("an ARRAY is accessed by a whole number, not by {index}")));
            }
            if let Some(index) = arguments.constant_integer(1).filter(|index| *index < 1) {
                return Err(Error::sql(format!("the elements of an ARRAY count from 1, not from {index}")));
            }
            Ok((element.sql_type, true))
        }
        SqlType::Map(key, value) => match common_type(&[key.sql_type.clone(), index.clone()]) {
            Some(_) => Ok((value.sql_type, true)),
            None => Err(Error::sql(format!("the keys of the MAP are {}, not {index}", key.sql_type))),
        },
        SqlType::Row(fields) => {
            let place = row_place(arguments, &fields)?;
            Ok((fields[place].sql_type.clone(), fields[place].nullable || arguments.fields[0].is_nullable()))
        }
        SqlType::Variant if index.is_integer() || index.is_text() || index == SqlType::Null => {
            Ok((SqlType::Variant, true))
        }
        SqlType::Variant => {
            Err(Error::sql(format!("a VARIANT is accessed by a text or a whole number, not by {index}")))
        }
        other => Err(Error::sql(format!("{other} has no elements"))),
    }
}

fn row_place(arguments: &Arguments<'_>, fields: &[crate::types::RowField]) -> Result<usize> {
    let named = arguments.constant_text(1).and_then(|name| fields.iter().position(|field| field.name == name));
    let counted = arguments.constant_integer(1).and_then(|index| usize::try_from(index - 1).ok());
    named.or(counted).filter(|place| *place < fields.len()).ok_or_else(|| {
        let names: Vec<&str> = fields.iter().map(|field| field.name.as_str()).collect();
        Error::sql("the ROW has no such field").hint(format!("its fields are {}", names.join(", ")))
    })
}

fn item(call: &Call<'_>) -> Result<ArrayRef> {
    match call.arguments[0].data_type() {
        DataType::Map(..) => map_item(call),
        DataType::Struct(_) => row_item(call),
        DataType::Utf8 => variant::item(call),
        _ => list_item(call),
    }
}

/// Beyond the end there is NULL.
fn list_item(call: &Call<'_>) -> Result<ArrayRef> {
    let lists = Lists::argument(call, 0, &SqlType::of_field(call.result))?;
    let indexes = cast(&call.arguments[1], &DataType::Int64)?;
    let indexes = indexes.as_primitive::<Int64Type>();
    let mut places = Vec::with_capacity(call.rows);
    for row in 0..call.rows {
        let at = if call.constant[1] { 0 } else { row };
        let Some(range) = lists.range(row).filter(|_| indexes.is_valid(at)) else {
            places.push(None);
            continue;
        };
        let index = indexes.value(at);
        if index < 1 {
            return Err(Error::data(format!("the elements of an ARRAY count from 1, not from {index}")));
        }
        places.push(range.clone().nth(index as usize - 1).map(|index| index as u32));
    }
    taken(lists.values(), places)
}

fn map_item(call: &Call<'_>) -> Result<ArrayRef> {
    let map = call.arguments[0].as_map();
    let key_type = SqlType::from_arrow(map.keys().data_type());
    let wanted = Values::argument(call, 1, &key_type)?;
    let rows = comparable(&[map.keys(), &wanted.array])?;
    let places = (0..call.rows).map(|row| {
        let at = if call.constant[0] { 0 } else { row };
        if map.is_null(at) {
            return None;
        }
        let key = rows[1].row(wanted.place(row));
        let mut range = map.value_offsets()[at] as usize..map.value_offsets()[at + 1] as usize;
        range.find(|index| rows[0].row(*index) == key).map(|index| index as u32)
    });
    taken(map.values(), places.collect())
}

fn row_item(call: &Call<'_>) -> Result<ArrayRef> {
    let column = call.column(0)?;
    let row = column.as_struct();
    let place = match call.arguments[1].data_type() {
        DataType::Utf8 => {
            call.text(1)?.get(0).and_then(|name| row.column_names().iter().position(|known| *known == name))
        }
        _ => {
            let index = cast(&call.arguments[1], &DataType::Int64)?;
            usize::try_from(index.as_primitive::<Int64Type>().value(0) - 1).ok()
        }
    };
    let field =
        place.and_then(|place| row.columns().get(place)).ok_or_else(|| call.error("the ROW has no such field"))?;
    match row.nulls() {
        // A field of NULL is NULL.
        Some(nulls) => Ok(arrow::compute::nullif(field, &arrow::array::BooleanArray::new(!nulls.inner(), None))?),
        None => Ok(field.clone()),
    }
}

/// The type in which elements and a value meet.
fn meeting(arguments: &Arguments<'_>) -> Result<SqlType> {
    let (element, value) = (element_of(arguments, 0)?.sql_type, arguments.sql_type(1));
    common_type(&[element.clone(), value.clone()])
        .filter(|common| {
            // The value may be converted, the elements not.
            *common == element
                || element.is_text()
                || element == SqlType::Null
                || matches!(element, SqlType::Row(_) | SqlType::Array(_) | SqlType::Map(..))
        })
        .ok_or_else(|| {
            Error::sql(format!("{} takes an ARRAY and a value of its type, not {element} and {value}", arguments.name))
        })
}

fn contains_type(arguments: &Arguments<'_>) -> Result<(SqlType, bool)> {
    meeting(arguments)?;
    Ok((SqlType::Boolean, arguments.fields[0].is_nullable()))
}

fn position_type(arguments: &Arguments<'_>) -> Result<(SqlType, bool)> {
    meeting(arguments)?;
    Ok((SqlType::Int, arguments.nullable()))
}

/// Calls `each` with a row and the place of the value among the row's elements.
fn found(
    call: &Call<'_>,
    each: impl FnOnce(&dyn Fn(usize) -> Option<Option<usize>>, &Values) -> Result<ArrayRef>,
) -> Result<ArrayRef> {
    let element =
        call.arguments[0].as_list_opt::<i32>().map_or(SqlType::Null, |list| match SqlType::of_field(&call.fields[0]) {
            SqlType::Array(element) => element.sql_type,
            _ => SqlType::from_arrow(list.values().data_type()),
        });
    let declared = SqlType::of_field(&call.fields[1]);
    let common = common_type(&[element, declared]).unwrap_or(SqlType::Null);
    let common = if common == SqlType::Null { SqlType::Int } else { common };
    let (lists, value) = (Lists::argument(call, 0, &common)?, Values::argument(call, 1, &common)?);
    let rows = comparable(&[lists.values(), &value.array])?;
    let search = |row: usize| {
        let mut range = lists.range(row)?;
        let start = range.start;
        let wanted = rows[1].row(value.place(row));
        Some(range.find(|index| rows[0].row(*index) == wanted).map(|index| index - start))
    };
    each(&search, &value)
}

/// A NULL is found where an element is NULL.
fn contains(call: &Call<'_>) -> Result<ArrayRef> {
    found(call, |search, _| booleans(call, |row| search(row).map(|place| place.is_some())))
}

/// Positions count from 1; 0 is "not there". A NULL has no position.
fn position(call: &Call<'_>) -> Result<ArrayRef> {
    found(call, |search, value| {
        primitives::<Int32Type>(call, |row| {
            let place = search(row)?;
            if value.array.is_null(value.place(row)) { None } else { Some(place.map_or(0, |place| place as i32 + 1)) }
        })
    })
}

fn join_type(arguments: &Arguments<'_>) -> Result<(SqlType, bool)> {
    let element = element_of(arguments, 0)?.sql_type;
    if !element.is_text() && element != SqlType::Null {
        return Err(Error::sql(format!("ARRAY_JOIN takes an ARRAY of STRING, not of {element}"))
            .hint("CAST(… AS ARRAY<STRING>) makes one"));
    }
    Ok((SqlType::STRING, arguments.nullable()))
}

/// NULL elements are left out unless there is a text for them.
fn join(call: &Call<'_>) -> Result<ArrayRef> {
    let lists = Lists::argument(call, 0, &SqlType::STRING)?;
    let values = lists.values().as_string::<i32>().clone();
    let separator = call.text(1)?;
    let missing = call.has(2).then(|| call.text(2)).transpose()?;
    texts(call, |row, to| {
        let (range, separator) = (lists.range(row)?, separator.get(row)?);
        let missing = match &missing {
            Some(missing) => Some(missing.get(row)?),
            None => None,
        };
        let mut first = true;
        for index in range {
            let text = if values.is_valid(index) { Some(values.value(index)) } else { missing };
            let Some(text) = text else { continue };
            if !first {
                to.push_str(separator);
            }
            first = false;
            to.push_str(text);
        }
        Some(())
    })
}
