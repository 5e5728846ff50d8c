//! PERCENTILE: where in the order of a group's values a fraction of them is passed, between two values in proportion.
//!
//! Of the values 10, 20 and 40 the percentile of 0.75 is at place 0.75 × (3 − 1) = 1.5 counted from 0, half way between 20
//! and 40. All values are kept, as numbers and how often each is there: any of them may go again, and any may be asked for.

use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray, Float64Array, Int64Array, ListArray};
use arrow::buffer::{NullBuffer, OffsetBuffer, ScalarBuffer};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Field, Int64Type};

use super::kernel::{Fold, Kernel};
use crate::error::Result;
use crate::state::{CodecKey, KeyTable, Multisets, Restored, TableDelta, float_of};
use crate::types::Fraction;

/// PERCENTILE of one fraction or a list of them.
pub(super) struct Percentile {
    values: Multisets<i64>,
    /// Ascending, each with its place in the list.
    fractions: Vec<(f64, usize)>,
    list: bool,
}

impl Percentile {
    /// Over numbers of any type; gives an array if `list`.
    pub fn new(fractions: &[Fraction], list: bool) -> Result<Percentile> {
        let mut fractions: Vec<(f64, usize)> =
            fractions.iter().enumerate().map(|(place, fraction)| (fraction.get(), place)).collect();
        fractions.sort_by(|one, other| one.0.total_cmp(&other.0));
        Ok(Percentile { values: Multisets::new(&DataType::Float64)?, fractions, list })
    }
}

/// The percentiles as bits of numbers, in the order they were asked for; empty without values.
fn percentiles(values: &Multisets<i64>, fractions: &[(f64, usize)], slot: u32) -> Vec<u64> {
    let total: i64 = values.values(slot).map(|(_, count)| count).sum();
    if total == 0 {
        return Vec::new();
    }
    let mut found = vec![0; fractions.len()];
    let mut values = values.values(slot);
    // The value at hand and how many stand up to it.
    let (mut value, mut passed) = (0, 0);
    let mut reach = |wanted: i64| {
        while passed < wanted {
            let Some((next, count)) = values.next() else { break };
            (value, passed) = (*next, passed + count);
        }
        float_of(value)
    };
    // Fractions ascend, but two may lie between the same two values: those reached last are kept.
    let mut last = [(0, 0.0); 2];
    for (fraction, place) in fractions {
        // Counted from 1, as Flink does: the last digit of the result depends on it.
        let position = fraction * (total - 1) as f64 + 1.0;
        let (below, above) = (position.floor() as i64, position.ceil() as i64);
        let mut at = |wanted: i64| match last.iter().find(|(reached, _)| *reached == wanted) {
            Some((_, value)) => *value,
            None => reach(wanted),
        };
        let (low, high) = (at(below), at(above));
        last = [(below, low), (above, high)];
        let value = if low == high || below == above {
            low
        } else {
            (above as f64 - position) * low + (position - below as f64) * high
        };
        found[*place] = value.to_bits();
    }
    found
}

pub(super) struct PercentileFold<'a> {
    values: &'a mut Multisets<i64>,
    fractions: &'a [(f64, usize)],
    column: ScalarBuffer<i64>,
    counts: Option<Int64Array>,
}

impl PercentileFold<'_> {
    /// How often the value of a row counts; not at all for less than once.
    fn count(&self, row: usize) -> i64 {
        self.counts.as_ref().map_or(1, |counts| counts.value(row).max(0))
    }

    fn change(&mut self, slot: u32, row: usize, by: i64) {
        if by != 0 {
            self.values.add(slot, i64::view(&self.column, row), by);
        }
    }
}

impl Fold for PercentileFold<'_> {
    type Value = Vec<u64>;

    fn add(&mut self, slot: u32, row: usize) {
        self.change(slot, row, self.count(row));
    }

    fn retract(&mut self, slot: u32, row: usize) {
        self.change(slot, row, -self.count(row));
    }

    fn clear(&mut self, slot: u32) {
        self.values.clear(slot);
    }

    fn value(&self, slot: u32) -> Vec<u64> {
        percentiles(self.values, self.fractions, slot)
    }
}

impl Kernel for Percentile {
    type Value = Vec<u64>;
    type Fold<'a> = PercentileFold<'a>;

    fn bind<'a>(&'a mut self, arguments: &'a [ArrayRef]) -> Result<PercentileFold<'a>> {
        let column = self.values.codec().encode(&cast(&arguments[0], &DataType::Float64)?)?;
        let counts = arguments.get(1).map(|counts| cast(counts, &DataType::Int64)).transpose()?;
        let counts = counts.map(|counts| counts.as_primitive::<Int64Type>().clone());
        Ok(PercentileFold { values: &mut self.values, fractions: &self.fractions, column, counts })
    }

