//! Reads values into columns, and passes over those that nobody wants.

use super::cursor::{Cursor, Fault};
use super::resolve::{Step, Way};
use super::schema::{Node, Schema};
use crate::formats::builder::{ColumnBuilder, Values};

/// How deep a value that is passed over may nest: a type that contains itself could go on for ever.
const DEPTH: usize = 128;

/// Reads a record into columns; those that the record has no field for must be filled up by the caller.
pub(super) fn record(
    schema: &Schema,
    steps: &[Step],
    cursor: &mut Cursor<'_>,
    columns: &mut [ColumnBuilder],
) -> Result<(), Fault> {
    for step in steps {
        match step {
            Step::Skip(node) => skip(schema, *node, cursor, 0)?,
            Step::Read(column, way) => value(schema, way, cursor, &mut columns[*column])?,
        }
    }
    Ok(())
}

/// Reads a value into its column.
fn value(schema: &Schema, way: &Way, cursor: &mut Cursor<'_>, to: &mut ColumnBuilder) -> Result<(), Fault> {
    match (way, &mut to.values) {
        (Way::Union(ways), _) => {
            let branch = cursor.long()?;
            let way = usize::try_from(branch).ok().and_then(|branch| ways.get(branch));
            return value(schema, way.ok_or_else(|| format!("a union has no branch {branch}"))?, cursor, to);
        }
        (Way::Null, _) => to.append_null().map_err(|refused| format!("'null' {refused}"))?,
        (Way::Boolean, Values::Boolean(builder)) => builder.append_value(match cursor.byte()? {
            0 => false,
            1 => true,
            other => return Err(format!("a Boolean is {other}").into()),
        }),
        (Way::Number, values) => number(cursor.long()?, values)?,
        (Way::Float, Values::Float(builder)) => builder.append_value(f32::from_le_bytes(cursor.array()?)),
        (Way::Float, Values::Double(builder)) => builder.append_value(f64::from(f32::from_le_bytes(cursor.array()?))),
        (Way::Double, Values::Double(builder)) => builder.append_value(f64::from_le_bytes(cursor.array()?)),
        (Way::Bytes, Values::Text(builder)) => builder.append_value(text(cursor.bytes()?)?),
        (Way::Bytes, Values::Bytes { builder, .. }) => builder.append_value(cursor.bytes()?),
        (Way::Fixed(length), Values::Bytes { builder, .. }) => builder.append_value(cursor.take(*length)?),
        (Way::Enum(symbols), Values::Text(builder)) => {
            let index = cursor.long()?;
            let symbol = usize::try_from(index).ok().and_then(|index| symbols.get(index));
            builder.append_value(symbol.ok_or_else(|| format!("an enum has no symbol {index}"))?);
        }
        (Way::Decimal { length, factor }, Values::Decimal { builder, precision, .. }) => {
            let bytes = match length {
                Some(length) => cursor.take(*length)?,
                None => cursor.bytes()?,
            };
            let value = big_endian(bytes).and_then(|value| value.checked_mul(*factor));
            let fits = value.filter(|value| value.unsigned_abs() < 10u128.pow(u32::from(*precision)));
            builder.append_value(fits.ok_or_else(|| format!("a decimal has more than {precision} digits"))?);
        }
        (Way::Date, Values::Date(builder)) => {
            let days = cursor.int()?;
            builder.append_value(
                crate::formats::units::day(days).ok_or_else(|| format!("a date is {days} days from 1970"))?,
            );
        }
        (Way::Point(rescale), Values::Time { builder, .. } | Values::Timestamp { builder, .. }) => {
            let value = rescale.value(cursor.long()?, None).map_err(|error| error.message().to_string())?;
            builder.append_value(value);
        }
        (Way::List(way), Values::List { element, .. }) => {
            loop {
                let (count, _) = cursor.part()?;
                if count == 0 {
                    break;
                }
                for _ in 0..count {
                    value(schema, way, cursor, element)?;
                }
            }
            to.end_collection()?;
        }
        (Way::Map(way), Values::Map(map)) => {
            loop {
                let (count, _) = cursor.part()?;
                if count == 0 {
                    break;
                }
                for _ in 0..count {
                    let Values::Text(key) = &mut map.key.values else { return Err(MISMATCH.into()) };
                    key.append_value(text(cursor.bytes()?)?);
                    value(schema, way, cursor, &mut map.value)?;
                }
            }
            to.end_collection()?;
        }
        (Way::Row(steps), Values::Row(row)) => {
            record(schema, steps, cursor, &mut row.columns)?;
            row.end(true);
        }
        _ => return Err(MISMATCH.into()),
    }
    Ok(())
}

