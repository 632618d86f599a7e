//! The graph for people: text, Graphviz and a drawing.

mod dot;
mod formula;
mod layout;
mod svg;
mod text;

pub use dot::dot;
pub use formula::formula;
pub use svg::svg;
pub use text::text;

use super::{Edge, Graph, ModelId, ModelKind, NodeId, NodeKind, Scope, Selection};

/// What a node does, in a few words: `generate by policy, temperature 1`.
fn describe(graph: &Graph, id: NodeId) -> String {
    let node = graph.dag.node(id);
    match &node.kind {
        NodeKind::Load { data, axis, .. } => {
            let data = &graph.data[data.0 as usize];
            let size = match graph.axis(*axis).size {
                super::AxisSize::Fixed(n) => format!("{n} rows"),
                _ => "every row".into(),
            };
            format!("load {size} of {}", data.path)
        }
        NodeKind::Generate {
            model,
            chat,
            sampling,
            stale,
            ..
        } => {
            let mut text = format!("generate by {}", version(graph, *model, node.scope));
            if *chat {
                text += ", chat";
            }
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
            text
        }
        NodeKind::Answer { .. } => "text of the data as responses".into(),
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
                text += &format!(", {} epochs", t.epochs);
            }
            text
        }
    }
}

/// `policy@i`: the version an iteration starts with; `policy@i+1`: the one it leaves. A model that
/// is never trained has no versions.
fn version(graph: &Graph, model: ModelId, scope: Scope) -> String {
    let name = &graph.model(model).name;
    let trained = graph
        .dag
        .order()
        .any(|id| matches!(&graph.dag.node(id).kind, NodeKind::Train(t) if t.model == model));
    match (&graph.model(model).kind, trained, scope) {
        (ModelKind::Frozen(of), ..) => format!("{name} ({}@0)", graph.model(*of).name),
        (_, false, _) => name.clone(),
        (_, true, Scope::Step) => format!("{name}@i"),
        (_, true, Scope::Eval(_)) => format!("{name}@i+1"),
    }
}

/// An edge in words: `roll.logp: float[B, G, T]`, `policy@i+1`.
fn label(graph: &Graph, to: NodeId, edge: &Edge) -> String {
    match edge {
        Edge::Data(v) => {
            let v = graph.value(*v);
            format!("{}: {}", v.name, graph.show_type(&v.ty))
        }
        Edge::Rollout(r) => format!("{}: tokens", graph.rollout(*r).name),
        Edge::Version(m) => version(graph, *m, graph.dag.node(to).scope),
    }
}
