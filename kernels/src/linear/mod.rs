//! Linear layers over panels of rows: `y = x Wᵀ`, alone, added to what is there, gated, or as logits by row.
//!
//! Weights are read where the model keeps them, `[out, in]` in f32 or bf16, and multiplied in f32. An output is one
//! sum in the order of the inputs, so it is the same number whatever rows are computed with it.

#[cfg(target_arch = "x86_64")]
mod avx2;
pub(crate) mod tile;

use crate::gate::{self, Activation};
use crate::panel::{LANES, Lanes, Panels};
use crate::parallel::{Shared, for_each};
use crate::storage::{Elements, Matrix};
use tile::{FULL, HALF, Half};

/// Panels that one work item computes with the same weights: their inputs stay in the second-level cache.
const PANELS: usize = 4;
/// Output features of one work item: the weights stay in the cache between panels, and the items are many enough
/// to balance threads.
const FEATURES: usize = 48;

/// Output features `first..first + out.len()` of `x`'s panel `p`, `out.len() ≤ HALF`.
fn block(x: &Panels, p: usize, w: &Matrix, first: usize, out: &mut [Lanes]) {
    let half = if x.live(p) <= LANES / 2 {
        Half::Yes
    } else {
        Half::No
    };
    let size = if half == Half::Yes { HALF } else { FULL };
    for (i, out) in out.chunks_mut(size).enumerate() {
        let first = first + i * size;
        match w.elements {
            Elements::F32(w) => tile::compute(x.panel(p), w, first, half, out),
            Elements::Bf16(w) => tile::compute(x.panel(p), w, first, half, out),
        }
    }
}

/// Runs `each(panel, first, len)` over all panels and all blocks of at most [`HALF`] of `features` features.
fn for_each_block(panels: usize, features: usize, each: impl Fn(usize, usize, usize) + Sync) {
    let across = features.div_ceil(FEATURES);
    for_each(panels.div_ceil(PANELS) * across, |item| {
        let (group, chunk) = (item / across, item % across);
        let group = group * PANELS..panels.min((group + 1) * PANELS);
        let end = features.min((chunk + 1) * FEATURES);
        let mut first = chunk * FEATURES;
        while first < end {
            let len = HALF.min(end - first);
            for p in group.clone() {
                each(p, first, len);
            }
            first += len;
        }
    });
}

fn check(x: &Panels, w: &Matrix) {
    assert_eq!(x.features(), w.columns, "the input's features");
    assert_eq!(
        w.elements.len(),
        w.rows * w.columns,
        "the weight's elements"
    );
    assert!(w.columns > 0, "a layer without inputs");
}

/// One weight of [`project`] with its bias `[out]`, if it has one.
#[derive(Clone, Copy, Debug)]
pub struct Linear<'a> {
    /// `[out, in]`.
    pub weight: Matrix<'a>,
    /// `[out]`.
    pub bias: Option<&'a [f32]>,
}

/// `y = [x W₀ᵀ + b₀, x W₁ᵀ + b₁, …]`: the outputs of several layers side by side.
pub fn project(x: &Panels, layers: &[Linear], y: &mut Panels) {
    let mut at = 0;
    y.resize(x.rows());
    let features = y.features();
    let out = Shared::new(y.data_mut());
    for layer in layers {
        check(x, &layer.weight);
    }
    assert_eq!(
        layers.iter().map(|l| l.weight.rows).sum::<usize>(),
        features,
        "the output's features"
    );
    for layer in layers {
        let w = &layer.weight;
        for_each_block(x.panels(), w.rows, |p, first, len| {
            // SAFETY: panel, layer and block of features are one item's alone.
            let out = unsafe { out.slice(p * features + at + first, len) };
            block(x, p, w, first, out);
            add_bias(layer.bias, first, out);
        });
        at += w.rows;
    }
}

/// `y += x Wᵀ + b`: the end of a residual branch.
pub fn accumulate(x: &Panels, layer: &Linear, y: &mut Panels) {
    let w = &layer.weight;
    check(x, w);
    assert_eq!((y.rows(), y.features()), (x.rows(), w.rows), "the output");
    let out = Shared::new(y.data_mut());
    for_each_block(x.panels(), w.rows, |p, first, len| {
        let mut sums = [Lanes::ZERO; HALF];
        block(x, p, w, first, &mut sums[..len]);
        add_bias(layer.bias, first, &mut sums[..len]);
        // SAFETY: panel and block of features are one item's alone.
        let out = unsafe { out.slice(p * w.rows + first, len) };
        for (out, sum) in out.iter_mut().zip(&sums) {
            for (o, s) in out.0.iter_mut().zip(sum.0) {
                *o += s;
            }
        }
    });
}

/// `y = f(x Wᵀ + b)`: the first half of a feed-forward layer without a gate.
pub fn activated(x: &Panels, activation: Activation, layer: &Linear, y: &mut Panels) {
    let w = &layer.weight;
    check(x, w);
    y.resize(x.rows());
    assert_eq!(w.rows, y.features(), "the output's features");
    let out = Shared::new(y.data_mut());
    for_each_block(x.panels(), w.rows, |p, first, len| {
        // SAFETY: panel and block of features are one item's alone.
        let out = unsafe { out.slice(p * w.rows + first, len) };
        block(x, p, w, first, out);
        add_bias(layer.bias, first, out);
        gate::apply(activation, out);
    });
}

/// `y = f(x Gᵀ) · (x Uᵀ)`: the first half of a gated feed-forward layer.
pub fn gated(x: &Panels, activation: Activation, gate: &Linear, up: &Linear, y: &mut Panels) {
    let features = gate.weight.rows;
    check(x, &gate.weight);
    check(x, &up.weight);
    y.resize(x.rows());
    assert_eq!(
        (features, features),
        (up.weight.rows, y.features()),
        "the output's features"
    );
    let out = Shared::new(y.data_mut());
    for_each_block(x.panels(), features, |p, first, len| {
        let mut ups = [Lanes::ZERO; HALF];
        let ups = &mut ups[..len];
        // SAFETY: panel and block of features are one item's alone.
        let out = unsafe { out.slice(p * features + first, len) };
        block(x, p, &gate.weight, first, out);
        add_bias(gate.bias, first, out);
        block(x, p, &up.weight, first, ups);
        add_bias(up.bias, first, ups);
        gate::times(activation, out, ups);
    });
}

/// Logits by row: `y[r] = x[r] Wᵀ`, row-major `[rows, vocabulary]`.
pub fn logits(x: &Panels, w: &Matrix, y: &mut [f32]) {
    check(x, w);
    let vocabulary = w.rows;
    assert_eq!(y.len(), x.rows() * vocabulary, "the logits");
    let out = Shared::new(y);
    for_each_block(x.panels(), vocabulary, |p, first, len| {
        let mut sums = [Lanes::ZERO; HALF];
        block(x, p, w, first, &mut sums[..len]);
        for lane in 0..x.live(p) {
            let row = p * LANES + lane;
            // SAFETY: row and block of features are one item's alone.
            let out = unsafe { out.slice(row * vocabulary + first, len) };
            for (o, s) in out.iter_mut().zip(&sums) {
                *o = s.0[lane];
            }
        }
    });
}

fn add_bias(bias: Option<&[f32]>, first: usize, out: &mut [Lanes]) {
    if let Some(bias) = bias {
        for (out, &b) in out.iter_mut().zip(&bias[first..]) {
            out.0.iter_mut().for_each(|x| *x += b);
        }
    }
}

#[cfg(test)]
mod tests;
