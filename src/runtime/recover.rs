//! What happens before a job's first row: the lease, the newest checkpoint, the sinks' unfinished commits.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::config::{CheckpointConfig, JobConfig};
use crate::changelog::CheckpointId;
use crate::checkpoint::disk::LocalDisk;
use crate::checkpoint::manifest::{Manifest, OperatorEntry};
use crate::checkpoint::recovery::{self, Found};
use crate::checkpoint::{Store, new_lineage};
use crate::connectors::{Committable, Sink, SplitPosition};
use crate::crash::crash_point;
use crate::error::{Error, Result};
use crate::state::{KeyGroupRange, Restored};

/// Where a job goes on.
pub struct Recovered {
    /// The open directory, if there is one.
    pub store: Option<Store>,
    /// Which start of the job this is; 0 without a directory: nothing can go on from it.
    pub incarnation: u64,
    /// A name that nothing else that runs or ran has, but for earlier starts with the same directory.
    pub lineage: String,
    found: Option<Found>,
    operators: BTreeMap<String, OperatorEntry>,
}

/// Opens the directory, loads the checkpoint to go on from, checks that it fits the plan, lets the sinks commit what it
/// holds, and removes what earlier starts left behind.
///
/// # Errors
/// If the directory is in use, the checkpoint damaged or for another plan, or a sink cannot commit.
pub fn recover(
    config: &JobConfig,
    checkpoint: Option<&CheckpointConfig>,
    sinks: &BTreeMap<String, Arc<dyn Sink>>,
    operators: &BTreeMap<String, OperatorEntry>,
    first: bool,
) -> Result<Recovered> {
    let Some(checkpoint) = checkpoint else {
        let recovered = Recovered {
            store: None,
            incarnation: 0,
            lineage: new_lineage(),
            found: None,
            operators: operators.clone(),
        };
        for (name, sink) in sinks {
            sink.clean(&recovered.sink_name(name), recovered.incarnation)?;
        }
        return Ok(recovered);
    };
    let disk = Arc::new(LocalDisk);
    let mut store = Store::open(disk.clone(), &checkpoint.directory, &config.name)?;
    if checkpoint.fresh && first {
        store.forget()?;
    }
    let mut found = store.recover()?;
    let own = found.is_some();
    if let (None, Some(path), true) = (&found, &checkpoint.restore_path, first && !checkpoint.fresh) {
        found = Some(recovery::load_path(&*disk, path)?);
    }
    if let Some(found) = &mut found {
        store.raise_ids(found.manifest.checkpoint);
        recovery::check_plan(&found.manifest, operators, checkpoint.allow_non_restored_state)?;
        if !found.confirmed {
            commit(&found.manifest, sinks)?;
            if own {
                store.confirm(found.manifest.checkpoint)?;
            }
        }
    }
    let (incarnation, lineage) = (store.incarnation(), store.lineage().to_owned());
    let recovered = Recovered { store: Some(store), incarnation, lineage, found, operators: operators.clone() };
    for (name, sink) in sinks {
        sink.clean(&recovered.sink_name(name), incarnation)?;
    }
    crash_point("recovered");
    Ok(recovered)
}

/// Commits what the sinks had prepared for a checkpoint that was decided and not confirmed. They did so before, perhaps.
fn commit(manifest: &Manifest, sinks: &BTreeMap<String, Arc<dyn Sink>>) -> Result<()> {
    for (name, saved) in manifest.sinks.iter().filter(|(_, saved)| !saved.is_empty()) {
        let sink = sinks.get(name).ok_or_else(|| {
            let what = format!("checkpoint {} holds rows for the sink '{name}', which is gone", manifest.checkpoint);
            Error::state(what).hint("run the former statement once more, or start anew with --fresh")
        })?;
        let committables: Vec<Committable> = saved.iter().cloned().map(Committable).collect();
        sink.commit(&committables)?;
        crash_point("recovery_one_sink_committed");
    }
    Ok(())
}

impl Recovered {
    /// The name under which a sink writes. Another job, or this one with another directory, has another: both may write
    /// the same table at once or one after the other.
    pub fn sink_name(&self, name: &str) -> String {
        format!("{name}_{}", self.lineage)
    }

    /// The checkpoint's number.
    pub fn restored_from(&self) -> Option<CheckpointId> {
        self.found.as_ref().map(|found| found.manifest.checkpoint)
    }

    /// What people should know.
    pub fn warning(&self) -> Option<String> {
        self.found.as_ref().and_then(|found| found.warning.clone())
    }

    /// Whether an earlier run has read all input of this same plan.
    pub fn already_complete(&self, operators: &BTreeMap<String, OperatorEntry>) -> bool {
        self.found.as_ref().is_some_and(|found| {
            found.manifest.finished && !found.manifest.savepoint && found.manifest.operators == *operators
        })
    }

    /// Positions of all splits of a source; `None` if it starts from the beginning.
    pub fn positions(&self, uid: &str) -> Option<Vec<SplitPosition>> {
        let saved = self.fitting(uid)?.manifest.sources.get(uid)?;
        let position = |saved: &crate::checkpoint::manifest::SavedSplit| SplitPosition {
            split: saved.split.clone(),
            position: saved.position.clone(),
        };
        Some(saved.iter().map(position).collect())
    }

    /// The state of the subtask that owns `range`; `None` if the operator starts empty.
    ///
    /// # Errors
    /// If the state does not have the form it should.
    pub fn state(&self, uid: &str, range: KeyGroupRange) -> Result<Option<Restored>> {
        let Some(found) = self.fitting(uid) else { return Ok(None) };
        let restored = found.state.restored(uid, range)?;
        Ok(Some(restored).filter(|restored| !restored.deltas.is_empty()))
    }

    /// The checkpoint, if the operator's part of it fits the plan.
    fn fitting(&self, uid: &str) -> Option<&Found> {
        let found = self.found.as_ref()?;
        let (saved, planned) = (found.manifest.operators.get(uid)?, self.operators.get(uid)?);
        (saved.fingerprint == planned.fingerprint).then_some(found)
    }
}
