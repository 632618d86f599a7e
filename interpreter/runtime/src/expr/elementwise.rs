//! Operations element by element, over the union of the operands' axes.

use std::sync::Arc;

use rlhf_lang::graph::{AxisId, Binary, Op, Unary};
use tch::Tensor;

use crate::fault::{Fault, Result};
use crate::value::{Data, Shapes, Value, align, align_tensor, storage, to_bools};

/// Comparisons and connectives.
pub(super) fn gives_bool(op: Binary) -> bool {
    use Binary::*;
    matches!(op, Eq | Ne | Lt | Le | Gt | Ge | And | Or)
}

/// A unary or binary operation, a clamp or a selection, over `axes`.
pub(super) fn apply(op: &Op, args: &[&Value], axes: &[AxisId], shapes: &Shapes) -> Result<Value> {
    let operand = |i: usize| -> Result<&Value> {
        args.get(i)
            .copied()
            .ok_or_else(|| super::missing_operand(i))
    };
    let tensor = |i: usize| -> Result<Tensor> {
        let v = operand(i)?;
        align_tensor(&v.tensor()?, &v.axes, axes, shapes)
    };
    let flags = |i: usize| -> Result<Tensor> {
        let v = operand(i)?;
        align_tensor(v.flags()?, &v.axes, axes, shapes)
    };
    let data = match op {
        Op::Unary(Unary::Not) => Data::Bool(flags(0)?.f_logical_not()?),
        Op::Unary(op) => Data::Num(unary(*op, &tensor(0)?)?),
        Op::Binary(Binary::And) => Data::Bool(flags(0)?.f_logical_and(&flags(1)?)?),
        Op::Binary(Binary::Or) => Data::Bool(flags(0)?.f_logical_or(&flags(1)?)?),
        Op::Binary(op) if gives_bool(*op) => match (&operand(0)?.data, &operand(1)?.data) {
            (Data::Text(_), _) | (_, Data::Text(_)) => {
                return compare_texts(*op, operand(0)?, operand(1)?, axes, shapes);
            }
            _ => Data::Bool(compare(*op, &tensor(0)?, &tensor(1)?)?),
        },
        Op::Binary(op) => Data::Num(binary(*op, &tensor(0)?, &tensor(1)?)?),
        Op::Clamp => Data::Num(tensor(0)?.f_clamp_tensor(Some(tensor(1)?), Some(tensor(2)?))?),
        Op::Select => match (&operand(1)?.data, &operand(2)?.data) {
            (Data::Bool(_), Data::Bool(_)) => {
                Data::Bool(flags(1)?.f_where_self(&flags(0)?, &flags(2)?)?)
            }
            (Data::Num(_) | Data::Bool(_), _) => {
                Data::Num(tensor(1)?.f_where_self(&flags(0)?, &tensor(2)?)?)
            }
            _ => return select_items(operand(0)?, operand(1)?, operand(2)?, axes, shapes),
        },
        _ => return Err(Fault::new("not an element-wise operation")),
    };
    // The operands' axes together may be fewer than the result's, as for a constant.
    let sizes = storage(axes, shapes)?;
    Ok(Value {
        axes: axes.to_vec(),
        data: match data {
            Data::Num(t) => Data::Num(t.f_expand(&sizes, false)?),
            Data::Bool(t) => Data::Bool(t.f_expand(&sizes, false)?),
            other => other,
        },
    })
}

fn unary(op: Unary, x: &Tensor) -> Result<Tensor> {
    Ok(match op {
        Unary::Neg => x.f_neg()?,
        Unary::Not => x.f_logical_not()?,
        Unary::Exp => x.f_exp()?,
        Unary::Log => x.f_log()?,
        Unary::Log1p => x.f_log1p()?,
        Unary::Expm1 => x.f_expm1()?,
        Unary::Abs => x.f_abs()?,
        Unary::Sqrt => x.f_sqrt()?,
        Unary::Sigmoid => x.f_sigmoid()?,
        Unary::LogSigmoid => x.f_log_sigmoid()?,
        // libtorch's own softplus is linear past 20, which is too early for f64.
        Unary::Softplus => x.f_neg()?.f_log_sigmoid()?.f_neg()?,
        Unary::Relu => x.f_relu()?,
        Unary::Tanh => x.f_tanh()?,
        Unary::Sign => x.f_sign()?,
        Unary::Floor => x.f_floor()?,
        Unary::Ceil => x.f_ceil()?,
        // Ties go to the even neighbour.
        Unary::Round => x.f_round()?,
    })
}

