//! Work shared between threads.
//!
//! The pool is rayon's; its size is the number of compute threads. Kernels write results through [`Shared`]
//! because the layouts interleave what different threads produce.

use rayon::prelude::*;
use std::marker::PhantomData;

/// Sets the number of compute threads; only before the first kernel runs, and only once.
pub fn set_threads(threads: usize) -> Result<(), String> {
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads);
    pool.build_global().map_err(|e| e.to_string())
}

/// Runs `work(0)` to `work(items - 1)`, in any order, on the pool.
pub fn for_each(items: usize, work: impl Fn(usize) + Sync) {
    match items {
        0 => {}
        1 => work(0),
        _ => (0..items).into_par_iter().with_max_len(1).for_each(&work),
    }
}

/// Runs `work` on a thread of the pool, so that the kernels it calls start without waking one first.
pub fn run<R: Send>(work: impl FnOnce() -> R + Send) -> R {
    rayon::scope(|_| work())
}

/// A mutable slice whose elements several threads write, each its own.
#[derive(Clone, Copy)]
pub(crate) struct Shared<'a, T> {
    start: *mut T,
    len: usize,
    slice: PhantomData<&'a mut [T]>,
}

// SAFETY: a `Shared` only gives access through `slice`, whose caller promises disjoint ranges.
unsafe impl<T: Send> Send for Shared<'_, T> {}
// SAFETY: as above.
unsafe impl<T: Send> Sync for Shared<'_, T> {}

impl<'a, T> Shared<'a, T> {
    /// Borrows `slice` for writing by several threads.
    pub(crate) fn new(slice: &'a mut [T]) -> Self {
        Shared {
            start: slice.as_mut_ptr(),
            len: slice.len(),
            slice: PhantomData,
        }
    }

    /// The elements `at..at + len`.
    ///
    /// # Safety
    /// No other live reference overlaps the range.
    #[inline(always)]
    #[allow(clippy::mut_from_ref)] // Disjointness is the caller's promise.
    pub(crate) unsafe fn slice(&self, at: usize, len: usize) -> &'a mut [T] {
        assert!(at + len <= self.len, "range outside the shared slice");
        // SAFETY: in bounds by the assertion, exclusive by the caller's promise.
        unsafe { std::slice::from_raw_parts_mut(self.start.add(at), len) }
    }

    /// Writes element `at`.
    ///
    /// # Safety
    /// No live reference covers the element and no other thread accesses it meanwhile.
    #[inline(always)]
    pub(crate) unsafe fn write(&self, at: usize, value: T) {
        assert!(at < self.len, "index outside the shared slice");
        // SAFETY: in bounds by the assertion, exclusive by the caller's promise.
        unsafe { *self.start.add(at) = value }
    }
}
