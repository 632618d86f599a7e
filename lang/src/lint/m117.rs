//! M117: an evaluation that samples once a prompt.

use super::facts::Facts;
use crate::diag::Diagnostic;
use crate::graph::{AxisSize, NodeKind, Scope};

pub(super) fn check(facts: &Facts) -> Vec<Diagnostic> {
    let graph = facts.graph;
    let mut found = vec![];
    for id in graph.dag.order() {
        let node = graph.dag.node(id);
        let (
            Scope::Eval(_),
            NodeKind::Generate {
                rollout, sampling, ..
            },
        ) = (node.scope, &node.kind)
        else {
            continue;
        };
        let roll = graph.rollout(*rollout);
        if sampling.temperature == 0.0 || roll.group.is_some() {
            continue;
        }
        // The standard error of a rate near one half.
        let wobble = match graph.axis(roll.rows).size {
            AxisSize::Fixed(n) => format!(" by ±{:.1} %", 50.0 / (n as f64).sqrt()),
            _ => String::new(),
        };
        found.push(
            Diagnostic::warning(
                "M117",
                node.span,
                format!(
                    "this evaluation samples at temperature {} once a prompt; a rate over it will wobble{wobble}",
                    sampling.temperature
                ),
            )
            .help("`temperature: 0` is greedy; `[G: 8, T: …]` averages over eight responses a prompt"),
        );
    }
    found
}
