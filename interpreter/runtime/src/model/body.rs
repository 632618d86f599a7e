//! The decoder's body: packed tokens to hidden states, and gradients of hidden states to gradients of weights.

use tch::{Kind, Tensor};

use super::attention::{Attention, Kept};
use super::config::Config;
use super::ops::{
    gated, gated_backward, inverse_rms, linear, linear_backward, rms_norm, rms_norm_backward,
    rotate,
};
use super::pack::Packed;
use super::rope::angles;
use super::weights::{Layer, Weights};

/// What does not change from layer to layer.
#[derive(Debug)]
pub struct Body {
    ids: Tensor,
    cos: Tensor,
    sin: Tensor,
    attention: Attention,
    /// Query and key heads, which positions turn.
    turned: i64,
    eps: f64,
}

/// Activations of one layer kept for its backward pass; the rest is computed again.
#[derive(Debug)]
struct Activations {
    /// Residual stream before attention.
    input: Tensor,
    inverse_input: Tensor,
    /// Projections with positions applied.
    qkv: Tensor,
    kept: Kept,
    attended: Tensor,
    /// Residual stream before the MLP.
    middle: Tensor,
    inverse_middle: Tensor,
    gate_up: Tensor,
}

/// Everything the backward pass needs.
#[derive(Debug)]
pub struct Tape {
    layers: Vec<Activations>,
}

impl Body {
    /// Prepares positions and attention for these packed rows.
    pub fn new(config: &Config, packed: &Packed) -> Body {
        let (cos, sin) = angles(config, &packed.positions);
        Body {
            ids: packed.ids.shallow_clone(),
            cos,
            sin,
            attention: Attention::new(config, &packed.trees),
            turned: (config.heads + config.kv_heads) as i64,
            eps: config.norm_eps,
        }
    }

    /// The residual stream after the last layer, before the last norm, `[packed, hidden]`.
    pub fn forward(&self, weights: &Weights<Tensor>) -> Tensor {
        let embedded = weights.embed.index_select(0, &self.ids);
        weights.layers.iter().fold(embedded, |x, layer| {
            let (qkv, _) = self.projected(layer, &x);
            let attended = self.attention.forward(&qkv);
            let middle = linear(&attended, &layer.o, layer.o_bias.as_ref()).g_add_(&x);
            let (gate_up, _) = self.widened(layer, &middle);
            linear(&gated(&gate_up), &layer.down, layer.down_bias.as_ref()).g_add_(&middle)
        })
    }

    /// The same, with what [`Body::backward`] needs.
    pub fn forward_taped(&self, weights: &Weights<Tensor>) -> (Tensor, Tape) {
        let mut x = weights.embed.index_select(0, &self.ids);
        let mut layers = Vec::with_capacity(weights.layers.len());
        for layer in &weights.layers {
            let (qkv, inverse_input) = self.projected(layer, &x);
            let (attended, kept) = self.attention.forward_kept(&qkv);
            let middle = linear(&attended, &layer.o, layer.o_bias.as_ref()).g_add_(&x);
            let (gate_up, inverse_middle) = self.widened(layer, &middle);
            let output =
                linear(&gated(&gate_up), &layer.down, layer.down_bias.as_ref()).g_add_(&middle);
            layers.push(Activations {
                input: x,
                inverse_input,
                qkv,
                kept,
                attended,
                middle,
                inverse_middle,
                gate_up,
            });
            x = output;
        }
        (x, Tape { layers })
    }

    /// Adds to `grads` (f32) the gradients of all weights below the last norm, given the gradient of
    /// the residual stream after the last layer. Activations are freed as they are used.
    pub fn backward(
        &self,
        weights: &Weights<Tensor>,
        grads: &mut Weights<Tensor>,
        tape: Tape,
        grad: Tensor,
    ) {
        let mut grad = grad;
        let layers = weights.layers.iter().zip(&mut grads.layers).rev();
        for ((layer, grads), kept) in layers.zip(tape.layers.into_iter().rev()) {
            self.mlp_backward(layer, grads, &kept, &mut grad);
            self.attention_backward(layer, grads, &kept, &mut grad);
        }
        let _ = grads
            .embed
            .index_add_(0, &self.ids, &grad.to_kind(Kind::Float));
    }

    /// Queries, keys and values of the layer with positions applied, and the norm's inverse.
    fn projected(&self, layer: &Layer<Tensor>, x: &Tensor) -> (Tensor, Tensor) {
        let inverse = inverse_rms(x, self.eps);
        let normed = rms_norm(x, &inverse, &layer.input_norm);
        let mut qkv = linear(&normed, &layer.qkv, layer.qkv_bias.as_ref());
        rotate(&mut qkv, self.turned, &self.cos, &self.sin);
        (qkv, inverse)
    }

    /// Gate and up projections, and the norm's inverse.
    fn widened(&self, layer: &Layer<Tensor>, x: &Tensor) -> (Tensor, Tensor) {
        let inverse = inverse_rms(x, self.eps);
        let normed = rms_norm(x, &inverse, &layer.post_norm);
        let wide = linear(&normed, &layer.gate_up, layer.gate_up_bias.as_ref());
        (wide, inverse)
    }

    fn mlp_backward(
        &self,
        layer: &Layer<Tensor>,
        grads: &mut Layer<Tensor>,
        kept: &Activations,
        grad: &mut Tensor,
    ) {
        let (d_gate_up, activated) = gated_backward(&kept.gate_up, grad.mm(&layer.down));
        linear_backward(&activated, grad, &mut grads.down, grads.down_bias.as_mut());
        let normed = rms_norm(&kept.middle, &kept.inverse_middle, &layer.post_norm);
        linear_backward(
            &normed,
            &d_gate_up,
            &mut grads.gate_up,
            grads.gate_up_bias.as_mut(),
        );
        let d_normed = d_gate_up.mm(&layer.gate_up);
        rms_norm_backward(
            &kept.middle,
            &kept.inverse_middle,
            &layer.post_norm,
            d_normed,
            grad,
            &mut grads.post_norm,
        );
    }

    fn attention_backward(
        &self,
        layer: &Layer<Tensor>,
        grads: &mut Layer<Tensor>,
        kept: &Activations,
        grad: &mut Tensor,
    ) {
        linear_backward(&kept.attended, grad, &mut grads.o, grads.o_bias.as_mut());
        let d_attended = grad.mm(&layer.o);
        let mut d_qkv = self.attention.backward(&kept.qkv, &kept.kept, &d_attended);
        // The inverse of a rotation is its transpose.
        rotate(&mut d_qkv, self.turned, &self.cos, &-&self.sin);
        let normed = rms_norm(&kept.input, &kept.inverse_input, &layer.input_norm);
        linear_backward(&normed, &d_qkv, &mut grads.qkv, grads.qkv_bias.as_mut());
        let d_normed = d_qkv.mm(&layer.qkv);
        rms_norm_backward(
            &kept.input,
            &kept.inverse_input,
            &layer.input_norm,
            d_normed,
            grad,
            &mut grads.input_norm,
        );
    }
}
