//! Root-mean-square normalisation (Zhang and Sennrich, 2019): `y = x / √(mean(x²) + ε) · w`, row by row.

use crate::panel::{LANES, Lanes, Panels};
use crate::parallel::{Shared, for_each};
use crate::simd::{dispatch, madd};

/// Panels from which the work is worth sharing between threads.
const SHARED: usize = 8;

/// Normalises every row of `x` into `y`; `weight` is `[features]`.
pub fn rms_norm(x: &Panels, weight: &[f32], eps: f32, y: &mut Panels) {
    let features = x.features();
    assert_eq!(
        (weight.len(), y.features()),
        (features, features),
        "the norm's features"
    );
    y.resize(x.rows());
    if x.panels() < SHARED {
        for p in 0..x.panels() {
            one_panel(x.panel(p), weight, eps, y.panel_mut(p));
        }
        return;
    }
    let out = Shared::new(y.data_mut());
    for_each(x.panels(), |p| {
        // SAFETY: each item writes its own panel.
        one_panel(x.panel(p), weight, eps, unsafe {
            out.slice(p * features, features)
        });
    });
}

/// Normalises each head of `weight.len()` features by itself, in place: `heads` of them, beginning with feature `first`.
pub fn rms_norm_heads(x: &mut Panels, first: usize, heads: usize, weight: &[f32], eps: f32) {
    let dim = weight.len();
    assert!(first + heads * dim <= x.features(), "the heads' features");
    let mut head = vec![Lanes::ZERO; dim];
    for p in 0..x.panels() {
        let features = &mut x.panel_mut(p)[first..first + heads * dim];
        for features in features.chunks_exact_mut(dim) {
            head.copy_from_slice(features);
            one_panel(&head, weight, eps, features);
        }
    }
}

dispatch! {
    fn one_panel(x: &[Lanes], weight: &[f32], eps: f32, y: &mut [Lanes]) = body
}

#[inline(always)]
fn body<const FMA: bool>(x: &[Lanes], weight: &[f32], eps: f32, y: &mut [Lanes]) {
    // Four partial sums a lane: shorter chains of additions, and a smaller rounding error.
    let mut sums = [[0f32; LANES]; 4];
    for (i, x) in x.iter().enumerate() {
        for (sum, x) in sums[i % 4].iter_mut().zip(x.0) {
            *sum = madd::<FMA>(x, x, *sum);
        }
    }
    let mut scale = [0f32; LANES];
    for (lane, scale) in scale.iter_mut().enumerate() {
        let sum = (sums[0][lane] + sums[1][lane]) + (sums[2][lane] + sums[3][lane]);
        *scale = 1.0 / (sum / x.len() as f32 + eps).sqrt();
    }
    for ((x, y), &w) in x.iter().zip(y).zip(weight) {
        for ((y, x), s) in y.0.iter_mut().zip(x.0).zip(scale) {
            *y = x * s * w;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The formula, row by row, in f64.
    fn reference(x: &[f32], weight: &[f32], eps: f32) -> Vec<f32> {
        let rows = x.chunks_exact(weight.len());
        rows.flat_map(|row| {
            let mean = row.iter().map(|&x| f64::from(x).powi(2)).sum::<f64>() / row.len() as f64;
            let scale = 1.0 / (mean + f64::from(eps)).sqrt();
            row.iter()
                .zip(weight)
                .map(move |(&x, &w)| (f64::from(x) * scale) as f32 * w)
        })
        .collect()
    }

    #[test]
    fn it_equals_the_formula_for_few_rows_and_many() {
        for (rows, features) in [(1, 5), (19, 64), (200, 33)] {
            let x: Vec<f32> = (0..rows * features)
                .map(|i| ((i * 37 % 101) as f32 - 50.0) * 0.1)
                .collect();
            let weight: Vec<f32> = (0..features).map(|i| 0.5 + i as f32 * 0.01).collect();
            let mut y = Panels::new(features);
            rms_norm(&Panels::from_rows(&x, features), &weight, 1e-5, &mut y);
            for (a, b) in y.to_rows().iter().zip(reference(&x, &weight, 1e-5)) {
                assert!((a - b).abs() < 1e-5 * (1.0 + b.abs()), "{a} {b}");
            }
        }
    }

    #[test]
    fn heads_are_normalised_one_by_one_and_the_rest_stays() {
        let (rows, features) = (19, 11);
        let x: Vec<f32> = (0..rows * features)
            .map(|i| ((i * 37 % 101) as f32 - 50.0) * 0.1)
            .collect();
        let weight = [0.5, 1.0, 1.5, 2.0];
        let mut panels = Panels::from_rows(&x, features);
        rms_norm_heads(&mut panels, 1, 2, &weight, 1e-5);
        for (row, ours) in x.chunks(features).zip(panels.to_rows().chunks(features)) {
            let heads = reference(&row[1..9], &weight, 1e-5);
            let expected = [&row[..1], &heads, &row[9..]].concat();
            for (a, b) in ours.iter().zip(expected) {
                assert!((a - b).abs() < 1e-5 * (1.0 + b.abs()), "{a} {b}");
            }
        }
    }
}
