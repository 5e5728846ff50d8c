//! Arrays as collections of values: ARRAY_APPEND, ARRAY_PREPEND, ARRAY_CONCAT, ARRAY_DISTINCT, ARRAY_REMOVE,
//! ARRAY_UNION, ARRAY_EXCEPT, ARRAY_INTERSECT.

use std::collections::HashSet;

use arrow::array::ArrayRef;

use super::gather::{Gather, Lists, Values, comparable, element_of, result_element};
use crate::error::{Error, Result};
use crate::functions::function::{Arguments, Call, Entry, Typing};
use crate::functions::parameter::Parameter::{self, Any, Array as List, Many};
use crate::functions::typing::common_type;
use crate::types::{RowField, SqlType};

/// The entries of this file.
pub(super) fn entries() -> Vec<Entry> {
    const WITH_VALUE: &[&[Parameter]] = &[&[List, Any]];
    const TWO: &[&[Parameter]] = &[&[List, List]];
    vec![
        Entry::new(&["array_append"], WITH_VALUE, Typing::By(extended_type), |call| extended(call, false)),
        Entry::new(&["array_prepend"], WITH_VALUE, Typing::By(extended_type), |call| extended(call, true)),
        Entry::new(&["array_remove"], WITH_VALUE, Typing::By(removed_type), remove),
        Entry::new(&["array_distinct"], &[&[List]], Typing::By(united_type), union),
        Entry::new(&["array_concat"], &[&[List, Many(&List)]], Typing::By(united_type), concat),
        Entry::new(&["array_union"], TWO, Typing::By(united_type), union),
        Entry::new(&["array_except"], TWO, Typing::By(united_type), |call| compared(call, false)),
        Entry::new(&["array_intersect"], TWO, Typing::By(united_type), |call| compared(call, true)),
    ]
}

/// A value may join the elements if it has their type, up to the length of texts and the digits of decimals.
fn fitting(arguments: &Arguments<'_>) -> Result<RowField> {
    let element = element_of(arguments, 0)?;
    let value = arguments.sql_type(1);
    let common = common_type(&[element.sql_type.clone(), value.clone()]).filter(|common| {
        let lengthened = std::mem::discriminant(common) == std::mem::discriminant(&element.sql_type);
        *common == element.sql_type || element.sql_type == SqlType::Null || common.is_text() || lengthened
    });
    let sql_type = common.ok_or_else(|| {
        Error::sql(format!(
            "{} takes an ARRAY and a value of its type, not {} and {value}",
            arguments.name, element.sql_type
        ))
        .hint("CAST the value to the type of the elements")
    })?;
    Ok(RowField { sql_type, nullable: element.nullable || arguments.fields[1].is_nullable(), ..element })
}

fn extended_type(arguments: &Arguments<'_>) -> Result<(SqlType, bool)> {
    Ok((SqlType::Array(Box::new(fitting(arguments)?)), arguments.fields[0].is_nullable()))
}

fn removed_type(arguments: &Arguments<'_>) -> Result<(SqlType, bool)> {
    fitting(arguments)?;
    Ok((SqlType::Array(Box::new(element_of(arguments, 0)?)), arguments.fields[0].is_nullable()))
}

fn united_type(arguments: &Arguments<'_>) -> Result<(SqlType, bool)> {
    let elements = (0..arguments.fields.len()).map(|index| element_of(arguments, index)).collect::<Result<Vec<_>>>()?;
    let types: Vec<SqlType> = elements.iter().map(|element| element.sql_type.clone()).collect();
    let common = common_type(&types).ok_or_else(|| {
        let listed: Vec<String> = types.iter().map(|t| format!("ARRAY<{t}>")).collect();
        Error::sql(format!("the arguments of {} have no common type: {}", arguments.name, listed.join(", ")))
    })?;
    let nullable = elements.iter().any(|element| element.nullable);
    Ok((SqlType::Array(Box::new(RowField::unnamed(common, nullable))), arguments.nullable()))
}

