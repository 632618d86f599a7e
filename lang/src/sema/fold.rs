//! Constant folding of scalar operations.

use crate::graph::{Binary, Const, Op, TextOp, Unary};

/// The constant that an operation on constants gives, where it is worth knowing before the run.
pub(crate) fn fold(op: &Op, args: &[Const]) -> Option<Op> {
    let number = |i: usize| match args.get(i)? {
        Const::Int(v) => Some(*v as f64),
        Const::Float(v) => Some(*v),
        _ => None,
    };
    let truth = |i: usize| match args.get(i)? {
        Const::Bool(b) => Some(*b),
        _ => None,
    };
    match op {
        Op::Unary(Unary::Not) => Some(Op::Bool(!truth(0)?)),
        Op::Unary(u) => finite(unary(*u, number(0)?)?),
        Op::Binary(b) => match (args.first()?, args.get(1)?) {
            (Const::Text(x), Const::Text(y)) => text(*b, x, y),
            (Const::Bool(x), Const::Bool(y)) => logic(*b, *x, *y),
            _ => binary(*b, number(0)?, number(1)?),
        },
        Op::Select => constant(args.get(if truth(0)? { 1 } else { 2 })?),
        Op::Clamp => finite(number(0)?.max(number(1)?).min(number(2)?)),
        Op::Stop => constant(args.first()?),
        Op::OnText(TextOp::Concat) => match (args.first()?, args.get(1)?) {
            (Const::Text(x), Const::Text(y)) => Some(Op::Text(format!("{x}{y}"))),
            _ => None,
        },
        _ => None,
    }
}

fn constant(c: &Const) -> Option<Op> {
    Some(match c {
        Const::Bool(b) => Op::Bool(*b),
        Const::Int(i) => Op::Number(*i as f64),
        Const::Float(f) => Op::Number(*f),
        Const::Text(t) => Op::Text(t.clone()),
    })
}

/// Overflow and 0/0 are left to the run, where they can be pointed at.
fn finite(v: f64) -> Option<Op> {
    v.is_finite().then_some(Op::Number(v))
}

fn unary(op: Unary, x: f64) -> Option<f64> {
    Some(match op {
        Unary::Neg => -x,
        Unary::Exp => x.exp(),
        Unary::Log => x.ln(),
        Unary::Abs => x.abs(),
        Unary::Sqrt => x.sqrt(),
        Unary::Floor => x.floor(),
        Unary::Ceil => x.ceil(),
        Unary::Relu => x.max(0.0),
        _ => return None,
    })
}

fn binary(op: Binary, x: f64, y: f64) -> Option<Op> {
    match op {
        Binary::Add => finite(x + y),
        Binary::Sub => finite(x - y),
        Binary::Mul => finite(x * y),
        Binary::Div => finite(x / y),
        // The sign is the divisor's.
        Binary::Rem => finite(x - y * (x / y).floor()),
        Binary::Pow => finite(x.powf(y)),
        Binary::Min => finite(x.min(y)),
        Binary::Max => finite(x.max(y)),
        Binary::Eq => Some(Op::Bool(x == y)),
        Binary::Ne => Some(Op::Bool(x != y)),
        Binary::Lt => Some(Op::Bool(x < y)),
        Binary::Le => Some(Op::Bool(x <= y)),
        Binary::Gt => Some(Op::Bool(x > y)),
        Binary::Ge => Some(Op::Bool(x >= y)),
        Binary::And | Binary::Or => None,
    }
}

fn text(op: Binary, x: &str, y: &str) -> Option<Op> {
    match op {
        Binary::Eq => Some(Op::Bool(x == y)),
        Binary::Ne => Some(Op::Bool(x != y)),
        _ => None,
    }
}

fn logic(op: Binary, x: bool, y: bool) -> Option<Op> {
    match op {
        Binary::And => Some(Op::Bool(x && y)),
        Binary::Or => Some(Op::Bool(x || y)),
        Binary::Eq => Some(Op::Bool(x == y)),
        Binary::Ne => Some(Op::Bool(x != y)),
        _ => None,
    }
}
