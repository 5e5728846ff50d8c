//! Cases as SQL with their expected rows, so that another engine can check the plain evaluation.

use std::fs::File;
use std::io::{BufWriter, Write};

use super::generate::{Case, Table, TableKind};
use super::query::{Row, Type, Value};
use super::reference::evaluate;

/// A file that takes cases.
pub struct Dump(BufWriter<File>);

impl Dump {
    /// The file that `EBBFLOW_DUMP` names, if it does.
    pub fn from_environment() -> Option<Dump> {
        let path = std::env::var_os("EBBFLOW_DUMP")?;
        Some(Dump(BufWriter::new(File::create(path).expect("the file of EBBFLOW_DUMP can be written"))))
    }

    /// Writes the case as one line of JSON: its tables with the rows at the end, the query, and the rows it gives.
    pub fn write(&mut self, seed: u64, case: &Case) {
        let mut live = case.live();
        for (table, change) in case.steps.iter().flatten() {
            live[*table].apply(change);
        }
        let rows: Vec<Vec<Row>> = live.iter().map(|live| live.rows.clone()).collect();
        let expected = evaluate(&case.query, &rows);
        let tables: Vec<serde_json::Value> =
            case.tables.iter().zip(&rows).map(|(table, rows)| described(table, rows)).collect();
        let line = serde_json::json!({
            "seed": seed, "tables": tables, "query": case.query.sql(), "expected": cells(&expected),
        });
        writeln!(self.0, "{line}").expect("the file of EBBFLOW_DUMP can be written");
    }
}

fn described(table: &Table, rows: &[Row]) -> serde_json::Value {
    let types: Vec<&str> = table.types.iter().map(|of| if *of == Type::Int { "BIGINT" } else { "VARCHAR" }).collect();
    serde_json::json!({ "types": types, "append": table.kind == TableKind::Append, "rows": cells(rows) })
}

fn cells(rows: &[Row]) -> Vec<Vec<serde_json::Value>> {
    let cell = |value: &Value| match value {
        Value::Null => serde_json::Value::Null,
        Value::Int(number) => (*number).into(),
        Value::Text(text) => text.as_str().into(),
    };
    rows.iter().map(|row| row.iter().map(cell).collect()).collect()
}
