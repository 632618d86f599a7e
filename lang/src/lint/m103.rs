//! M103: a ratio of log-probabilities that were taken at different temperatures.

use super::facts::Facts;
use crate::diag::Diagnostic;
use crate::graph::{ExprRef, NodeKind, Op, Unary, ValueId};

pub(super) fn check(facts: &Facts) -> Vec<Diagnostic> {
    let mut found: Vec<Diagnostic> = vec![];
    // A ratio to the sampling policy says more than a distance to a reference.
    let mut told: Vec<(ValueId, bool)> = vec![];
    for (i, expr) in facts.graph.exprs.iter().enumerate() {
        if !matches!(expr.op, Op::Unary(Unary::Exp)) {
            continue;
        }
        let Some((a, b)) = facts.log_ratio(expr.args[0]) else {
            continue;
        };
        if a.rollout != b.rollout || a.temperature == b.temperature {
            continue;
        }
        // Of the two, the one that was not taken at the rollout's own temperature is the cause.
        let own = facts.temperatures.get(&a.rollout).copied();
        let cause = match own == Some(a.temperature) {
            true => b.value,
            false => a.value,
        };
        let sampled = matches!(facts.makers.get(&b.value), Some(id)
            if matches!(facts.graph.dag.node(*id).kind, NodeKind::Generate { .. }));
        if let Some(known) = told.iter().position(|(value, _)| *value == cause) {
            if !sampled || told[known].1 {
                continue;
            }
            told.remove(known);
            found.remove(known);
        }
        told.push((cause, sampled));
        let (an, bn) = (facts.value_name(a.value), facts.value_name(b.value));
        found.push(
            Diagnostic::error(
                "M103",
                facts.home(ExprRef(i as u32)),
                format!(
                    "this ratio compares `{an}` at temperature {} with `{bn}` at temperature {}",
                    a.temperature, b.temperature
                ),
            )
            .label(
                facts.graph.value(a.value).span,
                format!("temperature {}", a.temperature),
            )
            .label(
                facts.graph.value(b.value).span,
                format!("temperature {}", b.temperature),
            )
            .help(
                "without `temperature:` a rollout is scored at the temperature it was sampled at",
            ),
        );
    }
    found
}
