//! Variance and standard deviation from a count, a sum and a sum of squares.
//!
//! Whole numbers and decimals are summed exactly, so that retraction leaves nothing behind; floats as Flink plans them
//! (sum of squares less squared sum by count), except that a rounding below zero counts as zero.

use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray, Decimal128Array, Float64Array, Int32Array, Int64Array};
use arrow::buffer::ScalarBuffer;
use arrow::compute::cast;
use arrow::datatypes::{DataType, Decimal128Type, FieldRef, Float64Type, Int32Type, Int64Type};

use super::kernel::{Fold, Kernel};
use super::numeric::{DECIMAL_LIMIT, rescale_divide, state_field};
use crate::error::Result;
use crate::state::SavedColumn;

/// Count, sum and sum of squares; an update that moves none of them is no change.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct Moments<S> {
    count: i64,
    sum: S,
    squares: S,
    /// How often an exact sum of squares left 128 bits.
    carry: i32,
}

/// Which of the four functions.
#[derive(Debug, Clone, Copy)]
pub(super) struct Spread {
    /// Divide by n-1.
    pub sample: bool,
    /// Take the root.
    pub root: bool,
}

impl Spread {
    fn divisor(self, count: i64) -> Option<i64> {
        let divisor = count - i64::from(self.sample);
        (count > 0 && divisor > 0).then_some(divisor)
    }

    fn finish(self, variance: f64) -> f64 {
        let variance = if variance < 0.0 { 0.0 } else { variance };
        if self.root { variance.sqrt() } else { variance }
    }
}

/// The sums a variance is made of, over floats or exactly.
pub(super) trait Moment: Copy + Default + PartialEq + Send + 'static {
    /// Adds a value `times` (1 or -1).
    fn add(moments: &mut Moments<Self>, value: Self, times: i64);
    /// Adds another group's moments.
    fn combine(moments: &mut Moments<Self>, other: Moments<Self>);
    /// The argument column.
    fn column(array: &ArrayRef) -> Result<ScalarBuffer<Self>>
    where
        Self: arrow::datatypes::ArrowNativeType;
    /// Sums as a column and back.
    fn save(values: Vec<Self>) -> ArrayRef;
    /// The inverse of [`Moment::save`].
    fn load(column: &ArrayRef) -> Vec<Self>;
    /// The type of saved sums.
    const STATE: DataType;
    /// The results.
    fn results(spread: Spread, values: Vec<Moments<Self>>, scale: i8, output: &DataType) -> Result<ArrayRef>;
}

impl Moment for f64 {
    const STATE: DataType = DataType::Float64;

    #[inline]
    fn add(moments: &mut Moments<f64>, value: f64, times: i64) {
        moments.count += times;
        if moments.count == 0 {
            *moments = Moments::default();
            return;
        }
        moments.sum += value * times as f64;
        moments.squares += value * value * times as f64;
    }

    fn combine(moments: &mut Moments<f64>, other: Moments<f64>) {
        moments.count += other.count;
        moments.sum += other.sum;
        moments.squares += other.squares;
    }

    fn column(array: &ArrayRef) -> Result<ScalarBuffer<f64>> {
        Ok(cast(array, &DataType::Float64)?.as_primitive::<Float64Type>().values().clone())
    }

    fn save(values: Vec<f64>) -> ArrayRef {
        Arc::new(Float64Array::from(values))
    }

    fn load(column: &ArrayRef) -> Vec<f64> {
        column.as_primitive::<Float64Type>().values().to_vec()
    }

    fn results(spread: Spread, values: Vec<Moments<f64>>, _scale: i8, output: &DataType) -> Result<ArrayRef> {
        let result = |m: Moments<f64>| {
            let divisor = spread.divisor(m.count)?;
            Some(spread.finish((m.squares - m.sum * m.sum / m.count as f64) / divisor as f64))
        };
        let array: Float64Array = values.into_iter().map(result).collect();
        Ok(cast(&array, output)?)
    }
}

