//! Hashes of key columns, vectorised; the same on every machine and in every run, because key groups are persisted.

use arrow::array::types::{Float16Type, Float32Type, Float64Type};
use arrow::array::{
    Array, ArrayRef, AsArray, BinaryArray, BooleanArray, FixedSizeBinaryArray, LargeBinaryArray, LargeStringArray,
    PrimitiveArray, StringArray, StringViewArray,
};
use arrow::buffer::NullBuffer;
use arrow::datatypes::{
    ArrowPrimitiveType, DataType, Date32Type, Date64Type, Decimal128Type, Int8Type, Int16Type, Int32Type, Int64Type,
    Time32MillisecondType, Time32SecondType, Time64MicrosecondType, Time64NanosecondType, TimeUnit,
    TimestampMicrosecondType, TimestampMillisecondType, TimestampNanosecondType, TimestampSecondType, UInt8Type,
    UInt16Type, UInt32Type, UInt64Type,
};

/// Where every row's hash begins.
const SEED: u64 = 0x243f_6a88_85a3_08d3;
/// An odd constant without structure; multiplying by it spreads every input bit.
const MULTIPLIER: u64 = 0x9e37_79b9_7f4a_7c15;
/// What NULL contributes: a value of its own, so that `(NULL, 1)` and `(1, NULL)` differ.
const NULL: u64 = 0xd1b5_4a32_d192_ed03;

/// Hashes each row over `columns`, which have the same length: `hashes` is cleared and gets one hash a row.
///
/// Equal keys hash alike: `-0.0` as `0.0`, every NaN as every other, NULL as NULL. Whole numbers of different widths
/// and the same value hash alike too. With no column, every row has the same hash and `hashes` stays empty.
pub fn hash_rows(columns: &[ArrayRef], hashes: &mut Vec<u64>) {
    hashes.clear();
    let Some(first) = columns.first() else { return };
    hashes.resize(first.len(), SEED);
    for column in columns {
        combine(column, hashes);
    }
    for hash in hashes.iter_mut() {
        *hash = finish(*hash);
    }
}

/// Folds one 64-bit value into a hash.
#[inline(always)]
fn mix(hash: u64, value: u64) -> u64 {
    let product = u128::from(hash ^ value) * u128::from(MULTIPLIER);
    (product as u64) ^ ((product >> 64) as u64) ^ SEED
}

/// Spreads the bits once more: key groups use the high half, hash tables the low one.
#[inline(always)]
fn finish(hash: u64) -> u64 {
    let hash = (hash ^ (hash >> 32)).wrapping_mul(MULTIPLIER);
    hash ^ (hash >> 29)
}

/// Folds bytes into a hash, eight at a time; the length keeps `"a\0"` and `"a"` apart.
#[inline]
fn mix_bytes(mut hash: u64, bytes: &[u8]) -> u64 {
    let mut chunks = bytes.chunks_exact(8);
    for chunk in &mut chunks {
        let mut word = [0u8; 8];
        word.copy_from_slice(chunk);
        hash = mix(hash, u64::from_le_bytes(word));
    }
    let mut word = [0u8; 8];
    let rest = chunks.remainder();
    word[..rest.len()].copy_from_slice(rest);
    mix(hash, u64::from_le_bytes(word) ^ (bytes.len() as u64).rotate_left(32))
}

