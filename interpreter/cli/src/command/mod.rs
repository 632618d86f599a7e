//! One module a verb.

pub mod check;
pub mod doc;
pub mod eval;
pub mod explain;
pub mod fmt;
pub mod graph;
pub mod lsp;
pub mod new;
pub mod run;

use rlhf_lang::compile::Compiled;
use rlhf_lang::diag::Level;

use crate::program::Program;
use crate::report::{self, Format};

/// Compiles for a command that only shows something: the errors are printed, and are all the
/// diagnostics that stay.
fn compile(program: &Program, overrides: &[(String, String)]) -> Compiled {
    let mut compiled = program.compile(overrides);
    compiled.diagnostics.retain(|d| d.level == Level::Error);
    report::print(Format::Human, &compiled.sources, &compiled.diagnostics);
    compiled
}
