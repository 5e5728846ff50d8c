//! Flink's SQL types and their Arrow fields.
//!
//! | SQL | Arrow |
//! |---|---|
//! | `CHAR(n)`, `VARCHAR(n)`, `STRING` | `Utf8` |
//! | `BINARY(n)`, `VARBINARY(n)`, `BYTES` | `Binary` |
//! | `TIMESTAMP(0)`, `(1..3)`, `(4..6)`, `(7..9)` | `Timestamp` in s, ms, µs, ns without zone |
//! | `TIMESTAMP_LTZ(p)` | the same with zone `UTC`: an instant; the session's zone shows it |
//! | `TIME(p)` | `Time32` in s or ms, `Time64` in µs or ns |
//! | `INTERVAL YEAR TO MONTH`, `DAY TO SECOND` | `Interval(YearMonth)`, `Interval(MonthDayNano)` |
//! | `BITMAP` / `VARIANT` | `Binary` / `Utf8` |
//! | `ARRAY<t>` / `MULTISET<t>` / `MAP<k, v>` / `ROW<…>` | `List` / `Map` to `Int32` / `Map` / `Struct` |

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use arrow::datatypes::{DataType, Field, FieldRef, Fields, IntervalUnit, TimeUnit};

/// Metadata key under which a field carries its SQL type when the Arrow type does not say it all.
pub const TYPE_KEY: &str = "ebbflow.type";

/// The longest `VARCHAR`/`VARBINARY`: what `STRING` and `BYTES` stand for.
const MAX_LENGTH: u32 = 2_147_483_647;

/// A SQL type, without nullability of its own.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum SqlType {
    /// The type of a bare `NULL`.
    Null,
    /// `BOOLEAN`
    Boolean,
    /// `TINYINT`
    TinyInt,
    /// `SMALLINT`
    SmallInt,
    /// `INT`
    Int,
    /// `BIGINT`
    BigInt,
    /// `FLOAT`
    Float,
    /// `DOUBLE`
    Double,
    /// `DECIMAL(precision, scale)`
    Decimal(u8, i8),
    /// `CHAR(n)`
    Char(u32),
    /// `VARCHAR(n)`
    Varchar(u32),
    /// `BINARY(n)`
    Binary(u32),
    /// `VARBINARY(n)`
    Varbinary(u32),
    /// `DATE`
    Date,
    /// `TIME(p)`
    Time(u8),
    /// `TIMESTAMP(p)`
    Timestamp(u8),
    /// `TIMESTAMP_LTZ(p)`
    TimestampLtz(u8),
    /// `INTERVAL YEAR TO MONTH`
    IntervalYearMonth,
    /// `INTERVAL DAY TO SECOND`
    IntervalDayTime,
    /// `ARRAY<t>`
    Array(Box<RowField>),
    /// `MULTISET<t>`
    Multiset(Box<RowField>),
    /// `MAP<k, v>`
    Map(Box<RowField>, Box<RowField>),
    /// `ROW<a t, …>`
    Row(Vec<RowField>),
    /// `BITMAP`: a set of 32-bit numbers
    Bitmap,
    /// `VARIANT`: a JSON value
    Variant,
}

/// A component of a composite type: its name (where it has one), type and nullability.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct RowField {
    /// The name; empty for the element of an array, multiset or map.
    pub name: String,
    /// The type.
    pub sql_type: SqlType,
    /// Whether NULL is allowed.
    pub nullable: bool,
}

impl SqlType {
    /// `STRING`.
    pub const STRING: SqlType = SqlType::Varchar(MAX_LENGTH);
    /// `BYTES`.
    pub const BYTES: SqlType = SqlType::Varbinary(MAX_LENGTH);

