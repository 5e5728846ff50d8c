//! `EXPLAIN`: the stream graph as a tree, with everything the planner found out.

use std::fmt::Write;

use super::display::expression;
use crate::plan::stream::{Distribution, JoinSide, Node, NodeId, NodeKind, NodeParallelism, StateBound, StreamGraph};
use crate::types::{
    AggregateCall, Emission, Firing, Frame, FrameBound, FrameUnits, NullKeys, SortColumn, Versions, WatermarkPolicy,
    WindowSpec, WindowTime,
};

/// One tree a sink, sinks first; a node that several use is drawn once and referred to after that.
pub fn explain(graph: &StreamGraph) -> String {
    explain_measured(graph, &|_| None)
}

/// The same with what `measured` says of an operator, by its uid.
pub fn explain_measured(graph: &StreamGraph, measured: &dyn Fn(&str) -> Option<String>) -> String {
    let mut text = String::new();
    let mut drawn = vec![false; graph.nodes.len()];
    let used: Vec<NodeId> = graph.nodes.iter().flat_map(|node| node.inputs.iter().map(|edge| edge.from)).collect();
    for id in (0..graph.nodes.len()).filter(|id| !used.contains(id)) {
        draw(graph, id, 0, &mut drawn, &mut text, measured);
    }
    text.truncate(text.trim_end().len());
    text
}

fn draw(
    graph: &StreamGraph,
    id: NodeId,
    depth: usize,
    drawn: &mut [bool],
    text: &mut String,
    measured: &dyn Fn(&str) -> Option<String>,
) {
    let node = &graph.nodes[id];
    let indent = "   ".repeat(depth);
    let arrow = if depth == 0 { "" } else { "+- " };
    let lead = if depth == 0 { String::new() } else { "   ".repeat(depth - 1) };
    if drawn[id] {
        let _ = writeln!(text, "{lead}{arrow}the same {} as above [{}]", node.kind.name(), node.uid);
        return;
    }
    drawn[id] = true;
    let _ = writeln!(text, "{lead}{arrow}{} [{}]", title(graph, node), node.uid);
    for fact in facts(node).into_iter().chain(measured(&node.uid)) {
        let _ = writeln!(text, "{indent}     {fact}");
    }
    for edge in &node.inputs {
        if edge.distribution != Distribution::Forward {
            let input = &graph.nodes[edge.from];
            let _ = writeln!(text, "{indent}     {}", distribution(&edge.distribution, input));
        }
        draw(graph, edge.from, depth + 1, drawn, text, measured);
    }
}

