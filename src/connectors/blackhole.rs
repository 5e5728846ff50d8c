//! The `blackhole` connector: takes every change and keeps none.

use std::sync::Arc;

use arrow::datatypes::SchemaRef;

use super::{Committable, Connector, Guarantee, Sink, SinkWriter};
use crate::changelog::{ChangeBatch, ChangelogMode, CheckpointId};
use crate::error::Result;

/// Its line in the list.
pub(super) const CONNECTOR: Connector = Connector {
    name: "blackhole",
    options: &[],
    takes_format: false,
    source: None,
    sink: Some(|_| Ok(Arc::new(Blackhole))),
};

struct Blackhole;

impl Sink for Blackhole {
    fn accepts(&self) -> ChangelogMode {
        ChangelogMode::RETRACT
    }

    fn guarantee(&self) -> Guarantee {
        // Nothing is visible, so nothing can be doubled.
        Guarantee::Idempotent
    }

    fn open(&self, _: &str, _: usize, _: u64, _: SchemaRef) -> Result<Box<dyn SinkWriter>> {
        Ok(Box::new(Blackhole))
    }
}

impl SinkWriter for Blackhole {
    fn write(&mut self, _: &ChangeBatch) -> Result<()> {
        Ok(())
    }

    fn prepare(&mut self, _: CheckpointId) -> Result<Option<Committable>> {
        Ok(None)
    }
}
