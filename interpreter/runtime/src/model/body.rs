//! The decoder's body: packed tokens to hidden states, and gradients of hidden states to gradients of weights.

use tch::{Kind, Tensor};

use super::attention::{Attention, Kept};
use super::config::{Branches, Config, Positions};
use super::experts::{self, Mixture, Routed};
use super::norm::Moments;
use super::ops::{linear, linear_backward, rotate};
use super::pack::Packed;
use super::qk_norm::{self, Unnormed};
use super::weights::{Layer, Mlp, NormWeights, Weights};

/// What does not change from layer to layer, and the attention of each kind of layer.
#[derive(Debug)]
pub struct Body {
    config: Config,
    ids: Tensor,
    /// Rows of the table of learned positions.
    places: Option<Tensor>,
    /// Cosines and sines of the turns of queries and keys.
    turns: Option<(Tensor, Tensor)>,
    /// One for each width of window.
    attentions: Vec<Attention>,
    /// Which of them each layer has.
    attention_of: Vec<usize>,
}

/// A branch's output before the norm that follows it.
type Branch = Option<(Tensor, Moments)>;

/// Activations of one layer kept for its backward pass; the rest is computed again.
#[derive(Debug)]
struct Activations {
    /// Residual stream before attention.
    input: Tensor,
    input_moments: Moments,
    /// Projections with positions applied.
    qkv: Tensor,
    unnormed: Option<Unnormed>,
    kept: Kept,
    attended: Tensor,
    attention_out: Branch,
    /// Residual stream after attention.
    middle: Tensor,
    middle_moments: Moments,
    widened: Widened,
    mlp_out: Branch,
}

/// What the MLP keeps.
#[derive(Debug)]
enum Widened {
    /// The widened lines.
    Dense(Tensor),
    /// Where tokens went, and their widened lines.
    Experts(Routed),
}

/// Everything the backward pass needs.
#[derive(Debug)]
pub struct Tape {
    layers: Vec<Activations>,
}

impl Tape {
    fn routed(&self) -> Vec<&Routed> {
        let layers = self.layers.iter();
        layers
            .filter_map(|layer| match &layer.widened {
                Widened::Experts(routed) => Some(routed),
                Widened::Dense(_) => None,
            })
            .collect()
    }

    /// The load-balancing loss, where there are experts.
    pub fn balance(&self) -> Option<f64> {
        let routed = self.routed();
        (!routed.is_empty()).then(|| experts::balance(&routed))
    }
}

impl Body {
    /// Prepares positions and attention for these packed rows.
    pub fn new(config: &Config, packed: &Packed) -> Body {
        let (places, turns) = match &config.encoding {
            Positions::Learned => (Some(Tensor::from_slice(&packed.positions)), None),
            Positions::Rotary(rope) => (None, Some(rope.angles(&packed.positions))),
        };
        let mut widths: Vec<Option<usize>> = Vec::new();
        let mut attention_of = Vec::with_capacity(config.layers);
        for window in &config.windows {
            let known = widths.iter().position(|w| w == window);
            attention_of.push(known.unwrap_or(widths.len()));
            if known.is_none() {
                widths.push(*window);
            }
        }
        let attention = |window: &Option<usize>| Attention::new(config, *window, &packed.trees);
        Body {
            config: config.clone(),
            ids: packed.ids.shallow_clone(),
            places,
            turns,
            attentions: widths.iter().map(attention).collect(),
            attention_of,
        }
    }

    /// The residual stream after the last layer, before the last norm, `[packed, hidden]`.
    pub fn forward(&self, weights: &Weights<Tensor>) -> Tensor {
        let mut x = self.embedded(weights);
        for (i, layer) in weights.layers.iter().enumerate() {
            let attention = &self.attentions[self.attention_of[i]];
            let (qkv, ..) = self.projected(layer, &x);
            let attended = attention.forward(&qkv);
            let (middle, _) = self.after_attention(layer, &attended, &x);
            let (mlp, ..) = self.mlp(layer, self.mlp_input(&x, &middle));
            x = self.after_mlp(layer, mlp, &middle).0;
        }
        x
    }

