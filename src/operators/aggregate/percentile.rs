//! PERCENTILE: where in the order of a group's values a fraction of them is passed, between two values in proportion.
//!
//! Of the values 10, 20 and 40 the percentile of 0.75 is at place 0.75 × (3 − 1) = 1.5 counted from 0, half way between 20
//! and 40. All values are kept, as numbers and how often each is there: any of them may go again, and any may be asked for.
//! For each fraction a cursor stands at its value and knows how many come before. A value that comes or goes moves it by a
//! place or none, so that a change costs the logarithm of how many values there are, and not their number.

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
    places: Places,
    list: bool,
}

/// Where in each group's values the fractions are.
struct Places {
    fractions: Vec<f64>,
    /// By slot: how many values there are.
    totals: Vec<i64>,
    /// By slot and fraction.
    cursors: Vec<Cursor>,
}

/// A value, which need not be there any more, and how many stand before it.
#[derive(Debug, Clone, Copy)]
struct Cursor {
    at: i64,
    before: i64,
}

impl Cursor {
    const START: Cursor = Cursor { at: i64::MIN, before: 0 };

    /// Moves to the value that has the place `wanted`, counted from 1.
    fn seek(&mut self, values: &Multisets<i64>, slot: u32, wanted: i64) {
        while wanted <= self.before {
            let Some((value, count)) = values.before(slot, &self.at) else { return };
            *self = Cursor { at: *value, before: self.before - count };
        }
        let Some((value, mut here)) = values.at_or_after(slot, &self.at) else { return };
        self.at = *value;
        while wanted > self.before + here {
            let Some((value, count)) = values.after(slot, &self.at) else { return };
            *self = Cursor { at: *value, before: self.before + here };
            here = count;
        }
    }
}

/// Places are counted from 1, as Flink does: the last digit of the result depends on it.
fn position(fraction: f64, total: i64) -> f64 {
    fraction * (total - 1) as f64 + 1.0
}

impl Places {
    fn grow(&mut self, slots: usize) {
        if self.totals.len() < slots {
            self.totals.resize(slots, 0);
            self.cursors.resize(slots * self.fractions.len(), Cursor::START);
        }
    }

    fn clear(&mut self, slot: u32) {
        let first = slot as usize * self.fractions.len();
        self.totals[slot as usize] = 0;
        self.cursors[first..first + self.fractions.len()].fill(Cursor::START);
    }

    /// So many copies of a value have come or gone.
    fn change(&mut self, values: &Multisets<i64>, slot: u32, value: i64, by: i64) {
        let total = &mut self.totals[slot as usize];
        *total += by;
        let first = slot as usize * self.fractions.len();
        for (cursor, fraction) in self.cursors[first..].iter_mut().zip(&self.fractions) {
            if value < cursor.at {
                cursor.before += by;
            }
            cursor.seek(values, slot, position(*fraction, *total).floor() as i64);
        }
    }

    /// Finds all places anew.
    fn find(&mut self, values: &Multisets<i64>, slot: u32) {
        self.clear(slot);
        let total = values.values(slot).map(|(_, count)| count).sum();
        self.change(values, slot, i64::MAX, total);
    }

    /// The percentiles as bits of numbers, in the order they were asked for; empty without values.
    fn value(&self, values: &Multisets<i64>, slot: u32) -> Vec<u64> {
        let total = self.totals[slot as usize];
        if total == 0 {
            return Vec::new();
        }
        let first = slot as usize * self.fractions.len();
        let one = |(cursor, fraction): (&Cursor, &f64)| {
            let position = position(*fraction, total);
            let (below, above) = (position.floor(), position.ceil());
            let (low, count) = values.at_or_after(slot, &cursor.at).unwrap_or((&cursor.at, 1));
            let next = || values.after(slot, low).map_or(*low, |(value, _)| *value);
            let high = if above as i64 > cursor.before + count { next() } else { *low };
            let (low, high) = (float_of(*low), float_of(high));
            let exact = low == high || below == above;
            let value = if exact { low } else { (above - position) * low + (position - below) * high };
            value.to_bits()
        };
        self.cursors[first..].iter().zip(&self.fractions).map(one).collect()
    }
}

impl Percentile {
    /// Over numbers of any type; gives an array if `list`.
    pub fn new(fractions: &[Fraction], list: bool) -> Result<Percentile> {
        let fractions = fractions.iter().map(|fraction| fraction.get()).collect();
        let places = Places { fractions, totals: Vec::new(), cursors: Vec::new() };
        Ok(Percentile { values: Multisets::new(&DataType::Float64)?, places, list })
    }
}

