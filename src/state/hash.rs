//! One hash for rows of any type, equal on every run and machine: saved key groups derive from it.
//!
//! Equal keys hash alike across batches, whatever surrounds them: NULL has a hash of its own, `-0.0` is `0.0`, and all
//! NaNs are one. Changing anything here orphans saved state.

use arrow::array::{Array, ArrayRef, AsArray, PrimitiveArray};
use arrow::buffer::NullBuffer;
use arrow::compute::cast;
use arrow::datatypes::{
    ArrowPrimitiveType, DataType, Decimal128Type, Float32Type, Float64Type, Int8Type, Int16Type, Int32Type, Int64Type,
    IntervalDayTime, IntervalDayTimeType, IntervalMonthDayNano, IntervalMonthDayNanoType, IntervalUnit,
};
use arrow::row::{RowConverter, SortField};

use crate::error::Result;

/// Spreads key bits over the word; odd, from the golden ratio.
const MULTIPLIER: u64 = 0x9e37_79b9_7f4a_7c15;
/// A second odd constant (from the square root of 2), so that position matters.
const STEP: u64 = 0xd1b5_4a32_d192_ed03;
/// The hash of NULL.
const NULL_HASH: u64 = 0x3c6e_f372_fe94_f82b;
/// The hash of a row without columns.
const SEED: u64 = 0x243f_6a88_85a3_08d3;

/// The hash of one 64-bit word. A 128-bit product folded on itself: every bit of the input reaches every bit.
#[inline]
pub fn hash_word(word: u64) -> u64 {
    let product = u128::from(word ^ SEED) * u128::from(MULTIPLIER);
    let folded = (product as u64) ^ ((product >> 64) as u64);
    folded.wrapping_mul(STEP) ^ (folded >> 32)
}

/// The hash of a run of bytes.
#[inline]
pub fn hash_bytes(bytes: &[u8]) -> u64 {
    let mut state = hash_word(bytes.len() as u64);
    let mut chunks = bytes.chunks_exact(8);
    for chunk in &mut chunks {
        // `chunks_exact(8)` gives eight bytes.
        let word = u64::from_le_bytes(chunk.try_into().unwrap_or_default());
        state = hash_word(state ^ word);
    }
    let rest = chunks.remainder();
    if !rest.is_empty() {
        let mut word = [0; 8];
        word[..rest.len()].copy_from_slice(rest);
        state = hash_word(state.rotate_left(29) ^ u64::from_le_bytes(word));
    }
    state
}

/// A primitive value as words to hash: equal values give equal words.
pub trait HashWord: Copy {
    /// The word.
    fn word(self) -> u64;
}

macro_rules! integer_words {
    ($($native:ty),*) => {$(
        impl HashWord for $native {
            #[inline]
            fn word(self) -> u64 {
                self as i64 as u64
            }
        }
    )*};
}
integer_words!(i8, i16, i32, i64);

impl HashWord for f64 {
    #[inline]
    fn word(self) -> u64 {
        if self == 0.0 {
            0
        } else if self.is_nan() {
            f64::NAN.to_bits()
        } else {
            self.to_bits()
        }
    }
}

impl HashWord for f32 {
    #[inline]
    fn word(self) -> u64 {
        f64::from(self).word()
    }
}

impl HashWord for i128 {
    #[inline]
    fn word(self) -> u64 {
        hash_word(self as u64) ^ (self >> 64) as u64
    }
}

impl HashWord for IntervalDayTime {
    fn word(self) -> u64 {
        (self.days as u32 as u64) << 32 | self.milliseconds as u32 as u64
    }
}

impl HashWord for IntervalMonthDayNano {
    fn word(self) -> u64 {
        hash_word((self.months as u32 as u64) << 32 | self.days as u32 as u64) ^ self.nanoseconds as u64
    }
}

/// Writes the hash of each row over `columns` into `hashes`, which is first emptied. Without columns `hashes` stays
/// empty: such rows have no key.
///
/// # Errors
/// If a column's type has no row form.
pub fn hash_rows(columns: &[ArrayRef], hashes: &mut Vec<u64>) -> Result<()> {
    hashes.clear();
    let Some(first) = columns.first() else { return Ok(()) };
    hashes.resize(first.len(), SEED);
    columns.iter().try_for_each(|column| hash_column(column, hashes))
}

