//! One rank: it executes the program's calls on libtorch.

pub mod batch;
pub mod eval;
pub mod expr;
pub mod fault;
pub mod model;
pub mod text;
pub mod value;
