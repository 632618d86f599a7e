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
        let ratios: Vec<(usize, bool)> = facts
            .graph
            .exprs
            .iter()
            .enumerate()
            .filter(|(_, e)| matches!(e.op, Op::Unary(Unary::Exp)))
            .filter_map(|(i, e)| {
                let (a, b) = facts.log_ratio(e.args[0])?;
                let sampled = facts.makers.get(&b.value) == Some(&id);
                (a.rollout == *rollout && b.rollout == *rollout).then_some((i, sampled))
            })
            .collect();
        // The one to the sampling policy, where there is one.
        let to_sampler = ratios.iter().find(|(_, sampled)| *sampled);
        let Some((ratio, _)) = to_sampler.or(ratios.first()).copied() else {
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
