//! For tests: calls a function by name over constants and over columns, and gives the printed result.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, BooleanArray, ListArray, StringArray, UInt32Array, new_null_array};
use arrow::buffer::OffsetBuffer;
use arrow::compute::take;
use arrow::datatypes::{DataType, Field, FieldRef};
use datafusion_common::ScalarValue;
use datafusion_common::config::ConfigOptions;
use datafusion_expr::{ColumnarValue, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF};

use super::cast::{cast_column, printer};
use super::encoding::push_hex;
use super::{FunctionContext, cast_function, scalar_functions};
use crate::types::{RowField, SqlType};

/// An argument: one value and its type.
#[derive(Clone)]
pub(super) struct Value {
    field: FieldRef,
    array: ArrayRef,
}

impl Value {
    fn new(sql_type: SqlType, array: ArrayRef) -> Value {
        let nullable = array.null_count() > 0;
        Value { field: Arc::new(sql_type.to_field("argument", nullable)), array }
    }

    /// The same value in a column that may hold NULL.
    pub fn nullable(self) -> Value {
        Value { field: Arc::new(self.field.as_ref().clone().with_nullable(true)), ..self }
    }
}

/// A context at 2024-02-29 10:11:12.345 UTC.
pub(super) fn context(zone: crate::types::TimeZone) -> FunctionContext {
    FunctionContext { zone, clock: Arc::new(|| 1_709_201_472_345), batch: false }
}

/// A text literal, of type CHAR.
pub(super) fn text(value: &str) -> Value {
    let length = value.chars().count().max(1) as u32;
    Value::new(SqlType::Char(length), Arc::new(StringArray::from(vec![value])))
}

/// A text of a column, of type STRING.
pub(super) fn string(value: &str) -> Value {
    Value::new(SqlType::STRING, Arc::new(StringArray::from(vec![value])))
}

/// A value of any type that CAST can read from text.
pub(super) fn value(sql_type: SqlType, value: &str) -> Value {
    let from: ArrayRef = Arc::new(StringArray::from(vec![value]));
    let array =
        cast_column(&from, &SqlType::STRING, &sql_type, crate::types::TimeZone::UTC).expect("a readable test value");
    Value::new(sql_type, array)
}

/// An INT literal.
pub(super) fn int(number: i32) -> Value {
    value(SqlType::Int, &number.to_string())
}

/// A BIGINT.
pub(super) fn long(number: i64) -> Value {
    value(SqlType::BigInt, &number.to_string())
}

/// A DOUBLE literal.
pub(super) fn double(number: f64) -> Value {
    Value::new(SqlType::Double, Arc::new(arrow::array::Float64Array::from(vec![number])))
}

/// A DECIMAL literal with the digits it is written with.
pub(super) fn decimal(digits: &str) -> Value {
    let bare = digits.trim_start_matches('-');
    let scale = bare.split_once('.').map_or(0, |(_, fraction)| fraction.len()) as i8;
    let precision = bare.len() as u8 - u8::from(bare.contains('.'));
    value(SqlType::Decimal(precision, scale), digits)
}

/// A BOOLEAN literal.
pub(super) fn boolean(value: bool) -> Value {
    Value::new(SqlType::Boolean, Arc::new(BooleanArray::from(vec![value])))
}

/// NULL of a type.
pub(super) fn null(sql_type: SqlType) -> Value {
    let array = new_null_array(&sql_type.to_arrow(), 1);
    Value::new(sql_type, array)
}

/// A byte string.
pub(super) fn bytes(value: &[u8]) -> Value {
    let array = arrow::array::BinaryArray::from(vec![value]);
    Value::new(SqlType::BYTES, Arc::new(array))
}

/// An array of texts cast to the element type; `NULL` is NULL.
pub(super) fn list(element: SqlType, values: &[&str]) -> Value {
    let texts: ArrayRef = Arc::new(values.iter().map(|v| (*v != "NULL").then_some(*v)).collect::<StringArray>());
    let elements =
        cast_column(&texts, &SqlType::STRING, &element, crate::types::TimeZone::UTC).expect("readable test values");
    let field = Arc::new(element.to_field("item", true));
    let offsets = OffsetBuffer::from_lengths([values.len()]);
    let array = ListArray::try_new(field, offsets, elements, None).expect("a list of test values");
    Value::new(SqlType::Array(Box::new(RowField::unnamed(element, true))), Arc::new(array))
}

/// Prints a row of a column: NULL as `<NULL>`, bytes in hexadecimal.
fn print(array: &ArrayRef, field: &Field, row: usize, zone: crate::types::TimeZone) -> String {
    if array.is_null(row) {
        return "<NULL>".into();
    }
    let mut text = String::new();
    if *array.data_type() == DataType::Binary {
        text.push_str("x'");
        push_hex(array.as_binary::<i32>().value(row), false, &mut text);
        text.push('\'');
        return text;
    }
    let sql_type = SqlType::of_field(field);
    printer(array, &sql_type, zone).expect("a printable result")(row, &mut text);
    text
}

