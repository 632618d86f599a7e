//! The inner loop of a linear layer in AVX2 intrinsics: compilers do not keep the plain one's sums in registers.

use super::tile::{Element, FULL, HALF, Half};
use crate::panel::{LANES, Lanes};
use std::arch::x86_64::*;

/// `out[n][lane] = Σ_k w[n][k] · x[k][lane]` for `n` in `0..N` and the first `8 V` lanes, summed in order of `k`.
///
/// # Safety
/// `w` points at `N` rows of `x.len()` elements, `x.len() > 0` apart; `out` holds `N` features.
#[inline]
#[target_feature(enable = "avx2,fma")]
unsafe fn tile<E: Element, const N: usize, const V: usize>(
    x: &[Lanes],
    w: *const E,
    out: &mut [Lanes],
) {
    let inputs = x.len();
    let mut sums = [[_mm256_setzero_ps(); V]; N];
    // SAFETY: all reads lie in `x` or in the `N` rows of `w`, and the writes in `out`, by the caller's promise. Only
    // the last input is not followed by another.
    unsafe {
        let mut a = x.as_ptr().cast::<f32>();
        let end = a.add(LANES * (inputs - 1));
        // Three rows from a pointer are three address modes; twelve pointers would not fit the registers.
        let mut rows: [*const E; 4] = std::array::from_fn(|i| w.wrapping_add(3 * i * inputs));
        while a < end {
            let values: [__m256; V] = std::array::from_fn(|v| _mm256_load_ps(a.add(8 * v)));
            for (n, sum) in sums.iter_mut().enumerate() {
                let weight = E::spread(rows[n / 3].add(n % 3 * inputs));
                for v in 0..V {
                    sum[v] = _mm256_fmadd_ps(values[v], weight, sum[v]);
                }
            }
            a = a.add(LANES);
            for row in &mut rows {
                *row = row.wrapping_add(1);
            }
        }
        for (n, sum) in sums.iter_mut().enumerate() {
            let weight = _mm256_set1_ps((*rows[n / 3].add(n % 3 * inputs)).value());
            for (v, sum) in sum.iter_mut().enumerate() {
                *sum = _mm256_fmadd_ps(_mm256_load_ps(a.add(8 * v)), weight, *sum);
            }
        }
        for (n, sum) in sums.iter().enumerate() {
            let to = out.as_mut_ptr().add(n).cast::<f32>();
            for (v, &sum) in sum.iter().enumerate() {
                _mm256_store_ps(to.add(8 * v), sum);
            }
        }
    }
}

/// [`tile`] for `out.len()` features, at most [`FULL`] with all lanes or [`HALF`] with half of them.
///
/// # Safety
/// `w` points at `out.len()` rows of `x.len() > 0` elements, and the processor has AVX2 and FMA.
#[target_feature(enable = "avx2,fma")]
pub(crate) unsafe fn any<E: Element>(x: &[Lanes], w: *const E, half: Half, out: &mut [Lanes]) {
    // SAFETY: the caller's promise; the single-feature calls stay within the `out.len()` rows.
    unsafe {
        match (half, out.len()) {
            (Half::Yes, HALF) => tile::<E, HALF, 1>(x, w, out),
            (_, FULL) => tile::<E, FULL, 2>(x, w, out),
            (_, 5) => tile::<E, 5, 2>(x, w, out),
            (_, 4) => tile::<E, 4, 2>(x, w, out),
            (_, 3) => tile::<E, 3, 2>(x, w, out),
            (_, 2) => tile::<E, 2, 2>(x, w, out),
            (_, few) => {
                for n in 0..few {
                    tile::<E, 1, 2>(x, w.add(n * x.len()), &mut out[n..n + 1]);
                }
            }
        }
    }
}
