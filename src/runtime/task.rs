//! A task: one subtask of one chain, from its source or channels to its sink or channels.
//!
//! It turns events into calls of the chain, and requests of the coordinator into barriers and acknowledgements:
//!
//! ```text
//! a source     request 7 → positions and snapshots → ack, barrier 7 downstream
//! any other    barrier 7 on every open input → snapshots → ack, barrier 7 downstream
//! after the end of all input, both: request 7 → snapshots → ack; the task stays until the job ends
//! ```
//!
//! A cut between two checkpoints goes the same way, without snapshots and acknowledgements: what was held back until
//! its barrier is told.
//!
//! So a task that has ended keeps taking part: its last state, and the rows its sink wrote after the last barrier, belong
//! to the checkpoints that follow.

use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::sync::mpsc;
use tokio::time::{Interval, MissedTickBehavior};

use super::chain::Chain;
use super::channel::Closed;
use super::config::Clock;
use super::declared::DeclaredColumns;
use super::exchange::{Exchange, SendError};
use super::inputs::Inputs;
use super::metrics::SubtaskMetrics;
use super::split_alignment::AlignedSplit;
use super::watermarks::WatermarkMerger;
use crate::changelog::{ChangeBatch, CheckpointId, Cut, Event};
use crate::connectors::{Committable, SinkWriter, SourceEvent, SourceReader, SplitPosition};
use crate::crash::crash_point;
use crate::error::{Error, Result};
use crate::state::Snapshot;

/// The coordinator asks for a cut.
#[derive(Debug, Clone, Copy)]
pub struct CutRequest {
    /// Which.
    pub cut: Cut,
    /// Whether the job stops with it: sources deliver nothing after its barrier.
    pub stop: bool,
}

/// What tasks tell the coordinator.
#[derive(Debug)]
pub enum Report {
    /// A task's part of a checkpoint.
    Ack(Box<Ack>),
    /// A source has sent a cut between two checkpoints on its way.
    Passed,
    /// All input of the task has been processed.
    Ended,
}

/// A task's part of a checkpoint.
#[derive(Debug)]
pub struct Ack {
    /// The task.
    pub task: usize,
    /// The checkpoint.
    pub id: CheckpointId,
    /// Which subtask of its operators it is.
    pub subtask: usize,
    /// Snapshots by operator uid.
    pub snapshots: Vec<(String, Snapshot)>,
    /// Positions of its source, by the source's uid.
    pub positions: Option<(String, Vec<SplitPosition>)>,
    /// What its sink has prepared, by the sink's name.
    pub committable: Option<(String, Committable)>,
}

/// Where a task's rows come from.
pub enum Head {
    /// A reader.
    Source {
        /// The source's uid.
        uid: String,
        /// Reads.
        reader: Box<dyn SourceReader>,
        /// Counts.
        metrics: Arc<SubtaskMetrics>,
    },
    /// Channels.
    Inputs(Inputs),
}

/// Where a task's rows go.
pub enum Tail {
    /// To other tasks.
    Exchange(Exchange),
    /// Into a table.
    Sink {
        /// The sink's name.
        name: String,
        /// What its table calls the columns.
        columns: DeclaredColumns,
        /// Writes.
        writer: Box<dyn SinkWriter>,
        /// Counts.
        metrics: Arc<SubtaskMetrics>,
        /// Whether rows were written since the last flush.
        dirty: bool,
    },
    /// To whoever runs the query.
    Collect {
        /// Bounded: a slow reader slows the query.
        sender: mpsc::Sender<Result<ChangeBatch>>,
        /// Counts.
        metrics: Arc<SubtaskMetrics>,
    },
}

/// One subtask of one chain.
pub struct Task {
    /// Its index in the job.
    pub index: usize,
    /// Which subtask of its operators it is.
    pub subtask: usize,
    /// Where rows come from.
    pub head: Head,
    /// What happens to them.
    pub chain: Chain,
    /// Where they go.
    pub tail: Tail,
    /// Requests of the coordinator.
    pub requests: mpsc::UnboundedReceiver<CutRequest>,
    /// To the coordinator.
    pub reports: mpsc::UnboundedSender<Report>,
    /// Processing time.
    pub clock: Arc<dyn Clock>,
    /// How often the operators are told the time when nothing comes.
    pub tick: Duration,
    /// The counts of its last operator: who waits behind it, and when rows came.
    pub metrics: Arc<SubtaskMetrics>,
    /// Its place among splits that wait for each other.
    pub alignment: Option<AlignedSplit>,
}

