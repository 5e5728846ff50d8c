//! Finds the files of a table: `path` is a file, a directory (with everything below it) or a pattern. Names that begin
//! with `.` or `_` are hidden. Files come in the order of their names, on every machine the same.

use std::path::{Path, PathBuf};

use arrow::array::StringArray;

use crate::error::{Error, Result};

/// Where a table's files are.
#[derive(Debug, Clone)]
pub(super) struct Listing {
    path: String,
    /// `source.path.regex-pattern`: the whole path must match.
    pattern: Option<String>,
}

/// A file as found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct FoundFile {
    /// Its path, as the split is named.
    pub path: String,
    /// Bytes at present.
    pub size: u64,
}

impl Listing {
    /// Of `path`, which may begin with `file://`.
    pub(super) fn new(path: &str, pattern: Option<&str>) -> Result<Listing> {
        let listing = Listing { path: local_path(path)?, pattern: pattern.map(|text| format!("^(?:{text})$")) };
        listing.matches(&[String::new()])?;
        Ok(listing)
    }

    /// The files at present; none if there is nothing at the path.
    ///
    /// # Errors
    /// If a directory cannot be read.
    pub(super) fn files(&self) -> Result<Vec<FoundFile>> {
        let mut found = Vec::new();
        if is_pattern(&self.path) && !Path::new(&self.path).exists() {
            let (root, components) = split_pattern(&self.path);
            expand(&root, &components, &mut found)?;
        } else {
            collect(Path::new(&self.path), &mut found)?;
        }
        found.sort_by(|a, b| a.path.cmp(&b.path));
        found.dedup_by(|a, b| a.path == b.path);
        if self.pattern.is_some() {
            let paths: Vec<String> = found.iter().map(|file| file.path.clone()).collect();
            let mut keep = self.matches(&paths)?.into_iter();
            found.retain(|_| keep.next().unwrap_or(false));
        }
        Ok(found)
    }

    /// As [`Listing::files`], but an error if there is nothing at the path.
    ///
    /// # Errors
    /// If the path does not exist, a pattern meets no file, or a directory cannot be read.
    pub(super) fn existing_files(&self) -> Result<Vec<FoundFile>> {
        let files = self.files()?;
        if files.is_empty() && !Path::new(&self.path).exists() {
            let error = Error::setup(format!("there is no file at '{}'", self.path));
            return Err(error.hint("check the table's 'path'; it is taken from the current directory if not absolute"));
        }
        Ok(files)
    }

    fn matches(&self, paths: &[String]) -> Result<Vec<bool>> {
        let Some(pattern) = &self.pattern else { return Ok(vec![true; paths.len()]) };
        let paths = StringArray::from_iter_values(paths);
        let matched = arrow::compute::regexp_is_match_scalar(&paths, pattern, None).map_err(|error| {
            Error::sql(format!("'source.path.regex-pattern' is not a valid regular expression: {error}"))
        })?;
        Ok(matched.iter().map(|matched| matched.unwrap_or(false)).collect())
    }
}

/// The local path of `path`.
///
/// # Errors
/// If it names another file system.
pub(super) fn local_path(path: &str) -> Result<String> {
    if let Some(rest) = path.strip_prefix("file:") {
        return Ok(rest.strip_prefix("//").unwrap_or(rest).to_string());
    }
    match path.split_once("://") {
        Some((scheme, _)) => {
            Err(Error::setup(format!("'{path}' lies on a file system that is not supported: {scheme}"))
                .hint("use a local path, or file://…"))
        }
        None => Ok(path.to_string()),
    }
}

fn is_hidden(name: &str) -> bool {
    name.starts_with(['.', '_'])
}

/// Everything at and below `path`.
fn collect(path: &Path, found: &mut Vec<FoundFile>) -> Result<()> {
    let Some(metadata) = metadata(path)? else { return Ok(()) };
    if !metadata.is_dir() {
        found.push(FoundFile { path: path.to_string_lossy().into_owned(), size: metadata.len() });
        return Ok(());
    }
    for entry in entries(path)? {
        if !is_hidden(&entry) {
            collect(&path.join(&entry), found)?;
        }
    }
    Ok(())
}

/// `None` if there is nothing: it may have gone since its name was read.
fn metadata(path: &Path) -> Result<Option<std::fs::Metadata>> {
    match std::fs::metadata(path) {
        Ok(metadata) => Ok(Some(metadata)),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(Error::io("look at", path, &error)),
    }
}

fn entries(directory: &Path) -> Result<Vec<String>> {
    let read = match std::fs::read_dir(directory) {
        Ok(read) => read,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(Error::io("list", directory, &error)),
    };
    read.map(|entry| match entry {
        Ok(entry) => Ok(entry.file_name().to_string_lossy().into_owned()),
        Err(error) => Err(Error::io("list", directory, &error)),
    })
    .collect()
}

fn is_pattern(path: &str) -> bool {
    path.contains(['*', '?', '['])
}

