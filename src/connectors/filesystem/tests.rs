//! Files read and written: resuming from every position, growing files, and every step of publishing interrupted.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use arrow::array::{Int32Array, RecordBatch, StringArray};

use super::CONNECTOR;
use super::publish::STAGING;
use crate::catalog::{Column, ColumnKind, Options, TableDefinition};
use crate::changelog::ChangeBatch;
use crate::connectors::{
    Committable, ConnectorContext, Console, Sink, Source, SourceEvent, SourceReader, SplitPosition, check_options,
};
use crate::formats::View;
use crate::types::SqlType;

struct NoConsole;

impl Console for NoConsole {
    fn write(&self, _: bool, _: &[u8]) -> std::io::Result<()> {
        Ok(())
    }

    fn input(&self) -> Box<dyn std::io::Read + Send> {
        Box::new(std::io::empty())
    }
}

fn column(name: &str, sql_type: SqlType, kind: ColumnKind) -> Column {
    Column { name: name.to_string(), sql_type, nullable: true, kind, comment: None }
}

fn table(columns: Vec<Column>, partitioned_by: &[&str], given: &[(&str, &str)]) -> TableDefinition {
    let mut options: BTreeMap<String, String> =
        given.iter().map(|(name, value)| (name.to_string(), value.to_string())).collect();
    options.entry("connector".to_string()).or_insert("filesystem".to_string());
    TableDefinition {
        name: "t".to_string(),
        columns,
        watermark: None,
        primary_key: Vec::new(),
        primary_key_name: None,
        partitioned_by: partitioned_by.iter().map(|name| name.to_string()).collect(),
        options: Options(options),
        comment: None,
        temporary: false,
        span: None,
    }
}

fn two_columns() -> Vec<Column> {
    vec![column("id", SqlType::Int, ColumnKind::Physical), column("s", SqlType::STRING, ColumnKind::Physical)]
}

fn context(table: TableDefinition) -> ConnectorContext {
    ConnectorContext {
        table: Arc::new(table),
        console: Arc::new(NoConsole),
        batch: false,
        zone: crate::types::TimeZone::UTC,
        in_order: false,
    }
}

fn source(table: TableDefinition) -> Arc<dyn Source> {
    (CONNECTOR.source.unwrap())(&context(table)).unwrap()
}

fn sink(table: TableDefinition) -> Arc<dyn Sink> {
    (CONNECTOR.sink.unwrap())(&context(table)).unwrap()
}

fn print(batch: &ChangeBatch) -> Vec<String> {
    let rows = batch.rows();
    let fields = rows.schema_ref().fields().iter().zip(rows.columns());
    let views: Vec<View<'_>> = fields.map(|(field, column)| View::new(field, column).unwrap()).collect();
    let cell = |view: &View<'_>, row| {
        let mut text = Vec::new();
        view.write_java(row, &mut text);
        String::from_utf8(text).unwrap()
    };
    (0..batch.len()).map(|row| views.iter().map(|view| cell(view, row)).collect::<Vec<_>>().join(",")).collect()
}

/// All rows until the reader ends or has nothing at present.
async fn drain(reader: &mut dyn SourceReader) -> Vec<String> {
    let mut rows = Vec::new();
    loop {
        match reader.next().await.unwrap() {
            SourceEvent::Changes(batch) => rows.extend(print(&batch)),
            SourceEvent::Idle | SourceEvent::End => return rows,
        }
    }
}

async fn read_all(source: &dyn Source, parallelism: usize, projection: &[usize]) -> Vec<String> {
    let mut rows = Vec::new();
    for subtask in 0..parallelism {
        rows.extend(drain(&mut *source.open(subtask, parallelism, projection, None).unwrap()).await);
    }
    rows
}