/// How a task ended without an error of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exit {
    /// The job is over.
    Done,
    /// A neighbour is gone: it has failed, and its error is the answer.
    Disconnected,
    /// Nobody reads the query's result any more.
    Unwanted,
}

enum Stop {
    Exit(Exit),
    Failed(Error),
}

impl From<Error> for Stop {
    fn from(error: Error) -> Stop {
        Stop::Failed(error)
    }
}

impl From<Closed> for Stop {
    fn from(_: Closed) -> Stop {
        Stop::Exit(Exit::Disconnected)
    }
}

impl Task {
    /// Runs to the end of the job.
    ///
    /// # Errors
    /// The first error of its source, operators or sink.
    pub async fn run(self) -> Result<Exit> {
        let Task { index, subtask, head, chain, tail, requests, reports, clock, tick, metrics, alignment } = self;
        let mut ticks = tokio::time::interval(tick);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let last_cut = Cut::default();
        let mut body =
            Body { index, subtask, chain, tail, requests, reports, clock, ticks, metrics, alignment, last_cut };
        let result = match head {
            Head::Source { uid, reader, metrics } => body.read(uid, reader, &metrics).await,
            Head::Inputs(inputs) => body.receive(inputs).await,
        };
        match result {
            Ok(()) => Ok(Exit::Done),
            Err(Stop::Exit(exit)) => Ok(exit),
            Err(Stop::Failed(error)) => Err(error),
        }
    }
}

/// The names of the splits that a reader has.
fn split_names(reader: &dyn SourceReader) -> Vec<String> {
    reader.positions().into_iter().map(|position| position.split).collect()
}

/// A task without its head, so that the head can be waited for while the rest is used.
struct Body {
    index: usize,
    subtask: usize,
    chain: Chain,
    tail: Tail,
    requests: mpsc::UnboundedReceiver<CutRequest>,
    reports: mpsc::UnboundedSender<Report>,
    clock: Arc<dyn Clock>,
    ticks: Interval,
    metrics: Arc<SubtaskMetrics>,
    alignment: Option<AlignedSplit>,
    /// The newest cut this task has taken part in.
    last_cut: Cut,
}

impl Body {
    /// The life of a source's task.
    async fn read(
        &mut self,
        uid: String,
        mut reader: Box<dyn SourceReader>,
        metrics: &SubtaskMetrics,
    ) -> Result<(), Stop> {
        metrics.time.set_splits(split_names(&*reader));
        loop {
            enum Next {
                Request(Option<CutRequest>),
                Event(Result<SourceEvent>),
                Tick,
            }
            let waits = self.alignment.as_ref().is_some_and(|split| split.must_wait(reader.positions().is_empty()));
            let next = if waits {
                // Not idle: it is kept from reading.
                self.chain.restart_idle_wait();
                self.flush()?;
                tokio::select! {
                    biased;
                    request = self.requests.recv() => Next::Request(request),
                    _ = self.ticks.tick() => Next::Tick,
                }
            } else {
                let mut event = reader.next();
                let at_once = futures::poll!(&mut event);
                match at_once {
                    // Requests come first even when the reader never waits.
                    std::task::Poll::Ready(event) => Next::Event(event),
                    std::task::Poll::Pending => {
                        self.flush()?;
                        tokio::select! {
                            biased;
                            request = self.requests.recv() => Next::Request(request),
                            event = &mut event => Next::Event(event),
                            _ = self.ticks.tick() => Next::Tick,
                        }
                    }
                }
            };
            match next {
                Next::Request(None) => return Err(Stop::Exit(Exit::Disconnected)),
                Next::Request(Some(request)) => self.source_barrier(request, &uid, reader.positions()).await?,
                Next::Tick => {
                    self.tick().await?;
                    metrics.set_progress(reader.progress());
                    metrics.time.set_splits(split_names(&*reader));
                }
                Next::Event(event) => match event? {
                    SourceEvent::Changes(batch) => {
                        metrics.add_out(batch.len());
                        let now = self.clock.now_ms();
                        metrics.time.rows_came(now);
                        self.chain.clock(now)?;
                        self.chain.changes(0, batch)?;
                        self.send().await?;
                        crash_point("source_read");
                        metrics.set_progress(reader.progress());
                        // A reader that never waits must let barriers, cancellation and other tasks run.
                        tokio::task::yield_now().await;
                    }
                    SourceEvent::Idle => {
                        self.flush()?;
                        // A reader without any split cannot hold back event time: it may never get one.
                        if reader.positions().is_empty() {
                            self.chain.time(Event::Idle)?;
                        }
                        self.send().await?;
                    }
                    SourceEvent::End => break,
                },
            }
            while let Ok(request) = self.requests.try_recv() {
                self.source_barrier(request, &uid, reader.positions()).await?;
            }
        }
        metrics.set_progress(reader.progress());
        metrics.time.end();
        self.alignment = None;
        self.chain.end(0, true)?;
        self.finish(Some((uid, reader.positions()))).await
    }

