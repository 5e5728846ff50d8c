//! The options of the Parquet format: Flink's own and those of Parquet's writer that Flink hands through.

use ::parquet::basic::{Compression, GzipLevel, ZstdLevel};
use ::parquet::file::properties::WriterVersion;
use arrow::datatypes::TimeUnit;

use crate::catalog::{DeclaredOption, OptionKind, Options};
use crate::error::{Error, Result};
use crate::limits::BATCH_ROWS;

const fn option(
    name: &'static str,
    kind: OptionKind,
    default: Option<&'static str>,
    help: &'static str,
) -> DeclaredOption {
    DeclaredOption { name, kind, default, required: false, help }
}

/// What `parquet` can be told.
pub(super) const OPTIONS: &[DeclaredOption] = &[
    option(
        "utc-timezone",
        OptionKind::Boolean,
        Some("false"),
        "Whether 96-bit timestamps are read as local times of UTC; else of the session's time zone.",
    ),
    option(
        "timestamp.time.unit",
        OptionKind::Text,
        Some("micros"),
        "How timestamps are written: millis, micros, nanos.",
    ),
    option("write.int64.timestamp", OptionKind::Boolean, Some("true"), "Timestamps are written as 64-bit numbers."),
    option("batch-size", OptionKind::Integer, Some("2048"), "The most rows to decode at once."),
    option("compression", OptionKind::Text, Some("SNAPPY"), "UNCOMPRESSED, SNAPPY, GZIP, ZSTD, LZ4 or LZ4_RAW."),
    option("block.size", OptionKind::Size, Some("128 MB"), "The size of a row group."),
    option("page.size", OptionKind::Size, Some("1 MB"), "The size of a page."),
    option("dictionary.page.size", OptionKind::Size, Some("1 MB"), "The size up to which a dictionary is kept."),
    option("enable.dictionary", OptionKind::Boolean, Some("true"), "Whether repeated values are kept in a dictionary."),
    option("writer.version", OptionKind::Text, Some("PARQUET_1_0"), "PARQUET_1_0 or PARQUET_2_0."),
];

/// The options as read.
#[derive(Debug, Clone)]
pub(super) struct ParquetOptions {
    pub utc: bool,
    /// The unit in which all timestamps are written; without it, the coarsest from microseconds on that loses nothing.
    pub unit: Option<TimeUnit>,
    pub batch_rows: usize,
    pub compression: Compression,
    pub block_bytes: usize,
    pub page_bytes: usize,
    pub dictionary_bytes: usize,
    pub dictionary: bool,
    pub version: WriterVersion,
}

impl ParquetOptions {
    /// Reads the options (names without `parquet.`).
    ///
    /// # Errors
    /// If a value is not one of those allowed.
    pub(super) fn read(options: &Options) -> Result<ParquetOptions> {
        if !options.boolean("write.int64.timestamp", true)? {
            return Err(Error::sql("'parquet.write.int64.timestamp' = 'false' asks for 96-bit timestamps")
                .hint("leave it out: Parquet has given them up, and every reader takes the 64-bit ones"));
        }
        let batch_rows = match options.integer("batch-size")? {
            None => BATCH_ROWS,
            Some(rows) => usize::try_from(rows).ok().filter(|rows| *rows > 0).map_or_else(
                || Err(invalid("batch-size", &rows.to_string(), "a number of rows above 0")),
                |rows| Ok(rows.min(BATCH_ROWS)),
            )?,
        };
        Ok(ParquetOptions {
            utc: options.boolean("utc-timezone", false)?,
            unit: options.get("timestamp.time.unit").map(unit).transpose()?,
            batch_rows,
            compression: compression(options.get("compression").unwrap_or("SNAPPY"))?,
            block_bytes: bytes(options, "block.size", 128 << 20)?,
            page_bytes: bytes(options, "page.size", 1 << 20)?,
            dictionary_bytes: bytes(options, "dictionary.page.size", 1 << 20)?,
            dictionary: options.boolean("enable.dictionary", true)?,
            version: match options.get("writer.version").unwrap_or("PARQUET_1_0") {
                text if text.eq_ignore_ascii_case("PARQUET_1_0") || text == "v1" => WriterVersion::PARQUET_1_0,
                text if text.eq_ignore_ascii_case("PARQUET_2_0") || text == "v2" => WriterVersion::PARQUET_2_0,
                text => return Err(invalid("writer.version", text, "PARQUET_1_0 or PARQUET_2_0")),
            },
        })
    }
}

fn unit(text: &str) -> Result<TimeUnit> {
    match text.to_ascii_lowercase().as_str() {
        "millis" => Ok(TimeUnit::Millisecond),
        "micros" => Ok(TimeUnit::Microsecond),
        "nanos" => Ok(TimeUnit::Nanosecond),
        _ => Err(invalid("timestamp.time.unit", text, "millis, micros or nanos")),
    }
}

fn compression(text: &str) -> Result<Compression> {
    Ok(match text.to_ascii_uppercase().as_str() {
        "UNCOMPRESSED" | "NONE" => Compression::UNCOMPRESSED,
        "SNAPPY" => Compression::SNAPPY,
        "GZIP" => Compression::GZIP(GzipLevel::default()),
        "ZSTD" => Compression::ZSTD(ZstdLevel::default()),
        "LZ4" => Compression::LZ4,
        "LZ4_RAW" => Compression::LZ4_RAW,
        _ => return Err(invalid("compression", text, "UNCOMPRESSED, SNAPPY, GZIP, ZSTD, LZ4 or LZ4_RAW")),
    })
}

fn bytes(options: &Options, name: &str, default: usize) -> Result<usize> {
    let given = options.size(name)?.map_or(default, |bytes| usize::try_from(bytes).unwrap_or(usize::MAX));
    if given == 0 {
        return Err(invalid(name, "0", "a size above 0, such as '128 MB'"));
    }
    Ok(given)
}

fn invalid(name: &str, text: &str, expected: &str) -> Error {
    Error::sql(format!("'{text}' is not a valid value for 'parquet.{name}'")).hint(format!("expected {expected}"))
}
