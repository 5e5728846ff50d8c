//! Splits that wait for each other: one whose event time is too far ahead of its group's last pauses.
//!
//! Event time of a group is the least watermark of its members; an idle or ended one does not count, as it holds back
//! nothing downstream either. So a fast split does not fill windows that must wait for a slow one anyway.

use std::collections::HashMap;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use super::metrics::SubtaskMetrics;
use crate::types::Alignment;

/// The watermarks of a group's members.
type Members = Arc<Mutex<Vec<Arc<AtomicI64>>>>;

/// The groups of one job.
#[derive(Debug, Default)]
pub struct AlignmentGroups {
    groups: Mutex<HashMap<String, Members>>,
}

/// One split's reader in its group.
#[derive(Debug)]
pub struct AlignedSplit {
    members: Members,
    own: Arc<AtomicI64>,
    max_drift_ms: i64,
    /// The counts of the operator that derives its watermarks.
    assigner: Arc<SubtaskMetrics>,
}

impl AlignmentGroups {
    /// A new member, whose watermark is that of `assigner`.
    pub fn join(&self, alignment: &Alignment, assigner: Arc<SubtaskMetrics>) -> AlignedSplit {
        let mut groups = self.groups.lock().unwrap_or_else(PoisonError::into_inner);
        let members = Arc::clone(groups.entry(alignment.group.clone()).or_default());
        let own = Arc::new(AtomicI64::new(i64::MIN));
        members.lock().unwrap_or_else(PoisonError::into_inner).push(Arc::clone(&own));
        let max_drift_ms = i64::try_from(alignment.max_drift_ms).unwrap_or(i64::MAX);
        AlignedSplit { members, own, max_drift_ms, assigner }
    }
}

impl AlignedSplit {
    /// Whether it must wait for others. `idle`: it reads no split, so that nobody waits for it.
    pub fn must_wait(&self, idle: bool) -> bool {
        let mark = self.assigner.watermark.load(Ordering::Relaxed);
        let holds_back = !idle && !self.assigner.time.is_idle();
        self.own.store(if holds_back { mark } else { i64::MAX }, Ordering::Relaxed);
        let members = self.members.lock().unwrap_or_else(PoisonError::into_inner);
        let least = members.iter().map(|member| member.load(Ordering::Relaxed)).min().unwrap_or(mark);
        mark > least.saturating_add(self.max_drift_ms)
    }

    /// It has ended: nobody waits for it any more.
    pub fn end(&self) {
        self.own.store(i64::MAX, Ordering::Relaxed);
    }
}

impl Drop for AlignedSplit {
    fn drop(&mut self) {
        self.end();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_is_ahead_waits_for_the_last_that_is_neither_idle_nor_ended() {
        let groups = AlignmentGroups::default();
        let alignment = Alignment { group: "g".into(), max_drift_ms: 10 };
        let metrics: Vec<Arc<SubtaskMetrics>> = (0..2).map(|_| Arc::default()).collect();
        let splits: Vec<AlignedSplit> = metrics.iter().map(|own| groups.join(&alignment, Arc::clone(own))).collect();
        assert!(!splits[0].must_wait(false), "nobody has a watermark");
        metrics[0].watermark.store(100, Ordering::Relaxed);
        assert!(splits[0].must_wait(false), "the other has not begun");
        metrics[1].watermark.store(90, Ordering::Relaxed);
        assert!(!splits[1].must_wait(false));
        assert!(!splits[0].must_wait(false), "10 ms are allowed");
        metrics[0].watermark.store(101, Ordering::Relaxed);
        assert!(splits[0].must_wait(false));
        metrics[1].time.set_idle(true);
        assert!(!splits[1].must_wait(false));
        assert!(!splits[0].must_wait(false), "an idle split holds nothing back");
        metrics[1].time.set_idle(false);
        assert!(!splits[1].must_wait(false));
        assert!(splits[0].must_wait(false));
        splits[1].end();
        assert!(!splits[0].must_wait(false));
        let other = groups.join(&Alignment { group: "h".into(), max_drift_ms: 0 }, Arc::default());
        assert!(!other.must_wait(false) && !splits[0].must_wait(false), "another group is another group");
    }
}
