//! One block a family: values and types as a real Flink gives them.

use super::testing::{
    boolean, bytes, call, call_in, decimal, double, error, int, list, long, null, string, text, type_of, value,
};
use super::{ArithmeticOperator, arithmetic, function_names};
use crate::types::SqlType;

const STRING: SqlType = SqlType::STRING;

fn timestamp(precision: u8, written: &str) -> super::testing::Value {
    value(SqlType::Timestamp(precision), written)
}

fn date(written: &str) -> super::testing::Value {
    value(SqlType::Date, written)
}

#[test]
fn names_are_listed_once() {
    let names = function_names();
    for name in ["upper", "mod", "count", "ceiling", "array_sort", "json_value", "tumble"] {
        assert!(names.contains(&name.to_string()), "{name}");
    }
}

#[test]
fn letters() {
    assert_eq!(call("upper", &[text("straße")]), "STRASS");
    assert_eq!(call("upper", &[string("straße")]), "STRASSE");
    assert_eq!(call("lower", &[text("ΣΑΣ")]), "σας");
    assert_eq!(type_of("upper", &[text("abc")]), "CHAR(3) NOT NULL");
    assert_eq!(call("initcap", &[text("o'neil mc.donald a1b 2c")]), "O'Neil Mc.Donald A1b 2c");
    assert_eq!(call("initcap", &[text("éa Éb")]), "éA ÉB");
    assert_eq!(call("reverse", &[text("a😀b")]), "b😀a");
    assert_eq!(call("char_length", &[text("a😀b")]), "3");
    assert_eq!(call("ascii", &[text("é")]), "-61");
    assert_eq!(call("ascii", &[string("")]), "0");
    assert_eq!(call("chr", &[int(353)]), "a");
    assert_eq!(call("chr", &[int(-1)]), "");
    assert_eq!(call("chr", &[int(255)]), "ÿ");
    assert_eq!(call("translate", &[text("abcabc"), text("abc"), text("x")]), "xx");
    assert_eq!(call("translate", &[text("abc"), text("b"), null(STRING)]), "ac");
    assert!(error("upper", &[int(1)]).contains("cannot apply UPPER(INT)"));
}

#[test]
fn parts_of_text() {
    let substring = |start, length| call("substring", &[text("abcdef"), int(start), int(length)]);
    assert_eq!(call("substring", &[text("abcdef"), int(0)]), "abcdef");
    assert_eq!(substring(0, 2), "ab");
    assert_eq!(call("substring", &[text("abcdef"), int(-2)]), "ef");
    assert_eq!(substring(-4, 2), "cd");
    assert_eq!(substring(-9, 5), "");
    assert_eq!(substring(7, 1), "");
    assert_eq!(substring(5, 99), "ef");
    assert_eq!(substring(1, -1), "<NULL>");
    assert_eq!(call("left", &[text("naïve"), int(3)]), "naï");
    assert_eq!(call("right", &[text("a😀b"), int(2)]), "😀b");
    assert_eq!(call("right", &[text("abc"), int(-1)]), "");
    assert_eq!(call("btrim", &[text("xyabyx"), text("xy")]), "ab");
    assert_eq!(call("ltrim", &[text("abc"), string("")]), "abc");
    assert_eq!(type_of("trim", &[text("abc")]), "VARCHAR(3) NOT NULL");
    assert_eq!(call("overlay", &[text("abcdef"), text("XY"), int(3)]), "abXYef");
    assert_eq!(call("overlay", &[text("abcdef"), text("Z"), int(3), int(0)]), "abZ");
    assert_eq!(call("overlay", &[text("a😀b"), text("**"), int(2), int(2)]), "a**b");
    assert_eq!(call("overlay", &[text("a😀b"), text("**"), int(4)]), "a😀**");
    assert_eq!(call("overlay", &[text("abc"), text("X"), int(0)]), "abc");
    assert_eq!(call("replace", &[text("ab"), string(""), text("-")]), "-a-b-");
    assert_eq!(call("lpad", &[text("hi"), int(5), text("xyz")]), "xyzhi");
    assert_eq!(call("rpad", &[text("hello"), int(2), text("x")]), "he");
    assert_eq!(call("lpad", &[text("a😀b"), int(5), text("*")]), "*a😀b");
    assert_eq!(call("lpad", &[text("hi").nullable(), int(5), string("")]), "<NULL>");
    assert!(error("lpad", &[text("hi"), int(5), string("")]).contains("NOT NULL"));
    assert_eq!(call("repeat", &[text("ab"), int(3)]), "ababab");
    assert!(error("repeat", &[text("ab"), int(i32::MAX)]).contains("more than"));
}

