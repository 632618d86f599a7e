//! Scoring rows, and the live pass through which gradients reach a model.

use tch::{Kind, Tensor};

use super::Model;
use super::body::{Body, Tape};
use super::head::{Head, Scores};
use super::ops::{inverse_rms, rms_norm, rms_norm_backward};
use super::pack::Packed;
use crate::batch::Rows;

/// Packed lines that one forward pass of [`Model::score`] takes at most, where groups allow it.
const LINES: usize = 4096;

impl Model {
    /// Log-probability of each response token at `temperature` (0 reads as 1), in the order of the
    /// rows, and the entropy of each distribution if wanted. Keeps nothing for a gradient.
    pub fn score(&self, rows: &Rows, temperature: f64, want_entropy: bool) -> Scores {
        let head = head(self, temperature);
        let mut parts = Vec::new();
        for range in rows.portions(LINES) {
            let packed = Packed::rows(&rows.select_prompts(range));
            let stream = match packed.is_empty() {
                true => continue,
                false => Body::new(&self.config, &packed).forward(&self.weights),
            };
            let (hidden, ..) = self.last_norm(&stream.index_select(0, &packed.predicting));
            parts.push(head.forward(&hidden, &packed.targets, want_entropy));
        }
        Scores::joined(parts, want_entropy)
    }

    /// Logits after each token of one sequence, f32 `[len, vocabulary]`: whole, for comparisons.
    pub fn forward_logits(&self, ids: &[u32]) -> Tensor {
        let packed = Packed::sequence(ids);
        let stream = Body::new(&self.config, &packed).forward(&self.weights);
        let (hidden, _) = self.last_norm(&stream);
        hidden.mm(&self.weights.head.tr()).to_kind(Kind::Float)
    }

    fn last_norm(&self, stream: &Tensor) -> (Tensor, Tensor) {
        let inverse = inverse_rms(stream, self.config.norm_eps);
        (rms_norm(stream, &inverse, &self.weights.norm), inverse)
    }
}

fn head(model: &Model, temperature: f64) -> Head<'_> {
    Head {
        weight: &model.weights.head,
        temperature: if temperature == 0.0 { 1.0 } else { temperature },
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
    packed: Packed,
    body: Body,
    tape: Tape,
    /// The residual stream where tokens are predicted, `[tokens, hidden]`.
    stream: Tensor,
    scores: Scores,
}

impl LivePass {
    /// Runs the model over the rows. `temperature` 0 reads as 1.
    pub fn forward(model: &Model, rows: &Rows, temperature: f64, want_entropy: bool) -> Self {
        let packed = Packed::rows(rows);
        let body = Body::new(&model.config, &packed);
        let (stream, tape) = body.forward_taped(&model.weights);
        let stream = stream.index_select(0, &packed.predicting);
        let (hidden, _) = model.last_norm(&stream);
        let scores = head(model, temperature).forward(&hidden, &packed.targets, want_entropy);
        LivePass {
            temperature,
            packed,
            body,
            tape,
            stream,
            scores,
        }
    }

    /// Log-probability of each response token, f32 `[tokens]`.
    pub fn logp(&self) -> Tensor {
        self.scores.logp.shallow_clone()
    }

    /// Entropy at each response token, f32 `[tokens]`, where asked for.
    pub fn entropy(&self) -> Option<Tensor> {
        self.scores.entropy.as_ref().map(Tensor::shallow_clone)
    }

    /// Adds to the gradient of `model`, which must be as it was in the forward pass, given the loss's gradient with respect to each log-probability
    /// and each entropy, both `[tokens]`. `d_entropy` counts only where entropy was asked for.
    pub fn backward(self, model: &mut Model, d_logp: &Tensor, d_entropy: Option<&Tensor>) {
        if self.packed.is_empty() {
            return;
        }
        let mut grads = model.gradient_views();
        let model: &Model = model;
        let d_logp = d_logp.to_kind(Kind::Float);
        let d_entropy = d_entropy.map(|d| d.to_kind(Kind::Float));
        let entropy = self.scores.entropy.as_ref().zip(d_entropy.as_ref());
        let (hidden, inverse) = model.last_norm(&self.stream);
        let d_hidden = head(model, self.temperature).backward(
            &hidden,
            &self.packed.targets,
            &d_logp,
            entropy,
            &mut grads.head,
        );
        let mut d_predicting = self.stream.zeros_like();
        rms_norm_backward(
            &self.stream,
            &inverse,
            &model.weights.norm,
            d_hidden,
            &mut d_predicting,
            &mut grads.norm,
        );
        let lines = [self.packed.len(), model.config.hidden as i64];
        let mut d_stream = Tensor::zeros(lines, (self.stream.kind(), self.stream.device()));
        let _ = d_stream.index_add_(0, &self.packed.predicting, &d_predicting);
        self.body
            .backward(&model.weights, &mut grads, self.tape, d_stream);
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
