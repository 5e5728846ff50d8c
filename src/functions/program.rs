//! Functions of the program's own: scalar and aggregate functions, and table functions.

use std::collections::HashSet;
use std::sync::Arc;

use datafusion_expr::{AggregateUDF, ScalarUDF};

use super::{FunctionContext, aggregate, entries, scalar_functions, window_functions};
use crate::error::{Error, Result};

/// The functions that a program has registered.
#[derive(Debug, Clone, Default)]
pub struct ProgramFunctions {
    pub(super) scalar: Vec<Arc<ScalarUDF>>,
    pub(super) aggregate: Vec<Arc<AggregateUDF>>,
    /// Functions whose arrays stand for rows.
    pub(super) table: Vec<Arc<ScalarUDF>>,
    /// Their names, lower case.
    names: HashSet<String>,
}

impl ProgramFunctions {
    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.names.is_empty()
    }

    /// Adds a scalar function.
    ///
    /// # Errors
    /// If its name is taken.
    pub fn add_scalar(&mut self, function: ScalarUDF) -> Result<()> {
        self.take_names(function.name(), function.aliases())?;
        self.scalar.push(Arc::new(function));
        Ok(())
    }

    /// Adds an aggregate function.
    ///
    /// # Errors
    /// If its name is taken.
    pub fn add_aggregate(&mut self, function: AggregateUDF) -> Result<()> {
        self.take_names(function.name(), function.aliases())?;
        self.aggregate.push(Arc::new(function));
        Ok(())
    }

    /// Adds a table function: one that gives an array, whose elements are the rows.
    ///
    /// # Errors
    /// If its name is taken.
    pub fn add_table(&mut self, function: ScalarUDF) -> Result<()> {
        self.take_names(function.name(), function.aliases())?;
        self.table.push(Arc::new(function));
        Ok(())
    }

    fn take_names(&mut self, name: &str, aliases: &[String]) -> Result<()> {
        for name in std::iter::once(name).chain(aliases.iter().map(String::as_str)) {
            let lower = name.to_lowercase();
            if is_built_in(&lower) {
                return Err(Error::sql(format!("function '{name}' is built in")).hint("give yours another name"));
            }
            if !self.names.insert(lower) {
                return Err(Error::sql(format!("function '{name}' is registered already")));
            }
        }
        Ok(())
    }
}

/// Whether a name, in lower case, is one of ours.
fn is_built_in(name: &str) -> bool {
    entries().iter().any(|entry| entry.names.contains(&name))
        || scalar_functions(&FunctionContext::utc()).iter().any(|function| function.name() == name)
        || aggregate::names().any(|known| known == name)
        || window_functions().iter().any(|function| function.name() == name)
}
