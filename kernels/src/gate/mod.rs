//! The gate of a gated feed-forward layer: `silu(g) · u`.

use crate::math::silu;
use crate::panel::Lanes;
use crate::simd::dispatch;

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
        let expected: Vec<f32> = (gate.silu() * &up).reshape([-1]).try_into()?;
        let values = |t: &Tensor| -> Result<Vec<f32>, tch::TchError> { t.reshape([-1]).try_into() };
        let mut panels = Panels::from_rows(&values(&gate)?, features as usize);
        let ups = Panels::from_rows(&values(&up)?, features as usize);
        for p in 0..panels.panels() {
            silu_times(panels.panel_mut(p), ups.panel(p));
        }
        for (a, b) in panels.to_rows().iter().zip(&expected) {
            assert!((a - b).abs() < 2e-6 * (1.0 + b.abs()), "{a} {b}");
        }
        Ok(())
    }
}
