//! Casts as a real Flink does them.

use crate::functions::testing::{
    Value, boolean, bytes, cast_in, decimal, double, int, list, long, string, text, value,
};
use crate::types::{RowField, SqlType};

use SqlType::*;

fn cast(from: &Value, to: SqlType) -> String {
    cast_in(crate::types::TimeZone::UTC, from, &to, false).unwrap_or_else(|error| error)
}

fn try_cast(from: &Value, to: SqlType) -> String {
    cast_in(crate::types::TimeZone::UTC, from, &to, true).unwrap_or_else(|error| error)
}

#[test]
fn numbers_wrap_and_saturate_as_in_java() {
    assert_eq!(cast(&int(300), TinyInt), "44");
    assert_eq!(try_cast(&long(5_000_000_000), Int), "705032704");
    assert_eq!(cast(&double(1e300), Int), "2147483647");
    assert_eq!(cast(&double(1e300), SmallInt), "-1");
    assert_eq!(cast(&double(-2.9), Int), "-2");
    assert_eq!(cast(&double(f64::NAN), Int), "0");
    assert_eq!(cast(&decimal("99999999999999.999999"), Int), "276447231");
    assert_eq!(cast(&decimal("99999999.99"), TinyInt), "-1");
    assert_eq!(cast(&double(1e300), Float), "Infinity");
    assert_eq!(cast(&int(0), Boolean), "FALSE");
    assert_eq!(cast(&decimal("0.4"), Boolean), "TRUE");
    assert_eq!(cast(&boolean(true), Decimal(3, 1)), "1.0");
}

#[test]
fn decimals_round_half_up_or_are_null() {
    assert_eq!(cast(&int(100_000).nullable(), Decimal(5, 2)), "<NULL>");
    assert_eq!(cast(&decimal("0.05"), Decimal(10, 1)), "0.1");
    assert_eq!(cast(&decimal("-1.5"), Decimal(1, 0)), "-2");
    assert_eq!(cast(&double(0.1), Decimal(38, 20)), "0.10000000000000000000");
    assert_eq!(try_cast(&double(1e30), Decimal(3, 1)), "<NULL>");
    assert!(try_cast(&double(f64::NAN), Decimal(3, 1)).contains("cannot cast NaN"));
    assert!(cast(&double(1e10), Decimal(5, 0)).contains("NOT NULL"));
}

#[test]
fn text_is_read_or_refused() {
    assert_eq!(cast(&text(" 12 "), Int), "12");
    assert_eq!(cast(&text("1e400"), Double), "Infinity");
    assert_eq!(cast(&text("1d"), Double), "1.0");
    assert_eq!(cast(&text("-Infinity"), Double), "-Infinity");
    assert_eq!(cast(&text("YES"), Boolean), "TRUE");
    assert_eq!(try_cast(&text(" true "), Boolean), "<NULL>");
    assert_eq!(cast(&text("12x"), Int), "cannot cast '12x' to INT; TRY_CAST gives NULL instead");
    assert_eq!(try_cast(&text("inf"), Double), "<NULL>");
    assert_eq!(try_cast(&text("128"), TinyInt), "<NULL>");
    assert_eq!(cast(&text("2024-02-29"), Date), "2024-02-29");
    assert!(cast(&text("2024-02-30"), Date).contains("it takes a date like 2024-12-31"));
    assert_eq!(cast(&text("23:59:59.999"), Time(3)), "23:59:59.999");
    assert_eq!(cast(&text("2024-02-29 10:11:12.1234567"), Timestamp(3)), "2024-02-29 10:11:12.123");
    assert_eq!(cast(&text("abc"), Binary(4)), "x'61626300'");
    assert_eq!(cast(&bytes(&[0x61, 0xff, 0x7a]), SqlType::STRING), "a\u{fffd}z");
}

#[test]
fn values_become_text() {
    assert_eq!(cast(&text("abcdef"), Varchar(3)), "abc");
    assert_eq!(cast(&text("ab"), Char(5)), "ab   ");
    assert_eq!(cast(&string("a😀b"), Varchar(2)), "a😀");
    assert_eq!(cast(&decimal("-1.50"), Char(8)), "-1.50   ");
    assert_eq!(cast(&boolean(false), Varchar(2)), "FA");
    assert_eq!(cast(&double(1e-5), SqlType::STRING), "1.0E-5");
    assert_eq!(cast(&list(Int, &["1", "NULL", "3"]), SqlType::STRING), "[1, NULL, 3]");
}

#[test]
fn times_are_cut_and_move_between_zones() {
    let old = value(Timestamp(3), "1900-03-01 06:00:01.001");
    assert_eq!(cast(&old, Date), "1900-03-02");
    assert_eq!(cast(&old, Time(0)), "06:00:02");
    assert_eq!(cast(&old, Timestamp(0)), "1900-03-01 06:00:02");
    let micros = value(Timestamp(6), "1969-12-31 23:59:59.999999");
    assert_eq!(cast(&micros, Timestamp(3)), "1969-12-31 23:59:59.999");
    assert_eq!(cast(&micros, Timestamp(1)), "1970-01-01 00:00:00.0");
    assert_eq!(cast(&value(Timestamp(6), "2024-02-29 10:11:12.345678"), Timestamp(1)), "2024-02-29 10:11:12.3");
    assert_eq!(cast(&value(Date, "2024-02-29"), Timestamp(3)), "2024-02-29 00:00:00.000");
    let tokyo = |from: &Value, to: SqlType| {
        cast_in(crate::types::TimeZone::named("Asia/Tokyo").expect("a zone"), from, &to, false).unwrap()
    };
    let instant = value(TimestampLtz(3), "2024-02-29 20:00:00");
    assert_eq!(tokyo(&instant, Timestamp(3)), "2024-03-01 05:00:00.000");
    assert_eq!(tokyo(&instant, Date), "2024-03-01");
    assert_eq!(tokyo(&value(Timestamp(3), "2024-02-29 10:00:00"), TimestampLtz(3)), "2024-02-29 10:00:00.000");
}

#[test]
fn nested_values_are_cast_by_component() {
    let array = |element: SqlType| Array(Box::new(RowField::unnamed(element, true)));
    assert_eq!(cast(&list(SqlType::STRING, &["1", " 2 "]), array(Int)), "[1, 2]");
    assert_eq!(try_cast(&list(SqlType::STRING, &["1", "x"]), array(Int)), "<NULL>");
    assert_eq!(cast(&list(Date, &["2024-01-01"]), array(Timestamp(3))), "[2024-01-01 00:00:00.000]");
}

#[test]
fn what_flink_does_not_cast_is_refused() {
    assert!(cast(&value(Date, "2024-01-01"), Int).starts_with("cannot cast DATE to INT"));
    assert!(cast(&int(1), Timestamp(3)).contains("TO_TIMESTAMP_LTZ"));
    assert!(cast(&int(1), SqlType::BYTES).starts_with("cannot cast INT to BYTES"));
}
