//! A database: tables and views by name, permanent ones and the temporary ones that hide them.

use std::collections::BTreeMap;

use super::FunctionDefinition;
use super::names::{QualifiedName, Relation, exists};
use crate::error::{Error, Result, nearest};

/// The tables and views of one database. A temporary one hides a permanent one of the same name, as in Flink.
#[derive(Debug, Clone, Default)]
pub(super) struct Database {
    permanent: BTreeMap<String, Relation>,
    temporary: BTreeMap<String, Relation>,
    /// Functions declared in SQL, by their names in lower case.
    pub functions: BTreeMap<String, FunctionDefinition>,
    /// `COMMENT`.
    pub comment: Option<String>,
    /// `WITH`: kept and shown; nothing in memory depends on them.
    pub options: BTreeMap<String, String>,
}

impl Database {
    pub(super) fn new(comment: Option<String>, options: BTreeMap<String, String>) -> Database {
        Database { comment, options, ..Database::default() }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.permanent.is_empty() && self.temporary.is_empty() && self.functions.is_empty()
    }

    /// Leaves only what outlives a session.
    pub(super) fn forget_temporary(&mut self) {
        self.temporary.clear();
        self.functions.retain(|_, function| !function.temporary);
    }

    /// Takes over what was temporary in `from`.
    pub(super) fn take_temporary(&mut self, from: &Database) {
        self.temporary.clone_from(&from.temporary);
        let own = from.functions.iter().filter(|(_, function)| function.temporary);
        self.functions.extend(own.map(|(name, function)| (name.clone(), function.clone())));
    }

    pub(super) fn get(&self, object: &str) -> Option<&Relation> {
        self.temporary.get(object).or_else(|| self.permanent.get(object))
    }

    /// All by name; where one hides another, the one that is seen.
    pub(super) fn relations(&self) -> BTreeMap<&str, &Relation> {
        let all = self.permanent.iter().chain(&self.temporary);
        all.map(|(name, relation)| (name.as_str(), relation)).collect()
    }

    pub(super) fn nearest(&self, object: &str) -> Option<&str> {
        nearest(object, self.relations().into_keys())
    }

    /// Adds a relation; false if there was one and that is allowed.
    pub(super) fn create(
        &mut self,
        object: &str,
        relation: Relation,
        if_not_exists: bool,
        or_replace: bool,
    ) -> Result<bool> {
        let space = self.space(relation.temporary());
        if let Some(present) = space.get(object)
            && !or_replace
        {
            return exists(present.noun(), object, if_not_exists);
        }
        space.insert(object.to_string(), relation);
        Ok(true)
    }

    /// Removes a relation of this kind; false if there is none.
    ///
    /// # Errors
    /// If the only one is temporary and `temporary` is not set.
    pub(super) fn drop(&mut self, object: &str, noun: &'static str, temporary: bool) -> Result<bool> {
        let wanted = |relation: &Relation| relation.noun() == noun;
        if self.space(temporary).get(object).is_some_and(wanted) {
            self.space(temporary).remove(object);
            return Ok(true);
        }
        if !temporary && self.temporary.get(object).is_some_and(wanted) {
            return Err(Error::sql(format!("'{object}' is a temporary {noun}"))
                .hint(format!("DROP TEMPORARY {} {object}", noun.to_uppercase())));
        }
        Ok(false)
    }

    /// Puts another declaration in the place of the one that is seen.
    pub(super) fn replace(&mut self, object: &str, relation: Relation) {
        let temporary = self.temporary.contains_key(object);
        self.space(temporary).insert(object.to_string(), relation);
    }

    /// Gives the relation that is seen another name.
    ///
    /// # Errors
    /// If the new name is taken in the same space.
    pub(super) fn rename(&mut self, from: &QualifiedName, to: &str, renamed: Relation) -> Result<()> {
        let space = self.space(self.temporary.contains_key(&from.object));
        if let Some(present) = space.get(to) {
            return Err(Error::sql(format!("{} '{to}' already exists", present.noun())));
        }
        space.remove(&from.object);
        space.insert(to.to_string(), renamed);
        Ok(())
    }

    fn space(&mut self, temporary: bool) -> &mut BTreeMap<String, Relation> {
        if temporary { &mut self.temporary } else { &mut self.permanent }
    }
}
