//! Elementary functions that vectorise.

use crate::simd::madd;

const LOG2_E: f32 = std::f32::consts::LOG2_E;
/// ln 2 in two parts: the first has few bits, so that `n · LN2_HIGH` is exact.
const LN2_HIGH: f32 = 0.693_359_4;
const LN2_LOW: f32 = -2.121_944_4e-4;
/// Adding this rounds to the nearest integer and leaves it in the low bits.
const ROUND: f32 = 12_582_912.0;
/// Below this the result is 0 (it would be subnormal).
const UNDERFLOW: f32 = -87.33;

/// e^x for x ≤ 88, within two units in the last place; 0 below −87.33.
#[inline(always)]
pub(crate) fn exp<const FMA: bool>(x: f32) -> f32 {
    let clamped = if x < UNDERFLOW { UNDERFLOW } else { x };
    let shifted = madd::<FMA>(clamped, LOG2_E, ROUND);
    let n = shifted - ROUND;
    let r = madd::<FMA>(n, -LN2_HIGH, clamped);
    let r = madd::<FMA>(n, -LN2_LOW, r);
    // Minimax polynomial of (e^r − 1 − r) / r² on |r| ≤ ln 2 / 2.
    let p = 1.987_569_1e-4;
    let p = madd::<FMA>(p, r, 1.398_2e-3);
    let p = madd::<FMA>(p, r, 8.333_452e-3);
    let p = madd::<FMA>(p, r, 4.166_579_6e-2);
    let p = madd::<FMA>(p, r, 1.666_666_5e-1);
    let p = madd::<FMA>(p, r, 0.5);
    let y = madd::<FMA>(p, r * r, r) + 1.0;
    let power = shifted
        .to_bits()
        .wrapping_sub(ROUND.to_bits())
        .wrapping_add(127)
        << 23;
    let y = y * f32::from_bits(power);
    if x < UNDERFLOW { 0.0 } else { y }
}

/// x · σ(x).
#[inline(always)]
pub(crate) fn silu<const FMA: bool>(x: f32) -> f32 {
    // Past ±80 the sigmoid is 0 or 1 in f32.
    let bounded = x.clamp(-80.0, 80.0);
    x / (1.0 + exp::<FMA>(-bounded))
}

/// x · Φ(x) with Φ by the hyperbolic tangent: ½ (1 + tanh u) is σ(2u).
#[inline(always)]
pub(crate) fn gelu_tanh<const FMA: bool>(x: f32) -> f32 {
    // 2 √(2/π).
    const SLOPE: f32 = 1.595_769;
    let u = SLOPE * (x + 0.044_715 * x * x * x);
    let bounded = u.clamp(-80.0, 80.0);
    x / (1.0 + exp::<FMA>(-bounded))
}

/// x · Φ(x).
#[inline(always)]
pub(crate) fn gelu(x: f32) -> f32 {
    0.5 * x * (1.0 + libm::erff(x * std::f32::consts::FRAC_1_SQRT_2))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exp_is_within_two_units_in_the_last_place() {
        let mut x = -87.0f32;
        while x < 88.0 {
            let exact = f64::from(x).exp();
            for y in [exp::<false>(x), exp::<true>(x)] {
                let error = (f64::from(y) - exact).abs() / exact;
                assert!(error < 2.4e-7, "exp({x}) = {y}, off by {error:e}");
            }
            x += 0.0137;
        }
        assert_eq!(exp::<false>(0.0), 1.0);
        assert_eq!(exp::<false>(f32::NEG_INFINITY), 0.0);
        assert_eq!(exp::<false>(-1e30), 0.0);
    }

    #[test]
    fn silu_follows_its_formula_to_the_ends() {
        for x in [-200.0f32, -90.0, -5.0, -0.1, 0.0, 0.3, 8.0, 120.0] {
            let exact = f64::from(x) / (1.0 + (-f64::from(x)).exp());
            let y = f64::from(silu::<false>(x));
            assert!((y - exact).abs() <= 4e-7 * exact.abs() + 1e-30, "silu({x})");
        }
    }
}
