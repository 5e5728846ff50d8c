//! Ebbflow: a streaming SQL engine over dynamic tables.
//!
//! A table that changes and a stream of changes are two views of one thing. Ebbflow takes Flink SQL, plans it as a
//! continuous query over dynamic tables, and keeps the result up to date as rows come: results ebb (`-U`, `-D`) and
//! flow (`+I`, `+U`). Checkpoints make it exact: whatever is killed, and whenever, no change is lost and none is
//! doubled.
//!
//! ```
//! use std::sync::Arc;
//! use arrow::array::{RecordBatch, StringArray};
//! use ebbflow::{Engine, ProgramTable};
//!
//! # fn main() -> ebbflow::Result<()> {
//! let clicks = RecordBatch::try_from_iter([(
//!     "user",
//!     Arc::new(StringArray::from(vec!["Mary", "Bob", "Mary"])) as arrow::array::ArrayRef,
//! )])?;
//! let engine = Engine::builder().parallelism(1).build()?;
//! let session = engine.session();
//! session.register("clicks", ProgramTable::batches(clicks.schema(), vec![clicks]))?;
//! let changelog = engine.block_on(async {
//!     let mut changes = session.query("SELECT `user`, COUNT(*) FROM clicks GROUP BY `user`").await?;
//!     let mut lines = Vec::new();
//!     while let Some(batch) = changes.next().await {
//!         lines.extend(changes.lines(&batch?)?);
//!     }
//!     Ok::<_, ebbflow::Error>(lines)
//! })?;
//! assert_eq!(changelog, ["+I[Mary, 1]", "+I[Bob, 1]", "-U[Mary, 1]", "+U[Mary, 2]"]);
//! # Ok(())
//! # }
//! ```
//!
//! # The house
//!
//! The modules, in the order in which a statement and then a row meets them:
//!
//! | module | what it is |
//! |---|---|
//! | `session` | the front door: an [`Engine`], its [`Session`]s, the [`Job`]s they start |
//! | `sql` | text to statements: the Flink dialect, with places for errors to point at |
//! | `catalog` | what names stand for: tables, views, and the options connectors declare |
//! | `functions` | Flink's built-in functions, types of operators, casts |
//! | `plan` | statements to a stream graph: binding, types, rules, changelog modes, `EXPLAIN` |
//! | `runtime` | tasks, channels, alignment, exchange; its `build` joins plans and operators |
//! | `connectors`, `formats` | sources and sinks; bytes to rows and back |
//! | `changelog` | the four kinds of change, batches of changes, what travels on an edge |
//! | `operators` | one synchronous state machine a file |
//! | `state` | what an operator remembers, in tables addressed by batches of keys |
//! | `checkpoint` | files, manifests, recovery: what makes exactly once survive a crash |
//! | `types`, `error`, `limits` | used by all: SQL types and cells, the one error type, every bound |
//! | `crash` | used by all: the places at which a test can make the process die |
//!
//! `plan` and `operators` never name each other; `runtime/build.rs` is the bridge. `sql`, `plan`, `operators`, `state`
//! and `functions` contain nothing asynchronous, no file access and no clock: they behave the same in a debugger, a
//! test and a replay. A test holds the table of allowed imports.
//!
//! # A statement
//!
//! `SELECT user, COUNT(*) FROM clicks GROUP BY user` is parsed (`sql`), its names are looked up (`catalog`), it is
//! bound and typed (`plan`), and becomes a graph: a source, an aggregate, a collector. Two passes settle the changelog
//! modes: the aggregate can emit `+I`, `-U`, `+U`; whoever shows a changelog needs the `-U`, a sink with a key would not.
//!
//! # A row
//!
//! The source's task reads a batch of rows, straight into typed columns, only the wanted ones. The batch goes operator
//! to operator within the task; between tasks it is split by the key groups of its keys and waits in a bounded channel.
//! The aggregate looks up all its keys at once, updates its columns of accumulators, and emits the changes.
//!
//! # A checkpoint
//!
//! At an interval a barrier enters the stream at the sources, which note their positions. An operator that has the
//! barrier on all inputs hands over what changed in its state since the last one; a sink makes what it wrote durable, and
//! not yet visible. When everything is on disk, a manifest is written that names it all: that is the decision. Then
//! sinks make their rows visible. A crash before the decision forgets the rows, which are read again; a crash after it
//! commits them again, which changes nothing.

