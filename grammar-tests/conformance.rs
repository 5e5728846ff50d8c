//! The cases recorded from Flink, against the list of known differences.
//!
//! `known-differences.txt` names every record that does not pass, with the reason: `file.slt#key  reason`. A record that
//! is not in the list must pass, and one in the list must not: the list only shrinks. `EBBFLOW_REFRESH=1 cargo test`
//! writes it anew and keeps the reasons that are there.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::ebbflow::{call, root};

/// What a reason tells at most.
const REASON_CHARACTERS: usize = 100;

struct Record {
    verdict: String,
    place: String,
    message: String,
}

fn run() -> BTreeMap<String, Record> {
    let ended = call(&root().join("grammar-tests"), &["test", "conformance", "--report", "json"]);
    let mut records = BTreeMap::new();
    for line in ended.stdout.lines() {
        let value: Value = serde_json::from_str(line).unwrap_or_else(|error| panic!("{error} in the report: {line}"));
        let text = |name: &str| value[name].as_str().unwrap_or_default().to_string();
        let record = Record {
            verdict: text("verdict"),
            place: format!("{}:{}", text("file"), value["line"]),
            message: text("message"),
        };
        records.insert(format!("{}#{}", text("file"), text("key")), record);
    }
    assert!(!records.is_empty(), "no record was run:\n{}", ended.stderr);
    records
}

fn known() -> BTreeMap<String, String> {
    let text = std::fs::read_to_string(list()).unwrap_or_default();
    let lines = text.lines().filter(|line| !line.is_empty() && !line.starts_with("# "));
    lines
        .map(|line| {
            let (key, reason) = line.split_once("  ").unwrap_or_else(|| panic!("no reason in the line '{line}'"));
            (key.to_string(), reason.to_string())
        })
        .collect()
}

fn list() -> std::path::PathBuf {
    root().join("grammar-tests/known-differences.txt")
}

fn refresh(records: &BTreeMap<String, Record>, known: &BTreeMap<String, String>) {
    let mut text = String::from(
        "# Records of conformance/ that do not pass, and why. Written by EBBFLOW_REFRESH=1; reasons are kept.\n",
    );
    for (key, record) in records.iter().filter(|(_, record)| record.verdict == "failed") {
        let first: String = record.message.lines().next().unwrap_or_default().chars().take(REASON_CHARACTERS).collect();
        let fresh = match first.as_str() {
            text if text.starts_with("an error was expected") => "Flink refuses this; Ebbflow answers it".to_string(),
            text if text.starts_with("error") || !record.message.contains('\n') => without_paths(text),
            _ => "other rows".to_string(),
        };
        text += &format!("{key}  {}\n", known.get(key).unwrap_or(&fresh));
    }
    std::fs::write(list(), text).expect("the list can be written");
}

/// A message without places on this machine: words that are absolute paths become `…`.
fn without_paths(text: &str) -> String {
    let word =
        |word: &str| if word.trim_start_matches('\'').starts_with('/') { "…".into() } else { word.to_string() };
    text.split(' ').map(word).collect::<Vec<String>>().join(" ")
}

#[test]
fn every_recorded_case_passes_or_is_a_known_difference() {
    let (records, known) = (run(), known());
    if std::env::var_os("EBBFLOW_REFRESH").is_some() {
        return refresh(&records, &known);
    }
    let mut faults = Vec::new();
    for (key, record) in &records {
        match (record.verdict.as_str(), known.contains_key(key)) {
            ("failed", false) => faults.push(format!("{} ({key}) fails:\n{}\n", record.place, record.message)),
            ("passed", true) => faults.push(format!("{} ({key}) passes now; take it off the list", record.place)),
            _ => {}
        }
    }
    let gone = known.keys().filter(|key| !records.contains_key(*key));
    faults.extend(gone.map(|key| format!("{key} is in the list, but there is no such record")));
    assert!(faults.is_empty(), "{} differences from known-differences.txt:\n{}", faults.len(), faults.join("\n"));
}
