//! How the values of a file's schema become those of the table's columns: decided once a file.

use arrow::datatypes::{DataType, Field};

use super::schema::{Logical, Node, Schema};
use crate::error::Result;
use crate::formats::files::{missing, unfit};
use crate::formats::units::Rescale;
use crate::types::SqlType;

/// How a value is read into a column.
#[derive(Debug)]
pub(super) enum Way {
    Null,
    Boolean,
    /// A whole number into any number.
    Number,
    Float,
    Double,
    /// Bytes or text, into either.
    Bytes,
    Fixed(usize),
    Enum(Vec<String>),
    /// A whole number, as bytes of this many or with their length before them; times a power of ten.
    Decimal {
        length: Option<usize>,
        factor: i128,
    },
    Date,
    Point(Rescale),
    List(Box<Way>),
    Map(Box<Way>),
    Row(Vec<Step>),
    Union(Vec<Way>),
}

/// What to do with a field of a record.
#[derive(Debug)]
pub(super) enum Step {
    /// Pass over a value of this type.
    Skip(usize),
    /// Read it into this column.
    Read(usize, Way),
}

/// How the records of a file become rows of `fields`.
///
/// # Errors
/// If a column does not fit, or is missing and may not be NULL.
pub(super) fn rows(schema: &Schema, fields: &[Field]) -> Result<Vec<Step>> {
    let unfit_root = || unfit("(row)", &schema.describe(schema.root), &"a row");
    let Node::Record(own) = record(schema).ok_or_else(unfit_root)? else { return Err(unfit_root()) };
    if let Some(field) = fields.iter().find(|field| {
        let there = own.iter().any(|(name, _)| name == field.name());
        !there && !field.is_nullable()
    }) {
        return Err(missing(field.name()));
    }
    own.iter()
        .map(|(name, node)| match fields.iter().position(|field| field.name() == name) {
            None => Ok(Step::Skip(*node)),
            Some(index) => {
                let field = &fields[index];
                let way = way(schema, *node, field)
                    .ok_or_else(|| unfit(name, &schema.describe(*node), &SqlType::of_field(field)))?;
                Ok(Step::Read(index, way))
            }
        })
        .collect()
}

/// The record that a row is.
fn record(schema: &Schema) -> Option<&Node> {
    match schema.node(schema.root) {
        record @ Node::Record(_) => Some(record),
        _ => None,
    }
}

/// Recurses with the type of the column, which is finite.
fn way(schema: &Schema, node: usize, to: &Field) -> Option<Way> {
    let sql_type = SqlType::of_field(to);
    let point = |from: DataType| Rescale::new(&from, to.data_type(), &sql_type).map(Way::Point);
    match (schema.node(node), to.data_type()) {
        (Node::Union(branches), _) => {
            branches.iter().map(|branch| way(schema, *branch, to)).collect::<Option<_>>().map(Way::Union)
        }
        // Whether there is one in a column that is NOT NULL shows row by row.
        (Node::Null, _) => Some(Way::Null),
        (Node::Boolean, DataType::Boolean) => Some(Way::Boolean),
        (Node::Int(Logical::Plain), DataType::Int8 | DataType::Int16 | DataType::Int32 | DataType::Int64) => {
            Some(Way::Number)
        }
        (Node::Int(Logical::Plain) | Node::Long(Logical::Plain), DataType::Float32 | DataType::Float64)
        | (Node::Long(Logical::Plain), DataType::Int64) => Some(Way::Number),
        (Node::Int(Logical::Plain), DataType::Decimal128(precision, scale)) if whole(*precision, *scale) >= 10 => {
            Some(Way::Number)
        }
        (Node::Long(Logical::Plain), DataType::Decimal128(precision, scale)) if whole(*precision, *scale) >= 19 => {
            Some(Way::Number)
        }
        (Node::Int(Logical::Date), DataType::Date32) => Some(Way::Date),
        (Node::Int(Logical::Time(_)), DataType::Time32(_) | DataType::Time64(_)) => {
            point(DataType::Time32(arrow::datatypes::TimeUnit::Millisecond))
        }
        (Node::Long(Logical::Time(_)), DataType::Time32(_) | DataType::Time64(_)) => {
            point(DataType::Time64(arrow::datatypes::TimeUnit::Microsecond))
        }
        (Node::Long(Logical::Timestamp(digits)), DataType::Timestamp(..)) => {
            point(DataType::Timestamp(super::derive::unit(*digits), None))
        }
        (Node::Float, DataType::Float32 | DataType::Float64) => Some(Way::Float),
        (Node::Double, DataType::Float64) => Some(Way::Double),
        (Node::Bytes(Logical::Plain) | Node::String, DataType::Utf8 | DataType::Binary) => Some(Way::Bytes),
        (Node::Fixed(length, Logical::Plain), DataType::Binary) => Some(Way::Fixed(*length)),
        (Node::Enum(symbols), DataType::Utf8) => Some(Way::Enum(symbols.clone())),
        (Node::Bytes(Logical::Decimal(p, s)), DataType::Decimal128(precision, scale)) => {
            decimal(None, (*p, *s), (*precision, *scale))
        }
        (Node::Fixed(length, Logical::Decimal(p, s)), DataType::Decimal128(precision, scale)) => {
            decimal(Some(*length), (*p, *s), (*precision, *scale))
        }
        (Node::Array(items), DataType::List(element)) => Some(Way::List(Box::new(way(schema, *items, element)?))),
        (Node::Map(values), DataType::Map(entries, _)) => {
            let DataType::Struct(pair) = entries.data_type() else { return None };
            let (key, value) = (pair.first()?, pair.get(1)?);
            let text = *key.data_type() == DataType::Utf8;
            text.then(|| way(schema, *values, value)).flatten().map(|way| Way::Map(Box::new(way)))
        }
        (Node::Record(own), DataType::Struct(fields)) => {
            let there = |field: &Field| own.iter().any(|(name, _)| name == field.name());
            if fields.iter().any(|field| !field.is_nullable() && !there(field)) {
                return None;
            }
            own.iter()
                .map(|(name, node)| match fields.find(name) {
                    None => Some(Step::Skip(*node)),
                    Some((index, field)) => Some(Step::Read(index, way(schema, *node, field)?)),
                })
                .collect::<Option<_>>()
                .map(Way::Row)
        }
        _ => None,
    }
}

fn whole(precision: u8, scale: i8) -> i16 {
    i16::from(precision) - i16::from(scale)
}

fn decimal(length: Option<usize>, from: (u8, i8), to: (u8, i8)) -> Option<Way> {
    let wider = to.1 >= from.1 && whole(to.0, to.1) >= whole(from.0, from.1);
    wider.then(|| Way::Decimal { length, factor: 10i128.pow(u32::from((to.1 - from.1).unsigned_abs())) })
}