/// The printed result and its type of a function over these arguments, or the error's text.
fn run(function: &ScalarUDF, arguments: &[Value], zone: crate::types::TimeZone) -> Result<(String, String), String> {
    let fields: Vec<FieldRef> = arguments.iter().map(|a| a.field.clone()).collect();
    let types: Vec<DataType> = fields.iter().map(|f| f.data_type().clone()).collect();
    let shown = |error: datafusion_common::DataFusionError| error.to_string().replace("External error: ", "");
    function.coerce_types(&types).map_err(shown)?;
    let scalars: Vec<ScalarValue> =
        arguments.iter().map(|a| ScalarValue::try_from_array(&a.array, 0)).collect::<Result<_, _>>().map_err(shown)?;
    let known: Vec<Option<&ScalarValue>> = scalars.iter().map(Some).collect();
    let field = function
        .return_field_from_args(ReturnFieldArgs { arg_fields: &fields, scalar_arguments: &known })
        .map_err(shown)?;
    let invoke = |args: Vec<ColumnarValue>, rows: usize| {
        function.invoke_with_args(ScalarFunctionArgs {
            args,
            arg_fields: fields.clone(),
            number_rows: rows,
            return_field: field.clone(),
            config_options: Arc::new(ConfigOptions::default()),
        })
    };
    let constant = invoke(scalars.iter().cloned().map(ColumnarValue::Scalar).collect(), 1).map_err(shown)?;
    let constant = constant.into_array(1).map_err(shown)?;
    assert_eq!(constant.data_type(), field.data_type(), "{}", function.name());
    let printed = print(&constant, &field, 0, zone);
    // Over columns, and with the constants mixed in, the result must be the same.
    let columns: Vec<ArrayRef> = arguments
        .iter()
        .map(|a| take(&a.array, &UInt32Array::from(vec![0; 3]), None).expect("three rows of one"))
        .collect();
    for mixed in [false, true] {
        let argument = |index: usize| {
            if mixed && index > 0 {
                ColumnarValue::Scalar(scalars[index].clone())
            } else {
                ColumnarValue::Array(columns[index].clone())
            }
        };
        let result = invoke((0..columns.len()).map(argument).collect(), 3).map_err(shown)?;
        let result = result.into_array(3).map_err(shown)?;
        assert_eq!(result.data_type(), field.data_type(), "{}", function.name());
        assert_eq!(result.len(), 3, "{}", function.name());
        if function.signature().volatility != datafusion_expr::Volatility::Volatile {
            assert_eq!(print(&result, &field, 2, zone), printed, "{} over columns", function.name());
        }
    }
    let nullable = if field.is_nullable() { "" } else { " NOT NULL" };
    Ok((printed, format!("{}{nullable}", SqlType::of_field(&field))))
}

fn find(name: &str, zone: crate::types::TimeZone) -> Arc<ScalarUDF> {
    let functions = scalar_functions(&context(zone));
    let found = functions.into_iter().find(|f| f.name() == name || f.aliases().iter().any(|alias| alias == name));
    found.unwrap_or_else(|| panic!("there is no function {name}"))
}

/// The printed result of a function in UTC.
pub(super) fn call(name: &str, arguments: &[Value]) -> String {
    call_in(crate::types::TimeZone::UTC, name, arguments)
}

/// The printed result of a function in a zone.
pub(super) fn call_in(zone: crate::types::TimeZone, name: &str, arguments: &[Value]) -> String {
    run(&find(name, zone), arguments, zone).unwrap_or_else(|error| panic!("{name}: {error}")).0
}

/// The result type of a function.
pub(super) fn type_of(name: &str, arguments: &[Value]) -> String {
    run(&find(name, crate::types::TimeZone::UTC), arguments, crate::types::TimeZone::UTC)
        .unwrap_or_else(|error| panic!("{name}: {error}"))
        .1
}

/// The error of a function.
pub(super) fn error(name: &str, arguments: &[Value]) -> String {
    match run(&find(name, crate::types::TimeZone::UTC), arguments, crate::types::TimeZone::UTC) {
        Ok((result, _)) => panic!("{name} gave {result}"),
        Err(error) => error,
    }
}

/// The printed result of `CAST(value AS to)` or `TRY_CAST`, in a zone, or the error's text.
pub(super) fn cast_in(
    zone: crate::types::TimeZone,
    value: &Value,
    to: &SqlType,
    try_cast: bool,
) -> Result<String, String> {
    let function = cast_function(&value.field, to, try_cast, &context(zone)).map_err(|error| error.to_string())?;
    match function {
        Some(function) => Ok(run(&function, std::slice::from_ref(value), zone)?.0),
        None => {
            let array = arrow::compute::cast(&value.array, &to.to_arrow()).map_err(|error| error.to_string())?;
            Ok(print(&array, &to.to_field("", true), 0, zone))
        }
    }
}
