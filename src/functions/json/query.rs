//! Reading JSON: IS JSON, JSON_EXISTS, JSON_VALUE, JSON_QUERY.

use std::sync::Arc;

use arrow::array::{ArrayRef, ListBuilder, StringBuilder};
use arrow::datatypes::DataType;
use serde_json::Value;

use super::path::{Found, Path};
use super::write::push_value;
use crate::error::{Error, Result};
use crate::functions::column::{booleans, try_texts};
use crate::functions::function::{Call, Entry, Typing};
use crate::functions::parameter::Parameter::{self, Text};
use crate::types::{RowField, SqlType};

/// The entries of this file: `is_json(text[, kind])`, `json_exists(text, path[, on error])`,
/// `json_value(text, path[, on empty, its default, on error, its default])`,
/// `json_query(text, path[, wrapper, on empty, on error])`, and `flink_json_elements(text)`.
pub(super) fn entries() -> Vec<Entry> {
    const IS: &[&[Parameter]] = &[&[Text], &[Text, Text]];
    const EXISTS: &[&[Parameter]] = &[&[Text, Text], &[Text, Text, Text]];
    const VALUE: &[&[Parameter]] = &[&[Text, Text], &[Text, Text, Text, Text, Text, Text]];
    const QUERY: &[&[Parameter]] = &[&[Text, Text], &[Text, Text, Text, Text, Text]];
    const ELEMENTS: &[&[Parameter]] = &[&[Text]];
    let texts = SqlType::Array(Box::new(RowField::unnamed(SqlType::STRING, true)));
    vec![
        Entry::new(&["is_json"], IS, Typing::Fixed(SqlType::Boolean), is_json),
        Entry::new(&["json_exists"], EXISTS, Typing::Nullable(SqlType::Boolean), exists),
        Entry::new(&["json_value"], VALUE, Typing::Nullable(SqlType::STRING), value),
        Entry::new(&["json_query"], QUERY, Typing::Nullable(SqlType::STRING), query),
        Entry::new(&["flink_json_elements"], ELEMENTS, Typing::Nullable(texts), elements),
    ]
}

fn is_json(call: &Call<'_>) -> Result<ArrayRef> {
    let text = call.text(0)?;
    let kind = call.has(1).then(|| call.text(1)).transpose()?;
    booleans(call, |row| {
        let parsed: Option<Value> = serde_json::from_str(text.get(row)?).ok();
        let kind = kind.as_ref().and_then(|kind| kind.get(row)).unwrap_or("VALUE");
        Some(match parsed {
            None => false,
            Some(Value::Object(_)) => matches!(kind, "VALUE" | "OBJECT"),
            Some(Value::Array(_)) => matches!(kind, "VALUE" | "ARRAY"),
            Some(_) => matches!(kind, "VALUE" | "SCALAR"),
        })
    })
}

/// Path and text of a row, compiled once for equal neighbours.
struct Documents<'a> {
    text: crate::functions::column::Column<'a, arrow::array::StringArray>,
    path: crate::functions::column::Column<'a, arrow::array::StringArray>,
    last: Option<(String, Path)>,
}

impl<'a> Documents<'a> {
    fn of(call: &'a Call<'_>) -> Result<Documents<'a>> {
        Ok(Documents { text: call.text(0)?, path: call.text(1)?, last: None })
    }

    /// The document of a row, or what is wrong with it, and the path; nothing for NULL.
    fn get(&mut self, row: usize) -> Result<Option<(std::result::Result<Value, String>, &Path)>> {
        let (Some(text), Some(path)) = (self.text.get(row), self.path.get(row)) else { return Ok(None) };
        if self.last.as_ref().is_none_or(|(known, _)| known != path) {
            self.last = Some((path.to_string(), Path::compile(path)?));
        }
        let document = serde_json::from_str(text).map_err(|error| format!("'{text}' is no JSON ({error})"));
        Ok(self.last.as_ref().map(|(_, path)| (document, path)))
    }
}

/// An option among the arguments; the default where it is not given.
fn option<'a>(call: &'a Call<'_>, index: usize, default: &'a str) -> Result<&'a str> {
    if !call.has(index) {
        return Ok(default);
    }
    Ok(call.text(index)?.get(0).unwrap_or(default))
}

fn exists(call: &Call<'_>) -> Result<ArrayRef> {
    let mut documents = Documents::of(call)?;
    let on_error = option(call, 2, "FALSE")?;
    let mut failure = None;
    let result = booleans(call, |row| {
        let found = documents.get(row).map_err(|error| failure.get_or_insert(error).clone()).ok()??;
        let problem = match found {
            (Err(problem), _) => problem,
            (Ok(document), path) => match path.find(&document) {
                Found::One(value) => return Some(!value.is_null()),
                Found::Many(values) => return Some(!values.is_empty()),
                Found::Nothing if !path.strict => return Some(false),
                Found::Nothing => "the path leads nowhere".to_string(),
            },
        };
        match on_error {
            "TRUE" => Some(true),
            "UNKNOWN" => None,
            "ERROR" => {
                failure.get_or_insert(call.error(problem));
                None
            }
            _ => Some(false),
        }
    })?;
    failure.map_or(Ok(result), Err)
}

/// Why a document gave no value.
enum Lack {
    Empty,
    Problem(String),
}

