//! What can go wrong on a rank, as a diagnostic that the command line renders over the program's text.

use rlhf_lang::diag::{Diagnostic, Label};
use rlhf_lang::source::Span;

/// A failure with a code, a message, a place in the program and a way out.
#[derive(Clone, Debug)]
pub struct Fault {
    /// What is shown.
    pub diagnostic: Box<Diagnostic>,
}

/// Results of this crate.
pub type Result<T> = std::result::Result<T, Fault>;

impl Fault {
    /// A failure without a page of its own.
    pub fn new(message: impl Into<String>) -> Self {
        Self::code("", message)
    }

    /// A failure with a code, such as `R401`.
    pub fn code(code: &str, message: impl Into<String>) -> Self {
        Fault {
            diagnostic: Box::new(Diagnostic::bare(code, message)),
        }
    }

    /// Points at a place, unless the failure points at one already.
    pub fn at(mut self, span: Span) -> Self {
        if self.diagnostic.labels.is_empty() {
            self.diagnostic.labels.push(Label {
                span,
                text: String::new(),
            });
        }
        self
    }

    /// Says what would work, unless that is said already.
    pub fn help(mut self, text: impl Into<String>) -> Self {
        self.diagnostic.help.get_or_insert_with(|| text.into());
        self
    }
}

impl std::fmt::Display for Fault {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.diagnostic.message)
    }
}

impl std::error::Error for Fault {}

impl From<Box<Diagnostic>> for Fault {
    fn from(diagnostic: Box<Diagnostic>) -> Self {
        Fault { diagnostic }
    }
}

impl From<std::io::Error> for Fault {
    fn from(e: std::io::Error) -> Self {
        Fault::new(e.to_string())
    }
}

impl From<tch::TchError> for Fault {
    fn from(e: tch::TchError) -> Self {
        // The first line says what; the rest is a C++ stack.
        let text = e.to_string();
        Fault::new(format!(
            "libtorch: {}",
            text.lines().next().unwrap_or("unknown failure")
        ))
    }
}
