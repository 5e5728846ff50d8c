//! The writing side: rows go to staging files, one per partition and as many as the size asks for, which a barrier
//! closes and syncs. Publishing them is `publish`'s part.

use std::collections::{BTreeSet, HashMap};
use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow::array::UInt32Array;
use arrow::datatypes::{Schema, SchemaRef};
use xxhash_rust::xxh3::Xxh3;

use super::publish::{self, Published, STAGING};
use super::{listing, partition, path_of};
use crate::catalog::{Options, TableDefinition};
use crate::changelog::{ChangeBatch, ChangelogMode, CheckpointId};
use crate::connectors::{Committable, ConnectorContext, Guarantee, Sink, SinkWriter, format_of};
use crate::crash::crash_point;
use crate::error::{Error, Result};
use crate::formats::{Encoder, Format, TimestampStyle, View};

/// Bytes gathered before they are written to the file.
const WRITE_BYTES: usize = 256 << 10;

/// A table of files that is written.
pub(super) struct FileSink {
    directory: PathBuf,
    format: &'static Format,
    format_options: Options,
    table: Arc<TableDefinition>,
    default_name: String,
    roll_bytes: u64,
}

impl FileSink {
    /// # Errors
    /// If an option is not valid.
    pub(super) fn new(context: &ConnectorContext) -> Result<FileSink> {
        let table = &context.table;
        let format = format_of(table)?;
        Ok(FileSink {
            directory: PathBuf::from(listing::local_path(path_of(table)?)?),
            format,
            format_options: format.own_options(&table.options),
            default_name: table.options.get("partition.default-name").unwrap_or(partition::DEFAULT_NAME).to_string(),
            roll_bytes: table.options.size("sink.rolling-policy.file-size")?.unwrap_or(128 << 20).max(1),
            table: Arc::clone(table),
        })
    }
}

impl FileSink {
    /// # Errors
    /// If the path, or a part of it, is a file.
    fn check_directory(&self) -> Result<()> {
        match self.directory.ancestors().find(|path| path.exists()) {
            Some(path) if !path.is_dir() => {
                let (name, path) = (&self.table.name, path.display());
                Err(Error::setup(format!("table '{name}' cannot be written: '{path}' is a file"))
                    .hint("the 'path' of a table that is written is a directory, in which files are made"))
            }
            _ => Ok(()),
        }
    }
}

impl Sink for FileSink {
    fn accepts(&self) -> ChangelogMode {
        self.format.modes.writes
    }

    fn guarantee(&self) -> Guarantee {
        Guarantee::ExactlyOnce
    }

    fn open(&self, sink: &str, subtask: usize, incarnation: u64, schema: SchemaRef) -> Result<Box<dyn SinkWriter>> {
        self.check_directory()?;
        let staging = self.directory.join(STAGING);
        // Durable from the root on: a file is not there after a loss of power if its directory is not.
        let mut changed = BTreeSet::new();
        publish::create_directories(&staging, &mut changed)?;
        changed.iter().try_for_each(|directory| publish::sync_directory(directory))?;
        let partitioned_by = &self.table.partitioned_by;
        let column = |name: &String| {
            schema
                .index_of(name)
                .map_err(|_| Error::bug(format!("partition column '{name}' is not in the sink's rows")))
        };
        let partition_columns = partitioned_by.iter().map(column).collect::<Result<Vec<_>>>()?;
        let file_columns: Vec<usize> =
            (0..schema.fields().len()).filter(|index| !partition_columns.contains(index)).collect();
        let file_schema: Arc<Schema> = Arc::new(schema.project(&file_columns)?);
        let (make, options) = (self.format.encoder, self.format_options.clone());
        let encoder: MakeEncoder = Box::new(move || make(&options, Arc::clone(&file_schema)));
        Ok(Box::new(FileWriter {
            directory: self.directory.clone(),
            extension: encoder()?.extension(),
            encoder,
            prefix: format!("{}{subtask}", publish::file_prefix(sink)),
            incarnation,
            partition_columns,
            file_columns,
            default_name: self.default_name.clone(),
            roll_bytes: self.roll_bytes,
            parts: HashMap::new(),
            finished: Vec::new(),
            next: 0,
            held: Vec::new(),
        }))
    }