fn value(call: &Call<'_>) -> Result<ArrayRef> {
    let mut documents = Documents::of(call)?;
    let (on_empty, on_error) = (option(call, 2, "NULL")?, option(call, 4, "NULL")?);
    let defaults = if call.has(5) { Some((call.text(3)?, call.text(5)?)) } else { None };
    try_texts(call, |row, to| {
        let Some((document, path)) = documents.get(row)? else { return Ok(None) };
        let lack = match &document {
            Err(problem) => Lack::Problem(problem.clone()),
            Ok(document) => match scalar(path.find(document), path.strict, to) {
                Ok(()) => return Ok(Some(())),
                Err(lack) => lack,
            },
        };
        let (behaviour, default, problem) = match lack {
            Lack::Empty => (on_empty, defaults.as_ref().and_then(|(empty, _)| empty.get(row)), "no value".to_string()),
            Lack::Problem(problem) => (on_error, defaults.as_ref().and_then(|(_, error)| error.get(row)), problem),
        };
        match behaviour {
            "ERROR" => Err(call.error(problem)),
            "DEFAULT" => Ok(default.map(|default| to.push_str(default))),
            _ => Ok(None),
        }
    })
}

/// Writes a scalar; anything else is empty in lax mode and a problem in strict mode.
fn scalar(found: Found<'_>, strict: bool, to: &mut String) -> std::result::Result<(), Lack> {
    let many;
    let value = match found {
        Found::One(value) => value,
        Found::Nothing if strict => return Err(Lack::Problem("the path leads nowhere".into())),
        Found::Nothing => return Err(Lack::Empty),
        Found::Many(values) => {
            many = Value::Array(values.into_iter().cloned().collect());
            &many
        }
    };
    match value {
        Value::Null => Err(Lack::Empty),
        Value::Array(_) | Value::Object(_) if strict => Err(Lack::Problem("the path leads to no scalar".into())),
        Value::Array(_) | Value::Object(_) => Err(Lack::Empty),
        Value::String(text) => {
            to.push_str(text);
            Ok(())
        }
        other => {
            push_value(other, to);
            Ok(())
        }
    }
}

fn query(call: &Call<'_>) -> Result<ArrayRef> {
    let mut documents = Documents::of(call)?;
    let wrapper = option(call, 2, "WITHOUT")?;
    let (on_empty, on_error) = (option(call, 3, "NULL")?, option(call, 4, "NULL")?);
    try_texts(call, |row, to| {
        let Some((document, path)) = documents.get(row)? else { return Ok(None) };
        let lack = match &document {
            Err(problem) => Lack::Problem(problem.clone()),
            Ok(document) => match container(path.find(document), path.strict, wrapper, to) {
                Ok(()) => return Ok(Some(())),
                Err(lack) => lack,
            },
        };
        let (behaviour, problem) = match lack {
            Lack::Empty => (on_empty, "no value".to_string()),
            Lack::Problem(problem) => (on_error, problem),
        };
        match behaviour {
            "ERROR" => Err(call.error(problem)),
            "EMPTY ARRAY" | "EMPTY OBJECT" => {
                to.push_str(if behaviour == "EMPTY ARRAY" { "[]" } else { "{}" });
                Ok(Some(()))
            }
            "NULL" => Ok(None),
            other => Err(Error::sql(format!("JSON_QUERY does not know {other}"))),
        }
    })
}

fn container(found: Found<'_>, strict: bool, wrapper: &str, to: &mut String) -> std::result::Result<(), Lack> {
    let value = match found {
        Found::One(Value::Null) => return Err(Lack::Empty),
        Found::One(value) => value.clone(),
        Found::Nothing if strict => return Err(Lack::Problem("the path leads nowhere".into())),
        Found::Nothing => return Err(Lack::Empty),
        Found::Many(values) => Value::Array(values.into_iter().cloned().collect()),
    };
    let value = match wrapper {
        "UNCONDITIONAL" => Value::Array(vec![value]),
        "CONDITIONAL" if !value.is_array() => Value::Array(vec![value]),
        _ => value,
    };
    if !(value.is_array() || value.is_object()) {
        return Err(if strict { Lack::Problem("the path leads to a scalar".into()) } else { Lack::Empty });
    }
    push_value(&value, to);
    Ok(())
}

/// The elements of a JSON array, texts as they are and the rest as JSON; NULL for what is no array.
fn elements(call: &Call<'_>) -> Result<ArrayRef> {
    let text = call.text(0)?;
    let item = match call.result.data_type() {
        DataType::List(item) => Arc::clone(item),
        other => return Err(Error::bug(format!("the elements of a JSON array as {other}"))),
    };
    let mut builder = ListBuilder::with_capacity(StringBuilder::new(), call.rows).with_field(item);
    let mut written = String::new();
    for row in 0..call.rows {
        let array: Option<Vec<Value>> = text.get(row).and_then(|text| serde_json::from_str(text).ok());
        for element in array.iter().flatten() {
            match element {
                Value::Null => builder.values().append_null(),
                Value::String(text) => builder.values().append_value(text),
                other => {
                    written.clear();
                    push_value(other, &mut written);
                    builder.values().append_value(&written);
                }
            }
        }
        builder.append(array.is_some());
    }
    Ok(Arc::new(builder.finish()))
}
