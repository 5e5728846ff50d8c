//! Sources and sinks: the edges of a job.
//!
//! A connector is a file with its declared options, one line in the list below, one example in `sql-examples/`.
//! It may offer a [`Source`], a [`Sink`], or both.
//!
//! A source is a set of splits (a file, a partition), each read by one subtask. Every split has a replayable position;
//! the runtime takes the positions at a barrier, keeps them in the checkpoint, and hands them back after a restart.
//!
//! A sink's subtasks write rows as they come. At a barrier each one *prepares*: what it wrote becomes durable but not
//! visible, and it hands over a [`Committable`]. Once the checkpoint's manifest is durable, and only then, the job
//! *commits* the committables. Committing is idempotent: after a crash the same committables are committed again.

mod blackhole;
mod console;
mod datagen;
mod filesystem;
mod print;

use std::sync::Arc;

use arrow::datatypes::SchemaRef;
use futures::future::BoxFuture;

use crate::catalog::{DeclaredOption, OptionKind, Options, TableDefinition};
use crate::changelog::{ChangeBatch, ChangelogMode, CheckpointId};
use crate::error::{Error, Result, nearest};
use crate::formats::{self, Format};

/// Makes a source for a table.
pub type MakeSource = fn(&ConnectorContext) -> Result<Arc<dyn Source>>;

/// Makes a sink for a table.
pub type MakeSink = fn(&ConnectorContext) -> Result<Arc<dyn Sink>>;

/// One line of the list of connectors.
pub struct Connector {
    /// The name in `'connector' = '…'`.
    pub name: &'static str,
    /// Its own options, without `connector`, `format` and the format's.
    pub options: &'static [DeclaredOption],
    /// Whether it takes `'format' = '…'`.
    pub takes_format: bool,
    /// Makes the source, if the connector can be read.
    pub source: Option<MakeSource>,
    /// Makes the sink, if the connector can be written.
    pub sink: Option<MakeSink>,
}

/// All connectors.
pub static CONNECTORS: &[Connector] = &[
    filesystem::CONNECTOR,
    datagen::CONNECTOR,
    print::CONNECTOR,
    blackhole::CONNECTOR,
    console::STDIN,
    console::STDOUT,
];

/// The options every connector takes.
const COMMON: &[DeclaredOption] = &[
    common("connector", OptionKind::Text, "The connector's name."),
    common("format", OptionKind::Text, "The format of its rows."),
    common("scan.parallelism", OptionKind::Integer, "How many subtasks read."),
    common("sink.parallelism", OptionKind::Integer, "How many subtasks write."),
    common("scan.watermark.emit.strategy", OptionKind::Text, "on-periodic (the default) or on-event."),
    common("scan.watermark.idle-timeout", OptionKind::Duration, "After how long without rows a split counts as idle."),
    common("scan.watermark.null-event-time", OptionKind::Text, "error (the default), or drop: such rows are counted."),
    common(
        "scan.watermark.max-ahead",
        OptionKind::Duration,
        "Rows further ahead of the clock are dropped and counted.",
    ),
    common("scan.watermark.alignment.group", OptionKind::Text, "Splits of one group wait for each other."),
    common("scan.watermark.alignment.max-drift", OptionKind::Duration, "How far a split of the group may be ahead."),
    common("scan.watermark.alignment.update-interval", OptionKind::Duration, "How often a group is compared."),
];

const fn common(name: &'static str, kind: OptionKind, help: &'static str) -> DeclaredOption {
    DeclaredOption { name, kind, default: None, required: false, help }
}

/// The connector of this name.
pub fn find(name: &str) -> Option<&'static Connector> {
    CONNECTORS.iter().find(|connector| connector.name == name)
}

/// The source of a declared table.
///
/// # Errors
/// If its connector cannot be read, or an option is wrong.
pub fn source(context: &ConnectorContext) -> Result<Arc<dyn Source>> {
    let connector = connector_of(&context.table)?;
    match connector.source {
        Some(make) => make(context),
        None => Err(Error::sql(format!(
            "table '{}' cannot be read: connector '{}' only writes",
            context.table.name, connector.name
        ))),
    }
}

/// The sink of a declared table.
///
/// # Errors
/// If its connector cannot be written, or an option is wrong.
pub fn sink(context: &ConnectorContext) -> Result<Arc<dyn Sink>> {
    let connector = connector_of(&context.table)?;
    match connector.sink {
        Some(make) => make(context),
        None => Err(Error::sql(format!(
            "table '{}' cannot be written: connector '{}' only reads",
            context.table.name, connector.name
        ))),
    }
}

