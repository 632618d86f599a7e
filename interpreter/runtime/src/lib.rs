//! One rank: it executes the program's calls on libtorch.

pub mod batch;
pub mod data;
pub mod eval;
pub mod exec;
pub mod expr;
pub mod fault;
pub mod generate;
pub mod model;
pub mod reward;
pub mod value;
