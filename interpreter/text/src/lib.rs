//! What a program reads beside weights: rows of data files, tokenizers with their chat templates, and
//! rewards written in Python.
//!
//! Nothing here needs libtorch, so `rlhf check` and the ranks read the same files in the same way.

pub mod files;
pub mod reward;
pub mod rows;
pub mod tokens;

use rlhf_lang::diag::Diagnostic;

pub use tokens::{Continued, Message, Tokens, Turn};

/// Results of this crate. A diagnostic without labels has no place in the program yet.
pub type Result<T> = std::result::Result<T, Box<Diagnostic>>;

/// An error without a page and without a place.
fn failure(message: impl Into<String>) -> Box<Diagnostic> {
    Box::new(Diagnostic::bare("", message))
}