    /// A request at a source: its own positions are the cut, and the barrier carries it on.
    async fn source_barrier(
        &mut self,
        request: CutRequest,
        uid: &str,
        positions: Vec<SplitPosition>,
    ) -> Result<(), Stop> {
        self.cut(request.cut, Some((uid.to_owned(), positions))).await?;
        if request.cut.checkpoint().is_none() {
            drop(self.reports.send(Report::Passed));
        }
        crash_point("barrier_injected");
        if request.stop {
            // Rows behind the last barrier would be written and never committed.
            std::future::pending::<()>().await;
        }
        Ok(())
    }

    /// The life of a task that reads from channels. Requests are left alone: barriers say what they say, until the end.
    async fn receive(&mut self, mut inputs: Inputs) -> Result<(), Stop> {
        let mut merger = WatermarkMerger::new(inputs.len());
        let unfed = inputs.ports_without_channel();
        for (done, port) in unfed.iter().enumerate() {
            self.chain.end(*port, inputs.len() == 0 && done + 1 == unfed.len())?;
        }
        while !inputs.all_ended() {
            let at_once = futures::poll!(std::pin::pin!(inputs.next()));
            let next = match at_once {
                std::task::Poll::Ready(event) => Some(event?),
                std::task::Poll::Pending => {
                    self.flush()?;
                    tokio::select! {
                        biased;
                        event = inputs.next() => Some(event?),
                        _ = self.ticks.tick() => {
                            self.tick().await?;
                            None
                        }
                    }
                }
            };
            if let Some((channel, event)) = next {
                self.receive_event(&mut inputs, &mut merger, channel, event).await?;
            }
        }
        self.finish(None).await
    }

    async fn receive_event(
        &mut self,
        inputs: &mut Inputs,
        merger: &mut WatermarkMerger,
        channel: usize,
        event: Event,
    ) -> Result<(), Stop> {
        match event {
            Event::Changes(batch) => {
                merger.active(channel);
                let now = self.clock.now_ms();
                self.metrics.time.rows_came(now);
                self.chain.clock(now)?;
                self.chain.changes(inputs.port(channel), batch)?;
            }
            Event::Watermark(mark) => {
                if let Some(event) = merger.watermark(channel, mark) {
                    self.chain.time(event)?;
                }
            }
            Event::Idle => {
                if let Some(event) = merger.idle(channel) {
                    self.chain.time(event)?;
                }
            }
            Event::Barrier(cut) => {
                if let Some(cut) = inputs.barrier(channel, cut) {
                    self.cut(cut, None).await?;
                }
            }
            Event::End => {
                // The barrier that waited only for this channel comes before what its end sets off.
                if let Some(cut) = inputs.end(channel) {
                    self.cut(cut, None).await?;
                }
                if let Some(event) = merger.end(channel) {
                    self.chain.time(event)?;
                }
                let port = inputs.port(channel);
                if inputs.port_ended(port) {
                    self.chain.end(port, inputs.all_ended())?;
                }
            }
        }
        self.send().await
    }

    /// A cut has reached this task; its barrier goes on to the tasks behind it.
    async fn cut(&mut self, cut: Cut, positions: Option<(String, Vec<SplitPosition>)>) -> Result<(), Stop> {
        if let Some(id) = cut.checkpoint() {
            return self.checkpoint(id, positions, true).await;
        }
        // Without a barrier to wait for, one may come a second time at the end of an input.
        if cut <= self.last_cut {
            return Ok(());
        }
        self.last_cut = cut;
        self.chain.release()?;
        self.send().await?;
        self.forward(cut).await
    }

