//! Diagnostics: what is wrong, where, and what would work.
//!
//! Plain values: this crate never prints. The command line renders them with miette, as JSON or on
//! one line each; a rank sends them over its pipe.

use serde::{Deserialize, Serialize};

use crate::source::Span;

/// How bad it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Level {
    /// Worth knowing.
    Hint,
    /// Likely a mistake; the program still runs.
    Warning,
    /// The program does not run.
    Error,
}

/// A span with words beside it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Label {
    /// Where.
    pub span: Span,
    /// What is there, in a few words; may be empty for the primary label.
    pub text: String,
}

/// Whether a change can be made without asking.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Certainty {
    /// It says what was meant: `--fix` makes it.
    #[default]
    Sure,
    /// It is likely, such as the nearest name: an editor offers it.
    Guess,
}

/// A replacement of text that mends the problem.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fix {
    /// What the fix does, as in "import it".
    pub title: String,
    /// Replacements, none overlapping another.
    pub edits: Vec<(Span, String)>,
    /// Whether it can be made without asking.
    #[serde(default)]
    pub certainty: Certainty,
}

/// One message: it names the cause in one line, points at the text to change, and says what would work.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Diagnostic {
    /// `E010`; empty for failures that have no page, such as a missing file given on the command line.
    pub code: String,
    /// Error, warning or hint.
    pub level: Level,
    /// One line that makes sense alone.
    pub message: String,
    /// The smallest text to change first, then the other halves of the conflict.
    pub labels: Vec<Label>,
    /// What would work.
    pub help: Option<String>,
    /// A safe mechanical change, where one exists.
    pub fix: Option<Fix>,
}

impl Diagnostic {
    /// An error pointing at `span`.
    pub fn error(code: &str, span: Span, message: impl Into<String>) -> Self {
        Self::at(Level::Error, code, span, message)
    }

    /// A warning pointing at `span`.
    pub fn warning(code: &str, span: Span, message: impl Into<String>) -> Self {
        Self::at(Level::Warning, code, span, message)
    }

    /// An error that no source text is to blame for.
    pub fn bare(code: &str, message: impl Into<String>) -> Self {
        Diagnostic {
            code: code.into(),
            level: Level::Error,
            message: message.into(),
            labels: vec![],
            help: None,
            fix: None,
        }
    }

    fn at(level: Level, code: &str, span: Span, message: impl Into<String>) -> Self {
        let labels = vec![Label {
            span,
            text: String::new(),
        }];
        Diagnostic {
            level,
            labels,
            ..Self::bare(code, message)
        }
    }

    /// Puts words beside the primary span.
    pub fn here(mut self, text: impl Into<String>) -> Self {
        if let Some(first) = self.labels.first_mut() {
            first.text = text.into();
        }
        self
    }

    /// Labels another place.
    pub fn label(mut self, span: Span, text: impl Into<String>) -> Self {
        self.labels.push(Label {
            span,
            text: text.into(),
        });
        self
    }

    /// Says what would work.
    pub fn help(mut self, text: impl Into<String>) -> Self {
        self.help = Some(text.into());
        self
    }

    /// Attaches a safe change.
    pub fn fix(mut self, title: impl Into<String>, edits: Vec<(Span, String)>) -> Self {
        self.fix = Some(Fix {
            title: title.into(),
            edits,
            certainty: Certainty::Sure,
        });
        self
    }

    /// Attaches a change that is likely to be meant.
    pub fn guess(self, title: impl Into<String>, edits: Vec<(Span, String)>) -> Self {
        let mut d = self.fix(title, edits);
        if let Some(fix) = &mut d.fix {
            fix.certainty = Certainty::Guess;
        }
        d
    }

    /// The place to change first.
    pub fn span(&self) -> Option<Span> {
        self.labels.first().map(|l| l.span)
    }
}
