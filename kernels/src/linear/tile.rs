//! The inner loop of a linear layer: a few output features of the rows of one panel, in plain Rust. Where there is
//! AVX2, [`super::avx2`] computes the same sums in the same order.

use crate::panel::{LANES, Lanes};
use crate::simd::madd;
use half::bf16;
#[cfg(target_arch = "x86_64")]
use std::arch::x86_64 as x86;

/// Output features of one tile when all lanes of a panel are computed.
pub(crate) const FULL: usize = 6;
/// Output features of one tile when only the first half of the lanes is.
pub(crate) const HALF: usize = 12;

/// A weight element as it is stored.
pub(crate) trait Element: Copy {
    /// Its value.
    fn value(self) -> f32;
    /// The element at `w` in every lane.
    ///
    /// # Safety
    /// `w` points at two elements, of which the first counts, and the processor has AVX2.
    #[cfg(target_arch = "x86_64")]
    unsafe fn spread(w: *const Self) -> x86::__m256;
}

impl Element for f32 {
    #[inline(always)]
    fn value(self) -> f32 {
        self
    }
    #[cfg(target_arch = "x86_64")]
    #[inline]
    #[target_feature(enable = "avx2,fma")]
    unsafe fn spread(w: *const f32) -> x86::__m256 {
        // SAFETY: the caller's promise.
        unsafe { x86::_mm256_broadcast_ss(&*w) }
    }
}

impl Element for bf16 {
    #[inline(always)]
    fn value(self) -> f32 {
        f32::from_bits(u32::from(self.to_bits()) << 16)
    }
    #[cfg(target_arch = "x86_64")]
    #[inline]
    #[target_feature(enable = "avx2,fma")]
    unsafe fn spread(w: *const bf16) -> x86::__m256 {
        // A word is spread while it is loaded, two bytes are not. The shift drops the second element.
        // SAFETY: the caller's promise; the read need not be aligned.
        let word = x86::_mm256_set1_epi32(unsafe { w.cast::<i32>().read_unaligned() });
        x86::_mm256_castsi256_ps(x86::_mm256_slli_epi32::<16>(word))
    }
}

/// `out[n][lane] = Σ_k w[n][k] · x[k][lane]` for `n` in `0..N` and the first `L` lanes, summed in order of `k`.
///
/// # Safety
/// `w` points at `N` rows of `x.len()` elements, `x.len()` apart.
#[inline(always)]
unsafe fn tile<E: Element, const FMA: bool, const N: usize, const L: usize>(
    x: &[Lanes],
    w: *const E,
    out: &mut [Lanes],
) {
    let inputs = x.len();
    let mut sums = [[0f32; L]; N];
    let mut step = |k: usize, weights: &[f32; N]| {
        // SAFETY: `k < inputs`, and `L ≤ LANES`.
        let a: [f32; L] = unsafe { *x.as_ptr().add(k).cast::<[f32; L]>() };
        for (sum, &b) in sums.iter_mut().zip(weights) {
            for (s, a) in sum.iter_mut().zip(a) {
                *s = madd::<FMA>(a, b, *s);
            }
        }
    };
    for k in 0..inputs {
        let mut weights = [0f32; N];
        for (n, weight) in weights.iter_mut().enumerate() {
            // SAFETY: row `n` has element `k`.
            *weight = unsafe { *w.add(n * inputs + k) }.value();
        }
        step(k, &weights);
    }
    for (out, sum) in out.iter_mut().zip(&sums) {
        out.0[..L].copy_from_slice(sum);
    }
}

/// [`tile`] for `out.len()` features, at most [`FULL`] with all lanes or [`HALF`] with half of them.
///
/// # Safety
/// As for [`tile`].
#[inline(always)]
unsafe fn any<E: Element, const FMA: bool>(
    x: &[Lanes],
    w: *const E,
    half: Half,
    out: &mut [Lanes],
) {
    // SAFETY: the caller's promise; the single-feature calls stay within the `out.len()` rows.
    unsafe {
        match (half, out.len()) {
            (Half::No, FULL) => tile::<E, FMA, FULL, LANES>(x, w, out),
            (Half::Yes, HALF) => tile::<E, FMA, HALF, { LANES / 2 }>(x, w, out),
            (_, few) => {
                for n in 0..few {
                    tile::<E, FMA, 1, LANES>(x, w.add(n * x.len()), &mut out[n..n + 1]);
                }
            }
        }
    }
}

/// Whether only the first half of a panel's lanes is wanted.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Half {
    /// All lanes.
    No,
    /// The first half.
    Yes,
}

/// Output features `first..first + out.len()` of the rows of panel `x`.
pub(crate) fn compute<E: Element>(
    x: &[Lanes],
    w: &[E],
    first: usize,
    half: Half,
    out: &mut [Lanes],
) {
    let rows = &w[first * x.len()..(first + out.len()) * x.len()];
    #[cfg(target_arch = "x86_64")]
    if crate::simd::avx2() {
        // SAFETY: the processor has the features, and `rows` holds `out.len()` rows of `x.len()` elements.
        return unsafe { super::avx2::any(x, rows.as_ptr(), half, out) };
    }
    // SAFETY: `rows` holds `out.len()` rows of `x.len()` elements.
    unsafe { any::<E, { crate::simd::BASELINE_FMA }>(x, rows.as_ptr(), half, out) }
}
