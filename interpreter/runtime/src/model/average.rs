//! A frozen model that follows another: an average of weights, as `next anchor = lerp(…)` asks.

use tch::{Kind, Tensor};

use super::Model;

/// Elements moved together: the arrays of one piece stay in cache between operators.
const PIECE: i64 = 1 << 16;

/// The average in f32 where the model's own weights are narrower: a small step towards another model
/// is less than the spacing of bf16 numbers and would be rounded away in every iteration.
#[derive(Debug)]
pub struct Average {
    exact: Option<Tensor>,
}

impl Average {
    /// Starts from a model's weights.
    pub fn new(model: &Model) -> Self {
        let flat = model.flat();
        Average {
            exact: (flat.kind() != Kind::Float).then(|| flat.to_kind(Kind::Float)),
        }
    }

    /// Moves every weight w of `model` to w + rate · (v - w), where v is its namesake in `toward`: a
    /// buffer in the order of [`Model::flat`], of any type. In place and in pieces.
    pub fn step(&mut self, model: &Model, toward: &Tensor, rate: f64) {
        let len = toward.size()[0];
        for start in (0..len).step_by(PIECE as usize) {
            let piece = |t: &Tensor| t.narrow(0, start, PIECE.min(len - start));
            let mut weights = piece(self.exact.as_ref().unwrap_or(model.flat()));
            let _ = weights.lerp_(&piece(toward).to_kind(Kind::Float), rate);
            if self.exact.is_some() {
                piece(model.flat()).copy_(&weights);
            }
        }
    }
}