/// The node's name and parameters.
fn title(graph: &StreamGraph, node: &Node) -> String {
    let below = node.inputs.first().map(|edge| &graph.nodes[edge.from]);
    let column = |index: usize| below.map_or(String::new(), |input| input.schema.field(index).name().clone());
    let columns = |indices: &[usize]| indices.iter().map(|index| column(*index)).collect::<Vec<_>>().join(", ");
    let parameters = match &node.kind {
        NodeKind::Source { table, .. } => format!("{}: {}", table.name, names(node)),
        NodeKind::Values { rows } => format!("{} rows", rows.num_rows()),
        NodeKind::Calc { input, condition, projection } => {
            let list: Vec<String> = projection.iter().map(|e| expression(e, input)).collect();
            let list = list.join(", ");
            match condition {
                Some(condition) => format!("select=[{list}], where=[{}]", expression(condition, input)),
                None => format!("select=[{list}]"),
            }
        }
        NodeKind::WatermarkAssigner { input, column: index, expression: value, row_by_row, policy } => {
            let each = if *row_by_row { ", row by row" } else { "" };
            format!("{} AS {}{each}{}", column(*index), expression(value, input), policy_text(policy))
        }
        NodeKind::CurrentWatermark => String::new(),
        NodeKind::GroupAggregate { keys, aggregates, mini_batch, .. } => {
            let emission = if mini_batch.is_some() { ", emits=[net change per bundle]" } else { "" };
            format!("groupBy=[{}], select=[{}]{emission}", columns(keys), calls(aggregates, &column))
        }
        NodeKind::LocalAggregate { keys, aggregates, .. } => {
            format!(
                "groupBy=[{}], select=[{}], emits=[one row a key and bundle]",
                columns(keys),
                calls(aggregates, &column)
            )
        }
        NodeKind::WindowAggregate { keys, window, session_gap, moment, emission, aggregates, .. } => {
            let by = columns(keys);
            let window = spec(&session_gap.map_or(*window, |gap| WindowSpec::Session { gap }));
            let select = calls(aggregates, &column);
            let emits = emission.map_or(String::new(), |emission| format!(", emits=[{}]", emitted(&emission)));
            format!("groupBy=[{by}], window=[{window}]{}{emits}, select=[{select}]", by_clock(*moment))
        }
        NodeKind::Join { kind, sides, condition, pairs, null_keys, .. }
        | NodeKind::WindowJoin { kind, sides, condition, pairs, null_keys, .. } => {
            let on = conditions(graph, node, sides, *null_keys, condition.as_ref().map(|c| expression(c, pairs)));
            format!("joinType=[{}], where=[{on}]", kind.name())
        }
        NodeKind::IntervalJoin { kind, sides, times, bounds, condition, pairs, null_keys } => {
            let on = conditions(graph, node, sides, *null_keys, condition.as_ref().map(|c| expression(c, pairs)));
            let name = |port: usize| match times {
                Some(times) => input_column(graph, node, port, times[port]).to_string(),
                None => format!("arrival of the {} row", ["left", "right"][port]),
            };
            let between = format!("{} - {} between {} ms and {} ms", name(1), name(0), bounds.0, bounds.1);
            format!("joinType=[{}], interval=[{between}], where=[{on}]", kind.name())
        }
        NodeKind::TemporalJoin { outer, sides, times, versions, condition, pairs, .. } => {
            let rest = condition.as_ref().map(|c| expression(c, pairs));
            let on = conditions(graph, node, sides, NullKeys::Nothing, rest);
            let kind = if *outer { "LeftOuterJoin" } else { "InnerJoin" };
            let of = match (times, versions) {
                (Some([left, right]), _) => format!(
                    "of {}, valid from {}",
                    input_column(graph, node, 0, *left),
                    input_column(graph, node, 1, *right)
                ),
                (None, Versions::All) => "all rows on arrival".to_string(),
                (None, _) => "latest on arrival".to_string(),
            };
            format!("joinType=[{kind}], version=[{of}], where=[{on}]")
        }
        NodeKind::WindowAssign { time, window } => {
            let merging = if matches!(window, WindowSpec::Session { .. }) { ", merged by the aggregation" } else { "" };
            format!("{}, {}{merging}", column(*time), spec(window))
        }
        NodeKind::LateMark { time, window } => format!("{}, {}", column(*time), spec(window)),
        NodeKind::SessionAssign { partition, time, gap, moment } => {
            let session = spec(&WindowSpec::Session { gap: *gap });
            format!("{}, {session}, partitionBy=[{}]{}", column(*time), columns(partition), by_clock(*moment))
        }
        NodeKind::Expand { columns: grouped, sets } => {
            let set = |set: &Vec<bool>| {
                let present = grouped.iter().zip(set).filter(|(_, present)| **present);
                format!("({})", present.map(|(index, _)| column(*index)).collect::<Vec<_>>().join(", "))
            };
            format!("sets=[{}]", sets.iter().map(set).collect::<Vec<_>>().join(", "))
        }
        NodeKind::Unnest { input, collection, ordinality, condition, pairs, outer, .. } => {
            let kind = if *outer { "Left" } else { "Inner" };
            let number = if *ordinality { ", ordinality" } else { "" };
            let on = condition.as_ref().map(|condition| format!(", where=[{}]", expression(condition, pairs)));
            format!("joinType=[{kind}], unnest=[{}]{number}{}", expression(collection, input), on.unwrap_or_default())
        }
        NodeKind::Over { partition, time, frame, shown, .. } => {
            let time = time.map_or("arrival".to_string(), &column);
            let results = node.schema.fields().iter().skip(*shown).map(|field| field.name().as_str());
            let results = results.collect::<Vec<_>>().join(", ");
            format!("partitionBy=[{}], orderBy=[{time}], frame={frame:?}, select=[{results}]", columns(partition))
        }
        NodeKind::OverTable { partition, order, frame, shown, .. } => {
            let results = node.schema.fields().iter().skip(*shown).map(|field| field.name().as_str());
            let results = results.collect::<Vec<_>>().join(", ");
            let (by, order) = (columns(partition), sorted(order, &column));
            format!("partitionBy=[{by}], orderBy=[{order}], frame={}, select=[{results}]", frame_text(*frame))
        }
        NodeKind::Rank { partition, order, function, range, .. }
        | NodeKind::WindowRank { partition, order, function, range, .. } => {
            let order = sorted(order, &column);
            format!("{function:?} {} to {}, partitionBy=[{}], orderBy=[{order}]", range.0, range.1, columns(partition))
        }
        NodeKind::KeepFirst { partition, time, .. } => format!("key=[{}], time={}", columns(partition), column(*time)),
        NodeKind::TemporalSort { order, .. } => format!("orderBy=[{}]", sorted(order, &column)),
        NodeKind::Sort { order, range: (first, last) } => {
            let limit = if *last == u64::MAX { String::new() } else { format!(", rows {first} to {last}") };
            format!("orderBy=[{}]{limit}", sorted(order, &column))
        }
        NodeKind::Sink { table, .. } => format!("{}: {}", table.name, names(node)),
        NodeKind::UpsertMaterialize { key, conflict, .. } => {
            format!("key=[{}], onConflict=[{}]", columns(key), conflict.word())
        }
        NodeKind::ChangelogNormalize { key, .. } => format!("key=[{}]", columns(key)),
        NodeKind::CountedSet { .. }
        | NodeKind::Union
        | NodeKind::DropUpdateBefore { .. }
        | NodeKind::ConsistentOutput
        | NodeKind::Collect => names(node),
    };
    format!("{}({parameters})", node.kind.name())
}

