//! One rank: it executes the program's calls on libtorch.

pub mod batch;
pub mod data;
pub mod eval;
pub mod expr;
pub mod fault;
pub mod reward;
pub mod text;
pub mod value;
