//! `BITMAP`: sets of 32-bit numbers in the portable form of Roaring bitmaps, so that equal sets have equal bytes.
//!
//! Numbers are shown without a sign: `-1` is `4294967295`. The aggregates over them are folds of an `ARRAY_AGG`, as the
//! planner writes them: `BITMAP_OR_AGG(b)` is `flink_bitmap_fold('OR', ARRAY_AGG(b))`.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, Int32Builder, ListBuilder};
use arrow::datatypes::{Int32Type, Int64Type};
use roaring::RoaringBitmap;

use super::column::{texts, try_binaries, try_primitives, try_texts};
use super::function::{Arguments, Call, Entry, Typing};
use super::parameter::Parameter::{self, Array as List, Bytes, Text};
use crate::error::{Error, Result};
use crate::types::{RowField, SqlType, read_bitmap as read, write_bitmap};

/// The entries of this file.
pub(super) fn entries() -> Vec<Entry> {
    const ONE: &[&[Parameter]] = &[&[Bytes]];
    const TWO: &[&[Parameter]] = &[&[Bytes, Bytes]];
    let of_bitmap = |names, typing, body| Entry::new(names, ONE, Typing::By(typing), body);
    let of_two = |names, body| Entry::new(names, TWO, Typing::By(bitmap_of_bitmaps), body);
    vec![
        Entry::new(&["bitmap_build"], &[&[List]], Typing::By(bitmap_of_numbers), build),
        of_two(&["bitmap_and"], |call| combined(call, |one, other| one & other)),
        of_two(&["bitmap_or"], |call| combined(call, |one, other| one | other)),
        of_two(&["bitmap_xor"], |call| combined(call, |one, other| one ^ other)),
        of_two(&["bitmap_andnot"], |call| combined(call, |one, other| one - other)),
        of_bitmap(&["bitmap_cardinality"], count_of_bitmap, cardinality),
        Entry::new(&["bitmap_from_bytes"], ONE, Typing::By(bitmap_of_bytes), from_bytes),
        of_bitmap(&["bitmap_to_bytes"], bytes_of_bitmap, to_bytes),
        of_bitmap(&["bitmap_to_string"], text_of_bitmap, to_text),
        of_bitmap(&["bitmap_to_array"], array_of_bitmap, to_array),
        Entry::new(&["flink_bitmap_fold"], &[&[Text, List]], Typing::By(fold_type), fold),
    ]
}

fn write(bitmap: &RoaringBitmap, to: &mut Vec<u8>) -> Result<()> {
    bitmap.serialize_into(to).map_err(|error| Error::bug(format!("a bitmap cannot be written: {error}")))
}

fn require(arguments: &Arguments<'_>, index: usize, wanted: &SqlType) -> Result<()> {
    match arguments.sql_type(index) {
        given if given == *wanted || given == SqlType::Null => Ok(()),
        given => Err(Error::sql(format!("{} takes {wanted}, not {given}", arguments.name))),
    }
}

fn bitmap_of_numbers(arguments: &Arguments<'_>) -> Result<(SqlType, bool)> {
    match arguments.sql_type(0) {
        SqlType::Array(element) if matches!(element.sql_type, SqlType::Int | SqlType::Null) => {}
        SqlType::Null => {}
        other => return Err(Error::sql(format!("{} takes ARRAY<INT>, not {other}", arguments.name))),
    }
    Ok((SqlType::Bitmap, arguments.nullable()))
}

fn bitmap_of_bitmaps(arguments: &Arguments<'_>) -> Result<(SqlType, bool)> {
    require(arguments, 0, &SqlType::Bitmap)?;
    require(arguments, 1, &SqlType::Bitmap)?;
    Ok((SqlType::Bitmap, arguments.nullable()))
}

fn bitmap_of_bytes(arguments: &Arguments<'_>) -> Result<(SqlType, bool)> {
    match arguments.sql_type(0) {
        SqlType::Binary(_) | SqlType::Varbinary(_) | SqlType::Null => Ok((SqlType::Bitmap, arguments.nullable())),
        other => Err(Error::sql(format!("{} takes BYTES, not {other}", arguments.name))),
    }
}

fn count_of_bitmap(arguments: &Arguments<'_>) -> Result<(SqlType, bool)> {
    require(arguments, 0, &SqlType::Bitmap)?;
    Ok((SqlType::BigInt, arguments.nullable()))
}

fn bytes_of_bitmap(arguments: &Arguments<'_>) -> Result<(SqlType, bool)> {
    require(arguments, 0, &SqlType::Bitmap)?;
    Ok((SqlType::BYTES, arguments.nullable()))
}

fn text_of_bitmap(arguments: &Arguments<'_>) -> Result<(SqlType, bool)> {
    require(arguments, 0, &SqlType::Bitmap)?;
    Ok((SqlType::STRING, arguments.nullable()))
}

fn array_of_bitmap(arguments: &Arguments<'_>) -> Result<(SqlType, bool)> {
    require(arguments, 0, &SqlType::Bitmap)?;
    Ok((SqlType::Array(Box::new(RowField::unnamed(SqlType::Int, true))), arguments.nullable()))
}

