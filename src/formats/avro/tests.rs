//! What is particular to Avro: schemas of others, codecs, the schema written, and damage.

use std::sync::Arc;

use serde_json::{Value, json};

use super::cursor::{write_bytes, write_long};
use crate::formats::testing::{ALL_TYPES, all_types, batch, file, lines, named, read_file, unnamed, wanted};
use crate::types::SqlType;

/// A file of one block.
fn container(schema: &Value, codec: &str, rows: i64, block: &[u8]) -> Arc<Vec<u8>> {
    let mut bytes = super::container::MAGIC.to_vec();
    write_long(2, &mut bytes);
    for (key, value) in [("avro.codec", codec), ("avro.schema", &schema.to_string())] {
        write_bytes(key.as_bytes(), &mut bytes);
        write_bytes(value.as_bytes(), &mut bytes);
    }
    write_long(0, &mut bytes);
    bytes.extend([7; 16]);
    write_long(rows, &mut bytes);
    write_bytes(block, &mut bytes);
    bytes.extend([7; 16]);
    Arc::new(bytes)
}

fn record(fields: Value) -> Value {
    json!({ "type": "record", "name": "r", "fields": fields })
}

#[test]
fn every_codec_comes_back() {
    let rows = batch("json", &all_types(), &[], ALL_TYPES);
    for codec in ["null", "deflate", "snappy", "zstandard"] {
        let bytes = Arc::new(file("avro", &[("codec", codec)], std::slice::from_ref(&rows)).unwrap());
        assert_eq!(read_file("avro", &bytes, wanted(&all_types())).unwrap(), lines(&rows), "{codec}");
    }
}

#[test]
fn the_schema_is_the_one_flink_derives() {
    let columns = [
        ("a", SqlType::Int),
        ("at", SqlType::Timestamp(3)),
        ("d", SqlType::Decimal(5, 2)),
        ("m", SqlType::Map(unnamed(SqlType::STRING), unnamed(SqlType::Date))),
        ("r", SqlType::Row(vec![named("x", SqlType::BigInt)])),
    ];
    let schema = |legacy| {
        let rows = batch("json", &columns, &[], "{}\n");
        let schema = rows.schema();
        let fields: Vec<_> = schema.fields().iter().map(AsRef::as_ref).collect();
        super::derive::schema(&fields, legacy).unwrap().0
    };
    let expected = json!({
        "type": "record",
        "name": "org.apache.flink.avro.generated.record",
        "fields": [
            { "name": "a", "type": ["null", "int"], "default": null },
            { "name": "at", "type": ["null", { "type": "long", "logicalType": "timestamp-millis" }], "default": null },
            {
                "name": "d",
                "type": ["null", { "type": "bytes", "logicalType": "decimal", "precision": 5, "scale": 2 }],
                "default": null
            },
            {
                "name": "m",
                "type": ["null", { "type": "map", "values": ["null", { "type": "int", "logicalType": "date" }] }],
                "default": null
            },
            {
                "name": "r",
                "type": ["null", {
                    "type": "record",
                    "name": "org.apache.flink.avro.generated.record_r",
                    "fields": [{ "name": "x", "type": ["null", "long"], "default": null }]
                }],
                "default": null
            }
        ]
    });
    assert_eq!(schema(true), expected);
    assert_eq!(schema(false)["fields"][1]["type"][1]["logicalType"], "local-timestamp-millis");
}

#[test]
fn fields_are_found_by_name_and_others_passed_over() {
    let schema = record(json!([
        { "name": "list", "type": { "type": "array", "items": ["null", "r", "string"] } },
        { "name": "kind", "type": { "type": "enum", "name": "kinds", "symbols": ["A", "B"] } },
        { "name": "number", "type": "int" },
        { "name": "hash", "type": { "type": "fixed", "name": "hash", "size": 2 } },
        { "name": "money", "type": { "type": "fixed", "name": "money", "size": 3, "logicalType": "decimal", "precision": 6, "scale": 2 } }
    ]));
    let mut block = Vec::new();
    // A part with its length in bytes, and one without: "x" in each.
    write_long(-1, &mut block);
    write_long(3, &mut block);
    write_long(2, &mut block);
    write_bytes(b"x", &mut block);
    write_long(2, &mut block);
    write_long(2, &mut block);
    write_bytes(b"x", &mut block);
    write_long(0, &mut block);
    write_long(0, &mut block);
    // The symbol B, -5, two bytes, -1.50.
    write_long(1, &mut block);
    write_long(-5, &mut block);
    block.extend([1, 2]);
    block.extend([0xff, 0xff, 0x6a]);
    let bytes = container(&schema, "null", 1, &block);
    let columns = [
        ("money", SqlType::Decimal(8, 3)),
        ("number", SqlType::Decimal(12, 2)),
        ("kind", SqlType::STRING),
        ("hash", SqlType::BYTES),
        ("later", SqlType::Int),
    ];
    assert_eq!(read_file("avro", &bytes, wanted(&columns)).unwrap(), ["+I[-1.500, -5.00, B, [1, 2], null]"]);
    let unfit = read_file("avro", &bytes, wanted(&[("list", SqlType::Array(unnamed(SqlType::STRING)))])).unwrap_err();
    assert_eq!(unfit.message(), "column 'list' is array in the file, and ARRAY<STRING> in the table");
}

