//! The house is in order: imports as allowed, side effects only where they belong, files of a readable size.

use std::path::Path;

use crate::ebbflow::{files_below, root};

/// Which folder may use which, beside `crash`, `error`, `limits` and `types`, which all may use.
const IMPORTS: &[(&str, &[&str])] = &[
    ("changelog", &[]),
    ("catalog", &["changelog"]),
    ("sql", &[]),
    ("functions", &[]),
    ("plan", &["sql", "catalog", "functions", "changelog"]),
    ("state", &["changelog"]),
    ("operators", &["changelog", "state"]),
    ("formats", &["catalog", "changelog"]),
    ("connectors", &["formats", "catalog", "changelog"]),
    ("checkpoint", &["state", "changelog"]),
    (
        "runtime",
        &[
            "changelog",
            "catalog",
            "sql",
            "functions",
            "plan",
            "state",
            "operators",
            "formats",
            "connectors",
            "checkpoint",
        ],
    ),
    (
        "session",
        &[
            "changelog",
            "catalog",
            "sql",
            "functions",
            "plan",
            "state",
            "operators",
            "formats",
            "connectors",
            "checkpoint",
            "runtime",
        ],
    ),
    ("types", &[]),
    ("shell", &[]),
];

/// Files that may be longer than [`LONGEST`], each with its reason.
const LONG_FILES: &[(&str, &str)] = &[];

/// Lines of the longest file.
const LONGEST: usize = 800;

/// Folders whose code runs to completion on what it is given: no waiting, no files, no clock.
const PURE: &[&str] = &["sql", "plan", "operators", "state", "functions"];

/// Folders that may touch disk and network.
const OUTSIDE: &[&str] = &["connectors", "checkpoint"];

struct Line<'a> {
    number: usize,
    code: &'a str,
}

/// A source file below `src/`.
struct SourceFile {
    name: String,
    text: String,
}

impl SourceFile {
    /// The folder below `src/`; of a file directly in it, its own name.
    fn folder(&self) -> &str {
        self.name.split('/').next().unwrap_or_default().trim_end_matches(".rs")
    }

    fn is_binary(&self) -> bool {
        matches!(self.folder(), "main" | "shell")
    }

    /// Lines of code outside comments and the tests at the end of the file.
    fn code(&self) -> impl Iterator<Item = Line<'_>> {
        let is_test_file = self.name.ends_with("tests.rs") || self.name.contains("/tests/");
        let lines = self
            .text
            .lines()
            .enumerate()
            .take_while(move |(_, line)| !is_test_file && !line.starts_with("mod tests {"));
        lines.filter(|(_, line)| !line.trim_start().starts_with("//")).map(|(at, code)| Line { number: at + 1, code })
    }
}

fn sources() -> Vec<SourceFile> {
    let folder = root().join("src");
    let files = files_below(&folder).into_iter().filter(|path| path.extension().is_some_and(|end| end == "rs"));
    files
        .map(|path| {
            let name = path.strip_prefix(&folder).expect("it was found there").to_string_lossy().replace('\\', "/");
            SourceFile { name, text: read(&path) }
        })
        .collect()
}

fn read(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// Every line of code for which `fault` has something to say.
fn check(fault: impl Fn(&SourceFile, &str) -> Option<String>) {
    let mut faults = Vec::new();
    for file in sources() {
        for line in file.code() {
            if let Some(fault) = fault(&file, line.code) {
                faults.push(format!("src/{}:{}: {fault}", file.name, line.number));
            }
        }
    }
    assert!(faults.is_empty(), "\n{}", faults.join("\n"));
}

#[test]
fn folders_import_only_what_the_table_allows() {
    check(|file, code| {
        let (_, allowed) = IMPORTS.iter().find(|(folder, _)| *folder == file.folder())?;
        let shared = ["crash", "error", "limits", "types", file.folder()];
        // Paths in the middle of code count as well as `use` lines.
        let mut modules = code
            .split("crate::")
            .skip(1)
            .map(|rest| rest.split(|c: char| !c.is_alphanumeric() && c != '_').next().unwrap_or_default());
        let strange = modules.find(|module| match file.is_binary() {
            true => *module != "shell",
            false => !shared.contains(module) && !allowed.contains(module),
        })?;
        Some(format!("'{}' may not use 'crate::{strange}'", file.folder()))
    });
}

#[test]
fn every_folder_stands_in_the_table() {
    let outside = ["lib", "main", "crash", "error", "limits"];
    let missing: Vec<String> = sources()
        .iter()
        .filter(|file| !outside.contains(&file.folder()))
        .filter(|file| IMPORTS.iter().all(|(folder, _)| *folder != file.folder()))
        .map(|file| file.name.clone())
        .collect();
    assert!(missing.is_empty(), "no line in the table of imports for: {missing:?}");
}

#[test]
fn planning_and_computing_neither_wait_nor_look_outside() {
    const BANNED: &[&str] = &[
        "async ",
        ".await",
        "std::fs",
        "TcpStream",
        "TcpListener",
        "UdpSocket",
        "ToSocketAddrs",
        "std::time::Instant",
        "std::time::SystemTime",
        "Instant::now",
        "SystemTime::now",
        "Utc::now",
        "Local::now",
        "std::thread",
        "tokio::",
    ];
    check(|file, code| {
        let found = BANNED.iter().find(|word| code.contains(**word))?;
        PURE.contains(&file.folder()).then(|| format!("'{}' in '{}'", found.trim(), file.folder()))
    });
}

#[test]
fn only_connectors_and_checkpoints_touch_disk_and_network() {
    check(|file, code| {
        let found = ["std::fs", "TcpStream", "TcpListener", "UdpSocket", "ToSocketAddrs", "tokio::fs", "tokio::net"]
            .into_iter()
            .find(|word| code.contains(word))?;
        let allowed = OUTSIDE.contains(&file.folder()) || file.is_binary();
        (!allowed).then(|| format!("'{found}' in '{}'", file.folder()))
    });
}

#[test]
fn only_the_binary_prints() {
    check(|file, code| {
        let prints = ["println!(", "print!(", "eprintln!(", "eprint!(", "dbg!("];
        let found = prints.into_iter().find(|word| {
            let before = code.find(word).map(|at| &code[..at]);
            // `print!(` stands inside `eprint!(` and may end another macro's name.
            before.is_some_and(|before| !before.ends_with(|c: char| c.is_alphanumeric() || c == '_'))
        })?;
        (!file.is_binary()).then(|| format!("the library prints: {found}…)"))
    });
}

#[test]
fn every_file_opens_with_what_it_holds() {
    let tests = root().join("grammar-tests");
    let tests = files_below(&tests).into_iter().filter(|path| path.extension().is_some_and(|end| end == "rs"));
    let tests = tests.map(|path| SourceFile { name: path.display().to_string(), text: read(&path) });
    let faults: Vec<String> = sources()
        .into_iter()
        .chain(tests)
        .filter(|file| !file.text.starts_with("//! "))
        .map(|file| file.name)
        .collect();
    assert!(faults.is_empty(), "no opening `//!` sentence in: {faults:?}");
}

#[test]
fn files_are_of_a_readable_size() {
    let faults: Vec<String> = sources()
        .iter()
        .filter(|file| LONG_FILES.iter().all(|(name, _)| *name != file.name))
        .map(|file| (file, file.text.lines().count()))
        .filter(|(_, lines)| *lines > LONGEST)
        .map(|(file, lines)| format!("src/{} has {lines} lines, more than {LONGEST}", file.name))
        .collect();
    assert!(faults.is_empty(), "\n{}", faults.join("\n"));
}
