//! COUNT, SUM and AVG: numbers per group.
//!
//! Types as Flink has them: SUM stays in its argument's type and whole numbers wrap; AVG of a whole number adds up in
//! 64 bits and truncates. A SUM or AVG over no values is NULL, for which the values are counted beside the sum.

use std::sync::Arc;

use arrow::array::{ArrayRef, ArrowNativeTypeOp, AsArray, Decimal128Array, Int32Array, Int64Array, PrimitiveArray};
use arrow::datatypes::{
    ArrowNativeType, ArrowPrimitiveType, DataType, Decimal128Type, Field, FieldRef, Float32Type, Float64Type, Int8Type,
    Int16Type, Int32Type, Int64Type, i256,
};

use super::kernel::{Fold, Kernel};
use crate::error::Result;
use crate::state::SavedColumn;

/// The greatest DECIMAL(38): beyond it Flink's answer is NULL.
pub(super) const DECIMAL_LIMIT: i128 = 10_i128.pow(38) - 1;

pub(super) fn state_field(name: &str, data_type: DataType) -> FieldRef {
    Arc::new(Field::new(name, data_type, true))
}

/// COUNT: of rows or, NULLs being skipped before, of values.
#[derive(Default)]
pub(super) struct Count {
    counts: Vec<i64>,
}

pub(super) struct CountFold<'a>(&'a mut [i64]);

impl Fold for CountFold<'_> {
    type Value = i64;

    #[inline]
    fn add(&mut self, slot: u32, _row: usize) {
        self.0[slot as usize] += 1;
    }

    #[inline]
    fn retract(&mut self, slot: u32, _row: usize) {
        self.0[slot as usize] -= 1;
    }

    fn clear(&mut self, slot: u32) {
        self.0[slot as usize] = 0;
    }

    #[inline]
    fn value(&self, slot: u32) -> i64 {
        self.0[slot as usize]
    }
}

impl Kernel for Count {
    type Value = i64;
    type Fold<'a> = CountFold<'a>;

    fn bind<'a>(&'a mut self, _arguments: &'a [ArrayRef]) -> Result<CountFold<'a>> {
        Ok(CountFold(&mut self.counts))
    }

    fn grow(&mut self, slots: usize) {
        self.counts.resize(slots.max(self.counts.len()), 0);
    }

    fn clear(&mut self, slot: u32) {
        self.counts[slot as usize] = 0;
    }

    fn merge(&mut self, into: u32, from: u32) {
        self.counts[into as usize] += std::mem::take(&mut self.counts[from as usize]);
    }

    fn absorb(&mut self, into: u32, other: &Count, from: u32) -> bool {
        self.counts[into as usize] += other.counts[from as usize];
        true
    }

    #[inline]
    fn value(&self, slot: u32) -> i64 {
        self.counts[slot as usize]
    }

    fn bytes(&self) -> usize {
        self.counts.capacity() * size_of::<i64>()
    }

    fn build(&self, values: Vec<i64>) -> Result<ArrayRef> {
        Ok(Arc::new(Int64Array::from(values)))
    }

    fn state_fields(&self) -> Vec<FieldRef> {
        vec![state_field("count", DataType::Int64)]
    }

    fn save(&self, slots: &[u32]) -> Result<Vec<SavedColumn>> {
        Ok(vec![SavedColumn::numbers(slots, &DataType::Int64, |slot| self.counts[slot])?])
    }

    fn load(&mut self, slots: &[u32], columns: &[ArrayRef]) -> Result<()> {
        let counts = columns[0].as_primitive::<Int64Type>();
        for (slot, count) in slots.iter().zip(counts.values()) {
            self.counts[*slot as usize] = *count;
        }
        Ok(())
    }
}

