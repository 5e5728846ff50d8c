//! Writing JSON: JSON_OBJECT, JSON_ARRAY, JSON_STRING and JSON().

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, StringBuilder, StructArray};
use arrow::buffer::NullBuffer;
use arrow::datatypes::DataType;

use super::JSON_KEY;
use super::write::{Writer, push_text, writer};
use crate::error::{Error, Result};
use crate::functions::column::{texts, try_texts};
use crate::functions::function::{Arguments, Call, Entry, Typing};
use crate::functions::parameter::Parameter::{self, Any, Many, Text};
use crate::types::{RowField, SqlType};

/// The entries of this file: `json_object(on null, key, value, …)` and `json_array(on null, value, …)`, where `on null`
/// is `NULL` or `ABSENT`; and for the aggregates of their kind `flink_json_text(on null, value)`, an element as JSON, and
/// `flink_json_member(on null, key, value)`, a row of the key and the member as JSON.
pub(super) fn entries() -> Vec<Entry> {
    const MEMBERS: &[&[Parameter]] = &[&[Text, Many(&Any)]];
    vec![
        Entry::new(&["json_object"], MEMBERS, Typing::By(object_type), object),
        Entry::new(&["json_array"], MEMBERS, Typing::By(array_type), array),
        Entry::new(&["flink_json_text"], &[&[Text, Any]], Typing::By(element_type), element),
        Entry::new(&["flink_json_member"], &[&[Text, Any, Any]], Typing::By(member_type), member),
        Entry::new(&["json_string"], &[&[Any]], Typing::By(string_type), string),
        Entry::new(&["json"], &[&[Text]], Typing::Fixed(SqlType::STRING), json),
    ]
}

fn writable(arguments: &Arguments<'_>, index: usize) -> Result<()> {
    match arguments.sql_type(index) {
        sql_type @ (SqlType::Date | SqlType::Time(_) | SqlType::IntervalYearMonth | SqlType::IntervalDayTime) => {
            Err(Error::sql(format!("a value of type {sql_type} cannot become JSON")).hint("CAST it to STRING first"))
        }
        _ => Ok(()),
    }
}

fn object_type(arguments: &Arguments<'_>) -> Result<(SqlType, bool)> {
    if arguments.fields.len().is_multiple_of(2) {
        return Err(Error::sql("JSON_OBJECT needs keys and values in pairs").hint("write 'key' VALUE value"));
    }
    for index in (1..arguments.fields.len()).step_by(2) {
        let key = arguments.sql_type(index);
        if !key.is_text() {
            return Err(Error::sql(format!("a key of JSON_OBJECT must be a text, not {key}")));
        }
        writable(arguments, index + 1)?;
    }
    Ok((SqlType::STRING, false))
}

fn array_type(arguments: &Arguments<'_>) -> Result<(SqlType, bool)> {
    (1..arguments.fields.len()).try_for_each(|index| writable(arguments, index))?;
    Ok((SqlType::STRING, false))
}

fn string_type(arguments: &Arguments<'_>) -> Result<(SqlType, bool)> {
    writable(arguments, 0)?;
    Ok((SqlType::STRING, arguments.nullable()))
}

fn element_type(arguments: &Arguments<'_>) -> Result<(SqlType, bool)> {
    writable(arguments, 1)?;
    Ok((SqlType::STRING, true))
}

fn member_type(arguments: &Arguments<'_>) -> Result<(SqlType, bool)> {
    let key = arguments.sql_type(1);
    if !key.is_text() {
        return Err(Error::sql(format!("a key of JSON_OBJECTAGG must be a text, not {key}")).hint("CAST it to STRING"));
    }
    writable(arguments, 2)?;
    let text = |name: &str| RowField { name: name.to_string(), sql_type: SqlType::STRING, nullable: false };
    Ok((SqlType::Row(vec![text("key"), text("member")]), true))
}

/// A value argument: its column, whether it is constant, and how it is written.
struct Member<'a> {
    array: &'a ArrayRef,
    constant: bool,
    write: Writer<'a>,
}

impl<'a> Member<'a> {
    fn of(call: &'a Call<'_>, index: usize) -> Result<Member<'a>> {
        let array = &call.arguments[index];
        let field = &call.fields[index];
        let declared = SqlType::of_field(field);
        let sql_type =
            if declared.to_arrow() == *array.data_type() { declared } else { SqlType::from_arrow(array.data_type()) };
        let write: Writer<'a> = if field.metadata().contains_key(JSON_KEY) {
            // JSON goes in as it is.
            crate::functions::cast::printer(array, &sql_type, call.context.zone)?
        } else {
            writer(array, &sql_type, call.context.zone)?
        };
        Ok(Member { array, constant: call.constant[index], write })
    }

    fn place(&self, row: usize) -> usize {
        if self.constant { 0 } else { row }
    }

    fn is_null(&self, row: usize) -> bool {
        *self.array.data_type() == arrow::datatypes::DataType::Null || self.array.is_null(self.place(row))
    }

    fn write(&mut self, row: usize, to: &mut String) {
        if self.is_null(row) {
            to.push_str("null");
        } else {
            let place = self.place(row);
            (self.write)(place, to);
        }
    }
}

