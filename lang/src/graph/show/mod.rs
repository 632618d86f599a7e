//! The graph for people: text, Graphviz, Mermaid and a drawing.

mod dot;
mod formula;
mod layout;
mod mermaid;
mod svg;
mod text;

pub use dot::dot;
pub use formula::formula;
pub use mermaid::mermaid;
pub use svg::svg;
pub use text::text;

use super::{
    Edge, ExprRef, Graph, ModelId, ModelKind, NodeId, NodeKind, Op, Rollout, Scope, Selection, Type,
};
use crate::graph::Elem;

/// What a node does, in a few words: `generate by policy, temperature 1`.
fn describe(graph: &Graph, id: NodeId) -> String {
    let node = graph.dag.node(id);
    match &node.kind {
        NodeKind::Load { data, axis, .. } => {
            let data = &graph.data[data.0 as usize];
            let size = match graph.axis(*axis).size {
                super::AxisSize::Fixed(n) => count(n, "row"),
                _ => "every row".into(),
            };
            format!("load {size} of {}", data.path)
        }
        NodeKind::Generate {
            model,
            prompt: from,
            chat,
            sampling,
            stale,
            ..
        } => {
            let mut text = format!("generate by {}", version(graph, *model, node.scope));
            text += &format!(", from {}", short(&prompt(graph, *from, *chat)));
            text += &format!(", temperature {}", sampling.temperature);
            if let Some(p) = sampling.top_p {
                text += &format!(", top_p {p}");
            }
            if let Some(k) = sampling.top_k {
                text += &format!(", top_k {k}");
            }
            if *stale > 0 {
                text += &format!(", up to {stale} versions old");
            }
            if sampling.min_tokens > 0 {
                text += &format!(", min_tokens {}", sampling.min_tokens);
            }
            if !sampling.stop.is_empty() {
                let quoted = sampling.stop.iter().map(|s| format!("{s:?}"));
                text += &format!(", stop {}", quoted.collect::<Vec<_>>().join(" "));
            }
            text
        }
        NodeKind::Answer {
            prompt: from,
            chat,
            text,
            ..
        } => format!(
            "{} as responses to {}",
            short(&formula(graph, *text)),
            short(&prompt(graph, *from, *chat))
        ),
        NodeKind::Select { from, by, .. } => {
            let from = &graph.rollout(*from).name;
            match by {
                Selection::Pick { .. } => format!("pick one response of {from}"),
                Selection::Top { into, .. } => match graph.axis(*into).size {
                    super::AxisSize::Fixed(k) => format!("keep the top {k} responses of {from}"),
                    _ => format!("keep the top responses of {from}"),
                },
            }
        }
        NodeKind::Next { .. } => "set for the next iteration".into(),
        NodeKind::Blend { model, toward, .. } => format!(
            "move {} towards {}",
            graph.model(*model).name,
            graph.model(*toward).name
        ),
        NodeKind::Forward(f) => format!("score by {}", version(graph, f.model, node.scope)),
        NodeKind::Reward { reward, .. } => {
            format!("reward {}", graph.rewards[reward.0 as usize].name)
        }
        NodeKind::Map { .. } => "compute".into(),
        NodeKind::Train(t) => {
            let mut text = format!("make the next version of {}", graph.model(t.model).name);
            if let Some(n) = t.minibatch {
                text += &format!(", minibatch {n}");
            }
            if t.epochs > 1 {
                text += &format!(", {}", count(t.epochs, "epoch"));
            }
            text
        }
    }
}

/// `1 row`, `2 rows`.
fn count(n: usize, word: &str) -> String {
    match n {
        1 => format!("1 {word}"),
        n => format!("{n} {word}s"),
    }
}

/// A prompt as the program writes it.
fn prompt(graph: &Graph, prompt: ExprRef, chat: bool) -> String {
    let text = formula(graph, prompt);
    // A column of chats is a prompt by itself.
    match chat && graph.expr(prompt).ty.elem != Elem::Chat {
        true => format!("chat({text})"),
        false => text,
    }
}

