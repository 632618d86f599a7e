//! Rotary position embedding: its options, and angles by position.
//!
//! The turned part of a head is split in halves, as Hugging Face checkpoints store it: element `i` turns
//! with element `i + width / 2` by `position · frequency_i`.

use std::f64::consts::TAU;

use serde_json::Value;
use tch::{Kind, Tensor};

use super::config::Fields;
use super::family::{Encoding, Family};
use crate::fault::{Fault, Result};

/// Rotary position embedding: the base and how frequencies are scaled.
#[derive(Clone, Debug, PartialEq)]
pub struct Rope {
    /// Elements of a head that are turned, even; the first ones.
    pub width: usize,
    /// Base of the geometric sequence of wavelengths.
    pub theta: f64,
    /// Scaling beyond the positions of pre-training.
    pub scaling: RopeScaling,
    /// What queries and keys are multiplied by beside.
    pub attention: f64,
    /// Longest sequence for which the frequencies hold; none where they hold for any.
    pub limit: Option<usize>,
}

/// How rotary frequencies are scaled.
#[derive(Clone, Debug, PartialEq)]
pub enum RopeScaling {
    /// Not at all.
    None,
    /// Every frequency divided by the factor.
    Linear {
        /// The divisor.
        factor: f64,
    },
    /// Llama 3: long wavelengths divided by the factor, short ones kept, a blend between.
    Llama3 {
        /// The divisor of long wavelengths.
        factor: f64,
        /// Wavelengths above `original / low` are divided.
        low: f64,
        /// Wavelengths below `original / high` are kept.
        high: f64,
        /// Positions of pre-training.
        original: f64,
    },
    /// YaRN (Peng et al., 2023): frequencies from the index `low` up to `high` pass over from kept to
    /// divided by the factor.
    Yarn {
        /// The divisor of low frequencies.
        factor: f64,
        /// Indices below are kept.
        low: f64,
        /// Indices above are divided.
        high: f64,
    },
    /// LongRoPE (Ding et al., 2024): each frequency divided by its own factor.
    Each(Vec<f64>),
}

const KINDS: &str = "supported: default, linear, dynamic, llama3, yarn, longrope";

/// Reads `rope_parameters` (transformers 5) or `rope_theta` with `rope_scaling`.
///
/// Two scalings change with the length of a sequence, `dynamic` and `longrope`. A token would then be
/// scored by other frequencies than those it was drawn with, so sequences are limited to the range in
/// which the frequencies stay: [`Rope::limit`].
pub(super) fn read(
    fields: &Fields,
    family: &Family,
    head_dim: usize,
    positions: usize,
) -> Result<Rope> {
    let json = fields.0;
    let nested = ["rope_parameters", "rope_scaling"]
        .iter()
        .find_map(|key| json.get(key).filter(|v| v.is_object()));
    let inner = Fields(nested.unwrap_or(&Value::Null));
    let either = |keys: &[&str]| {
        let found = keys.iter().find_map(|key| inner.number(key));
        found.or_else(|| keys.iter().find_map(|key| fields.number(key)))
    };
    let theta = either(&["rope_theta", "rotary_emb_base"]).unwrap_or(family.theta);
    let part = either(&["partial_rotary_factor"]);
    let part = match family.encoding {
        Encoding::PartRotary(older, default) => {
            part.or_else(|| fields.number(older)).unwrap_or(default)
        }
        _ => match part {
            Some(other) if other != 1.0 => {
                return Err(Fault::new(format!(
                    "`partial_rotary_factor` is {other}; {} turns heads whole",
                    family.architecture
                )));
            }
            _ => 1.0,
        },
    };
    let width = (head_dim as f64 * part) as usize;
    if width == 0 || !width.is_multiple_of(2) || width > head_dim {
        return Err(Fault::new(format!(
            "rotary positions need an even head width; it is {width}"
        )));
    }
    let plain = Rope {
        width,
        theta,
        scaling: RopeScaling::None,
        attention: 1.0,
        limit: None,
    };
    scaled_by(plain, &inner, fields, positions)
}

fn scaled_by(plain: Rope, inner: &Fields, outer: &Fields, positions: usize) -> Result<Rope> {
    let kind = ["rope_type", "type"]
        .iter()
        .find_map(|key| inner.0.get(key).and_then(Value::as_str))
        .unwrap_or("default");
    let need = |key: &str| {
        inner
            .number(key)
            .ok_or_else(|| Fault::new(format!("rotary scaling `{kind}` needs a number `{key}`")))
    };
    let key = "original_max_position_embeddings";
    let original = inner.number(key).or_else(|| outer.number(key));
    let original = original.unwrap_or(positions as f64);
    let rope = match kind {
        "default" => plain,
        "linear" => Rope {
            scaling: RopeScaling::Linear {
                factor: need("factor")?,
            },
            ..plain
        },
        // Frequencies change only beyond the positions of pre-training.
        "dynamic" => Rope {
            limit: Some(positions),
            ..plain
        },
        "llama3" => Rope {
            scaling: RopeScaling::Llama3 {
                factor: need("factor")?,
                low: need("low_freq_factor")?,
                high: need("high_freq_factor")?,
                original,
            },
            ..plain
        },
        "yarn" => yarn(plain, inner, original, positions),
        "longrope" | "su" => longrope(plain, inner, original, positions)?,
        other => {
            let fault = Fault::new(format!("rotary scaling `{other}` is not supported"));
            return Err(fault.help(KINDS));
        }
    };
    Ok(rope)
}

