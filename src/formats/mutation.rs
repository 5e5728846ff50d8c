//! A fuzzer over the readers of all formats: valid input, changed a little from a seed, is read. Whatever it has become,
//! the answer is rows or an error that says the data is wrong, never a panic and never "report a bug"; and how the bytes
//! are cut into pieces, or which columns are wanted, makes no difference.
//!
//! `EBBFLOW_MUTATIONS=100000 cargo test --lib mutation` reads so many inputs of each format. A failure prints its format,
//! seed and input; `EBBFLOW_MUTATION_SEED=17` reads the input of that seed alone, or begins with it.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

use super::testing::{
    ALL_TYPES, Columns, all_types, batch, decode_in_pieces, encode, file, named, read_file, schema, unnamed,
};
use super::{BlockPosition, Wanted};
use crate::error::{Error, ErrorKind, Result};
use crate::types::SqlType;

/// Inputs of each format where nothing else is asked for.
const FEW: u64 = 200;

/// A format with options, and valid input of it.
struct Case {
    format: &'static str,
    given: &'static [(&'static str, &'static str)],
    columns: Columns,
    input: Vec<u8>,
}

/// What makes sense somewhere in a text, in the wrong place.
const TOKENS: &[&str] = &[
    "\"",
    "\\",
    "{",
    "}",
    "[",
    "]",
    ":",
    ",",
    "null",
    "true",
    "-",
    "1e999",
    "\\u",
    "\\ud800",
    "\n",
    "\r\n",
    "\0",
    ";",
    "99999999999999999999",
    "0.0000000001",
    "NaN",
    "\u{feff}",
    "é",
    "2026-13-40",
    "24:00:00",
    " ",
];

/// Numbers that lengths and counts like to be wrong by.
const NUMBERS: &[&[u8]] = &[
    &[0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01],
    &[0xfe, 0xff, 0xff, 0xff, 0x0f],
    &[0xff, 0xff, 0xff, 0x7f],
    &[0x00, 0x00, 0x00, 0x80],
    &[0x80, 0x80, 0x80, 0x80, 0x10],
    &[0x00],
    &[0x01],
];

fn changed(input: &[u8], is_text: bool, random: &mut StdRng) -> Vec<u8> {
    let mut bytes = input.to_vec();
    for _ in 0..random.random_range(1..=4) {
        let at = random.random_range(0..=bytes.len());
        let to = random.random_range(at..=(at + 40).min(bytes.len()));
        match random.random_range(0..9) {
            0 if at < bytes.len() => bytes[at] ^= 1 << random.random_range(0..8),
            1 if at < bytes.len() => bytes[at] = random.random(),
            2 => bytes.insert(at, random.random()),
            3 => drop(bytes.drain(at..to)),
            4 => {
                let piece = bytes[at..to].to_vec();
                let place = random.random_range(0..=bytes.len());
                bytes.splice(place..place, piece);
            }
            5 if random.random_range(0..4) == 0 => bytes.truncate(at),
            6 | 7 if is_text => {
                let token = TOKENS[random.random_range(0..TOKENS.len())];
                bytes.splice(at..if random.random() { to } else { at }, token.bytes());
            }
            6 => {
                let number = NUMBERS[random.random_range(0..NUMBERS.len())];
                let end = (at + number.len()).min(bytes.len());
                bytes.splice(at..end, number.iter().copied());
            }
            _ if at < bytes.len() => bytes[at] = bytes[at].wrapping_add(1),
            _ => {}
        }
    }
    bytes
}

fn scalar_columns() -> Columns {
    all_types().into_iter().filter(|(_, sql_type)| !matches!(sql_type, SqlType::Map(..) | SqlType::Row(_))).collect()
}

fn csv_input() -> (Columns, Vec<u8>) {
    let columns = scalar_columns();
    let rows = batch("json", &columns, &[], ALL_TYPES);
    let text = encode("csv", &[("null-literal", "nil")], &rows).unwrap();
    (columns, text.into_bytes())
}

