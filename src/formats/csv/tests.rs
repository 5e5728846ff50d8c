//! CSV in and out, against what Flink 2.3.0 was seen to do.

use crate::formats::Wanted;
use crate::formats::testing::{batch, decode, decode_in_pieces, encode, message, named, rows, schema, unnamed};
use crate::types::SqlType::{self, *};

const TWO: &[(&str, SqlType)] = &[("a", SqlType::Int), ("b", SqlType::STRING)];
const TEXTS: &[(&str, SqlType)] = &[("a", SqlType::STRING), ("b", SqlType::STRING)];

#[test]
fn plain_fields() {
    assert_eq!(rows("csv", TWO, &[], "1,x\n 2 , y \n+3,\n"), ["+I[1, x]", "+I[2,  y ]", "+I[3, ]"]);
    assert_eq!(rows("csv", TWO, &[], "1,x\r\n2,y"), ["+I[1, x]", "+I[2, y]"]);
    assert_eq!(rows("csv", TWO, &[], "\u{feff}1,x\n"), ["+I[1, x]"]);
    assert_eq!(rows("csv", TWO, &[], "1,x,\n"), ["+I[1, x]"]);
    assert_eq!(rows("csv", TWO, &[], ""), Vec::<String>::new());
    assert_eq!(rows("csv", &[("a", SqlType::STRING)], &[], "x\n\ny\n"), ["+I[x]", "+I[]", "+I[y]"]);
}

#[test]
fn quoted_fields() {
    let input = "\"x \"\"y\"\" z\",b\n\"a\nb\",c\n x\"y,d\n \"q\",e\n\"q\" ,f\n";
    let expected = ["+I[x \"y\" z, b]", "+I[a\nb, c]", "+I[ x\"y, d]", "+I[ \"q\", e]", "+I[q, f]"];
    assert_eq!(rows("csv", TEXTS, &[], input), expected);
    assert_eq!(rows("csv", TEXTS, &[("disable-quote-character", "true")], "\"x,y\"\n"), ["+I[\"x, y\"]"]);
    assert_eq!(
        rows("csv", TEXTS, &[("escape-character", "\\")], "a\\,b,c\\nd\n\\\"x,y\n"),
        ["+I[a,b, c\nd]", "+I[\"x, y]"]
    );
    assert_eq!(rows("csv", TEXTS, &[], "\"x\",\"y\"\r\n\"z\",w\r\n"), ["+I[x, y]", "+I[z, w]"]);
}

#[test]
fn options_change_the_notation() {
    assert_eq!(rows("csv", TWO, &[("field-delimiter", "\\t")], "1\tx\n"), ["+I[1, x]"]);
    assert_eq!(rows("csv", TWO, &[("field-delimiter", "\\u0001")], "1\u{1}x\n"), ["+I[1, x]"]);
    assert_eq!(rows("csv", TWO, &[("allow-comments", "true")], "# c\n1,x\n #2,\"y\n3,z\n"), ["+I[1, x]", "+I[3, z]"]);
    assert_eq!(rows("csv", TWO, &[("header", "true")], "a,b\n1,x\n"), ["+I[1, x]"]);
    assert_eq!(
        rows("csv", TEXTS, &[("null-literal", "n/a")], "n/a,\"n/a\"\nNULL,x\n"),
        ["+I[null, null]", "+I[NULL, x]"]
    );
    assert_eq!(rows("csv", TWO, &[("null-literal", "")], ",\n"), ["+I[null, null]"]);
    for (name, value) in [("field-delimiter", "::"), ("field-delimiter", "\n"), ("quote-character", "é")] {
        assert!(decode("csv", TWO, &[(name, value)], b"").is_err());
    }
    assert!(decode("csv", TWO, &[("quote-character", "'"), ("disable-quote-character", "true")], b"").is_err());
}

#[test]
fn what_stands_beyond_the_last_column_is_passed_over_or_not() {
    assert_eq!(rows("csv", TWO, &[("ignore-trailing-unmappable", "true")], "1,x,y,z\n2,w\n"), ["+I[1, x]", "+I[2, w]"]);
    let comma = message("csv", TWO, &[("allow-trailing-comma", "false")], b"1,x,\n");
    assert!(comma.contains("line 1, column 5") && comma.contains("beyond the table's last column"), "{comma}");
}

#[test]
fn options_change_what_is_written() {
    let columns =
        [("d", Decimal(20, 10)), ("e", Decimal(10, 0)), ("a", Array(unnamed(SqlType::STRING))), ("n", SqlType::STRING)];
    let row = batch("json", &columns, &[], "{\"d\":\"0.0000000015\",\"e\":1200,\"a\":[\"p\",\"q r\"]}\n");
    let of = |given: &[(&str, &str)]| encode("csv", given, &row).unwrap();
    assert_eq!(of(&[]), "1.5E-9,1.2E+3,\"p;q r\",\n");
    assert_eq!(of(&[("write-bigdecimal-in-scientific-notation", "false")]), "0.0000000015,1200,\"p;q r\",\n");
    assert_eq!(of(&[("field-delimiter", "|"), ("array-element-delimiter", "#")]), "1.5E-9|1.2E+3|\"p#q r\"|\n");
    assert_eq!(of(&[("quote-character", "'"), ("null-literal", "nil")]), "1.5E-9,1.2E+3,'p;q r',nil\n");
    assert_eq!(of(&[("disable-quote-character", "true")]), "1.5E-9,1.2E+3,p;q r,\n");
    assert_eq!(
        rows("csv", &columns, &[("array-element-delimiter", "#"), ("quote-character", "'")], "1,2,'p#q r','x'\n"),
        ["+I[1.0000000000, 2, [p, q r], x]"]
    );
}