#[test]
fn text_in_text() {
    assert_eq!(call("position", &[text("b"), text("abcb")]), "2");
    assert_eq!(call("locate", &[text("b"), text("abcb"), int(3)]), "4");
    assert_eq!(call("locate", &[text("b"), text("abcb"), int(5)]), "0");
    assert_eq!(call("locate", &[text("a"), text("abc"), int(-1)]), "1");
    assert_eq!(call("locate", &[string(""), text("abc")]), "1");
    let instr = |start, nth| call("instr", &[text("banana"), text("an"), int(start), int(nth)]);
    assert_eq!(
        [instr(1, 1), instr(3, 1), instr(1, 2), instr(-1, 1), instr(-1, 2), instr(1, 9)].join(" "),
        "2 4 4 4 2 0"
    );
    assert_eq!(call("startswith", &[bytes(&[1, 2]), bytes(&[1])]), "TRUE");
    assert_eq!(call("endswith", &[string(""), text("x")]), "FALSE");
    assert_eq!(call("concat", &[text("a"), null(STRING)]), "<NULL>");
    assert_eq!(type_of("flink_concat", &[text("a"), text("b")]), "CHAR(2) NOT NULL");
    assert_eq!(call("concat_ws", &[text(","), text("a"), null(STRING), text("b")]), "a,b");
    assert_eq!(call("concat_ws", &[text(","), null(STRING)]), "");
    assert_eq!(call("elt", &[int(2), text("a"), text("b")]), "b");
    assert_eq!(call("elt", &[int(3), text("a"), text("b")]), "<NULL>");
    assert_eq!(call("split", &[text("a,,c,"), text(",")]), "[a, , c, ]");
    assert_eq!(call("split", &[text("abc"), string("")]), "[a, b, c]");
    assert_eq!(call("split", &[string(""), text(",")]), "[]");
    assert_eq!(call("split_index", &[text("a,b"), int(44), int(1)]), "b");
    assert_eq!(call("split_index", &[text("abc"), string(""), int(0)]), "abc");
    assert_eq!(call("split_index", &[text("a,b"), text(","), int(-1)]), "<NULL>");
    assert_eq!(call("str_to_map", &[text("a=1,b=2,a=3,x,k=")]), "{a=3, b=2, x=NULL, k=}");
    assert_eq!(call("str_to_map", &[string("")]), "{}");
}

#[test]
fn printf() {
    assert_eq!(call("printf", &[text("%s is %d years"), text("Ada"), int(36)]), "Ada is 36 years");
    assert_eq!(call("printf", &[text("%05d|%-5s|%x"), int(42), text("ab"), int(255)]), "00042|ab   |ff");
    assert_eq!(call("printf", &[text("%.2f"), double(1.005)]), "1.01");
    assert_eq!(call("printf", &[text("%%")]), "%");
    assert_eq!(call("printf", &[text("%s"), null(STRING)]), "null");
    assert_eq!(call("printf", &[text("%d"), text("text")]), "<NULL>");
    assert_eq!(call("printf", &[text("%s %s"), text("one")]), "<NULL>");
    assert_eq!(call("printf", &[text("%,d %2$s %1$s"), int(-1_234_567), text("b")]), "-1,234,567 b -1234567");
}