    /// The Arrow type.
    pub fn to_arrow(&self) -> DataType {
        match self {
            SqlType::Null => DataType::Null,
            SqlType::Boolean => DataType::Boolean,
            SqlType::TinyInt => DataType::Int8,
            SqlType::SmallInt => DataType::Int16,
            SqlType::Int => DataType::Int32,
            SqlType::BigInt => DataType::Int64,
            SqlType::Float => DataType::Float32,
            SqlType::Double => DataType::Float64,
            SqlType::Decimal(precision, scale) => DataType::Decimal128(*precision, *scale),
            SqlType::Char(_) | SqlType::Varchar(_) | SqlType::Variant => DataType::Utf8,
            SqlType::Binary(_) | SqlType::Varbinary(_) | SqlType::Bitmap => DataType::Binary,
            SqlType::Date => DataType::Date32,
            SqlType::Time(precision) => match unit(*precision) {
                small @ (TimeUnit::Second | TimeUnit::Millisecond) => DataType::Time32(small),
                large => DataType::Time64(large),
            },
            SqlType::Timestamp(precision) => DataType::Timestamp(unit(*precision), None),
            SqlType::TimestampLtz(precision) => DataType::Timestamp(unit(*precision), Some("UTC".into())),
            SqlType::IntervalYearMonth => DataType::Interval(IntervalUnit::YearMonth),
            SqlType::IntervalDayTime => DataType::Interval(IntervalUnit::MonthDayNano),
            SqlType::Array(element) => DataType::List(element.to_arrow("item")),
            SqlType::Multiset(element) => {
                map_of(RowField::unnamed(element.sql_type.clone(), false), RowField::unnamed(SqlType::Int, false))
            }
            SqlType::Map(key, value) => map_of(RowField { nullable: false, ..(**key).clone() }, (**value).clone()),
            SqlType::Row(fields) => DataType::Struct(fields.iter().map(|f| f.to_arrow(&f.name)).collect()),
        }
    }

    /// The Arrow field of a column of this type.
    pub fn to_field(&self, name: &str, nullable: bool) -> Field {
        let field = Field::new(name, self.to_arrow(), nullable);
        if SqlType::from_arrow(field.data_type()) == *self {
            return field;
        }
        field.with_metadata(HashMap::from([(TYPE_KEY.to_string(), self.to_string())]))
    }

    /// The SQL type of a column: its metadata where that still fits, else the Arrow type's own.
    pub fn of_field(field: &Field) -> SqlType {
        let plain = || match field.data_type() {
            DataType::List(item) | DataType::LargeList(item) => SqlType::Array(Box::new(RowField::of_field("", item))),
            DataType::Struct(fields) => SqlType::Row(fields.iter().map(|f| RowField::of_field(f.name(), f)).collect()),
            other => SqlType::from_arrow(other),
        };
        let Some(text) = field.metadata().get(TYPE_KEY) else { return plain() };
        match declared(text, field.data_type()) {
            Some(sql_type) => sql_type,
            None => plain(),
        }
    }

