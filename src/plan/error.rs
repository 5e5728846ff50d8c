//! Errors of the binding library, reworded for the person who wrote the SQL.

use datafusion_common::{Column, DataFusionError, SchemaError};
use datafusion_expr::Expr;

use crate::error::{Error, ErrorKind, Span, nearest};

/// Carries one of our errors through the binding library and out again.
pub(super) fn wrap(error: Error) -> DataFusionError {
    DataFusionError::External(Box::new(error))
}

/// Turns an error of the binding library into one of ours, with the place in the text where it is known.
pub(super) fn unwrap(error: DataFusionError) -> Error {
    let span = error.diagnostic().and_then(|diagnostic| diagnostic.span).map(span_of);
    match root(&error) {
        DataFusionError::External(source) => match source.downcast_ref::<Error>() {
            Some(own) => own.clone().at(span),
            None => Error::bug(source.to_string()).at(span),
        },
        DataFusionError::SchemaError(schema, _) => schema_error(schema).at(span),
        DataFusionError::NotImplemented(message) => {
            Error::sql(format!("not supported yet: {}", first_line(message))).at(span)
        }
        DataFusionError::Plan(message) => plan_error(message, &error).at(span),
        DataFusionError::ArrowError(arrow, _) => Error::sql(arrow.to_string()).at(span),
        DataFusionError::Execution(message) if message.contains("coercion failed") => {
            plan_error(message, &error).at(span)
        }
        DataFusionError::Execution(message) => Error::new(ErrorKind::Data, first_line(message)).at(span),
        other => Error::sql(first_line(&other.strip_backtrace())).at(span),
    }
}

/// The column that there is not, if that is the error.
pub(super) fn missing_column(error: &DataFusionError) -> Option<Column> {
    match root(error) {
        DataFusionError::SchemaError(schema, _) => match schema.as_ref() {
            SchemaError::FieldNotFound { field, .. } => Some(field.as_ref().clone()),
            _ => None,
        },
        _ => None,
    }
}

/// The place of the first column in an expression: where to point when the expression as a whole is wrong.
pub(super) fn span_in(expression: &Expr) -> Option<Span> {
    let mut found = None;
    let looked = datafusion_common::tree_node::TreeNode::apply(expression, |part| {
        if let Expr::Column(column) = part
            && let Some(span) = column.spans.first()
        {
            found = Some(span_of(span));
            return Ok(datafusion_common::tree_node::TreeNodeRecursion::Stop);
        }
        Ok(datafusion_common::tree_node::TreeNodeRecursion::Continue)
    });
    looked.ok().and(found)
}

fn span_of(span: datafusion_common::Span) -> Span {
    Span { line: span.start.line, column: span.start.column, end_line: span.end.line, end_column: span.end.column }
}

/// The innermost error below contexts and diagnostics.
fn root(error: &DataFusionError) -> &DataFusionError {
    match error {
        DataFusionError::Context(_, inner) | DataFusionError::Diagnostic(_, inner) => root(inner),
        DataFusionError::Shared(inner) => root(inner),
        DataFusionError::Collection(errors) => errors.first().map_or(error, root),
        DataFusionError::External(source) => source.downcast_ref::<DataFusionError>().map_or(error, root),
        other => other,
    }
}

fn schema_error(error: &SchemaError) -> Error {
    match error {
        SchemaError::FieldNotFound { field, valid_fields } => {
            let name = field.flat_name();
            let error = Error::sql(format!("there is no column '{name}'"));
            match nearest(&field.name, valid_fields.iter().map(|column| column.name.as_str())) {
                Some(near) => error.hint(format!("did you mean '{near}'?")),
                None if valid_fields.is_empty() => error,
                None => {
                    let names: Vec<&str> = valid_fields.iter().take(12).map(|column| column.name.as_str()).collect();
                    error.hint(format!("the columns are: {}", names.join(", ")))
                }
            }
        }
        SchemaError::AmbiguousReference { field } => {
            Error::sql(format!("column '{}' is ambiguous", field.name)).hint("put the table's name before it")
        }
        SchemaError::DuplicateQualifiedField { name, .. } | SchemaError::DuplicateUnqualifiedField { name } => {
            Error::sql(format!("column '{name}' occurs twice")).hint("give one of them another name with AS")
        }
    }
}

fn plan_error(message: &str, whole: &DataFusionError) -> Error {
    if let Some(name) = between(message, "Invalid function '", "'") {
        let error = Error::sql(format!("there is no function '{name}'"));
        return match between(message, "Did you mean '", "'") {
            Some(near) => error.hint(format!("did you mean '{near}'?")),
            None => error.hint("SHOW FUNCTIONS lists those there are"),
        };
    }
    if let Some(own) = between(message, "coercion failed with: External error: ", ". No function matches") {
        return Error::sql(own);
    }
    if message.contains("must be in GROUP BY") || message.contains("must appear in the GROUP BY") {
        let column = whole.diagnostic().map(|diagnostic| diagnostic.message.clone());
        return Error::sql(column.unwrap_or_else(|| first_line(message)))
            .hint("add it to GROUP BY, or aggregate it, for example with MAX or LAST_VALUE");
    }
    Error::sql(first_line(message))
}

fn between<'a>(text: &'a str, from: &str, to: &str) -> Option<&'a str> {
    let rest = &text[text.find(from)? + from.len()..];
    rest.find(to).map(|end| &rest[..end])
}

/// The first line, without the library's own prefixes.
fn first_line(message: &str) -> String {
    let line = message.lines().next().unwrap_or_default();
    line.trim_start_matches("Error during planning: ").trim().to_string()
}
