//! Cells as the recorded conformance cases print them, and the edges of every type.

use std::sync::Arc;

use arrow::array::*;
use arrow::buffer::OffsetBuffer;
use arrow::datatypes::{DataType, Field, Fields, Int32Type};

use super::*;
use crate::types::RowField;

const ZONE: crate::types::TimeZone = crate::types::TimeZone::UTC;

/// Prints a column declared with this SQL type.
fn check(sql_type: &SqlType, column: &dyn Array, expected: &[&str]) {
    check_in(ZONE, sql_type, column, expected);
}

fn check_in(zone: crate::types::TimeZone, sql_type: &SqlType, column: &dyn Array, expected: &[&str]) {
    let format = CellFormat::new(&sql_type.to_field("c", true), zone);
    let cells = format.bind(column).unwrap();
    let text = |row| {
        let mut text = String::new();
        cells.write(row, &mut text).unwrap();
        text
    };
    assert_eq!((0..column.len()).map(text).collect::<Vec<_>>(), expected);
}

#[test]
fn doubles_print_by_javas_rules() {
    let values = [
        1.0,
        100.0,
        1e7,
        1e-5,
        0.001,
        0.0009,
        123_456.789,
        1_234_567.0,
        12_345_678.9,
        9_007_199_254_740_992.0,
        1e300,
        -2.75,
        -0.0,
        4.35,
        1e21,
        2.147483647e9,
        f64::NAN,
        f64::INFINITY,
        f64::NEG_INFINITY,
        5e-324,
        f64::MAX,
    ];
    let expected = [
        "1.0",
        "100.0",
        "1.0E7",
        "1.0E-5",
        "0.001",
        "9.0E-4",
        "123456.789",
        "1234567.0",
        "1.23456789E7",
        "9.007199254740992E15",
        "1.0E300",
        "-2.75",
        "-0.0",
        "4.35",
        "1.0E21",
        "2.147483647E9",
        "NaN",
        "Infinity",
        "-Infinity",
        "5.0E-324",
        "1.7976931348623157E308",
    ];
    check(&SqlType::Double, &Float64Array::from(values.to_vec()), &expected);
}

#[test]
fn floats_print_the_fewest_digits_that_tell_them_apart() {
    let values = vec![0.1f32, 3e38, 1.1, 16_777_216.0, -1.5, f32::NAN];
    check(&SqlType::Float, &Float32Array::from(values), &["0.1", "3.0E38", "1.1", "1.6777216E7", "-1.5", "NaN"]);
}

#[test]
fn decimals_print_every_digit_of_their_scale() {
    let column = Decimal128Array::from(vec![Some(1234), Some(-5), Some(0), None, Some(9_999_999_999)])
        .with_precision_and_scale(10, 2)
        .unwrap();
    check(&SqlType::Decimal(10, 2), &column, &["12.34", "-0.05", "0.00", "<NULL>", "99999999.99"]);
    let whole = Decimal128Array::from(vec![i128::from(i64::MAX) * 10]).with_precision_and_scale(38, 0).unwrap();
    check(&SqlType::Decimal(38, 0), &whole, &["92233720368547758070"]);
    let tens = Decimal128Array::from(vec![7, 0]).with_precision_and_scale(5, -2).unwrap();
    check(&SqlType::Decimal(5, -2), &tens, &["700", "0"]);
}

#[test]
fn scalars() {
    check(&SqlType::Boolean, &BooleanArray::from(vec![Some(true), Some(false), None]), &["TRUE", "FALSE", "<NULL>"]);
    check(&SqlType::TinyInt, &Int8Array::from(vec![i8::MIN, 7]), &["-128", "7"]);
    check(
        &SqlType::BigInt,
        &Int64Array::from(vec![i64::MIN, i64::MAX]),
        &["-9223372036854775808", "9223372036854775807"],
    );
    check(&SqlType::STRING, &StringArray::from(vec![Some(""), Some("日本語"), None]), &["", "日本語", "<NULL>"]);
    check(
        &SqlType::STRING,
        &StringViewArray::from(vec!["a", "longer than twelve bytes"]),
        &["a", "longer than twelve bytes"],
    );
    check(&SqlType::BYTES, &BinaryArray::from(vec![&[0x0a, 0xff][..], &[]]), &["x'0aff'", "x''"]);
    check(&SqlType::Null, &NullArray::new(1), &["<NULL>"]);
}

