//! What the saved state of a node depends on, in words: how a restart knows whose state it may take over.

use arrow::datatypes::SchemaRef;

use super::display;
use super::stream::{JoinSide, Node, NodeId, NodeKind, StreamGraph};
use crate::types::{AggregateCall, SqlType, WindowTime};

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
                let order = if call.order.is_empty() {
                    String::new()
                } else {
                    let columns = call.order.iter().map(|sort| sort.column).collect::<Vec<_>>();
                    let ways = call.order.iter().map(|sort| (sort.descending, sort.nulls_first));
                    format!(" order {} {:?}", types(&columns), ways.collect::<Vec<_>>())
                };
                let monotone = if call.monotone { " monotone" } else { "" };
                format!("{:?}({distinct}{}{order}){filter}{monotone}", call.function, types(&call.arguments))
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
            NodeKind::LocalAggregate { keys, aggregates, .. } => {
                format!("keys [{}] aggregates [{}]", types(keys), calls(aggregates))
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
            NodeKind::WindowAssign { time, window } | NodeKind::LateMark { time, window } => {
                format!("column {time} {window:?}")
            }
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
