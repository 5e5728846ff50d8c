//! Table functions of the program: they give arrays, whose elements are the rows.

use sqlparser::ast::{
    Expr, Function, FunctionArg, FunctionArgumentList, FunctionArguments, ObjectName, ObjectNamePart, TableFactor,
    TableFunctionArgs,
};

use crate::functions::FunctionSet;

/// `f(x)` in `FROM`, with or without `LATERAL` and `TABLE( )`, becomes `UNNEST(f(x))` where `f` is a table function.
pub(super) fn as_unnest(factor: &mut TableFactor, functions: &FunctionSet) {
    let (call, alias, with_ordinality) = match factor {
        TableFactor::TableFunction { expr: Expr::Function(call), alias } => (call.clone(), alias, false),
        TableFactor::Function { name, args, alias, with_ordinality, .. } => {
            (call_of(name, args), alias, *with_ordinality)
        }
        TableFactor::Table {
            name,
            args: Some(TableFunctionArgs { args, settings: None }),
            alias,
            with_ordinality,
            ..
        } => (call_of(name, args), alias, *with_ordinality),
        _ => return,
    };
    let [ObjectNamePart::Identifier(name)] = call.name.0.as_slice() else { return };
    if !functions.is_table(&name.value) {
        return;
    }
    *factor = TableFactor::UNNEST {
        alias: alias.take(),
        array_exprs: vec![Expr::Function(call)],
        with_offset: false,
        with_offset_alias: None,
        with_ordinality,
    };
}

fn call_of(name: &ObjectName, arguments: &[FunctionArg]) -> Function {
    Function {
        name: name.clone(),
        uses_odbc_syntax: false,
        parameters: FunctionArguments::None,
        args: FunctionArguments::List(FunctionArgumentList {
            duplicate_treatment: None,
            args: arguments.to_vec(),
            clauses: Vec::new(),
        }),
        filter: None,
        null_treatment: None,
        over: None,
        within_group: Vec::new(),
    }
}
