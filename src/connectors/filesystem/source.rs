//! The reading side: which files there are, how they are cut into splits, and which subtask reads which.

use std::collections::{HashMap, HashSet};
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use arrow::datatypes::{Schema, SchemaRef};

use super::listing::{FoundFile, Listing};
use super::reader::{FileReader, Split};
use super::{partition, path_of};
use crate::catalog::{Column, ColumnKind, Options};
use crate::changelog::ChangelogMode;
use crate::connectors::{ConnectorContext, Source, SourceReader, SplitPosition, format_of};
use crate::error::{Error, Result, nearest};
use crate::formats::{BlockPosition, BlockReader, Decoder, FileBytes, FileToRead, Format, MakeDecoder, Wanted};
use crate::types::SqlType;

/// A file larger than this is read by several subtasks, a range each, when it may be.
const RANGE_BYTES: u64 = 8 << 20;

/// A file of blocks is cut into as many ranges as there are readers, but not into smaller ones than this: blocks are
/// large, and every reader reads the file's footer or header.
const LEAST_RANGE_BYTES: u64 = 1 << 20;

/// What a file tells beside its rows: the keys of metadata columns.
const METADATA_KEYS: [&str; 4] = ["file.path", "file.name", "file.size", "file.modification-time"];

/// A table of files that is read.
pub(super) struct FileSource {
    plan: Arc<ReadPlan>,
    monitor_interval: Option<Duration>,
}

/// What all readers of a table share.
pub(super) struct ReadPlan {
    pub listing: Listing,
    pub format: &'static Format,
    pub format_options: Options,
    /// What stands in the files: the physical columns that are no partition columns.
    pub file_schema: SchemaRef,
    pub scan_schema: SchemaRef,
    /// Where each column of the scan schema comes from.
    pub origins: Vec<Origin>,
    pub partition_columns: Vec<String>,
    pub default_name: String,
    pub zone: crate::types::TimeZone,
    /// Whether a record begins after every line end, so that reading may begin anywhere.
    lines_are_records: bool,
    /// How files are shared out.
    pub reading: Reading,
}

/// Where a column's values come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Origin {
    /// Column of the file schema.
    File(usize),
    /// Partition column.
    Partition(usize),
    /// Metadata, as an index into [`METADATA_KEYS`].
    Metadata(usize),
}

impl FileSource {
    /// # Errors
    /// If an option or a metadata key is not valid.
    pub(super) fn new(context: &ConnectorContext) -> Result<FileSource> {
        let table = &context.table;
        let format = format_of(table)?;
        let format_options = format.own_options(&table.options);
        let mut fields = Vec::new();
        let mut origins = Vec::new();
        for column in &table.columns {
            match &column.kind {
                ColumnKind::Computed { .. } => {}
                ColumnKind::Metadata { key, .. } => origins.push(Origin::Metadata(metadata_key(key, column)?)),
                ColumnKind::Physical => match table.partitioned_by.iter().position(|name| *name == column.name) {
                    Some(index) => origins.push(Origin::Partition(index)),
                    None => {
                        origins.push(Origin::File(fields.len()));
                        fields.push(column.sql_type.to_field(&column.name, table.reads_null(column)));
                    }
                },
            }
        }
        let quotes_lines = format.name == "csv" && !format_options.boolean("disable-quote-character", false)?;
        Ok(FileSource {
            monitor_interval: if context.batch { None } else { table.options.duration("source.monitor-interval")? },
            plan: Arc::new(ReadPlan {
                listing: Listing::new(path_of(table)?, table.options.get("source.path.regex-pattern"))?,
                format,
                lines_are_records: !quotes_lines && format_options.get("escape-character").is_none(),
                format_options,
                file_schema: Arc::new(Schema::new(fields)),
                scan_schema: table.read_schema(),
                origins,
                partition_columns: table.partitioned_by.clone(),
                default_name: table
                    .options
                    .get("partition.default-name")
                    .unwrap_or(partition::DEFAULT_NAME)
                    .to_string(),
                zone: context.zone,
                reading: match (format.modes.reads.is_append_only(), context.in_order) {
                    (false, _) => Reading::OneReader,
                    (true, true) => Reading::WholeFiles,
                    (true, false) => Reading::Ranges,
                },
            }),
        })
    }
}

fn metadata_key(key: &str, column: &Column) -> Result<usize> {
    let Column { name: column, sql_type, .. } = column;
    if matches!(sql_type, SqlType::Array(_) | SqlType::Map(..) | SqlType::Multiset(_) | SqlType::Row(_)) {
        return Err(Error::sql(format!("column '{column}': metadata '{key}' is one value and no {sql_type}"))
            .hint("declare it as STRING, BIGINT or TIMESTAMP_LTZ(3)"));
    }
    METADATA_KEYS.iter().position(|known| *known == key).ok_or_else(|| {
        let error = Error::sql(format!("column '{column}': connector 'filesystem' has no metadata '{key}'"));
        error.hint(match nearest(key, METADATA_KEYS) {
            Some(near) => format!("did you mean '{near}'?"),
            None => format!("it has: {}", METADATA_KEYS.join(", ")),
        })
    })
}

impl ReadPlan {
    /// A decoder of the file columns that `projection` (of the scan schema) needs; `None` for a format of whole files.
    ///
    /// # Errors
    /// If the format refuses the columns or its options.
    pub(super) fn decoder(&self, projection: &[usize]) -> Result<Option<Box<dyn Decoder>>> {
        match self.format.decoder {
            MakeDecoder::OfRecords(make) => make(&self.format_options, self.wanted(projection)).map(Some),
            MakeDecoder::OfFiles(_) => Ok(None),
        }
    }

