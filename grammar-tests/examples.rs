//! Every folder of `sql-examples/` runs and prints what it says it prints, at more than one parallelism.

use std::path::Path;

use crate::ebbflow::{call_with_input, root};

/// Examples whose lines come from two sinks side by side: their order is free even at parallelism 1.
const FREE_ORDER: &[&str] = &["06-statement-set"];

fn run(folder: &Path, parallelism: usize) -> String {
    let scratch = tempfile::tempdir().expect("a temporary folder can be made");
    let path = |name: &str| scratch.path().join(name).display().to_string();
    let parallelism = format!("parallelism.default={parallelism}");
    let out = format!("OUT={}", path("out"));
    let checkpoints = path("checkpoints");
    let mut arguments = vec!["run", "job.sql", "--set", &parallelism, "--set", "table.local-time-zone=UTC"];
    let text = std::fs::read_to_string(folder.join("job.sql")).expect("the example has a job.sql");
    if text.contains("${OUT}") {
        arguments.extend(["--var", &out, "--checkpoint-dir", &checkpoints]);
    }
    let input = std::fs::read_to_string(folder.join("input.csv")).unwrap_or_default();
    let ended = call_with_input(folder, &arguments, &input);
    assert_eq!(ended.code, Some(0), "{}: {}", folder.display(), ended.stderr);
    ended.stdout
}

/// Lines without the order in which they came.
fn sorted(text: &str) -> Vec<&str> {
    let mut lines: Vec<&str> = text.lines().collect();
    lines.sort_unstable();
    lines
}

fn check(name: &str) {
    let folder = root().join("sql-examples").join(name);
    let expected = std::fs::read_to_string(folder.join("expected.txt")).expect("the example has an expected.txt");
    let straight = run(&folder, 1);
    if FREE_ORDER.contains(&name) {
        assert_eq!(sorted(&straight), sorted(&expected), "{name} at parallelism 1");
    } else {
        assert_eq!(straight, expected, "{name} at parallelism 1");
    }
    assert_eq!(sorted(&run(&folder, 4)), sorted(&expected), "{name} at parallelism 4");
}

#[test]
fn every_example_prints_what_it_says() {
    let entries = std::fs::read_dir(root().join("sql-examples")).expect("the examples are there");
    let mut names: Vec<String> = entries
        .map(|entry| entry.expect("the folder can be read"))
        .filter(|entry| entry.path().join("job.sql").exists())
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .collect();
    names.sort();
    assert!(names.len() >= 7, "examples are missing: {names:?}");
    names.iter().for_each(|name| check(name));
}