#[tokio::test]
async fn a_restart_at_every_position_reads_the_rest() {
    let folder = tempfile::tempdir().unwrap();
    // Larger than one read, so that there are positions within a file.
    let line = |row: usize| format!("{row},{}\n", "x".repeat(200));
    let large: String = (0..20_000).map(line).collect();
    std::fs::write(folder.path().join("a.csv"), large).unwrap();
    std::fs::write(folder.path().join("b.csv"), "100000,\"multi\nline\"\n100001,y").unwrap();
    std::fs::write(folder.path().join("_hidden.csv"), "not read\n").unwrap();
    let path = folder.path().to_str().unwrap();
    let source = source(table(two_columns(), &[], &[("path", path), ("format", "csv")]));
    assert!(source.bounded());
    let straight = read_all(&*source, 1, &[0]).await;
    assert_eq!(straight.len(), 20_002);
    let mut reader = source.open(0, 1, &[0], None).unwrap();
    let mut before = Vec::new();
    loop {
        let saved: Vec<SplitPosition> =
            serde_json::from_str(&serde_json::to_string(&reader.positions()).unwrap()).unwrap();
        let mut resumed = before.clone();
        for subtask in 0..2 {
            resumed.extend(drain(&mut *source.open(subtask, 2, &[0], Some(&saved)).unwrap()).await);
        }
        let order = |row: &String| row.parse::<u32>().unwrap();
        resumed.sort_by_key(order);
        assert_eq!(resumed, straight);
        match reader.next().await.unwrap() {
            SourceEvent::Changes(batch) => before.extend(print(&batch)),
            _ => break,
        }
    }
    assert_eq!(reader.progress().total_bytes, Some(reader.progress().bytes));
}

#[tokio::test]
async fn ranges_of_one_file_give_every_row_once() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("large.json");
    let text: String =
        (0..250_000).map(|row| format!("{{\"id\":{row},\"s\":\"{}\"}}\n", "x".repeat(row % 150))).collect();
    assert!(text.len() > 2 * (8 << 20));
    std::fs::write(&path, text).unwrap();
    let source = source(table(two_columns(), &[], &[("path", path.to_str().unwrap()), ("format", "json")]));
    let mut rows: Vec<u32> = Vec::new();
    for subtask in 0..3 {
        let mut reader = source.open(subtask, 3, &[0], None).unwrap();
        assert_eq!(reader.positions().len(), 1, "each subtask reads a range");
        rows.extend(drain(&mut *reader).await.iter().map(|row| row.parse::<u32>().unwrap()));
    }
    rows.sort_unstable();
    assert_eq!(rows, (0..250_000).collect::<Vec<_>>());
}

#[tokio::test]
async fn growing_and_new_files_are_read_on() {
    use std::io::Write;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("in");
    let given = [("path", path.to_str().unwrap()), ("format", "csv"), ("source.monitor-interval", "5 ms")];
    let source = source(table(two_columns(), &[], &given));
    assert!(!source.bounded());
    let mut reader = source.open(0, 1, &[0, 1], None).unwrap();
    assert!(matches!(reader.next().await.unwrap(), SourceEvent::Idle), "the directory is not there yet");
    std::fs::create_dir(&path).unwrap();
    let mut file = std::fs::File::create(path.join("a.csv")).unwrap();
    file.write_all(b"1,x\n2,part").unwrap();
    assert_eq!(drain(&mut *reader).await, ["1,x"]);
    file.write_all(b"ial\n").unwrap();
    std::fs::write(path.join("b.csv"), "3,z\n").unwrap();
    assert_eq!(drain(&mut *reader).await, ["2,partial", "3,z"]);
    // Waiting is no progress, and a dropped wait loses nothing.
    let waited = tokio::time::timeout(Duration::from_millis(20), reader.next()).await;
    assert!(waited.is_err());
    let saved = reader.positions();
    file.write_all(b"4,w\n").unwrap();
    assert_eq!(drain(&mut *reader).await, ["4,w"]);
    let mut resumed = source.open(0, 1, &[0, 1], Some(&saved)).unwrap();
    assert_eq!(drain(&mut *resumed).await, ["4,w"]);
    std::fs::write(path.join("a.csv"), "1\n").unwrap();
    let error = reader.next().await.unwrap_err();
    assert!(error.message().contains("a.csv") && error.message().contains("cut or replaced"), "{error}");
}

