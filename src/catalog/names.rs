//! What SQL names stand for: databases of tables and views, and the current one.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::{TableDefinition, ViewDefinition};
use crate::error::{Error, Result, nearest};

/// The catalog every session begins with.
pub const DEFAULT_CATALOG: &str = "default_catalog";
/// The database every session begins with.
pub const DEFAULT_DATABASE: &str = "default_database";

/// What a table name stands for.
#[derive(Debug, Clone)]
pub enum Relation {
    /// A declared table.
    Table(Arc<TableDefinition>),
    /// A view.
    View(Arc<ViewDefinition>),
}

impl Relation {
    /// Whether it was declared `TEMPORARY`.
    pub fn temporary(&self) -> bool {
        match self {
            Relation::Table(table) => table.temporary,
            Relation::View(view) => view.temporary,
        }
    }

    /// `table` or `view`, for messages.
    pub fn noun(&self) -> &'static str {
        match self {
            Relation::Table(_) => "table",
            Relation::View(_) => "view",
        }
    }
}

/// A name with all its parts.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct QualifiedName {
    /// The database.
    pub database: String,
    /// The table or view.
    pub object: String,
}

/// What a session knows by name. Temporary objects hide permanent ones of the same name, as in Flink.
#[derive(Debug, Clone)]
pub struct Catalog {
    databases: BTreeMap<String, Database>,
    current: String,
}

#[derive(Debug, Clone, Default)]
struct Database {
    permanent: BTreeMap<String, Relation>,
    temporary: BTreeMap<String, Relation>,
}

impl Default for Catalog {
    fn default() -> Catalog {
        let databases = BTreeMap::from([(DEFAULT_DATABASE.to_string(), Database::default())]);
        Catalog { databases, current: DEFAULT_DATABASE.to_string() }
    }
}

impl Catalog {
    /// The current database.
    pub fn current_database(&self) -> &str {
        &self.current
    }

    /// The databases' names, sorted.
    pub fn databases(&self) -> impl Iterator<Item = &str> {
        self.databases.keys().map(String::as_str)
    }

    /// Makes a database current.
    ///
    /// # Errors
    /// If there is none of this name.
    pub fn use_database(&mut self, name: &str) -> Result<()> {
        self.database(name)?;
        self.current = name.to_string();
        Ok(())
    }

    /// Adds an empty database; returns false if there was one and that is allowed.
    ///
    /// # Errors
    /// If there is one of this name and `if_not_exists` is not set.
    pub fn create_database(&mut self, name: &str, if_not_exists: bool) -> Result<bool> {
        if self.databases.contains_key(name) {
            return exists("database", name, if_not_exists);
        }
        self.databases.insert(name.to_string(), Database::default());
        Ok(true)
    }

    /// Removes a database with all in it.
    ///
    /// # Errors
    /// If it is missing (unless `if_exists`), current, or not empty and `cascade` is not set.
    pub fn drop_database(&mut self, name: &str, if_exists: bool, cascade: bool) -> Result<bool> {
        let Some(database) = self.databases.get(name) else {
            return if if_exists { Ok(false) } else { self.database(name).map(|_| false) };
        };
        if name == self.current {
            return Err(Error::sql(format!("database '{name}' is in use")).hint("USE another database first"));
        }
        if !cascade && !(database.permanent.is_empty() && database.temporary.is_empty()) {
            return Err(Error::sql(format!("database '{name}' is not empty")).hint("add CASCADE to drop what is in it"));
        }
        self.databases.remove(name);
        Ok(true)
    }

    /// Completes a name of one to three parts.
    ///
    /// # Errors
    /// If it has more parts, or names another catalog.
    pub fn qualify(&self, parts: &[&str]) -> Result<QualifiedName> {
        let name = |database: &str, object: &str| QualifiedName { database: database.into(), object: object.into() };
        match parts {
            [object] => Ok(name(&self.current, object)),
            [database, object] => Ok(name(database, object)),
            [DEFAULT_CATALOG, database, object] => Ok(name(database, object)),
            [catalog, _, _] => Err(Error::sql(format!("there is no catalog '{catalog}'"))
                .hint(format!("the catalog is '{DEFAULT_CATALOG}'"))),
            _ => Err(Error::sql(format!("'{}' has too many parts", parts.join(".")))
                .hint("a table is named table, database.table or catalog.database.table")),
        }
    }

