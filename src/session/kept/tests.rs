//! A catalog goes into its file and comes back, and a file that is not what was written is refused.

use std::path::Path;

use crate::error::{Error, Result};
use crate::session::{Engine, Outcome, Session};

fn engine(file: &Path) -> Result<Engine> {
    Engine::builder().parallelism(1).catalog(file).build()
}

fn run(engine: &Engine, session: &Session, script: &str) -> Result<()> {
    for statement in session.split(script)? {
        engine.block_on(session.execute(&statement.text))?;
    }
    Ok(())
}

/// The first column of a statement's rows.
fn rows(engine: &Engine, session: &Session, sql: &str) -> Vec<String> {
    let Outcome::Rows(rows) = engine.block_on(session.execute(sql)).unwrap() else { panic!("'{sql}' has rows") };
    let column = rows.column(0).as_any().downcast_ref::<arrow::array::StringArray>().unwrap();
    column.iter().flatten().map(str::to_string).collect()
}

const DECLARATIONS: &str = r#"
    CREATE CATALOG other COMMENT 'it''s another' WITH ('type' = 'generic_in_memory', 'default-database' = 'first');
    CREATE DATABASE shop COMMENT 'sales; and more' WITH ('owner' = 'Mary');
    ALTER DATABASE default_database SET ('a' = 'b');
    CREATE FUNCTION zwice(a INT) RETURNS INT AS a * 2;
    CREATE FUNCTION fourfold(a INT) AS zwice(zwice(a));
    CREATE FUNCTION two() AS 2;
    CREATE TABLE clicks (
        `the id` INT NOT NULL COMMENT 'number', url VARCHAR(20), at TIMESTAMP(3), r ROW<a INT, `b c` ARRAY<STRING NOT NULL>>,
        more MAP<STRING, DECIMAL(5, 2)>, file STRING METADATA FROM 'file.name' VIRTUAL, four AS fourfold(`the id`),
        now AS PROCTIME(), WATERMARK FOR at AS at - INTERVAL '5' SECOND,
        CONSTRAINT pk PRIMARY KEY (`the id`) NOT ENFORCED
    ) COMMENT 'all; of -- them' PARTITIONED BY (url)
    WITH ('connector' = 'filesystem', 'path' = '/nowhere/it''s', 'format' = 'csv', 'csv.field-delimiter' = ';');
    CREATE TABLE likewise LIKE clicks (EXCLUDING WATERMARKS);
    CREATE TABLE faulty (a INT) WITH ('connector' = 'filesytem');
    CREATE VIEW plain AS SELECT url, COUNT(*) AS n FROM clicks GROUP BY url -- so many
    ;
    CREATE VIEW named (u, `;`) COMMENT 'c' AS SELECT * FROM plain;
    USE shop;
    CREATE TABLE sales (id INT) WITH ('connector' = 'datagen');
    CREATE VIEW own AS SELECT id FROM sales;
    USE CATALOG other;
    CREATE VIEW far AS SELECT id FROM default_catalog.shop.own;
    USE CATALOG default_catalog;
    CREATE TEMPORARY VIEW passing AS SELECT 1 AS x;
    CREATE TEMPORARY TABLE brief (a INT) WITH ('connector' = 'datagen');
    CREATE TEMPORARY FUNCTION gone(a INT) AS a;
"#;

const SHOWN: &[&str] = &[
    "SHOW CATALOGS",
    "SHOW DATABASES",
    "SHOW CREATE CATALOG other",
    "DESCRIBE DATABASE EXTENDED shop",
    "DESCRIBE DATABASE EXTENDED default_database",
    "SHOW CREATE TABLE clicks",
    "SHOW CREATE TABLE likewise",
    "SHOW CREATE TABLE faulty",
    "SHOW CREATE VIEW plain",
    "SHOW CREATE VIEW named",
    "SHOW CREATE TABLE shop.sales",
    "SHOW CREATE VIEW shop.own",
    "SHOW CREATE VIEW other.`first`.far",
    "DESCRIBE clicks",
    "SHOW USER FUNCTIONS",
];

fn shown(engine: &Engine, session: &Session) -> Vec<(String, Vec<String>)> {
    SHOWN.iter().map(|sql| (sql.to_string(), rows(engine, session, sql))).collect()
}

#[test]
fn what_is_declared_is_there_again() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("names.sql");
    let (before, text) = {
        let engine = engine(&file).unwrap();
        let session = engine.session();
        run(&engine, &session, DECLARATIONS).unwrap();
        run(&engine, &session, "DROP TEMPORARY FUNCTION IF EXISTS gone").unwrap_or_default();
        let mut before = shown(&engine, &session);
        let functions = before.last_mut().unwrap();
        functions.1.retain(|name| name != "gone");
        (before, std::fs::read_to_string(&file).unwrap())
    };
    assert!(!text.contains("passing") && !text.contains("brief") && !text.contains("gone"), "{text}");
    let engine = engine(&file).unwrap();
    let session = engine.session();
    assert_eq!(shown(&engine, &session), before);
    assert_eq!(rows(&engine, &session, "SHOW TABLES"), ["clicks", "faulty", "likewise", "named", "plain"]);
    // Written again it is the same text.
    run(&engine, &session, "CREATE TABLE x (a INT) WITH ('connector' = 'datagen'); DROP TABLE x").unwrap();
    assert_eq!(std::fs::read_to_string(&file).unwrap(), text);
    // And as a script it makes the same catalog.
    let copy = folder.path().join("copy.sql");
    let second = Engine::builder().parallelism(1).catalog(&copy).build().unwrap();
    run(&second, &second.session(), &text).unwrap();
    assert_eq!(std::fs::read_to_string(&copy).unwrap(), text);
}

