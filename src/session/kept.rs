//! The catalog on disk (`--catalog`): the statements that declare what is in it, in one readable file that is replaced
//! with every change.
//!
//! ```text
//! -- The catalog of Ebbflow, format 1: what declares its databases, tables, views and functions.
//! …
//! CREATE TABLE `default_catalog`.`default_database`.`clicks` (…) WITH (…);
//! …
//! -- End of 3 statements, checksum 5d1f0a2b3c4d5e6f.
//! ```
//!
//! Sessions of one engine share it: each takes over what another has changed before its next statement. A session's
//! temporary tables, views and functions are its own and end with it.

#[cfg(test)]
mod tests;

use std::collections::BTreeSet;
use std::fmt::Write;
use std::path::Path;
use std::sync::Arc;

use xxhash_rust::xxh3::xxh3_64_with_seed;

use super::handle::State;
use super::recreate;
use crate::catalog::{Catalog, DatabaseName, FunctionDefinition, QualifiedName, Relation, ViewDefinition, quoted};
use crate::checkpoint::KeptFile;
use crate::error::{Error, Result};
use crate::sql;

/// The format that is written.
const FORMAT: u32 = 1;

const HEADING: &str = "-- The catalog of Ebbflow, format ";

const ENDING: &str = "-- End of ";

/// Turns the statements of a file into a catalog.
pub(super) type Replay<'a> = &'a dyn Fn(&str) -> Result<Catalog>;

/// The catalog that an engine keeps.
pub(super) struct KeptCatalog {
    file: KeptFile,
    text: String,
    catalog: Catalog,
    version: u64,
}

impl KeptCatalog {
    /// Opens the file at `path`, whose statements `replay` turns into a catalog.
    ///
    /// # Errors
    /// If it is in use, damaged, of a newer format, or a statement of it fails.
    pub(super) fn open(path: &Path, replay: impl FnOnce(&str) -> Result<Catalog>) -> Result<KeptCatalog> {
        let (file, contents) = KeptFile::open(path).map_err(|error| error.context("the catalog"))?;
        let Some(bytes) = contents else {
            let catalog = Catalog::default();
            return Ok(KeptCatalog { file, text: write(&catalog)?.0, catalog, version: 0 });
        };
        let in_file = |error: Error| error.elsewhere().context(format!("the catalog file '{}'", path.display()));
        let text = String::from_utf8(bytes).map_err(|_| in_file(damaged("it is not UTF-8 text")))?;
        let statements = check(&text).map_err(in_file)?;
        let catalog = replay(statements).map_err(in_file)?;
        Ok(KeptCatalog { file, text, catalog, version: 0 })
    }

    /// What a new session begins with.
    pub(super) fn catalog(&self) -> (Catalog, u64) {
        (self.catalog.clone(), self.version)
    }

    /// Takes over what another session has changed.
    pub(super) fn refresh(&self, state: &mut State) {
        if state.catalog_version != self.version {
            let before = std::mem::replace(&mut state.catalog, self.catalog.clone());
            state.catalog.take_temporary(&before);
            state.catalog_version = self.version;
        }
    }

    /// Keeps what a statement has made of the session's catalog. `replay`, if given, must be able to read it again.
    ///
    /// # Errors
    /// If the file cannot be written: then the catalog is as it was before the statement.
    pub(super) fn keep(&mut self, state: &mut State, before: &Catalog, replay: Option<Replay<'_>>) -> Result<()> {
        let kept = self.try_keep(state, replay);
        if kept.is_err() {
            state.catalog = before.clone();
        }
        kept
    }

    fn try_keep(&mut self, state: &mut State, replay: Option<Replay<'_>>) -> Result<()> {
        let catalog = state.catalog.permanent();
        let (text, statements) = write(&catalog)?;
        if text == self.text {
            return Ok(());
        }
        if let Some(replay) = replay {
            replay(check(&text)?).map_err(|error| {
                let what = "the catalog file could not be read again after this";
                Error::sql(format!("{what}: {}", error.message())).hint(
                    "drop or alter first what needs a dropped function; what uses a function of the program must be TEMPORARY",
                )
            })?;
        }
        // What is written must be read again, whatever name or text somebody has thought of.
        let read = sql::split_script(check(&text)?)?;
        if read.len() != statements {
            return Err(Error::bug(format!("{statements} statements of the catalog are read as {}", read.len())));
        }
        self.file.replace(text.as_bytes()).map_err(|error| error.context("the catalog is not changed"))?;
        self.text = text;
        self.catalog = catalog;
        self.version += 1;
        state.catalog_version = self.version;
        Ok(())
    }
}

fn damaged(what: &str) -> Error {
    Error::state(format!("it is damaged: {what}"))
        .hint("restore it from a backup; or, if it was edited, run it as a script with a new --catalog file")
}

