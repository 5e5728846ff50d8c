//! Debug builds stand guard around every operator: what it emits must be what the plan says.

use arrow::datatypes::SchemaRef;

use crate::changelog::{ChangeBatch, ChangelogMode, CheckpointId, Event, Watermark};
use crate::error::{Error, Result};
use crate::operators::{Operator, Output, Port, ProcessingTime, StateSize, TimeReport};
use crate::state::{Restored, Snapshot};

/// An operator whose output is checked against its node.
pub struct Checked {
    inner: Box<dyn Operator>,
    output: Output,
    uid: String,
    schema: SchemaRef,
    mode: ChangelogMode,
    seen: Watermark,
}

impl Checked {
    /// Guards `inner`, which promises rows of `schema` and kinds of `mode`.
    pub fn new(inner: Box<dyn Operator>, uid: &str, schema: SchemaRef, mode: ChangelogMode) -> Checked {
        Checked { inner, output: Output::default(), uid: uid.to_owned(), schema, mode, seen: Watermark::MIN }
    }

    fn pass_on(&mut self, out: &mut Output) -> Result<()> {
        for event in self.output.drain() {
            match event {
                Event::Changes(batch) => {
                    check(&batch, &self.schema, self.mode).map_err(|error| error.context(&self.uid))?;
                    out.changes(batch);
                }
                Event::Watermark(mark) => {
                    if mark < self.seen {
                        return Err(Error::bug(format!("{}: the watermark went back", self.uid)));
                    }
                    self.seen = mark;
                    out.watermark(mark);
                }
                other => return Err(Error::bug(format!("{}: an operator emitted {other:?}", self.uid))),
            }
        }
        Ok(())
    }
}

fn check(batch: &ChangeBatch, schema: &SchemaRef, mode: ChangelogMode) -> Result<()> {
    let given = batch.schema();
    let same = given.fields().len() == schema.fields().len()
        && given.fields().iter().zip(schema.fields()).all(|(given, want)| given.data_type() == want.data_type());
    if !same {
        return Err(Error::bug(format!("emitted rows of {given:?} where the plan says {schema:?}")));
    }
    match (0..batch.len()).map(|row| batch.kind(row)).find(|kind| !mode.contains(*kind)) {
        None => Ok(()),
        Some(kind) => Err(Error::bug(format!("emitted {kind} on an edge of mode {mode}"))),
    }
}

impl Operator for Checked {
    fn on_changes(&mut self, port: Port, batch: ChangeBatch, out: &mut Output) -> Result<()> {
        self.inner.on_changes(port, batch, &mut self.output)?;
        self.pass_on(out)
    }

    fn on_watermark(&mut self, mark: Watermark, out: &mut Output) -> Result<()> {
        self.inner.on_watermark(mark, &mut self.output)?;
        self.pass_on(out)
    }

    fn on_clock(&mut self, now: ProcessingTime, out: &mut Output) -> Result<()> {
        self.inner.on_clock(now, &mut self.output)?;
        self.pass_on(out)
    }

    fn before_barrier(&mut self, out: &mut Output) -> Result<()> {
        self.inner.before_barrier(&mut self.output)?;
        self.pass_on(out)
    }

    fn on_end(&mut self, port: Port, out: &mut Output) -> Result<()> {
        self.inner.on_end(port, &mut self.output)?;
        self.pass_on(out)
    }

    fn snapshot(&mut self, at: CheckpointId) -> Result<Snapshot> {
        self.inner.snapshot(at)
    }

    fn restore(&mut self, from: Restored) -> Result<()> {
        self.inner.restore(from)
    }

    fn state_size(&self) -> Option<StateSize> {
        self.inner.state_size()
    }

    fn shrink(&mut self) -> Result<()> {
        self.inner.shrink()
    }

    fn counters(&self) -> Vec<(&'static str, u64)> {
        self.inner.counters()
    }

    fn time_report(&self) -> TimeReport {
        self.inner.time_report()
    }
}