#[test]
fn dates_run_both_ways_from_the_epoch() {
    let column = Date32Array::from(vec![19_782, -1, 0, 10_957, -719_162, -25_508, 2_932_897]);
    let expected = ["2024-02-29", "1969-12-31", "1970-01-01", "2000-01-01", "0001-01-01", "1900-03-01", "10000-01-01"];
    check(&SqlType::Date, &column, &expected);
    let edges = Date32Array::from(vec![i32::MIN, i32::MAX]);
    check(&SqlType::Date, &edges, &["-5877641-06-23", "5881580-07-11"]);
}

#[test]
fn timestamps_print_their_precision() {
    let millis = TimestampMillisecondArray::from(vec![Some(1_709_201_472_345), Some(-1), None]);
    check(&SqlType::Timestamp(3), &millis, &["2024-02-29 10:11:12.345", "1969-12-31 23:59:59.999", "<NULL>"]);
    let tenths = TimestampMillisecondArray::from(vec![1_709_201_472_300, 0]);
    check(&SqlType::Timestamp(1), &tenths, &["2024-02-29 10:11:12.3", "1970-01-01 00:00:00.0"]);
    let seconds = TimestampSecondArray::from(vec![1_709_201_472]);
    check(&SqlType::Timestamp(0), &seconds, &["2024-02-29 10:11:12"]);
    let micros = TimestampMicrosecondArray::from(vec![1_709_201_472_345_678]);
    check(&SqlType::Timestamp(6), &micros, &["2024-02-29 10:11:12.345678"]);
    let nanos = TimestampNanosecondArray::from(vec![1_709_201_472_345_678_000]);
    check(&SqlType::Timestamp(9), &nanos, &["2024-02-29 10:11:12.345678000"]);
    let edges = TimestampMillisecondArray::from(vec![i64::MIN, i64::MAX]);
    let format = CellFormat::new(&SqlType::Timestamp(3).to_field("c", true), ZONE);
    (0..2).for_each(|row| format.write(&edges, row, &mut String::new()).unwrap());
}

#[test]
fn instants_are_shown_in_the_sessions_zone() {
    let column = TimestampMillisecondArray::from(vec![0, 1_709_201_472_345]).with_timezone("UTC");
    let ltz = SqlType::TimestampLtz(3);
    check(&ltz, &column, &["1970-01-01 00:00:00.000", "2024-02-29 10:11:12.345"]);
    check_in(
        crate::types::TimeZone::named("Asia/Shanghai").expect("a zone"),
        &ltz,
        &column,
        &["1970-01-01 08:00:00.000", "2024-02-29 18:11:12.345"],
    );
    check_in(
        crate::types::TimeZone::named("Asia/Kolkata").expect("a zone"),
        &ltz,
        &column,
        &["1970-01-01 05:30:00.000", "2024-02-29 15:41:12.345"],
    );
    let edges = TimestampMillisecondArray::from(vec![i64::MIN, i64::MAX]).with_timezone("UTC");
    let format =
        CellFormat::new(&ltz.to_field("c", true), crate::types::TimeZone::named("Asia/Tokyo").expect("a zone"));
    (0..2).for_each(|row| format.write(&edges, row, &mut String::new()).unwrap());
}

#[test]
fn times_drop_trailing_zeros() {
    check(&SqlType::Time(0), &Time32SecondArray::from(vec![36_672, 0]), &["10:11:12", "00:00:00"]);
    let millis = Time32MillisecondArray::from(vec![86_399_999, 36_672_500, 36_672_000]);
    check(&SqlType::Time(3), &millis, &["23:59:59.999", "10:11:12.5", "10:11:12.0"]);
    check(&SqlType::Time(6), &Time64MicrosecondArray::from(vec![1]), &["00:00:00.000001"]);
}

