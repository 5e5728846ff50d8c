//! Functions declared in SQL: a call is replaced by the function's body before the query is bound.
//!
//! After `CREATE FUNCTION net(price DECIMAL(10, 2)) AS price / 1.19` the query `SELECT net(p) FROM t` is bound as
//! `SELECT (CAST(p AS DECIMAL(10, 2)) / 1.19) FROM t`. A body is kept with the calls in it replaced, so that no function
//! can come to call itself.

use std::collections::HashSet;
use std::ops::ControlFlow;
use std::sync::Arc;

use arrow::datatypes::Schema;
use datafusion_common::DFSchema;
use datafusion_expr::ExprSchemable;
use sqlparser::ast::{Expr, Function, FunctionArg, FunctionArgExpr, FunctionArguments, Spanned, VisitMut, VisitorMut};

use super::error::unwrap;
use super::name::name_parts;
use super::provider::Names;
use crate::catalog::{Catalog, DatabaseName, FunctionDefinition};
use crate::error::{Error, Result, Span};
use crate::functions::FunctionSet;
use crate::sql::{CreateFunction, parse_expression};
use crate::types::SqlType;

/// The definition of a function; its body is bound once, so that a mistake shows now.
///
/// # Errors
/// If the name is a built-in function's, a parameter is named twice, or the body does not bind.
pub fn declare_function(
    create: &CreateFunction,
    catalog: &Catalog,
    functions: &Arc<FunctionSet>,
) -> Result<FunctionDefinition> {
    let span = Span::from_ast(create.name.span());
    let name = name_parts(&create.name).last().map(ToString::to_string).unwrap_or_default();
    if functions.scalar(&name).is_some() || functions.aggregate(&name).is_some() {
        return Err(Error::sql(format!("function '{name}' is built in")).at(span).hint("give yours another name"));
    }
    let mut seen = HashSet::new();
    for (parameter, _) in &create.parameters {
        if !seen.insert(&parameter.value) {
            let span = Span::from_ast(parameter.span);
            return Err(Error::sql(format!("parameter '{}' is named twice", parameter.value)).at(span));
        }
    }
    let mut body = create.body.clone();
    inline(&mut body, catalog, catalog.current())?;
    let fields = create.parameters.iter().map(|(name, sql_type)| sql_type.to_field(&name.value, true));
    let schema = DFSchema::try_from(Schema::new(fields.collect::<Vec<_>>())).map_err(unwrap)?;
    let bound = Names::new(catalog, Arc::clone(functions)).bind_parsed(body.clone(), &schema);
    let bound = bound.map_err(|error| error.context(format!("in function '{name}'")).at(span))?;
    let (_, field) = bound.to_field(&schema).map_err(unwrap)?;
    let returns = create.returns.clone();
    if let Some(returns) = &returns {
        // That the cast exists shows now, not at the first call.
        functions.cast(&field, returns, false).map_err(|error| error.at(span))?;
    }
    let parameters = create.parameters.iter().map(|(name, sql_type)| (name.value.clone(), sql_type.clone()));
    Ok(FunctionDefinition {
        name,
        parameters: parameters.collect(),
        returns,
        body: body.to_string(),
        temporary: create.temporary,
    })
}

/// Replaces the calls in a query, an expression, or whatever else has expressions.
///
/// # Errors
/// If a call does not fit its function.
pub(super) fn inline(tree: &mut impl VisitMut, catalog: &Catalog, home: &DatabaseName) -> Result<()> {
    if !catalog.has_functions() {
        return Ok(());
    }
    match tree.visit(&mut Inliner { catalog, home }) {
        ControlFlow::Continue(()) => Ok(()),
        ControlFlow::Break(error) => Err(error),
    }
}

struct Inliner<'a> {
    catalog: &'a Catalog,
    home: &'a DatabaseName,
}

impl VisitorMut for Inliner<'_> {
    type Break = Error;

    fn post_visit_expr(&mut self, expression: &mut Expr) -> ControlFlow<Error> {
        let Expr::Function(call) = expression else { return ControlFlow::Continue(()) };
        let parts = name_parts(&call.name);
        let definition = self.catalog.qualify_in(self.home, &parts).ok().and_then(|name| self.catalog.function(&name));
        let Some(definition) = definition else { return ControlFlow::Continue(()) };
        match body_of(definition, call) {
            Ok(body) => {
                *expression = body;
                ControlFlow::Continue(())
            }
            Err(error) => ControlFlow::Break(error.at(Span::from_ast(call.name.span()))),
        }
    }
}

/// The body with the call's arguments in it.
fn body_of(definition: &FunctionDefinition, call: &Function) -> Result<Expr> {
    let mut arguments = Vec::with_capacity(definition.parameters.len());
    if let FunctionArguments::List(list) = &call.args {
        for argument in &list.args {
            match argument {
                FunctionArg::Unnamed(FunctionArgExpr::Expr(value)) => arguments.push(value.clone()),
                other => return Err(Error::sql(format!("{} does not take '{other}'", definition.name))),
            }
        }
    }
    if call.over.is_some() || call.filter.is_some() {
        let message = format!("{} is an expression, which takes neither OVER nor FILTER", definition.name);
        return Err(Error::sql(message));
    }
    if arguments.len() != definition.parameters.len() {
        let parameters: Vec<String> =
            definition.parameters.iter().map(|(name, sql_type)| format!("{name} {sql_type}")).collect();
        return Err(Error::sql(format!(
            "{} takes {} arguments, and got {}",
            definition.name,
            definition.parameters.len(),
            arguments.len()
        ))
        .hint(format!("{}({})", definition.name, parameters.join(", "))));
    }
    let mut body = parse_expression(&definition.body)?;
    let values = definition.parameters.iter().zip(arguments);
    let values = values.map(|((name, sql_type), value)| Ok((name.as_str(), cast(value, sql_type)?)));
    let mut arguments = Arguments { values: values.collect::<Result<Vec<_>>>()? };
    // Substituting never stops early.
    let _ = body.visit(&mut arguments);
    match &definition.returns {
        Some(returns) => cast(body, returns),
        None => Ok(Expr::Nested(Box::new(body))),
    }
}

/// `CAST(value AS type)`, read back from the type's own text.
fn cast(value: Expr, sql_type: &SqlType) -> Result<Expr> {
    let mut cast = parse_expression(&format!("CAST(NULL AS {sql_type})"))?;
    match &mut cast {
        Expr::Cast { expr, .. } => **expr = value,
        other => return Err(Error::bug(format!("a cast was read as {other}"))),
    }
    Ok(cast)
}

struct Arguments<'a> {
    values: Vec<(&'a str, Expr)>,
}

impl VisitorMut for Arguments<'_> {
    type Break = ();

    fn post_visit_expr(&mut self, expression: &mut Expr) -> ControlFlow<()> {
        let Expr::Identifier(name) = expression else { return ControlFlow::Continue(()) };
        if let Some((_, value)) = self.values.iter().find(|(parameter, _)| *parameter == name.value) {
            *expression = value.clone();
        }
        ControlFlow::Continue(())
    }
}