#[test]
fn a_union_with_null_fills_a_column_that_is_not_null() {
    let schema = record(json!([{ "name": "a", "type": ["null", "int"] }]));
    let required = || crate::formats::Wanted {
        schema: Arc::new(arrow::datatypes::Schema::new(vec![SqlType::Int.to_field("a", false)])),
        projection: vec![0],
    };
    let bytes = container(&schema, "null", 1, &[2, 14]);
    assert_eq!(read_file("avro", &bytes, required()).unwrap(), ["+I[7]"]);
    let bytes = container(&schema, "null", 2, &[2, 14, 0]);
    let error = read_file("avro", &bytes, required()).unwrap_err();
    assert!(error.message().ends_with("row 1: 'null' stands for NULL, and the column is NOT NULL"), "{error}");
}

#[test]
fn damage_is_told_with_its_place() {
    let schema = record(json!([{ "name": "a", "type": "long" }]));
    let columns = [("a", SqlType::BigInt)];
    let message = |rows: i64, block: &[u8]| {
        let bytes = container(&schema, "null", rows, block);
        read_file("avro", &bytes, wanted(&columns)).unwrap_err().message().to_string()
    };
    assert!(message(2, &[2]).contains("block at offset "));
    assert!(message(2, &[2]).ends_with("row 1: the bytes end within a value"));
    assert!(message(1, &[2, 4]).ends_with("bytes are left over after its last row"));
    assert!(message(i64::MAX, &[2]).contains("rows do not fit its 1 bytes"));
    assert!(message(-1, &[2]).ends_with("it has -1 rows and 1 bytes"));
    let bytes = container(&schema, "bzip2", 1, &[2]);
    assert!(read_file("avro", &bytes, wanted(&columns)).unwrap_err().message().contains("'bzip2'"));
    let mut bytes = container(&schema, "null", 1, &[2]).to_vec();
    *bytes.last_mut().unwrap() = 8;
    let error = read_file("avro", &Arc::new(bytes), wanted(&columns)).unwrap_err();
    assert!(error.message().ends_with("the marker after it is not the file's"), "{error}");
}

#[test]
fn a_type_without_bytes_is_not_repeated_for_ever() {
    let schema = record(json!([{ "name": "a", "type": { "type": "array", "items": "null" } }]));
    let mut block = Vec::new();
    write_long(1 << 40, &mut block);
    write_long(0, &mut block);
    let bytes = container(&schema, "null", 1, &block);
    for columns in [vec![("a", SqlType::Array(unnamed(SqlType::Int)))], vec![("other", SqlType::Int)]] {
        let error = read_file("avro", &bytes, wanted(&columns)).unwrap_err();
        assert!(error.message().contains("do not fit the block"), "{error}");
    }
}

#[test]
fn a_small_block_does_not_become_a_large_one() {
    let schema = record(json!([{ "name": "a", "type": "bytes" }]));
    let zeros = vec![0u8; 300 << 20];
    let packed = zstd::stream::encode_all(&zeros[..], 0).unwrap();
    let bytes = container(&schema, "zstandard", 1, &packed);
    let error = read_file("avro", &bytes, wanted(&[("a", SqlType::BYTES)])).unwrap_err();
    assert!(error.message().ends_with("it is too large when decompressed"), "{error}");
}

#[test]
fn what_has_no_form_is_refused() {
    let fails = |column: (&str, SqlType), given: &[(&str, &str)]| {
        let rows = batch("json", &[column], &[], "{}\n");
        file("avro", given, &[rows]).unwrap_err().message().to_string()
    };
    assert!(fails(("a b", SqlType::Int), &[]).contains("column 'a b'"));
    let numbers = SqlType::Map(unnamed(SqlType::Int), unnamed(SqlType::Int));
    assert!(fails(("m", numbers), &[]).contains("keys of its maps are STRING"));
    assert!(fails(("a", SqlType::Int), &[("codec", "xz")]).contains("'avro.codec'"));
    assert!(fails(("a", SqlType::Int), &[("encoding", "json")]).contains("'avro.encoding'"));
}
