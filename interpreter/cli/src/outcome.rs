//! How a command ends.

use rlhf_lang::diag::Diagnostic;

/// What ends a command early.
#[derive(Debug)]
pub enum Stop {
    /// The command line asks for something that is not there or makes no sense: exit code 2.
    Usage(Box<Diagnostic>),
    /// What was asked for did not work: exit code 1.
    Failed(Box<Diagnostic>),
}

/// Results of commands.
pub type Outcome<T> = Result<T, Stop>;

impl Stop {
    /// A usage error with a way out.
    pub fn usage(message: impl Into<String>, help: impl Into<String>) -> Self {
        Stop::Usage(Box::new(Diagnostic::bare("", message).help(help)))
    }

    /// A failure with a way out.
    pub fn failed(message: impl Into<String>, help: impl Into<String>) -> Self {
        Stop::Failed(Box::new(Diagnostic::bare("", message).help(help)))
    }
}

impl From<Diagnostic> for Stop {
    fn from(diagnostic: Diagnostic) -> Self {
        Stop::Failed(Box::new(diagnostic))
    }
}