/// The name of a column of an input.
fn input_column<'a>(graph: &'a StreamGraph, node: &Node, port: usize, column: usize) -> &'a str {
    node.inputs.get(port).map_or("", |edge| graph.nodes[edge.from].schema.field(column).name().as_str())
}

/// What must hold of a pair: equal keys, and the rest.
fn conditions(
    graph: &StreamGraph,
    node: &Node,
    sides: &[JoinSide; 2],
    null_keys: NullKeys,
    rest: Option<String>,
) -> String {
    let (equals, unless) = match null_keys {
        NullKeys::Nothing => ("=", ""),
        NullKeys::Null => ("IS NOT DISTINCT FROM", ""),
        NullKeys::Anything => ("=", " IS NOT FALSE"),
    };
    let name = |port: usize, column: usize| input_column(graph, node, port, column);
    let keys = sides[0].keys.iter().zip(&sides[1].keys);
    let keys = keys.map(|(left, right)| format!("{} {equals} {}{unless}", name(0, *left), name(1, *right)));
    keys.chain(rest).collect::<Vec<_>>().join(" AND ")
}

fn facts(node: &Node) -> Vec<String> {
    let named = |columns: &[usize]| {
        columns.iter().map(|index| node.schema.field(*index).name().as_str()).collect::<Vec<_>>().join(", ")
    };
    let mut facts = vec![format!("changelogMode={}", node.mode)];
    if let Some(key) = &node.upsert_key {
        facts[0] += &format!(", upsertKey=[{}]", named(key));
    }
    if !node.rowtime.is_empty() {
        facts[0] += &format!(", rowtime=[{}]", named(&node.rowtime));
    }
    if !node.proctime.is_empty() {
        facts[0] += &format!(", proctime=[{}]", named(&node.proctime));
    }
    match &node.state {
        StateBound::Stateless => {}
        StateBound::Bounded(by) => facts.push(format!("state: bounded ({by})")),
        StateBound::Unbounded(why) => facts.push(format!("state: UNBOUNDED ({why})")),
    }
    if node.parallelism == NodeParallelism::Single {
        facts.push("parallelism: 1".into());
    }
    facts
}

fn distribution(distribution: &Distribution, input: &Node) -> String {
    match distribution {
        Distribution::Forward => "input stays in its task".into(),
        Distribution::Hash(columns) => {
            let names: Vec<&str> = columns.iter().map(|index| input.schema.field(*index).name().as_str()).collect();
            format!("exchange: hash[{}]", names.join(", "))
        }
        Distribution::Single => "exchange: single".into(),
    }
}

fn names(node: &Node) -> String {
    node.schema.fields().iter().map(|field| field.name().as_str()).collect::<Vec<_>>().join(", ")
}

