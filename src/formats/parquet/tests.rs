//! What is written is read again: all types, from every position, in ranges, and damaged.

use std::sync::Arc;

use crate::changelog::ChangeBatch;
use crate::error::Result;
use crate::formats::files::{BlockPosition, BlockReader, FileToRead};
use crate::formats::testing::{batch, lines, named, options, schema, unnamed};
use crate::formats::{MakeDecoder, Wanted, find};
use crate::types::{SqlType, TimeZone};

type Columns = Vec<(&'static str, SqlType)>;

fn all_types() -> Columns {
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

const ROWS: &str = r#"{"yes":true,"tiny":-1,"small":2,"number":3,"big":-4,"single":1.5,"double":2.5,"little":1.25,"middle":-99.0001,"great":123456789012345678901234.5,"text":"é\n","short":"abc","bytes":"AQL/","day":"2026-01-02","hour":"10:11:12","finer":"10:11:12.345","second":"1969-12-31 23:59:59","milli":"2026-01-02 10:11:12.345","nano":"2026-01-02 10:11:12.123456789","instant":"2026-01-02 10:11:12.345Z","list":["1969-12-31 23:59:59.999",null],"map":{"k":1,"l":null},"row":{"a":7,"b":["x",null]}}
{}
{"list":[],"map":{},"row":{}}
"#;

/// The file of `rows`, with a row group a batch.
fn file(given: &[(&str, &str)], batches: &[ChangeBatch]) -> Result<Vec<u8>> {
    let mut encoder = (find("parquet").unwrap().encoder)(&options(given), batches[0].schema())?;
    let mut bytes = Vec::new();
    for batch in batches {
        encoder.encode(batch, &mut bytes)?;
    }
    encoder.finish(&mut bytes)?;
    Ok(bytes)
}

fn open(
    bytes: &Arc<Vec<u8>>,
    wanted: Wanted,
    range: std::ops::Range<u64>,
    at: BlockPosition,
) -> Result<Box<dyn BlockReader>> {
    let MakeDecoder::OfFiles(open) = find("parquet").unwrap().decoder else { panic!("it is a format of files") };
    let given = options(&[("batch-size", "7")]);
    let bytes: Arc<Vec<u8>> = Arc::clone(bytes);
    open(FileToRead { options: &given, wanted, bytes, range, at, zone: TimeZone::UTC })
}

fn wanted(columns: &[(&str, SqlType)]) -> Wanted {
    Wanted { schema: schema(columns), projection: (0..columns.len()).collect() }
}

fn from(offset: u64) -> BlockPosition {
    BlockPosition { offset, rows: 0 }
}

fn rest(reader: &mut dyn BlockReader) -> Result<Vec<String>> {
    let mut rows = Vec::new();
    while let Some(batch) = reader.read()? {
        rows.extend(lines(&batch));
    }
    Ok(rows)
}

fn read(bytes: &Arc<Vec<u8>>, wanted: Wanted) -> Result<Vec<String>> {
    rest(&mut *open(bytes, wanted, 0..bytes.len() as u64, from(0))?)
}

#[test]
fn all_types_come_back() {
    let rows = batch("json", &all_types(), &[], ROWS);
    for given in [
        vec![],
        vec![("compression", "UNCOMPRESSED"), ("enable.dictionary", "false")],
        vec![("compression", "zstd"), ("writer.version", "PARQUET_2_0")],
        vec![("compression", "gzip")],
        vec![("compression", "lz4_raw")],
        vec![("compression", "lz4")],
    ] {
        let bytes = Arc::new(file(&given, std::slice::from_ref(&rows)).unwrap());
        assert_eq!(read(&bytes, wanted(&all_types())).unwrap(), lines(&rows), "{given:?}");
    }
}

#[test]
fn timestamps_are_written_in_the_unit_asked_for() {
    let columns = [("at", SqlType::Timestamp(9))];
    let row = batch("json", &columns, &[], "{\"at\":\"1969-12-31 23:59:59.123456789\"}\n");
    for (unit, expected) in [("millis", ".123"), ("micros", ".123456"), ("nanos", ".123456789")] {
        let bytes = Arc::new(file(&[("timestamp.time.unit", unit)], std::slice::from_ref(&row)).unwrap());
        assert_eq!(read(&bytes, wanted(&columns)).unwrap(), [format!("+I[1969-12-31T23:59:59{expected}]")]);
    }
    let columns = [("at", SqlType::Timestamp(3))];
    let row = batch("json", &columns, &[], "{\"at\":\"9999-12-31 23:59:59.123\"}\n");
    let error = file(&[("timestamp.time.unit", "nanos")], std::slice::from_ref(&row)).unwrap_err();
    assert!(error.message().contains("column 'at'") && error.message().contains("out of range"), "{error}");
}

/// 100 rows in row groups of at most 30.
fn hundred() -> (Columns, Arc<Vec<u8>>, Vec<String>) {
    let columns = vec![("id", SqlType::Int), ("text", SqlType::STRING)];
    let mut batches = Vec::new();
    for from in (0..100).step_by(30) {
        let text: String =
            (from..(from + 30).min(100)).map(|id| format!("{{\"id\":{id},\"text\":\"t{id}\"}}\n")).collect();
        batches.push(batch("json", &columns, &[], &text));
    }
    // Every batch is above the size of a row group.
    let bytes = Arc::new(file(&[("block.size", "1")], &batches).unwrap());
    let rows = batches.iter().flat_map(lines).collect();
    (columns, bytes, rows)
}

#[test]
fn a_restart_at_every_position_reads_the_rest() {
    let (columns, bytes, rows) = hundred();
    let whole = 0..bytes.len() as u64;
    let mut reader = open(&bytes, wanted(&columns), whole.clone(), from(0)).unwrap();
    let (mut seen, mut blocks) = (0, std::collections::BTreeSet::new());
    loop {
        let at = reader.position();
        blocks.insert(at.offset);
        let mut again = open(&bytes, wanted(&columns), whole.clone(), at).unwrap();
        assert_eq!(rest(&mut *again).unwrap(), rows[seen..]);
        match reader.read().unwrap() {
            Some(batch) => seen += batch.len(),
            None => break,
        }
    }
    assert_eq!(seen, 100);
    assert_eq!(blocks.len(), 4, "{blocks:?}");
}

#[test]
fn ranges_share_out_the_row_groups() {
    let (columns, bytes, rows) = hundred();
    for length in [1, 100, 333, 10_000] {
        let mut parts = Vec::new();
        for start in (0..bytes.len() as u64).step_by(length) {
            let range = start..start + length as u64;
            parts.extend(rest(&mut *open(&bytes, wanted(&columns), range, from(start)).unwrap()).unwrap());
        }
        assert_eq!(parts, rows, "ranges of {length}");
    }
}

#[test]
fn columns_are_found_by_name() {
    let (_, bytes, _) = hundred();
    let columns = [("nothing", SqlType::Int), ("id", SqlType::BigInt)];
    assert_eq!(read(&bytes, wanted(&columns)).unwrap()[99], "+I[null, 99]");
    let none = Wanted { schema: schema(&columns), projection: Vec::new() };
    assert_eq!(read(&bytes, none).unwrap().len(), 100);
    let error = read(&bytes, wanted(&[("text", SqlType::Int)])).unwrap_err();
    assert_eq!(error.message(), "column 'text' is STRING in the file, and INT in the table");
    let required = |name: &str, nullable| Wanted {
        schema: Arc::new(arrow::datatypes::Schema::new(vec![SqlType::Int.to_field(name, nullable)])),
        projection: vec![0],
    };
    let error = read(&bytes, required("nothing", false)).unwrap_err();
    assert_eq!(error.message(), "the file has no column 'nothing', and the column is NOT NULL");
    let nulls = batch("json", &[("id", SqlType::Int)], &[], "{\"id\":1}\n{}\n");
    let nulls = Arc::new(file(&[], &[nulls]).unwrap());
    let error = read(&nulls, required("id", false)).unwrap_err();
    assert_eq!(error.message(), "row group 0: column 'id': row 1 is NULL, and the column is NOT NULL");
}

#[test]
fn a_cut_file_is_an_error_at_every_length() {
    let rows = batch("json", &all_types(), &[], ROWS);
    let bytes = file(&[], std::slice::from_ref(&rows)).unwrap();
    for length in 0..bytes.len() {
        let cut = Arc::new(bytes[..length].to_vec());
        let error = read(&cut, wanted(&all_types())).unwrap_err();
        assert_eq!(error.kind(), crate::error::ErrorKind::Data, "{length}: {error}");
    }
}

#[test]
fn options_are_checked() {
    let rows = batch("json", &[("id", SqlType::Int)], &[], "{\"id\":1}\n");
    for (name, value, expected) in [
        ("compression", "brotly", "'parquet.compression'"),
        ("timestamp.time.unit", "hours", "'parquet.timestamp.time.unit'"),
        ("write.int64.timestamp", "false", "'parquet.write.int64.timestamp'"),
        ("batch-size", "0", "'parquet.batch-size'"),
        ("block.size", "0", "'parquet.block.size'"),
        ("writer.version", "3", "'parquet.writer.version'"),
    ] {
        let error = file(&[(name, value)], std::slice::from_ref(&rows)).unwrap_err();
        assert!(error.message().contains(expected) && error.hint_text().is_some(), "{error}");
    }
}
