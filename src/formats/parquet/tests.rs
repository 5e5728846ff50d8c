//! What is particular to Parquet: its codecs, units and options.

use std::sync::Arc;

use crate::formats::Wanted;
use crate::formats::testing::{ALL_TYPES, all_types, batch, file, lines, read_file, wanted};
use crate::types::SqlType;

#[test]
fn all_types_come_back() {
    let rows = batch("json", &all_types(), &[], ALL_TYPES);
    for given in [
        vec![],
        vec![("compression", "UNCOMPRESSED"), ("enable.dictionary", "false")],
        vec![("compression", "zstd"), ("writer.version", "PARQUET_2_0")],
        vec![("compression", "gzip")],
        vec![("compression", "lz4_raw")],
        vec![("compression", "lz4")],
    ] {
        let bytes = Arc::new(file("parquet", &given, std::slice::from_ref(&rows)).unwrap());
        assert_eq!(read_file("parquet", &bytes, wanted(&all_types())).unwrap(), lines(&rows), "{given:?}");
    }
}

#[test]
fn timestamps_are_written_in_the_unit_asked_for() {
    let columns = [("at", SqlType::Timestamp(9))];
    let row = batch("json", &columns, &[], "{\"at\":\"1969-12-31 23:59:59.123456789\"}\n");
    for (unit, expected) in [("millis", ".123"), ("micros", ".123456"), ("nanos", ".123456789")] {
        let bytes = Arc::new(file("parquet", &[("timestamp.time.unit", unit)], std::slice::from_ref(&row)).unwrap());
        assert_eq!(
            read_file("parquet", &bytes, wanted(&columns)).unwrap(),
            [format!("+I[1969-12-31T23:59:59{expected}]")]
        );
    }
    let columns = [("at", SqlType::Timestamp(3))];
    let row = batch("json", &columns, &[], "{\"at\":\"9999-12-31 23:59:59.123\"}\n");
    let error = file("parquet", &[("timestamp.time.unit", "nanos")], std::slice::from_ref(&row)).unwrap_err();
    assert!(error.message().contains("column 'at'") && error.message().contains("out of range"), "{error}");
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
        let error = file("parquet", &[(name, value)], std::slice::from_ref(&rows)).unwrap_err();
        assert!(error.message().contains(expected) && error.hint_text().is_some(), "{error}");
    }
}

#[test]
fn a_dictionary_larger_than_what_follows_it_is_read() {
    let columns = [("id", SqlType::Int), ("text", SqlType::STRING)];
    let lines: String =
        (0..2_000).map(|id| format!("{{\"id\":{id},\"text\":\"{id} {}\"}}\n", "x".repeat(50))).collect();
    let rows = batch("json", &columns, &[], &lines);
    let bytes = Arc::new(file("parquet", &[("compression", "UNCOMPRESSED")], &[rows]).unwrap());
    assert_eq!(read_file("parquet", &bytes, wanted(&columns)).unwrap().len(), 2_000);
}

#[test]
fn a_null_that_may_not_be_names_its_row() {
    let nulls = batch("json", &[("id", SqlType::Int)], &[], "{\"id\":1}\n{}\n");
    let nulls = Arc::new(file("parquet", &[], &[nulls]).unwrap());
    let required = Wanted {
        schema: Arc::new(arrow::datatypes::Schema::new(vec![SqlType::Int.to_field("id", false)])),
        projection: vec![0],
    };
    let error = read_file("parquet", &nulls, required).unwrap_err();
    assert_eq!(error.message(), "row group 0: column 'id': row 1 is NULL, and the column is NOT NULL");
}

#[test]
fn damage_is_told_with_its_row_group() {
    let rows = batch("json", &[("id", SqlType::Int)], &[], "{\"id\":1}\n{\"id\":2}\n");
    let given = [("block.size", "1"), ("compression", "UNCOMPRESSED")];
    let bytes = file("parquet", &given, &[rows.clone(), rows]).unwrap();
    let wanted = || wanted(&[("id", SqlType::Int)]);
    // The first page's header stands right after the file's magic bytes.
    let mut changed = bytes.clone();
    changed[4..20].fill(0xff);
    let error = read_file("parquet", &Arc::new(changed), wanted()).unwrap_err();
    assert!(error.message().starts_with("row group 0: ") && !error.message().contains("Parquet error"), "{error}");
    let mut changed = bytes;
    let end = changed.len();
    changed[end - 1] = b'2';
    let error = read_file("parquet", &Arc::new(changed), wanted()).unwrap_err();
    assert!(error.message().contains("Corrupt footer") && error.hint_text().is_some(), "{error}");
}
