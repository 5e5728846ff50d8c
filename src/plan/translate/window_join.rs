//! Window joins: equal windows of both sides are joined when they have ended.

use std::sync::Arc;

use datafusion_common::DFSchema;
use datafusion_expr::{Expr, Join};

use super::calc::column_index;
use super::join::{KeyedInputs, Sides};
use super::{Facts, Translation, Windows};
use crate::error::{Error, Result};
use crate::plan::error::unwrap;
use crate::plan::stream::{NodeId, NodeKind, NodeParallelism, StateBound};
use crate::types::{JoinKind, NullKeys, WindowColumn, WindowSpec};

/// The columns of the windows' ends, left and right.
pub(super) type WindowEnds = [usize; 2];

impl Translation<'_> {
    /// The ends of the windows, if equal windows of both sides are joined.
    pub(super) fn joined_windows(&self, sides: &Sides<'_>, inputs: [NodeId; 2]) -> Option<WindowEnds> {
        if sides.kind == JoinKind::Mark || sides.null_keys == NullKeys::Anything {
            return None;
        }
        let which = |port: usize, expression: &Expr| {
            let column = column_index(expression, sides.inputs[port].schema())?;
            let windows = self.windows.get(&inputs[port])?;
            let (_, which) = windows.columns.iter().find(|(index, _)| *index == column)?;
            (!windows.padded.contains(&column)).then_some((column, *which))
        };
        let joined = |wanted: WindowColumn| {
            sides.on.iter().find_map(|(left, right)| {
                let ((left, of_left), (right, of_right)) = (which(0, left)?, which(1, right)?);
                (of_left == wanted && of_right == wanted).then_some([left, right])
            })
        };
        let window = self.window_of(inputs[0])?;
        joined(WindowColumn::Start)?;
        if self.window_of(inputs[1]) == Some(window) { joined(WindowColumn::End) } else { None }
    }

    /// The node of a window join.
    pub(super) fn window_join(
        &mut self,
        join: &Join,
        sides: Sides<'_>,
        inputs: [NodeId; 2],
        ends: WindowEnds,
    ) -> Result<NodeId> {
        self.require_inserts(inputs, "a window join")?;
        if inputs.iter().any(|input| self.windows.get(input).is_some_and(|windows| windows.processing)) {
            return Err(Error::sql("a join of windows of processing time is not supported")
                .hint("which rows meet would be a matter of chance; use windows of event time"));
        }
        let (kind, null_keys, condition) = (sides.kind, sides.null_keys, sides.filter.clone());
        let schemas = sides.inputs.map(|input| Arc::clone(input.schema()));
        let windows = inputs.map(|input| self.windows.get(&input).cloned().unwrap_or_default());
        let KeyedInputs { nodes, sides: keyed, edges, single } = self.keyed_inputs(sides, inputs)?;
        let mut facts = Facts::plain(Arc::clone(join.schema.inner()));
        facts.upsert_key = self.joined_key(kind, nodes, [&keyed[0], &keyed[1]]);
        if kind.emits_pairs() {
            facts.rowtime = self.both(nodes, &keyed, |node| &node.rowtime);
            facts.proctime = self.both(nodes, &keyed, |node| &node.proctime);
        } else {
            facts.rowtime = self.node(inputs[0]).rowtime.clone();
            facts.proctime = self.node(inputs[0]).proctime.clone();
        }
        facts.state = StateBound::Bounded("a window's rows go when the watermark passes its end".into());
        if single {
            facts.parallelism = NodeParallelism::Single;
        }
        let pairs = match &condition {
            Some(_) => Arc::new(schemas[0].join(&schemas[1]).map_err(unwrap)?),
            None => Arc::new(DFSchema::empty()),
        };
        let (width, local) = (keyed[0].width, windows[0].local);
        let node = NodeKind::WindowJoin { kind, sides: keyed, ends, local, condition, pairs, null_keys };
        let id = self.add(node, edges, facts);
        self.windows.insert(id, windows_of_pairs(kind, windows, width));
        Ok(id)
    }

    /// The windows that a node's rows were put in.
    fn window_of(&self, mut id: NodeId) -> Option<WindowSpec> {
        loop {
            match &self.node(id).kind {
                NodeKind::WindowAssign { window, .. } => return Some(*window),
                NodeKind::SessionAssign { gap, .. } => return Some(WindowSpec::Session { gap: *gap }),
                NodeKind::WindowAggregate { window, .. } if !matches!(window, WindowSpec::Attached { .. }) => {
                    return Some(*window);
                }
                _ => {}
            }
            match self.node(id).inputs.as_slice() {
                [only] => id = only.from,
                // Both sides have the same.
                [left, _] if matches!(self.node(id).kind, NodeKind::WindowJoin { .. }) => id = left.from,
                _ => return None,
            }
        }
    }
}

/// The window columns of joined rows.
fn windows_of_pairs(kind: JoinKind, [left, right]: [Windows; 2], width: usize) -> Windows {
    let local = left.local;
    let of = |port: usize, windows: Windows| {
        let moved = |column: usize| if port == 0 { column } else { column + width };
        let columns: Vec<_> = windows.columns.into_iter().map(|(column, which)| (moved(column), which)).collect();
        let others_kept = kind.pads(1 - port);
        let padded: Vec<usize> = match others_kept {
            true => columns.iter().map(|(column, _)| *column).collect(),
            false => windows.padded.into_iter().map(moved).collect(),
        };
        let times: Vec<usize> = windows.times.into_iter().map(moved).collect();
        (columns, padded, times)
    };
    let (mut columns, mut padded, mut times) = of(0, left);
    if kind.emits_pairs() {
        let (more_columns, more_padded, more_times) = of(1, right);
        columns.extend(more_columns);
        padded.extend(more_padded);
        times.extend(more_times);
    }
    Windows { columns, padded, times, local, ..Windows::default() }
}
