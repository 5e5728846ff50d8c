//! What canal-json, maxwell-json and ogg-json read and write.

use crate::formats::testing::{batch, decode, encode, message, rows};
use crate::types::SqlType;

const THREE: &[(&str, SqlType)] = &[("id", SqlType::Int), ("item", SqlType::STRING), ("qty", SqlType::Int)];

const CANAL: &str = concat!(
    r#"{"data":[{"id":"1","item":"pen","qty":"10"},{"id":"2","item":"ink","qty":null}],"old":null,"type":"INSERT","database":"stock","table":"goods"}"#,
    "\n",
    r#"{"data":[{"id":"1","item":"pen","qty":"7"},{"id":"2","item":"jar","qty":null}],"old":[{"qty":"10"},{"item":"ink"}],"type":"UPDATE","database":"stock","table":"goods"}"#,
    "\n",
    r#"{"data":null,"type":"CREATE","database":"stock","table":"goods","isDdl":true}"#,
    "\n",
    r#"{"data":[],"type":"INSERT","database":"stock","table":"goods"}"#,
    "\n",
    r#"{"data":[{"id":"2","item":"jar"}],"type":"DELETE","database":"stock_eu","table":"goods"}"#,
    "\n"
);

#[test]
fn canal_gives_several_changes_a_message() {
    let all = [
        "+I[1, pen, 10]",
        "+I[2, ink, null]",
        "-U[1, pen, 10]",
        "+U[1, pen, 7]",
        // `qty` of the second row is not in its own "old": it has not changed.
        "-U[2, ink, null]",
        "+U[2, jar, null]",
        "-D[2, jar, null]",
    ];
    assert_eq!(rows("canal-json", THREE, &[], CANAL), all);
    assert_eq!(rows("canal-json", THREE, &[("database.include", "stock")], CANAL), all[..6]);
    assert_eq!(rows("canal-json", THREE, &[("database.include", "stock.*"), ("table.include", "a|goods")], CANAL), all);
    assert!(rows("canal-json", THREE, &[("table.include", "good")], CANAL).is_empty());
    let pattern = message("canal-json", THREE, &[("table.include", "(goods")], b"");
    assert!(pattern.contains("'(goods' is not a valid value for 'canal-json.table.include'"), "{pattern}");
}

#[test]
fn an_unchanged_column_is_that_of_its_own_row() {
    let update = r#"{"data":[{"id":1,"item":"a","qty":1},{"id":2,"item":"b","qty":2}],"old":[{"item":"x"},{"qty":null}],"type":"UPDATE"}"#;
    let expected = ["-U[1, x, 1]", "+U[1, a, 1]", "-U[2, b, null]", "+U[2, b, 2]"];
    assert_eq!(rows("canal-json", THREE, &[], update), expected);
}

const MAXWELL: &str = concat!(
    r#"{"database":"d","table":"t","type":"insert","data":{"id":1,"item":"pen","qty":null}}"#,
    "\n\n",
    r#"{"type":"update","data":{"id":1,"item":"pen","qty":4},"old":{"qty":null}}"#,
    "\n",
    r#"{"type":"update","data":{"id":2,"item":"pen","qty":4},"old":{"id":1}}"#,
    "\n",
    r#"{"type":"delete","data":{"id":2,"item":"pen","qty":4}}"#,
    "\n"
);

#[test]
fn maxwell_gives_the_columns_that_were_different() {
    let expected =
        ["+I[1, pen, null]", "-U[1, pen, null]", "+U[1, pen, 4]", "-U[1, pen, 4]", "+U[2, pen, 4]", "-D[2, pen, 4]"];
    assert_eq!(rows("maxwell-json", THREE, &[], MAXWELL), expected);
}

const OGG: &str = concat!(
    r#"{"table":"A.T","op_type":"I","before":null,"after":{"id":1,"item":"pen","qty":1}}"#,
    "\n",
    r#"{"op_type":"U","before":{"id":1,"item":"pen","qty":1},"after":{"id":1,"item":"pen","qty":2}}"#,
    "\n",
    r#"{"op_type":"D","before":{"id":1,"item":"pen","qty":2}}"#,
    "\n"
);