    fn commit(&self, committables: &[Committable]) -> Result<()> {
        publish::commit(&self.directory, committables)
    }

    fn clean(&self, sink: &str, incarnation: u64) -> Result<()> {
        self.check_directory()?;
        publish::clean(&self.directory, sink, incarnation)
    }
}

/// Makes the encoder of a file.
type MakeEncoder = Box<dyn Fn() -> Result<Box<dyn Encoder>> + Send>;

/// One subtask's writer.
struct FileWriter {
    directory: PathBuf,
    encoder: MakeEncoder,
    extension: &'static str,
    /// `part-<sink>-<subtask>`
    prefix: String,
    incarnation: u64,
    partition_columns: Vec<usize>,
    file_columns: Vec<usize>,
    default_name: String,
    roll_bytes: u64,
    /// Files being written, by partition directory (empty without partitions).
    parts: HashMap<Vec<u8>, Part>,
    /// Files closed since the last barrier.
    finished: Vec<FinishedPart>,
    /// Number of the next staging file.
    next: u64,
    /// Without checkpoints, the files closed so far: their locks are kept until they are published.
    held: Vec<File>,
}

/// A file being written.
struct Part {
    /// The how many-th file of this writer it is.
    number: u64,
    file: File,
    /// Path below the table's directory.
    staging: String,
    encoder: Box<dyn Encoder>,
    buffer: Vec<u8>,
    length: u64,
    hash: Xxh3,
}

/// A file that is closed and synced.
struct FinishedPart {
    number: u64,
    partition: Vec<u8>,
    staging: String,
    length: u64,
    hash: u64,
}

impl FileWriter {
    fn write_partition(&mut self, partition: &[u8], batch: &ChangeBatch) -> Result<()> {
        let rows = batch.with_rows(batch.rows().project(&self.file_columns)?)?;
        if !self.parts.contains_key(partition) {
            let part = self.begin()?;
            self.parts.insert(partition.to_vec(), part);
        }
        let Some(part) = self.parts.get_mut(partition) else { return Ok(()) };
        part.encoder.encode(&rows, &mut part.buffer)?;
        if part.buffer.len() >= WRITE_BYTES {
            part.drain(&self.directory)?;
        }
        if part.length + (part.buffer.len() + part.encoder.buffered()) as u64 >= self.roll_bytes
            && let Some(part) = self.parts.remove(partition)
        {
            self.finish(part, partition)?;
        }
        Ok(())
    }

    /// Begins a staging file.
    fn begin(&mut self) -> Result<Part> {
        loop {
            let number = self.next;
            self.next += 1;
            let staging = format!("{STAGING}/{}-{number}.{}.{}", self.prefix, self.extension, self.incarnation);
            let path = self.directory.join(&staging);
            // If there is one, the job has been restarted within one incarnation; it may belong to a checkpoint.
            if let Some(file) = publish::begin(&path, self.incarnation)? {
                let (encoder, buffer) = ((self.encoder)()?, Vec::with_capacity(WRITE_BYTES));
                return Ok(Part { number, file, staging, encoder, buffer, length: 0, hash: Xxh3::new() });
            }
        }
    }

    /// Closes a file.
    fn finish(&mut self, part: Part, partition: &[u8]) -> Result<()> {
        let (finished, file) = part.finish(&self.directory, partition)?;
        self.finished.push(finished);
        if self.incarnation == publish::NO_CHECKPOINTS {
            self.held.push(file);
        }
        Ok(())
    }

