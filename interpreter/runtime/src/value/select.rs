//! A subset of the rows of everything: minibatches.

use std::collections::HashMap;
use std::hash::Hash;

use rlhf_lang::graph::AxisId;
use tch::Tensor;

use super::layout::{dims, ragged_of};
use super::shapes::arange;
use super::{Ragged, Shapes, Value, storage, to_i64s};
use crate::fault::{Fault, Result};

/// The `rows` of `axis`, in that order, of every value that has it; the others are kept as they are.
/// Ragged axes over `axis` keep the rows they have there whole.
pub fn restrict<K: Copy + Eq + Hash>(
    shapes: &Shapes,
    values: &HashMap<K, Value>,
    axis: AxisId,
    rows: &[usize],
) -> Result<(Shapes, HashMap<K, Value>)> {
    let length = shapes.length(axis)?;
    if let Some(row) = rows.iter().find(|r| **r >= length) {
        return Err(Fault::new(format!("row {row} of {length} does not exist")));
    }
    let index = Tensor::f_from_slice(&rows.iter().map(|r| *r as i64).collect::<Vec<_>>())?;
    let mut part = shapes.clone();
    part.set(axis, rows.len());
    let mut tokens_of = HashMap::new();
    for (token_axis, ragged) in shapes.ragged_axes() {
        if let Some(at) = ragged.parents.iter().position(|p| *p == axis) {
            let (offsets, tokens) = rows_of(ragged, at, &index, shapes)?;
            part.set_ragged(token_axis, ragged.parents.clone(), offsets);
            tokens_of.insert(token_axis, tokens);
        }
    }
    let values = values
        .iter()
        .map(|(key, value)| Ok((*key, one(value, shapes, axis, &index, &tokens_of)?)))
        .collect::<Result<_>>()?;
    Ok((part, values))
}

/// New offsets, and the old position of every token that is kept.
fn rows_of(
    ragged: &Ragged,
    at: usize,
    index: &Tensor,
    shapes: &Shapes,
) -> Result<(Vec<usize>, Tensor)> {
    let sizes = storage(&ragged.parents, shapes)?;
    let kept = arange(ragged.rows())?
        .f_reshape(&sizes)?
        .f_index_select(at as i64, index)?;
    let mut offsets = vec![0];
    let mut tokens: Vec<i64> = Vec::new();
    for row in to_i64s(&kept)? {
        let (lo, hi) = (
            ragged.offsets[row as usize],
            ragged.offsets[row as usize + 1],
        );
        tokens.extend(lo as i64..hi as i64);
        offsets.push(tokens.len());
    }
    Ok((offsets, Tensor::f_from_slice(&tokens)?))
}

fn one(
    value: &Value,
    shapes: &Shapes,
    axis: AxisId,
    index: &Tensor,
    tokens_of: &HashMap<AxisId, Tensor>,
) -> Result<Value> {
    let sizes = storage(&value.axes, shapes)?;
    let positions = || -> Result<Tensor> {
        Ok(arange(sizes.iter().product::<i64>() as usize)?.f_reshape(&sizes)?)
    };
    let own = dims(&value.axes, shapes).iter().position(|a| *a == axis);
    let tokens = ragged_of(&value.axes, shapes).and_then(|(a, _)| tokens_of.get(&a));
    let picked = match (own, tokens) {
        (Some(dim), _) => positions()?.f_index_select(dim as i64, index)?,
        (None, Some(tokens)) => positions()?.f_index_select(-1, tokens)?,
        (None, None) => return Ok(value.clone()),
    };
    Ok(Value {
        axes: value.axes.clone(),
        data: value.data.take(&picked)?,
    })
}