/// How numbers of one type add up and what comes out.
pub(super) trait Adding: Send + 'static {
    /// The type of the argument.
    type Input: ArrowPrimitiveType;
    /// The running sum.
    type Sum: Copy + Default + PartialEq + Send;
    /// The type of the result.
    type Output: ArrowPrimitiveType;

    /// Adds a value.
    fn add(sum: &mut Self::Sum, value: <Self::Input as ArrowPrimitiveType>::Native);
    /// Takes a value back.
    fn subtract(sum: &mut Self::Sum, value: <Self::Input as ArrowPrimitiveType>::Native);
    /// Adds another group's sum.
    fn combine(sum: &mut Self::Sum, other: Self::Sum);
    /// The result over `count` values, of which there is at least one; `None` is NULL.
    fn result(&self, sum: Self::Sum, count: i64) -> Option<<Self::Output as ArrowPrimitiveType>::Native>;
    /// Whether a sum that has lost all its values may have rounding left, so that it must be set to zero.
    const ROUNDS: bool = false;
    /// The state column of sums.
    fn sum_type(&self) -> DataType;
    /// The sums at these places as columns.
    fn save(&self, slots: &[u32], sum: impl Fn(usize) -> Self::Sum) -> Result<Vec<SavedColumn>>;
    /// The inverse of [`Adding::save`].
    fn load(&self, columns: &[ArrayRef]) -> Vec<Self::Sum>;
    /// State columns beside the sum.
    fn more_fields(&self) -> Vec<FieldRef> {
        Vec::new()
    }
    /// The result's exact type.
    fn output_type(&self) -> DataType {
        Self::Output::DATA_TYPE
    }
}

#[derive(Clone, Copy, Default)]
struct Cell<S> {
    sum: S,
    count: i64,
}

/// SUM, SUM0 and AVG over numbers.
pub(super) struct Sum<A: Adding> {
    adding: A,
    cells: Vec<Cell<A::Sum>>,
    zero_if_empty: bool,
}

impl<A: Adding> Sum<A> {
    /// `zero_if_empty`: 0 instead of NULL over no values.
    pub fn new(adding: A, zero_if_empty: bool) -> Sum<A> {
        Sum { adding, cells: Vec::new(), zero_if_empty }
    }
}

pub(super) struct SumFold<'a, A: Adding> {
    adding: &'a A,
    cells: &'a mut [Cell<A::Sum>],
    values: &'a [<A::Input as ArrowPrimitiveType>::Native],
    zero_if_empty: bool,
}

type Native<A> = <<A as Adding>::Output as ArrowPrimitiveType>::Native;

#[inline]
fn value_of<A: Adding>(adding: &A, cell: Cell<A::Sum>, zero_if_empty: bool) -> Option<Native<A>> {
    if cell.count != 0 { adding.result(cell.sum, cell.count) } else { zero_if_empty.then(Default::default) }
}

impl<A: Adding> Fold for SumFold<'_, A> {
    type Value = Option<Native<A>>;

    #[inline]
    fn add(&mut self, slot: u32, row: usize) {
        let cell = &mut self.cells[slot as usize];
        A::add(&mut cell.sum, self.values[row]);
        cell.count += 1;
    }

    #[inline]
    fn retract(&mut self, slot: u32, row: usize) {
        let cell = &mut self.cells[slot as usize];
        A::subtract(&mut cell.sum, self.values[row]);
        cell.count -= 1;
        if A::ROUNDS && cell.count == 0 {
            cell.sum = Default::default();
        }
    }

    fn clear(&mut self, slot: u32) {
        self.cells[slot as usize] = Cell::default();
    }

    #[inline]
    fn value(&self, slot: u32) -> Self::Value {
        value_of(self.adding, self.cells[slot as usize], self.zero_if_empty)
    }
}

