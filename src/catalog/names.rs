//! What SQL names stand for: catalogs of databases of tables and views, and the current ones.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use super::database::Database;
use super::{FunctionDefinition, Options, TableDefinition, ViewDefinition};
use crate::error::{Error, Result, nearest};

/// The catalog every session begins with.
pub const DEFAULT_CATALOG: &str = "default_catalog";
/// The database every session begins with.
pub const DEFAULT_DATABASE: &str = "default_database";
/// The one type of catalog there is.
const IN_MEMORY: &str = "generic_in_memory";

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

/// The full name of a database.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct DatabaseName {
    /// The catalog.
    pub catalog: String,
    /// The database.
    pub database: String,
}

/// A name with all its parts.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct QualifiedName {
    /// Where it is.
    pub database: DatabaseName,
    /// The table or view.
    pub object: String,
}

impl fmt::Display for DatabaseName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", quoted(&self.catalog), quoted(&self.database))
    }
}

impl fmt::Display for QualifiedName {
    /// With every part in backticks, as Flink shows it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.database, quoted(&self.object))
    }
}

/// A name in backticks.
pub fn quoted(name: &str) -> String {
    format!("`{}`", name.replace('`', "``"))
}

/// What a session knows by name.
#[derive(Debug, Clone)]
pub struct Catalog {
    pub(super) catalogs: BTreeMap<String, Databases>,
    current: DatabaseName,
}

/// One catalog: databases in memory.
#[derive(Debug, Clone, Default)]
pub struct Databases {
    /// `WITH`, as given.
    pub options: Options,
    /// `COMMENT`.
    pub comment: Option<String>,
    pub(super) default_database: String,
    pub(super) databases: BTreeMap<String, Database>,
}

impl Databases {
    fn new(default_database: &str) -> Databases {
        Databases {
            default_database: default_database.to_string(),
            databases: BTreeMap::from([(default_database.to_string(), Database::default())]),
            ..Databases::default()
        }
    }
}

impl Default for Catalog {
    fn default() -> Catalog {
        let mut first = Databases::new(DEFAULT_DATABASE);
        first.options.0.insert("type".to_string(), IN_MEMORY.to_string());
        let current = DatabaseName { catalog: DEFAULT_CATALOG.to_string(), database: DEFAULT_DATABASE.to_string() };
        Catalog { catalogs: BTreeMap::from([(DEFAULT_CATALOG.to_string(), first)]), current }
    }
}

impl Catalog {
    /// The current database and its catalog.
    pub fn current(&self) -> &DatabaseName {
        &self.current
    }

    /// The catalogs' names, sorted.
    pub fn catalogs(&self) -> impl Iterator<Item = &str> {
        self.catalogs.keys().map(String::as_str)
    }

    /// A catalog by name.
    ///
    /// # Errors
    /// If there is none of this name.
    pub fn catalog(&self, name: &str) -> Result<&Databases> {
        self.catalogs.get(name).ok_or_else(|| {
            let error = Error::sql(format!("there is no catalog '{name}'"));
            match nearest(name, self.catalogs()) {
                Some(near) => error.hint(format!("did you mean '{near}'?")),
                None => error.hint("SHOW CATALOGS lists those there are"),
            }
        })
    }

    /// Adds a catalog; returns false if there was one and that is allowed.
    ///
    /// # Errors
    /// If there is one of this name and `if_not_exists` is not set, or it is of a type there is not.
    pub fn create_catalog(
        &mut self,
        name: &str,
        options: Options,
        comment: Option<String>,
        if_not_exists: bool,
    ) -> Result<bool> {
        if self.catalogs.contains_key(name) {
            return exists("catalog", name, if_not_exists);
        }
        match options.get("type") {
            Some(IN_MEMORY) => {}
            Some(other) => {
                return Err(Error::sql(format!("there is no catalog of type '{other}'"))
                    .hint(format!("the type is '{IN_MEMORY}': names live as long as the session")));
            }
            None => {
                return Err(Error::sql("a catalog needs the option 'type'").hint(format!("'type' = '{IN_MEMORY}'")));
            }
        }
        let known = ["type", "default-database"];
        if let Some(unknown) = options.0.keys().find(|key| !known.contains(&key.as_str())) {
            return Err(Error::sql(format!("a catalog has no option '{unknown}'"))
                .hint("its options are: type, default-database"));
        }
        let mut databases = Databases::new(options.get("default-database").unwrap_or("default"));
        databases.options = options;
        databases.comment = comment;
        self.catalogs.insert(name.to_string(), databases);
        Ok(true)
    }

    /// Removes a catalog with all in it.
    ///
    /// # Errors
    /// If it is missing (unless `if_exists`) or current.
    pub fn drop_catalog(&mut self, name: &str, if_exists: bool) -> Result<bool> {
        if !self.catalogs.contains_key(name) {
            return if if_exists { Ok(false) } else { self.catalog(name).map(|_| false) };
        }
        if name == self.current.catalog {
            return Err(Error::sql(format!("catalog '{name}' is in use")).hint("USE CATALOG another one first"));
        }
        self.catalogs.remove(name);
        Ok(true)
    }

