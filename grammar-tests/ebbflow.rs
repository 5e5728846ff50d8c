//! Calling the built binary.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

/// The project's root.
pub fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// How a call ended.
pub struct Ended {
    pub code: Option<i32>,
    pub stdout: String,
    pub stderr: String,
}

/// Calls the binary in `folder` and waits.
pub fn call(folder: &Path, arguments: &[&str]) -> Ended {
    call_with_input(folder, arguments, "")
}

/// Calls the binary with text on standard input.
pub fn call_with_input(folder: &Path, arguments: &[&str], input: &str) -> Ended {
    let mut child = Command::new(env!("CARGO_BIN_EXE_ebbflow"))
        .args(arguments)
        .current_dir(folder)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the binary was built for this test");
    let mut pipe = child.stdin.take().expect("standard input is piped");
    let input = input.to_string();
    // Beside, for a child that writes before it has read all would block against us.
    let writer = std::thread::spawn(move || {
        // A child that does not read its input closes it.
        let _ = pipe.write_all(input.as_bytes());
    });
    let Output { status, stdout, stderr } = child.wait_with_output().expect("the child can be waited for");
    writer.join().expect("the writer does not panic");
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("the binary writes UTF-8");
    Ended { code: status.code(), stdout: text(stdout), stderr: text(stderr) }
}

/// All files below a folder, sorted.
pub fn files_below(folder: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    let entries = std::fs::read_dir(folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    for entry in entries {
        let path = entry.expect("the folder can be read").path();
        if path.is_dir() { files.extend(files_below(&path)) } else { files.push(path) }
    }
    files.sort();
    files
}