fn hash_column(column: &ArrayRef, hashes: &mut [u64]) -> Result<()> {
    let array = column.as_ref();
    match array.data_type() {
        DataType::Int8 => hash_primitive::<Int8Type>(array, hashes),
        DataType::Int16 => hash_primitive::<Int16Type>(array, hashes),
        DataType::Int32 => hash_primitive::<Int32Type>(array, hashes),
        DataType::Int64 => hash_primitive::<Int64Type>(array, hashes),
        DataType::Float32 => hash_primitive::<Float32Type>(array, hashes),
        DataType::Float64 => hash_primitive::<Float64Type>(array, hashes),
        DataType::Decimal128(_, _) => hash_primitive::<Decimal128Type>(array, hashes),
        DataType::Interval(IntervalUnit::DayTime) => hash_primitive::<IntervalDayTimeType>(array, hashes),
        DataType::Interval(IntervalUnit::MonthDayNano) => hash_primitive::<IntervalMonthDayNanoType>(array, hashes),
        // Dates, times and instants are whole numbers of their unit.
        DataType::Date32 | DataType::Time32(_) | DataType::Time64(_) | DataType::Timestamp(_, _) => {
            hash_primitive::<Int64Type>(&cast(array, &DataType::Int64)?, hashes);
        }
        DataType::Boolean => {
            let values = array.as_boolean().values();
            fold(hashes, array.nulls(), |row| hash_word(u64::from(values.value(row))));
        }
        DataType::Utf8 => {
            let array = array.as_string::<i32>();
            fold(hashes, array.nulls(), |row| hash_bytes(array.value(row).as_bytes()));
        }
        DataType::Binary => {
            let array = array.as_binary::<i32>();
            fold(hashes, array.nulls(), |row| hash_bytes(array.value(row)));
        }
        DataType::LargeUtf8 | DataType::Utf8View => return hash_column(&cast(array, &DataType::Utf8)?, hashes),
        DataType::LargeBinary | DataType::BinaryView => return hash_column(&cast(array, &DataType::Binary)?, hashes),
        DataType::Null => fold(hashes, None, |_| NULL_HASH),
        other => {
            let converter = RowConverter::new(vec![SortField::new(other.clone())])?;
            let rows = converter.convert_columns(std::slice::from_ref(column))?;
            fold(hashes, array.nulls(), |row| hash_bytes(rows.row(row).data()));
        }
    }
    Ok(())
}

fn hash_primitive<T: ArrowPrimitiveType>(array: &dyn Array, hashes: &mut [u64])
where
    T::Native: HashWord,
{
    let array: &PrimitiveArray<T> = array.as_primitive();
    let values = array.values();
    fold(hashes, array.nulls(), |row| hash_word(values[row].word()));
}

/// Mixes a column's hashes into the rows' so far.
#[inline]
fn fold(hashes: &mut [u64], nulls: Option<&NullBuffer>, hash: impl Fn(usize) -> u64) {
    match nulls.filter(|nulls| nulls.null_count() > 0) {
        None => {
            for (row, so_far) in hashes.iter_mut().enumerate() {
                *so_far = so_far.rotate_left(23).wrapping_mul(STEP) ^ hash(row);
            }
        }
        Some(nulls) => {
            for (row, so_far) in hashes.iter_mut().enumerate() {
                let own = if nulls.is_valid(row) { hash(row) } else { NULL_HASH };
                *so_far = so_far.rotate_left(23).wrapping_mul(STEP) ^ own;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow::array::{Float64Array, Int32Array, Int64Array, StringArray};

    use super::*;
    use crate::state::key_group;

    fn hashes(columns: &[ArrayRef]) -> Vec<u64> {
        let mut hashes = Vec::new();
        hash_rows(columns, &mut hashes).unwrap();
        hashes
    }

    #[test]
    fn equal_keys_hash_alike_and_others_do_not() {
        let floats: ArrayRef = Arc::new(Float64Array::from(vec![0.0, -0.0, f64::NAN, -f64::NAN, 1.0]));
        let found = hashes(&[floats]);
        assert_eq!((found[0], found[2]), (found[1], found[3]));
        assert_ne!(found[0], found[4]);
        let texts: ArrayRef = Arc::new(StringArray::from(vec![Some("a"), None, Some(""), Some("a")]));
        let found = hashes(&[texts]);
        assert_eq!(found[0], found[3]);
        assert_ne!(found[1], found[2]);
    }

    #[test]
    fn the_hash_does_not_change_between_versions() {
        let numbers: ArrayRef = Arc::new(Int64Array::from(vec![Some(1), None]));
        let texts: ArrayRef = Arc::new(StringArray::from(vec!["Mary", "a text beyond eight bytes"]));
        assert_eq!(hashes(&[numbers, texts]), PINNED);
    }

    /// Saved state stands in key groups by these numbers.
    const PINNED: [u64; 2] = [6_729_958_194_435_229_372, 13_830_406_063_032_079_457];

    #[test]
    fn small_whole_numbers_spread_over_all_key_groups() {
        let numbers: ArrayRef = Arc::new(Int32Array::from_iter_values(0..12_800));
        let mut counts = [0; 128];
        hashes(&[numbers]).into_iter().for_each(|hash| counts[usize::from(key_group(hash))] += 1);
        assert!(counts.iter().all(|count| (50..200).contains(count)), "{counts:?}");
    }
}