fn keeps_null(call: &Call<'_>) -> Result<bool> {
    Ok(call.text(0)?.get(0) != Some("ABSENT"))
}

/// Keys come sorted, of equal keys the last counts.
fn object(call: &Call<'_>) -> Result<ArrayRef> {
    let keeps_null = keeps_null(call)?;
    let keys = (1..call.arguments.len()).step_by(2).map(|i| call.text(i)).collect::<Result<Vec<_>>>()?;
    let mut members = (2..call.arguments.len()).step_by(2).map(|i| Member::of(call, i)).collect::<Result<Vec<_>>>()?;
    let mut order: Vec<usize> = Vec::with_capacity(keys.len());
    try_texts(call, |row, to| {
        order.clear();
        for (index, key) in keys.iter().enumerate() {
            if key.get(row).is_none() {
                return Err(call.error("a key is NULL"));
            }
            if keeps_null || !members[index].is_null(row) {
                order.push(index);
            }
        }
        // Among equal keys the later one comes first and the others fall away.
        order.sort_by(|left, right| keys[*left].get(row).cmp(&keys[*right].get(row)).then(right.cmp(left)));
        order.dedup_by(|later, kept| keys[*later].get(row) == keys[*kept].get(row));
        to.push('{');
        for (place, index) in order.iter().enumerate() {
            if place > 0 {
                to.push(',');
            }
            push_text(keys[*index].get(row).unwrap_or(""), to);
            to.push(':');
            members[*index].write(row, to);
        }
        to.push('}');
        Ok(Some(()))
    })
}

fn array(call: &Call<'_>) -> Result<ArrayRef> {
    let keeps_null = keeps_null(call)?;
    let mut members = (1..call.arguments.len()).map(|index| Member::of(call, index)).collect::<Result<Vec<_>>>()?;
    texts(call, |row, to| {
        let mut first = true;
        to.push('[');
        for member in &mut members {
            if !keeps_null && member.is_null(row) {
                continue;
            }
            if !first {
                to.push(',');
            }
            first = false;
            member.write(row, to);
        }
        to.push(']');
        Some(())
    })
}

/// NULL where there is no element.
fn element(call: &Call<'_>) -> Result<ArrayRef> {
    let keeps_null = keeps_null(call)?;
    let mut value = Member::of(call, 1)?;
    texts(call, |row, to| {
        if !keeps_null && value.is_null(row) {
            return None;
        }
        value.write(row, to);
        Some(())
    })
}

/// NULL where there is no member.
fn member(call: &Call<'_>) -> Result<ArrayRef> {
    let DataType::Struct(fields) = call.result.data_type() else {
        return Err(Error::bug(format!("a member of a JSON object as {}", call.result.data_type())));
    };
    let keeps_null = keeps_null(call)?;
    let key = call.text(1)?;
    let mut value = Member::of(call, 2)?;
    let (mut keys, mut members, mut present) = (StringBuilder::new(), StringBuilder::new(), Vec::new());
    let mut written = String::new();
    for row in 0..call.rows {
        let here = keeps_null || !value.is_null(row);
        present.push(here);
        written.clear();
        let name = key.get(row);
        if here {
            let Some(name) = name else {
                return Err(Error::data("a key of JSON_OBJECTAGG is NULL").hint("leave such rows out with WHERE"));
            };
            push_text(name, &mut written);
            written.push(':');
            value.write(row, &mut written);
        }
        keys.append_value(name.unwrap_or_default());
        members.append_value(&written);
    }
    let columns: Vec<ArrayRef> = vec![Arc::new(keys.finish()), Arc::new(members.finish())];
    Ok(Arc::new(StructArray::try_new(fields.clone(), columns, Some(NullBuffer::from(present)))?))
}

fn string(call: &Call<'_>) -> Result<ArrayRef> {
    if SqlType::of_field(&call.fields[0]) == SqlType::Variant {
        let variants = call.text(0)?;
        return texts(call, |row, to| variants.get(row).map(|json| to.push_str(json)));
    }
    let mut member = Member::of(call, 0)?;
    texts(call, |row, to| {
        if member.is_null(row) {
            return None;
        }
        member.write(row, to);
        Some(())
    })
}

/// Marks a text as JSON; it is written again without blanks.
fn json(call: &Call<'_>) -> Result<ArrayRef> {
    let text = call.text(0)?;
    try_texts(call, |row, to| {
        let Some(text) = text.get(row) else { return Ok(None) };
        let value = serde_json::from_str(text).map_err(|error| call.error(format!("'{text}' is no JSON ({error})")))?;
        super::write::push_value(&value, to);
        Ok(Some(()))
    })
}