#[tokio::test]
async fn malformed_rows_name_file_and_line() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.csv");
    std::fs::write(&path, "1,x\nq,y\n").unwrap();
    let source_of = |extra: &[(&str, &str)]| {
        let given = [&[("path", path.to_str().unwrap()), ("format", "csv")], extra].concat();
        source(table(two_columns(), &[], &given))
    };
    let error = source_of(&[]).open(0, 1, &[0, 1], None).unwrap().next().await.unwrap_err();
    assert!(error.message().contains("x.csv': line 2, column 1"), "{error}");
    let missing = source(table(two_columns(), &[], &[("path", "/no/such/file.csv"), ("format", "csv")]));
    assert!(missing.open(0, 1, &[0], None).err().unwrap().message().contains("/no/such/file.csv"));
    let header = source_of(&[("csv.ignore-parse-errors", "true")]);
    assert_eq!(read_all(&*header, 1, &[0, 1]).await, ["1,x", "null,y"]);
}

#[tokio::test]
async fn metadata_columns_tell_of_the_file() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("pairs.csv");
    std::fs::write(&path, "1,x\n2,y\n").unwrap();
    let metadata = |key: &str| ColumnKind::Metadata { key: key.to_string(), is_virtual: true };
    let columns = vec![
        column("name", SqlType::Char(5), metadata("file.name")),
        column("id", SqlType::Int, ColumnKind::Physical),
        column("size", SqlType::BigInt, metadata("file.size")),
        column("s", SqlType::STRING, ColumnKind::Physical),
        column("changed", SqlType::TimestampLtz(3), metadata("file.modification-time")),
    ];
    let given = [("path", path.to_str().unwrap()), ("format", "csv")];
    let of = source(table(columns, &[], &given));
    assert_eq!(read_all(&*of, 1, &[0, 1, 2]).await, ["pairs,1,8", "pairs,2,8"]);
    assert_eq!(read_all(&*of, 1, &[2]).await, ["8", "8"]);
    assert!(read_all(&*of, 1, &[4]).await[0].starts_with("20"));
    let wrong = table(vec![column("x", SqlType::STRING, metadata("file.nam"))], &[], &given);
    let error = (CONNECTOR.source.unwrap())(&context(wrong)).err().unwrap();
    assert_eq!(error.hint_text(), Some("did you mean 'file.name'?"));
}

fn rows(ids: &[i32], texts: &[Option<&str>]) -> ChangeBatch {
    let schema = table(two_columns(), &[], &[]).sink_schema();
    let ids = Int32Array::from(ids.to_vec());
    let texts = StringArray::from(texts.to_vec());
    ChangeBatch::inserts(RecordBatch::try_new(schema, vec![Arc::new(ids), Arc::new(texts)]).unwrap())
}

/// Visible files and their text.
fn visible(directory: &Path) -> Vec<(String, String)> {
    let listing = super::listing::Listing::new(directory.to_str().unwrap(), None).unwrap();
    let name = |path: &str| path.strip_prefix(directory.to_str().unwrap()).unwrap()[1..].to_string();
    let files = listing.files().unwrap().into_iter();
    files.map(|file| (name(&file.path), std::fs::read_to_string(&file.path).unwrap())).collect()
}

