//! From a stream graph to tasks: how parallel each node runs, and which nodes share a task.

use crate::plan::stream::{Distribution, Edge, NodeId, NodeKind, NodeParallelism, StreamGraph};

/// How a graph is laid out.
#[derive(Debug)]
pub struct Layout {
    /// Subtasks of each node.
    pub parallelism: Vec<usize>,
    /// Nodes that run in one task, in order; the first is a source or reads from channels.
    pub chains: Vec<Vec<NodeId>>,
    /// The users of each node: node and port.
    pub users: Vec<Vec<(NodeId, usize)>>,
}

impl Layout {
    /// Lays out `graph` at `parallelism`.
    pub fn new(graph: &StreamGraph, parallelism: usize) -> Layout {
        let subtasks = subtasks(graph, parallelism);
        let mut users = vec![Vec::new(); graph.nodes.len()];
        for (user, node) in graph.nodes.iter().enumerate() {
            for (port, edge) in node.inputs.iter().enumerate() {
                users[edge.from].push((user, port));
            }
        }
        let mut chains: Vec<Vec<NodeId>> = Vec::new();
        let mut chain_of = vec![0; graph.nodes.len()];
        for (id, node) in graph.nodes.iter().enumerate() {
            // Nodes stand in topological order, so the producer's chain is known and the producer is its last node.
            chain_of[id] = match &node.inputs[..] {
                [edge] if users[edge.from].len() == 1 && stays(edge, subtasks[edge.from], subtasks[id]) => {
                    chains[chain_of[edge.from]].push(id);
                    chain_of[edge.from]
                }
                _ => {
                    chains.push(vec![id]);
                    chains.len() - 1
                }
            };
        }
        Layout { parallelism: subtasks, chains, users }
    }
}

/// Whether every row of an edge stays in its subtask.
fn stays(edge: &Edge, from: usize, to: usize) -> bool {
    from == to && (from == 1 || edge.distribution == Distribution::Forward)
}

/// A node that only takes rows as they are spread runs as parallel as what feeds it, so that it can share its task.
fn subtasks(graph: &StreamGraph, parallelism: usize) -> Vec<usize> {
    let mut subtasks: Vec<usize> = Vec::with_capacity(graph.nodes.len());
    for node in &graph.nodes {
        let single = node.parallelism == NodeParallelism::Single || matches!(node.kind, NodeKind::Values { .. });
        let forward = |edge: &Edge| edge.distribution == Distribution::Forward;
        subtasks.push(if single {
            1
        } else if !node.inputs.is_empty() && node.inputs.iter().all(forward) {
            node.inputs.iter().map(|edge| subtasks[edge.from]).max().unwrap_or(1)
        } else {
            parallelism
        });
    }
    subtasks
}