pub(super) struct PercentileFold<'a> {
    values: &'a mut Multisets<i64>,
    places: &'a mut Places,
    column: ScalarBuffer<i64>,
    counts: Option<Int64Array>,
}

impl PercentileFold<'_> {
    /// How often the value of a row counts; not at all for less than once.
    fn count(&self, row: usize) -> i64 {
        self.counts.as_ref().map_or(1, |counts| counts.value(row).max(0))
    }

    fn change(&mut self, slot: u32, row: usize, by: i64) {
        if by == 0 {
            return;
        }
        let value = *i64::view(&self.column, row);
        let before = self.values.add(slot, &value, by);
        // Below 0 a value has been retracted that never came: it is not there, neither before nor after.
        let by = (before + by).max(0) - before.max(0);
        self.places.change(self.values, slot, value, by);
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
        self.places.clear(slot);
    }

    fn value(&self, slot: u32) -> Vec<u64> {
        self.places.value(self.values, slot)
    }
}

impl Kernel for Percentile {
    type Value = Vec<u64>;
    type Fold<'a> = PercentileFold<'a>;

    fn bind<'a>(&'a mut self, arguments: &'a [ArrayRef]) -> Result<PercentileFold<'a>> {
        let column = self.values.codec().encode(&cast(&arguments[0], &DataType::Float64)?)?;
        let counts = arguments.get(1).map(|counts| cast(counts, &DataType::Int64)).transpose()?;
        let counts = counts.map(|counts| counts.as_primitive::<Int64Type>().clone());
        Ok(PercentileFold { values: &mut self.values, places: &mut self.places, column, counts })
    }

    fn grow(&mut self, slots: usize) {
        self.values.grow(slots);
        self.places.grow(slots);
    }

    fn clear(&mut self, slot: u32) {
        self.values.clear(slot);
        self.places.clear(slot);
    }

    fn merge(&mut self, into: u32, from: u32) {
        self.values.merge(into, from);
        self.places.clear(from);
        self.places.find(&self.values, into);
    }

    fn value(&self, slot: u32) -> Vec<u64> {
        self.places.value(&self.values, slot)
    }

    fn bytes(&self) -> usize {
        let cursors = self.places.cursors.capacity() * size_of::<Cursor>();
        self.values.bytes() + self.places.totals.capacity() * size_of::<i64>() + cursors
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
        self.values.restore(table, keys, from)?;
        self.grow(keys.capacity());
        keys.live_slots().into_iter().for_each(|slot| self.places.find(&self.values, slot));
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use rand::rngs::StdRng;
    use rand::{RngExt, SeedableRng};

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

    #[test]
    fn a_change_moves_a_place_by_one_whatever_came_before() {
        let fractions: Vec<Fraction> = [0.0, 0.25, 0.5, 0.99, 1.0].map(|number| Fraction::new(number).unwrap()).into();
        let mut percentile = Percentile::new(&fractions, true).unwrap();
        percentile.grow(1);
        let mut random = StdRng::seed_from_u64(7);
        let mut live: Vec<f64> = Vec::new();
        for step in 0..3_000 {
            let retracts = !live.is_empty() && random.random_range(0..100) < if step % 400 < 200 { 30 } else { 70 };
            let value = match retracts {
                true => live.swap_remove(random.random_range(0..live.len())),
                false => f64::from(random.random_range(-40..40)),
            };
            let column: [ArrayRef; 1] = [Arc::new(Float64Array::from(vec![value]))];
            let mut fold = percentile.bind(&column).unwrap();
            if retracts {
                fold.retract(0, 0);
            } else {
                fold.add(0, 0);
                live.push(value);
            }
            let mut sorted = live.clone();
            sorted.sort_by(f64::total_cmp);
            let found = percentile.value(0);
            assert_eq!(found.len(), if sorted.is_empty() { 0 } else { fractions.len() });
            for (fraction, found) in fractions.iter().zip(found) {
                let position = fraction.get() * (sorted.len() - 1) as f64;
                let (low, high) = (sorted[position.floor() as usize], sorted[position.ceil() as usize]);
                let expected = low + (high - low) * position.fract();
                assert!((f64::from_bits(found) - expected).abs() < 1e-9, "step {step}");
            }
        }
    }
}
