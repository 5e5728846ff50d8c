//! Operators that run in one task, one behind the other, without channels: an event is pushed through all of them.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Instant;

use super::metrics::SubtaskMetrics;
use crate::changelog::{ChangeBatch, CheckpointId, Event, Watermark};
use crate::error::Result;
use crate::operators::{Operator, Output, Port, ProcessingTime};
use crate::state::Snapshot;

/// One operator of a chain.
pub struct Link {
    operator: Box<dyn Operator>,
    output: Output,
    uid: String,
    metrics: Arc<SubtaskMetrics>,
    idleness: Option<Idleness>,
}

/// After this long without rows, what comes out of a link counts as idle.
struct Idleness {
    timeout_ms: i64,
    last_rows: Option<ProcessingTime>,
    idle: bool,
}

/// The operators of one task, in order. What comes out at the end is collected, to be sent by the task.
pub struct Chain {
    links: Vec<Link>,
    emitted: Vec<Event>,
    /// When counters were last handed to the metrics.
    published: ProcessingTime,
}

/// Counters of a task that never waits are handed over this often, in milliseconds.
const PUBLISH_MS: i64 = 200;

impl Link {
    /// A link. With a positive `idle_timeout_ms`, its output counts as idle after so long without rows.
    pub fn new(operator: Box<dyn Operator>, uid: &str, metrics: Arc<SubtaskMetrics>, idle_timeout_ms: u64) -> Link {
        let timeout_ms = i64::try_from(idle_timeout_ms).unwrap_or(i64::MAX);
        let idleness = (timeout_ms > 0).then_some(Idleness { timeout_ms, last_rows: None, idle: false });
        Link { operator, output: Output::default(), uid: uid.to_owned(), metrics, idleness }
    }
}

impl Chain {
    /// A chain of these links; it may have none, and then passes everything on.
    pub fn new(links: Vec<Link>) -> Chain {
        Chain { links, emitted: Vec::new(), published: ProcessingTime::MIN }
    }

    /// What has come out since the last call.
    pub fn take_emitted(&mut self) -> Vec<Event> {
        std::mem::take(&mut self.emitted)
    }

    /// Pushes rows in.
    ///
    /// # Errors
    /// The operators'.
    pub fn changes(&mut self, port: Port, batch: ChangeBatch) -> Result<()> {
        feed(&mut self.links, port, Event::Changes(batch), &mut self.emitted)
    }

    /// Pushes a watermark or idleness in.
    ///
    /// # Errors
    /// The operators'.
    pub fn time(&mut self, event: Event) -> Result<()> {
        feed(&mut self.links, 0, event, &mut self.emitted)
    }

    /// Tells every operator the time.
    ///
    /// # Errors
    /// The operators'.
    pub fn clock(&mut self, now: ProcessingTime) -> Result<()> {
        let mut links = &mut self.links[..];
        while let Some((link, rest)) = links.split_first_mut() {
            // Bundles close and windows fire by the clock: it is work like any other.
            let started = Instant::now();
            link.operator.on_clock(now, &mut link.output)?;
            link.metrics.add_busy(started.elapsed());
            link.pass_on(rest, &mut self.emitted)?;
            if link.idleness.as_mut().is_some_and(|idleness| idleness.has_begun(now)) {
                link.metrics.time.set_idle(true);
                feed(rest, 0, Event::Idle, &mut self.emitted)?;
            }
            links = rest;
        }
        if now.saturating_sub(self.published) >= PUBLISH_MS {
            self.published = now;
            self.publish_counters()?;
        }
        Ok(())
    }

    /// The wait after which a link counts as idle begins anew: the task was kept from reading, or from sending on, and
    /// rows may have been there all the while.
    pub fn restart_idle_wait(&mut self) {
        self.links.iter_mut().filter_map(|link| link.idleness.as_mut()).for_each(|idleness| idleness.last_rows = None);
    }

    /// Takes every operator's snapshot, each after what the ones before it still emit. Gives `(uid, snapshot)`.
    ///
    /// # Errors
    /// The operators'.
    pub fn snapshot(&mut self, id: CheckpointId) -> Result<Vec<(String, Snapshot)>> {
        let mut snapshots = Vec::with_capacity(self.links.len());
        let mut links = &mut self.links[..];
        while let Some((link, rest)) = links.split_first_mut() {
            link.operator.before_barrier(&mut link.output)?;
            link.pass_on(rest, &mut self.emitted)?;
            snapshots.push((link.uid.clone(), link.operator.snapshot(id)?));
            links = rest;
        }
        Ok(snapshots)
    }