    /// Makes a catalog current, and in it its default database.
    ///
    /// # Errors
    /// If there is none of this name.
    pub fn use_catalog(&mut self, name: &str) -> Result<()> {
        let database = self.catalog(name)?.default_database.clone();
        self.current = DatabaseName { catalog: name.to_string(), database };
        Ok(())
    }

    /// The names of a catalog's databases, sorted.
    ///
    /// # Errors
    /// If there is no such catalog.
    pub fn databases(&self, catalog: &str) -> Result<impl Iterator<Item = &str>> {
        Ok(self.catalog(catalog)?.databases.keys().map(String::as_str))
    }

    /// Makes a database current.
    ///
    /// # Errors
    /// If there is none of this name.
    pub fn use_database(&mut self, name: DatabaseName) -> Result<()> {
        self.database(&name)?;
        self.current = name;
        Ok(())
    }

    /// Adds an empty database; returns false if there was one and that is allowed.
    ///
    /// # Errors
    /// If there is one of this name and `if_not_exists` is not set.
    pub fn create_database(
        &mut self,
        name: &DatabaseName,
        options: BTreeMap<String, String>,
        comment: Option<String>,
        if_not_exists: bool,
    ) -> Result<bool> {
        let databases = self.databases_mut(&name.catalog)?;
        if databases.databases.contains_key(&name.database) {
            return exists("database", &name.database, if_not_exists);
        }
        databases.databases.insert(name.database.clone(), Database::new(comment, options));
        Ok(true)
    }

    /// Removes a database with all in it.
    ///
    /// # Errors
    /// If it is missing (unless `if_exists`), current, or not empty and `cascade` is not set.
    pub fn drop_database(&mut self, name: &DatabaseName, if_exists: bool, cascade: bool) -> Result<bool> {
        let database = match self.database(name) {
            Err(_) if if_exists => return Ok(false),
            found => found?,
        };
        let shown = &name.database;
        if *name == self.current {
            return Err(Error::sql(format!("database '{shown}' is in use")).hint("USE another database first"));
        }
        if !cascade && !database.is_empty() {
            return Err(
                Error::sql(format!("database '{shown}' is not empty")).hint("add CASCADE to drop what is in it")
            );
        }
        self.databases_mut(&name.catalog)?.databases.remove(&name.database);
        Ok(true)
    }

    /// Sets options of a database.
    ///
    /// # Errors
    /// If there is none of this name.
    pub fn alter_database(&mut self, name: &DatabaseName, options: BTreeMap<String, String>) -> Result<()> {
        self.database_mut(name)?.options.extend(options);
        Ok(())
    }

    /// The comment and options of a database.
    ///
    /// # Errors
    /// If there is none of this name.
    pub fn database_facts(&self, name: &DatabaseName) -> Result<(Option<&str>, &BTreeMap<String, String>)> {
        let database = self.database(name)?;
        Ok((database.comment.as_deref(), &database.options))
    }

    /// Completes the name of a database, of one or two parts.
    ///
    /// # Errors
    /// If it has more parts.
    pub fn qualify_database(&self, parts: &[&str]) -> Result<DatabaseName> {
        let name = |catalog: &str, database: &str| DatabaseName { catalog: catalog.into(), database: database.into() };
        match parts {
            [database] => Ok(name(&self.current.catalog, database)),
            [catalog, database] => Ok(name(catalog, database)),
            _ => Err(Error::sql(format!("'{}' has too many parts", parts.join(".")))
                .hint("a database is named database or catalog.database")),
        }
    }

    /// Completes a name of one to three parts.
    ///
    /// # Errors
    /// If it has more parts.
    pub fn qualify(&self, parts: &[&str]) -> Result<QualifiedName> {
        self.qualify_in(&self.current, parts)
    }

