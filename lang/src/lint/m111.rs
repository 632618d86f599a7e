//! M111: several updates on one rollout without a limit on how far they may go.

use super::facts::Facts;
use crate::diag::Diagnostic;

pub(super) fn check(facts: &Facts) -> Vec<Diagnostic> {
    let mut found = vec![];
    for (train, span) in facts.trains() {
        let updates = facts.updates(train);
        let Some(pass) = facts.weighed(train) else {
            continue;
        };
        if updates < 2 || facts.is_clipped(train) {
            continue;
        }
        let roll = &facts.graph.rollout(pass.rollout).name;
        let name = facts.model_name(train.model);
        found.push(
            Diagnostic::warning(
                "M111",
                facts.named(span, name),
                format!("{updates} updates reuse one rollout without clipping"),
            )
            .label(pass.span, format!("after the first update `{roll}` is no longer `{name}`'s own"))
            .help(format!(
                "`clipped(exp(lp - {roll}.logp), adv)` of std.ppo limits the change; without `minibatch:` and `epochs:` there is one update"
            )),
        );
    }
    found
}
