//! The numerical kernels of the interpreter, one folder an op: a fast implementation, a plain reference, and the
//! tests that compare the two.
//!
//! Decoding keeps activations in [`panel::Panels`]: sixteen rows side by side in the lanes of a vector. Every sum
//! then runs down the features of one lane in a fixed order, so what is computed for a row never depends on the
//! rows beside it, and no operator needs a horizontal sum.

pub mod attention;
pub mod gate;
pub mod layer_norm;
pub mod linear;
mod math;
pub mod panel;
pub mod parallel;
pub mod philox;
pub mod rms_norm;
pub mod rotary;
pub mod sample;
mod simd;
pub mod storage;