#[test]
fn patterns() {
    assert_eq!(call("like", &[text("a\\b"), text("a\\b")]), "TRUE");
    assert_eq!(call("like", &[text("100%"), text("100!%"), text("!")]), "TRUE");
    assert_eq!(call("similar", &[text("abc"), text("(a|b)%")]), "TRUE");
    assert_eq!(call("similar", &[text("abc"), text("b")]), "FALSE");
    assert_eq!(call("similar", &[text("100%"), text("100!%"), text("!")]), "TRUE");
    assert!(error("similar", &[text("a"), text("a{")]).contains("no pattern"));
    assert_eq!(call("regexp", &[text("abc"), text("(")]), "FALSE");
    assert_eq!(call("regexp", &[text("abc"), string("")]), "FALSE");
    assert_eq!(call("regexp_replace", &[text("aaa"), text("a*"), text("X")]), "XX");
    assert_eq!(call("regexp_replace", &[text("2024-02"), text(r"(\d+)-(\d+)"), text("$2/$1")]), "$2/$1");
    assert_eq!(call("regexp_extract", &[text("foothebar"), text("foo(.*?)(bar)"), int(2)]), "bar");
    assert_eq!(call("regexp_extract", &[text("foothebar"), text("foo(.*?)(bar)"), int(3)]), "<NULL>");
    assert_eq!(call("regexp_extract_all", &[text("100-200, 300-400"), text(r"(\d+)-(\d+)")]), "[100, 300]");
    assert_eq!(call("regexp_extract_all", &[text("abc"), text(r"\d")]), "<NULL>");
    assert_eq!(call("regexp_count", &[text("a😀b"), string("")]), "5");
    assert_eq!(call("regexp_instr", &[text("日本x"), text("x")]), "3");
    assert_eq!(call("regexp_substr", &[text("abc"), text("z")]), "<NULL>");
}

#[test]
fn mathematics() {
    assert_eq!(call("abs", &[int(i32::MIN)]), "-2147483648");
    assert_eq!(call("sign", &[decimal("-99.9999")]), "-1.0000");
    assert_eq!(type_of("round", &[value(SqlType::Decimal(10, 4), "1"), int(2)]), "DECIMAL(9, 2) NOT NULL");
    assert_eq!(type_of("round", &[value(SqlType::Decimal(10, 4), "1")]), "DECIMAL(7, 0) NOT NULL");
    assert_eq!(type_of("truncate", &[value(SqlType::Decimal(10, 4), "1"), int(1)]), "DECIMAL(8, 1) NOT NULL");
    assert_eq!(type_of("ceil", &[value(SqlType::Decimal(10, 4), "1")]), "DECIMAL(10, 0) NOT NULL");
    assert_eq!(call("round", &[decimal("-0.999999"), int(2)]), "-1.00");
    assert_eq!(call("truncate", &[decimal("-0.999999"), int(2)]), "-0.99");
    assert_eq!(call("ceil", &[decimal("-0.999999")]), "0");
    assert_eq!(call("floor", &[decimal("2.5")]), "2");
    assert_eq!(call("round", &[double(1.005), int(2)]), "1.01");
    assert_eq!(call("round", &[double(1_250.0), int(-2)]), "1300.0");
    assert_eq!(call("round", &[int(125), int(-1)]), "130");
    assert_eq!(call("power", &[int(2), int(10)]), "1024.0");
    assert_eq!(call("log", &[int(2), int(8)]), "3.0");
    assert_eq!(call("hex", &[int(-1)]), "FFFFFFFFFFFFFFFF");
    assert_eq!(call("hex", &[text("é")]), "C3A9");
    assert_eq!(call("bin", &[int(12)]), "1100");
    assert_eq!(call("unhex", &[text("F")]), "x'00'");
    assert_eq!(call("unhex", &[text("0xZZ")]), "<NULL>");
    assert_eq!(call("uuid", &[]).len(), 36);
    assert_eq!(call("rand_integer", &[int(42), int(1)]), "0");
}

