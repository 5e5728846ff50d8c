//! What `ebbflow checkpoint ls` and `show` tell about a checkpoint directory. Reads only; takes no lease.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use super::disk::LocalDisk;
use super::manifest::{Manifest, SavedSplit};
use super::recovery::{checkpoint_directories, load_all};
use super::store::{list as names, parse_name};
use crate::error::{Error, Result};

/// One checkpoint in a line.
#[derive(Debug, Clone, PartialEq)]
pub struct CheckpointSummary {
    /// The job's name.
    pub job: String,
    /// Its directory.
    pub directory: PathBuf,
    /// The checkpoint's number.
    pub id: u64,
    /// When it was taken: milliseconds since the epoch.
    pub time_ms: i64,
    /// The one before it.
    pub parent: Option<u64>,
    /// Bytes of state it refers to.
    pub bytes: u64,
    /// State files it refers to.
    pub files: usize,
    /// Whether every sink has committed it.
    pub confirmed: bool,
    /// Whether it is a savepoint.
    pub savepoint: bool,
    /// Whether the job had read all its input.
    pub finished: bool,
    /// What is wrong with it, if it cannot be read; the other fields are then empty.
    pub damage: Option<String>,
}

/// One checkpoint in full.
#[derive(Debug, Clone, PartialEq)]
pub struct CheckpointDetail {
    /// The line of `ls`.
    pub summary: CheckpointSummary,
    /// Version of the engine that wrote it.
    pub engine: String,
    /// The job's parallelism.
    pub parallelism: usize,
    /// State by operator, in the order of their uids.
    pub operators: Vec<OperatorDetail>,
    /// Positions by source.
    pub sources: BTreeMap<String, Vec<SavedSplit>>,
    /// Number of committables by sink.
    pub sinks: BTreeMap<String, usize>,
}

/// The saved state of one operator.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OperatorDetail {
    /// Its uid.
    pub uid: String,
    /// What it is.
    pub description: String,
    /// Rows written by base and deltas: no fewer than its keys.
    pub rows: u64,
    /// Bytes on disk.
    pub bytes: u64,
    /// Names of its tables.
    pub tables: Vec<String>,
}

/// The checkpoints below `directory`, job by job, oldest first.
///
/// # Errors
/// If the directory or a file cannot be read, or a manifest is of an unknown format.
pub fn list(directory: &Path) -> Result<Vec<CheckpointSummary>> {
    let mut summaries = Vec::new();
    for job in checkpoint_directories(&LocalDisk, directory)? {
        let confirmed = confirmed_ids(&job)?;
        for (id, manifest) in load_all(&LocalDisk, &job)? {
            summaries.push(match manifest {
                Ok(manifest) => summarise(&job, &manifest, confirmed.contains(&id)),
                Err(damage) => damaged(&job, id, confirmed.contains(&id), damage),
            });
        }
    }
    Ok(summaries)
}

/// One checkpoint: number `id`, or with `None` the newest.
///
/// # Errors
/// If there is none of that number, or it is damaged, or cannot be read.
pub fn show(directory: &Path, id: Option<u64>) -> Result<CheckpointDetail> {
    let summaries = list(directory)?;
    let wanted = summaries.iter().rev().find(|summary| id.is_none_or(|id| id == summary.id));
    let Some(summary) = wanted else {
        let missing = match id {
            Some(id) => format!("there is no checkpoint {id} in '{}'", directory.display()),
            None => format!("there is no checkpoint in '{}'", directory.display()),
        };
        let ids: Vec<String> = summaries.iter().map(|summary| summary.id.to_string()).collect();
        return Err(match ids.is_empty() {
            true => Error::setup(missing),
            false => Error::setup(missing).hint(format!("there are: {}", ids.join(", "))),
        });
    };
    let manifest = super::recovery::load_manifest(&LocalDisk, &summary.directory, summary.id)?.map_err(Error::state)?;
    let sinks = manifest.sinks.iter().map(|(name, committables)| (name.clone(), committables.len())).collect();
    Ok(CheckpointDetail {
        summary: summary.clone(),
        engine: manifest.engine.clone(),
        parallelism: manifest.parallelism,
        operators: operators(&manifest),
        sources: manifest.sources,
        sinks,
    })
}

fn operators(manifest: &Manifest) -> Vec<OperatorDetail> {
    let mut details = Vec::new();
    for (uid, entry) in &manifest.operators {
        let chains = || manifest.state.iter().filter(|chain| chain.operator == *uid);
        let pieces = || chains().flat_map(|chain| &chain.pieces);
        let tables: BTreeSet<&String> = chains().map(|chain| &chain.table).collect();
        details.push(OperatorDetail {
            uid: uid.clone(),
            description: entry.description.clone(),
            rows: pieces().filter_map(|piece| piece.upserts.as_ref()).map(|section| section.rows).sum(),
            bytes: pieces().map(|piece| piece.bytes()).sum(),
            tables: tables.into_iter().cloned().collect(),
        });
    }
    details
}

fn confirmed_ids(directory: &Path) -> Result<BTreeSet<u64>> {
    let names = names(&LocalDisk, directory)?;
    let parsed = names.iter().filter_map(|name| parse_name(name));
    Ok(parsed.filter(|(what, _)| *what == "confirmed").map(|(_, id)| id).collect())
}

fn summarise(directory: &Path, manifest: &Manifest, confirmed: bool) -> CheckpointSummary {
    let files: BTreeSet<&String> = manifest.sections().map(|section| &section.file).collect();
    CheckpointSummary {
        job: manifest.job.clone(),
        directory: directory.to_owned(),
        id: manifest.checkpoint,
        time_ms: manifest.time_ms,
        parent: manifest.parent,
        bytes: manifest.sections().map(|section| section.length).sum(),
        files: files.len(),
        confirmed,
        savepoint: manifest.savepoint,
        finished: manifest.finished,
        damage: None,
    }
}

fn damaged(directory: &Path, id: u64, confirmed: bool, damage: String) -> CheckpointSummary {
    let mut summary = summarise(directory, &Manifest::new("", 0, id), confirmed);
    summary.damage = Some(damage);
    summary
}
