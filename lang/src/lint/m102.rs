//! M102: an importance ratio whose denominator is not the policy that sampled the responses.

use super::facts::Facts;
use crate::diag::Diagnostic;
use crate::graph::{Binary, ExprRef, Op, Unary};

pub(super) fn check(facts: &Facts) -> Vec<Diagnostic> {
    let mut found = vec![];
    for (train, _) in facts.trains() {
        let parts = facts.parts(train.loss);
        let live = Facts::live_values(train);
        for e in &parts {
            let expr = facts.graph.expr(*e);
            if !matches!(expr.op, Op::Unary(Unary::Exp)) {
                continue;
            }
            let Some((top, bottom)) = facts.log_ratio(expr.args[0]) else {
                continue;
            };
            let Some(sampler) = facts.samplers.get(&bottom.rollout) else {
                continue;
            };
            let is_live = |v| live.contains(&v);
            let own = top.model == *sampler && bottom.model == *sampler;
            if own && !is_live(top.value) && is_live(bottom.value) && weighs(facts, *e) {
                let (a, b) = (facts.value_name(top.value), facts.value_name(bottom.value));
                found.push(
                    Diagnostic::error(
                        "M102",
                        facts.home(*e),
                        format!("this ratio is upside down: `{a}` is what was sampled, `{b}` is what is trained"),
                    )
                    .help(format!("an importance ratio is `exp({b} - {a})`")),
                );
                continue;
            }
            if bottom.model == *sampler || !weighs(facts, *e) {
                continue;
            }
            let (a, b) = (facts.model_name(top.model), facts.model_name(bottom.model));
            let roll = &facts.graph.rollout(bottom.rollout).name;
            let what = if a == b {
                format!("this ratio divides by `{b}`")
            } else {
                format!("this ratio divides `{a}` by `{b}`")
            };
            found.push(
                Diagnostic::error(
                    "M102",
                    facts.home(*e),
                    format!("{what}; it needs the version that sampled `{roll}`"),
                )
                .label(
                    facts.graph.value(bottom.value).span,
                    format!("scored by `{b}`"),
                )
                .help(format!(
                    "an importance ratio divides by the sampling policy: `{roll}.logp`"
                )),
            );
        }
    }
    found
}

/// Whether a ratio weighs something: it is a factor beside a value. Inside a KL it is only added.
fn weighs(facts: &Facts, e: ExprRef) -> bool {
    facts.users[e.0 as usize].iter().any(|u| {
        let user = facts.graph.expr(*u);
        match &user.op {
            Op::Binary(Binary::Mul) => user
                .args
                .iter()
                .any(|a| *a != e && !matches!(facts.graph.expr(*a).op, Op::Number(_))),
            Op::Clamp | Op::Stop | Op::Binary(Binary::Min | Binary::Max) => weighs(facts, *u),
            _ => false,
        }
    })
}