    /// A reader of the blocks of a file that begin in `range`, from position `at` on.
    ///
    /// # Errors
    /// If the file is damaged or does not fit the table, or the format refuses its options.
    pub(super) fn blocks(
        &self,
        projection: &[usize],
        bytes: Arc<dyn FileBytes>,
        range: Range<u64>,
        at: BlockPosition,
    ) -> Result<Box<dyn BlockReader>> {
        let MakeDecoder::OfFiles(open) = self.format.decoder else {
            return Err(Error::bug(format!("format '{}' has no blocks", self.format.name)));
        };
        let options = &self.format_options;
        open(FileToRead { options, wanted: self.wanted(projection), bytes, range, at, zone: self.zone })
    }

    fn wanted(&self, projection: &[usize]) -> Wanted {
        let file_columns = projection.iter().filter_map(|index| match self.origins[*index] {
            Origin::File(column) => Some(column),
            _ => None,
        });
        Wanted { schema: Arc::clone(&self.file_schema), projection: file_columns.collect() }
    }

    fn is_of_blocks(&self) -> bool {
        matches!(self.format.decoder, MakeDecoder::OfFiles(_))
    }

    /// The length of the ranges into which a file of `size` bytes is cut for `parallelism` readers.
    fn range_bytes(&self, size: u64, parallelism: usize) -> u64 {
        match self.is_of_blocks() {
            true => size.div_ceil(parallelism.max(1) as u64).max(LEAST_RANGE_BYTES),
            false => RANGE_BYTES,
        }
    }

    /// The splits of `file` that have no position yet, for `parallelism` readers; one if it must not be cut.
    pub(super) fn new_splits(&self, file: &FoundFile, parallelism: usize) -> Vec<Split> {
        let may = self.reading == Reading::Ranges && (self.lines_are_records || self.is_of_blocks());
        let length = self.range_bytes(file.size, parallelism);
        if !may || parallelism < 2 || file.size <= length {
            return vec![Split::whole(&file.path, file.size)];
        }
        let starts = (0..file.size).step_by(length as usize);
        starts
            .map(|start| {
                // The last range has no end: it takes what has been appended since.
                let end = (start + length < file.size).then_some(start + length);
                Split::range(&file.path, start, end, file.size)
            })
            .collect()
    }
}

/// How files may be shared out to readers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Reading {
    /// Anyhow, also parts of one file.
    Ranges,
    /// The rows of a file have an order that matters.
    WholeFiles,
    /// A log of changes goes on from file to file: a later change must not overtake an earlier one.
    OneReader,
}

/// The subtask that reads a split: files are spread by a hash of their path, which every machine computes alike, and a
/// file's ranges go round from there.
pub(super) fn owner(split: &Split, plan: &ReadPlan, parallelism: usize) -> usize {
    if plan.reading == Reading::OneReader {
        return 0;
    }
    let hash = xxhash_rust::xxh3::xxh3_64(split.path.as_bytes())
        .wrapping_add(split.start / plan.range_bytes(split.size, parallelism));
    (hash % parallelism.max(1) as u64) as usize
}

impl Source for FileSource {
    fn mode(&self) -> ChangelogMode {
        self.plan.format.modes.reads
    }

    fn bounded(&self) -> bool {
        self.monitor_interval.is_none()
    }

    fn has_more(&self, positions: &[SplitPosition]) -> Result<bool> {
        let files = self.plan.listing.files()?;
        let sizes: HashMap<&str, u64> = files.iter().map(|file| (file.path.as_str(), file.size)).collect();
        let mut known = HashSet::new();
        for position in positions {
            let mut split = Split::restore(position)?;
            if split.reopen(sizes.get(split.path.as_str()).copied(), false) {
                return Ok(true);
            }
            known.insert(split.path);
        }
        Ok(files.iter().any(|file| !known.contains(&file.path)))
    }

    fn open(
        &self,
        subtask: usize,
        parallelism: usize,
        projection: &[usize],
        restored: Option<&[SplitPosition]>,
    ) -> Result<Box<dyn SourceReader>> {
        let mut splits = restored.unwrap_or(&[]).iter().map(Split::restore).collect::<Result<Vec<_>>>()?;
        let bounded = self.bounded();
        // After a restart files may be gone that have been read to their end.
        let files = if bounded && restored.is_none() {
            self.plan.listing.existing_files()?
        } else {
            self.plan.listing.files()?
        };
        let sizes: HashMap<&str, u64> = files.iter().map(|file| (file.path.as_str(), file.size)).collect();
        for split in &mut splits {
            split.reopen(sizes.get(split.path.as_str()).copied(), !bounded);
        }
        let known: HashSet<String> = splits.iter().map(|split| split.path.clone()).collect();
        for file in files.iter().filter(|file| !known.contains(&file.path)) {
            splits.extend(self.plan.new_splits(file, if bounded { parallelism } else { 1 }));
        }
        splits.retain(|split| owner(split, &self.plan, parallelism) == subtask);
        splits.sort_by(|a, b| (&a.path, a.start).cmp(&(&b.path, b.start)));
        Ok(Box::new(FileReader::new(
            Arc::clone(&self.plan),
            projection.to_vec(),
            splits,
            self.monitor_interval,
            (subtask, parallelism),
        )?))
    }
}