impl<A: Adding> Kernel for Sum<A>
where
    Native<A>: Send,
{
    type Value = Option<Native<A>>;
    type Fold<'a> = SumFold<'a, A>;

    fn bind<'a>(&'a mut self, arguments: &'a [ArrayRef]) -> Result<SumFold<'a, A>> {
        let values = arguments[0].as_primitive::<A::Input>().values();
        Ok(SumFold { adding: &self.adding, cells: &mut self.cells, values, zero_if_empty: self.zero_if_empty })
    }

    fn grow(&mut self, slots: usize) {
        self.cells.resize(slots.max(self.cells.len()), Cell::default());
    }

    fn clear(&mut self, slot: u32) {
        self.cells[slot as usize] = Cell::default();
    }

    fn merge(&mut self, into: u32, from: u32) {
        let other = std::mem::take(&mut self.cells[from as usize]);
        let cell = &mut self.cells[into as usize];
        A::combine(&mut cell.sum, other.sum);
        cell.count += other.count;
    }

    fn absorb(&mut self, into: u32, other: &Self, from: u32) -> bool {
        let other = other.cells[from as usize];
        let cell = &mut self.cells[into as usize];
        A::combine(&mut cell.sum, other.sum);
        cell.count += other.count;
        true
    }

    #[inline]
    fn value(&self, slot: u32) -> Self::Value {
        value_of(&self.adding, self.cells[slot as usize], self.zero_if_empty)
    }

    fn bytes(&self) -> usize {
        self.cells.capacity() * size_of::<Cell<A::Sum>>()
    }

    fn build(&self, values: Vec<Self::Value>) -> Result<ArrayRef> {
        // Mostly nothing is NULL, and then no bitmap needs to be built.
        let array: PrimitiveArray<A::Output> = if values.iter().all(Option::is_some) {
            PrimitiveArray::from_iter_values(values.iter().map(|value| value.unwrap_or_default()))
        } else {
            values.into_iter().collect()
        };
        Ok(Arc::new(array.with_data_type(self.adding.output_type())))
    }

    fn state_fields(&self) -> Vec<FieldRef> {
        let mut fields = vec![state_field("count", DataType::Int64), state_field("sum", self.adding.sum_type())];
        fields.extend(self.adding.more_fields());
        fields
    }

    fn save(&self, slots: &[u32]) -> Result<Vec<SavedColumn>> {
        let mut columns = vec![SavedColumn::numbers(slots, &DataType::Int64, |slot| self.cells[slot].count)?];
        columns.extend(self.adding.save(slots, |slot| self.cells[slot].sum)?);
        Ok(columns)
    }

    fn load(&mut self, slots: &[u32], columns: &[ArrayRef]) -> Result<()> {
        let counts = columns[0].as_primitive::<Int64Type>().values();
        let sums = self.adding.load(&columns[1..]);
        for ((slot, count), sum) in slots.iter().zip(counts).zip(sums) {
            self.cells[*slot as usize] = Cell { sum, count: *count };
        }
        Ok(())
    }
}

/// The sums at these places as a column, narrow if they are 64-bit whole numbers.
fn saved_sums<T: ArrowPrimitiveType>(slots: &[u32], sum: impl Fn(usize) -> T::Native) -> Result<SavedColumn> {
    if T::DATA_TYPE == DataType::Int64 {
        return SavedColumn::numbers(slots, &T::DATA_TYPE, |slot| sum(slot).to_i64().unwrap_or_default());
    }
    let sums: ArrayRef = Arc::new(PrimitiveArray::<T>::from_iter_values(slots.iter().map(|slot| sum(*slot as usize))));
    Ok(sums.into())
}

/// SUM of a type in that type; whole numbers wrap.
pub(super) struct Plain<T, const FLOAT: bool>(pub std::marker::PhantomData<T>);

impl<T: ArrowPrimitiveType + Send, const FLOAT: bool> Adding for Plain<T, FLOAT>
where
    T::Native: ArrowNativeTypeOp + Send,
{
    type Input = T;
    type Sum = T::Native;
    type Output = T;
    const ROUNDS: bool = FLOAT;

    #[inline]
    fn add(sum: &mut T::Native, value: T::Native) {
        *sum = sum.add_wrapping(value);
    }

    #[inline]
    fn subtract(sum: &mut T::Native, value: T::Native) {
        *sum = sum.sub_wrapping(value);
    }

    fn combine(sum: &mut T::Native, other: T::Native) {
        *sum = sum.add_wrapping(other);
    }

    #[inline]
    fn result(&self, sum: T::Native, _count: i64) -> Option<T::Native> {
        Some(sum)
    }

    fn sum_type(&self) -> DataType {
        T::DATA_TYPE
    }

    fn save(&self, slots: &[u32], sum: impl Fn(usize) -> T::Native) -> Result<Vec<SavedColumn>> {
        Ok(vec![saved_sums::<T>(slots, sum)?])
    }

    fn load(&self, columns: &[ArrayRef]) -> Vec<T::Native> {
        columns[0].as_primitive::<T>().values().to_vec()
    }
}

