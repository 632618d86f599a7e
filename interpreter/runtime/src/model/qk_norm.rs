//! Norms of each head's query and key, before positions are applied (Henry et al., 2020).

use tch::Tensor;

use super::config::Config;
use super::norm::Moments;
use super::weights::NormWeights;

/// Queries and keys before their norms, one line a head, with the norms' moments.
#[derive(Debug)]
pub(super) struct Unnormed([(Tensor, Moments); 2]);

/// Norms the queries and keys of `qkv` in place.
pub(super) fn forward(
    config: &Config,
    weights: &[NormWeights<Tensor>; 2],
    qkv: &mut Tensor,
) -> Unnormed {
    let parts = parts(config, qkv);
    let norm = |part: &Tensor, weights: &NormWeights<Tensor>| {
        // A copy, since the part is overwritten.
        let lines = part.reshape([-1, config.head_dim as i64]).copy();
        let (normed, moments) = config.norm.forward(&lines, weights);
        part.shallow_clone()
            .copy_(&normed.view(part.size().as_slice()));
        (lines, moments)
    };
    let [q, k] = &parts;
    Unnormed([norm(q, &weights[0]), norm(k, &weights[1])])
}

/// Makes the gradients of normed queries and keys in `d_qkv` those of the queries and keys.
pub(super) fn backward(
    config: &Config,
    weights: &[NormWeights<Tensor>; 2],
    unnormed: &Unnormed,
    d_qkv: &mut Tensor,
    d_weights: &mut [NormWeights<Tensor>; 2],
) {
    let parts = parts(config, d_qkv);
    for (i, part) in parts.iter().enumerate() {
        let (lines, moments) = &unnormed.0[i];
        let grad = part.reshape([-1, config.head_dim as i64]).copy();
        let mut d_lines = grad.zeros_like();
        let (own, d_own) = (&weights[i], &mut d_weights[i]);
        let rule = &config.norm;
        rule.backward(lines, moments, own, grad, &mut d_lines, d_own);
        part.shallow_clone()
            .copy_(&d_lines.view(part.size().as_slice()));
    }
}

/// Views of the queries and of the keys.
fn parts(config: &Config, qkv: &Tensor) -> [Tensor; 2] {
    let queries = (config.heads * config.head_dim) as i64;
    let keys = (config.kv_heads * config.head_dim) as i64;
    [qkv.narrow(1, 0, queries), qkv.narrow(1, queries, keys)]
}
