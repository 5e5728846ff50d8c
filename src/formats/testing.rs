//! What the tests of all formats share: tables from SQL types, bytes in, printed rows out.

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow::datatypes::{Schema, SchemaRef};

use super::{BlockPosition, BlockReader, FileToRead, MakeDecoder, View, Wanted, find};
use crate::catalog::Options;
use crate::changelog::ChangeBatch;
use crate::error::Result;
use crate::types::{RowField, SqlType, TimeZone};

pub(super) fn schema(columns: &[(&str, SqlType)]) -> SchemaRef {
    Arc::new(Schema::new(columns.iter().map(|(name, sql_type)| sql_type.to_field(name, true)).collect::<Vec<_>>()))
}

pub(super) fn options(given: &[(&str, &str)]) -> Options {
    Options(given.iter().map(|(name, value)| (name.to_string(), value.to_string())).collect::<BTreeMap<_, _>>())
}

pub(super) fn unnamed(sql_type: SqlType) -> Box<RowField> {
    Box::new(RowField::unnamed(sql_type, true))
}

pub(super) fn named(name: &str, sql_type: SqlType) -> RowField {
    RowField { name: name.to_string(), sql_type, nullable: true }
}

/// The rows as lines such as `+I[1, x]`.
pub(super) fn lines(batch: &ChangeBatch) -> Vec<String> {
    let rows = batch.rows();
    let fields = rows.schema_ref().fields().iter().zip(rows.columns());
    let views: Vec<View<'_>> = fields.map(|(field, column)| View::new(field, column).unwrap()).collect();
    (0..batch.len())
        .map(|row| {
            let cell = |view: &View<'_>| {
                let mut text = Vec::new();
                view.write_java(row, &mut text);
                String::from_utf8(text).unwrap()
            };
            format!("{}[{}]", batch.kind(row), views.iter().map(cell).collect::<Vec<_>>().join(", "))
        })
        .collect()
}

/// Decodes `input` fed in pieces of `piece` bytes. Gives the rows and the number of rows skipped.
pub(super) fn decode_in_pieces(
    format: &str,
    given: &[(&str, &str)],
    wanted: Wanted,
    input: &[u8],
    piece: usize,
) -> Result<(Vec<String>, u64)> {
    let mut decoder = find(format).unwrap().record_decoder(&options(given), wanted)?;
    let mut rows = Vec::new();
    let (mut from, mut to) = (0, 0);
    loop {
        let end = to == input.len();
        let used = decoder.decode(&input[from..to], end)?;
        from += used;
        if decoder.pending_rows() > 0 {
            rows.extend(lines(&decoder.flush()?));
        } else if end && used == 0 {
            assert_eq!(from, to, "bytes were left over");
            return Ok((rows, decoder.skipped()));
        }
        if used == 0 {
            to = (to + piece).min(input.len());
        }
    }
}

/// Decodes all columns, all at once and byte by byte, which must agree.
pub(super) fn decode(
    format: &str,
    columns: &[(&str, SqlType)],
    given: &[(&str, &str)],
    input: &[u8],
) -> Result<(Vec<String>, u64)> {
    let wanted = || Wanted { schema: schema(columns), projection: (0..columns.len()).collect() };
    let at_once = decode_in_pieces(format, given, wanted(), input, input.len().max(1));
    let byte_by_byte = decode_in_pieces(format, given, wanted(), input, 1);
    match (&at_once, &byte_by_byte) {
        (Ok(a), Ok(b)) => assert_eq!(a, b),
        (Err(a), Err(b)) => assert_eq!(a.to_string(), b.to_string()),
        (a, b) => panic!("at once {a:?}, byte by byte {b:?}"),
    }
    at_once
}

/// The rows of a decoding that must succeed without skipping.
pub(super) fn rows(format: &str, columns: &[(&str, SqlType)], given: &[(&str, &str)], input: &str) -> Vec<String> {
    let (rows, skipped) = decode(format, columns, given, input.as_bytes()).unwrap();
    assert_eq!(skipped, 0);
    rows
}

/// The message of a decoding that must fail.
pub(super) fn message(format: &str, columns: &[(&str, SqlType)], given: &[(&str, &str)], input: &[u8]) -> String {
    decode(format, columns, given, input).unwrap_err().message().to_string()
}

/// What the format writes for `batch`.
pub(super) fn encode(format: &str, given: &[(&str, &str)], batch: &ChangeBatch) -> Result<String> {
    let mut to = Vec::new();
    (find(format).unwrap().encoder)(&options(given), batch.schema())?.encode(batch, &mut to)?;
    Ok(String::from_utf8(to).unwrap())
}