const MISMATCH: &str = "a column is not of the type it was resolved for";

fn number(value: i64, to: &mut Values) -> Result<(), Fault> {
    let narrow = |what: &str| Fault::from(format!("{value} is not {what}"));
    match to {
        Values::BigInt(builder) => builder.append_value(value),
        Values::Int(builder) => builder.append_value(value.try_into().map_err(|_| narrow("an INT"))?),
        Values::SmallInt(builder) => builder.append_value(value.try_into().map_err(|_| narrow("a SMALLINT"))?),
        Values::TinyInt(builder) => builder.append_value(value.try_into().map_err(|_| narrow("a TINYINT"))?),
        Values::Float(builder) => builder.append_value(value as f32),
        Values::Double(builder) => builder.append_value(value as f64),
        // The type has been checked to hold any number.
        Values::Decimal { builder, scale, .. } => {
            builder.append_value(i128::from(value) * 10i128.pow(u32::from(scale.unsigned_abs())));
        }
        _ => return Err(MISMATCH.into()),
    }
    Ok(())
}

fn text(bytes: &[u8]) -> Result<&str, Fault> {
    std::str::from_utf8(bytes).map_err(|_| "a text is not valid UTF-8".into())
}

/// A whole number of any number of bytes in two's complement; `None` beyond 128 bits.
fn big_endian(bytes: &[u8]) -> Option<i128> {
    let negative = bytes.first().is_some_and(|first| *first >= 0x80);
    let sign = if negative { 0xff } else { 0 };
    let lead = bytes.iter().take_while(|byte| **byte == sign).count();
    let digits = &bytes[lead..];
    if digits.len() > 16 {
        return None;
    }
    let mut whole = [sign; 16];
    whole[16 - digits.len()..].copy_from_slice(digits);
    let value = i128::from_be_bytes(whole);
    (negative == (value < 0)).then_some(value)
}

/// Passes over a value.
pub(super) fn skip(schema: &Schema, node: usize, cursor: &mut Cursor<'_>, depth: usize) -> Result<(), Fault> {
    if depth > DEPTH {
        return Err(format!("a value nests more than {DEPTH} deep").into());
    }
    match schema.node(node) {
        Node::Null => {}
        Node::Boolean => drop(cursor.byte()?),
        Node::Int(_) | Node::Long(_) | Node::Enum(_) => drop(cursor.long()?),
        Node::Float => drop(cursor.take(4)?),
        Node::Double => drop(cursor.take(8)?),
        Node::Bytes(_) | Node::String => drop(cursor.bytes()?),
        Node::Fixed(length, _) => drop(cursor.take(*length)?),
        Node::Array(items) => skip_parts(cursor, |cursor| skip(schema, *items, cursor, depth + 1))?,
        Node::Map(values) => skip_parts(cursor, |cursor| {
            cursor.bytes()?;
            skip(schema, *values, cursor, depth + 1)
        })?,
        Node::Union(branches) => {
            let branch = cursor.long()?;
            let node = usize::try_from(branch).ok().and_then(|branch| branches.get(branch));
            skip(schema, *node.ok_or_else(|| format!("a union has no branch {branch}"))?, cursor, depth + 1)?;
        }
        Node::Record(fields) => {
            for (_, field) in fields {
                skip(schema, *field, cursor, depth + 1)?;
            }
        }
    }
    Ok(())
}

fn skip_parts<'a>(
    cursor: &mut Cursor<'a>,
    mut each: impl FnMut(&mut Cursor<'a>) -> Result<(), Fault>,
) -> Result<(), Fault> {
    loop {
        match cursor.part()? {
            (0, _) => return Ok(()),
            (_, Some(bytes)) => drop(cursor.take(bytes)?),
            (count, None) => {
                for _ in 0..count {
                    each(cursor)?;
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decimals_are_of_any_length() {
        assert_eq!(big_endian(&[]), Some(0));
        assert_eq!(big_endian(&[0, 0x80]), Some(128));
        assert_eq!(big_endian(&[0x80]), Some(-128));
        assert_eq!(big_endian(&[0xff; 20]), Some(-1));
        assert_eq!(big_endian(&[1; 17]), None);
        // 17 bytes with a sign of its own, but whose last 16 have another.
        let mut bytes = vec![0];
        bytes.extend([0xf0; 16]);
        assert_eq!(big_endian(&bytes), None);
    }
}
