//! The stream graph: what a job runs, as plain data.
//!
//! Nodes stand in topological order (inputs before users). A node's parameters refer to columns by index into its
//! input's schema; expressions are DataFusion logical expressions over the input's columns by name, compiled by
//! `runtime/build.rs`. Nothing here has awaited or touched a disk.

use std::sync::Arc;

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use datafusion_common::DFSchemaRef;
use datafusion_expr::Expr;

use crate::catalog::TableDefinition;
use crate::changelog::ChangelogMode;
use crate::types::{
    AggregateCall, Emission, Frame, FrameCall, JoinKind, MiniBatch, NullKeys, OnConflict, OverCall, OverFrame,
    RankFunction, RankInput, SetOperation, SortColumn, Versions, WatermarkPolicy, WindowColumn, WindowSpec, WindowTime,
};

/// Index of a node in [`StreamGraph::nodes`].
pub type NodeId = usize;

/// A job's plan.
#[derive(Debug, Clone, Default)]
pub struct StreamGraph {
    /// Inputs before users.
    pub nodes: Vec<Node>,
}

/// One operator of the plan.
#[derive(Debug, Clone)]
pub struct Node {
    /// What it does.
    pub kind: NodeKind,
    /// Where its rows come from, by port.
    pub inputs: Vec<Edge>,
    /// The columns it emits.
    pub schema: SchemaRef,
    /// The kinds it emits.
    pub mode: ChangelogMode,
    /// Columns that identify a row of the emitted changelog; `None` if nothing less than the whole row does.
    pub upsert_key: Option<Vec<usize>>,
    /// Emitted columns that are event-time attributes.
    pub rowtime: Vec<usize>,
    /// Emitted columns that are processing-time attributes.
    pub proctime: Vec<usize>,
    /// What it remembers and for how long.
    pub state: StateBound,
    /// Whether it may run as several subtasks.
    pub parallelism: NodeParallelism,
    /// Stable name of the operator's state: equal plans give equal names.
    pub uid: String,
}

/// How much an operator remembers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StateBound {
    /// Nothing.
    Stateless,
    /// State that is bounded, and by what ("dropped when the watermark passes the window's end").
    Bounded(String),
    /// State that grows with the input, and what would bound it.
    Unbounded(String),
}

/// How many subtasks an operator may have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NodeParallelism {
    /// As many as the job is configured for.
    Any,
    /// One.
    Single,
}

/// An input of a node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Edge {
    /// The producer.
    pub from: NodeId,
    /// Which subtask of the user gets a row.
    pub distribution: Distribution,
}

/// How rows are spread over the subtasks of a node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Distribution {
    /// Stay in the producer's subtask; if parallelism differs, any (round robin).
    Forward,
    /// By the key group of these columns.
    Hash(Vec<usize>),
    /// To subtask 0.
    Single,
}

/// An input of a join.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JoinSide {
    /// The columns that must equal the other side's, in the same order and of the same types.
    pub keys: Vec<usize>,
    /// How many columns are the input's own; behind them stand computed keys, which are not emitted.
    pub width: usize,
}

