//! The schema of a table's rows, as Flink derives it: what may be NULL is a union of null and its type.

use arrow::datatypes::{DataType, Field, TimeUnit};
use serde_json::{Value, json};

use crate::error::{Error, Result};
use crate::types::SqlType;

/// The name Flink gives to the records of a table; records within are named after it and their field.
const RECORD: &str = "org.apache.flink.avro.generated.record";

/// How a value is written.
#[derive(Debug)]
pub(super) struct Shape {
    /// Whether a branch of the union stands before it.
    pub nullable: bool,
    pub parts: Parts,
}

/// The values within a value.
#[derive(Debug)]
pub(super) enum Parts {
    None,
    /// The elements of an array or the values of a map.
    Each(Box<Shape>),
    Fields(Vec<Shape>),
}

/// The schema of rows of `fields` and how each is written.
///
/// # Errors
/// If a type or a name has no form in Avro.
pub(super) fn schema(fields: &[&Field], legacy: bool) -> Result<(Value, Vec<Shape>)> {
    Derive { legacy }.record(fields, RECORD).map_err(|(column, what)| {
        Error::sql(format!("column '{column}' cannot be written as Avro: {what}"))
            .hint("CAST the column, or give it another name")
    })
}

/// The Arrow unit of a number of digits of a second.
pub(super) fn unit(digits: u8) -> TimeUnit {
    match digits {
        0..=3 => TimeUnit::Millisecond,
        4..=6 => TimeUnit::Microsecond,
        _ => TimeUnit::Nanosecond,
    }
}

/// A column and what is wrong with it.
type Fault = (String, String);

struct Derive {
    /// Whether `TIMESTAMP` is written like `TIMESTAMP_LTZ`.
    legacy: bool,
}

impl Derive {
    fn record(&self, fields: &[&Field], name: &str) -> Result<(Value, Vec<Shape>), Fault> {
        let mut declared = Vec::new();
        let mut shapes = Vec::new();
        for field in fields {
            let own = field.name();
            let valid = own
                .bytes()
                .enumerate()
                .all(|(at, byte)| byte == b'_' || byte.is_ascii_alphabetic() || at > 0 && byte.is_ascii_digit());
            if !valid || own.is_empty() {
                return Err((own.clone(), "its names are of letters, digits and _".to_string()));
            }
            let (schema, shape) = self.field(field, &format!("{name}_{own}")).map_err(|what| (own.clone(), what))?;
            declared.push(match shape.nullable {
                true => json!({ "name": own, "type": schema, "default": null }),
                false => json!({ "name": own, "type": schema }),
            });
            shapes.push(shape);
        }
        Ok((json!({ "type": "record", "name": name, "fields": declared }), shapes))
    }

    /// The schema of a field, `name` for a record within.
    fn field(&self, field: &Field, name: &str) -> Result<(Value, Shape), String> {
        let (schema, parts) = self.value(field, name)?;
        let nullable = field.is_nullable();
        let schema = if nullable { json!(["null", schema]) } else { schema };
        Ok((schema, Shape { nullable, parts }))
    }

    fn value(&self, field: &Field, name: &str) -> Result<(Value, Parts), String> {
        let plain = |schema: Value| Ok((schema, Parts::None));
        match field.data_type() {
            DataType::Boolean => plain(json!("boolean")),
            DataType::Int8 | DataType::Int16 | DataType::Int32 => plain(json!("int")),
            DataType::Int64 => plain(json!("long")),
            DataType::Float32 => plain(json!("float")),
            DataType::Float64 => plain(json!("double")),
            DataType::Utf8 => plain(json!("string")),
            DataType::Binary => plain(json!("bytes")),
            DataType::Date32 => plain(json!({ "type": "int", "logicalType": "date" })),
            DataType::Time32(_) => plain(json!({ "type": "int", "logicalType": "time-millis" })),
            DataType::Time64(TimeUnit::Microsecond) => plain(json!({ "type": "long", "logicalType": "time-micros" })),
            DataType::Time64(_) => Err("it has no TIME of more than 6 digits of a second".to_string()),
            DataType::Timestamp(own, zone) => {
                let local = if zone.is_none() && !self.legacy { "local-" } else { "" };
                let digits = match own {
                    TimeUnit::Second | TimeUnit::Millisecond => "millis",
                    TimeUnit::Microsecond => "micros",
                    TimeUnit::Nanosecond => "nanos",
                };
                plain(json!({ "type": "long", "logicalType": format!("{local}timestamp-{digits}") }))
            }
            DataType::Decimal128(precision, scale) => {
                plain(json!({ "type": "bytes", "logicalType": "decimal", "precision": precision, "scale": scale }))
            }
            DataType::List(element) => {
                let (items, shape) = self.field(element, name)?;
                Ok((json!({ "type": "array", "items": items }), Parts::Each(Box::new(shape))))
            }
            DataType::Map(entries, _) => {
                let DataType::Struct(pair) = entries.data_type() else { return Err("it is no map".to_string()) };
                let [key, value] = pair.as_ref() else { return Err("it is no map".to_string()) };
                if *key.data_type() != DataType::Utf8 {
                    return Err(format!("the keys of its maps are STRING, not {}", SqlType::of_field(key)));
                }
                let (values, shape) = self.field(value, name)?;
                Ok((json!({ "type": "map", "values": values }), Parts::Each(Box::new(shape))))
            }
            DataType::Struct(fields) => {
                let fields: Vec<&Field> = fields.iter().map(AsRef::as_ref).collect();
                let (schema, shapes) =
                    self.record(&fields, name).map_err(|(field, what)| format!("'{field}': {what}"))?;
                Ok((schema, Parts::Fields(shapes)))
            }
            _ => Err(format!("it has no type for {}", SqlType::of_field(field))),
        }
    }
}
