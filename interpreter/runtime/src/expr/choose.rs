//! Selections along an axis: `pick`, `top` and the rows of a part.
//!
//! All three are one thing: for each element of the result, which element of the operand it is. Numbers
//! are gathered by those positions, so that gradients return to the elements that were chosen, and
//! texts are taken by them. A ragged axis over the axis of the choice becomes the one of the chosen
//! responses, with their lengths.

use std::cmp::Ordering;

use rlhf_lang::graph::{AxisId, AxisSize, ExprRef, Graph, Op, Selection};
use tch::{Kind, Tensor};

use super::{Env, Evaluation, eval};
use crate::fault::{Fault, Result};
use crate::value::{
    Data, Shapes, Value, align, align_tensor, arange, dims, ragged_of, storage, to_bools, to_f64s,
    to_i64s, tokens_of_rows,
};

/// Which elements along an axis.
struct Choice {
    axis: AxisId,
    /// Positions along `axis`, over the axis of what is chosen, where it has one, and any others.
    at: Value,
}

impl Evaluation<'_> {
    /// The value of a selection; its new axes are in the evaluation's shapes afterwards.
    pub(super) fn chosen(&mut self, e: ExprRef) -> Result<Value> {
        let expr = self.graph.expr(e);
        let [x, by] = expr.args.as_slice() else {
            return Err(super::missing_operand(1));
        };
        let (x, by) = (self.value(*x).clone(), self.value(*by).clone());
        let choice = match expr.op {
            Op::Pick(axis) => picked(self.graph, axis, by, &self.shapes)?,
            Op::Top { into, .. } if self.shapes.part(into).is_some() => {
                rows_left(into, &self.shapes)?
            }
            Op::Top { axis, into } => best(self.graph, (axis, into), &by, &self.shapes)?,
            Op::Restrict(part) => {
                let of = self.graph.axis(part).of.unwrap_or(part);
                if self.shapes.part(part).is_none() {
                    self.shapes.set_part(part, of, kept(self.graph, part, &by)?);
                }
                rows_left(part, &self.shapes)?
            }
            _ => return Err(Fault::new("not a selection")),
        };
        taken(self.graph, &x, &choice, &expr.ty.axes, &mut self.shapes)
    }
}

/// The responses that a selection keeps, over `axes`: positions among those of the whole rollout, whose
/// axes are `of`.
pub fn responses(
    graph: &Graph,
    by: &Selection,
    of: &[AxisId],
    axes: &[AxisId],
    env: &mut Env,
) -> Result<Vec<usize>> {
    let choice = match *by {
        Selection::Pick { axis, index } => {
            picked(graph, axis, eval(graph, index, env)?, &env.shapes)?
        }
        Selection::Top { axis, by, into } => {
            best(graph, (axis, into), &eval(graph, by, env)?, &env.shapes)?
        }
    };
    let sizes = storage(of, &env.shapes)?;
    let all = Value::num(
        of.to_vec(),
        &arange(sizes.iter().product::<i64>() as usize)?.f_reshape(&sizes)?,
    );
    let chosen = taken(graph, &all, &choice, axes, &mut env.shapes)?;
    Ok(chosen.numbers()?.into_iter().map(|i| i as usize).collect())
}

/// The positions at which a part's condition holds, no more than its limit.
pub(super) fn kept(graph: &Graph, part: AxisId, condition: &Value) -> Result<Vec<usize>> {
    let limit = match graph.axis(part).size {
        AxisSize::Subset(Some(limit)) => limit,
        _ => usize::MAX,
    };
    let holds = to_bools(condition.flags()?)?.into_iter().enumerate();
    Ok(holds
        .filter_map(|(i, holds)| holds.then_some(i))
        .take(limit)
        .collect())
}

/// The positions that `top` keeps of an axis with one number each.
pub(super) fn largest(
    graph: &Graph,
    axes: (AxisId, AxisId),
    by: &Value,
    shapes: &Shapes,
) -> Result<Vec<usize>> {
    let at = best(graph, axes, by, shapes)?.at.numbers()?;
    Ok(at.into_iter().map(|i| i as usize).collect())
}

fn rows_left(part: AxisId, shapes: &Shapes) -> Result<Choice> {
    let found = shapes
        .part(part)
        .ok_or_else(|| Fault::new(format!("the rows of axis {} are not known yet", part.0)))?;
    let kept: Vec<f64> = found.kept.iter().map(|r| *r as f64).collect();
    Ok(Choice {
        axis: found.of,
        at: Value::num(vec![part], &Tensor::f_from_slice(&kept)?),
    })
}

