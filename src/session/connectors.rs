//! Where a session's tables come from: the built-in connectors, and tables the program itself registers.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use futures::StreamExt;
use futures::future::BoxFuture;
use futures::stream::BoxStream;

use crate::catalog::TableDefinition;
use crate::changelog::{ChangeBatch, ChangelogMode};
use crate::connectors::{self, ConnectorContext, Sink, Source, SourceEvent, SourceReader, SplitPosition};
use crate::error::{Error, Result};
use crate::limits::BATCH_ROWS;
use crate::runtime::Connectors;

/// The `connector` of tables that a program registers.
pub(super) const PROGRAM_CONNECTOR: &str = "program";

/// A table of the program's own: batches in memory, a stream, or a source or sink of its own making.
#[derive(Clone)]
pub struct ProgramTable {
    schema: SchemaRef,
    event_time: Option<(String, String)>,
    key: Vec<String>,
    rows: Rows,
}

#[derive(Clone)]
enum Rows {
    Batches(Arc<Vec<ChangeBatch>>),
    /// Taken by the first query that reads it.
    Stream(Arc<Mutex<Option<BoxStream<'static, Result<ChangeBatch>>>>>, ChangelogMode),
    Source(Arc<dyn Source>),
    Sink(Arc<dyn Sink>),
}

impl ProgramTable {
    /// A bounded, append-only table of these rows; it may be read any number of times.
    pub fn batches(schema: SchemaRef, batches: Vec<RecordBatch>) -> ProgramTable {
        let batches = batches.into_iter().map(ChangeBatch::inserts).collect();
        ProgramTable::of(schema, Rows::Batches(Arc::new(batches)))
    }

    /// A table that is what a stream brings; the first query to read it takes the stream. `mode` says which kinds come.
    pub fn stream(
        schema: SchemaRef,
        mode: ChangelogMode,
        stream: impl futures::Stream<Item = Result<ChangeBatch>> + Send + 'static,
    ) -> ProgramTable {
        ProgramTable::of(schema, Rows::Stream(Arc::new(Mutex::new(Some(stream.boxed()))), mode))
    }

    /// A table read by a connector of the program's own.
    pub fn source(schema: SchemaRef, source: Arc<dyn Source>) -> ProgramTable {
        ProgramTable::of(schema, Rows::Source(source))
    }

    /// A table written by a connector of the program's own.
    pub fn sink(schema: SchemaRef, sink: Arc<dyn Sink>) -> ProgramTable {
        ProgramTable::of(schema, Rows::Sink(sink))
    }

    /// Declares event time: `WATERMARK FOR column AS expression`.
    #[must_use]
    pub fn watermark(mut self, column: impl Into<String>, expression: impl Into<String>) -> ProgramTable {
        self.event_time = Some((column.into(), expression.into()));
        self
    }

    /// Declares the primary key.
    #[must_use]
    pub fn primary_key(mut self, columns: &[&str]) -> ProgramTable {
        self.key = columns.iter().map(ToString::to_string).collect();
        self
    }

    fn of(schema: SchemaRef, rows: Rows) -> ProgramTable {
        ProgramTable { schema, event_time: None, key: Vec::new(), rows }
    }

    pub(super) fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    pub(super) fn key(&self) -> &[String] {
        &self.key
    }

    pub(super) fn event_time(&self) -> Option<(&str, &str)> {
        self.event_time.as_ref().map(|(column, expression)| (column.as_str(), expression.as_str()))
    }

    fn as_source(&self, name: &str) -> Result<Arc<dyn Source>> {
        match &self.rows {
            Rows::Batches(batches) => Ok(Arc::new(BatchSource { batches: Arc::clone(batches) })),
            Rows::Stream(stream, mode) => Ok(Arc::new(StreamSource { stream: Arc::clone(stream), mode: *mode })),
            Rows::Source(source) => Ok(Arc::clone(source)),
            Rows::Sink(_) => Err(Error::sql(format!("table '{name}' can be written only"))),
        }
    }
}

/// Finds sources and sinks for a job.
pub(super) struct SessionConnectors {
    program_tables: HashMap<String, ProgramTable>,
}

impl SessionConnectors {
    pub(super) fn new(program_tables: HashMap<String, ProgramTable>) -> SessionConnectors {
        SessionConnectors { program_tables }
    }

    fn program(&self, table: &TableDefinition) -> Option<&ProgramTable> {
        let registered = table.options.get("connector") == Some(PROGRAM_CONNECTOR);
        self.program_tables.get(&table.name).filter(|_| registered)
    }
}

impl Connectors for SessionConnectors {
    fn source(&self, table: &Arc<TableDefinition>, context: &ConnectorContext) -> Result<Arc<dyn Source>> {
        match self.program(table) {
            Some(own) => own.as_source(&table.name),
            None => connectors::source(context),
        }
    }