/// Checks heading and ending, and gives the text between.
fn check(text: &str) -> Result<&str> {
    let Some(rest) = text.strip_prefix(HEADING) else { return Err(damaged("it does not begin as a catalog does")) };
    let digits = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
    match rest[..digits].parse::<u32>() {
        Ok(FORMAT) => {}
        Ok(newer) if newer > FORMAT => {
            return Err(Error::state(format!("it has format {newer}, and this version reads format {FORMAT}"))
                .hint("use the version of Ebbflow that wrote it, or a newer one"));
        }
        _ => return Err(damaged("it does not begin as a catalog does")),
    }
    let Some(at) = text.rfind(ENDING).filter(|at| text[..*at].ends_with('\n')) else {
        return Err(damaged("its end is missing"));
    };
    if text[at..] != ending(&text[..at], count(&text[at..])) {
        return Err(damaged("its checksum does not agree"));
    }
    let first = text.find('\n').map_or(at, |line| line + 1);
    Ok(&text[first.min(at)..at])
}

/// The number an ending tells.
fn count(ending: &str) -> usize {
    let rest = ending.strip_prefix(ENDING).unwrap_or_default();
    rest.split(' ').next().and_then(|digits| digits.parse().ok()).unwrap_or_default()
}

fn ending(text: &str, statements: usize) -> String {
    let checksum = xxh3_64_with_seed(text.as_bytes(), statements as u64);
    format!("{ENDING}{statements} statements, checksum {checksum:016x}.\n")
}

/// The file's text for a catalog without anything temporary, and the number of its statements.
fn write(catalog: &Catalog) -> Result<(String, usize)> {
    let mut statements: Vec<String> = Vec::new();
    for name in catalog.catalogs().filter(|name| *name != crate::catalog::DEFAULT_CATALOG) {
        statements.push(recreate::create_catalog(name, catalog.catalog(name)?));
    }
    for database in catalog.all_databases() {
        let (comment, options) = catalog.database_facts(&database)?;
        let comes_with_catalog = catalog.comes_with_catalog(&database);
        statements.extend(recreate::create_database(&database, comes_with_catalog, comment, options));
    }
    let mut views = Vec::new();
    for database in catalog.all_databases() {
        let mut own = Vec::new();
        own.extend(catalog.functions_of(&database)?.map(|function| create_function(&database, function)));
        for (object, relation) in catalog.relations(&database)? {
            let name = QualifiedName { database: database.clone(), object: object.to_string() };
            match relation {
                Relation::Table(table) => own.push(recreate::create_table(&name, table)),
                Relation::View(view) => views.push((name, Arc::clone(view))),
            }
        }
        if !own.is_empty() {
            statements.push(format!("USE {database}\n"));
            statements.append(&mut own);
        }
    }
    // Names in a view's query are completed with the database that was current when it was declared.
    let mut current = None;
    for (name, view) in in_order(views) {
        if current.as_ref() != Some(&view.home) {
            statements.push(format!("USE {}\n", view.home));
            current = Some(view.home.clone());
        }
        statements.push(recreate::declare_view(&name, &view));
    }
    let mut text = format!("{HEADING}{FORMAT}: what declares its databases, tables, views and functions.\n");
    text.push_str("-- Written anew with every change, and sealed by the last line.\n");
    for statement in &statements {
        // A line of its own for the semicolon: a statement may end with a comment.
        let _ = write!(text, "\n{statement};\n");
    }
    text.push('\n');
    let ending = ending(&text, statements.len());
    Ok((text + &ending, statements.len()))
}

/// Views after those that their queries mention, so that the file can be run as a script. Whether a name in a query is
/// the view's does not matter: reading the file again needs no order.
fn in_order(views: Vec<(QualifiedName, Arc<ViewDefinition>)>) -> Vec<(QualifiedName, Arc<ViewDefinition>)> {
    let mentions = |view: usize, other: usize| view != other && views[view].1.query.contains(&views[other].0.object);
    let mut waits: Vec<usize> =
        (0..views.len()).map(|view| (0..views.len()).filter(|other| mentions(view, *other)).count()).collect();
    let mut left: BTreeSet<usize> = (0..views.len()).collect();
    let mut order = Vec::with_capacity(views.len());
    // Views that mention each other come in any order.
    while let Some(next) = left.iter().copied().find(|view| waits[*view] == 0).or_else(|| left.first().copied()) {
        left.remove(&next);
        order.push(next);
        left.iter()
            .filter(|view| mentions(**view, next))
            .for_each(|view| waits[*view] = waits[*view].saturating_sub(1));
    }
    order.into_iter().map(|view| views[view].clone()).collect()
}

fn create_function(database: &DatabaseName, function: &FunctionDefinition) -> String {
    let parameters: Vec<String> = function
        .parameters
        .iter()
        .map(|(name, sql_type)| format!("{} {}", quoted(name), recreate::full(sql_type)))
        .collect();
    let returns = function.returns.as_ref().map(|sql_type| format!(" RETURNS {}", recreate::full(sql_type)));
    format!(
        "CREATE FUNCTION {database}.{}({}){} AS {}\n",
        quoted(&function.name),
        parameters.join(", "),
        returns.unwrap_or_default(),
        function.body
    )
}
