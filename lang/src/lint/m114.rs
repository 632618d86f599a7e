//! M114: a KL estimated from samples of the wrong model.

use super::facts::Facts;
use crate::diag::Diagnostic;
use crate::graph::{Binary, ExprRef, Op};

pub(super) fn check(facts: &Facts) -> Vec<Diagnostic> {
    let mut found = vec![];
    for i in 0..facts.graph.exprs.len() {
        let e = ExprRef(i as u32);
        // A square is the same both ways.
        if matches!(facts.graph.expr(e).op, Op::Binary(Binary::Pow)) {
            continue;
        }
        let Some((p, q)) = facts.kl(e) else {
            continue;
        };
        let Some(sampler) = facts.samplers.get(&p.rollout) else {
            continue;
        };
        if p.model == *sampler || q.model != *sampler || p.rollout != q.rollout {
            continue;
        }
        let (a, b) = (facts.value_name(p.value), facts.value_name(q.value));
        let (of, is) = (facts.model_name(p.model), facts.model_name(*sampler));
        found.push(
            Diagnostic::warning(
                "M114",
                facts.home(e),
                format!("this estimates a KL from samples of `{of}`, but the samples are `{is}`'s"),
            )
            .label(
                facts.graph.value(p.value).span,
                format!("`{a}`: scored by `{of}`"),
            )
            .help(format!(
                "swap the arguments: `k3({b}, {a})`, the sampling model first"
            )),
        );
    }
    found
}