impl Moment for i128 {
    const STATE: DataType = DataType::Decimal128(38, 0);

    #[inline]
    fn add(moments: &mut Moments<i128>, value: i128, times: i64) {
        moments.count += times;
        moments.sum = moments.sum.wrapping_add(value.wrapping_mul(i128::from(times)));
        let square = value.checked_mul(value).filter(|square| *square <= DECIMAL_LIMIT);
        let (squares, overflowed) = moments.squares.overflowing_add(square.unwrap_or(0) * i128::from(times));
        moments.squares = squares;
        // A square that does not fit makes the result NULL until its value is taken back.
        moments.carry += (i32::from(overflowed) + i32::from(square.is_none())) * times as i32;
    }

    fn combine(moments: &mut Moments<i128>, other: Moments<i128>) {
        let (squares, overflowed) = moments.squares.overflowing_add(other.squares);
        moments.count += other.count;
        moments.sum = moments.sum.wrapping_add(other.sum);
        moments.squares = squares;
        moments.carry += other.carry + i32::from(overflowed);
    }

    fn column(array: &ArrayRef) -> Result<ScalarBuffer<i128>> {
        if let Some(decimals) = array.as_primitive_opt::<Decimal128Type>() {
            return Ok(decimals.values().clone());
        }
        let wide = cast(array, &DataType::Int64)?;
        Ok(wide.as_primitive::<Int64Type>().values().iter().map(|value| i128::from(*value)).collect())
    }

    fn save(values: Vec<i128>) -> ArrayRef {
        Arc::new(Decimal128Array::from(values).with_data_type(Self::STATE))
    }

    fn load(column: &ArrayRef) -> Vec<i128> {
        column.as_primitive::<Decimal128Type>().values().to_vec()
    }

    fn results(spread: Spread, values: Vec<Moments<i128>>, scale: i8, output: &DataType) -> Result<ArrayRef> {
        if let (DataType::Decimal128(_, digits), false) = (output, spread.root) {
            let shift = *digits - 2 * scale;
            let exact: Decimal128Array = values.into_iter().map(|m| exact_variance(spread, m, shift, true)).collect();
            return Ok(Arc::new(exact.with_data_type(output.clone())));
        }
        if !spread.root && scale == 0 {
            let whole = |m| exact_variance(spread, m, 0, false).and_then(|value| i64::try_from(value).ok());
            return Ok(cast(&values.into_iter().map(whole).collect::<Int64Array>(), output)?);
        }
        let unit = 10_f64.powi(-2 * i32::from(scale));
        let result = |m: Moments<i128>| {
            let divisor = spread.divisor(m.count).filter(|_| m.carry == 0)?;
            let numerator = match m.squares.checked_mul(i128::from(m.count)).zip(m.sum.checked_mul(m.sum)) {
                Some((squares, sum)) => (squares - sum) as f64 / m.count as f64,
                None => m.squares as f64 - m.sum as f64 * m.sum as f64 / m.count as f64,
            };
            Some(spread.finish(numerator * unit / divisor as f64))
        };
        let array: Float64Array = values.into_iter().map(result).collect();
        // A cast from float to integer truncates, as Flink's result in the argument's type does.
        Ok(cast(&array, output)?)
    }
}

/// `(n Σx² - (Σx)²) / (n d) * 10^shift`, rounded half up or truncated.
fn exact_variance(spread: Spread, m: Moments<i128>, shift: i8, round: bool) -> Option<i128> {
    let divisor = i128::from(spread.divisor(m.count).filter(|_| m.carry == 0)?);
    let numerator = m.squares.checked_mul(i128::from(m.count))?.checked_sub(m.sum.checked_mul(m.sum)?)?;
    let denominator = divisor * i128::from(m.count);
    if round { rescale_divide(numerator, shift, denominator) } else { Some(numerator / denominator) }
}

/// VAR_POP, VAR_SAMP, STDDEV_POP, STDDEV_SAMP.
pub(super) struct Variance<S> {
    moments: Vec<Moments<S>>,
    spread: Spread,
    scale: i8,
    output: DataType,
}

