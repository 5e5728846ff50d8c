//! How late rows were that came after their window had closed: a count and a small histogram.
//!
//! A row's lateness is by how much longer the watermark would have had to wait for the row to count. So the histogram
//! answers the one question that people have: how much more delay would have kept how many of them?

/// Values of up to so many bits have a bucket each.
const EXACT_BITS: u32 = 3;

/// Each power of two above is cut into so many buckets, so that a bound is at most a quarter too great.
const PARTS: u32 = 4;

/// A bucket for each value below 8, and four for each power of two above: enough for any `u64`.
const BUCKETS: usize = (1 << EXACT_BITS) + ((64 - EXACT_BITS) * PARTS) as usize;

/// Rows that came after everything they count for had closed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Lateness {
    rows: u64,
    max_ms: u64,
    /// Empty as long as there is no late row.
    buckets: Vec<u64>,
}

/// The bucket of a lateness.
fn bucket(ms: u64) -> usize {
    if ms < 1 << EXACT_BITS {
        return ms as usize;
    }
    let power = 63 - ms.leading_zeros();
    let part = (ms >> (power - 2)) as u32 & (PARTS - 1);
    (1 << EXACT_BITS) + ((power - EXACT_BITS) * PARTS + part) as usize
}

/// The greatest lateness of a bucket.
fn bound(bucket: usize) -> u64 {
    let Some(above) = bucket.checked_sub(1 << EXACT_BITS) else { return bucket as u64 };
    let (power, part) = (above as u32 / PARTS + EXACT_BITS, above as u64 % u64::from(PARTS));
    let width = 1_u64 << (power - 2);
    (1_u64 << power).saturating_add(part * width).saturating_add(width - 1)
}

impl Lateness {
    /// A row of time `time` has come although everything up to `passed` had closed (both by the same clock).
    #[inline]
    pub(super) fn record(&mut self, passed: i64, time: i64) {
        self.add(passed.abs_diff(time).saturating_add(1));
    }

    fn add(&mut self, ms: u64) {
        if self.buckets.is_empty() {
            self.buckets = vec![0; BUCKETS];
        }
        self.rows += 1;
        self.max_ms = self.max_ms.max(ms);
        self.buckets[bucket(ms)] += 1;
    }

    /// Takes in what another subtask has counted.
    pub fn merge(&mut self, other: &Lateness) {
        self.rows += other.rows;
        self.max_ms = self.max_ms.max(other.max_ms);
        if self.buckets.len() < other.buckets.len() {
            self.buckets.resize(other.buckets.len(), 0);
        }
        for (count, more) in self.buckets.iter_mut().zip(&other.buckets) {
            *count += more;
        }
    }

    /// How many rows were late.
    pub fn rows(&self) -> u64 {
        self.rows
    }

    /// The greatest lateness, in milliseconds.
    pub fn max_ms(&self) -> u64 {
        self.max_ms
    }

    /// By how many milliseconds longer the watermark would have had to wait to keep this share of the late rows, in
    /// thousandths; at most a quarter too much.
    pub fn delay_for(&self, thousandths: u64) -> u64 {
        let wanted = (u128::from(self.rows) * u128::from(thousandths)).div_ceil(1000);
        let mut kept = 0;
        for (bucket, count) in self.buckets.iter().enumerate() {
            kept += u128::from(*count);
            if kept >= wanted {
                return bound(bucket).min(self.max_ms);
            }
        }
        self.max_ms
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_lateness_lies_within_a_quarter_of_its_buckets_bound() {
        let powers = (0..64).flat_map(|power| {
            [1_u64 << power, (1_u64 << power).saturating_add(1), (1_u64 << power).saturating_mul(7) / 4]
        });
        for ms in (0..200).chain(powers).chain([u64::MAX]) {
            let bound = bound(bucket(ms));
            assert!(bound >= ms && bound - ms <= ms / 4, "{ms}: {bound}");
        }
    }

    #[test]
    fn a_delay_keeps_the_share_that_is_asked_for() {
        let mut first = Lateness::default();
        assert_eq!(first.delay_for(999), 0);
        for _ in 0..999 {
            first.record(1_000, 501);
        }
        let mut second = Lateness::default();
        second.record(100_000, 1);
        first.merge(&second);
        assert_eq!((first.rows(), first.max_ms()), (1_000, 100_000));
        // 500 ms lie in the bucket from 448 to 511.
        assert_eq!(first.delay_for(999), 511);
        assert_eq!(first.delay_for(1_000), 100_000);
    }
}
