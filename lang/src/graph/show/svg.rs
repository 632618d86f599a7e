//! The graph as a drawing.

use super::layout::{Layout, Plan, layout};
use super::{describe, wires};
use crate::graph::{Graph, NodeId, NodeKind, Scope};

/// Width of a character of the 13 px and 11 px texts, generously.
const WIDE: f64 = 7.6;
const NARROW: f64 = 6.3;
const LINE: f64 = 14.0;

/// A wire between boxes, by their position in the list.
struct Wire {
    from: usize,
    to: usize,
    dashed: bool,
    lines: Vec<String>,
}

/// A standalone SVG image.
pub fn svg(graph: &Graph) -> String {
    let nodes: Vec<NodeId> = graph.dag.order().collect();
    let index = |id: NodeId| nodes.iter().position(|n| *n == id).unwrap_or(0);
    let wires: Vec<Wire> = wires(graph)
        .into_iter()
        .map(|w| Wire {
            from: index(w.from),
            to: index(w.to),
            dashed: w.version,
            lines: w.lines,
        })
        .collect();
    let boxes: Vec<(String, String)> = nodes
        .iter()
        .map(|id| (graph.dag.node(*id).name.clone(), describe(graph, *id)))
        .collect();
    let plan = Plan {
        nodes: boxes
            .iter()
            .map(|(name, what)| {
                (
                    text_width(name, WIDE).max(text_width(what, NARROW)) + 28.0,
                    46.0,
                )
            })
            .collect(),
        edges: wires
            .iter()
            .map(|w| {
                let width = w
                    .lines
                    .iter()
                    .map(|l| text_width(l, NARROW))
                    .fold(0.0, f64::max);
                (w.from, w.to, width + 8.0, w.lines.len() as f64 * LINE + 4.0)
            })
            .collect(),
    };
    let place = layout(&plan);
    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {w:.0} {h:.0}\" width=\"{w:.0}\" height=\"{h:.0}\" font-family=\"system-ui, sans-serif\">\n<title>{}</title>\n<defs><marker id=\"tip\" viewBox=\"0 0 8 8\" refX=\"7\" refY=\"4\" markerWidth=\"7\" markerHeight=\"7\" orient=\"auto\"><path d=\"M0 0L8 4L0 8z\" fill=\"#667\"/></marker></defs>\n<rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>\n",
        escaped(&graph.name),
        w = place.width,
        h = place.height,
    );
    for (i, wire) in wires.iter().enumerate() {
        line(&mut out, &plan, &place, i, wire);
    }
    for (i, wire) in wires.iter().enumerate() {
        label_text(&mut out, &plan, &place, i, wire);
    }
    for (i, id) in nodes.iter().enumerate() {
        node_box(
            &mut out,
            graph,
            *id,
            &boxes[i],
            plan.nodes[i],
            place.nodes[i],
        );
    }
    out + "</svg>\n"
}

/// From the source's lower edge through the wire's points to the target's upper edge.
fn line(out: &mut String, plan: &Plan, place: &Layout, i: usize, wire: &Wire) {
    let (fx, fy) = place.nodes[wire.from];
    let (tx, ty) = place.nodes[wire.to];
    let start = (fx, fy + plan.nodes[wire.from].1 / 2.0);
    let end = (tx, ty - plan.nodes[wire.to].1 / 2.0 - 2.0);
    let mut path = format!("M{:.1} {:.1}", start.0, start.1);
    let mut at = start;
    for (x, top, bottom) in &place.edges[i] {
        path += &curve(at, (*x, *top));
        path += &format!("L{x:.1} {bottom:.1}");
        at = (*x, *bottom);
    }
    path += &curve(at, end);
    let dash = if wire.dashed {
        " stroke-dasharray=\"5 4\""
    } else {
        ""
    };
    *out += &format!(
        "<path d=\"{path}\" fill=\"none\" stroke=\"#667\" stroke-width=\"1.2\"{dash} marker-end=\"url(#tip)\"/>\n"
    );
}

fn curve(a: (f64, f64), b: (f64, f64)) -> String {
    let middle = (a.1 + b.1) / 2.0;
    format!(
        "C{:.1} {middle:.1} {:.1} {middle:.1} {:.1} {:.1}",
        a.0, b.0, b.0, b.1
    )
}

fn label_text(out: &mut String, plan: &Plan, place: &Layout, i: usize, wire: &Wire) {
    let Some((x, top, bottom)) = place.edges[i].first() else {
        return;
    };
    let y = (top + bottom) / 2.0;
    let (_, _, w, h) = plan.edges[i];
    *out += &format!(
        "<rect x=\"{:.1}\" y=\"{:.1}\" width=\"{w:.1}\" height=\"{h:.1}\" rx=\"3\" fill=\"#fff\"/>\n",
        x - w / 2.0,
        y - h / 2.0,
    );
    let style = if wire.dashed {
        " font-style=\"italic\""
    } else {
        ""
    };
    for (k, text) in wire.lines.iter().enumerate() {
        *out += &format!(
            "<text x=\"{x:.1}\" y=\"{:.1}\" font-size=\"11\" text-anchor=\"middle\" fill=\"#334\"{style}>{}</text>\n",
            y - h / 2.0 + LINE * (k as f64 + 0.85),
            escaped(text),
        );
    }
}

fn node_box(
    out: &mut String,
    graph: &Graph,
    id: NodeId,
    (name, what): &(String, String),
    (w, h): (f64, f64),
    (x, y): (f64, f64),
) {
    let node = graph.dag.node(id);
    let (fill, stroke) = match node.kind {
        NodeKind::Load { .. } => ("#f3f0e6", "#a89a6c"),
        NodeKind::Generate { .. } | NodeKind::Answer { .. } | NodeKind::Select { .. } => {
            ("#e5effa", "#4a7fb5")
        }
        NodeKind::Forward(_) => ("#e9f5ee", "#4c9a6d"),
        NodeKind::Reward { .. } => ("#fbeede", "#c98a3c"),
        NodeKind::Map { .. } => ("#f4f4f6", "#8a8a96"),
        NodeKind::Next { .. } => ("#f0eaf8", "#8b6cb8"),
        NodeKind::Train(_) | NodeKind::Blend { .. } => ("#f9e6ea", "#bb4b63"),
    };
    let dash = match node.scope {
        Scope::Step => "",
        Scope::Eval(_) => " stroke-dasharray=\"2 2\"",
    };
    let (left, top) = (x - w / 2.0, y - h / 2.0);
    *out += &format!(
        "<rect x=\"{left:.1}\" y=\"{top:.1}\" width=\"{w:.1}\" height=\"{h:.1}\" rx=\"7\" fill=\"{fill}\" stroke=\"{stroke}\" stroke-width=\"1.4\"{dash}/>\n<text x=\"{x:.1}\" y=\"{:.1}\" font-size=\"13\" font-weight=\"600\" text-anchor=\"middle\" fill=\"#223\">{}</text>\n<text x=\"{x:.1}\" y=\"{:.1}\" font-size=\"11\" text-anchor=\"middle\" fill=\"#556\">{}</text>\n",
        top + 19.0,
        escaped(name),
        top + 36.0,
        escaped(what),
    );
}

fn text_width(text: &str, per_character: f64) -> f64 {
    text.chars().count() as f64 * per_character
}

fn escaped(text: &str) -> String {
    super::printable(text)
        .replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
        .replace('"', "&quot;")
}
