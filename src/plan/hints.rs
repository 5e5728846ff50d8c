//! `t /*+ OPTIONS('k' = 'v') */`: the table as if it had been declared with these options.
//!
//! The binding library looks tables up by name alone, so a hinted table gets a name of its own, which [`Hinted`]
//! remembers, and its old name as alias: `FROM t /*+ … */` becomes ``FROM `t with hint 0` AS t``.

use std::ops::ControlFlow;
use std::sync::Arc;

use sqlparser::ast::{Ident, ObjectName, Query, Spanned, TableAlias, TableFactor, VisitMut, VisitorMut};

use super::name::name_parts;
use crate::catalog::TableDefinition;
use crate::error::{Error, Result, Span};
use crate::sql::table_hints;

/// The hinted tables of a statement: the name each has been given, its real one, and its options.
#[derive(Debug, Default)]
pub(super) struct Hinted(Vec<HintedTable>);

#[derive(Debug, Clone)]
pub(super) struct HintedTable {
    given: String,
    /// As it was written.
    pub name: Vec<String>,
    pub options: Vec<(String, String)>,
}

impl Hinted {
    /// Gives every hinted table of the query a name of its own.
    ///
    /// # Errors
    /// If a hint cannot be read, or a sample is asked for.
    pub(super) fn take(&mut self, query: &mut Query) -> Result<()> {
        match VisitMut::visit(query, &mut Renamer { hinted: self }) {
            ControlFlow::Continue(()) => Ok(()),
            ControlFlow::Break(error) => Err(error),
        }
    }

    /// The hinted table that has been given this name.
    pub(super) fn get(&self, given: &str) -> Option<&HintedTable> {
        self.0.iter().find(|table| table.given == given)
    }
}

/// The definition with other options.
pub(super) fn with_options(table: &TableDefinition, options: &[(String, String)]) -> Arc<TableDefinition> {
    let mut hinted = table.clone();
    hinted.options.0.extend(options.iter().cloned());
    Arc::new(hinted)
}

struct Renamer<'a> {
    hinted: &'a mut Hinted,
}

impl VisitorMut for Renamer<'_> {
    type Break = Error;

    fn pre_visit_table_factor(&mut self, factor: &mut TableFactor) -> ControlFlow<Error> {
        let TableFactor::Table { name, alias, with_hints, sample, .. } = factor else {
            return ControlFlow::Continue(());
        };
        if sample.is_some() {
            let error = Error::sql("TABLESAMPLE is not supported").at(Span::from_ast(name.span()));
            return ControlFlow::Break(error.hint("filter with WHERE, for example on RAND()"));
        }
        if with_hints.is_empty() {
            return ControlFlow::Continue(());
        }
        let options = match table_hints(with_hints) {
            Ok(options) => options,
            Err(error) => return ControlFlow::Break(error),
        };
        with_hints.clear();
        let parts: Vec<String> = name_parts(name).into_iter().map(str::to_string).collect();
        let last = parts.last().cloned().unwrap_or_default();
        let given = format!("{last} with hint {}", self.hinted.0.len());
        let span = name.span();
        alias.get_or_insert_with(|| TableAlias {
            explicit: true,
            name: Ident::with_quote('`', last),
            columns: Vec::new(),
            at: None,
        });
        *name = ObjectName::from(vec![Ident::with_quote_and_span('`', span, given.clone())]);
        self.hinted.0.push(HintedTable { given, name: parts, options });
        ControlFlow::Continue(())
    }
}
