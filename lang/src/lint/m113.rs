//! M113: a sum over the tokens of sampled responses that nothing scales.

use super::facts::Facts;
use crate::diag::Diagnostic;
use crate::graph::{Binary, ExprRef, Op, Reduce, Train};

pub(super) fn check(facts: &Facts) -> Vec<Diagnostic> {
    let graph = facts.graph;
    let mut found = vec![];
    for (train, _) in facts.trains() {
        let live = facts.live(train, false);
        let Some(pass) = facts.weighed(train) else {
            continue;
        };
        let tokens = graph.origin(graph.rollout(pass.rollout).tokens);
        for e in facts.parts(train.loss) {
            let expr = graph.expr(e);
            let Op::Reduce {
                op: Reduce::Sum,
                axes,
                ..
            } = &expr.op
            else {
                continue;
            };
            let over_tokens = axes.iter().find(|a| graph.origin(**a) == tokens);
            let Some(t) = over_tokens.filter(|_| live[e.0 as usize]) else {
                continue;
            };
            // The log-probability of a whole response is a sum.
            let response =
                facts.logp(expr.args[0]).is_some() || facts.log_ratio(expr.args[0]).is_some();
            if response || is_scaled(facts, train, expr.args[0], e) {
                continue;
            }
            let t = &graph.axis(*t).name;
            found.push(
                Diagnostic::warning(
                    "M113",
                    facts.home(e),
                    format!("this sum over `{t}` makes the step size grow with response length"),
                )
                .help(format!("`mean(x, {t})` averages; `sum(x, {t}) / 1024` scales by a constant, as Dr. GRPO does")),
            );
        }
    }
    found
}

/// Whether what is summed or the sum is divided, or scaled by a number below one, or goes through a
/// function that is not linear.
fn is_scaled(facts: &Facts, train: &Train, summed: ExprRef, sum: ExprRef) -> bool {
    let small = |e: ExprRef| matches!(facts.graph.expr(e).op, Op::Number(v) if v.abs() < 1.0);
    let divides = |e: ExprRef| {
        let expr = facts.graph.expr(e);
        match expr.op {
            Op::Binary(Binary::Div) => true,
            Op::Binary(Binary::Mul) => expr.args.iter().any(|a| small(*a)),
            _ => false,
        }
    };
    if divides(summed) {
        return true;
    }
    let loss = facts.parts(train.loss);
    let mut open = vec![sum];
    while let Some(e) = open.pop() {
        for user in facts.users[e.0 as usize]
            .iter()
            .filter(|u| loss.contains(u))
        {
            let expr = facts.graph.expr(*user);
            match &expr.op {
                _ if divides(*user) => return true,
                Op::Unary(crate::graph::Unary::Neg)
                | Op::Binary(Binary::Add | Binary::Sub | Binary::Mul)
                | Op::Reduce { .. }
                | Op::Restrict(_) => open.push(*user),
                _ => return true,
            }
        }
    }
    false
}