/// A formula that has to share a line; the text form has it whole.
fn short(formula: &str) -> String {
    const LONGEST: usize = 48;
    if formula.chars().count() <= LONGEST {
        return formula.into();
    }
    let head: String = formula.chars().take(LONGEST - 1).collect();
    head + "…"
}

/// Whether an expression is a name alone.
fn is_name(graph: &Graph, e: ExprRef) -> bool {
    matches!(graph.expr(e).op, Op::Value(_))
}

/// `policy@start`: the version an iteration starts with; `policy@new`: the one it makes; `policy@initial`: the
/// one before all. A model that never changes has no versions.
fn version(graph: &Graph, model: ModelId, scope: Scope) -> String {
    let name = &graph.model(model).name;
    let changes = graph.dag.order().any(|id| makes(graph, id, model));
    match (&graph.model(model).kind, changes, scope) {
        (_, true, Scope::Step) => format!("{name}@start"),
        (_, true, Scope::Eval(_)) => format!("{name}@new"),
        (ModelKind::Frozen(of), ..) => format!("{name} ({}@initial)", graph.model(*of).name),
        (_, false, _) => name.clone(),
    }
}

/// Whether a node makes the next version of a model.
fn makes(graph: &Graph, id: NodeId, model: ModelId) -> bool {
    match &graph.dag.node(id).kind {
        NodeKind::Train(t) => t.model == model,
        NodeKind::Blend { model: m, .. } => *m == model,
        _ => false,
    }
}

/// An edge in words: `roll.logp: float[B, G, T]`, `policy@new`.
fn label(graph: &Graph, from: NodeId, edge: &Edge) -> String {
    match edge {
        Edge::Data(v) => {
            let v = graph.value(*v);
            format!("{}: {}", v.name, graph.show_type(&v.ty))
        }
        Edge::Rollout(r) => {
            let rollout = graph.rollout(*r);
            format!("{}: {}", rollout.name, tokens(graph, rollout))
        }
        Edge::Version(m) => {
            let which = match makes(graph, from, *m) {
                true => "new",
                false => "start",
            };
            format!("{}@{which}", graph.model(*m).name)
        }
    }
}

/// `tokens[B, G, T]`
fn tokens(graph: &Graph, rollout: &Rollout) -> String {
    let axes = [
        Some(rollout.rows),
        rollout.over,
        rollout.group,
        Some(rollout.tokens),
    ];
    let ty = Type {
        elem: Elem::Int,
        axes: axes.into_iter().flatten().collect(),
    };
    let shown = graph.show_type(&ty);
    shown.replacen(Elem::Int.name(), "tokens", 1)
}

/// Everything that flows the same way between the same two nodes; a version is drawn apart from data.
struct Wire {
    from: NodeId,
    to: NodeId,
    version: bool,
    /// What flows, one line each.
    lines: Vec<String>,
}

fn wires(graph: &Graph) -> Vec<Wire> {
    let mut wires: Vec<Wire> = vec![];
    for (from, to, edge) in graph.dag.edges() {
        let version = matches!(edge, Edge::Version(_));
        let text = label(graph, from, edge);
        let known = wires
            .iter_mut()
            .find(|w| (w.from, w.to, w.version) == (from, to, version));
        match known {
            Some(wire) => wire.lines.push(text),
            None => wires.push(Wire {
                from,
                to,
                version,
                lines: vec![text],
            }),
        }
    }
    wires
}

/// The step and every evaluation, with their titles.
fn scopes(graph: &Graph) -> Vec<(Scope, String)> {
    let evals = graph.evals.iter().enumerate().map(|(i, eval)| {
        let title = format!("eval every {}", count(eval.every, "iteration"));
        (Scope::Eval(i as u32), title)
    });
    std::iter::once((Scope::Step, "step".to_string()))
        .chain(evals)
        .collect()
}

/// A text without line ends and control characters, which the drawings' languages do not take.
fn printable(text: &str) -> String {
    let plain = |c: char| if c.is_control() { ' ' } else { c };
    text.chars().map(plain).collect()
}