    /// Completes a name as if `home` were the current database.
    ///
    /// # Errors
    /// If it has more than three parts.
    pub fn qualify_in(&self, home: &DatabaseName, parts: &[&str]) -> Result<QualifiedName> {
        let name = |catalog: &str, database: &str, object: &str| QualifiedName {
            database: DatabaseName { catalog: catalog.into(), database: database.into() },
            object: object.into(),
        };
        match parts {
            [object] => Ok(name(&home.catalog, &home.database, object)),
            [database, object] => Ok(name(&home.catalog, database, object)),
            [catalog, database, object] => Ok(name(catalog, database, object)),
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
        self.database_mut(&name.database)?.create(&name.object, relation, if_not_exists, or_replace)
    }

    /// Removes a table or view. Returns false if there was none and that is allowed.
    ///
    /// # Errors
    /// If there is none and `if_exists` is not set, or it is the other kind of thing.
    pub fn drop(&mut self, name: &QualifiedName, view: bool, temporary: bool, if_exists: bool) -> Result<bool> {
        let noun = if view { "view" } else { "table" };
        if let Ok(database) = self.database_mut(&name.database)
            && database.drop(&name.object, noun, temporary)?
        {
            return Ok(true);
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

    /// Puts another declaration in the place of the one the name stands for.
    ///
    /// # Errors
    /// If the database is missing.
    pub fn replace(&mut self, name: &QualifiedName, relation: Relation) -> Result<()> {
        self.database_mut(&name.database)?.replace(&name.object, relation);
        Ok(())
    }

    /// Gives a table or view another name in its database; `renamed` is its declaration under that name.
    ///
    /// # Errors
    /// If the database is missing or the new name is taken.
    pub fn rename(&mut self, from: &QualifiedName, to: &str, renamed: Relation) -> Result<()> {
        self.database_mut(&from.database)?.rename(from, to, renamed)
    }

    /// Adds a function. Returns false if there was one and that is allowed.
    ///
    /// # Errors
    /// If the database is missing, or the name is taken and `if_not_exists` is not set.
    pub fn create_function(
        &mut self,
        name: &QualifiedName,
        function: FunctionDefinition,
        if_not_exists: bool,
    ) -> Result<bool> {
        let functions = &mut self.database_mut(&name.database)?.functions;
        let key = name.object.to_lowercase();
        if functions.contains_key(&key) {
            return exists("function", &name.object, if_not_exists);
        }
        functions.insert(key, function);
        Ok(true)
    }

    /// Removes a function. Returns false if there was none and that is allowed.
    ///
    /// # Errors
    /// If there is none and `if_exists` is not set.
    pub fn drop_function(&mut self, name: &QualifiedName, if_exists: bool) -> Result<bool> {
        let database = self.database_mut(&name.database);
        let removed = database.map(|database| database.functions.remove(&name.object.to_lowercase()).is_some());
        match removed {
            Ok(true) => Ok(true),
            _ if if_exists => Ok(false),
            Ok(false) => Err(Error::sql(format!("there is no function '{}' of the session's own", name.object))
                .hint("SHOW USER FUNCTIONS lists those there are; built-in ones cannot be dropped")),
            Err(error) => Err(error),
        }
    }

    /// The function of this name.
    pub fn function(&self, name: &QualifiedName) -> Option<&FunctionDefinition> {
        self.database(&name.database).ok()?.functions.get(&name.object.to_lowercase())
    }

    /// The functions of the current database.
    pub fn functions(&self) -> impl Iterator<Item = &FunctionDefinition> {
        let current = self.database(&self.current).ok();
        current.into_iter().flat_map(|database| database.functions.values())
    }

    /// Whether any function has been declared at all.
    pub fn has_functions(&self) -> bool {
        let databases = self.catalogs.values().flat_map(|catalog| catalog.databases.values());
        databases.into_iter().any(|database| !database.functions.is_empty())
    }

    /// What a name stands for.
    pub fn get(&self, name: &QualifiedName) -> Option<&Relation> {
        self.database(&name.database).ok()?.get(&name.object)
    }

    /// The tables and views of a database, by name.
    ///
    /// # Errors
    /// If there is no such database.
    pub fn relations(&self, database: &DatabaseName) -> Result<BTreeMap<&str, &Relation>> {
        Ok(self.database(database)?.relations())
    }

    /// The error for a name that stands for nothing, with the nearest one that does.
    pub fn not_found(&self, name: &QualifiedName) -> Error {
        let database = match self.database(&name.database) {
            Ok(database) => database,
            Err(error) => return error,
        };
        let error = Error::sql(format!("there is no table or view '{}'", name.object));
        match database.nearest(&name.object) {
            Some(near) => error.hint(format!("did you mean '{near}'?")),
            None if database.is_empty() => error.hint("no table has been created yet; CREATE TABLE … declares one"),
            None => error.hint("SHOW TABLES lists those there are"),
        }
    }

    pub(super) fn database(&self, name: &DatabaseName) -> Result<&Database> {
        let catalog = self.catalog(&name.catalog)?;
        catalog.databases.get(&name.database).ok_or_else(|| {
            let error = Error::sql(format!("there is no database '{}'", name.database));
            match nearest(&name.database, catalog.databases.keys().map(String::as_str)) {
                Some(near) => error.hint(format!("did you mean '{near}'?")),
                None => error.hint("SHOW DATABASES lists those there are"),
            }
        })
    }

    pub(super) fn database_mut(&mut self, name: &DatabaseName) -> Result<&mut Database> {
        self.database(name)?;
        let databases = &mut self.databases_mut(&name.catalog)?.databases;
        databases.get_mut(&name.database).ok_or_else(|| Error::bug("a database has vanished"))
    }

    fn databases_mut(&mut self, catalog: &str) -> Result<&mut Databases> {
        self.catalog(catalog)?;
        self.catalogs.get_mut(catalog).ok_or_else(|| Error::bug("a catalog has vanished"))
    }
}

pub(super) fn exists(noun: &str, name: &str, allowed: bool) -> Result<bool> {
    if allowed {
        return Ok(false);
    }
    Err(Error::sql(format!("{noun} '{name}' already exists"))
        .hint(format!("add IF NOT EXISTS, or DROP {} {name} first", noun.to_uppercase())))
}
