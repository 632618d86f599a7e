//! M106: a loss that does not depend on the model it trains.

use super::facts::Facts;
use crate::diag::Diagnostic;
use crate::graph::{Binary, Expr, Op, Reduce, Train, Unary};

pub(super) fn check(facts: &Facts) -> Vec<Diagnostic> {
    let mut found = vec![];
    for (train, span) in facts.trains() {
        if differentiable(facts, train)[train.loss.0 as usize] {
            continue;
        }
        let name = facts.model_name(train.model);
        let behind_stop = facts.live(train, true)[train.loss.0 as usize];
        let help = if facts.live(train, false)[train.loss.0 as usize] {
            "a comparison, a count or a rounding has no gradient".to_string()
        } else if behind_stop {
            "everything live stands behind `stop`".to_string()
        } else {
            format!(
                "inside `train {name}`, `logp({name}, roll)` and `entropy({name}, roll)` are live"
            )
        };
        found.push(
            Diagnostic::error(
                "M106",
                facts.loss_place(train, span),
                format!("this loss does not depend on `{name}`; every gradient is zero"),
            )
            .help(help),
        );
    }
    found
}

/// For every expression, whether a gradient can flow through it to a live value.
pub(super) fn differentiable(facts: &Facts, train: &Train) -> Vec<bool> {
    let values = Facts::live_values(train);
    let mut open = vec![false; facts.graph.exprs.len()];
    for (i, e) in facts.graph.exprs.iter().enumerate() {
        open[i] = match &e.op {
            Op::Value(v) => values.contains(v),
            _ => carrying(e).iter().any(|a| open[a.0 as usize]),
        };
    }
    open
}

/// The operands that an operation has a derivative with respect to.
fn carrying(e: &Expr) -> &[crate::graph::ExprRef] {
    use {Binary as B, Unary as U};
    match &e.op {
        Op::Stop | Op::Len(_) | Op::Index(_) | Op::OnText(_) => &[],
        Op::Unary(U::Not | U::Sign | U::Floor | U::Ceil | U::Round) => &[],
        Op::Binary(B::Eq | B::Ne | B::Lt | B::Le | B::Gt | B::Ge | B::And | B::Or) => &[],
        Op::Reduce {
            op: Reduce::Any | Reduce::All | Reduce::Count | Reduce::Argmax,
            ..
        } => &[],
        // The condition chooses, it does not carry.
        Op::Select => &e.args[1..],
        Op::Pick(_) => &e.args[..1],
        _ => &e.args,
    }
}
