//! Where each call runs, what it needs, and the instruction list a rank executes.
//!
//! Pure: no files, no clock, no libtorch. The same graph gives the same plan on every rank.

pub mod launch;
pub mod memory;
pub mod program;
pub mod shape;
pub mod support;