fn calls(aggregates: &[AggregateCall], column: &dyn Fn(usize) -> String) -> String {
    let one = |call: &AggregateCall| {
        let arguments: Vec<String> = call.arguments.iter().map(|index| column(*index)).collect();
        let arguments = if arguments.is_empty() { "*".to_string() } else { arguments.join(", ") };
        let distinct = if call.distinct { "DISTINCT " } else { "" };
        let order =
            if call.order.is_empty() { String::new() } else { format!(" ORDER BY {}", sorted(&call.order, column)) };
        let filter = call.filter.map_or(String::new(), |index| format!(" FILTER {}", column(index)));
        format!("{:?}({distinct}{arguments}{order}){filter} AS {}", call.function, call.output.name())
    };
    aggregates.iter().map(one).collect::<Vec<_>>().join(", ")
}

fn sorted(order: &[SortColumn], column: &dyn Fn(usize) -> String) -> String {
    let one = |sort: &SortColumn| {
        let direction = if sort.descending { " DESC" } else { "" };
        // NULL counts as the smallest value unless the query says otherwise.
        let nulls = match (sort.nulls_first, sort.nulls_first == sort.descending) {
            (_, false) => "",
            (true, true) => " NULLS FIRST",
            (false, true) => " NULLS LAST",
        };
        format!("{}{direction}{nulls}", column(sort.column))
    };
    order.iter().map(one).collect::<Vec<_>>().join(", ")
}

fn emitted(emission: &Emission) -> String {
    let often = |firing: Firing| match firing {
        Firing::EachRow => "at every row".to_string(),
        Firing::Every(delay) => format!("every {delay} ms"),
    };
    let early = emission.early.map(|firing| format!("early {}", often(firing)));
    let late = emission.late.map(|firing| format!("late {} for {} ms", often(firing), emission.lateness_ms));
    early.into_iter().chain(late).collect::<Vec<_>>().join(", ")
}

/// What differs from the usual.
fn policy_text(policy: &WatermarkPolicy) -> String {
    let mut text = String::new();
    if policy.idle_timeout_ms > 0 {
        let _ = write!(text, ", idle after {} ms", policy.idle_timeout_ms);
    }
    if policy.each_event {
        text += ", on event";
    }
    if policy.drop_null {
        text += ", drops NULL";
    }
    if let Some(ahead) = policy.max_ahead_ms {
        let _ = write!(text, ", drops rows {ahead} ms ahead of the clock");
    }
    if let Some(alignment) = &policy.alignment {
        let _ = write!(text, ", aligned with '{}' within {} ms", alignment.group, alignment.max_drift_ms);
    }
    text
}

fn by_clock(moment: WindowTime) -> &'static str {
    if moment == WindowTime::Processing { ", closed by=[the clock]" } else { "" }
}

fn spec(window: &WindowSpec) -> String {
    match window {
        WindowSpec::Tumble { size, offset: 0 } => format!("TUMBLE(size {size} ms)"),
        WindowSpec::Tumble { size, offset } => format!("TUMBLE(size {size} ms, offset {offset} ms)"),
        WindowSpec::Hop { slide, size, offset } => format!("HOP(slide {slide} ms, size {size} ms, offset {offset} ms)"),
        WindowSpec::Cumulate { step, size, offset } => {
            format!("CUMULATE(step {step} ms, size {size} ms, offset {offset} ms)")
        }
        WindowSpec::Session { gap } => format!("SESSION(gap {gap} ms)"),
        WindowSpec::Attached { .. } => "as attached to the rows".to_string(),
    }
}

/// A frame as SQL.
fn frame_text(frame: Frame) -> String {
    let bound = |bound| match bound {
        FrameBound::UnboundedPreceding => "UNBOUNDED PRECEDING".to_owned(),
        FrameBound::Preceding(distance) => format!("{distance} PRECEDING"),
        FrameBound::CurrentRow => "CURRENT ROW".to_owned(),
        FrameBound::Following(distance) => format!("{distance} FOLLOWING"),
        FrameBound::UnboundedFollowing => "UNBOUNDED FOLLOWING".to_owned(),
    };
    let units = match frame.units {
        FrameUnits::Rows => "ROWS",
        FrameUnits::Range => "RANGE",
    };
    format!("{units} BETWEEN {} AND {}", bound(frame.start), bound(frame.end))
}
