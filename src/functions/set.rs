//! The functions a session knows, by name, and the casts that go with its time zone.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;

use arrow::datatypes::Field;
use datafusion_expr::{AggregateUDF, ScalarUDF, Volatility, WindowUDF};

use super::cast::cast_into;
use super::{
    FunctionContext, ProgramFunctions, aggregate_functions, cast_function, function_names, scalar_functions,
    window_functions,
};
use crate::error::Result;
use crate::types::SqlType;

/// Scalar, aggregate and window functions by name; names do not heed case.
pub struct FunctionSet {
    scalar: BTreeMap<String, Arc<ScalarUDF>>,
    aggregate: BTreeMap<String, Arc<AggregateUDF>>,
    window: BTreeMap<String, Arc<WindowUDF>>,
    /// Names of scalar functions whose arrays stand for rows.
    table: BTreeSet<String>,
    /// What a person may write beside the built-in functions.
    of_program: Vec<String>,
    context: FunctionContext,
    extensions: bool,
}

impl fmt::Debug for FunctionSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} scalar and {} aggregate functions", self.scalar.len(), self.aggregate.len())
    }
}

impl FunctionSet {
    /// The built-in functions, for a session in this context.
    pub fn new(context: FunctionContext) -> FunctionSet {
        let mut scalar = BTreeMap::new();
        for function in scalar_functions(&context) {
            for alias in function.aliases() {
                scalar.insert(alias.to_lowercase(), Arc::clone(&function));
            }
            scalar.insert(function.name().to_lowercase(), function);
        }
        add_further(&mut scalar);
        let aggregate = aggregate_functions().into_iter().map(|function| (function.name().to_lowercase(), function));
        let window = window_functions().into_iter().map(|function| (function.name().to_string(), function));
        FunctionSet {
            scalar,
            aggregate: aggregate.collect(),
            window: window.collect(),
            table: BTreeSet::new(),
            of_program: Vec::new(),
            context,
            extensions: false,
        }
    }

    /// With the functions of a program.
    #[must_use]
    pub fn with_program(mut self, program: &ProgramFunctions) -> FunctionSet {
        let names = |name: &str, aliases: &[String]| {
            let all = std::iter::once(name).chain(aliases.iter().map(String::as_str));
            all.map(str::to_lowercase).collect::<Vec<_>>()
        };
        for function in program.scalar.iter().chain(&program.table) {
            for name in names(function.name(), function.aliases()) {
                self.scalar.insert(name, Arc::clone(function));
            }
            self.of_program.push(function.name().to_lowercase());
        }
        for function in &program.aggregate {
            for name in names(function.name(), function.aliases()) {
                self.aggregate.insert(name, Arc::clone(function));
            }
            self.of_program.push(function.name().to_lowercase());
        }
        self.table.extend(program.table.iter().flat_map(|function| names(function.name(), function.aliases())));
        self
    }

    /// The names of the program's functions.
    pub fn program_names(&self) -> &[String] {
        &self.of_program
    }

    /// Whether a call of this name in `FROM` gives rows.
    pub fn is_table(&self, name: &str) -> bool {
        self.table.contains(&name.to_lowercase())
    }

    /// Whether queries run in batch mode.
    pub fn is_batch(&self) -> bool {
        self.context.batch
    }

    /// The same for a session that answers SQL which Flink refuses (`table.sql.extensions`), or not.
    pub fn with_extensions(self, extensions: bool) -> FunctionSet {
        FunctionSet { extensions, ..self }
    }

    /// Whether SQL that Flink refuses is answered.
    pub fn extensions(&self) -> bool {
        self.extensions
    }

    /// The scalar function of this name.
    pub fn scalar(&self, name: &str) -> Option<Arc<ScalarUDF>> {
        self.scalar.get(&name.to_lowercase()).cloned()
    }

    /// The aggregate function of this name.
    pub fn aggregate(&self, name: &str) -> Option<Arc<AggregateUDF>> {
        self.aggregate.get(&name.to_lowercase()).cloned()
    }

