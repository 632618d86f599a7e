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
