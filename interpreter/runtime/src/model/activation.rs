//! What stands between the two matrices of an MLP, with its gradient.

use tch::Tensor;

use super::ops::{gated, gated_backward, halves};

/// An elementwise function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Activation {
    /// x · σ(x).
    Silu,
    /// x · Φ(x) with Φ by the error function.
    Gelu,
    /// x · Φ(x) with Φ by the hyperbolic tangent (Hendrycks and Gimpel, 2016).
    GeluTanh,
}

/// How the widened lines become the input of the last matrix.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Gate {
    /// `f(gate) · up`, the two side by side: `[lines, 2 · width]` to `[lines, width]`.
    Gated(Activation),
    /// `f(x)`: `[lines, width]` to the same.
    Plain(Activation),
}

impl Activation {
    /// libtorch's word for the approximation of Φ; none for SiLU.
    fn gelu(self) -> Option<&'static str> {
        match self {
            Activation::Silu => None,
            Activation::Gelu => Some("none"),
            Activation::GeluTanh => Some("tanh"),
        }
    }

    fn forward(self, x: &Tensor) -> Tensor {
        match self.gelu() {
            None => x.silu(),
            Some(approximate) => x.gelu(approximate),
        }
    }

    fn backward(self, x: &Tensor, grad: &Tensor) -> Tensor {
        match self.gelu() {
            None => x.silu_backward(grad),
            Some(approximate) => x.gelu_backward(grad, approximate),
        }
    }
}

impl Gate {
    /// Columns of the widened lines for `width` columns of the last matrix.
    pub fn columns(self, width: usize) -> usize {
        match self {
            Gate::Gated(_) => 2 * width,
            Gate::Plain(_) => width,
        }
    }

    /// The function.
    pub fn activation(self) -> Activation {
        match self {
            Gate::Gated(activation) | Gate::Plain(activation) => activation,
        }
    }

    pub(super) fn forward(self, wide: &Tensor) -> Tensor {
        match self {
            Gate::Gated(Activation::Silu) => gated(wide),
            Gate::Gated(activation) => {
                let (gate, up) = halves(wide);
                activation.forward(&gate).g_mul_(&up)
            }
            Gate::Plain(activation) => activation.forward(wide),
        }
    }

    /// The gradient of [`Gate::forward`], and its output once more.
    pub(super) fn backward(self, wide: &Tensor, grad: Tensor) -> (Tensor, Tensor) {
        match self {
            Gate::Gated(Activation::Silu) => gated_backward(wide, grad),
            Gate::Gated(activation) => {
                let (gate, up) = halves(wide);
                let open = activation.forward(&gate);
                let d_gate = activation.backward(&gate, &(&grad * &up));
                (Tensor::cat(&[d_gate, &grad * &open], 1), open * up)
            }
            Gate::Plain(activation) => (activation.backward(wide, &grad), activation.forward(wide)),
        }
    }
}
