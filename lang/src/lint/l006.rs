//! L006: a metric that is the same in every iteration.

use super::facts::Facts;
use crate::diag::Diagnostic;
use crate::graph::{Metric, Op};

pub(super) fn check(facts: &Facts) -> Vec<Diagnostic> {
    let graph = facts.graph;
    let mut all: Vec<&Metric> = graph.metrics.iter().collect();
    all.extend(graph.evals.iter().flat_map(|e| &e.metrics));
    all.extend(facts.trains().flat_map(|(t, _)| &t.metrics));
    let changes = |m: &Metric| {
        facts.parts(m.expr).into_iter().any(|e| {
            matches!(
                graph.expr(e).op,
                Op::Value(_) | Op::State(_) | Op::Iteration | Op::Index(_) | Op::AtLast(_)
            )
        })
    };
    let constant = all.into_iter().filter(|m| !changes(m));
    constant
        .map(|m| {
            Diagnostic::warning("L006", m.span, format!("`log {}` never changes", m.name))
                .help("params are in the run's manifest already")
        })
        .collect()
}