#[test]
fn arithmetic_types_and_values() {
    let (dc, e) = (value(SqlType::Decimal(10, 2), "12.34").nullable(), value(SqlType::Decimal(20, 6), "1.000001"));
    let typed = |name: &str, left: &super::testing::Value, right: &super::testing::Value| {
        type_of(name, &[left.clone(), right.clone()])
    };
    assert_eq!(typed("flink_plus", &dc, &e), "DECIMAL(21, 6)");
    assert_eq!(typed("flink_divide", &dc, &e), "DECIMAL(37, 23)");
    assert_eq!(typed("flink_modulo", &dc, &e), "DECIMAL(14, 6)");
    assert_eq!(typed("flink_multiply", &int(2), &dc), "DECIMAL(21, 2)");
    assert_eq!(typed("flink_plus", &dc, &double(1.0)), "DOUBLE");
    assert_eq!(typed("mod", &long(1), &int(10)), "INT NOT NULL");
    assert_eq!(typed("flink_plus", &value(SqlType::Float, "1"), &double(1.0)), "FLOAT NOT NULL");
    assert_eq!(call("flink_multiply", &[dc.clone(), e.clone()]), "12.34001234");
    assert_eq!(call("flink_divide", &[dc, int(3)]), "4.1133333333333");
    assert_eq!(call("flink_divide", &[int(-7), int(2)]), "-3");
    assert_eq!(call("flink_divide", &[int(i32::MIN), int(-1)]), "-2147483648");
    assert_eq!(call("flink_modulo", &[int(-7), int(3)]), "-1");
    assert_eq!(call("flink_modulo", &[decimal("-5.5"), int(2)]), "-1.5");
    assert_eq!(call("flink_plus", &[int(i32::MAX), int(1)]), "-2147483648");
    assert_eq!(call("flink_divide", &[double(1.0), int(0)]), "Infinity");
    assert!(error("flink_divide", &[int(1), int(0)]).contains("division by zero"));
    assert!(error("flink_divide", &[decimal("1.0"), decimal("0.0")]).contains("division by zero"));
    let widest = value(SqlType::Decimal(38, 0), "99999999999999999999999999999999999999").nullable();
    assert_eq!(call("flink_plus", &[widest.clone(), widest.clone()]), "<NULL>");
    assert_eq!(call("flink_minus", &[widest, int(1)]), "99999999999999999999999999999999999998");
    assert_eq!(call("flink_negate", &[decimal("1.5")]), "-1.5");
    assert!(error("flink_plus", &[text("a"), int(1)]).contains("cannot apply '+' to CHAR(1) and INT"));
    assert!(error("flink_modulo", &[double(5.5), int(2)]).contains("cannot apply '%'"));
    let field = |sql_type: SqlType| sql_type.to_field("", true);
    let native = arithmetic(ArithmeticOperator::Plus, &field(SqlType::BigInt), &field(SqlType::BigInt));
    assert!(native.is_none());
}

#[test]
fn choices() {
    assert_eq!(call("if", &[boolean(true), int(1), decimal("2.5")]), "1.0");
    assert_eq!(call("coalesce", &[null(SqlType::Int), int(1)]), "1");
    assert_eq!(
        type_of("coalesce", &[value(SqlType::Decimal(10, 2), "1"), value(SqlType::Decimal(8, 5), "1")]),
        "DECIMAL(13, 5) NOT NULL"
    );
    assert_eq!(call("nullif", &[decimal("1.0"), int(1)]), "<NULL>");
    assert_eq!(type_of("nullif", &[int(1), int(2)]), "INT NOT NULL");
    assert_eq!(call("greatest", &[text("a"), text("B"), text("c")]), "c");
    assert_eq!(call("least", &[int(1), decimal("2.5"), int(-3)]), "-3.0");
    assert_eq!(call("greatest", &[int(1), null(SqlType::Int), int(3)]), "<NULL>");
    assert_eq!(call("greatest", &[null(SqlType::Int), int(3)]), "<NULL>");
    assert!(error("greatest", &[int(1), text("x")]).contains("no common type"));
    assert_eq!(call("is_digit", &[null(STRING)]), "FALSE");
    assert_eq!(call("is_decimal", &[text("-1.5")]), "TRUE");
    assert_eq!(call("typeof", &[decimal("0.10")]), "DECIMAL(3, 2) NOT NULL");
}

