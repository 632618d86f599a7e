//! M101: a policy gradient without anything that holds the policy near where it was sampled.

use super::facts::Facts;
use crate::diag::Diagnostic;
use crate::graph::Op;

pub(super) fn check(facts: &Facts) -> Vec<Diagnostic> {
    let mut found = vec![];
    for (train, span) in facts.trains() {
        // Several updates on one rollout are M111's.
        let Some(pass) = facts.weighed(train).filter(|_| facts.updates(train) == 1) else {
            continue;
        };
        let others = facts
            .origins(train.loss)
            .into_iter()
            .any(|v| facts.logps.get(&v).is_some_and(|l| l.model != train.model));
        let decided = facts
            .parts(train.loss)
            .into_iter()
            .any(|e| matches!(facts.graph.expr(e).op, Op::Stop));
        if others || decided || facts.is_clipped(train) {
            continue;
        }
        let name = facts.model_name(train.model);
        let roll = &facts.graph.rollout(pass.rollout).name;
        found.push(
            Diagnostic::warning(
                "M101",
                facts.named(span, name),
                format!("nothing holds `{name}` near where it was sampled: no clipping, no KL, no reference"),
            )
            .label(pass.span, format!("the loss weighs `{roll}` by a reward"))
            .help(format!(
                "`clipped(exp(lp - {roll}.logp), adv)` of std.ppo limits the change of an update; `k3(lp, ref)` of std.kl with `model ref = frozen({name})` holds it to the start"
            )),
        );
    }
    found
}
