//! A model's weights as the kernels read them: matrices in place, vectors in f32.

use rlhf_kernels::layer_norm::layer_norm;
use rlhf_kernels::linear::Linear;
use rlhf_kernels::panel::Panels;
use rlhf_kernels::rms_norm::rms_norm;
use rlhf_kernels::storage::{Elements, Matrix};
use tch::Tensor;

use crate::fault::{Fault, Result};
use crate::model::config::Config;
use crate::model::norm::NormKind;
use crate::model::weights::NormWeights;

/// A norm with its weights.
pub(super) struct Norm {
    kind: NormKind,
    pub(super) eps: f32,
    /// What the normed line is multiplied by.
    pub(super) weight: Vec<f32>,
    bias: Vec<f32>,
}

impl Norm {
    pub(super) fn new(config: &Config, weights: &NormWeights<Tensor>) -> Result<Norm> {
        let mut weight = vector(&weights.weight)?;
        if config.norm.offset != 0.0 {
            let offset = config.norm.offset as f32;
            weight.iter_mut().for_each(|w| *w += offset);
        }
        Ok(Norm {
            kind: config.norm.kind,
            eps: config.norm.eps as f32,
            bias: match &weights.bias {
                Some(bias) => vector(bias)?,
                None => vec![0.0; weight.len()],
            },
            weight,
        })
    }

    pub(super) fn apply(&self, x: &Panels, y: &mut Panels) {
        match self.kind {
            NormKind::Rms => rms_norm(x, &self.weight, self.eps, y),
            NormKind::Layer => layer_norm(x, &self.weight, &self.bias, self.eps, y),
        }
    }
}

/// A linear layer.
pub(super) struct Affine<'m> {
    weight: Matrix<'m>,
    bias: Option<Vec<f32>>,
}

impl<'m> Affine<'m> {
    pub(super) fn new(weight: &'m Tensor, bias: &Option<Tensor>) -> Result<Affine<'m>> {
        Ok(Affine {
            weight: matrix(weight)?,
            bias: bias.as_ref().map(vector).transpose()?,
        })
    }

    /// Output features.
    pub(super) fn rows(&self) -> usize {
        self.weight.rows
    }

    pub(super) fn linear(&self) -> Linear<'_> {
        self.part(0, self.weight.rows)
    }

    /// `count` output features from `first` on.
    pub(super) fn part(&self, first: usize, count: usize) -> Linear<'_> {
        Linear {
            weight: self.weight.part(first, count),
            bias: self.bias.as_ref().map(|b| &b[first..first + count]),
        }
    }
}

pub(super) fn matrix(tensor: &Tensor) -> Result<Matrix<'_>> {
    Matrix::of(tensor).map_err(unreadable)
}

fn vector(tensor: &Tensor) -> Result<Vec<f32>> {
    Ok(Elements::of(tensor).map_err(unreadable)?.to_f32())
}

fn unreadable(why: String) -> Fault {
    Fault::new(format!("a weight cannot be read for generation: {why}"))
}