fn changes() -> Columns {
    vec![
        ("id", SqlType::Int),
        ("item", SqlType::STRING),
        ("price", SqlType::Decimal(5, 2)),
        ("tags", SqlType::Array(unnamed(SqlType::STRING))),
        ("place", SqlType::Row(vec![named("x", SqlType::Double)])),
    ]
}

const DEBEZIUM: &str = concat!(
    r#"{"before":null,"after":{"id":1,"item":"pen","price":"1.50","tags":["a"],"place":{"x":1.5}},"op":"c"}"#,
    "\n",
    r#"{"before":{"id":1,"item":"pen"},"after":{"id":1,"item":"ink"},"op":"u","ts_ms":1}"#,
    "\n",
    r#"{"before":{"id":1,"item":"ink"},"after":null,"op":"d"}"#,
    "\n"
);

const CANAL: &str = concat!(
    r#"{"data":[{"id":"1","item":"pen","price":"1.5"},{"id":"2"}],"old":null,"type":"INSERT","database":"d","table":"t"}"#,
    "\n",
    r#"{"data":[{"id":"1","item":"ink"}],"old":[{"item":"pen"}],"type":"UPDATE","database":"d","table":"t"}"#,
    "\n",
    r#"{"data":[{"id":"1","item":"ink"}],"type":"DELETE"}"#,
    "\n"
);

const MAXWELL: &str = concat!(
    r#"{"type":"insert","data":{"id":1,"item":"pen","place":{"x":2}}}"#,
    "\n",
    r#"{"type":"update","data":{"id":1,"item":"ink"},"old":{"item":"pen"}}"#,
    "\n",
    r#"{"type":"delete","data":{"id":1,"item":"ink"}}"#,
    "\n"
);

const OGG: &str = concat!(
    r#"{"after":{"id":1,"item":"pen"},"op_type":"I"}"#,
    "\n",
    r#"{"before":{"id":1,"item":"pen"},"after":{"id":1,"item":"ink"},"op_type":"U"}"#,
    "\n",
    r#"{"before":{"id":1,"item":"ink"},"op_type":"D"}"#,
    "\n"
);

const LENIENT: &[(&str, &str)] = &[("ignore-parse-errors", "true")];

fn text_cases() -> Vec<Case> {
    let case = |format, given, columns, input: &str| Case { format, given, columns, input: input.as_bytes().to_vec() };
    let (columns, csv) = csv_input();
    let csv_case = |given| Case { format: "csv", given, columns: columns.clone(), input: csv.clone() };
    vec![
        csv_case(&[("null-literal", "nil")]),
        csv_case(&[("null-literal", "nil"), ("ignore-parse-errors", "true"), ("allow-comments", "true")]),
        csv_case(&[("null-literal", "nil"), ("escape-character", "\\"), ("header", "true")]),
        csv_case(&[("disable-quote-character", "true"), ("ignore-parse-errors", "true")]),
        case("json", &[], all_types(), ALL_TYPES),
        case("json", LENIENT, all_types(), ALL_TYPES),
        case("debezium-json", &[], changes(), DEBEZIUM),
        case("debezium-json", LENIENT, changes(), DEBEZIUM),
        case("canal-json", &[], changes(), CANAL),
        case("canal-json", LENIENT, changes(), CANAL),
        case("maxwell-json", &[], changes(), MAXWELL),
        case("maxwell-json", LENIENT, changes(), MAXWELL),
        case("ogg-json", &[], changes(), OGG),
        case("ogg-json", LENIENT, changes(), OGG),
        case("raw", &[], vec![("line", SqlType::STRING)], "one\r\n\ntwo é\n"),
    ]
}

fn file_cases() -> Vec<Case> {
    let rows = batch("json", &all_types(), &[], ALL_TYPES);
    let case = |format, given: &'static [(&'static str, &'static str)]| Case {
        format,
        given,
        columns: all_types(),
        input: file(format, given, &[rows.clone(), rows.clone()]).unwrap(),
    };
    vec![
        case("avro", &[("codec", "null")]),
        case("avro", &[("codec", "snappy")]),
        case("avro", &[("codec", "deflate")]),
        case("avro", &[("codec", "zstandard")]),
        case("parquet", &[("compression", "UNCOMPRESSED"), ("block.size", "1")]),
        case("parquet", &[("compression", "UNCOMPRESSED"), ("enable.dictionary", "false")]),
        case("parquet", &[("compression", "SNAPPY"), ("writer.version", "PARQUET_2_0")]),
        case("parquet", &[("compression", "ZSTD")]),
        case("parquet", &[("compression", "GZIP")]),
        case("parquet", &[("compression", "LZ4_RAW")]),
    ]
}

