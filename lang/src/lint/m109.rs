//! M109: division by a standard deviation that can be 0.

use super::facts::Facts;
use crate::diag::Diagnostic;
use crate::graph::{Binary, ExprRef, Op, Reduce};

pub(super) fn check(facts: &Facts) -> Vec<Diagnostic> {
    let mut found = vec![];
    for (i, expr) in facts.graph.exprs.iter().enumerate() {
        let Op::Binary(Binary::Div) = expr.op else {
            continue;
        };
        let divisor = expr.args[1];
        let Op::Reduce {
            op: Reduce::Std | Reduce::Var,
            ..
        } = facts.graph.expr(divisor).op
        else {
            continue;
        };
        let (at, by) = (facts.home(ExprRef(i as u32)), facts.home(divisor));
        found.push(
            Diagnostic::warning(
                "M109",
                at,
                format!("{} is 0 when all entries are alike", facts.quote(by)),
            )
            .help("add a small constant to the divisor, such as `+ 1e-4`"),
        );
    }
    found
}
