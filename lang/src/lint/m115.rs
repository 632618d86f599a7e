//! M115: a KL between a model and itself.

use super::facts::Facts;
use crate::diag::Diagnostic;
use std::collections::BTreeSet;

use crate::graph::{ExprRef, ValueId};

pub(super) fn check(facts: &Facts) -> Vec<Diagnostic> {
    let mut found: Vec<Diagnostic> = vec![];
    let live: BTreeSet<ValueId> = facts
        .trains()
        .flat_map(|(t, _)| Facts::live_values(t))
        .collect();
    let mut losses: BTreeSet<ExprRef> = BTreeSet::new();
    // After the first of several updates a policy differs from what it was: such a KL holds it there.
    for (train, _) in facts.trains().filter(|(t, _)| facts.updates(t) == 1) {
        losses.extend(facts.parts(train.loss));
    }
    for i in 0..facts.graph.exprs.len() {
        let e = ExprRef(i as u32);
        let pair = facts.kl(e).filter(|_| losses.contains(&e));
        let Some((p, q)) = pair else {
            continue;
        };
        if p.model != q.model || p.rollout != q.rollout || p.temperature != q.temperature {
            continue;
        }
        // What was sampled is no reference that someone declared.
        if facts.is_sampled(p.value) || facts.is_sampled(q.value) {
            continue;
        }
        // Of the two, the one that stands for a reference.
        let reference = match live.contains(&q.value) {
            true => p,
            false => q,
        };
        let (name, model) = (facts.value_name(reference.value), facts.model_name(p.model));
        let at = facts.graph.value(reference.value).span;
        if found
            .iter()
            .any(|d| d.labels.get(1).is_some_and(|l| l.span == at))
        {
            continue;
        }
        found.push(
            Diagnostic::warning(
                "M115",
                facts.home(e),
                format!(
                    "`{name}` is scored by `{model}` itself; this KL starts at 0 and stays there"
                ),
            )
            .label(at, format!("scored by `{model}`"))
            .help(format!(
                "a reference has weights of its own: `model ref = frozen({model})`"
            )),
        );
    }
    found
}
