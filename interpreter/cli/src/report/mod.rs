//! Diagnostics as text: for people, on one line each, as JSON, or for a code host.

mod excerpt;
mod github;
mod human;
mod json;

use clap::ValueEnum;
use rlhf_lang::diag::{Diagnostic, Level};
use rlhf_lang::source::Sources;

pub use human::Style;
use json::object;

use crate::output;

/// How problems are printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// The program's text with the problem marked in it, on standard error.
    Human,
    /// One JSON object a line, on standard output.
    Json,
    /// `file:line:column: error[E010]: message`, one a line, on standard output.
    Concise,
    /// `::error file=…::message`, a workflow command a line, on standard output.
    Github,
}

/// Prints diagnostics in the order given.
pub fn print(format: Format, sources: &Sources, diagnostics: &[Diagnostic]) {
    match format {
        Format::Human => {
            let style = Style::of_stderr();
            for d in diagnostics {
                output::err(&human::render(sources, d, style));
            }
        }
        Format::Json => {
            for d in diagnostics {
                output::out(&format!("{}\n", object(sources, d)));
            }
        }
        Format::Concise => {
            for d in diagnostics {
                output::out(&concise(sources, d));
            }
        }
        Format::Github => {
            for d in diagnostics {
                output::out(&github::command(sources, d));
            }
        }
    }
}

/// A diagnostic as an event of a run, for scripts.
pub fn event(sources: &Sources, d: &Diagnostic) -> serde_json::Value {
    let mut event = serde_json::json!({ "event": "diagnostic" });
    if let (Some(to), serde_json::Value::Object(from)) = (event.as_object_mut(), object(sources, d))
    {
        to.extend(from);
    }
    event
}

/// A diagnostic for people.
pub fn human(sources: &Sources, d: &Diagnostic) -> String {
    human::render(sources, d, Style::of_stderr())
}

/// The word for a level.
pub fn level(level: Level) -> &'static str {
    match level {
        Level::Hint => "hint",
        Level::Warning => "warning",
        Level::Error => "error",
    }
}

fn concise(sources: &Sources, d: &Diagnostic) -> String {
    let place = match d.span() {
        Some(span) => {
            let source = sources.get(span.file);
            let (line, column) = source.line_column(span.lo);
            format!("{}:{line}:{column}: ", source.name)
        }
        None => String::new(),
    };
    let code = match d.code.as_str() {
        "" => String::new(),
        code => format!("[{code}]"),
    };
    // A message is one line, and so is a path; should one not be, a tool that reads lines still gets one.
    let line = format!("{place}{}{code}: {}", level(d.level), d.message);
    format!("{}\n", line.replace(['\n', '\r'], " "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use rlhf_lang::source::{Source, Span};

    #[test]
    fn concise_is_one_line_with_place_level_and_code() {
        let mut sources = Sources::default();
        let id = sources.add(Source::new("a.rlhf", "step {\n  x = yy\n}\n"));
        let d = Diagnostic::error("E010", Span::new(id, 13, 15), "no `yy` in this step");
        assert_eq!(
            concise(&sources, &d),
            "a.rlhf:2:7: error[E010]: no `yy` in this step\n"
        );
        let bare = Diagnostic::bare("", "no such device");
        assert_eq!(concise(&sources, &bare), "error: no such device\n");
    }
}
