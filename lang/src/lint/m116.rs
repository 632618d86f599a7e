//! M116: the target of a critic depends on the critic as it is trained.

use super::facts::Facts;
use crate::diag::Diagnostic;
use crate::graph::{Binary, ExprRef, ForwardOutput, Op};

pub(super) fn check(facts: &Facts) -> Vec<Diagnostic> {
    let mut found = vec![];
    for (train, _) in facts.trains() {
        let live = facts.live(train, false);
        let values = Facts::live_values(train);
        let critic = |v| {
            let outputs = train.forwards.iter().flat_map(|f| &f.outputs);
            outputs
                .into_iter()
                .any(|(o, w)| *w == v && *o == ForwardOutput::Value)
        };
        let reads_critic = |e: ExprRef| {
            live[e.0 as usize]
                && facts
                    .values_in(e)
                    .into_iter()
                    .any(|v| values.contains(&v) && critic(v))
        };
        let target = facts.parts(train.loss).into_iter().find(|e| {
            let expr = facts.graph.expr(*e);
            // An error against a target that holds the same value.
            if let (Op::Binary(Binary::Sub), [a, b]) = (&expr.op, &expr.args[..])
                && reads_critic(*a)
                && reads_critic(*b)
            {
                return true;
            }
            let bootstraps = matches!(
                expr.op,
                Op::SuffixSum(_) | Op::PrefixSum(_) | Op::Shift { .. }
            );
            bootstraps
                && live[e.0 as usize]
                && facts
                    .values_in(*e)
                    .into_iter()
                    .any(|v| values.contains(&v) && critic(v))
        });
        let Some(target) = target else {
            continue;
        };
        let name = facts.model_name(train.model);
        let source = facts
            .values_in(target)
            .into_iter()
            .find(|v| values.contains(v));
        let mut d = Diagnostic::error(
            "M116",
            facts.home(target),
            format!(
                "the value target uses `{name}` as it is trained, so the gradient flows into the target"
            ),
        );
        if let Some(v) = source {
            d = d.label(facts.graph.value(v).span, "live here");
        }
        found.push(d.help(format!(
            "compute the target above `train {name}`, where its values are constants"
        )));
    }
    found
}