/// An answer that may be given: rows, or an error of the data.
fn allowed<T>(answer: Result<T>) -> Option<T> {
    match answer {
        Ok(rows) => Some(rows),
        Err(error) => {
            assert_eq!(error.kind(), ErrorKind::Data, "{error}");
            None
        }
    }
}

fn wanted(case: &Case, projection: Vec<usize>) -> Wanted {
    Wanted { schema: schema(&case.columns), projection }
}

fn read_text(case: &Case, input: &[u8], random: &mut StdRng) {
    let all = || wanted(case, (0..case.columns.len()).collect());
    let at_once = decode_in_pieces(case.format, case.given, all(), input, input.len().max(1));
    let piece = random.random_range(1..=input.len().max(1));
    let in_pieces = decode_in_pieces(case.format, case.given, all(), input, piece);
    let text = |error: Error| error.to_string();
    assert_eq!(at_once.clone().map_err(text), in_pieces.map_err(text), "in pieces of {piece}");
    let lenient = case.given.iter().any(|(name, value)| *name == "ignore-parse-errors" && *value == "true");
    let rows = allowed(at_once);
    assert!(rows.is_some() || !lenient, "nothing is an error where errors are ignored");
}

fn read_blocks(case: &Case, input: &[u8], random: &mut StdRng) {
    let bytes = Arc::new(input.to_vec());
    let all: Vec<usize> = (0..case.columns.len()).collect();
    let rows = allowed(read_file(case.format, &bytes, wanted(case, all.clone())));
    // A column alone is read wherever all are.
    let one = vec![random.random_range(0..case.columns.len())];
    let alone = allowed(read_file(case.format, &bytes, wanted(case, one)));
    if let Some(rows) = rows {
        assert_eq!(alone.map(|alone| alone.len()), Some(rows.len()));
    }
    // And in ranges nothing worse happens than an error.
    let middle = input.len() as u64 / 2;
    let from = BlockPosition { offset: middle, rows: 0 };
    let end = input.len() as u64;
    let reader = super::testing::open_file(case.format, &bytes, wanted(case, all), middle..end, from);
    allowed(reader.and_then(|mut reader| super::testing::rest(&mut *reader)));
}

/// Reads changed inputs of a case, and says which seed failed.
fn fuzz(cases: &[Case], is_text: bool, read: fn(&Case, &[u8], &mut StdRng)) {
    let number = |name: &str| std::env::var(name).ok().map(|text| text.parse::<u64>().expect("a whole number"));
    let first = number("EBBFLOW_MUTATION_SEED");
    let count = number("EBBFLOW_MUTATIONS").unwrap_or(if first.is_some() { 1 } else { FEW });
    let first = first.unwrap_or(0);
    let seeds = first..first + count;
    let mut failed = Vec::new();
    for case in cases {
        for seed in seeds.clone() {
            let mut random = StdRng::seed_from_u64(seed);
            let input = changed(&case.input, is_text, &mut random);
            if catch_unwind(AssertUnwindSafe(|| read(case, &input, &mut random))).is_err() {
                let shown = String::from_utf8_lossy(&input[..input.len().min(2_000)]).escape_debug().to_string();
                failed.push(format!("{} {:?} seed {seed}: {shown}", case.format, case.given));
                if failed.len() >= 20 {
                    break;
                }
            }
        }
    }
    assert!(failed.is_empty(), "\n{}", failed.join("\n"));
}

#[test]
fn changed_text_is_read_or_refused() {
    fuzz(&text_cases(), true, read_text);
}

#[test]
fn changed_files_are_read_or_refused() {
    fuzz(&file_cases(), false, read_blocks);
}
