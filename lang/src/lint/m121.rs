//! M121: a reward that no loss reads.

use super::facts::Facts;
use crate::diag::Diagnostic;
use std::collections::BTreeSet;

use crate::graph::{ForwardOutput, NodeKind, Scope, ValueId};

pub(super) fn check(facts: &Facts) -> Vec<Diagnostic> {
    let graph = facts.graph;
    if facts.trains().next().is_none() {
        return vec![];
    }
    let mut reached: BTreeSet<ValueId> = BTreeSet::new();
    for (train, _) in facts.trains() {
        reached.extend(facts.origins(train.loss));
        // What chooses the responses that are trained on reaches the loss too.
        for f in &train.forwards {
            reached.extend(facts.choosers(f.rollout));
        }
    }
    for id in graph.dag.order() {
        if let NodeKind::Next { expr, .. } = &graph.dag.node(id).kind {
            reached.extend(facts.origins(*expr));
        }
    }
    let mut found = vec![];
    for id in graph.dag.order() {
        let node = graph.dag.node(id);
        if node.scope != Scope::Step {
            continue;
        }
        let value = match &node.kind {
            NodeKind::Reward { value, .. } => Some(*value),
            NodeKind::Forward(f) => f
                .outputs
                .iter()
                .find(|(o, _)| *o == ForwardOutput::Score)
                .map(|(_, v)| *v),
            _ => None,
        };
        let Some(value) = value.filter(|v| !reached.contains(v)) else {
            continue;
        };
        found.push(
            Diagnostic::warning(
                "M121",
                graph.value(value).span,
                format!(
                    "`{}` is computed and never reaches a loss",
                    facts.value_name(value)
                ),
            )
            .help("use it in an advantage, or move it to an `eval` if it is only looked at"),
        );
    }
    found
}