#[test]
fn intervals_carry_their_sign() {
    let months = IntervalYearMonthArray::from(vec![14, -14, 0]);
    check(&SqlType::IntervalYearMonth, &months, &["+1-02", "-1-02", "+0-00"]);
    let nanos = |milliseconds: i64| milliseconds * 1_000_000;
    let times = IntervalMonthDayNanoArray::from(vec![
        IntervalMonthDayNano::new(0, 1, nanos(7_384_567)),
        IntervalMonthDayNano::new(0, 0, 0),
        IntervalMonthDayNano::new(0, -1, nanos(-1)),
    ]);
    check(&SqlType::IntervalDayTime, &times, &["+1 02:03:04.567", "+0 00:00:00.000", "-1 00:00:00.001"]);
}

#[test]
fn arrays_print_null_inside_without_brackets() {
    let column = ListArray::from_iter_primitive::<Int32Type, _, _>(vec![
        Some(vec![Some(1), None, Some(2)]),
        Some(vec![]),
        None,
        Some(vec![Some(42)]),
    ]);
    let sql_type = SqlType::Array(Box::new(RowField::unnamed(SqlType::Int, true)));
    check(&sql_type, &column, &["[1, NULL, 2]", "[]", "<NULL>", "[42]"]);
    check(&sql_type, &column.slice(2, 2), &["<NULL>", "[42]"]);
}

#[test]
fn maps_rows_and_their_nesting() {
    let keys: ArrayRef = Arc::new(StringArray::from(vec!["a", "b", "c"]));
    let values: ArrayRef = Arc::new(Int32Array::from(vec![Some(1), None, Some(3)]));
    let pair = Fields::from(vec![Field::new("key", DataType::Utf8, false), Field::new("value", DataType::Int32, true)]);
    let entries = StructArray::new(pair.clone(), vec![keys.clone(), values.clone()], None);
    let field = Arc::new(Field::new("entries", DataType::Struct(pair.clone()), false));
    let map = MapArray::new(field, OffsetBuffer::new(vec![0, 2, 2, 3].into()), entries, None, false);
    let text = RowField::unnamed(SqlType::STRING, false);
    let sql_type = SqlType::Map(Box::new(text.clone()), Box::new(RowField::unnamed(SqlType::Int, true)));
    check(&sql_type, &map, &["{a=1, b=NULL}", "{}", "{c=3}"]);

    let row = StructArray::new(pair, vec![keys, values], Some(vec![true, true, false].into()));
    let field = |name: &str, sql_type| RowField { name: name.into(), sql_type, nullable: true };
    let row_type = SqlType::Row(vec![field("key", SqlType::STRING), field("value", SqlType::Int)]);
    check(&row_type, &row, &["(a, 1)", "(b, NULL)", "<NULL>"]);

    let item = Arc::new(Field::new("item", row.data_type().clone(), true));
    let list = ListArray::new(item, OffsetBuffer::new(vec![0, 2, 3].into()), Arc::new(row), None);
    let array_type = SqlType::Array(Box::new(RowField::unnamed(row_type, true)));
    check(&array_type, &list, &["[(a, 1), (b, NULL)]", "[NULL]"]);
}

#[test]
fn a_precision_inside_a_row_is_kept() {
    let row_type = SqlType::Row(vec![RowField { name: "t".into(), sql_type: SqlType::Timestamp(1), nullable: true }]);
    let DataType::Struct(fields) = row_type.to_arrow() else { unreachable!("a row is a struct") };
    let column: ArrayRef = Arc::new(TimestampMillisecondArray::from(vec![500]));
    check(&row_type, &StructArray::new(fields, vec![column], None), &["(1970-01-01 00:00:00.5)"]);
}

#[test]
fn a_row_format_prints_row_by_row() {
    let schema = Schema::new(vec![Field::new("name", DataType::Utf8, true), Field::new("n", DataType::Int64, true)]);
    let columns: Vec<ArrayRef> =
        vec![Arc::new(StringArray::from(vec!["Mary", "Bob"])), Arc::new(Int64Array::from(vec![Some(2), None]))];
    let rows = RecordBatch::try_new(Arc::new(schema.clone()), columns).unwrap();
    let format = RowFormat::new(&schema, ZONE);
    assert_eq!(format.cells(&rows, 0).unwrap(), ["Mary", "2"]);
    assert_eq!(format.cells(&rows, 1).unwrap(), ["Bob", "<NULL>"]);
}
