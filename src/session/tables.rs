//! Statements that change the catalog, and what planning asks about tables.

use std::sync::Arc;

use sqlparser::ast::{Ident, ObjectName, Query, Spanned};

use super::alter::quoted_entry;
use super::connectors::{PROGRAM_CONNECTOR, ProgramTable, SessionConnectors};
use super::handle::State;
use crate::catalog::{Column, ColumnKind, Options, Relation, TableDefinition, WatermarkDefinition};
use crate::changelog::ChangelogMode;
use crate::connectors::{self, ConnectorContext, Console};
use crate::error::{Error, Result, Span};
use crate::functions::FunctionSet;
use crate::plan::{self, SourceFacts, TableFacts, qualify};
use crate::runtime::Connectors;
use crate::sql::{CreateFunction, CreateTable, CreateView, Insert, ObjectKind};
use crate::types::SqlType;

/// The parts of a [`ConnectorContext`] that do not depend on the table.
pub(super) struct ContextParts {
    pub console: Arc<dyn Console>,
    pub batch: bool,
    pub zone: crate::types::TimeZone,
}

/// Answers the planner's questions out of the connectors.
pub(super) struct ConnectorFacts<'a> {
    pub connectors: &'a SessionConnectors,
    pub context: ContextParts,
}

impl ConnectorFacts<'_> {
    fn context(&self, table: &Arc<TableDefinition>) -> ConnectorContext {
        ConnectorContext {
            table: Arc::clone(table),
            console: Arc::clone(&self.context.console),
            batch: self.context.batch,
            zone: self.context.zone,
            // What is asked here does not depend on it.
            in_order: true,
        }
    }

    /// Options were checked when the table was declared; a hint may have changed them since.
    fn check(&self, table: &TableDefinition) -> Result<()> {
        match table.options.get("connector") {
            Some(PROGRAM_CONNECTOR) => Ok(()),
            _ => connectors::check_options(table),
        }
    }
}

impl TableFacts for ConnectorFacts<'_> {
    fn source(&self, table: &Arc<TableDefinition>) -> Result<SourceFacts> {
        self.check(table)?;
        let source = self.connectors.source(table, &self.context(table))?;
        Ok(SourceFacts { mode: source.mode(), bounded: source.bounded() })
    }

    fn sink_accepts(&self, table: &Arc<TableDefinition>) -> Result<ChangelogMode> {
        self.check(table)?;
        Ok(self.connectors.sink(table, &self.context(table))?.accepts())
    }
}

/// Declares a table; false if there was one and that is allowed. A fault in its options is given back beside: a script
/// may declare tables that it never reads, and a table `AS` a query must be written at once.
pub(super) fn create_table(
    state: &mut State,
    functions: &Arc<FunctionSet>,
    create: &CreateTable,
) -> Result<(bool, Option<Error>)> {
    let name = qualify(&state.catalog, &create.name)?;
    if create.if_not_exists && state.catalog.get(&name).is_some_and(|there| there.temporary() == create.temporary) {
        return Ok((false, None));
    }
    let definition = plan::declare_table(create, &state.catalog, functions)?;
    let place = Span::from_ast(create.name.span());
    let fault = connectors::check_options(&definition).err().map(|error| {
        let option = quoted_entry(&create.options, error.message());
        error.at(option.or(place))
    });
    if let (Some(fault), Some(_)) = (&fault, &create.query) {
        return Err(fault.clone());
    }
    let relation = Relation::Table(Arc::new(definition));
    let created = state.catalog.create(&name, relation, create.if_not_exists, create.or_replace);
    let created = created.map_err(|error| error.at(place))?;
    Ok((created, fault.filter(|_| created)))
}