pub(crate) mod catalog;
pub(crate) mod changelog;
pub(crate) mod checkpoint;
pub(crate) mod connectors;
pub(crate) mod crash;
pub(crate) mod error;
pub(crate) mod formats;
pub(crate) mod functions;
pub(crate) mod limits;
pub(crate) mod operators;
pub(crate) mod plan;
pub(crate) mod runtime;
pub(crate) mod session;
pub(crate) mod sql;
pub(crate) mod state;
pub(crate) mod types;

pub use changelog::{ChangeBatch, ChangelogMode, Kind, Kinds};
pub use connectors::Console;
pub use error::{Error, ErrorKind, Result, Span};
pub use runtime::{Cause, Clock, Diagnosis, OperatorDiagnosis, OperatorMetrics};
pub use session::checkpoints;
pub use session::{
    Changes, Engine, EngineBuilder, Job, JobProgress, JobReport, Outcome, ProgramTable, ScriptStatement, Session,
};
pub use types::{CellFormat, RowFormat, SqlType, TimeZone};

/// What a program implements to bring functions of its own: see [`Session::register_function`],
/// [`Session::register_aggregate`] and [`Session::register_table_function`]. The traits are DataFusion's.
///
/// A scalar function works on whole columns:
///
/// ```
/// use std::sync::Arc;
/// use arrow::array::{Array, ArrayRef, AsArray, Int64Array};
/// use arrow::datatypes::{DataType, Int64Type};
/// use ebbflow::Engine;
/// use ebbflow::function::{ColumnarValue, Volatility, create_udf};
///
/// # fn main() -> ebbflow::Result<()> {
/// let double = create_udf(
///     "double_of",
///     vec![DataType::Int64],
///     DataType::Int64,
///     Volatility::Immutable,
///     Arc::new(|arguments: &[ColumnarValue]| {
///         let arrays = ColumnarValue::values_to_arrays(arguments)?;
///         let doubled: Int64Array = arrays[0].as_primitive::<Int64Type>().unary(|n| n * 2);
///         Ok(ColumnarValue::Array(Arc::new(doubled)))
///     }),
/// );
/// let engine = Engine::builder().parallelism(1).build()?;
/// let session = engine.session();
/// session.register_function(double)?;
/// let lines = engine.block_on(async {
///     let mut changes = session.query("SELECT double_of(x) FROM (VALUES (1), (21)) AS t(x)").await?;
///     let mut lines = Vec::new();
///     while let Some(batch) = changes.next().await {
///         lines.extend(changes.lines(&batch?)?);
///     }
///     Ok::<_, ebbflow::Error>(lines)
/// })?;
/// assert_eq!(lines, ["+I[2]", "+I[42]"]);
/// # Ok(())
/// # }
/// ```
///
/// A table function gives an array a row; `LATERAL TABLE(f(x))` has its elements as rows:
///
/// ```
/// use std::sync::Arc;
/// use arrow::array::{AsArray, ListBuilder, StringBuilder};
/// use arrow::datatypes::{DataType, Field};
/// use ebbflow::Engine;
/// use ebbflow::function::{ColumnarValue, Volatility, create_udf};
///
/// # fn main() -> ebbflow::Result<()> {
/// let words = create_udf(
///     "words",
///     vec![DataType::Utf8],
///     DataType::List(Arc::new(Field::new("item", DataType::Utf8, true))),
///     Volatility::Immutable,
///     Arc::new(|arguments: &[ColumnarValue]| {
///         let arrays = ColumnarValue::values_to_arrays(arguments)?;
///         let mut lists = ListBuilder::new(StringBuilder::new());
///         for text in arrays[0].as_string::<i32>() {
///             text.unwrap_or_default().split_whitespace().for_each(|word| lists.values().append_value(word));
///             lists.append(true);
///         }
///         Ok(ColumnarValue::Array(Arc::new(lists.finish())))
///     }),
/// );
/// let engine = Engine::builder().parallelism(1).build()?;
/// let session = engine.session();
/// session.register_table_function(words)?;
/// let lines = engine.block_on(async {
///     let mut changes = session
///         .query(
///             "SELECT id, word FROM (VALUES (1, 'to be'), (2, '')) AS t(id, line)
///              LEFT JOIN LATERAL TABLE(words(line)) AS w(word) ON TRUE",
///         )
///         .await?;
///     let mut lines = Vec::new();
///     while let Some(batch) = changes.next().await {
///         lines.extend(changes.lines(&batch?)?);
///     }
///     Ok::<_, ebbflow::Error>(lines)
/// })?;
/// assert_eq!(lines, ["+I[1, to]", "+I[1, be]", "+I[2, <NULL>]"]);
/// # Ok(())
/// # }
/// ```
///
/// An aggregate function keeps an accumulator a group. This one can take a value back, so rows that are taken back cost no
/// more than rows that come:
///
/// ```
/// use std::sync::Arc;
/// use arrow::array::{ArrayRef, AsArray};
/// use arrow::datatypes::{DataType, Int64Type};
/// use ebbflow::Engine;
/// use ebbflow::function::{Accumulator, FunctionResult, ScalarValue, Volatility, create_udaf};
///
/// /// The bits of all values, one flipped by each.
/// #[derive(Debug, Default)]
/// struct Parity(i64);
///
/// impl Accumulator for Parity {
///     fn update_batch(&mut self, values: &[ArrayRef]) -> FunctionResult<()> {
///         values[0].as_primitive::<Int64Type>().iter().flatten().for_each(|value| self.0 ^= value);
///         Ok(())
///     }
///     fn retract_batch(&mut self, values: &[ArrayRef]) -> FunctionResult<()> {
///         self.update_batch(values)
///     }
///     fn supports_retract_batch(&self) -> bool {
///         true
///     }
///     fn evaluate(&mut self) -> FunctionResult<ScalarValue> {
///         Ok(ScalarValue::Int64(Some(self.0)))
///     }
///     fn state(&mut self) -> FunctionResult<Vec<ScalarValue>> {
///         Ok(vec![self.evaluate()?])
///     }
///     fn merge_batch(&mut self, states: &[ArrayRef]) -> FunctionResult<()> {
///         self.update_batch(states)
///     }
///     fn size(&self) -> usize {
///         size_of::<Parity>()
///     }
/// }
///
/// # fn main() -> ebbflow::Result<()> {
/// let parity = create_udaf(
///     "parity",
///     vec![DataType::Int64],
///     Arc::new(DataType::Int64),
///     Volatility::Immutable,
///     Arc::new(|_| Ok(Box::<Parity>::default())),
///     Arc::new(vec![DataType::Int64]),
/// );
/// let engine = Engine::builder().parallelism(1).build()?;
/// let session = engine.session();
/// session.register_aggregate(parity)?;
/// let lines = engine.block_on(async {
///     let mut changes = session
///         .query(
///             "SELECT parity(n) FROM (SELECT k, COUNT(*) AS n FROM (VALUES ('a'), ('b'), ('a')) AS t(k) GROUP BY k)",
///         )
///         .await?;
///     let mut lines = Vec::new();
///     while let Some(batch) = changes.next().await {
///         lines.extend(changes.lines(&batch?)?);
///     }
///     Ok::<_, ebbflow::Error>(lines)
/// })?;
/// // 1, then 1 ^ 1; the first count goes (1), and comes again as 2: 1 ^ 2.
/// assert_eq!(lines, ["+I[1]", "-U[1]", "+U[0]", "-U[0]", "+U[1]", "-U[1]", "+U[3]"]);
/// # Ok(())
/// # }
/// ```
pub mod function {
    pub use datafusion_common::{Result as FunctionResult, ScalarValue};
    pub use datafusion_expr::function::{AccumulatorArgs, StateFieldsArgs};
    pub use datafusion_expr::{
        Accumulator, AggregateUDF, AggregateUDFImpl, ColumnarValue, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl,
        Signature, TypeSignature, Volatility, create_udaf, create_udf,
    };
}

/// What a program implements to bring tables of its own: see [`ProgramTable::source`] and [`ProgramTable::sink`].
pub mod connector {
    pub use crate::connectors::{
        Committable, Guarantee, Progress, Sink, SinkWriter, Source, SourceEvent, SourceReader, SplitPosition,
    };
}