#[test]
fn digests_and_encodings() {
    assert_eq!(call("md5", &[text("Hello World")]), "b10a8db164e0754105b7a99be72e3fe5");
    assert_eq!(call("sha1", &[text("Hello World")]), "0a4d55a8d778e5022fab701977c5d840bbc486d0");
    assert_eq!(call("sha224", &[text("o")]), "cbb625b441474e8dd944e43632d9112c7e4213cce5410b5b3ce59f56");
    assert_eq!(call("sha2", &[text("o"), int(224)]), call("sha224", &[text("o")]));
    assert!(error("sha2", &[text("o"), int(100)]).contains("no digest of 100 bits"));
    assert_eq!(call("to_base64", &[text("a😀b")]), "YfCfmIBi");
    assert_eq!(call("from_base64", &[text("SGVsbG8")]), "Hello");
    assert!(error("from_base64", &[text("***")]).contains("no base 64"));
    assert_eq!(call("encode", &[text("é"), text("ISO-8859-1")]), "x'e9'");
    assert_eq!(call("encode", &[text("a"), text("UTF-16BE")]), "x'0061'");
    assert_eq!(call("decode", &[bytes(&[0xe9]), text("ISO-8859-1")]), "é");
    assert!(error("encode", &[text("a"), text("NO-SUCH")]).contains("not known"));
    assert_eq!(call("url_encode", &[text("a b&c=é/")]), "a+b%26c%3D%C3%A9%2F");
    assert_eq!(call("url_decode", &[text("a+b%26c%3D%C3%A9%2F")]), "a b&c=é/");
    assert_eq!(call("url_decode", &[text("%zz")]), "<NULL>");
    let url = text("http://user:pw@shop.example.com:8080/a/b.html?x=1&y=two#frag");
    for (part, wanted) in [
        ("HOST", "shop.example.com"),
        ("PATH", "/a/b.html"),
        ("QUERY", "x=1&y=two"),
        ("REF", "frag"),
        ("AUTHORITY", "user:pw@shop.example.com:8080"),
        ("USERINFO", "user:pw"),
        ("FILE", "/a/b.html?x=1&y=two"),
        ("host", "<NULL>"),
    ] {
        assert_eq!(call("parse_url", &[url.clone(), text(part)]), wanted, "{part}");
    }
    assert_eq!(call("parse_url", &[url, text("QUERY"), text("y")]), "two");
    assert_eq!(call("inet_aton", &[text("192.168.1.1")]), "3232235777");
    assert_eq!(call("inet_ntoa", &[int(-1)]), "<NULL>");
}

#[test]
fn parts_of_time() {
    let moment = timestamp(6, "1969-12-31 23:59:59.999999");
    let part = |unit: &str, value: &super::testing::Value| call("extract", &[text(unit), value.clone()]);
    assert_eq!(part("HOUR", &moment), "23");
    assert_eq!(part("MICROSECOND", &moment), "999999");
    let (thursday, saturday) = (date("2024-02-29"), date("2000-01-01"));
    for (unit, first, second) in [
        ("WEEK", "9", "52"),
        ("DOW", "5", "7"),
        ("ISODOW", "4", "6"),
        ("ISOYEAR", "2024", "1999"),
        ("DECADE", "202", "200"),
        ("CENTURY", "21", "20"),
        ("MILLENNIUM", "3", "2"),
        ("DOY", "60", "1"),
        ("EPOCH", "1709164800", "946684800"),
    ] {
        assert_eq!((part(unit, &thursday).as_str(), part(unit, &saturday).as_str()), (first, second), "{unit}");
    }
    assert_eq!(call("dayofweek", &[date("2023-12-31")]), "1");
    assert!(error("extract", &[text("FORTNIGHT"), thursday]).contains("no unit of time"));
    assert!(error("year", &[value(SqlType::Time(0), "10:00:00")]).contains("a TIME has no YEAR"));
    let instant = value(SqlType::TimestampLtz(3), "2024-02-29 10:11:12.345");
    assert_eq!(
        call_in(crate::types::TimeZone::named("Asia/Tokyo").expect("a zone"), "hour", std::slice::from_ref(&instant)),
        "19"
    );
}

