//! What of a catalog outlives a session: everything that was not declared `TEMPORARY`.

use super::names::{Catalog, DatabaseName};
use super::{FunctionDefinition, Relation};
use crate::error::Result;

impl Catalog {
    /// All but what is temporary, with the first database current.
    pub fn permanent(&self) -> Catalog {
        let mut kept = Catalog::default();
        kept.catalogs.clone_from(&self.catalogs);
        for database in kept.catalogs.values_mut().flat_map(|catalog| catalog.databases.values_mut()) {
            database.forget_temporary();
        }
        kept
    }

    /// Takes over the current database and what is temporary from an older state of the same session, where the
    /// databases are still there.
    pub fn take_temporary(&mut self, from: &Catalog) {
        for (name, old) in &from.catalogs {
            let Some(catalog) = self.catalogs.get_mut(name) else { continue };
            for (name, old) in &old.databases {
                if let Some(database) = catalog.databases.get_mut(name) {
                    database.take_temporary(old);
                }
            }
        }
        // A database that is gone cannot be current.
        let _ = self.use_database(from.current().clone());
    }

    /// The functions of a database.
    ///
    /// # Errors
    /// If there is no such database.
    pub fn functions_of(&self, database: &DatabaseName) -> Result<impl Iterator<Item = &FunctionDefinition>> {
        Ok(self.database(database)?.functions.values())
    }

    /// Names of all databases.
    pub fn all_databases(&self) -> impl Iterator<Item = DatabaseName> {
        self.catalogs.iter().flat_map(|(catalog, databases)| {
            databases
                .databases
                .keys()
                .map(|database| DatabaseName { catalog: catalog.clone(), database: database.clone() })
        })
    }

    /// Whether a database comes with its catalog, without being created.
    pub fn comes_with_catalog(&self, name: &DatabaseName) -> bool {
        self.catalogs.get(&name.catalog).is_some_and(|catalog| catalog.default_database == name.database)
    }

    /// Adds a view or table without asking whether what it stands on is there.
    ///
    /// # Errors
    /// If the database is missing, or the name is taken.
    pub fn restore(&mut self, database: &DatabaseName, object: &str, relation: Relation) -> Result<()> {
        self.database_mut(database)?.create(object, relation, false, false).map(drop)
    }
}
