//! What the tests of all formats share: tables from SQL types, bytes in, printed rows out.

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow::datatypes::{Schema, SchemaRef};

use super::{View, Wanted, find};
use crate::catalog::Options;
use crate::changelog::ChangeBatch;
use crate::error::Result;
use crate::types::{RowField, SqlType};

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
