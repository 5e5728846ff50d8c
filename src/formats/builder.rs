//! One growing column: values are appended as text or typed, straight into Arrow buffers, one call a row and no
//! allocation beyond the buffers' own growth.

use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, BinaryBuilder, BooleanBuilder, Date32Builder, Decimal128Builder, Float32Builder, Float64Builder,
    Int8Builder, Int16Builder, Int32Builder, Int64Builder, ListArray, MapArray, NullBufferBuilder, StringBuilder,
    StructArray, make_array,
};
use arrow::buffer::OffsetBuffer;
use arrow::datatypes::{DataType, Field, FieldRef, Fields};

use super::text::{self, TimestampStyle};
use crate::error::{Error, Result};
use crate::types::SqlType;

/// A growing column.
pub(crate) struct ColumnBuilder {
    nullable: bool,
    pub(super) values: Values,
}

/// The typed part of a column.
pub(super) enum Values {
    Boolean(BooleanBuilder),
    TinyInt(Int8Builder),
    SmallInt(Int16Builder),
    Int(Int32Builder),
    BigInt(Int64Builder),
    Float(Float32Builder),
    Double(Float64Builder),
    Decimal { builder: Decimal128Builder, precision: u8, scale: i8 },
    Text(StringBuilder),
    Bytes { builder: BinaryBuilder, decoded: Vec<u8> },
    Date(Date32Builder),
    Time { builder: Int64Builder, digits: u8, precision: u8, data_type: DataType },
    Timestamp { builder: Int64Builder, digits: u8, precision: u8, instant: bool, data_type: DataType },
    List { offsets: Vec<i32>, nulls: NullBufferBuilder, element: Box<ColumnBuilder>, field: FieldRef },
    Map(Box<MapValues>),
    Row(Box<RowValues>),
}

pub(super) struct MapValues {
    offsets: Vec<i32>,
    nulls: NullBufferBuilder,
    pub(super) key: ColumnBuilder,
    pub(super) value: ColumnBuilder,
    entries: FieldRef,
}

pub(super) struct RowValues {
    rows: usize,
    nulls: NullBufferBuilder,
    pub(super) names: Vec<Vec<u8>>,
    pub(super) columns: Vec<ColumnBuilder>,
    fields: Fields,
    /// Where each field's value stands in the record at hand; kept here so that it need not be allocated per row.
    pub(super) places: Vec<Option<(usize, usize)>>,
}

/// Why a value was not taken, as the end of "'x' …".
pub(crate) type Refused = &'static str;

