//! How long every axis is now: a length for the others, offsets for the ragged ones.

use std::collections::HashMap;
use std::sync::Arc;

use rlhf_lang::graph::AxisId;
use tch::{Device, Kind, Tensor};

use crate::fault::{Fault, Result};

/// The current length of every axis in use.
#[derive(Clone, Debug, Default)]
pub struct Shapes {
    dense: HashMap<AxisId, usize>,
    ragged: HashMap<AxisId, Arc<Ragged>>,
    parts: HashMap<AxisId, Arc<Part>>,
}

/// A part of the rows: what `rows D = B where …` or a `top` along them kept.
#[derive(Debug, PartialEq)]
pub struct Part {
    /// The axis it is a part of.
    pub of: AxisId,
    /// The positions that were kept along it.
    pub kept: Vec<usize>,
}

/// A ragged axis: one row of its own length for every element of its parents.
#[derive(Debug, PartialEq)]
pub struct Ragged {
    /// The axes it is ragged over, outermost first.
    pub parents: Vec<AxisId>,
    /// Where each row starts in the flat storage, and the end: `rows + 1` numbers.
    pub offsets: Vec<usize>,
    /// The row of each token.
    row_of: Vec<i64>,
}

impl Ragged {
    /// `offsets` has one number more than the parents have elements.
    pub fn new(parents: Vec<AxisId>, offsets: Vec<usize>) -> Ragged {
        let mut row_of = Vec::with_capacity(offsets.last().copied().unwrap_or(0));
        for (row, w) in offsets.windows(2).enumerate() {
            row_of.resize(w[1], row as i64);
        }
        Ragged {
            parents,
            row_of,
            offsets,
        }
    }

    /// The number of rows.
    pub fn rows(&self) -> usize {
        self.offsets.len().saturating_sub(1)
    }

    /// The row of each token: i64 `[tokens]`.
    pub(crate) fn row_of(&self) -> Result<Tensor> {
        Ok(Tensor::f_from_slice(&self.row_of)?)
    }

    /// Tokens in all rows.
    pub fn tokens(&self) -> usize {
        self.offsets.last().copied().unwrap_or(0)
    }

    /// The length of each row.
    pub fn lengths(&self) -> Vec<usize> {
        self.offsets.windows(2).map(|w| w[1] - w[0]).collect()
    }
}

impl Shapes {
    /// No axis has a length yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Gives an axis that is not ragged its length.
    pub fn set(&mut self, axis: AxisId, length: usize) {
        self.dense.insert(axis, length);
    }

    /// Gives a ragged axis its rows. `offsets` has one number more than its parents have elements.
    pub fn set_ragged(&mut self, axis: AxisId, parents: Vec<AxisId>, offsets: Vec<usize>) {
        self.ragged
            .insert(axis, Arc::new(Ragged::new(parents, offsets)));
    }

    /// Gives a part of `of` the positions it keeps.
    pub fn set_part(&mut self, axis: AxisId, of: AxisId, kept: Vec<usize>) {
        self.dense.insert(axis, kept.len());
        self.parts.insert(axis, Arc::new(Part { of, kept }));
    }

    /// What a part of an axis keeps; `None` for the others.
    pub fn part(&self, axis: AxisId) -> Option<&Arc<Part>> {
        self.parts.get(&axis)
    }

    /// The positions of `rows` of an axis along it and along every part of it and of its parts: those
    /// of a part that lie in `rows`, in the order of `rows`.
    pub fn within(&self, axis: AxisId, rows: &[usize]) -> HashMap<AxisId, Vec<usize>> {
        let mut found = HashMap::from([(axis, rows.to_vec())]);
        let mut parts: Vec<(&AxisId, &Arc<Part>)> = self.parts.iter().collect();
        // A part of a part is declared after it.
        parts.sort_unstable_by_key(|(axis, _)| **axis);
        for (axis, part) in parts {
            if let Some(rows) = found.get(&part.of) {
                let at: HashMap<usize, usize> =
                    part.kept.iter().enumerate().map(|(i, r)| (*r, i)).collect();
                let own = rows.iter().filter_map(|r| at.get(r).copied()).collect();
                found.insert(*axis, own);
            }
        }
        found
    }

    /// The positions of an axis in terms of `origin`, which it is, or is a part of a part of.
    pub fn positions(&self, axis: AxisId, origin: AxisId) -> Result<Vec<usize>> {
        if axis == origin {
            return Ok((0..self.length(axis)?).collect());
        }
        let part = self
            .part(axis)
            .ok_or_else(|| Fault::new(format!("axis {} is no part of another", axis.0)))?;
        let above = self.positions(part.of, origin)?;
        Ok(part.kept.iter().map(|r| above[*r]).collect())
    }

    /// The length of an axis that is not ragged.
    pub fn length(&self, axis: AxisId) -> Result<usize> {
        self.dense
            .get(&axis)
            .copied()
            .ok_or_else(|| Fault::new(format!("axis {} has no length yet", axis.0)))
    }

    /// The rows of a ragged axis; `None` for the others.
    pub fn ragged(&self, axis: AxisId) -> Option<&Arc<Ragged>> {
        self.ragged.get(&axis)
    }

    /// Whether the axis is known at all.
    pub fn contains(&self, axis: AxisId) -> bool {
        self.dense.contains_key(&axis) || self.ragged.contains_key(&axis)
    }

    /// All axes that are not ragged, with their lengths.
    pub fn dense_axes(&self) -> impl Iterator<Item = (AxisId, usize)> + '_ {
        self.dense.iter().map(|(a, n)| (*a, *n))
    }

    /// All ragged axes.
    pub fn ragged_axes(&self) -> impl Iterator<Item = (AxisId, &Arc<Ragged>)> {
        self.ragged.iter().map(|(a, r)| (*a, r))
    }
}

/// 0, 1, …, n−1 as i64.
pub(crate) fn arange(n: usize) -> Result<Tensor> {
    Ok(Tensor::f_arange(n as i64, (Kind::Int64, Device::Cpu))?)
}
