//! Where elements lie, and broadcasting by the names of axes.

use std::sync::Arc;

use rlhf_lang::graph::AxisId;
use tch::Tensor;

use super::shapes::arange;
use super::{Data, Ragged, Shapes, Value};
use crate::fault::{Fault, Result};

/// The ragged axis that ends `axes`, if one does.
pub(crate) fn ragged_of<'s>(
    axes: &[AxisId],
    shapes: &'s Shapes,
) -> Option<(AxisId, &'s Arc<Ragged>)> {
    let last = *axes.last()?;
    shapes.ragged(last).map(|r| (last, r))
}

/// The axes that have a dimension of their own, without the tokens of a ragged axis.
pub(crate) fn dims(axes: &[AxisId], shapes: &Shapes) -> Vec<AxisId> {
    match ragged_of(axes, shapes) {
        None => axes.to_vec(),
        Some((_, ragged)) => axes[..axes.len() - 1]
            .iter()
            .filter(|a| !ragged.parents.contains(a))
            .copied()
            .collect(),
    }
}

/// The sizes of the storage of a value over `axes`.
pub fn storage(axes: &[AxisId], shapes: &Shapes) -> Result<Vec<i64>> {
    let mut sizes = dims(axes, shapes)
        .into_iter()
        .map(|a| Ok(shapes.length(a)? as i64))
        .collect::<Result<Vec<_>>>()?;
    if let Some((_, ragged)) = ragged_of(axes, shapes) {
        sizes.push(ragged.tokens() as i64);
    }
    Ok(sizes)
}

/// The number of elements of a value over `axes`.
pub fn numel(axes: &[AxisId], shapes: &Shapes) -> Result<usize> {
    Ok(storage(axes, shapes)?.iter().product::<i64>() as usize)
}

/// The value over more axes, or over the same in another order, in full storage form.
pub fn align(value: &Value, axes: &[AxisId], shapes: &Shapes) -> Result<Value> {
    let sizes = storage(axes, shapes)?;
    let full = |t: &Tensor| -> Result<Tensor> {
        let t = align_tensor(t, &value.axes, axes, shapes)?;
        Ok(t.f_expand(&sizes, false)?)
    };
    let data = match &value.data {
        Data::Num(t) => Data::Num(full(t)?),
        Data::Bool(t) => Data::Bool(full(t)?),
        other if value.axes == axes => other.clone(),
        other => {
            let own = storage(&value.axes, shapes)?;
            let index = arange(own.iter().product::<i64>() as usize)?.f_reshape(&own)?;
            other.take(&full(&index)?)?
        }
    };
    Ok(Value {
        axes: axes.to_vec(),
        data,
    })
}

/// A tensor over `from` such that libtorch's own broadcasting puts it over `to`: missing axes have
/// size 1.
pub(crate) fn align_tensor(
    t: &Tensor,
    from: &[AxisId],
    to: &[AxisId],
    shapes: &Shapes,
) -> Result<Tensor> {
    if from == to {
        return Ok(t.shallow_clone());
    }
    if from.is_empty() {
        return Ok(t.f_reshape(vec![1i64; storage(to, shapes)?.len()])?);
    }
    let to_dims = dims(to, shapes);
    match (ragged_of(from, shapes), ragged_of(to, shapes)) {
        (None, None) => place(t, from, to, 0),
        (Some((a, _)), Some((b, _))) if a == b => place(t, &dims(from, shapes), &to_dims, 1),
        (None, Some((_, ragged))) => {
            let (parents, own): (Vec<_>, Vec<_>) =
                from.iter().partition(|a| ragged.parents.contains(a));
            if parents.is_empty() {
                return place(&t.f_unsqueeze(-1)?, &own, &to_dims, 1);
            }
            // [own…, every parent…] → [own…, rows] → [own…, tokens]
            let mut order = own.clone();
            order.extend(&ragged.parents);
            let rows = place(t, from, &order, 0)?.f_expand(storage(&order, shapes)?, false)?;
            let mut flat = storage(&own, shapes)?;
            flat.push(ragged.rows() as i64);
            let tokens = rows
                .f_reshape(&flat)?
                .f_index_select(-1, &ragged.row_of()?)?;
            place(&tokens, &own, &to_dims, 1)
        }
        _ => Err(Fault::new(
            "two ragged axes cannot be combined element by element",
        )),
    }
}

/// Moves the dimensions of `from` to where `to` has them, with size 1 for those that are missing.
/// The last `tail` dimensions stay last.
fn place(t: &Tensor, from: &[AxisId], to: &[AxisId], tail: usize) -> Result<Tensor> {
    let find = |a: &AxisId| from.iter().position(|b| a == b);
    if let Some(lost) = from.iter().find(|a| !to.contains(a)) {
        return Err(Fault::new(format!(
            "axis {} is missing from the result of an element-wise operation",
            lost.0
        )));
    }
    let mut order: Vec<i64> = to.iter().filter_map(find).map(|i| i as i64).collect();
    order.extend((0..tail).map(|i| (from.len() + i) as i64));
    let t = t.f_permute(&order)?;
    let own = t.size();
    let mut own = own.iter();
    let mut sizes = Vec::with_capacity(to.len() + tail);
    for axis in to {
        let size = if find(axis).is_some() {
            own.next()
        } else {
            None
        };
        sizes.push(size.copied().unwrap_or(1));
    }
    sizes.extend(own);
    // A view: only dimensions of size 1 are added.
    Ok(t.f_reshape(&sizes)?)
}