/// Decodes `input` into one batch.
pub(super) fn batch(format: &str, columns: &[(&str, SqlType)], given: &[(&str, &str)], input: &str) -> ChangeBatch {
    let wanted = Wanted { schema: schema(columns), projection: (0..columns.len()).collect() };
    let mut decoder = find(format).unwrap().record_decoder(&options(given), wanted).unwrap();
    assert_eq!(decoder.decode(input.as_bytes(), true).unwrap(), input.len());
    decoder.flush().unwrap()
}

pub(super) type Columns = Vec<(&'static str, SqlType)>;

/// A column of every type a file can hold.
pub(super) fn all_types() -> Columns {
    vec![
        ("yes", SqlType::Boolean),
        ("tiny", SqlType::TinyInt),
        ("small", SqlType::SmallInt),
        ("number", SqlType::Int),
        ("big", SqlType::BigInt),
        ("single", SqlType::Float),
        ("double", SqlType::Double),
        ("little", SqlType::Decimal(5, 2)),
        ("middle", SqlType::Decimal(18, 4)),
        ("great", SqlType::Decimal(38, 10)),
        ("text", SqlType::STRING),
        ("short", SqlType::Char(3)),
        ("bytes", SqlType::BYTES),
        ("day", SqlType::Date),
        ("hour", SqlType::Time(0)),
        ("finer", SqlType::Time(3)),
        ("second", SqlType::Timestamp(0)),
        ("milli", SqlType::Timestamp(3)),
        ("nano", SqlType::Timestamp(9)),
        ("instant", SqlType::TimestampLtz(3)),
        ("list", SqlType::Array(unnamed(SqlType::Timestamp(3)))),
        ("map", SqlType::Map(unnamed(SqlType::STRING), unnamed(SqlType::Int))),
        ("row", SqlType::Row(vec![named("a", SqlType::Int), named("b", SqlType::Array(unnamed(SqlType::STRING)))])),
    ]
}

/// Rows of [`all_types`] as JSON: full, NULL and empty.
pub(super) const ALL_TYPES: &str = r#"{"yes":true,"tiny":-1,"small":2,"number":3,"big":-4,"single":1.5,"double":2.5,"little":1.25,"middle":-99.0001,"great":123456789012345678901234.5,"text":"é\n","short":"abc","bytes":"AQL/","day":"2026-01-02","hour":"10:11:12","finer":"10:11:12.345","second":"1969-12-31 23:59:59","milli":"2026-01-02 10:11:12.345","nano":"2026-01-02 10:11:12.123456789","instant":"2026-01-02 10:11:12.345Z","list":["1969-12-31 23:59:59.999",null],"map":{"k":1,"l":null},"row":{"a":7,"b":["x",null]}}
{}
{"list":[],"map":{},"row":{}}
"#;

/// The file of `batches`; in Parquet each may be a row group.
pub(super) fn file(format: &str, given: &[(&str, &str)], batches: &[ChangeBatch]) -> Result<Vec<u8>> {
    let mut encoder = (find(format).unwrap().encoder)(&options(given), batches[0].schema())?;
    let mut bytes = Vec::new();
    for batch in batches {
        encoder.encode(batch, &mut bytes)?;
    }
    encoder.finish(&mut bytes)?;
    Ok(bytes)
}

pub(super) fn open_file(
    format: &str,
    bytes: &Arc<Vec<u8>>,
    wanted: Wanted,
    range: std::ops::Range<u64>,
    at: BlockPosition,
) -> Result<Box<dyn BlockReader>> {
    let MakeDecoder::OfFiles(open) = find(format).unwrap().decoder else { panic!("{format} is a format of files") };
    let given = match format {
        "parquet" => options(&[("batch-size", "7")]),
        _ => options(&[]),
    };
    let bytes: Arc<Vec<u8>> = Arc::clone(bytes);
    open(FileToRead { options: &given, wanted, bytes, range, at, zone: TimeZone::UTC })
}

pub(super) fn wanted(columns: &[(&str, SqlType)]) -> Wanted {
    Wanted { schema: schema(columns), projection: (0..columns.len()).collect() }
}

/// What a reader has left to deliver.
pub(super) fn rest(reader: &mut dyn BlockReader) -> Result<Vec<String>> {
    let mut rows = Vec::new();
    while let Some(batch) = reader.read()? {
        rows.extend(lines(&batch));
    }
    Ok(rows)
}

/// All rows of a file.
pub(super) fn read_file(format: &str, bytes: &Arc<Vec<u8>>, wanted: Wanted) -> Result<Vec<String>> {
    rest(&mut *open_file(format, bytes, wanted, 0..bytes.len() as u64, BlockPosition { offset: 0, rows: 0 })?)
}
