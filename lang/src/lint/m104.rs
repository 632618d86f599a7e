//! M104: an importance ratio over responses drawn from another distribution than the one they are measured under.

use super::facts::Facts;
use crate::diag::Diagnostic;
use crate::graph::{ExprRef, NodeKind, Op, Sampling, Unary};

pub(super) fn check(facts: &Facts) -> Vec<Diagnostic> {
    let mut found = vec![];
    for id in facts.graph.dag.order() {
        let node = facts.graph.dag.node(id);
        let NodeKind::Generate {
            rollout, sampling, ..
        } = &node.kind
        else {
            continue;
        };
        let Some(cut) = truncation(sampling) else {
            continue;
        };
        let ratio = facts.graph.exprs.iter().position(|e| {
            matches!(e.op, Op::Unary(Unary::Exp))
                && facts
                    .log_ratio(e.args[0])
                    .is_some_and(|(a, b)| a.rollout == *rollout && b.rollout == *rollout)
        });
        let Some(ratio) = ratio else {
            continue;
        };
        let name = &facts.graph.rollout(*rollout).name;
        found.push(
            Diagnostic::warning(
                "M104",
                node.span,
                format!("{cut} reshapes the distribution that `{name}.logp` is measured under; the ratio is biased"),
            )
            .label(facts.home(ExprRef(ratio as u32)), "this ratio")
            .help("sample from the whole distribution where a ratio is trained on"),
        );
    }
    found
}

fn truncation(sampling: &Sampling) -> Option<String> {
    if sampling.temperature == 0.0 {
        return Some("`temperature: 0`".into());
    }
    match (sampling.top_p, sampling.top_k) {
        (Some(p), _) if p < 1.0 => Some(format!("`top_p: {p}`")),
        (_, Some(k)) => Some(format!("`top_k: {k}`")),
        _ => None,
    }
}