    /// Adds a table or view. Returns false if there was one and that is allowed.
    ///
    /// # Errors
    /// If the database is missing, or the name is taken and neither `if_not_exists` nor `or_replace` is set.
    pub fn create(
        &mut self,
        name: &QualifiedName,
        relation: Relation,
        if_not_exists: bool,
        or_replace: bool,
    ) -> Result<bool> {
        self.database(&name.database)?;
        let Some(database) = self.databases.get_mut(&name.database) else { return Ok(false) };
        let space = if relation.temporary() { &mut database.temporary } else { &mut database.permanent };
        if let Some(present) = space.get(&name.object)
            && !or_replace
        {
            return exists(present.noun(), &name.object, if_not_exists);
        }
        space.insert(name.object.clone(), relation);
        Ok(true)
    }

    /// Removes a table or view. Returns false if there was none and that is allowed.
    ///
    /// # Errors
    /// If there is none and `if_exists` is not set, or it is the other kind of thing.
    pub fn drop(&mut self, name: &QualifiedName, view: bool, temporary: bool, if_exists: bool) -> Result<bool> {
        let noun = if view { "view" } else { "table" };
        let wanted = |relation: &Relation| relation.noun() == noun;
        if let Some(database) = self.databases.get_mut(&name.database) {
            let space = if temporary { &mut database.temporary } else { &mut database.permanent };
            if space.get(&name.object).is_some_and(wanted) {
                space.remove(&name.object);
                return Ok(true);
            }
            if !temporary && database.temporary.get(&name.object).is_some_and(wanted) {
                return Err(Error::sql(format!("'{}' is a temporary {noun}", name.object)).hint(format!(
                    "DROP TEMPORARY {} {}",
                    noun.to_uppercase(),
                    name.object
                )));
            }
        }
        if if_exists {
            return Ok(false);
        }
        match self.get(name) {
            Some(other) if other.noun() != noun => Err(Error::sql(format!("'{}' is a {}", name.object, other.noun()))
                .hint(format!("DROP {} {}", other.noun().to_uppercase(), name.object))),
            _ => Err(self.not_found(name)),
        }
    }

    /// What a name stands for.
    pub fn get(&self, name: &QualifiedName) -> Option<&Relation> {
        let database = self.databases.get(&name.database)?;
        database.temporary.get(&name.object).or_else(|| database.permanent.get(&name.object))
    }

    /// The tables and views of a database, by name.
    pub fn relations(&self, database: &str) -> BTreeMap<&str, &Relation> {
        let Some(database) = self.databases.get(database) else { return BTreeMap::new() };
        let all = database.permanent.iter().chain(&database.temporary);
        all.map(|(name, relation)| (name.as_str(), relation)).collect()
    }

    /// The error for a name that stands for nothing, with the nearest one that does.
    pub fn not_found(&self, name: &QualifiedName) -> Error {
        if let Err(error) = self.database(&name.database) {
            return error;
        }
        let error = Error::sql(format!("there is no table or view '{}'", name.object));
        let relations = self.relations(&name.database);
        match nearest(&name.object, relations.keys().copied()) {
            Some(near) => error.hint(format!("did you mean '{near}'?")),
            None if relations.is_empty() => error.hint("no table has been created yet; CREATE TABLE … declares one"),
            None => error.hint("SHOW TABLES lists those there are"),
        }
    }

    fn database(&self, name: &str) -> Result<&Database> {
        self.databases.get(name).ok_or_else(|| {
            let error = Error::sql(format!("there is no database '{name}'"));
            match nearest(name, self.databases()) {
                Some(near) => error.hint(format!("did you mean '{near}'?")),
                None => error.hint("SHOW DATABASES lists those there are"),
            }
        })
    }
}

fn exists(noun: &str, name: &str, allowed: bool) -> Result<bool> {
    if allowed {
        return Ok(false);
    }
    Err(Error::sql(format!("{noun} '{name}' already exists"))
        .hint(format!("add IF NOT EXISTS, or DROP {} {name} first", noun.to_uppercase())))
}
