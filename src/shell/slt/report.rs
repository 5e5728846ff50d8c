//! Telling what came of the tests.

use std::collections::BTreeMap;
use std::fmt::Write;

use super::super::Flow;
use super::super::arguments::{ReportFormat, TestOptions};
use super::super::console::Terminal;
use super::{Judged, JudgedFile, Verdict};

#[derive(Default, Clone, Copy)]
struct Counts {
    passed: usize,
    failed: usize,
    skipped: usize,
}

impl Counts {
    fn of<'a>(records: impl IntoIterator<Item = &'a Judged>) -> Counts {
        records.into_iter().fold(Counts::default(), |mut counts, judged| {
            match judged.verdict {
                Verdict::Passed => counts.passed += 1,
                Verdict::Failed(_) => counts.failed += 1,
                Verdict::Skipped => counts.skipped += 1,
            }
            counts
        })
    }
}

impl std::fmt::Display for Counts {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} passed, {} failed", self.passed, self.failed)?;
        if self.skipped > 0 { write!(f, ", {} skipped", self.skipped) } else { Ok(()) }
    }
}

/// Prints the report.
///
/// # Errors
/// If standard output is closed.
pub fn print(files: &[JudgedFile], options: &TestOptions) -> Flow {
    let mut text = String::new();
    match options.report {
        ReportFormat::Json => files.iter().for_each(|file| json(file, &mut text)),
        ReportFormat::Text => {
            files.iter().for_each(|file| failures(file, &mut text));
            if options.summary {
                summary(files, &mut text);
            }
            // Writing into a String does not fail, here and below.
            let _ = writeln!(text, "{}", Counts::of(files.iter().flat_map(|file| &file.records)));
        }
    }
    Ok(Terminal::default().print(&text)?)
}

fn failures(file: &JudgedFile, to: &mut String) {
    for judged in &file.records {
        let Verdict::Failed(how) = &judged.verdict else { continue };
        let _ = writeln!(to, "{}:{} ({})", file.name, judged.record.line, judged.record.key);
        for line in judged.record.sql.lines() {
            let _ = writeln!(to, "    {line}");
        }
        for line in how.lines() {
            let _ = writeln!(to, "  {line}");
        }
        to.push('\n');
    }
}

fn summary(files: &[JudgedFile], to: &mut String) {
    let mut folders: BTreeMap<&str, Vec<&JudgedFile>> = BTreeMap::new();
    for file in files {
        let folder = file.name.rsplit_once('/').map_or(".", |(folder, _)| folder);
        folders.entry(folder).or_default().push(file);
    }
    for (folder, files) in folders {
        let _ = writeln!(to, "{folder}/: {}", Counts::of(files.iter().flat_map(|file| &file.records)));
        for file in files {
            let name = file.name.rsplit('/').next().unwrap_or_default();
            let _ = writeln!(to, "    {name}: {}", Counts::of(&file.records));
        }
    }
}

fn json(file: &JudgedFile, to: &mut String) {
    for judged in &file.records {
        let (verdict, message) = match &judged.verdict {
            Verdict::Passed => ("passed", None),
            Verdict::Skipped => ("skipped", None),
            Verdict::Failed(how) => ("failed", Some(how)),
        };
        let line = serde_json::json!({
            "file": file.name, "line": judged.record.line, "key": judged.record.key, "sql": judged.record.sql,
            "verdict": verdict, "message": message,
        });
        let _ = writeln!(to, "{line}");
    }
}
