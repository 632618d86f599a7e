//! M105: the advantage depends on live values, so the gradient flows through it.

use super::facts::Facts;
use crate::diag::Diagnostic;
use crate::graph::{Binary, ExprRef, Op};

pub(super) fn check(facts: &Facts) -> Vec<Diagnostic> {
    let mut found = vec![];
    for (train, _) in facts.trains() {
        let live = facts.live(train, false);
        let is_live = |e: ExprRef| live[e.0 as usize];
        let weight = |e: ExprRef| {
            let direct = match facts.graph.expr(e).op {
                Op::Value(v) => facts.logps.contains_key(&v),
                _ => facts.ratio(e).is_some(),
            };
            direct && is_live(e)
        };
        for e in facts.parts(train.loss) {
            let expr = facts.graph.expr(e);
            if !matches!(expr.op, Op::Binary(Binary::Mul)) {
                continue;
            }
            let (a, b) = (expr.args[0], expr.args[1]);
            let advantage = match (weight(a), weight(b)) {
                (true, false) => b,
                (false, true) => a,
                _ => continue,
            };
            if !is_live(advantage) || !reads_a_reward(facts, advantage) {
                continue;
            }
            let values = Facts::live_values(train);
            let source =
                facts
                    .parts(advantage)
                    .into_iter()
                    .find_map(|p| match facts.graph.expr(p).op {
                        Op::Value(v) if values.contains(&v) => Some(v),
                        _ => None,
                    });
            let name = source.map_or("a live value", |v| facts.value_name(v));
            let at = facts.home(advantage);
            found.push(
                Diagnostic::error(
                    "M105",
                    at,
                    format!("this advantage depends on `{name}`, so the gradient flows through it"),
                )
                .help("`stop(…)` around it makes it a constant, and so does computing it outside `train`"),
            );
            break;
        }
    }
    found
}

/// An expression of log-probabilities alone is an estimator, not an advantage.
fn reads_a_reward(facts: &Facts, e: ExprRef) -> bool {
    facts
        .parts(e)
        .into_iter()
        .any(|p| match facts.graph.expr(p).op {
            Op::Value(v) => !facts.logps.contains_key(&v),
            _ => false,
        })
}
