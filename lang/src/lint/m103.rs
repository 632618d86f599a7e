//! M103: a ratio of log-probabilities that were taken at different temperatures.

use super::facts::Facts;
use crate::diag::Diagnostic;
use crate::graph::{ExprRef, Op, Unary};

pub(super) fn check(facts: &Facts) -> Vec<Diagnostic> {
    let mut found = vec![];
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
