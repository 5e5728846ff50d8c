//! How a built-in scalar function is written down: one [`Entry`] with its names, parameters, result type and body.
//! [`BuiltIn`] makes a DataFusion function of it; the body sees a [`Call`] and works over whole columns.

use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, UInt32Array};
use arrow::compute::{cast, take};
use arrow::datatypes::{DataType, Field, FieldRef};
use datafusion_common::{DataFusionError, ScalarValue};
use datafusion_expr::simplify::{ExprSimplifyResult, SimplifyContext};
use datafusion_expr::{
    ColumnarValue, Expr, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};

use super::json;
use super::parameter::{Parameter, accept, describe};
use crate::error::{Error, Result};
use crate::types::SqlType;

/// What functions need to know of the session.
#[derive(Clone)]
pub struct FunctionContext {
    /// `table.local-time-zone`: where instants become local times.
    pub zone: crate::types::TimeZone,
    /// Milliseconds since the epoch, now.
    pub clock: Arc<dyn Fn() -> i64 + Send + Sync>,
    /// Whether the query runs in batch mode, where "now" is that of the query's start.
    pub batch: bool,
}

impl FunctionContext {
    /// For functions that ask neither zone nor clock.
    pub(super) fn utc() -> FunctionContext {
        FunctionContext { zone: crate::types::TimeZone::UTC, clock: Arc::new(|| 0), batch: false }
    }
}

impl fmt::Debug for FunctionContext {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FunctionContext").field("zone", &self.zone).field("batch", &self.batch).finish_non_exhaustive()
    }
}

/// The result type of a function.
pub(super) enum Typing {
    /// This type; NULL is possible when an argument may be NULL.
    Fixed(SqlType),
    /// This type; NULL is always possible.
    Nullable(SqlType),
    /// This type, never NULL.
    NotNull(SqlType),
    /// The type and whether NULL is possible, from the arguments.
    By(fn(&Arguments<'_>) -> Result<(SqlType, bool)>),
}

/// The arguments of a call as the planner sees them.
pub(super) struct Arguments<'a> {
    /// The function's name as SQL writes it.
    pub name: &'a str,
    /// Their fields.
    pub fields: &'a [FieldRef],
    /// Their values, where they are constants.
    pub scalars: &'a [Option<&'a ScalarValue>],
}

impl Arguments<'_> {
    /// The SQL type of argument `index`.
    pub fn sql_type(&self, index: usize) -> SqlType {
        SqlType::of_field(&self.fields[index])
    }

    /// Whether any argument may be NULL.
    pub fn nullable(&self) -> bool {
        self.fields.iter().any(|f| f.is_nullable())
    }

    /// The text of a constant argument.
    pub fn constant_text(&self, index: usize) -> Option<&str> {
        self.scalars.get(index).copied().flatten().and_then(|s| s.try_as_str()).flatten()
    }

    /// The value of a constant whole-number argument.
    pub fn constant_integer(&self, index: usize) -> Option<i64> {
        let scalar = self.scalars.get(index).copied().flatten()?;
        match scalar {
            ScalarValue::Int8(v) => v.map(i64::from),
            ScalarValue::Int16(v) => v.map(i64::from),
            ScalarValue::Int32(v) => v.map(i64::from),
            ScalarValue::Int64(v) => *v,
            _ => None,
        }
    }
}

/// The body of a function: columns in, one column out.
pub(super) type Body = fn(&Call<'_>) -> Result<ArrayRef>;

/// Another expression for a call, or the arguments back.
pub(super) type Rewritten = fn(Vec<Expr>) -> ExprSimplifyResult;

/// One built-in function.
pub(super) struct Entry {
    /// Its name and its aliases, lower case.
    pub names: &'static [&'static str],
    /// The parameter lists it takes.
    pub overloads: &'static [&'static [Parameter]],
    /// What it gives.
    pub typing: Typing,
    /// How it computes.
    pub body: Body,
    /// Whether equal arguments give equal results.
    pub volatility: Volatility,
    /// The same as another expression, for calls that must not compute all their arguments.
    pub rewritten: Option<Rewritten>,
}