#[test]
fn rounded_times() {
    let moment = timestamp(3, "2024-02-29 10:11:12.345");
    for (unit, floor, ceil) in [
        ("YEAR", "2024-01-01 00:00:00.000", "2025-01-01 00:00:00.000"),
        ("QUARTER", "2024-01-01 00:00:00.000", "2024-04-01 00:00:00.000"),
        ("WEEK", "2024-02-25 00:00:00.000", "2024-03-03 00:00:00.000"),
        ("DAY", "2024-02-29 00:00:00.000", "2024-03-01 00:00:00.000"),
        ("SECOND", "2024-02-29 10:11:12.000", "2024-02-29 10:11:13.000"),
        ("MILLISECOND", "2024-02-29 10:11:12.345", "2024-02-29 10:11:12.345"),
        ("DECADE", "2020-01-01 00:00:00.000", "2030-01-01 00:00:00.000"),
        ("CENTURY", "2001-01-01 00:00:00.000", "2101-01-01 00:00:00.000"),
    ] {
        assert_eq!(call("floor", &[moment.clone(), text(unit)]), floor);
        assert_eq!(call("ceil", &[moment.clone(), text(unit)]), ceil);
    }
    let time = value(SqlType::Time(0), "23:59:59");
    assert_eq!(call("ceil", &[time.clone(), text("HOUR")]), "24:00:00");
    assert_eq!(call("floor", &[time, text("DAY")]), "23:59:59");
    let instant = value(SqlType::TimestampLtz(3), "2024-02-29 20:11:12");
    assert_eq!(
        call_in(crate::types::TimeZone::named("Asia/Tokyo").expect("a zone"), "floor", &[instant, text("DAY")]),
        "2024-03-01 00:00:00.000"
    );
}

#[test]
fn moved_times() {
    let moment = timestamp(3, "2024-01-31 10:11:12.345");
    assert_eq!(call("timestampadd", &[text("MONTH"), int(1), moment.clone()]), "2024-02-29 10:11:12.345");
    assert_eq!(call("timestampadd", &[text("HOUR"), int(-11), moment.clone()]), "2024-01-30 23:11:12.345");
    assert_eq!(type_of("timestampadd", &[text("HOUR"), int(1), date("2024-01-01")]), "TIMESTAMP(0) NOT NULL");
    let difference =
        |unit: &str| call("timestampdiff", &[text(unit), timestamp(3, "2024-02-29 00:00:00"), moment.clone()]);
    assert_eq!(
        (difference("DAY").as_str(), difference("MONTH").as_str(), difference("HOUR").as_str()),
        ("-28", "0", "-685")
    );
    assert!(error("flink_minus", &[moment.clone(), moment]).contains("TIMESTAMPDIFF"));
}

#[test]
fn times_and_text() {
    let moment = timestamp(3, "2024-02-29 10:11:12.345");
    assert_eq!(call("date_format", &[moment, text("yyyyMMdd'T'HHmmss.SSS")]), "20240229T101112.345");
    assert_eq!(call("date_format", &[text("2024-02-29 10:11:12"), text("yyyy-MM")]), "2024-02");
    assert_eq!(call("to_timestamp", &[text("2024-02-29 10:11:12")]), "2024-02-29 10:11:12.000");
    assert_eq!(call("to_timestamp", &[text("nope")]), "<NULL>");
    assert_eq!(call("to_timestamp", &[text("29/02/2024 10"), text("dd/MM/yyyy HH")]), "2024-02-29 10:00:00.000");
    assert_eq!(call("to_date", &[text("20240229"), text("yyyyMMdd")]), "2024-02-29");
    assert_eq!(call("to_timestamp_ltz", &[long(1_709_201_472_345), int(3)]), "2024-02-29 10:11:12.345");
    assert_eq!(call("to_timestamp_ltz", &[long(1_709_201_472), int(0)]), "2024-02-29 10:11:12.000");
    assert!(error("to_timestamp_ltz", &[int(1), int(6)]).contains("0 (seconds) or 3"));
    let tokyo = crate::types::TimeZone::named("Asia/Tokyo").expect("a zone");
    assert_eq!(call_in(tokyo, "from_unixtime", &[int(0)]), "1970-01-01 09:00:00");
    assert_eq!(call_in(tokyo, "unix_timestamp", &[text("1970-01-01 09:00:00")]), "0");
    assert_eq!(call_in(tokyo, "to_timestamp_ltz", &[text("2024-02-29 10:11:12")]), "2024-02-29 19:11:12.000");
    assert_eq!(
        call("convert_tz", &[text("1970-01-01 00:00:00"), text("UTC"), text("America/Los_Angeles")]),
        "1969-12-31 16:00:00"
    );
    assert_eq!(call("unix_timestamp", &[]), "1709201472");
    assert_eq!(call("current_timestamp", &[]), "2024-02-29 10:11:12.345");
    assert_eq!(call_in(tokyo, "localtime", &[]), "19:11:12");
    assert_eq!(type_of("current_date", &[]), "DATE NOT NULL");
}