#[test]
fn sessions_of_one_engine_share_it_and_processes_do_not() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("names.sql");
    let one = engine(&file).unwrap();
    let (first, second) = (one.session(), one.session());
    run(&one, &second, "CREATE TEMPORARY VIEW mine AS SELECT 1 AS x").unwrap();
    run(&one, &first, "CREATE VIEW ours AS SELECT 2 AS x").unwrap();
    assert_eq!(rows(&one, &second, "SHOW VIEWS"), ["mine", "ours"]);
    run(&one, &second, "DROP VIEW ours").unwrap();
    assert_eq!(rows(&one, &first, "SHOW VIEWS"), Vec::<String>::new());
    let error = engine(&file).err().unwrap();
    assert!(error.message().contains("names.sql' is in use by process "), "{error}");
    drop((one, first, second));
    engine(&file).unwrap();
}

#[test]
fn what_something_needs_is_not_dropped_and_what_is_gone_is_told_when_used() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("names.sql");
    {
        let engine = engine(&file).unwrap();
        let session = engine.session();
        run(&engine, &session, DECLARATIONS).unwrap();
        let error = run(&engine, &session, "DROP FUNCTION fourfold").unwrap_err();
        assert!(error.message().contains("the catalog file could not be read again after this"), "{error}");
        run(&engine, &session, "DROP FUNCTION zwice; DROP TABLE clicks").unwrap();
    }
    let engine = engine(&file).unwrap();
    let session = engine.session();
    let error = run(&engine, &session, "SELECT * FROM plain").unwrap_err();
    assert!(error.message().contains("'clicks'"), "{error}");
}

#[test]
fn what_only_this_program_can_read_is_not_kept() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("names.sql");
    {
        let engine = engine(&file).unwrap();
        let session = engine.session();
        let own = datafusion_expr::create_udf(
            "own",
            vec![arrow::datatypes::DataType::Int32],
            arrow::datatypes::DataType::Int32,
            datafusion_expr::Volatility::Immutable,
            std::sync::Arc::new(|arguments| Ok(arguments[0].clone())),
        );
        session.register_function(own).unwrap();
        let table = |name: &str, kind: &str| {
            format!("CREATE {kind}TABLE {name} (a INT, b AS own(a)) WITH ('connector' = 'datagen')")
        };
        run(&engine, &session, &table("brief", "TEMPORARY ")).unwrap();
        let error = run(&engine, &session, &table("lasting", "")).unwrap_err();
        assert!(error.message().contains("could not be read again after this"), "{error}");
        assert_eq!(rows(&engine, &session, "SHOW TABLES"), ["brief"]);
        // Beyond Flink, where the session takes it.
        let further = "SET 'table.sql.extensions' = 'true'; \
                       CREATE TABLE bits (a INT, b AS a | 1) WITH ('connector' = 'datagen')";
        run(&engine, &session, further).unwrap();
    }
    let engine = engine(&file).unwrap();
    assert_eq!(rows(&engine, &engine.session(), "SHOW TABLES"), ["bits"]);
}

#[test]
fn a_change_that_cannot_be_kept_is_not_made() {
    let folder = tempfile::tempdir().unwrap();
    let inner = folder.path().join("inner");
    std::fs::create_dir(&inner).unwrap();
    let engine = engine(&inner.join("names.sql")).unwrap();
    let session = engine.session();
    run(&engine, &session, "CREATE VIEW a AS SELECT 1 AS x").unwrap();
    std::fs::remove_dir_all(&inner).unwrap();
    let error = run(&engine, &session, "CREATE VIEW b AS SELECT 1 AS x").unwrap_err();
    assert!(error.message().starts_with("the catalog is not changed: cannot write '"), "{error}");
    assert_eq!(rows(&engine, &session, "SHOW VIEWS"), ["a"]);
    run(&engine, &session, "CREATE TEMPORARY VIEW c AS SELECT 1 AS x").unwrap();
}

#[test]
fn a_damaged_or_newer_file_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("names.sql");
    {
        let engine = engine(&file).unwrap();
        run(&engine, &engine.session(), "CREATE DATABASE d; CREATE VIEW v AS SELECT 1 AS x").unwrap();
    }
    let text = std::fs::read(&file).unwrap();
    let fails = |bytes: &[u8]| -> Error {
        std::fs::write(&file, bytes).unwrap();
        engine(&file).err().unwrap_or_else(|| panic!("taken: {}", String::from_utf8_lossy(bytes)))
    };
    for length in 0..text.len() {
        let error = fails(&text[..length]);
        assert!(error.message().contains("names.sql': it is damaged"), "{length}: {error}");
        let mut changed = text.clone();
        changed[length] ^= 1;
        assert!(fails(&changed).message().contains("names.sql': it "), "{length}");
    }
    let newer = String::from_utf8(text.clone()).unwrap().replacen("format 1", "format 2", 1);
    let error = fails(newer.as_bytes());
    assert!(error.message().ends_with("it has format 2, and this version reads format 1"), "{error}");
    std::fs::write(&file, &text).unwrap();
    engine(&file).unwrap();
}
