//! Where a task's output goes: to which subtasks of which users.

use arrow::array::{ArrayRef, UInt32Array};
use arrow::compute::take_record_batch;

use super::channel::{Closed, Sender};
use crate::changelog::{ChangeBatch, Event, Kind, Kinds};
use crate::error::Result;
use crate::state::{KeyGroupRange, hash_rows, key_group};

/// How rows are spread over an edge's targets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Route {
    /// All to the only target.
    One,
    /// By the key group of these columns.
    Hash(Vec<usize>),
}

/// One outgoing edge of a task.
pub struct OutputEdge {
    route: Route,
    targets: Vec<Sender>,
    hashes: Vec<u64>,
}

/// All outgoing edges of a task; every one gets everything.
#[derive(Default)]
pub struct Exchange {
    edges: Vec<OutputEdge>,
}

/// Why sending ended.
pub enum SendError {
    /// The receiver is gone.
    Closed,
    /// The rows could not be spread.
    Failed(crate::error::Error),
}

impl From<Closed> for SendError {
    fn from(_: Closed) -> SendError {
        SendError::Closed
    }
}

impl Exchange {
    /// Adds an edge.
    pub fn add(&mut self, route: Route, targets: Vec<Sender>) {
        self.edges.push(OutputEdge { route, targets, hashes: Vec::new() });
    }

    /// Sends to every edge, waiting while one is full.
    ///
    /// # Errors
    /// If a receiver is gone, or the rows cannot be spread.
    pub async fn send(&mut self, event: Event) -> Result<(), SendError> {
        let Some((last, others)) = self.edges.split_last_mut() else { return Ok(()) };
        for edge in others {
            edge.send(event.clone()).await?;
        }
        last.send(event).await
    }
}

impl OutputEdge {
    async fn send(&mut self, event: Event) -> Result<(), SendError> {
        if let (Route::Hash(columns), Event::Changes(batch)) = (&self.route, &event)
            && self.targets.len() > 1
        {
            let parts = split(batch, columns, self.targets.len(), &mut self.hashes).map_err(SendError::Failed)?;
            for (target, part) in self.targets.iter().zip(parts) {
                if let Some(part) = part {
                    target.send(Event::Changes(part)).await?;
                }
            }
            return Ok(());
        }
        let Some((last, others)) = self.targets.split_last() else { return Ok(()) };
        for target in others {
            target.send(event.clone()).await?;
        }
        Ok(last.send(event).await?)
    }
}

/// The rows of each of `targets` subtasks, in their order; `None` for one that gets none.
///
/// # Errors
/// If rows cannot be gathered.
pub(super) fn split(
    batch: &ChangeBatch,
    columns: &[usize],
    targets: usize,
    hashes: &mut Vec<u64>,
) -> Result<Vec<Option<ChangeBatch>>> {
    let keys: Vec<ArrayRef> = columns.iter().map(|column| batch.rows().column(*column).clone()).collect();
    hash_rows(&keys, hashes)?;
    // A global aggregate has no key: hashes stay empty, and everything belongs to the first subtask.
    let mut rows: Vec<Vec<u32>> = vec![Vec::new(); targets];
    if hashes.is_empty() {
        let mut parts: Vec<Option<ChangeBatch>> = vec![None; targets];
        parts[0] = Some(batch.clone());
        return Ok(parts);
    }
    for (row, hash) in hashes.iter().enumerate() {
        rows[KeyGroupRange::subtask_of(key_group(*hash), targets)].push(row as u32);
    }
    rows.into_iter().map(|rows| gather(batch, rows)).collect()
}

fn gather(batch: &ChangeBatch, rows: Vec<u32>) -> Result<Option<ChangeBatch>> {
    if rows.is_empty() {
        return Ok(None);
    }
    if rows.len() == batch.len() {
        return Ok(Some(batch.clone()));
    }
    let kinds: Option<Vec<Kind>> = match batch.kinds() {
        Kinds::AllInsert => None,
        Kinds::Each(kinds) => Some(rows.iter().map(|row| kinds[*row as usize]).collect()),
    };
    let taken = take_record_batch(batch.rows(), &UInt32Array::from(rows))?;
    match kinds {
        None => Ok(Some(ChangeBatch::inserts(taken))),
        Some(kinds) => ChangeBatch::new(taken, kinds).map(Some),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow::array::{AsArray, Int64Array, RecordBatch};
    use arrow::datatypes::Int64Type;

    use super::*;

    #[test]
    fn every_row_goes_to_one_target_in_order_and_equal_keys_go_together() {
        let keys: ArrayRef = Arc::new(Int64Array::from_iter_values((0..1_000).map(|row| row % 10)));
        let order: ArrayRef = Arc::new(Int64Array::from_iter_values(0..1_000));
        let batch = ChangeBatch::inserts(RecordBatch::try_from_iter([("k", keys), ("n", order)]).unwrap());
        let parts = split(&batch, &[0], 3, &mut Vec::new()).unwrap();
        let mut owners = std::collections::HashMap::new();
        let mut total = 0;
        for (target, part) in parts.iter().enumerate() {
            let Some(part) = part else { continue };
            total += part.len();
            let numbers = part.rows().column(1).as_primitive::<Int64Type>().values();
            assert!(numbers.is_sorted());
            for key in part.rows().column(0).as_primitive::<Int64Type>().values() {
                assert_eq!(*owners.entry(*key).or_insert(target), target);
            }
        }
        assert_eq!(total, 1_000);
    }
}
