//! Grammar cases: what parses and to what, what prints and reads back the same, what is refused and how that reads.

use super::*;

/// Parses one statement.
fn parse(sql: &str) -> Statement {
    match parse_statement(sql) {
        Ok(parsed) => parsed.statement,
        Err(error) => panic!("{sql}\n{}", error.render(sql)),
    }
}

/// The rendered error of a statement that must be refused.
fn refusal(sql: &str) -> String {
    match parse_statement(sql) {
        Ok(parsed) => panic!("{sql}\nparses as {:?}", parsed.statement),
        Err(error) => error.render(sql),
    }
}

/// The expression as the tree prints it; reading that again must give the same tree.
fn expression(sql: &str) -> String {
    let read = |text: &str| match parse_expression(text) {
        Ok(expression) => expression,
        Err(error) => panic!("{text}\n{}", error.render(text)),
    };
    let first = read(sql);
    let printed = first.to_string();
    assert_eq!(read(&printed), first, "{sql} prints as {printed}");
    printed
}

/// The query as the tree prints it; reading that again must give the same tree.
fn query(sql: &str) -> String {
    let read = |text: &str| match parse_query(text) {
        Ok(query) => query,
        Err(error) => panic!("{text}\n{}", error.render(text)),
    };
    let first = read(sql);
    let printed = first.to_string();
    assert_eq!(read(&printed), first, "{sql} prints as {printed}");
    printed
}

#[test]
fn create_table_with_every_clause() {
    let Statement::CreateTable(table) = parse(
        "CREATE TEMPORARY TABLE IF NOT EXISTS cat.db.`my table` (
           id BIGINT NOT NULL COMMENT 'the key',
           name STRING,
           `user` ROW<a INT, b ARRAY<MAP<STRING, DECIMAL(10, 2)>>> ,
           topic STRING METADATA FROM 'topic' VIRTUAL,
           `offset` BIGINT NOT NULL METADATA,
           ts AS TO_TIMESTAMP(name) COMMENT 'computed',
           WATERMARK FOR ts AS ts - INTERVAL '5' SECOND,
           CONSTRAINT pk PRIMARY KEY (id, name) NOT ENFORCED
         ) COMMENT 'a table' PARTITIONED BY (name)
         WITH ('connector' = 'filesystem', 'path' = '/it''s')",
    ) else {
        panic!("CREATE TABLE");
    };
    assert_eq!(table.name.to_string(), "cat.db.`my table`");
    assert!(table.temporary && table.if_not_exists && !table.or_replace);
    assert_eq!(table.columns.len(), 6);
    let DeclaredColumn::Physical { sql_type, nullable } = &table.columns[2].kind else { panic!("physical") };
    assert_eq!(sql_type.to_string(), "ROW<`a` INT, `b` ARRAY<MAP<STRING, DECIMAL(10, 2)>>>");
    assert!(*nullable);
    let DeclaredColumn::Metadata { nullable, key, is_virtual, .. } = &table.columns[3].kind else { panic!("metadata") };
    assert_eq!((*nullable, key.as_deref(), *is_virtual), (true, Some("topic"), true));
    assert_eq!(table.columns[5].comment.as_deref(), Some("computed"));
    let watermark = table.watermark.expect("there is one");
    assert_eq!(watermark.expression.to_string(), "ts - INTERVAL '5' SECOND");
    assert_eq!(table.primary_key.len(), 2);
    assert_eq!(table.options[1].value, "/it's");
    assert_eq!(table.options[0].span.map(|span| (span.line, span.column, span.end_column)), Some((11, 16, 42)));
}

#[test]
fn create_table_like_and_as() {
    let Statement::CreateTable(table) = parse(
        "CREATE TABLE b (PRIMARY KEY (a) NOT ENFORCED) WITH ('k' = 'v') LIKE a (INCLUDING ALL OVERWRITING OPTIONS)",
    ) else {
        panic!("CREATE TABLE");
    };
    let like = table.like.expect("LIKE");
    assert_eq!(like.options[1], ("OVERWRITING".to_string(), "OPTIONS".to_string()));
    let Statement::CreateTable(table) = parse("CREATE TABLE b WITH ('connector' = 'print') AS SELECT a FROM t") else {
        panic!("CREATE TABLE");
    };
    assert_eq!(table.query.map(|query| query.to_string()).as_deref(), Some("SELECT a FROM t"));
}

