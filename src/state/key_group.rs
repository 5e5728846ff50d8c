//! Key groups: the unit in which keyed state is owned and moved.

use crate::limits::KEY_GROUPS;

/// The key group of a key with this hash. Uses the high bits: the low ones index hash tables.
#[inline]
pub fn key_group(hash: u64) -> u16 {
    // Multiply-shift maps the hash's high bits evenly onto the groups without a division.
    (((hash >> 32) * u64::from(KEY_GROUPS)) >> 32) as u16
}

/// The key groups `start .. end` that one subtask owns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KeyGroupRange {
    /// First group.
    pub start: u16,
    /// Group after the last.
    pub end: u16,
}

impl KeyGroupRange {
    /// Every group: the range of a single subtask.
    pub const ALL: KeyGroupRange = KeyGroupRange { start: 0, end: KEY_GROUPS };

    /// The range of subtask `index` of `parallelism`.
    pub fn of_subtask(index: usize, parallelism: usize) -> KeyGroupRange {
        let groups = usize::from(KEY_GROUPS);
        let bound = |i: usize| ((i * groups).div_ceil(parallelism)) as u16;
        KeyGroupRange { start: bound(index), end: bound(index + 1) }
    }

    /// Whether the group belongs to the range.
    #[inline]
    pub fn contains(self, group: u16) -> bool {
        (self.start..self.end).contains(&group)
    }

    /// The subtask of `parallelism` that owns `group`: the inverse of [`KeyGroupRange::of_subtask`].
    #[inline]
    pub fn subtask_of(group: u16, parallelism: usize) -> usize {
        usize::from(group) * parallelism / usize::from(KEY_GROUPS)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_group_has_one_owner_at_any_parallelism() {
        for parallelism in 1..=usize::from(KEY_GROUPS) {
            for group in 0..KEY_GROUPS {
                let owner = KeyGroupRange::subtask_of(group, parallelism);
                let owners: Vec<usize> = (0..parallelism)
                    .filter(|index| KeyGroupRange::of_subtask(*index, parallelism).contains(group))
                    .collect();
                assert_eq!(owners, [owner], "group {group} at parallelism {parallelism}");
            }
        }
    }
}
