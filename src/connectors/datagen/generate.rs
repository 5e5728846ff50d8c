//! Values made up from a seed, a field and a row number: a counter-based generator (SplitMix64 over the row's number),
//! so that any row can be made without those before it.

use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, BinaryBuilder, BooleanArray, Decimal128Array, Float64Array, Int64Array, ListArray, MapArray,
    StringBuilder, StructArray,
};
use arrow::buffer::{NullBuffer, OffsetBuffer};
use arrow::datatypes::{DataType, Field, FieldRef, Fields, TimeUnit};
use chrono::{DateTime, Utc};

use crate::catalog::Options;
use crate::error::{Error, Result};
use crate::types::SqlType;

/// Elements of a made-up ARRAY or MAP.
const ELEMENTS: u64 = 3;

/// Length of a STRING or BYTES without `length`.
const LENGTH: i64 = 100;

/// Makes the values of one column.
pub(super) struct Generator {
    make: Make,
    data_type: DataType,
    salt: u64,
    /// Of 2^64 rows, how many are NULL.
    null_share: u64,
}

enum Make {
    Boolean,
    Whole {
        min: i64,
        max: i64,
    },
    Double {
        min: f64,
        max: f64,
    },
    Decimal {
        min: f64,
        max: f64,
        precision: u8,
        scale: i8,
    },
    Text {
        length: u64,
        variable: bool,
    },
    Bytes {
        length: u64,
        variable: bool,
    },
    /// Milliseconds before now, at most.
    Past {
        milliseconds: u64,
    },
    Sequence {
        start: i64,
        end: i64,
    },
    List(FieldRef, Box<Generator>),
    Map(FieldRef, Box<Generator>, Box<Generator>),
    Row(Fields, Vec<Generator>),
}

/// The options of one field.
struct FieldOptions<'a> {
    options: &'a Options,
    path: &'a str,
}

impl FieldOptions<'_> {
    fn get(&self, property: &str) -> Option<&str> {
        self.options.get(&format!("fields.{}.{property}", self.path))
    }

    fn parsed<T: std::str::FromStr>(&self, property: &str, expected: &str) -> Result<Option<T>> {
        self.get(property)
            .map(|text| {
                text.trim().parse().map_err(|_| {
                    Error::sql(format!("'{text}' is not a valid value for 'fields.{}.{property}'", self.path))
                        .hint(format!("expected {expected}"))
                })
            })
            .transpose()
    }

    fn whole(&self, property: &str) -> Result<Option<i64>> {
        self.parsed(property, "a whole number")
    }

    fn bounds<T: std::str::FromStr + PartialOrd + Copy>(&self, least: T, greatest: T) -> Result<(T, T)> {
        let min = self.parsed("min", "a number")?.unwrap_or(least);
        let max = self.parsed("max", "a number")?.unwrap_or(greatest);
        if min > max {
            return Err(Error::sql(format!("'fields.{0}.min' is greater than 'fields.{0}.max'", self.path)));
        }
        Ok((min, max))
    }
}

impl Generator {
    /// A generator of `field`'s values as the options ask.
    ///
    /// # Errors
    /// If an option does not fit the type.
    pub(super) fn new(field: &Field, options: &Options, seed: u64) -> Result<Generator> {
        Generator::at(field, field.name(), options, seed)
    }

    fn at(field: &Field, path: &str, options: &Options, seed: u64) -> Result<Generator> {
        let own = FieldOptions { options, path };
        let make = match own.get("kind").unwrap_or("random") {
            "random" => random(field, &own, seed)?,
            "sequence" => sequence(field, &own)?,
            other => {
                return Err(Error::sql(format!("'{other}' is not a valid value for 'fields.{path}.kind'"))
                    .hint("expected random or sequence"));
            }
        };
        let null_rate: f64 = own.parsed("null-rate", "a number from 0 to 1")?.unwrap_or(0.0);
        if !(0.0..=1.0).contains(&null_rate) {
            return Err(Error::sql(format!("'fields.{path}.null-rate' must lie between 0 and 1")));
        }
        Ok(Generator {
            make,
            data_type: field.data_type().clone(),
            salt: mix(seed ^ xxhash_rust::xxh3::xxh3_64(path.as_bytes())),
            null_share: (null_rate * u64::MAX as f64) as u64,
        })
    }