fn connector_of(table: &TableDefinition) -> Result<&'static Connector> {
    let name = table.options.get("connector").unwrap_or_default();
    find(name).ok_or_else(|| Error::sql(format!("table '{}': there is no connector '{name}'", table.name)))
}

/// Checks a table's options when it is created: connector and format exist, every option is declared and well formed,
/// none that is required is missing.
///
/// # Errors
/// On the first fault, with the nearest valid name.
pub fn check_options(table: &TableDefinition) -> Result<()> {
    check(table).map_err(|error| error.context(format!("table '{}'", table.name)))
}

fn check(table: &TableDefinition) -> Result<()> {
    let names = || CONNECTORS.iter().map(|connector| connector.name);
    let known = || format!("the connectors are: {}", names().collect::<Vec<_>>().join(", "));
    let Some(name) = table.options.get("connector") else {
        return Err(Error::sql("a table needs the option 'connector'").hint(known()));
    };
    let Some(connector) = find(name) else {
        return Err(Error::sql(format!("there is no connector '{name}'")).hint(match nearest(name, names()) {
            Some(near) => format!("did you mean '{near}'?"),
            None => known(),
        }));
    };
    let format = if connector.takes_format { Some(format_of(table)?) } else { None };
    let mut own = Options::default();
    for (option, value) in &table.options.0 {
        let of_format =
            format.is_some_and(|format| option.split_once('.').is_some_and(|(first, _)| first == format.name));
        if option == "format" && format.is_none() {
            return Err(Error::sql(format!("connector '{name}' takes no format")).hint("leave out 'format'"));
        }
        if !of_format {
            own.0.insert(option.clone(), value.clone());
        }
    }
    let declared: Vec<DeclaredOption> = connector.options.iter().chain(COMMON).copied().collect();
    own.check(&format!("connector '{name}'"), &declared)?;
    format.map_or(Ok(()), |format| format.check(&table.options))
}

/// The format a table names.
///
/// # Errors
/// If it names none, or one that does not exist.
fn format_of(table: &TableDefinition) -> Result<&'static Format> {
    match table.options.get("format") {
        Some(name) => formats::require(name),
        None => {
            let names: Vec<&str> = formats::FORMATS.iter().map(|format| format.name).collect();
            Err(Error::sql("the connector needs the option 'format'")
                .hint(format!("the formats are: {}", names.join(", "))))
        }
    }
}

/// What a connector is made from.
#[derive(Clone)]
pub struct ConnectorContext {
    /// The table; its options have been checked.
    pub table: Arc<TableDefinition>,
    /// Where `print` and `stdout` tables write, and `stdin` tables read: the binary's own streams, or a program's.
    pub console: Arc<dyn Console>,
    /// Whether the job reads bounded input to its end (`execution.runtime-mode = batch` asks for it).
    pub batch: bool,
    /// The session's time zone (`table.local-time-zone`).
    pub zone: crate::types::TimeZone,
    /// Whether results depend on the order of the table's rows: then what has an order, such as a file, has one reader.
    pub in_order: bool,
}

/// The standard streams, as handed in by whoever runs the engine: only the binary prints.
pub trait Console: Send + Sync {
    /// Writes to standard output (`error`: to standard error), as a whole.
    ///
    /// # Errors
    /// If the stream is closed.
    fn write(&self, error: bool, bytes: &[u8]) -> std::io::Result<()>;

    /// Opens standard input; each call gives the same stream.
    fn input(&self) -> Box<dyn std::io::Read + Send>;
}

/// A split's name and its position, as the connector writes them: both go into the checkpoint's manifest.
#[derive(Debug, Clone, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct SplitPosition {
    /// Unique within the source, stable over restarts (a path, a partition number).
    pub split: String,
    /// Where to go on, in the connector's own form.
    pub position: serde_json::Value,
}

/// A table that can be read.
pub trait Source: Send + Sync {
    /// The kinds of change it delivers.
    fn mode(&self) -> ChangelogMode;

    /// Whether it ends by itself.
    fn bounded(&self) -> bool;

    /// Whether there are rows behind the positions of *all* splits at which a former run had come to the end: then the
    /// same job, run again, goes on with them instead of being complete.
    ///
    /// # Errors
    /// If it cannot be found out.
    fn has_more(&self, _positions: &[SplitPosition]) -> Result<bool> {
        Ok(false)
    }

