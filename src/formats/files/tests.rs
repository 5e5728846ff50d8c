//! What every format of whole files does alike: what is written is read again, from every position, in ranges, and
//! damaged.

use std::sync::Arc;

use super::BlockPosition;
use crate::formats::testing::{
    ALL_TYPES, Columns, all_types, batch, file, lines, open_file, read_file, rest, schema, wanted,
};
use crate::formats::{FORMATS, MakeDecoder, Wanted};
use crate::types::SqlType;

/// The formats of whole files.
fn formats() -> impl Iterator<Item = &'static str> {
    FORMATS.iter().filter(|format| matches!(format.decoder, MakeDecoder::OfFiles(_))).map(|format| format.name)
}

fn from(offset: u64) -> BlockPosition {
    BlockPosition { offset, rows: 0 }
}

/// 100 rows in blocks of less.
fn hundred(format: &str) -> (Columns, Arc<Vec<u8>>, Vec<String>) {
    let columns = vec![("id", SqlType::Int), ("text", SqlType::STRING)];
    // In Parquet a batch above the size of a row group is one, in Avro every so many bytes begin a block.
    let (given, length): (&[(&str, &str)], _) = match format {
        "parquet" => (&[("block.size", "1")], 1),
        _ => (&[("codec", "null")], 2_500),
    };
    let mut batches = Vec::new();
    for from in (0..100).step_by(30) {
        let line = |id| format!("{{\"id\":{id},\"text\":\"{id}{}\"}}\n", "t".repeat(length));
        let text: String = (from..(from + 30).min(100)).map(line).collect();
        batches.push(batch("json", &columns, &[], &text));
    }
    let bytes = Arc::new(file(format, given, &batches).unwrap());
    let rows = batches.iter().flat_map(lines).collect();
    (columns, bytes, rows)
}

#[test]
fn all_types_come_back() {
    for format in formats() {
        let columns = all_types();
        let rows = batch("json", &columns, &[], ALL_TYPES);
        let bytes = Arc::new(file(format, &[], std::slice::from_ref(&rows)).unwrap());
        assert_eq!(read_file(format, &bytes, wanted(&columns)).unwrap(), lines(&rows), "{format}");
    }
}

#[test]
fn a_restart_at_every_position_reads_the_rest() {
    for format in formats() {
        let (columns, bytes, rows) = hundred(format);
        let whole = 0..bytes.len() as u64;
        let mut reader = open_file(format, &bytes, wanted(&columns), whole.clone(), from(0)).unwrap();
        let (mut seen, mut blocks) = (0, std::collections::BTreeSet::new());
        loop {
            let at = reader.position();
            blocks.insert(at.offset);
            // Also in the middle of a block whose rows come as one batch: every block here has more than one.
            let into = usize::from(at.rows == 0 && seen < 100);
            for more in 0..=into {
                let at = BlockPosition { rows: at.rows + more as u64, ..at };
                let mut again = open_file(format, &bytes, wanted(&columns), whole.clone(), at).unwrap();
                assert_eq!(rest(&mut *again).unwrap(), rows[seen + more..], "{format}: {at:?}");
            }
            match reader.read().unwrap() {
                Some(batch) => seen += batch.len(),
                None => break,
            }
        }
        assert_eq!(seen, 100);
        assert!(blocks.len() >= 4, "{format}: {blocks:?}");
    }
}

#[test]
fn ranges_share_out_the_blocks() {
    for format in formats() {
        let (columns, bytes, rows) = hundred(format);
        let size = bytes.len() as u64;
        for parts in [1, 2, 3, 7, 50] {
            let length = size.div_ceil(parts);
            let mut all = Vec::new();
            for start in (0..size).step_by(length as usize) {
                let range = start..(start + length).min(size);
                all.extend(
                    rest(&mut *open_file(format, &bytes, wanted(&columns), range, from(start)).unwrap()).unwrap(),
                );
            }
            assert_eq!(all, rows, "{format} in {parts} parts");
        }
    }
}

#[test]
fn columns_are_found_by_name() {
    for format in formats() {
        let (_, bytes, _) = hundred(format);
        let columns = [("nothing", SqlType::Int), ("id", SqlType::BigInt)];
        assert_eq!(read_file(format, &bytes, wanted(&columns)).unwrap()[99], "+I[null, 99]");
        let none = Wanted { schema: schema(&columns), projection: Vec::new() };
        assert_eq!(read_file(format, &bytes, none).unwrap().len(), 100);
        let error = read_file(format, &bytes, wanted(&[("text", SqlType::Int)])).unwrap_err();
        assert!(error.message().starts_with("column 'text' is ") && error.message().ends_with("INT in the table"));
        let required = |name: &str| Wanted {
            schema: Arc::new(arrow::datatypes::Schema::new(vec![SqlType::Int.to_field(name, false)])),
            projection: vec![0],
        };
        let error = read_file(format, &bytes, required("nothing")).unwrap_err();
        assert_eq!(error.message(), "the file has no column 'nothing', and the column is NOT NULL");
    }
}

#[test]
fn a_cut_file_is_an_error_at_every_length() {
    for format in formats() {
        let rows = batch("json", &all_types(), &[], ALL_TYPES);
        let bytes = file(format, &[], std::slice::from_ref(&rows)).unwrap();
        let header = bytes.len() - file(format, &[], &[rows.clone(), rows]).unwrap().len().abs_diff(bytes.len());
        for length in 0..bytes.len() {
            let cut = Arc::new(bytes[..length].to_vec());
            match read_file(format, &cut, wanted(&all_types())) {
                Err(error) => assert_eq!(error.kind(), crate::error::ErrorKind::Data, "{format} {length}: {error}"),
                // Avro's header alone is a file without rows.
                Ok(rows) => {
                    assert!(format == "avro" && rows.is_empty() && length <= header, "{format} {length}: {rows:?}")
                }
            }
        }
    }
}
