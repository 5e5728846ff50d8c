//! Names as written in a statement, completed.

use sqlparser::ast::{ObjectName, ObjectNamePart, Spanned};

use crate::catalog::{Catalog, DatabaseName, QualifiedName};
use crate::error::{Result, Span};

/// The parts of a name, without quotes.
pub fn name_parts(name: &ObjectName) -> Vec<&str> {
    let parts = name.0.iter().map(|part| match part {
        ObjectNamePart::Identifier(identifier) => identifier.value.as_str(),
        ObjectNamePart::Function(function) => function.name.value.as_str(),
    });
    parts.collect()
}

/// The full name of a table or view.
///
/// # Errors
/// If it has too many parts.
pub fn qualify(catalog: &Catalog, name: &ObjectName) -> Result<QualifiedName> {
    catalog.qualify(&name_parts(name)).map_err(|error| error.at(Span::from_ast(name.span())))
}

/// The full name of a database.
///
/// # Errors
/// If it has too many parts.
pub fn qualify_database(catalog: &Catalog, name: &ObjectName) -> Result<DatabaseName> {
    catalog.qualify_database(&name_parts(name)).map_err(|error| error.at(Span::from_ast(name.span())))
}
