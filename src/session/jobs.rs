//! `SHOW JOBS`, `DESCRIBE JOB 'name'` and `STOP JOB 'name'`: the jobs of the session, which go by their names.

use super::handle::{Outcome, State};
use super::job::Job;
use super::show::rows;
use crate::error::{Error, Result, nearest};
use crate::sql::StopJob;

/// The job of a `STOP JOB`, and how it is to stop.
pub(super) struct Stop {
    job: Job,
    /// The folder below which it leaves a savepoint.
    savepoint: Option<String>,
}

impl Stop {
    /// # Errors
    /// If there is no such job, or no folder for its savepoint.
    pub(super) fn new(state: &State, stop: &StopJob) -> Result<Stop> {
        let job = find(state, &stop.name)?;
        if stop.drain {
            return Err(Error::sql("STOP JOB … WITH DRAIN is not supported yet")
                .hint("without it, open windows stay open in the savepoint and go on from there"));
        }
        let directory = || {
            let options = ["execution.checkpointing.savepoint-dir", "state.savepoints.dir"];
            options.iter().find_map(|option| state.options.get(option)).ok_or_else(|| {
                Error::setup("there is no folder for savepoints")
                    .hint("SET 'execution.checkpointing.savepoint-dir' = '/path/of/a/folder'")
            })
        };
        Ok(Stop { job, savepoint: if stop.savepoint { Some(directory()?) } else { None } })
    }

    /// Stops the job and waits for its end.
    ///
    /// # Errors
    /// If its last checkpoint or its savepoint cannot be written.
    pub(super) async fn run(self) -> Result<Outcome> {
        match self.savepoint {
            None => {
                self.job.stop().await?;
                Ok(Outcome::Done("Job stopped".to_string()))
            }
            Some(directory) => {
                let report = self.job.stop_with_savepoint(super::options::local_path(&directory)).await?;
                let path = report.savepoint.map(|path| path.display().to_string());
                rows(&["savepoint path"], vec![vec![path]])
            }
        }
    }
}

/// A line for each job.
///
/// # Errors
/// Only by a bug.
pub(super) fn show(state: &State) -> Result<Outcome> {
    let job = |job: &Job| vec![Some(job.name().to_string()), Some(job.status().to_string())];
    rows(&["job name", "status"], state.jobs.iter().map(job).collect())
}

/// A line for one job.
///
/// # Errors
/// If there is no such job.
pub(super) fn describe(state: &State, name: &str) -> Result<Outcome> {
    let job = find(state, name)?;
    let progress = job.progress();
    let cells = [
        job.name().to_string(),
        job.status().to_string(),
        progress.rows_read.to_string(),
        progress.rows_written.to_string(),
    ];
    rows(&["job name", "status", "rows read", "rows written"], vec![cells.into_iter().map(Some).collect()])
}

fn find(state: &State, name: &str) -> Result<Job> {
    let found = state.jobs.iter().rev().find(|job| job.name() == name).cloned();
    found.ok_or_else(|| {
        let error = Error::sql(format!("there is no job '{name}'"));
        match nearest(name, state.jobs.iter().map(Job::name)) {
            Some(near) => error.hint(format!("did you mean '{near}'?")),
            None => error.hint("SHOW JOBS lists those that this session started"),
        }
    })
}
