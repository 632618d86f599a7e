//! M108: the spread of a group of one, or its distance from its own mean.

use super::facts::Facts;
use crate::diag::Diagnostic;
use crate::graph::{AxisId, AxisSize, Binary, Expr, ExprRef, Op, Reduce};

pub(super) fn check(facts: &Facts) -> Vec<Diagnostic> {
    let mut found = vec![];
    for (i, expr) in facts.graph.exprs.iter().enumerate() {
        found.extend(own_mean(facts, i, expr));
        let Op::Reduce { op, axes, biased } = &expr.op else {
            continue;
        };
        let one = |a: &AxisId| facts.graph.axis(*a).size == AxisSize::Fixed(1);
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

/// `r - mean(r, G)` where `G` has one entry.
fn own_mean(facts: &Facts, i: usize, expr: &Expr) -> Option<Diagnostic> {
    let Op::Binary(Binary::Sub) = expr.op else {
        return None;
    };
    let Op::Reduce {
        op: Reduce::Mean,
        axes,
        ..
    } = &facts.graph.expr(expr.args[1]).op
    else {
        return None;
    };
    let one = |a: &AxisId| facts.graph.axis(*a).size == AxisSize::Fixed(1);
    // Where it is divided by the spread, the spread is reported.
    let divided = facts.users[i].iter().any(|u| {
        let user = facts.graph.expr(*u);
        matches!(user.op, Op::Binary(Binary::Div)) && user.args[0].0 as usize == i
    });
    if facts.graph.expr(expr.args[1]).args[0] != expr.args[0] || !axes.iter().all(one) || divided {
        return None;
    }
    let axis = &facts.graph.axis(axes[0]).name;
    Some(
        Diagnostic::error(
            "M108",
            facts.home(ExprRef(i as u32)),
            format!("`{axis}` has one entry, which is its own mean: this is always 0"),
        )
        .label(facts.graph.axis(axes[0]).span, "one entry")
        .help("at least two are needed"),
    )
}