    /// The SQL type that an Arrow type stands for by itself.
    pub fn from_arrow(data_type: &DataType) -> SqlType {
        match data_type {
            DataType::Boolean => SqlType::Boolean,
            DataType::Int8 => SqlType::TinyInt,
            DataType::Int16 | DataType::UInt8 => SqlType::SmallInt,
            DataType::Int32 | DataType::UInt16 => SqlType::Int,
            DataType::Int64 | DataType::UInt32 | DataType::UInt64 => SqlType::BigInt,
            DataType::Float16 | DataType::Float32 => SqlType::Float,
            DataType::Float64 => SqlType::Double,
            DataType::Decimal128(precision, scale) => SqlType::Decimal(*precision, *scale),
            DataType::Decimal32(precision, scale) | DataType::Decimal64(precision, scale) => {
                SqlType::Decimal(*precision, *scale)
            }
            DataType::Decimal256(precision, scale) => SqlType::Decimal((*precision).min(38), *scale),
            DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => SqlType::STRING,
            DataType::Binary | DataType::LargeBinary | DataType::BinaryView | DataType::FixedSizeBinary(_) => {
                SqlType::BYTES
            }
            DataType::Date32 | DataType::Date64 => SqlType::Date,
            DataType::Time32(unit) | DataType::Time64(unit) => SqlType::Time(digits(*unit)),
            DataType::Timestamp(unit, None) => SqlType::Timestamp(digits(*unit)),
            DataType::Timestamp(unit, Some(_)) => SqlType::TimestampLtz(digits(*unit)),
            DataType::Interval(IntervalUnit::YearMonth) => SqlType::IntervalYearMonth,
            DataType::Interval(_) | DataType::Duration(_) => SqlType::IntervalDayTime,
            DataType::List(item) | DataType::LargeList(item) | DataType::FixedSizeList(item, _) => {
                SqlType::Array(Box::new(RowField::of_field("", item)))
            }
            DataType::Map(entries, _) => match entries.data_type() {
                DataType::Struct(pair) if pair.len() == 2 => {
                    SqlType::Map(Box::new(RowField::of_field("", &pair[0])), Box::new(RowField::of_field("", &pair[1])))
                }
                _ => SqlType::Null,
            },
            DataType::Struct(fields) => SqlType::Row(fields.iter().map(|f| RowField::of_field(f.name(), f)).collect()),
            DataType::Dictionary(_, value) => SqlType::from_arrow(value),
            _ => SqlType::Null,
        }
    }

    /// Whether it is one of the number types.
    pub fn is_numeric(&self) -> bool {
        self.is_integer() || matches!(self, SqlType::Float | SqlType::Double | SqlType::Decimal(..))
    }

    /// Whether it is one of the whole-number types.
    pub fn is_integer(&self) -> bool {
        matches!(self, SqlType::TinyInt | SqlType::SmallInt | SqlType::Int | SqlType::BigInt)
    }

    /// Whether it is `CHAR` or `VARCHAR`.
    pub fn is_text(&self) -> bool {
        matches!(self, SqlType::Char(_) | SqlType::Varchar(_))
    }
}

impl RowField {
    /// A component without a name.
    pub fn unnamed(sql_type: SqlType, nullable: bool) -> RowField {
        RowField { name: String::new(), sql_type, nullable }
    }

    fn to_arrow(&self, name: &str) -> FieldRef {
        Arc::new(self.sql_type.to_field(name, self.nullable))
    }

    fn of_field(name: &str, field: &Field) -> RowField {
        RowField { name: name.to_string(), sql_type: SqlType::of_field(field), nullable: field.is_nullable() }
    }
}

fn map_of(key: RowField, value: RowField) -> DataType {
    let pair = Fields::from(vec![key.to_arrow("key"), value.to_arrow("value")]);
    DataType::Map(Arc::new(Field::new("entries", DataType::Struct(pair), false)), false)
}

/// The coarsest Arrow unit that holds `precision` digits of a second.
fn unit(precision: u8) -> TimeUnit {
    match precision {
        0 => TimeUnit::Second,
        1..=3 => TimeUnit::Millisecond,
        4..=6 => TimeUnit::Microsecond,
        _ => TimeUnit::Nanosecond,
    }
}

fn digits(unit: TimeUnit) -> u8 {
    match unit {
        TimeUnit::Second => 0,
        TimeUnit::Millisecond => 3,
        TimeUnit::Microsecond => 6,
        TimeUnit::Nanosecond => 9,
    }
}

