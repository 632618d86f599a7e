//! A subset of the rows of everything: minibatches.

use std::collections::HashMap;
use std::hash::Hash;

use rlhf_lang::graph::AxisId;
use tch::Tensor;

use super::layout::{dims, ragged_of};
use super::shapes::arange;
use super::{Ragged, Shapes, Value, storage, to_i64s};
use crate::fault::{Fault, Result};

/// The `rows` of `axis`, in that order, of every value that has it or a part of it; the others are kept
/// as they are. Ragged axes over them keep the rows they have there whole, and a part keeps those of its
/// rows that are left.
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
    let left = shapes.within(axis, rows);
    let mut part = shapes.clone();
    part.set(axis, rows.len());
    let mut indices = HashMap::new();
    for (own, positions) in &left {
        if let Some(parent) = shapes.part(*own).map(|p| p.of) {
            // Where each row of the part now lies along what it is a part of.
            let kept = shapes.part(*own).map_or(&[][..], |p| &p.kept);
            let above = left.get(&parent).map_or(&[][..], Vec::as_slice);
            let place: HashMap<usize, usize> = above.iter().copied().zip(0..).collect();
            let at = |position: &usize| place.get(&kept[*position]).copied();
            part.set_part(*own, parent, positions.iter().filter_map(at).collect());
        }
        let index: Vec<i64> = positions.iter().map(|r| *r as i64).collect();
        indices.insert(*own, Tensor::f_from_slice(&index)?);
    }
    let mut tokens_of = HashMap::new();
    for (token_axis, ragged) in shapes.ragged_axes() {
        let cut = ragged.parents.iter().enumerate();
        let cut = cut.filter_map(|(at, p)| Some((at, indices.get(p)?))).next();
        if let Some((at, index)) = cut {
            let (offsets, tokens) = rows_of(ragged, at, index, shapes)?;
            part.set_ragged(token_axis, ragged.parents.clone(), offsets);
            tokens_of.insert(token_axis, tokens);
        }
    }
    let values = values
        .iter()
        .map(|(key, value)| Ok((*key, one(value, shapes, &indices, &tokens_of)?)))
        .collect::<Result<_>>()?;
    Ok((part, values))
}

/// The tokens of some rows of a ragged axis: where each row then starts, and the place of every token
/// among all.
pub(crate) fn tokens_of_rows(ragged: &Ragged, rows: &[i64]) -> Result<(Vec<usize>, Tensor)> {
    let mut offsets = vec![0];
    let mut tokens: Vec<i64> = Vec::new();
    for row in rows {
        let (lo, hi) = (
            ragged.offsets[*row as usize],
            ragged.offsets[*row as usize + 1],
        );
        tokens.extend(lo as i64..hi as i64);
        offsets.push(tokens.len());
    }
    Ok((offsets, Tensor::f_from_slice(&tokens)?))
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
    tokens_of_rows(ragged, &to_i64s(&kept)?)
}

fn one(
    value: &Value,
    shapes: &Shapes,
    indices: &HashMap<AxisId, Tensor>,
    tokens_of: &HashMap<AxisId, Tensor>,
) -> Result<Value> {
    let sizes = storage(&value.axes, shapes)?;
    let positions = || -> Result<Tensor> {
        Ok(arange(sizes.iter().product::<i64>() as usize)?.f_reshape(&sizes)?)
    };
    let own = dims(&value.axes, shapes)
        .iter()
        .enumerate()
        .find_map(|(dim, a)| Some((dim, indices.get(a)?)));
    let tokens = ragged_of(&value.axes, shapes).and_then(|(a, _)| tokens_of.get(&a));
    let picked = match (own, tokens) {
        (Some((dim, index)), _) => positions()?.f_index_select(dim as i64, index)?,
        (None, Some(tokens)) => positions()?.f_index_select(-1, tokens)?,
        (None, None) => return Ok(value.clone()),
    };
    Ok(Value {
        axes: value.axes.clone(),
        data: value.data.take(&picked)?,
    })
}