fn fold_type(arguments: &Arguments<'_>) -> Result<(SqlType, bool)> {
    match arguments.sql_type(1) {
        SqlType::Array(element) if element.sql_type == SqlType::Bitmap => Ok((SqlType::Bitmap, true)),
        SqlType::Array(element) => {
            Err(Error::sql(format!("an aggregate of BITMAPs takes BITMAP, not {}", element.sql_type)))
        }
        other => Err(Error::bug(format!("bitmaps are folded from {other}"))),
    }
}

/// The rows of a list that are not NULL, as ranges of its elements.
fn element_ranges<'a>(
    call: &'a Call<'_>,
    index: usize,
) -> Result<impl Fn(usize) -> Option<std::ops::Range<usize>> + 'a> {
    let array = &call.arguments[index];
    let lists = array.as_list_opt::<i32>();
    let lists = lists.ok_or_else(|| Error::bug(format!("{} came with {}", call.name, array.data_type())))?;
    let constant = call.constant[index];
    Ok(move |row| {
        let row = if constant { 0 } else { row };
        let offsets = lists.value_offsets();
        (!lists.is_null(row)).then(|| offsets[row] as usize..offsets[row + 1] as usize)
    })
}

fn build(call: &Call<'_>) -> Result<ArrayRef> {
    let Some(lists) = call.arguments[0].as_list_opt::<i32>() else { return try_binaries(call, |_, _| Ok(None)) };
    let numbers = lists.values().as_primitive_opt::<Int32Type>();
    let ranges = element_ranges(call, 0)?;
    try_binaries(call, |row, to| {
        let Some(range) = ranges(row) else { return Ok(None) };
        // A set of numbers without a sign; an element that is NULL is none.
        let numbers = numbers.iter().flat_map(|numbers| {
            let present = range.clone().filter(|index| !numbers.is_null(*index));
            present.map(|index| numbers.value(index).cast_unsigned())
        });
        write(&numbers.collect(), to).map(Some)
    })
}

fn combined(call: &Call<'_>, combine: fn(&RoaringBitmap, &RoaringBitmap) -> RoaringBitmap) -> Result<ArrayRef> {
    let (one, other) = (call.bytes(0)?, call.bytes(1)?);
    try_binaries(call, |row, to| match (one.get(row), other.get(row)) {
        (Some(one), Some(other)) => write(&combine(&read(one)?, &read(other)?), to).map(Some),
        _ => Ok(None),
    })
}

fn cardinality(call: &Call<'_>) -> Result<ArrayRef> {
    let bitmaps = call.bytes(0)?;
    try_primitives::<Int64Type>(call, |row| match bitmaps.get(row) {
        Some(bytes) => Ok(Some(read(bytes)?.len().cast_signed())),
        None => Ok(None),
    })
}

fn from_bytes(call: &Call<'_>) -> Result<ArrayRef> {
    let bytes = call.bytes(0)?;
    try_binaries(call, |row, to| match bytes.get(row) {
        // Written anew: another program may have chosen other containers for the same set.
        Some(bytes) => write(&read(bytes)?, to).map(Some),
        None => Ok(None),
    })
}

fn to_bytes(call: &Call<'_>) -> Result<ArrayRef> {
    let bytes = call.bytes(0)?;
    try_binaries(call, |row, to| Ok(bytes.get(row).map(|bytes| to.extend_from_slice(bytes))))
}

fn to_text(call: &Call<'_>) -> Result<ArrayRef> {
    let bitmaps = call.bytes(0)?;
    try_texts(call, |row, to| match bitmaps.get(row) {
        Some(bytes) => write_bitmap(bytes, to).map(Some),
        None => Ok(None),
    })
}

fn to_array(call: &Call<'_>) -> Result<ArrayRef> {
    let bitmaps = call.bytes(0)?;
    let mut lists = ListBuilder::new(Int32Builder::new());
    for row in 0..call.rows {
        if let Some(bytes) = bitmaps.get(row) {
            for number in read(bytes)? {
                lists.values().append_value(number.cast_signed());
            }
        }
        lists.append(bitmaps.get(row).is_some());
    }
    Ok(arrow::compute::cast(&(Arc::new(lists.finish()) as ArrayRef), call.result.data_type())?)
}

/// All bitmaps of a list in one; of none, NULL.
fn fold(call: &Call<'_>) -> Result<ArrayRef> {
    let operation = call.text(0)?.get(0).unwrap_or_default().to_string();
    let Some(lists) = call.arguments[1].as_list_opt::<i32>() else { return texts(call, |_, _| None) };
    let Some(bitmaps) = lists.values().as_binary_opt::<i32>() else {
        return Err(Error::bug("the bitmaps that are folded are none"));
    };
    let ranges = element_ranges(call, 1)?;
    try_binaries(call, |row, to| {
        let Some(range) = ranges(row) else { return Ok(None) };
        let mut all: Option<RoaringBitmap> = None;
        for index in range.filter(|index| !bitmaps.is_null(*index)) {
            let next = read(bitmaps.value(index))?;
            all = Some(match (all, operation.as_str()) {
                (None, _) => next,
                (Some(all), "AND") => all & next,
                (Some(all), "OR") => all | next,
                (Some(all), _) => all ^ next,
            });
        }
        all.map(|all| write(&all, to)).transpose()
    })
}
