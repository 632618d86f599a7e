//! Nodes and edges in petgraph's acyclic graph: a cycle is refused when its last edge is added.

use petgraph::Direction;
use petgraph::acyclic::Acyclic;
use petgraph::data::Build;
use petgraph::stable_graph::{NodeIndex, StableDiGraph};
use petgraph::visit::{EdgeRef, IntoEdgeReferences};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::{Edge, Node};

/// Names a node of one [`Dag`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct NodeId(pub u32);

/// The acyclic graph of calls.
#[derive(Clone, Debug, Default)]
pub struct Dag {
    inner: Acyclic<StableDiGraph<Node, Edge>>,
}

impl Dag {
    /// Adds a node without edges.
    pub fn add(&mut self, node: Node) -> NodeId {
        NodeId(self.inner.add_node(node).index() as u32)
    }

    /// Adds an edge; false when it would close a cycle.
    pub fn connect(&mut self, from: NodeId, to: NodeId, edge: Edge) -> bool {
        self.inner
            .try_add_edge(index(from), index(to), edge)
            .is_ok()
    }

    /// A node. Ids come only from [`Dag::add`] of the same value.
    pub fn node(&self, id: NodeId) -> &Node {
        &self.inner.inner()[index(id)]
    }

    /// All nodes in an order in which every source precedes its targets.
    pub fn order(&self) -> impl Iterator<Item = NodeId> + '_ {
        self.inner.nodes_iter().map(|i| NodeId(i.index() as u32))
    }

    /// Edges as (from, to, what).
    pub fn edges(&self) -> impl Iterator<Item = (NodeId, NodeId, &Edge)> + '_ {
        let inner = self.inner.inner();
        inner.edge_references().map(|e| {
            (
                NodeId(e.source().index() as u32),
                NodeId(e.target().index() as u32),
                e.weight(),
            )
        })
    }

    /// What flows into a node.
    pub fn inputs(&self, id: NodeId) -> impl Iterator<Item = (NodeId, &Edge)> + '_ {
        let inner = self.inner.inner();
        inner
            .edges_directed(index(id), Direction::Incoming)
            .map(|e| (NodeId(e.source().index() as u32), e.weight()))
    }
}

fn index(id: NodeId) -> NodeIndex {
    NodeIndex::new(id.0 as usize)
}

#[derive(Serialize, Deserialize)]
struct Flat {
    nodes: Vec<Node>,
    edges: Vec<(u32, u32, Edge)>,
}

impl Serialize for Dag {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        let inner = self.inner.inner();
        // Nodes are never removed, so indices are dense and insertion order is index order.
        let nodes = inner.node_indices().map(|i| inner[i].clone()).collect();
        let edges = self
            .edges()
            .map(|(a, b, e)| (a.0, b.0, e.clone()))
            .collect();
        Flat { nodes, edges }.serialize(s)
    }
}

impl<'de> Deserialize<'de> for Dag {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        let flat = Flat::deserialize(d)?;
        let mut dag = Dag::default();
        let count = flat.nodes.len() as u32;
        for node in flat.nodes {
            dag.add(node);
        }
        for (from, to, edge) in flat.edges {
            if from >= count || to >= count || !dag.connect(NodeId(from), NodeId(to), edge) {
                return Err(serde::de::Error::custom(
                    "the edges do not form an acyclic graph",
                ));
            }
        }
        Ok(dag)
    }
}
