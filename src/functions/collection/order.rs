//! Elements in another order, or the first in an order: ARRAY_SORT, ARRAY_REVERSE, ARRAY_SLICE, ARRAY_MAX, ARRAY_MIN.

use arrow::array::{Array, ArrayRef, UInt32Array};
use arrow::compute::take;

use super::gather::{Gather, Lists, comparable, element_of, result_element};
use crate::error::{Error, Result};
use crate::functions::function::{Arguments, Call, Entry, Typing};
use crate::functions::parameter::Parameter::{self, Array as List, Boolean, Int};
use crate::functions::typing::comparison_type;
use crate::types::SqlType;

/// The entries of this file.
pub(super) fn entries() -> Vec<Entry> {
    const ONE: &[&[Parameter]] = &[&[List]];
    const SORT: &[&[Parameter]] = &[&[List], &[List, Boolean], &[List, Boolean, Boolean]];
    const SLICE: &[&[Parameter]] = &[&[List, Int], &[List, Int, Int]];
    vec![
        Entry::new(&["array_sort"], SORT, Typing::By(sorted_type), sort),
        Entry::new(&["array_reverse"], ONE, Typing::By(same_type), reverse),
        Entry::new(&["array_slice"], SLICE, Typing::By(same_type), slice),
        Entry::new(&["array_max"], ONE, Typing::By(extreme_type), |call| extreme(call, true)),
        Entry::new(&["array_min"], ONE, Typing::By(extreme_type), |call| extreme(call, false)),
    ]
}

fn same_type(arguments: &Arguments<'_>) -> Result<(SqlType, bool)> {
    Ok((SqlType::Array(Box::new(element_of(arguments, 0)?)), arguments.nullable()))
}

fn ordered(arguments: &Arguments<'_>) -> Result<SqlType> {
    let element = element_of(arguments, 0)?.sql_type;
    let has_order = comparison_type(&element, &element, false).is_ok() && element != SqlType::Boolean;
    if has_order {
        Ok(element)
    } else {
        Err(Error::sql(format!("{}: values of {element} have no order", arguments.name)))
    }
}

fn sorted_type(arguments: &Arguments<'_>) -> Result<(SqlType, bool)> {
    let element = element_of(arguments, 0)?.sql_type;
    comparison_type(&element, &element, false)
        .map_err(|_| Error::sql(format!("ARRAY_SORT: values of {element} have no order")))?;
    same_type(arguments)
}

fn extreme_type(arguments: &Arguments<'_>) -> Result<(SqlType, bool)> {
    Ok((ordered(arguments)?, true))
}

/// Ascending with NULLs first, or descending with NULLs last, unless said otherwise.
fn sort(call: &Call<'_>) -> Result<ArrayRef> {
    let lists = Lists::argument(call, 0, &result_element(call))?;
    let ascending = call.has(1).then(|| call.boolean(1)).transpose()?;
    let nulls_first = call.has(2).then(|| call.boolean(2)).transpose()?;
    let rows = comparable(&[lists.values()])?;
    let mut gather = Gather::new(call.rows);
    for row in 0..call.rows {
        let ascending = match &ascending {
            Some(ascending) => ascending.get(row),
            None => Some(true),
        };
        let nulls_first = match &nulls_first {
            Some(first) => first.get(row),
            None => ascending,
        };
        let (Some(range), Some(ascending), Some(nulls_first)) = (lists.range(row), ascending, nulls_first) else {
            gather.end(false);
            continue;
        };
        range.for_each(|index| gather.push(0, index));
        let values = lists.values();
        gather.current().sort_by(|(_, left), (_, right)| {
            let null = (values.is_null(*left), values.is_null(*right));
            match null {
                (false, false) if ascending => rows[0].row(*left).cmp(&rows[0].row(*right)),
                (false, false) => rows[0].row(*right).cmp(&rows[0].row(*left)),
                (left, right) if nulls_first => right.cmp(&left),
                (left, right) => left.cmp(&right),
            }
        });
        gather.end(true);
    }
    gather.finish(call, &[lists.values()])
}

fn reverse(call: &Call<'_>) -> Result<ArrayRef> {
    let lists = Lists::argument(call, 0, &result_element(call))?;
    let mut gather = Gather::new(call.rows);
    for row in 0..call.rows {
        let range = lists.range(row);
        let valid = range.is_some();
        range.into_iter().flat_map(Iterator::rev).for_each(|index| gather.push(0, index));
        gather.end(valid);
    }
    gather.finish(call, &[lists.values()])
}

/// From a start to an end, both counted from 1 and included; negative ones count from the end, 0 is the first.
fn slice(call: &Call<'_>) -> Result<ArrayRef> {
    let lists = Lists::argument(call, 0, &result_element(call))?;
    let start = call.int(1)?;
    let end = call.has(2).then(|| call.int(2)).transpose()?;
    let mut gather = Gather::new(call.rows);
    for row in 0..call.rows {
        let end = match &end {
            Some(end) => end.get(row),
            None => Some(-1),
        };
        let (Some(range), Some(start), Some(end)) = (lists.range(row), start.get(row), end) else {
            gather.end(false);
            continue;
        };
        let length = range.len() as i64;
        let place = |given: i32| match given {
            0 => 1,
            negative if negative < 0 => length + 1 + i64::from(negative),
            positive => i64::from(positive),
        };
        let (first, last) = (place(start).max(1), place(end).min(length));
        (first..=last).for_each(|place| gather.push(0, range.start + place as usize - 1));
        gather.end(true);
    }
    gather.finish(call, &[lists.values()])
}

/// NULL elements do not count.
fn extreme(call: &Call<'_>, greatest: bool) -> Result<ArrayRef> {
    let lists = Lists::argument(call, 0, &SqlType::of_field(call.result))?;
    let rows = comparable(&[lists.values()])?;
    let values = lists.values();
    let places: Vec<Option<u32>> = (0..call.rows)
        .map(|row| {
            let valid = lists.range(row)?.filter(|index| values.is_valid(*index));
            let key = |index: &usize| rows[0].row(*index);
            let best = if greatest { valid.max_by_key(key) } else { valid.min_by_key(key) };
            best.map(|index| index as u32)
        })
        .collect();
    Ok(take(values, &UInt32Array::from(places), None)?)
}
