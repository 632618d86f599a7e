//! The graph in Mermaid's language, which code hosts draw in Markdown.

use super::{describe, scopes, wires};
use crate::graph::{Graph, NodeId, NodeKind, Scope};

/// A flowchart with one box around the step and one around each evaluation; versions are dotted.
pub fn mermaid(graph: &Graph) -> String {
    let mut out = "flowchart TB\n".to_string();
    for (scope, title) in scopes(graph) {
        let id = match scope {
            Scope::Step => "step".to_string(),
            Scope::Eval(i) => format!("eval{i}"),
        };
        out += &format!("  subgraph {id}[\"{}\"]\n", escaped(&title));
        for node in graph.order(scope) {
            out += &format!("    {}\n", shape(graph, node));
        }
        out += "  end\n";
    }
    for wire in wires(graph) {
        let lines: Vec<String> = wire.lines.iter().map(|l| escaped(l)).collect();
        let text = lines.join("<br/>");
        let arrow = match wire.version {
            true => format!("-. \"{text}\" .->"),
            false => format!("-- \"{text}\" -->"),
        };
        out += &format!("  n{} {arrow} n{}\n", wire.from.0, wire.to.0);
    }
    out
}

fn shape(graph: &Graph, id: NodeId) -> String {
    let node = graph.dag.node(id);
    let text = format!(
        "<b>{}</b><br/>{}",
        escaped(&node.name),
        escaped(&describe(graph, id))
    );
    let (open, close) = match node.kind {
        NodeKind::Load { .. } => ("[(", ")]"),
        NodeKind::Map { .. } | NodeKind::Reward { .. } | NodeKind::Next { .. } => ("([", "])"),
        NodeKind::Train(_) | NodeKind::Blend { .. } => ("[[", "]]"),
        _ => ("[", "]"),
    };
    format!("n{}{open}\"{text}\"{close}", id.0)
}

/// Quotes end a text, and `#`, `<` and a backtick begin something else in it.
fn escaped(text: &str) -> String {
    let mut out = String::new();
    for c in super::printable(text).chars() {
        match c {
            '"' | '#' | '<' | '>' | '&' | '`' | '\\' => out += &format!("#{};", c as u32),
            c => out.push(c),
        }
    }
    out
}
