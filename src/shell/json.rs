//! Rows as JSON objects and as CSV records.

use arrow::array::{Array, ArrayRef, AsArray};
use arrow::datatypes::{DataType, Field, Schema};
use ebbflow::{CellFormat, Result};

/// Appends one row as a JSON object on a line of its own. Numbers, Booleans, NULL, arrays, maps and rows are what JSON has
/// for them, everything else is its text.
///
/// # Errors
/// If a column's type cannot be printed.
pub fn write_line(
    op: Option<&str>,
    schema: &Schema,
    columns: &[ArrayRef],
    row: usize,
    zone: ebbflow::TimeZone,
    to: &mut String,
) -> Result<()> {
    to.push('{');
    if let Some(op) = op {
        write_name("op", to);
        write_text(op, to);
    }
    let mut comma = op.is_some();
    for (field, column) in schema.fields().iter().zip(columns) {
        to.push_str(if comma { "," } else { "" });
        comma = true;
        write_name(field.name(), to);
        write_value(field, column, row, zone, to)?;
    }
    to.push_str("}\n");
    Ok(())
}

fn write_value(field: &Field, column: &dyn Array, row: usize, zone: ebbflow::TimeZone, to: &mut String) -> Result<()> {
    if column.is_null(row) {
        to.push_str("null");
        return Ok(());
    }
    match field.data_type() {
        DataType::Boolean => to.push_str(if column.as_boolean().value(row) { "true" } else { "false" }),
        DataType::List(item) => {
            let items = column.as_list::<i32>().value(row);
            to.push('[');
            for index in 0..items.len() {
                to.push_str(if index > 0 { "," } else { "" });
                write_value(item, &items, index, zone, to)?;
            }
            to.push(']');
        }
        DataType::Struct(fields) => {
            to.push('{');
            for (index, (field, part)) in fields.iter().zip(column.as_struct().columns()).enumerate() {
                to.push_str(if index > 0 { "," } else { "" });
                write_name(field.name(), to);
                write_value(field, part, row, zone, to)?;
            }
            to.push('}');
        }
        DataType::Map(entries, _) if matches!(entries.data_type(), DataType::Struct(_)) => {
            let entries = column.as_map().value(row);
            let fields = entries.fields().clone();
            to.push('{');
            for entry in 0..entries.len() {
                to.push_str(if entry > 0 { "," } else { "" });
                write_name(&text(&fields[0], entries.column(0), entry, zone)?, to);
                write_value(&fields[1], entries.column(1), entry, zone, to)?;
            }
            to.push('}');
        }
        _ => {
            let text = text(field, column, row, zone)?;
            // JSON has no NaN and no infinity: they are texts.
            if column.data_type().is_numeric() && text.ends_with(|c: char| c.is_ascii_digit()) {
                to.push_str(&text);
            } else {
                write_text(&text, to);
            }
        }
    }
    Ok(())
}

fn text(field: &Field, column: &dyn Array, row: usize, zone: ebbflow::TimeZone) -> Result<String> {
    let mut text = String::new();
    CellFormat::new(field, zone).write(column, row, &mut text)?;
    Ok(text)
}

fn write_name(name: &str, to: &mut String) {
    write_text(name, to);
    to.push(':');
}

/// In quotes, with escapes.
fn write_text(text: &str, to: &mut String) {
    to.push_str(&serde_json::Value::from(text).to_string());
}

/// One CSV record (RFC 4180): NULL is empty, an empty text is `""`.
pub fn write_record<'a>(cells: impl IntoIterator<Item = Option<&'a str>>, to: &mut String) {
    for (index, cell) in cells.into_iter().enumerate() {
        to.push_str(if index > 0 { "," } else { "" });
        let Some(cell) = cell else { continue };
        if cell.is_empty() || cell.contains([',', '"', '\n', '\r']) {
            to.push('"');
            to.push_str(&cell.replace('"', "\"\""));
            to.push('"');
        } else {
            to.push_str(cell);
        }
    }
    to.push('\n');
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow::array::{Decimal128Array, Float32Array, Int64Array, ListArray, StringArray};
    use arrow::datatypes::Int32Type;
    use std::sync::Arc;

    #[test]
    fn a_row_keeps_its_types_and_the_order_of_its_columns() {
        let decimal = Decimal128Array::from(vec![1250]).with_precision_and_scale(6, 2).unwrap();
        let list = ListArray::from_iter_primitive::<Int32Type, _, _>(vec![Some(vec![Some(1), None])]);
        let columns: Vec<ArrayRef> = vec![
            Arc::new(StringArray::from(vec![Some("a\"b")])),
            Arc::new(Int64Array::from(vec![Some(7)])),
            Arc::new(decimal),
            Arc::new(Float32Array::from(vec![0.1])),
            Arc::new(list),
            Arc::new(StringArray::from(vec![None::<&str>])),
        ];
        let names = ["z", "n", "d", "f", "l", "nil"];
        let fields = names.iter().zip(&columns).map(|(name, c)| Field::new(*name, c.data_type().clone(), true));
        let schema = Schema::new(fields.collect::<Vec<_>>());
        let mut text = String::new();
        write_line(Some("+I"), &schema, &columns, 0, ebbflow::TimeZone::UTC, &mut text).unwrap();
        assert_eq!(
            text,
            "{\"op\":\"+I\",\"z\":\"a\\\"b\",\"n\":7,\"d\":12.50,\"f\":0.1,\"l\":[1,null],\"nil\":null}\n"
        );
    }

    #[test]
    fn csv_quotes_what_needs_it() {
        let mut text = String::new();
        write_record([Some("a"), Some(""), None, Some("x,\"y\"\n")], &mut text);
        assert_eq!(text, "a,\"\",,\"x,\"\"y\"\"\n\"\n");
    }
}