/// What a node does.
#[derive(Debug, Clone)]
pub enum NodeKind {
    /// Reads a table: the columns `projection` of its scan schema, ascending.
    Source {
        /// The table.
        table: Arc<TableDefinition>,
        /// Indices into [`TableDefinition::scan_schema`].
        projection: Vec<usize>,
    },
    /// Emits constant rows, then ends.
    Values {
        /// The rows.
        rows: RecordBatch,
    },
    /// Filters (if there is a condition) and projects.
    Calc {
        /// Schema of the input, with qualifiers, over which the expressions are written.
        input: DFSchemaRef,
        /// Rows for which it is not true are dropped. In a changelog a dropped image of an update leaves the other alone.
        condition: Option<Expr>,
        /// One expression an emitted column.
        projection: Vec<Expr>,
    },
    /// Derives watermarks from an expression over the input's rows.
    WatermarkAssigner {
        /// Schema of the input.
        input: DFSchemaRef,
        /// The event-time column.
        column: usize,
        /// Evaluates to the watermark of a row, a timestamp.
        expression: Expr,
        /// When watermarks are sent, which rows pass, what counts as idle.
        policy: WatermarkPolicy,
        /// Whether each watermark stands right behind its row: where more than lateness depends on it.
        row_by_row: bool,
    },
    /// `CURRENT_WATERMARK`: appends the watermark that holds, as a timestamp of each type that is asked for.
    CurrentWatermark,
    /// `GROUP BY` over a changelog: emits keys then aggregates.
    GroupAggregate {
        /// Key columns of the input; empty for a global aggregate.
        keys: Vec<usize>,
        /// What is computed.
        aggregates: Vec<AggregateCall>,
        /// Whether the input is append-only, so that nothing need be kept for retraction.
        append_only_input: bool,
        /// Whether the user needs `-U`.
        emit_update_before: bool,
        /// Net changes per bundle, instead of every change.
        mini_batch: Option<MiniBatch>,
        /// Idle keys expire after so many milliseconds; 0: never.
        ttl_ms: u64,
    },
    /// The first of two phases of a `GROUP BY` over rows that only come: emits keys then aggregates of each bundle.
    LocalAggregate {
        /// Key columns of the input; empty for a global aggregate.
        keys: Vec<usize>,
        /// What is computed.
        aggregates: Vec<AggregateCall>,
        /// When a bundle closes.
        mini_batch: MiniBatch,
    },
    /// `GROUP BY` over windows of event time: emits keys, then window columns, then aggregates; append-only.
    WindowAggregate {
        /// Key columns of the input, without the window's.
        keys: Vec<usize>,
        /// The event-time column; a `Timestamp` of any unit.
        time: usize,
        /// How time is cut.
        window: WindowSpec,
        /// The silence that ends a session, if rows of a key that touch are in one window.
        session_gap: Option<i64>,
        /// Whether it is cut along local time: windows over `TIMESTAMP_LTZ`.
        local: bool,
        /// Whether the rows' time counts, or that of the machine.
        moment: WindowTime,
        /// Whether results are told beside at the window's end, and how; `None`: once, and append-only.
        emission: Option<Emission>,
        /// Which columns of the window are emitted after the keys, in this order.
        window_columns: Vec<WindowColumn>,
        /// What is computed.
        aggregates: Vec<AggregateCall>,
        /// Whether the input is append-only.
        append_only_input: bool,
    },
    /// Appends whether a row comes after all of its windows have closed.
    LateMark {
        /// The event-time column.
        time: usize,
        /// How time is cut.
        window: WindowSpec,
    },
    /// A window table function alone: appends `window_start`, `window_end`, `window_time`.
    WindowAssign {
        /// The event-time column.
        time: usize,
        /// How time is cut; for a session, each row's window alone.
        window: WindowSpec,
    },
    /// A SESSION table function alone: rows wait for the end of their session, and come with its columns.
    SessionAssign {
        /// Columns of the input whose values have sessions of their own.
        partition: Vec<usize>,
        /// The time column.
        time: usize,
        /// The silence that ends a session, in milliseconds.
        gap: i64,
        /// Whether the rows' time counts, or that of the machine.
        moment: WindowTime,
    },
    /// `GROUPING SETS`: each row once for each set; emits the input's columns, then `columns` with NULL where the set
    /// does not group by them, then the number of the set.
    Expand {
        /// Columns of the input.
        columns: Vec<usize>,
        /// Which of them each set groups by.
        sets: Vec<Vec<bool>>,
    },
    /// `UNNEST`: each row once for each element of a collection; emits the input's columns, then the element's, then its
    /// number if it is shown.
    Unnest {
        /// Schema of the input, with qualifiers.
        input: DFSchemaRef,
        /// An array or a map, over the input.
        collection: Expr,
        /// Whether the map is a multiset: its values say how often its keys are in it.
        counted: bool,
        /// Whether the element's number is emitted.
        ordinality: bool,
        /// Which elements are joined to their row, over the columns of `pairs`.
        condition: Option<Expr>,
        /// All columns, with qualifiers.
        pairs: DFSchemaRef,
        /// Whether a row that no element is joined to is emitted once.
        outer: bool,
        /// Which columns are emitted, ascending: repeating what nobody reads costs.
        shown: Vec<usize>,
    },
    /// `OVER` ordered by time: emits the first columns of the input, then the results; append-only.
    Over {
        /// Partition columns of the input; empty for one partition.
        partition: Vec<usize>,
        /// The event-time column; `None`: rows are taken as they arrive.
        time: Option<usize>,
        /// Which rows the aggregates of a row are over.
        frame: OverFrame,
        /// What is computed.
        calls: Vec<OverCall>,
        /// How many columns of the input are emitted.
        shown: usize,
        /// Idle partitions expire after so many milliseconds; 0: never.
        ttl_ms: u64,
    },
    /// `OVER` in any order, over rows that may change: emits the first columns of the input, then the results.
    OverTable {
        /// Partition columns of the input; empty for one partition.
        partition: Vec<usize>,
        /// The order within a partition; empty: by arrival, all rows of one value.
        order: Vec<SortColumn>,
        /// Which rows a row's results are over.
        frame: Frame,
        /// What is computed.
        calls: Vec<FrameCall>,
        /// How many columns of the input are emitted.
        shown: usize,
        /// Idle partitions expire after so many milliseconds; 0: never.
        ttl_ms: u64,
    },
    /// Top-N: the rows of each partition whose rank is in a range; emits the input's columns, and the rank if shown.
    Rank {
        /// Partition columns of the input; empty for one partition.
        partition: Vec<usize>,
        /// The order within a partition; empty: by arrival.
        order: Vec<SortColumn>,
        /// How equal rows are counted.
        function: RankFunction,
        /// First and last wanted rank.
        range: (u64, u64),
        /// Whether a row that moves within the range is told as an update of its rank.
        by_rank: bool,
        /// What the input may bring.
        changes: RankInput,
        /// Whether of equal rows the latest stands first.
        newest_first: bool,
        /// Whether the user needs `-U`.
        emit_update_before: bool,
        /// Idle partitions expire after so many milliseconds; 0: never.
        ttl_ms: u64,
    },
    /// Top-N of each window, told when the watermark passes the window's end; append-only.
    WindowRank {
        /// Partition columns of the input, the window's among them.
        partition: Vec<usize>,
        /// The column of the window's end.
        window_end: usize,
        /// Whether the windows are cut along local time.
        local: bool,
        /// The order within a partition.
        order: Vec<SortColumn>,
        /// How equal rows are counted.
        function: RankFunction,
        /// First and last wanted rank.
        range: (u64, u64),
        /// Whether of equal rows the latest stands first.
        newest_first: bool,
    },
    /// The first row of each key by event time, told when the watermark has passed it; append-only.
    KeepFirst {
        /// Key columns of the input; empty for one key.
        partition: Vec<usize>,
        /// The event-time column.
        time: usize,
        /// Idle keys expire after so many milliseconds; 0: never.
        ttl_ms: u64,
    },
    /// `ORDER BY` event time: rows wait until the watermark has passed them; append-only.
    TemporalSort {
        /// The event-time column, ascending: the first of the order.
        time: usize,
        /// The order, by time first.
        order: Vec<SortColumn>,
    },
    /// `ORDER BY` and `LIMIT` over the whole of a bounded input, told at its end.
    Sort {
        /// The order; empty: by arrival.
        order: Vec<SortColumn>,
        /// First and last wanted row, from 1.
        range: (u64, u64),
    },
    /// Joins two changelogs: the left input's columns, then the right's.
    Join {
        /// What becomes of rows with and without a match.
        kind: JoinKind,
        /// Left, then right.
        sides: [JoinSide; 2],
        /// What must hold of a pair beside equal keys, over the columns of `pairs`.
        condition: Option<Expr>,
        /// The inputs' own columns, left then right, with qualifiers; empty without a condition.
        pairs: DFSchemaRef,
        /// What a NULL among the keys equals.
        null_keys: NullKeys,
        /// Idle rows of the left and of the right input expire after so many milliseconds; 0: never.
        ttl_ms: [u64; 2],
    },
    /// Joins two append-only inputs whose rows are close in time: the left input's columns, then the right's; append-only.
    IntervalJoin {
        /// What becomes of rows with and without a match.
        kind: JoinKind,
        /// Left, then right.
        sides: [JoinSide; 2],
        /// The event-time columns; `None`: rows are as old as their arrival.
        times: Option<[usize; 2]>,
        /// The least and the greatest milliseconds from a left row to a right row that matches it.
        bounds: (i64, i64),
        /// What must hold of a pair beside that, over the columns of `pairs`.
        condition: Option<Expr>,
        /// The inputs' own columns, left then right, with qualifiers; empty without a condition.
        pairs: DFSchemaRef,
        /// What a NULL among the keys equals.
        null_keys: NullKeys,
    },
    /// Joins the rows of equal windows, told when the watermark passes the window's end; append-only.
    WindowJoin {
        /// What becomes of rows with and without a match.
        kind: JoinKind,
        /// Left, then right; start and end of the windows are among the keys.
        sides: [JoinSide; 2],
        /// The columns of the windows' ends.
        ends: [usize; 2],
        /// Whether windows are cut along local time.
        local: bool,
        /// What must hold of a pair beside equal keys, over the columns of `pairs`.
        condition: Option<Expr>,
        /// The inputs' own columns, left then right, with qualifiers; empty without a condition.
        pairs: DFSchemaRef,
        /// What a NULL among the keys equals.
        null_keys: NullKeys,
    },
    /// Joins each left row with the version of the right table that is valid at its time: the left input's columns, then
    /// the right's.
    TemporalJoin {
        /// Whether left rows without a match are emitted beside NULLs.
        outer: bool,
        /// Left, then right.
        sides: [JoinSide; 2],
        /// The event-time columns; `None`: left rows meet the table as it is when they come.
        times: Option<[usize; 2]>,
        /// What a key has of the table.
        versions: Versions,
        /// Whether left rows wait for the end of the table.
        table_first: bool,
        /// Idle keys of the table expire after so many milliseconds; 0: never.
        ttl_ms: u64,
        /// What must hold of a pair beside equal keys, over the columns of `pairs`.
        condition: Option<Expr>,
        /// The inputs' own columns, left then right, with qualifiers; empty without a condition.
        pairs: DFSchemaRef,
    },
    /// `INTERSECT ALL` or `EXCEPT ALL` of two inputs of the same types.
    CountedSet {
        /// How often a row is in the result.
        operation: SetOperation,
        /// Idle rows expire after so many milliseconds; 0: never.
        ttl_ms: u64,
    },
    /// `UNION ALL`.
    Union,
    /// Drops `-U` rows, for a sink that needs only the new image; where none follows, `-U` becomes `-D`.
    DropUpdateBefore {
        /// The columns by which the sink knows rows.
        key: Vec<usize>,
    },
    /// Makes a full changelog of one that has only new images by key, or may say things twice.
    ChangelogNormalize {
        /// The key's columns.
        key: Vec<usize>,
        /// Whether the user needs `-U`.
        emit_update_before: bool,
        /// Idle keys expire after so many milliseconds; 0: never.
        ttl_ms: u64,
    },
    /// Gives one row a primary key to a sink, of all the rows that the query has for it.
    UpsertMaterialize {
        /// The primary key's columns.
        key: Vec<usize>,
        /// Which of several rows it is.
        conflict: OnConflict,
        /// Whether the input is append-only, so that no row but the first is kept.
        append_only_input: bool,
        /// Whether the sink needs `-U`.
        emit_update_before: bool,
        /// Idle keys expire after so many milliseconds; 0: never.
        ttl_ms: u64,
    },
    /// Holds changes back until a barrier, and then tells their net effect: what is told is the result of a prefix of
    /// every input.
    ConsistentOutput,
    /// Writes to a table.
    Sink {
        /// The table.
        table: Arc<TableDefinition>,
        /// Stable name of the sink within the job.
        name: String,
    },
    /// Hands rows to whoever runs the query.
    Collect,
}