/// Folds one column into the rows' hashes.
fn combine(column: &ArrayRef, hashes: &mut [u64]) {
    macro_rules! numbers {
        ($kind:ty) => {
            fold_numbers::<$kind>(column.as_primitive(), hashes, |value| i64::from(value) as u64)
        };
    }
    macro_rules! texts {
        ($array:ty) => {
            if let Some(array) = column.as_any().downcast_ref::<$array>() {
                fold(array.nulls(), hashes, |row, hash| mix_bytes(hash, array.value(row).as_ref()))
            }
        };
    }
    match column.data_type() {
        DataType::Null => hashes.iter_mut().for_each(|hash| *hash = mix(*hash, NULL)),
        DataType::Boolean => {
            let array: &BooleanArray = column.as_boolean();
            fold(array.nulls(), hashes, |row, hash| mix(hash, u64::from(array.value(row))));
        }
        DataType::Int8 => numbers!(Int8Type),
        DataType::Int16 => numbers!(Int16Type),
        DataType::Int32 => numbers!(Int32Type),
        DataType::Int64 => numbers!(Int64Type),
        DataType::UInt8 => numbers!(UInt8Type),
        DataType::UInt16 => numbers!(UInt16Type),
        DataType::UInt32 => numbers!(UInt32Type),
        DataType::UInt64 => fold_numbers::<UInt64Type>(column.as_primitive(), hashes, |value| value),
        DataType::Date32 => numbers!(Date32Type),
        DataType::Date64 => numbers!(Date64Type),
        DataType::Time32(TimeUnit::Second) => numbers!(Time32SecondType),
        DataType::Time32(_) => numbers!(Time32MillisecondType),
        DataType::Time64(TimeUnit::Microsecond) => numbers!(Time64MicrosecondType),
        DataType::Time64(_) => numbers!(Time64NanosecondType),
        DataType::Timestamp(TimeUnit::Second, _) => numbers!(TimestampSecondType),
        DataType::Timestamp(TimeUnit::Millisecond, _) => numbers!(TimestampMillisecondType),
        DataType::Timestamp(TimeUnit::Microsecond, _) => numbers!(TimestampMicrosecondType),
        DataType::Timestamp(TimeUnit::Nanosecond, _) => numbers!(TimestampNanosecondType),
        DataType::Float16 => {
            fold_numbers::<Float16Type>(column.as_primitive(), hashes, |value| float_bits(value.to_f64()));
        }
        DataType::Float32 => {
            fold_numbers::<Float32Type>(column.as_primitive(), hashes, |value| float_bits(f64::from(value)));
        }
        DataType::Float64 => fold_numbers::<Float64Type>(column.as_primitive(), hashes, float_bits),
        DataType::Decimal128(..) => {
            let array: &PrimitiveArray<Decimal128Type> = column.as_primitive();
            fold(array.nulls(), hashes, |row, hash| {
                let value = array.value(row);
                mix(mix(hash, value as u64), (value >> 64) as u64)
            });
        }
        DataType::Utf8 => texts!(StringArray),
        DataType::LargeUtf8 => texts!(LargeStringArray),
        DataType::Utf8View => texts!(StringViewArray),
        DataType::Binary => texts!(BinaryArray),
        DataType::LargeBinary => texts!(LargeBinaryArray),
        DataType::FixedSizeBinary(_) => texts!(FixedSizeBinaryArray),
        _ => combine_nested(column, hashes),
    }
}

/// Folds rows, arrays and maps by their parts; what has no parts by its text.
fn combine_nested(column: &ArrayRef, hashes: &mut [u64]) {
    match column.data_type() {
        DataType::Struct(_) => {
            let array = column.as_struct();
            let mut parts = vec![SEED; array.len()];
            array.columns().iter().for_each(|child| combine(child, &mut parts));
            fold(array.nulls(), hashes, |row, hash| mix(hash, parts[row]));
        }
        DataType::List(_) => {
            let array = column.as_list::<i32>();
            fold_elements(array.values(), array.offsets(), array.nulls(), hashes);
        }
        DataType::Map(..) => {
            let array = column.as_map();
            let entries: ArrayRef = std::sync::Arc::new(array.entries().clone());
            fold_elements(&entries, array.offsets(), array.nulls(), hashes);
        }
        _ => {
            // Rare types (dictionaries, intervals) have one text per value. A type without a text hashes alike for all
            // rows: slow, yet correct, because equality is always checked on the values themselves.
            if let Ok(text) = arrow::compute::cast(column, &DataType::Utf8) {
                combine(&text, hashes);
            }
        }
    }
}