fn staged(directory: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(directory.join(STAGING)).unwrap();
    let mut names: Vec<String> = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

/// A sink below `directory` with one prepared checkpoint.
fn prepared(directory: &Path, given: &[(&str, &str)]) -> (Arc<dyn Sink>, Committable) {
    let given = [&[("path", directory.to_str().unwrap()), ("format", "csv")], given].concat();
    let definition = table(two_columns(), &[], &given);
    let schema = definition.sink_schema();
    let sink = sink(definition);
    let mut writer = sink.open("out", 0, 1, schema).unwrap();
    writer.write(&rows(&[1, 2], &[Some("x"), None])).unwrap();
    let committable = writer.prepare(7).unwrap().unwrap();
    assert_eq!(writer.prepare(8).unwrap(), None, "nothing was written since");
    (sink, committable)
}

#[test]
fn rows_are_visible_after_the_commit_and_not_before() {
    let folder = tempfile::tempdir().unwrap();
    let directory = folder.path().join("out");
    let (sink, committable) = prepared(&directory, &[]);
    assert_eq!(visible(&directory), []);
    let again: Committable = serde_json::from_str(&serde_json::to_string(&committable).unwrap()).unwrap();
    let expected = [("part-out-0-7-0.csv".to_string(), "1,x\n2,\n".to_string())];
    for _ in 0..3 {
        sink.commit(std::slice::from_ref(&again)).unwrap();
        assert_eq!(visible(&directory), expected);
        assert_eq!(staged(&directory), Vec::<String>::new());
    }
}

#[test]
fn a_crash_at_any_step_of_publishing_is_repaired() {
    let folder = tempfile::tempdir().unwrap();
    let directory = folder.path();
    let (sink, committable) = prepared(directory, &[]);
    let staging = directory.join(STAGING).join(&staged(directory)[0]);
    let target = directory.join("part-out-0-7-0.csv");
    // Linked, the staging name not yet removed.
    std::fs::hard_link(&staging, &target).unwrap();
    sink.commit(std::slice::from_ref(&committable)).unwrap();
    assert_eq!((visible(directory).len(), staged(directory).len()), (1, 0));
    // Published, then damaged or gone: the job must not go on as if nothing were lost.
    std::fs::write(&target, "1,x\n3,\n").unwrap();
    let error = sink.commit(std::slice::from_ref(&committable)).unwrap_err();
    assert!(error.message().starts_with("FILE_LOST"), "{error}");
    std::fs::remove_file(&target).unwrap();
    assert!(sink.commit(std::slice::from_ref(&committable)).unwrap_err().message().starts_with("FILE_LOST"));
}

#[test]
fn a_foreign_or_shortened_file_is_never_taken_for_ours() {
    let folder = tempfile::tempdir().unwrap();
    let (sink, committable) = prepared(folder.path(), &[]);
    let target = folder.path().join("part-out-0-7-0.csv");
    std::fs::write(&target, "foreign").unwrap();
    assert!(sink.commit(std::slice::from_ref(&committable)).is_err());
    assert_eq!(std::fs::read_to_string(&target).unwrap(), "foreign");
    std::fs::remove_file(&target).unwrap();
    std::fs::write(folder.path().join(STAGING).join(&staged(folder.path())[0]), "1,").unwrap();
    assert!(sink.commit(std::slice::from_ref(&committable)).unwrap_err().message().starts_with("FILE_LOST"));
}

#[test]
fn leftovers_of_older_incarnations_go_and_those_of_the_running_one_stay() {
    let folder = tempfile::tempdir().unwrap();
    let directory = folder.path();
    let (sink, _) = prepared(directory, &[]);
    let schema = table(two_columns(), &[], &[]).sink_schema();
    let mut second = sink.open("out", 0, 2, Arc::clone(&schema)).unwrap();
    second.write(&rows(&[3], &[Some("y")])).unwrap();
    let mut other = sink.open("out-0", 0, 1, schema).unwrap();
    other.write(&rows(&[4], &[Some("z")])).unwrap();
    sink.clean("out", 2).unwrap();
    assert_eq!(staged(directory), ["part-out%2D0-0-0.csv.1", "part-out-0-0.csv.2"]);
    let committable = second.prepare(9).unwrap().unwrap();
    sink.commit(&[committable]).unwrap();
    assert_eq!(visible(directory), [("part-out-0-9-0.csv".to_string(), "3,y\n".to_string())]);
}

#[test]
fn without_checkpoints_leftovers_of_the_dead_go_and_files_of_the_living_stay() {
    let folder = tempfile::tempdir().unwrap();
    let directory = folder.path();
    let (sink, _) = prepared(directory, &[]);
    let schema = table(two_columns(), &[], &[]).sink_schema();
    let mut living = sink.open("living", 0, 0, Arc::clone(&schema)).unwrap();
    living.write(&rows(&[3], &[Some("y")])).unwrap();
    let mut dead = sink.open("dead", 0, 0, schema).unwrap();
    dead.write(&rows(&[4], &[Some("z")])).unwrap();
    drop(dead);
    sink.clean("another", 0).unwrap();
    assert_eq!(staged(directory), ["part-living-0-0.csv.0", "part-out-0-0.csv.1"]);
    // Closed and about to be published.
    let committable = living.prepare(1).unwrap().unwrap();
    sink.clean("another", 5).unwrap();
    sink.commit(&[committable]).unwrap();
    assert_eq!(visible(directory), [("part-living-0-1-0.csv".to_string(), "3,y\n".to_string())]);
    drop(living);
}

#[test]
fn large_output_rolls_to_several_files() {
    let folder = tempfile::tempdir().unwrap();
    let given =
        [("path", folder.path().to_str().unwrap()), ("format", "json"), ("sink.rolling-policy.file-size", "30 b")];
    let definition = table(two_columns(), &[], &given);
    let schema = definition.sink_schema();
    let sink = sink(definition);
    let mut writer = sink.open("out", 3, 1, schema).unwrap();
    for id in 0..4 {
        writer.write(&rows(&[id], &[Some("x")])).unwrap();
    }
    sink.commit(&[writer.prepare(1).unwrap().unwrap()]).unwrap();
    let names: Vec<String> = visible(folder.path()).into_iter().map(|(name, _)| name).collect();
    assert_eq!(names, ["part-out-3-1-0.json", "part-out-3-1-1.json"]);
}

#[tokio::test]
async fn partitions_are_directories_both_ways() {
    let folder = tempfile::tempdir().unwrap();
    let given = [("path", folder.path().to_str().unwrap()), ("format", "csv"), ("partition.default-name", "nil")];
    let definition = table(two_columns(), &["s"], &given);
    let schema = definition.sink_schema();
    let sink = sink(definition.clone());
    let mut writer = sink.open("out", 0, 1, schema).unwrap();
    writer.write(&rows(&[1, 2, 3, 4], &[Some("a/b"), None, Some("é"), Some("a/b")])).unwrap();
    sink.commit(&[writer.prepare(1).unwrap().unwrap()]).unwrap();
    let files = visible(folder.path());
    assert_eq!(files[0], ("s=a%2Fb/part-out-0-1-0.csv".to_string(), "1\n4\n".to_string()));
    assert_eq!(files.len(), 3);
    let mut read = read_all(&*source(definition), 1, &[0, 1]).await;
    read.sort();
    assert_eq!(read, ["1,a/b", "2,null", "3,é", "4,a/b"]);
}

/// A table of two Parquet files, each of many row groups: 40,000 rows whose `s` is long.
fn parquet_files(directory: &Path) -> TableDefinition {
    let given = [
        ("path", directory.to_str().unwrap()),
        ("format", "parquet"),
        ("parquet.block.size", "200 kb"),
        ("parquet.compression", "UNCOMPRESSED"),
        ("parquet.enable.dictionary", "false"),
    ];
    let definition = table(two_columns(), &[], &given);
    let sink = sink(definition.clone());
    let mut writer = sink.open("out", 0, 1, definition.sink_schema()).unwrap();
    for checkpoint in 0..2 {
        for piece in 0..10 {
            let first = checkpoint * 20_000 + piece * 2_000;
            let ids: Vec<i32> = (first..first + 2_000).collect();
            let texts: Vec<String> = ids.iter().map(|id| format!("{id} {}", "x".repeat(90))).collect();
            writer.write(&rows(&ids, &texts.iter().map(|text| Some(text.as_str())).collect::<Vec<_>>())).unwrap();
        }
        sink.commit(&[writer.prepare(checkpoint as u64 + 1).unwrap().unwrap()]).unwrap();
    }
    definition
}

#[tokio::test]
async fn files_of_blocks_are_shared_out_and_read_on_from_every_position() {
    let folder = tempfile::tempdir().unwrap();
    let source = source(parquet_files(folder.path()));
    let number = |row: &String| row.parse::<u32>().unwrap();
    let all: Vec<u32> = (0..40_000).collect();
    // Each file is larger than the smallest range, and the second subtask begins in its middle.
    for parallelism in [1, 2, 3] {
        let mut parts = Vec::new();
        for subtask in 0..parallelism {
            let part = drain(&mut *source.open(subtask, parallelism, &[0], None).unwrap()).await;
            assert!(!part.is_empty() || parallelism > 2, "subtask {subtask} of {parallelism} has nothing to read");
            parts.extend(part.iter().map(number));
        }
        parts.sort_unstable();
        assert_eq!(parts, all);
    }
    let mut reader = source.open(0, 1, &[0], None).unwrap();
    let mut before: Vec<u32> = Vec::new();
    loop {
        let saved: Vec<SplitPosition> =
            serde_json::from_str(&serde_json::to_string(&reader.positions()).unwrap()).unwrap();
        let mut resumed = before.clone();
        for subtask in 0..2 {
            resumed.extend(drain(&mut *source.open(subtask, 2, &[0], Some(&saved)).unwrap()).await.iter().map(number));
        }
        resumed.sort_unstable();
        assert_eq!(resumed, all);
        match reader.next().await.unwrap() {
            SourceEvent::Changes(batch) => before.extend(print(&batch).iter().map(number)),
            _ => break,
        }
    }
    assert_eq!(reader.progress().total_bytes, Some(reader.progress().bytes));
    assert!(!source.has_more(&reader.positions()).unwrap());
}

#[tokio::test]
async fn a_file_of_blocks_that_has_changed_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let source = source(parquet_files(folder.path()));
    let mut reader = source.open(0, 1, &[0, 1], None).unwrap();
    reader.next().await.unwrap();
    let middle = reader.positions();
    drain(&mut *reader).await;
    let end = reader.positions();
    let path = folder.path().join("part-out-0-1-0.parquet");
    let mut bytes = std::fs::read(&path).unwrap();
    bytes.push(0);
    std::fs::write(&path, bytes).unwrap();
    assert!(source.has_more(&end).unwrap());
    for saved in [middle, end] {
        let error = source.open(0, 1, &[0, 1], Some(&saved)).unwrap().next().await.unwrap_err();
        assert!(error.message().contains("part-out-0-1-0.parquet") && error.message().contains("replaced"), "{error}");
    }
    let error = source.open(0, 1, &[0, 1], None).unwrap().next().await.unwrap_err();
    assert!(error.message().starts_with("file '") && error.message().contains("out-0-1-0.parquet'"), "{error}");
}