    /// Lets every operator tell what it has held back for a barrier.
    ///
    /// # Errors
    /// The operators'.
    pub fn release(&mut self) -> Result<()> {
        let mut links = &mut self.links[..];
        while let Some((link, rest)) = links.split_first_mut() {
            link.operator.before_barrier(&mut link.output)?;
            link.pass_on(rest, &mut self.emitted)?;
            links = rest;
        }
        Ok(())
    }

    /// One port has ended; with `last`, all have, and the end goes through the whole chain.
    ///
    /// # Errors
    /// The operators'.
    pub fn end(&mut self, port: Port, last: bool) -> Result<()> {
        if last {
            self.time(Event::Watermark(Watermark::MAX))?;
        }
        let mut port = port;
        let mut links = &mut self.links[..];
        while let Some((link, rest)) = links.split_first_mut() {
            let started = Instant::now();
            link.operator.on_end(port, &mut link.output)?;
            link.metrics.add_busy(started.elapsed());
            link.pass_on(rest, &mut self.emitted)?;
            if !last {
                return Ok(());
            }
            (port, links) = (0, rest);
        }
        Ok(())
    }

    /// Hands the operators' own counters and the size of their state to the metrics, once they have given back the memory
    /// that they need no more.
    ///
    /// # Errors
    /// The operators'.
    pub fn publish_counters(&mut self) -> Result<()> {
        for link in &mut self.links {
            link.operator.shrink()?;
            link.metrics.set_state(link.operator.state_size());
            let counters = link.operator.counters();
            if !counters.is_empty() {
                link.metrics.set_counters(counters);
            }
            link.metrics.time.set_report(link.operator.time_report());
        }
        Ok(())
    }
}

impl Link {
    /// Pushes what the operator has emitted into the links behind it.
    fn pass_on(&mut self, rest: &mut [Link], emitted: &mut Vec<Event>) -> Result<()> {
        for event in self.output.drain() {
            match &event {
                Event::Changes(batch) => self.metrics.add_out(batch.len()),
                Event::Watermark(mark) => self.metrics.watermark.store(mark.0, Ordering::Relaxed),
                _ => {}
            }
            feed(rest, 0, event, emitted)?;
        }
        Ok(())
    }
}

/// Pushes one event through the links; what comes out at the end is appended to `emitted`.
fn feed(links: &mut [Link], port: Port, event: Event, emitted: &mut Vec<Event>) -> Result<()> {
    let Some((link, rest)) = links.split_first_mut() else {
        emitted.push(event);
        return Ok(());
    };
    let started = Instant::now();
    match event {
        Event::Changes(batch) => {
            link.metrics.add_in(batch.len());
            if let Some(idleness) = &mut link.idleness {
                if std::mem::take(&mut idleness.idle) {
                    link.metrics.time.set_idle(false);
                }
                idleness.last_rows = None;
            }
            link.operator.on_changes(port, batch, &mut link.output)?;
        }
        Event::Watermark(mark) => link.operator.on_watermark(mark, &mut link.output)?,
        // Idleness is between tasks; an operator has nothing to do about it.
        other => return feed(rest, 0, other, emitted),
    }
    link.metrics.add_busy(started.elapsed());
    link.pass_on(rest, emitted)
}

impl Idleness {
    /// Whether idleness begins now. The wait starts at the first look at the clock after the last rows.
    fn has_begun(&mut self, now: ProcessingTime) -> bool {
        let since = *self.last_rows.get_or_insert(now);
        !self.idle && now.saturating_sub(since) >= self.timeout_ms && !std::mem::replace(&mut self.idle, true)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Nothing;

    impl Operator for Nothing {
        fn on_changes(&mut self, _port: Port, _batch: ChangeBatch, _out: &mut Output) -> Result<()> {
            Ok(())
        }
    }

    #[test]
    fn a_task_that_was_kept_from_its_rows_is_not_idle() {
        let metrics: Arc<SubtaskMetrics> = Arc::default();
        let mut chain = Chain::new(vec![Link::new(Box::new(Nothing), "n", Arc::clone(&metrics), 100)]);
        let idle_at = |chain: &mut Chain, now: i64| {
            chain.clock(now).unwrap();
            chain.take_emitted().iter().any(|event| matches!(event, Event::Idle))
        };
        assert!(!idle_at(&mut chain, 0) && !idle_at(&mut chain, 90));
        // It waited for room behind it, or for the other splits of its group.
        chain.restart_idle_wait();
        assert!(!idle_at(&mut chain, 500) && !idle_at(&mut chain, 599));
        assert!(!metrics.time.is_idle());
        assert!(idle_at(&mut chain, 600));
        assert!(metrics.time.is_idle());
        assert!(!idle_at(&mut chain, 900), "it is said once");
    }
}