    /// The same, with what [`Body::backward`] needs.
    pub fn forward_taped(&self, weights: &Weights<Tensor>) -> (Tensor, Tape) {
        let mut x = self.embedded(weights);
        let mut layers = Vec::with_capacity(weights.layers.len());
        for (i, layer) in weights.layers.iter().enumerate() {
            let attention = &self.attentions[self.attention_of[i]];
            let (qkv, input_moments, unnormed) = self.projected(layer, &x);
            let (attended, kept) = attention.forward_kept(&qkv);
            let (middle, attention_out) = self.after_attention(layer, &attended, &x);
            let (mlp, middle_moments, widened) = self.mlp(layer, self.mlp_input(&x, &middle));
            let (output, mlp_out) = self.after_mlp(layer, mlp, &middle);
            layers.push(Activations {
                input: x,
                input_moments,
                qkv,
                unnormed,
                kept,
                attended,
                attention_out,
                middle,
                middle_moments,
                widened,
                mlp_out,
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
        let balance = self.config.routing.as_ref().map_or(0.0, |r| r.balance);
        let slope = match balance {
            0.0 => None,
            weight => experts::balance_slope(&tape.routed()).map(|slope| slope * weight),
        };
        let layers = weights.layers.iter().zip(&mut grads.layers).enumerate();
        for ((i, (layer, grads)), kept) in layers.rev().zip(tape.layers.into_iter().rev()) {
            match self.config.branches {
                Branches::Sequential => {
                    let d_branch = self.d_mlp_out(layer, grads, &kept, &grad);
                    self.mlp_backward(layer, grads, &kept, d_branch, slope.as_ref(), &mut grad);
                    self.attention_backward(i, layer, grads, &kept, &mut grad);
                }
                Branches::Parallel => {
                    let d_branch = self.d_mlp_out(layer, grads, &kept, &grad);
                    let mut beside = grad.zeros_like();
                    let slope = slope.as_ref();
                    self.mlp_backward(layer, grads, &kept, d_branch, slope, &mut beside);
                    self.attention_backward(i, layer, grads, &kept, &mut grad);
                    grad += beside;
                }
            }
        }
        if let Some(scale) = self.config.embed_scale_in(weights.embed.kind()) {
            let _ = grad.g_mul_scalar_(scale);
        }
        let grad = grad.to_kind(Kind::Float);
        let _ = grads.embed.index_add_(0, &self.ids, &grad);
        if let (Some(table), Some(places)) = (&mut grads.positions, &self.places) {
            let _ = table.index_add_(0, places, &grad);
        }
    }

    fn embedded(&self, weights: &Weights<Tensor>) -> Tensor {
        let mut x = weights.embed.index_select(0, &self.ids);
        if let Some(scale) = self.config.embed_scale_in(x.kind()) {
            let _ = x.g_mul_scalar_(scale);
        }
        if let (Some(table), Some(places)) = (&weights.positions, &self.places) {
            x += table.index_select(0, places);
        }
        x
    }

    /// Query and key heads.
    fn turned(&self) -> i64 {
        (self.config.heads + self.config.kv_heads) as i64
    }

    /// Queries, keys and values of the layer with positions applied, and what their gradients need.
    fn projected(&self, layer: &Layer<Tensor>, x: &Tensor) -> (Tensor, Moments, Option<Unnormed>) {
        let (normed, moments) = self.config.norm.forward(x, &layer.input_norm);
        let mut qkv = linear(&normed, &layer.qkv, layer.qkv_bias.as_ref());
        let unnormed = layer
            .qk_norm
            .as_ref()
            .map(|weights| qk_norm::forward(&self.config, weights, &mut qkv));
        if let Some((cos, sin)) = &self.turns {
            let width = self.config.head_dim as i64;
            rotate(&mut qkv, self.turned(), width, cos, sin);
        }
        (qkv, moments, unnormed)
    }

    /// The residual stream after attention.
    fn after_attention(
        &self,
        layer: &Layer<Tensor>,
        attended: &Tensor,
        x: &Tensor,
    ) -> (Tensor, Branch) {
        let out = linear(attended, &layer.o, layer.o_bias.as_ref());
        self.added(out, layer.attention_norm.as_ref(), x)
    }

    /// The residual stream after the MLP.
    fn after_mlp(&self, layer: &Layer<Tensor>, out: Tensor, middle: &Tensor) -> (Tensor, Branch) {
        self.added(out, layer.mlp_norm.as_ref(), middle)
    }

    /// A branch's output added to the stream, through the norm that follows it where there is one.
    fn added(
        &self,
        out: Tensor,
        norm: Option<&NormWeights<Tensor>>,
        stream: &Tensor,
    ) -> (Tensor, Branch) {
        let mut out = out;
        match norm {
            None => (out.g_add_(stream), None),
            Some(weights) => {
                let (mut normed, moments) = self.config.norm.forward(&out, weights);
                (normed.g_add_(stream), Some((out, moments)))
            }
        }
    }

    /// What the MLP's norm reads, of the layer's input and the stream after attention.
    fn mlp_input<'t>(&self, x: &'t Tensor, middle: &'t Tensor) -> &'t Tensor {
        match self.config.branches {
            Branches::Sequential => middle,
            Branches::Parallel => x,
        }
    }

    /// The MLP's output, the moments of the norm before it, and what it keeps.
    fn mlp(&self, layer: &Layer<Tensor>, x: &Tensor) -> (Tensor, Moments, Widened) {
        let (normed, moments) = self.config.norm.forward(x, &layer.post_norm);
        match &layer.mlp {
            Mlp::Dense(dense) => {
                let wide = linear(&normed, &dense.wide, dense.wide_bias.as_ref());
                let inner = self.config.gate.forward(&wide);
                let out = linear(&inner, &dense.down, dense.down_bias.as_ref());
                (out, moments, Widened::Dense(wide))
            }
            Mlp::Experts(experts) => {
                let (out, routed) = self.mixture(None).forward(&normed, experts);
                (out, moments, Widened::Experts(routed))
            }
        }
    }

    fn mixture<'a>(&'a self, slope: Option<&'a Tensor>) -> Mixture<'a> {
        Mixture {
            // Only a layer of a model with a mixture has experts.
            routing: self.config.routing.as_ref().expect("a layer with experts"),
            gate: self.config.gate,
            slope,
        }
    }

    /// The gradient of the MLP's output, given that of the layer's.
    fn d_mlp_out(
        &self,
        layer: &Layer<Tensor>,
        grads: &mut Layer<Tensor>,
        kept: &Activations,
        grad: &Tensor,
    ) -> Tensor {
        let norm = layer.mlp_norm.as_ref().zip(grads.mlp_norm.as_mut());
        self.d_branch(norm, &kept.mlp_out, grad)
    }

    /// The gradient of a branch's output, given that of the stream it is added to.
    fn d_branch(
        &self,
        norm: Option<(&NormWeights<Tensor>, &mut NormWeights<Tensor>)>,
        out: &Branch,
        grad: &Tensor,
    ) -> Tensor {
        let (Some((weights, d_weights)), Some((out, moments))) = (norm, out) else {
            return grad.shallow_clone();
        };
        let mut d_out = grad.zeros_like();
        let rule = &self.config.norm;
        rule.backward(out, moments, weights, grad.copy(), &mut d_out, d_weights);
        d_out
    }

    /// Adds to `d_x` the gradient of what the MLP's norm reads, given that of the MLP's output.
    fn mlp_backward(
        &self,
        layer: &Layer<Tensor>,
        grads: &mut Layer<Tensor>,
        kept: &Activations,
        d_out: Tensor,
        slope: Option<&Tensor>,
        d_x: &mut Tensor,
    ) {
        let x = self.mlp_input(&kept.input, &kept.middle);
        let (norm, moments) = (&self.config.norm, &kept.middle_moments);
        let normed = || norm.again(x, moments, &layer.post_norm);
        let d_normed = match (&layer.mlp, &mut grads.mlp, &kept.widened) {
            (Mlp::Dense(dense), Mlp::Dense(d_dense), Widened::Dense(wide)) => {
                let (d_wide, inner) = self.config.gate.backward(wide, d_out.mm(&dense.down));
                let d_bias = d_dense.down_bias.as_mut();
                linear_backward(&inner, &d_out, &mut d_dense.down, d_bias);
                let d_bias = d_dense.wide_bias.as_mut();
                linear_backward(&normed(), &d_wide, &mut d_dense.wide, d_bias);
                d_wide.mm(&dense.wide)
            }
            (Mlp::Experts(experts), Mlp::Experts(d_experts), Widened::Experts(routed)) => self
                .mixture(slope)
                .backward(&normed(), routed, experts, d_experts, &d_out),
            // Weights, gradients and tape are of one layer, so they are of one kind.
            _ => return,
        };
        let d_norm = &mut grads.post_norm;
        norm.backward(x, moments, &layer.post_norm, d_normed, d_x, d_norm);
    }

    /// Makes the gradient of the stream after attention that of the layer's input, but for what the MLP
    /// reads of it.
    fn attention_backward(
        &self,
        index: usize,
        layer: &Layer<Tensor>,
        grads: &mut Layer<Tensor>,
        kept: &Activations,
        grad: &mut Tensor,
    ) {
        let norm = layer.attention_norm.as_ref();
        let norm = norm.zip(grads.attention_norm.as_mut());
        let d_out = self.d_branch(norm, &kept.attention_out, grad);
        linear_backward(&kept.attended, &d_out, &mut grads.o, grads.o_bias.as_mut());
        let d_attended = d_out.mm(&layer.o);
        let attention = &self.attentions[self.attention_of[index]];
        let mut d_qkv = attention.backward(&kept.qkv, &kept.kept, &d_attended);
        if let Some((cos, sin)) = &self.turns {
            // The inverse of a rotation is its transpose.
            let width = self.config.head_dim as i64;
            rotate(&mut d_qkv, self.turned(), width, cos, &-sin);
        }
        if let (Some(weights), Some(d_weights), Some(unnormed)) =
            (&layer.qk_norm, &mut grads.qk_norm, &kept.unnormed)
        {
            qk_norm::backward(&self.config, weights, unnormed, &mut d_qkv, d_weights);
        }
        let (rule, moments) = (&self.config.norm, &kept.input_moments);
        let normed = rule.again(&kept.input, moments, &layer.input_norm);
        linear_backward(&normed, &d_qkv, &mut grads.qkv, grads.qkv_bias.as_mut());
        let d_normed = d_qkv.mm(&layer.qkv);
        let d_norm = &mut grads.input_norm;
        rule.backward(
            &kept.input,
            moments,
            &layer.input_norm,
            d_normed,
            grad,
            d_norm,
        );
    }
}