    /// Rows after which a sequence ends.
    pub(super) fn length(&self) -> Option<u64> {
        match self.make {
            Make::Sequence { start, end } => Some((i128::from(end) - i128::from(start) + 1).clamp(0, 1 << 62) as u64),
            _ => None,
        }
    }

    /// The values of the given rows.
    ///
    /// # Errors
    /// If the parts do not fit together, which only a bug can cause.
    pub(super) fn column(&self, rows: &[u64], now: DateTime<Utc>) -> Result<ArrayRef> {
        let nulls = self.nulls(rows);
        let numbers = rows.iter().map(|row| mix(self.salt.wrapping_add(row.wrapping_mul(STEP))));
        let values: ArrayRef = match &self.make {
            Make::Boolean => Arc::new(BooleanArray::from(numbers.map(|number| number >> 63 == 1).collect::<Vec<_>>())),
            Make::Whole { min, max } => {
                let span = (i128::from(*max) - i128::from(*min) + 1) as u128;
                let value = |number: u64| (i128::from(*min) + ((u128::from(number) * span) >> 64) as i128) as i64;
                Arc::new(Int64Array::from(numbers.map(value).collect::<Vec<_>>()))
            }
            Make::Double { min, max } => {
                Arc::new(Float64Array::from(numbers.map(|number| between(number, *min, *max)).collect::<Vec<_>>()))
            }
            Make::Decimal { min, max, precision, scale } => {
                let factor = 10f64.powi(i32::from(*scale));
                let limit = 10i128.pow(u32::from(*precision)) - 1;
                let value = |number| ((between(number, *min, *max) * factor) as i128).clamp(-limit, limit);
                let decimals = Decimal128Array::from(numbers.map(value).collect::<Vec<_>>());
                Arc::new(decimals.with_precision_and_scale(*precision, *scale)?)
            }
            Make::Text { length, variable } => Arc::new(text(numbers, *length, *variable)),
            Make::Bytes { length, variable } => Arc::new(bytes(numbers, *length, *variable)),
            Make::Past { milliseconds } => return self.past(numbers, *milliseconds, now, nulls),
            Make::Sequence { start, .. } => {
                let value = |row: &u64| start.wrapping_add(*row as i64);
                Arc::new(Int64Array::from(rows.iter().map(value).collect::<Vec<_>>()))
            }
            Make::List(field, element) => {
                let elements = element.column(&parts(rows), now)?;
                let list = ListArray::try_new(field.clone(), offsets(rows.len()), elements, nulls)?;
                return Ok(Arc::new(list));
            }
            Make::Map(entries, key, value) => {
                let parts = parts(rows);
                let DataType::Struct(pair) = entries.data_type() else {
                    return Err(Error::bug("a map without a pair"));
                };
                let columns = vec![key.column(&parts, now)?, value.column(&parts, now)?];
                let pair = StructArray::try_new(pair.clone(), columns, None)?;
                let map = MapArray::try_new(entries.clone(), offsets(rows.len()), pair, nulls, false)?;
                return Ok(Arc::new(map));
            }
            Make::Row(fields, generators) => {
                let columns = generators.iter().map(|field| field.column(rows, now)).collect::<Result<Vec<_>>>()?;
                let row = StructArray::try_new_with_length(fields.clone(), columns, nulls, rows.len())?;
                return Ok(Arc::new(row));
            }
        };
        let values = if *values.data_type() == self.data_type {
            values
        } else {
            arrow::compute::cast(&values, &self.data_type)?
        };
        with_nulls(values, nulls)
    }

    fn nulls(&self, rows: &[u64]) -> Option<NullBuffer> {
        if self.null_share == 0 {
            return None;
        }
        let valid = |row: &u64| mix(self.salt.wrapping_add(row.wrapping_mul(STEP)) ^ NULL_SALT) >= self.null_share;
        Some(NullBuffer::from(rows.iter().map(valid).collect::<Vec<_>>()))
    }

