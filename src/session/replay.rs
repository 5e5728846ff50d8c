//! Reading a kept catalog: its statements are run again, but for the queries of views, which are taken as they are: what
//! a view stands on may be gone, and then the view says so when it is used.

use std::sync::Arc;

use super::handle::{Session, on_a_deep_stack};
use crate::catalog::{Catalog, Relation, ViewDefinition};
use crate::error::{Error, Result};
use crate::plan::qualify;
use crate::sql::{self, CreateView, Statement};

impl Session {
    /// The catalog that the statements of `text` declare.
    ///
    /// # Errors
    /// If one is not a declaration, or fails.
    pub(super) fn replay(&self, text: &str) -> Result<Catalog> {
        on_a_deep_stack(|| self.replay_all(text))?
    }

    fn replay_all(&self, text: &str) -> Result<Catalog> {
        // Whatever the options of the session were in which something was declared.
        self.set("table.sql.extensions", "true")?;
        for (statement, line) in sql::split_script(text)? {
            let done = sql::parse_statement(&statement).and_then(|parsed| self.replay_one(parsed.statement));
            done.map_err(|error| at(line, &error))?;
        }
        Ok(self.state().catalog.permanent())
    }

    fn replay_one(&self, statement: Statement) -> Result<()> {
        match statement {
            Statement::CreateView(create) => self.restore_view(&create),
            Statement::CreateTable(ref create) if create.query.is_some() => {
                Err(Error::sql("a table of the catalog has no query"))
            }
            Statement::CreateTable(_)
            | Statement::CreateFunction(_)
            | Statement::CreateDatabase { .. }
            | Statement::AlterDatabase { .. }
            | Statement::CreateCatalog { .. }
            | Statement::Use { .. } => self.run(statement).map(drop),
            _ => Err(Error::sql("the statement declares nothing")),
        }
    }

    fn restore_view(&self, create: &CreateView) -> Result<()> {
        let mut state = self.state();
        let name = qualify(&state.catalog, &create.name)?;
        let view = ViewDefinition {
            name: name.object.clone(),
            columns: create.columns.iter().map(|column| column.value.clone()).collect(),
            query: create.query_text.clone(),
            home: state.catalog.current().clone(),
            comment: create.comment.clone(),
            temporary: false,
        };
        state.catalog.restore(&name.database, &name.object, Relation::View(Arc::new(view)))
    }
}

fn at(line: u64, error: &Error) -> Error {
    // The heading is the file's first line.
    let failed = Error::state(format!("the statement on line {} fails: {}", line + 1, error.message()));
    failed.hint("it was written by another version, or edited: correct it and run the file with a new --catalog file")
}