    /// Opens the reader of subtask `subtask` of `parallelism`.
    ///
    /// `projection` are indices into the table's physical and metadata columns, in order of declaration, ascending. `restored`
    /// are the positions of *all* splits of the checkpoint, or `None` on a fresh start: the reader takes the splits that
    /// are its own by a stable rule over split names, and skips those that were read to the end.
    ///
    /// # Errors
    /// If the data cannot be opened.
    fn open(
        &self,
        subtask: usize,
        parallelism: usize,
        projection: &[usize],
        restored: Option<&[SplitPosition]>,
    ) -> Result<Box<dyn SourceReader>>;
}

/// What a reader delivers.
#[derive(Debug)]
pub enum SourceEvent {
    /// Rows with the projected columns.
    Changes(ChangeBatch),
    /// Nothing at present; more may come.
    Idle,
    /// Nothing comes any more.
    End,
}

/// One subtask's reader of a source.
pub trait SourceReader: Send {
    /// Waits for the next rows. Dropping the future loses nothing: the next call delivers what this one would have.
    /// After `Idle` the next call waits until there is something.
    fn next(&mut self) -> BoxFuture<'_, Result<SourceEvent>>;

    /// The positions of all splits this reader knows, after all that `next` has delivered.
    fn positions(&self) -> Vec<SplitPosition>;

    /// What is done so far, for progress and metrics.
    fn progress(&self) -> Progress {
        Progress::default()
    }
}

/// How far a reader is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Progress {
    /// Bytes read.
    pub bytes: u64,
    /// Bytes there are, if known.
    pub total_bytes: Option<u64>,
    /// Rows skipped because they could not be parsed (`ignore-parse-errors`).
    pub skipped_rows: u64,
}

/// What a sink promises when the job fails and goes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Guarantee {
    /// Rows may be lost or doubled.
    None,
    /// Rows may be doubled.
    AtLeastOnce,
    /// Writing a row again changes nothing.
    Idempotent,
    /// Rows become visible when their checkpoint commits, once.
    ExactlyOnce,
}

/// What a sink subtask has made durable for one checkpoint, in the sink's own form; it goes into the manifest.
#[derive(Debug, Clone, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct Committable(pub serde_json::Value);

/// A table that can be written.
pub trait Sink: Send + Sync {
    /// The kinds of change it can take.
    fn accepts(&self) -> ChangelogMode;

    /// What it promises.
    fn guarantee(&self) -> Guarantee;

    /// Opens the writer of one subtask. `sink` is the sink's name: the same whenever the job starts again, and no other
    /// job's. `incarnation` counts the job's starts, so that leftovers of earlier ones can be told apart; it is 0 for a
    /// job that keeps no checkpoints, whose leftovers nobody comes back for.
    ///
    /// # Errors
    /// If the target cannot be written.
    fn open(&self, sink: &str, subtask: usize, incarnation: u64, schema: SchemaRef) -> Result<Box<dyn SinkWriter>>;

    /// Makes the rows of a checkpoint visible. Called after its manifest is durable, and again after a crash.
    ///
    /// # Errors
    /// If it cannot be known whether the rows are visible: the job stops rather than lose them.
    fn commit(&self, _committables: &[Committable]) -> Result<()> {
        Ok(())
    }

    /// Removes leftovers of incarnations before `incarnation` that no checkpoint names. Called at start, after the
    /// committables of the restored checkpoint have been committed.
    ///
    /// # Errors
    /// If leftovers cannot be removed.
    fn clean(&self, _sink: &str, _incarnation: u64) -> Result<()> {
        Ok(())
    }
}

/// One subtask's writer.
pub trait SinkWriter: Send {
    /// Takes rows.
    ///
    /// # Errors
    /// If they cannot be written (a full disk, a closed pipe).
    fn write(&mut self, batch: &ChangeBatch) -> Result<()>;

    /// Everything written since the last barrier becomes durable, not visible; `None` if there was nothing. Called
    /// also at the end of bounded input.
    ///
    /// # Errors
    /// If it cannot be made durable: the checkpoint fails and with it the job.
    fn prepare(&mut self, checkpoint: CheckpointId) -> Result<Option<Committable>>;

    /// Pushes out what is buffered, for sinks whose rows are visible at once. Called when the input pauses.
    ///
    /// # Errors
    /// As for [`SinkWriter::write`].
    fn flush(&mut self) -> Result<()> {
        Ok(())
    }
}
