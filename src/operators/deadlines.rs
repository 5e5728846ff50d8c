//! Which rows have been kept long enough, by time.

use std::collections::BTreeMap;

/// Milliseconds of a bucket at most: what a watermark looks through to find the rows that it has just passed.
const WIDEST: i64 = 1_000;

/// Rows by their time, in buckets: a row is noted and found at the cost of a few instructions, however many wait.
#[derive(Debug)]
pub(super) struct Deadlines {
    width: i64,
    buckets: BTreeMap<i64, Vec<(i64, u32)>>,
}

impl Deadlines {
    /// Nothing noted; rows stay for about `span` milliseconds.
    pub fn new(span: i64) -> Deadlines {
        Deadlines { width: (span / 256).clamp(1, WIDEST), buckets: BTreeMap::new() }
    }

    /// Notes rows with their times.
    pub fn note(&mut self, rows: impl Iterator<Item = (i64, u32)>) {
        let mut rows = rows.peekable();
        while let Some(row) = rows.next() {
            let bucket = row.0.div_euclid(self.width);
            // Neighbours mostly belong to one bucket.
            let entry = self.buckets.entry(bucket).or_default();
            entry.push(row);
            while let Some(next) = rows.next_if(|next| next.0.div_euclid(self.width) == bucket) {
                entry.push(next);
            }
        }
    }

    /// Takes the rows whose time is before `limit`, roughly in order of time.
    pub fn before(&mut self, limit: i64) -> Vec<(i64, u32)> {
        let mut taken = Vec::new();
        while let Some(mut bucket) = self.buckets.first_entry() {
            // Buckets at the ends of time reach beyond the numbers: the last moment of one tells enough.
            let last = bucket.key().saturating_mul(self.width).saturating_add(self.width - 1);
            if last < limit {
                taken.append(&mut bucket.remove());
                continue;
            }
            let rows = bucket.get_mut();
            taken.extend(rows.iter().filter(|(time, _)| *time < limit));
            rows.retain(|(time, _)| *time >= limit);
            if rows.is_empty() {
                bucket.remove();
            }
            break;
        }
        taken
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_leave_when_their_time_is_before_the_limit_and_no_sooner() {
        for span in [0, 1_000, 1_000_000] {
            let mut deadlines = Deadlines::new(span);
            let times = [5, -3, 7, 7, 1_000, -1_001, 6, 999];
            deadlines.note(times.into_iter().zip(0..));
            let mut waiting: Vec<(i64, u32)> = times.into_iter().zip(0..).collect();
            for limit in [-2_000, -1_001, -1_000, 0, 6, 7, 8, 999, 1_000, 1_001] {
                let mut taken = deadlines.before(limit);
                taken.sort_unstable();
                let mut expected: Vec<(i64, u32)> = waiting.iter().copied().filter(|row| row.0 < limit).collect();
                expected.sort_unstable();
                assert_eq!(taken, expected, "span {span}, limit {limit}");
                waiting.retain(|row| row.0 >= limit);
            }
            assert!(deadlines.buckets.is_empty());
        }
    }
}
