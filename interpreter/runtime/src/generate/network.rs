//! The decoder without gradients, on panels of rows: what prefill and every decoding step run.

use rlhf_kernels::attention::{Cache, Place, Shape, attend, store};
use rlhf_kernels::linear::{Linear, accumulate, gated, logits, project};
use rlhf_kernels::panel::Panels;
use rlhf_kernels::rms_norm::rms_norm;
use rlhf_kernels::rotary::Rotary;
use rlhf_kernels::storage::{Elements, Matrix};
use tch::Tensor;

use crate::fault::{Fault, Result};
use crate::model::{Layer, Model, rope};

/// A model's weights as the kernels read them, and the activations of one step.
pub(super) struct Network<'m> {
    embed: Matrix<'m>,
    head: Matrix<'m>,
    layers: Vec<Weights<'m>>,
    norm: Vec<f32>,
    eps: f32,
    rotary: Rotary,
    shape: Shape,
    /// The residual stream.
    x: Panels,
    normed: Panels,
    qkv: Panels,
    queries: Vec<f32>,
    attended: Panels,
    inner: Panels,
}

struct Weights<'m> {
    input_norm: Vec<f32>,
    qkv: Affine<'m>,
    o: Affine<'m>,
    post_norm: Vec<f32>,
    gate: Affine<'m>,
    up: Affine<'m>,
    down: Affine<'m>,
}

struct Affine<'m> {
    weight: Matrix<'m>,
    bias: Option<Vec<f32>>,
}

impl Affine<'_> {
    fn linear(&self) -> Linear<'_> {
        Linear {
            weight: self.weight,
            bias: self.bias.as_deref(),
        }
    }
}

impl<'m> Network<'m> {
    /// A view of `model` for sequences of at most `positions` tokens.
    pub(super) fn new(model: &'m Model, positions: usize) -> Result<Self> {
        let config = &model.config;
        let weights = &model.weights;
        let shape = Shape {
            layers: config.layers,
            heads: config.heads,
            kv_heads: config.kv_heads,
            dim: config.head_dim,
        };
        let layers = weights.layers.iter().map(layer).collect::<Result<_>>()?;
        Ok(Network {
            embed: matrix(&weights.embed)?,
            head: matrix(&weights.head)?,
            layers,
            norm: vector(&weights.norm)?,
            eps: config.norm_eps as f32,
            rotary: Rotary::new(&rope::frequencies(config), positions),
            shape,
            x: Panels::new(config.hidden),
            normed: Panels::new(config.hidden),
            qkv: Panels::new(config.qkv_width()),
            queries: Vec::new(),
            attended: Panels::new(config.heads * config.head_dim),
            inner: Panels::new(config.intermediate),
        })
    }

    /// The sizes of its key-value cache.
    pub(super) fn shape(&self) -> Shape {
        self.shape
    }

    /// Logits of a row.
    pub(super) fn vocabulary(&self) -> usize {
        self.head.rows
    }

    /// Runs all layers on one token for each place; their hidden states stay for [`Network::logits`].
    pub(super) fn forward(&mut self, cache: &mut Cache, tokens: &[u32], places: &[Place]) {
        self.x.resize(tokens.len());
        for (r, &token) in tokens.iter().enumerate() {
            self.x.set_row(r, self.embed.row(token as usize));
        }
        for (i, layer) in self.layers.iter().enumerate() {
            rms_norm(&self.x, &layer.input_norm, self.eps, &mut self.normed);
            project(&self.normed, &[layer.qkv.linear()], &mut self.qkv);
            store(cache, i, &self.qkv, places, &self.rotary, &mut self.queries);
            attend(cache, i, &self.queries, places, &mut self.attended);
            accumulate(&self.attended, &layer.o.linear(), &mut self.x);
            rms_norm(&self.x, &layer.post_norm, self.eps, &mut self.normed);
            let (gate, up) = (layer.gate.linear(), layer.up.linear());
            gated(&self.normed, &gate, &up, &mut self.inner);
            accumulate(&self.inner, &layer.down.linear(), &mut self.x);
        }
    }

    /// Hidden states of some rows of the last [`Network::forward`], `[rows, hidden]`, before the last norm.
    pub(super) fn hidden(&self, rows: &[usize]) -> Panels {
        self.x.gather(rows)
    }

    /// Logits that follow `hidden`, `[rows, vocabulary]`.
    pub(super) fn logits(&mut self, hidden: &Panels, out: &mut Vec<f32>) {
        rms_norm(hidden, &self.norm, self.eps, &mut self.normed);
        out.resize(hidden.rows() * self.vocabulary(), 0.0);
        logits(&self.normed, &self.head, out);
    }
}

fn layer(weights: &Layer<Tensor>) -> Result<Weights<'_>> {
    Ok(Weights {
        input_norm: vector(&weights.input_norm)?,
        qkv: affine(&weights.qkv, &weights.qkv_bias)?,
        o: affine(&weights.o, &weights.o_bias)?,
        post_norm: vector(&weights.post_norm)?,
        gate: affine(&weights.gate, &weights.gate_bias)?,
        up: affine(&weights.up, &weights.up_bias)?,
        down: affine(&weights.down, &weights.down_bias)?,
    })
}

fn affine<'m>(weight: &'m Tensor, bias: &Option<Tensor>) -> Result<Affine<'m>> {
    Ok(Affine {
        weight: matrix(weight)?,
        bias: bias.as_ref().map(vector).transpose()?,
    })
}

fn matrix(tensor: &Tensor) -> Result<Matrix<'_>> {
    Matrix::of(tensor).map_err(unreadable)
}

fn vector(tensor: &Tensor) -> Result<Vec<f32>> {
    Ok(Elements::of(tensor).map_err(unreadable)?.to_f32())
}

fn unreadable(why: String) -> Fault {
    Fault::new(format!("a weight cannot be read for generation: {why}"))
}
