//! M124: a learning rate far above what is usual.

use std::collections::{BTreeMap, BTreeSet};

use super::facts::Facts;
use crate::diag::Diagnostic;
use crate::graph::{Binary, Expr, ExprRef, Graph, Init, Op, Schedule, Unary};

/// Full weights are trained between 1e-7 and 5e-5; this is far outside.
const FULL: f64 = 5e-4;
/// Adapters between 1e-5 and 5e-4.
const ADAPTER: f64 = 5e-3;

pub(super) fn check(facts: &Facts) -> Vec<Diagnostic> {
    let graph = facts.graph;
    let mut found = vec![];
    for (train, _) in facts.trains() {
        let model = graph.model(train.model);
        let Some(optim) = &model.optim else {
            continue;
        };
        if model.init == Init::Random {
            continue;
        }
        let (limit, usual, what) = match model.lora {
            Some(_) => (ADAPTER, 1e-4, "an adapter"),
            None => (FULL, 1e-5, "full weights"),
        };
        let Some(largest) = largest(graph, optim.lr) else {
            continue;
        };
        if largest < limit {
            continue;
        }
        let times = (largest / usual).round();
        found.push(
            Diagnostic::warning(
                "M124",
                facts.home(optim.lr),
                format!("a learning rate of {largest:e} on {what} is {times}× what is usual"),
            )
            .help(format!("{usual:e} is a common choice for {what}")),
        );
    }
    found
}

/// The largest value of a schedule at its start, middle and end.
fn largest(graph: &Graph, e: ExprRef) -> Option<f64> {
    let n = match graph.schedule {
        Schedule::Iterations(n) => n as f64,
        Schedule::Epochs(_) => 1000.0,
    };
    let at = [1.0, (n / 10.0).ceil(), (n / 2.0).ceil(), n];
    let parts = parts(graph, e);
    at.into_iter()
        .filter_map(|i| number(graph, &parts, i, n))
        .reduce(f64::max)
}

/// The expressions that make up `root`, operands first.
fn parts(graph: &Graph, root: ExprRef) -> BTreeSet<ExprRef> {
    let (mut parts, mut open) = (BTreeSet::from([root]), vec![root]);
    while let Some(e) = open.pop() {
        open.extend(
            graph
                .expr(e)
                .args
                .iter()
                .copied()
                .filter(|a| parts.insert(*a)),
        );
    }
    parts
}

/// The last of `parts`, a scalar of `iteration`, `iterations` and constants.
fn number(
    graph: &Graph,
    parts: &BTreeSet<ExprRef>,
    iteration: f64,
    iterations: f64,
) -> Option<f64> {
    let mut known: BTreeMap<ExprRef, f64> = BTreeMap::new();
    for e in parts {
        let value = operation(graph.expr(*e), &known, iteration, iterations)?;
        known.insert(*e, value);
    }
    known.last_key_value().map(|(_, v)| *v)
}

fn operation(
    expr: &Expr,
    known: &BTreeMap<ExprRef, f64>,
    iteration: f64,
    iterations: f64,
) -> Option<f64> {
    let arg = |i: usize| known.get(expr.args.get(i)?).copied();
    Some(match &expr.op {
        Op::Number(v) => *v,
        Op::Iteration => iteration,
        Op::Iterations => iterations,
        Op::Unary(Unary::Neg) => -arg(0)?,
        Op::Unary(Unary::Sqrt) => arg(0)?.sqrt(),
        Op::Unary(Unary::Exp) => arg(0)?.exp(),
        Op::Clamp => arg(0)?.max(arg(1)?).min(arg(2)?),
        Op::Select => match arg(0)? != 0.0 {
            true => arg(1)?,
            false => arg(2)?,
        },
        Op::Binary(b) => {
            let (x, y) = (arg(0)?, arg(1)?);
            let truth = |b: bool| f64::from(u8::from(b));
            match b {
                Binary::Add => x + y,
                Binary::Sub => x - y,
                Binary::Mul => x * y,
                Binary::Div => x / y,
                Binary::Pow => x.powf(y),
                Binary::Min => x.min(y),
                Binary::Max => x.max(y),
                Binary::Lt => truth(x < y),
                Binary::Le => truth(x <= y),
                Binary::Gt => truth(x > y),
                Binary::Ge => truth(x >= y),
                _ => return None,
            }
        }
        _ => return None,
    })
}