#[test]
fn views_keep_their_query_as_written() {
    let sql = "CREATE OR REPLACE TEMPORARY VIEW v (a, b) COMMENT 'c' AS\n  SELECT x, /* why */ y FROM t;";
    let Statement::CreateView(view) = parse(sql) else { panic!("CREATE VIEW") };
    assert_eq!(view.query_text, "SELECT x, /* why */ y FROM t");
    assert!(view.or_replace && view.temporary && view.columns.len() == 2);
}

#[test]
fn inserts() {
    let Statement::Insert(insert) = parse(
        "INSERT INTO db.t /*+ OPTIONS('sink.parallelism'='1') */ PARTITION (day = '1') (a, b) \
         SELECT a, COUNT(*) FROM s GROUP BY a ON CONFLICT DO DEDUPLICATE",
    ) else {
        panic!("INSERT");
    };
    assert_eq!(insert.target.to_string(), "db.t");
    assert_eq!(insert.hints[0].key, "sink.parallelism");
    assert_eq!((insert.partition.len(), insert.columns.len(), insert.overwrite), (1, 2, false));
    assert_eq!(insert.on_conflict.as_deref(), Some("DEDUPLICATE"));
    assert!(
        matches!(parse("EXECUTE INSERT OVERWRITE t VALUES (1, 'a'), (2, NULL)"), Statement::Insert(i) if i.overwrite)
    );
    assert!(matches!(parse("INSERT INTO t (SELECT a FROM s)"), Statement::Insert(i) if i.columns.is_empty()));
    assert!(matches!(parse("INSERT INTO t WITH x AS (SELECT 1 AS a) SELECT a FROM x"), Statement::Insert(_)));
}

#[test]
fn statement_sets_in_both_forms() {
    for sql in [
        "EXECUTE STATEMENT SET BEGIN INSERT INTO a SELECT CASE WHEN x THEN 1 END FROM t; INSERT INTO b SELECT 1; END;",
        "BEGIN STATEMENT SET; INSERT INTO a SELECT x FROM t; INSERT INTO b SELECT 1; END",
    ] {
        let Statement::StatementSet(inserts) = parse(sql) else { panic!("{sql}") };
        assert_eq!(inserts.len(), 2);
        assert_eq!(inserts[1].target.to_string(), "b");
    }
}