impl<S> Variance<S> {
    /// Over an argument with `scale` digits after the point.
    pub fn new(spread: Spread, scale: i8, output: DataType) -> Variance<S> {
        Variance { moments: Vec::new(), spread, scale, output }
    }
}

pub(super) struct VarianceFold<'a, S: arrow::datatypes::ArrowNativeType> {
    moments: &'a mut [Moments<S>],
    values: ScalarBuffer<S>,
}

impl<S: Moment + arrow::datatypes::ArrowNativeType> Fold for VarianceFold<'_, S> {
    type Value = Moments<S>;

    fn add(&mut self, slot: u32, row: usize) {
        S::add(&mut self.moments[slot as usize], self.values[row], 1);
    }

    fn retract(&mut self, slot: u32, row: usize) {
        S::add(&mut self.moments[slot as usize], self.values[row], -1);
    }

    fn clear(&mut self, slot: u32) {
        self.moments[slot as usize] = Moments::default();
    }

    fn value(&self, slot: u32) -> Moments<S> {
        self.moments[slot as usize]
    }
}

impl<S: Moment + arrow::datatypes::ArrowNativeType> Kernel for Variance<S> {
    type Value = Moments<S>;
    type Fold<'a> = VarianceFold<'a, S>;

    fn bind<'a>(&'a mut self, arguments: &'a [ArrayRef]) -> Result<VarianceFold<'a, S>> {
        Ok(VarianceFold { moments: &mut self.moments, values: S::column(&arguments[0])? })
    }

    fn grow(&mut self, slots: usize) {
        self.moments.resize(slots.max(self.moments.len()), Moments::default());
    }

    fn clear(&mut self, slot: u32) {
        self.moments[slot as usize] = Moments::default();
    }

    fn merge(&mut self, into: u32, from: u32) {
        let other = std::mem::take(&mut self.moments[from as usize]);
        S::combine(&mut self.moments[into as usize], other);
    }

    fn absorb(&mut self, into: u32, other: &Self, from: u32) -> bool {
        S::combine(&mut self.moments[into as usize], other.moments[from as usize]);
        true
    }

    fn value(&self, slot: u32) -> Moments<S> {
        self.moments[slot as usize]
    }

    fn bytes(&self) -> usize {
        self.moments.capacity() * size_of::<Moments<S>>()
    }

    fn build(&self, values: Vec<Moments<S>>) -> Result<ArrayRef> {
        S::results(self.spread, values, self.scale, &self.output)
    }

    fn state_fields(&self) -> Vec<FieldRef> {
        vec![
            state_field("count", DataType::Int64),
            state_field("sum", S::STATE),
            state_field("squares", S::STATE),
            state_field("carry", DataType::Int32),
        ]
    }

    fn save(&self, slots: &[u32]) -> Result<Vec<SavedColumn>> {
        let moments = || slots.iter().map(|slot| self.moments[*slot as usize]);
        let carries: ArrayRef = Arc::new(Int32Array::from_iter_values(moments().map(|m| m.carry)));
        Ok(vec![
            SavedColumn::numbers(slots, &DataType::Int64, |slot| self.moments[slot].count)?,
            S::save(moments().map(|m| m.sum).collect()).into(),
            S::save(moments().map(|m| m.squares).collect()).into(),
            carries.into(),
        ])
    }

    fn load(&mut self, slots: &[u32], columns: &[ArrayRef]) -> Result<()> {
        let counts = columns[0].as_primitive::<Int64Type>().values();
        let (sums, squares) = (S::load(&columns[1]), S::load(&columns[2]));
        let carries = columns[3].as_primitive::<Int32Type>().values();
        for (row, slot) in slots.iter().enumerate() {
            let (count, sum, squares, carry) = (counts[row], sums[row], squares[row], carries[row]);
            self.moments[*slot as usize] = Moments { count, sum, squares, carry };
        }
        Ok(())
    }
}