    /// The rows of each partition directory, in the order in which the directories first appear.
    fn partitions(&self, batch: &ChangeBatch) -> Result<Vec<(Vec<u8>, Vec<u32>)>> {
        let rows = batch.rows();
        let fields = rows.schema_ref().fields();
        let views: Vec<(&str, View<'_>)> = self
            .partition_columns
            .iter()
            .map(|column| Ok((fields[*column].name().as_str(), View::new(&fields[*column], rows.column(*column))?)))
            .collect::<Result<_>>()?;
        let mut groups: Vec<(Vec<u8>, Vec<u32>)> = Vec::new();
        let mut index: HashMap<Vec<u8>, usize> = HashMap::new();
        let (mut directory, mut value) = (Vec::new(), Vec::new());
        for row in 0..rows.num_rows() {
            directory.clear();
            for (name, view) in &views {
                value.clear();
                if !view.is_null(row) {
                    view.write_scalar(row, TimestampStyle::Iso, &mut value);
                }
                if value.is_empty() {
                    value.extend_from_slice(self.default_name.as_bytes());
                }
                if !directory.is_empty() {
                    directory.push(b'/');
                }
                partition::write_directory(name, &value, &mut directory);
            }
            let group = match index.get(&directory) {
                Some(group) => *group,
                None => {
                    index.insert(directory.clone(), groups.len());
                    groups.push((directory.clone(), Vec::new()));
                    groups.len() - 1
                }
            };
            groups[group].1.push(row as u32);
        }
        Ok(groups)
    }
}

impl SinkWriter for FileWriter {
    fn write(&mut self, batch: &ChangeBatch) -> Result<()> {
        if batch.is_empty() {
            return Ok(());
        }
        if self.partition_columns.is_empty() {
            return self.write_partition(b"", batch);
        }
        for (directory, rows) in self.partitions(batch)? {
            let kinds = rows.iter().map(|row| batch.kind(*row as usize)).collect();
            let taken = arrow::compute::take_record_batch(batch.rows(), &UInt32Array::from(rows))?;
            self.write_partition(&directory, &ChangeBatch::new(taken, kinds)?)?;
        }
        Ok(())
    }

    fn prepare(&mut self, checkpoint: CheckpointId) -> Result<Option<Committable>> {
        for (partition, part) in std::mem::take(&mut self.parts) {
            self.finish(part, &partition)?;
        }
        if self.finished.is_empty() {
            return Ok(None);
        }
        publish::sync_directory(&self.directory.join(STAGING))?;
        let mut finished = std::mem::take(&mut self.finished);
        finished.sort_by_key(|part| part.number);
        let files = finished
            .into_iter()
            .enumerate()
            .map(|(sequence, part)| {
                let name = format!("{}-{checkpoint}-{sequence}.{}", self.prefix, self.extension);
                let partition = String::from_utf8(part.partition)
                    .map_err(|_| Error::bug("a partition directory that is not UTF-8"))?;
                Ok(Published {
                    staging: part.staging,
                    target: if partition.is_empty() { name } else { format!("{partition}/{name}") },
                    length: part.length,
                    hash: part.hash,
                })
            })
            .collect::<Result<Vec<_>>>()?;
        publish::committable(&files).map(Some)
    }
}

impl Part {
    fn drain(&mut self, directory: &Path) -> Result<()> {
        let path = || directory.join(&self.staging);
        self.file.write_all(&self.buffer).map_err(|error| Error::io("write", &path(), &error))?;
        self.hash.update(&self.buffer);
        self.length += self.buffer.len() as u64;
        self.buffer.clear();
        Ok(())
    }

    /// Writes what is left and syncs the file. After an error of the sync nothing may be assumed about the file: the
    /// checkpoint fails.
    fn finish(mut self, directory: &Path, partition: &[u8]) -> Result<(FinishedPart, File)> {
        self.encoder.finish(&mut self.buffer)?;
        self.drain(directory)?;
        self.file.sync_all().map_err(|error| Error::io("sync", &directory.join(&self.staging), &error))?;
        crash_point("file_synced");
        let finished = FinishedPart {
            number: self.number,
            partition: partition.to_vec(),
            staging: self.staging,
            length: self.length,
            hash: self.hash.digest(),
        };
        Ok((finished, self.file))
    }
}