impl NodeKind {
    /// The operator's name, as `EXPLAIN` and metrics show it.
    pub fn name(&self) -> &'static str {
        match self {
            NodeKind::Source { .. } => "Source",
            NodeKind::Values { .. } => "Values",
            NodeKind::Calc { .. } => "Calc",
            NodeKind::WatermarkAssigner { .. } => "WatermarkAssigner",
            NodeKind::CurrentWatermark => "CurrentWatermark",
            NodeKind::GroupAggregate { .. } => "GroupAggregate",
            NodeKind::LocalAggregate { .. } => "LocalGroupAggregate",
            NodeKind::WindowAggregate { .. } => "WindowAggregate",
            NodeKind::LateMark { .. } => "LateMark",
            NodeKind::WindowAssign { .. } | NodeKind::SessionAssign { .. } => "WindowTableFunction",
            NodeKind::Expand { .. } => "Expand",
            NodeKind::Unnest { .. } => "Unnest",
            NodeKind::Over { .. } => "Over",
            NodeKind::OverTable { .. } => "OverTable",
            NodeKind::Rank { .. } => "Rank",
            NodeKind::WindowRank { .. } => "WindowRank",
            NodeKind::KeepFirst { .. } => "KeepFirst",
            NodeKind::TemporalSort { .. } => "TemporalSort",
            NodeKind::Sort { .. } => "Sort",
            NodeKind::Join { .. } => "Join",
            NodeKind::IntervalJoin { .. } => "IntervalJoin",
            NodeKind::WindowJoin { .. } => "WindowJoin",
            NodeKind::TemporalJoin { .. } => "TemporalJoin",
            NodeKind::CountedSet { operation, .. } => operation.name(),
            NodeKind::Union => "Union",
            NodeKind::DropUpdateBefore { .. } => "DropUpdateBefore",
            NodeKind::ChangelogNormalize { .. } => "ChangelogNormalize",
            NodeKind::UpsertMaterialize { .. } => "UpsertMaterialize",
            NodeKind::ConsistentOutput => "ConsistentOutput",
            NodeKind::Sink { .. } => "Sink",
            NodeKind::Collect => "Collect",
        }
    }
}
