//! Rotary position embedding: angles by position.
//!
//! Heads are split in halves, as Hugging Face checkpoints store them: element `i` turns with element
//! `i + head_dim / 2` by `position · frequency_i`.

use tch::{Kind, Tensor};

use super::config::{Config, Rope, RopeScaling};

/// Radians a position, `head_dim / 2` of them, scaling included.
pub fn frequencies(config: &Config) -> Vec<f32> {
    let Rope { theta, scaling } = &config.rope;
    let half = config.head_dim / 2;
    (0..half)
        .map(|i| {
            let plain = 1.0 / theta.powf(i as f64 / half as f64);
            scaled(plain, scaling) as f32
        })
        .collect()
}

/// Llama 3's rule is from the reference code published with Llama 3.1.
fn scaled(plain: f64, scaling: &RopeScaling) -> f64 {
    match *scaling {
        RopeScaling::None => plain,
        RopeScaling::Linear { factor } => plain / factor,
        RopeScaling::Llama3 {
            factor,
            low,
            high,
            original,
        } => {
            let turns = original * plain / std::f64::consts::TAU;
            let keep = ((turns - low) / (high - low)).clamp(0.0, 1.0);
            keep * plain + (1.0 - keep) * plain / factor
        }
    }
}

/// Cosines and sines at these positions, both f32 `[tokens, head_dim / 2]`.
pub fn angles(config: &Config, positions: &[i64]) -> (Tensor, Tensor) {
    let frequencies = Tensor::from_slice(&frequencies(config));
    let positions = Tensor::from_slice(positions).to_kind(Kind::Float);
    let angles = positions.outer(&frequencies);
    (angles.cos(), angles.sin())
}
