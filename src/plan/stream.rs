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

use super::display;
use crate::catalog::TableDefinition;
use crate::changelog::ChangelogMode;
use crate::types::{
    AggregateCall, Emission, Frame, FrameCall, JoinKind, MiniBatch, NullKeys, OnConflict, OverCall, OverFrame,
    RankFunction, RankInput, SetOperation, SortColumn, SqlType, Versions, WindowColumn, WindowSpec, WindowTime,
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
        /// After this many milliseconds without rows the input counts as idle; 0: never.
        idle_timeout_ms: u64,
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
        /// What must hold of a pair beside equal keys, over the columns of `pairs`.
        condition: Option<Expr>,
        /// The inputs' own columns, left then right, with qualifiers; empty without a condition.
        pairs: DFSchemaRef,
    },
    /// `INTERSECT ALL` or `EXCEPT ALL` of two inputs of the same types.
    CountedSet {
        /// How often a row is in the result.
        operation: SetOperation,
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
    },
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
            NodeKind::WindowAggregate { .. } => "WindowAggregate",
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
            NodeKind::CountedSet { operation } => operation.name(),
            NodeKind::Union => "Union",
            NodeKind::DropUpdateBefore { .. } => "DropUpdateBefore",
            NodeKind::ChangelogNormalize { .. } => "ChangelogNormalize",
            NodeKind::UpsertMaterialize { .. } => "UpsertMaterialize",
            NodeKind::Sink { .. } => "Sink",
            NodeKind::Collect => "Collect",
        }
    }
}

impl StreamGraph {
    /// In words, what a node's saved state depends on: a plan whose node has the same name and the same words can take
    /// it over, whatever else has changed.
    pub fn fingerprint(&self, id: NodeId) -> String {
        let words = self.words(id);
        if self.nodes[id].inputs.is_empty() || matches!(self.nodes[id].kind, NodeKind::Sink { .. }) {
            return words;
        }
        // State over other rows is other state, whatever its types: SUM(x) is not taken over for SUM(x * 2).
        let mut meanings: Vec<u64> = Vec::with_capacity(id);
        for below in 0..id {
            let mut meaning = self.words(below);
            match &self.nodes[below].kind {
                NodeKind::Calc { input, condition, projection } => {
                    let expressions = condition.iter().chain(projection).map(|e| display::expression(e, input));
                    meaning.extend(expressions.map(|text| format!("; {text}")));
                }
                NodeKind::WatermarkAssigner { input, expression, .. } => {
                    meaning += &display::expression(expression, input);
                }
                NodeKind::Join { condition: Some(condition), pairs, .. }
                | NodeKind::IntervalJoin { condition: Some(condition), pairs, .. }
                | NodeKind::WindowJoin { condition: Some(condition), pairs, .. }
                | NodeKind::TemporalJoin { condition: Some(condition), pairs, .. } => {
                    meaning += &display::expression(condition, pairs);
                }
                NodeKind::Unnest { input, collection, ordinality, condition, pairs, outer, .. } => {
                    meaning += &display::expression(collection, input);
                    meaning += &format!(" {ordinality} {outer}");
                    meaning.extend(condition.iter().map(|condition| display::expression(condition, pairs)));
                }
                NodeKind::Values { rows } => meaning += &format!("{rows:?}"),
                _ => {}
            }
            for edge in &self.nodes[below].inputs {
                meaning += &format!(" {:016x}", meanings[edge.from]);
            }
            meanings.push(xxhash_rust::xxh3::xxh3_64(meaning.as_bytes()));
        }
        let inputs = self.nodes[id].inputs.iter().map(|edge| format!("{:016x}", meanings[edge.from]));
        format!("{words} over {}", inputs.collect::<Vec<_>>().join(" "))
    }

