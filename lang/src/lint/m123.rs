//! M123: a number a response that is added at every token before a sum along the tokens.

use std::collections::BTreeSet;

use super::facts::Facts;
use crate::diag::Diagnostic;
use crate::graph::{Binary, ExprRef, Op, Unary};

pub(super) fn check(facts: &Facts) -> Vec<Diagnostic> {
    let graph = facts.graph;
    let mut found: Vec<Diagnostic> = vec![];
    for (i, expr) in graph.exprs.iter().enumerate() {
        let Op::SuffixSum(axis) = expr.op else {
            continue;
        };
        for term in terms_of(facts, expr.args[0]) {
            let ty = &graph.expr(term).ty;
            if ty.axes.is_empty() || ty.axes.contains(&axis) {
                continue;
            }
            let reward = facts.origins(term).into_iter().any(|v| facts.is_reward(v));
            if !reward {
                continue;
            }
            // Where the sum names it rather than where it is bound.
            let whole = facts.home(ExprRef(i as u32));
            let named = match graph.expr(term).op {
                Op::Value(v) => facts.word(whole, facts.value_name(v)),
                _ => None,
            };
            let at = named.unwrap_or_else(|| facts.home(term));
            if found.iter().any(|d| d.span() == Some(at)) {
                continue;
            }
            let (what, t) = (facts.quote(at), &graph.axis(axis).name);
            let x = what.trim_matches('`');
            found.push(
                Diagnostic::warning("M123", at, format!("{what} counts at every token of `{t}`"))
                    .help(format!(
                        "for a reward at the end of the response: `at_last({x}, {t})`"
                    )),
            );
        }
    }
    found
}

/// What a sum adds up, through the values that it reads; a shared part is met once.
fn terms_of(facts: &Facts, root: ExprRef) -> BTreeSet<ExprRef> {
    let (mut terms, mut seen, mut open) = (BTreeSet::new(), BTreeSet::new(), vec![root]);
    while let Some(e) = open.pop() {
        if !seen.insert(e) {
            continue;
        }
        let expr = facts.graph.expr(e);
        let defined = match &expr.op {
            Op::Value(v) => facts.definition(*v).filter(|inner| is_sum(facts, *inner)),
            _ => None,
        };
        match (defined, is_sum(facts, e)) {
            (Some(inner), _) => open.push(inner),
            (None, true) => open.extend(&expr.args),
            (None, false) => {
                terms.insert(e);
            }
        }
    }
    terms
}

fn is_sum(facts: &Facts, e: ExprRef) -> bool {
    let op = &facts.graph.expr(e).op;
    matches!(
        op,
        Op::Binary(Binary::Add | Binary::Sub) | Op::Unary(Unary::Neg)
    )
}
