//! Tables and changelogs as text, for the tests of operators.

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, RecordBatch, RecordBatchOptions, StringArray};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Field, FieldRef, Schema, SchemaRef, TimeUnit};
use arrow::util::display::{ArrayFormatter, FormatOptions};

use super::{Operator, Output};
use crate::changelog::{ChangeBatch, Event, Kind, Watermark};
use crate::state::{Restored, Snapshot, TableDelta};
use crate::types::{AggregateCall, AggregateFunction};

/// A schema out of `a BIGINT, b TEXT`; also INT, DOUBLE, BOOL, DEC (10, 2), TS (ms).
pub fn schema(text: &str) -> SchemaRef {
    let fields = text.split(',').map(str::trim).filter(|part| !part.is_empty()).map(|part| {
        let (name, data_type) = part.split_once(' ').unwrap();
        Field::new(name, type_of(data_type), true)
    });
    Arc::new(Schema::new(fields.collect::<Vec<_>>()))
}

pub fn type_of(text: &str) -> DataType {
    match text {
        "TINYINT" => DataType::Int8,
        "INT" => DataType::Int32,
        "BIGINT" => DataType::Int64,
        "DOUBLE" => DataType::Float64,
        "TEXT" => DataType::Utf8,
        "BOOL" => DataType::Boolean,
        "DATE" => DataType::Date32,
        "DEC" => DataType::Decimal128(10, 2),
        "DEC38" => DataType::Decimal128(38, 2),
        "DEC6" => DataType::Decimal128(38, 6),
        "TS" => DataType::Timestamp(TimeUnit::Millisecond, None),
        other => panic!("no type {other}"),
    }
}

/// Changes out of lines like `+I a 5 _`: kind, then cells; `_` is NULL.
pub fn changes(schema: &SchemaRef, text: &str) -> ChangeBatch {
    let lines: Vec<Vec<&str>> = text
        .lines()
        .map(|line| line.split_whitespace().collect())
        .filter(|line: &Vec<&str>| !line.is_empty())
        .collect();
    let kinds = lines.iter().map(|line| Kind::ALL.into_iter().find(|kind| kind.symbol() == line[0]).unwrap());
    let columns = schema.fields().iter().enumerate().map(|(index, field)| {
        let cells: StringArray = lines.iter().map(|line| Some(line[index + 1]).filter(|cell| *cell != "_")).collect();
        let cells: ArrayRef = Arc::new(cells);
        if let DataType::Timestamp(_, _) = field.data_type() {
            return cast(&cast(&cells, &DataType::Int64).unwrap(), field.data_type()).unwrap();
        }
        cast(&cells, field.data_type()).unwrap()
    });
    let options = RecordBatchOptions::new().with_row_count(Some(lines.len()));
    let columns = columns.collect();
    let rows = RecordBatch::try_new_with_options(Arc::clone(schema), columns, &options).unwrap();
    ChangeBatch::new(rows, kinds.collect()).unwrap()
}

/// The rows of a batch as `a, 5, NULL`.
pub fn rows(batch: &RecordBatch) -> Vec<String> {
    let options = FormatOptions::new().with_null("NULL");
    let plain = |column: &ArrayRef| match column.data_type() {
        DataType::Timestamp(_, _) => cast(column, &DataType::Int64).unwrap(),
        _ => Arc::clone(column),
    };
    let columns: Vec<ArrayRef> = batch.columns().iter().map(plain).collect();
    let format: Vec<_> = columns.iter().map(|c| ArrayFormatter::try_new(c.as_ref(), &options).unwrap()).collect();
    (0..batch.num_rows())
        .map(|row| format.iter().map(|column| column.value(row).to_string()).collect::<Vec<_>>().join(", "))
        .collect()
}

/// What was emitted since the last call: `+I[a, 5]`, `W 10`.
pub fn emitted(out: &mut Output) -> Vec<String> {
    let mut lines = Vec::new();
    for event in out.drain() {
        match event {
            Event::Changes(batch) => {
                let rows = rows(batch.rows());
                lines.extend(rows.iter().enumerate().map(|(row, text)| format!("{}[{text}]", batch.kind(row))));
            }
            Event::Watermark(Watermark(mark)) => lines.push(format!("W {mark}")),
            other => lines.push(format!("{other:?}")),
        }
    }
    lines
}

/// Feeds the changes in batches of `size` rows and gives what is emitted.
pub fn feed(operator: &mut dyn Operator, batch: &ChangeBatch, size: usize, out: &mut Output) -> Vec<String> {
    let mut from = 0;
    while from < batch.len() {
        let length = size.min(batch.len() - from);
        operator.on_changes(0, batch.slice(from, length), out).unwrap();
        from += length;
    }
    emitted(out)
}

/// Asserts line by line, ignoring indentation.
#[track_caller]
pub fn check(found: &[String], expected: &str) {
    let expected: Vec<&str> = expected.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    assert_eq!(found, expected, "found:\n{}", found.join("\n"));
}

/// The table that a changelog makes: rows and how often each stands there.
pub fn folded(changelog: &[String]) -> BTreeMap<String, i64> {
    let mut table = BTreeMap::new();
    for line in changelog.iter().filter(|line| !line.starts_with('W')) {
        let (kind, row) = line.split_at(2);
        let count: &mut i64 = table.entry(row.to_string()).or_default();
        *count += if kind.starts_with('+') { 1 } else { -1 };
        if *count == 0 {
            table.remove(row);
        }
    }
    table
}

/// An aggregate call.
pub fn call(function: AggregateFunction, arguments: &[usize], output: &str) -> AggregateCall {
    let output: FieldRef = Arc::new(Field::new("result", type_of(output), true));
    AggregateCall {
        function,
        arguments: arguments.to_vec(),
        distinct: false,
        order: Vec::new(),
        filter: None,
        monotone: false,
        output,
    }
}

/// The deltas of several snapshots as a restart gets them: of each table those from its newest base on.
pub fn saved(snapshots: &[Snapshot]) -> Restored {
    let all: Vec<&TableDelta> = snapshots.iter().flat_map(|snapshot| &snapshot.tables).collect();
    let newest =
        |delta: &TableDelta| all.iter().rposition(|other| other.base && other.table == delta.table).unwrap_or(0);
    let kept = all.iter().enumerate().filter(|(place, delta)| *place >= newest(delta));
    Restored { deltas: kept.map(|(_, delta)| (*delta).clone().widened().unwrap()).collect() }
}