fn picked(graph: &Graph, axis: AxisId, at: Value, shapes: &Shapes) -> Result<Choice> {
    let (name, length) = (&graph.axis(axis).name, shapes.length(axis)?);
    for i in at.numbers()? {
        if !(i >= 0.0 && i < length as f64 && i.fract() == 0.0) {
            return Err(Fault::new(format!(
                "`pick` along `{name}` at {i}, which is not one of 0 to {}",
                length as i64 - 1
            )));
        }
    }
    Ok(Choice { axis, at })
}

/// Largest first, earlier first among equals; none comes last.
fn best(
    graph: &Graph,
    (axis, into): (AxisId, AxisId),
    by: &Value,
    shapes: &Shapes,
) -> Result<Choice> {
    let mut axes: Vec<AxisId> = by.axes.iter().copied().filter(|a| *a != axis).collect();
    let (length, count) = (shapes.length(axis)?, shapes.length(into)?);
    if count > length {
        let name = &graph.axis(axis).name;
        return Err(Fault::new(format!(
            "the {count} best of {length} along `{name}`"
        )));
    }
    let mut order = axes.clone();
    order.push(axis);
    let numbers = to_f64s(&align(by, &order, shapes)?.tensor()?)?;
    let mut at = Vec::with_capacity(numbers.len() / length.max(1) * count);
    for row in numbers.chunks(length.max(1)) {
        let mut places: Vec<usize> = (0..row.len()).collect();
        let rank = |i: usize| match row[i].is_nan() {
            true => (1, 0.0),
            false => (0, -row[i]),
        };
        places.sort_by(|a, b| rank(*a).partial_cmp(&rank(*b)).unwrap_or(Ordering::Equal));
        at.extend(places[..count].iter().map(|i| *i as f64));
    }
    axes.push(into);
    Ok(Choice {
        axis,
        at: Value::from_f64(axes, &at, shapes)?,
    })
}

/// The chosen elements of `x` over `axes`.
fn taken(
    graph: &Graph,
    x: &Value,
    choice: &Choice,
    axes: &[AxisId],
    shapes: &mut Shapes,
) -> Result<Value> {
    let cut = ragged_of(&x.axes, shapes).map(|(_, ragged)| ragged.clone());
    let Some(ragged) = cut else {
        let positions = positions(&x.axes, choice, axes, shapes)?;
        return Ok(Value {
            axes: axes.to_vec(),
            data: x.data.take(&positions)?,
        });
    };
    let own = dims(&x.axes, shapes);
    let (Some(tokens), true) = (
        axes.last().copied(),
        ragged.parents.contains(&choice.axis) && !own.contains(&choice.axis),
    ) else {
        return Err(Fault::new("a selection along an axis beside a ragged one"));
    };
    // Which row each row of the result is, then which token each token.
    let parents = graph.axis(tokens).parents.clone();
    let rows = to_i64s(&positions(&ragged.parents, choice, &parents, shapes)?)?;
    let (offsets, places) = tokens_of_rows(&ragged, &rows)?;
    let sizes = storage(&x.axes, shapes)?;
    let all = arange(sizes.iter().product::<i64>() as usize)?.f_reshape(&sizes)?;
    let all = all.f_index_select(-1, &places)?;
    shapes.set_ragged(tokens, parents, offsets);
    let found = Value {
        axes: own.into_iter().chain(ragged_axes(graph, tokens)).collect(),
        data: x.data.take(&all)?,
    };
    align(&found, axes, shapes)
}

/// A ragged axis with those it is ragged over, as they end a value.
fn ragged_axes(graph: &Graph, tokens: AxisId) -> Vec<AxisId> {
    let mut axes = graph.axis(tokens).parents.clone();
    axes.push(tokens);
    axes
}

/// For each element of the result over `axes`, its position in the storage of a value over `from`; no
/// axis is ragged.
fn positions(from: &[AxisId], choice: &Choice, axes: &[AxisId], shapes: &Shapes) -> Result<Tensor> {
    let sizes = storage(from, shapes)?;
    let mut total = Tensor::f_zeros(
        storage(axes, shapes)?.as_slice(),
        (Kind::Int64, tch::Device::Cpu),
    )?;
    let mut stride = 1;
    for (axis, size) in from.iter().zip(&sizes).rev() {
        let along = match *axis == choice.axis {
            true => {
                let at = match &choice.at.data {
                    Data::Num(t) => t.f_to_kind(Kind::Int64)?,
                    other => {
                        return Err(Fault::new(format!(
                            "an index is a number, not {}",
                            other.kind()
                        )));
                    }
                };
                align_tensor(&at, &choice.at.axes, axes, shapes)?
            }
            false => align_tensor(&arange(*size as usize)?, &[*axis], axes, shapes)?,
        };
        total = total.f_add(&along.f_mul_scalar(stride)?)?;
        stride *= size;
    }
    Ok(total)
}
