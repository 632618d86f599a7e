//! M126: a part of a loss that has no gradient.

use std::collections::BTreeSet;

use super::facts::Facts;
use super::m106::differentiable;
use crate::diag::Diagnostic;
use crate::graph::{Binary, ExprRef, Op, Reduce, Unary};

pub(super) fn check(facts: &Facts) -> Vec<Diagnostic> {
    let mut found = vec![];
    for (train, _) in facts.trains() {
        let open = differentiable(facts, train);
        // A loss without any gradient is M106's.
        if !open[train.loss.0 as usize] {
            continue;
        }
        for term in terms(facts, train.loss) {
            if open[term.0 as usize] || !is_penalty(facts, term) {
                continue;
            }
            let at = facts.home(term);
            let name = facts.model_name(train.model);
            found.push(
                Diagnostic::warning(
                    "M126",
                    at,
                    format!("{} does not depend on `{name}` as it is trained: it has no gradient", facts.quote(at)),
                )
                .help(format!("inside `train {name}`, `logp({name}, …)` is live; what is computed above is a constant")),
            );
            break;
        }
    }
    found
}

/// A distance that a loss would make smaller. Single values, such as a reference inside a KL, are none.
fn is_penalty(facts: &Facts, term: ExprRef) -> bool {
    facts.parts(term).into_iter().any(|e| {
        let square = matches!(facts.graph.expr(e).op, Op::Binary(Binary::Pow));
        let of_values = || !facts.values_in(e).is_empty();
        facts.kl(e).is_some() || (square && of_values())
    })
}

/// What a loss adds up, through signs, means and constant factors.
fn terms(facts: &Facts, root: ExprRef) -> BTreeSet<ExprRef> {
    let (mut terms, mut seen, mut open) = (BTreeSet::new(), BTreeSet::new(), vec![root]);
    while let Some(e) = open.pop() {
        if !seen.insert(e) {
            continue;
        }
        let expr = facts.graph.expr(e);
        let constant = |a: &ExprRef| facts.values_in(*a).is_empty();
        match &expr.op {
            _ if facts.kl(e).is_some() => {
                terms.insert(e);
            }
            Op::Binary(Binary::Add | Binary::Sub) => open.extend(&expr.args),
            Op::Unary(Unary::Neg) | Op::Restrict(_) => open.extend(&expr.args[..1]),
            Op::Reduce {
                op: Reduce::Mean | Reduce::Sum,
                ..
            } => open.extend(&expr.args),
            Op::Binary(Binary::Mul | Binary::Div) if expr.args.iter().any(constant) => {
                open.extend(expr.args.iter().filter(|a| !constant(a)));
            }
            _ => {
                terms.insert(e);
            }
        }
    }
    terms
}
