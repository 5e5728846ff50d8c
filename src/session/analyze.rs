//! `EXPLAIN ANALYZE`: runs a statement over bounded input to its end, and shows the plan with what each operator did.

use std::collections::HashMap;

use super::handle::Outcome;
use super::job::{Changes, Job};
use super::show;
use crate::error::{Error, Result};
use crate::plan;
use crate::plan::stream::{NodeKind, StreamGraph};
use crate::runtime::OperatorMetrics;

/// A statement that runs to be analyzed.
pub(super) struct Analysis {
    pub graph: StreamGraph,
    pub running: Running,
}

/// What runs.
pub(super) enum Running {
    /// A query; its rows are counted and dropped.
    Query(Box<Changes>),
    /// An insert or a statement set.
    Job(Job),
}

/// Refuses what would never come to its end.
///
/// # Errors
/// If `is_bounded` says of a table that it is not.
pub(super) fn require_bounded(
    graph: &StreamGraph,
    is_bounded: impl Fn(&std::sync::Arc<crate::catalog::TableDefinition>) -> Result<bool>,
) -> Result<()> {
    for node in &graph.nodes {
        if let NodeKind::Source { table, .. } = &node.kind
            && !is_bounded(table)?
        {
            return Err(Error::sql(format!("EXPLAIN ANALYZE runs to the end, and table '{}' has none", table.name))
                .hint("EXPLAIN shows the plan alone; a running job's metrics tell what its operators do"));
        }
    }
    Ok(())
}

impl Analysis {
    /// Waits for the end.
    ///
    /// # Errors
    /// The statement's failure.
    pub async fn finish(self) -> Result<Outcome> {
        let job = match self.running {
            Running::Query(mut changes) => {
                while let Some(batch) = changes.next().await {
                    batch?;
                }
                changes.job().clone()
            }
            Running::Job(job) => job,
        };
        let elapsed = job.wait().await?.elapsed;
        let metrics: HashMap<String, OperatorMetrics> =
            job.metrics().into_iter().map(|metrics| (metrics.uid.clone(), metrics)).collect();
        let measured = |uid: &str| metrics.get(uid).map(line);
        let text = plan::explain_measured(&self.graph, &measured);
        show::text("result", [text, format!("ran for {}", milliseconds(elapsed))].into_iter())
    }
}

/// What an operator did, in a line.
fn line(metrics: &OperatorMetrics) -> String {
    let mut parts = vec![format!("rows in={}, out={}", metrics.rows_in, metrics.rows_out)];
    if let (Some(keys), Some(bytes)) = (metrics.state_keys, metrics.memory_bytes) {
        parts.push(format!("state keys={keys}, memory={}", bytes_text(bytes)));
    }
    if metrics.busy.as_nanos() > 0 {
        parts.push(format!("busy={}", milliseconds(metrics.busy)));
    }
    // What is counted among the keys already is said once.
    let shown = metrics.counters.iter().filter(|(name, count)| {
        *count > 0 && (name.contains("late") || name.contains("unmatched") || name.contains("skipped"))
    });
    parts.extend(shown.map(|(name, count)| format!("{name}={count}")));
    format!("measured: {}", parts.join(", "))
}

fn milliseconds(time: std::time::Duration) -> String {
    format!("{:.3} ms", time.as_secs_f64() * 1_000.0)
}

fn bytes_text(bytes: u64) -> String {
    match bytes {
        0..1_024 => format!("{bytes} B"),
        1_024..1_048_576 => format!("{:.1} KB", bytes as f64 / 1_024.0),
        _ => format!("{:.1} MB", bytes as f64 / 1_048_576.0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_shown_in_the_unit_that_fits() {
        assert_eq!([0, 1_023, 1_536, 3 << 20].map(bytes_text), ["0 B", "1023 B", "1.5 KB", "3.0 MB"]);
    }
}