#[test]
fn arrays() {
    let numbers = || list(SqlType::Int, &["1", "NULL", "1", "2"]);
    let one = |name: &str| call(name, &[numbers()]);
    assert_eq!(one("cardinality"), "4");
    assert_eq!(one("array_distinct"), "[1, NULL, 2]");
    assert_eq!(one("array_reverse"), "[2, 1, NULL, 1]");
    assert_eq!(one("array_sort"), "[NULL, 1, 1, 2]");
    assert_eq!((one("array_max").as_str(), one("array_min").as_str()), ("2", "1"));
    assert_eq!(call("array_sort", &[numbers(), boolean(false)]), "[2, 1, 1, NULL]");
    assert_eq!(call("array_sort", &[numbers(), boolean(false), boolean(true)]), "[NULL, 2, 1, 1]");
    let slice = |start, end| call("array_slice", &[numbers(), int(start), int(end)]);
    assert_eq!([slice(1, 2), slice(-2, -1), slice(0, 1), slice(3, 1)].join(" "), "[1, NULL] [1, 2] [1] []");
    assert_eq!(call("array_append", &[numbers(), int(7)]), "[1, NULL, 1, 2, 7]");
    assert_eq!(call("array_prepend", &[numbers(), int(7)]), "[7, 1, NULL, 1, 2]");
    assert_eq!(call("array_remove", &[numbers(), null(SqlType::Int)]), "[1, 1, 2]");
    assert!(error("array_append", &[numbers(), long(1)]).contains("ARRAY_APPEND"));
    let other = list(SqlType::Int, &["1", "9"]);
    assert_eq!(call("array_union", &[numbers(), other.clone()]), "[1, NULL, 2, 9]");
    assert_eq!(call("array_concat", &[numbers(), other.clone()]), "[1, NULL, 1, 2, 1, 9]");
    assert_eq!(call("array_except", &[numbers(), other.clone()]), "[NULL, 2]");
    assert_eq!(call("array_intersect", &[numbers(), other]), "[1]");
    assert_eq!(
        type_of("array_union", &[numbers(), list(SqlType::Decimal(2, 1), &["1.5"])]),
        "ARRAY<DECIMAL(11, 1)> NOT NULL"
    );
    assert_eq!(call("array_contains", &[numbers(), null(SqlType::Int)]), "TRUE");
    assert_eq!(call("array_position", &[numbers(), int(2)]), "4");
    assert_eq!(call("array_position", &[numbers(), int(9)]), "0");
    assert_eq!(call("array_join", &[list(STRING, &["x", "NULL", "x"]), text("-"), text("?")]), "x-?-x");
    assert_eq!(call("array_join", &[list(STRING, &["x", "NULL", "x"]), text(",")]), "x,x");
    assert!(error("array_join", &[numbers(), text(",")]).contains("ARRAY of STRING"));
    assert_eq!(call("flink_item", &[numbers(), int(4)]), "2");
    assert_eq!(call("flink_item", &[numbers(), int(5)]), "<NULL>");
    assert!(error("flink_item", &[numbers(), int(0)]).contains("count from 1"));
    assert!(error("element", &[numbers()]).contains("4 elements"));
    assert_eq!(call("flink_array", &[int(1), decimal("2.5")]), "[1.0, 2.5]");
    assert_eq!(call("flink_row", &[int(1), text("x")]), "(1, x)");
}

