//! Calls of functions from other files: what goes wrong inside is the call's.
//!
//! A program is mended where it calls, not in the library that it calls, so values made inside a
//! library's function and messages about its arguments have their place at the call.

use crate::diag::Diagnostic;
use crate::source::{FileId, Span};

use super::Sema;

/// A call of a function that is being inlined.
#[derive(Clone, Debug)]
pub(crate) struct Site {
    /// The whole call.
    pub span: Span,
    /// The function's name.
    pub name: String,
    /// Its arguments by the names of the function's params.
    pub args: Vec<(String, Span)>,
}

/// Codes of messages about the values that a function was given.
const ABOUT_VALUES: [&str; 6] = ["E017", "E018", "E030", "E031", "E032", "E036"];

impl Sema<'_> {
    /// The place of an expression: its own, or that of the program's call whose function holds it.
    pub(crate) fn outermost(&self, span: Span) -> Span {
        let program = FileId(0);
        if span.file == program {
            return span;
        }
        let site = self.sites.iter().rev().find(|s| s.span.file == program);
        site.map_or(span, |s| s.span)
    }

    /// A message about values inside a library's function, told at the program's call. `None` when
    /// that call has a message already.
    pub(crate) fn at_call(&self, mut d: Diagnostic) -> Option<Diagnostic> {
        let about = ABOUT_VALUES.contains(&d.code.as_str());
        let inside = d.span().is_some_and(|s| s.file != FileId(0));
        let site = self.sites.iter().rev().find(|s| s.span.file == FileId(0));
        let Some(site) = site.filter(|_| about && inside) else {
            return Some(d);
        };
        for label in &mut d.labels {
            label.span = self.argument_place(label.span);
        }
        d.message = format!("in `{}`: {}", site.name, d.message);
        let whole = site.span;
        let told = self.diagnostics.iter().any(|known| {
            known.message.starts_with("in `")
                && known
                    .span()
                    .is_some_and(|s| s.file == whole.file && whole.lo <= s.lo && s.hi <= whole.hi)
        });
        (!told).then_some(d)
    }

    /// Where the program wrote what stands at a place inside functions: the argument behind a param's
    /// name, else the call.
    fn argument_place(&self, mut span: Span) -> Span {
        for site in self.sites.iter().rev() {
            if span.file == FileId(0) {
                return span;
            }
            let text = self.sources.get(span.file).slice(span);
            let given = site.args.iter().find(|(name, _)| name == text);
            span = given.map_or(site.span, |(_, at)| *at);
        }
        span
    }
}