/// `Rem` has the sign of the divisor. Where both operands of `Min`/`Max` are equal each gets half of
/// the gradient.
fn binary(op: Binary, a: &Tensor, b: &Tensor) -> Result<Tensor> {
    Ok(match op {
        Binary::Add => a.f_add(b)?,
        Binary::Sub => a.f_sub(b)?,
        Binary::Mul => a.f_mul(b)?,
        Binary::Div => a.f_div(b)?,
        Binary::Rem => a.f_remainder_tensor(b)?,
        Binary::Pow => a.f_pow(b)?,
        Binary::Min => a.f_minimum(b)?,
        Binary::Max => a.f_maximum(b)?,
        _ => return Err(Fault::new("a comparison gives no number")),
    })
}

/// NaN compares as false with everything, in `Ne` too.
fn compare(op: Binary, a: &Tensor, b: &Tensor) -> Result<Tensor> {
    Ok(match op {
        Binary::Eq => a.f_eq_tensor(b)?,
        Binary::Ne => {
            let less = a.f_lt_tensor(b)?;
            less.f_logical_or(&a.f_gt_tensor(b)?)?
        }
        Binary::Lt => a.f_lt_tensor(b)?,
        Binary::Le => a.f_le_tensor(b)?,
        Binary::Gt => a.f_gt_tensor(b)?,
        Binary::Ge => a.f_ge_tensor(b)?,
        _ => return Err(Fault::new("not a comparison")),
    })
}

fn compare_texts(
    op: Binary,
    a: &Value,
    b: &Value,
    axes: &[AxisId],
    shapes: &Shapes,
) -> Result<Value> {
    let (a, b) = (align(a, axes, shapes)?, align(b, axes, shapes)?);
    let holds = |(a, b): (&Option<Arc<str>>, &Option<Arc<str>>)| match (a, b) {
        (Some(a), Some(b)) => match op {
            Binary::Eq => a == b,
            Binary::Ne => a != b,
            Binary::Lt => a < b,
            Binary::Le => a <= b,
            Binary::Gt => a > b,
            Binary::Ge => a >= b,
            _ => false,
        },
        _ => false,
    };
    let flags: Vec<bool> = a.texts()?.iter().zip(b.texts()?).map(holds).collect();
    Value::from_bool(axes.to_vec(), &flags, shapes)
}

fn select_items(
    condition: &Value,
    yes: &Value,
    no: &Value,
    axes: &[AxisId],
    shapes: &Shapes,
) -> Result<Value> {
    let condition = to_bools(align(condition, axes, shapes)?.flags()?)?;
    let (yes, no) = (align(yes, axes, shapes)?, align(no, axes, shapes)?);
    let data = match (&yes.data, &no.data) {
        (Data::Text(a), Data::Text(b)) => Data::Text(choose(&condition, a, b)),
        (Data::Chat(a), Data::Chat(b)) => Data::Chat(choose(&condition, a, b)),
        (Data::TextList(a), Data::TextList(b)) => Data::TextList(choose(&condition, a, b)),
        (a, b) => {
            return Err(Fault::new(format!(
                "the branches of `if` are {} and {}",
                a.kind(),
                b.kind()
            )));
        }
    };
    Ok(Value {
        axes: axes.to_vec(),
        data,
    })
}

fn choose<T: Clone>(condition: &[bool], yes: &[T], no: &[T]) -> Vec<T> {
    condition
        .iter()
        .zip(yes.iter().zip(no))
        .map(|(c, (y, n))| if *c { y.clone() } else { n.clone() })
        .collect()
}
