//! What the language has and a rank does not run yet: said before anything is loaded.

use rlhf_lang::diag::{Diagnostic, Level};
use rlhf_lang::graph::Graph;
use rlhf_lang::source::Span;

/// The same as warnings, for a check: the program means what it says, and a run would refuse it.
pub fn not_run_yet(graph: &Graph) -> Vec<Diagnostic> {
    let mut found = unsupported(graph);
    found.iter_mut().for_each(|d| d.level = Level::Warning);
    found
}

/// The first use of everything that this interpreter cannot run; empty for a program that it can.
pub fn unsupported(graph: &Graph) -> Vec<Diagnostic> {
    let mut found: Vec<Diagnostic> = vec![];
    let mut add = |what: &str, span: Span, works: &str| {
        let message = format!("`{what}` is checked and not run yet");
        if !found.iter().any(|d| d.message == message) {
            found.push(Diagnostic::error("E090", span, message).help(works));
        }
    };
    if let Some(place) = &graph.place {
        add(
            "place",
            place.span,
            "a program without a plan runs on one device",
        );
    }
    found
}
