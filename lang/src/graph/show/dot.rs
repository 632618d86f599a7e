//! The graph in Graphviz's language.

use super::{describe, label, scopes};
use crate::graph::{Edge, Graph, NodeId, NodeKind, Scope};

/// A digraph with one cluster for the step and one for each evaluation.
pub fn dot(graph: &Graph) -> String {
    let mut out = format!(
        "digraph {} {{\n  rankdir=TB;\n  node [fontname=\"sans-serif\", shape=box, style=\"rounded\"];\n  edge [fontname=\"sans-serif\", fontsize=10];\n",
        quoted(&graph.name)
    );
    for (scope, title) in scopes(graph) {
        let id = match scope {
            Scope::Step => "cluster_step".to_string(),
            Scope::Eval(i) => format!("cluster_eval_{i}"),
        };
        out += &format!("  subgraph {id} {{\n    label={};\n", quoted(&title));
        for node in graph.order(scope) {
            out += &node_line(graph, node);
        }
        out += "  }\n";
    }
    for (from, to, edge) in graph.dag.edges() {
        let style = match edge {
            Edge::Version(_) => ", style=dashed",
            _ => "",
        };
        out += &format!(
            "  n{} -> n{} [label={}{style}];\n",
            from.0,
            to.0,
            quoted(&label(graph, from, edge))
        );
    }
    out + "}\n"
}

fn node_line(graph: &Graph, id: NodeId) -> String {
    let node = graph.dag.node(id);
    let text = format!(
        "{}\\n{}",
        escaped(&node.name),
        escaped(&describe(graph, id))
    );
    let shape = match node.kind {
        NodeKind::Load { .. } => ", shape=cylinder",
        NodeKind::Train(_) => ", penwidth=2",
        NodeKind::Map { .. } | NodeKind::Reward { .. } => ", shape=ellipse",
        _ => "",
    };
    format!("    n{} [label=\"{text}\"{shape}];\n", id.0)
}

fn quoted(text: &str) -> String {
    format!("\"{}\"", escaped(text))
}

fn escaped(text: &str) -> String {
    super::printable(text)
        .replace('\\', "\\\\")
        .replace('"', "\\\"")
}
