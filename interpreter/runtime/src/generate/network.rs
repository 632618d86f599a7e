//! The decoder without gradients, on panels of rows: what prefill and every decoding step run.

use rlhf_kernels::attention::{Cache, Place, Scores, Shape, attend, store};
use rlhf_kernels::gate::Activation;
use rlhf_kernels::linear::{accumulate, logits, project};
use rlhf_kernels::panel::Panels;
use rlhf_kernels::rms_norm::rms_norm_heads;
use rlhf_kernels::rotary::Rotary;
use rlhf_kernels::storage::Matrix;
use tch::Tensor;

use super::feed_forward::FeedForward;
use super::weights::{Affine, Norm, matrix};
use crate::fault::Result;
use crate::model::activation::Activation as Function;
use crate::model::config::{Branches, Config, Positions};
use crate::model::{Layer, Model};

/// A model's weights as the kernels read them, and the activations of one step.
pub(super) struct Network<'m> {
    embed: Matrix<'m>,
    embed_scale: f32,
    positions: Option<Matrix<'m>>,
    head: Matrix<'m>,
    logit_cap: Option<f32>,
    layers: Vec<Weights<'m>>,
    norm: Norm,
    rotary: Option<Rotary>,
    shape: Shape,
    branches: Branches,
    /// The residual stream.
    x: Panels,
    normed: Panels,
    qkv: Panels,
    queries: Vec<f32>,
    attended: Panels,
    /// A branch's output, where a norm follows it.
    branch: Panels,
}

struct Weights<'m> {
    input_norm: Norm,
    qkv: Affine<'m>,
    qk_norm: Option<[Norm; 2]>,
    scores: Scores,
    o: Affine<'m>,
    attention_norm: Option<Norm>,
    post_norm: Norm,
    mlp: FeedForward<'m>,
    mlp_norm: Option<Norm>,
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
        let layers = weights.layers.iter().enumerate();
        let layers = layers
            .map(|(i, weights)| layer(config, i, weights))
            .collect::<Result<_>>()?;
        let scale = config.embed_scale_in(weights.embed.kind());
        Ok(Network {
            embed: matrix(&weights.embed)?,
            embed_scale: scale.map_or(1.0, |scale| scale as f32),
            positions: weights.positions.as_ref().map(matrix).transpose()?,
            head: matrix(&weights.head)?,
            logit_cap: config.logit_cap.map(|cap| cap as f32),
            layers,
            norm: Norm::new(config, &weights.norm)?,
            rotary: match &config.encoding {
                Positions::Learned => None,
                Positions::Rotary(rope) => {
                    let frequencies = rope.frequencies();
                    Some(Rotary::scaled(
                        &frequencies,
                        rope.attention as f32,
                        positions,
                    ))
                }
            },
            shape,
            branches: config.branches,
            x: Panels::new(config.hidden),
            normed: Panels::new(config.hidden),
            qkv: Panels::new(config.qkv_width()),
            queries: Vec::new(),
            attended: Panels::new(config.heads * config.head_dim),
            branch: Panels::new(config.hidden),
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
        self.embed(tokens, places);
        let shape = self.shape;
        for (i, layer) in self.layers.iter_mut().enumerate() {
            layer.input_norm.apply(&self.x, &mut self.normed);
            project(&self.normed, &[layer.qkv.linear()], &mut self.qkv);
            if let Some([q, k]) = &layer.qk_norm {
                let keys = shape.heads * shape.dim;
                rms_norm_heads(&mut self.qkv, 0, shape.heads, &q.weight, q.eps);
                rms_norm_heads(&mut self.qkv, keys, shape.kv_heads, &k.weight, k.eps);
            }
            let rotary = self.rotary.as_ref();
            store(cache, i, &self.qkv, places, rotary, &mut self.queries);
            attend(
                cache,
                i,
                &self.queries,
                places,
                &layer.scores,
                &mut self.attended,
            );
            // Where both branches read the layer's input, the MLP's norm reads before attention is added.
            if self.branches == Branches::Parallel {
                layer.post_norm.apply(&self.x, &mut self.normed);
            }
            match &layer.attention_norm {
                None => accumulate(&self.attended, &layer.o.linear(), &mut self.x),
                Some(norm) => {
                    project(&self.attended, &[layer.o.linear()], &mut self.branch);
                    norm.apply(&self.branch, &mut self.normed);
                    self.x.add(&self.normed);
                }
            }
            if self.branches == Branches::Sequential {
                layer.post_norm.apply(&self.x, &mut self.normed);
            }
            match &layer.mlp_norm {
                None => layer.mlp.add(&self.normed, &mut self.x),
                Some(norm) => {
                    self.branch.clear(tokens.len());
                    layer.mlp.add(&self.normed, &mut self.branch);
                    norm.apply(&self.branch, &mut self.normed);
                    self.x.add(&self.normed);
                }
            }
        }
    }

    fn embed(&mut self, tokens: &[u32], places: &[Place]) {
        self.x.resize(tokens.len());
        for (r, (&token, place)) in tokens.iter().zip(places).enumerate() {
            let row = self.embed.row(token as usize);
            match (&self.positions, self.embed_scale) {
                (None, 1.0) => self.x.set_row(r, row),
                (None, scale) => self.x.set_row(r, row.map(|x| x * scale)),
                (Some(table), scale) => {
                    let places = table.row(place.position);
                    self.x
                        .set_row(r, row.zip(places).map(|(x, p)| x * scale + p));
                }
            }
        }
    }

    /// Hidden states of some rows of the last [`Network::forward`], `[rows, hidden]`, before the last norm.
    pub(super) fn hidden(&self, rows: &[usize]) -> Panels {
        self.x.gather(rows)
    }

    /// Logits that follow `hidden`, `[rows, vocabulary]`.
    pub(super) fn logits(&mut self, hidden: &Panels, out: &mut Vec<f32>) {
        self.norm.apply(hidden, &mut self.normed);
        out.resize(hidden.rows() * self.vocabulary(), 0.0);
        logits(&self.normed, &self.head, out);
        if let Some(cap) = self.logit_cap {
            out.iter_mut().for_each(|x| *x = cap * (*x / cap).tanh());
        }
    }
}

fn layer<'m>(config: &Config, index: usize, weights: &'m Layer<Tensor>) -> Result<Weights<'m>> {
    let activation = match config.gate.activation() {
        Function::Silu => Activation::Silu,
        Function::Gelu => Activation::Gelu,
        Function::GeluTanh => Activation::GeluTanh,
    };
    let norm = |weights| Norm::new(config, weights);
    Ok(Weights {
        input_norm: norm(&weights.input_norm)?,
        qkv: Affine::new(&weights.qkv, &weights.qkv_bias)?,
        qk_norm: match &weights.qk_norm {
            Some([q, k]) => Some([norm(q)?, norm(k)?]),
            None => None,
        },
        scores: Scores {
            scale: config.query_scale as f32,
            cap: config.attention_cap.map(|cap| cap as f32),
            window: config.windows[index],
        },
        o: Affine::new(&weights.o, &weights.o_bias)?,
        attention_norm: weights.attention_norm.as_ref().map(norm).transpose()?,
        post_norm: norm(&weights.post_norm)?,
        mlp: FeedForward::new(config, activation, &weights.mlp)?,
        mlp_norm: weights.mlp_norm.as_ref().map(norm).transpose()?,
    })
}
