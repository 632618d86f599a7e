//! The head in chunks: log-probability and entropy of each token, and their gradients, without ever
//! holding `[tokens, vocabulary]` whole.

use tch::{Device, Kind, Tensor};

/// Logits of one chunk: enough lines to keep the matrix products busy.
const LOGITS: i64 = 1 << 24;

/// The head of one call: its weight and the temperature that divides logits.
#[derive(Debug)]
pub struct Head<'m> {
    /// `[vocabulary, hidden]`.
    pub weight: &'m Tensor,
    /// The bound c of logits x, which become c · tanh(x / c).
    pub cap: Option<f64>,
    /// Positive.
    pub temperature: f64,
}

/// Per token, f32 `[tokens]`.
#[derive(Debug)]
pub struct Scores {
    /// Log-probability of each target.
    pub logp: Tensor,
    /// Entropy of each distribution in nats, where asked for.
    pub entropy: Option<Tensor>,
}

impl Head<'_> {
    /// Scores `targets` `[tokens]` under the hidden states that predict them `[tokens, hidden]`.
    pub fn forward(&self, hidden: &Tensor, targets: &Tensor, want_entropy: bool) -> Scores {
        let mut logps = Vec::new();
        let mut entropies = Vec::new();
        let mut scratch = Scratch::new(self, hidden);
        for (start, len) in scratch.chunks() {
            let logp = scratch.log_softmax(self, &hidden.narrow(0, start, len));
            let chosen = targets.narrow(0, start, len).unsqueeze(1);
            logps.push(logp.gather(1, &chosen, false).squeeze_dim(1));
            if want_entropy {
                let mean =
                    (logp.exp() * &logp).sum_dim_intlist([1i64].as_slice(), false, Kind::Float);
                entropies.push(mean.neg());
            }
        }
        Scores {
            logp: joined(&logps),
            entropy: want_entropy.then(|| joined(&entropies)),
        }
    }

    /// Adds the gradient of the weight to `d_weight` (f32) and returns that of `hidden`, given those
    /// of the scores.
    ///
    /// With p the distribution, H its entropy and z the logits over temperature:
    /// ∂logp/∂z = onehot − p and ∂H/∂z = −p (log p + H).
    pub fn backward(
        &self,
        hidden: &Tensor,
        targets: &Tensor,
        d_logp: &Tensor,
        entropy: Option<(&Tensor, &Tensor)>,
        d_weight: &mut Tensor,
    ) -> Tensor {
        let d_hidden = Tensor::empty(hidden.size(), (hidden.kind(), hidden.device()));
        let mut scratch = Scratch::new(self, hidden);
        let scale = 1.0 / self.temperature;
        for (start, len) in scratch.chunks() {
            let lines = hidden.narrow(0, start, len);
            let part = |t: &Tensor| t.narrow(0, start, len).unsqueeze(1);
            let d_chosen = part(d_logp) * scale;
            let mut d_logits = match entropy {
                None => {
                    let mut p = scratch.softmax(self, &lines);
                    p.g_mul_(&-&d_chosen)
                }
                Some((entropy, d_entropy)) => {
                    let logp = scratch.log_softmax(self, &lines);
                    let slope = (&logp + part(entropy)) * (part(d_entropy) * scale) + &d_chosen;
                    logp.exp() * -slope
                }
            };
            let _ = d_logits.scatter_add_(1, &part(targets), &d_chosen);
            if let Some(slope) = &scratch.slope {
                let _ = d_logits.g_mul_(slope);
            }
            let d_logits = d_logits.to_kind(hidden.kind());
            let _ = d_logits.mm_out(&d_hidden.narrow(0, start, len), self.weight);
            super::ops::linear_backward(&lines, &d_logits, d_weight, None);
        }
        d_hidden
    }
}

/// Two chunk-sized buffers, used by every chunk.
struct Scratch {
    tokens: i64,
    lines: i64,
    logits: Tensor,
    normalized: Tensor,
    /// The slope of the bound at the last chunk's logits.
    slope: Option<Tensor>,
}

impl Scratch {
    fn new(head: &Head, hidden: &Tensor) -> Scratch {
        let vocabulary = head.weight.size()[0];
        let tokens = hidden.size()[0];
        let lines = (LOGITS / vocabulary).clamp(1, tokens.max(1));
        let buffer = |kind| Tensor::empty([lines, vocabulary], (kind, hidden.device()));
        Scratch {
            tokens,
            lines,
            logits: buffer(hidden.kind()),
            normalized: buffer(Kind::Float),
            slope: None,
        }
    }

    /// Starts and lengths.
    fn chunks(&self) -> impl Iterator<Item = (i64, i64)> + use<> {
        let (tokens, lines) = (self.tokens, self.lines);
        (0..tokens)
            .step_by(lines as usize)
            .map(move |start| (start, lines.min(tokens - start)))
    }

    fn log_softmax(&mut self, head: &Head, hidden: &Tensor) -> Tensor {
        let out = self.normalized.narrow(0, 0, hidden.size()[0]);
        let logits = self.logits(head, hidden);
        logits.internal_log_softmax_out(&out, 1, false)
    }

    fn softmax(&mut self, head: &Head, hidden: &Tensor) -> Tensor {
        let out = self.normalized.narrow(0, 0, hidden.size()[0]);
        let logits = self.logits(head, hidden);
        logits.internal_softmax_out(&out, 1, false)
    }

    /// f32 logits over temperature.
    fn logits(&mut self, head: &Head, hidden: &Tensor) -> Tensor {
        let out = self.logits.narrow(0, 0, hidden.size()[0]);
        let mut logits = hidden.mm_out(&out, &head.weight.tr()).to_kind(Kind::Float);
        if let Some(cap) = head.cap {
            let mut bent = logits.g_div_scalar_(cap).tanh_();
            self.slope = Some(1.0 - bent.square());
            logits = bent.g_mul_scalar_(cap);
        }
        match head.temperature == 1.0 {
            true => logits,
            false => logits.g_mul_scalar_(1.0 / head.temperature),
        }
    }
}

pub(super) fn joined(parts: &[Tensor]) -> Tensor {
    match parts.is_empty() {
        true => Tensor::empty([0], (Kind::Float, Device::Cpu)),
        false => Tensor::cat(parts, 0),
    }
}
