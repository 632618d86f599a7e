//! M108: the spread of a group of one.

use super::facts::Facts;
use crate::diag::Diagnostic;
use crate::graph::{AxisSize, ExprRef, Op, Reduce};

pub(super) fn check(facts: &Facts) -> Vec<Diagnostic> {
    let mut found = vec![];
    for (i, expr) in facts.graph.exprs.iter().enumerate() {
        let Op::Reduce { op, axes, biased } = &expr.op else {
            continue;
        };
        let one = |a: &crate::graph::AxisId| facts.graph.axis(*a).size == AxisSize::Fixed(1);
        if !matches!(op, Reduce::Std | Reduce::Var) || *biased || !axes.iter().all(one) {
            continue;
        }
        let names: Vec<&str> = axes
            .iter()
            .map(|a| facts.graph.axis(*a).name.as_str())
            .collect();
        let axis = names.join(", ");
        let introduced = facts.graph.axis(axes[0]).span;
        found.push(
            Diagnostic::error(
                "M108",
                facts.home(ExprRef(i as u32)),
                format!("`{axis}` has one entry, which has no spread: this divides 0 by 0"),
            )
            .label(introduced, "one entry")
            .help("at least two are needed"),
        );
    }
    found
}