impl ColumnBuilder {
    /// A column like `field`.
    ///
    /// # Errors
    /// If no text format can hold the type (an interval, for instance).
    pub(crate) fn new(field: &Field) -> Result<ColumnBuilder> {
        let sql_type = SqlType::of_field(field);
        let unsupported =
            || Error::sql(format!("column '{}' of type {sql_type} has no form in this format", field.name()));
        let data_type = field.data_type().clone();
        let values = match (&sql_type, &data_type) {
            (SqlType::Boolean, _) => Values::Boolean(BooleanBuilder::new()),
            (SqlType::TinyInt, _) => Values::TinyInt(Int8Builder::new()),
            (SqlType::SmallInt, _) => Values::SmallInt(Int16Builder::new()),
            (SqlType::Int, _) => Values::Int(Int32Builder::new()),
            (SqlType::BigInt, _) => Values::BigInt(Int64Builder::new()),
            (SqlType::Float, _) => Values::Float(Float32Builder::new()),
            (SqlType::Double, _) => Values::Double(Float64Builder::new()),
            (SqlType::Decimal(precision, scale), DataType::Decimal128(..)) => Values::Decimal {
                builder: Decimal128Builder::new().with_data_type(data_type),
                precision: *precision,
                scale: *scale,
            },
            (SqlType::Char(_) | SqlType::Varchar(_), DataType::Utf8) => Values::Text(StringBuilder::new()),
            (SqlType::Binary(_) | SqlType::Varbinary(_), DataType::Binary) => {
                Values::Bytes { builder: BinaryBuilder::new(), decoded: Vec::new() }
            }
            (SqlType::Date, DataType::Date32) => Values::Date(Date32Builder::new()),
            (SqlType::Time(precision), _) => Values::Time {
                builder: Int64Builder::new(),
                digits: digits(*precision),
                precision: *precision,
                data_type,
            },
            (SqlType::Timestamp(precision) | SqlType::TimestampLtz(precision), _) => Values::Timestamp {
                builder: Int64Builder::new(),
                digits: digits(*precision),
                precision: *precision,
                instant: matches!(sql_type, SqlType::TimestampLtz(_)),
                data_type,
            },
            (_, DataType::List(element)) => Values::List {
                offsets: vec![0],
                nulls: NullBufferBuilder::new(0),
                element: Box::new(ColumnBuilder::new(element)?),
                field: element.clone(),
            },
            (_, DataType::Map(entries, _)) => {
                let DataType::Struct(pair) = entries.data_type() else { return Err(unsupported()) };
                let [key, value] = pair.as_ref() else { return Err(unsupported()) };
                Values::Map(Box::new(MapValues {
                    offsets: vec![0],
                    nulls: NullBufferBuilder::new(0),
                    key: ColumnBuilder::new(key)?,
                    value: ColumnBuilder::new(value)?,
                    entries: entries.clone(),
                }))
            }
            (_, DataType::Struct(fields)) => Values::Row(Box::new(RowValues {
                rows: 0,
                nulls: NullBufferBuilder::new(0),
                names: fields.iter().map(|field| field.name().as_bytes().to_vec()).collect(),
                columns: fields.iter().map(|field| ColumnBuilder::new(field)).collect::<Result<_>>()?,
                fields: fields.clone(),
                places: vec![None; fields.len()],
            })),
            _ => return Err(unsupported()),
        };
        Ok(ColumnBuilder { nullable: field.is_nullable(), values })
    }

    /// Appends NULL.
    ///
    /// # Errors
    /// If the column is `NOT NULL`.
    #[inline]
    pub(crate) fn append_null(&mut self) -> Result<(), Refused> {
        if !self.nullable {
            return Err("stands for NULL, and the column is NOT NULL");
        }
        self.push_null();
        Ok(())
    }

    fn push_null(&mut self) {
        match &mut self.values {
            Values::Boolean(builder) => builder.append_null(),
            Values::TinyInt(builder) => builder.append_null(),
            Values::SmallInt(builder) => builder.append_null(),
            Values::Int(builder) => builder.append_null(),
            Values::BigInt(builder) => builder.append_null(),
            Values::Float(builder) => builder.append_null(),
            Values::Double(builder) => builder.append_null(),
            Values::Decimal { builder, .. } => builder.append_null(),
            Values::Text(builder) => builder.append_null(),
            Values::Bytes { builder, .. } => builder.append_null(),
            Values::Date(builder) => builder.append_null(),
            Values::Time { builder, .. } | Values::Timestamp { builder, .. } => builder.append_null(),
            // Elements of a collection that failed half way stay behind in the NULL's own range, or the next row would
            // get them.
            Values::List { offsets, nulls, element, .. } => {
                offsets.push(element.len() as i32);
                nulls.append_null();
            }
            Values::Map(map) => {
                while map.value.len() < map.key.len() {
                    map.value.push_null();
                }
                map.offsets.push(map.key.len() as i32);
                map.nulls.append_null();
            }
            Values::Row(row) => row.end(false),
        }
    }

