//! P214: a plan that names a call which the program does not have.

use std::collections::BTreeSet;

use super::facts::Facts;
use crate::diag::Diagnostic;
use crate::graph::{NodeKind, Placed};

pub(super) fn check(facts: &Facts) -> Vec<Diagnostic> {
    facts
        .placed()
        .filter_map(|call| unknown_call(facts, call))
        .collect()
}

fn unknown_call(facts: &Facts, call: &Placed) -> Option<Diagnostic> {
    let names = placeable(facts);
    if names.contains(call.name.as_str()) {
        return None;
    }
    let all: Vec<&str> = names.iter().copied().collect();
    let d = Diagnostic::error(
        "P214",
        call.name_span,
        format!(
            "`place` names `{}`; this program has `{}`",
            call.name,
            all.join("`, `")
        ),
    );
    let near = all
        .iter()
        .map(|n| (strsim::osa_distance(n, &call.name), *n))
        .min()
        .filter(|(distance, _)| *distance <= 2);
    Some(match near {
        Some((_, near)) if !near.starts_with("train ") && !call.name.starts_with("train ") => d
            .help(format!("a similar one: `{near}`"))
            .guess(format!("use `{near}`"), vec![(call.name_span, near.into())]),
        Some((_, near)) => d.help(format!("a similar one: `{near}`")),
        None => d,
    })
}

/// The calls that use devices.
fn placeable<'g>(facts: &Facts<'g>) -> BTreeSet<&'g str> {
    let nodes = facts.graph.dag.order().map(|id| facts.graph.dag.node(id));
    nodes
        .filter(|n| {
            matches!(
                n.kind,
                NodeKind::Generate { .. }
                    | NodeKind::Forward(_)
                    | NodeKind::Train(_)
                    | NodeKind::Reward { .. }
            )
        })
        .map(|n| n.name.as_str())
        .collect()
}