#[test]
fn maps() {
    let keys = || list(STRING, &["a", "b", "a"]);
    assert_eq!(call("map_from_arrays", &[keys(), list(SqlType::Int, &["1", "2", "3"])]), "{a=3, b=2}");
    assert!(error("map_from_arrays", &[keys(), list(SqlType::Int, &["1"])]).contains("3 keys"));
    assert_eq!(call("flink_map", &[text("a"), int(1), text("b"), null(SqlType::Int)]), "{a=1, b=NULL}");
}

#[test]
fn json_is_read() {
    let document = || text(r#"{"a": {"b": [1, 2.50]}, "s": "x", "n": null}"#);
    let json_value = |path: &str| call("json_value", &[document(), text(path)]);
    assert_eq!((json_value("$.s").as_str(), json_value("$.a.b[1]").as_str()), ("x", "2.5"));
    for path in ["$.a", "$.n", "$.zz", "strict $.zz"] {
        assert_eq!(json_value(path), "<NULL>", "{path}");
    }
    let with = |empty: &str, problem: &str, path: &str| {
        [document(), text(path), text(empty), text("e"), text(problem), text("p")]
    };
    assert_eq!(call("json_value", &with("DEFAULT", "DEFAULT", "$.zz")), "e");
    assert_eq!(call("json_value", &with("DEFAULT", "DEFAULT", "strict $.zz")), "p");
    assert!(error("json_value", &with("ERROR", "ERROR", "$.zz")).contains("JSON_VALUE: no value"));
    assert_eq!(call("json_query", &[document(), text("$.a")]), r#"{"b":[1,2.5]}"#);
    assert_eq!(call("json_query", &[document(), text("$.s")]), "<NULL>");
    let wrapped = [document(), text("$.s"), text("CONDITIONAL"), text("NULL"), text("NULL")];
    assert_eq!(call("json_query", &wrapped), r#"["x"]"#);
    assert_eq!(call("json_exists", &[document(), text("$.a.b")]), "TRUE");
    assert_eq!(call("json_exists", &[document(), text("lax $.zz")]), "FALSE");
    assert_eq!(call("is_json", &[document(), text("OBJECT")]), "TRUE");
    assert_eq!(call("is_json", &[text("{"), text("VALUE")]), "FALSE");
    assert!(error("json_value", &[document(), text("a.b")]).contains("no JSON path"));
}

#[test]
fn json_is_written() {
    assert_eq!(
        call("json_object", &[text("NULL"), text("b"), int(1), text("a"), null(SqlType::Int)]),
        r#"{"a":null,"b":1}"#
    );
    assert_eq!(call("json_object", &[text("ABSENT"), text("a"), null(SqlType::Int)]), "{}");
    assert_eq!(call("json_object", &[text("NULL"), text("k"), int(1), text("k"), int(2)]), r#"{"k":2}"#);
    assert_eq!(
        call("json_array", &[text("ABSENT"), text("x"), boolean(true), decimal("1.5"), null(STRING)]),
        r#"["x",true,1.5]"#
    );
    let members = [text("NULL"), text("dbl"), double(1e10), text("b"), bytes(&[0x0a, 0xff])];
    assert_eq!(call("json_object", &members), r#"{"b":"Cv8=","dbl":1.0E+10}"#);
    assert_eq!(call("json_string", &[timestamp(3, "2024-01-02 10:11:12.5")]), r#""2024-01-02T10:11:12.5""#);
    assert_eq!(call("json_string", &[timestamp(0, "2024-01-02 03:04:00")]), r#""2024-01-02T03:04:00""#);
    assert_eq!(call("json_string", &[list(SqlType::Int, &["1", "NULL"])]), "[1,null]");
    assert!(error("json_object", &[text("NULL"), text("d"), date("2024-01-02")]).contains("cannot become JSON"));
    assert_eq!(call("json_quote", &[text("é\n\"")]), r#""\u00e9\n\"""#);
    assert_eq!(call("json_unquote", &[text(r#""a\"b\u00e9""#)]), "a\"bé");
    assert_eq!(call("json_unquote", &[text(r#""bad\x""#)]), r#""bad\x""#);
}
