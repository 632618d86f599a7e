//! One rank: it executes the program's calls on libtorch.

pub mod batch;
pub mod fault;
pub mod generate;
pub mod model;