impl Entry {
    /// A function whose result depends on its arguments alone.
    pub fn new(
        names: &'static [&'static str],
        overloads: &'static [&'static [Parameter]],
        typing: Typing,
        body: Body,
    ) -> Entry {
        Entry { names, overloads, typing, body, volatility: Volatility::Immutable, rewritten: None }
    }

    /// Marks a function that gives something else at every call.
    pub fn volatile(mut self) -> Entry {
        self.volatility = Volatility::Volatile;
        self
    }

    /// Gives the expression that stands for a call whose arguments are of the result's type.
    pub fn rewritten(mut self, rewritten: Rewritten) -> Entry {
        self.rewritten = Some(rewritten);
        self
    }

    /// The DataFusion function.
    pub fn build(self, context: &FunctionContext) -> Arc<ScalarUDF> {
        Arc::new(ScalarUDF::new_from_impl(BuiltIn {
            aliases: self.names[1..].iter().map(|n| (*n).to_string()).collect(),
            signature: Signature::user_defined(self.volatility),
            entry: self,
            context: context.clone(),
        }))
    }
}

/// A call over columns.
pub(super) struct Call<'a> {
    /// The function's name as SQL writes it.
    pub name: String,
    /// The argument columns: one value when constant, else one a row.
    pub arguments: Vec<ArrayRef>,
    /// Which arguments are constant.
    pub constant: Vec<bool>,
    /// The fields of the arguments.
    pub fields: &'a [FieldRef],
    /// Rows to give.
    pub rows: usize,
    /// The field of the result.
    pub result: &'a Field,
    /// The session.
    pub context: &'a FunctionContext,
}

impl Call<'_> {
    /// The column of argument `index` with one value a row, also when it is constant.
    pub fn column(&self, index: usize) -> Result<ArrayRef> {
        let array = &self.arguments[index];
        if !self.constant[index] || self.rows == 1 {
            return Ok(array.clone());
        }
        Ok(take(array, &UInt32Array::from(vec![0; self.rows]), None)?)
    }

    /// Whether the call has argument `index`.
    pub fn has(&self, index: usize) -> bool {
        index < self.arguments.len()
    }

    /// An error about a value, worded with the function's name.
    pub fn error(&self, message: impl fmt::Display) -> Error {
        Error::data(format!("{}: {message}", self.name))
    }
}

/// A built-in scalar function.
struct BuiltIn {
    entry: Entry,
    aliases: Vec<String>,
    signature: Signature,
    context: FunctionContext,
}

impl fmt::Debug for BuiltIn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "BuiltIn({})", self.entry.names[0])
    }
}

impl PartialEq for BuiltIn {
    fn eq(&self, other: &BuiltIn) -> bool {
        self.entry.names == other.entry.names
            && self.context.zone == other.context.zone
            && self.context.batch == other.context.batch
    }
}

impl Eq for BuiltIn {}

impl Hash for BuiltIn {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.entry.names.hash(state);
    }
}

impl BuiltIn {
    fn sql_name(&self) -> String {
        self.entry.names[0].to_uppercase()
    }

    fn coerced(&self, types: &[DataType]) -> Result<Vec<DataType>> {
        let fit = |overload: &&&'static [Parameter]| accept(overload, types);
        if let Some(found) = self.entry.overloads.iter().find_map(|overload| fit(&overload)) {
            return Ok(found);
        }
        let given: Vec<String> = types.iter().map(|t| SqlType::from_arrow(t).to_string()).collect();
        let forms: Vec<String> =
            self.entry.overloads.iter().map(|o| format!("{}({})", self.sql_name(), describe(o))).collect();
        Err(Error::sql(format!("cannot apply {}({})", self.sql_name(), given.join(", ")))
            .hint(format!("it takes {}", forms.join(" or "))))
    }

    fn typed(&self, args: &ReturnFieldArgs<'_>) -> Result<Field> {
        let name = self.sql_name();
        let types: Vec<DataType> = args.arg_fields.iter().map(|field| field.data_type().clone()).collect();
        self.coerced(&types)?;
        let arguments = Arguments { name: &name, fields: args.arg_fields, scalars: args.scalar_arguments };
        let (sql_type, nullable) = match &self.entry.typing {
            Typing::Fixed(sql_type) => (sql_type.clone(), arguments.nullable()),
            Typing::Nullable(sql_type) => (sql_type.clone(), true),
            Typing::NotNull(sql_type) => (sql_type.clone(), false),
            Typing::By(rule) => rule(&arguments)?,
        };
        let field = sql_type.to_field(self.entry.names[0], nullable);
        if !json::gives_json(self.entry.names[0]) {
            return Ok(field);
        }
        let mut metadata = field.metadata().clone();
        metadata.insert(json::JSON_KEY.to_string(), "true".to_string());
        Ok(field.with_metadata(metadata))
    }
}

