//! The inner loop of a linear layer: a few output features of the rows of one panel.

use crate::panel::{LANES, Lanes};
use crate::simd::madd;
use half::bf16;

/// Output features of one tile when all lanes of a panel are computed.
pub(super) const FULL: usize = 6;
/// Output features of one tile when only the first half of the lanes is.
pub(super) const HALF: usize = 12;

/// A weight element as it is stored.
pub(super) trait Element: Copy {
    /// Adds two inputs' contribution to `sums`, in order: `w[0]` then `w[1]`.
    ///
    /// # Safety
    /// `w` points at two elements.
    unsafe fn pair(w: *const Self) -> (f32, f32);
    /// One element.
    fn single(self) -> f32;
}

impl Element for f32 {
    #[inline(always)]
    unsafe fn pair(w: *const f32) -> (f32, f32) {
        // SAFETY: the caller's promise.
        unsafe { (*w, *w.add(1)) }
    }
    #[inline(always)]
    fn single(self) -> f32 {
        self
    }
}

impl Element for bf16 {
    #[inline(always)]
    unsafe fn pair(w: *const bf16) -> (f32, f32) {
        // One load serves both: the second element is the upper half of the word as it stands.
        // SAFETY: the caller's promise; the read need not be aligned.
        let word = u32::from_le(unsafe { w.cast::<u32>().read_unaligned() });
        (
            f32::from_bits(word << 16),
            f32::from_bits(word & 0xFFFF_0000),
        )
    }
    #[inline(always)]
    fn single(self) -> f32 {
        f32::from_bits(u32::from(self.to_bits()) << 16)
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
    let mut k = 0;
    while k + 2 <= inputs {
        let mut first = [0f32; N];
        let mut second = [0f32; N];
        for n in 0..N {
            // SAFETY: row `n` has elements `k` and `k + 1`.
            (first[n], second[n]) = unsafe { E::pair(w.add(n * inputs + k)) };
        }
        step(k, &first);
        step(k + 1, &second);
        k += 2;
    }
    if k < inputs {
        let mut last = [0f32; N];
        for (n, last) in last.iter_mut().enumerate() {
            // SAFETY: row `n` has element `k`.
            *last = unsafe { *w.add(n * inputs + k) }.single();
        }
        step(k, &last);
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
unsafe fn any<E: Element, const FMA: bool>(x: &[Lanes], w: *const E, half: Half, out: &mut [Lanes]) {
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
pub(super) enum Half {
    /// All lanes.
    No,
    /// The first half.
    Yes,
}

/// Output features `first..first + out.len()` of the rows of panel `x`.
pub(super) fn compute<E: Element>(x: &[Lanes], w: &[E], first: usize, half: Half, out: &mut [Lanes]) {
    let rows = &w[first * x.len()..(first + out.len()) * x.len()];
    #[cfg(target_arch = "x86_64")]
    {
        /// # Safety
        /// As for [`any`].
        #[target_feature(enable = "avx2,fma")]
        unsafe fn wide<E: Element>(x: &[Lanes], w: *const E, half: Half, out: &mut [Lanes]) {
            // SAFETY: the caller's promise.
            unsafe { any::<E, true>(x, w, half, out) }
        }
        if crate::simd::avx2() {
            // SAFETY: the processor has the features, and `rows` holds `out.len()` rows.
            return unsafe { wide(x, rows.as_ptr(), half, out) };
        }
    }
    // SAFETY: `rows` holds `out.len()` rows of `x.len()` elements.
    unsafe { any::<E, { crate::simd::BASELINE_FMA }>(x, rows.as_ptr(), half, out) }
}