    fn sink(&self, table: &Arc<TableDefinition>, context: &ConnectorContext) -> Result<Arc<dyn Sink>> {
        match self.program(table) {
            Some(ProgramTable { rows: Rows::Sink(sink), .. }) => Ok(Arc::clone(sink)),
            Some(_) => Err(Error::sql(format!("table '{}' can be read only", table.name))),
            None => connectors::sink(context),
        }
    }
}

/// Batches in memory; the position is the number of batches delivered.
struct BatchSource {
    batches: Arc<Vec<ChangeBatch>>,
}

impl Source for BatchSource {
    fn mode(&self) -> ChangelogMode {
        ChangelogMode::APPEND
    }

    fn bounded(&self) -> bool {
        true
    }

    fn open(
        &self,
        subtask: usize,
        parallelism: usize,
        projection: &[usize],
        restored: Option<&[SplitPosition]>,
    ) -> Result<Box<dyn SourceReader>> {
        // Splits are residues of the batch number, one for each subtask of the job that first read them.
        let mut splits = Vec::new();
        match restored {
            None => splits.push(BatchSplit { first: subtask, step: parallelism, next: subtask, row: 0 }),
            Some(positions) => {
                for (index, position) in positions.iter().enumerate() {
                    let split: BatchSplit = serde_json::from_value(position.position.clone()).map_err(|error| {
                        Error::state(format!("the position of split '{}': {error}", position.split))
                    })?;
                    if index % parallelism == subtask {
                        splits.push(split);
                    }
                }
            }
        }
        Ok(Box::new(BatchReader { batches: Arc::clone(&self.batches), projection: projection.to_vec(), splits }))
    }
}

/// The batches `first, first + step, …`, of which those before `next` and `row` rows of it are delivered.
#[derive(Debug, Clone, serde::Serialize, serde::Deserialize)]
struct BatchSplit {
    first: usize,
    step: usize,
    next: usize,
    row: usize,
}

struct BatchReader {
    batches: Arc<Vec<ChangeBatch>>,
    projection: Vec<usize>,
    splits: Vec<BatchSplit>,
}

impl BatchReader {
    fn take(&mut self) -> Result<SourceEvent> {
        for split in &mut self.splits {
            while let Some(batch) = self.batches.get(split.next) {
                let length = (batch.len() - split.row).min(BATCH_ROWS);
                let slice = batch.slice(split.row, length);
                split.row += length;
                if split.row >= batch.len() {
                    split.next += split.step;
                    split.row = 0;
                }
                if length > 0 {
                    let rows = slice.rows().project(&self.projection)?;
                    return Ok(SourceEvent::Changes(slice.with_rows(rows)?));
                }
            }
        }
        Ok(SourceEvent::End)
    }
}

impl SourceReader for BatchReader {
    fn next(&mut self) -> BoxFuture<'_, Result<SourceEvent>> {
        let event = self.take();
        Box::pin(async move { event })
    }

    fn positions(&self) -> Vec<SplitPosition> {
        let position = |split: &BatchSplit| SplitPosition {
            split: format!("{} mod {}", split.first, split.step),
            position: serde_json::json!({
                "first": split.first, "step": split.step, "next": split.next, "row": split.row
            }),
        };
        self.splits.iter().map(position).collect()
    }
}

/// A stream of the program; it cannot be read again, so a job over it does not survive a restart.
struct StreamSource {
    stream: Arc<Mutex<Option<BoxStream<'static, Result<ChangeBatch>>>>>,
    mode: ChangelogMode,
}

impl Source for StreamSource {
    fn mode(&self) -> ChangelogMode {
        self.mode
    }

    fn bounded(&self) -> bool {
        // It may end; nobody can know beforehand, and a batch query would only wait.
        false
    }

    fn open(
        &self,
        subtask: usize,
        _parallelism: usize,
        projection: &[usize],
        restored: Option<&[SplitPosition]>,
    ) -> Result<Box<dyn SourceReader>> {
        let again = || Error::setup("the stream of this table has been read already").hint("register the table anew");
        if restored.is_some_and(|positions| !positions.is_empty()) {
            return Err(again());
        }
        let stream = if subtask == 0 {
            let mut stream = self.stream.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
            Some(stream.take().ok_or_else(again)?)
        } else {
            None
        };
        Ok(Box::new(StreamReader { stream, projection: projection.to_vec(), rows: 0 }))
    }
}

struct StreamReader {
    stream: Option<BoxStream<'static, Result<ChangeBatch>>>,
    projection: Vec<usize>,
    rows: u64,
}

impl SourceReader for StreamReader {
    fn next(&mut self) -> BoxFuture<'_, Result<SourceEvent>> {
        Box::pin(async move {
            let Some(stream) = &mut self.stream else { return Ok(SourceEvent::End) };
            match stream.next().await {
                None => Ok(SourceEvent::End),
                Some(Err(error)) => Err(error),
                Some(Ok(batch)) => {
                    self.rows += batch.len() as u64;
                    let rows = batch.rows().project(&self.projection)?;
                    Ok(SourceEvent::Changes(batch.with_rows(rows)?))
                }
            }
        })
    }

    fn positions(&self) -> Vec<SplitPosition> {
        let own = self.stream.is_some();
        own.then(|| SplitPosition { split: "stream".into(), position: self.rows.into() }).into_iter().collect()
    }
}