    async fn forward(&mut self, cut: Cut) -> Result<(), Stop> {
        match self.tail {
            Tail::Exchange(_) => self.emit(Event::Barrier(cut)).await,
            Tail::Sink { .. } | Tail::Collect { .. } => Ok(()),
        }
    }

    /// This task's part of a checkpoint; with `forward`, the barrier goes on to the tasks behind it.
    async fn checkpoint(
        &mut self,
        id: CheckpointId,
        positions: Option<(String, Vec<SplitPosition>)>,
        forward: bool,
    ) -> Result<(), Stop> {
        let cut = Cut::of_checkpoint(id);
        if cut <= self.last_cut {
            return Ok(());
        }
        self.last_cut = cut;
        crash_point("aligned");
        let snapshots = self.chain.snapshot(id)?;
        self.send().await?;
        if forward {
            self.forward(cut).await?;
        }
        let mut committable = None;
        if let Tail::Sink { name, writer, dirty, .. } = &mut self.tail {
            crash_point("before_prepare");
            committable = writer.prepare(id)?.map(|committable| (name.clone(), committable));
            crash_point("prepared");
            *dirty = false;
        }
        self.chain.publish_counters()?;
        let (task, subtask) = (self.index, self.subtask);
        let ack = Ack { task, id, subtask, snapshots, positions, committable };
        // Without a coordinator the job is over, and the task learns it elsewhere.
        drop(self.reports.send(Report::Ack(Box::new(ack))));
        Ok(())
    }

    /// After the end of all input: everything is sent on, and checkpoints still get this task's part.
    async fn finish(&mut self, positions: Option<(String, Vec<SplitPosition>)>) -> Result<(), Stop> {
        self.send().await?;
        if let Tail::Exchange(_) = self.tail {
            self.emit(Event::End).await?;
        }
        self.flush()?;
        self.chain.publish_counters()?;
        self.metrics.time.end();
        drop(self.reports.send(Report::Ended));
        // Requests whose barriers came in time are known; those that no barrier can bring any more are answered here.
        while let Some(request) = self.requests.recv().await {
            match request.cut.checkpoint() {
                Some(id) => self.checkpoint(id, positions.clone(), false).await?,
                None => drop(self.reports.send(Report::Passed)),
            }
        }
        Ok(())
    }

    async fn tick(&mut self) -> Result<(), Stop> {
        self.chain.clock(self.clock.now_ms())?;
        self.chain.publish_counters()?;
        self.send().await
    }

    /// Sends what has come out of the chain.
    async fn send(&mut self) -> Result<(), Stop> {
        let emitted = self.chain.take_emitted();
        if emitted.is_empty() {
            return Ok(());
        }
        let since = self.clock.now_ms();
        self.metrics.time.blocked(Some(since));
        for event in emitted {
            self.emit(event).await?;
        }
        self.metrics.time.blocked(None);
        if self.clock.now_ms() > since {
            self.chain.restart_idle_wait();
        }
        Ok(())
    }

    async fn emit(&mut self, event: Event) -> Result<(), Stop> {
        match (&mut self.tail, event) {
            (Tail::Exchange(exchange), event) => exchange.send(event).await.map_err(|error| match error {
                SendError::Closed => Stop::Exit(Exit::Disconnected),
                SendError::Failed(error) => Stop::Failed(error),
            }),
            (Tail::Sink { columns, writer, metrics, dirty, .. }, Event::Changes(batch)) => {
                let started = Instant::now();
                writer.write(&columns.name(&batch)?)?;
                metrics.add_busy(started.elapsed());
                metrics.add_in(batch.len());
                *dirty = true;
                Ok(())
            }
            (Tail::Collect { sender, metrics }, Event::Changes(batch)) => {
                metrics.add_in(batch.len());
                sender.send(Ok(batch)).await.map_err(|_| Stop::Exit(Exit::Unwanted))
            }
            // Time ends at the edge of the job.
            _ => Ok(()),
        }
    }

    /// The input pauses: rows that are visible at once should be seen now.
    fn flush(&mut self) -> Result<()> {
        if let Tail::Sink { writer, dirty, .. } = &mut self.tail
            && std::mem::take(dirty)
        {
            writer.flush()?;
        }
        Ok(())
    }
}
