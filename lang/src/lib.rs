//! The `.rlhf` language: text → tree → facts → graph.
//!
//! Pure: nothing here reads files, the clock or the environment, prints, or knows of libtorch. Texts
//! come in, plain values go out, so the same code serves the command line, an editor and every rank.

extern crate alloc;

pub mod compile;
pub mod diag;
mod edit;
pub mod facts;
pub mod fix;
pub mod fmt;
pub mod graph;
pub mod ide;
pub mod lint;
pub mod reference;
mod sema;
pub mod source;
pub mod syntax;

pub use compile::{Compiled, Expression, Input, Request, compile, compile_expression};

use syntax::ast;