#[test]
fn all_types() {
    let columns = [
        ("a", Date),
        ("b", Time(0)),
        ("c", Timestamp(3)),
        ("d", TimestampLtz(3)),
        ("e", Decimal(5, 2)),
        ("f", SqlType::BYTES),
        ("g", Double),
        ("h", Boolean),
        ("i", Array(unnamed(Int))),
        ("j", Row(vec![named("x", Int), named("y", SqlType::STRING)])),
    ];
    let input = "2026-01-02,10:11:12,2026-01-02 10:11:12.5,2026-01-02 10:11:12.5Z,1.005,AQI=,1e3, TRUE,1; 2;3,4;u\n";
    let expected = "+I[2026-01-02, 10:11:12, 2026-01-02T10:11:12.500, 2026-01-02T10:11:12.500Z, 1.01, [1, 2], 1000.0, \
                    true, [1, 2, 3], +I[4, u]]";
    assert_eq!(rows("csv", &columns, &[], input), [expected]);
    let written = encode("csv", &[], &batch("csv", &columns, &[], input)).unwrap();
    let expected =
        "2026-01-02,10:11:12,\"2026-01-02 10:11:12.5\",\"2026-01-02 10:11:12.5Z\",1.01,AQI=,1000.0,true,1;2;3,4;u\n";
    assert_eq!(written, expected);
    let lists = [("a", Array(unnamed(SqlType::STRING)))];
    assert_eq!(rows("csv", &lists, &[("null-literal", "n")], "n;;x;\n\n"), ["+I[[null, , x, ]]", "+I[[]]"]);
    assert_eq!(rows("csv", &[("d", Decimal(3, 0))], &[], "12345\n2.5\n"), ["+I[null]", "+I[3]"]);
}

#[test]
fn malformed_rows_are_named_by_line_and_column() {
    let of = |input: &str| message("csv", TWO, &[], input.as_bytes());
    assert_eq!(of("1,x\nq,y\n"), "line 2, column 1: malformed csv in field 'a': 'q' is not an INT");
    let needed = [("a", SqlType::Int), ("b", SqlType::STRING)];
    assert_eq!(rows("csv", &needed, &[], "1,x\n2\n"), ["+I[1, x]", "+I[2, null]"], "as Flink reads a short line");
    assert_eq!(of("1,x,9\n"), "line 1, column 5: malformed csv: '9' stands beyond the table's last column");
    assert_eq!(of("1,\"a\nb\"\n,x\n"), "line 3, column 1: malformed csv in field 'a': '' is not an INT");
    assert!(of("1,\"x").starts_with("line 1, column 3: malformed csv: expected a closing quote"));
    assert!(of("1,\"x\"r\n").contains("column 6"));
    assert!(message("csv", TWO, &[], b"1,x\n1,\xff\n").contains("line 2, column 3"));
    assert!(of("3000000000,x\n").contains("is not an INT"));
}

#[test]
fn ignoring_errors_nulls_fields_and_skips_rows() {
    let ignore = &[("ignore-parse-errors", "true")];
    let (rows, skipped) = decode("csv", TWO, ignore, b"1,x\nq,y\n3,z,1\n4\n5,\"w\"v\n6,\xff\n7,\"u").unwrap();
    assert_eq!(rows, ["+I[1, x]", "+I[null, y]", "+I[4, null]", "+I[6, null]"]);
    assert_eq!(skipped, 3);
}

#[test]
fn unwanted_fields_are_not_converted() {
    let columns = [("a", Int), ("b", Int), ("c", SqlType::STRING)];
    let wanted = |projection: &[usize]| Wanted { schema: schema(&columns), projection: projection.to_vec() };
    let of = |projection: &[usize]| decode_in_pieces("csv", &[], wanted(projection), b"1,q,x\n2,r,y\n", 100).unwrap().0;
    assert_eq!(of(&[0, 2]), ["+I[1, x]", "+I[2, y]"]);
    assert_eq!(of(&[]), ["+I[]", "+I[]"]);
}

#[test]
fn text_is_quoted_where_jackson_quotes() {
    let texts = [("a", SqlType::STRING)];
    for (text, expected) in [
        ("plain", "plain"),
        ("1;x", "1;x"),
        ("a b", "\"a b\""),
        ("a,b", "\"a,b\""),
        ("say \"\"hi\"\"", "\"say \"\"hi\"\"\""),
        ("abcdefghijklmnopqrstuvwxyz", "\"abcdefghijklmnopqrstuvwxyz\""),
        ("", ""),
    ] {
        let batch = batch("csv", &texts, &[], &format!("\"{text}\"\n"));
        assert_eq!(encode("csv", &[], &batch).unwrap(), format!("{expected}\n"));
    }
    let decimals = batch("csv", &[("d", Decimal(30, 10))], &[("null-literal", "n")], "0.0000000015\n0\n120\nn\n");
    assert_eq!(encode("csv", &[("null-literal", "n")], &decimals).unwrap(), "1.5E-9\n0\n1.2E+2\nn\n");
}

#[test]
fn a_full_batch_stops_at_a_record() {
    let columns = [("a", Int), ("b", SqlType::STRING)];
    let input: String = (0..20_000).map(|row| format!("{row},x\n")).collect();
    let wanted = Wanted { schema: schema(&columns), projection: vec![0] };
    let mut decoder = crate::formats::find("csv").unwrap().record_decoder(&Default::default(), wanted).unwrap();
    let used = decoder.decode(input.as_bytes(), true).unwrap();
    assert_eq!(decoder.pending_rows(), crate::limits::BATCH_ROWS);
    assert_eq!(decoder.line(), crate::limits::BATCH_ROWS as u64);
    assert_eq!(input.as_bytes()[used - 1], b'\n');
}