    /// A node's own parameters, as far as state and meaning depend on them.
    fn words(&self, id: NodeId) -> String {
        let node = &self.nodes[id];
        let below = node.inputs.first().map(|edge| &self.nodes[edge.from]);
        let input = below.map(|node| &node.schema);
        // A source's columns are known by name; which of them are read depends on who else reads it.
        let by_name = below.is_some_and(|node| matches!(node.kind, NodeKind::Source { .. }));
        let sql_type = |column: &usize| match input.map(|schema| schema.field(*column)) {
            Some(field) if by_name => format!("{} {}", field.name(), SqlType::of_field(field)),
            Some(field) => SqlType::of_field(field).to_string(),
            None => String::new(),
        };
        let types = |columns: &[usize]| columns.iter().map(sql_type).collect::<Vec<_>>().join(", ");
        let rows = || types(&(0..input.map_or(0, |schema| schema.fields().len())).collect::<Vec<_>>());
        let calls = |calls: &[AggregateCall]| {
            let one = |call: &AggregateCall| {
                let distinct = if call.distinct { "DISTINCT " } else { "" };
                let filter = if call.filter.is_some() { " FILTER" } else { "" };
                let monotone = if call.monotone { " monotone" } else { "" };
                format!("{:?}({distinct}{}){filter}{monotone}", call.function, types(&call.arguments))
            };
            calls.iter().map(one).collect::<Vec<_>>().join(", ")
        };
        let words = match &node.kind {
            NodeKind::Source { table, .. } => {
                // The positions of other data would be taken for those of these: rows left out, or read twice.
                let option = |name| table.options.get(name).unwrap_or_default();
                format!("connector {} path {}", option("connector"), option("path"))
            }
            NodeKind::GroupAggregate { keys, aggregates, append_only_input, .. } => {
                format!("keys [{}] aggregates [{}] append-only {append_only_input}", types(keys), calls(aggregates))
            }
            NodeKind::WindowAggregate {
                keys,
                window,
                session_gap,
                moment,
                emission,
                aggregates,
                append_only_input,
                ..
            } => {
                let session = session_gap.map_or(String::new(), |gap| format!(" session {gap}"));
                let moment = if *moment == WindowTime::Processing { " by the clock" } else { "" };
                let emission = emission.map_or(String::new(), |emission| format!(" {emission:?}"));
                format!(
                    "keys [{}] window {window:?}{session}{moment}{emission} aggregates [{}] append-only {append_only_input}",
                    types(keys),
                    calls(aggregates)
                )
            }
            NodeKind::SessionAssign { partition, time, gap, moment } => {
                format!("session {gap} {moment:?} time {time} keys [{}] of [{}]", types(partition), rows())
            }
            NodeKind::TemporalJoin { outer, sides, times, versions, table_first, .. } => {
                let append = below.is_some_and(|node| node.mode.is_append_only());
                let inputs = self.join_inputs(node, sides);
                format!("{outer} {inputs} times {times:?} {versions:?} {table_first} append-only {append}")
            }
            NodeKind::WindowJoin { kind, sides, ends, local, null_keys, .. } => {
                format!("{kind:?} {} {null_keys:?} ends {ends:?} {local}", self.join_inputs(node, sides))
            }
            NodeKind::Join { kind, sides, null_keys, .. } => {
                format!("{kind:?} {} {null_keys:?}", self.join_inputs(node, sides))
            }
            NodeKind::IntervalJoin { kind, sides, times, bounds, null_keys, .. } => {
                format!("{kind:?} {} {null_keys:?} times {times:?} {bounds:?}", self.join_inputs(node, sides))
            }
            NodeKind::Sink { table, .. } => format!("connector {}", table.options.get("connector").unwrap_or_default()),
            NodeKind::ChangelogNormalize { key, .. } => format!("key {key:?} rows [{}]", row_types(&node.schema)),
            NodeKind::UpsertMaterialize { key, conflict, append_only_input, .. } => {
                format!("key {key:?} {conflict:?} append-only {append_only_input} rows [{}]", row_types(&node.schema))
            }
            NodeKind::Rank { partition, order, function, range, changes, newest_first, .. } => format!(
                "{function:?} {range:?} keys [{}] order {order:?} {newest_first} {changes:?} of [{}]",
                types(partition),
                rows()
            ),
            NodeKind::Over { partition, time, frame, calls, .. } => {
                format!("keys [{}] time {time:?} {frame:?} {calls:?} of [{}]", types(partition), rows())
            }
            NodeKind::OverTable { partition, order, frame, calls, .. } => {
                format!("keys [{}] order {order:?} {frame:?} {calls:?} of [{}]", types(partition), rows())
            }
            NodeKind::WindowRank { partition, order, function, range, newest_first, .. } => {
                format!(
                    "{function:?} {range:?} keys [{}] order {order:?} {newest_first} of [{}]",
                    types(partition),
                    rows()
                )
            }
            NodeKind::WindowAssign { time, window } => format!("column {time} {window:?}"),
            NodeKind::KeepFirst { partition, time, .. } => {
                format!("keys [{}] by column {time} of [{}]", types(partition), rows())
            }
            NodeKind::TemporalSort { order, .. } | NodeKind::Sort { order, .. } => {
                format!("order {order:?} of [{}]", rows())
            }
            _ => String::new(),
        };
        format!("{} {words}", node.kind.name()).trim_end().to_string()
    }

    /// The types and keys of a join's inputs.
    fn join_inputs(&self, node: &Node, sides: &[JoinSide; 2]) -> String {
        let of = |port: usize| {
            let schema = node.inputs.get(port).map(|edge| &self.nodes[edge.from].schema);
            format!("[{}] by {:?}", schema.map(row_types).unwrap_or_default(), sides[port].keys)
        };
        format!("{} with {}", of(0), of(1))
    }
}

fn row_types(schema: &SchemaRef) -> String {
    schema.fields().iter().map(|field| SqlType::of_field(field).to_string()).collect::<Vec<_>>().join(", ")
}
