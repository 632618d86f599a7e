//! Scoring rows, and the live pass through which gradients reach a model.

use tch::{Kind, Tensor};

use super::Model;
use super::body::{Body, Tape};
use super::head::{Head, Scores};
use super::norm::Moments;
use super::pack::Packed;
use super::weights::Weights;
use crate::batch::Rows;

/// Packed lines that one forward pass of [`Model::score`] takes at most, where groups allow it.
pub(super) const LINES: usize = 4096;

impl Model {
    /// Log-probability of each response token at `temperature` (0 reads as 1), in the order of the
    /// rows, and the entropy of each distribution if wanted. Keeps nothing for a gradient.
    pub fn score(&self, rows: &Rows, temperature: f64, want_entropy: bool) -> Scores {
        let head = head(self, temperature);
        let mut parts = Vec::new();
        for range in rows.portions(LINES) {
            let packed = Packed::rows(&rows.select_prompts(range));
            if packed.is_empty() {
                continue;
            }
            let hidden = self.hidden(&packed, &packed.predicting);
            parts.push(head.forward(&hidden, &packed.targets, want_entropy));
        }
        Scores::joined(parts, want_entropy)
    }

    /// Logits after each token of one sequence, f32 `[len, vocabulary]`: whole, for comparisons.
    pub fn forward_logits(&self, ids: &[u32]) -> Tensor {
        let packed = Packed::sequence(ids);
        let stream = Body::new(&self.config, &packed).forward(&self.weights);
        let (hidden, _) = self.last_norm(&stream);
        let logits = hidden.mm(&self.weights.head.tr()).to_kind(Kind::Float);
        match self.config.logit_cap {
            None => logits,
            Some(cap) => (logits / cap).tanh() * cap,
        }
    }

    /// Hidden states of some packed lines, `[lines, hidden]`.
    pub(super) fn hidden(&self, packed: &Packed, lines: &Tensor) -> Tensor {
        let stream = Body::new(&self.config, packed).forward(&self.weights);
        self.last_norm(&stream.index_select(0, lines)).0
    }

    fn last_norm(&self, stream: &Tensor) -> (Tensor, Moments) {
        self.config.norm.forward(stream, &self.weights.norm)
    }
}

fn head(model: &Model, temperature: f64) -> Head<'_> {
    Head {
        weight: &model.weights.head,
        cap: model.config.logit_cap,
        temperature: if temperature == 0.0 { 1.0 } else { temperature },
    }
}

/// The body's part of a differentiable pass: hidden states of some lines, and the way back from them.
#[derive(Debug)]
pub(super) struct Trunk {
    packed: Packed,
    body: Body,
    tape: Tape,
    lines: Tensor,
    /// The residual stream at `lines`, `[lines, hidden]`.
    stream: Tensor,
}

impl Trunk {
    /// Runs the body over the packed rows and keeps what its backward pass needs.
    pub(super) fn forward(model: &Model, packed: Packed, lines: Tensor) -> Trunk {
        let body = Body::new(&model.config, &packed);
        let (stream, tape) = body.forward_taped(&model.weights);
        let stream = stream.index_select(0, &lines);
        Trunk {
            packed,
            body,
            tape,
            lines,
            stream,
        }
    }

    /// Hidden states at the lines, `[lines, hidden]`.
    pub(super) fn hidden(&self, model: &Model) -> Tensor {
        model.last_norm(&self.stream).0
    }

    /// Adds the gradients of the last norm and of everything below it to `grads`, given that of
    /// [`Trunk::hidden`].
    pub(super) fn backward(self, model: &Model, grads: &mut Weights<Tensor>, d_hidden: Tensor) {
        let (_, moments) = model.last_norm(&self.stream);
        let mut d_chosen = self.stream.zeros_like();
        model.config.norm.backward(
            &self.stream,
            &moments,
            &model.weights.norm,
            d_hidden,
            &mut d_chosen,
            &mut grads.norm,
        );
        let shape = [self.packed.len(), model.config.hidden as i64];
        let mut d_stream = Tensor::zeros(shape, (self.stream.kind(), self.stream.device()));
        let _ = d_stream.index_add_(0, &self.lines, &d_chosen);
        self.body
            .backward(&model.weights, grads, self.tape, d_stream);
    }
}

/// A forward pass whose numbers can be differentiated in two stages.
///
/// The body runs once and keeps its activations. The head gives per-token numbers in chunks and keeps
/// only them. The loss is someone else's expression over those numbers; its gradient with respect to
/// them comes back through [`LivePass::backward`], which computes each chunk's logits again and adds
/// to [`Model::gradient`]. Rows cut into several passes give the gradient of the whole.
#[derive(Debug)]
pub struct LivePass {
    temperature: f64,
    targets: Tensor,
    trunk: Trunk,
    scores: Scores,
}

impl LivePass {
    /// Runs the model over the rows. `temperature` 0 reads as 1.
    pub fn forward(model: &Model, rows: &Rows, temperature: f64, want_entropy: bool) -> Self {
        let packed = Packed::rows(rows);
        let targets = packed.targets.shallow_clone();
        let lines = packed.predicting.shallow_clone();
        let trunk = Trunk::forward(model, packed, lines);
        let scores = head(model, temperature).forward(&trunk.hidden(model), &targets, want_entropy);
        LivePass {
            temperature,
            targets,
            trunk,
            scores,
        }
    }

    /// Log-probability of each response token, f32 `[tokens]`.
    pub fn logp(&self) -> Tensor {
        self.scores.logp.shallow_clone()
    }

    /// How unevenly the router of a mixture of experts spreads the packed tokens, a prompt's counted
    /// once for its group: the load-balancing loss of Fedus et al. (2021) as transformers takes it. None
    /// without experts. In the backward pass it is a part of the loss by
    /// [`super::config::Routing::balance`].
    pub fn balance(&self) -> Option<f64> {
        self.trunk.tape.balance()
    }

    /// Entropy at each response token, f32 `[tokens]`, where asked for.
    pub fn entropy(&self) -> Option<Tensor> {
        self.scores.entropy.as_ref().map(Tensor::shallow_clone)
    }

    /// Adds to the gradient of `model`, which must be as it was in the forward pass, given the loss's
    /// gradient with respect to each log-probability and each entropy, both `[tokens]`. `d_entropy`
    /// counts only where entropy was asked for.
    pub fn backward(self, model: &mut Model, d_logp: &Tensor, d_entropy: Option<&Tensor>) {
        if self.trunk.packed.is_empty() {
            return;
        }
        let mut grads = model.gradient_views();
        let model: &Model = model;
        let d_logp = d_logp.to_kind(Kind::Float);
        let d_entropy = d_entropy.map(|d| d.to_kind(Kind::Float));
        let entropy = self.scores.entropy.as_ref().zip(d_entropy.as_ref());
        let d_hidden = head(model, self.temperature).backward(
            &self.trunk.hidden(model),
            &self.targets,
            &d_logp,
            entropy,
            &mut grads.head,
        );
        self.trunk.backward(model, &mut grads, d_hidden);
    }
}

impl Scores {
    fn joined(parts: Vec<Scores>, want_entropy: bool) -> Scores {
        let (logps, entropies): (Vec<_>, Vec<_>) =
            parts.into_iter().map(|s| (s.logp, s.entropy)).unzip();
        let entropies: Vec<Tensor> = entropies.into_iter().flatten().collect();
        Scores {
            logp: super::head::joined(&logps),
            entropy: want_entropy.then(|| super::head::joined(&entropies)),
        }
    }
}