/// The directory before the first component with a wildcard, and the components from there.
fn split_pattern(path: &str) -> (PathBuf, Vec<&str>) {
    let components: Vec<&str> = path.split('/').collect();
    let first = components.iter().position(|component| is_pattern(component)).unwrap_or(components.len());
    let root = components[..first].join("/");
    let root = match (root.as_str(), path.starts_with('/')) {
        ("", true) => PathBuf::from("/"),
        ("", false) => PathBuf::from("."),
        (root, _) => PathBuf::from(root),
    };
    (root, components[first..].to_vec())
}

fn expand(directory: &Path, components: &[&str], found: &mut Vec<FoundFile>) -> Result<()> {
    let Some((component, rest)) = components.split_first() else { return collect(directory, found) };
    if *component == "**" {
        expand(directory, rest, found)?;
    } else if !is_pattern(component) {
        return expand(&directory.join(component), rest, found);
    }
    if !directory.is_dir() {
        return Ok(());
    }
    for entry in entries(directory)? {
        if is_hidden(&entry) && !component.starts_with(['.', '_']) {
            continue;
        }
        let path = directory.join(&entry);
        if *component == "**" {
            if path.is_dir() {
                expand(&path, components, found)?;
            }
        } else if wildcard(component.as_bytes(), entry.as_bytes()) {
            expand(&path, rest, found)?;
        }
    }
    Ok(())
}

/// Whether `name` matches a pattern of `*`, `?` and `[a-z]`. Goes back to the last `*` only, so it takes at most
/// pattern times name steps.
fn wildcard(pattern: &[u8], name: &[u8]) -> bool {
    let (mut p, mut n) = (0, 0);
    let mut star: Option<(usize, usize)> = None;
    while n < name.len() {
        let step = match pattern.get(p) {
            Some(b'*') => {
                star = Some((p, n));
                p += 1;
                continue;
            }
            Some(b'?') => Some(1),
            Some(b'[') => class(&pattern[p..], name[n]),
            Some(byte) if *byte == name[n] => Some(1),
            _ => None,
        };
        match (step, star) {
            (Some(length), _) => {
                p += length;
                n += 1;
            }
            (None, Some((at, from))) => {
                star = Some((at, from + 1));
                p = at + 1;
                n = from + 1;
            }
            (None, None) => return false,
        }
    }
    pattern[p..].iter().all(|byte| *byte == b'*')
}

/// The length of the class at the front of `pattern`, if it holds `byte`.
fn class(pattern: &[u8], byte: u8) -> Option<usize> {
    let end = pattern.iter().skip(2).position(|byte| *byte == b']')? + 2;
    let (negated, inside) = match pattern[1] {
        b'!' | b'^' => (true, &pattern[2..end]),
        _ => (false, &pattern[1..end]),
    };
    let mut holds = false;
    let mut at = 0;
    while at < inside.len() {
        if at + 2 < inside.len() && inside[at + 1] == b'-' {
            holds |= (inside[at]..=inside[at + 2]).contains(&byte);
            at += 3;
        } else {
            holds |= inside[at] == byte;
            at += 1;
        }
    }
    (holds != negated).then_some(end + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(listing: &Listing, root: &Path) -> Vec<String> {
        let prefix = format!("{}/", root.display());
        listing.files().unwrap().into_iter().map(|file| file.path.replacen(&prefix, "", 1)).collect()
    }

    #[test]
    fn directories_patterns_and_hidden_names() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path();
        for name in ["b.csv", "a.csv", "_hidden.csv", ".x.csv", "sub/c.csv", "sub/d.json", "_staging/e.csv"] {
            let path = root.join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, "x").unwrap();
        }
        let of = |path: String, pattern| names(&Listing::new(&path, pattern).unwrap(), root);
        let base = root.display();
        assert_eq!(of(format!("{base}"), None), ["a.csv", "b.csv", "sub/c.csv", "sub/d.json"]);
        assert_eq!(of(format!("file://{base}"), None).len(), 4);
        assert_eq!(of(format!("{base}/*.csv"), None), ["a.csv", "b.csv"]);
        assert_eq!(of(format!("{base}/**/*.csv"), None), ["a.csv", "b.csv", "sub/c.csv"]);
        assert_eq!(of(format!("{base}/[a-a].c?v"), None), ["a.csv"]);
        assert_eq!(of(format!("{base}/s*"), None), ["sub/c.csv", "sub/d.json"]);
        assert_eq!(of(format!("{base}"), Some(".*/sub/.*json")), ["sub/d.json"]);
        assert!(Listing::new("x", Some("(")).is_err());
        assert!(Listing::new("s3://bucket/x", None).is_err());
        let missing = Listing::new(&format!("{base}/nothing"), None).unwrap();
        assert_eq!(missing.files().unwrap(), Vec::new());
        assert!(missing.existing_files().unwrap_err().message().contains("nothing"));
    }
}
