//! The decoder's operators with their gradients, written out.
//!
//! Gradients are explicit rather than recorded: weight gradients add straight into the model's flat
//! buffer, nothing is kept that can be computed again cheaply, and a stage of layers can run alone.

use tch::{Kind, Tensor};

/// The inverse root mean square of each line, f32 `[lines, 1]`.
pub fn inverse_rms(x: &Tensor, eps: f64) -> Tensor {
    let x = x.to_kind(Kind::Float);
    let square = x.square().mean_dim([-1i64].as_slice(), true, Kind::Float);
    (square + eps).rsqrt()
}

/// `x · inverse · weight`, in f32 inside and in `x`'s type outside.
pub fn rms_norm(x: &Tensor, inverse: &Tensor, weight: &Tensor) -> Tensor {
    (x.to_kind(Kind::Float) * inverse * weight.to_kind(Kind::Float)).to_kind(x.kind())
}

/// Adds the gradient of [`rms_norm`] to `d_x` and to `d_weight` (f32), given that of its output.
pub fn rms_norm_backward(
    x: &Tensor,
    inverse: &Tensor,
    weight: &Tensor,
    grad: &Tensor,
    d_x: &mut Tensor,
    d_weight: &mut Tensor,
) {
    let along = [-1i64];
    let x_hat = x.to_kind(Kind::Float) * inverse;
    let grad = grad.to_kind(Kind::Float);
    *d_weight += (&grad * &x_hat).sum_dim_intlist([0i64].as_slice(), false, Kind::Float);
    let grad = grad * weight.to_kind(Kind::Float);
    let mean = (&grad * &x_hat).mean_dim(along.as_slice(), true, Kind::Float);
    *d_x += ((grad - x_hat * mean) * inverse).to_kind(d_x.kind());
}

/// Turns the first `heads` heads of each line of `x` `[lines, ≥ heads · width]` by the angles, in place.
pub fn rotate(x: &mut Tensor, heads: i64, cos: &Tensor, sin: &Tensor) {
    let half = cos.size()[1];
    let lines = x.size()[0];
    let turned = x
        .narrow(1, 0, heads * 2 * half)
        .view([lines, heads, 2, half]);
    let (mut first, mut second) = (turned.select(2, 0), turned.select(2, 1));
    let (cos, sin) = (cos.unsqueeze(1), sin.unsqueeze(1));
    let kept = &first * &sin;
    let moved = &second * &sin;
    first.copy_(&(&first * &cos - moved));
    second.copy_(&(&second * &cos + kept));
}

/// `silu(gate) · up` from both side by side, `[lines, 2 · width]` to `[lines, width]`.
pub fn gated(gate_up: &Tensor) -> Tensor {
    let (gate, up) = halves(gate_up);
    gate.silu().g_mul_(&up)
}

/// The gradient of [`gated`], and its output once more.
pub fn gated_backward(gate_up: &Tensor, grad: &Tensor) -> (Tensor, Tensor) {
    let (gate, up) = halves(gate_up);
    let mut silu = gate.silu();
    let d_gate_up = Tensor::empty(gate_up.size(), (gate_up.kind(), gate_up.device()));
    let (d_gate, d_up) = halves(&d_gate_up);
    let _ = grad.mul_out(&d_up, &silu);
    let _ = gate.silu_backward_grad_input(&d_gate, &(grad * &up));
    (d_gate_up, silu.g_mul_(&up))
}

fn halves(x: &Tensor) -> (Tensor, Tensor) {
    let width = x.size()[1] / 2;
    (x.narrow(1, 0, width), x.narrow(1, width, width))
}

/// `x · weightᵀ + bias`.
pub fn linear(x: &Tensor, weight: &Tensor, bias: Option<&Tensor>) -> Tensor {
    x.linear(weight, bias)
}

/// Adds the gradients of [`linear`] to `d_weight` and `d_bias` (both f32).
pub fn linear_backward(
    x: &Tensor,
    grad: &Tensor,
    d_weight: &mut Tensor,
    d_bias: Option<&mut Tensor>,
) {
    if x.kind() == Kind::Float {
        let _ = d_weight.addmm_(&grad.tr(), x);
    } else {
        *d_weight += grad.tr().mm(x);
    }
    if let Some(d_bias) = d_bias {
        *d_bias += grad.sum_dim_intlist([0i64].as_slice(), false, Kind::Float);
    }
}