impl ScalarUDFImpl for BuiltIn {
    fn name(&self) -> &str {
        self.entry.names[0]
    }

    fn aliases(&self) -> &[String] {
        &self.aliases
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn coerce_types(&self, types: &[DataType]) -> datafusion_common::Result<Vec<DataType>> {
        // What does not fit is refused with the types, where DataFusion passes the error on as it is.
        Ok(self.coerced(types).unwrap_or_else(|_| types.to_vec()))
    }

    fn return_type(&self, types: &[DataType]) -> datafusion_common::Result<DataType> {
        let fields: Vec<FieldRef> = types.iter().map(|t| Arc::new(Field::new("", t.clone(), true))).collect();
        let scalars = vec![None; types.len()];
        let args = ReturnFieldArgs { arg_fields: &fields, scalar_arguments: &scalars };
        Ok(self.typed(&args).map_err(outward)?.data_type().clone())
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs<'_>) -> datafusion_common::Result<FieldRef> {
        Ok(Arc::new(self.typed(&args).map_err(outward)?))
    }

    fn simplify(&self, args: Vec<Expr>, _: &SimplifyContext) -> datafusion_common::Result<ExprSimplifyResult> {
        Ok(match self.entry.rewritten {
            Some(rewrite) => rewrite(args),
            None => ExprSimplifyResult::Original(args),
        })
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> datafusion_common::Result<ColumnarValue> {
        let types: Vec<DataType> = args.args.iter().map(ColumnarValue::data_type).collect();
        let wanted = self.coerced(&types).map_err(outward)?;
        invoke(&self.sql_name(), self.entry.volatility, args, &wanted, &self.context, self.entry.body)
    }
}

/// Runs `body` over the arguments, first brought into the types `wanted`. Constants stay single values.
pub(super) fn invoke(
    name: &str,
    volatility: Volatility,
    args: ScalarFunctionArgs,
    wanted: &[DataType],
    context: &FunctionContext,
    body: impl Fn(&Call<'_>) -> Result<ArrayRef>,
) -> datafusion_common::Result<ColumnarValue> {
    let constant: Vec<bool> = args.args.iter().map(|a| matches!(a, ColumnarValue::Scalar(_))).collect();
    let mut arguments = Vec::with_capacity(args.args.len());
    for (value, data_type) in args.args.into_iter().zip(wanted) {
        let array = match value {
            ColumnarValue::Array(array) => array,
            ColumnarValue::Scalar(scalar) => scalar.to_array()?,
        };
        arguments.push(if array.data_type() == data_type { array } else { cast(&array, data_type)? });
    }
    // A call over constants alone is one value, unless every row must get its own.
    let single = volatility != Volatility::Volatile && constant.iter().all(|c| *c);
    let rows = if single { 1 } else { args.number_rows };
    let call = Call {
        name: name.to_string(),
        arguments,
        constant,
        fields: &args.arg_fields,
        rows,
        result: args.return_field.as_ref(),
        context,
    };
    let result = body(&call).map_err(outward)?;
    if !args.return_field.is_nullable() && result.null_count() > 0 {
        return Err(outward(null_refused(name, args.return_field.as_ref())));
    }
    if single { Ok(ColumnarValue::Scalar(single_value(&result)?)) } else { Ok(ColumnarValue::Array(result)) }
}

/// The only value of a column. Collections and rows stay what they are: taken apart and put together again, they would
/// lose what their inner fields say of their types.
fn single_value(column: &ArrayRef) -> datafusion_common::Result<ScalarValue> {
    match column.data_type() {
        DataType::List(_) => Ok(ScalarValue::List(Arc::new(column.as_list().clone()))),
        DataType::Map(..) => Ok(ScalarValue::Map(Arc::new(column.as_map().clone()))),
        DataType::Struct(_) => Ok(ScalarValue::Struct(Arc::new(column.as_struct().clone()))),
        _ => ScalarValue::try_from_array(column, 0),
    }
}

/// Arguments that are never NULL type the result as NOT NULL; a value that has no result then has no place to go.
fn null_refused(name: &str, field: &Field) -> Error {
    let sql_type = SqlType::of_field(field);
    Error::data(format!("{name} has no result for a value, and its type is {sql_type} NOT NULL"))
        .hint("TRY_CAST or a nullable argument makes it NULL")
}

/// Our error in DataFusion's, from which the planner takes it out again.
pub(super) fn outward(error: Error) -> DataFusionError {
    DataFusionError::External(Box::new(error))
}