/// AVG of whole numbers (in 64 bits, truncated) or floats (in double precision).
pub(super) struct Average<T>(pub std::marker::PhantomData<T>);

macro_rules! averages {
    ($($input:ty, $wide:ty, $rounds:literal;)*) => {$(
        impl Adding for Average<$input> {
            type Input = $input;
            type Sum = <$wide as ArrowPrimitiveType>::Native;
            type Output = $input;
            const ROUNDS: bool = $rounds;

            #[inline]
            fn add(sum: &mut Self::Sum, value: <$input as ArrowPrimitiveType>::Native) {
                *sum = sum.add_wrapping(value as Self::Sum);
            }

            #[inline]
            fn subtract(sum: &mut Self::Sum, value: <$input as ArrowPrimitiveType>::Native) {
                *sum = sum.sub_wrapping(value as Self::Sum);
            }

            fn combine(sum: &mut Self::Sum, other: Self::Sum) {
                *sum = sum.add_wrapping(other);
            }

            #[inline]
            fn result(&self, sum: Self::Sum, count: i64) -> Option<<$input as ArrowPrimitiveType>::Native> {
                Some(sum.div_wrapping(count as Self::Sum) as <$input as ArrowPrimitiveType>::Native)
            }

            fn sum_type(&self) -> DataType {
                <$wide as ArrowPrimitiveType>::DATA_TYPE
            }

            fn save(&self, slots: &[u32], sum: impl Fn(usize) -> Self::Sum) -> Result<Vec<SavedColumn>> {
                Ok(vec![saved_sums::<$wide>(slots, sum)?])
            }

            fn load(&self, columns: &[ArrayRef]) -> Vec<Self::Sum> {
                columns[0].as_primitive::<$wide>().values().to_vec()
            }
        }
    )*};
}
averages! {
    Int8Type, Int64Type, false;
    Int16Type, Int64Type, false;
    Int32Type, Int64Type, false;
    Int64Type, Int64Type, false;
    Float32Type, Float64Type, true;
    Float64Type, Float64Type, true;
}

/// A sum of decimals: 128 bits and how often they overflowed, so that a retraction finds the way back.
#[derive(Clone, Copy, Default, PartialEq)]
pub(super) struct DecimalSum {
    low: i128,
    carry: i32,
}

impl DecimalSum {
    fn add(&mut self, value: i128) {
        let (low, overflowed) = self.low.overflowing_add(value);
        self.low = low;
        self.carry += i32::from(overflowed) * if value < 0 { -1 } else { 1 };
    }

    fn exact(self) -> Option<i128> {
        (self.carry == 0 && self.low.abs() <= DECIMAL_LIMIT).then_some(self.low)
    }
}

/// SUM or AVG of decimals.
pub(super) struct Decimals {
    /// Digits after the point of the argument.
    pub scale: i8,
    /// The result.
    pub output: (u8, i8),
    /// Whether the sum is divided by the count.
    pub average: bool,
}

impl Adding for Decimals {
    type Input = Decimal128Type;
    type Sum = DecimalSum;
    type Output = Decimal128Type;

    #[inline]
    fn add(sum: &mut DecimalSum, value: i128) {
        sum.add(value);
    }

    #[inline]
    fn subtract(sum: &mut DecimalSum, value: i128) {
        // A decimal of at most 38 digits is never `i128::MIN`.
        sum.add(value.wrapping_neg());
    }

    fn combine(sum: &mut DecimalSum, other: DecimalSum) {
        sum.add(other.low);
        sum.carry += other.carry;
    }

