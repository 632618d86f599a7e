//! Norms of the residual stream and of heads, with their gradients.
//!
//! A LayerNorm is an RMSNorm of the centred line with a bias after it, so both share their mathematics.

use tch::{Kind, Tensor};

use super::ops::{inverse_rms, rms_norm, rms_norm_backward};
use super::weights::NormWeights;

/// Which norm.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NormKind {
    /// x / √(mean(x²) + ε) · w (Zhang and Sennrich, 2019).
    Rms,
    /// (x − mean(x)) / √(var(x) + ε) · w + b (Ba et al., 2016).
    Layer,
}

/// A norm apart from its weights.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Norm {
    /// Which norm.
    pub kind: NormKind,
    /// Added to the mean square.
    pub eps: f64,
    /// Added to the stored weight: 1 where checkpoints hold the distance from the identity.
    pub offset: f64,
}

/// What the backward pass needs beside the input, f32 `[lines, 1]`.
#[derive(Debug)]
pub(super) struct Moments {
    inverse: Tensor,
    mean: Option<Tensor>,
}

impl Norm {
    /// The norm of each line of `x` `[lines, width]`, and its moments.
    pub(super) fn forward(&self, x: &Tensor, weights: &NormWeights<Tensor>) -> (Tensor, Moments) {
        let mean = (self.kind == NormKind::Layer)
            .then(|| x.mean_dim([1i64].as_slice(), true, Kind::Float));
        let inverse = match &mean {
            None => inverse_rms(x, self.eps),
            Some(mean) => inverse_rms(&centred(x, mean), self.eps),
        };
        let moments = Moments { inverse, mean };
        (self.again(x, &moments, weights), moments)
    }

    /// The norm once more, by its moments.
    pub(super) fn again(
        &self,
        x: &Tensor,
        moments: &Moments,
        weights: &NormWeights<Tensor>,
    ) -> Tensor {
        let weight = self.weight(weights);
        let Some(mean) = &moments.mean else {
            return rms_norm(x, &moments.inverse, &weight);
        };
        let mut y = rms_norm(&centred(x, mean), &moments.inverse, &weight);
        if let Some(bias) = &weights.bias {
            let _ = y.g_add_(&bias.to_kind(Kind::Float));
        }
        y.to_kind(x.kind())
    }

    /// Adds the gradient to `d_x` and to `d_weights` (f32), given that of the output.
    pub(super) fn backward(
        &self,
        x: &Tensor,
        moments: &Moments,
        weights: &NormWeights<Tensor>,
        grad: Tensor,
        d_x: &mut Tensor,
        d_weights: &mut NormWeights<Tensor>,
    ) {
        let (weight, inverse) = (self.weight(weights), &moments.inverse);
        let d_weight = &mut d_weights.weight;
        let Some(mean) = &moments.mean else {
            return rms_norm_backward(x, inverse, &weight, grad, d_x, d_weight);
        };
        if let Some(d_bias) = &mut d_weights.bias {
            *d_bias += grad.sum_dim_intlist([0i64].as_slice(), false, Kind::Float);
        }
        let x = centred(x, mean);
        let mut d_centred = x.zeros_like();
        rms_norm_backward(&x, inverse, &weight, grad, &mut d_centred, d_weight);
        let along = d_centred.mean_dim([1i64].as_slice(), true, Kind::Float);
        *d_x += (d_centred - along).to_kind(d_x.kind());
    }

    fn weight(&self, weights: &NormWeights<Tensor>) -> Tensor {
        match self.offset == 0.0 {
            true => weights.weight.shallow_clone(),
            false => weights.weight.to_kind(Kind::Float) + self.offset,
        }
    }
}

fn centred(x: &Tensor, mean: &Tensor) -> Tensor {
    x.to_kind(Kind::Float) - mean
}
