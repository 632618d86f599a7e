//! AdamW (Loshchilov and Hutter, 2019, arXiv:1711.05101) over a model's flat buffer, or its adapters'.

use tch::{Kind, Tensor};

use super::Model;

/// Elements updated together: the four arrays of one piece stay in cache between operators.
const PIECE: i64 = 1 << 16;

/// Moments in f32, and f32 master weights where the model's own are narrower.
///
/// Weight decay is decoupled and applies to every parameter, norms and biases included.
#[derive(Debug)]
pub struct AdamW {
    betas: (f64, f64),
    eps: f64,
    weight_decay: f64,
    steps: i32,
    first: Tensor,
    second: Tensor,
    master: Option<Tensor>,
}

impl AdamW {
    /// A fresh optimizer for a model.
    pub fn new(model: &Model, betas: (f64, f64), eps: f64, weight_decay: f64) -> Self {
        let trained = model.trained();
        let zeros = || Tensor::zeros(trained.size(), (Kind::Float, trained.device()));
        AdamW {
            betas,
            eps,
            weight_decay,
            steps: 0,
            first: zeros(),
            second: zeros(),
            master: (trained.kind() != Kind::Float).then(|| trained.to_kind(Kind::Float)),
        }
    }

    /// The weights in f32, in the order of [`Model::flat`], where the model's own are narrower.
    pub fn master(&self) -> Option<&Tensor> {
        self.master.as_ref()
    }

    /// One update at learning rate `lr` from the gradient the model has gathered, which is then zero.
    /// Returns the gradient's L2 norm, before it is scaled down to `max_norm` if it is longer.
    ///
    /// A gradient that is not finite updates nothing, which the returned norm shows.
    pub fn step(&mut self, model: &mut Model, lr: f64, max_norm: Option<f64>) -> f64 {
        let Some(gradient) = model.trained_gradient() else {
            return 0.0;
        };
        let norm = norm(&gradient);
        if norm.is_finite() {
            let scale = max_norm.map_or(1.0, |max| (max / (norm + 1e-6)).min(1.0));
            self.steps += 1;
            let trained = model.trained();
            for (start, len) in pieces(gradient.size()[0]) {
                let piece = |t: &Tensor| t.narrow(0, start, len);
                let mut weights = piece(self.master.as_ref().unwrap_or(trained));
                self.update(start, len, &mut weights, &(piece(&gradient) * scale), lr);
                if self.master.is_some() {
                    piece(trained).copy_(&weights);
                }
            }
        }
        model.follow();
        norm
    }

    fn update(&mut self, start: i64, len: i64, weights: &mut Tensor, grad: &Tensor, lr: f64) {
        let (beta1, beta2) = self.betas;
        let mut first = self.first.narrow(0, start, len);
        let mut second = self.second.narrow(0, start, len);
        let bias1 = 1.0 - beta1.powi(self.steps);
        let bias2 = 1.0 - beta2.powi(self.steps);
        if self.weight_decay != 0.0 {
            let _ = weights.g_mul_scalar_(1.0 - lr * self.weight_decay);
        }
        let _ = first.lerp_(grad, 1.0 - beta1);
        let _ = second.lerp_(&grad.square(), 1.0 - beta2);
        let mut spread = second.sqrt();
        let _ = spread.g_div_scalar_(bias2.sqrt()).g_add_scalar_(self.eps);
        let mut change = first / spread;
        let _ = weights.g_sub_(&change.g_mul_scalar_(lr / bias1));
    }
}

/// The L2 norm, its pieces added in f64.
fn norm(gradient: &Tensor) -> f64 {
    let square = |(start, len)| {
        gradient
            .narrow(0, start, len)
            .norm()
            .double_value(&[])
            .powi(2)
    };
    pieces(gradient.size()[0]).map(square).sum::<f64>().sqrt()
}

fn pieces(len: i64) -> impl Iterator<Item = (i64, i64)> {
    (0..len)
        .step_by(PIECE as usize)
        .map(move |start| (start, PIECE.min(len - start)))
}