/// Folds the elements between two offsets into their row's hash.
fn fold_elements(values: &ArrayRef, offsets: &[i32], nulls: Option<&NullBuffer>, hashes: &mut [u64]) {
    let mut elements = vec![SEED; values.len()];
    combine(values, &mut elements);
    fold(nulls, hashes, |row, hash| {
        let own = &elements[offsets[row] as usize..offsets[row + 1] as usize];
        own.iter().fold(mix(hash, own.len() as u64), |hash, element| mix(hash, *element))
    });
}

fn fold_numbers<T: ArrowPrimitiveType>(array: &PrimitiveArray<T>, hashes: &mut [u64], bits: impl Fn(T::Native) -> u64) {
    let values = array.values();
    fold(array.nulls(), hashes, |row, hash| mix(hash, bits(values[row])));
}

/// Applies `step` to the rows that are not NULL; the loop without NULLs has no branch.
#[inline(always)]
fn fold(nulls: Option<&NullBuffer>, hashes: &mut [u64], step: impl Fn(usize, u64) -> u64) {
    match nulls.filter(|nulls| nulls.null_count() > 0) {
        None => hashes.iter_mut().enumerate().for_each(|(row, hash)| *hash = step(row, *hash)),
        Some(nulls) => {
            for (row, hash) in hashes.iter_mut().enumerate() {
                *hash = if nulls.is_valid(row) { step(row, *hash) } else { mix(*hash, NULL) };
            }
        }
    }
}

/// One pattern for each value that SQL holds equal.
#[inline]
fn float_bits(value: f64) -> u64 {
    if value == 0.0 {
        0
    } else if value.is_nan() {
        f64::NAN.to_bits()
    } else {
        value.to_bits()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow::array::{Float64Array, Int32Array, Int64Array};

    use super::*;
    use crate::limits::KEY_GROUPS;
    use crate::state::key_group;

    fn hashes(columns: &[ArrayRef]) -> Vec<u64> {
        let mut hashes = Vec::new();
        hash_rows(columns, &mut hashes);
        hashes
    }

    #[test]
    fn equal_keys_hash_alike_and_others_do_not() {
        let floats: ArrayRef =
            Arc::new(Float64Array::from(vec![Some(0.0), Some(-0.0), Some(f64::NAN), Some(-f64::NAN), None, Some(1.0)]));
        let found = hashes(&[floats]);
        assert_eq!(found[0], found[1]);
        assert_eq!(found[2], found[3]);
        assert_eq!(found.iter().collect::<std::collections::HashSet<_>>().len(), 4);

        let left: ArrayRef = Arc::new(Int32Array::from(vec![None, Some(1)]));
        let right: ArrayRef = Arc::new(Int64Array::from(vec![Some(1), None]));
        let pairs = hashes(&[left, right]);
        assert_ne!(pairs[0], pairs[1]);
    }

    #[test]
    fn the_hash_never_changes() {
        // These numbers are in people's checkpoints: a change here needs a new format version of the manifest.
        let numbers: ArrayRef = Arc::new(Int64Array::from(vec![0, 1, -1]));
        let texts: ArrayRef = Arc::new(StringArray::from(vec!["", "Mary", "a longer text than eight"]));
        let groups: Vec<u16> = hashes(&[numbers, texts]).into_iter().map(key_group).collect();
        assert_eq!(groups, [8, 73, 91]);
    }

    #[test]
    fn consecutive_keys_spread_over_all_groups() {
        let numbers: ArrayRef = Arc::new(Int64Array::from_iter_values(0..128 * 64));
        let mut counts = vec![0u32; usize::from(KEY_GROUPS)];
        hashes(&[numbers]).into_iter().for_each(|hash| counts[usize::from(key_group(hash))] += 1);
        assert!(counts.iter().all(|count| (24..=120).contains(count)), "{counts:?}");
    }
}