    fn grow(&mut self, slots: usize) {
        self.values.grow(slots);
    }

    fn clear(&mut self, slot: u32) {
        self.values.clear(slot);
    }

    fn merge(&mut self, into: u32, from: u32) {
        self.values.merge(into, from);
    }

    fn value(&self, slot: u32) -> Vec<u64> {
        percentiles(&self.values, &self.fractions, slot)
    }

    fn build(&self, values: Vec<Vec<u64>>) -> Result<ArrayRef> {
        if !self.list {
            let numbers = values.iter().map(|found| found.first().map(|bits| f64::from_bits(*bits)));
            return Ok(Arc::new(numbers.collect::<Float64Array>()));
        }
        let present: NullBuffer = values.iter().map(|found| !found.is_empty()).collect::<Vec<bool>>().into();
        let offsets = OffsetBuffer::from_lengths(values.iter().map(Vec::len));
        let numbers: Float64Array = values.iter().flatten().map(|bits| Some(f64::from_bits(*bits))).collect();
        let item = Arc::new(Field::new("item", DataType::Float64, true));
        Ok(Arc::new(ListArray::try_new(item, offsets, Arc::new(numbers), Some(present))?))
    }

    fn snapshot(&mut self, table: &str, keys: &KeyTable, base: bool) -> Result<Option<TableDelta>> {
        self.values.snapshot(table, keys, base).map(Some)
    }

    fn restore(&mut self, table: &str, keys: &mut KeyTable, from: &Restored) -> Result<()> {
        self.values.restore(table, keys, from)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(values: &[(f64, i64)], fractions: &[f64]) -> Vec<f64> {
        let fractions: Vec<Fraction> = fractions.iter().map(|number| Fraction::new(*number).unwrap()).collect();
        let mut percentile = Percentile::new(&fractions, true).unwrap();
        percentile.grow(1);
        let (numbers, counts): (Vec<f64>, Vec<i64>) = values.iter().copied().unzip();
        let arguments: [ArrayRef; 2] = [Arc::new(Float64Array::from(numbers)), Arc::new(Int64Array::from(counts))];
        let mut fold = percentile.bind(&arguments).unwrap();
        for row in 0..values.len() {
            fold.add(0, row);
            fold.add(0, row);
            fold.retract(0, row);
        }
        fold.value(0).into_iter().map(f64::from_bits).collect()
    }

    #[test]
    fn places_between_two_values_are_in_proportion() {
        let values = [(40.0, 1), (-10.0, 1), (20.0, 1)];
        assert_eq!(of(&values, &[0.0, 0.5, 0.75, 1.0]), [-10.0, 20.0, 30.0, 40.0]);
        assert_eq!(of(&values, &[1.0, 0.75, 0.125, 0.25, 0.0]), [40.0, 30.0, -2.5, 5.0, -10.0]);
        // As Flink's last digits are.
        assert_eq!(
            of(&[(5.0, 1), (7.0, 1)], &[0.1, 0.9, 0.3]),
            [5.200000000000001, 6.799999999999999, 5.6000000000000005]
        );
        assert_eq!(of(&[(5.0, 1)], &[0.3]), [5.0]);
    }

    #[test]
    fn a_value_counts_as_often_as_it_is_told() {
        assert_eq!(of(&[(1.0, 3), (9.0, 1)], &[0.5, 1.0, 0.875]), [1.0, 9.0, 6.0]);
        assert!(of(&[(1.0, 0), (9.0, -4)], &[0.5]).is_empty());
    }

    #[test]
    fn every_place_is_found_whatever_is_asked_before_it() {
        let values: Vec<(f64, i64)> = (0..40).map(|n| (f64::from(n * n % 17), 1 + i64::from(n % 3))).collect();
        let mut all: Vec<f64> = values.iter().flat_map(|(value, count)| vec![*value; *count as usize]).collect();
        all.sort_by(f64::total_cmp);
        let fractions: Vec<f64> = (0..=100).map(|n| f64::from(n) / 100.0).collect();
        for (fraction, found) in fractions.iter().zip(of(&values, &fractions)) {
            let position = fraction * (all.len() - 1) as f64;
            let (low, high) = (all[position.floor() as usize], all[position.ceil() as usize]);
            let expected = low + (high - low) * position.fract();
            assert!((found - expected).abs() < 1e-9, "{fraction}: {found}, not {expected}");
        }
    }
}
