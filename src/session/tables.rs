//! Statements that change the catalog, and what planning asks about tables.

use std::sync::Arc;

use sqlparser::ast::{ObjectName, Spanned};

use super::connectors::{PROGRAM_CONNECTOR, ProgramTable, SessionConnectors};
use super::session::State;
use crate::catalog::{
    Column, ColumnKind, DEFAULT_CATALOG, Options, QualifiedName, Relation, TableDefinition, WatermarkDefinition,
};
use crate::changelog::ChangelogMode;
use crate::connectors::{self, ConnectorContext, Console};
use crate::error::{Error, Result, Span};
use crate::functions::FunctionSet;
use crate::plan::{self, SourceFacts, TableFacts};
use crate::runtime::Connectors;
use crate::sql::{CreateTable, CreateView, ObjectKind, OptionEntry};
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
        }
    }
}

impl TableFacts for ConnectorFacts<'_> {
    fn source(&self, table: &Arc<TableDefinition>) -> Result<SourceFacts> {
        let source = self.connectors.source(table, &self.context(table))?;
        Ok(SourceFacts { mode: source.mode(), bounded: source.bounded() })
    }

    fn sink_accepts(&self, table: &Arc<TableDefinition>) -> Result<ChangelogMode> {
        Ok(self.connectors.sink(table, &self.context(table))?.accepts())
    }
}

/// A name of one to three parts, completed.
pub(super) fn qualify(state: &State, name: &ObjectName) -> Result<QualifiedName> {
    let parts: Vec<String> = name.0.iter().map(|part| unquoted(&part.to_string())).collect();
    let parts: Vec<&str> = parts.iter().map(String::as_str).collect();
    state.catalog.qualify(&parts).map_err(|error| error.at(Span::from_ast(name.span())))
}

/// The last part of a name, without quotes.
pub(super) fn last_name(name: &ObjectName) -> String {
    name.0.last().map(|part| unquoted(&part.to_string())).unwrap_or_default()
}

fn unquoted(part: &str) -> String {
    match part.strip_prefix('`').and_then(|rest| rest.strip_suffix('`')) {
        Some(inner) => inner.replace("``", "`"),
        None => part.to_string(),
    }
}

pub(super) fn create_table(
    state: &mut State,
    functions: &Arc<FunctionSet>,
    create: &CreateTable,
) -> Result<&'static str> {
    let name = qualify(state, &create.name)?;
    let mut definition = plan::declare_table(create, &state.catalog, functions)?;
    if let Some(like) = &create.like {
        return Err(Error::sql("CREATE TABLE … LIKE is not supported yet").at(Span::from_ast(like.source.span())));
    }
    definition.name = name.object.clone();
    connectors::check_options(&definition).map_err(|error| {
        let place = option_span(create, error.message());
        error.at(place)
    })?;
    let relation = Relation::Table(Arc::new(definition));
    let created = state
        .catalog
        .create(&name, relation, create.if_not_exists, create.or_replace)
        .map_err(|error| error.at(Span::from_ast(create.name.span())))?;
    Ok(if created { "Table created" } else { "Table exists already" })
}

/// The place of the option that an error quotes, or else of the table's name.
fn option_span(create: &CreateTable, message: &str) -> Option<Span> {
    let quoted: Vec<&str> = message.split('\'').skip(1).step_by(2).collect();
    let names = |entry: &&OptionEntry| quoted.contains(&entry.key.as_str());
    let holds = |entry: &&OptionEntry| quoted.contains(&entry.value.as_str());
    let entry = create.options.iter().find(names).or_else(|| create.options.iter().find(holds));
    entry.and_then(|entry| entry.span).or_else(|| Span::from_ast(create.name.span()))
}

pub(super) fn create_view(
    state: &mut State,
    functions: &Arc<FunctionSet>,
    create: &CreateView,
) -> Result<&'static str> {
    let name = qualify(state, &create.name)?;
    let definition = plan::declare_view(create, &state.catalog, functions)?;
    let relation = Relation::View(Arc::new(definition));
    let created = state
        .catalog
        .create(&name, relation, create.if_not_exists, create.or_replace)
        .map_err(|error| error.at(Span::from_ast(create.name.span())))?;
    Ok(if created { "View created" } else { "View exists already" })
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
            let qualified = qualify(state, name)?;
            let dropped =
                state.catalog.drop(&qualified, view, temporary, if_exists).map_err(|error| error.at(place))?;
            if dropped && !view {
                state.program_tables.remove(&qualified.object);
            }
            Ok(if view { "View dropped" } else { "Table dropped" })
        }
        ObjectKind::Database => Err(Error::bug("databases are dropped elsewhere")),
        ObjectKind::Function => Err(Error::sql("DROP FUNCTION is not supported yet").at(place)),
        ObjectKind::Catalog => Err(Error::sql("DROP CATALOG is not supported yet").at(place)),
    }
}

pub(super) fn use_catalog(name: &ObjectName) -> Result<()> {
    if last_name(name) == DEFAULT_CATALOG {
        return Ok(());
    }
    Err(Error::sql(format!("there is no catalog '{}'", last_name(name)))
        .at(Span::from_ast(name.span()))
        .hint(format!("the catalog is '{DEFAULT_CATALOG}'")))
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
        partitioned_by: Vec::new(),
        options: Options([("connector".to_string(), PROGRAM_CONNECTOR.to_string())].into()),
        comment: None,
        temporary: true,
        span: None,
    })
}
