//! One source, several instruction sets.
//!
//! A kernel's body is an inlined generic function over `FMA`. [`dispatch!`] compiles it again with AVX2 and FMA
//! enabled and picks at run time, so a binary built for any x86-64 uses the wide units where they exist.

/// `a·b + c`, fused where the instruction set fuses.
#[inline(always)]
pub(crate) fn madd<const FMA: bool>(a: f32, b: f32, c: f32) -> f32 {
    if FMA { a.mul_add(b, c) } else { a * b + c }
}

/// AArch64 always fuses; other targets only where detected.
pub(crate) const BASELINE_FMA: bool = cfg!(target_arch = "aarch64");

/// Whether the widest x86 variant of a kernel may run here.
#[cfg(target_arch = "x86_64")]
#[inline]
pub(crate) fn avx2() -> bool {
    is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma")
}

/// Defines `fn name(args)` that runs `body::<FMA>(args)` compiled for the best instruction set at hand.
macro_rules! dispatch {
    ($(#[$doc:meta])* $vis:vis fn $name:ident($($arg:ident: $ty:ty),* $(,)?) $(-> $ret:ty)? = $body:ident) => {
        $(#[$doc])*
        #[inline]
        $vis fn $name($($arg: $ty),*) $(-> $ret)? {
            #[cfg(target_arch = "x86_64")]
            {
                #[target_feature(enable = "avx2,fma")]
                fn wide($($arg: $ty),*) $(-> $ret)? {
                    $body::<true>($($arg),*)
                }
                if $crate::simd::avx2() {
                    // SAFETY: the processor has the features that `wide` is compiled for.
                    return unsafe { wide($($arg),*) };
                }
            }
            $body::<{ $crate::simd::BASELINE_FMA }>($($arg),*)
        }
    };
}
pub(crate) use dispatch;