    fn result(&self, sum: DecimalSum, count: i64) -> Option<i128> {
        let divisor = if self.average { i128::from(count) } else { 1 };
        let result = rescale_divide(sum.exact()?, self.output.1 - self.scale, divisor)?;
        (result.abs() < 10_i128.pow(u32::from(self.output.0.min(38)))).then_some(result)
    }

    fn sum_type(&self) -> DataType {
        DataType::Decimal128(38, self.scale)
    }

    fn more_fields(&self) -> Vec<FieldRef> {
        vec![state_field("carry", DataType::Int32)]
    }

    fn save(&self, slots: &[u32], sum: impl Fn(usize) -> DecimalSum) -> Result<Vec<SavedColumn>> {
        let low = Decimal128Array::from_iter_values(slots.iter().map(|slot| sum(*slot as usize).low));
        let carry = Int32Array::from_iter_values(slots.iter().map(|slot| sum(*slot as usize).carry));
        let columns: [ArrayRef; 2] = [Arc::new(low.with_data_type(self.sum_type())), Arc::new(carry)];
        Ok(columns.map(SavedColumn::from).into())
    }

    fn load(&self, columns: &[ArrayRef]) -> Vec<DecimalSum> {
        let low = columns[0].as_primitive::<Decimal128Type>().values();
        let carry = columns[1].as_primitive::<Int32Type>().values();
        low.iter().zip(carry).map(|(low, carry)| DecimalSum { low: *low, carry: *carry }).collect()
    }

    fn output_type(&self) -> DataType {
        DataType::Decimal128(self.output.0, self.output.1)
    }
}

/// `value * 10^shift / divisor`, rounded half away from zero; `None` beyond 128 bits.
pub(super) fn rescale_divide(value: i128, shift: i8, divisor: i128) -> Option<i128> {
    let power = 10_i128.checked_pow(u32::from(shift.unsigned_abs()))?;
    // The usual cases need no wide arithmetic.
    match value.checked_mul(power) {
        _ if shift == 0 && divisor == 1 => return Some(value),
        Some(numerator) if shift >= 0 => return Some(divide_half_up(numerator, divisor)),
        _ => {}
    }
    let (mut numerator, mut denominator) = (i256::from_i128(value), i256::from_i128(divisor));
    let power = i256::from_i128(power);
    if shift >= 0 {
        numerator = numerator.checked_mul(power)?;
    } else {
        denominator = denominator.checked_mul(power)?;
    }
    let quotient = numerator.checked_div(denominator)?;
    let rest = numerator.checked_rem(denominator)?;
    let up = rest.wrapping_abs().checked_mul(i256::from_i128(2))? >= denominator.wrapping_abs();
    let away = if (value < 0) == (divisor < 0) { 1 } else { -1 };
    quotient.checked_add(i256::from_i128(if up { away } else { 0 }))?.to_i128()
}

fn divide_half_up(numerator: i128, denominator: i128) -> i128 {
    let (quotient, rest) = (numerator / denominator, numerator % denominator);
    let away = if (numerator < 0) == (denominator < 0) { 1 } else { -1 };
    // Compared without doubling the rest, which could overflow.
    let up = rest.unsigned_abs() >= denominator.unsigned_abs() - rest.unsigned_abs();
    quotient + if up { away } else { 0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decimals_divide_half_away_from_zero() {
        assert_eq!(rescale_divide(5, 0, 2), Some(3));
        assert_eq!(rescale_divide(-5, 0, 2), Some(-3));
        assert_eq!(rescale_divide(0, 4, 7), Some(0));
        assert_eq!(rescale_divide(1, 4, 3), Some(3333));
        assert_eq!(rescale_divide(15, -1, 1), Some(2));
        assert_eq!(rescale_divide(DECIMAL_LIMIT, 4, 2), None);
        assert_eq!(rescale_divide(DECIMAL_LIMIT, 4, 100_000), Some(DECIMAL_LIMIT / 10 + 1));
    }
}
