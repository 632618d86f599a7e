//! E024: a live value reduced over the rows of the step is used in a way that is not linear.
//!
//! The rule keeps losses that a plan may cut into micro-batches of rows without an extra pass: where
//! the loss is linear in every mean or sum over the rows, the parts' gradients add up to the whole's.

use super::facts::Facts;
use crate::diag::Diagnostic;
use crate::graph::{Binary, ExprRef, Op, Reduce, Unary};

pub(super) fn check(facts: &Facts) -> Vec<Diagnostic> {
    let graph = facts.graph;
    let mut found = vec![];
    for (train, _) in facts.trains() {
        let Some(rows) = train
            .forwards
            .first()
            .map(|f| graph.rollout(f.rollout).rows)
        else {
            continue;
        };
        let live = facts.live(train, true);
        let is_live = |e: &ExprRef| live[e.0 as usize];
        let mut cut = vec![false; graph.exprs.len()];
        for e in facts.parts(train.loss) {
            let expr = graph.expr(e);
            let over_rows = matches!(&expr.op, Op::Reduce { axes, .. } if axes.contains(&rows));
            let is_cut: Vec<bool> = expr.args.iter().map(|a| cut[a.0 as usize]).collect();
            let reduced = over_rows && is_live(&expr.args[0]);
            if !reduced && !is_cut.contains(&true) {
                continue;
            }
            cut[e.0 as usize] = true;
            let linear = match &expr.op {
                Op::Reduce { op, .. } => {
                    matches!(op, Reduce::Mean | Reduce::Sum | Reduce::Count)
                }
                Op::Unary(Unary::Neg) | Op::Binary(Binary::Add | Binary::Sub) => true,
                Op::Binary(Binary::Mul) => !(is_live(&expr.args[0]) && is_live(&expr.args[1])),
                Op::Binary(Binary::Div) => !is_live(&expr.args[1]),
                Op::Select => !is_live(&expr.args[0]),
                _ => false,
            };
            if linear && !expr.ty.axes.contains(&rows) {
                continue;
            }
            let at = facts.home(e);
            let axis = match graph.axis(rows).name.as_str() {
                "" => "rows",
                name => name,
            };
            found.push(
                Diagnostic::error(
                    "E024",
                    at,
                    format!("{} is not linear in a live value that is reduced over `{axis}`", facts.quote(at)),
                )
                .help(format!(
                    "a live sum or mean over `{axis}` may be added and scaled; anything else is computed above `train`"
                )),
            );
            break;
        }
    }
    found
}
