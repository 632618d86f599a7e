//! What a rule finds, without positions in the text: it stays true while the program is edited
//! elsewhere.

use rlhf_lang::diag::{Diagnostic, Label, Level};
use serde::{Deserialize, Serialize};

use super::view::View;

/// A part of the program by its index in the [`View`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Place {
    /// The whole call.
    Call(usize),
    /// A call's prompt.
    Prompt(usize),
    /// The text that `answer` takes.
    Response(usize),
    /// The limit of a call's response axis.
    Limit(usize),
    /// A model's pass over tokens.
    Reader(usize),
    /// A reward's declaration.
    Reward(usize),
}

/// A diagnostic whose places are not yet spans.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Finding {
    /// `D303`
    pub code: String,
    /// How bad it is.
    pub level: Level,
    /// One line.
    pub message: String,
    /// What would work.
    pub help: String,
    /// The part to change.
    pub place: Place,
}

impl Finding {
    /// A finding that stops a run.
    pub fn error(code: &str, place: Place, message: String, help: impl Into<String>) -> Finding {
        Finding {
            code: code.into(),
            level: Level::Error,
            message,
            help: help.into(),
            place,
        }
    }

    /// A likely mistake.
    pub fn warning(code: &str, place: Place, message: String, help: impl Into<String>) -> Finding {
        Finding {
            level: Level::Warning,
            ..Finding::error(code, place, message, help)
        }
    }

    /// Worth knowing.
    pub fn hint(code: &str, place: Place, message: String, help: impl Into<String>) -> Finding {
        Finding {
            level: Level::Hint,
            ..Finding::error(code, place, message, help)
        }
    }

    /// What another room says, at a place.
    pub fn told(d: Diagnostic, place: Place) -> Finding {
        Finding {
            code: d.code,
            level: d.level,
            message: d.message,
            help: d.help.unwrap_or_default(),
            place,
        }
    }

    /// The diagnostic over this version of the program.
    pub fn diagnostic(&self, view: &View) -> Diagnostic {
        Diagnostic {
            level: self.level,
            labels: vec![Label {
                span: view.span(self.place),
                text: String::new(),
            }],
            help: (!self.help.is_empty()).then(|| self.help.clone()),
            ..Diagnostic::bare(&self.code, self.message.clone())
        }
    }
}