    /// Points in time up to `milliseconds` before now.
    fn past(
        &self,
        numbers: impl Iterator<Item = u64>,
        milliseconds: u64,
        now: DateTime<Utc>,
        nulls: Option<NullBuffer>,
    ) -> Result<ArrayRef> {
        let span = u128::from(milliseconds) + 1;
        let value = |number: u64| now.timestamp_millis() - ((u128::from(number) * span) >> 64) as i64;
        let instants: ArrayRef = Arc::new(Int64Array::from(numbers.map(value).collect::<Vec<_>>()));
        let plain = DataType::Timestamp(TimeUnit::Millisecond, None);
        let instants = arrow::compute::cast(&instants, &plain)?;
        let values = match &self.data_type {
            DataType::Timestamp(unit, Some(zone)) => {
                // The numbers are instants already; a cast would take them for local time.
                let units = arrow::compute::cast(&instants, &DataType::Timestamp(*unit, None))?;
                let data = units.into_data().into_builder();
                arrow::array::make_array(data.data_type(DataType::Timestamp(*unit, Some(Arc::clone(zone)))).build()?)
            }
            other => arrow::compute::cast(&instants, other)?,
        };
        with_nulls(values, nulls)
    }
}

fn with_nulls(values: ArrayRef, nulls: Option<NullBuffer>) -> Result<ArrayRef> {
    match nulls {
        None => Ok(values),
        Some(nulls) => Ok(arrow::array::make_array(values.into_data().into_builder().nulls(Some(nulls)).build()?)),
    }
}

/// The generator of random values of `field`.
fn random(field: &Field, own: &FieldOptions<'_>, seed: u64) -> Result<Make> {
    let inner = |part: &str, field: &Field| {
        Generator::at(field, &format!("{}.{part}", own.path), own.options, seed).map(Box::new)
    };
    let sql_type = SqlType::of_field(field);
    let text = |declared: u32| -> Result<(u64, bool)> {
        let most = if declared == u32::try_from(i32::MAX).unwrap_or(declared) { LENGTH } else { i64::from(declared) };
        let length = own.whole("length")?.unwrap_or(most);
        if length < 0 || length > i64::from(declared) {
            return Err(Error::sql(format!("'fields.{}.length' does not fit {sql_type}", own.path)));
        }
        Ok((length as u64, own.parsed("var-len", "true or false")?.unwrap_or(false)))
    };
    let whole = |least: i64, greatest: i64| -> Result<Make> {
        let (min, max) = own.bounds(least, greatest)?;
        if min < least || max > greatest {
            return Err(Error::sql(format!("the bounds of 'fields.{}' do not fit {sql_type}", own.path)));
        }
        Ok(Make::Whole { min, max })
    };
    Ok(match (&sql_type, field.data_type()) {
        (SqlType::Boolean, _) => Make::Boolean,
        (SqlType::TinyInt, _) => whole(i64::from(i8::MIN), i64::from(i8::MAX))?,
        (SqlType::SmallInt, _) => whole(i64::from(i16::MIN), i64::from(i16::MAX))?,
        (SqlType::Int, _) => whole(i64::from(i32::MIN), i64::from(i32::MAX))?,
        (SqlType::BigInt, _) => whole(i64::MIN, i64::MAX)?,
        (SqlType::Float, _) => {
            let (min, max) = own.bounds(f64::from(f32::MIN_POSITIVE), f64::from(f32::MAX))?;
            Make::Double { min, max }
        }
        (SqlType::Double, _) => {
            let (min, max) = own.bounds(f64::MIN_POSITIVE, f64::MAX)?;
            Make::Double { min, max }
        }
        (SqlType::Decimal(precision, scale), DataType::Decimal128(..)) => {
            let (min, max) = own.bounds(0.0, 10f64.powi(i32::from(*precision) - i32::from(*scale)))?;
            Make::Decimal { min, max, precision: *precision, scale: *scale }
        }
        (SqlType::Char(length) | SqlType::Varchar(length), _) => {
            let (length, variable) = text(*length)?;
            Make::Text { length, variable }
        }
        (SqlType::Binary(length) | SqlType::Varbinary(length), _) => {
            let (length, variable) = text(*length)?;
            Make::Bytes { length, variable }
        }
        (SqlType::Date | SqlType::Time(_) | SqlType::Timestamp(_) | SqlType::TimestampLtz(_), _) => {
            let past = own.options.duration(&format!("fields.{}.max-past", own.path))?.unwrap_or_default();
            Make::Past { milliseconds: past.as_millis().min(1 << 50) as u64 }
        }
        (_, DataType::List(element)) => Make::List(element.clone(), inner("element", element)?),
        (_, DataType::Map(entries, _)) => match entries.data_type() {
            DataType::Struct(pair) if pair.len() == 2 => {
                Make::Map(entries.clone(), inner("key", &pair[0])?, inner("value", &pair[1])?)
            }
            _ => return Err(unsupported(own.path, &sql_type)),
        },
        (_, DataType::Struct(fields)) => Make::Row(
            fields.clone(),
            fields.iter().map(|field| inner(field.name(), field).map(|made| *made)).collect::<Result<_>>()?,
        ),
        _ => return Err(unsupported(own.path, &sql_type)),
    })
}

