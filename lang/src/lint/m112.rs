//! M112: a mean over all tokens of sampled responses weighs long responses more.

use super::facts::Facts;
use crate::diag::Diagnostic;
use crate::diag::Level;
use crate::graph::{AxisSize, Op, Reduce};

pub(super) fn check(facts: &Facts) -> Vec<Diagnostic> {
    let graph = facts.graph;
    let mut found = vec![];
    for (train, _) in facts.trains() {
        let live = facts.live(train, false);
        let Some(pass) = facts.weighed(train) else {
            continue;
        };
        let roll = graph.rollout(pass.rollout);
        for e in facts.parts(train.loss) {
            let Op::Reduce {
                op: Reduce::Mean,
                axes,
                ..
            } = &graph.expr(e).op
            else {
                continue;
            };
            let tokens = axes
                .iter()
                .find(|a| graph.origin(**a) == graph.origin(roll.tokens));
            let rows = axes
                .iter()
                .any(|a| graph.origin(*a) == graph.origin(roll.rows));
            let (Some(tokens), true, true) = (tokens, rows, live[e.0 as usize]) else {
                continue;
            };
            let AxisSize::Ragged(max) = graph.axis(*tokens).size else {
                continue;
            };
            let names: Vec<&str> = axes.iter().map(|a| graph.axis(*a).name.as_str()).collect();
            let (t, all) = (&graph.axis(*tokens).name, names.join(", "));
            let (long, short) = (max, (max / 8).max(1));
            let mut d = Diagnostic::warning(
                "M112",
                facts.home(e),
                format!(
                    "a mean over `[{all}]` gives a {long}-token response {}× the weight of a {short}-token one",
                    long / short
                ),
            )
            .help(format!("`mean(mean(x, {t}), …)` weighs responses alike; the token mean is DAPO's choice"));
            d.level = Level::Hint;
            found.push(d);
            break;
        }
    }
    found
}
