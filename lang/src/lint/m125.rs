//! M125: a loss that grows with what it should raise.

use std::collections::BTreeMap;

use super::facts::Facts;
use crate::diag::Diagnostic;
use crate::graph::{Binary, ExprRef, Op, Reduce, Train, Unary};

pub(super) fn check(facts: &Facts) -> Vec<Diagnostic> {
    let mut found = vec![];
    for (train, _) in facts.trains() {
        let live = facts.live(train, false);
        let signs = signs(facts, train);
        let wrong = signs
            .iter()
            .find(|(e, sign)| **sign == Sign::Plus && is_objective(facts, **e, &live));
        let Some((e, _)) = wrong else {
            continue;
        };
        found.push(
            Diagnostic::warning(
                "M125",
                facts.home(*e),
                "this loss grows with ratio · advantage, so minimizing it lowers the reward",
            )
            .help("an objective to raise is subtracted: `minimize -mean(…)`"),
        );
    }
    found
}

/// Which way the loss moves with a part of it.
#[derive(Clone, Copy, PartialEq)]
enum Sign {
    Plus,
    Minus,
    Unknown,
}

impl Sign {
    fn flipped(self) -> Sign {
        match self {
            Sign::Plus => Sign::Minus,
            Sign::Minus => Sign::Plus,
            Sign::Unknown => Sign::Unknown,
        }
    }
}

/// The sign of every part that the loss takes in without changing its direction.
fn signs(facts: &Facts, train: &Train) -> BTreeMap<ExprRef, Sign> {
    let mut signs: BTreeMap<ExprRef, Sign> = BTreeMap::from([(train.loss, Sign::Plus)]);
    // Users come after their operands.
    let parts: Vec<ExprRef> = facts.parts(train.loss).into_iter().rev().collect();
    for e in parts {
        let Some(sign) = signs.get(&e).copied() else {
            continue;
        };
        let expr = facts.graph.expr(e);
        let constant = |a: ExprRef| match facts.graph.expr(a).op {
            Op::Number(v) => Some(v),
            _ => None,
        };
        let mut pass = |a: ExprRef, s: Sign| {
            let known = signs.entry(a).or_insert(s);
            if *known != s {
                *known = Sign::Unknown;
            }
        };
        match (&expr.op, &expr.args[..]) {
            (Op::Binary(Binary::Add | Binary::Min | Binary::Max), [a, b]) => {
                pass(*a, sign);
                pass(*b, sign);
            }
            (Op::Binary(Binary::Sub), [a, b]) => {
                pass(*a, sign);
                pass(*b, sign.flipped());
            }
            (Op::Unary(Unary::Neg), [a]) => pass(*a, sign.flipped()),
            (Op::Binary(Binary::Mul), [a, b]) => match (constant(*a), constant(*b)) {
                (Some(v), _) => pass(*b, if v < 0.0 { sign.flipped() } else { sign }),
                (_, Some(v)) => pass(*a, if v < 0.0 { sign.flipped() } else { sign }),
                _ => {}
            },
            (Op::Binary(Binary::Div), [a, b]) if constant(*b).is_some_and(|v| v > 0.0) => {
                pass(*a, sign);
            }
            (
                Op::Reduce {
                    op: Reduce::Mean | Reduce::Sum,
                    ..
                }
                | Op::Restrict(_),
                [a, ..],
            ) => {
                pass(*a, sign);
            }
            (Op::Select, [_, a, b]) => {
                pass(*a, sign);
                pass(*b, sign);
            }
            _ => {}
        }
    }
    signs
}

/// A live ratio over the sampler, with its limits, times a constant that a reward goes into.
fn is_objective(facts: &Facts, e: ExprRef, live: &[bool]) -> bool {
    let expr = facts.graph.expr(e);
    let (Op::Binary(Binary::Mul), [a, b]) = (&expr.op, &expr.args[..]) else {
        return false;
    };
    let is_ratio = |x: ExprRef| {
        live[x.0 as usize]
            && facts.ratio(x).is_some_and(|(top, bottom)| {
                let sampled = facts.samplers.get(&bottom.rollout) == Some(&bottom.model);
                top.rollout == bottom.rollout && sampled
            })
    };
    let rewarded = |x: ExprRef| {
        let mut origins = facts.origins(x).into_iter();
        !live[x.0 as usize] && origins.any(|v| facts.is_reward(v))
    };
    (is_ratio(*a) && rewarded(*b)) || (is_ratio(*b) && rewarded(*a))
}
