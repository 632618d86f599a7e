//! Weights drawn by the run's seed: each number is a function of seed, model, tensor and place alone.

use std::sync::OnceLock;

use rlhf_kernels::parallel;
use rlhf_kernels::philox::{self, Stream};
use tch::Tensor;

use super::Model;
use super::architecture::SCALAR_HEAD;
use super::weights::Slot;

/// The random numbers from which a model's new weights are made.
#[derive(Clone, Copy, Debug)]
pub struct Draws<'a> {
    /// The run's.
    pub seed: u64,
    /// The model's name in the program: two critics of one run start apart.
    pub model: &'a str,
}

/// Numbers that one thread draws at a time.
const PIECE: usize = 1 << 14;

impl Draws<'_> {
    /// Normal numbers around 0, f32, for the tensor `name` (Box and Muller, 1958).
    pub fn normal(&self, name: &str, shape: &[i64], deviation: f64) -> Tensor {
        let stream = self.stream(name);
        let pair = move |k: u64| {
            // Never 0, whose logarithm is not finite.
            let radius = (-2.0 * (1.0 - stream.uniform(k, 0, 0)).ln()).sqrt();
            let (sin, cos) = (std::f64::consts::TAU * stream.uniform(k, 1, 0)).sin_cos();
            [radius * cos, radius * sin]
        };
        tensor(shape, move |i| {
            (deviation * pair(i / 2)[(i % 2) as usize]) as f32
        })
    }

    /// Uniform numbers between `-bound` and `bound`, f32, for the tensor `name`.
    pub fn uniform(&self, name: &str, shape: &[i64], bound: f64) -> Tensor {
        let stream = self.stream(name);
        tensor(shape, move |i| {
            (bound * (2.0 * stream.uniform(i, 0, 0) - 1.0)) as f32
        })
    }

    fn stream(&self, name: &str) -> Stream {
        Stream::new(
            self.seed,
            philox::hash(&format!("init {} {name}", self.model)),
            0,
        )
    }
}

/// Draws all parameters as transformers starts a model: matrices normal with the configuration's
/// `initializer_range`, norms the identity, biases 0.
pub(super) fn fill(model: &Model, draws: &Draws) {
    for parameter in &model.layout.parameters {
        let mut place = parameter.slot.view(&model.flat);
        match parameter.slot.shape.len() {
            1 if parameter.name.ends_with(".bias") => drop(place.fill_(0.0)),
            1 => drop(place.fill_(1.0 - model.config.norm.offset)),
            _ => normal(model, &parameter.name, &parameter.slot, draws),
        }
    }
}

/// Draws the head of a scalar model.
pub(super) fn fill_head(model: &Model, draws: &Draws) {
    let name = format!("{SCALAR_HEAD}.weight");
    normal(model, &name, &model.layout.weights.head, draws);
}

fn normal(model: &Model, name: &str, slot: &Slot, draws: &Draws) {
    let drawn = draws.normal(name, &slot.shape, model.config.init_range);
    slot.view(&model.flat).copy_(&drawn);
}

fn tensor(shape: &[i64], number: impl Fn(u64) -> f32 + Sync) -> Tensor {
    let count = shape.iter().product::<i64>() as usize;
    let pieces = count.div_ceil(PIECE);
    let drawn: Vec<OnceLock<Vec<f32>>> = (0..pieces).map(|_| Default::default()).collect();
    parallel::for_each(pieces, |p| {
        let end = count.min((p + 1) * PIECE);
        let numbers = (p * PIECE..end).map(|i| number(i as u64)).collect();
        // Each piece is drawn once, so its cell is empty.
        let _ = drawn[p].set(numbers);
    });
    let numbers: Vec<f32> = drawn
        .into_iter()
        .flat_map(|piece| piece.into_inner().unwrap_or_default())
        .collect();
    Tensor::from_slice(&numbers).view(shape)
}

#[cfg(test)]
mod tests {
    use super::*;
    use tch::Kind;

    const DRAWS: Draws = Draws {
        seed: 7,
        model: "critic",
    };

    #[test]
    fn normal_numbers_have_their_mean_deviation_and_tails() {
        let x = DRAWS.normal("x", &[100, 1001], 0.02).to_kind(Kind::Double) / 0.02;
        let count = x.numel() as f64;
        let moment = |p: f64| x.pow_tensor_scalar(p).mean(Kind::Double).double_value(&[]);
        assert!(moment(1.0).abs() < 4.0 / count.sqrt());
        assert!((moment(2.0) - 1.0).abs() < 4.0 * (2.0 / count).sqrt());
        assert!(moment(3.0).abs() < 4.0 * (15.0 / count).sqrt());
        assert!((moment(4.0) - 3.0).abs() < 4.0 * (96.0 / count).sqrt());
    }

    #[test]
    fn uniform_numbers_stay_within_their_bound_and_fill_it() {
        let x = DRAWS.uniform("x", &[20_000], 0.5);
        let (low, high) = (x.min().double_value(&[]), x.max().double_value(&[]));
        assert!((-0.5..-0.499).contains(&low) && (0.499..=0.5).contains(&high));
        assert!(x.mean(Kind::Double).double_value(&[]).abs() < 0.01);
    }

    #[test]
    fn seed_model_and_tensor_each_give_other_numbers_and_nothing_else_does() {
        let base = DRAWS.normal("x", &[8], 1.0);
        let longer = DRAWS.normal("x", &[40_000], 1.0);
        assert!(longer.narrow(0, 0, 8).equal(&base));
        let others = [
            Draws { seed: 8, ..DRAWS }.normal("x", &[8], 1.0),
            Draws {
                model: "judge",
                ..DRAWS
            }
            .normal("x", &[8], 1.0),
            DRAWS.normal("y", &[8], 1.0),
        ];
        assert!(others.iter().all(|other| !other.equal(&base)));
    }
}