fn extended(call: &Call<'_>, front: bool) -> Result<ArrayRef> {
    let element = result_element(call);
    let (lists, value) = (Lists::argument(call, 0, &element)?, Values::argument(call, 1, &element)?);
    let mut gather = Gather::new(call.rows);
    for row in 0..call.rows {
        let Some(range) = lists.range(row) else {
            gather.end(false);
            continue;
        };
        if front {
            gather.push(1, value.place(row));
        }
        range.for_each(|index| gather.push(0, index));
        if !front {
            gather.push(1, value.place(row));
        }
        gather.end(true);
    }
    gather.finish(call, &[lists.values(), &value.array])
}

fn remove(call: &Call<'_>) -> Result<ArrayRef> {
    let element = result_element(call);
    let (lists, value) = (Lists::argument(call, 0, &element)?, Values::argument(call, 1, &element)?);
    let rows = comparable(&[lists.values(), &value.array])?;
    let mut gather = Gather::new(call.rows);
    for row in 0..call.rows {
        let range = lists.range(row);
        let valid = range.is_some();
        let unwanted = rows[1].row(value.place(row));
        range
            .into_iter()
            .flatten()
            .filter(|index| rows[0].row(*index) != unwanted)
            .for_each(|index| gather.push(0, index));
        gather.end(valid);
    }
    gather.finish(call, &[lists.values()])
}

fn all_lists(call: &Call<'_>) -> Result<Vec<Lists>> {
    let element = result_element(call);
    (0..call.arguments.len()).map(|index| Lists::argument(call, index, &element)).collect()
}

fn concat(call: &Call<'_>) -> Result<ArrayRef> {
    let lists = all_lists(call)?;
    let mut gather = Gather::new(call.rows);
    for row in 0..call.rows {
        let mut valid = true;
        for (source, list) in lists.iter().enumerate() {
            match list.range(row) {
                Some(range) => range.for_each(|index| gather.push(source, index)),
                None => valid = false,
            }
        }
        gather.end(valid);
    }
    let sources: Vec<&ArrayRef> = lists.iter().map(Lists::values).collect();
    gather.finish(call, &sources)
}

/// The different elements of all arguments, in the order in which they come first.
fn union(call: &Call<'_>) -> Result<ArrayRef> {
    let lists = all_lists(call)?;
    let sources: Vec<&ArrayRef> = lists.iter().map(Lists::values).collect();
    let rows = comparable(&sources)?;
    let mut seen: HashSet<&[u8]> = HashSet::new();
    let mut gather = Gather::new(call.rows);
    for row in 0..call.rows {
        seen.clear();
        let mut valid = true;
        for (source, list) in lists.iter().enumerate() {
            let range = list.range(row);
            valid &= range.is_some();
            for index in range.into_iter().flatten() {
                if seen.insert(rows[source].row(index).data()) {
                    gather.push(source, index);
                }
            }
        }
        gather.end(valid);
    }
    gather.finish(call, &sources)
}

/// The different elements of the first argument that the second has, or has not.
fn compared(call: &Call<'_>, wanted: bool) -> Result<ArrayRef> {
    let lists = all_lists(call)?;
    let sources: Vec<&ArrayRef> = lists.iter().map(Lists::values).collect();
    let rows = comparable(&sources)?;
    let (mut other, mut seen): (HashSet<&[u8]>, HashSet<&[u8]>) = (HashSet::new(), HashSet::new());
    let mut gather = Gather::new(call.rows);
    for row in 0..call.rows {
        let (Some(first), Some(second)) = (lists[0].range(row), lists[1].range(row)) else {
            gather.end(false);
            continue;
        };
        other.clear();
        seen.clear();
        other.extend(second.map(|index| rows[1].row(index).data()));
        for index in first {
            let data = rows[0].row(index).data();
            if other.contains(data) == wanted && seen.insert(data) {
                gather.push(0, index);
            }
        }
        gather.end(true);
    }
    gather.finish(call, &sources)
}
