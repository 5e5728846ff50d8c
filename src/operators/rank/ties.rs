//! `RANK` and `DENSE_RANK`: equal rows share a rank.
//!
//! A row that comes or goes leaves the rows before it alone, and moves every row behind it by one rank: for `RANK`
//! always, for `DENSE_RANK` if it was the only one of its rank.

use super::Rank;
use super::changes::RankChanges;
use crate::state::{Position, Row};
use crate::types::{RankFunction, RankInput};

/// Rows behind a change, with the rank each has now.
type Ranked = Vec<(Row, u64)>;

impl Rank {
    pub(super) fn tied_insert(&mut self, slot: u32, position: &Position, row: &Row, changes: &mut RankChanges) {
        let last = self.parameters.range.1;
        let rank = self.tied_rank(slot, position);
        if rank <= last {
            let alone = self.is_alone(slot, position);
            let moves = self.parameters.function == RankFunction::Rank || alone;
            let behind = if moves { self.behind(slot, position, rank, 1) } else { Vec::new() };
            for (row, now) in &behind {
                self.moved(row, now - 1, *now, changes);
            }
            changes.insert(row, rank);
        }
        if self.parameters.changes != RankInput::Retract {
            self.forget_ranks_beyond(slot);
        }
    }

    pub(super) fn tied_retract(&mut self, slot: u32, position: &Position, changes: &mut RankChanges) {
        let rank = self.tied_rank(slot, position);
        let alone = self.is_alone(slot, position);
        let Some(gone) = self.rows.remove(slot, position) else { return };
        self.kept -= 1;
        if rank > self.parameters.range.1 {
            return;
        }
        changes.delete(&gone, rank);
        if self.parameters.function == RankFunction::Rank || alone {
            for (row, now) in self.behind(slot, position, rank, 0) {
                self.moved(&row, now + 1, now, changes);
            }
        }
    }

    /// Tells that a row has another rank, as far as that can be seen.
    fn moved(&self, row: &Row, before: u64, now: u64, changes: &mut RankChanges) {
        let (first, last) = self.parameters.range;
        let shown = |rank: u64| (first..=last).contains(&rank);
        match (shown(before), shown(now)) {
            (true, true) if self.parameters.by_rank => changes.rerank(row, before, now),
            (true, false) => changes.delete(row, before),
            (false, true) => changes.insert(row, now),
            _ => {}
        }
    }

    /// The rank at a position: one more than the rows before it that are not its equals, or than their ranks.
    fn tied_rank(&self, slot: u32, position: &Position) -> u64 {
        let dense = self.parameters.function == RankFunction::DenseRank;
        let (mut rank, mut previous) = (1, None);
        for (other, _) in self.rows.iter(slot).take_while(|(other, _)| other.key < position.key) {
            if rank > self.parameters.range.1 {
                break;
            }
            rank += u64::from(!dense || previous != Some(&other.key));
            previous = Some(&other.key);
        }
        rank
    }

    fn is_alone(&self, slot: u32, position: &Position) -> bool {
        let first = Position { key: position.key.clone(), sequence: i64::MIN };
        let equal = self.rows.from(slot, &first).take_while(|(other, _)| other.key == position.key);
        equal.take(2).filter(|(other, _)| *other != position).count() == 0
    }

    /// The rows behind those equal to `position`, which has `rank`, with their ranks now; one beyond the last rank is
    /// still seen, for it may have left or come. `equals` is how many ranks the equals of `position` take at least.
    fn behind(&self, slot: u32, position: &Position, rank: u64, equals: u64) -> Ranked {
        let dense = self.parameters.function == RankFunction::DenseRank;
        let first = Position { key: position.key.clone(), sequence: i64::MIN };
        let (mut seen, mut previous, mut now) = (0_u64, None, rank);
        let mut behind = Vec::new();
        for (other, row) in self.rows.from(slot, &first) {
            if other.key == position.key {
                seen += 1;
                continue;
            }
            if previous.is_none() {
                now = rank + if dense { equals } else { seen };
                previous = Some((&other.key, 0_u64));
            }
            if let Some((key, ties)) = &mut previous {
                if *key == &other.key {
                    *ties += 1;
                } else {
                    now += if dense { 1 } else { *ties };
                    (*key, *ties) = (&other.key, 1);
                }
            }
            if now > self.parameters.range.1 + 1 {
                break;
            }
            behind.push((Row::clone(row), now));
        }
        behind
    }

    /// Forgets rows whose rank is beyond the last wanted: over append-only input ranks only fall.
    fn forget_ranks_beyond(&mut self, slot: u32) {
        while let Some(last) = self.rows.last(slot).map(|(position, _)| position.clone()) {
            if self.tied_rank(slot, &last) <= self.parameters.range.1 {
                return;
            }
            self.rows.remove(slot, &last);
            self.kept -= 1;
        }
    }
}
