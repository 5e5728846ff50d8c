//! JSON in and out, against what Flink 2.3.0 was seen to do.

use crate::formats::Wanted;
use crate::formats::testing::{batch, decode, decode_in_pieces, encode, message, named, rows, schema, unnamed};
use crate::types::SqlType::{self, *};

const TWO: &[(&str, SqlType)] = &[("a", SqlType::Int), ("b", SqlType::STRING)];

#[test]
fn fields_in_any_order_or_missing() {
    let input =
        "{\"a\":1,\"b\":\"x\"}\n{\"b\":\"y\",\"a\":2}\n\n {\"z\":[1,{\"a\":9}], \"b\" : \"w\" } \n{}\n{\"A\":1}";
    let expected = ["+I[1, x]", "+I[2, y]", "+I[null, w]", "+I[null, null]", "+I[null, null]"];
    assert_eq!(rows("json", TWO, &[], input), expected);
    assert_eq!(rows("json", TWO, &[], "{\"a\":1,\"a\":2,\"b\":\"x\"}\n"), ["+I[2, x]"]);
    assert_eq!(rows("json", TWO, &[], "{\"\\u0061\":1,\"b\":null}\n"), ["+I[1, null]"]);
    assert_eq!(
        rows("json", TWO, &[], "[{\"a\":1},{\"a\":2}]\r\n[]\n{\"a\":3}\n"),
        ["+I[1, null]", "+I[2, null]", "+I[3, null]"]
    );
}

#[test]
fn conversions() {
    let columns = [("a", Int), ("b", SqlType::STRING), ("c", Double)];
    let input = "{\"a\":\"5\",\"b\":7,\"c\":\"1.5\"}\n{\"a\":1.9,\"b\":{\"x\":1, \"y\":[1,2]},\"c\":3}\n\
                 {\"b\":true,\"a\":null}\n{\"b\":[1, \"2\"]}\n{\"b\":1.50}\n{\"b\":\"x\\/y\\n\\u0041\\ud83d\\ude00\\ud83d\"}\n";
    let expected = [
        "+I[5, 7, 1.5]",
        "+I[1, {\"x\":1,\"y\":[1,2]}, 3.0]",
        "+I[null, true, null]",
        "+I[null, [1,\"2\"], null]",
        "+I[null, 1.50, null]",
        "+I[null, x/y\nA😀\u{fffd}, null]",
    ];
    assert_eq!(rows("json", &columns, &[], input), expected);
    let columns = [("a", Boolean), ("b", Decimal(5, 2)), ("c", BigInt), ("d", SqlType::BYTES)];
    let input = "{\"a\":\"TRUE\",\"b\":1.005,\"c\":1e3,\"d\":\"AQI=\"}\n{\"a\":1,\"b\":12345.6}\n";
    assert_eq!(rows("json", &columns, &[], input), ["+I[true, 1.01, 1000, [1, 2]]", "+I[false, null, null, null]"]);
}

#[test]
fn collections() {
    let columns = [
        ("a", Array(unnamed(Int))),
        ("m", Map(unnamed(SqlType::STRING), unnamed(Int))),
        ("s", Multiset(unnamed(SqlType::STRING))),
        ("r", Row(vec![named("x", Int), named("y", Row(vec![named("z", SqlType::STRING)]))])),
    ];
    let input = "{\"a\":[1,null,3],\"m\":{\"k\":1},\"s\":{\"q\":2},\"r\":{\"y\":{\"z\":\"\\u00e9\"},\"x\":1}}\n{\"a\":[],\"r\":null}\n";
    let expected = ["+I[[1, null, 3], {k=1}, {q=2}, +I[1, +I[é]]]", "+I[[], null, null, null]"];
    assert_eq!(rows("json", &columns, &[], input), expected);
    let written = encode("json", &[], &batch("json", &columns, &[], input)).unwrap();
    let expected = "{\"a\":[1,null,3],\"m\":{\"k\":1},\"s\":{\"q\":2},\"r\":{\"x\":1,\"y\":{\"z\":\"é\"}}}\n\
                    {\"a\":[],\"m\":null,\"s\":null,\"r\":null}\n";
    assert_eq!(written, expected);
    assert_eq!(
        encode("json", &[("encode.ignore-null-fields", "true")], &batch("json", &columns, &[], "{}\n")).unwrap(),
        "{}\n"
    );
}