    /// Appends the value that `text` stands for. Numbers, Booleans, dates and times may have white space around them.
    ///
    /// # Errors
    /// If it is no value of the type, or the type is a collection.
    #[inline]
    pub(crate) fn append_text(&mut self, text: &[u8], style: TimestampStyle) -> Result<(), Refused> {
        match &mut self.values {
            Values::Text(builder) => {
                builder.append_value(std::str::from_utf8(text).map_err(|_| "is not valid UTF-8")?);
                return Ok(());
            }
            Values::BigInt(builder) => builder.append_value(text::integer(text::trim(text)).ok_or("is not a BIGINT")?),
            Values::Int(builder) => builder.append_value(narrow(text).ok_or("is not an INT")?),
            Values::SmallInt(builder) => builder.append_value(narrow(text).ok_or("is not a SMALLINT")?),
            Values::TinyInt(builder) => builder.append_value(narrow(text).ok_or("is not a TINYINT")?),
            Values::Boolean(builder) => builder.append_value(text::trim(text).eq_ignore_ascii_case(b"true")),
            Values::Double(builder) => builder.append_value(text::double(text::trim(text)).ok_or("is not a DOUBLE")?),
            Values::Float(builder) => builder.append_value(text::float(text::trim(text)).ok_or("is not a FLOAT")?),
            Values::Decimal { builder, precision, scale } => {
                match text::decimal(text::trim(text), *precision, *scale).ok_or("is not a DECIMAL")? {
                    text::Decimal::Value(value) => builder.append_value(value),
                    text::Decimal::TooLarge if self.nullable => builder.append_null(),
                    text::Decimal::TooLarge => return Err("has too many digits, and the column is NOT NULL"),
                }
            }
            Values::Bytes { builder, decoded } => {
                decoded.clear();
                super::base64::decode(text, decoded).ok_or("is not Base64")?;
                builder.append_value(&*decoded);
            }
            Values::Date(builder) => {
                builder.append_value(text::date(text::trim(text)).ok_or("is not a DATE such as 2026-01-02")?);
            }
            Values::Time { builder, digits, precision, .. } => {
                let value = text::time(text::trim(text), false).ok_or("is not a TIME such as 10:11:12")?;
                builder.append_option(text::in_units(0, value, *digits, *precision));
            }
            Values::Timestamp { builder, digits, precision, instant, .. } => {
                let (days, nanoseconds) = point_in_time(text::trim(text), style, *instant)?;
                let value = text::in_units(days, nanoseconds, *digits, *precision);
                builder.append_value(value.ok_or("lies outside the range of TIMESTAMP(9)")?);
            }
            Values::List { .. } => return Err("is not an ARRAY"),
            Values::Map(_) => return Err("is not a MAP"),
            Values::Row(_) => return Err("is not a ROW"),
        }
        Ok(())
    }

    /// Appends a whole number to a whole-number column.
    ///
    /// # Errors
    /// If it does not fit.
    pub(crate) fn append_integer(&mut self, value: i64) -> Result<(), Refused> {
        match &mut self.values {
            Values::BigInt(builder) => builder.append_value(value),
            Values::Int(builder) => builder.append_value(value.try_into().map_err(|_| "is not an INT")?),
            _ => return Err("is not a whole number"),
        }
        Ok(())
    }

    /// Takes the column, which starts anew.
    ///
    /// # Errors
    /// If the parts do not fit together, which only a bug can cause.
    pub(crate) fn finish(&mut self) -> Result<ArrayRef> {
        Ok(match &mut self.values {
            Values::Boolean(builder) => Arc::new(builder.finish()),
            Values::TinyInt(builder) => Arc::new(builder.finish()),
            Values::SmallInt(builder) => Arc::new(builder.finish()),
            Values::Int(builder) => Arc::new(builder.finish()),
            Values::BigInt(builder) => Arc::new(builder.finish()),
            Values::Float(builder) => Arc::new(builder.finish()),
            Values::Double(builder) => Arc::new(builder.finish()),
            Values::Decimal { builder, .. } => Arc::new(builder.finish()),
            Values::Text(builder) => Arc::new(builder.finish()),
            Values::Bytes { builder, .. } => Arc::new(builder.finish()),
            Values::Date(builder) => Arc::new(builder.finish()),
            Values::Time { builder, data_type, .. } | Values::Timestamp { builder, data_type, .. } => {
                let numbers = builder.finish();
                match data_type {
                    // Fewer than 2^31 milliseconds make a day.
                    DataType::Time32(_) => {
                        arrow::compute::cast(&arrow::compute::cast(&numbers, &DataType::Int32)?, data_type)?
                    }
                    _ => make_array(numbers.into_data().into_builder().data_type(data_type.clone()).build()?),
                }
            }
            Values::List { offsets, nulls, element, field } => Arc::new(ListArray::try_new(
                field.clone(),
                OffsetBuffer::new(std::mem::replace(offsets, vec![0]).into()),
                element.finish()?,
                nulls.finish(),
            )?),
            Values::Map(map) => map.finish()?,
            Values::Row(row) => row.finish()?,
        })
    }

