//! Components that are drawn, and the outputs between them.

use lockstep_vector_api::ComponentKind;

use crate::flow::Flow;

/// Graph of a configuration or a pipeline.
pub(super) struct Graph {
    pub(super) name: String,
    pub(super) nodes: Vec<Node>,
    pub(super) edges: Vec<Edge>,
}

pub(super) struct Node {
    pub(super) id: String,
    pub(super) family: ComponentKind,
    pub(super) kind: String,
}

/// Edge between two nodes, by their places in the list.
pub(super) struct Edge {
    pub(super) from: usize,
    pub(super) to: usize,
    /// Name of the output, if the component has several.
    pub(super) output: Option<String>,
}

impl Graph {
    pub(super) fn new(name: &str, flow: &Flow) -> Self {
        let nodes: Vec<_> = flow
            .components()
            .map(|(id, family, kind)| Node {
                id: id.to_owned(),
                family,
                kind: kind.to_owned(),
            })
            .collect();
        let place = |id: &str| nodes.iter().position(|node| node.id == id);
        let edges = flow.edges().filter_map(|(from, output, to)| {
            let name = output.strip_prefix(from)?.strip_prefix('.');
            Some(Edge {
                from: place(from)?,
                to: place(to)?,
                output: name.map(str::to_owned),
            })
        });
        Self {
            name: name.to_owned(),
            edges: edges.collect(),
            nodes,
        }
    }
}