#[test]
fn ogg_gives_both_rows() {
    let expected = ["+I[1, pen, 1]", "-U[1, pen, 1]", "+U[1, pen, 2]", "-D[1, pen, 2]"];
    assert_eq!(rows("ogg-json", THREE, &[], OGG), expected);
}

#[test]
fn what_is_written_reads_back_as_deletes_and_inserts() {
    let changes = batch("canal-json", THREE, &[], CANAL);
    let expected = [
        "+I[1, pen, 10]",
        "+I[2, ink, null]",
        "-D[1, pen, 10]",
        "+I[1, pen, 7]",
        "-D[2, ink, null]",
        "+I[2, jar, null]",
        "-D[2, jar, null]",
    ];
    for format in ["debezium-json", "canal-json", "maxwell-json", "ogg-json"] {
        for ignore in ["true", "false"] {
            let written = encode(format, &[("encode.ignore-null-fields", ignore)], &changes).unwrap();
            assert_eq!(rows(format, THREE, &[], &written), expected, "{format}");
            assert_eq!(written.contains("null"), ignore == "false", "{written}");
        }
    }
    let first = |format| encode(format, &[], &changes).unwrap().lines().next().map(str::to_string).unwrap();
    assert_eq!(first("canal-json"), r#"{"data":[{"id":1,"item":"pen","qty":10}],"type":"INSERT"}"#);
    assert_eq!(first("maxwell-json"), r#"{"data":{"id":1,"item":"pen","qty":10},"type":"insert"}"#);
    assert_eq!(first("ogg-json"), r#"{"before":null,"after":{"id":1,"item":"pen","qty":10},"op_type":"I"}"#);
}

#[test]
fn malformed_messages_are_errors_or_skipped_whole() {
    let bad: [(&str, &[&str]); 3] = [
        (
            "canal-json",
            &[
                "oops",
                "[]",
                r#"{"data":[{"id":1}],"type":"ALTER"}"#,
                r#"{"data":[{"id":1}]}"#,
                r#"{"data":null,"type":"INSERT"}"#,
                r#"{"data":{"id":1},"type":"INSERT"}"#,
                r#"{"data":[{"id":1},null],"type":"INSERT"}"#,
                r#"{"data":[{"id":1}],"type":"UPDATE"}"#,
                r#"{"data":[{"id":1},{"id":2}],"old":[{"id":3}],"type":"UPDATE"}"#,
                r#"{"data":[{"id":1}],"old":[7],"type":"UPDATE"}"#,
            ],
        ),
        (
            "maxwell-json",
            &[
                r#"{"data":{"id":1}}"#,
                r#"{"type":"insert"}"#,
                r#"{"data":{"id":1},"type":"update"}"#,
                r#"{"data":{"id":1},"type":"bootstrap-start"}"#,
                r#"{"data":{"id":1},"old":1,"type":"update"}"#,
            ],
        ),
        (
            "ogg-json",
            &[
                r#"{"after":{"id":1}}"#,
                r#"{"op_type":"T"}"#,
                r#"{"op_type":"U","after":{"id":1}}"#,
                r#"{"op_type":"U","before":{"id":1}}"#,
                r#"{"op_type":"D"}"#,
                r#"{"op_type":"I"}"#,
            ],
        ),
    ];
    for (format, lines) in bad {
        for line in lines {
            let message = message(format, THREE, &[], line.as_bytes());
            assert!(message.starts_with("line 1, column"), "{line}: {message}");
            let skipped = decode(format, THREE, &[("ignore-parse-errors", "true")], line.as_bytes()).unwrap();
            assert_eq!(skipped, (Vec::new(), 1), "{line}");
        }
    }
    // A value that does not fit is NULL, and the rest of the message stands.
    let value = br#"{"data":{"id":"x","item":"a","qty":1},"type":"insert"}"#;
    let (rows, skipped) = decode("maxwell-json", THREE, &[("ignore-parse-errors", "true")], value).unwrap();
    assert_eq!((rows, skipped), (vec!["+I[null, a, 1]".to_string()], 0));
    assert!(message("maxwell-json", THREE, &[], value).contains("in field 'id'"));
}
