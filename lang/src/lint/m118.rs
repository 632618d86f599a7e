//! M118: an evaluation on the rows that are trained on.

use super::facts::Facts;
use crate::diag::Diagnostic;
use crate::graph::{Data, NodeKind, Scope};

pub(super) fn check(facts: &Facts) -> Vec<Diagnostic> {
    let graph = facts.graph;
    let load = |scope: fn(Scope) -> bool| {
        graph.dag.order().filter_map(move |id| {
            let node = graph.dag.node(id);
            match (&node.kind, scope(node.scope)) {
                (NodeKind::Load { data, .. }, true) => Some((&graph.data[data.0 as usize], node)),
                _ => None,
            }
        })
    };
    let trains = facts.trains().next().is_some();
    let Some((trained, _)) = load(|s| s == Scope::Step).next().filter(|_| trains) else {
        return vec![];
    };
    let mut found = vec![];
    for (evaluated, node) in load(|s| s != Scope::Step) {
        let part = |d: &Data| (d.path.clone(), d.split.clone(), d.config.clone());
        if part(evaluated) != part(trained) {
            continue;
        }
        let at = match graph
            .evals
            .iter()
            .find(|e| e.span.lo <= node.span.lo && node.span.hi <= e.span.hi)
        {
            Some(e) => facts.word(e.span, &evaluated.name).unwrap_or(node.span),
            None => node.span,
        };
        let mut d = Diagnostic::error(
            "M118",
            at,
            format!("`eval` reads `{}`, which `step` trains on", evaluated.path),
        )
        .label(trained.path_span, "trained on");
        if evaluated.name != trained.name {
            d = d.label(evaluated.path_span, "evaluated on");
        }
        found.push(d.help("hold some rows out in a file of their own"));
    }
    found
}