#[tokio::test]
async fn new_files_of_blocks_are_found() {
    let folder = tempfile::tempdir().unwrap();
    let mut definition = parquet_files(folder.path());
    let hidden = folder.path().join("_later.parquet");
    std::fs::rename(folder.path().join("part-out-0-2-0.parquet"), &hidden).unwrap();
    definition.options.0.insert("source.monitor-interval".to_string(), "5 ms".to_string());
    let source = source(definition);
    let mut reader = source.open(0, 1, &[0], None).unwrap();
    assert_eq!(drain(&mut *reader).await.len(), 20_000);
    std::fs::rename(&hidden, folder.path().join("later.parquet")).unwrap();
    assert_eq!(drain(&mut *reader).await.len(), 20_000);
    let mut resumed = source.open(0, 1, &[0], Some(&reader.positions())).unwrap();
    assert!(matches!(resumed.next().await.unwrap(), SourceEvent::Idle), "all has been read");
}

#[test]
fn options_are_checked_when_the_table_is_created() {
    let check = |given: &[(&str, &str)]| check_options(&table(two_columns(), &[], given));
    assert!(
        check(&[("path", "/x"), ("format", "csv"), ("csv.field-delimiter", ";"), ("scan.parallelism", "2")]).is_ok()
    );
    let hint = |given: &[(&str, &str)]| check(given).unwrap_err().hint_text().unwrap_or("").to_string();
    assert_eq!(hint(&[("connector", "filesytem")]), "did you mean 'filesystem'?");
    assert_eq!(hint(&[("path", "/x"), ("format", "csvv")]), "did you mean 'csv'?");
    assert_eq!(
        hint(&[("path", "/x"), ("format", "csv"), ("csv.field-delimeter", ";")]),
        "did you mean 'field-delimiter'?"
    );
    assert_eq!(hint(&[("pat", "/x"), ("format", "csv")]), "did you mean 'path'?");
    assert!(check(&[("format", "csv")]).unwrap_err().message().contains("needs the option 'path'"));
    assert!(check(&[("path", "/x")]).unwrap_err().message().contains("'format'"));
    assert!(check(&[("path", "/x"), ("format", "json"), ("csv.header", "true")]).is_err());
    assert!(check(&[("connector", "print"), ("format", "csv")]).is_err());
    assert!(check(&[("path", "/x"), ("format", "csv"), ("csv.ignore-parse-errors", "maybe")]).is_err());
}