/// Reads the metadata's text, if it still describes `data_type` (a cast may have left it behind).
fn declared(text: &str, data_type: &DataType) -> Option<SqlType> {
    let (name, arguments) = match text.split_once('(') {
        Some((name, rest)) => (name, rest.strip_suffix(')')?),
        None => (text, ""),
    };
    let sql_type = match name {
        "CHAR" => SqlType::Char(arguments.parse().ok()?),
        "VARCHAR" => SqlType::Varchar(arguments.parse().ok()?),
        "BINARY" => SqlType::Binary(arguments.parse().ok()?),
        "VARBINARY" => SqlType::Varbinary(arguments.parse().ok()?),
        "BITMAP" => SqlType::Bitmap,
        "VARIANT" => SqlType::Variant,
        "TIME" => SqlType::Time(arguments.parse().ok()?),
        "TIMESTAMP" => SqlType::Timestamp(arguments.parse().ok()?),
        "TIMESTAMP_LTZ" => SqlType::TimestampLtz(arguments.parse().ok()?),
        _ if text.starts_with("MULTISET") => {
            let DataType::Map(entries, _) = data_type else { return None };
            let DataType::Struct(pair) = entries.data_type() else { return None };
            let element = RowField { nullable: !text.ends_with("NOT NULL>"), ..RowField::of_field("", &pair[0]) };
            return Some(SqlType::Multiset(Box::new(element)));
        }
        // Arrow has no map whose keys may be NULL.
        _ if text.starts_with("MAP") => match SqlType::from_arrow(data_type) {
            SqlType::Map(key, value) => SqlType::Map(Box::new(RowField { nullable: true, ..*key }), value),
            _ => return None,
        },
        _ => return None,
    };
    (sql_type.to_arrow() == *data_type).then_some(sql_type)
}

impl fmt::Display for SqlType {
    /// As Flink writes types: `VARCHAR(20)`, `STRING`, `ROW<a INT, b STRING NOT NULL>`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SqlType::Null => f.write_str("NULL"),
            SqlType::Boolean => f.write_str("BOOLEAN"),
            SqlType::TinyInt => f.write_str("TINYINT"),
            SqlType::SmallInt => f.write_str("SMALLINT"),
            SqlType::Int => f.write_str("INT"),
            SqlType::BigInt => f.write_str("BIGINT"),
            SqlType::Float => f.write_str("FLOAT"),
            SqlType::Double => f.write_str("DOUBLE"),
            SqlType::Decimal(precision, scale) => write!(f, "DECIMAL({precision}, {scale})"),
            SqlType::Char(length) => write!(f, "CHAR({length})"),
            SqlType::Varchar(MAX_LENGTH) => f.write_str("STRING"),
            SqlType::Varchar(length) => write!(f, "VARCHAR({length})"),
            SqlType::Binary(length) => write!(f, "BINARY({length})"),
            SqlType::Varbinary(MAX_LENGTH) => f.write_str("BYTES"),
            SqlType::Varbinary(length) => write!(f, "VARBINARY({length})"),
            SqlType::Date => f.write_str("DATE"),
            SqlType::Time(precision) => write!(f, "TIME({precision})"),
            SqlType::Timestamp(precision) => write!(f, "TIMESTAMP({precision})"),
            SqlType::TimestampLtz(precision) => write!(f, "TIMESTAMP_LTZ({precision})"),
            SqlType::IntervalYearMonth => f.write_str("INTERVAL YEAR TO MONTH"),
            SqlType::IntervalDayTime => f.write_str("INTERVAL DAY TO SECOND"),
            SqlType::Bitmap => f.write_str("BITMAP"),
            SqlType::Variant => f.write_str("VARIANT"),
            SqlType::Array(element) => write!(f, "ARRAY<{element}>"),
            SqlType::Multiset(element) => write!(f, "MULTISET<{element}>"),
            SqlType::Map(key, value) => write!(f, "MAP<{key}, {value}>"),
            SqlType::Row(fields) => {
                f.write_str("ROW<")?;
                for (index, field) in fields.iter().enumerate() {
                    write!(f, "{}`{}` {field}", if index > 0 { ", " } else { "" }, field.name.replace('`', "``"))?;
                }
                f.write_str(">")
            }
        }
    }
}

impl fmt::Display for RowField {
    /// The type and, if NULL is not allowed, `NOT NULL`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", self.sql_type, if self.nullable { "" } else { " NOT NULL" })
    }
}
