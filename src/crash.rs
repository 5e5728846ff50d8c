//! Crash points: named places at which a test can make the process die, free of cost when none is chosen.
//!
//! `EBBFLOW_CRASH=name:hit[:exit|stop]` kills (or with `stop` freezes, to make a zombie) the process when the point
//! `name` is passed for the `hit`-th time. The crash matrix of `grammar-tests` finds all names in the source and demands
//! the same result after each. In the order in which a job meets them: `lease_half_written`, `lease_unsynced`,
//! `lease_taken`, `recovery_one_sink_committed`, `leftover_removed`, `recovered`; `source_read`, `barrier_injected`,
//! `aligned`, `before_prepare`, `file_synced`, `prepared`; `state_file_half_written`, `state_file_unsynced`,
//! `manifest_half_written`, `manifest_unsynced`, `manifest_temporary_synced`, `manifest_renamed`, `manifest_durable`,
//! `file_linked`, `files_linked`, `staging_removed`, `one_sink_committed`, `note_half_written`, `note_unsynced`,
//! `all_confirmed`, `mid_collection`.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

use rustix::process::{Signal, getpid, kill_process};

/// The environment variable that chooses a point.
const VARIABLE: &str = "EBBFLOW_CRASH";

struct Plan {
    name: String,
    hit: u64,
    signal: Signal,
    hits: AtomicU64,
}

/// Dies here if the environment asks for it.
#[inline]
pub fn crash_point(name: &str) {
    static PLAN: OnceLock<Option<Plan>> = OnceLock::new();
    if let Some(plan) = PLAN.get_or_init(|| Plan::parse(&std::env::var(VARIABLE).ok()?)) {
        plan.pass(name);
    }
}

impl Plan {
    fn parse(text: &str) -> Option<Plan> {
        let mut parts = text.split(':');
        let name = parts.next().filter(|name| !name.is_empty())?.to_owned();
        let hit = parts.next().map_or(Some(1), |hit| hit.parse().ok())?;
        let signal = match parts.next() {
            None | Some("exit") => Signal::KILL,
            Some("stop") => Signal::STOP,
            Some(_) => return None,
        };
        Some(Plan { name, hit, signal, hits: AtomicU64::new(0) })
    }

    fn pass(&self, name: &str) {
        if name == self.name && self.hits.fetch_add(1, Ordering::Relaxed) + 1 == self.hit {
            // A signal and not an exit: nothing may be flushed, dropped or unwound on the way out.
            let _ = kill_process(getpid(), self.signal);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plan_is_a_name_a_hit_and_a_way_to_die() {
        let plan = Plan::parse("manifest_durable:3:stop").unwrap();
        assert_eq!((plan.name.as_str(), plan.hit, plan.signal), ("manifest_durable", 3, Signal::STOP));
        assert_eq!(Plan::parse("aligned").unwrap().hit, 1);
        assert!(Plan::parse("aligned:x").is_none() && Plan::parse("").is_none());
    }
}
