//! Flink's built-in functions, casts and typing rules on DataFusion's function traits.
//!
//! A function is one [`function::Entry`]: names, parameter lists, a rule for the result type, and a body that reads
//! whole columns ([`column`]) and gives one. `SELECT UPPER(name)` finds the entry `upper` by name, learns from its
//! parameters that a text is wanted and from its rule that `CHAR(3)` gives `CHAR(3)`, and runs its body on 8,192 names
//! at a time. To add a function: one entry in the file of its family and one block in that family's tests.
//!
//! Where Flink's operators differ from DataFusion's, the planner puts the functions of [`arithmetic`] and [`cast`] in
//! their place; [`typing`] says which types meet. [`aggregate`] and [`window`] only define names and types: the engine's
//! operators compute those.

mod aggregate;
mod arithmetic;
mod bitmap;
mod bucket;
mod cast;
mod collection;
mod column;
mod comparison;
mod conditional;
mod decimal;
mod encoding;
mod enforce;
mod function;
mod hash;
mod json;
mod math;
mod parameter;
mod pattern;
mod program;
mod set;
mod string;
mod temporal;
#[cfg(test)]
mod testing;
#[cfg(test)]
mod tests;
mod text_form;
mod typing;
mod variant;
mod window;
mod window_functions;

use std::sync::Arc;

use datafusion_expr::ScalarUDF;

pub use aggregate::{aggregate_functions, is_program_aggregate};
pub use arithmetic::{ArithmeticOperator, arithmetic, arithmetic_function, arithmetic_type};
pub use bucket::bucket;
pub use cast::{cast_function, declare_function};
pub use comparison::comparison;
pub use enforce::{NOT_NULL, not_null};
pub use function::FunctionContext;
pub use program::ProgramFunctions;
pub use set::{FunctionSet, assignable};
pub use typing::{common_type, comparison_type};
pub use window::pack_window;
pub use window_functions::window_functions;

/// All built-in scalar functions, the planner's own (`flink_…`, casts aside) included; names are lower case.
pub fn scalar_functions(context: &FunctionContext) -> Vec<Arc<ScalarUDF>> {
    use ArithmeticOperator::{Divide, Minus, Modulo, Multiply, Negate, Plus};
    let mut functions: Vec<Arc<ScalarUDF>> = entries().into_iter().map(|entry| entry.build(context)).collect();
    functions.extend([Plus, Minus, Multiply, Divide, Modulo, Negate].map(arithmetic_function));
    functions
}

fn entries() -> Vec<function::Entry> {
    let families = [
        bitmap::entries,
        collection::entries,
        conditional::entries,
        encoding::entries,
        hash::entries,
        json::entries,
        math::entries,
        pattern::entries,
        string::entries,
        temporal::entries,
        variant::entries,
        window::entries,
    ];
    families.into_iter().flat_map(|family| family()).collect()
}

/// The names that SHOW FUNCTIONS lists: scalar, aggregate and window functions, without the planner's own.
pub fn function_names() -> Vec<String> {
    let scalar = entries().into_iter().flat_map(|entry| entry.names.iter().copied());
    let aggregate = aggregate::names().chain(window_functions::names());
    let mut names: Vec<String> =
        scalar.chain(aggregate).chain(["mod", "cast", "try_cast"]).map(str::to_string).collect();
    names.retain(|name| !name.starts_with("flink_") && !matches!(name.as_str(), "strpos" | "date_part"));
    names.sort_unstable();
    names.dedup();
    names
}
