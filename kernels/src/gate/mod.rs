//! What stands between the matrices of a feed-forward layer: `f(g) · u` with a gate, `f(x)` without.

use crate::math::{gelu, gelu_tanh, silu};
use crate::panel::Lanes;
use crate::simd::dispatch;

/// An elementwise function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Activation {
    /// x · σ(x).
    Silu,
    /// x · Φ(x) with Φ by the error function.
    Gelu,
    /// x · Φ(x) with Φ by the hyperbolic tangent.
    GeluTanh,
}

/// `gate = f(gate) · up`, element by element.
pub fn times(activation: Activation, gate: &mut [Lanes], up: &[Lanes]) {
    match activation {
        Activation::Silu => silu_times(gate, up),
        other => {
            apply(other, gate);
            for (gate, up) in gate.iter_mut().zip(up) {
                gate.0.iter_mut().zip(up.0).for_each(|(g, u)| *g *= u);
            }
        }
    }
}

/// `x = f(x)`, element by element.
pub fn apply(activation: Activation, x: &mut [Lanes]) {
    match activation {
        Activation::Silu => silu_all(x),
        Activation::GeluTanh => gelu_tanh_all(x),
        Activation::Gelu => x
            .iter_mut()
            .flat_map(|x| x.0.iter_mut())
            .for_each(|x| *x = gelu(*x)),
    }
}

dispatch! {
    fn silu_all(x: &mut [Lanes]) = silu_body
}

#[inline(always)]
fn silu_body<const FMA: bool>(x: &mut [Lanes]) {
    for x in x.iter_mut().flat_map(|x| x.0.iter_mut()) {
        *x = silu::<FMA>(*x);
    }
}

dispatch! {
    fn gelu_tanh_all(x: &mut [Lanes]) = gelu_tanh_body
}

#[inline(always)]
fn gelu_tanh_body<const FMA: bool>(x: &mut [Lanes]) {
    for x in x.iter_mut().flat_map(|x| x.0.iter_mut()) {
        *x = gelu_tanh::<FMA>(*x);
    }
}

dispatch! {
    /// `gate = silu(gate) · up`, element by element.
    pub fn silu_times(gate: &mut [Lanes], up: &[Lanes]) = body
}

#[inline(always)]
fn body<const FMA: bool>(gate: &mut [Lanes], up: &[Lanes]) {
    for (gate, up) in gate.iter_mut().zip(up) {
        for (g, u) in gate.0.iter_mut().zip(up.0) {
            *g = silu::<FMA>(*g) * u;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::panel::Panels;
    use tch::Tensor;

    #[test]
    fn it_equals_libtorch() -> Result<(), tch::TchError> {
        let (rows, features) = (21, 40);
        let gate = Tensor::f_randn([rows, features], tch::kind::FLOAT_CPU)? * 6.0;
        let up = Tensor::f_randn([rows, features], tch::kind::FLOAT_CPU)?;
        let values = |t: &Tensor| -> Result<Vec<f32>, tch::TchError> { t.reshape([-1]).try_into() };
        let alike = |ours: &Panels, theirs: &Tensor| -> Result<(), tch::TchError> {
            for (a, b) in ours.to_rows().iter().zip(values(theirs)?) {
                assert!((a - b).abs() < 2e-6 * (1.0 + b.abs()), "{a} {b}");
            }
            Ok(())
        };
        let cases = [
            (Activation::Silu, gate.silu()),
            (Activation::Gelu, gate.gelu("none")),
            (Activation::GeluTanh, gate.gelu("tanh")),
        ];
        for (activation, expected) in cases {
            let mut panels = Panels::from_rows(&values(&gate)?, features as usize);
            let mut plain = panels.clone();
            let ups = Panels::from_rows(&values(&up)?, features as usize);
            for p in 0..panels.panels() {
                times(activation, panels.panel_mut(p), ups.panel(p));
                apply(activation, plain.panel_mut(p));
            }
            alike(&panels, &(&expected * &up))?;
            alike(&plain, &expected)?;
        }
        Ok(())
    }
}