fn yarn(plain: Rope, inner: &Fields, original: f64, positions: usize) -> Rope {
    let factor = inner
        .number("factor")
        .unwrap_or(positions as f64 / original);
    let longer = |scale: f64| match factor > 1.0 {
        true => 0.1 * scale * factor.ln() + 1.0,
        false => 1.0,
    };
    let nonzero = |key: &str| inner.number(key).filter(|n| *n != 0.0);
    let attention = inner.number("attention_factor").unwrap_or_else(|| {
        match (nonzero("mscale"), nonzero("mscale_all_dim")) {
            (Some(own), Some(all)) => longer(own) / longer(all),
            _ => longer(1.0),
        }
    });
    let width = plain.width as f64;
    let index = |turns: f64| width * (original / (turns * TAU)).ln() / (2.0 * plain.theta.ln());
    let low = index(nonzero("beta_fast").unwrap_or(32.0));
    let high = index(nonzero("beta_slow").unwrap_or(1.0));
    let (low, high) = match inner.0.get("truncate").and_then(Value::as_bool) {
        Some(false) => (low, high),
        _ => (low.floor(), high.ceil()),
    };
    Rope {
        scaling: RopeScaling::Yarn {
            factor,
            low: low.max(0.0),
            high: high.min(width - 1.0),
        },
        attention,
        ..plain
    }
}

fn longrope(plain: Rope, inner: &Fields, original: f64, positions: usize) -> Result<Rope> {
    let key = "short_factor";
    let listed = inner.0.get(key).and_then(Value::as_array);
    let factors: Vec<f64> = listed
        .into_iter()
        .flatten()
        .filter_map(Value::as_f64)
        .collect();
    if factors.len() != plain.width / 2 {
        return Err(Fault::new(format!(
            "rotary scaling `longrope` needs {} numbers in `{key}`; it has {}",
            plain.width / 2,
            factors.len()
        )));
    }
    let factor = inner
        .number("factor")
        .unwrap_or(positions as f64 / original);
    let attention = inner
        .number("attention_factor")
        .unwrap_or_else(|| match factor > 1.0 {
            true => (1.0 + factor.ln() / original.ln()).sqrt(),
            false => 1.0,
        });
    Ok(Rope {
        scaling: RopeScaling::Each(factors),
        attention,
        limit: Some(original as usize),
        ..plain
    })
}

impl Rope {
    /// Radians a position, `width / 2` of them, scaling included.
    pub fn frequencies(&self) -> Vec<f32> {
        let half = self.width / 2;
        (0..half)
            .map(|i| {
                let plain = 1.0 / self.theta.powf(i as f64 / half as f64);
                self.scaling.apply(plain, i) as f32
            })
            .collect()
    }

    /// Cosines and sines at these positions, both f32 `[tokens, width / 2]`.
    pub(super) fn angles(&self, positions: &[i64]) -> (Tensor, Tensor) {
        let frequencies = Tensor::from_slice(&self.frequencies());
        let positions = Tensor::from_slice(positions).to_kind(Kind::Float);
        let angles = positions.outer(&frequencies);
        match self.attention == 1.0 {
            true => (angles.cos(), angles.sin()),
            false => (angles.cos() * self.attention, angles.sin() * self.attention),
        }
    }
}

impl RopeScaling {
    /// Frequency `i`, which was `plain`. Llama 3's rule is from the reference code published with
    /// Llama 3.1.
    fn apply(&self, plain: f64, i: usize) -> f64 {
        match self {
            RopeScaling::None => plain,
            RopeScaling::Linear { factor } => plain / factor,
            RopeScaling::Llama3 {
                factor,
                low,
                high,
                original,
            } => {
                let turns = original * plain / TAU;
                let keep = ((turns - low) / (high - low)).clamp(0.0, 1.0);
                keep * plain + (1.0 - keep) * plain / factor
            }
            RopeScaling::Yarn { factor, low, high } => {
                let span = if high == low { 0.001 } else { high - low };
                let divided = ((i as f64 - low) / span).clamp(0.0, 1.0);
                divided * plain / factor + (1.0 - divided) * plain
            }
            RopeScaling::Each(factors) => plain / factors[i],
        }
    }
}
