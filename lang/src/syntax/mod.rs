//! Text to tree.

pub mod ast;