#[test]
fn small_statements() {
    for (sql, shape) in [
        ("SET", "Set { entry: None }"),
        ("SET 'a.b' = 'c d'", r#"Set { entry: Some(("a.b", "c d")) }"#),
        (
            "set sql-client.execution.result-mode = tableau;",
            r#"Set { entry: Some(("sql-client.execution.result-mode", "tableau")) }"#,
        ),
        (
            "SET table.exec.mini-batch.allow-latency = 5 s",
            r#"Set { entry: Some(("table.exec.mini-batch.allow-latency", "5 s")) }"#,
        ),
        ("RESET 'a'", r#"Reset { key: Some("a") }"#),
        ("RESET", "Reset { key: None }"),
        ("HELP", "Client(Help)"),
        ("why;", "Client(Why)"),
        ("quit;", "Client(Quit)"),
        ("EXIT", "Client(Quit)"),
        ("CLEAR", "Client(Clear)"),
    ] {
        assert_eq!(format!("{:?}", parse(sql)), shape, "{sql}");
    }
    let shows = |sql: &str| match parse(sql) {
        Statement::Show(Show { what, name, pattern }) => {
            let pattern = pattern.map(|p| {
                format!(" {}{}{}", if p.negated { "!" } else { "" }, if p.ignore_case { "~" } else { "" }, p.pattern)
            });
            format!("{what}{}{}", name.map(|n| format!(" {n}")).unwrap_or_default(), pattern.unwrap_or_default())
        }
        other => panic!("{sql}: {other:?}"),
    };
    assert_eq!(shows("SHOW TABLES"), "TABLES");
    assert_eq!(shows("SHOW TABLES FROM db NOT ILIKE 'a%'"), "TABLES db !~a%");
    assert_eq!(shows("SHOW CREATE TABLE a.b"), "CREATE TABLE a.b");
    assert_eq!(shows("SHOW COLUMNS IN t LIKE '%'"), "COLUMNS t %");
    assert_eq!(shows("SHOW CURRENT DATABASE"), "CURRENT DATABASE");
    assert!(matches!(parse("DESC EXTENDED t"), Statement::Describe { name } if name.to_string() == "t"));
    assert!(matches!(parse("DESCRIBE extended"), Statement::Describe { name } if name.to_string() == "extended"));
    assert!(matches!(parse("USE CATALOG c"), Statement::Use { catalog: true, .. }));
    assert!(matches!(parse("USE a.b"), Statement::Use { catalog: false, .. }));
    assert!(matches!(
        parse("DROP TEMPORARY VIEW IF EXISTS v"),
        Statement::Drop { temporary: true, if_exists: true, .. }
    ));
    assert!(matches!(parse("DROP DATABASE d CASCADE"), Statement::Drop { cascade: true, .. }));
    assert!(matches!(
        parse("CREATE DATABASE IF NOT EXISTS d COMMENT 'x' WITH ('a' = 'b')"),
        Statement::CreateDatabase { .. }
    ));
    let Statement::Explain { details, statement } = parse("EXPLAIN CHANGELOG_MODE, PLAN_ADVICE INSERT INTO t SELECT 1")
    else {
        panic!("EXPLAIN");
    };
    assert_eq!(details, ["CHANGELOG_MODE", "PLAN_ADVICE"]);
    assert!(matches!(*statement, Statement::Insert(_)));
    assert!(matches!(parse("EXPLAIN PLAN FOR SELECT 1"), Statement::Explain { .. }));
    assert!(matches!(parse("EXPLAIN STATEMENT SET BEGIN INSERT INTO a SELECT 1; END"), Statement::Explain { .. }));
}

#[test]
fn changes_to_tables_and_views_read() {
    let change = |sql: &str| match parse(sql) {
        Statement::AlterTable(alter) => alter.change,
        other => panic!("{sql}: {other:?}"),
    };
    let TableChange::Add(elements) = change(
        "ALTER TABLE t ADD (COLUMN a INT FIRST, b AS a + 1 AFTER a, c STRING METADATA, \
         WATERMARK FOR ts AS ts, CONSTRAINT k PRIMARY KEY (a) NOT ENFORCED)",
    ) else {
        panic!("ADD");
    };
    let places: Vec<_> = elements.columns.iter().map(|(column, place)| (&*column.name.value, place)).collect();
    assert!(matches!(
        places.as_slice(),
        [("a", Some(ColumnPlace::First)), ("b", Some(ColumnPlace::After(_))), ("c", None)]
    ));
    assert!(elements.watermark.is_some() && elements.primary_key.len() == 1 && elements.primary_key_name.is_some());
    assert!(matches!(change("ALTER TABLE t MODIFY a BIGINT"), TableChange::Modify(_)));
    assert!(matches!(change("ALTER TABLE t DROP (a, b)"), TableChange::DropColumns(columns) if columns.len() == 2));
    assert!(matches!(change("ALTER TABLE t DROP PRIMARY KEY"), TableChange::DropPrimaryKey(None)));
    assert!(matches!(change("ALTER TABLE t DROP CONSTRAINT k"), TableChange::DropPrimaryKey(Some(_))));
    assert!(matches!(change("ALTER TABLE t DROP WATERMARK"), TableChange::DropWatermark));
    assert!(matches!(change("ALTER TABLE t RENAME a TO b"), TableChange::RenameColumn(..)));
    assert!(matches!(change("ALTER TABLE t RENAME TO u"), TableChange::Rename(_)));
    assert!(matches!(change("ALTER TABLE t RESET ('a')"), TableChange::Reset(_)));
    assert!(matches!(parse("ALTER VIEW v RENAME TO w"), Statement::AlterView { change: ViewChange::Rename(_), .. }));
    let Statement::AlterView { change: ViewChange::Query(_, text), .. } = parse("ALTER VIEW v AS SELECT a FROM t")
    else {
        panic!("ALTER VIEW");
    };
    assert_eq!(text, "SELECT a FROM t");
    assert!(matches!(parse("DESCRIBE CATALOG EXTENDED c"), Statement::DescribeSpace { extended: true, .. }));
}

#[test]
fn later_work_is_named() {
    for (sql, name) in [
        ("ALTER TABLE t ADD PARTITION (a = 1)", "ALTER TABLE … PARTITION"),
        ("ALTER MODEL m SET ('a' = 'b')", "ALTER MODEL"),
        ("CREATE TEMPORARY SYSTEM FUNCTION f AS 'x' LANGUAGE JAVA", "CREATE FUNCTION"),
        ("CREATE MATERIALIZED TABLE m AS SELECT 1", "CREATE MATERIALIZED TABLE"),
        ("COMPILE PLAN 'f' FOR INSERT INTO t SELECT 1", "COMPILE PLAN"),
        ("ADD JAR '/x.jar'", "ADD JAR"),
        ("SHOW JARS", "SHOW JARS"),
        ("DELETE FROM t WHERE a = 1", "DELETE"),
        (
            "SELECT * FROM t MATCH_RECOGNIZE (ORDER BY ts PATTERN (A) WITHIN INTERVAL '1' HOUR DEFINE A AS TRUE)",
            "MATCH_RECOGNIZE",
        ),
    ] {
        match parse(sql) {
            Statement::Unsupported { what, span } => assert!(what == name && span.is_some(), "{sql}: {what}"),
            other => panic!("{sql}: {other:?}"),
        }
    }
}

#[test]
fn types_read_and_print() {
    for (text, printed) in [
        ("string", "STRING"),
        ("VARCHAR(20) NOT NULL", "VARCHAR(20) NOT NULL"),
        ("VARCHAR", "VARCHAR(1)"),
        ("CHARACTER VARYING(3)", "VARCHAR(3)"),
        ("BINARY(2)", "BINARY(2)"),
        ("BYTES", "BYTES"),
        ("DECIMAL", "DECIMAL(10, 0)"),
        ("NUMERIC(5)", "DECIMAL(5, 0)"),
        ("DEC(38, 38)", "DECIMAL(38, 38)"),
        ("INTEGER", "INT"),
        ("DOUBLE PRECISION", "DOUBLE"),
        ("TIME", "TIME(0)"),
        ("TIMESTAMP", "TIMESTAMP(6)"),
        ("TIMESTAMP(3) WITHOUT TIME ZONE", "TIMESTAMP(3)"),
        ("TIMESTAMP(3) WITH LOCAL TIME ZONE", "TIMESTAMP_LTZ(3)"),
        ("TIMESTAMP_LTZ(9)", "TIMESTAMP_LTZ(9)"),
        ("INTERVAL DAY(2) TO SECOND(3)", "INTERVAL DAY TO SECOND"),
        ("INTERVAL YEAR", "INTERVAL YEAR TO MONTH"),
        ("INT ARRAY NOT NULL MULTISET", "MULTISET<ARRAY<INT> NOT NULL>"),
        ("MAP<STRING NOT NULL, ARRAY<ARRAY<INT>>>", "MAP<STRING NOT NULL, ARRAY<ARRAY<INT>>>"),
        (
            "ROW<a INT NOT NULL 'first', `b c` ROW(x STRING, `y``` TIME(3))>",
            "ROW<`a` INT NOT NULL, `b c` ROW<`x` STRING, `y``` TIME(3)>>",
        ),
        ("DECIMAL(39, 2)", "DECIMAL(38, 2)"),
        ("ROW<>", "ROW<>"),
        ("VARIANT", "VARIANT"),
        ("BITMAP NOT NULL", "BITMAP NOT NULL"),
    ] {
        let (sql_type, nullable) = parse_sql_type(text).unwrap_or_else(|error| panic!("{}", error.render(text)));
        assert_eq!(format!("{sql_type}{}", if nullable { "" } else { " NOT NULL" }), printed, "{text}");
        if printed != "ROW<>" {
            assert_eq!(parse_sql_type(printed).map(|(sql_type, _)| sql_type).ok(), Some(sql_type), "{printed}");
        }
    }
    for (text, words) in [
        ("STRNG", "there is no type 'STRNG'"),
        ("DECIMAL(0, 0)", "must be from 1"),
        ("DECIMAL(5, 6)", "must be from 0 to 5"),
        ("TIMESTAMP(10)", "must be from 0 to 9"),
        ("TIMESTAMP WITH TIME ZONE", "not supported"),
        ("ARRAY<INT", "found the end of the statement"),
    ] {
        let error = parse_sql_type(text).expect_err(text).to_string();
        assert!(error.contains(words), "{text}: {error}");
    }
}

#[test]
fn types_of_casts_come_back() {
    for (sql, printed) in [
        ("CAST(a AS ROW<x INT, `y z` STRING>)", "CAST(a AS ROW<`x` INT, `y z` STRING>)"),
        ("TRY_CAST(a AS decimal(10,2))", "TRY_CAST(a AS DECIMAL(10, 2))"),
        ("CAST(a AS TIMESTAMP(3) WITH LOCAL TIME ZONE)", "CAST(a AS TIMESTAMP_LTZ(3))"),
        ("CAST(NULL AS MAP<STRING, ARRAY<INT>>)", "CAST(NULL AS MAP<STRING, ARRAY<INT>>)"),
    ] {
        assert_eq!(expression(sql), printed);
        let Ok(Expr::Cast { data_type, .. }) = parse_expression(sql) else { panic!("{sql}") };
        assert!(sql_type_of(&data_type).is_ok(), "{sql}");
    }
    let Ok(Expr::TypedString(literal)) = parse_expression("TIMESTAMP '2020-01-01 00:00:00'") else { panic!("literal") };
    assert_eq!(sql_type_of(&literal.data_type).ok(), Some((SqlType::Timestamp(6), true)));
}

#[test]
fn intervals_come_to_one_unit() {
    for (sql, printed) in [
        ("INTERVAL '1' HOUR", "INTERVAL '1' HOUR"),
        ("INTERVAL '10' MINUTES", "INTERVAL '10' MINUTE"),
        ("INTERVAL '1:30' MINUTE TO SECOND", "INTERVAL '90' SECOND"),
        ("INTERVAL '1' DAY(3)", "INTERVAL '1' DAY"),
        ("INTERVAL '1-2' YEAR TO MONTH", "INTERVAL '14' MONTH"),
        ("INTERVAL '1 02:03:04.005' DAY TO SECOND(3)", "INTERVAL '93784.005' SECOND"),
        ("INTERVAL '0.001' SECOND", "INTERVAL '0.001' SECOND"),
        ("INTERVAL -'2' DAY", "INTERVAL '-2' DAY"),
        ("- INTERVAL '2' DAY", "-INTERVAL '2' DAY"),
        ("ts - INTERVAL '5' SECOND", "ts - INTERVAL '5' SECOND"),
    ] {
        assert_eq!(expression(sql), printed);
    }
    for sql in
        ["INTERVAL 'x' DAY", "INTERVAL '1:70' MINUTE TO SECOND", "INTERVAL '1.5' DAY", "INTERVAL '1' DAY TO MONTH"]
    {
        assert!(parse_expression(sql).is_err(), "{sql}");
    }
}

#[test]
fn expressions_read_back_as_printed() {
    for sql in [
        "TRIM(BOTH 'x' FROM y)",
        "TRIM(y)",
        "EXTRACT(DAY FROM ts)",
        "TIMESTAMPDIFF(MINUTE, a, b)",
        "TIMESTAMPADD(DAY, 1, ts)",
        "POSITION('a' IN b)",
        "OVERLAY(a PLACING 'x' FROM 2 FOR 3)",
        "SUBSTRING(a FROM 2 FOR 3)",
        "ARRAY[1, 2, 3]",
        "ROW(a, 1)",
        "(a, b)",
        "a[1]",
        "a.b.c[2]",
        "m['k']",
        "a SIMILAR TO 'x' ESCAPE '\\'",
        "a IS DISTINCT FROM b AND c IS NOT DISTINCT FROM d",
        "x'0aff'",
        "DATE '2020-01-01'",
        "TIME '10:00:00'",
        "(a, b) OVERLAPS (c, d)",
        "CASE a WHEN 1 THEN 'x' ELSE NULL END",
        "COUNT(DISTINCT a) FILTER (WHERE b > 1)",
        "FIRST_VALUE(a IGNORE NULLS) OVER (PARTITION BY k ORDER BY ts ROWS BETWEEN 1 PRECEDING AND CURRENT ROW)",
        "IF(a, 1, 2)",
        "LEFT(a, 1)",
        "CURRENT_TIMESTAMP",
        "a IN (1, 2) AND b NOT IN (SELECT c FROM t)",
        "a || b LIKE 'x%' ESCAPE '!'",
        "`a b`.`c`",
        "`COUNT`(*)",
        "-a * b % 2",
        "NOT a IS NOT TRUE",
        "- - 4 - -3",
        "TRIM(LEADING FROM s)",
        "f(x => 1, `y` => 2)",
    ] {
        expression(sql);
    }
    for (sql, printed) in [
        ("MAP['a', 1, 'b', 2]", "map('a', 1, 'b', 2)"),
        ("FLOOR(ts TO day)", "FLOOR(ts, 'DAY')"),
        ("CEIL(x)", "CEIL(x)"),
        ("a IS JSON", "IS_JSON(a, 'VALUE')"),
        ("a IS NOT JSON OBJECT AND b", "(NOT IS_JSON(a, 'OBJECT')) AND b"),
        ("a BETWEEN SYMMETRIC 1 AND 2 AND c", "(a BETWEEN 1 AND 2 OR a BETWEEN 2 AND 1) AND c"),
        ("a NOT BETWEEN ASYMMETRIC 1 AND 2", "a NOT BETWEEN 1 AND 2"),
        ("U&'\\263A'", "'☺'"),
        ("E'a\\nb'", "'a\nb'"),
        ("TUMBLE_START(ts, INTERVAL '1' HOUR)", "TUMBLE_START(TUMBLE(ts, INTERVAL '1' HOUR))"),
        ("HOP_ROWTIME(ts, a, b)", "HOP_ROWTIME(HOP(ts, a, b))"),
    ] {
        assert_eq!(expression(sql), printed);
    }
}

#[test]
fn json_clauses_become_arguments() {
    for (sql, printed) in [
        ("JSON_VALUE(x, '$.a')", "JSON_VALUE(x, '$.a')"),
        (
            "JSON_VALUE(x, '$.a' RETURNING INT NULL ON EMPTY DEFAULT 1 + 1 ON ERROR)",
            "JSON_VALUE(x, '$.a', 'INT', 'NULL', NULL, 'DEFAULT', 1 + 1)",
        ),
        ("JSON_VALUE(x, '$.a' ERROR ON ERROR)", "JSON_VALUE(x, '$.a', 'STRING', 'NULL', NULL, 'ERROR', NULL)"),
        (
            "JSON_QUERY(x, '$' WITH CONDITIONAL ARRAY WRAPPER EMPTY ARRAY ON EMPTY)",
            "JSON_QUERY(x, '$', 'STRING', 'CONDITIONAL', 'EMPTY ARRAY', 'NULL')",
        ),
        (
            "JSON_QUERY(x, '$' RETURNING ARRAY<STRING> WITH WRAPPER)",
            "JSON_QUERY(x, '$', 'ARRAY<STRING>', 'UNCONDITIONAL', 'NULL', 'NULL')",
        ),
        ("JSON_EXISTS(x, '$' TRUE ON ERROR)", "JSON_EXISTS(x, '$', 'TRUE')"),
        (
            "JSON_OBJECT('a' VALUE 1, KEY 'b' VALUE JSON_OBJECT() ABSENT ON NULL)",
            "JSON_OBJECT_ABSENT_ON_NULL('a', 1, 'b', JSON_OBJECT())",
        ),
        ("JSON_OBJECT('a': 1, 'b': c NULL ON NULL)", "JSON_OBJECT('a', 1, 'b', c)"),
        ("JSON_OBJECTAGG(KEY k VALUE v ABSENT ON NULL)", "JSON_OBJECTAGG(k, v, 'ABSENT')"),
        ("JSON_ARRAY(1, NULL NULL ON NULL)", "JSON_ARRAY_NULL_ON_NULL(1, NULL)"),
        ("JSON_ARRAY()", "JSON_ARRAY()"),
        ("JSON_ARRAYAGG(v NULL ON NULL)", "JSON_ARRAYAGG(v, 'NULL')"),
        ("JSON_QUOTE(x)", "JSON_QUOTE(x)"),
    ] {
        assert_eq!(expression(sql), printed);
    }
}

#[test]
fn queries_read_back_as_printed() {
    for sql in [
        "SELECT DISTINCT a, b AS c FROM t WHERE a > 1 GROUP BY a, b HAVING COUNT(*) > 1 ORDER BY a DESC LIMIT 3 OFFSET 1",
        "WITH x AS (SELECT 1 AS a) SELECT * FROM x UNION ALL SELECT a FROM y EXCEPT SELECT 2",
        "SELECT a, GROUPING(a) FROM t GROUP BY GROUPING SETS ((a, b), (a), ()), ROLLUP (c), CUBE (d, e)",
        "SELECT * FROM a LEFT JOIN b ON a.x = b.x CROSS JOIN c NATURAL JOIN d FULL OUTER JOIN e USING (k)",
        "SELECT * FROM o JOIN r FOR SYSTEM_TIME AS OF o.ts ON o.c = r.c",
        "SELECT * FROM t, LATERAL TABLE(f(t.x)) AS u(a, b)",
        "SELECT * FROM t LEFT JOIN LATERAL TABLE(f(x)) AS u(a) ON TRUE",
        "SELECT * FROM t CROSS JOIN UNNEST(t.arr) WITH ORDINALITY AS u(a, i)",
        "SELECT SUM(a) OVER w FROM t WINDOW w AS (PARTITION BY b ORDER BY ts RANGE BETWEEN INTERVAL '1' HOUR PRECEDING AND CURRENT ROW)",
        "SELECT a FROM t QUALIFY ROW_NUMBER() OVER (PARTITION BY a ORDER BY b) <= 3",
        "SELECT * FROM (VALUES (1, 'a'), (2, NULL)) AS t(x, y)",
        "VALUES (1, 2), (3, 4)",
        "SELECT /*+ STATE_TTL('a' = '1d') */ a FROM t",
        "SELECT * FROM t /*+ OPTIONS('a' = 'b', 'c' = 'd') */ AS x JOIN u /*+ OPTIONS('e'='f') */ ON x.a = u.a",
        "SELECT * FROM TABLE(TUMBLE(TABLE t, DESCRIPTOR(ts), INTERVAL '1' HOUR)) AS w",
        "SELECT * FROM TUMBLE(DATA => TABLE t, TIMECOL => DESCRIPTOR(ts), SIZE => INTERVAL '1' HOUR, `OFFSET` => INTERVAL '1' MINUTE)",
        "SELECT * FROM TABLE(SESSION(TABLE cat.db.t PARTITION BY (a, b), DESCRIPTOR(ts), INTERVAL '1' HOUR))",
        "SELECT * FROM f(input => TABLE (SELECT a FROM t) PARTITION BY a, b ORDER BY c DESC, uid => 'x')",
        "SELECT (SELECT MAX(a) FROM t), EXISTS (SELECT 1 FROM u WHERE u.a = t.a) FROM t",
        "SELECT * FROM (VALUES (1), (2)) AS t(x)",
        "SELECT a FROM t ORDER BY a NULLS FIRST FETCH FIRST 3 ROWS ONLY",
    ] {
        query(sql);
    }
    // Rows of one column may stand without parentheses.
    for (bare, whole) in [
        ("VALUES 1, 2", "VALUES (1), (2)"),
        (
            "SELECT * FROM (VALUES 1 , f(2, 3), (4), (5) + 6) AS t(x)",
            "SELECT * FROM (VALUES (1), (f(2, 3)), (4), ((5) + 6)) AS t(x)",
        ),
        (
            "VALUES 'a', ARRAY[1, 2] UNION ALL VALUES NULL ORDER BY 1",
            "VALUES ('a'), (ARRAY[1, 2]) UNION ALL VALUES (NULL) ORDER BY 1",
        ),
        (
            "VALUES 2, 1 + (SELECT MAX(x) FROM (VALUES 7, 8) AS t(x))",
            "VALUES (2), (1 + (SELECT MAX(x) FROM (VALUES (7), (8)) AS t(x)))",
        ),
    ] {
        assert_eq!(query(bare), query(whole), "{bare}");
    }
    assert_eq!(
        query("SELECT * FROM TABLE(SESSION(TABLE t PARTITION BY a, b, DESCRIPTOR(ts), g(1)))"),
        "SELECT * FROM TABLE(SESSION(__table(t, a, b), DESCRIPTOR(ts), g(1)))"
    );
    assert_eq!(
        query("SELECT TUMBLE_END(ts, s) FROM (SELECT SESSION_START(ts, g) FROM t) GROUP BY TUMBLE(ts, s)"),
        "SELECT TUMBLE_END(TUMBLE(ts, s)) FROM (SELECT SESSION_START(SESSION(ts, g)) FROM t) GROUP BY TUMBLE(ts, s)"
    );
    let Ok(hinted) = parse_query("SELECT * FROM t /*+ OPTIONS('a'='b') */") else { panic!("hint") };
    let sqlparser::ast::SetExpr::Select(select) = *hinted.body else { panic!("select") };
    let sqlparser::ast::TableFactor::Table { with_hints, .. } = &select.from[0].relation else { panic!("table") };
    assert_eq!(table_hints(with_hints).ok(), Some(vec![("a".to_string(), "b".to_string())]));
}

#[test]
fn scripts_split_at_their_semicolons() {
    let script = "-- first; not here\nSELECT 'a;b' /* ; */ AS `x;y`;;\n\n  EXECUTE STATEMENT SET BEGIN\n INSERT INTO t SELECT 1; END;\nSELECT 'open";
    let pieces = split_script(script).expect("splits");
    assert_eq!(
        pieces,
        [
            ("SELECT 'a;b' /* ; */ AS `x;y`".to_string(), 2),
            ("EXECUTE STATEMENT SET BEGIN\n INSERT INTO t SELECT 1; END".to_string(), 4),
            ("SELECT 'open".to_string(), 6),
        ]
    );
    assert!(split_script(" -- nothing\n ;").expect("splits").is_empty());
    let error = parse_script(script).expect_err("the last statement is open");
    assert_eq!(error.span().map(|span| (span.line, span.column)), Some((6, 8)));
    let error = parse_script("SELECT 1;\n\nSELECT FROM;\n").expect_err("no items");
    assert_eq!(error.span().map(|span| span.line), Some(3), "{error}");
    let second = parse_script("SELECT 1;\n  SELECT ä\n FROM t").expect("two")[1].span;
    assert_eq!((second.line, second.column, second.end_line, second.end_column), (2, 3, 3, 8));
}

#[test]
fn refusals_say_what_would_be_right() {
    insta::assert_snapshot!(
        [
            "SELEC a FROM t",
            "SELECT a FORM t",
            "SELECT * FORM t",
            "SELECT a FROM t WERE a = 1",
            "SELECT \"a\" FROM t",
            "SELECT 'a FROM t",
            "CREATE TABLE t (a INT, PRIMARY KEY (a))",
            "CREATE TABLE t (a INT PRIMARY KEY)",
            "CREATE TABLE t (a INT b STRING)",
            "CREATE TABLE t (order INT)",
            "CREATE TABLE t (a STRNG)",
            "CREATE TABLE t (a INT UNIQUE)",
            "CREATE TABLE t (a INT DEFAULT 1)",
            "CREATE TABLE t (a INT, a STRING)",
            "CREATE TABLE t (a INT) WITH (connector = 'x')",
            "CREATE TABLE t (a INT) WITH ('parallelism' = 4)",
            "CREATE TABLE t (a INT) LIKE x WITH ('a' = 'b')",
            "INSERT INTO t",
            "INSERT t SELECT 1",
            "SELECT a::INT FROM t",
            "SELECT a == 1 FROM t",
            "SELECT a FROM t GROUP a",
            "SELECT CAST(a AS) FROM t",
            "SELECT (a FROM t",
            "SELECT a, FROM t",
            "SELECT a FROM (SELECT b, FROM u) AS x WHERE b IN (SELECT c FROM v)",
            "SELECT a FROM (SELECT b FROM u GROUP b) AS x",
            "SHOW TABELS",
            "EXECUTE STATEMENT SET BEGIN END",
            "SELECT INTERVAL '1:99' MINUTE TO SECOND",
            "SELECT 1; SELECT 2",
            "",
        ]
        .map(refusal)
        .join("\n\n")
    );
}

#[test]
fn bounds_hold_without_a_stack_overflow_or_a_hang() {
    let long = vec!["a"; limits::SQL_CHAIN].join("+");
    assert!(parse_query(&format!("SELECT {long}")).is_ok_and(|query| query.to_string().len() > long.len()));
    let union = vec!["SELECT a, b FROM t"; limits::SQL_OPERATORS - 10].join(" UNION ALL ");
    assert!(parse_query(&union).is_ok());
    let deep = |open: &str, close: &str, times| format!("SELECT {}1{}", open.repeat(times), close.repeat(times));
    assert!(parse_query(&deep("(", ")", 100)).is_ok());
    for open in [
        "(",
        "CAST(",
        "CASE WHEN ",
        "ARRAY[",
        "MAP[",
        "f(",
        "f(a => ",
        "NOT ",
        "- ",
        "EXTRACT(DAY FROM ",
        "SUBSTRING(",
        "POSITION(",
        "TRIM(",
        "INTERVAL (",
        "a[",
        "a IN (SELECT b FROM t WHERE ",
        "a IN ((SELECT b FROM t WHERE ",
        "JSON_OBJECT('a' VALUE ",
        "a BETWEEN SYMMETRIC (",
        "f(a) OVER (ORDER BY ",
        "* FROM (SELECT ",
        "* FROM ((SELECT ",
        "* FROM a, LATERAL (SELECT ",
        "* FROM f(TABLE (SELECT ",
        "CAST(a AS ARRAY<",
    ] {
        for times in [20, 100, 1_000] {
            assert!(parse_query(&format!("SELECT {}", open.repeat(times))).is_err(), "{open}");
        }
    }
    let refused = parse_query(&format!("SELECT {}", vec!["a"; 10_000].join("+"))).expect_err("too long");
    assert!(refused.message().contains("chains more than"), "{refused}");
    for text in ["SELECT \0 1", "SELECT \u{1} ☃ \u{feff}", "'", "`", "/*", "\u{1f}\u{1f}\u{1f}"] {
        assert!(parse_statement(text).is_err(), "{text:?}");
    }
    let wrong = parse_script(&"x".repeat(limits::SQL_BYTES + 1)).expect_err("too large");
    assert!(wrong.message().contains("bytes"));
}