/// The `INSERT` that fills a table created `AS query`. Into a table that was there before, columns go by position.
pub(super) fn insert_of(
    state: &State,
    functions: &Arc<FunctionSet>,
    create: &CreateTable,
    query: &Query,
    created: bool,
) -> Result<Insert> {
    let mut columns = Vec::new();
    if created {
        let given = plan::query_columns(query, &state.catalog, functions)?;
        columns = given.into_iter().map(|column| Ident::with_quote('`', column.name)).collect();
    }
    Ok(Insert {
        target: create.name.clone(),
        columns,
        partition: Vec::new(),
        overwrite: false,
        source: Box::new(query.clone()),
        on_conflict: None,
        hints: Vec::new(),
    })
}

pub(super) fn create_view(
    state: &mut State,
    functions: &Arc<FunctionSet>,
    create: &CreateView,
) -> Result<&'static str> {
    let name = qualify(&state.catalog, &create.name)?;
    let definition = plan::declare_view(create, &state.catalog, functions)?;
    let relation = Relation::View(Arc::new(definition));
    let created = state
        .catalog
        .create(&name, relation, create.if_not_exists, create.or_replace)
        .map_err(|error| error.at(Span::from_ast(create.name.span())))?;
    Ok(if created { "View created" } else { "View exists already" })
}

pub(super) fn create_function(
    state: &mut State,
    functions: &Arc<FunctionSet>,
    create: &CreateFunction,
) -> Result<&'static str> {
    let name = qualify(&state.catalog, &create.name)?;
    let definition = plan::declare_function(create, &state.catalog, functions)?;
    let created = state.catalog.create_function(&name, definition, create.if_not_exists);
    let created = created.map_err(|error| error.at(Span::from_ast(create.name.span())))?;
    Ok(if created { "Function created" } else { "Function exists already" })
}

pub(super) fn drop(
    state: &mut State,
    object: ObjectKind,
    name: &ObjectName,
    if_exists: bool,
    temporary: bool,
) -> Result<&'static str> {
    let place = Span::from_ast(name.span());
    match object {
        ObjectKind::Table | ObjectKind::View => {
            let view = object == ObjectKind::View;
            let qualified = qualify(&state.catalog, name)?;
            let dropped =
                state.catalog.drop(&qualified, view, temporary, if_exists).map_err(|error| error.at(place))?;
            if dropped && !view {
                state.program_tables.remove(&qualified.object);
            }
            Ok(if view { "View dropped" } else { "Table dropped" })
        }
        ObjectKind::Database | ObjectKind::Catalog => Err(Error::bug("these are dropped elsewhere")),
        ObjectKind::Function => {
            let qualified = qualify(&state.catalog, name)?;
            let dropped = state.catalog.drop_function(&qualified, if_exists).map_err(|error| error.at(place))?;
            Ok(if dropped { "Function dropped" } else { "No such function" })
        }
    }
}

/// The declaration of a program's table.
pub(super) fn program_table(name: &str, table: &ProgramTable) -> Result<TableDefinition> {
    let schema = table.schema();
    let columns = schema.fields().iter().map(|field| Column {
        name: field.name().clone(),
        sql_type: SqlType::of_field(field),
        nullable: field.is_nullable(),
        kind: ColumnKind::Physical,
        comment: None,
    });
    let known = |column: &str| {
        schema.index_of(column).map(|_| ()).map_err(|_| Error::sql(format!("table '{name}' has no column '{column}'")))
    };
    table.key().iter().try_for_each(|column| known(column))?;
    if let Some((column, _)) = table.event_time() {
        known(column)?;
    }
    Ok(TableDefinition {
        name: name.rsplit('.').next().unwrap_or(name).to_string(),
        columns: columns.collect(),
        watermark: table.event_time().map(|(column, expression)| WatermarkDefinition {
            column: column.to_string(),
            expression: expression.to_string(),
        }),
        primary_key: table.key().to_vec(),
        primary_key_name: None,
        partitioned_by: Vec::new(),
        options: Options([("connector".to_string(), PROGRAM_CONNECTOR.to_string())].into()),
        comment: None,
        temporary: true,
        span: None,
    })
}