#[test]
fn times_in_both_styles() {
    let columns = [("a", Date), ("b", Time(0)), ("c", Timestamp(6)), ("d", TimestampLtz(3))];
    let sql = "{\"a\":\"2026-01-02\",\"b\":\"10:11:12\",\"c\":\"2026-01-02 10:11:12.123456\",\"d\":\"2026-01-02 10:11:00Z\"}\n";
    let iso = sql.replace("2 10:", "2T10:");
    let expected = ["+I[2026-01-02, 10:11:12, 2026-01-02T10:11:12.123456, 2026-01-02T10:11:00Z]"];
    let iso_option = &[("timestamp-format.standard", "ISO-8601")];
    assert_eq!(rows("json", &columns, &[], sql), expected);
    assert_eq!(rows("json", &columns, iso_option, &iso), expected);
    let batch = batch("json", &columns, &[], sql);
    assert_eq!(encode("json", &[], &batch).unwrap(), sql);
    assert_eq!(encode("json", iso_option, &batch).unwrap(), iso);
    assert!(decode("json", &columns, &[], iso.as_bytes()).is_err());
    assert!(decode("json", &columns, &[("timestamp-format.standard", "RFC")], b"").is_err());
}

#[test]
fn malformed_rows_are_named_by_line_and_column() {
    let of = |input: &str| message("json", TWO, &[], input.as_bytes());
    assert_eq!(
        of("{\"a\":1}\n{\"a\":\"q\"}\n"),
        "line 2, column 6: malformed json in field 'a': '\"q\"' is not an INT"
    );
    assert_eq!(of("not json\n"), "line 1, column 1: malformed json: expected a JSON object, found 'not json'");
    assert_eq!(of("{\"a\":1} x\n"), "line 1, column 9: malformed json: expected the end of the line, found 'x'");
    assert_eq!(of("{\"a\":1"), "line 1, column 7: malformed json: expected ',' or '}', found the end of the record");
    for bad in [
        "{\"a\":01}",
        "{\"a\":1,}",
        "{\"a\" 1}",
        "{a:1}",
        "{\"b\":\"x}",
        "{\"b\":\"\\q\"}",
        "{\"b\":\"\\u12g4\"}",
        "{\"a\":[1}",
        "{\"a\":tru}",
        "{\"a\":-}",
        "{\"a\":1.}",
        "{\"z\":{\"q\":}}",
        "[{\"a\":1},2]",
        "5",
        "null",
        "{\"a\":1}{\"a\":2}",
        "{\"a\":3000000000}",
        "{\"a\":\"\"}",
        "{\"a\":{}}",
        "{\"a\":true}",
    ] {
        assert!(decode("json", TWO, &[], bad.as_bytes()).is_err(), "{bad}");
    }
    let deep = format!("{{\"z\":{}{}}}", "[".repeat(100_000), "]".repeat(100_000));
    assert!(of(&deep).contains("nested at most 512 deep"));
    assert!(message("json", TWO, &[], b"{\"b\":\"\xff\"}\n").contains("is not valid UTF-8"));
    assert!(message("json", TWO, &[("fail-on-missing-field", "true")], b"{\"a\":1}\n").contains("declared column"));
}

#[test]
fn ignoring_errors_nulls_fields_and_skips_rows() {
    let ignore = &[("ignore-parse-errors", "true")];
    let input = b"{\"a\":\"q\",\"b\":\"x\"}\nnot json\n{\"a\":1,\"b\":\"y\"\n{\"a\":2,\"b\":\"z\"}\n{\"b\":\"\xff\"}\n[{\"a\":3},4,{\"a\":5}]\n";
    let (rows, skipped) = decode("json", TWO, ignore, input).unwrap();
    assert_eq!(rows, ["+I[null, x]", "+I[2, z]", "+I[null, null]", "+I[3, null]", "+I[5, null]"]);
    assert_eq!(skipped, 3);
    let nested = [("a", Array(unnamed(Int))), ("r", Row(vec![named("x", Int)]))];
    let input = b"{\"a\":[1,\"q\",2],\"r\":{\"x\":\"q\"}}\n{\"a\":5,\"r\":6}\n{\"a\":[7],\"r\":{\"x\":8}}\n";
    let (rows, _) = decode("json", &nested, ignore, input).unwrap();
    assert_eq!(rows, ["+I[[1, null, 2], +I[null]]", "+I[null, null]", "+I[[7], +I[8]]"]);
}

#[test]
fn only_wanted_columns_are_built() {
    let wanted = |projection: &[usize]| Wanted { schema: schema(TWO), projection: projection.to_vec() };
    let input = b"{\"a\":\"no number\",\"b\":\"x\"}\n{\"a\":1,\"b\":\"y\"}\n";
    assert_eq!(decode_in_pieces("json", &[], wanted(&[1]), input, 7).unwrap().0, ["+I[x]", "+I[y]"]);
    assert_eq!(decode_in_pieces("json", &[], wanted(&[]), input, 7).unwrap().0, ["+I[]", "+I[]"]);
}