fn sequence(field: &Field, own: &FieldOptions<'_>) -> Result<Make> {
    let sql_type = SqlType::of_field(field);
    let numbered = sql_type.is_numeric() || sql_type.is_text();
    if !numbered {
        return Err(Error::sql(format!("column '{}' of type {sql_type} cannot be a sequence", own.path))
            .hint("use a number or STRING column, or kind random"));
    }
    let bound = |property: &str| {
        own.whole(property)?.ok_or_else(|| {
            Error::sql(format!("a sequence needs 'fields.{}.{property}'", own.path)).hint("give both 'start' and 'end'")
        })
    };
    let (start, end) = (bound("start")?, bound("end")?);
    if start > end {
        return Err(Error::sql(format!("'fields.{0}.start' is greater than 'fields.{0}.end'", own.path)));
    }
    Ok(Make::Sequence { start, end })
}

fn unsupported(path: &str, sql_type: &SqlType) -> Error {
    Error::sql(format!("datagen cannot make column '{path}' of type {sql_type}"))
}

/// The row numbers of the elements of collections.
fn parts(rows: &[u64]) -> Vec<u64> {
    rows.iter().flat_map(|row| (0..ELEMENTS).map(move |part| row.wrapping_mul(ELEMENTS).wrapping_add(part))).collect()
}

fn offsets(rows: usize) -> OffsetBuffer<i32> {
    OffsetBuffer::from_lengths(std::iter::repeat_n(ELEMENTS as usize, rows))
}

/// Random hexadecimal digits, as Flink makes strings.
fn text(numbers: impl Iterator<Item = u64>, length: u64, variable: bool) -> arrow::array::StringArray {
    let mut builder = StringBuilder::new();
    let mut digits = String::new();
    for number in numbers {
        digits.clear();
        let length = cut(number, length, variable);
        let mut bits = number;
        for at in 0..length {
            if at % 16 == 0 {
                bits = mix(bits.wrapping_add(STEP));
            }
            digits.push(char::from(b"0123456789abcdef"[(bits & 15) as usize]));
            bits >>= 4;
        }
        builder.append_value(&digits);
    }
    builder.finish()
}

fn bytes(numbers: impl Iterator<Item = u64>, length: u64, variable: bool) -> arrow::array::BinaryArray {
    let mut builder = BinaryBuilder::new();
    let mut value = Vec::new();
    for number in numbers {
        value.clear();
        let length = cut(number, length, variable) as usize;
        let mut bits = number;
        while value.len() < length {
            bits = mix(bits.wrapping_add(STEP));
            value.extend_from_slice(&bits.to_le_bytes());
        }
        builder.append_value(&value[..length]);
    }
    builder.finish()
}

fn cut(number: u64, length: u64, variable: bool) -> u64 {
    if variable && length > 0 { 1 + mix(number) % length } else { length }
}

/// A number from `min` up to `max`; the top 53 bits of `number` are the fraction.
fn between(number: u64, min: f64, max: f64) -> f64 {
    let fraction = (number >> 11) as f64 / (1u64 << 53) as f64;
    min * (1.0 - fraction) + max * fraction
}

const STEP: u64 = 0x9e37_79b9_7f4a_7c15;
const NULL_SALT: u64 = 0x6e75_6c6c_6e75_6c6c;

/// SplitMix64's output function (Steele, Lea, Flood 2014).
fn mix(number: u64) -> u64 {
    let mut bits = number.wrapping_add(STEP);
    bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    bits ^ (bits >> 31)
}