    /// The function of this name that has a meaning only with `OVER`.
    pub fn window(&self, name: &str) -> Option<Arc<WindowUDF>> {
        self.window.get(&name.to_lowercase()).cloned()
    }

    /// The function that casts a column like `from` into `to`; nothing where Arrow's own cast does.
    ///
    /// # Errors
    /// If Flink has no such cast.
    pub fn cast(&self, from: &Field, to: &SqlType, try_cast: bool) -> Result<Option<Arc<ScalarUDF>>> {
        cast_function(from, to, try_cast, &self.context)
    }

    /// The function that makes a plain timestamp of a time attribute of the same type.
    pub fn plain_time(&self, time: &SqlType) -> Arc<ScalarUDF> {
        cast_into(time, false, &self.context)
    }

    /// Names to show: what a person may write.
    pub fn names(&self) -> Vec<String> {
        let mut names = function_names();
        names.extend(self.of_program.iter().cloned());
        names.sort_unstable();
        names
    }

    /// Every name that binds to a scalar function.
    pub fn scalar_names(&self) -> Vec<String> {
        self.scalar.keys().cloned().collect()
    }

    /// Every name that binds to a window function.
    pub fn window_names(&self) -> Vec<String> {
        self.window.keys().cloned().collect()
    }

    /// Every name that binds to an aggregate function.
    pub fn aggregate_names(&self) -> Vec<String> {
        self.aggregate.keys().cloned().collect()
    }
}

/// Functions that Flink does not have and DataFusion does, where they depend on their arguments alone: a name of ours
/// always means ours.
fn add_further(scalar: &mut BTreeMap<String, Arc<ScalarUDF>>) {
    let plain = datafusion_functions::all_default_functions();
    let further = plain.into_iter().chain(datafusion_functions_nested::all_default_nested_functions());
    for function in further.filter(|function| function.signature().volatility == Volatility::Immutable) {
        let names = function.aliases().iter().cloned().chain([function.name().to_string()]);
        for name in names.map(|name| name.to_lowercase()).collect::<Vec<_>>() {
            scalar.entry(name).or_insert_with(|| Arc::clone(&function));
        }
    }
}

/// Whether a value of type `from` may be written into a column of type `to` without a `CAST`: widenings, and other
/// lengths and precisions of the same kind.
pub fn assignable(from: &SqlType, to: &SqlType) -> bool {
    use SqlType::*;
    match (from, to) {
        (Null, _) => true,
        (from, to) if from == to => true,
        (TinyInt, SmallInt | Int | BigInt) | (SmallInt, Int | BigInt) | (Int, BigInt) => true,
        (TinyInt | SmallInt | Int | BigInt, Decimal(..) | Float | Double) => true,
        (Decimal(..), Decimal(..) | Float | Double) | (Float, Double) | (Float | Double, Decimal(..)) => true,
        // A text of unknown length is not silently cut or padded to a fixed one.
        (Char(_), Char(_)) | (Binary(_), Binary(_)) => true,
        (Char(_) | Varchar(_), Varchar(_)) | (Binary(_) | Varbinary(_), Varbinary(_)) => true,
        (Time(_), Time(_)) | (Timestamp(_), Date | Time(_)) => true,
        (Timestamp(_) | TimestampLtz(_), Timestamp(_) | TimestampLtz(_)) => true,
        (Array(from), Array(to)) | (Multiset(from), Multiset(to)) => assignable(&from.sql_type, &to.sql_type),
        (Map(from_key, from_value), Map(to_key, to_value)) => {
            assignable(&from_key.sql_type, &to_key.sql_type) && assignable(&from_value.sql_type, &to_value.sql_type)
        }
        (Row(from), Row(to)) => {
            from.len() == to.len() && from.iter().zip(to).all(|(from, to)| assignable(&from.sql_type, &to.sql_type))
        }
        _ => false,
    }
}