#[test]
fn numbers_and_text_as_jackson_writes_them() {
    let columns = [("d", Decimal(5, 2)), ("f", Double), ("s", SqlType::STRING)];
    let batch = batch(
        "json",
        &columns,
        &[],
        "{\"d\":1.5,\"f\":1e10,\"s\":\"a\\\"\\\\\\n\\u0001\"}\n{\"d\":120,\"f\":\"NaN\"}\n",
    );
    let expected = "{\"d\":1.5,\"f\":1.0E10,\"s\":\"a\\\"\\\\\\n\\u0001\"}\n{\"d\":1.2E+2,\"f\":\"NaN\",\"s\":null}\n";
    assert_eq!(encode("json", &[], &batch).unwrap(), expected);
    let plain = encode("json", &[("encode.decimal-as-plain-number", "true")], &batch).unwrap();
    assert!(plain.starts_with("{\"d\":1.50,") && plain.contains("{\"d\":120.00,"));
}

#[test]
fn damage_never_goes_unnoticed() {
    // Cutting or changing any byte of the structure gives an error or NULL fields, never a panic.
    let line = b"{\"a\":12,\"z\":[1,{\"q\":\"\\u00e9\"}],\"b\":\"x\\ny\"}";
    for at in 0..line.len() {
        assert!(decode("json", TWO, &[], &line[..at]).is_err() || at == 0, "cut at {at}");
        for byte in [b'"', b'{', b'}', b',', b'\\', 0, 0xff, b'9'] {
            let mut changed = line.to_vec();
            changed[at] = byte;
            let _ = decode("json", TWO, &[("ignore-parse-errors", "true")], &changed).unwrap();
        }
    }
}

/// Prints decoding speed; run with `cargo test --release --lib decoding_speed -- --ignored --nocapture`.
#[test]
#[ignore = "a measurement, for release builds"]
fn decoding_speed() {
    use std::time::Instant;
    let columns = [
        ("id", BigInt),
        ("user", SqlType::STRING),
        ("url", SqlType::STRING),
        ("ts", Timestamp(3)),
        ("amount", Double),
        ("country", SqlType::STRING),
        ("agent", SqlType::STRING),
    ];
    let (mut json, mut csv) = (String::new(), String::new());
    for id in 0..200_000u64 {
        let (user, seconds, amount) = (id % 10_007, id % 60, id % 997);
        json += &format!(
            "{{\"id\":{id},\"user\":\"user-{user}\",\"url\":\"https://shop.example/p/{amount}?ref=mail\",\"ts\":\"2026-01-02 10:11:{seconds:02}.123\",\"amount\":{amount}.25,\"country\":\"DE\",\"agent\":\"Mozilla/5.0 (X11; Linux x86_64) Gecko\"}}\n"
        );
        csv += &format!(
            "{id},user-{user},https://shop.example/p/{amount}?ref=mail,2026-01-02 10:11:{seconds:02}.123,{amount}.25,DE,Mozilla/5.0 (X11; Linux x86_64) Gecko\n"
        );
    }
    for (format, input) in [("json", &json), ("csv", &csv)] {
        for projection in [vec![0, 4], vec![1, 3], (0..7).collect()] {
            let wanted = Wanted { schema: schema(&columns), projection: projection.clone() };
            let mut decoder =
                crate::formats::find(format).unwrap().record_decoder(&Default::default(), wanted).unwrap();
            let began = Instant::now();
            let mut rows = 0;
            for _ in 0..5 {
                let mut from = 0;
                while from < input.len() {
                    from += decoder.decode(&input.as_bytes()[from..], true).unwrap();
                    rows += decoder.flush().unwrap().len();
                }
            }
            let seconds = began.elapsed().as_secs_f64();
            let megabytes = 5.0 * input.len() as f64 / 1e6;
            println!(
                "{format} {projection:?}: {:.0} MB/s, {:.1} million rows/s",
                megabytes / seconds,
                rows as f64 / seconds / 1e6
            );
        }
    }
}

#[test]
fn a_collection_where_a_scalar_stands_is_null_once() {
    let columns = [("yes", SqlType::Boolean), ("bytes", SqlType::BYTES), ("n", SqlType::Int)];
    let lenient = [("ignore-parse-errors", "true")];
    for value in ["{}", "[1]", "{\"a\":1}"] {
        let line = format!("{{\"yes\":{value},\"bytes\":{value},\"n\":{value}}}\n");
        assert_eq!(rows("json", &columns, &lenient, &line), ["+I[null, null, null]"]);
    }
    assert!(message("json", &columns, &[], b"{\"yes\":{}}").contains("is not a BOOLEAN"));
}