    /// Number of values.
    pub(super) fn len(&self) -> usize {
        use arrow::array::ArrayBuilder;
        match &self.values {
            Values::Boolean(builder) => builder.len(),
            Values::TinyInt(builder) => builder.len(),
            Values::SmallInt(builder) => builder.len(),
            Values::Int(builder) => builder.len(),
            Values::BigInt(builder) => builder.len(),
            Values::Float(builder) => builder.len(),
            Values::Double(builder) => builder.len(),
            Values::Decimal { builder, .. } => builder.len(),
            Values::Text(builder) => builder.len(),
            Values::Bytes { builder, .. } => builder.len(),
            Values::Date(builder) => builder.len(),
            Values::Time { builder, .. } | Values::Timestamp { builder, .. } => builder.len(),
            Values::List { offsets, .. } => offsets.len() - 1,
            Values::Map(map) => map.offsets.len() - 1,
            Values::Row(row) => row.rows,
        }
    }

    /// Ends a list or map whose elements have been appended.
    pub(super) fn end_collection(&mut self) -> Result<(), Refused> {
        match &mut self.values {
            Values::List { offsets, nulls, element, .. } => {
                offsets.push(i32::try_from(element.len()).map_err(|_| "has too many elements")?);
                nulls.append_non_null();
            }
            Values::Map(map) => {
                map.offsets.push(i32::try_from(map.key.len()).map_err(|_| "has too many entries")?);
                map.nulls.append_non_null();
            }
            _ => return Err("is not a collection"),
        }
        Ok(())
    }
}

impl MapValues {
    fn finish(&mut self) -> Result<ArrayRef> {
        let DataType::Struct(pair) = self.entries.data_type() else { return Err(Error::bug("a map without a pair")) };
        let pair = StructArray::try_new(pair.clone(), vec![self.key.finish()?, self.value.finish()?], None)?;
        Ok(Arc::new(MapArray::try_new(
            self.entries.clone(),
            OffsetBuffer::new(std::mem::replace(&mut self.offsets, vec![0]).into()),
            pair,
            self.nulls.finish(),
            false,
        )?))
    }
}

impl RowValues {
    /// Ends a row. Fields that have no value yet become NULL, so that the columns stay side by side also when a field
    /// was refused half way.
    pub(super) fn end(&mut self, valid: bool) {
        self.rows += 1;
        self.nulls.append(valid);
        for column in &mut self.columns {
            while column.len() < self.rows {
                column.push_null();
            }
        }
    }

    fn finish(&mut self) -> Result<ArrayRef> {
        let rows = std::mem::take(&mut self.rows);
        let columns = self.columns.iter_mut().map(ColumnBuilder::finish).collect::<Result<Vec<_>>>()?;
        Ok(Arc::new(StructArray::try_new_with_length(self.fields.clone(), columns, self.nulls.finish(), rows)?))
    }
}

#[inline]
fn narrow<T: TryFrom<i64>>(text: &[u8]) -> Option<T> {
    text::integer(text::trim(text))?.try_into().ok()
}

fn point_in_time(text: &[u8], style: TimestampStyle, instant: bool) -> Result<(i32, i64), Refused> {
    match (instant, style) {
        (false, TimestampStyle::Sql) => {
            text::timestamp(text, style).ok_or("is not a TIMESTAMP such as 2026-01-02 10:11:12.5")
        }
        (false, TimestampStyle::Iso) => {
            text::timestamp(text, style).ok_or("is not a TIMESTAMP such as 2026-01-02T10:11:12.5")
        }
        (true, TimestampStyle::Sql) => {
            text::instant(text, style).ok_or("is not a TIMESTAMP_LTZ such as 2026-01-02 10:11:12.5Z")
        }
        (true, TimestampStyle::Iso) => {
            text::instant(text, style).ok_or("is not a TIMESTAMP_LTZ such as 2026-01-02T10:11:12.5Z")
        }
    }
}

/// Digits of the Arrow unit in which `precision` digits of a second are kept.
pub(crate) fn digits(precision: u8) -> u8 {
    match precision {
        0 => 0,
        1..=3 => 3,
        4..=6 => 6,
        _ => 9,
    }
}
