//! The decoder's operators with their gradients, written out.
//!
//! Gradients are explicit rather than recorded: weight gradients add straight into the model's flat
//! buffer, nothing is kept that can be computed again cheaply, and a stage of layers can run alone.

use tch::{Kind, Tensor};

/// The inverse root mean square of each line, f32 `[lines, 1]`.
pub fn inverse_rms(x: &Tensor, eps: f64) -> Tensor {
    let width = x.size()[1] as f64;
    let length = x.linalg_norm(2.0, [-1i64].as_slice(), true, Kind::Float);
    let mut square = length.square() / width;
    square.g_add_scalar_(eps).rsqrt_()
}

/// `x · inverse · weight`, in f32 inside and in `x`'s type outside.
pub fn rms_norm(x: &Tensor, inverse: &Tensor, weight: &Tensor) -> Tensor {
    let mut scaled = x.to_kind(Kind::Float) * inverse;
    scaled
        .g_mul_(&weight.to_kind(Kind::Float))
        .to_kind(x.kind())
}

/// Adds the gradient of [`rms_norm`] to `d_x` and to `d_weight` (f32), given that of its output.
///
/// With r the inverse, w the weight and n the width:
/// dw = Σ_lines r · (grad · x) and dx = r · (grad · w) − x · r³/n · Σ_width (grad · w · x).
pub fn rms_norm_backward(
    x: &Tensor,
    inverse: &Tensor,
    weight: &Tensor,
    grad: Tensor,
    d_x: &mut Tensor,
    d_weight: &mut Tensor,
) {
    let width = x.size()[1] as f64;
    let x = x.to_kind(Kind::Float);
    let weight = weight.to_kind(Kind::Float);
    let mut grad = grad.to_kind(Kind::Float);
    let product = &grad * &x;
    *d_weight += product.tr().mv(&inverse.squeeze_dim(1));
    let along = product.mv(&weight).unsqueeze(1);
    let pull = along * inverse.pow_tensor_scalar(3) / -width;
    let _ = grad.g_mul_(&weight);
    match d_x.kind() {
        Kind::Float => {
            let _ = d_x.addcmul_(&grad, inverse);
            let _ = d_x.addcmul_(&x, &pull);
        }
        kind => *d_x += (grad.g_mul_(inverse).addcmul_(&x, &pull)).to_kind(kind),
    }
}

/// Turns the first `heads` heads of each line of `x` `[lines, ≥ heads · width]` by the angles, in place:
/// of each head as many elements as there are angles for, two an angle.
pub fn rotate(x: &mut Tensor, heads: i64, width: i64, cos: &Tensor, sin: &Tensor) {
    let half = cos.size()[1];
    let lines = x.size()[0];
    let turned = x.narrow(1, 0, heads * width).view([lines, heads, width]);
    let (mut first, mut second) = (turned.narrow(2, 0, half), turned.narrow(2, half, half));
    let (cos, sin) = (cos.unsqueeze(1), sin.unsqueeze(1));
    if x.kind() == Kind::Float {
        let mut kept = first.copy();
        let _ = first.g_mul_(&cos).addcmul_(&second, &-&sin);
        let _ = second.g_mul_(&cos).g_add_(&kept.g_mul_(&sin));
    } else {
        let kept = &first * &sin;
        let moved = &second * &sin;
        first.copy_(&(&first * &cos - moved));
        second.copy_(&(&second * &cos + kept));
    }
}

/// `silu(gate) · up` from both side by side, `[lines, 2 · width]` to `[lines, width]`.
pub fn gated(gate_up: &Tensor) -> Tensor {
    let (gate, up) = halves(gate_up);
    gate.silu().g_mul_(&up)
}

/// The gradient of [`gated`], and its output once more.
pub fn gated_backward(gate_up: &Tensor, grad: Tensor) -> (Tensor, Tensor) {
    let (gate, up) = halves(gate_up);
    let mut grad = grad;
    let mut silu = gate.silu();
    let d_gate_up = Tensor::empty(gate_up.size(), (gate_up.kind(), gate_up.device()));
    let (d_gate, d_up) = halves(&d_gate_up);
    let _ = grad.mul_out(&d_up, &silu);
    let _ = gate.silu_backward_grad_input(&d_gate, &grad.g_mul_(&up));
    (d_gate_up, silu.g_mul_(&up))
}

/// Gate and up of lines with both side by side.
pub fn halves(x: &Tensor) -> (Tensor, Tensor) {
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
